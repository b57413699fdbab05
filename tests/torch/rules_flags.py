# SPDX-License-Identifier: Apache-2.0
"""Rules 9 to 11: checked replays, tensors that pass through unmanaged, and all that a result
depends on besides its inputs' bytes."""
import os

from harness import case

WIDE = 8192


# ---- 9 ---------------------------------------------------------------------------------------

def small_net(torch):
    nn = torch.nn
    layers = []
    for inputs in (3, 8, 8, 8):
        layers += [nn.Conv2d(inputs, 8, 3, padding=1), nn.BatchNorm2d(8), nn.ReLU(inplace=True), nn.Dropout(0.2)]
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(2), nn.Flatten(), nn.Linear(32, 10))


@case(9, budget=0.8, verify=1)
def verified_training(t):
    """verify compares every recomputed tensor with the bits it had, and is content."""
    torch = t.torch
    net = small_net(torch)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.05, momentum=0.9)
    for step in range(3):
        loss = torch.nn.functional.cross_entropy(net(torch.randn(8, 3, 16, 16)), torch.randint(10, (8,)))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        t.out("loss%d" % step, loss.item())
    t.model("net", net)


def unstable_operator(torch, change_shape):
    """An operator that answers differently each time and says so nowhere."""
    library = torch.library.Library("aten", "IMPL")  # operators of other libraries are never replayed
    calls = [0]

    def unstable(x):
        calls[0] += 1
        return torch.full((x.numel() + (calls[0] if change_shape else 0),), float(calls[0]))
    library.impl("special_entr", unstable, "CPU")
    return library


def unstable_case(name, change_shape, params):
    def run(t):
        torch = t.torch
        library = unstable_operator(torch, change_shape)
        x = torch.randn(WIDE)
        y = torch.special.entr(x)
        t.set(stress=0)
        t.evict_all()
        try:
            y.sum().item()
            said = ""
        except RuntimeError as error:
            said = str(error)
        t.check(said, "a different result went unnoticed")
        t.check("special_entr" in said, "the operator is not named: " + said)
        t.out("unstable", "seen")
        del library
    run.__name__ = name
    case(9, budget=None, evicts=False, **params)(run)


unstable_case("other_bits_are_found", False, {"verify": 1})
unstable_case("other_shape_is_found_without_verify", True, {})


def modes_can(work):
    """Whether an empty dispatch mode of PyTorch's own can do it."""
    def check(torch):
        from torch.utils._python_dispatch import TorchDispatchMode

        class Empty(TorchDispatchMode):
            def __torch_dispatch__(self, func, types, args=(), kwargs=None):
                return func(*args, **(kwargs or {}))
        read, write = os.pipe()
        pid = os.fork()
        if pid == 0:
            try:
                with Empty():
                    work(torch)
                os.write(write, b"1")
            except RuntimeError:
                pass
            finally:
                os._exit(0)
        os.close(write)
        can = os.read(read, 1) == b"1"
        os.close(read)
        os.waitpid(pid, 0)
        return can
    return check


# ---- 10 --------------------------------------------------------------------------------------

@case(10, budget=None)
def sparse(t):
    torch = t.torch
    dense = torch.randn(64, 128) * (torch.rand(64, 128) < 0.1)
    s = dense.to_sparse()
    w = torch.randn(128, 128, requires_grad=True)
    t.evict_all()
    y = torch.sparse.mm(s, w)
    t.evict_all()
    y.tanh().sum().backward()
    t.evict_all()
    t.out("y", y)
    t.out("w.grad", w.grad)
    t.out("sum", torch.sparse.sum(s).item())
    t.out("s", s)


@case(10, budget=None)
def sparse_gradient_of_an_embedding(t):
    torch = t.torch
    table = torch.nn.Embedding(128, 128, sparse=True)
    optimizer = torch.optim.SparseAdam(list(table.parameters()), lr=0.1)
    for step in range(3):
        loss = table(torch.randint(128, (64,))).pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        t.out("loss%d" % step, loss.item())
    t.out("weight", table.weight)


@case(10, budget=None)
def quantised(t):
    torch = t.torch
    x = torch.randn(64, 128) * 2
    q = torch.quantize_per_tensor(x, 0.05, 0, torch.qint8)
    t.evict_all()
    y = q.dequantize() * 2
    t.evict_all()
    t.out("y", y)
    t.out("int", q.int_repr())


@case(10, budget=None, needs=modes_can(lambda torch: torch.ones(2).as_subclass(type("Named", (torch.Tensor,), {}))))
def subclass(t):
    """A tensor subclass: __torch_function__ keeps its type through operators."""
    torch = t.torch

    class Named(torch.Tensor):
        pass
    x = torch.randn(WIDE).as_subclass(Named)
    y = (x * 2).sin()
    t.evict_all()
    z = y + torch.ones(WIDE)
    t.evict_all()
    t.out("type", type(z).__name__)
    t.out("z", z.as_subclass(torch.Tensor))
    t.out("y", y.as_subclass(torch.Tensor))


