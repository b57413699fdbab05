#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Against what people do by hand: torch.utils.checkpoint around each block. A benchmark.

    by_hand.py --build BUILD --python INTERPRETER [--pairs N] [--steps N] [--size SIZE] [--only DEMO]

The demo with checkpoints has a peak; that is our budget for the demo as it is. Time of ours over time of theirs, median
of the pairs, with coop and with coop-plus."""
import argparse
import os
import statistics
import sys

from support import DEMOS as FOLDER, HERE, Report, World, mib, run

DEMOS = ("transformer", "unet", "resnet")
assert os.path.isdir(FOLDER)


def seconds(result, kind):
    if result.code:
        return None if "memory" in result.err else sys.exit("%s failed: %s" % (kind, result.err[-500:]))
    return statistics.median(result.step_seconds()[1:])


def one(world, report, demo, options):
    def command(kind, steps):
        return [world.python, os.path.join(HERE, "checkpointed.py"), kind, demo, "--size", options.size, "--steps", str(steps),
                "--report"]
    peaks = {}
    for kind in ("plain", "checkpoint"):
        trace = world.path("%s-%s.coop" % (demo, kind))
        run(world.coop_run(command(kind, 3), trace, "--evictor", "none"))
        peaks[kind] = world.info(trace)["peak"]
    runs = {"checkpoint": lambda: run(command("checkpoint", options.steps)),
            "plain": lambda: run(command("plain", options.steps))}
    for evictor in ("coop", "coop-plus"):
        runs[evictor] = lambda e=evictor: run(world.coop_run(command("plain", options.steps), world.path("%s-%s.coop" % (demo, e)),
                                                              "--budget", peaks["checkpoint"], "--evictor", e))
    ratios = {kind: [] for kind in runs}
    for pair in range(options.pairs):
        order = list(runs) if pair % 2 == 0 else list(reversed(list(runs)))
        times = {kind: seconds(runs[kind](), kind) for kind in order}
        for kind, value in times.items():
            ratios[kind].append(value / times["checkpoint"] if value else float("nan"))
        print("# %s pair %d: %s" % (demo, pair + 1, ", ".join("%s %.4f" % (k, v[-1]) for k, v in ratios.items())), flush=True)
    medians = {kind: statistics.median(values) for kind, values in ratios.items()}
    for evictor in ("coop", "coop-plus"):
        print("bench by_hand_%s_%s %.3f ratio ratio %.3f vs checkpoint" % (demo, evictor, medians[evictor], medians[evictor]))
        report.check("%s: %s finishes in the peak of checkpoints by hand" % (demo, evictor), medians[evictor] == medians[evictor],
                     "%.3f" % medians[evictor])
    report.row(demo=demo, peak=mib(peaks["plain"]), by_hand=mib(peaks["checkpoint"]), no_limit="%.3f" % medians["plain"],
               coop="%.3f" % medians["coop"], coop_plus="%.3f" % medians["coop-plus"])


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--build", required=True)
    parser.add_argument("--python", required=True, help="interpreter that has torch")
    parser.add_argument("--pairs", type=int, default=3)
    parser.add_argument("--steps", type=int, default=6)
    parser.add_argument("--size", default="normal")
    parser.add_argument("--only", choices=DEMOS)
    options = parser.parse_args()
    world = World(options.build, options.python)
    report = Report("%s, torch %s" % (world.python, world.torch_version()))
    for demo in DEMOS:
        if options.only in (None, demo):
            one(world, report, demo, options)
    return report.end()


if __name__ == "__main__":
    sys.exit(main())
