#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The adapter's tests on real PyTorch. Prints TAP.

    run.py [--python INTERPRETER] --package FOLDER [--filter WORD] [--profile P] [--shard I/N] [-v]

FOLDER holds the built package `coopscope`. Each case is one TAP line a profile, see harness.py.
"""
import argparse
import importlib
import os
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
MODULES = ("rules_replay", "rules_state", "rules_memory", "rules_flags", "rules_limits", "programs",
           "programs_nets", "programs_api", "processes", "random_programs", "rules_faults",
           "programs_edges")


def arguments():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--python", help="interpreter that has torch")
    parser.add_argument("--package", required=True, help="folder that holds the package coopscope")
    parser.add_argument("--filter", default="", help="only cases whose module or name has this word")
    parser.add_argument("--profile", help="only this profile (and those it needs)")
    parser.add_argument("--shard", default="0/1", help="I/N: every N-th case, from the I-th")
    parser.add_argument("-v", "--verbose", action="store_true", help="print totals of each run")
    return parser.parse_args()


def main():
    args = arguments()
    # A path of a link in a virtual environment names that environment: do not resolve it.
    if args.python and os.path.abspath(args.python) != os.path.abspath(sys.executable):
        os.execv(args.python, [args.python, os.path.abspath(__file__)] + sys.argv[1:])
    sys.path.insert(0, args.package)
    sys.path.insert(0, HERE)
    os.environ.setdefault("COOP_DEMOS", os.path.join(HERE, "..", "..", "data", "demos"))
    import torch
    if hasattr(torch, "compile"):
        import torch._dynamo  # noqa: F401  what every optimizer imports at its first step
    torch.set_num_threads(1)
    import harness
    for module in MODULES:
        importlib.import_module(module)

    index, count = (int(part) for part in args.shard.split("/"))
    cases = [c for c in harness.CASES
             if args.filter in c.function.__module__ + "." + c.name and (not c.needs or c.needs(torch))]
    cases = cases[index::count]
    print("TAP version 13")
    print("# torch %s, Python %s" % (torch.__version__, sys.version.split()[0]))
    number = failed = 0
    for c in cases:
        if args.profile:
            able = c.profiles + ("moving",) * ("stress" in c.profiles and "moving" not in c.profiles)
            c.profiles = tuple(p for p in able if p in ("plain", "none", args.profile))
        start = time.monotonic()
        for profile, faults, result in harness.run_case(torch, c):
            number += 1
            failed += bool(faults)
            print("%s %d - rule %d: %s (%s)" % ("not ok" if faults else "ok", number, c.rule, c.name, profile))
            for fault in faults[:8]:
                print("\n".join("# " + line for line in fault.rstrip().split("\n")))
            if len(faults) > 8:
                print("# ... and %d more differences" % (len(faults) - 8))
            if faults and result.get("stderr"):
                print("\n".join("# stderr: " + line for line in result["stderr"].rstrip().split("\n")[-15:]))
            if args.verbose:
                print("# %.1f s %s %s" % (time.monotonic() - start, result.get("stats", ""), result.get("notes", "")))
            sys.stdout.flush()
            start = time.monotonic()
    print("1..%d" % number)
    return 1 if failed or not number else 0


if __name__ == "__main__":
    sys.exit(main())
