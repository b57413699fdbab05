#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# demo.sh: sets everything up, builds, and opens coopscope on a ResNet in training under a budget.
# Without a display (no DISPLAY, no WAYLAND_DISPLAY) the same run goes on under Xvfb: it leaves a grab
# of the screen and the trace in build/demo, and fails unless it went as it must (see
# tests/accept/headless.py).
set -eu

top=$(cd "$(dirname "$0")/.." && pwd)
build=$top/build
. "$top/tools/build.sh"

coop_setup
coop_build "$build" -Dui=enabled

budget=180MiB   # of a peak of 318 MiB
mkdir -p "$build/demo"
set -- "$python" "$top/data/demos/resnet.py"
if [ -n "${DISPLAY:-}${WAYLAND_DISPLAY:-}" ]; then
  exec "$build/ui/coopscope" --budget $budget -o "$build/demo/run.coop" -- "$@" --steps 200
fi
exec "$python" "$top/tests/accept/headless.py" --build "$build" \
  --out "$build/demo" --budget $budget --move-to 200 -- "$@" --steps 12
