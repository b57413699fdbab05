#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# check.sh: sets everything up, builds in build/ and runs all tests. The last line is
# `N passed, N failed`; the exit status is 0 if nothing failed. For COOP_TORCH and COOP_PYTHON see
# setup.sh. Arguments go to `meson test`, such as --suite core.
set -eu

say () { printf '%s\n' "$*"; }
top=$(cd "$(dirname "$0")/.." && pwd)
build=$top/build
. "$top/tools/build.sh"

coop_setup
coop_build "$build" -Dui=enabled

failed=0
# Without the window nothing else may need GTK, and warnings are errors.
no_ui=$top/build/no-ui
if coop_build "$no_ui" -Dui=disabled -Dwerror=true >"$build/no-ui.log" 2>&1; then
  say "built without the window, too"
else
  cat "$build/no-ui.log"
  say "-Dui=disabled does not build"
  failed=1
fi

# Tests that need a display and a bus bring their own.
log=$build/meson-logs/testlog.json
rm -f "$log"
meson test -C "$build" --no-rebuild --print-errorlogs "$@" || true
say "Tested with PyTorch:"
printf '%s\n' "$pythons" | sed 's/\(.*\)\t\(.*\)/  \2  (\1)/'
"$python" "$top/tools/count.py" "$log" "$failed"
