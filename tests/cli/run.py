#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""coop run, collect and attach, from outside: exit codes, signals, what is refused, what is said.

Usage: run.py COOP FAKE_TARGET. Prints TAP.
"""
import json
import os
import pty
import re
import resource
import select
import signal
import sqlite3
import subprocess
import sys
import time

sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
import tap

COOP, TARGET = (os.path.abspath(p) for p in sys.argv[1:3])
FOREVER = ["--events", "100000000", "--rate", "20000"]


def coop(*args, cwd=None, env=None):
    return subprocess.run([COOP, *args], capture_output=True, text=True, cwd=cwd, env=env, timeout=60)


def trace_state(path):
    with sqlite3.connect(path) as db:
        return db.execute("SELECT state, exit_code FROM session").fetchone()


def wait_until(condition, seconds=20):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "timed out"
        time.sleep(0.01)


def events_of(path):
    try:
        with sqlite3.connect(f"file:{path}?mode=ro", uri=True) as db:
            return db.execute("SELECT max(seq) FROM event").fetchone()[0] or 0
    except sqlite3.Error:
        return 0


def run_then(tmp, signum, *target_args):
    """Starts an endless run, sends coop a signal once events come. Returns exit code, stdout, trace."""
    trace = os.path.join(tmp, f"{int(signum)}.coop")
    process = subprocess.Popen([COOP, "run", "-o", trace, "--", TARGET, *FOREVER, *target_args],
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    wait_until(lambda: events_of(trace) > 1000)
    process.send_signal(signum)
    out, _ = process.communicate(timeout=30)
    return process.returncode, out, trace


NO_MOUNTS = "SKIP this system mounts nothing for users"


def may_mount():
    return subprocess.run(["unshare", "-rm", "mount", "-t", "tmpfs", "none", "/mnt"], capture_output=True).returncode == 0


def refused(args, *says, code=2):
    result = coop(*args)
    assert result.returncode == code, (args, result)
    for word in says:
        assert word in result.stderr, (args, word, result.stderr)
    assert result.stderr.count("\n") == 1, result.stderr
    assert result.stdout == ""


# ---- what is refused ---------------------------------------------------------------------------


def test_names(tmp):
    run = ["run"]
    tail = ["--", TARGET]
    refused(run + ["--evictor", "cop"] + tail, "evictor", "cop", "did you mean coop")
    refused(run + ["--evictor", "dtr-qe"] + tail, "did you mean dtr-eq")
    refused(run + ["--evictor", "zzzzzzzz"] + tail, "there are: coop")
    refused(run + ["--allocator", "merg"] + tail, "did you mean merge")
    refused(run + ["--set", "staleness_exponnet=1"] + tail, "did you mean staleness_exponent")
    refused(run + ["--set", "chain=unoin"] + tail, "did you mean union")
    refused(run + ["--set", "groups=7"] + tail, "groups", "between 1 and 6")
    refused(run + ["--set", "groups"] + tail, "KEY=VALUE")
    refused(run + ["--budgte", "1GB"] + tail, "did you mean --budget")
    refused(["rnu"], "did you mean run")
    refused(run, "which command")


def test_budgets(tmp):
    tail = ["--", TARGET, "--events", "10"]
    refused(["run", "--budget", "0"] + tail, "0 leaves no memory")
    refused(["run", "--budget=-5MB"] + tail, "negative")
    refused(["run", "--budget", "1,5 GB"] + tail, "1,5 GB", "comma")
    refused(["run", "--budget", "300 MBB"] + tail, "MBB", "did you mean MB")
    refused(["run", "--budget", "many"] + tail, "many")
    refused(["run", "--budget", ""] + tail, "not a size")
    result = coop("run", "--budget", "100TiB", "-o", os.path.join(tmp, "a.coop"), *tail)
    assert result.returncode == 0 and "more than the memory there is" in result.stderr, result


def test_control_group(tmp):
    """A budget above the limit of the control group is said, as one above the machine's memory is."""
    if not may_mount():
        return NO_MOUNTS
    script = ('mount -t tmpfs none /sys/fs/cgroup && mkdir /sys/fs/cgroup/memory && cd /sys/fs/cgroup &&'
              ' echo 83886080 | tee memory.max > memory/memory.limit_in_bytes &&'
              ' exec "$0" run --budget "$1" -o "$2" -- "$3" --events 10')
    for budget, said in ("90MiB", True), ("80MiB", False):
        result = subprocess.run(["unshare", "-rm", "sh", "-c", script, COOP, budget, os.path.join(tmp, "t.coop"),
                                 TARGET], capture_output=True, text=True, timeout=60)
        assert result.returncode == 0 and ("the memory there is (80.0 MiB)" in result.stderr) == said, result
    return None


