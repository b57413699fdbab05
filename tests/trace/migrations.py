#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Traces of older versions: read as they are, and brought up to date; and what a killed run left.

Usage: migrations.py COOP GEN_TRACE. Prints TAP. schema-N.sql is the schema of version N as it was.
"""
import contextlib
import glob
import hashlib
import json
import os
import re
import sqlite3
import subprocess
import sys

sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
import tap

COOP, GEN = (os.path.abspath(p) for p in sys.argv[1:3])
HERE = os.path.dirname(os.path.abspath(__file__))
VERSIONS = sorted(int(re.search(r"schema-(\d+)", p)[1]) for p in glob.glob(os.path.join(HERE, "schema-*.sql")))


def coop(*args):
    return subprocess.run([COOP, *args], capture_output=True, text=True, timeout=120)


def done(*args):
    result = coop(*args)
    assert result.returncode == 0, (args, result.stdout, result.stderr)
    return result.stdout


def make(tmp, name="new.coop", seed=3, events=20000):
    path = os.path.join(tmp, name)
    subprocess.run([GEN, path, str(seed), str(events)], check=True)
    return path


def as_of(version, new, old):
    """The trace as version N would have written it."""
    with open(os.path.join(HERE, f"schema-{version}.sql")) as f:
        schema = f.read()
    db = sqlite3.connect(old)
    db.executescript(f"PRAGMA application_id = 0x434F4F50; PRAGMA user_version = {version}; PRAGMA page_size = 4096;" + schema)
    db.execute("ATTACH ? AS new", (new,))
    for (table,) in db.execute("SELECT name FROM main.sqlite_schema WHERE type = 'table'").fetchall():
        names = ", ".join(row[1] for row in db.execute(f"PRAGMA main.table_info ({table})"))
        db.execute(f"INSERT INTO main.{table} SELECT {names} FROM new.{table}")
    db.commit()
    for (sql,) in db.execute("SELECT sql FROM new.sqlite_schema WHERE type = 'index' AND sql IS NOT NULL").fetchall():
        db.execute(sql)
    db.commit()
    db.close()
    return old


def tables(path):
    with sqlite3.connect(path) as db:
        names = [r[0] for r in db.execute("SELECT name FROM sqlite_schema WHERE type = 'table' ORDER BY name")]
        return {n: db.execute(f"SELECT * FROM {n}").fetchall() for n in names}


def views(path):
    with sqlite3.connect(path) as db:
        return [r[0] for r in db.execute("SELECT name FROM sqlite_schema WHERE type = 'view' ORDER BY name")]


def digest(path):
    with open(path, "rb") as f:
        return hashlib.sha256(f.read()).hexdigest()


def test_every_older_version_has_its_schema(tmp):
    with sqlite3.connect(make(tmp)) as db:
        now = db.execute("PRAGMA user_version").fetchone()[0]
    assert VERSIONS == list(range(1, now)), (VERSIONS, now)


def test_old_traces_are_read_as_they_are(tmp):
    new = make(tmp)
    for version in VERSIONS:
        old = as_of(version, new, os.path.join(tmp, f"v{version}.coop"))
        os.chmod(old, 0o444)
        before = digest(old)
        for view in views(new):
            sql = f"SELECT * FROM {view}"
            assert done("query", "--csv", old, sql) == done("query", "--csv", new, sql), (version, view)
        a, b = (json.loads(done("info", "--json", path)) for path in (old, new))
        for d in (a, b):
            del d["file"], d["file_bytes"]
        assert a == b
        assert "nothing wrong" in done("check", old)
        assert digest(old) == before and sorted(os.listdir(tmp)) == ["new.coop", f"v{version}.coop"], os.listdir(tmp)


def test_old_traces_are_brought_up_to_date(tmp):
    new = make(tmp)
    for version in VERSIONS:
        old = as_of(version, new, os.path.join(tmp, f"v{version}.coop"))
        assert f"version {version}" in done("check", "--repair", old)
        a, b = tables(old), tables(new)
        for name in b:
            assert sorted(map(repr, a[name])) == sorted(map(repr, b[name])), name
        assert views(old) == views(new)
        with sqlite3.connect(old) as x, sqlite3.connect(new) as y:
            sql = "SELECT name, sql FROM sqlite_schema WHERE type = 'view' ORDER BY name"
            squeeze = lambda rows: [(n, " ".join(s.split())) for n, s in rows]
            assert squeeze(x.execute(sql)) == squeeze(y.execute(sql))
        assert done("check", "--repair", old) == f"{old}: nothing wrong\n"   # no second time


def test_what_only_says_that_it_is_one(tmp):
    path = os.path.join(tmp, "empty.coop")
    with sqlite3.connect(path) as db:
        db.executescript("PRAGMA application_id = 0x434F4F50; PRAGMA user_version = 1; CREATE TABLE session (x)")
    result = coop("info", path)
    assert result.returncode == 1 and len(result.stderr.splitlines()) == 1, result.stderr


def renumber(new, out):
    """As a version of Coopscope would have written it that had one parameter more at the beginning, and named
    the evictors in another order. Policy events are packed: LEB128 of more, param | source << 32, old, new, generation."""
    with open(new, "rb") as f, open(out, "wb") as g:
        g.write(f.read())

    def unpack(data):
        words, value, shift = [], 0, 0
        for byte in data:
            value |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                words.append(value)
                value, shift = 0, 0
        return words + [0] * (6 - len(words))

    def pack(words):
        while words and words[-1] == 0:
            words = words[:-1]
        data = bytearray()
        for value in words:
            while value > 127:
                data.append(value & 127 | 128)
                value >>= 7
            data.append(value)
        return bytes(data) or None

    with contextlib.closing(sqlite3.connect(out)) as db:
        names = dict(db.execute("SELECT label, value FROM enum_label WHERE enum = 'param'"))
        n = len([1 for _ in db.execute("SELECT 1 FROM enum_label WHERE enum = 'evictor'")])
        for seq, rest in db.execute("SELECT seq, rest FROM event WHERE kind = 7").fetchall():
            words = unpack(rest or b"")
            if words[1] & 0xFFFFFFFF == names["evictor"]:
                words[2], words[3] = n - 1 - words[2], n - 1 - words[3]
            words[1] += 1
            db.execute("UPDATE event SET rest = ? WHERE seq = ?", (pack(words), seq))
        db.execute("UPDATE enum_label SET value = -1 - value WHERE enum = 'evictor' OR enum = 'param'")
        db.execute(f"UPDATE enum_label SET value = {n} + value WHERE enum = 'evictor'")
        db.execute("UPDATE enum_label SET value = -value WHERE enum = 'param'")
        db.execute("DELETE FROM layout_keyframe")
        db.commit()


def test_parameters_that_have_other_numbers(tmp):
    new, out = make(tmp), os.path.join(tmp, "other.coop")
    renumber(new, out)
    a, b = (json.loads(done("info", "--json", path)) for path in (new, out))
    assert a["evictor"] == b["evictor"] and a["budget"] == b["budget"] and a["allocator"] == b["allocator"]
    with contextlib.closing(sqlite3.connect(out)) as db:   # without labels: by the names in the rows
        db.execute("DELETE FROM enum_label WHERE enum = 'param'")
        db.commit()
    c = json.loads(done("info", "--json", out))
    assert c["evictor"] == a["evictor"] and c["budget"] == a["budget"]
    assert "nothing wrong" in done("check", out)


# ---- what was left undone ----

def interrupt(new, out):
    """As if the writer had been killed: no end, no rows of what lived, no indexes."""
    with open(new, "rb") as f, open(out, "wb") as g:
        g.write(f.read())
    with sqlite3.connect(out) as db:
        last = db.execute("SELECT max (seq) FROM event").fetchone()[0] * 2 // 3
        for table, column in (("event", "seq"), ("layout_keyframe", "event"), ("step", "event"), ("policy_change", "event"),
                              ("oom", "event"), ("gap", "event"), ("eviction", "event"), ("evicted", "event"),
                              ("string", "event"), ("frame", "event"), ("stack", "event"), ("tensor", "event"),
                              ("annotation", "event"), ("warning", "event")):
            db.execute(f"DELETE FROM {table} WHERE {column} > {last}")
        db.execute(f"DELETE FROM block WHERE died_event IS NULL OR died_event > {last}")
        db.execute(f"DELETE FROM op WHERE end_event IS NULL OR end_event > {last}")
        db.execute("UPDATE session SET state = 0, end_ns = NULL, exit_code = NULL")
        db.execute(f"UPDATE stat SET value = {last + 1} WHERE name = 'events'")
        peak = db.execute("SELECT max (used) FROM event").fetchone()[0]
        db.execute(f"UPDATE stat SET value = {peak} WHERE name = 'peak'")
        for (name,) in db.execute("SELECT name FROM sqlite_schema WHERE type = 'index' AND sql IS NOT NULL").fetchall():
            db.execute(f"DROP INDEX {name}")
    return last


def test_an_interrupted_run_gets_an_end(tmp):
    new, out = make(tmp), os.path.join(tmp, "cut.coop")
    last = interrupt(new, out)
    text = done("check", "--repair", out)
    assert f"interrupted after event {last}" in text and "6 indexes were missing" in text and "nothing wrong" in text, text
    whole, cut = tables(new), tables(out)
    assert cut["session"][0][3] == 3 and cut["session"][0][2] == cut["session"][0][1] + cut["event"][-1][1]
    # a life that goes on has its row, as the whole file knows its beginning
    known = {row[0]: row for row in whole["block"]}
    open_ones = [row for row in cut["block"] if row[8] is None]
    assert len(open_ones) > 0 and all(known[row[0]][:4] + known[row[0]][5:8] == row[:4] + row[5:8] for row in open_ones)
    used = [row for row in cut["event"]][-1][9]
    assert sum(row[2] for row in open_ones) == used
    stats = dict(cut["stat"])
    assert stats["used"] == used and stats["events"] == last + 1
    assert done("check", "--repair", out) == f"{out}: nothing wrong\n"


def test_a_layout_that_does_not_load_goes(tmp):
    path = make(tmp)
    with sqlite3.connect(path) as db:
        n = db.execute("SELECT count (*) FROM layout_keyframe").fetchone()[0]
        db.execute("UPDATE layout_keyframe SET model = x'00' WHERE event = (SELECT max (event) FROM layout_keyframe)")
    assert coop("check", path).returncode == 1
    assert "1 layouts could not be read" in done("check", "--repair", path)
    with sqlite3.connect(path) as db:
        assert db.execute("SELECT count (*) FROM layout_keyframe").fetchone()[0] == n - 1 > 0


def test_damage_is_refused(tmp):
    path = make(tmp)
    with open(path, "r+b") as f:
        f.truncate(os.path.getsize(path) // 2)
    before = digest(path)
    result = coop("check", "--repair", path)
    assert result.returncode == 1 and len(result.stderr.splitlines()) == 1, result.stderr
    assert digest(path) == before and os.listdir(tmp) == ["new.coop"]


sys.exit(tap.main(globals()))
