# SPDX-License-Identifier: Apache-2.0
"""The methods of PyTorch that are wrapped: where pointers leave, where phases, modules and threads begin, what compiles."""

import functools
import os
import sys
import threading
import weakref

from coopscope import _coopscope as native
from coopscope import _cuda


def _installed():
    """Whether this process is managed; set by wrap_all."""
    return False


def _wrap(owner, name, make):
    original = getattr(owner, name, None)
    if original is None or getattr(original, "_coopscope", False):
        return
    wrapper = make(original)
    functools.update_wrapper(wrapper, original, assigned=("__name__", "__qualname__", "__doc__", "__module__"),
                             updated=())
    wrapper._coopscope = True
    setattr(owner, name, wrapper)


def _counted(counter):
    """Counts the calls that are under way."""

    def make(original):
        def wrapper(*args, **kwargs):
            counter(1)
            try:
                return original(*args, **kwargs)
            finally:
                counter(-1)

        return wrapper

    return make


_scopes = threading.local()  # torch.save: what escapes in there comes back with it


def _escaping(original):
    escape, touch = native.escape, native.touch

    def wrapper(self, *args, **kwargs):
        scope = getattr(_scopes, "scope", None)
        if scope is not None:
            touch(scope, self)
        else:
            escape(self)
        return original(self, *args, **kwargs)

    return wrapper


def _for_the_call(original):
    """Its tensors are read by pointer, or by operators that nobody sees."""
    tensor = sys.modules["torch"].Tensor

    def wrapper(*args, **kwargs):
        scope = native.scope()
        for value in args:
            if isinstance(value, tensor):
                native.touch(scope, value)
        return original(*args, **kwargs)

    return wrapper


def _scoped(original):
    """What escapes in there is done with when it returns."""

    def wrapper(*args, **kwargs):
        outer = getattr(_scopes, "scope", None)
        _scopes.scope = outer or native.scope()
        try:
            return original(*args, **kwargs)
        finally:
            _scopes.scope = outer

    return wrapper


def _pickled(original):
    """The storage is read while the pickler holds what this returns."""
    scoped = _scoped(lambda scope, *args: (scope.append(_scopes.scope), original(*args))[1])
    typed = sys.modules["torch"].storage.TypedStorage

    def holder(value):
        if isinstance(value, typed):
            return value
        if isinstance(value, tuple):
            return next((h for h in map(holder, value) if h is not None), None)
        return None

    def wrapper(*args):
        scope = []
        result = scoped(scope, *args)
        storage = holder(result)
        if storage is not None:
            storage._coopscope = scope
        elif getattr(_scopes, "scope", None) is None:
            native.escape(args[0])
        return result

    return wrapper


ESCAPES = ("data_ptr", "numpy", "__dlpack__", "untyped_storage", "_typed_storage", "storage", "_storage",
           "share_memory_", "const_data_ptr", "mutable_data_ptr")


def _wrap_escapes(torch):
    for name in ESCAPES:
        _wrap(torch.Tensor, name, _escaping)
    for owner in (torch, torch.utils.dlpack):
        _wrap(owner, "to_dlpack", _escaping)
    _wrap(torch, "save", _scoped)
    _wrap(torch.Tensor, "__deepcopy__", _scoped)
    _wrap(torch.Tensor, "__reduce_ex__", _pickled)
    _wrap(torch.Tensor, "tolist", _for_the_call)
    _wrap(torch.Tensor, "tensor_split", _for_the_call)
    _wrap(torch, "tensor_split", _for_the_call)
    _wrap(torch, "ctc_loss", _for_the_call)
    _wrap(torch._tensor_str, "_str", _for_the_call)  # runs with all modes off


def _wrap_state(torch):
    """Parameters and buffers are known from birth, so that they are placed together."""

    def made(original):
        def wrapper(cls, *args, **kwargs):
            parameter = original(cls, *args, **kwargs)
            if type(parameter) is torch.nn.Parameter:
                native.state(parameter)
            return parameter

        return staticmethod(wrapper)

    def registered(original):
        def wrapper(self, name, tensor, *args, **kwargs):
            result = original(self, name, tensor, *args, **kwargs)
            if isinstance(tensor, torch.Tensor):
                native.state(tensor)
            return result

        return wrapper

    original = torch.nn.Parameter.__new__
    if not getattr(original, "_coopscope", False):
        torch.nn.Parameter.__new__ = made(original)
        torch.nn.Parameter.__new__._coopscope = True
    _wrap(torch.nn.Module, "register_buffer", registered)


