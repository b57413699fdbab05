#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`coop sweep` beside DTR's own simulator, on the same logs under the same policies. A benchmark: prints
times and their ratios; fails below the promised one only with --check.

    simulator.py --coop BUILD/src/cli/coop --simrd FOLDER [--policies A,B] [--ratios A,B] [--check] LOG...

FOLDER is `simrd` of https://github.com/uwsampl/dtr-prototype, LOG one from its logs.zip. Both have read
the log already when their clocks start, both use one thread, both give up at twice the time without
limit. The simulator runs its fastest runtime (eager eviction, incremental neighbourhoods), with the budget
a part of its own peak; ours a pool that counts bytes only, and nothing that the published methods lack.

Results are near, not equal. The simulator models an in-place write as a copy, so it needs more memory;
gives a view a time of its own, and asks for it again when its storage was evicted; and brings back at the
end whatever is still referenced. A row in which one of the two gives up compares different work; so do
rows with much of a difference in overhead.
"""
import argparse
import math
import os
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import time

POLICIES = {"dtr-eq": "DTREqClass", "dtr": "DTR", "dtr-local": "DTRLocal", "lru": "LRU", "msps": "MSPS"}
PUBLISHED = ["page=512", "page_cost=0", "compact=false", "descent=false", "small=0"]
GIVE_UP = 2.0
PROMISED = 100


class Simulator:
    def __init__(self, folder):
        sys.path.insert(0, folder)
        import simrd.heuristic
        import simrd.parse
        import simrd.runtime
        self.heuristic, self.parse, self.runtime = simrd.heuristic, simrd.parse, simrd.runtime

    def read(self, log):
        with open(log) as lines:
            graph = self.parse.parse_file(lines, start=True)
        self.program = graph.get_closure()
        free = self.runtime.RuntimeV1(math.inf, self.heuristic.Heuristic(), stats=False, trace=False)
        self.program(free)
        self.peak, self.plain = free.telemetry.summary["max_memory"], free.telemetry.summary["model_compute"]

    def play(self, policy, ratio):
        """(seconds, overhead or the reason why there is none)"""
        runtime = self.runtime.RuntimeV2EagerOptimized(
            int(self.peak * ratio), self.heuristic.HEURISTICS[POLICIES[policy]](), stats=False, trace=False,
            remat_limit=self.plain * (GIVE_UP - 1))
        start = time.process_time()
        try:
            self.program(runtime)
            result = runtime.clock / self.plain
        except MemoryError:
            result = "memory"
        except self.runtime.RematExceededError:
            result = "time"
        return time.process_time() - start, result


def played(coop, log, policies, ratios, folder):
    """{(policy, ratio): (seconds, overhead or reason)}"""
    out = os.path.join(folder, "ours.coopsweep")
    if os.path.exists(out):
        os.unlink(out)
    command = [coop, "sweep", log, "--evictors", ",".join(policies), "--allocators", "page", "--jobs", "1", "--quiet",
               "--ratios", ",".join("%g" % r for r in ratios), "--most", "%g" % GIVE_UP, "--output", out]
    for value in PUBLISHED:
        command += ["--set", value]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        sys.exit(done.stderr)
    words = {"ok": None, "oom": "memory", "most": "time"}
    with sqlite3.connect(out) as db:
        rows = db.execute("SELECT evictor, ratio_ppm, wall_ns, overhead, result FROM run").fetchall()
    return {(evictor, ratio / 1e6): (ns / 1e9, words.get(result, result) or overhead)
            for evictor, ratio, ns, overhead, result in rows}


def shown(result):
    return result if isinstance(result, str) else "%.3f" % result


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--coop", required=True)
    parser.add_argument("--simrd", required=True)
    parser.add_argument("--policies", default="dtr-eq,dtr,lru")
    parser.add_argument("--ratios", default="0.7,0.5,0.3")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--check", action="store_true")
    parser.add_argument("logs", nargs="+", metavar="LOG")
    args = parser.parse_args()
    policies, ratios = args.policies.split(","), [float(r) for r in args.ratios.split(",")]
    unknown = [p for p in policies if p not in POLICIES]
    if unknown:
        parser.error("the simulator has no %s; it has %s" % (unknown[0], ", ".join(POLICIES)))
    simulator, factors = Simulator(args.simrd), []
    sys.setrecursionlimit(100000)
    print("%-14s %-9s %5s %10s %10s %8s  %-8s %-8s" % ("log", "policy", "ratio", "sim s", "ours s", "factor", "sim", "ours"))
    with tempfile.TemporaryDirectory() as folder:
        for log in args.logs:
            simulator.read(log)
            rounds = [played(args.coop, log, policies, ratios, folder) for _ in range(args.rounds)]
            for policy in policies:
                for ratio in ratios:
                    seconds, theirs = simulator.play(policy, ratio)
                    own = statistics.median(r[policy, ratio][0] for r in rounds)
                    result = rounds[0][policy, ratio][1]
                    factors.append(seconds / own)
                    print("%-14s %-9s %5g %10.4f %10.6f %8.0f  %-8s %-8s" % (
                        os.path.basename(log).split("-")[0][:14], policy, ratio, seconds, own, seconds / own,
                        shown(theirs), shown(result)), flush=True)
    print("factor: median %.0f, least %.0f, most %.0f, over %d rows" % (
        statistics.median(factors), min(factors), max(factors), len(factors)))
    return 1 if args.check and min(factors) < PROMISED else 0


if __name__ == "__main__":
    sys.exit(main())
