#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The promise of Coopscope, measured on the demos: same bits in a hard budget.

    demos.py --build BUILD --python INTERPRETER [--quick] [--only NAME] [--keep FOLDER]

Each demo runs plain; with evictor `none`, which tells peak, state and floor; then in the budget
B = max (state + 50 % of (peak - state), 1.15 x floor). Everything printed must be equal: losses in
all digits, hashes of parameters, buffers, gradients, random state. Prints TAP and a table.
"""
import argparse
import sys

from support import (HONEST_MALLOC, Failure, Report, World, difference, marks, mib, run)

DEMOS = ("resnet", "transformer", "unet")
BEFORE = 64 << 10   # tensors that PyTorch makes before the adapter is there


def budget_of(info):
    peak, state, floor = info["peak"], info["state_bytes"], info["floor_bytes"]
    budget = max(state + (peak - state) // 2, int(1.15 * floor))
    return (budget + 511) // 512 * 512


def same_bits(report, name, plain, other):
    found = difference(plain, other)
    return report.check(name, other.code == 0 and found is None,
                        found or ("exit %d" % other.code if other.code else ""))


def none_run(world, report, demo, args, plain, counted):
    """What the script needs. Returns coop info's figures."""
    trace = world.path("%s-none.coop" % demo)
    result = run(world.coop_run(world.demo(demo, *args), trace, "--evictor", "none"))
    same_bits(report, "%s: bits with evictor none" % demo, plain, result)
    info = world.info(trace)
    apart = abs(info["peak"] - counted["exit"]["tensor_peak"])
    report.check("%s: peak agrees with the counter of a plain run" % demo,
                 apart <= 0.01 * info["peak"] + (1 << 20),
                 "%s and %s MiB" % (mib(info["peak"]), mib(counted["exit"]["tensor_peak"])))
    report.check("%s: none evicts nothing" % demo, info["evictions"] == 0)
    return info


def memory_checks(world, report, demo, trace, budget, counts, plain_counts):
    used = world.one(trace, "SELECT max (used) FROM event")
    report.check("%s: the pool's use <= budget in every event" % demo, 0 < used <= budget,
                 "%s of %s MiB" % (mib(used), mib(budget)))
    top = world.one(trace, "SELECT max (addr + bytes) FROM v_event WHERE kind = 'alloc'")
    report.check("%s: no block lies past the budget" % demo, 0 < top <= budget, mib(top))
    outside = max(c["tensor_peak"] + c["adapter_peak"] for c in counts.values())
    told = world.query(trace, "SELECT value FROM stat WHERE name = 'outside_peak_bytes'")
    told = int(told[0]["value"]) if told else 0
    report.check("%s: no tensor memory outside the pool but what is counted as such" % demo,
                 outside <= BEFORE + told and told <= 0.01 * budget, "%d bytes, %d told" % (outside, told))
    worst = 0
    for step, count in counts.items():
        if step in plain_counts and step != "exit":
            base = plain_counts[step]["rss_anon"] - plain_counts[step]["tensor"]
            worst = max(worst, count["rss_anon"] - base)
    report.check("%s: resident memory less the script's own <= budget + 5 %%" % demo,
                 0 < worst <= 1.05 * budget, "%s of %s MiB" % (mib(worst), mib(budget)))
    return used, worst


def budget_run(world, report, demo, args, plain, plain_counts, info):
    budget = budget_of(info)
    trace, file = world.path("%s.coop" % demo), world.path("%s-count.jsonl" % demo)
    result = run(world.coop_run(world.counted(world.demo(demo, *args), file), trace, "--budget", budget),
                 watch=True)
    same_bits(report, "%s: bits in the budget" % demo, plain, result)
    after = world.info(trace)
    evictions, remade = after["evictions"], after["recomputed"]
    report.check("%s: evictions and recomputations" % demo, evictions > 0 and remade > 0,
                 "%d and %d" % (evictions, remade))
    used, worst = memory_checks(world, report, demo, trace, budget, marks(file), plain_counts)
    found = world.check(trace)
    report.check("%s: coop check" % demo, found is None, (found or "").splitlines()[0] if found else "")
    report.row(demo=demo, peak=mib(info["peak"]), state=mib(info["state_bytes"]), floor=mib(info["floor_bytes"]),
               budget=mib(budget), used=mib(used), evictions=evictions, recomputed=remade,
               resident=mib(worst), plain_s="%.1f" % plain.seconds, coop_s="%.1f" % result.seconds)


