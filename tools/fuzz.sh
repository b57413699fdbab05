#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# fuzz.sh [core|api|pickle] [SECONDS]: libFuzzer with AddressSanitizer and UBSan, 600 seconds.
# core drives the engine's program interface through the toy host of the tests, api drives libcoop, pickle
# the reader of memory snapshots, from the snapshots of the tests on. What was found interesting stays in build/fuzz/TARGET for the next time. A finding is left there as
# crash-*, and the exit status is not 0; `build/fuzz/fuzz-TARGET FILE` runs it again.
set -eu

top=$(cd "$(dirname "$0")/.." && pwd)
target=${1:-core}
seconds=${2:-600}
out=$top/build/fuzz
clang=${CLANG:-clang}
case $target in
  core) sources="$top/tests/support/ref-*.c" libraries=$(pkg-config --libs glib-2.0) ;;
  api) sources="$top/src/wire/*.c $top/src/api/*.c" libraries= ;;
  pickle)
    sources="$top/src/trace/pickle*.c $top/src/trace/id-map.c"
    for part in read fields stacks lives space; do sources="$sources $top/src/trace/snapshot-$part.c"; done
    libraries=$(pkg-config --libs glib-2.0)
    mkdir -p "$out/pickle"
    for name in $(python3 "$top/tests/trace/snapshots.py" --list); do
      python3 "$top/tests/trace/snapshots.py" "$name" "$out/pickle/$name"
    done ;;
  *) echo "usage: fuzz.sh [core|api|pickle] [SECONDS]" >&2; exit 2 ;;
esac
command -v "$clang" >/dev/null || { echo "fuzz.sh: $clang is not installed" >&2; exit 2; }

mkdir -p "$out/$target"
printf '#define COOP_VERSION "fuzz"\n' >"$out/config.h"
objects=
for source in "$top"/src/core/*.c $sources "$top/tests/fuzz/fuzz-$target.c"; do
  object=$out/$target-$(printf '%s\n' "${source#"$top"/}" | tr / -).o
  # shellcheck disable=SC2046
  "$clang" -std=gnu17 -D_GNU_SOURCE -DCOOP_LIBFUZZER -g -O1 -fno-strict-aliasing -w \
    -fsanitize=fuzzer-no-link,address,undefined -fno-sanitize-recover=undefined \
    -I "$top/src" -I "$top/src/api" -I "$top/tests" -I "$out" $(pkg-config --cflags glib-2.0) \
    -c "$source" -o "$object"
  objects="$objects $object"
done
# shellcheck disable=SC2086
"$clang" -fsanitize=fuzzer,address,undefined $objects $libraries -lm -pthread -o "$out/fuzz-$target"
exec "$out/fuzz-$target" -max_total_time="$seconds" -max_len=4096 -len_control=20 -timeout=60 \
  -artifact_prefix="$out/" -print_final_stats=1 "$out/$target"
