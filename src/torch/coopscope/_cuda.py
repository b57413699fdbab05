# SPDX-License-Identifier: Apache-2.0
"""PyTorch on CUDA: its pluggable allocator is ours, and what that takes away is given back.

All of it has to be in place before CUDA is initialised. One process manages one GPU.
"""

import ctypes
import functools
import os

from coopscope import _coopscope as native

_keep = []  # PyTorch calls into these until the process ends
_ordinal = None

# Their kernels add in any order (PyTorch's list for use_deterministic_algorithms): run again they may
# give other bits, so what they make is kept. Convolutions too, unless cudnn.deterministic says otherwise.
NOT_DETERMINISTIC = {
    "_embedding_bag", "_embedding_bag_dense_backward", "_embedding_bag_per_sample_weights_backward",
    "adaptive_avg_pool2d_backward", "_adaptive_avg_pool2d_backward", "_adaptive_avg_pool3d_backward",
    "adaptive_max_pool2d_backward", "adaptive_max_pool3d_backward", "avg_pool3d_backward", "bincount",
    "_ctc_loss_backward", "cumsum", "cumsum_", "embedding_dense_backward", "fractional_max_pool2d_backward",
    "fractional_max_pool3d_backward", "grid_sampler_2d_backward", "grid_sampler_3d_backward", "histc",
    "index_add", "index_add_", "index_copy", "index_put", "index_put_", "_index_put_impl_",
    "_unsafe_index_put", "index_reduce", "index_reduce_", "kthvalue", "max_pool2d_with_indices_backward",
    "max_pool3d_with_indices_backward", "max_unpool2d", "max_unpool3d", "median", "nanmedian",
    "nll_loss2d_forward", "nll_loss2d_backward", "put", "put_", "reflection_pad1d_backward",
    "reflection_pad2d_backward", "reflection_pad3d_backward", "replication_pad1d_backward",
    "replication_pad2d_backward", "replication_pad3d_backward", "scatter_add", "scatter_add_",
    "scatter_reduce", "scatter_reduce_", "segment_reduce", "_segment_reduce_backward",
    "upsample_bicubic2d_backward", "upsample_bilinear2d_backward", "upsample_linear1d_backward",
    "upsample_trilinear3d_backward", "_upsample_bicubic2d_aa_backward", "_upsample_bilinear2d_aa_backward",
    "_scaled_dot_product_flash_attention_backward", "_scaled_dot_product_efficient_attention_backward",
    "_scaled_dot_product_cudnn_attention_backward", "_flash_attention_backward",
    "_efficient_attention_backward",
}
CONVOLUTIONS = {"convolution_backward", "cudnn_convolution_backward", "_cudnn_rnn_backward",
                "miopen_convolution_backward"}


def wanted(torch):
    """Ordinal of the GPU to manage, None for the host's memory.

    COOPSCOPE_DEVICE: host (without it), cuda, cuda:N, or auto: cuda:0 where PyTorch is built for CUDA and a
    GPU is there. CUDA is not asked: that would initialise it.
    """
    text = os.environ.get("COOPSCOPE_DEVICE", "") or "host"
    if text in ("host", "cpu"):
        return None
    if text == "auto":
        there = os.path.exists("/dev/nvidiactl") or os.path.exists("/dev/dxg")
        hidden = os.environ.get("CUDA_VISIBLE_DEVICES", "all") in ("", "-1")
        return 0 if torch.version.cuda and there and not hidden else None
    name, _, number = text.partition(":")
    if name != "cuda" or not (number or "0").isdecimal():
        raise RuntimeError(f"COOPSCOPE_DEVICE: {text!r} is none of host, cuda, cuda:N, auto")
    if not torch.version.cuda:
        raise RuntimeError(f"this PyTorch ({torch.__version__}) is built without CUDA")
    return int(number or 0)


def device():
    """The device whose tensors are managed, as PyTorch spells it."""
    return "cpu" if _ordinal is None else f"cuda:{_ordinal}"


def managed():
    return _ordinal is not None


def flags(base, torch):
    """Whether an operator, by its bare name, may give other bits when it runs again."""
    if base in CONVOLUTIONS:
        return not (torch.backends.cudnn.deterministic or torch.are_deterministic_algorithms_enabled())
    return base in NOT_DETERMINISTIC


