#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What coop export writes opens in the tools that it is for: the snapshot in PyTorch's own viewer, the
timeline in the message classes of the `perfetto` package, the tables in pyarrow and DuckDB.

Usage: tools.py COOP GEN_TRACE TOOL..., TOOL being torch, perfetto, pyarrow or duckdb. Prints TAP.
"""
import base64
import glob
import os
import pickle
import re
import sqlite3
import subprocess
import sys
import tempfile

sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
import tap

COOP, GEN = (os.path.abspath(p) for p in sys.argv[1:3])


def export(trace, tmp, to):
    path = os.path.join(tmp, "t." + to)
    subprocess.run([COOP, "export", "-f", trace, "--to", to, "-o", path], check=True)
    return path


def count(trace, sql):
    db = sqlite3.connect(trace)
    try:
        return db.execute(sql).fetchone()[0]
    finally:
        db.close()


def torch(trace, tmp):
    """The functions of `python -m torch.cuda._memory_viz`, and the command itself."""
    from torch.cuda import _memory_viz as viz
    path = export(trace, tmp, "pytorch")
    with open(path, "rb") as f:
        data = pickle.load(f)
    text = viz.segsum(data)
    assert "segments: 1" in text and f"total_reserved: {viz.Bytes(data['segments'][0]['total_size'])}" in text, text
    listing = viz.trace(data)
    allocs = count(trace, "SELECT count(*) FROM event WHERE kind IN (10, 14)")
    assert len(re.findall(r"^\w+ = \w+\[\d+:", listing, re.M)) == allocs > 1000, listing[:500]
    for plot in (viz.trace_plot, viz.segment_plot):
        page = plot(data)
        inside = [base64.b64decode(m) for m in re.findall(r"[A-Za-z0-9+/=]{1000,}", page)]
        assert any(pickle.loads(b)["device_traces"] == data["device_traces"] for b in inside), "the page holds the snapshot"
    out = os.path.join(tmp, "plot.html")
    subprocess.run([sys.executable, "-m", "torch.cuda._memory_viz", "trace_plot", path, "-o", out], check=True,
                   capture_output=True)
    assert os.path.getsize(out) > 10000


def perfetto(trace, tmp):
    """Every packet parses, no field is unknown to Perfetto, and they say what the trace says."""
    from google.protobuf.unknown_fields import UnknownFieldSet
    from perfetto.protos.perfetto.trace import perfetto_trace_pb2 as proto

    def known(message):
        assert len(UnknownFieldSet(message)) == 0, message
        for field, value in message.ListFields():
            if field.message_type is not None:
                for part in (value if hasattr(value, "append") else [value]):
                    known(part)

    with open(export(trace, tmp, "perfetto"), "rb") as f:
        data = f.read()
    whole = proto.Trace.FromString(data)
    kinds = {}
    for packet in whole.packet:
        known(packet)
        kind = packet.WhichOneof("data")
        if kind == "track_event":
            kind = proto.TrackEvent.Type.Name(packet.track_event.type)
        kinds[kind] = kinds.get(kind, 0) + 1
    ops = count(trace, "SELECT count(*) FROM op")
    ribbons = count(trace, "SELECT count(*) FROM step") + count(trace, "SELECT count(*) FROM event WHERE kind = 33")
    assert kinds["TYPE_SLICE_BEGIN"] == kinds["TYPE_SLICE_END"] == ops + ribbons, kinds
    assert kinds["TYPE_INSTANT"] >= count(trace, "SELECT count(*) FROM evicted") and kinds["clock_snapshot"] == 1, kinds
    assert kinds["TYPE_COUNTER"] > 1000 and kinds["track_descriptor"] >= 7, kinds


def pyarrow(trace, tmp):
    """The recipe of the manual: the tables of the CSV folder as Parquet, rows and types kept."""
    from pyarrow import csv, parquet
    folder = export(trace, tmp, "csv")
    for path in glob.glob(os.path.join(folder, "*.csv")):
        parquet.write_table(csv.read_csv(path, parse_options=csv.ParseOptions(newlines_in_values=True)), path[:-3] + "parquet")
    for view in ("event", "block", "operator", "evicted", "usage"):
        table = parquet.read_table(os.path.join(folder, view + ".parquet"))
        assert table.num_rows == count(trace, f"SELECT count(*) FROM v_{view}") > 0, view
    blocks = parquet.read_table(os.path.join(folder, "block.parquet"))
    assert sum(blocks["bytes"].to_pylist()) == count(trace, "SELECT sum(bytes) FROM block")
    assert str(blocks.schema.field("born_ns").type) == "int64" and blocks["died_ns"].null_count == count(
        trace, "SELECT count(*) FROM block WHERE died_ns IS NULL")
    # and the recipe without CSV between
    rows = sqlite3.connect(trace).execute("SELECT * FROM v_block")
    names = [column[0] for column in rows.description]
    parquet.write_table(pa_table(dict(zip(names, map(list, zip(*rows))))), os.path.join(tmp, "direct.parquet"))
    direct = parquet.read_table(os.path.join(tmp, "direct.parquet"))
    assert direct.num_rows == blocks.num_rows and direct["bytes"].to_pylist() == blocks["bytes"].to_pylist()
    assert direct.column_names == blocks.column_names


def pa_table(columns):
    import pyarrow as pa
    return pa.table(columns)


def duckdb(trace, tmp):
    """The CSV folder asked and written as Parquet; the trace itself, where DuckDB has its extension for SQLite."""
    import duckdb as db
    folder = export(trace, tmp, "csv")
    parquet = os.path.join(tmp, "duck.parquet")
    for view in ("event", "block", "operator", "evicted", "usage"):
        ((n,),) = db.sql(f"SELECT count(*) FROM '{folder}/{view}.csv'").fetchall()
        assert n == count(trace, f"SELECT count(*) FROM v_{view}") > 0, (view, n)
    db.sql(f"COPY (SELECT * FROM '{folder}/block.csv') TO '{parquet}'")
    total = count(trace, "SELECT sum(bytes) FROM block")
    types = dict(row[:2] for row in db.sql(f"DESCRIBE SELECT * FROM '{parquet}'").fetchall())
    assert db.sql(f"SELECT sum(bytes) FROM '{parquet}'").fetchall() == [(total,)] and types["born_ns"] == "BIGINT", types
    try:
        db.sql("LOAD sqlite")
    except db.Error:
        print("# DuckDB without its extension for SQLite: the CSV folder only")
        return
    db.sql(f"ATTACH '{trace}' AS t (TYPE sqlite)")
    assert db.sql("SELECT sum(bytes) FROM t.v_block").fetchall() == [(total,)]


with tempfile.TemporaryDirectory(prefix="coop tools ") as shared:
    made = os.path.join(shared, "a run.coop")
    subprocess.run([GEN, made, "22", "9000"], check=True)
    known = {"torch": torch, "perfetto": perfetto, "pyarrow": pyarrow, "duckdb": duckdb}
    status = tap.run([(tool, known[tool]) for tool in sys.argv[3:]], made, folder=shared)
sys.exit(status)
