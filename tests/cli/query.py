#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""coop query @NAME and coop diff, from outside: every answer is worked out again from the rows of events, blocks
and operators, as plainly as possible.

Usage: query.py COOP GEN_TRACE. Prints TAP.
"""
import collections
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
ALLOC, FREE, EVICT, HANDOVER, MOVE, OOM, STEP = 10, 11, 12, 13, 14, 40, 32
MIB = 1 << 20


def coop(*args):
    return subprocess.run([COOP, *args], capture_output=True, text=True, timeout=60)


def done(*args):
    result = coop(*args)
    assert result.returncode == 0, (args, result.returncode, result.stderr)
    assert result.stderr == "", result.stderr
    return result.stdout


def refused(*args, code, says):
    result = coop(*args)
    assert result.returncode == code and result.stdout == "", (args, result)
    assert len(result.stderr.splitlines()) == 1 and says in result.stderr, (says, result.stderr)


def ask(trace, name, *more):
    return json.loads(done("query", trace, "@" + name, "--json", "--top", "0", *more))


def rows(path, sql):
    db = sqlite3.connect(path)
    db.row_factory = sqlite3.Row
    try:
        return db.execute(sql).fetchall()
    finally:
        db.close()


def near(got, want, digits=2):
    assert abs(got - want) <= 0.5000001 * 10 ** -digits, (got, want)


def said(name):
    return name.replace("aten::", "").replace("aten.", "").replace(".default", "")


class Trace:
    """The tables that the answers are worked out from, as lists and dicts."""

    def __init__(self, path):
        self.path = path
        self.events = rows(path, "SELECT * FROM event ORDER BY seq")
        self.blocks = rows(path, "SELECT * FROM block")
        self.ops = {o["id"]: o for o in rows(path, "SELECT * FROM op ORDER BY id")}
        self.tensors = {t["id"]: t for t in rows(path, "SELECT * FROM tensor")}
        self.names = dict(tuple(r) for r in rows(path, "SELECT id, text FROM string"))
        self.evicted = rows(path, "SELECT * FROM evicted ORDER BY event")
        self.searches = rows(path, "SELECT * FROM eviction ORDER BY id")
        used = [e["used"] for e in self.events]
        self.peak = used.index(max(used))

    def after(self, seq, *kinds):
        """The first event of a kind from there on: where a life ends, being off by one shows."""
        return next(e["seq"] for e in self.events if e["seq"] >= seq and e["kind"] in kinds)

    def op_name(self, op):
        return said(self.names[self.ops[op]["name"]])

    def live(self, seq):
        return [b for b in self.blocks if b["born_event"] <= seq and (b["died_event"] is None or b["died_event"] > seq)]

    def maker(self, block):
        tensor = self.tensors.get(block["tensor"])
        return tensor["op"] if tensor and tensor["op"] else block["op"]


def test_all_of_them_answer(t, tmp):
    listed = re.findall(r"^  @(\S+) +(\S.*)$", done("query", "--list"), re.M)
    assert len(listed) >= 20 and done("query", t.path, "@") == done("query", "--list")
    for name in ("peak", "holes", "thrash", "pinned", "evicted-most", "oom", "steps", "operators", "lines", "fragmentation",
                 "search", "policy"):
        assert name in [n for n, _ in listed], name
    for name, _ in listed:
        answer = ask(t.path, name)
        sql = done("query", t.path, "@" + name, "--sql", "--top", "0")
        assert json.loads(done("query", t.path, sql, "--json")) == answer, name
        if answer:
            head = next(csv.reader(io.StringIO(done("query", t.path, "@" + name, "--csv", "--top", "1"))))
            assert head == list(answer[0]), (name, head)
        assert len(json.loads(done("query", t.path, "@" + name, "--json", "--top", "2"))) == min(2, len(answer)), name


def test_peak(t, tmp):
    answer = ask(t.path, "peak")
    live = t.live(t.peak)
    assert sum(b["bytes"] for b in live) == t.events[t.peak]["used"]
    assert sum(r["blocks"] for r in answer) == len(live)
    groups = collections.Counter()
    for b in live:
        op = t.maker(b)
        groups[t.op_name(op) if op else None] += b["bytes"]
    for name, size in groups.items():
        got = [r["mib"] for r in answer if r["operator"] == name]
        assert abs(sum(got) - size / MIB) <= 0.006 * len(got), (name, got, size)
    assert {r["line"] for r in answer if r["operator"]} <= {"train.py:18 in forward", "train.py:19 in forward"}
    assert [r["mib"] for r in answer] == sorted((r["mib"] for r in answer), reverse=True)
    for seq in (t.after(700, FREE), t.after(900, EVICT), t.after(900, ALLOC), t.after(0, MOVE), t.after(1500, HANDOVER)):
        blocks = ask(t.path, "blocks", "--at", str(seq))
        assert sorted(int(b["addr"], 16) for b in blocks) == sorted(b["addr"] for b in t.live(seq)), seq
        assert sum(r["blocks"] for r in ask(t.path, "peak", "--at", str(seq))) == len(blocks)


def test_holes(t, tmp):
    """Against a walk over the addresses, at the out of memory and at another moment."""
    oom = max(r["event"] for r in rows(t.path, "SELECT event FROM oom"))
    evict = t.after(1500, EVICT)
    for more, seq in (((), oom), (("--at", str(evict)), evict)):
        budget = [r["new"] for r in rows(t.path, f"SELECT new FROM policy_change WHERE param = 'budget' AND event <= {seq}")][-1]
        want, at = [], 0
        for b in sorted(t.live(seq), key=lambda b: b["addr"]):
            if b["addr"] > at:
                want.append((at, b["addr"] - at))
            at = b["addr"] + b["bytes"]
        if budget > at:
            want.append((at, budget - at))
        answer = ask(t.path, "holes", *more)
        assert sorted(int(r["addr"], 16) for r in answer) == [a for a, _ in want], (answer, want)
        for r, (_, size) in zip(sorted(answer, key=lambda r: int(r["addr"], 16)), want):
            near(r["hole_mib"], size / MIB)
        near(answer[0]["hole_mib"], t.events[seq]["largest"] / MIB)
        assert answer[0]["left"] and answer[0]["right"]


def test_pinned(t, tmp):
    labels = dict(tuple(r) for r in rows(t.path, "SELECT value, label FROM enum_label WHERE enum = 'pin'"))
    free = max(b["died_event"] for b in t.blocks if not b["tensor"] and b["died_event"])
    for more, seq in (((), t.peak), (("--at", str(free)), free)):
        want = collections.Counter()
        for b in t.live(seq):
            pin = t.tensors[b["tensor"]]["pin"] if b["tensor"] in t.tensors else -1
            if pin != 0:
                want[labels.get(pin, "unclaimed")] += 1
        got = collections.Counter()
        for r in ask(t.path, "pinned", *more):
            got[r["pin"]] += r["blocks"]
        assert got == want and want


def test_recomputing(t, tmp):
    times = collections.Counter((o["step"], o["replay_of"]) for o in t.ops.values() if o["replay_of"])
    want = {k: n for k, n in times.items() if n > 1}
    assert {(r["step"], r["op"]): r["times"] for r in ask(t.path, "thrash")} == want and want
    asked = collections.Counter()
    for o in t.ops.values():
        if o["replay_of"]:
            asked[max(a["id"] for a in t.ops.values() if not a["replay_of"] and a["begin_event"] < o["begin_event"])] += 1
    assert {r["op"]: r["recomputed"] for r in ask(t.path, "chains")} == asked


def test_evictions(t, tmp):
    answer = ask(t.path, "evicted-most")
    assert sum(r["evictions"] for r in answer) == len(t.evicted)
    names = collections.Counter(t.op_name(t.tensors[x["tensor"]]["op"]) if t.tensors[x["tensor"]]["op"] else None for x in t.evicted)
    got = collections.Counter()
    for r in answer:
        got[r["operator"]] += r["evictions"]
    assert got == names
    gone = {x["tensor"] for x in t.evicted}
    assert sum(r["came_back"] for r in answer) == len([e for e in t.events if e["kind"] == HANDOVER and e["tensor"] in gone])
    away, out = {}, []
    for e in t.events:
        if e["kind"] == EVICT:
            away[e["tensor"]] = e["ts"]
        elif e["kind"] == HANDOVER and e["tensor"] in away:
            out.append((e["ts"] - away.pop(e["tensor"])) / 1e6)
    got = [r["away_ms"] for r in ask(t.path, "regret")]
    assert len(got) == len(out) > 50
    for g, w in zip(got, sorted(out)):
        near(g, w)


def test_oom(t, tmp):
    answer, table = ask(t.path, "oom"), rows(t.path, "SELECT * FROM oom ORDER BY event")
    assert len(answer) == len(table) > 0
    for r, m in zip(answer, table):
        near(r["asked_mib"], m["asked"] / MIB)
        why = ("enough is free, but in pieces" if m["free"] >= m["asked"] else "enough could go, but what is pinned lies between"
               if m["free"] + m["evictable"] >= m["asked"] else "pinned: too little could go")
        assert (r["why"], r["event"]) == (why, m["event"])


def test_steps(t, tmp):
    answer = {r["step"]: r for r in ask(t.path, "steps")}
    step, want = 0, collections.defaultdict(lambda: collections.Counter(peak=0))
    numbers = {r["event"]: r["step"] for r in rows(t.path, "SELECT * FROM step")}
    for e in t.events:
        step = numbers.get(e["seq"], step)
        w = want[step]
        w["peak"] = max(w["peak"], e["used"])
        w["evictions"] += e["kind"] == EVICT
        w["back"] += e["kind"] == HANDOVER
    for o in t.ops.values():
        want[o["step"]]["again" if o["replay_of"] else "own"] += o["duration_ns"]
        want[o["step"]]["recomputed"] += bool(o["replay_of"])
    assert answer.keys() == want.keys() and len(answer) > 10
    for step, w in want.items():
        r = answer[step]
        assert (r["evictions"], r["came_back"], r["recomputed"]) == (w["evictions"], w["back"], w["recomputed"]), (step, r, w)
        near(r["peak_mib"], w["peak"] / MIB, 1)
        near(r["recompute_ms"], w["again"] / 1e6, 1)


def test_sums(t, tmp):
    own = sum(o["duration_ns"] for o in t.ops.values() if not o["replay_of"]) / 1e6
    again = sum(o["duration_ns"] for o in t.ops.values() if o["replay_of"]) / 1e6
    replays = len([o for o in t.ops.values() if o["replay_of"]])
    for name, calls in (("operators", "calls"), ("lines", "operators"), ("phases", "operators")):
        answer = ask(t.path, name)
        assert sum(r[calls] for r in answer) == len(t.ops) - replays, name
        assert sum(r["recomputed"] for r in answer) == replays, name
        assert abs(sum(r["ms"] or 0 for r in answer) - own) <= 0.06 * len(answer), name
        assert abs(sum(r["recompute_ms"] for r in answer) - again) <= 0.06 * len(answer), name
    assert sum(r["evictions"] for r in ask(t.path, "operators")) == len([x for x in t.evicted if t.tensors[x["tensor"]]["op"]])
    phases = [r["peak_mib"] for r in ask(t.path, "phases")]
    near(max(phases), max(e["used"] for o in t.ops.values() if not o["replay_of"] for e in t.events[o["begin_event"]:o["end_event"] + 1])
         / MIB, 1)


def test_searches(t, tmp):
    answer = {r["result"]: r for r in ask(t.path, "search")}
    for result, some in (("found", True), ("nothing found", False)):
        want = [v for v in t.searches if (v["victims"] > 0) == some]
        assert (answer[result]["searches"] if result in answer else 0) == len(want)
        if want:
            assert answer[result]["most_victims"] == max(v["victims"] for v in want)
            near(answer[result]["mean_us"], sum(v["search_ns"] for v in want) / len(want) / 1e3, 1)
    steps = collections.defaultdict(list)
    for v in t.searches:
        if v["op"] and v["need"] > 0:
            steps[t.ops[v["op"]]["step"]].append(v)
    answer = ask(t.path, "fragmentation")
    assert [(r["step"], r["searches"]) for r in answer] == [(s, len(v)) for s, v in sorted(steps.items())]
    for r in answer:
        near(r["free_percent"], sum(100 * v["free_before"] / v["budget"] for v in steps[r["step"]]) / len(steps[r["step"]]), 1)


def test_others(t, tmp):
    assert len(ask(t.path, "policy")) == len(rows(t.path, "SELECT * FROM policy_change"))
    sizes = collections.Counter(1 << (b["bytes"].bit_length() - 1) for b in t.blocks)
    assert {r["least_bytes"]: r["blocks"] for r in ask(t.path, "sizes")} == sizes
    work = collections.Counter(t.op_name(b["op"]) for b in t.blocks if b["op"] and not b["tensor"] and b["ended"] != HANDOVER)
    assert {r["operator"]: r["blocks"] for r in ask(t.path, "workspace")} == work and work
    most = 0
    for o in t.ops.values():
        if not o["replay_of"]:
            ids = set(json.loads(o["inputs"])) | set(json.loads(o["outputs"]))
            most = max(most, sum(t.tensors[i]["bytes"] for i in ids if i in t.tensors) + (o["workspace"] or 0))
    near(ask(t.path, "floor")[0]["needs_mib"], most / MIB)


def test_leaks_and_warnings(t, tmp):
    assert ask(t.path, "leaks") == [] == ask(t.path, "warnings")
    copy = shutil.copy(t.path, os.path.join(tmp, "leak.coop"))
    by_step = {}
    for b in t.blocks:
        op = t.maker(b)
        if op and t.op_name(op) == "mm" and t.ops[op]["stack"] == 1 and b["tensor"]:
            by_step.setdefault(t.ops[op]["step"], b)
    kept = [by_step[s] for s in sorted(by_step) if s > 0][2:6]
    with sqlite3.connect(copy) as db:
        for b in kept:
            db.execute("UPDATE block SET died_event = NULL, died_ns = NULL, ended = NULL WHERE id = ?", (b["id"],))
            db.execute("UPDATE tensor SET kind = 2 WHERE id = ?", (b["tensor"],))
        db.execute("UPDATE stat SET value = 3 WHERE name = 'lost_events'")
        db.execute("INSERT INTO warning (event, code, text) VALUES (50, 1, 'mind the gap')")
        db.execute("INSERT INTO gap VALUES (70, 71, 9)")
    asked = coop("query", copy, "@leaks", "--json", "--top", "0")
    assert asked.stderr == "coop query: LOST: 3 events could not be written: unknown why\n", asked.stderr
    assert asked.stderr.split(": ", 2)[2].strip() in done("info", copy)
    answer = [r for r in json.loads(asked.stdout) if r["operator"] == "mm"]
    assert sum(r["blocks"] for r in answer) == len(kept) == 4, (answer, [dict(b) for b in kept])
    assert sum(r["steps"] for r in answer) == 4, answer
    assert [r["what"] for r in json.loads(coop("query", copy, "@warnings", "--json").stdout)] == ["mind the gap", "9 events are missing before this one", "lost_events: 3"]


def test_says_what_is_not_counted(t, tmp):
    """Of a run that goes on, what lives has no row yet: as if the longest-lived had been alive at the last write."""
    copy = shutil.copy(t.path, os.path.join(tmp, "unfinished.coop"))
    live = t.live(t.peak)
    with sqlite3.connect(copy) as db:
        db.execute("DELETE FROM block WHERE id = ?", (live[0]["id"],))
    result = coop("query", copy, "@peak")
    assert result.returncode == 0 and "%.1f KiB in use" % (live[0]["bytes"] / 1024) in result.stderr, result
    assert coop("query", copy, "@peak", "--at", "2").stderr == ""


def test_refuses(t, tmp):
    refused("query", t.path, "@peek", code=2, says="did you mean @peak?")
    refused("query", t.path, "@PEAK", code=2, says="did you mean @peak?")
    refused("query", t.path, "peak", code=2, says="is @peak")
    refused("query", t.path, "@xyzzyx", code=2, says="--list")
    refused("query", t.path, "@search", "--at", "peak", code=2, says="whole run")
    refused("query", t.path, "@peak", "--at", "noon", code=1, says="no instant")
    refused("query", t.path, "SELECT 1", "--top", "3", code=2, says="with a name")
    refused("query", t.path, "@peak", "--top", "-3", code=2, says="--top must be 0")
    for option in ("--width", "--height", "--scale"):
        for value in ("0", "-1"):
            refused("export", t.path, "--to", "png", f"{option}={value}", code=2, says="must be more than 0")
    refused("query", "--seconds", "0.000001", t.path, "@lines", code=1, says="stopped after")
    assert done("query", t.path, "@leaks") == "(nothing)\n"
    assert done("query", t.path, "SELECT value FROM json_each ('[7]')", "--csv") == "value\n7\n"
    value = 0.1 + 0.2
    assert done("query", t.path, f"SELECT {value!r} AS x, 0.5 AS y", "--csv") == f"x,y\n{value!r},0.5\n"


def test_damage_is_told_alike(t, tmp):
    """Cut short, overwritten: every command says the same of it, and names the file once."""
    with open(t.path, "rb") as f:
        data = f.read()
    torn = os.path.join(tmp, "torn.coop")
    for what, says in ((data[:len(data) // 2], f"the file is cut short: {len(data) // 2} of {len(data)} bytes are there"),
                       (data[:8192] + bytes(16384) + data[24576:], "the file is damaged")):
        with open(torn, "wb") as f:
            f.write(what)
        told = set()
        for args in (("info", torn), ("query", torn, "@lines"), ("query", torn, "SELECT count(*) FROM event"), ("query", torn, ".schema"),
                     ("diff", t.path, torn), ("export", torn, "--to", "csv", "-o", os.path.join(tmp, "x")), ("replay", torn)):
            result = coop(*args)
            assert result.returncode == 1 and result.stdout == "", (args, result)
            told.add(result.stderr.split(": ", 1)[1])
        assert len(told) == 1 and told.pop().startswith(f"{torn}: {says}"), told


def test_a_page_that_only_the_query_reads(t, tmp):
    torn = os.path.join(tmp, "page.coop")
    shutil.copy(t.path, torn)
    page = rows(t.path, "SELECT rootpage FROM sqlite_schema WHERE name = 'string'")[0]["rootpage"]
    size = rows(t.path, "PRAGMA page_size")[0]["page_size"]
    with open(torn, "r+b") as f:
        f.seek((page - 1) * size)
        f.write(b"\xff" * size)
    refused("query", torn, "SELECT * FROM string", code=1, says=f"{torn}: the file is damaged")


def test_rounded_as_people_write_it(t, tmp):
    """No digits beyond those that were asked for."""
    for name in ("steps", "operators", "lines", "evicted-most"):
        for text in re.findall(r"-?\d+\.(\d+)", done("query", t.path, "@" + name, "--json", "--top", "0")):
            assert len(text) <= 3, (name, text)
    assert done("query", t.path, "SELECT round (2.675, 2) AS a, round (0.285, 1) AS b, round (7.5) AS c, round (NULL, 1) AS d,"
                " round (-1.25, 1) AS e", "--csv") == "a,b,c,d,e\n2.68,0.3,8.0,,-1.3\n"
    assert done("query", t.path, "SELECT round (2.675, 2) AS a, 0.1 + 0.2 AS b, 1e21 AS c", "--json") == (
        '[{"a":2.68,"b":0.30000000000000004,"c":1e+21}]\n')


def test_no_session(t, tmp):
    copy = shutil.copy(t.path, os.path.join(tmp, "session.coop"))
    with sqlite3.connect(copy) as db:
        db.execute("DELETE FROM session")
    refused("info", copy, code=1, says="table session is empty")
    refused("diff", copy, t.path, code=1, says="table session is empty")


def test_a_sweep_is_no_trace(t, tmp):
    sweep = os.path.join(tmp, "sweep.db")
    with sqlite3.connect(sweep) as db:
        db.execute("PRAGMA application_id = 0x434F5357")
        db.execute("CREATE TABLE x (y)")
    refused("query", sweep, "@peak", code=1, says="not a trace but a sweep; `coop report")


# ---- diff ----

def test_diff(t, tmp):
    other = os.path.join(tmp, "other.coop")
    subprocess.run([GEN, other, "23", "7000"], check=True)
    u = Trace(other)
    out = json.loads(done("diff", t.path, other, "--json"))
    for key, side in (("a", t), ("b", u)):
        info = json.loads(done("info", "--json", side.path))
        got = out[key]
        assert (got["peak_bytes"], got["evictions"], got["recomputed"], got["own_ns"], got["again_ns"], got["ooms"]) == (
            max(e["used"] for e in side.events), len(side.evicted), len([o for o in side.ops.values() if o["replay_of"]]),
            info["operator_ns"], info["recomputed_ns"], info["out_of_memory"])
    for kind, key in (("operators", lambda s, o: s.op_name(o["id"])),
                      ("lines", lambda s, o: f"train.py:{17 + o['stack']} in forward" if o["stack"] else "(unknown)")):
        for side, s in enumerate((t, u)):
            want = collections.defaultdict(collections.Counter)
            for o in s.ops.values():
                w = want[key(s, o)]
                w["calls"] += not o["replay_of"]
                w["own_ns"] += 0 if o["replay_of"] else o["duration_ns"]
                w["recomputed"] += bool(o["replay_of"])
                w["recompute_ns"] += o["duration_ns"] if o["replay_of"] else 0
            for x in s.evicted:
                op = s.tensors[x["tensor"]]["op"]
                if op:
                    want[key(s, s.ops[op])]["evicted_bytes"] += x["bytes"]
            for b in s.live(s.peak):
                if s.maker(b):
                    want[key(s, s.ops[s.maker(b)])]["at_peak_bytes"] += b["bytes"]
            for row in out[kind]:
                name = row[kind[:-1]]
                for field in ("calls", "own_ns", "recomputed", "recompute_ns", "evicted_bytes", "at_peak_bytes"):
                    assert row[field][side] == want[name][field], (kind, name, field, row[field], want[name])
            assert want.keys() <= {row[kind[:-1]] for row in out[kind]}
    changes = [abs(sum(r["own_ns"][i] + r["recompute_ns"][i] for i in (1,)) - sum(r["own_ns"][i] + r["recompute_ns"][i] for i in (0,)))
               for r in out["operators"]]
    assert changes == sorted(changes, reverse=True)
    last = [dict(tuple(r) for r in rows(p, "SELECT param, new FROM policy_change ORDER BY event")) for p in (t.path, other)]
    differ = {p for p in last[0].keys() | last[1].keys() if last[0].get(p) != last[1].get(p)}
    assert {p["param"] for p in out["policy"]} == differ, (out["policy"], differ)
    text = done("diff", t.path, other)
    assert re.search(r"^evictions +%d +%d " % (len(t.evicted), len(u.evicted)), text, re.M), text
    assert "different numbers of steps" in text and "by line" in text


def test_diff_of_the_same(t, tmp):
    out = json.loads(done("diff", t.path, t.path, "--json"))
    assert out["policy"] == [] and all(row["own_ns"][0] == row["own_ns"][1] for row in out["operators"])
    text = done("diff", t.path, t.path)
    assert not re.search(r"[+-][0-9.]+ %|times|points|different", text), text
    refused("diff", t.path, code=2, says="two traces")
    refused("diff", t.path, os.path.join(tmp, "none.coop"), code=1, says="No such file")


with tempfile.TemporaryDirectory(prefix="coop query ") as shared:
    made = os.path.join(shared, "a run.coop")
    subprocess.run([GEN, made, "21", "9000"], check=True)
    status = tap.main(globals(), Trace(made), folder=shared)
sys.exit(status)
