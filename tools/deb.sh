#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# deb.sh [FOLDER]: makes the Debian packages of the committed tree and puts them into FOLDER (build-deb).
# What is needed: apt-get install dpkg-dev debhelper, and what tools/setup.sh installs.
set -eu
top=$(cd "$(dirname "$0")/.." && pwd)
out=${1:-$top/build-deb}
for tool in dpkg-buildpackage dh; do
  command -v "$tool" >/dev/null || { echo "deb.sh: $tool is missing: apt-get install dpkg-dev debhelper" >&2; exit 1; }
done
mkdir -p "$out"
out=$(cd "$out" && pwd)
work=$(mktemp -d "${TMPDIR:-/tmp}/coop-deb.XXXXXX")
trap 'rm -rf "$work"' EXIT
trap 'exit 143' TERM INT HUP
mkdir "$work/coopscope"
git -C "$top" archive HEAD | tar -x -C "$work/coopscope"
# dpkg-buildpackage wants it at the top
cp -r "$work/coopscope/tools/debian" "$work/coopscope/debian"
(cd "$work/coopscope" && dpkg-buildpackage -b -us -uc)
mv "$work"/*.deb "$work"/*.changes "$work"/*.buildinfo "$out"
ls -l "$out"/*.deb
