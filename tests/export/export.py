#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""coop export, from outside: what the files say is compared with the rows of the trace.

Usage: export.py COOP GEN_TRACE WRITE_VALUES. Prints TAP.
"""
import csv
import gzip
import io
import json
import os
import pickle
import shutil
import signal
import sqlite3
import struct
import subprocess
import sys
import tempfile
import time
import xml.etree.ElementTree
import zlib

sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
import packets
import tap

COOP, GEN, VALUES = (os.path.abspath(p) for p in sys.argv[1:4])
ALLOC, FREE, EVICT, HANDOVER, MOVE, OP_BEGIN, STEP, OOM = 10, 11, 12, 13, 14, 30, 32, 40
PRIVATE = ("a person", "train.py", "python3 ")


def coop(*args, text=True):
    return subprocess.run([COOP, *args], capture_output=True, text=text, timeout=60)


def done(*args, text=True):
    result = coop(*args, text=text)
    assert result.returncode == 0, (args, result.returncode, result.stderr)
    assert not result.stderr, result.stderr
    return result.stdout


def refused(*args, code, says):
    result = coop(*args)
    assert result.returncode == code, (args, result.returncode, result.stdout, result.stderr)
    assert result.stdout == "" and len(result.stderr.splitlines()) == 1, (result.stdout, result.stderr)
    assert says in result.stderr, (says, result.stderr)


def rows(path, sql):
    db = sqlite3.connect(path)
    try:
        return db.execute(sql).fetchall()
    finally:
        db.close()


def read(path, mode="rb"):
    with open(path, mode) as f:
        return f.read()


def export(trace, tmp, to, name, *more):
    path = os.path.join(tmp, name)
    done("export", trace, "--to", to, "-o", path, "--force", *more)
    return path


# ---- tables ----

def test_csv_has_every_row(trace, tmp):
    folder = export(trace, tmp, "csv", "tables")
    views = [v for (v,) in rows(trace, "SELECT name FROM sqlite_schema WHERE type = 'view'")]
    for view in views:
        with open(os.path.join(folder, view[2:] + ".csv"), newline="") as f:
            got = list(csv.reader(f))
        db = sqlite3.connect(trace)
        cursor = db.execute(f"SELECT * FROM {view}")
        assert got[0] == [c[0] for c in cursor.description], (view, got[0])
        want = cursor.fetchall()
        db.close()
        assert len(got) == len(want) + 1, (view, len(got), len(want))
        for g, w in zip(got[1:], want):
            assert len(g) == len(w) and all(same(a, b) for a, b in zip(g, w)), (view, g, w)
    assert len(views) >= 12


def same(text, value):
    if value is None or isinstance(value, str):
        return text == (value or "")
    if text is None:  # JSON has no infinity
        return abs(value) == float("inf")
    return float(text) == value or abs(float(text) - value) <= 1e-14 * abs(value)


def test_jsonl_has_every_row(trace, tmp):
    lines = [json.loads(line) for line in open(export(trace, tmp, "jsonl", "t.jsonl"), encoding="utf-8")]
    by_view = {}
    for line in lines:
        by_view.setdefault(line.pop("view"), []).append(line)
    db = sqlite3.connect(trace)
    db.row_factory = sqlite3.Row
    for view, got in by_view.items():
        if view not in ("annotation", "warning"):
            want = [dict(r) for r in db.execute(f"SELECT * FROM {view}")]
            for row in want:
                for key in ("inputs", "outputs", "shape"):
                    if isinstance(row.get(key), str):
                        row[key] = json.loads(row[key])
            assert len(got) == len(want) and all(
                g.keys() == w.keys() and all(g[k] == w[k] or isinstance(w[k], float) and same(g[k], w[k]) for k in w)
                for g, w in zip(got, want)), view
    db.close()
    assert {"v_event", "v_operator", "v_block", "v_evicted", "meta", "stat"} <= by_view.keys()


# ---- timelines ----

def operators(trace):
    return rows(trace, "SELECT o.id, n.text, o.replay_of, o.start_ns, b.ts, e.ts FROM op o JOIN string n ON n.id = o.name"
                       " JOIN event b ON b.seq = o.begin_event JOIN event e ON e.seq = o.end_event")


def said(name):
    return name.replace("aten::", "").replace("aten.", "").removesuffix(".default")


def slices(events):
    """{operator: (name, category, begin, end, the slices around it)} of begin and end events."""
    open_, found = {}, {}
    for e in events:
        stack = open_.setdefault(e["track"], [])
        assert not stack or e["ts"] >= stack[-1]["ts"], e
        if e["type"] == "begin":
            stack.append(e)
        elif e["type"] == "end":
            begun = stack.pop()
            if "operator" in begun["args"]:
                found[begun["args"]["operator"]] = (begun["name"], begun["category"], begun["ts"], e["ts"],
                                                    [s["args"]["operator"] for s in stack])
    assert not any(open_.values()), "a slice without an end"
    return found


def check_slices(trace, events, unit=1):
    found = slices(events)
    ops = operators(trace)
    assert len(found) == len(ops) > 1000
    spans = {op: (begin, end) for op, _, _, _, begin, end in ops}
    again = 0
    for op, name, replay_of, start, begin, end in ops:
        got = found[op]
        want = said(name) + (" again" if replay_of else "")
        assert got[:2] == (want, "recompute" if replay_of else "operator"), (got, want)
        assert (round(got[2] * unit), round(got[3] * unit)) == (begin, end), (got, begin, end)
        for outer in got[4]:
            assert spans[outer][0] <= begin and end <= spans[outer][1], (op, outer)
        again += bool(replay_of)
    assert again > 50
    return found


def used_changes(trace):
    last, out = 0, []
    for ts, used in rows(trace, "SELECT ts, used FROM event ORDER BY seq"):
        if used != last:
            out.append((ts, used))
            last = used
    return out


def test_perfetto(trace, tmp):
    t = packets.Trace(read(export(trace, tmp, "perfetto", "t.pftrace")))
    check_slices(trace, t.events)
    used = [(e["ts"], e["value"]) for e in t.events if e["type"] == "counter" and e["track"] == "memory used"]
    assert used == used_changes(trace)
    evicted = [(e["ts"], e["args"]["tensor"], e["args"]["block"], e["args"]["bytes"], e["args"]["staleness_ns"], e["args"]["score"])
               for e in t.events if e["category"] == "evict"]
    want = rows(trace, "SELECT e.ts, x.tensor, x.block, x.bytes, x.staleness, x.h FROM evicted x JOIN event e ON e.seq = x.event"
                       " ORDER BY x.event")
    assert evicted == want and len(want) > 100
    steps = [(e["name"], e["ts"]) for e in t.events if e["track"] == "steps" and e["type"] == "begin"]
    assert steps == [(f"step {n}", ts) for n, ts in rows(trace, "SELECT step, ts FROM step ORDER BY event")]
    ooms = [e["args"]["asked"] for e in t.events if e["category"] == "out of memory"]
    assert ooms == [a for (a,) in rows(trace, "SELECT asked FROM oom ORDER BY event")] and ooms
    assert t.clocks == {6: 0, 1: rows(trace, "SELECT start_ns FROM session")[0][0]}
    sources = {e["source"] for e in t.events if e["source"]}
    assert ("/home/a person/train.py", "forward", 18) in sources, sources
    counters = {name for name, _, counter in t.tracks.values() if counter}
    assert counters == {"memory used", "pinned", "largest hole", "evicted, to be recomputed", "budget"}, counters


def nested(trace, tmp):
    """The same run where an operator begins before what is recomputed for it, as it does in PyTorch."""
    copy = shutil.copy(trace, os.path.join(tmp, "nested.coop"))
    begins = {b: (op, again) for op, b, again in rows(trace, "SELECT id, begin_event, replay_of FROM op")}
    order, waiting = [], None
    for seq, in rows(trace, "SELECT seq FROM event ORDER BY seq"):
        op, again = begins.get(seq, (None, None))
        if again and waiting is None:
            waiting = len(order)
        if op and not again and waiting is not None:
            order.insert(waiting, seq)
            waiting = None
        else:
            order.append(seq)
    place, ts = {seq: i for i, seq in enumerate(order)}, dict(rows(trace, "SELECT seq, ts FROM event"))
    with sqlite3.connect(copy) as db:
        db.execute("UPDATE event SET seq = -1 - seq, thread = 0")
        for i, seq in enumerate(order):
            early = i + 1 < len(order) and order[i + 1] < seq
            db.execute("UPDATE event SET seq = ?, ts = ? WHERE seq = ?", (i, ts[order[i + 1]] if early else ts[seq], -1 - seq))
        for op, b, e in db.execute("SELECT id, begin_event, end_event FROM op").fetchall():
            db.execute("UPDATE op SET begin_event = ?, end_event = ? WHERE id = ?", (place[b], place[e], op))
    return copy


INSIDE = ("SELECT r.id, o.id, r.end_event FROM op r JOIN op o ON o.begin_event < r.begin_event AND r.end_event < o.end_event"
          " WHERE r.replay_of IS NOT NULL")


def test_recomputed_inside_what_asked(trace, tmp):
    copy = nested(trace, tmp)
    found = check_slices(copy, packets.Trace(read(export(copy, tmp, "perfetto", "nested.pftrace"))).events)
    inside = rows(copy, INSIDE)
    assert len(inside) > 50 and all(outer in found[r][4] and found[r][1] == "recompute" for r, outer, _ in inside)


def test_operators_that_do_not_nest(trace, tmp):
    """An end that was lost, and one whose begin was: every slice still ends, inside the one around it."""
    copy = shutil.copy(nested(trace, tmp), os.path.join(tmp, "torn.coop"))
    lost, outer, end = rows(copy, INSIDE)[20]
    orphan = rows(copy, "SELECT begin_event FROM op ORDER BY id LIMIT 1 OFFSET 700")[0][0]
    with sqlite3.connect(copy) as db:
        db.execute("DELETE FROM event WHERE seq IN (?, ?)", (end, orphan))
    found = slices(packets.Trace(read(export(copy, tmp, "perfetto", "torn.pftrace"))).events)
    want = {op: (b, e) for op, _, _, _, b, e in operators(trace)}
    assert len(found) == len(want) - 1 and found[outer][3] == found[lost][3] == want[outer][1]


def test_chrome(trace, tmp):
    data = json.loads(read(export(trace, tmp, "chrome", "t.json")))
    events = data["traceEvents"]
    names = {e["tid"]: e["args"]["name"] for e in events if e["ph"] == "M" and e["name"] == "thread_name"}
    kinds = {"B": "begin", "E": "end"}
    check_slices(trace, [{"ts": e["ts"], "track": names[e["tid"]], "type": kinds[e["ph"]], "name": e.get("name"),
                          "category": e.get("cat"), "args": e.get("args", {})} for e in events if e["ph"] in kinds], 1000)
    used = [(round(e["ts"] * 1000), e["args"]["bytes"]) for e in events if e["ph"] == "C" and e["name"] == "memory used"]
    assert used == used_changes(trace)
    assert len([e for e in events if e["ph"] == "i" and e["cat"] == "evict"]) == rows(trace, "SELECT count(*) FROM evicted")[0][0]
    assert {e["ph"] for e in events} == {"B", "E", "C", "i", "M"}
    assert data["otherData"]["start_unix_ns"] == str(rows(trace, "SELECT start_ns FROM session")[0][0])


# ---- the snapshot ----

class Plain(pickle.Unpickler):
    def find_class(self, module, name):
        raise AssertionError(f"a class in a snapshot: {module}.{name}")


def history(trace):
    """What a snapshot can hold, worked out from blocks: (event, action, place, asked, microseconds)."""
    start = rows(trace, "SELECT start_ns FROM session")[0][0] // 1000
    kinds = dict(rows(trace, "SELECT seq, kind FROM event"))
    out = []
    for addr, size, asked, born, born_ns, died, died_ns in rows(
            trace, "SELECT addr, bytes, requested, born_event, born_ns, died_event, died_ns FROM block"):
        if kinds[born] != HANDOVER:
            out.append((born, 1, "alloc", addr, asked or size, start + born_ns // 1000))
        if died is not None and kinds[died] != HANDOVER:
            out.append((died, 0, "free", addr, asked or size, start + died_ns // 1000))
    for event, ts, asked in rows(trace, "SELECT m.event, e.ts, m.asked FROM oom m JOIN event e ON e.seq = m.event"):
        out.append((event, 0, "oom", None, asked, start + ts // 1000))
    return [entry[2:] for entry in sorted(out, key=lambda e: e[:2])]


def snapshot_history(data):
    base = data["segments"][0]["address"]
    out = []
    for e in data["device_traces"][0]:
        if e["action"] in ("alloc", "free_completed", "oom"):
            out.append(("free" if e["action"] == "free_completed" else e["action"],
                        e["addr"] - base if "addr" in e else None, e["size"], e["time_us"]))
    return out


def test_pytorch(trace, tmp):
    path = export(trace, tmp, "pytorch", "t.pickle")
    with open(path, "rb") as f:
        data = Plain(f).load()
    assert snapshot_history(data) == history(trace)
    [segment] = data["segments"]
    blocks = segment["blocks"]
    at = segment["address"]
    for block in blocks:
        assert block["address"] == at
        at += block["size"]
    assert at == segment["address"] + segment["total_size"]
    active = [(b["address"] - segment["address"], b["size"], b["requested_size"]) for b in blocks if b["state"] == "active_allocated"]
    assert active == rows(trace, "SELECT addr, bytes, requested FROM block WHERE died_event IS NULL ORDER BY addr")
    assert segment["allocated_size"] == segment["active_size"] == sum(size for _, size, _ in active)
    assert segment["requested_size"] == sum(asked for _, _, asked in active)
    actions = [e["action"] for e in data["device_traces"][0]]
    assert actions[0] == "segment_alloc" and actions.count("free_requested") == actions.count("free_completed")
    framed = [e for e in data["device_traces"][0] if e["action"] == "alloc" and e["frames"]]
    inner = {"name": "forward", "filename": "/home/a person/train.py", "line": 19}
    outer = {"name": "forward", "filename": "/home/a person/train.py", "line": 18}
    assert framed and all(e["frames"] in ([inner, outer], [outer]) for e in framed)
    assert len({id(e["frames"]) for e in framed}) <= 2, "stacks are shared"
    steps = [a["name"] for a in data["external_annotations"] if a["stage"] == "START"]
    assert steps == [f"step {n}" for (n,) in rows(trace, "SELECT step FROM step ORDER BY event")]


def test_round_trip(trace, tmp):
    path, again = export(trace, tmp, "pytorch", "r.pickle"), os.path.join(tmp, "again.coop")
    done("import", path, "-o", again, "--force")
    assert "nothing wrong" in done("check", again)
    assert history(again) == history(trace)
    twice = export(again, tmp, "pytorch", "twice.pickle")
    first, second = (Plain(io.BytesIO(read(p))).load() for p in (path, twice))
    assert snapshot_history(second) == snapshot_history(first)
    place = [[(s["address"], s["total_size"], [(b["size"], b["state"]) for b in s["blocks"]]) for s in d["segments"]]
             for d in (first, second)]
    assert place[0] == place[1]


MIB, BASE = 1 << 20, 0x7f0000000000


def entry(action, addr, size, us, stream=0, frames=(), **more):
    e = {"action": action, "size": size, "stream": stream, "time_us": 1700000000000000 + us, "frames": list(frames), **more}
    return e if addr is None else {**e, "addr": addr}


def block(address, size, requested, state, frames=()):
    return {"address": address, "size": size, "requested_size": requested, "state": state, "frames": list(frames)}


def device_snapshot():
    """Two segments, one of them private; a block from before, a live one, one that waits for its stream."""
    site = [{"name": "step", "filename": "train.py", "line": 7}, {"name": "main", "filename": "train.py", "line": 30}]
    one, two = BASE + 0x1000000, BASE
    trace = [entry("segment_alloc", one, 4 * MIB, 0, 5), entry("alloc", one + 2 * MIB, MIB - 24, 1, 5, site),
             entry("segment_alloc", two, 2 * MIB, 2), entry("alloc", two, 1000, 3, 0, site[1:]), entry("alloc", two + 1024, 700, 4),
             entry("free_requested", two, 1000, 5, 0, site[1:]), entry("free_completed", two, 1000, 5, 0, site[1:]),
             entry("oom", None, 99 * MIB, 6, 0, site, device_free=7 * MIB), entry("free_requested", one + 2 * MIB, MIB - 24, 7, 5, site),
             entry("alloc", two + 4096, 100, 8), entry("free_requested", two + 4096, 100, 9), entry("alloc", two + 8192, 100, 10),
             entry("free_completed", two + 4096, 100, 11), entry("free_requested", two + 8192, 100, 12),
             entry("free_completed", two + 8192, 100, 12)]
    def segment(address, blocks, stream, pool, kind):
        live = [b for b in blocks if b["state"] != "inactive"]
        return {"device": 0, "address": address, "total_size": sum(b["size"] for b in blocks), "stream": stream,
                "allocated_size": sum(b["size"] for b in live if b["state"] == "active_allocated"),
                "active_size": sum(b["size"] for b in live), "requested_size": sum(b["requested_size"] for b in live),
                "segment_type": kind, "segment_pool_id": pool, "is_expandable": False, "frames": [], "blocks": blocks}
    return {"device_traces": [trace], "segments": [
        segment(two, [block(two, 1024, 0, "inactive"), block(two + 1024, 1024, 700, "active_allocated"),
                      block(two + 2048, 2 * MIB - 2048, 0, "inactive")], 0, (0, 0), "small"),
        segment(one, [block(one, MIB, MIB, "active_allocated"), block(one + MIB, MIB, 0, "inactive"),
                      block(one + 2 * MIB, MIB, MIB - 24, "active_pending_free", site), block(one + 3 * MIB, MIB, 0, "inactive")],
                5, (0, 3), "large")]}


def test_snapshot_of_a_device(trace, tmp):
    """Read and written again, a snapshot says what it said."""
    want, path = device_snapshot(), os.path.join(tmp, "device.pickle")
    with open(path, "wb") as f:
        pickle.dump(want, f)
    done("import", path, "-o", os.path.join(tmp, "device.coop"))
    got = Plain(io.BytesIO(read(export(os.path.join(tmp, "device.coop"), tmp, "pytorch", "device2.pickle")))).load()
    plain = lambda entries: [{k: v for k, v in e.items() if k != "frames" or e["action"] in ("alloc", "oom")} for e in entries]
    assert plain(got["device_traces"][0]) == plain(want["device_traces"][0])
    for g, w in zip(got["segments"], want["segments"]):
        for key in w:
            if key != "blocks":
                assert g[key] == w[key], (key, g[key], w[key])
        assert [{k: b[k] for k in ("address", "size", "requested_size", "state")} for b in g["blocks"]] == [
            {k: b[k] for k in ("address", "size", "requested_size", "state")} for b in w["blocks"]]
    assert len(got["segments"]) == 2


# ---- the writers, where traces do not reach ----

BORDERS = sorted({n for k in (7, 8, 15, 16, 31, 32, 39, 40, 47, 48, 55, 56, 63) for n in ((1 << k) - 1, 1 << k)} | {0, (1 << 64) - 1})


def values(kind, numbers):
    return subprocess.run([VALUES, kind, *map(str, numbers)], check=True, stdout=subprocess.PIPE, timeout=60).stdout


def test_pickle_borders(trace, tmp):
    numbers = BORDERS + [-n for n in BORDERS if 0 < n <= 1 << 63]
    got = Plain(io.BytesIO(values("pickle", numbers))).load()
    n = len(numbers)
    assert got[:n] == numbers
    assert got[n:n + 6] == ["twice", "twice", "x" * 300, "\ufffd not UTF-8", True, False]
    assert got[n + 6:] == [f"text {i // 2}" for i in range(600)]


def test_proto_borders(trace, tmp):
    numbers = BORDERS + [-1, -(1 << 63)]
    [(outer, message)] = packets.fields(values("proto", numbers))
    assert outer == 1000
    *plain, (inner, nested) = packets.fields(message)
    assert plain == [(i, n % (1 << 64)) for i, n in enumerate(numbers, 1)] and inner == 2000
    assert packets.fields(nested) == [(1, b"y" * 20000), (2, struct.unpack("<Q", struct.pack("<d", -0.1))[0])]


# ---- pictures ----

def png(data):
    """(width, height, {pixel}) of an RGB picture, unfiltered by hand."""
    assert data[:8] == b"\x89PNG\r\n\x1a\n"
    at, idat = 8, b""
    while at < len(data):
        size, kind = struct.unpack_from(">I4s", data, at)
        body = data[at + 8:at + 8 + size]
        assert zlib.crc32(kind + body) == struct.unpack_from(">I", data, at + 8 + size)[0]
        if kind == b"IHDR":
            width, height, depth, color = struct.unpack_from(">IIBB", body)
            assert (depth, color) == (8, 2)
        elif kind == b"IDAT":
            idat += body
        at += 12 + size
    raw, before, seen = zlib.decompress(idat), bytes(3 * width), {}
    for y in range(height):
        kind, line = raw[y * (3 * width + 1)], bytearray(raw[y * (3 * width + 1) + 1:(y + 1) * (3 * width + 1)])
        for i in range(3 * width):
            a, b, c = (line[i - 3] if i > 2 else 0), before[i], (before[i - 3] if i > 2 else 0)
            p = a + b - c
            paeth = a if abs(p - a) <= abs(p - b) and abs(p - a) <= abs(p - c) else b if abs(p - b) <= abs(p - c) else c
            line[i] = (line[i] + (0, a, b, (a + b) // 2, paeth)[kind]) & 255
        before = bytes(line)
        for i in range(0, 3 * width, 3):
            pixel = before[i] << 16 | before[i + 1] << 8 | before[i + 2]
            seen[pixel] = seen.get(pixel, 0) + 1
    return width, height, seen


def test_png(trace, tmp):
    width, height, light = png(read(export(trace, tmp, "png", "m.png", "--width", "500", "--height", "340")))
    assert (width, height) == (500, 340)
    assert light[0xfafafa] > 0.1 * width * height, "the page"
    assert len([n for n in light.values() if n > 200]) >= 6, "kinds, holes, text"
    width, height, dark = png(read(export(trace, tmp, "png", "m2.png", "--width", "400", "--height", "240", "--scale", "1.5", "--dark")))
    assert (width, height) == (600, 360) and max(dark, key=dark.get) < 0x808080
    usage = png(read(export(trace, tmp, "png", "u.png", "--show", "usage", "--width", "400", "--height", "240")))
    assert usage[:2] == (400, 240) and len(usage[2]) > 20
    same = [read(export(trace, tmp, "png", n, "--at", "1500", "--width", "400", "--height", "240")) for n in ("a.png", "b.png")]
    other = read(export(trace, tmp, "png", "c.png", "--at", "step:9", "--width", "400", "--height", "240"))
    assert same[0] == same[1] != other


def test_svg(trace, tmp):
    root = xml.etree.ElementTree.fromstring(read(export(trace, tmp, "svg", "m.svg", "--at", "oom")))
    ns = "{http://www.w3.org/2000/svg}"
    asked = rows(trace, "SELECT event FROM oom ORDER BY event DESC")[0][0]
    assert root.tag == ns + "svg" and root.find(ns + "title").text.endswith("when memory ran out")
    assert f"Event {asked}, " in root.find(ns + "desc").text and "could not be served" in root.find(ns + "desc").text
    usage = xml.etree.ElementTree.fromstring(read(export(trace, tmp, "svg", "u.svg", "--show", "usage")))
    n = rows(trace, "SELECT count(*) FROM event WHERE kind = 12")[0][0]
    assert f"{n} evictions" in usage.find(ns + "desc").text
    assert usage.find(f".//{ns}image") is None, "a chart is lines"


# ---- what all have in common ----

def test_anonymise(trace, tmp):
    for to, name in (("csv", "anon"), ("jsonl", "anon.jsonl"), ("perfetto", "anon.pftrace"), ("chrome", "anon.json"),
                     ("pytorch", "anon.pickle"), ("svg", "anon.svg")):
        plain, hidden = export(trace, tmp, to, "open-" + name), export(trace, tmp, to, name, "--anonymise")
        files = [(os.path.join(plain, f), os.path.join(hidden, f)) for f in os.listdir(plain)] if to == "csv" else [(plain, hidden)]
        before, after = (b"".join(read(pair[i]) for pair in files) for i in (0, 1))
        for word in PRIVATE:
            assert word.encode() not in after, (to, word)
        if to != "svg":
            assert b"/home/a person/train.py" in before and b"file1.py" in after and b"forward" in after, to


def test_anonymise_texts(trace, tmp):
    copy = shutil.copy(trace, os.path.join(tmp, "texts.coop"))
    lines = ("/home/jo/x/net.py", "/usr/lib/python3/dist-packages/torch/nn/modules/conv.py", "see /home/jo/x/net.py and /etc/passwd, jo!",
             "aten::jo", "jolly", "module", "<module>")
    with sqlite3.connect(copy) as db:
        for i, text in enumerate(lines):
            db.execute("INSERT INTO string VALUES (?, 0, ?)", (1000 + i, text))
            db.execute("INSERT INTO annotation VALUES (?, 5, ?)", (i, 1000 + i))
        db.execute("UPDATE frame SET file = 1000 + id % 2")
        db.execute("INSERT INTO frame VALUES (9999, 0, 1005, 1001, 0)")
        db.execute("INSERT INTO meta VALUES ('host', 'secret-box'), ('torch', '2.15')")
        db.execute("UPDATE session SET pid = 5")
    out = [json.loads(line) for line in open(export(copy, tmp, "jsonl", "texts.jsonl", "--anonymise"))]
    texts = [line["text"] for line in out if line["view"] == "annotation"]
    assert texts == ["file1.py", "dist-packages/torch/nn/modules/conv.py", "see file1.py and path, user!", "aten::jo", "jolly",
                     "module", "<module>"], texts
    meta = {line["key"]: line["value"] for line in out if line["view"] == "meta"}
    assert meta["host"] == meta["command"] == "(removed)" and meta["torch"] == "2.15", meta


def test_copy(trace, tmp):
    """Recorded again from its events, a trace is the same; anonymised, it differs in its texts alone."""
    again, hidden = export(trace, tmp, "coop", "again2.coop"), export(trace, tmp, "coop", "anon.coop", "--anonymise")
    tables = [n for (n,) in rows(trace, "SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite_%'")]
    for table in tables:
        for other in (again, hidden):
            columns = "start_ns, end_ns, state, exit_code" if table == "session" else "*"
            if other == hidden and table in ("event", "string", "meta"):
                columns = {"event": "seq, ts, kind, block, tensor, op, addr, bytes, used, largest", "string": "id, event", "meta": "key"}[table]
            got, want = (rows(p, f"SELECT {columns} FROM {table}") for p in (other, trace))
            assert got == want, (table, other)
    for other in (again, hidden):
        assert "nothing wrong" in done("check", other)
    data = read(hidden)
    for word in PRIVATE:
        assert word.encode() not in data and word.encode() in read(again), word
    texts = [t for (t,) in rows(hidden, "SELECT text FROM string")]
    assert "file1.py" in texts and "forward" in texts and "aten::mm" in texts


def test_copy_finishes(trace, tmp):
    """Of a recorder that was killed: what was written is made whole."""
    torn = shutil.copy(trace, os.path.join(tmp, "killed.coop"))
    with sqlite3.connect(torn) as db:
        db.execute("DELETE FROM event WHERE seq > 3000")
        db.execute("DELETE FROM block WHERE died_event > 3000")
        db.execute("UPDATE session SET state = 0, end_ns = NULL")
    whole = export(torn, tmp, "coop", "whole.coop")
    assert "nothing wrong" in done("check", whole)
    used = rows(whole, "SELECT used FROM event WHERE seq = 3000")[0][0]
    assert rows(whole, "SELECT sum(bytes) FROM block WHERE died_event IS NULL") == [(used,)] and used > 0
    assert rows(whole, "SELECT state FROM session") == [(3,)]


def test_names_and_streams(trace, tmp):
    copy = shutil.copy(trace, os.path.join(tmp, "named.coop"))
    done("export", copy, "--to", "chrome")
    assert os.path.exists(os.path.join(tmp, "named.trace.json"))
    plain = read(os.path.join(tmp, "named.trace.json"))
    assert gzip.decompress(read(export(copy, tmp, "chrome", "z.json.gz"))) == plain
    assert done("export", copy, "--to", "chrome", "-o", "-", text=False) == plain
    for name in ("x.json", "x.pftrace", "x.pickle", "x.png", "x.svg"):
        done("export", copy, "-o", os.path.join(tmp, name))
    assert read(os.path.join(tmp, "x.json")) == plain
    assert not [f for f in os.listdir(tmp) if ".part-" in f]


def test_refuses(trace, tmp):
    there = os.path.join(tmp, "there.json")
    with open(there, "w") as f:
        f.write("mine")
    before = read(trace)
    refused("export", trace, "--to", "chrome", "-o", there, code=1, says="--force")
    refused("export", trace, "--to", "chrome", "--force", "-o", trace, code=1, says="the trace itself")
    refused("export", trace, "--to", "chrome", "-o", os.path.join(tmp, "no", "where.json"), code=1, says="No such file")
    refused("export", there, "--to", "csv", "-o", os.path.join(tmp, "t"), code=1, says="not a trace")
    refused("export", trace, "-o", os.path.join(tmp, "x.doc"), code=2, says="--to what?")
    refused("export", trace, "--to", "perfeto", code=2, says="did you mean perfetto?")
    refused("export", trace, "--to", "chrome", "--at", "peak", code=2, says="png and svg")
    refused("export", trace, "--to", "png", "--show", "face", code=2, says="map and usage")
    for at, says in (("noon", "no instant"), ("99999999", "last event"), ("step:99999", "no step"), ("step:x", "number")):
        refused("export", trace, "--to", "png", "--at", at, "-o", os.path.join(tmp, "p.png"), code=1, says=says)
    refused("export", trace, "--to", "png", "--width", "9", "-o", os.path.join(tmp, "p.png"), code=1, says="400x240")
    refused("export", trace, "--to", "csv", "-o", "-", code=2, says="place of its own")
    refused("export", trace, "--to", "program", "-o", there, code=1, says="--force")
    refused("export", code=2, says="FILE")
    assert read(there) == b"mine" and read(trace) == before
    assert not os.path.exists(os.path.join(tmp, "p.png"))


def test_interrupted(trace, tmp):
    """Ctrl-C leaves nothing behind, and what was there stays."""
    there = os.path.join(tmp, "there.jsonl")
    with open(there, "w") as f:
        f.write("mine")
    before = set(os.listdir(tmp))
    for to, path in (("jsonl", there), ("csv", os.path.join(tmp, "folder")), ("pytorch", os.path.join(tmp, "p.pickle")),
                     ("coop", os.path.join(tmp, "c.coop"))):
        codes = []
        for delay in (0.0, 0.03, 0.06, 0.1):
            child = subprocess.Popen([COOP, "export", trace, "--to", to, "-o", path, "--force"], stderr=subprocess.PIPE)
            time.sleep(delay)
            child.send_signal(signal.SIGINT)
            child.communicate(timeout=60)
            codes.append(child.returncode)
            if child.returncode == 0:
                shutil.rmtree(path) if to == "csv" else os.remove(path)
                with open(there, "w") as f:
                    f.write("mine")
                break
            assert set(os.listdir(tmp)) == before, (to, set(os.listdir(tmp)) - before)
            assert read(there) == b"mine"
        assert codes[0] != 0, codes


def test_full_disk(trace, tmp):
    if not os.path.exists("/dev/full"):
        return
    with open("/dev/full", "wb") as full:
        result = subprocess.run([COOP, "export", trace, "--to", "jsonl", "-o", "-"], stdout=full, stderr=subprocess.PIPE, text=True, timeout=60)
    assert result.returncode == 1 and "No space left" in result.stderr, result


with tempfile.TemporaryDirectory(prefix="coop export ") as shared:
    made = os.path.join(shared, "a run.coop")
    subprocess.run([GEN, made, "21", "9000"], check=True)
    status = tap.main(globals(), made, folder=shared)
sys.exit(status)
