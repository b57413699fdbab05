# SPDX-License-Identifier: Apache-2.0
"""What an operator costs on a stated machine: a roofline.

    cost = launch + max(floating point operations / rate of the type, bytes of the operands / bandwidth)

Rates are the peaks of the data sheets, so costs are lower bounds and their proportions are what counts.
A matrix product, a convolution and an attention have their operations counted; all else is priced by its
bytes. `cpu` is this machine, measured when it is asked for.
"""

import time
from collections import namedtuple

# ns, operations a second by type, bytes a second
Machine = namedtuple("Machine", "name launch_ns single half double bandwidth source")

MACHINES = {
    "a100": Machine("a100", 5000, 19.5e12, 312e12, 9.7e12, 2.0e12, "A100 80GB SXM data sheet; launch floor assumed"),
    "h100": Machine("h100", 5000, 66.9e12, 989e12, 33.5e12, 3.35e12, "H100 SXM data sheet; launch floor assumed"),
    "h200": Machine("h200", 5000, 66.9e12, 989e12, 33.5e12, 4.8e12, "H200 SXM data sheet; launch floor assumed"),
}
NAMES = (*MACHINES, "cpu")


def _best(function, times=7):
    best = float("inf")
    for _ in range(times):
        began = time.perf_counter()
        function()
        best = min(best, time.perf_counter() - began)
    return best


def measure_cpu(torch):
    """This machine: a product of 1024 x 1024, a copy of 128 MiB, an addition of one number."""

    def rate(dtype):
        a = torch.ones(1024, 1024, dtype=dtype)
        return 2 * 1024**3 / _best(lambda: a @ a)

    one, many = torch.ones(1), torch.ones(32 << 20)
    to = torch.empty_like(many)
    small = _best(lambda: [one + one for _ in range(1000)]) / 1000
    bandwidth = 2 * many.numel() * 4 / _best(lambda: to.copy_(many))
    source = f"measured, {torch.get_num_threads()} threads"
    return Machine("cpu", round(small * 1e9), rate(torch.float32), rate(torch.bfloat16), rate(torch.float64),
                   bandwidth, source)


def find(name, torch):
    return measure_cpu(torch) if name == "cpu" else MACHINES[name]


# ---- operations of an operator ----


def _product(numbers):
    result = 1
    for n in numbers:
        result *= n
    return result


def _matrices(a, b):
    """(.., m, k) by (.., k, n), or by (k)."""
    return 2 * _product(a.shape) * (b.shape[-1] if b.dim() > 1 else 1)


def _convolution(big, weight):
    """Each element of the smaller side's map meets the whole kernel: `big` is the output, or the input of a
    transposed one."""
    return 2 * _product(big.shape) * _product(weight.shape[1:])


def _convolution_forward(args, out):
    transposed = args[6] if len(args) > 6 else False
    return _convolution(args[0] if transposed else out, args[1])


def _convolution_backward(args, out):
    grad, x, weight, transposed, mask = args[0], args[1], args[2], args[7], args[-1]
    return _convolution(x if transposed else grad, weight) * (bool(mask[0]) + bool(mask[1]))


def _attention(query, key):
    """Two products a head: query by key, weights by value. (.., length, width)"""
    return 4 * _product(query.shape) * key.shape[-2]


OPERATIONS = {
    "mm": lambda args, out: _matrices(args[0], args[1]),
    "bmm": lambda args, out: _matrices(args[0], args[1]),
    "mv": lambda args, out: _matrices(args[0], args[1]),
    "dot": lambda args, out: _matrices(args[0], args[1]),
    "addmm": lambda args, out: _matrices(args[1], args[2]),
    "addmm_": lambda args, out: _matrices(args[1], args[2]),
    "addmv": lambda args, out: _matrices(args[1], args[2]),
    "baddbmm": lambda args, out: _matrices(args[1], args[2]),
    "_addmm_activation": lambda args, out: _matrices(args[1], args[2]),
    "linear": lambda args, out: _matrices(args[0], args[1].t()),
    "convolution": _convolution_forward,
    "_convolution": _convolution_forward,
    "convolution_overrideable": _convolution_forward,
    "convolution_backward": _convolution_backward,
    "_scaled_dot_product_flash_attention": lambda args, out: _attention(args[0], args[1]),
    "_scaled_dot_product_efficient_attention": lambda args, out: _attention(args[0], args[1]),
    "_scaled_dot_product_cudnn_attention": lambda args, out: _attention(args[0], args[1]),
    "_scaled_dot_product_flash_attention_for_cpu": lambda args, out: _attention(args[0], args[1]),
    # backward makes the weights again: five products for two
    "_scaled_dot_product_flash_attention_backward": lambda args, out: 2.5 * _attention(args[1], args[2]),
    "_scaled_dot_product_efficient_attention_backward": lambda args, out: 2.5 * _attention(args[1], args[2]),
    "_scaled_dot_product_cudnn_attention_backward": lambda args, out: 2.5 * _attention(args[1], args[2]),
    "_scaled_dot_product_flash_attention_for_cpu_backward": lambda args, out: 2.5 * _attention(args[1], args[2]),
}
# A block is taken, nothing is computed.
FREE = {"empty", "empty_like", "empty_strided", "new_empty", "new_empty_strided", "empty_permuted"}


def operand_bytes(tensor):
    """Bytes that are touched: an expanded dimension is touched once."""
    n = 1
    for size, stride in zip(tensor.shape, tensor.stride()):
        n *= size if stride != 0 or size == 0 else 1
    return n * tensor.element_size()


def cost(machine, torch, name, args, operands, out):
    """ns. `operands`: tensors read and tensors returned; `out`: the first that is returned, or None."""
    if name in FREE:
        return 0
    count = OPERATIONS.get(name)
    work = count(args, out) if count is not None else 0
    dtype = out.dtype if out is not None else None
    rate = machine.single
    if dtype in (torch.float16, torch.bfloat16):
        rate = machine.half
    elif dtype in (torch.float64, torch.complex128):
        rate = machine.double
    moved = sum(operand_bytes(t) for t in operands)
    if name == "embedding":  # of the table, the rows that come out
        moved += operand_bytes(out) - operand_bytes(args[0])
    return machine.launch_ns + int(max(work / rate, moved / machine.bandwidth) * 1e9)