@case(10, budget=None)
def meta_and_empty(t):
    torch = t.torch
    m = torch.empty(64, 128, device="meta")
    n = (m @ m.t()).sin()
    empty = torch.empty(0, 5)
    x = torch.randn(WIDE) * 2
    t.evict_all()
    t.out("shape", (n.shape, n.device.type))
    t.out("cat", torch.cat([empty, torch.ones(2, 5), empty]))
    t.out("x", x + empty.sum())


@case(10, budget=None, needs=lambda torch: hasattr(torch, "nested"))
def nested(t):
    torch = t.torch
    import warnings
    warnings.simplefilter("ignore")
    parts = [torch.randn(30 + i, 128) * 2 for i in range(4)]
    t.evict_all()
    n = torch.nested.nested_tensor(parts)
    y = torch.nn.functional.relu(n)
    t.evict_all()
    for i, part in enumerate(y.unbind()):
        t.out("part%d" % i, part * 2)


# ---- 11 --------------------------------------------------------------------------------------

@case(11, budget=None)
def conjugate_and_negative_views(t):
    """A lazy conj or neg bit is part of an input, not of its storage."""
    torch = t.torch
    x = torch.randn(64, 64, dtype=torch.complex64)
    y = x * 2
    results = [y.conj() @ y, y.conj().imag * 3, (y.conj() + 1).abs(), y.imag.neg() - 1,
               torch.view_as_real(y.conj().resolve_conj()) * 2, y.conj().t() @ y.conj(), y.H * 1.5,
               torch.vdot(y[0].conj(), y[1]).expand(64).contiguous(), y.conj().imag.sin()]
    t.evict_all()
    for i in range(len(results) - 1, -1, -1):
        t.out("r%d" % i, results[i])
    t.out("conj", y.conj())
    t.out("neg", y.conj().imag)


@case(11, budget=0.85)
def complex_fft(t):
    """A spectral layer with complex weights and its gradients."""
    torch = t.torch
    w = torch.randn(65, dtype=torch.complex64, requires_grad=True)
    x = torch.randn(64, 128, requires_grad=True)
    for step in range(2):
        f = torch.fft.rfft(x)
        y = torch.fft.irfft(f * w.conj() * torch.tensor(1 + 2j), n=128)
        z = torch.fft.fftshift(torch.fft.fft2(y).abs())
        loss = z.pow(2).mean() + y.std()
        loss.backward()
        t.out("loss%d" % step, loss)
    t.out("w.grad", w.grad)
    t.out("x.grad", x.grad)


@case(11, budget=None)
def wrapped_numbers(t):
    """A Python number does not promote, a 0-dim tensor of the same value may."""
    torch = t.torch
    i8 = torch.arange(WIDE * 4).remainder(100).to(torch.int8)
    f16 = torch.randn(WIDE * 2).half()
    scalar = torch.tensor(2.5)
    zero_dim = torch.tensor(3, dtype=torch.int64)
    results = [i8 * 2, i8 * 2.5, i8 + zero_dim, f16 * 3.3, f16 * scalar, f16 + zero_dim, i8.true_divide(3),
               torch.where(i8 > 50, i8, 7), 1 - f16, 2 ** (i8.float() / 50), f16.double() * scalar]
    t.evict_all()
    for n, r in enumerate(results):
        t.out("r%d" % n, r)


@case(11, budget=None)
def thread_count(t):
    """Sums made by two threads, made again when the script is down to one, and the reverse."""
    torch = t.torch
    x = torch.randn(1 << 20)
    w = torch.randn(256, 256)
    torch.set_num_threads(2)
    a = x.view(-1, 4096).sum(0)
    s = x.sum().expand(WIDE) * torch.ones(WIDE)
    b = (x.view(-1, 256) @ w).softmax(0).sum(0)
    t.evict_all()
    torch.set_num_threads(1)
    c = x.view(-1, 4096).sum(0)
    d = x.sum().expand(WIDE) * torch.ones(WIDE)
    t.evict_all()
    t.out("a", a)
    t.out("s", s)
    t.out("b", b)
    torch.set_num_threads(2)
    t.evict_all()
    t.out("c", c)
    t.out("d", d)
    t.out("threads", torch.get_num_threads())
    torch.set_num_threads(1)
    t.now("end", a.clone())


@case(11, budget=None)
def default_dtype(t):
    torch = t.torch
    torch.set_default_dtype(torch.float64)
    a = torch.ones(WIDE) * 3
    b = torch.arange(0, WIDE, 0.5)[:WIDE] + 1
    c = torch.arange(WIDE) / 3
    torch.set_default_dtype(torch.float32)
    d = torch.arange(WIDE) / 3
    t.evict_all()
    t.out("a", a)
    t.out("b", b)
    t.out("c", c)
    torch.set_default_dtype(torch.float64)
    t.evict_all()
    t.out("d", d)
    t.out("default", torch.get_default_dtype())
    t.now("d now", d.clone())
    torch.set_default_dtype(torch.float32)


