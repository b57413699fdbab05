# SPDX-License-Identifier: Apache-2.0
"""ns for one small operator: small_operator.py plain|python-mode. Run under Coopscope as `plain`.

Bursts of operators with pauses between them, so that it is the handler that is measured and not how
fast a trace can be written. Prints the medians of the bursts: of the thread's own time, which other
programs on the machine do not lengthen, and of the wall clock.
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
    wall, own = time.perf_counter_ns(), time.thread_time_ns()
    for _ in range(BURST):
        add(x, x)
    return (time.thread_time_ns() - own) / BURST, (time.perf_counter_ns() - wall) / BURST


def measure():
    x = torch.ones(8)
    burst(x)
    times = []
    for _ in range(BURSTS):
        time.sleep(PAUSE)
        times.append(burst(x))
    print("ns %.1f wall %.1f" % tuple(statistics.median(column) for column in zip(*times)))


torch.set_num_threads(1)
if sys.argv[1] == "python-mode":
    with Empty():
        measure()
else:
    measure()
