#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Tries the current commit on a bare Debian: makes a root with debootstrap, clones into it, and runs steps there. Needs root.
#
#   tools/try_debian.sh 13                                  # make demo, make test-py, and the tests of JAX with the newest
#   tools/try_debian.sh 12 --lock oldest --steps test-py    # with the oldest supported versions of NumPy, JAX and others
#   tools/try_debian.sh 13 --steps jax                      # the last of these alone
#   tools/try_debian.sh 13 --compiler g++-12                # the extension alone, by another compiler, with -Werror
#
# RELEASE is 12, 13 or forky. Options: --steps LIST (demo, test-py, jax, extension), --lock NAME (requirements/NAME.txt for
# the tests: test, but newest for the step jax, except on 12), --compiler NAME, --jobs N, --ccache (shares the compiler cache
# of this user with the root), --select WORDS (SELECT of make test-py), --keep (leaves the root that the steps ran in), --reuse
# (runs the steps in that root).
# SHARDWISE_ROOTS is the folder of roots, SHARDWISE_MIRROR Debian's mirror.
set -euo pipefail
cd "$(dirname "$0")/.."

die() {
  echo "try_debian: $*" >&2
  exit 2
}

usage="usage: tools/try_debian.sh 12|13|forky [--steps LIST] [--lock NAME] [--compiler NAME] [--jobs N] [--ccache]
       [--select WORDS] [--keep] [--reuse]"
steps="" lock="" compiler="" jobs="$(nproc)" ccache="" select="" keep="" reuse=""
[ $# -gt 0 ] || die "$usage"
release="$1"
shift
case "$release" in
  12) suite=bookworm ;;
  13) suite=trixie ;;
  forky) suite=forky ;;
  *) die "$usage" ;;
esac
while [ $# -gt 0 ]; do
  case "$1" in
    --steps) steps="${2:?$usage}" && shift ;;
    --lock) lock="${2:?$usage}" && shift ;;
    --compiler) compiler="${2:?$usage}" && shift ;;
    --jobs) jobs="${2:?$usage}" && shift ;;
    --ccache) ccache=yes ;;
    --select) select="${2:?$usage}" && shift ;;
    --keep) keep=yes ;;
    --reuse) reuse=yes keep=yes ;;
    *) die "$usage" ;;
  esac
  shift
done
given_lock="$lock"
jax_lock="${lock:-$([ "$release" = 12 ] && echo test || echo newest)}"
lock="${lock:-test}"
[ -n "$steps" ] || steps="$([ -n "$compiler" ] && echo extension || echo "demo,test-py$([ "$release" = 12 ] || echo ,jax)")"
[ "$(id -u)" = 0 ] || die "must run as root, for debootstrap, mount and chroot"
[ -f "requirements/$lock.txt" ] || die "no lock file requirements/$lock.txt"

roots="$(realpath -m "${SHARDWISE_ROOTS:-build/roots}")"
mirror="${SHARDWISE_MIRROR:-http://deb.debian.org/debian}"
bare="$roots/$suite"
root="$roots/$suite-run"

# The bare root is made once; the steps run in a copy, so that each run starts from nothing.
make_bare_root() {
  [ ! -e "$bare/bin/sh" ] || return 0
  command -v debootstrap > /dev/null || apt-get install -y -q --no-install-recommends debootstrap
  local script="/usr/share/debootstrap/scripts/$suite"
  [ -e "$script" ] || script=/usr/share/debootstrap/scripts/sid # a release that this debootstrap does not know
  mkdir -p "$roots"
  rm -rf --one-file-system "$bare.part"
  debootstrap --variant=minbase --include=ca-certificates "$suite" "$bare.part" "$mirror" "$script"
  mv "$bare.part" "$bare"
}

pip_settings() { # of this machine: the files, then the variables
  ls -d /etc/pip.conf /etc/xdg/pip "$HOME/.config/pip" "$HOME/.pip" 2> /dev/null || true
}

