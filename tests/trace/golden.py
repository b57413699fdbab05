#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What every view and every named query says of golden-trace's run, against rows worked out by hand.

Usage: golden.py FIXTURE COOP GOLDEN_TRACE. Prints TAP, one line a view or query.
"""
import os
import re
import sqlite3
import subprocess
import sys
import tempfile

FIXTURE, COOP, GOLDEN = (os.path.abspath(p) for p in sys.argv[1:4])


def ask(*args):
    result = subprocess.run([COOP, "query", *args], capture_output=True, text=True, timeout=60)
    return result.stdout if result.returncode == 0 and result.stderr == "" else f"exit {result.returncode}: {result.stderr}"


def wanted():
    """Sections "== NAME", lines of CSV; "#" begins a comment."""
    with open(FIXTURE) as file:
        text = re.sub(r"^#.*\n", "", file.read(), flags=re.M)
    return dict(re.findall(r"^== (\S+)\n((?:(?!== ).*\n)*)", text, re.M))


def main():
    want = wanted()
    with tempfile.TemporaryDirectory() as tmp:
        trace = os.path.join(tmp, "golden.coop")
        subprocess.run([GOLDEN, trace], check=True)
        sound = subprocess.run([COOP, "check", trace], capture_output=True, text=True)
        with sqlite3.connect(trace) as db:
            views = [name for (name,) in db.execute("SELECT name FROM sqlite_schema WHERE type = 'view'")]
        queries = re.findall(r"^  (@\S+)", ask("--list"), re.M)
        names = views + queries
        print(f"1..{len(names) + 2}")
        print(f"{'ok' if sound.returncode == 0 else 'not ok'} 1 the run is sound {sound.stdout.strip()}")
        same = sorted(want) == sorted(names)
        print(f"{'ok' if same else 'not ok'} 2 each view and query is there" + ("" if same else f" # {set(want) ^ set(names)}"))
        failed = sound.returncode != 0 or not same
        for i, name in enumerate(names, 3):
            sql = name if name[0] == "@" else f"SELECT * FROM {name}"
            got = ask(trace, sql, "--csv")
            ok = got == want.get(name)
            failed |= not ok
            print(f"{'ok' if ok else 'not ok'} {i} {name}")
            if not ok:
                print("".join(f"# got  {line}\n" for line in got.splitlines())
                      + "".join(f"# want {line}\n" for line in want.get(name, "nothing").splitlines()), end="")
    return failed


sys.exit(main())
