#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""coop import of PyTorch's memory snapshots, from outside: rows worked out by hand for every era.

Usage: snapshot.py COOP. Prints TAP.
"""
import json
import os
import pickle
import pickletools
import sqlite3
import subprocess
import sys

sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
import snapshots
import tap
from snapshots import BASE, MIB

COOP = os.path.abspath(sys.argv[1])
ALLOC, FREE, SEGMENT, OOM, PIN, ANNOTATION = 10, 11, 6, 40, 21, 34


def coop(*args):
    return subprocess.run([COOP, *args], capture_output=True, text=True, timeout=60)


def dump(tmp, data, name="s", protocol=4):
    path = os.path.join(tmp, name + ".pickle")
    with open(path, "wb") as out:
        if isinstance(data, bytes):
            out.write(data)
        else:
            pickle.dump(data, out, protocol=protocol)
    return path


class Imported:
    """One import: its traces as open databases, what it printed."""

    def __init__(self, tmp, data, name="s", protocol=4):
        self.out = os.path.join(tmp, name + ".coop")
        result = coop("import", "--force", dump(tmp, data, name, protocol), "-o", self.out)
        assert result.returncode == 0, result.stderr
        assert result.stderr == "", result.stderr
        self.text = result.stdout
        self.notes = [line[6:] for line in result.stdout.splitlines() if line.startswith("note: ")]
        self.paths = [line.split(": ")[0] for line in result.stdout.splitlines() if not line.startswith("note: ")]
        for path in self.paths:
            check = coop("check", path)
            assert check.returncode == 0, check.stdout

    def rows(self, sql, device=0):
        with sqlite3.connect(self.paths[device]) as db:
            return db.execute(sql).fetchall()

    def blocks(self, device=0):
        return self.rows("SELECT addr, bytes, requested, born_ns, died_ns FROM block ORDER BY id", device)

    def meta(self, key, device=0):
        found = self.rows(f"SELECT value FROM meta WHERE key = '{key}'", device)
        return found[0][0] if found else None


# ---- the eras ----

LIVES = [(0, 2 * MIB, 2 * MIB, 1000, None), (2 * MIB, 3 * MIB, 3 * MIB - 100, 2000, 5000)]


def test_2_3(tmp):
    i = Imported(tmp, snapshots.v2_3())
    assert i.blocks() == LIVES
    assert i.rows("SELECT ts, kind, used, largest FROM event WHERE kind IN (6, 10, 11, 40)") == [
        (0, SEGMENT, 0, 20 * MIB), (1000, ALLOC, 2 * MIB, 18 * MIB), (2000, ALLOC, 5 * MIB, 15 * MIB),
        (5000, FREE, 2 * MIB, 18 * MIB), (6000, OOM, 2 * MIB, 18 * MIB)]
    assert i.rows("SELECT asked, free, largest, device_free FROM oom") == [(300 * MIB, 18 * MIB, 18 * MIB, 5 * MIB)]
    assert i.rows("SELECT a.ts, s.text FROM annotation a LEFT JOIN string s ON s.id = a.string ORDER BY a.event") == [
        (1000, "START step"), (7000, "snapshot"), (9000, "END step")]
    assert i.rows("SELECT file, line, func FROM v_block ORDER BY id") == [("/home/u/train.py", 18, "forward")] * 2
    assert i.rows("SELECT depth FROM stack ORDER BY id") == [(1,), (2,), (3,)]
    assert i.rows("SELECT start_ns, end_ns FROM session") == [(1000000, 1009000)]
    assert i.meta("pytorch_cuda_alloc_conf") == "max_split_size_mb:64" and i.meta("clock") == "recorded"
    assert i.notes == [], i.notes


def test_2_2(tmp):
    i = Imported(tmp, snapshots.v2_2())
    assert i.blocks() == LIVES and i.notes == []


def test_2_1(tmp):
    # the entry number stands for the time, in microseconds, from 1 on
    i = Imported(tmp, snapshots.v2_1())
    assert i.blocks() == [(0, 2 * MIB, 2 * MIB, 2000, None), (2 * MIB, 3 * MIB, 3 * MIB - 100, 3000, 5000)]
    assert i.meta("clock") == "virtual" and "no times" in i.notes[0]


def test_2_0(tmp):
    i = Imported(tmp, snapshots.v2_0())
    assert i.blocks() == [(0, 2 * MIB, 2 * MIB, 2000, None), (2 * MIB, 3 * MIB, 3 * MIB - 100, 3000, 5000)]


def test_1_13(tmp):
    i = Imported(tmp, snapshots.v1_13())
    assert i.blocks() == [(0, 2 * MIB, 2 * MIB - 24, 0, None)]
    assert i.rows("SELECT file, line FROM v_block") == [("/home/u/train.py", 18)]
    assert "no history was recorded" in i.meta("incomplete") and len(i.notes) == 1


def test_1_4(tmp):
    i = Imported(tmp, snapshots.v1_4())
    assert i.blocks() == [(0, 2 * MIB, 2 * MIB, 0, None)]


def test_2026(tmp):
    i = Imported(tmp, snapshots.v2026(), "new")
    assert [os.path.basename(p) for p in i.paths] == ["new-host.coop", "new-cuda0.coop"]
    assert i.blocks(1) == LIVES
    assert i.blocks(0) == [(0, 64 << 10, 60000, 0, None)]
    assert i.rows("SELECT device FROM pool", 0) == [(0,)] and i.rows("SELECT device FROM pool", 1) == [(1,)]
    assert "overflowed: only the latest 8 entries" in i.notes[0], i.notes
    assert "epoch 2" in [row[0] for row in i.rows("SELECT text FROM string", 1)]
    assert not any("unknown" in note for note in i.notes), i.notes


# ---- what is in them ----

def test_unknown_keys_are_counted(tmp):
    i = Imported(tmp, snapshots.unknown())
    assert i.blocks() == LIVES
    assert i.notes == ["2 unknown keys left out: wide (1 time), xyz (4 times)",
                       "1 unknown action left out: future_action (1 time)"], i.notes


def test_devices_streams_private_pools(tmp):
    i = Imported(tmp, snapshots.devices())
    assert [os.path.basename(p) for p in i.paths] == ["s-cuda0.coop", "s-cuda2.coop"]
    # addresses that never were memory are left out: 64 MiB apart there, side by side on the map
    assert i.blocks(0) == [(0, 2 * MIB, 2 * MIB, 0, None), (2 * MIB, MIB, MIB, 1000, None)]
    assert i.rows("SELECT base, bytes, address, stream, private_pool, small FROM segment", 0) == [
        (0, 2 * MIB, BASE, 0, "3.1", 0), (2 * MIB, 2 * MIB, BASE + 64 * MIB, 0x55AA, None, 0)]
    assert i.blocks(1) == [(0, 512, 4, 0, None)] and i.rows("SELECT device FROM pool", 1) == [(3,)]
    # the two segments touch on the map, and yet no hole goes across
    assert i.rows("SELECT largest FROM event WHERE kind = 6", 0) == [(2 * MIB,), (2 * MIB,)]


def test_expandable(tmp):
    i = Imported(tmp, snapshots.expandable())
    assert i.rows("SELECT id, base, bytes, expandable FROM segment ORDER BY id") == [
        (1, 0, 2 * MIB, 1), (2, 0, 4 * MIB, 1), (3, 0, 6 * MIB, 1), (4, 0, 2 * MIB, 1), (5, 4 * MIB, 2 * MIB, 1)]
    assert i.rows("SELECT id FROM segment WHERE died_event IS NULL ORDER BY id") == [(4,), (5,)]
    assert i.rows("SELECT used, largest FROM event ORDER BY seq DESC LIMIT 1") == [(4 * MIB, 0)]
    assert i.rows("SELECT largest FROM event WHERE kind = 10") == [(0,), (2 * MIB,)]


def test_pending(tmp):
    i = Imported(tmp, snapshots.pending())
    assert i.blocks() == [(0, 400 * MIB, 400 * MIB, 0, 4000), (400 * MIB, MIB, MIB, 3000, None)]
    assert i.rows("SELECT ts, used FROM event WHERE kind IN (10, 11, 21, 40) ORDER BY seq") == [
        (0, 400 * MIB), (1000, 400 * MIB), (2000, 400 * MIB), (3000, 401 * MIB), (4000, MIB), (5000, MIB)]
    assert i.rows("SELECT text FROM warning") == [
        ("out of memory: 300.0 MiB asked while 400.0 MiB are freed and wait for a stream",)]


def test_a_history_that_begins_late(tmp):
    i = Imported(tmp, snapshots.late())
    # in the order in which they are found: the one that is freed, the one that stays, the one that is made
    assert i.blocks() == [(10 * MIB, 30 * MIB, 30 * MIB, 0, 0), (0, 10 * MIB, 10 * MIB, 0, None),
                          (10 * MIB, 4 * MIB, 4 * MIB, 1000, 2000)]
    assert i.rows("SELECT max (used) FROM event") == [(40 * MIB,)]
    assert "2 blocks are older than it, of which 1 lives to the end" in i.notes[0]


def test_no_history(tmp):
    i = Imported(tmp, snapshots.silent())
    assert i.blocks() == [(0, 10 * MIB, 10 * MIB, 0, None)] and "no history" in i.notes[0]


def test_one_entry(tmp):
    i = Imported(tmp, snapshots.one_entry())
    assert i.blocks() == [(0, 2 * MIB, 2 * MIB, 0, None)]


def test_history_and_segments_disagree(tmp):
    i = Imported(tmp, snapshots.trimmed())
    assert i.blocks() == [(0, 10 * MIB, 10 * MIB, 0, None), (10 * MIB, 4 * MIB, 4 * MIB, 0, None),
                          (20 * MIB, MIB, MIB, 1000, None)]
    assert any("disagree about 2 blocks" in note for note in i.notes), i.notes


def test_an_address_comes_back(tmp):
    i = Imported(tmp, snapshots.reuse())
    lives = [(0, MIB, MIB, 1000, 2000), (0, MIB, MIB, 3000, 4000), (0, 512, 512, 7000, None)]
    assert i.blocks() == lives and i.notes == []
    assert i.rows("SELECT born_event IS NULL, died_event IS NULL FROM segment") == [(0, 0), (0, 1)]
    i = Imported(tmp, snapshots.skipped(), "skipped")
    assert i.blocks() == lives and i.notes == [], i.notes


def test_marks_that_are_entries(tmp):
    i = Imported(tmp, snapshots.marks())
    assert ("START epoch",) in i.rows("SELECT s.text FROM annotation a JOIN string s ON s.id = a.string")
    assert i.blocks() == LIVES


def test_categories(tmp):
    out = Imported(tmp, snapshots.categories()).out
    info = json.loads(coop("info", "--json", out).stdout)
    assert [(p["bytes"], p["kind"]) for p in info["at_peak"]] == [(3 * MIB, "activation"), (2 * MIB, "state")]


def test_asked_by_line(tmp):
    """Named queries and diff know the lines of blocks that no operator made."""
    out = Imported(tmp, snapshots.v2_3()).out
    rows = json.loads(coop("query", out, "@peak", "--json").stdout)
    line = "train.py:18 in forward"
    assert [(r["mib"], r["kind"], r["operator"], r["line"]) for r in rows] == [(5.0, "unknown", None, line)], rows
    assert [r["line"] for r in json.loads(coop("query", out, "@blocks", "--json").stdout)] == [line] * 2
    assert [(r["line"], r["operators"], r["at_peak_mib"]) for r in json.loads(coop("query", out, "@lines", "--json").stdout)] == [(line, 0, 5.0)]
    lines = json.loads(coop("diff", out, Imported(tmp, snapshots.reuse(), "other").out, "--json").stdout)["lines"]
    assert [(r["line"], r["at_peak_bytes"]) for r in lines] == [(line, [5 * MIB, MIB])], lines


def test_holes_end_at_segments(tmp):
    """The largest of @holes is what the map says, and all of them are what is free inside of segments."""
    for name in ("v2_3", "devices", "expandable", "pending", "late", "silent", "reuse", "unknown"):
        i = Imported(tmp, snapshots.ALL[name](), name)
        for number, path in enumerate(i.paths):
            (seq, used, largest), = i.rows("SELECT seq, used, largest FROM event ORDER BY seq DESC LIMIT 1", number)
            (held,), = i.rows("SELECT sum (bytes) FROM segment WHERE died_event IS NULL", number)
            holes = json.loads(coop("query", path, "@holes", "--at", str(seq), "--top", "0", "--json").stdout)
            assert abs(sum(h["hole_mib"] for h in holes) * MIB - (held - used)) <= 6000 * len(holes), (name, holes, held, used)
            assert abs(max([h["hole_mib"] for h in holes] + [0]) * MIB - largest) <= 6000, (name, holes, largest)
    # side by side on the map, and two all the same
    two = snapshots.v2_2()
    two["segments"] = [snapshots.segment(BASE + n * 2 * MIB, 2 * MIB, []) for n in (0, 1)]
    two["device_traces"] = []
    out = Imported(tmp, two, "two").out
    holes = json.loads(coop("query", out, "@holes", "--json", "--at", "end").stdout)
    assert [(h["hole_mib"], h["addr"], h["left"], h["right"]) for h in holes] == [(2.0, "0", "begin", "end"), (2.0, "0x200000", "begin", "end")], holes


def test_older_blocks_are_neutral(tmp):
    info = json.loads(coop("info", "--json", Imported(tmp, snapshots.late()).out).stdout)
    assert [p["kind"] for p in info["at_peak"]] == ["unknown", "unknown"]


# ---- and then ----

def test_what_goes_out_comes_back(tmp):
    """import, export, import: the same allocations, frees and refusals at the same times and places."""
    sql = ("SELECT e.kind, e.ts, e.addr, b.requested FROM event e LEFT JOIN block b ON b.id = e.block"
           " WHERE e.kind IN (10, 11, 40) ORDER BY e.seq")
    for name in ("v2_3", "expandable", "pending", "late", "reuse", "devices"):
        i = Imported(tmp, snapshots.ALL[name](), name)
        for number, path in enumerate(i.paths):
            out = os.path.join(tmp, "back.pickle")
            result = coop("export", "-f", path, "--to", "pytorch", "-o", out)
            assert result.returncode == 0, result.stderr
            with open(out, "rb") as f:
                back = Imported(tmp, f.read(), "back")
            assert back.rows(sql) == i.rows(sql, number) != [], name


def test_replayed_under_other_allocators(tmp):
    out = Imported(tmp, snapshots.reuse()).out
    for allocator in ("merge", "caching"):
        result = coop("replay", out, "--allocator", allocator)
        assert result.returncode == 0 and "finished" in result.stdout, (result.stdout, result.stderr)
        assert "nan" not in result.stdout and ("  segments  " in result.stdout) == (allocator == "caching"), result.stdout
    # up to 1 MiB is small, and small blocks come in segments of 2 MiB
    assert "segments         2.0 MiB at most" in result.stdout, result.stdout
    assert json.loads(coop("replay", out, "--json").stdout)["overhead"] is None


def test_a_folder_called_torch(tmp):
    """Lines of PyTorch's own are passed over on the way to the script's; a user's folder may have its name."""
    def frame(file):
        return {"filename": file, "name": "f", "line": 7}

    own = [frame("/usr/lib/python3/dist-packages/torch/nn/modules/module.py"), frame("/home/u/pytorch/torch/nn/functional.py")]
    for mine in ("/home/u/torch/train.py", "/home/u/torch/site-packages.d/x/train.py"):
        data = snapshots.v2_2()
        data["device_traces"] = [[snapshots.entry("alloc", BASE, 2 * MIB, 1, own + [frame(mine)])]]
        assert Imported(tmp, data).rows("SELECT file FROM v_block") == [(mine,)]


