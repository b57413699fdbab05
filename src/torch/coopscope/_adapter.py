# SPDX-License-Identifier: Apache-2.0
"""The adapter's Python half: what is asked of PyTorch once.

The work itself is C (`_coopscope`): it sees every operator through the dispatch mode that `install`
enters, and every allocation through libc10's own slots.
"""

import atexit
import functools
import os
import platform
import sys
import warnings

from coopscope import _coopscope as native
from coopscope import _cuda, _reenter, _wrap

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
    if _cuda.managed() and _cuda.flags(base, sys.modules["torch"]):
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


def _autocast(torch):
    """Autocast of the managed kind: (is it on, turn it)."""
    kind = "cuda" if _cuda.managed() else "cpu"
    try:
        torch.is_autocast_enabled(kind)
    except TypeError:  # old: no argument means the GPU
        if _cuda.managed():
            return torch.is_autocast_enabled, torch.set_autocast_enabled
        return torch.is_autocast_cpu_enabled, torch.set_autocast_cpu_enabled
    return functools.partial(torch.is_autocast_enabled, kind), functools.partial(torch.set_autocast_enabled, kind)


def _find_quiet_keys(torch):
    """What PyTorch's own guards do to the dispatch keys: below autograd, outside of modes and of autocast."""
    C = torch._C

    def excluded():
        return native.keys()[1]

    def in_guards():
        guards = [C._DisableTorchDispatch(), C._AutoDispatchBelowAutograd()]
        inside = excluded()
        while guards:
            guard = guards.pop()
            if hasattr(guard, "__exit__"):
                guard.__exit__(None, None, None)
            del guard
        return inside

    before, (is_autocast, set_autocast) = excluded(), _autocast(torch)
    on, was = in_guards() & ~before, is_autocast()
    set_autocast(True)
    off = excluded()
    set_autocast(False)
    off &= ~excluded()
    set_autocast(was)
    if on == 0 or off == 0 or excluded() != before:
        raise RuntimeError(f"the dispatch keys of PyTorch {torch.__version__} are not understood")
    native.quiet_keys(on, off)


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
    for getter, setter in _cuda.switches(C) if _cuda.managed() else ():
        pairs.append((getattr(C, getter), functools.partial(_switch, C, setter)))
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


# ---- install --------------------------------------------------------------------------------------


def _functions(torch):
    base = getattr(torch._C, "TensorBase", None) or torch._C._TensorBase
    storage = torch.UntypedStorage
    get, set_ = _environment(torch)
    return {
        "storage_of": base.untyped_storage if hasattr(base, "untyped_storage") else base._storage,
        "storage_type": storage,
        "storage_new": storage.__new__,  # not the type: its __init__ is Python
        "weak_ref": storage._weak_ref,
        "open_weak": storage._new_with_weak_ptr,
        "free_weak": storage._free_weak_ref,
        "resize": storage.resize_,
        "parameter": torch.nn.Parameter,
        "disabled_dispatch": getattr(torch._C, "_disabled_torch_dispatch_impl", None),
        "is_grad_enabled": torch.is_grad_enabled,
        "set_grad_enabled": torch._C._set_grad_enabled,
        "default_generator": torch.default_generator,
        "module_name": _wrap.module_name,
        "current_node": getattr(torch._C, "_current_autograd_node", None),
        "describe": _describe,
        "empty": torch.empty,
        "set": base.set_,
        "conj": torch._conj,
        "neg": torch._neg_view,
        "device": _cuda.device(),
        "no_functions": torch._C.DisableTorchFunction,
        "number": _number(torch),
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
    _find_quiet_keys(torch)
    # The mode's instances are entered and never asked for anything; C answers.
    _mode = type("CoopscopeMode", (native.DispatchBase, TorchDispatchMode), {})
    _wrap.wrap_all(torch, _mode, installed, _version(torch) < (2, 0))
    _reenter.set_up(torch, _mode)


def _meta(torch):
    rank = {"rank": os.environ["RANK"], "ranks": os.environ.get("WORLD_SIZE", "")} if "RANK" in os.environ else {}
    return {
        **rank,
        "torch": str(torch.__version__),
        "python": platform.python_version(),
        "machine": platform.machine(),
        "pid": str(os.getpid()),
        "script": sys.argv[0] if sys.argv else "",
        "arguments": " ".join(sys.argv[1:]),
        "folder": os.getcwd(),
        "threads": str(torch.get_num_threads()),
        "device": _cuda.device(),
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
        ordinal = _cuda.wanted(torch)
        if ordinal is not None:
            _cuda.prepare(torch, ordinal)
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
