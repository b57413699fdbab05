# SPDX-License-Identifier: Apache-2.0
"""What the tests of the Python package share: a package folder with stand-ins for all that is C,
so that the bootstrap and the public API are tested by themselves, and a small TAP runner."""

import os
import shutil
import subprocess
import sys
import tempfile
import traceback

PACKAGE = os.path.join(
    os.path.dirname(os.path.abspath(__file__)), "..", "..", "src", "torch", "coopscope"
)

ADAPTER = """
import os
_fd = None
def install(torch, fd):
    global _fd
    assert torch.ready == 1, "torch was not executed yet"
    assert os.pread(fd, 8, 0) == b"COPRING1", "not the wire"
    assert not os.get_inheritable(fd)
    _fd = fd
    print("adapter", os.path.basename(torch.__file__), flush=True)
def uninstall():
    global _fd
    _fd = None
    print("adapter lets go", flush=True)
def installed():
    return _fd is not None
def keep(tensor):
    print("keep", tensor, flush=True)
"""

NATIVE = """
import os
values = {"budget": 0, "evictor": "coop"}
def wire_create(ring_bytes, params):
    for name in params:
        if name not in values:
            raise ValueError(f"no parameter is called {name}")
    values.update(params)
    fd = os.memfd_create("wire")
    os.write(fd, b"COPRING1")
    return fd
def policy_get():
    return dict(values)
def policy_set(params):
    values.update(params)
def annotate(text):
    print("annotate", text, flush=True)
def params():
    return [("budget", "size", 0, 9, 0, "bytes", "memory", "Bytes.", None)]
"""

TORCH = "import time\ntime.sleep(0.05)\nready = 1\ndef empty(n): pass\n"


class World:
    """A folder with the package, a stand-in torch and a wire, and ways to run scripts in it."""

    def __init__(self):
        self.folder = tempfile.mkdtemp(prefix="coop-boot-")
        self.python_dir = self.path("python")
        self.package = self.path("python", "coopscope")
        self.site = os.path.join(self.package, "_site")
        shutil.copytree(PACKAGE, self.package, ignore=shutil.ignore_patterns("_adapter.py"))
        self.write("python/coopscope/_adapter.py", ADAPTER)
        self.write("python/coopscope/_coopscope.py", NATIVE)
        self.coop = self.write("bin/coop", "#!/bin/sh\necho coop \"$@\"\n")
        os.chmod(self.coop, 0o755)
        self.write(
            "python/coopscope/_paths.py",
            f"BUILD_ROOT = {self.folder!r}\nBUILD = {self.coop!r}\nINSTALLED = '/nowhere/coop'\n",
        )
        self.lib = self.path("lib")
        self.write("lib/torch.py", TORCH)
        self.wire = os.memfd_create("wire")
        os.write(self.wire, b"COPRING1")

    def path(self, *parts):
        return os.path.join(self.folder, *parts)

    def write(self, name, text):
        path = self.path(*name.split("/"))
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w") as f:
            f.write(text)
        return path

    def close(self):
        os.close(self.wire)
        shutil.rmtree(self.folder)

    def env(self, watched=True, path=()):
        """As `coop run` sets it when watched; `path` is what the user's own PYTHONPATH held."""
        env = {k: v for k, v in os.environ.items() if not k.startswith(("PYTHON", "COOPSCOPE"))}
        folders = [*path, self.lib]
        if watched:
            folders.insert(0, self.site)
            env["COOPSCOPE_FD"] = str(self.wire)
            env["COOPSCOPE_WIRE"] = f"/proc/{os.getpid()}/fd/{self.wire}"
        env["PYTHONPATH"] = os.pathsep.join(folders)
        return env

    def run(self, *args, python=sys.executable, env=None, script=None, stdin=None):
        """Runs python with args (or a script given as text); returns (output, errors, code)."""
        if script is not None:
            args = (self.write("script.py", script), *args)
        done = subprocess.run(
            [python, *args],
            env=env or self.env(),
            cwd=self.folder,
            input=stdin,
            capture_output=True,
            text=True,
            pass_fds=[self.wire],
            timeout=60,
        )
        return done.stdout, done.stderr, done.returncode


def equal(got, want):
    if got != want:
        raise AssertionError(f"got {got!r}, want {want!r}")


def contains(text, part):
    if part not in text:
        raise AssertionError(f"{part!r} is not in {text!r}")


def main(module):
    """Runs every test_ function of the module in a World of its own; prints TAP."""
    tests = [(n, f) for n, f in vars(module).items() if n.startswith("test_")]
    print(f"1..{len(tests)}", flush=True)
    failed = 0
    for number, (name, test) in enumerate(tests, 1):
        world = World()
        try:
            test(world)
            print(f"ok {number} {name[5:]}", flush=True)
        except Exception:
            failed += 1
            print(f"not ok {number} {name[5:]}")
            for line in traceback.format_exc().splitlines():
                print("# " + line, flush=True)
        finally:
            world.close()
    sys.exit(1 if failed else 0)