def test_drawn(tmp):
    out = Imported(tmp, snapshots.devices()).paths[0]
    for show in ("map", "usage"):
        picture = os.path.join(tmp, show + ".png")
        result = coop("export", out, "--show", show, "-o", picture)
        assert result.returncode == 0 and os.path.getsize(picture) > 1000, result.stderr


# ---- protocols, refusals ----

def contents(path):
    with sqlite3.connect(path) as db:
        return [db.execute(f"SELECT * FROM {t}").fetchall() for t in ("event", "block", "segment", "stack", "frame", "string")]


def test_protocols(tmp):
    all_of_them = [contents(Imported(tmp, snapshots.v2_3(), f"p{p}", p).out) for p in (2, 3, 4, 5)]
    assert all(c == all_of_them[0] for c in all_of_them)
    for p in (0, 1):
        result = coop("import", dump(tmp, snapshots.v2_3(), f"p{p}", p), "-o", os.path.join(tmp, "x.coop"))
        assert result.returncode == 1 and len(result.stderr.splitlines()) == 1, result.stderr


class Evil:
    def __reduce__(self):
        return (os.system, ("touch EVIL",))


class Plain:
    pass


def test_nothing_is_executed(tmp):
    os.chdir(tmp)
    plain = Plain()
    plain.x = 1
    for data in ({"segments": Evil()}, {"segments": os.system}, {"segments": {1, 2}}, {"segments": plain}, {"segments": 1j}):
        for protocol in (2, 4, 5):
            path = dump(tmp, data, "evil", protocol)
            result = coop("import", path, "-o", os.path.join(tmp, "evil.coop"))
            assert result.returncode == 1 and "only plain data" in result.stderr or "none of those" in result.stderr, result.stderr
            assert ": byte " in result.stderr, result.stderr
            assert not os.path.exists("EVIL") and not os.path.exists("evil.coop")


