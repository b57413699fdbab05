#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# lint.sh [FILE...]: clang-tidy (.clang-tidy) and cppcheck on src/core and src/api, or on the files
# given. Prints what they find; the exit status is not 0 if that is anything.
set -eu

cd "$(dirname "$0")/.."
for tool in clang-tidy cppcheck; do
  command -v $tool >/dev/null || { echo "lint.sh: $tool is not installed (apt-get install $tool)" >&2; exit 2; }
done
[ $# -gt 0 ] || set -- src/core/*.c src/api/*.c
status=0
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
printf '#define COOP_VERSION "lint"\n' >"$folder/config.h"

# One process a core: a file takes seconds.
printf '%s\n' "$@" | xargs -P "$(nproc)" -n 4 sh -c 'clang-tidy --quiet "$@" -- -std=gnu17 -D_GNU_SOURCE \
  -I src -I src/api -I '"$folder"' 2>/dev/null' lint || status=1

cppcheck --quiet --std=c11 --enable=warning,performance,portability --inline-suppr --error-exitcode=1 \
  --suppress=missingIncludeSystem --suppress=normalCheckLevelMaxBranches -D_GNU_SOURCE -I src -I src/api \
  -I "$folder" -j "$(nproc)" "$@" || status=1
[ $status != 0 ] || echo "lint: nothing found in $# files"
exit $status
