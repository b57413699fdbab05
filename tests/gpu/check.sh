#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# What can only be seen on a GPU, one step a line of the table below. For one NVIDIA GPU with a driver
# of CUDA 12.8 or newer, a C and a C++ compiler, Python with PyTorch 2.11 or newer.
#
#   tests/gpu/check.sh [-o FOLDER] [-p PYTHON] [-b BUILD] [STEP...]
#
# Steps: versions probe vmm remap cases bits time evict cupti cost. Without a step: all. Each is a process of its own with its own
# time limit (an error of a GPU is for good). Results: FOLDER/results.jsonl, one object a line, and a
# table at the end. Exit: 0 all that ran passed, 1 something failed, 77 there is no GPU.
set -u
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
out=${OUT:-/tmp/coop-gpu} python=python3 build=
usage () { sed -n '3,11s/^# \{0,1\}//p' "$0"; }
while getopts o:p:b:h option; do
  case $option in
    o) out=$OPTARG ;;
    p) python=$OPTARG ;;
    b) build=$OPTARG ;;
    h) usage; exit 0 ;;
    *) usage >&2; exit 2 ;;
  esac
done
shift $((OPTIND - 1))
all="versions probe vmm remap cases bits time evict cupti cost"
steps=${*:-$all}
for step in $steps; do
  case " $all " in
    *" $step "*) ;;
    *) echo "check.sh: no step \"$step\"; there are $all" >&2; exit 2 ;;
  esac
done
mkdir -p "$out" || exit 1
results=$out/results.jsonl
: > "$results"

note () { # STEP STATUS SECONDS REASON
  printf '{"step":"%s","status":"%s","seconds":%s,"reason":"%s"}\n' "$1" "$2" "$3" \
    "$(printf '%s' "$4" | tr '\n"\\' "  /" | cut -c1-300)" >> "$results"
}

table () {
  printf '\n%-10s %-8s %8s  %s\n' step status seconds reason
  sed -n 's/^{"step":"\([^"]*\)","status":"\([^"]*\)","seconds":\([^,]*\),"reason":"\(.*\)"}$/\1|\2|\3|\4/p' "$results" |
    while IFS='|' read -r step status seconds reason; do
      printf '%-10s %-8s %8s  %s\n' "$step" "$status" "$seconds" "$reason"
    done
  echo
  echo "figures: $results"
}

# ---- what is needed, built on the spot ----

compile () {
  cc=${CC:-cc}
  "$cc" -std=gnu17 -O2 -D_GNU_SOURCE -I"$root/src" -o "$out/vmm" "$here/vmm.c" \
    "$root"/src/device/cuda-*.c "$root"/src/core/*.c -lm -ldl 2> "$out/compile.log"
}

build_all () {
  [ -n "$build" ] && return 0
  build=$out/build
  command -v meson > /dev/null 2>&1 || { why="meson is not installed (or give -b BUILD)"; return 1; }
  [ -e "$build/build.ninja" ] || meson setup "$build" "$root" -Dui=disabled -Dtests=false "-Dpython=$python" \
    > "$out/build.log" 2>&1 || { why="meson setup failed: $out/build.log"; return 1; }
  meson compile -C "$build" >> "$out/build.log" 2>&1 || { why="the build failed: $out/build.log"; return 1; }
}

run () { # STEP LIMIT COMMAND...
  step=$1 limit=$2
  shift 2
  begin=$(date +%s)
  timeout "$limit" "$@" > "$out/$step.out" 2> "$out/$step.err"
  status=$?
  seconds=$(($(date +%s) - begin))
  grep '^{' "$out/$step.out" >> "$results"
  grep -v '^{' "$out/$step.out"
  case $status in
    0) note "$step" pass $seconds "" ;;
    77) note "$step" skip $seconds "$(tail -n 1 "$out/$step.err")" ;;
    124) note "$step" fail $seconds "over its limit of $limit s" ;;
    *) failed=1
       note "$step" fail $seconds "exit $status: $(tail -n 1 "$out/$step.err")" ;;
  esac
  [ $status -ne 124 ] || failed=1
}

failed=0
if ! compile; then
  echo "check.sh: tests/gpu/vmm.c does not compile: $out/compile.log" >&2
  exit 1
fi
if ! reason=$("$out/vmm" versions 2>&1 > /dev/null); then
  for step in $steps; do
    note "$step" skip 0 "no GPU: $reason"
  done
  table
  exit 77
fi
have_torch=yes
"$python" -c 'import torch, sys; sys.exit(not torch.cuda.is_available())' 2> /dev/null || have_torch=no
why=
for step in $steps; do
  case $step in
    versions | probe | vmm | remap) run "$step" 120 "$out/vmm" "$step" ;;
    *)
      if [ $have_torch = no ]; then
        note "$step" skip 0 "$python has no PyTorch that sees the GPU"
      elif [ -n "$why" ] || ! build_all; then
        note "$step" skip 0 "$why"
      elif [ "$step" = cases ]; then
        COOP_GPU=1 run "$step" 120 "$python" "$here/cuda_cases.py" "$build/src/torch/python"
      else
        run "$step" 150 "$python" "$here/check.py" "$build" "$step"
      fi ;;
  esac
done
table
exit $failed
