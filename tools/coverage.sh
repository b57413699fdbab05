#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# coverage.sh: how much of src/core the tests of core, api and replay reach. Builds in build/coverage,
# runs them and prints gcovr's table; the exit status is not 0 below 95 % of lines or 85 % of branches.
# Extra arguments go to gcovr, such as --html-details cover.html.
set -eu

top=$(cd "$(dirname "$0")/.." && pwd)
build=$top/build/coverage
command -v gcovr >/dev/null || { echo "coverage.sh: gcovr is not installed (apt-get install gcovr)" >&2; exit 2; }
[ -f "$build/build.ninja" ] \
  || meson setup "$build" "$top" -Db_coverage=true -Dbuildtype=debug -Dui=disabled -Dtorch=disabled
meson compile -C "$build"
find "$build" -name '*.gcda' -delete
meson test -C "$build" --no-rebuild --print-errorlogs --suite core --suite api
lines () {
  gcovr --root "$top" --filter "$top/src/core/" --exclude-unreachable-branches "$@" "$build/src/core"
}
lines --branches
lines --fail-under-line 95 --fail-under-branch 85 "$@"
