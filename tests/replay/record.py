#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""python -m coopscope.record: a small net whose program can be worked out by hand, and what is refused.

Usage: PYTHON record.py COOP PACKAGE, PACKAGE being the folder that holds coopscope. Prints TAP. All in one
process, as importing PyTorch takes longest.
"""
import contextlib
import gzip
import io
import json
import os
import subprocess
import sys

sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
import tap

COOP = os.path.abspath(sys.argv[1])
sys.path[0] = sys.argv[2]
from coopscope import record as recorder  # noqa: E402

# One layer, 256 x 512 to 128, SGD with momentum. Sizes in bytes: weight 262144, its momentum as much,
# input 524288, output 131072.
MODEL = """
import torch

def build(device):
    weight = torch.nn.Parameter(torch.empty(128, 512, device=device))
    x = torch.empty(256, 512, device=device)
    optimizer = torch.optim.SGD([weight], lr=0.1, momentum=0.9, **({"foreach": False}))

    def step():
        (x @ weight.t()).relu_().sum().backward()
        optimizer.step()
        weight.grad = None

    return step

def no_step(device):
    return 5

def reads_values(device):
    x = torch.empty(4, device=device)
    return lambda: x.sum().item()
"""


def record(tmp, *args, code=0):
    model = os.path.join(tmp, "model.py")
    with open(model, "w") as file:
        file.write(MODEL)
    out, err = io.StringIO(), io.StringIO()
    home = os.getcwd()
    os.chdir(tmp)
    try:
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            result = recorder.main([a.replace("MODEL", model) for a in args])
    except SystemExit as error:  # wrong use
        result = error.code
    finally:
        os.chdir(home)
    assert result == code, (result, out.getvalue(), err.getvalue())
    return err.getvalue()


def read(path):
    with gzip.open(path, "rt") as file:
        return [json.loads(line) for line in file]


def test_what_was_worked_out(tmp):
    record(tmp, "MODEL")
    lines = read(os.path.join(tmp, "model.jsonl.gz"))
    meta, ops = lines[0]["meta"], [line for line in lines if "op" in line]
    assert sorted(line["const"][1] for line in lines if "const" in line) == [262144, 262144, 524288]
    names = [op["op"] for op in ops]
    assert names[:3] == ["mm", "relu_", "sum"] and names.count("mm") == 2, names
    first = ops[0]
    # bytes decide: 524288 + 262144 + 131072 at 2e12 a second are 459 ns; 2 * 256 * 512 * 128 operations
    # at 19.5e12 a second are 1720: the larger one
    assert first["cost"] == 5000 + int(2 * 256 * 512 * 128 / 19.5e12 * 1e9), first
    assert ops[1]["in"] == ops[1]["mut"] == [first["out"][0][0]] and ops[1]["out"] == []
    assert ops[1]["cost"] == 5000 + int(2 * 131072 / 2e12 * 1e9)
    # forward until the sum; the gradient's product is backward; what writes the weight is the optimizer
    assert [op["phase"] for op in ops[:3]] == ["forward"] * 3
    assert [op["phase"] for op in ops if op["op"] == "mm"] == ["forward", "backward"]
    constants = {line["const"][0] for line in lines if "const" in line}
    written = [op for op in ops if set(op["mut"]) & constants]
    assert len(written) >= 2 and {op["phase"] for op in written} == {"optimizer"}
    # all that the step made is gone at its end, each once, and after its last use
    made = [i for op in ops for i, _ in op["out"]]
    gone = [line["rel"] for line in lines if "rel" in line]
    assert sorted(made) == sorted(gone), (made, gone)
    at = {line["rel"]: n for n, line in enumerate(lines) if "rel" in line}
    for n, line in enumerate(lines):
        assert all(i in constants or at[i] > n for i in line.get("in", ())), line
    assert meta["total_ns"] == sum(op["cost"] for op in ops) and meta["ops"] == len(ops)


def test_peak_is_the_engines(tmp):
    record(tmp, "MODEL", "-o", "x.jsonl")
    with open(os.path.join(tmp, "x.jsonl")) as file:
        meta = json.loads(file.readline())["meta"]
    result = subprocess.run([COOP, "replay", "--json", "x.jsonl"], capture_output=True, text=True, cwd=tmp)
    out = json.loads(result.stdout)
    assert (out["peak"], out["operators"], out["plain_ns"]) == (meta["peak"], meta["ops"], meta["total_ns"]), out
    result = subprocess.run([COOP, "replay", "--json", "--budget", str(meta["bottleneck"] - 512), "x.jsonl"],
                            capture_output=True, text=True, cwd=tmp)
    assert json.loads(result.stdout)["result"] == "no-bytes", result.stdout


def test_again_the_same(tmp):
    record(tmp, "MODEL", "-o", "a.jsonl.gz", "-q")
    record(tmp, "MODEL", "-o", "b.jsonl.gz", "-q")
    with open(os.path.join(tmp, "a.jsonl.gz"), "rb") as a, open(os.path.join(tmp, "b.jsonl.gz"), "rb") as b:
        assert a.read() == b.read()


def test_machines(tmp):
    costs = {}
    for machine in ("a100", "h100", "h200", "cpu"):
        record(tmp, "MODEL", "-o", machine + ".jsonl.gz", "--machine", machine)
        meta = read(os.path.join(tmp, machine + ".jsonl.gz"))[0]["meta"]
        assert meta["machine"]["name"] == machine and meta["machine"]["source"]
        costs[machine] = meta["total_ns"]
    assert costs["h200"] <= costs["h100"] < costs["a100"], costs


def test_what_is_refused(tmp):
    for args, says in ((("MODEL:none",), "no function none"), (("MODEL:no_step",), "not a function"),
                       (("MODEL:reads_values",), "(model.py:21)"), (("nothing.py",), "nothing.py"),
                       (("MODEL", "-o", "no/folder.gz"), "no/folder.gz")):
        result = record(tmp, *args, code=1)
        assert says in result and len(result.splitlines()) == 1 and len(result) < 400, result
    record(tmp, "MODEL", "--machine", "abacus", code=2)
    assert os.listdir(tmp) == ["model.py"] or sorted(os.listdir(tmp)) == ["__pycache__", "model.py"], os.listdir(tmp)


sys.exit(tap.main(globals()))
