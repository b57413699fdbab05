#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# make.sh BUILD [PYTHON] [NAME...]: records data/programs again, each a training step on the meta device with
# an A100's costs. BUILD is the build folder; PYTHON has PyTorch, torchvision and transformers (the files in the
# repository: 2.15.0, 0.29.2, 5.24.0). Other versions may choose other operators.
set -eu
build=$1 python=${2:-python3}
shift; [ $# -eq 0 ] || shift
here=$(cd "$(dirname "$0")" && pwd)
to=$here/../../data/programs
: "${COOP_PROGRAMS:=$to}"
export PYTHONPATH="$build/src/torch/python"
for model in vision:resnet50 vision:resnet152 vision:densenet121 vision:inception_v3 vision:swin_t \
             unet:unet bilstm:bilstm spos:spos text:bert_large text:gpt2 text:gpt3; do
  file=${model%%:*} name=${model##*:}
  [ $# -eq 0 ] || case " $* " in *" $name "*) ;; *) continue ;; esac
  "$python" -m coopscope.record --device meta --machine a100 -o "$COOP_PROGRAMS/$name.jsonl.gz" "$here/$file.py:$name"
done
