#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Installs what the build needs and is missing, by apt-get (through sudo when not root). Looks for the headers
# themselves, not for packages, so that libraries installed in another way count. Silent when all is there.
#
#   tools/system_packages.sh            what a build needs
#   tools/system_packages.sh test       and what the C++ tests need
#   tools/system_packages.sh wheel      and what a wheel links statically
#   tools/system_packages.sh arm        and what builds and runs the C++ tests for ARM
set -eu
PYTHON="${PYTHON:-python3}"
missing=""

need() { missing="$missing $1"; }
has_header() { printf '#include <%s>\n' "$1" | g++ -std=c++20 -E -x c++ - > /dev/null 2>&1; }

command -v g++ > /dev/null || need g++
command -v make > /dev/null || need make
if command -v "$PYTHON" > /dev/null; then
  "$PYTHON" -c 'import ensurepip, venv' 2> /dev/null || need python3-venv
  "$PYTHON" -c 'import os, sys, sysconfig
sys.exit(not os.path.exists(os.path.join(sysconfig.get_path("include"), "Python.h")))' || need python3-dev
else
  need "python3 python3-venv python3-dev"
fi
# Without a compiler no header is found, and all packages are named: right, since a machine without one is bare.
has_header nlohmann/json.hpp || need nlohmann-json3-dev
has_header xtensor/xarray.hpp || need libxtensor-dev
has_header sleef.h || need libsleef-dev
# Debian keeps OpenBLAS's own header in a folder of the multiarch directory.
ls /usr/include/*/openblas*/cblas.h /usr/include/openblas*/cblas.h /usr/local/include/cblas.h \
  /opt/OpenBLAS/include/cblas.h 2> /dev/null | grep -q . || need libopenblas-dev
command -v pkg-config > /dev/null || need pkg-config
if [ "${1:-}" = test ]; then
  has_header gtest/gtest.h || need libgtest-dev
fi
if [ "${1:-}" = wheel ]; then
  ls /usr/lib/*/openblas-serial/libopenblas.a 2> /dev/null | grep -q . || need libopenblas-serial-dev
fi
if [ "${1:-}" = arm ]; then
  command -v aarch64-linux-gnu-g++ > /dev/null || need g++-aarch64-linux-gnu
  command -v qemu-aarch64 > /dev/null || need qemu-user
  [ -e /usr/aarch64-linux-gnu/lib/libgfortran.so.5 ] || need libgfortran5-arm64-cross
fi

[ -n "$missing" ] || exit 0

if ! command -v apt-get > /dev/null; then
  echo "shardwise: missing here:$missing (Debian's names); install them with this system's package manager" >&2
  exit 1
fi
if [ "$(id -u)" = 0 ]; then
  as_root=""
elif command -v sudo > /dev/null; then
  as_root="sudo"
else
  echo "shardwise: as root, run: apt-get install -y$missing" >&2
  exit 1
fi
echo "shardwise: installing$missing"
# shellcheck disable=SC2086  # a list of words
$as_root env DEBIAN_FRONTEND=noninteractive apt-get update -q
# shellcheck disable=SC2086
$as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -q --no-install-recommends $missing
