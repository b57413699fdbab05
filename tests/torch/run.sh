#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The zoo: real architectures plain and under Coopscope, bit by bit; prints the tables of README.md.
#
#   sh tests/torch/run.sh BUILD [PYTHON...] [-- OPTION OF zoo.py...]
#
# BUILD: a build folder of meson. PYTHON: an interpreter with torch; where it lacks torchvision, transformers
# or timm they are installed into a virtual environment of its own in BUILD/zoo (which may download).
set -eu
here=$(dirname "$0")
build=${1:?usage: run.sh BUILD [PYTHON...] [-- OPTION...]}
shift
pythons=
while [ $# -gt 0 ] && [ "$1" != -- ]; do pythons="$pythons $1"; shift; done
[ $# -eq 0 ] || shift
[ -n "$pythons" ] || pythons=python3
failed=0 n=0 tables=
for python in $pythons; do
  n=$((n + 1))
  zoo=$build/zoo/$n
  mkdir -p "$zoo"
  if ! "$python" -c 'import torchvision, transformers, timm' 2>/dev/null; then
    # The interpreter's own torch stays what it is: found by a .pth, so that a venv of a venv has it, too.
    [ -x "$zoo/env/bin/python" ] || "$python" -m venv --system-site-packages "$zoo/env"
    site=$("$zoo/env/bin/python" -c 'import sysconfig; print(sysconfig.get_path("purelib"))')
    "$python" -c 'import os, torch; print(os.path.dirname(os.path.dirname(torch.__file__)))' > "$site/coopscope-zoo.pth"
    set_of=$("$python" -c 'import torch; print("old" if str(torch.__version__).startswith("1.13") else "new")')
    if [ "$set_of" = old ]; then   # the last ones that know 1.13; torchvision without its C++ operators
      "$zoo/env/bin/pip" install -q --no-deps torchvision==0.15.1 timm==0.9.16 transformers==4.38.2 'tokenizers<0.19' \
        'huggingface_hub<1.0' safetensors regex Pillow tqdm requests filelock packaging urllib3 idna certifi \
        charset-normalizer fsspec pyyaml typing_extensions
    else
      "$zoo/env/bin/pip" install -q --no-deps torchvision timm
      "$zoo/env/bin/pip" install -q transformers Pillow
    fi
    python=$zoo/env/bin/python
  fi
  "$python" "$here/zoo.py" --package "$build/src/torch/python" --coop "$build/src/cli/coop" \
    --counter "$build/tests/support/libcount-alloc.so" --json "$zoo/rows.jsonl.new" "$@" || failed=1
  mv "$zoo/rows.jsonl.new" "$zoo/rows.jsonl"
  tables="$tables $zoo/rows.jsonl"
done
python3 "$here/zoo_table.py" $tables
exit $failed
