#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A replay of a live trace, at the run's own budget and policy, makes the same decisions as the run did,
event for event: with the modelled costs and with those that were measured; straight from the trace and
through JSON lines; in a run that thrashes, that compacts, and that runs out of memory.

Usage: live.py COOP PYTHON. PYTHON has torch. Prints TAP.
"""
import json
import os
import sqlite3
import subprocess
import sys

sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
import tap

COOP, PYTHON = os.path.abspath(sys.argv[1]), sys.argv[2]

SCRIPT = """
import sys, torch
torch.manual_seed(0)
torch.set_num_threads(1)
nn = torch.nn
if sys.argv[1] == "mlp":
    net = nn.Sequential(*[m for _ in range(6) for m in (nn.Linear(256, 256), nn.ReLU())], nn.Linear(256, 10))
    x = torch.randn(512, 256)
else:
    net = nn.Sequential(nn.Conv2d(3, 16, 3, padding=1), nn.BatchNorm2d(16), nn.ReLU(inplace=True),
                        *[m for _ in range(4) for m in (nn.Conv2d(16, 16, 3, padding=1), nn.BatchNorm2d(16),
                                                        nn.ReLU(inplace=True), nn.Dropout(0.1))],
                        nn.MaxPool2d(4), nn.Flatten(), nn.Linear(16 * 64, 10))
    x = torch.randn(16, 3, 32, 32)
y = torch.randint(0, 10, (x.shape[0],))
optimizer = torch.optim.SGD(net.parameters(), lr=0.01, momentum=0.9)
for step in range(3):
    loss = nn.functional.cross_entropy(net(x), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(float(loss))
print(x.numpy().sum())   # the pointer leaves
"""

# What an event is about; texts, times and the costs learnt are not decisions, what is measured is no event's.
SKIP = "'meta', 'string', 'frame', 'stack', 'stat', 'warning', 'annotation', 'end'"
EVENTS = f"""SELECT l.label, e.block, e.tensor, e.op, e.addr, e.bytes, e.used, e.largest
             FROM event e JOIN enum_label l ON l.enum = 'event' AND l.value = e.kind
             WHERE l.label NOT IN ({SKIP}) ORDER BY e.seq"""
VICTIMS = "SELECT block, eviction, tensor, addr, bytes, h, own_cost, chain_cost, staleness FROM evicted ORDER BY block"


def query(path, sql):
    db = sqlite3.connect(path)
    try:
        return db.execute(sql).fetchall()
    finally:
        db.close()


def run(*args, ok=(0,)):
    result = subprocess.run([COOP, *map(str, args)], capture_output=True, text=True, timeout=200)
    assert result.returncode in ok, (args, result.returncode, result.stdout[-2000:], result.stderr[-2000:])
    return result


def peak(tmp, net):
    path = os.path.join(tmp, "free.coop")
    run("run", "-q", "-o", path, "--", PYTHON, os.path.join(tmp, "net.py"), net)
    return json.loads(run("info", "--json", path).stdout)["peak"]


def same(one, two, sql):
    a, b = query(one, sql), query(two, sql)
    for i, (x, y) in enumerate(zip(a, b)):
        assert x == y, f"row {i} of {len(a)}: the run {a[max(0, i - 3):i + 3]}, the replay {b[max(0, i - 3):i + 3]}"
    assert len(a) == len(b), (len(a), len(b))
    return len(a)


def compare(tmp, net, part, *options, ok=(0,)):
    with open(os.path.join(tmp, "net.py"), "w") as f:
        f.write(SCRIPT)
    live, again, program = (os.path.join(tmp, n) for n in ("live.coop", "again.coop", "live.jsonl.gz"))
    budget = int(part * peak(tmp, net))
    run("run", "-q", "--budget", budget, *options, "-o", live, "--", PYTHON, os.path.join(tmp, "net.py"), net, ok=ok)
    info = json.loads(run("info", "--json", live).stdout)
    run("replay", live, "-o", again, ok=(0, 1))
    assert same(live, again, EVENTS) > 500
    assert same(live, again, VICTIMS) == info["evictions"]
    run("export", live, "--to", "program", "--force", "-o", program)
    run("replay", program, "-o", again, ok=(0, 1))
    same(live, again, EVENTS)
    same(live, again, VICTIMS)
    return info


def test_measured_costs(tmp):
    assert compare(tmp, "mlp", 0.85)["evictions"] > 0


def test_modelled_costs(tmp):
    assert compare(tmp, "conv", 0.7, "--set", "cost=model")["evictions"] > 0


def test_statistics_dropout_in_place(tmp):
    info = compare(tmp, "conv", 0.6)
    assert info["evictions"] > 0 and info["recomputed"] > 0


def test_one_by_one(tmp):
    assert compare(tmp, "conv", 0.7, "--evictor", "dtr-eq")["evictions"] > 0
    assert compare(tmp, "conv", 0.8, "--evictor", "lru", "--set", "stress=9")["evictions"] > 100


def test_out_of_memory(tmp):
    info = compare(tmp, "mlp", 0.6, ok=(0, 1))
    assert info["out_of_memory"] > 0 or info["recomputed"] > 0


def test_no_limit_then_others(tmp):
    """A run without a limit is a program for any policy."""
    with open(os.path.join(tmp, "net.py"), "w") as f:
        f.write(SCRIPT)
    most = peak(tmp, "conv")
    path = os.path.join(tmp, "free.coop")
    out = json.loads(run("replay", path, "--json").stdout)
    assert (out["result"], out["peak"], out["evictions"]) == ("ok", most, 0), out
    for evictor in "coop", "dtr-eq", "lru":
        out = json.loads(run("replay", path, "--json", "--ratio", "0.7", "--evictor", evictor, ok=(0, 1)).stdout)
        assert out["evictions"] > 0 and out["peak"] <= 0.7 * most and out["result"] != "lost", out


sys.exit(tap.main(globals()))
