#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""coop info, query, check and policy, from outside: what they print and what they refuse.

Usage: info.py COOP GEN_TRACE. Prints TAP.
"""
import csv
import io
import json
import os
import re
import shutil
import sqlite3
import subprocess
import sys
import tempfile

sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
import tap

COOP, GEN = (os.path.abspath(p) for p in sys.argv[1:3])


def coop(*args):
    return subprocess.run([COOP, *args], capture_output=True, text=True, timeout=60)


def done(*args):
    result = coop(*args)
    assert result.returncode == 0, (args, result.returncode, result.stderr)
    assert result.stderr == "", result.stderr
    return result.stdout


def refused(*args, code, says):
    result = coop(*args)
    assert result.returncode == code, (args, result.returncode, result.stdout, result.stderr)
    assert result.stdout == "", result.stdout
    assert len(result.stderr.splitlines()) == 1, result.stderr
    assert says in result.stderr, (says, result.stderr)


def sql(path, text):
    with sqlite3.connect(path) as db:
        return db.execute(text).fetchone()[0]


def test_info_says_what_the_tables_say(trace, tmp):
    info = json.loads(done("info", "--json", trace))
    assert info["command"] == "python3 train.py" and info["run_state"] == "ended"
    assert info["peak"] == sql(trace, "SELECT max(used) FROM event")
    assert info["evictions"] == sql(trace, "SELECT count(*) FROM event WHERE kind = 12") > 0
    assert info["evicted_bytes"] == sql(trace, "SELECT sum(bytes) FROM event WHERE kind = 12")
    assert info["recomputed"] == sql(trace, "SELECT count(*) FROM op WHERE replay_of IS NOT NULL")
    assert info["operator_ns"] == sql(trace, "SELECT sum(duration_ns) FROM op WHERE replay_of IS NULL AND NOT failed")
    assert info["steps"] == sql(trace, "SELECT count(*) FROM step")
    assert info["events"] == sql(trace, "SELECT count(*) FROM event")
    assert info["searches"] == sql(trace, "SELECT count(*) FROM eviction")
    assert 0 < info["state_bytes"] <= info["floor_bytes"] <= info["budget"] == 640 * 1024
    assert info["meta"]["command"] == info["command"]
    biggest = [piece["bytes"] for piece in info["at_peak"]]
    assert len(biggest) == 5 and biggest == sorted(biggest, reverse=True)
    text = done("info", trace)
    assert "ended with exit code 0" in text and "budget         640.0 KiB" in text


def test_info_of_a_run_with_losses(trace, tmp):
    copy = shutil.copy(trace, os.path.join(tmp, "lost.coop"))
    with sqlite3.connect(copy) as db:
        db.execute("UPDATE stat SET value = 7 WHERE name = 'lost_events'")
        db.execute("INSERT INTO meta VALUES ('trace_error', 'the disk is full')")
    assert "7 events could not be written: the disk is full" in done("info", copy)


def test_query_forms(trace, tmp):
    select = "SELECT 1 AS a, 'x,\"y' AS b, NULL AS c, 2.5 AS d UNION ALL SELECT 1000, 'z', 'w', NULL ORDER BY a"
    rows = list(csv.reader(io.StringIO(done("query", trace, select, "--csv"))))
    assert rows == [["a", "b", "c", "d"], ["1", 'x,"y', "", "2.5"], ["1000", "z", "w", ""]], rows
    assert json.loads(done("query", "--json", trace, select)) == [
        {"a": 1, "b": 'x,"y', "c": None, "d": 2.5}, {"a": 1000, "b": "z", "c": "w", "d": None}]
    odd = done("query", trace, "SELECT 'a' || char (10) || 'b' || char (27) || '[31m' || char (9) || 'é' AS t")
    assert odd == "t\n---------------\na\\nb\\x1b[31m\\té\n", odd
    table = done("query", trace, select).splitlines()
    assert table == ["   a  b     c        d", "----  ----  ----  ----", '   1  x,"y  NULL   2.5', "1000  z     w     NULL"], table
    assert json.loads(done("query", "--json", trace, "SELECT 1 WHERE 0")) == []
    many = done("query", trace, "SELECT seq FROM event").splitlines()
    assert len(many) == 2 + sql(trace, "SELECT count(*) FROM event")


def test_query_schema(trace, tmp):
    rows = json.loads(done("query", "--json", trace, ".schema"))
    with sqlite3.connect(trace) as db:
        views = [name for (name,) in db.execute("SELECT name FROM sqlite_schema WHERE type = 'view'")]
        real = [(view, c[1]) for view in views for c in db.execute(f"PRAGMA table_info ({view})")]
    assert [(r["view"], r["column"]) for r in rows] == real and len(views) > 10
    assert not [r for r in rows if not r["meaning"]], [r for r in rows if not r["meaning"]]
    text = done("query", trace, ".schema")
    assert text.startswith("v_event  every event of the run, in order\n  seq  "), text
    assert re.findall(r"^(v_\w+)  \w", text, re.M) == views, text
    assert max(map(len, text.splitlines())) <= 80
    refused("query", trace, "PRAGMA table_list", code=1, says="only SELECT")


def test_query_refuses(trace, tmp):
    before = open(trace, "rb").read()
    for statement in ("DELETE FROM event", "DROP TABLE event", "PRAGMA journal_mode = WAL",
                      f"ATTACH '{tmp}/x.db' AS x"):
        refused("query", trace, statement, code=1, says="only SELECT")
    refused("query", trace, "SELECT * FROM nowhere", code=1, says="no such table: nowhere")
    refused("query", trace, "SELECT 1; SELECT 2", code=1, says="one statement")
    refused("query", "--seconds", "0.2", trace,
            "WITH RECURSIVE n (x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n) SELECT max(x) FROM n", code=1,
            says="stopped after 0.2 s")
    refused("query", trace, code=2, says="FILE SQL")
    refused("query", "--csv", "--json", trace, "SELECT 1", code=2, says="exclude")
    assert open(trace, "rb").read() == before
    assert not os.path.exists(f"{tmp}/x.db")


def test_check(trace, tmp):
    assert "nothing wrong" in done("check", trace)
    assert json.loads(done("check", "--json", trace)) == {"file": trace, "ok": True, "faults": []}
    copy = shutil.copy(trace, os.path.join(tmp, "bad.coop"))
    with sqlite3.connect(copy) as db:
        db.execute("DELETE FROM event WHERE seq = 2000")
    result = coop("check", copy)
    assert result.returncode == 1 and "event 2001: sequence: " in result.stdout, result.stdout
    found = json.loads(coop("check", "--json", "--max", "1", copy).stdout)
    assert not found["ok"] and found["faults"][0]["event"] == 2001 and len(found["faults"]) == 1


def test_bad_files(trace, tmp):
    script = os.path.join(tmp, "train.py")
    with open(script, "w") as out:
        out.write("import torch\n")
    newer = shutil.copy(trace, os.path.join(tmp, "newer.coop"))
    with sqlite3.connect(newer) as db:
        db.execute("PRAGMA user_version = 9")
    for command, more in (("info", ()), ("check", ()), ("query", ("SELECT 1",))):
        refused(command, script, *more, code=1, says="train.py: not a trace")
        refused(command, newer, *more, code=1, says="version 9")
        refused(command, os.path.join(tmp, "missing.coop"), *more, code=1, says="No such file")
        refused(command, tmp, *more, code=1, says="not a trace")
    refused("info", code=2, says="FILE")
    refused("check", trace, trace, code=2, says="FILE")
    refused("check", "--jsn", trace, code=2, says="did you mean --json?")


def test_policy(trace, tmp):
    params = {p["name"]: p for p in json.loads(done("policy", "--json"))}
    listed = [line.split()[0] for line in done("policy").splitlines() if line.startswith("  ") and line[2] != " "]
    assert listed == list(params), (listed, list(params))
    assert params["evictor"]["labels"][:4] == ["coop", "dtr-eq", "lru", "none"]
    assert params["hold"]["default"] == 4096 and params["verify"]["default"] is False
    for name, p in params.items():
        assert p["help"] and (p["type"] == "enum" or p["min"] <= p["default"] <= p["max"]), p
        assert name in done("policy", name)
        assert json.loads(done("policy", "--json", name)) == p
    preset = {p["name"]: p["value"] for p in json.loads(done("policy", "--json", "dtr-eq"))}
    assert (preset["evictor"], preset["size_exponent"], preset["groups"]) == ("dtr-eq", 1.0, 1), preset
    assert "size_exponent       1  (default 0)" in done("policy", "dtr-eq")
    refused("policy", "evictr", code=2, says="did you mean evictor?")
    refused("policy", "dtreq", code=2, says="did you mean dtr-eq?")
    refused("policy", "a", "b", code=2, says="at most one")


def test_help(trace, tmp):
    for command in ("info", "query", "check", "policy"):
        assert f"coop {command}" in done(command, "--help") and "--json" in done(command, "--help")


with tempfile.TemporaryDirectory(prefix="coop info ") as shared:
    made = os.path.join(shared, "a run.coop")
    subprocess.run([GEN, made, "21", "9000"], check=True)
    status = tap.main(globals(), made, folder=shared)
sys.exit(status)
