#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Every allocator on real PyTorch, short of memory: the same bits as without, a trace in order, a replay that
evicts the same, pages that really moved.

    allocators.py --coop PROGRAM --package FOLDER --demo SCRIPT
"""
import argparse
import json
import os
import re
import subprocess
import sys
import tempfile

CASES = [("merge", "coop-plus", "16MiB", []), ("class", "coop-class", "18MiB", []),
         ("caching", "dtr-eq", "24MiB", []), ("page", "coop", "20MiB", ["--set", "page=64KiB"])]


def run(*args):
    done = subprocess.run(args, capture_output=True, text=True)
    assert done.returncode == 0, f"{' '.join(args)}: {done.stdout[-2000:]}{done.stderr[-2000:]}"
    return done.stdout


def hashes(text):
    found = re.findall(r"^(params|grads) sha256 (\w+)$", text, re.M)
    assert len(found) == 2, text
    return found


def value(coop, trace, query):
    return int(json.loads(run(coop, "query", "--json", trace, query))[0]["n"] or 0)


def case(o, demo, plain, folder, allocator, evictor, budget, more):
    trace = os.path.join(folder, allocator + ".coop")
    said = run(o.coop, "run", "-q", "--allocator", allocator, "--evictor", evictor, "--budget", budget,
               "--set", "cost=model", "--verify", *more, "-o", trace, "--", *demo)
    assert hashes(said) == plain, "other bits"
    assert "nothing wrong" in run(o.coop, "check", trace)
    evictions = value(o.coop, trace, "SELECT count(*) AS n FROM event WHERE kind = 12")
    moves = value(o.coop, trace, "SELECT count(*) AS n FROM event WHERE kind = 14")
    assert evictions > 0
    again = json.loads(run(o.coop, "replay", "--json", trace))
    assert again["evictions"] == evictions, f"{evictions} evictions, {again['evictions']} in the replay"
    if allocator == "page":
        assert value(o.coop, trace, "SELECT value AS n FROM stat WHERE name = 'pages: moves'") > 0
    if evictor == "coop-plus":
        assert moves > 0


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--coop", required=True)
    parser.add_argument("--package", required=True)
    parser.add_argument("--demo", required=True)
    o = parser.parse_args()
    o.coop = os.path.abspath(o.coop)
    os.environ["PYTHONPATH"] = os.path.abspath(o.package)
    demo = [sys.executable, o.demo, "--size", "small", "--steps", "2"]
    failed = 0
    print(f"1..{len(CASES)}", flush=True)
    with tempfile.TemporaryDirectory() as folder:
        plain = hashes(run(*demo))
        for n, (allocator, evictor, budget, more) in enumerate(CASES, 1):
            try:
                case(o, demo, plain, folder, allocator, evictor, budget, more)
                print(f"ok {n} - {allocator} {evictor}", flush=True)
            except AssertionError as error:
                failed = 1
                print(f"not ok {n} - {allocator} {evictor}\n# " + str(error).replace("\n", "\n# "), flush=True)
    return failed


sys.exit(main())