def test_what_is_no_snapshot(tmp):
    for data, says in ((None, "no list of segments"), ({}, "no list of segments"), ([1], "no list of segments"),
                       ({"segments": 3}, "no list of segments"), ({"segments": []}, "is empty"), ([], "is empty"),
                       (b"\x80\x04", "byte 2: the file ends in the middle"), (b"\x80\x03N", "byte 3"), (b"\x80\x09N.", "byte 0")):
        result = coop("import", dump(tmp, data, "no"), "-o", os.path.join(tmp, "no.coop"))
        if data == b"\x80\x09N.":   # not even tried: no pickle begins so
            assert result.returncode == 1
            continue
        assert result.returncode == 1 and says in result.stderr, (data, result.stderr)
        assert not os.path.exists(os.path.join(tmp, "no.coop"))
    pipe = os.path.join(tmp, "pipe")
    os.mkfifo(pipe)
    for path in (pipe, "/dev/zero"):   # one would be waited for, the other read for ever
        result = coop("import", path, "-o", os.path.join(tmp, "no.coop"))
        assert result.returncode == 1 and "no regular file" in result.stderr, result.stderr


def offset_of(data, container):
    """Of the opcode before the text "mark" that begins a dict (or a list)."""
    at = None
    for opcode, argument, where in pickletools.genops(data):
        if opcode.name == container:
            at = where
        if argument == "mark":
            return at