def test_commands(tmp):
    refused(["run", "--", "no-such-program-x"], "no such program: no-such-program-x")
    refused(["run", "--", sys.executable, "no-such-script.py"], "no such script: no-such-script.py")
    broken = os.path.join(tmp, "broken")
    with open(broken, "wb") as file:
        file.write(b"#!/no/such/interpreter\n")
    os.chmod(broken, 0o755)
    refused(["run", "-o", os.path.join(tmp, "t.coop"), "--", broken], "broken", code=1)
    assert os.listdir(tmp) == ["broken"]


def test_two_to_one_file(tmp):
    trace, mark = os.path.join(tmp, "t.coop"), os.path.join(tmp, "started")
    first = subprocess.Popen([COOP, "run", "-q", "-o", trace, "--", TARGET, *FOREVER],
                             stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    wait_until(lambda: events_of(trace) > 100)
    refused(["run", "-o", trace, "--", "sh", "-c", f"touch {mark}"], trace, code=1)
    assert not os.path.exists(mark)
    first.send_signal(signal.SIGINT)
    assert first.wait(timeout=20) == 130


def test_not_a_trace(tmp):
    path = os.path.join(tmp, "notes.txt")
    with open(path, "w") as file:
        file.write("my notes")
    refused(["run", "-o", path, "--", TARGET], path, code=1)
    with open(path) as file:
        assert file.read() == "my notes"


def test_unwritable(tmp):
    result = coop("run", "-o", "/no/such/folder/x.coop", "--", TARGET, "--events", "3000", "--done")
    assert result.returncode == 0 and result.stdout == "done\n"
    assert "no trace is written" in result.stderr and "trace            none" in result.stderr, result.stderr


def test_read_only_folder(tmp):
    if not may_mount():
        return NO_MOUNTS
    script = 'mount -t tmpfs -o ro none "$1" && "$2" run -o "$1"/x.coop -- "$3" --events 3000 --done'
    result = subprocess.run(["unshare", "-rm", "sh", "-c", script, "sh", tmp, COOP, TARGET], capture_output=True, text=True, timeout=60)
    assert result.returncode == 0 and result.stdout == "done\n", result
    assert "no trace is written" in result.stderr and "Read-only file system" in result.stderr, result.stderr
    assert "trace            none" in result.stderr, result.stderr
    return None


def test_file_taken_away(tmp):
    """Removed, moved, or another in its place while it is written: the script goes on, and that is said twice."""
    def remove(trace):
        os.remove(trace)

    def move(trace):
        os.rename(trace, trace + ".mine")

    def replace(trace):
        with open(trace + ".new", "w") as file:
            file.write("mine")
        os.rename(trace + ".new", trace)

    for act in remove, move, replace:
        folder = os.path.join(tmp, act.__name__)
        os.mkdir(folder)
        trace = os.path.join(folder, "t.coop")
        process = subprocess.Popen([COOP, "run", "-o", trace, "--", TARGET, "--events", "60000", "--rate", "20000", "--done"],
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        wait_until(lambda: events_of(trace) > 1000)
        act(trace)
        out, err = process.communicate(timeout=60)
        assert process.returncode == 0 and out == "done\n", (act, out, err)
        assert "the trace is incomplete: the file was removed or moved while it was written; the script goes on" in err, err
        assert os.listdir(folder) == {remove: [], move: ["t.coop.mine"], replace: ["t.coop"]}[act], (act, os.listdir(folder))
        if act is replace:
            assert "events are not in it" in err and open(trace).read() == "mine", err
        else:
            assert f"trace            none: {trace} is not there any more" in err, err
        if act is move:
            info = json.loads(coop("info", "--json", trace + ".mine").stdout)
            assert info["events"] > 1000 and info["lost_events"] >= 50000 and "removed or moved" in info["meta"]["trace_error"], info


def test_looked_at_while_it_is_written(tmp):
    """Whatever looks at all of a trace sees one moment of it: nothing is wrong with a run that goes on."""
    trace = os.path.join(tmp, "t.coop")
    process = subprocess.Popen([COOP, "run", "-o", trace, "--", TARGET, *FOREVER], stderr=subprocess.DEVNULL)
    try:
        for n in range(4):
            wait_until(lambda: events_of(trace) > 3000 * (n + 1))
            result = coop("check", trace)
            assert result.returncode == 0 and "nothing wrong" in result.stdout, result
            folder = os.path.join(tmp, f"csv{n}")
            assert coop("export", trace, "--to", "csv", "-o", folder).returncode == 0
            with open(os.path.join(folder, "event.csv")) as file:
                rows = sum(1 for _ in file) - 1
            with open(os.path.join(folder, "stat.csv")) as file:
                assert f"events,{rows}\n" in file.read(), rows
    finally:
        process.send_signal(signal.SIGINT)
        process.wait(timeout=30)


def test_no_space(tmp):
    """The file cannot grow: training goes on, the loss is said, and what is in the file can be read."""
    trace = os.path.join(tmp, "t.coop")

    def limit():
        resource.setrlimit(resource.RLIMIT_FSIZE, (8 << 20, 8 << 20))

    result = subprocess.run([COOP, "run", "--ring", "4MiB", "-o", trace, "--", TARGET, "--events", "140000",
                             "--rate", "70000", "--done"], capture_output=True, text=True, timeout=60,
                            preexec_fn=limit)
    assert result.returncode == 0 and result.stdout == "done\n", result
    assert "the trace is incomplete" in result.stderr, result.stderr
    assert re.search(r"^  trace +\S+t.coop, incomplete: \d+ events are not in it$", result.stderr, re.M), result.stderr
    all_accounted_for(trace, 140000, result.stderr)


def all_accounted_for(trace, events, said):
    """One file, that says how many events are not in it."""
    assert os.listdir(os.path.dirname(trace)) == [os.path.basename(trace)]
    with sqlite3.connect(trace) as db:
        stat = dict(db.execute("SELECT name, value FROM stat"))
        (rows,) = db.execute("SELECT count(*) FROM event").fetchone()
        (why,) = db.execute("SELECT value FROM meta WHERE key = 'trace_error'").fetchone()
    assert rows > 1000 and stat["lost_events"] > 0 and "full" in why, (rows, stat, why)
    dropped = re.findall(r"(\d+) events were dropped", said)  # so far, each time
    known = rows + stat["lost_events"] + int(dropped[-1] if dropped else 0)
    assert events <= known <= events + 1000, (events, rows, stat, said)


def test_disk_full(tmp):
    """The same on disks of several sizes, which are full to the last page."""
    if not may_mount():
        return NO_MOUNTS
    for size in 3, 6, 20:
        disk, trace = os.path.join(tmp, f"{size}"), os.path.join(tmp, f"copy-{size}", "t.coop")
        os.mkdir(disk)
        os.mkdir(os.path.dirname(trace))
        script = ('mount -t tmpfs -o size="$1"m none "$2" && "$4" run --ring 4MiB -o "$2"/t.coop -- "$5" --events "$6"'
                  ' --rate 140000 --done; code=$?; cp "$2"/* "$3"; exit $code')
        result = subprocess.run(["unshare", "-rm", "sh", "-c", script, "sh", str(size), disk, os.path.dirname(trace),
                                 COOP, TARGET, str(30000 * size)], capture_output=True, text=True, timeout=60)
        assert result.returncode == 0 and result.stdout == "done\n", (size, result)
        assert "the trace is incomplete" in result.stderr, (size, result)
        all_accounted_for(trace, 30000 * size, result.stderr)
    return None


# ---- how it ends -------------------------------------------------------------------------------


def test_exit_codes(tmp):
    trace = os.path.join(tmp, "t.coop")
    assert coop("run", "-o", trace, "--", TARGET, "--events", "500", "--exit", "7").returncode == 7
    for signum in (signal.SIGKILL, signal.SIGTERM, signal.SIGSEGV):
        result = coop("run", "-o", trace, "--", TARGET, "--events", "500", "--die", str(int(signum)))
        assert result.returncode == 128 + signum, result
        assert events_of(trace) >= 499


def test_signals_sent_to_coop(tmp):
    code, out, trace = run_then(tmp, signal.SIGINT)
    assert (code, out) == (130, "interrupts 1\n"), (code, out)
    code, out, trace = run_then(tmp, signal.SIGTERM)
    assert code == 128 + signal.SIGTERM, code


def test_terminal(tmp):
    """On a terminal Ctrl-C reaches the script once, and a progress line is drawn."""
    trace = os.path.join(tmp, "t.coop")
    pid, fd = pty.fork()
    if pid == 0:
        os.environ["TERM"] = "xterm"
        os.execv(COOP, [COOP, "run", "-o", trace, "--budget", "40MiB", "--", TARGET, *FOREVER])
    import fcntl
    import struct
    import termios

    fcntl.ioctl(fd, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 120, 0, 0))
    said, interrupted, end = b"", False, time.monotonic() + 30
    while time.monotonic() < end:
        if select.select([fd], [], [], 0.1)[0]:
            try:
                chunk = os.read(fd, 65536)
            except OSError:
                break
            if not chunk:
                break
            said += chunk
        if not interrupted and said.count(b"evictions/s") > 3:
            os.write(fd, b"\x03")
            interrupted = True
    _, status = os.waitpid(pid, 0)
    text = said.decode(errors="replace")
    assert os.waitstatus_to_exitcode(status) == 130, (status, text)
    assert "interrupts 1" in text, text
    assert re.search(r"live \S+ MiB  used \S+ MiB / 40.0 MiB  hole .* evictions/s  recompute \d+ %", text), text
    assert "coop: peak" in text


def test_tool_killed(tmp):
    """Training goes on to its normal end when coop is killed."""
    trace, log = os.path.join(tmp, "t.coop"), os.path.join(tmp, "log")
    with open(log, "w") as out:
        tool = subprocess.Popen([COOP, "run", "-o", trace, "--", TARGET, "--events", "40000", "--rate",
                                 "20000", "--done"], stdout=out, stderr=out)
    wait_until(lambda: events_of(trace) > 2000)
    tool.kill()
    tool.wait()
    wait_until(lambda: "done" in open(log).read())
    assert events_of(trace) < 40000


def test_tool_stopped(tmp):
    """While coop is stopped training goes on at its own pace; what could not be kept is told."""
    trace, log = os.path.join(tmp, "t.coop"), os.path.join(tmp, "log")
    start = time.monotonic()
    with open(log, "w") as out:
        tool = subprocess.Popen([COOP, "run", "--ring", "64KiB", "-o", trace, "--", TARGET, "--events",
                                 "60000", "--rate", "20000", "--done"], stdout=out, stderr=subprocess.PIPE, text=True)
    wait_until(lambda: events_of(trace) > 2000)
    tool.send_signal(signal.SIGSTOP)
    wait_until(lambda: "done" in open(log).read())
    assert time.monotonic() - start < 3 + 3, "the target was held up"
    tool.send_signal(signal.SIGCONT)
    _, err = tool.communicate(timeout=30)
    assert tool.returncode == 0 and "events were dropped" in err, err
    with sqlite3.connect(trace) as db:
        missing = db.execute("SELECT value FROM stat WHERE name = 'missing_events'").fetchone()[0]
        rows = db.execute("SELECT count(*) FROM event").fetchone()[0]
        last = db.execute("SELECT max(seq) FROM event").fetchone()[0]
    assert missing > 10000 and rows + missing == last + 1, (missing, rows, last)


def fake_python(tmp, answer):
    """An interpreter that answers what coop asks it and does nothing else."""
    path = os.path.join(tmp, "python3")
    with open(path, "w") as file:
        file.write(f'#!/bin/sh\nif [ "$1" = -c ]; then echo python 3 11; echo {answer}; fi\n')
    os.chmod(path, 0o755)
    script = os.path.join(tmp, "train.py")
    open(script, "w").close()
    return path, script


def test_interpreters(tmp):
    python, script = fake_python(tmp, "torch none")
    refused(["run", "--", python, script], python, "no PyTorch")
    fake_python(tmp, "torch 1 12 1.12.1")
    refused(["run", "--", python, script], "1.12.1", "1.13")
    fake_python(tmp, "torch 1 13 1.13.0a0")
    env = dict(os.environ, COOPSCOPE_PYTHON=tmp)
    result = coop("run", "-o", os.path.join(tmp, "t.coop"), "--", python, "-I", script, env=env)
    assert result.returncode == 0 and "started with -I" in result.stderr, result
    result = coop("run", "-o", os.path.join(tmp, "t.coop"), "--", python, script, env=env)
    assert result.returncode == 0 and "nothing in it made a tensor" in result.stderr, result


def test_silent(tmp):
    result = coop("run", "-o", os.path.join(tmp, "t.coop"), "--", "sh", "-c", "exit 3")
    assert result.returncode == 3
    assert "without a word from PyTorch" in result.stderr, result.stderr


# ---- what is said ------------------------------------------------------------------------------


def test_summary(tmp):
    trace = os.path.join(tmp, "t.coop")
    result = coop("run", "--budget", "40MiB", "-o", trace, "--", TARGET, "--events", "20000", "--done")
    assert result.stdout == "done\n"
    for word in ("peak 40.0 MiB of 40.0 MiB", "evictions", "recomputed", "extra time", "fragmentation", trace):
        assert word in result.stderr, (word, result.stderr)
    assert "\x1b" not in result.stderr
    result = coop("run", "--json", "--budget", "40MiB", "-o", trace, "--", TARGET, "--events", "20000")
    summary = json.loads(result.stderr)
    assert summary["peak"] == summary["budget"] == 40 << 20 and summary["trace"] == trace
    assert summary["evictions"] > 100 and summary["recomputed"] > 100 and summary["exit_code"] == 0
    result = coop("run", "-q", "-o", trace, "--", TARGET, "--events", "200")
    assert result.stderr == "" and result.stdout == ""


def test_trace_name(tmp):
    result = coop("run", "--", TARGET, "--events", "100", cwd=tmp)
    names = os.listdir(tmp)
    assert len(names) == 1 and re.fullmatch(r"fake-target-\d{8}-\d{6}\.coop", names[0]), names
    assert names[0] in result.stderr


def test_flags_are_in_the_trace(tmp):
    trace = os.path.join(tmp, "t.coop")
    coop("run", "--evictor", "lru", "--set", "stress=3", "-o", trace, "--", TARGET, "--events", "200")
    with sqlite3.connect(trace) as db:
        rows = dict(db.execute("SELECT param, source FROM v_policy"))
    assert rows["evictor"] == rows["stress"] == "flag" and rows["budget"] == "initial", rows


def test_limits_of_the_trace(tmp):
    refused(("run", "--trace-limit", "1MiB", "--", TARGET), "--trace-limit", "at least 16MiB")
    refused(("run", "--trace-limit", "much", "--", TARGET), "--trace-limit", "nor")
    refused(("run", "--trace-detail", "some", "--", TARGET), "full, blocks, summary")
    for detail in ("blocks", "summary"):
        trace = os.path.join(tmp, detail + ".coop")
        result = coop("run", "--trace-detail", detail, "-o", trace, "--", TARGET, "--events", "20000")
        assert result.returncode == 0, result.stderr
        assert "nothing wrong" in coop("check", trace).stdout
        with sqlite3.connect(trace) as db:
            assert db.execute("SELECT count(*) FROM op").fetchone() == (0,)
            assert (db.execute("SELECT count(*) FROM block").fetchone()[0] > 0) == (detail == "blocks")
        info = json.loads(coop("info", "--json", trace).stdout)
        assert info["operators"] > 1000 and info["evictions"] > 100, info
        assert "--trace-detail" in coop("replay", trace).stderr
    trace = os.path.join(tmp, "limited.coop")
    result = coop("run", "--trace-limit", "16MiB", "-o", trace, "--", TARGET, "--events", "300000")
    assert result.returncode == 0 and result.stderr.count("keeps the latest events") == 1, result.stderr
    assert os.path.getsize(trace) <= 16 << 20
    assert "nothing wrong" in coop("check", trace).stdout
    assert "TRIMMED" in coop("info", trace).stdout
    assert "--trace-limit" in coop("replay", trace).stderr


def test_help(tmp):
    for args in (["--help"], ["run", "--help"], ["collect", "--help"], ["attach", "--help"]):
        result = coop(*args)
        assert result.returncode == 0 and "Usage" in result.stdout and result.stderr == "", result
    assert coop("--version").stdout.startswith("coop 0.")
    assert coop().returncode == 2


# ---- collect and attach ------------------------------------------------------------------------


def test_collect(tmp):
    trace = os.path.join(tmp, "c.coop")
    result = subprocess.run([TARGET, "--events", "5000", "--collect", COOP, "--trace", trace],
                            capture_output=True, text=True, timeout=60)
    assert result.returncode == 0 and result.stdout == "collector 0\n" and result.stderr == "", result
    assert events_of(trace) >= 4999
    # The target is killed: the file says so by itself.
    result = subprocess.run([TARGET, "--events", "5000", "--die", "9", "--collect", COOP, "--trace", trace],
                            capture_output=True, text=True, timeout=60)
    assert result.returncode == -9
    wait_until(lambda: events_of(trace) >= 4999 and not os.path.exists(trace + "-wal"))
    result = subprocess.run([TARGET, "--collect", COOP, "--trace", "/no/such/x.coop"], capture_output=True,
                            text=True, timeout=60)
    assert "coop collect:" in result.stderr and "/no/such/x.coop" in result.stderr, result
    refused(["collect"], "--fd")
    refused(["collect", "--fd", "9", "--trace", trace], "descriptor 9", code=1)


def test_attach(tmp):
    trace = os.path.join(tmp, "t.coop")
    tool = subprocess.Popen([COOP, "run", "-q", "-o", trace, "--", TARGET, *FOREVER],
                            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    wait_until(lambda: events_of(trace) > 1000)
    result = coop("attach", str(tool.pid), "--once", "--json")
    assert result.returncode == 0, result
    before = json.loads(result.stdout.splitlines()[0])
    assert before["event"] > 1000 and before["budget"] == 0, before
    assert coop("attach", str(tool.pid), "--budget", "16MiB", "--once").returncode == 0
    wait_until(lambda: json.loads(coop("attach", str(tool.pid), "--once", "--json").stdout.splitlines()[0])
               ["budget"] == 16 << 20)
    tool.send_signal(signal.SIGINT)
    assert tool.wait(timeout=20) == 130
    refused(["attach", str(os.getpid())], "does not run under Coopscope", code=1)
    refused(["attach", "999999999"], "no such process", code=1)
    refused(["attach", "x"], "number of one process")


sys.exit(tap.main(globals()))
