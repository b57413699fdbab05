# SPDX-License-Identifier: Apache-2.0
"""Coopscope: train inside a hard memory budget, and see the memory.

A script needs none of this under `coop run -- python train.py`. In a notebook, or from the script:

    import coopscope
    coopscope.start(budget="300 MiB", trace="x.coop")
    ...                                   # train as ever
    coopscope.policy.budget = "250 MiB"   # at any time
    coopscope.stop()
"""

import atexit
import contextlib
import os
import sys
from typing import Any, Dict, Iterator, NamedTuple, Optional, Union

from coopscope._policy import Parameter, Policy, Value, as_text, native

__all__ = ["start", "stop", "running", "policy", "stats", "annotate", "keep", "Parameter", "Policy"]

Size = Union[int, str]

policy = Policy()


class _Run(NamedTuple):
    """What start() began."""

    collector: Any
    fd: int  # of the wire; who attaches to this process finds it by that
    pid: int  # a forked child must not end it


_run: Optional[_Run] = None


def start(
    budget: Optional[Size] = None,
    trace: str = "run.coop",
    evictor: Optional[str] = None,
    *,
    ring_bytes: int = 0,
    **params: Value,
) -> None:
    """Starts to manage this process's tensor memory and to write `trace`.

    budget: bytes, or text such as "300 MiB"; None or 0 sets no limit.
    evictor: coop, dtr, dtr-eq, dtr-local, msps, dte, lru, size, random or none, with the parameters
        its preset names.
    ring_bytes: size of the ring between this process and the trace; 0 is the default.
    params: any other parameter of `coop policy`, which win over the preset.

    It works before and after `import torch`; tensors that exist are taken in when first used.
    Under `coop run` the command line has the word: start() says so and does nothing.
    ValueError: unknown name or bad value. RuntimeError: it runs already, or the trace cannot be
    written; the process then goes on without Coopscope.
    """
    global _run
    if running():
        if _run is not None:
            raise RuntimeError("coopscope is running; call coopscope.stop() first")
        print("coopscope: started by `coop run`, whose options hold", file=sys.stderr)
        return
    wanted = as_text({"budget": budget, "evictor": evictor, **params})
    import torch

    from coopscope import _adapter
    from coopscope._collector import Collector

    fd = native().wire_create(ring_bytes, wanted)
    try:
        collector = Collector(fd, trace)
        _run = _Run(collector, fd, os.getpid())
        atexit.register(_at_exit)  # before the adapter's own, so that it runs after it
        try:
            _adapter.install(torch, fd)
            torch.empty(1)  # the first tensor claims the ring, so that marks count from now on
        except BaseException:
            collector.abandon()
            raise
    except BaseException:
        _forget(fd)
        raise


def stop() -> None:
    """Brings back what is evicted, lets go of the process's memory and completes the trace."""
    if _run is None or _run.pid != os.getpid():
        raise RuntimeError("coopscope.start() was not called here")
    from coopscope import _adapter

    collector = _run.collector
    _adapter.uninstall()
    _forget(_run.fd)
    _report(collector.wait())


def running() -> bool:
    """Whether this process is under Coopscope, by start() or by `coop run`."""
    adapter = sys.modules.get("coopscope._adapter")
    return adapter is not None and adapter.installed()


def stats() -> Dict[str, Union[int, float]]:
    """Totals of the run: bytes used and at the peak, evictions, operators recomputed and more."""
    return native().stats()


@contextlib.contextmanager
def _span(name: str) -> Iterator[None]:
    try:
        yield
    finally:
        if running():
            native().annotate(f"end of {name}")


def annotate(name: str) -> "contextlib.AbstractContextManager[None]":
    """Marks this moment in the trace and on the window's time axis.

    As `with coopscope.annotate("validation"):` it marks the end too. Where Coopscope does not run
    it does nothing, so that a script may keep its marks.
    """
    if running():
        native().annotate(name)
    return _span(name)


def keep(tensor: Any) -> None:
    """Never evicts this tensor: for C++ code that holds its pointer where nobody can see it."""
    if running():
        from coopscope import _adapter

        _adapter.keep(tensor)


def _report(problem: Optional[str]) -> None:
    if problem:
        print(f"coopscope: {problem}", file=sys.stderr)


def _forget(fd: int) -> None:
    global _run
    _run = None
    os.close(fd)
    atexit.unregister(_at_exit)


def _at_exit() -> None:
    if _run is not None and _run.pid == os.getpid():
        _report(_run.collector.wait())
