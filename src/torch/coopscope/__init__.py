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
from typing import Any, Callable, Dict, Iterator, NamedTuple, Optional, Union

from coopscope._policy import Parameter, Policy, Value, as_text, native

__all__ = ["start", "stop", "running", "policy", "stats", "annotate", "keep", "on_oom", "OutOfMemory", "Parameter", "Policy"]

Size = Union[int, str]

policy = Policy()


class OutOfMemory(NamedTuple):
    """A request that the budget cannot hold, in bytes."""

    asked: int
    free: int  # in all holes
    largest: int  # the largest hole
    budget: int
    evictable: int  # could still go, and is not enough
    advice: int  # the budget that would do; 0: unknown


class _Run(NamedTuple):
    """What start() began."""

    collector: Any
    fd: int  # of the wire; who attaches to this process finds it by that
    pid: int  # a forked child must not end it
    by_tool: bool  # a rank of `coop run`


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
    if running():
        if _run is not None and not _run.by_tool:
            raise RuntimeError("coopscope is running; call coopscope.stop() first")
        print("coopscope: started by `coop run`, whose options hold", file=sys.stderr)
        return
    _begin(as_text({"budget": budget, "evictor": evictor, **params}), trace, ring_bytes, False)


def _start_rank(wire_fd: int, rank: int) -> None:
    """In a distributed run under `coop run` the first rank has the run's trace. Each other has one of its own beside it,
    named by its rank, and its own budget, by the parameters that held when it began."""
    trace, wanted = native().wire_read(wire_fd)
    name, ending = os.path.splitext(trace or "run.coop")
    _begin(wanted, f"{name}-rank{rank}{ending}", 0, True)


def _begin(wanted: Dict[str, str], trace: str, ring_bytes: int, by_tool: bool) -> None:
    global _run
    import torch

    from coopscope import _adapter
    from coopscope._collector import Collector

    fd = native().wire_create(ring_bytes, wanted)
    try:
        collector = Collector(fd, trace)
        _run = _Run(collector, fd, os.getpid(), by_tool)
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
    if _run is None or _run.by_tool or _run.pid != os.getpid():
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


def on_oom(callback: Optional[Callable[[OutOfMemory], Optional[bool]]]) -> None:
    """Calls `callback` before PyTorch raises its out-of-memory error; None: nobody any more.

    If it returns True the request is tried again: after it has let go of tensors, or raised
    `coopscope.policy.budget`. Otherwise the error is raised as ever. What it raises itself is printed and
    counts as no. It runs in the thread that asked, in the middle of an operator: compute little in there.
    """
    if not running():
        raise RuntimeError("coopscope does not run here")
    from coopscope import _reenter

    native().on_oom(None if callback is None else _reenter.seen(lambda *figures: callback(OutOfMemory(*figures))))


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
