# SPDX-License-Identifier: Apache-2.0
"""What the acceptance scripts share: running a demo plain and under `coop run`, and reading what
both left. Needs nothing but Python; PyTorch belongs to the interpreter under test."""
import ctypes
import json
import os
import signal
import subprocess
import tempfile
import threading
import time

HERE = os.path.dirname(os.path.abspath(__file__))
DEMOS = os.path.join(HERE, "..", "..", "data", "demos")
# Without these, glibc keeps what a script freed, and its resident memory says nothing.
HONEST_MALLOC = {"MALLOC_MMAP_THRESHOLD_": "131072", "MALLOC_TRIM_THRESHOLD_": "131072"}


class World:
    """A build to test, an interpreter with torch, and a folder for what the runs leave."""

    def __init__(self, build, python, keep=None):
        self.build = os.path.abspath(build)
        self.coop = os.path.join(self.build, "src", "cli", "coop")
        self.counter = os.path.join(self.build, "tests", "support", "libcount-alloc.so")
        self.python = python
        self.folder = keep or tempfile.mkdtemp(prefix="coop-accept-")
        os.makedirs(self.folder, exist_ok=True)
        for program in (self.coop, self.counter):
            if not os.path.exists(program):
                raise SystemExit("not built: " + program)

    def path(self, name):
        return os.path.join(self.folder, name)

    def demo(self, name, *args):
        return [self.python, os.path.join(DEMOS, name + ".py")] + [str(a) for a in args]

    def counted(self, command, file):
        """The command under the counter of tests/support."""
        if os.path.exists(file):
            os.unlink(file)
        return ["/usr/bin/env", "LD_PRELOAD=" + self.counter, "COUNT_ALLOC_FILE=" + file] + command

    def coop_run(self, command, trace, *options):
        return [self.coop, "run", "-o", trace] + [str(o) for o in options] + ["--"] + command

    def torch_version(self):
        out = subprocess.run([self.python, "-c", "import torch; print(torch.__version__)"],
                             capture_output=True, text=True)
        return out.stdout.strip()

    def info(self, trace):
        out = subprocess.run([self.coop, "info", "--json", trace], capture_output=True, text=True)
        if out.returncode:
            raise Failure("coop info: " + out.stderr.strip())
        return json.loads(out.stdout)

    def query(self, trace, sql):
        """Rows as dictionaries."""
        out = subprocess.run([self.coop, "query", "--json", trace, sql], capture_output=True, text=True)
        if out.returncode:
            raise Failure("coop query: " + out.stderr.strip())
        return json.loads(out.stdout)

    def one(self, trace, sql):
        """The first column of the first row."""
        return next(iter(self.query(trace, sql)[0].values()))

    def check(self, trace):
        """None, or what `coop check` found."""
        out = subprocess.run([self.coop, "check", trace], capture_output=True, text=True)
        return None if out.returncode == 0 else (out.stdout + out.stderr).strip()


class Failure(Exception):
    pass


class Result:
    def __init__(self, code, out, err, seconds, resident_peak):
        self.code, self.out, self.err, self.seconds = code, out, err, seconds
        self.resident_peak = resident_peak
        lines = out.splitlines()
        self.lines = [line for line in lines if not line.startswith("report ")]
        self.reports = [line.split() for line in lines if line.startswith("report ")]

    def step_seconds(self):
        return [float(r[3]) for r in self.reports]

    def resident(self, step):
        return next(int(r[5]) for r in self.reports if int(r[1]) == step)


def run(command, env=None, timeout=1800, watch=False):
    """Runs to the end. watch: samples the anonymous memory of the Python process meanwhile."""
    start = time.monotonic()
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                               env=dict(os.environ, **(env or {})), start_new_session=True)
    peak, done = [0], threading.Event()

    def sample():
        while not done.wait(0.01):
            for pid in descendants(process.pid):
                peak[0] = max(peak[0], rss_anon(pid))
    if watch:
        threading.Thread(target=sample, daemon=True).start()
    try:
        out, err = process.communicate(timeout=timeout)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        out, err = process.communicate()
        err += "\nno end after %d s" % timeout
    done.set()
    return Result(process.returncode, out, err, time.monotonic() - start, peak[0])


def descendants(pid):
    found = []
    try:
        with open("/proc/%d/task/%d/children" % (pid, pid)) as file:
            children = [int(child) for child in file.read().split()]
    except OSError:
        return found
    for child in children:
        found += [child] + descendants(child)
    return found


def rss_anon(pid):
    try:
        with open("/proc/%d/status" % pid) as status:
            for line in status:
                if line.startswith("RssAnon:"):
                    return int(line.split()[1]) * 1024
    except OSError:
        pass
    return 0


def become_subreaper():
    """Children of a killed tool come to us, so that their exit status can be read."""
    PR_SET_CHILD_SUBREAPER = 36
    if ctypes.CDLL(None, use_errno=True).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "prctl")


def marks(file):
    """What the counter wrote, by step: {1: {...}, ..., "exit": {...}}."""
    found = {}
    with open(file) as lines:
        for line in lines:
            entry = json.loads(line)
            words = entry["mark"].split()
            found[int(words[1]) if words[0] == "step" else words[0]] = entry
    return found


def difference(plain, other):
    """None if both printed the same, else the first line that differs."""
    for number, (a, b) in enumerate(zip(plain.lines, other.lines), 1):
        if a != b:
            return "line %d: plain `%s`, here `%s`" % (number, a, b)
    if len(plain.lines) != len(other.lines):
        return "%d lines instead of %d; %s" % (len(other.lines), len(plain.lines),
                                               " | ".join(other.err.strip().splitlines()[-3:]))
    return None


def mib(n):
    return "%.1f" % (n / (1 << 20))


class Report:
    """Named checks with what was measured; prints as it goes, and a table at the end."""

    def __init__(self, title):
        self.rows, self.failed, self.number = [], 0, 0
        print("# " + title, flush=True)

    def check(self, name, ok, text=""):
        self.number += 1
        text = " ".join(text.split())
        self.failed += not ok
        print("%s %d - %s%s" % ("ok" if ok else "not ok", self.number, name, " # " + text if text else ""), flush=True)
        return ok

    def row(self, **cells):
        self.rows.append(cells)

    def end(self):
        print("1..%d" % self.number)
        keys = list(dict.fromkeys(key for row in self.rows for key in row))
        if self.rows:
            width = {k: max([len(k)] + [len(str(r.get(k, ""))) for r in self.rows]) for k in keys}
            print("# " + "  ".join(k.ljust(width[k]) for k in keys))
            for row in self.rows:
                print("# " + "  ".join(str(row.get(k, "")).ljust(width[k]) for k in keys))
        return 1 if self.failed or not self.number else 0
