#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A program of libcoop under `coop run`: recorded, its policy set from outside, its trace sound.

Usage: tool.py COOP EXAMPLE. Prints TAP.
"""
import json
import os
import subprocess
import sys
import tempfile

COOP, EXAMPLE = (os.path.abspath(p) for p in sys.argv[1:3])


def sh(*argv):
    done = subprocess.run(argv, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, "%s: %d\n%s%s" % (argv, done.returncode, done.stdout, done.stderr)
    return done.stdout


def record(folder, *argv):
    trace = os.path.join(folder, "%d.coop" % len(os.listdir(folder)))
    out = sh(COOP, "run", "-o", trace, *argv)
    return trace, out


def evicted(out):
    return int(out.split("evicted ")[1].split(",")[0])


def own_budget(folder):
    """The program's own budget holds where the tool names none, and its trace is sound."""
    trace, out = record(folder, "--", EXAMPLE, "3MiB")
    assert "budget  3145728" in out and evicted(out) > 0, out
    info = json.loads(sh(COOP, "info", "--json", trace))
    assert info["budget"] == 3 << 20, info
    assert info["evictions"] == evicted(out), info
    assert info["steps"] == 8 and info["exit_code"] == 0, info
    assert "nothing wrong" in sh(COOP, "check", trace)
    names = sh(COOP, "query", trace, "SELECT count(*) FROM v_operator WHERE name = 'relu' AND replay_of IS NULL")
    assert "32" in names, names


def budget_of_the_tool(folder):
    """What a person asked of the tool goes before what the program says of itself."""
    _, out = record(folder, "--budget", "2.5MiB", "--set", "evictor=lru", "--", EXAMPLE, "4MiB")
    assert "budget  2621440" in out, out


def is_a_program(folder):
    """The trace is a program: it can be decided again, operator by operator."""
    trace, _ = record(folder, "--", EXAMPLE, "3MiB")
    info = json.loads(sh(COOP, "info", "--json", trace))
    again = json.loads(sh(COOP, "replay", "--json", trace))
    assert again["result"] == "ok" and again["as_recorded"], again
    assert again["operators"] == info["operators"] and again["evictions"] > 0, (info, again)
    assert again["peak_without_limit"] > 4 << 20, again


def without_tool(folder):
    """Where the tool is gone, or the descriptor is something else, the program just runs."""
    for wrong in ({"COOPSCOPE_FD": "1"}, {"COOPSCOPE_FD": "x", "COOPSCOPE_WIRE": "/proc/1/fd/9999"},
                  {"COOPSCOPE_WIRE": "/dev/null"}):
        done = subprocess.run([EXAMPLE, "3MiB"], env={**os.environ, **wrong}, capture_output=True,
                              text=True, timeout=60)
        assert done.returncode == 0 and "3145728" in done.stdout, done
    bad = subprocess.run([EXAMPLE, "lots"], capture_output=True, text=True, timeout=60)
    assert bad.returncode == 1 and '"lots" is no value of budget' in bad.stderr, bad


def main():
    tests = [own_budget, budget_of_the_tool, is_a_program, without_tool]
    print("1..%d" % len(tests))
    failed = 0
    for number, test in enumerate(tests, 1):
        with tempfile.TemporaryDirectory() as folder:
            try:
                test(folder)
                print("ok %d - %s" % (number, test.__name__))
            except Exception as error:
                failed += 1
                print("not ok %d - %s" % (number, test.__name__))
                for line in str(error).splitlines():
                    print("# " + line)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
