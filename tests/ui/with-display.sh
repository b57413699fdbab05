#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Runs a test on an X server, a bus and a runtime folder of its own: with-display.sh COMMAND...
# The number of the server comes from our process id, so that any number of these may run at once.
set -eu
for tool in Xvfb dbus-run-session; do
  command -v "$tool" >/dev/null || { echo "Bail out! $tool is not installed"; exit 1; }
done
dir=$(mktemp -d "${TMPDIR:-/tmp}/coop-ui.XXXXXX")
server=
trap '[ -z "$server" ] || kill $server 2>/dev/null || true; wait; rm -rf "$dir"' EXIT
trap 'exit 143' TERM INT HUP
mkdir -m 700 "$dir/run" "$dir/config" "$dir/home"

# Starts Xvfb as :$1; false if it ends before it is ready.
start_server() {
  : >"$dir/ready"
  # -noreset: else it closes its doors for a moment whenever the last window is gone
  Xvfb ":$1" -displayfd 3 -noreset -screen 0 1600x1000x24 -nolisten tcp 3>"$dir/ready" >"$dir/xvfb" 2>&1 &
  server=$!
  until [ -s "$dir/ready" ]; do
    kill -0 $server 2>/dev/null || return 1
    sleep 0.05
  done
}
number=$((100 + $$ % 40000))
tries=0
until start_server $number; do
  number=$((number + 1))
  tries=$((tries + 1))
  [ $tries -lt 10 ] || { cat "$dir/xvfb" >&2; echo "Bail out! Xvfb does not start"; exit 1; }
done

unset WAYLAND_DISPLAY GTK_THEME
export DISPLAY=":$number" XDG_RUNTIME_DIR="$dir/run" XDG_CONFIG_HOME="$dir/config" XDG_CACHE_HOME="$dir/home"
export GDK_BACKEND=x11 GSK_RENDERER=cairo GSETTINGS_BACKEND=memory ADW_DISABLE_PORTAL=1
# The daemons of the bus talk on both outputs: the test's own go past them.
status=0
dbus-run-session -- sh -c 'exec "$@" >&4 2>&5 4>&- 5>&-' sh "$@" 4>&1 5>&2 >"$dir/bus" 2>&1 || status=$?
exit $status