def _wrap_modules(torch):
    """The trace says in which module an operator ran."""

    def called(original):
        enter, leave = native.enter, native.leave

        def wrapper(self, *args, **kwargs):
            enter(self)
            try:
                return original(self, *args, **kwargs)
            finally:
                leave()

        return wrapper

    _wrap(torch.nn.Module, "__call__", called)


_paths = weakref.WeakKeyDictionary()  # of modules, by the outermost one that was seen to call them


def module_name(root, module):
    """Path as in a state_dict. A block that is called alone later (checkpoint) keeps its path in the net."""
    try:
        if root not in _paths or (module not in _paths and root is not module):
            for name, inner in root.named_modules():
                _paths[inner] = name or type(root).__name__
        return _paths[module]
    except (KeyError, TypeError, AttributeError):
        return type(module).__name__


def _wrap_subclasses(torch, old):
    """Before 2.0 a view that becomes a subclass must not be seen as a plain tensor first."""
    if not old:
        return

    def unseen(original):
        def wrapper(*args, **kwargs):
            guard = torch._C._DisableTorchDispatch()
            try:
                return original(*args, **kwargs)
            finally:
                del guard

        return wrapper

    _wrap(torch.Tensor, "as_subclass", unseen)


def _before_fork():
    """A child cannot bring anything back, and a DataLoader's reads the data set."""
    if _installed():
        native.bring_back()


def _wrap_phases(torch):
    for name in ("backward", "grad"):
        _wrap(torch.autograd, name, _counted(native.backward))
    optimizer = torch.optim.Optimizer

    def make_init(original):
        def wrapper(self, *args, **kwargs):
            original(self, *args, **kwargs)
            _wrap(type(self), "step", _counted(native.optimizer))

        return wrapper

    _wrap(optimizer, "__init__", make_init)


def _wrap_switches(torch):
    def make(original):
        def wrapper(*args, **kwargs):
            try:
                return original(*args, **kwargs)
            finally:
                native.environment_changed()

        return wrapper

    for name in ("_set_mkldnn_enabled", "_set_mkldnn_deterministic", "_set_deterministic_algorithms",
                 "_set_float32_matmul_precision", "_set_onednn_allow_tf32", "_set_default_dtype",
                 "_set_default_tensor_type", "_set_fp32_precision_setter"):
        _wrap(torch._C, name, make)
    for _, name in _cuda.switches(torch._C) if _cuda.managed() else ():
        _wrap(torch._C, name, make)
    for owner in (torch.backends.mkldnn, torch.backends):
        for value in vars(type(owner)).values():
            if type(value).__name__ in ("ContextProp", "_FP32Precision") and hasattr(value, "setter"):
                value.setter = make(value.setter)


_said = set()


def _say_once(text):
    if text not in _said:
        _said.add(text)
        native.warn(text)


def _wrap_compilers(torch):
    def traced(original):
        def wrapper(*args, **kwargs):
            if _installed():
                _say_once("torch.jit.trace: what is computed while it traces is not evicted")
            native.aside(1)
            try:
                return original(*args, **kwargs)
            finally:
                native.aside(-1)

        return wrapper

    def compiled(original):
        def wrapper(*args, **kwargs):
            if _installed():
                _say_once("torch.compile runs eagerly under Coopscope: same results, not its speed")
            return original(*args, **kwargs)

        return wrapper

    _wrap(torch.jit, "trace", traced)
    if hasattr(torch, "compile"):
        _wrap(torch, "compile", compiled)


def _wrap_threads(mode):
    """A mode is one thread's; autograd's own threads inherit it, Python's do not."""

    def make(original):
        def wrapper(self):
            if not _installed():
                return original(self)
            with mode():
                return original(self)

        return wrapper

    _wrap(threading.Thread, "run", make)


def wrap_all(torch, mode, installed, old):
    """Once a process. mode: the class that threads enter; old: before PyTorch 2.0."""
    global _installed
    _installed = installed
    _wrap_escapes(torch)
    _wrap_phases(torch)
    _wrap_switches(torch)
    _wrap_compilers(torch)
    _wrap_state(torch)
    _wrap_modules(torch)
    _wrap_subclasses(torch, old)
    _wrap_threads(mode)
    os.register_at_fork(before=_before_fork)
