# SPDX-License-Identifier: Apache-2.0
"""The adapter's Python half: what is asked of PyTorch once, and the few methods that are wrapped.

The work itself is C (`_coopscope`): it sees every operator through the dispatch mode that `install`
enters, and every allocation through libc10's own slots.
"""

import atexit
import functools
import os
import platform
import sys
import threading
import warnings

from coopscope import _coopscope as native

_mode = None  # the mode class, once set up
_entered = []  # the main thread's mode
_pid = 0  # the process that is installed

# Flags and uses of host.h.
PASS, RANDOM, NOREPLAY, UNINIT, EXPENSIVE, BIRTH, NUMBER, LENGTHS = 1, 2, 4, 8, 16, 32, 64, 128
DETACH, ASYNC = 256, 512
WRITE, STATS = 1, 2

# Operators of other libraries may do anything; these are known to be functions of their inputs.
PURE_NAMESPACES = {"aten", "prims", "torchvision"}
# Draws, though not every version tags it.
RANDOM_NAMES = (
    "bernoulli", "cauchy", "dropout", "exponential", "geometric", "log_normal", "multinomial",
    "normal", "poisson", "rand", "random", "rrelu", "uniform", "binomial", "_sample_dirichlet",
    "_standard_gamma", "_scaled_dot_product",
)
# Written, though not every schema says so.
HIDDEN_WRITES = {"rrelu_with_noise": ("noise",)}
# Has a side effect, or reads what is no argument.
HIDDEN = {"_cudnn_rnn", "record_stream", "from_file", "batch_norm_gather_stats",
          "batch_norm_gather_stats_with_counts", "_cudnn_init_dropout_state", "set_data"}
INPLACE_VIEWS = {"as_strided_", "detach_", "squeeze_", "swapaxes_", "swapdims_", "t_", "transpose_",
                 "unsqueeze_", "set_", "requires_grad_", "_resize_output_", "rename_"}
QUESTIONS = {"size", "stride", "storage_offset", "numel", "dim", "is_contiguous", "sym_size",
             "sym_stride", "sym_numel", "sym_storage_offset", "is_pinned", "is_strides_like_format",
             "is_non_overlapping_and_dense", "sym_is_contiguous", "_has_compatible_shallow_copy_type",
             "layout", "device", "is_same_size", "_version", "_unsafe_view_questions"}
EXPENSIVE_PARTS = ("conv", "mm", "matmul", "linear", "attention", "lstm", "gru", "rnn", "bilinear",
                   "einsum", "cdist", "svd", "linalg", "fft", "sort", "topk", "embedding_bag")


# ---- operators ------------------------------------------------------------------------------------


def _is_view(schema, base, tags):
    """Gives other names to its inputs and touches no bytes."""
    if base in INPLACE_VIEWS or "inplace_view" in tags:
        return not base.startswith("resize")
    written = any(a.alias_info is not None and a.alias_info.is_write for a in schema.arguments)
    aliases = [r.alias_info for r in schema.returns]
    return (
        not written
        and len(aliases) > 0
        and all(a is not None for a in aliases)
        and base not in ("contiguous", "reshape", "to", "flatten", "_to_dense", "data")
    )


def _uses(schema, base):
    """One byte an argument: how it is used. Running statistics are not in every schema."""
    names = [a.name for a in schema.arguments]
    stats = "running_mean" in names and "running_var" in names and "backward" not in schema.name
    uses = bytearray()
    for argument in schema.arguments:
        written = argument.alias_info is not None and argument.alias_info.is_write
        if argument.name in HIDDEN_WRITES.get(base, ()):
            uses.append(WRITE)
        elif stats and argument.name in ("running_mean", "running_var"):
            uses.append(STATS)
        else:
            uses.append(WRITE if written else 0)
    return names, bytes(uses)