def switches(C):
    """(getter, setter) of the global switches that results on CUDA depend on."""
    names = ("cudnn_enabled", "cudnn_benchmark", "cudnn_deterministic", "cudnn_allow_tf32",
             "cublas_allow_tf32", "cublas_allow_fp16_reduced_precision_reduction",
             "cublas_allow_bf16_reduced_precision_reduction")
    pairs = [("_get_" + n, "_set_" + n) for n in names]
    pairs += [("_get_%s_sdp_enabled" % n, "_set_sdp_use_%s" % n)
              for n in ("flash", "mem_efficient", "math", "cudnn")]
    return [(get, set_) for get, set_ in pairs if hasattr(C, get) and hasattr(C, set_)]


def prepare(torch, ordinal):
    """Puts our allocator in place; once a process, before CUDA is up."""
    global _ordinal
    if _ordinal is not None:
        if ordinal != _ordinal:
            raise RuntimeError(f"this process manages {device()} already")
        return
    if torch.cuda.is_initialized():
        raise RuntimeError("CUDA is in use already: start coopscope before the first tensor on the GPU, "
                           "or use `coop run`")
    shim = os.path.join(os.path.dirname(native.__file__), "_coopscope_cuda.so")
    if not os.path.exists(shim):
        raise RuntimeError("this build of coopscope has no CUDA part (no C++ compiler was there)")
    native.cuda_setup(ordinal, torch._C._cuda_getCurrentRawStream)
    alloc, free, record = native.cuda_hooks()
    library = ctypes.CDLL(shim)
    library.coop_shim_set.argtypes = [ctypes.c_void_p, ctypes.c_void_p]
    library.coop_shim_set.restype = None
    library.coop_shim_set(alloc, free)
    memory = torch.cuda.memory
    ours = memory.CUDAPluggableAllocator(shim, "coop_shim_alloc", "coop_shim_free")
    try:
        memory.change_current_allocator(ours)
    except RuntimeError as error:
        raise RuntimeError(f"PyTorch's CUDA allocator cannot be changed: {error}") from None
    # Without this record_stream would be ignored in silence.
    ours._allocator.set_record_stream_fn(record)
    _keep.extend((library, ours))
    _ordinal = ordinal
    _wrap_statistics(torch)
    _wrap_the_rest(torch)
    torch.cuda._lazy_call(functools.partial(_up, torch))


def _up(torch):
    """CUDA is up: shows C what a tensor of the GPU looks like."""
    guard = torch._C._DisableTorchDispatch()
    try:
        tensor = torch.empty(16, dtype=torch.float32, device=device())
    finally:
        del guard
    base = getattr(torch._C, "TensorBase", None) or torch._C._TensorBase
    storage = base.untyped_storage(tensor) if hasattr(base, "untyped_storage") else base._storage(tensor)
    native.cuda_sample(tensor, storage._cdata, storage.data_ptr(), torch.cuda.default_generators[_ordinal])


