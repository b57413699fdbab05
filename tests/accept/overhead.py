#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What Coopscope costs when it has nothing to do. A benchmark: prints ratios, fails on the promised ones
only with --check.

    overhead.py --build BUILD --python INTERPRETER [--pairs N] [--steps N] [--check]

The ResNet demo with no limit, plain and under `coop run` in turn, on one thread: each run gives the
median of its steps (the first left out), each pair a ratio, and the median of the ratios counts. One
small operator is compared with the same under an empty TorchDispatchMode written in Python.
"""
import argparse
import os
import statistics
import sys

from support import HERE, Report, World, run


def spread(values):
    return "median %.4f, %.4f to %.4f" % (statistics.median(values), min(values), max(values))


def demo_pairs(world, pairs, steps, size):
    command = world.demo("resnet", "--size", size, "--steps", steps, "--report")
    plain_times, coop_times, ratios = [], [], []
    for pair in range(pairs):
        kinds = ["plain", "coop"] if pair % 2 == 0 else ["coop", "plain"]
        medians = {}
        for kind in kinds:
            result = run(command if kind == "plain" else world.coop_run(command, world.path("free.coop")))
            if result.code:
                raise SystemExit("%s run failed: %s" % (kind, result.err[-500:]))
            medians[kind] = statistics.median(result.step_seconds()[1:])
        plain_times.append(medians["plain"])
        coop_times.append(medians["coop"])
        ratios.append(medians["coop"] / medians["plain"])
        print("# pair %d: plain %.4f s, coop %.4f s, ratio %.4f" % (pair + 1, medians["plain"], medians["coop"],
                                                                     ratios[-1]), flush=True)
    return plain_times, coop_times, ratios


def small_operator(world, rounds):
    script = os.path.join(HERE, "small_operator.py")
    times = {"plain": [], "python-mode": [], "coop": []}
    for _ in range(rounds):
        for kind in times:
            command = [world.python, script, "python-mode" if kind == "python-mode" else "plain"]
            if kind == "coop":
                command = world.coop_run(command, world.path("small.coop"))
            result = run(command)
            if result.code:
                raise SystemExit("%s run failed: %s" % (kind, result.err[-500:]))
            times[kind].append(float(next(line for line in result.lines if line.startswith("ns ")).split()[1]))
    return {kind: statistics.median(values) for kind, values in times.items()}


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--build", required=True)
    parser.add_argument("--python", required=True, help="interpreter that has torch")
    parser.add_argument("--pairs", type=int, default=7)
    parser.add_argument("--steps", type=int, default=6)
    parser.add_argument("--size", default="normal")
    parser.add_argument("--rounds", type=int, default=3, help="of the small operator")
    parser.add_argument("--check", action="store_true", help="fail where a promise is broken")
    options = parser.parse_args()
    world = World(options.build, options.python)
    report = Report("%s, torch %s" % (world.python, world.torch_version()))

    plain, coop, ratios = demo_pairs(world, options.pairs, options.steps, options.size)
    ratio = statistics.median(coop) / statistics.median(plain)
    print("bench resnet_no_limit %.4f s ratio %.4f vs plain" % (statistics.median(coop), ratio))
    print("# ratio of pairs: %s" % spread(ratios))
    times = small_operator(world, options.rounds)
    small = times["coop"] / times["python-mode"]
    print("bench small_operator %.0f ns ratio %.3f vs empty_python_mode" % (times["coop"], small))
    print("bench small_operator_plain %.0f ns ratio %.3f vs empty_python_mode"
          % (times["plain"], times["plain"] / times["python-mode"]))
    report.row(what="ResNet step, no limit", ours="%.4f s" % statistics.median(coop),
               peer="%.4f s plain" % statistics.median(plain), ratio="%.3f" % ratio, promise="1.05")
    report.row(what="one small operator", ours="%.0f ns" % times["coop"],
               peer="%.0f ns empty Python mode" % times["python-mode"], ratio="%.3f" % small, promise="1.5")
    report.check("ResNet with no limit costs at most 5 %", ratio <= 1.05 or not options.check, "%.4f" % ratio)
    report.check("a small operator costs at most 1.5 empty Python modes", small <= 1.5 or not options.check, "%.3f" % small)
    return report.end()


if __name__ == "__main__":
    sys.exit(main())