def _describe(func):
    """What the C side keeps of an operator; see CoopOpInfo."""
    schema = func._schema
    namespace, _, base = schema.name.partition("::")
    tags = {str(t).rpartition(".")[2] for t in getattr(func, "tags", ())}
    names, uses = _uses(schema, base)
    flags = 0
    if base in QUESTIONS or _is_view(schema, base, tags):
        flags |= PASS
    if base in ("lift_fresh", "lift"):
        flags |= BIRTH
    if flags & PASS and schema.arguments and str(schema.arguments[0].type) == "Tensor":
        flags |= NUMBER
    if base == "detach":
        flags |= DETACH
    if base == "_pack_padded_sequence":
        flags |= LENGTHS
    if "nondeterministic_seeded" in tags or "generator" in names:
        flags |= RANDOM
    elif any(part in base for part in RANDOM_NAMES) and "backward" not in base:
        flags |= RANDOM
    if namespace not in PURE_NAMESPACES or base in HIDDEN:
        flags |= NOREPLAY
    if "c10d" in namespace:
        flags |= ASYNC
    if base.startswith(("empty", "new_empty", "_empty", "resize")):
        flags |= UNINIT
    if any(part in base for part in EXPENSIVE_PARTS):
        flags |= EXPENSIVE
    training = next(
        (names.index(n) for n in ("training", "train", "use_input_stats") if n in names), -1
    )
    label = str(func) if namespace == "aten" else f"{namespace}.{base}"
    return label, getattr(func, "_op", func), flags, training, tuple(names), uses


# ---- the layout of tensors ------------------------------------------------------------------------


def _samples(torch, storage_of):
    """Tensors whose properties are known, in which the C side finds where the fields lie."""

    def row(tensor, number):
        storage = storage_of(tensor)
        return (tensor, tensor._cdata, storage._cdata, storage.data_ptr(), storage.nbytes(),
                tuple(tensor.size()), tuple(tensor.stride()), tensor.storage_offset(), number)

    numbers = {"uint8": 0, "int8": 1, "int16": 2, "int32": 3, "int64": 4, "float16": 5, "float32": 6,
               "float64": 7, "complex32": 8, "complex64": 9, "complex128": 10, "bool": 11,
               "bfloat16": 15}
    dtypes = []
    for name in sorted(set(dir(torch))):
        dtype = getattr(torch, name)
        if not isinstance(dtype, torch.dtype) or str(dtype) != "torch." + name:
            continue
        try:
            tensor = torch.empty(0, dtype=dtype, device="cpu")
            if tensor.is_quantized:
                continue
            dtypes.append((tensor, dtype, name, tensor.element_size(), numbers.get(name, -1)))
        except (RuntimeError, TypeError):
            continue

    def like(*sizes, **kwargs):
        return torch.zeros(*sizes, device="cpu", **kwargs)

    tensors = [
        row(like(61, dtype=torch.float32).as_strided((3, 4, 2), (9, 2, 1), 7), 6),
        row(like(97, dtype=torch.float64).as_strided((2, 5, 3), (23, 3, 2), 11), 7),
        row(like(2, 3, 5, 7, dtype=torch.uint8)[1], 0),
        row(like(13, dtype=torch.int64)[3:], 4),
    ]
    exported = like(31)
    storage = storage_of(exported)
    before = _read_memory(storage._cdata, 128)
    if sys.modules.get("numpy") is not None or _has_numpy():
        exported.numpy()
    else:  # without numpy another exporter of the same kind
        torch.utils.dlpack.to_dlpack(exported)
    with torch.inference_mode():
        inference = like(3)
    return {
        "type": torch.Tensor,
        "tensors": tensors,
        "dtypes": dtypes,
        "plain": like(3),
        "complex": like(3, dtype=torch.complex64),
        "conj": like(3, dtype=torch.complex64).conj(),
        "neg": torch._neg_view(like(3)),
        "zero": torch._efficientzerotensor(3),
        "inference": inference,
        "exported": (storage._cdata, before),
        "keep": (exported, storage),
    }


def _has_numpy():
    try:
        import numpy  # noqa: F401
    except ImportError:
        return False
    return True


def _read_memory(address, size):
    import ctypes

    return ctypes.string_at(address, size)


# ---- replay ---------------------------------------------------------------------------------------


