# SPDX-License-Identifier: Apache-2.0
"""ns for one small operator: small_operator.py plain|python-mode. Run under Coopscope as `plain`.

Bursts of operators with pauses between them, so that it is the handler that is measured and not how
fast a trace can be written; the median of the bursts is printed.
"""
import statistics
import sys
import time

import torch
from torch.utils._python_dispatch import TorchDispatchMode

BURST, BURSTS, PAUSE = 20000, 11, 0.25


class Empty(TorchDispatchMode):
    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        return func(*args, **(kwargs or {}))


def burst(x):
    add = torch.add
    start = time.perf_counter_ns()
    for _ in range(BURST):
        add(x, x)
    return (time.perf_counter_ns() - start) / BURST


def measure():
    x = torch.ones(8)
    burst(x)
    times = []
    for _ in range(BURSTS):
        time.sleep(PAUSE)
        times.append(burst(x))
    return statistics.median(times)


torch.set_num_threads(1)
if sys.argv[1] == "python-mode":
    with Empty():
        print("ns %.1f" % measure())
else:
    print("ns %.1f" % measure())