# Local folders that pip's settings name: they are mounted at the same place. The files of an index stand beside it.
pip_folders() {
  local word
  { pip_settings | xargs -r -d '\n' grep -rhs '' && env | grep '^PIP_'; } | tr '= ' '\n' |
    while read -r word; do
      case "$word" in
        file:///*) word="$(dirname "${word#file://}")" ;;
        /*) ;;
        *) continue ;;
      esac
      [ ! -d "$word" ] || echo "$word"
    done | sort -u
}

copy_settings() {
  local file
  cp -L /etc/resolv.conf "$root/etc/resolv.conf"
  # The line of Debian's installer: processes of JAX listen at the address of this name.
  grep -qswF "$(uname -n)" "$root/etc/hosts" || printf '127.0.1.1\t%s\n' "$(uname -n)" >> "$root/etc/hosts"
  mkdir -p "$root/usr/local/share/ca-certificates"
  cp -rL /usr/local/share/ca-certificates/. "$root/usr/local/share/ca-certificates/"
  cp -L /etc/ssl/certs/ca-certificates.crt "$root/etc/ssl/certs/ca-certificates.crt"
  pip_settings | while read -r file; do
    local target="$root${file/#"$HOME"//root}"
    mkdir -p "$(dirname "$target")"
    cp -rL "$file" "$target"
  done
}

# In a mount namespace of its own: the mounts end with the process.
mount_all() {
  local folder
  mount -t proc proc "$root/proc"
  mount --rbind /sys "$root/sys"
  mount --rbind /dev "$root/dev"
  pip_folders | while read -r folder; do
    mkdir -p "$root$folder"
    mount --bind "$folder" "$root$folder"
  done
  if [ -n "$ccache" ]; then
    folder="$(ccache --get-config cache_dir)"
    mkdir -p "$root/ccache" "$folder"
    mount --bind "$folder" "$root/ccache"
  fi
}

inside() { # a command, in the clone, with nothing of this user's environment but pip's settings and proxies
  local variables=()
  mapfile -t variables < <(env | grep -iE '^(PIP_[A-Z_]+|https?_proxy|no_proxy)=')
  [ -z "$ccache" ] || variables+=(CCACHE_DIR=/ccache CCACHE_BASEDIR=/ CCACHE_NOHASHDIR=1 CCACHE_SLOPPINESS=pch_defines,time_macros)
  chroot "$root" /usr/bin/env -i HOME=/root LANG=C.UTF-8 PATH=/usr/sbin:/usr/bin:/sbin:/bin "${variables[@]}" \
    /bin/sh -c 'mkdir -p /root/shardwise && cd /root/shardwise && exec "$@"' sh "$@"
}

install_packages() {
  inside apt-get update -q
  inside env DEBIAN_FRONTEND=noninteractive apt-get install -y -q --no-install-recommends "$@" > "$roots/$suite-apt.log"
}

# A released compiler must give no warning. One setting for all steps: another one would compile everything again.
werror="$([ "$release" = forky ] && echo OFF || echo ON)"

special=tests/conformance/jax/test_special_points.py

run_step() {
  case "$1" in
    demo) inside make demo JOBS="$jobs" WERROR="$werror" ;;
    test-py)
      # Types are checked against the stubs of the newest NumPy alone.
      inside env CI=true make test-py JOBS="$jobs" LOCK="$lock" WERROR="$werror" \
        "SELECT=$select $([ "$lock" != oldest ] || echo --deselect tests/api/test_stubs.py::test_checkers_are_content)"
      ;;
    jax)
      inside rm -f .venv/.packages # those of another lock
      inside make setup build JOBS="$jobs" LOCK="$jax_lock" WERROR="$werror"
      inside .venv/bin/python examples/from_jax.py
      inside .venv/bin/python examples/on_jax.py
      local other=()
      # Gradients at special points and the list of JAX's functions are those of the JAX that pyproject.toml pins.
      [ "$jax_lock" != newest ] || other=(--deselect "$special::test_gradient_is_jaxs" --deselect
        "$special::test_conventions_are_few_and_each_is_needed" --deselect
        tests/conformance/jax/test_corpus_functions.py::test_a_function_that_no_row_calls_is_found)
      inside env CI=true .venv/bin/python -m pytest -q -n "$jobs" --dist worksteal tests/interop tests/conformance/jax \
        "${other[@]}"
      ;;
    extension)
      inside make .venv/.demo-packages
      inside env CXX="${compiler:-g++}" CMAKE_BUILD_PARALLEL_LEVEL="$jobs" .venv/bin/pip install --no-deps \
        --no-build-isolation --config-settings=cmake.define.SHARDWISE_WERROR=ON .
      inside .venv/bin/python examples/quickstart.py
      ;;
    *) die "no step '$1': demo, test-py, jax or extension" ;;
  esac
}

run_all() {
  local step start failed=0 table=""
  mount_all
  echo "== Debian $release: packages that a newcomer has: python3, make, git"
  # shellcheck disable=SC2046,SC2086  # words
  install_packages python3 make git $compiler $([ -z "$ccache" ] || echo ccache)
  for step in ${steps//,/ }; do
    echo "== Debian $release: $step"
    start=$SECONDS
    # Not `run_step || …`: inside a condition, bash ignores set -e.
    set +e
    (set -e && run_step "$step")
    local status=$?
    set -e
    [ $status = 0 ] || failed=1
    table+="$(printf '%-10s %-10s %6d s  %s' "$release" "$step" $((SECONDS - start)) "$([ $status = 0 ] && echo passed || echo FAILED)")"$'\n'
  done
  inside sh -c 'gcc -dumpfullversion; .venv/bin/python -c "import sys; print(sys.version.split()[0])"; .venv/bin/pip list \
    --format=freeze 2> /dev/null | grep -E "^(numpy|jax|ml_dtypes|optree)="' | tr '\n' ' ' || true
  printf '\n%s' "$table"
  return $failed
}

if [ -n "${SHARDWISE_TRY_DEBIAN_MOUNTS:-}" ]; then
  run_all
  exit
fi
if [ -n "$reuse" ]; then
  [ -e "$root/root/shardwise" ] || die "no root to reuse; run once with --keep"
  git -C "$root/root/shardwise" fetch --quiet "$PWD" HEAD
  git -C "$root/root/shardwise" checkout --quiet --force --detach FETCH_HEAD
else
  make_bare_root
  rm -rf --one-file-system "$root"
  cp -a "$bare" "$root"
  git clone --quiet --no-hardlinks . "$root/root/shardwise"
fi
copy_settings
status=0
SHARDWISE_TRY_DEBIAN_MOUNTS=1 unshare --mount --propagation private "$0" "$release" --steps "$steps" --jobs "$jobs" \
  ${given_lock:+--lock "$given_lock"} ${compiler:+--compiler "$compiler"} ${ccache:+--ccache} \
  ${select:+--select "$select"} || status=$?
[ -n "$keep" ] || rm -rf --one-file-system "$root"
exit $status