def marked(fields, *without, **changes):
    return {"mark": 1, **{k: v for k, v in fields.items() if k not in without}, **changes}


def damages():
    """(what is wrong, snapshot, what is told): the damaged dict has "mark" in front."""
    kinds = {"segment": lambda s: (s["segments"], 0), "block": lambda s: (s["segments"][0]["blocks"], 0),
             "entry": lambda s: (s["device_traces"][0], 1), "oom": lambda s: (s["device_traces"][0], 5),
             "annotation": lambda s: (s["external_annotations"], 0), "top": None}
    cases = [("segment", ["address"], {}, "'address' is missing"), ("segment", ["total_size"], {}, "'total_size' is missing"),
             ("segment", [], {"address": "x"}, "'address' is no integer"), ("segment", [], {"total_size": 1 << 100}, "no integer of 64 bits"),
             ("segment", [], {"address": None}, "'address' is missing"), ("segment", [], {"total_size": -5}, "'total_size' is -5"),
             ("segment", [], {"device": -1}, "'device' is -1"), ("segment", [], {"device": 1 << 31}, "'device' is 2147483648"),
             ("segment", [], {"device": "cuda"}, "'device' is no integer"), ("segment", [], {"blocks": 3}, "'blocks' is no list"),
             ("segment", [], {"segment_pool_id": (1, 2, 3)}, "'segment_pool_id' is no pair"), ("segment", [], {"stream": []}, "'stream'"),
             ("segment", [], {"frames": 7}, "'frames' is no list"), ("segment", [], {"frames": [7]}, "'frames' has what is no frame"),
             ("segment", [], {"is_expandable": 2}, "'is_expandable' is 2"), ("segment", [], {"segment_type": 1}, "'segment_type' is no text"),
             ("block", ["size"], {}, "'size' is missing"), ("block", ["state"], {}, "'state' is missing"),
             ("block", [], {"state": 3}, "'state' is no text"), ("block", [], {"size": 0}, "has no bytes"),
             ("block", [], {"size": 21 * MIB}, "outside of its segment"), ("block", [], {"history": [1]}, None),
             ("block", [], {"frames": [{"line": "x"}]}, "no frame"), ("block", [], {"frames": {}}, "'frames' is no list"),
             ("entry", ["action"], {}, "'action' is missing"), ("entry", [], {"action": 3}, "'action' is missing or no text"),
             ("entry", ["addr"], {}, "'addr' is missing"), ("entry", ["size"], {}, "'size' is missing"),
             ("entry", [], {"addr": 1 << 63}, "'addr' is"), ("entry", [], {"size": 1 << 62}, "'size' is"),
             ("entry", [], {"time_us": 1.5}, "'time_us' is no integer"), ("entry", [], {"time_us": -1}, "'time_us' is -1"),
             ("entry", [], {"frames": "x"}, "'frames' is no list"), ("entry", [], {"pool_id": 3}, "'pool_id' is no pair"),
             ("entry", [], {"frames": [{"name": 3}]}, "no frame"), ("oom", ["size"], {}, "'size' is missing"),
             ("annotation", ["stage", "name"], {}, "without 'stage'"), ("annotation", ["time_us"], {}, "'time_us' is missing"),
             ("annotation", [], {"device": 1.5}, "'device' is no integer"),
             ("overlap", [], {}, "a segment overlaps another"),
             ("top", [], {"device_traces": 3}, "'device_traces' is no list"), ("top", [], {"external_annotations": {}}, "no list"),
             ("top", [], {"host_segments": 1}, "'host_segments' is no list"), ("top", [], {"host_traces": 1}, "'host_traces' is no list")]
    for kind, without, changes, says in cases:
        s = snapshots.v2_3()
        if kind == "overlap":
            s["segments"].append(marked(s["segments"][0], "blocks", address=BASE + MIB))
        elif kind == "top":
            s = marked(s, *without, **changes)
        else:
            where, i = kinds[kind](s)
            where[i] = marked(where[i], *without, **changes)
        yield (kind, without, changes), s, says


