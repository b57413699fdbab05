# SPDX-License-Identifier: Apache-2.0
"""test_tool.py COOP: scripts under the real `coop run`, with a stand-in for torch so that any Python
does. What the bootstrap cannot say itself, because Python never runs it, the tool must."""

import os
import subprocess
import sys

from support import contains, equal, main

COOP = os.path.abspath(sys.argv[1])


def coop_run(w, *command, script=None):
    """Output, errors and exit code of `coop run -- COMMAND` with a stand-in torch on the path."""
    if script is not None:
        command = (*command, w.write("script.py", script))
    w.write("lib/torch/__init__.py", "ready = 1\n")
    w.write("lib/torch/version.py", "__version__ = '2.9.0'\n")
    if os.path.exists(w.path("lib", "torch.py")):
        os.remove(w.path("lib", "torch.py"))
    env = dict(w.env(watched=False), COOPSCOPE_PYTHON=w.python_dir)
    done = subprocess.run([COOP, "run", "-o", w.path("x.coop"), "--", *command], env=env,
                          cwd=w.folder, capture_output=True, text=True, timeout=60)
    return done.stdout, done.stderr, done.returncode


def test_adapter_is_started(w):
    script = "import torch, sys; print('on'); sys.exit(5)"
    out, err, code = coop_run(w, sys.executable, script=script)
    equal((out, code), ("adapter __init__.py\non\n", 5))


def test_through_a_shell(w):
    w.write("script.py", "import torch")
    for shell in ("sh", "bash"):
        out, err, code = coop_run(w, shell, "-c", f"{sys.executable} script.py; true")
        equal((out, code), ("adapter __init__.py\n", 0))


def test_flags_that_keep_us_out_are_named(w):
    script = "import sys; print('plain', 'torch' in sys.modules)"
    for flag in ("-I", "-E", "-S"):
        out, err, code = coop_run(w, sys.executable, flag, script=script)
        equal((out, code), ("plain False\n", 0))
        contains(err, flag)


def test_no_hello_is_said(w):
    out, err, code = coop_run(w, sys.executable, script="print('no torch here')")
    equal((out, code), ("no torch here\n", 0))
    contains(err.lower(), "torch")


def test_broken_adapter(w):
    w.write("python/coopscope/_adapter.py", "raise ImportError('not for this Python')\n")
    out, err, code = coop_run(w, sys.executable, script="import torch; print('on')")
    equal((out, code), ("on\n", 0))
    contains(err, "not for this Python")
    contains(err, "no memory budget is kept")


if __name__ == "__main__":
    main(sys.modules["__main__"])
