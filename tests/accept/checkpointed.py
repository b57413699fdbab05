# SPDX-License-Identifier: Apache-2.0
"""A demo as it is, or with torch.utils.checkpoint around each block as people do by hand:

    checkpointed.py plain|checkpoint DEMO [OPTION OF THE DEMO...]

Times are the thread's own, which other programs on the machine do not lengthen."""
import functools
import importlib
import os
import sys
import time
import types

import torch
from torch.utils.checkpoint import checkpoint

DEMOS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "data", "demos")
IS_BLOCK = {"resnet": lambda m: type(m).__name__ == "Block", "transformer": lambda m: type(m).__name__ == "Layer",
            "unet": lambda m: isinstance(m, torch.nn.Sequential) and len(m) == 6}


def main():
    kind, demo = sys.argv[1:3]
    sys.path.insert(0, DEMOS)
    sys.argv = [demo] + sys.argv[3:]
    loop, module = importlib.import_module("loop"), importlib.import_module(demo)
    loop.time = types.SimpleNamespace(perf_counter=time.thread_time)
    train = loop.train

    def train_wrapped(args, model, *rest):
        for block in [m for m in model.modules() if kind == "checkpoint" and IS_BLOCK[demo](m)]:
            block.forward = functools.partial(checkpoint, block.forward, use_reentrant=False)
        train(args, model, *rest)
    loop.train = train_wrapped
    module.main()


main()