def test_damage_is_told_with_its_byte(tmp):
    for what, data, says in damages():
        path = dump(tmp, data, "bad")
        result = coop("import", path, "-o", os.path.join(tmp, "bad.coop"))
        with open(path, "rb") as f:
            at = offset_of(f.read(), "EMPTY_DICT")
        assert result.returncode == 1 and result.stdout == "", (what, result.stdout)
        if says is not None:
            assert f": byte {at}: " in result.stderr and says in result.stderr, (what, at, result.stderr)
        assert os.listdir(tmp) == ["bad.pickle"], os.listdir(tmp)
    for data, says in (({"segments": [["mark"]]}, "segment 0 of this list is no dict"),
                       ({"segments": [], "device_traces": [["mark"]]}, "entry 0 of this list is no dict"),
                       ({"segments": [], "device_traces": ["mark"]}, "the history of device 0 is no list")):
        path = dump(tmp, data, "bad")
        result = coop("import", path, "-o", os.path.join(tmp, "bad.coop"))
        assert result.returncode == 1 and ": byte " in result.stderr and says in result.stderr, result.stderr


def test_what_may_be_unknown_is_counted(tmp):
    s = snapshots.v2_3()
    s["segments"][0]["blocks"][1]["state"] = "on_its_way"
    s["segments"][0]["device"] = s["external_annotations"][0]["device"] = 70000
    s["device_traces"] = []
    i = Imported(tmp, s)
    assert [n for n in i.notes if "no history" not in n] == ["1 unknown state left out: on_its_way (1 time)",
                                                             "1 annotation left out: nothing of its device is known"], i.notes
    assert i.rows("SELECT device FROM pool") == [(70001,)] and i.meta("device") == "cuda:70000"


