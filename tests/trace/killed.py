#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The recorder is killed at random moments: what is in the file is whole, and repaired.

Usage: killed.py COOP GEN_TRACE [KILLS]. Prints TAP, one line a kill.
"""
import contextlib
import os
import random
import sqlite3
import struct
import subprocess
import sys
import tempfile
import time

COOP, GEN = (os.path.abspath(p) for p in sys.argv[1:3])
KILLS = int(sys.argv[3]) if len(sys.argv) > 3 else 8
SEED, EVENTS, BATCH = 11, 400000, 4096


def count_of(path):
    try:
        with open(path, "rb") as f:
            return struct.unpack("Q", f.read(8))[0]
    except (OSError, struct.error):
        return 0


def rows(path, sql):
    with contextlib.closing(sqlite3.connect(path)) as db:
        return db.execute(sql).fetchall()


def look(trace, whole, told):
    assert rows(trace, "PRAGMA integrity_check") == [("ok",)]
    # numbers without a hole, not more than were told, and at most one batch less
    low, high, n = rows(trace, "SELECT min (seq), max (seq), count (*) FROM event")[0]
    n = n or 0
    assert n == 0 or (low, high) == (0, n - 1), (low, high, n)
    assert n <= told + 1 and n > told - BATCH - 1, (n, told)
    # each as it is in a run that nobody killed
    sql = f"SELECT * FROM event WHERE seq < {n} AND seq >= {n - 3000}"
    assert rows(trace, sql) == rows(whole, sql)
    assert rows(trace, "SELECT value FROM stat WHERE name = 'events'") == [(n,)]
    return n


def kill_once(tmp, rng, whole):
    trace, counter = os.path.join(tmp, "killed.coop"), os.path.join(tmp, "counter")
    process = subprocess.Popen([GEN, trace, str(SEED), str(EVENTS), counter])
    at = rng.randrange(0, 60000)
    while count_of(counter) < at and process.poll() is None:
        time.sleep(0.0005)
    time.sleep(rng.random() * 0.02)
    process.kill()
    process.wait()
    told = count_of(counter)
    if told == 0:
        return "before the first event"
    look_first = rng.random() < 0.5   # else the log is still to be folded in
    if look_first:
        n = look(trace, whole, told)
    result = subprocess.run([COOP, "check", "--repair", trace], capture_output=True, text=True)
    assert result.returncode == 0 and "was interrupted" in result.stdout and "nothing wrong" in result.stdout, result
    assert sorted(os.listdir(tmp)) == ["counter", "killed.coop"], os.listdir(tmp)
    if not look_first:
        n = look(trace, whole, told)
    assert rows(trace, "SELECT state FROM session") == [(3,)]
    assert rows(trace, "SELECT coalesce (sum (bytes), 0) FROM block WHERE died_event IS NULL") == \
        rows(trace, "SELECT coalesce (max (value), 0) FROM stat WHERE name = 'used'")
    return f"after {told} events, {n} kept"


def main():
    rng, failed = random.Random(7), 0
    print(f"1..{KILLS}")
    with tempfile.TemporaryDirectory() as where:
        whole = os.path.join(where, "whole.coop")
        subprocess.run([GEN, whole, str(SEED), "200000", os.path.join(where, "n")], check=True)
        for i in range(1, KILLS + 1):
            with tempfile.TemporaryDirectory() as tmp:
                try:
                    print(f"ok {i} {kill_once(tmp, rng, whole)}", flush=True)
                except AssertionError as error:
                    failed += 1
                    print(f"not ok {i} {error!r}", flush=True)
    return failed > 0


sys.exit(main())
