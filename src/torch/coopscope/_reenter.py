# SPDX-License-Identifier: Apache-2.0
"""Signal handlers and finalizers are seen wherever they strike.

While an operator goes through a mode PyTorch has taken the mode off, and runs lines of Python of its own in
there. A signal's handler, or a finalizer that the garbage collector calls, which comes at such a moment and
computes would read evicted tensors where nobody sees it. So the mode is entered around them if it is off.
"""

import atexit
import functools
import gc
import signal
import threading

from coopscope import _coopscope as native

_mode = None  # the mode class
_python_key = 0
_length = _at = _set_mode = None  # PyTorch's own functions of its list of modes; nothing is imported at the end of a process
_collections = threading.local()  # what to leave when the collection that is under way ends


def _replace_stack_mode(torch, modes):
    """Of 1.13, see stack-mode.c."""
    if hasattr(modes, "_TorchDispatchStackMode"):
        C = torch._C
        native.stack_mode(C._len_torch_dispatch_stack, C._pop_torch_dispatch_stack, C._push_on_torch_dispatch_stack,
                          C._set_torch_dispatch_mode)
        modes._TorchDispatchStackMode = native.StackMode


def set_up(torch, mode):
    global _mode, _python_key, _length, _at, _set_mode
    from torch.utils import _python_dispatch

    _mode = mode
    _length, _at = torch._C._len_torch_dispatch_stack, torch._C._get_dispatch_stack_at
    _set_mode = getattr(torch._C, "_set_torch_dispatch_mode", None)
    _replace_stack_mode(torch, _python_dispatch)
    outside = native.keys()[0]
    with mode():
        _python_key = native.keys()[0] & ~outside
    if _python_key == 0:
        raise RuntimeError(f"the dispatch keys of PyTorch {torch.__version__} are not understood")
    _wrap_signals()
    gc.callbacks.append(_on_collection)
    atexit.register(gc.callbacks.remove, _on_collection)


def _enter():
    """Has the mode seen what comes. Returns a function that undoes it, or None: it was so already."""
    here = any(type(_at(i)) is _mode for i in range(_length()))
    if here and native.keys()[0] & _python_key == _python_key:
        return None
    if here and _set_mode is not None:  # 1.13, on the way between its two stacks
        _set_mode(native.StackMode())
        return functools.partial(_set_mode, None)
    mode = _mode()
    mode.__enter__()
    return functools.partial(mode.__exit__, None, None, None)


def _on_collection(phase, info):
    if not native.managing():
        return
    if phase == "start":
        _collections.leave = _enter()
    else:
        leave = getattr(_collections, "leave", None)
        _collections.leave = None
        if leave is not None:
            leave()


def _seen(handler):
    """The signal's handler, run under the mode."""
    if not callable(handler) or handler is signal.default_int_handler or hasattr(handler, "_coopscope"):
        return handler
    return seen(handler)


def seen(function):
    """The function, run under the mode."""

    @functools.wraps(function)
    def wrapper(*args):
        leave = _enter() if native.managing() else None
        try:
            return function(*args)
        finally:
            if leave is not None:
                leave()

    wrapper._coopscope = function
    return wrapper


def _own(handler):
    return getattr(handler, "_coopscope", handler)


def _wrap_signals():
    set_handler, get_handler = signal.signal, signal.getsignal

    @functools.wraps(set_handler)
    def set_seen(signum, handler):
        return _own(set_handler(signum, _seen(handler)))

    @functools.wraps(get_handler)
    def get_own(signum):
        return _own(get_handler(signum))

    signal.signal, signal.getsignal = set_seen, get_own
    if threading.current_thread() is threading.main_thread():
        for signum in signal.valid_signals():
            handler = get_handler(signum)
            if callable(handler) and _seen(handler) is not handler:
                set_handler(signum, _seen(handler))
