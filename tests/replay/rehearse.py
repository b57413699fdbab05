#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""coop rehearse as its user runs it, and coop run --rehearse on real PyTorch.

Usage: rehearse.py COOP FIXTURES [PYTHON DEMOS]. Prints TAP; without PYTHON the live part is not there.
"""
import json
import os
import sqlite3
import subprocess
import sys

sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
import tap

COOP, FIXTURES = os.path.abspath(sys.argv[1]), sys.argv[2]
LIVE = sys.argv[3:5]
PROGRAM = os.path.join(FIXTURES, "oracle", "unet.jsonl.gz")


def run(*args, code=0):
    done = subprocess.run([COOP, *args], capture_output=True, text=True, timeout=300)
    assert done.returncode == code, "coop %s: exit %d\n%s" % (" ".join(args), done.returncode, done.stderr)
    return done


def test_one_budget(folder):
    """The best is no worse than what it began from; its file, played, costs what was promised."""
    path = os.path.join(folder, "policy")
    out = json.loads(run("rehearse", PROGRAM, "--ratio", "0.6", "--json", "-o", path).stdout)
    assert out["trials"] > 10 and out["steps_compared"] == 0
    assert 1 <= out["best"]["overhead"] <= out["as_is"]["overhead"], out
    assert out["best"]["change"] != ""
    sets = [line for line in open(path).read().split("\n") if line and not line.startswith("#")]
    assert sets[0].startswith("evictor="), sets
    assert "budget=%d" % out["budget"] in sets, sets
    args = [a for line in sets for a in ("--set", line)]
    again = json.loads(run("replay", PROGRAM, "--json", *args).stdout)
    plain = again["plain_ns"]
    assert again["recomputed_ns"] == out["best"]["recomputed_ns"], (again, out)
    assert plain > 0


def test_all_budgets(folder):
    """Falling budgets, until none runs through; the rehearsed overhead is never above the other."""
    out = json.loads(run("rehearse", PROGRAM, "--budgets", "--json").stdout)
    rows = out["budgets"]
    assert len(rows) > 5 and rows[0]["budget"] == out["peak_without_limit"]
    for a, b in zip(rows, rows[1:]):
        assert b["budget"] < a["budget"]
    for row in rows[:-1]:
        assert row["best"]["result"] == "ok" and row["best"]["overhead"] >= 1
        assert row["as_is"]["overhead"] is None or row["best"]["overhead"] <= row["as_is"]["overhead"]
    assert rows[-1]["best"]["overhead"] is None
    text = run("rehearse", PROGRAM, "--budgets").stdout
    assert "rehearsed" in text and "stops" in text


def test_bad_input(folder):
    for args, code, word in ((("nowhere.coop", "--budget", "1MiB"), 1, "nowhere.coop"), ((PROGRAM,), 2, "--budgets"),
                             ((PROGRAM, "--ratio", "2"), 2, "--ratio"), ((PROGRAM, "--set", "evictr=dte"), 2, "evictor"),
                             ((PROGRAM, "--ratio", "0.5", "--budget", "1GiB"), 2, "twice"),
                             ((PROGRAM, "--budgets", "-o", "x"), 2, "one"),
                             ((PROGRAM, "--budget", "1MiB"), 1, "does not run through"),
                             ((PROGRAM, "--ratio", "0.6", "-o", "/nowhere/at/all"), 1, "/nowhere/at/all")):
        done = run("rehearse", *args, code=code)
        assert word in done.stderr + done.stdout, (args, done.stderr, done.stdout)
    path = os.path.join(folder, "bad")
    for text, word in (("evictor=coop\nwhat is this\n", ":2:"), ("evictor=coup\n", "coop"), ("\xff\xfe", "KEY=VALUE")):
        open(path, "w", encoding="latin-1").write(text)
        done = run("run", "--policy", path, "--", "true", code=2)
        assert word in done.stderr, (text, done.stderr)
    assert "nowhere" in run("run", "--policy", "/nowhere", "--", "true", code=2).stderr
    assert "--rehearse" in run("run", "--rehearse", "2", "--", "true", code=2).stderr


def test_live(folder):
    """Another policy is set between two steps, is told and is in the trace; no bit differs."""
    python, demos = LIVE
    for steps in ("60", "240", "960"):   # it has the processor's idle moments alone: on a busy machine they are few
        script = [python, os.path.join(demos, "resnet.py"), "--size", "small", "--steps", steps]
        trace = os.path.join(folder, "live%s.coop" % steps)
        plain = subprocess.run(script, capture_output=True, text=True, timeout=300)
        done = run("run", "-o", trace, "--budget", "17MiB", "--evictor", "lru", "--rehearse", "1", "--", *script)
        assert plain.returncode == 0 and done.stdout == plain.stdout
        if "rehearsal:" in done.stderr:
            break
    assert "rehearsal:" in done.stderr, done.stderr
    rows = sqlite3.connect(trace).execute("SELECT param FROM v_policy WHERE source = 'rehearsal'").fetchall()
    assert ("evictor",) in rows, (rows, done.stderr)
    run("check", trace)
    path = os.path.join(folder, "policy")
    run("rehearse", trace, "-o", path)
    again = run("run", "-o", os.path.join(folder, "again.coop"), "--policy", path, "--", *script)
    assert again.stdout == plain.stdout


if len(LIVE) != 2:
    del test_live
sys.exit(tap.main(globals()))
