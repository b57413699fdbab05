# SPDX-License-Identifier: Apache-2.0
"""test_notebook.py COOP PACKAGES: coopscope.start() and stop() in the middle of a program on real
PyTorch, as in a notebook: tensors exist before, and training goes on after."""

import json
import os
import subprocess
import sys

from support import contains, equal, main

COOP, PACKAGES = (os.path.abspath(path) for path in sys.argv[1:3])

TRAIN = """
import sys
import torch
torch.manual_seed(1)
torch.set_num_threads(1)
layers = [m for _ in range(6) for m in (torch.nn.Conv2d(16, 16, 3, padding=1), torch.nn.ReLU())]
net = torch.nn.Sequential(*layers)
x = torch.randn(8, 16, 64, 64)
optimizer = torch.optim.SGD(net.parameters(), lr=0.01, momentum=0.9)
def train(steps):
    for _ in range(steps):
        optimizer.zero_grad()
        loss = net(x).square().mean()
        loss.backward()
        optimizer.step()
        print(loss.item().hex(), flush=True)
"""


def run(w, script):
    env = {k: v for k, v in os.environ.items() if not k.startswith("COOPSCOPE")}
    env["PYTHONPATH"] = PACKAGES
    path = w.write("script.py", TRAIN + script)
    done = subprocess.run([sys.executable, path], env=env, cwd=w.folder, capture_output=True, text=True,
                          timeout=240)
    if done.returncode:
        raise AssertionError(done.stderr)
    return done.stdout, done.stderr


def rows(w, trace, sql):
    done = subprocess.run([COOP, "query", "--json", w.path(trace), sql], capture_output=True, text=True)
    return [tuple(row.values()) for row in json.loads(done.stdout)]


def check(w, trace):
    done = subprocess.run([COOP, "check", w.path(trace)], capture_output=True, text=True)
    equal((done.returncode, done.stderr), (0, ""))


def test_in_the_middle_of_a_program(w):
    plain = run(w, "train(5)\nprint(x.sum().item())\n")
    equal(run(w, "train(1)\n"
                 "import coopscope\n"
                 "coopscope.start(budget='14 MiB', trace='x.coop', evictor='coop', cost='model')\n"
                 "coopscope.annotate('go')\n"
                 "train(2)\n"
                 "assert coopscope.stats()['evictions'] > 0\n"
                 "assert coopscope.policy.budget == 14 << 20\n"
                 "coopscope.policy.budget = '15 MiB'\n"
                 "train(1)\n"
                 "coopscope.stop()\n"
                 "assert not coopscope.running()\n"
                 "train(1)\nprint(x.sum().item())\n"), plain)
    equal(rows(w, "x.coop", "SELECT count(*) > 0 AS n FROM v_evicted"), [(1,)])
    equal(rows(w, "x.coop", "SELECT old >> 20 AS o, new >> 20 AS n, source FROM v_policy WHERE param = 'budget'"),
          [(14, 14, "api"), (14, 15, "api"), (15, 0, "api")])  # lifted by stop(), to bring all back
    equal(rows(w, "x.coop", "SELECT source FROM v_policy WHERE param = 'stress'"), [("initial",)])
    info = subprocess.run([COOP, "info", "--json", w.path("x.coop")], capture_output=True, text=True)
    equal(json.loads(info.stdout)["budget"], 15 << 20)
    equal(rows(w, "x.coop", "SELECT text FROM annotation a JOIN string s ON s.id = a.string"), [("go",)])
    equal(rows(w, "x.coop", "SELECT count(*) AS n FROM gap"), [(0,)])
    check(w, "x.coop")


def test_to_the_end_of_the_program_and_twice(w):
    plain = run(w, "train(4)\n")
    equal(run(w, "import coopscope\n"
                 "coopscope.start(budget='14 MiB', trace='x.coop')\n"
                 "train(2)\n"
                 "coopscope.stop()\n"
                 "coopscope.start(budget='15 MiB', trace='y.coop')\n"
                 "train(2)\n"), plain)
    for trace in ("x.coop", "y.coop"):
        check(w, trace)
        equal(rows(w, trace, "SELECT exit_code FROM session"), [(0,)])


def test_what_cannot_be(w):
    out, err = run(w, "import coopscope\n"
                      "for bad in ({'budget': '14 MiX'}, {'budgett': 1}, {'evictor': 'cop'},\n"
                      "            {'budget': -1}, {'trace': '/nowhere/x.coop'}):\n"
                      "    try: coopscope.start(**bad)\n"
                      "    except (ValueError, RuntimeError) as e: print(type(e).__name__, e)\n"
                      "    assert not coopscope.running()\n"
                      "train(1)\n")
    lines = out.splitlines()
    equal([line.split()[0] for line in lines[:5]], ["ValueError"] * 4 + ["RuntimeError"])
    contains(lines[1], "budget")
    contains(lines[2], "coop")
    contains(lines[4], "/nowhere/x.coop")


def test_under_coop_run_start_is_said_and_does_nothing(w):
    path = w.write("script.py", "import torch, coopscope\n"
                                "coopscope.start(budget='1 GiB', trace='other.coop')\n"
                                "print(torch.ones(3).sum().item(), coopscope.policy.budget)\n")
    done = subprocess.run([COOP, "run", "--budget", "64MiB", "-o", w.path("x.coop"), "--",
                           sys.executable, path], cwd=w.folder, capture_output=True, text=True)
    equal((done.stdout, done.returncode), (f"3.0 {64 << 20}\n", 0))
    contains(done.stderr, "whose options hold")
    equal(rows(w, "x.coop", "SELECT param FROM v_policy WHERE source = 'flag'"), [("budget",)])
    equal(rows(w, "x.coop", "SELECT count(*) AS n FROM v_policy WHERE source <> 'flag' AND source <> 'initial'"), [(0,)])
    equal(os.path.exists(w.path("other.coop")), False)


if __name__ == "__main__":
    main(sys.modules["__main__"])