@case(11, budget=None)
def flush_denormal(t):
    torch = t.torch
    x = torch.full((WIDE,), 1e-39)
    supported = torch.set_flush_denormal(True)
    a = x * 0.5
    torch.set_flush_denormal(False)
    b = x * 0.5
    t.evict_all()
    t.out("supported", supported)
    t.now("a", a)
    torch.set_flush_denormal(True)
    t.now("b", b)
    c = x * 0.25
    torch.set_flush_denormal(False)
    t.evict_all()
    t.now("c", c)


@case(11, budget=None)
def switches(t):
    """mkldnn, deterministic algorithms, matmul precision, autocast: as they were at the first run."""
    torch = t.torch
    x = torch.randn(4, 8, 32, 32)
    w = torch.randn(8, 8, 3, 3)
    conv = torch.nn.functional.conv2d
    with torch.backends.mkldnn.flags(enabled=False):
        a = conv(x, w, padding=1)
    b = conv(x, w, padding=1)
    torch.use_deterministic_algorithms(True)
    index = torch.randint(64, (WIDE,))
    c = torch.zeros(WIDE).index_put((index,), torch.randn(WIDE), accumulate=True)
    torch.use_deterministic_algorithms(False)
    m = torch.randn(128, 128)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        d = m @ m
        e = torch.nn.functional.linear(m, m).softmax(-1)
    torch.set_float32_matmul_precision("medium")
    f = m @ m
    torch.set_float32_matmul_precision("highest")
    t.evict_all()
    for name, value in (("f", f), ("e", e), ("d", d), ("c", c), ("b", b), ("a", a)):
        t.out(name, value)


@case(11, budget=0.92)
def autocast_training(t):
    torch = t.torch
    net = torch.nn.Sequential(torch.nn.Linear(128, 256), torch.nn.GELU(), torch.nn.Linear(256, 10))
    optimizer = torch.optim.SGD(net.parameters(), lr=0.05)
    for step in range(3):
        with torch.autocast("cpu", dtype=torch.bfloat16):
            loss = torch.nn.functional.cross_entropy(net(torch.randn(512, 128)), torch.randint(10, (512,)))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        t.out("loss%d" % step, loss.item())
    t.model("net", net)


@case(11, budget=None)
def geometry(t):
    """Strides, offsets, expansion and overlap of inputs; memory formats of outputs."""
    torch = t.torch
    x = torch.randn(4, 8, 16, 16) * 1
    results = {
        "transposed": x.transpose(1, 3).tanh(),
        "channels_last": x.contiguous(memory_format=torch.channels_last),
        "expanded": x[:, :1].expand(4, 8, 16, 16) * 2,
        "window": x.flatten().as_strided((100, 64), (3, 2), 5) + 1,
        "unfold": x.unfold(2, 4, 2).contiguous(),
        "flip": x.flip(2),
        "stepped": x[::2, 1::3, :, ::2].exp(),
        "permuted": x.permute(3, 0, 2, 1).cumsum(0),
    }
    last = results["channels_last"]
    results["conv"] = torch.nn.functional.conv2d(last, torch.randn(8, 8, 3, 3))
    results["norm"] = torch.nn.functional.batch_norm(last, None, None, training=True)
    t.evict_all()
    for name, value in reversed(list(results.items())):
        t.out(name, value)
        t.out(name + " strides", value.stride())


@case(11, budget=None)
def zero_tensors_and_forward_mode(t):
    """Forward-mode differentiation makes tensors that are zero without having bytes."""
    torch = t.torch
    import torch.autograd.forward_ad as forward
    x, v = torch.randn(WIDE) * 2, torch.randn(WIDE) * 2
    with forward.dual_level():
        dual = forward.make_dual(x, v)
        t.evict_all()
        y = dual.sin() * dual + dual.detach()
        primal, tangent = forward.unpack_dual(y)
        t.evict_all()
        t.now("primal", primal)
        t.now("tangent", tangent)
    z = torch._efficientzerotensor(WIDE) + x
    t.evict_all()
    t.out("z", z)


@case(11, budget=None, needs=modes_can(lambda torch: torch.ones(2, dtype=torch.cfloat).conj() * 2j))
def complex_numbers(t):
    """Python's complex numbers times lazy conjugates."""
    torch = t.torch
    x = torch.randn(WIDE, dtype=torch.complex64) * 2
    y = x.conj() * (1 + 2j)
    t.evict_all()
    t.out("y", y)


@case(11, budget=None, needs=modes_can(lambda torch: torch.ones(2) * torch._efficientzerotensor(2)))
def products_with_zero_tensors(t):
    torch = t.torch
    x = torch.randn(WIDE) * 2
    w = x * torch._efficientzerotensor(WIDE)
    t.evict_all()
    t.out("w", w + 0)
