#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""coop replay, sweep, merge, report, import and export, from outside.

Usage: commands.py COOP FIXTURES. Prints TAP.
"""
import csv
import gzip
import json
import math
import os
import signal
import sqlite3
import subprocess
import sys
import time
import xml.dom.minidom

sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
import tap

COOP, FIXTURES = (os.path.abspath(p) for p in sys.argv[1:3])
UNET = os.path.join(FIXTURES, "oracle", "unet.jsonl.gz")
PROGRAMS = os.path.join(FIXTURES, "..", "..", "data", "programs")
BERT = os.path.join(FIXTURES, "oracle", "bert_large.jsonl.gz")

# A makes 1 KiB for 10 ns, B doubles it for 20, C needs both.
SMALL = """{"op":"A","in":[],"out":[[1,1024]],"mut":[],"cost":10}
{"op":"B","in":[1],"out":[[2,1024]],"mut":[],"cost":20}
{"op":"C","in":[1,2],"out":[[3,1024]],"mut":[],"cost":30}
"""


def coop(*args, timeout=100):
    return subprocess.run([COOP, *map(str, args)], capture_output=True, text=True, timeout=timeout)


def done(*args):
    result = coop(*args)
    assert result.returncode == 0, (args, result.returncode, result.stdout, result.stderr)
    assert result.stderr == "", result.stderr
    return result.stdout


def refused(*args, code, says):
    result = coop(*args)
    assert result.returncode == code, (args, result.returncode, result.stdout, result.stderr)
    assert result.stdout == "" and len(result.stderr.splitlines()) == 1, (result.stdout, result.stderr)
    assert says in result.stderr, (says, result.stderr)


def rows(path, sql="SELECT * FROM run ORDER BY digest, evictor, allocator, ratio_ppm, settings"):
    db = sqlite3.connect(path)
    try:
        return db.execute(sql).fetchall()
    finally:
        db.close()


def results(path):
    return rows(path, "SELECT program, evictor, settings, ratio_ppm, result, overhead, evictions FROM run"
                      " ORDER BY 1, 2, 3, 4")


def small(tmp):
    path = os.path.join(tmp, "small.jsonl")
    with open(path, "w") as f:
        f.write(SMALL)
    return path


def test_replay_says_what_was_worked_out(tmp):
    path = small(tmp)
    out = json.loads(done("replay", path, "--json"))
    assert (out["result"], out["peak"], out["plain_ns"], out["cost_ns"]) == ("ok", 3072, 60, 60)
    assert out["budget"] is None and out["ratio"] is None and out["fragmentation"] is None
    out = json.loads(done("replay", path, "--json", "--ratio", "1", "--set", "stress=1", "--evictor", "lru"))
    # after each operator all is evicted: A again for B; A, B (on A's) again for C: A 2, B 1
    assert (out["budget"], out["cost_ns"], out["recomputed"]) == (3072, 60 + 10 + 10 + 20, 3), out
    assert abs(out["overhead"] - 100 / 60) < 1e-12
    assert "finished" in done("replay", path)


def test_moves_take_time(tmp):
    program = os.path.join(PROGRAMS, "resnet50.jsonl.gz")   # bandwidth 2e12, launch 5000
    out = json.loads(done("replay", program, "--json", "--ratio", "0.4"))
    assert out["moves"] > 20 and out["result"] == "ok", out
    assert abs(out["move_ns"] - (5000 * out["moves"] + out["moved_bytes"] / 1000)) <= out["moves"], out
    assert abs(out["overhead"] - (out["cost_ns"] + out["move_ns"]) / out["plain_ns"]) < 1e-12, out
    again = os.path.join(tmp, "again.jsonl")
    done("import", program, "-o", again)
    assert json.loads(done("replay", again, "--json", "--ratio", "0.4")) == out
    # without a machine nothing is known of a copy
    with open(again) as f:
        first, rest = f.readline(), f.read()
    meta = json.loads(first)
    assert meta["meta"].pop("machine")["bandwidth"] == 2e12
    with open(again, "w") as f:
        f.write(json.dumps(meta) + "\n" + rest)
    out = json.loads(done("replay", again, "--json", "--ratio", "0.4", "--set", "copy_rate=1000"))
    assert out["moves"] > 20 and out["move_ns"] == 0 and out["overhead"] == out["cost_ns"] / out["plain_ns"], out


def test_replay_that_fails(tmp):
    result = coop("replay", small(tmp), "--budget", "2KiB", "--json")
    assert result.returncode == 1 and result.stderr == "", result
    out = json.loads(result.stdout)
    assert out["result"] == "no-bytes" and out["out_of_memory"]["asked"] == 1024, out


def test_replay_writes_a_trace(tmp):
    trace = os.path.join(tmp, "unet.coop")
    out = json.loads(done("replay", UNET, "--ratio", "0.6", "--set", "density=0.004", "-o", trace, "--json"))
    assert "nothing wrong" in done("check", trace)
    info = json.loads(done("info", "--json", trace))
    assert info["meta"]["clock"] == "virtual" and info["exit_code"] == 0
    for ours, theirs in (("evictions", "evictions"), ("recomputed", "recomputed"), ("peak", "peak"),
                         ("operators", "operators"), ("recomputed_ns", "recomputed_ns")):
        assert info[ours] == out[theirs], (ours, info[ours], out[theirs])
    # the trace is a program itself, and under its own policy it says the same again
    again = json.loads(done("replay", trace, "--json"))
    assert again["as_recorded"] and again["evictions"] == out["evictions"] and again["cost_ns"] == out["cost_ns"]
    assert json.loads(done("replay", trace, "--json", "--budget", "16GiB"))["evictions"] == 0
    events = "SELECT ts, kind, block, tensor, op, addr, bytes, used, largest, rest FROM event ORDER BY seq"
    first = rows(trace, events)
    done("replay", UNET, "--ratio", "0.6", "--set", "density=0.004", "-o", trace)
    assert rows(trace, events) == first


def test_replay_is_the_same_every_time(tmp):
    lines = []
    for name in ("a", "b"):
        trace, export = os.path.join(tmp, name + ".coop"), os.path.join(tmp, name + ".jsonl")
        done("replay", UNET, "--ratio", "0.5", "-o", trace)
        done("export", trace, "--to", "jsonl", "-o", export)
        with open(export) as f:
            lines.append(f.read())
        time.sleep(0.01)
    assert len(lines[0]) > 100000 and lines[0] == lines[1]


def typed(text, *args):
    return subprocess.run([COOP, "replay", *map(str, args), "--pause-each"], input=text, capture_output=True, text=True,
                          timeout=100)


def test_pause_each(tmp):
    path = small(tmp)
    whole = typed("\n" * 200, path)
    assert whole.returncode == 0 and "finished" in whole.stdout, whole
    lines = [line for line in whole.stdout.splitlines() if "largest hole" in line]
    numbers = [int(line.split()[0]) for line in lines]
    assert len(lines) > 10 and numbers == sorted(set(numbers)) and numbers == list(range(numbers[0], numbers[-1] + 1))
    third = typed("3\nq\n", path)   # the first, and the third after it
    assert third.stdout.splitlines() == [lines[0], lines[3]] and third.returncode == 0, third
    evict = typed("evict\nq\n", path, "--set", "stress=1")
    assert evict.stdout.splitlines()[0] == lines[0] and "evict" in evict.stdout.splitlines()[1], evict.stdout
    assert "the kind of an event" in typed("nonsense\nq\n", path).stderr
    assert typed("", path).stdout.splitlines() == lines[:1]   # no input left is the end
    refused("replay", path, "--pause-each", "--json", code=2, says="--pause-each")


def test_programs_that_come_with_it(tmp):
    names = sorted(n for n in os.listdir(PROGRAMS) if n.endswith(".gz"))
    assert len(names) == 11, names
    for name in names:
        with gzip.open(os.path.join(PROGRAMS, name), "rt") as f:
            meta = json.loads(f.readline())["meta"]
        out = json.loads(done("replay", os.path.join(PROGRAMS, name), "--json", "--set", "hold=0"))
        assert (out["peak"], out["operators"], out["plain_ns"]) == (meta["peak"], meta["ops"], meta["total_ns"]), out


def test_wrong_use(tmp):
    path = small(tmp)
    refused("replay", code=2, says="give one program")
    refused("replay", path, "--ratio", "0", code=2, says="--ratio")
    refused("replay", path, "--ratio", "0.5", "--budget", "1MB", code=2, says="give one")
    refused("replay", path, "--evictor", "cop", code=2, says="did you mean coop?")
    refused("replay", path, "--set", "densty=1", code=2, says="did you mean density?")
    refused("replay", path, "--most", "0.5", code=2, says="--most")
    refused("replay", os.path.join(tmp, "none"), code=1, says="No such file")
    refused("replay", COOP, code=1, says=COOP)
    refused("sweep", path, code=2, says="-o FILE.db")
    refused("sweep", path, "-o", "x", "--ratios", "1:2", code=2, says="--ratios")
    refused("sweep", path, "-o", "x", "--shard", "3/2", code=2, says="--shard")
    refused("sweep", path, "-o", "x", "--set", "budget=1", code=2, says="--ratios")
    refused("sweep", path, "-o", path, code=1, says=path)
    refused("merge", path, "-o", os.path.join(tmp, "m.db"), code=1, says=path)
    refused("report", path, "-o", tmp, code=1, says=path)
    refused("export", path, "--to", "pdf", code=2, says="unknown format")
    refused("import", path, "-o", path, code=1, says="--force")


def test_import_and_export(tmp):
    path = os.path.join(tmp, "again.jsonl")
    assert "3 operators" in done("import", small(tmp), "-o", path)
    assert json.loads(done("replay", path, "--json"))["plain_ns"] == 60
    done("export", path, "--to", "program", "-o", path + ".gz")
    assert json.loads(done("replay", path + ".gz", "--json"))["plain_ns"] == 60


def sweep(db, *args):
    return json.loads(done("sweep", UNET, "--evictors", "coop,lru", "--ratios", "1:0.4:0.1",
                           "--set", "groups=1,2", "-q", "--json", "-o", db, *args))


def test_sweep_is_the_sum_of_replays(tmp):
    db = os.path.join(tmp, "s.db")
    out = sweep(db, "-j2")
    assert out["runs"] == 2 * 2 * 7 and out["finished"] + out["failed"] == out["runs"], out
    assert out["failed"] > 0
    for program, evictor, settings, ppm, result, overhead, evictions in results(db):
        one = json.loads(coop("replay", UNET, "--evictor", evictor, "--set", settings, "--ratio",
                              ppm / 1e6, "--json").stdout)
        assert (one["result"], one["evictions"]) == (result, evictions), (evictor, ppm, one)
        assert (one["overhead"] if result == "ok" else None) == overhead
    reasons = rows(db, "SELECT count(*) FROM run WHERE (result = 'ok') != (reason IS NULL)")
    assert reasons == [(0,)]
    again = sweep(db)
    assert again["runs"] == 0 and again["there_already"] == out["runs"]


def test_shards_and_merge(tmp):
    whole, one, two, all_ = (os.path.join(tmp, n) for n in ("whole.db", "one.db", "two.db", "all.db"))
    n = sweep(whole)["runs"]
    assert sweep(one, "--shard", "1/2")["runs"] + sweep(two, "--shard", "2/2")["runs"] == n
    assert f"{n} runs, {n} of them new, 0 were" in done("merge", one, two, "-o", all_)
    assert results(all_) == results(whole)
    assert f"{n} runs, 0 of them new" in done("merge", whole, "-o", all_)
    with sqlite3.connect(two) as db:
        db.execute("UPDATE run SET overhead = 7 WHERE overhead IS NOT NULL")
    result = coop("merge", two, "-o", all_)
    assert result.returncode == 1 and "different results" in result.stderr, result
    assert results(all_) == results(whole)


def test_killed_sweep_goes_on(tmp):
    whole, db = os.path.join(tmp, "w.db"), os.path.join(tmp, "k.db")
    command = ["sweep", UNET, BERT, "--evictors", "coop,lru", "--ratios", "1:0.5:0.05", "-q", "--json", "-j", "2"]
    n = json.loads(done(*command, "-o", whole))["runs"]
    kept = 0
    for round_, sig in enumerate((signal.SIGKILL, signal.SIGINT, signal.SIGKILL)):
        process = subprocess.Popen([COOP, *command, "-o", db], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        deadline = time.time() + 60
        while process.poll() is None and time.time() < deadline:
            try:
                if rows(db, "SELECT count(*) FROM run")[0][0] >= kept + 3:
                    break
            except sqlite3.Error:
                pass
            time.sleep(0.01)
        process.send_signal(sig)
        process.wait(30)
        now = rows(db, "SELECT count(*) FROM run")[0][0]
        assert now >= kept, (round_, now, kept)
        kept = now
    assert kept >= 3
    last = json.loads(done(*command, "-o", db))
    assert last["runs"] + kept == n, (last, kept, n)
    assert results(db) == results(whole)
    assert sorted(os.listdir(tmp)) == ["k.db", "w.db"], os.listdir(tmp)   # one file each


def test_matrix(tmp):
    db, folder = os.path.join(tmp, "m.db"), os.path.join(tmp, "report")
    for allocators, sets in (("merge,class", []), ("page", ["--set", "page=4096,2MiB"])):
        done("sweep", UNET, "--evictors", "coop,lru", "--allocators", allocators, "--ratios", "1,0.8,0.6,0.4,0.2", "-q", *sets,
             "-o", db)
    done("report", db, "-o", folder)
    with open(os.path.join(folder, "matrix.csv"), newline="") as f:
        table = {row.pop("evictor"): row for row in csv.DictReader(f)}
    assert set(table) == {"coop", "lru"} and set(table["lru"]) == {"merge", "class", "page, page=4096", "page, page=2097152"}, table
    for evictor, row in table.items():
        for column, text in row.items():
            allocator, _, settings = column.partition(", ")
            found = rows(db, f"SELECT result, min(overhead, 3) FROM run WHERE evictor = '{evictor}' AND allocator = '{allocator}'"
                             f" AND settings = '{settings}' AND ratio_ppm BETWEEN 400000 AND 999999")
            values = [overhead if result == "ok" else 3 for result, overhead in found]
            assert len(values) == 3
            mean = math.exp(sum(map(math.log, values)) / 3)
            assert abs(float(text.split(",")[0].split()[0]) - mean) <= 0.0005001, (evictor, column, text, mean)
            ended = sum(result == "ok" for result, _ in found)
            assert (f"({100 * ended / 3:.0f} %)" in text) == (ended < 3), (text, found)
    figure = xml.dom.minidom.parse(os.path.join(folder, "page-size.svg"))
    assert len(figure.getElementsByTagName("polyline")) == 2
    with open(os.path.join(folder, "report.md")) as f:
        assert "| evictor | " in f.read()


def test_report(tmp):
    db, folder = os.path.join(tmp, "s.db"), os.path.join(tmp, "report")
    n = sweep(db)["runs"]
    assert f"{n} runs" in done("report", db, "-o", folder)
    names = sorted(os.listdir(folder))
    assert {"index.html", "report.md", "runs.csv", "minimum.csv", "matrix.csv", "unet-overhead.svg"} <= set(names), names
    for name in names:
        if name.endswith(".svg"):
            xml.dom.minidom.parse(os.path.join(folder, name))
    with open(os.path.join(folder, "runs.csv"), newline="") as f:
        table = list(csv.DictReader(f))
    assert len(table) == n
    want = {(e, s, p): (r, o) for _, e, s, p, r, o, _ in results(db)}
    for row in table:
        result, overhead = want[row["evictor"], row["settings"], round(float(row["ratio"]) * 1e6)]
        assert row["result"] == result
        assert (row["overhead"] == "") == (overhead is None)
        assert overhead is None or abs(float(row["overhead"]) - overhead) < 1e-5
    with open(os.path.join(folder, "minimum.csv"), newline="") as f:
        minimum = {(r["policy"]): float(r["minimum"]) for r in csv.DictReader(f)}
    for (evictor, settings) in {k[:2] for k in want}:
        least = min(p for (e, s, p), (r, _) in want.items() if (e, s) == (evictor, settings) and r == "ok")
        assert abs(minimum[f"{evictor}, {settings}"] - least / 1e6) < 1e-6
    with open(os.path.join(folder, "index.html")) as f:
        page = f.read()
    assert "http://" not in page.replace("http://www.w3.org/2000/svg", "") and "<script" not in page
    assert page.count("<svg") >= 4 and "coop, groups=2" in page


sys.exit(tap.main(globals()))
