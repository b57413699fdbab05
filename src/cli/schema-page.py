# SPDX-License-Identifier: Apache-2.0
"""The page about the trace's schema, out of the schema itself and of what schema.c says of columns.

schema-page.py SCHEMA.SQL SCHEMA.C STORE.H OUT.MD [--strict]. Strict: fails if a column of any table or view is
not explained.
"""
import re
import sqlite3
import sys

# Columns of tables that no view shows, or that mean something else there: "table.column", or "column".
TABLES = {
    "meta": "facts of the run: command line, versions, where it came from",
    "session": "one row: when the run began and ended, and how",
    "enum_label": "names of the numbers that other tables hold",
    "string": "texts, each once",
    "frame": "a line of a script",
    "stack": "a tree of frames: a stack is a frame and the stack that called it",
    "pool": "a pool of memory",
    "segment": "ranges of the pool that the device backs",
    "event": "every event, without loss; all other tables follow from it",
    "op": "operators",
    "tensor": "versions of storages",
    "block": "lives of ranges of memory",
    "eviction": "searches for victims",
    "evicted": "victims",
    "policy_change": "values that parameters took",
    "oom": "requests that could not be served",
    "step": "where steps begin",
    "annotation": "marks of the user's own",
    "warning": "things that a person should know",
    "gap": "where events are missing",
    "layout_keyframe": "the whole layout at some events, so that any moment is a layout and a short replay",
    "usage_lod": "memory in use over time, on nine scales: level L has buckets of 2^(20 + 3 L) ns",
    "stat": "totals of the run and of the recording",
}
COLUMNS = {
    "key": "name of the fact", "value": "its value", "end_ns": "when it ended, ns since 1970; NULL if unknown",
    "session.start_ns": "when it began, ns since 1970", "state": "how it ended (enum_label 'state'); running without a writer: interrupted",
    "exit_code": "of the script; the signal if it was killed", "pid": "process that wrote the file",
    "enum": "which numbers: event, kind, pin, phase, source, state, or a parameter", "label": "the name",
    "text": "the text", "parent": "the stack that called it (stack.id)", "frame": "innermost frame (frame.id)",
    "depth": "frames in it", "shown": "innermost frame of a script of the user's own, else `frame`",
    "frame.file": "string.id", "frame.func": "string.id", "device": "0 is the host, n + 1 is cuda:n",
    "allocator": "how blocks are laid out (enum_label 'allocator')", "capacity": "bytes of address space",
    "pool": "pool.id", "base": "where it begins on the pool's map", "stack": "stack.id", "event.ts": "ns since the run began",
    "ts": "ns since the run began", "rest": "the fields without a column, packed (LEB128)",
    "op.name": "string.id", "tensor.dtype": "string.id", "event.kind": "enum_label 'event'", "tensor.kind": "enum_label 'kind', as last known",
    "tensor.pin": "enum_label 'pin', as last known", "op.phase": "enum_label 'phase'", "block.ended": "enum_label 'event'",
    "policy_change.source": "enum_label 'source'", "annotation.string": "string.id", "code": "which warning",
    "first": "number of the first event that is missing", "missing": "how many", "entities": "blocks, tensors and operators in it",
    "model": "the layout, packed", "level": "scale", "bucket": "time, in units of the scale", "used_last": "bytes in blocks at its end",
    "largest_last": "largest free range at its end", "pinned_last": "bytes that could not be evicted, at its end",
    "n": "events in it", "stat.name": "name of the total", "usage_lod.evictions": "blocks evicted in that time",
    "usage_lod.handovers": "tensors that came back in that time",
}


def entries(source, name):
    body = re.search(r"static const Entry %s\[\] = \{(.*?)\n\};" % name, source, re.S)[1]
    return {k: v.replace('\\"', '"') for k, v in re.findall(r'\{ "([^"]+)",\s*"((?:[^"\\]|\\.)*)" \}', body)}


def missing(what):
    print(f"schema: nothing explains {what}", file=sys.stderr)
    if "--strict" in sys.argv:
        sys.exit(1)
    return "?"


def explain(columns, table, column):
    for name in (f"{table}.{column}", column):
        for where in (COLUMNS, columns) if table in TABLES else (columns,):
            if name in where:
                return where[name]
    if re.fullmatch(r".*\bid", column):
        return "its number"
    return missing(f"column {column} of {table}")


def main():
    schema, source, header = (open(path).read() for path in sys.argv[1:4])
    views, columns = entries(source, "views"), entries(source, "columns")
    version = re.search(r"COOP_SCHEMA_VERSION (\d+)", header)[1]
    db = sqlite3.connect(":memory:")
    db.executescript(schema)
    out = [f"# The trace, version {version} of its schema", "",
           "A trace is one SQLite file (`application_id` 0x434F4F50, `user_version` the version of the schema). Times are ns since the",
           "run began, sizes bytes, costs ns; addresses are offsets on the pool's map. NULL is unknown or none. Columns named `event`",
           "and `*_event` are numbers of events. The views are the interface and stay; tables may change with the version. Older",
           "versions are read as they are; `coop check --repair` brings a file up to date.", ""]
    for title, kind, meaning in (("Views", "view", views), ("Tables", "table", TABLES)):
        out += [f"## {title}", ""]
        for (name,) in db.execute("SELECT name FROM sqlite_schema WHERE type = ? AND name NOT LIKE 'sqlite_%' ORDER BY name", (kind,)):
            if name not in meaning:
                meaning[name] = missing(f"{kind} {name}")
            out += [f"### {name}", "", meaning[name][0].upper() + meaning[name][1:] + ".", "", "| column | meaning |", "|---|---|"]
            out += [f"| {row[1]} | {explain(columns, name, row[1])} |" for row in db.execute(f"PRAGMA table_info ({name})")]
            out.append("")
    with open(sys.argv[4], "w") as page:
        page.write("\n".join(out))


main()