def _wrap_statistics(torch):
    """What PyTorch's own allocator counts, from our own counts. Other GPUs show zero."""
    cuda, memory = torch.cuda, torch.cuda.memory
    base = {"peak": 0}

    def ours(which=None):
        if which is None:
            number = torch.cuda.current_device() if torch.cuda.is_initialized() else _ordinal
        else:
            number = torch.device(which).index if not isinstance(which, int) else which
            number = torch.cuda.current_device() if number is None else number
        return number == _ordinal

    def figures(which):
        if not ours(which):
            return {"live": 0, "peak": 0, "budget": 0, "allocs": 0, "frees": 0, "ooms": 0, "evicted": 0}
        return native.stats()

    def memory_allocated(device=None):
        return figures(device)["live"]

    def max_memory_allocated(device=None):
        return figures(device)["peak"]

    def memory_reserved(device=None):
        return native.cuda_info()["committed"] if ours(device) else 0

    def memory_stats(device=None):
        now, reserved = figures(device), memory_reserved(device)
        stats = {"num_alloc_retries": 0, "num_ooms": now["ooms"], "max_split_size": -1}
        for name, current, peak in (("allocated_bytes", now["live"], now["peak"]),
                                    ("active_bytes", now["live"], now["peak"]),
                                    ("requested_bytes", now["live"], now["peak"]),
                                    ("reserved_bytes", reserved, reserved),
                                    ("inactive_split_bytes", 0, 0),
                                    ("allocation", now["allocs"] - now["frees"], now["allocs"]),
                                    ("segment", 1, 1)):
            for pool in ("all", "large_pool", "small_pool"):
                of = 0 if pool == "small_pool" else 1
                stats["%s.%s.current" % (name, pool)] = of * current
                stats["%s.%s.peak" % (name, pool)] = of * peak
                stats["%s.%s.allocated" % (name, pool)] = of * peak
                stats["%s.%s.freed" % (name, pool)] = of * (peak - current)
        return stats

    def memory_summary(device=None, abbreviated=False):
        now, gpu = figures(device), native.cuda_info()
        rows = (("in use", now["live"]), ("largest so far", now["peak"]), ("budget", now["budget"]),
                ("evicted now", now["evicted"]), ("reserved on the GPU", gpu["committed"]),
                ("outside of the pool", gpu["outside"]), ("free on the GPU", gpu["free"]))
        lines = ["coopscope on %s" % torch.device("cuda", _ordinal)]
        return "\n".join(lines + ["  %-20s %14d bytes" % row for row in rows])

    def mem_get_info(device=None):
        """What a script may still take: the budget's rest, not the GPU's."""
        free, total = native_info(device)
        now = figures(device)
        if not ours(device) or now["budget"] == 0:
            return free, total
        return max(0, now["budget"] - now["live"]), now["budget"]

    def nothing(*args, **kwargs):
        return None

    native_info = memory.mem_get_info
    answers = {
        "memory_allocated": memory_allocated, "max_memory_allocated": max_memory_allocated,
        "memory_reserved": memory_reserved, "max_memory_reserved": memory_reserved,
        "memory_cached": memory_reserved, "max_memory_cached": memory_reserved,
        "memory_stats": memory_stats, "memory_summary": memory_summary, "mem_get_info": mem_get_info,
        "memory_snapshot": lambda *a, **k: [], "reset_peak_memory_stats": nothing,
        "reset_accumulated_memory_stats": nothing, "reset_max_memory_allocated": nothing,
        "reset_max_memory_cached": nothing, "empty_cache": nothing,
        "_record_memory_history": nothing, "memory_stats_as_nested_dict": lambda *a, **k: {},
    }
    for name, answer in answers.items():
        for owner in (memory, cuda):
            if hasattr(owner, name):
                setattr(owner, name, answer)


def _changing(setter):
    """A global switch that results depend on."""

    def wrapper(*args):
        try:
            return setter(*args)
        finally:
            native.environment_changed()

    return wrapper


def _wrap_the_rest(torch):
    said = set()

    def say(text):
        if text not in said:
            said.add(text)
            native.warn(text)

    set_benchmark = torch._C._set_cudnn_benchmark

    def no_benchmark(on):
        if on:
            say("cudnn.benchmark stays off: it tries out algorithms with memory outside of the budget, "
                "and may choose another one when an operator runs again")
        set_benchmark(False)

    torch._C._set_cudnn_benchmark = no_benchmark
    for name, value in vars(type(torch.backends.cudnn)).items():  # they keep the functions themselves
        if type(value).__name__ == "ContextProp" and hasattr(value, "setter"):
            value.setter = no_benchmark if name == "benchmark" else _changing(value.setter)
    if torch._C._get_cudnn_benchmark():
        no_benchmark(True)

    def no_graph(*args, **kwargs):
        raise RuntimeError("coopscope: CUDA graphs are not supported: a graph keeps addresses for ever, "
                           "and tensors move and are evicted")

    torch.cuda.CUDAGraph.capture_begin = no_graph
    if hasattr(torch.cuda, "MemPool"):

        class MemPool:  # refuses like the allocator would, in words
            def __init__(self, *args, **kwargs):
                raise RuntimeError("coopscope: torch.cuda.MemPool is not supported, there is one pool")

        torch.cuda.MemPool = MemPool
