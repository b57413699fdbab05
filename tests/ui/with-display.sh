#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Runs a test on an X server, a bus and a runtime folder of its own: with-display.sh COMMAND...
# The server picks its own number, so that any number of these may run at once.
set -eu
for tool in Xvfb dbus-run-session; do
  command -v "$tool" >/dev/null || { echo "Bail out! $tool is not installed"; exit 1; }
done
dir=$(mktemp -d "${TMPDIR:-/tmp}/coop-ui.XXXXXX")
mkdir -m 700 "$dir/run" "$dir/config" "$dir/home"
Xvfb -displayfd 3 -screen 0 1600x1000x24 -nolisten tcp 3>"$dir/display" >/dev/null 2>&1 &
server=$!
trap 'kill $server 2>/dev/null || true; wait $server 2>/dev/null || true; rm -rf "$dir"' EXIT
trap 'exit 143' TERM INT HUP
tries=0
until [ -s "$dir/display" ]; do
  tries=$((tries + 1))
  [ $tries -lt 200 ] || { echo "Bail out! Xvfb did not start"; exit 1; }
  sleep 0.05
done
DISPLAY=:$(cat "$dir/display")
XDG_RUNTIME_DIR=$dir/run
XDG_CONFIG_HOME=$dir/config
XDG_CACHE_HOME=$dir/home
export DISPLAY XDG_RUNTIME_DIR XDG_CONFIG_HOME XDG_CACHE_HOME
unset WAYLAND_DISPLAY
GDK_BACKEND=x11 GSK_RENDERER=cairo GSETTINGS_BACKEND=memory ADW_DISABLE_PORTAL=1 GTK_THEME=
export GDK_BACKEND GSK_RENDERER GSETTINGS_BACKEND ADW_DISABLE_PORTAL
unset GTK_THEME
# The bus daemon and what it starts talk on stderr; that is kept only if something goes wrong.
status=0
dbus-run-session -- "$@" 2>"$dir/stderr" || status=$?
[ $status -eq 0 ] || grep -v '^dbus-daemon' "$dir/stderr" >&2 || true
exit $status
