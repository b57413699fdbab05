# SPDX-License-Identifier: Apache-2.0
"""`coop collect`, the process that owns the trace of a run started by coopscope.start()."""

import os
import shutil
import subprocess
import tempfile
from typing import Optional

from coopscope import _paths

READY_SECONDS = 5.0
DRAIN_SECONDS = 30.0


def find_coop() -> str:
    """The `coop` that belongs to this package: of the same build, else the installed one."""
    here = os.path.realpath(os.path.dirname(__file__))
    own = _paths.BUILD if here.startswith(_paths.BUILD_ROOT + os.sep) else _paths.INSTALLED
    coop = own if os.access(own, os.X_OK) else shutil.which("coop")
    if coop is None:
        raise RuntimeError(f"the program coop is not there: {own}")
    return coop


def run_coop() -> None:
    """The command `coop` of a wheel."""
    import sys

    os.execv(_paths.INSTALLED, [_paths.INSTALLED, *sys.argv[1:]])


class Collector:
    """Runs from the start of a trace until the target has said good-bye and all is written."""

    def __init__(self, fd: int, trace: str) -> None:
        self.trace = os.path.abspath(trace)
        self._errors = tempfile.TemporaryFile()
        # A session of its own: Ctrl-C in a terminal interrupts the notebook, not the trace.
        self._process = subprocess.Popen(
            [find_coop(), "collect", "--fd", str(fd), "--trace", self.trace],
            pass_fds=[fd],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            start_new_session=True,
        )
        try:
            self._wait_until_ready()
        except BaseException:
            self.abandon()
            raise

    def abandon(self) -> None:
        """Ends it where no target will come."""
        self._process.terminate()
        self._process.wait()

    def _wait_until_ready(self) -> None:
        """`coop collect` prints one line when the file is open and the ring is being read."""
        import select

        stdout = self._process.stdout
        assert stdout is not None
        ready, _, _ = select.select([stdout], [], [], READY_SECONDS)
        line = os.read(stdout.fileno(), 4096) if ready else b""
        stdout.close()
        if line:
            return
        if not ready:
            raise RuntimeError(f"coop collect does not answer after {READY_SECONDS:.0f} s")
        self._process.wait()
        raise RuntimeError(self.said() or f"coop collect ended with {self._process.returncode}")

    def said(self) -> str:
        self._errors.seek(0)
        return self._errors.read().decode(errors="replace").strip()

    def wait(self, seconds: float = DRAIN_SECONDS) -> Optional[str]:
        """Waits until the trace is complete. Returns what went wrong, or None."""
        try:
            code = self._process.wait(timeout=seconds)
        except subprocess.TimeoutExpired:
            return f"the trace is still being written: {self.trace}"
        if code != 0:
            return self.said() or f"coop collect ended with {code}"
        return None
