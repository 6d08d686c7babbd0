#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Unpacks the libraries that a cross build for ARM links, from Debian's arm64 packages. apt-get works on lists of its own
# there, so this needs no root and leaves the packages of this machine alone.
#
#   tools/arm_sysroot.sh build/arm/sysroot
set -eu
sysroot="$1"
libraries="libgtest-dev libopenblas-serial-dev libsleef-dev libsleef3 libxtensor-dev nlohmann-json3-dev xtl-dev"

if [ -e "$sysroot/.packages" ] && [ "$(cat "$sysroot/.packages")" = "$libraries" ]; then exit 0; fi
rm -rf "$sysroot"
mkdir -p "$sysroot/apt/lists/partial" "$sysroot/apt/cache/archives/partial" "$sysroot/apt/debs"
apt="$(cd "$sysroot/apt" && pwd)"
touch "$apt/status"
apt_get() {
  apt-get -qq -o APT::Architecture=arm64 -o APT::Architectures=arm64 -o Dir::State::lists="$apt/lists" \
    -o Dir::State::status="$apt/status" -o Dir::Cache="$apt/cache" -o APT::Sandbox::User=root "$@"
}
apt_get update
# shellcheck disable=SC2086  # a list of words
(cd "$apt/debs" && apt_get download $libraries)
for package in "$apt"/debs/*.deb; do dpkg-deb -x "$package" "$sysroot"; done
rm -rf "$apt"
echo "$libraries" > "$sysroot/.packages"
