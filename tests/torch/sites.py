#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What a trace says about where memory comes from: line and module of forward, of backward, of evictions.

    sites.py [--python INTERPRETER] --package FOLDER --coop PROGRAM
"""
import argparse
import json
import os
import subprocess
import sys
import tempfile

ENCODER, SIN, TWICE, HEAD = "encoder", "sin", "twice", "head"   # marks of lines below


def line_of(mark):
    with open(__file__) as text:
        return next(n for n, line in enumerate(text, 1) if line.rstrip().endswith("# " + mark))


def train(torch, coopscope, trace, stacks, budget=None):
    nn = torch.nn

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.encoder = nn.Sequential(nn.Linear(32, 64), nn.LayerNorm(64), nn.Linear(64, 64))
            self.head = nn.Linear(64, 8)

        def forward(self, x):
            y = self.encoder(x)                 # encoder
            y = torch.sin(y)                    # sin
            y = torch.sin(y) * torch.cos(y)     # twice
            return self.head(y)                 # head
    coopscope.start(trace=trace, stacks=stacks, budget=budget)
    net = Net()
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9)
    for step in range(3):
        with coopscope.annotate("step %d" % step):
            loss = net(torch.randn(256, 32)).pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        del loss
    coopscope.stop()


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--python")
    parser.add_argument("--package", required=True)
    parser.add_argument("--coop", required=True)
    options = parser.parse_args()
    if options.python and os.path.abspath(options.python) != os.path.abspath(sys.executable):
        os.execv(options.python, [options.python, os.path.abspath(__file__)] + sys.argv[1:])
    sys.path.insert(0, options.package)
    os.environ["PATH"] = os.path.dirname(os.path.abspath(options.coop)) + os.pathsep + os.environ["PATH"]
    import coopscope
    import torch
    exact = hasattr(torch._C, "_current_autograd_node")
    trace = os.path.join(tempfile.mkdtemp(prefix="coop-sites-"), "run.coop")
    failed = [0, 0]

    def ask(sql):
        out = subprocess.run([options.coop, "query", "--json", trace, sql], capture_output=True, text=True)
        if out.returncode:
            raise RuntimeError(out.stderr)
        return json.loads(out.stdout)

    def check(name, got, want):
        failed[0] += 1
        failed[1] += got != want
        print("%s %d - %s" % ("ok" if got == want else "not ok", failed[0], name))
        if got != want:
            print("# want %r\n# got  %r" % (want, got))

    def places(phase, name, where=""):
        rows = ask("SELECT DISTINCT line, module FROM v_operator WHERE phase = '%s' AND name LIKE 'aten.%s.%%' AND step = 1 "
                   "AND replay_of IS NULL %s ORDER BY line, module" % (phase, name, where))
        return [(int(r["line"]) if r["line"] is not None else None, r["module"]) for r in rows]

    print("TAP version 13")
    here = "AND file LIKE '%sites.py'"
    linear = [(line_of(ENCODER), "encoder.0"), (line_of(ENCODER), "encoder.2"), (line_of(HEAD), "head")]
    for stacks in ("first", "every"):
        train(torch, coopscope, trace, stacks)
        check(stacks + ": a Linear by its path", places("forward", "addmm", here), linear)
        check(stacks + ": a function twice in one module, by its line", places("forward", "sin"),
              [(line_of(SIN), "Net"), (line_of(TWICE), "Net")])
        found = places("backward", "mm")    # before 2.1 the first one is a guess
        check(stacks + ": backward of Linears where their forward was", found if exact else found[1:],
              linear if exact else linear[1:])
        check(stacks + ": backward of a norm", places("backward", "native_layer_norm_backward"),
              [(line_of(ENCODER), "encoder.1")])
        if exact:
            check(stacks + ": sin backwards", places("backward", "cos"), [(line_of(SIN), "Net"), (line_of(TWICE), "Net")])
        lost = ask("SELECT count (*) AS n FROM v_operator WHERE phase = 'backward' AND step = 1 AND line IS NULL")
        check(stacks + ": every operator of backward has a line", int(lost[0]["n"]), 0)
        check(stacks + ": blocks say it too", ask(
            "SELECT DISTINCT module FROM v_block WHERE operator LIKE 'aten.native_layer_norm.%'"), [{"module": "encoder.1"}])
        marks = [r["text"] for r in ask("SELECT s.text FROM annotation a JOIN string s ON s.id = a.string ORDER BY a.event")]
        check(stacks + ": annotations", marks[:3], ["step 0", "end of step 0", "step 1"])
        os.unlink(trace)
    train(torch, coopscope, trace, "off")
    check("off: no line", places("forward", "addmm"), [(None, None)])
    os.unlink(trace)
    train(torch, coopscope, trace, "first", budget="520 KiB")
    modules = ask("SELECT DISTINCT b.module FROM evicted e JOIN v_block b ON b.id = e.block WHERE b.module IS NOT NULL")
    check("evicted tensors have their module", len(modules) > 0, True)
    print("1..%d" % failed[0])
    return 1 if failed[1] else 0


if __name__ == "__main__":
    sys.exit(main())
