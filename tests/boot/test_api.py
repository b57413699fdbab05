# SPDX-License-Identifier: Apache-2.0
"""The public API: what start() and stop() do in which order, and what a script sees when the
collector or the adapter cannot be had."""

import os
import sys

from support import contains, equal, main

COLLECT = """#!/bin/sh
echo "$@" > args
echo ready
sleep 0.2
echo complete > "$5"
"""


def api(w, script, collect=COLLECT):
    w.write("bin/coop", collect)
    env = dict(w.env(watched=False))
    env["PYTHONPATH"] += os.pathsep + w.python_dir
    return w.run(script="import coopscope as c, torch\n" + script, env=env)


def read(w, name):
    with open(w.path(name)) as f:
        return f.read()


def test_start_and_stop(w):
    got = api(
        w,
        "assert not c.running()\n"
        "c.start(budget='300 MiB', trace='x.coop', evictor='lru')\n"
        "assert c.running() and c.policy.budget == '300 MiB' and c.policy['evictor'] == 'lru'\n"
        "c.stop()\n"
        "assert not c.running() and open('x.coop').read() == 'complete\\n'\n",
    )
    equal(got, ("adapter torch.py\nadapter lets go\n", "", 0))
    args = read(w, "args").split()
    equal((args[0], args[1], args[3:]), ("collect", "--fd", ["--trace", w.path("x.coop")]))


def test_trace_is_complete_when_the_script_has_ended(w):
    equal(api(w, "c.start(trace='x.coop')"), ("adapter torch.py\n", "", 0))
    equal(read(w, "x.coop"), "complete\n")


def test_start_twice(w):
    got = api(
        w,
        "c.start()\n"
        "try: c.start()\n"
        "except RuntimeError as e: print(e)\n",
    )
    equal(got, ("adapter torch.py\ncoopscope is running; call coopscope.stop() first\n", "", 0))


def test_stop_without_start(w):
    out, err, code = api(w, "c.stop()")
    equal((out, code), ("", 1))
    contains(err, "RuntimeError: coopscope.start() was not called here")


def test_bad_parameter_starts_nothing(w):
    out, err, code = api(w, "c.start(trace='x.coop', budgett=3)")
    equal((out, code, os.path.exists(w.path("args"))), ("", 1, False))
    contains(err, "ValueError: no parameter is called budgett")


def test_collector_refuses(w):
    refuse = "#!/bin/sh\necho 'coop: x.coop: Permission denied' >&2\nexit 1\n"
    got = api(
        w,
        "try: c.start(trace='x.coop')\n"
        "except RuntimeError as e: print(e)\n"
        "print(c.running())\n",
        refuse,
    )
    equal(got, ("coop: x.coop: Permission denied\nFalse\n", "", 0))


def test_collector_is_missing(w):
    os.remove(w.coop)
    w.write("bin/other", "")
    script = "import coopscope as c\ntry: c.start()\nexcept RuntimeError as e: print(e)\n"
    env = dict(w.env(watched=False), PATH="/nowhere")
    env["PYTHONPATH"] += os.pathsep + w.python_dir
    out, err, code = w.run(script=script, env=env)
    equal((out, err, code), (f"the program coop is not there: {w.coop}\n", "", 0))


def test_adapter_refuses(w):
    w.write("python/coopscope/_adapter.py",
            "def install(torch, fd): raise RuntimeError('too old')\ndef installed(): return False\n")
    got = api(
        w,
        "try: c.start(trace='x.coop')\n"
        "except RuntimeError as e: print(e, c.running())\n",
    )
    equal(got, ("too old False\n", "", 0))


def test_trace_lost_is_said(w):
    lost = "#!/bin/sh\necho ready\nsleep 0.1\necho 'coop: disk full' >&2\nexit 1\n"
    out, err, code = api(w, "c.start(); c.stop()", lost)
    equal((err, code), ("coopscope: coop: disk full\n", 0))


def test_nothing_is_left_open(w):
    got = api(
        w,
        "import os\n"
        "def fds(): return sorted(os.listdir('/proc/self/fd'))\n"
        "c.start(trace='x.coop'); c.stop()\n"
        "before = fds()\n"
        "c.start(trace='x.coop'); c.stop()\n"
        "try: c.start(no_such=1)\n"
        "except ValueError: pass\n"
        "os.environ['BAD'] = '1'\n"
        "try: c.start(trace='x.coop')\n"
        "except RuntimeError: pass\n"
        "assert fds() == before, (before, fds())\n",
        COLLECT.replace("echo ready", "test -z \"$BAD\" || exit 1; echo ready"),
    )
    equal(got[1:], ("", 0))


def test_forked_child_does_not_wait(w):
    got = api(
        w,
        "import os, sys, time\n"
        "c.start(trace='x.coop')\n"
        "if os.fork() == 0:\n"
        "    start = time.monotonic()\n"
        "    try: c.stop()\n"
        "    except RuntimeError as e: print(e, flush=True)\n"
        "    sys.exit(0)\n"
        "assert os.wait()[1] == 0\n",
    )
    equal(got, ("adapter torch.py\ncoopscope.start() was not called here\n", "", 0))


def test_under_coop_run_the_command_line_has_the_word(w):
    out, err, code = w.run(script="import torch, coopscope; coopscope.start(budget='1 GiB')")
    equal((out, err, code),
          ("adapter torch.py\n", "coopscope: started by `coop run`, whose options hold\n", 0))


def test_policy(w):
    got = api(
        w,
        "c.start()\n"
        "c.policy.budget = 5\n"
        "c.policy['evictor'] = 'none'\n"
        "print(c.policy.values())\n"
        "print(list(c.policy), c.policy.parameters()[0].help, 'budget' in dir(c.policy))\n"
        "try: c.policy.bugdet\n"
        "except AttributeError as e: print(e)\n"
        "c.policy.update({'budget': True})\n"
        "print(c.policy.budget)\n",
    )
    equal(got, ("adapter torch.py\n{'budget': '5', 'evictor': 'none'}\n['budget'] Bytes. True\n"
                "no parameter is called 'bugdet'\n1\n", "", 0))


def test_marks(w):
    got = api(
        w,
        "c.annotate('nobody listens'); c.keep('t')\n"
        "c.start()\n"
        "c.annotate('epoch 1')\n"
        "c.keep('t')\n"
        "with c.annotate('validation'): print('in', flush=True)\n",
    )
    equal(got, ("adapter torch.py\nannotate epoch 1\nkeep t\nannotate validation\nin\n"
                "annotate end of validation\n", "", 0))


def test_python_m(w):
    env = dict(w.env(watched=False))
    env["PYTHONPATH"] += os.pathsep + w.python_dir
    got = w.run("-m", "coopscope", "--budget", "3 MiB", "--", "train.py", "--", "-x", env=env)
    equal(got, (f"coop run --budget 3 MiB -- {sys.executable} train.py -- -x\n", "", 0))
    for args in ([], ["--"], ["train.py"]):
        out, err, code = w.run("-m", "coopscope", *args, env=env)
        equal((out, code), ("", 2))
        contains(err, "usage: python -m coopscope")
    equal(w.run("-m", "coopscope", "--help", env=env)[2], 0)


if __name__ == "__main__":
    main(sys.modules["__main__"])
