#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Kill tests both ways, on a real training run.

    kills.py --build BUILD --python INTERPRETER [--random N]

SIGKILL of the tool: training goes on to its normal end with the same results, and the trace up to
then is good and says that it was interrupted. SIGKILL of the training: all that it had written is in
the trace, which says how it ended. SIGSTOP of the tool for longer than the ring lasts: training goes
on, and the trace tells the gap. --random N: only SIGKILL of the tool, at N random moments. Prints TAP.
"""
import argparse
import os
import random
import signal
import subprocess
import sys
import time

from support import DEMOS, Failure, Report, World, become_subreaper, descendants, difference, run

ARGS = ("--size", "small", "--steps", 100)


def start(world, command):
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                            start_new_session=True, env=dict(os.environ, PYTHONUNBUFFERED="1"))


def wait_for_step(process, step):
    """Reads lines until that step is printed; returns what was read."""
    lines = []
    for line in process.stdout:
        lines.append(line.rstrip("\n"))
        if line.startswith("step %d " % step):
            return lines
    raise Failure("the run ended early: " + process.stderr.read()[-400:])


def python_of(process):
    """The process that trains."""
    for pid in descendants(process.pid):
        with open("/proc/%d/cmdline" % pid, "rb") as file:
            if os.fsencode(DEMOS) in file.read():
                return pid
    raise Failure("the training process is not there")


class Lines:
    """Looks like a Result to difference()."""

    def __init__(self, lines, err=""):
        self.lines, self.err = lines, err


def counts_match(world, trace):
    """Sequence numbers without a hole from the first to the last row."""
    row = world.query(trace, "SELECT count (*) AS n, max (seq) AS last FROM event")[0]
    return int(row["n"]) == int(row["last"]) + 1, "%s rows, last %s" % (row["n"], row["last"])


def tool_killed(world, report, plain, budget):
    trace = world.path("tool-killed.coop")
    process = start(world, world.coop_run(world.demo("resnet", *ARGS), trace, "--budget", budget))
    lines = wait_for_step(process, 10)
    trainer = python_of(process)
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    lines += [line.rstrip("\n") for line in process.stdout]     # ends when the trainer has ended
    errors = process.stderr.read()
    status = os.waitpid(trainer, 0)[1]
    report.check("tool killed: training ends normally", status == 0, "wait status %d %s" % (status, errors[-200:]))
    found = difference(plain, Lines(lines, errors))
    report.check("tool killed: the same bits", found is None, found or "")
    state = world.info(trace)["run_state"]
    report.check("tool killed: the trace says that it was interrupted", state == "interrupted", str(state))
    found = world.check(trace)
    report.check("tool killed: what is in the trace is good", found is None, (found or "").split("\n")[0])
    report.check("tool killed: no hole in what is there", *counts_match(world, trace))


def tool_killed_anywhere(world, report, times):
    """At a moment between its first breath and the end of a short run."""
    args = ("--size", "tiny", "--steps", 40)
    plain = run(world.demo("resnet", *args))
    trace = world.path("anywhere.coop")
    begin = time.monotonic()
    run(world.coop_run(world.demo("resnet", *args), trace, "--evictor", "none"))
    length, info = time.monotonic() - begin, world.info(trace)
    for share in (0.8, 0.9, 0.97):   # so small a net has little to evict
        budget = info["state_bytes"] + int(share * (info["peak"] - info["state_bytes"]))
        whole = run(world.coop_run(world.demo("resnet", *args), trace, "--budget", budget))
        if whole.code == 0:
            break
    found = difference(plain, whole)
    report.check("the run that is killed evicts, and has the same bits", found is None and world.info(trace)["evictions"] > 0,
                 found or "%d evictions" % world.info(trace)["evictions"])
    seed = random.randrange(1 << 32)
    moments, bad = random.Random(seed), []
    print("# seed %d, a run takes %.1f s" % (seed, length), flush=True)
    for number in range(times):
        if os.path.exists(trace):
            os.unlink(trace)
        process = start(world, world.coop_run(world.demo("resnet", *args), trace, "--budget", budget))
        time.sleep(moments.uniform(0, length))
        trainers = descendants(process.pid)
        os.kill(process.pid, signal.SIGKILL)
        process.wait()
        lines = [line.rstrip("\n") for line in process.stdout]
        errors = process.stderr.read()
        status = [os.waitpid(pid, 0)[1] for pid in trainers[:1]]
        # killed before it had started the script, or just when the script had printed its last line
        found = difference(plain, Lines(lines, errors)) if trainers else None
        found = found or (any(status) and "wait status %s" % status)
        if os.path.exists(trace) and os.path.getsize(trace) > 0 and trainers:
            found = found or world.check(trace)
        if found:
            bad.append("%d: %s %s" % (number, found, errors[-200:]))
    report.check("tool killed at %d random moments: same bits, good traces" % times, not bad, "; ".join(bad[:3]))


def training_killed(world, report, budget):
    trace = world.path("training-killed.coop")
    process = start(world, world.coop_run(world.demo("resnet", *ARGS), trace, "--budget", budget))
    wait_for_step(process, 10)
    os.kill(python_of(process), signal.SIGKILL)
    process.stdout.read()
    errors = process.stderr.read()
    code = process.wait()
    report.check("training killed: coop ends with 128 + 9", code == 137, "exit %d %s" % (code, errors[-200:]))
    state = world.info(trace)["run_state"]
    report.check("training killed: the trace says so", state in ("killed", "interrupted"), str(state))
    found = world.check(trace)
    report.check("training killed: the trace is good", found is None, (found or "").split("\n")[0])
    report.check("training killed: no hole in it", *counts_match(world, trace))
    steps = int(world.one(trace, "SELECT count (*) FROM step"))
    report.check("training killed: it reaches the last step that was printed", steps >= 9, "%d steps" % steps)


def tool_stopped(world, report, plain, budget):
    """A ring too small for the time that the collector sleeps."""
    trace = world.path("tool-stopped.coop")
    process = start(world, world.coop_run(world.demo("resnet", *ARGS), trace, "--budget", budget,
                                          "--ring", "64KiB"))
    lines = wait_for_step(process, 5)
    os.kill(process.pid, signal.SIGSTOP)
    begin = time.monotonic()
    lines += wait_for_step(process, 60)
    seconds = time.monotonic() - begin
    os.kill(process.pid, signal.SIGCONT)
    lines += [line.rstrip("\n") for line in process.stdout]
    errors = process.stderr.read()
    code = process.wait()
    report.check("tool stopped: training went on", code == 0, "55 steps took %.1f s; exit %d" % (seconds, code))
    found = difference(plain, Lines(lines, errors))
    report.check("tool stopped: the same bits", found is None, found or "")
    gaps = world.query(trace, "SELECT count (*) AS n, sum (missing) AS missing FROM gap")[0]
    report.check("tool stopped: the gap is told in the trace", int(gaps["n"]) >= 1 and int(gaps["missing"]) > 0,
                 "%s gaps, %s events" % (gaps["n"], gaps["missing"]))
    report.check("tool stopped: and on the terminal", "missing" in errors or "lost" in errors or "dropped" in errors,
                 errors[-200:].replace("\n", " "))
    rows = world.query(trace, "SELECT count (*) AS n, max (seq) AS last FROM event")[0]
    total = int(rows["n"]) + int(gaps["missing"] or 0)
    report.check("tool stopped: rows and missing events make up the sequence", total == int(rows["last"]) + 1,
                 "%s rows + %s missing, last %s" % (rows["n"], gaps["missing"], rows["last"]))


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--build", required=True)
    parser.add_argument("--python", required=True, help="interpreter that has torch")
    parser.add_argument("--keep", help="folder for the traces; else a temporary one")
    parser.add_argument("--random", type=int, metavar="N", help="kill the tool at N random moments instead")
    options = parser.parse_args()
    world = World(options.build, options.python, options.keep)
    become_subreaper()
    report = Report("%s, torch %s" % (world.python, world.torch_version()))
    if options.random:
        tool_killed_anywhere(world, report, options.random)
        return report.end()
    plain = run(world.demo("resnet", *ARGS))
    trace = world.path("none.coop")
    run(world.coop_run(world.demo("resnet", "--size", "small", "--steps", 3), trace, "--evictor", "none"))
    info = world.info(trace)
    budget = info["state_bytes"] + int(0.75 * (info["peak"] - info["state_bytes"]))
    for test in (lambda: tool_killed(world, report, plain, budget),
                 lambda: training_killed(world, report, budget),
                 lambda: tool_stopped(world, report, plain, budget)):
        try:
            test()
        except (Failure, KeyError) as failure:
            report.check("not run to its end: %r" % failure, False)
    return report.end()


if __name__ == "__main__":
    sys.exit(main())
