#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Trains real architectures plain and under Coopscope, and compares their bits.

    zoo.py --package FOLDER [--coop PROGRAM] [--python INTERPRETER] [--filter WORD] [--steps N]
           [--profile P]... [--json FILE] [-v]

The packages torchvision, transformers and timm are used where they can be imported; a model that this
version of a package does not have is named as such. Each model runs in children of one process, see
harness.py. With a small batch: plain twice (what differs between those is PyTorch's own), `stress` = 1,
and `moving` = stress 7 and all that stays moves. With a larger one: plain, `none` with a trace, which tells
peak, state, floor and how much could be evicted, and the budget max (state + 50 % of (peak - state),
1.15 x floor), under the evictor coop (`budget`) and under coop-plus (`plus`). Losses, gradients, parameters, buffers, optimizer state and the random state must be equal in every bit. Prints TAP, and
rows of a table to FILE as JSON lines; zoo_table.py makes the table of them.
"""
import argparse
import json
import os
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
PACKAGES = ("torchvision", "transformers", "timm")
PROFILES = ("stress", "moving", "budget", "plus")
EVICTORS = {"budget": "coop", "plus": "coop-plus"}
SMALL, LARGE = 2, 32   # batches
TIMEOUT = 600.0


def arguments():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--python", help="interpreter that has torch and the packages")
    parser.add_argument("--package", required=True, help="folder that holds the package coopscope")
    parser.add_argument("--coop", help="the program coop; else that of the package's build")
    parser.add_argument("--counter", help="libcount-alloc.so of tests/support: counts the plain run from outside")
    parser.add_argument("--filter", default="", help="only models whose package or name has this word")
    parser.add_argument("--profile", action="append", choices=PROFILES, help="only these")
    parser.add_argument("--steps", type=int, default=2)
    parser.add_argument("--json", help="append the rows of the table here")
    parser.add_argument("-v", "--verbose", action="store_true")
    return parser.parse_args()


def optimizer_for(torch, number, net):
    parameters = [p for p in net.parameters() if p.requires_grad]
    make = (lambda: torch.optim.SGD(parameters, lr=0.01, momentum=0.9),
            lambda: torch.optim.AdamW(parameters, lr=1e-3),
            lambda: torch.optim.Adam(parameters, lr=1e-3, foreach=True),
            lambda: torch.optim.RMSprop(parameters, lr=1e-3))
    return make[number % 4]()


def seed_others():
    """Some models draw their masks with numpy or Python."""
    import random

    import numpy
    random.seed(1)
    numpy.random.seed(1)


def training(number, builder, steps, size):
    """The case: a few steps, with accumulation or clipping for some."""
    def run(t):
        torch = t.torch
        seed_others()
        net, batch, loss_of = builder(torch, size)
        net.train()
        optimizer = optimizer_for(torch, number, net)
        for step in range(steps):
            optimizer.zero_grad(set_to_none=number % 3 != 0)
            for part in range(1 + (number % 5 == 4)):
                loss = loss_of(net, batch())
                loss.backward()
                t.out("loss%d.%d" % (step, part), loss.detach())
                del loss
            t.note("state", t.stats()["live"])   # with the gradients: all of them are there at once
            if number % 2:
                torch.nn.utils.clip_grad_norm_(net.parameters(), 1.0)
            optimizer.step()
        t.model("net", net)
        t.optimizer("optimizer", optimizer)
    return run


def coop_json(coop, *words):
    out = subprocess.run([coop] + list(words), capture_output=True, text=True)
    if out.returncode:
        raise RuntimeError("coop %s: %s" % (words[0], out.stderr.strip()))
    return json.loads(out.stdout)


# Of the blocks that lie in the pool when it is fullest, those whose tensor was free to go to its end.
EVICTABLE = """
WITH top AS (SELECT seq FROM event ORDER BY used DESC, seq LIMIT 1)
SELECT sum (b.bytes) AS bytes, sum (CASE WHEN t.pin = 0 THEN b.bytes ELSE 0 END) AS evictable
FROM top, block b LEFT JOIN tensor t ON t.id = b.tensor
WHERE b.born_event <= top.seq AND (b.died_event IS NULL OR b.died_event > top.seq)"""


def measure(harness, torch, case, coop, folder):
    """The run that evicts nothing, with a trace."""
    trace = os.path.join(folder, "none.coop")
    for name in os.listdir(folder):
        os.unlink(os.path.join(folder, name))
    result = harness.run_child(torch, case, "none", 0, trace=trace)
    if "error" not in result:
        info = coop_json(coop, "info", "--json", trace)
        row = coop_json(coop, "query", "--json", trace, EVICTABLE)[0]
        result["info"] = {k: info[k] for k in ("peak", "state_bytes", "floor_bytes", "evictions")}
        kept = max(0, result["notes"].get("state", 0) - info["state_bytes"])   # gradients
        result["info"]["state_bytes"] += kept
        result["info"]["floor_bytes"] += kept
        result["info"]["evictable"] = int(row["evictable"] or 0) / max(1, int(row["bytes"] or 0))
    return result


def budget_of(info):
    budget = max(info["state_bytes"] + (info["peak"] - info["state_bytes"]) // 2, int(1.15 * info["floor_bytes"]))
    return (budget + 511) // 512 * 512


def counted(harness, torch, case, folder):
    """Peak of the plain run as libcount-alloc saw it from outside; 0 without it."""
    file = os.path.join(folder, "count.jsonl")
    result = harness.run_child(torch, case, "plain", 0, count=file)
    try:
        with open(file) as lines:
            marks = [json.loads(line) for line in lines]
        return result, marks[-1]["tensor_peak"] - marks[0]["tensor"]
    except (OSError, IndexError):
        return result, 0


def first_fault(profile, faults):
    return "%s: %s" % (profile, faults[0].strip().split("\n")[-1][:160])


def run_profile(harness, torch, case, profile, budget, plain, row, say):
    start = time.monotonic()
    case.params = {"evictor": EVICTORS[profile]} if budget else {}
    kind = "budget" if budget else profile
    result = harness.run_child(torch, case, kind, budget)
    faults = harness.faults_of(case, kind, result, plain, budget)
    say(profile, faults, result)
    stats = result.get("stats", {})
    row["identical"] &= not faults
    row[profile] = {"evictions": stats.get("evictions", 0), "replays": stats.get("replays", 0),
                    "moves": stats.get("moves", 0), "peak": stats.get("peak", 0), "same": not faults,
                    "extra": stats.get("replay_ns", 0) / max(1, stats.get("op_ns", 0)),
                    "seconds": round(time.monotonic() - start, 1)}
    if faults:
        row.setdefault("note", first_fault(profile, faults))


def run_small(harness, torch, case, profiles, row, say):
    """Hard on every operator, so on a small batch."""
    plain = harness.run_child(torch, case, "plain", 0)
    again = harness.run_child(torch, case, "plain", 0) if "error" not in plain else plain
    faults = harness.faults_of(case, "plain", again, plain, 0)
    say("plain", faults, again)
    if faults:
        row.update(identical=False, note=first_fault("plain", faults))
        return False
    for profile in profiles:
        run_profile(harness, torch, case, profile, 0, plain, row, say)
    return True


def run_large(harness, torch, case, profiles, coop, folder, row, say):
    """In a budget, on a batch whose activations outweigh the state."""
    plain, row["counted"] = counted(harness, torch, case, folder)
    if "error" in plain:
        say("plain, large", [plain["error"]], plain)
        row.update(identical=False, note=first_fault("plain, large", [plain["error"]]))
        return
    none = measure(harness, torch, case, coop, folder)
    faults = harness.faults_of(case, "none", none, plain, 0)
    say("none", faults, none)
    row["identical"] &= not faults
    if "info" not in none:
        row["note"] = "none: no end"
        return
    row.update(none["info"], limit=budget_of(none["info"]))
    for profile in profiles:
        run_profile(harness, torch, case, profile, row["limit"], plain, row, say)


def importable(name):
    try:
        __import__(name)
        return True
    except ImportError as error:
        print("# %s: not here (%s)" % (name, error))
        return False


def main():
    options = arguments()
    if options.python and os.path.abspath(options.python) != os.path.abspath(sys.executable):
        os.execv(options.python, [options.python, os.path.abspath(__file__)] + sys.argv[1:])
    if options.counter and os.path.abspath(options.counter) not in os.environ.get("LD_PRELOAD", ""):
        os.environ["LD_PRELOAD"] = os.path.abspath(options.counter)
        os.execv(sys.executable, [sys.executable, os.path.abspath(__file__)] + sys.argv[1:])
    sys.path.insert(0, options.package)
    sys.path.insert(0, HERE)
    os.environ.setdefault("HF_HUB_OFFLINE", "1")
    import torch
    if hasattr(torch, "compile"):
        import torch._dynamo  # noqa: F401
    torch.set_num_threads(1)
    import harness
    import zoo_models
    if not options.coop:
        from coopscope._collector import find_coop
        options.coop = find_coop()
    os.environ["PATH"] = os.path.dirname(os.path.abspath(options.coop)) + os.pathsep + os.environ["PATH"]
    packages = [name for name in PACKAGES if importable(name)]
    numbers = [0, 0]

    def say(profile, faults, result):
        numbers[0] += 1
        numbers[1] += bool(faults)
        print("%s %d - %s (%s)" % ("not ok" if faults else "ok", numbers[0], case.name, profile))
        for fault in faults[:6]:
            print("\n".join("# " + line for line in fault.rstrip().split("\n")))
        if faults and result.get("stderr"):
            print("\n".join("# stderr: " + line for line in result["stderr"].rstrip().split("\n")[-8:]))
        if options.verbose:
            print("# %s %s" % (result.get("stats", ""), result.get("info", "")))
        sys.stdout.flush()

    print("TAP version 13")
    print("# torch %s, Python %s, %s" % (torch.__version__, sys.version.split()[0],
                                        ", ".join("%s %s" % (p, sys.modules[p].__version__) for p in packages)))
    with tempfile.TemporaryDirectory(prefix="coop-zoo-") as folder:
        for number, (package, name, builder) in enumerate(zoo_models.MODELS):
            if package not in packages or options.filter not in package + "." + name:
                continue
            start, row = time.monotonic(), {"identical": True}
            profiles = options.profile or PROFILES

            def case_of(size):
                made = harness.Case(training(number, builder, options.steps, size), 0, 1, 1, True, TIMEOUT, PROFILES, None, {})
                made.name = "%s %s" % (package, name)
                return made
            case = case_of(SMALL)
            small = [p for p in profiles if p not in EVICTORS]
            large = [p for p in profiles if p in EVICTORS]
            if run_small(harness, torch, case, small, row, say) and large:
                run_large(harness, torch, case_of(LARGE), large, options.coop, folder, row, say)
            row.update(model=name, package=package, torch=str(torch.__version__), version=sys.modules[package].__version__)
            print("# %s: %.0f s" % (case.name, time.monotonic() - start), flush=True)
            if options.json:
                with open(options.json, "a") as out:
                    out.write(json.dumps(row) + "\n")
    print("1..%d" % numbers[0])
    return 1 if numbers[1] or not numbers[0] else 0


if __name__ == "__main__":
    sys.exit(main())
