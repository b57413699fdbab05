#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes the tables of README.md from what zoo.py wrote: zoo_table.py [--into README] FILE... A later row of a model adds
to an earlier one. --into: puts them between README's marks."""
import json
import sys

BEGIN, END = "<!-- zoo -->\n", "<!-- end of zoo -->\n"

HEAD = ("model", "peak", "state", "budget", "used", "evictable", "evictions", "recomputed", "extra", "coop-plus: evictions",
        "recomputed", "extra", "stress 1: evictions", "recomputed", "moving: moves", "identical")


def mib(n):
    return "%.1f" % (n / (1 << 20)) if n else ""


def percent(share):
    return "%.0f %%" % (100 * share) if share is not None else ""


def work(run):
    return run.get("evictions", ""), run.get("replays", "")


def cells(row):
    budget, plus, stress, moving = (row.get(k, {}) for k in ("budget", "plus", "stress", "moving"))
    runs = [r for r in (budget, plus, stress, moving) if r]
    if not runs:
        same = "not run: " + row.get("note", "")[:80]
    else:
        same = "yes" if all(r["same"] for r in runs) else "NO: " + row.get("note", "")
    return (row["model"], mib(row.get("peak")), mib(row.get("state_bytes")), mib(row.get("limit")), mib(budget.get("peak")),
            percent(row.get("evictable")), *work(budget), percent(budget.get("extra")), *work(plus), percent(plus.get("extra")),
            *work(stress), moving.get("moves", ""), same)


def tables(files):
    rows, text, last = {}, [], None
    for name in files:
        with open(name) as lines:
            for line in lines:
                row = json.loads(line)
                key = (row["torch"], row["package"] + " " + row["version"], row["model"])
                rows.setdefault(key, {}).update(row)
    for key, row in rows.items():
        if key[0] != last:
            last = key[0]
            text += ["", "### PyTorch %s" % last, "", "| package | " + " | ".join(HEAD) + " |",
                     "|" + "---|" * (len(HEAD) + 1)]
        text.append("| %s | " % key[1] + " | ".join(str(c) for c in cells(row)) + " |")
    return "\n".join(text) + "\n"


def main():
    files = sys.argv[1:]
    if files[:1] != ["--into"]:
        print(tables(files), end="")
        return
    with open(files[1]) as readme:
        before, rest = readme.read().split(BEGIN)
    with open(files[1], "w") as readme:
        readme.write(before + BEGIN + tables(files[2:]) + END + rest.split(END)[1])


if __name__ == "__main__":
    main()