def test_stories_that_contradict_each_other(tmp):
    """Blocks across borders of segments, segments over blocks, frees of nothing: drawn as far as it goes, and sound."""
    for seed in range(12):
        i = Imported(tmp, snapshots.nonsense(seed), f"n{seed}")     # which runs coop check
    across = snapshots.v2_2()
    across["segments"] = [snapshots.segment(BASE + n * 2 * MIB, 2 * MIB, []) for n in (0, 1)]
    across["device_traces"] = [[snapshots.entry("alloc", BASE + MIB, 2 * MIB, 1)]]
    i = Imported(tmp, across)
    assert i.blocks() == [(MIB, 2 * MIB, 2 * MIB, 0, None)] and any("disagree" in n for n in i.notes), i.notes
    # before it, in it, after it
    assert i.rows("SELECT base, bytes FROM segment WHERE died_event IS NULL ORDER BY base") == [
        (0, MIB), (MIB, 2 * MIB), (3 * MIB, MIB)]


def test_files_are_not_overwritten(tmp):
    path, out = dump(tmp, snapshots.v2_2()), os.path.join(tmp, "s.coop")
    with open(out, "w") as f:
        f.write("mine")
    for args in ((), ("--force",)):
        result = coop("import", path, "-o", out, *args)
        assert result.returncode == 1 and open(out).read() == "mine", result.stderr
    os.remove(out)
    assert coop("import", path, "-o", out).returncode == 0
    assert "--force" in coop("import", path, "-o", out).stderr
    assert coop("import", path, "-o", out, "--force").returncode == 0
    assert sorted(os.listdir(tmp)) == ["s.coop", "s.pickle"], os.listdir(tmp)


sys.exit(tap.main(globals()))
