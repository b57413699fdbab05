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
say "Tested with PyTorch:"
printf '%s\n' "$pythons" | sed 's/\(.*\)\t\(.*\)/  \2  (\1)/'
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

# One bus and one display for all; each test makes its own where it needs to be alone.
XDG_RUNTIME_DIR=$(mktemp -d)
export XDG_RUNTIME_DIR GSK_RENDERER=cairo GDK_BACKEND=x11 GSETTINGS_BACKEND=memory
trap 'rm -rf "$XDG_RUNTIME_DIR"' EXIT
unset WAYLAND_DISPLAY
dbus-run-session -- xvfb-run -a -s '-screen 0 1280x1024x24' \
  meson test -C "$build" --no-rebuild --print-errorlogs "$@" || true
/usr/bin/python3 "$top/tools/count.py" "$build/meson-logs/testlog.json" "$failed"