def _rebuilder(torch):
    empty, conj, neg = torch.empty, torch._conj, torch._neg_view
    set_ = torch._C._TensorBase.set_ if hasattr(torch._C, "_TensorBase") else torch._C.TensorBase.set_

    def rebuild(storage, dtype, offset, sizes, strides, flags):
        tensor = empty(0, dtype=dtype, device="cpu")
        set_(tensor, storage, offset, sizes, strides)
        if flags & 1:
            tensor = conj(tensor)
        if flags & 2:
            tensor = neg(tensor)
        return tensor

    return rebuild


def _quiet(torch):
    """Below autograd, outside of every mode and of autocast, for the length of some replays."""
    C = torch._C
    try:
        torch.is_autocast_enabled("cpu")

        def autocast(on=None):
            return torch.is_autocast_enabled("cpu") if on is None else torch.set_autocast_enabled("cpu", on)
    except TypeError:

        def autocast(on=None):
            return torch.is_autocast_cpu_enabled() if on is None else torch.set_autocast_cpu_enabled(on)

    def begin():
        functions = C.DisableTorchFunction()
        functions.__enter__()
        was = autocast()
        if was:
            autocast(False)
        return [functions, was, C._DisableTorchDispatch(), C._AutoDispatchBelowAutograd()]

    def end(token):
        while len(token) > 2:
            guard = token.pop()
            if hasattr(guard, "__exit__"):
                guard.__exit__(None, None, None)
            del guard
        if token[1]:
            autocast(True)
        token[0].__exit__(None, None, None)

    return begin, end


def _number(torch):
    dtypes = {bool: torch.bool, int: torch.int64, float: torch.float64, complex: torch.complex128}

    def number(value):
        return torch.scalar_tensor(value, dtype=dtypes.get(type(value)), device="cpu")

    return number


def _environment(torch):
    """The switches an operator's result depends on, as one tuple, and back."""
    C = torch._C
    pairs = [
        (getattr(C, "_get_" + name), functools.partial(_switch, C, "_set_" + name))
        for name in ("mkldnn_enabled", "mkldnn_deterministic", "float32_matmul_precision",
                     "onednn_allow_tf32")
        if hasattr(C, "_get_" + name) and hasattr(C, "_set_" + name)
    ]
    if hasattr(C, "_get_fp32_precision_getter"):
        for where in (("generic", "all"), ("mkldnn", "all"), ("mkldnn", "matmul"), ("mkldnn", "conv"),
                      ("mkldnn", "rnn")):
            pairs.append((functools.partial(C._get_fp32_precision_getter, *where),
                          lambda v, w=where: C._set_fp32_precision_setter(*w, v)))

    def get():
        return (
            torch.get_default_dtype(),
            C._get_deterministic_algorithms(),
            C._get_deterministic_algorithms_warn_only(),
            tuple(getter() for getter, _ in pairs),
        )

    def set_(switches, threads, flush):
        now = get()
        if now[0] != switches[0]:
            torch.set_default_dtype(switches[0])
        if now[1:3] != switches[1:3]:
            C._set_deterministic_algorithms(switches[1], warn_only=switches[2])
        for (_, setter), value, old in zip(pairs, switches[3], now[3]):
            if value != old:
                setter(value)
        if threads > 0 and threads != torch.get_num_threads():
            torch.set_num_threads(threads)
        torch.set_flush_denormal(flush)

    return get, set_


def _switch(C, name, value):
    getattr(C, name)(value)


# ---- what is wrapped ------------------------------------------------------------------------------


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


def _wrap_subclasses(torch):
    """Before 2.0 a view that becomes a subclass must not be seen as a plain tensor first."""
    if _version(torch) >= (2, 0):
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
    if installed():
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
            if installed():
                _say_once("torch.jit.trace: what is computed while it traces is not evicted")
            native.aside(1)
            try:
                return original(*args, **kwargs)
            finally:
                native.aside(-1)

        return wrapper

    def compiled(original):
        def wrapper(*args, **kwargs):
            if installed():
                _say_once("torch.compile runs eagerly under Coopscope: same results, not its speed")
            return original(*args, **kwargs)

        return wrapper

    _wrap(torch.jit, "trace", traced)
    if hasattr(torch, "compile"):
        _wrap(torch, "compile", compiled)