def stress_run(world, report, demo, size, steps):
    args = ("--size", size, "--steps", steps)
    plain = run(world.demo(demo, *args))
    trace = world.path("%s-stress.coop" % demo)
    result = run(world.coop_run(world.demo(demo, *args), trace, "--set", "stress=1"))
    same_bits(report, "%s: bits with stress = 1 (%s, %d steps)" % (demo, size, steps), plain, result)
    report.check("%s: stress evicts" % demo, world.info(trace)["evictions"] > 0, "%.0f s" % result.seconds)


def too_small_run(world, report, demo, args, plain, info):
    """The error, the report, and that its advice holds."""
    trace = world.path("%s-oom.coop" % demo)
    budget = int(info["floor_bytes"] * 0.75)
    result = run(world.coop_run(world.demo(demo, *args), trace, "--budget", budget))
    report.check("%s: a budget under the floor ends in PyTorch's error" % demo,
                 result.code == 1 and "RuntimeError" in result.err, "exit %d" % result.code)
    rows = world.query(trace, "SELECT * FROM v_oom ORDER BY event DESC LIMIT 1")
    if not report.check("%s: the trace has the report" % demo, len(rows) == 1):
        return
    last = rows[0]
    known = ("asked", "free", "largest", "advice", "budget", "evictable", "pinned_operator", "pinned_constant",
             "pinned_escaped", "pinned_user", "pinned_unmanaged")
    unknown = [k for k in known if last.get(k) is None]
    report.check("%s: the report is complete" % demo, not unknown, ", ".join(unknown))
    missing = [word for word in ("asked", "free", "largest", "pinned", "constant", "operator") if word not in result.err]
    report.check("%s: the terminal has the report" % demo, not missing, ", ".join(missing))
    advice = int(last["advice"])
    again = run(world.coop_run(world.demo(demo, *args), world.path("%s-advice.coop" % demo), "--budget", advice))
    same_bits(report, "%s: the advised budget does (%s MiB, had %s)" % (demo, mib(advice), mib(budget)), plain, again)


def long_run(world, report, steps, size):
    """300 steps: resident memory of step 50 and of the last within 1 %."""
    args = ("--size", size, "--steps", steps, "--report")
    plain = run(world.demo("resnet", "--size", size, "--steps", steps))
    short = ("--size", size, "--steps", 3)
    trace = world.path("long-none.coop")
    run(world.coop_run(world.demo("resnet", *short), trace, "--evictor", "none"))
    budget = budget_of(world.info(trace))
    trace = world.path("long.coop")
    result = run(world.coop_run(world.demo("resnet", *args), trace, "--budget", budget))
    if not same_bits(report, "resnet: bits of %d steps (%s) in %s MiB" % (steps, size, mib(budget)), plain, result):
        return
    first, last = result.resident(50), result.resident(steps)
    report.check("resnet: resident memory of steps 50 and %d within 1 %%" % steps,
                 abs(last - first) <= 0.01 * first, "%s and %s MiB" % (mib(first), mib(last)))


def one_demo(world, report, demo, args, options):
    file = world.path("%s-plain.jsonl" % demo)
    plain = run(world.counted(world.demo(demo, *args), file), env=HONEST_MALLOC)
    if not report.check("%s: plain run" % demo, plain.code == 0, plain.err.strip()[-200:]):
        return
    counts = marks(file)
    info = none_run(world, report, demo, args, plain, counts)
    budget_run(world, report, demo, args, plain, counts, info)
    if not options.quick or demo == "resnet":
        too_small_run(world, report, demo, args, plain, info)
    stress_run(world, report, demo, "tiny" if options.quick else "small", 2)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--build", required=True)
    parser.add_argument("--python", required=True, help="interpreter that has torch")
    parser.add_argument("--quick", action="store_true", help="two steps, and the rarer checks on one demo: for every change")
    parser.add_argument("--only", help="one demo, or `long`: 300 steps of the ResNet")
    parser.add_argument("--long-size", default="normal", help="size of the net of the long run")
    parser.add_argument("--keep", help="folder for the traces; else a temporary one")
    options = parser.parse_args()
    world = World(options.build, options.python, options.keep)
    report = Report("%s, torch %s, traces in %s" % (world.python, world.torch_version(), world.folder))
    args = ("--steps", 2 if options.quick else 5)
    for demo in DEMOS:
        if options.only in (None, demo):
            try:
                one_demo(world, report, demo, args, options)
            except Failure as failure:
                report.check("%s: %s" % (demo, failure), False)
    if options.only in (None, "long") and not options.quick:
        long_run(world, report, 300, options.long_size)
    return report.end()


if __name__ == "__main__":
    sys.exit(main())