def _wrap_threads():
    """A mode is one thread's; autograd's own threads inherit it, Python's do not."""

    def make(original):
        def wrapper(self):
            if not installed():
                return original(self)
            with _mode():
                return original(self)

        return wrapper

    _wrap(threading.Thread, "run", make)


# ---- install --------------------------------------------------------------------------------------


def _functions(torch):
    base = getattr(torch._C, "TensorBase", None) or torch._C._TensorBase
    storage = torch.UntypedStorage
    get, set_ = _environment(torch)
    begin, end = _quiet(torch)
    return {
        "storage_of": base.untyped_storage if hasattr(base, "untyped_storage") else base._storage,
        "storage_type": storage,
        "weak_ref": storage._weak_ref,
        "open_weak": storage._new_with_weak_ptr,
        "free_weak": storage._free_weak_ref,
        "resize": storage.resize_,
        "parameter": torch.nn.Parameter,
        "disabled_dispatch": getattr(torch._C, "_disabled_torch_dispatch_impl", None),
        "is_grad_enabled": torch.is_grad_enabled,
        "default_generator": torch.default_generator,
        "describe": _describe,
        "rebuild": _rebuilder(torch),
        "number": _number(torch),
        "quiet_begin": begin,
        "quiet_end": end,
        "environment_get": get,
        "environment_set": set_,
    }


def _set_up(torch):
    """Once a process: what C needs to know, and the wrappers."""
    global _mode
    from torch.utils._python_dispatch import TorchDispatchMode

    functions = _functions(torch)
    with warnings.catch_warnings():  # odd dtypes warn where they are made
        warnings.simplefilter("ignore")
        samples = _samples(torch, functions["storage_of"])
    native.setup(functions, samples, os.path.dirname(torch.__file__), os.path.dirname(__file__))
    # The mode's instances are entered and never asked for anything; C answers.
    _mode = type("CoopscopeMode", (native.DispatchBase, TorchDispatchMode), {})
    _wrap_escapes(torch)
    _wrap_phases(torch)
    _wrap_switches(torch)
    _wrap_compilers(torch)
    _wrap_state(torch)
    _wrap_subclasses(torch)
    _wrap_threads()
    os.register_at_fork(before=_before_fork)


def _meta(torch):
    return {
        "torch": str(torch.__version__),
        "python": platform.python_version(),
        "machine": platform.machine(),
        "pid": str(os.getpid()),
        "script": sys.argv[0] if sys.argv else "",
        "arguments": " ".join(sys.argv[1:]),
        "folder": os.getcwd(),
        "threads": str(torch.get_num_threads()),
    }


def _version(torch):
    numbers = []
    for part in str(torch.__version__).split("+")[0].split(".")[:2]:
        numbers.append(int("".join(c for c in part if c.isdigit()) or 0))
    return tuple(numbers)


def install(torch, wire_fd=None, policy=None):
    """Manages this process's tensor memory from now on.

    wire_fd: descriptor of the wire of the tool that watches; None: nobody does.
    policy: {name: text} for a run without a wire; with one, the control page has the word.
    RuntimeError says why it cannot be.
    """
    global _pid
    if sys.implementation.name != "cpython":
        raise RuntimeError(f"{sys.implementation.name} is not CPython")
    if _version(torch) < (1, 13):
        raise RuntimeError(f"PyTorch {torch.__version__} is too old; 1.13 is the oldest that works")
    if _mode is None:
        _set_up(torch)
    native.start(-1 if wire_fd is None else wire_fd, policy, _meta(torch))
    _pid = os.getpid()
    mode = _mode()
    mode.__enter__()
    _entered.append(mode)
    atexit.register(native.finish)


def uninstall():
    """Brings back all that is evicted and lets go of the memory."""
    global _pid
    if not installed():
        return
    native.stop()
    _pid = 0
    atexit.unregister(native.finish)
    if _entered:
        _entered.pop().__exit__(None, None, None)


def installed():
    return _pid == os.getpid()


def keep(tensor):
    """Never evicts this tensor."""
    native.keep(tensor)
