# SPDX-License-Identifier: Apache-2.0
"""Corners of PyTorch that a script may use: compilers, modes and subclasses of its own, storages by
hand, other processes, errors in the middle of a step."""
import os
import tempfile

from harness import ALL_PROFILES, case

WIDE = 8192


def small(torch, inputs=64, outputs=16):
    nn = torch.nn
    return nn.Sequential(nn.Linear(inputs, 128), nn.ReLU(inplace=True), nn.Linear(128, 128), nn.Tanh(), nn.Linear(128, outputs))


def step_of(t, net, optimizer, x, name=None):
    optimizer.zero_grad()
    loss = net(x).pow(2).mean()
    loss.backward()
    optimizer.step()
    if name:
        t.out(name, loss.item())


# ---- compilers -------------------------------------------------------------------------------

@case(0, budget=None, profiles=ALL_PROFILES)
def traced_and_scripted(t):
    """jit.trace while it traces sees the operators as ever; jit.script with control flow, trained."""
    torch = t.torch
    import warnings
    warnings.simplefilter("ignore")

    class Loop(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.weight = torch.nn.Parameter(torch.randn(32, 32) * 0.2)

        def forward(self, x, n: int):
            for i in range(n):
                if float(x.abs().max()) > 1.0:
                    x = torch.tanh(x @ self.weight)
                else:
                    x = x * 1.5
            return x
    net = small(torch)
    traced = torch.jit.trace(net, torch.randn(8, 64))
    loop = torch.jit.script(Loop())
    optimizer = torch.optim.SGD(list(net.parameters()) + list(loop.parameters()), lr=0.1, momentum=0.9)
    for step in range(3):
        y = traced(torch.randn(32, 64))
        z = loop(torch.randn(64, 32), 5)
        t.evict_all()
        optimizer.zero_grad()
        (y.pow(2).mean() + z.pow(2).mean()).backward()
        optimizer.step()
        t.out("y%d" % step, y)
    frozen = torch.jit.freeze(torch.jit.script(small(torch).eval()))
    t.out("frozen", frozen(torch.randn(16, 64)))
    t.out("code", "aten::linear" in str(traced.inlined_graph) or "aten::addmm" in str(traced.inlined_graph))
    t.model("net", net)
    t.model("loop", loop)


@case(0, budget=None, profiles=ALL_PROFILES, needs=lambda torch: hasattr(torch, "compile"))
def compiled(t):
    """torch.compile, whatever it does under a mode, gives the same bits with a backend that keeps them."""
    torch = t.torch
    net = small(torch)
    fast = torch.compile(net, backend="eager")
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    for step in range(3):
        step_of(t, fast, optimizer, torch.randn(32, 64), "loss%d" % step)
    t.model("net", net)


@case(0, budget=None, profiles=ALL_PROFILES, needs=lambda torch: hasattr(torch, "func"))
def functional(t):
    """torch.func: per-sample gradients by vmap of grad, jvp, functional_call, randomness in vmap."""
    torch = t.torch
    net = small(torch, 32, 4)
    parameters = {k: v.detach() for k, v in net.named_parameters()}
    x, y = torch.randn(16, 32), torch.randint(4, (16,))

    def loss(p, x, y):
        out = torch.func.functional_call(net, p, (x.unsqueeze(0),))
        return torch.nn.functional.cross_entropy(out, y.unsqueeze(0))
    grads = torch.func.vmap(torch.func.grad(loss), in_dims=(None, 0, 0))(parameters, x, y)
    t.evict_all()
    for name, value in grads.items():
        t.out(name, value)
    value, tangent = torch.func.jvp(lambda v: (v @ v.t()).sin(), (x,), (torch.ones_like(x),))
    t.evict_all()
    t.out("value", value)
    t.out("tangent", tangent)
    draw = torch.func.vmap(lambda v: torch.nn.functional.dropout(v, 0.5), randomness="different")
    t.out("drawn", draw(torch.ones(16, 256)))
    t.out("hessian", torch.func.hessian(lambda v: (v.sin() * v).sum())(torch.randn(24)))


# ---- modes and kinds of tensors of the script's own --------------------------------------------

@case(0, budget=None, profiles=ALL_PROFILES)
def modes_of_the_script(t):
    """A dispatch mode that counts and one that replaces an operator; a function mode where there is one."""
    torch = t.torch
    from torch.utils._python_dispatch import TorchDispatchMode

    class Count(TorchDispatchMode):
        def __init__(self):
            super().__init__()
            self.names = []

        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            self.names.append(str(func))
            out = func(*args, **(kwargs or {}))
            if "mm" in str(func):
                out = out * 0.5       # an operator of the mode's own
            return out
    net = small(torch)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    with Count() as counted:
        for step in range(2):
            step_of(t, net, optimizer, torch.randn(32, 64), "loss%d" % step)
    t.out("names", len([n for n in counted.names if "mm" in n]))
    try:
        from torch.overrides import TorchFunctionMode
    except ImportError:
        TorchFunctionMode = None
    if TorchFunctionMode is not None:
        class Twice(TorchFunctionMode):
            def __torch_function__(self, func, types, args=(), kwargs=None):
                out = func(*args, **(kwargs or {}))
                return out * 2 if func is torch.sin else out
        x = torch.randn(WIDE)
        with Twice():
            y = torch.sin(x) + torch.cos(x)
        t.evict_all()
        t.out("y", y)
    t.model("net", net)


@case(0, budget=None, profiles=ALL_PROFILES)
def wrapper_subclass(t):
    """A tensor that holds another one inside and takes itself apart in its own __torch_dispatch__."""
    torch = t.torch
    from torch.utils._pytree import tree_map

    class Logged(torch.Tensor):
        @staticmethod
        def __new__(cls, inner):
            kept = torch.Tensor._make_wrapper_subclass(cls, inner.size(), dtype=inner.dtype, device=inner.device,
                                                       requires_grad=inner.requires_grad)
            kept.inner = inner
            return kept

        @classmethod
        def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
            unwrap = lambda x: x.inner if isinstance(x, Logged) else x              # noqa: E731
            wrap = lambda x: Logged(x) if isinstance(x, torch.Tensor) else x        # noqa: E731
            out = func(*tree_map(unwrap, args), **tree_map(unwrap, kwargs or {}))
            seen.append(str(func))
            return tree_map(wrap, out)
    seen = []
    x = Logged(torch.randn(64, 64))
    y = (x @ x).tanh() + 1
    t.evict_all()
    z = (y * x).sum(0)
    t.evict_all()
    t.out("y", y.inner)
    t.out("z", z.inner)
    t.out("seen", seen)


@case(0, budget=0.9, profiles=ALL_PROFILES)
def saved_tensors_packed(t):
    """saved_tensors_hooks that keep half precision, numpy arrays, or files in place of tensors."""
    torch = t.torch
    hooks = torch.autograd.graph.saved_tensors_hooks
    net = small(torch)
    folder = tempfile.mkdtemp()

    def to_file(x):
        path = os.path.join(folder, str(len(os.listdir(folder))))
        torch.save(x, path)
        return path
    pairs = ((lambda x: x.to(torch.float64), lambda x: x.to(torch.float32)),
             (lambda x: x.detach().numpy().copy(), torch.from_numpy), (to_file, torch.load))
    for number, (pack, unpack) in enumerate(pairs):
        with hooks(pack, unpack):
            loss = net(torch.randn(32, 64)).pow(2).mean()
        t.evict_all()
        loss.backward()
        t.out("loss%d" % number, loss.item())
    t.grads("net", net)


# ---- storages by hand --------------------------------------------------------------------------

@case(0, budget=None, profiles=ALL_PROFILES)
def storages_by_hand(t):
    """set_, resize_, .data =, swapped storages, tensors over one untyped storage."""
    torch = t.torch
    x, y = torch.randn(64, 64) * 2, torch.randn(64, 64) * 3
    a, b = x.sin(), y.cos()
    t.evict_all()
    c = torch.empty(0)
    c.set_(a)                                  # another tensor over a's storage
    c.add_(1)
    t.evict_all()
    a.data, b.data = b.data, a.data            # exchanged
    t.evict_all()
    d = torch.empty(0)
    d.set_(b.untyped_storage() if hasattr(b, "untyped_storage") else b.storage(), 64, (8, 8), (16, 1))
    e = torch.randn(10) * 2
    e.resize_(20)[10:] = 1
    f = torch.zeros(4)
    torch.add(x[0, :30], y[0, :30], out=f.resize_(0))
    t.evict_all()
    for name, value in (("a", a), ("b", b), ("c", c), ("d", d), ("e", e), ("f", f)):
        t.out(name, value)


@case(0, budget=0.95, profiles=ALL_PROFILES)
def flattened_parameters(t):
    """As FSDP has them: one flat parameter, views of it as the module's weights, its storage freed to
    size 0 and filled again around each use, gradients written into one flat gradient."""
    torch = t.torch
    net = small(torch)
    named = list(net.named_parameters())
    flat = torch.nn.Parameter(torch.cat([p.detach().reshape(-1) for _, p in named]))
    shapes = [(name, p.shape, p.numel()) for name, p in named]
    for name, _, _ in shapes:
        owner, _, leaf = name.rpartition(".")
        delattr(net.get_submodule(owner), leaf)
    shard = flat.detach().clone()
    optimizer = torch.optim.SGD([flat], lr=0.1, momentum=0.9)

    def storage_of(tensor):
        return tensor.untyped_storage() if hasattr(tensor, "untyped_storage") else tensor.storage()

    def gather():
        storage_of(flat).resize_(shard.numel() * (4 if hasattr(flat, "untyped_storage") else 1))
        flat.data.copy_(shard)
        at = 0
        for name, shape, n in shapes:
            owner, _, leaf = name.rpartition(".")
            setattr(net.get_submodule(owner), leaf, flat[at:at + n].view(shape))
            at += n

    def free():
        for name, _, _ in shapes:
            owner, _, leaf = name.rpartition(".")
            delattr(net.get_submodule(owner), leaf)
        shard.copy_(flat.data)
        storage_of(flat).resize_(0)
    free_first = shard.clone()
    for step in range(3):
        gather()
        optimizer.zero_grad()
        loss = net(torch.randn(64, 64)).pow(2).mean()
        loss.backward()
        t.out("grad%d" % step, flat.grad.clone())
        optimizer.step()
        t.out("loss%d" % step, loss.item())
        del loss
        free()
    t.out("shard", shard)
    t.out("first", free_first)


# ---- other processes ---------------------------------------------------------------------------

class Squares:
    """A data set that a spawned worker can unpickle."""

    def __init__(self, x):
        self.x = x

    def __len__(self):
        return len(self.x)

    def __getitem__(self, i):
        return self.x[i] * self.x[i]


@case(0, budget=None, profiles=("plain", "stress"))
def loader_spawns(t):
    """A spawned worker gets the data set pickled and sends batches through shared memory."""
    torch = t.torch
    data = Squares(torch.randn(16, 512) * 2)
    loader = torch.utils.data.DataLoader(data, batch_size=8, num_workers=1, multiprocessing_context="spawn")
    total = torch.zeros(512)
    for batch in loader:
        total = total + batch.sin().sum(0)
    t.evict_all()
    t.out("total", total)


@case(0, budget=0.9, profiles=ALL_PROFILES, ranks=2, needs=lambda torch: torch.distributed.is_available())
def data_parallel(t):
    """DDP on gloo, two ranks under Coopscope each: buckets, a buffer broadcast, no_sync, all_reduce."""
    torch = t.torch
    dist = torch.distributed
    dist.init_process_group("gloo", init_method="file://" + t.meeting, rank=t.rank, world_size=2)
    torch.manual_seed(7)
    nn = torch.nn
    net = nn.Sequential(nn.Linear(64, 128), nn.BatchNorm1d(128), nn.ReLU(), nn.Dropout(0.1), nn.Linear(128, 16))
    parallel = nn.parallel.DistributedDataParallel(net, bucket_cap_mb=0.02)
    optimizer = torch.optim.SGD(parallel.parameters(), lr=0.1, momentum=0.9)
    torch.manual_seed(100 + t.rank)
    for step in range(3):
        optimizer.zero_grad()
        if step == 1:
            with parallel.no_sync():
                parallel(torch.randn(256, 64)).pow(2).mean().backward()
        loss = parallel(torch.randn(256, 64)).pow(2).mean()
        loss.backward()
        optimizer.step()
        total = loss.detach().clone()
        dist.all_reduce(total)
        t.out("loss%d" % step, (loss.item(), total.item()))
    t.model("net", net)
    t.optimizer("optimizer", optimizer)
    dist.barrier()
    dist.destroy_process_group()


# ---- errors and tools --------------------------------------------------------------------------

@case(0, budget=0.8, profiles=ALL_PROFILES)
def errors_in_the_middle(t):
    """Exceptions out of forward, a hook, a custom function's backward and a closure; the step is done again."""
    torch = t.torch
    nn = torch.nn
    net = small(torch)
    optimizer = torch.optim.Adam(net.parameters(), lr=1e-2)
    failing = {"where": None}

    class Fragile(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x.sin()

        @staticmethod
        def backward(ctx, g):
            x, = ctx.saved_tensors
            if failing["where"] == "backward":
                raise KeyError("backward")
            return g * x.cos()

    def hook(module, args, out):
        if failing["where"] == "forward":
            raise KeyError("forward")

    def gradient_hook(g):
        if failing["where"] == "hook":
            raise KeyError("hook")
        return g * 1.5
    net[2].register_forward_hook(hook)
    net[0].weight.register_hook(gradient_hook)
    caught = 0
    for step, where in enumerate((None, "forward", "backward", "hook", "shape")):
        x = torch.randn(512, 64)
        for attempt in range(2):
            failing["where"] = where if attempt == 0 else None
            try:
                optimizer.zero_grad()
                loss = Fragile.apply(net(x)).pow(2).mean()
                if failing["where"] == "shape":
                    x @ torch.ones(63, 1)
                loss.backward()
                optimizer.step()
                break
            except (KeyError, RuntimeError) as error:
                assert isinstance(error, KeyError) or "shapes" in str(error), error
                caught += 1
        t.out("loss%d" % step, loss.item())
        del loss
    t.out("caught", caught)
    t.model("net", net)


@case(0, budget=0.95, profiles=ALL_PROFILES)
def profiled(t):
    """torch.profiler with stacks and memory at the same time."""
    torch = t.torch
    net = small(torch)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU], profile_memory=True,
                                record_shapes=True) as profile:
        for step in range(2):
            with torch.profiler.record_function("step"):
                step_of(t, net, optimizer, torch.randn(64, 64), "loss%d" % step)
    t.out("seen", any("addmm" in e.key for e in profile.key_averages()))
    t.model("net", net)


@case(0, budget=0.95, profiles=ALL_PROFILES)
def switches_between_steps(t):
    """mkldnn off and on, determinism, two threads, another default dtype: each step its own."""
    torch = t.torch
    nn = torch.nn
    net = nn.Sequential(nn.Conv2d(3, 8, 3, padding=1), nn.BatchNorm2d(8), nn.ReLU(), nn.Conv2d(8, 8, 3), nn.Flatten(),
                        nn.Linear(8 * 14 * 14, 10))
    optimizer = torch.optim.SGD(net.parameters(), lr=0.01)
    for step in range(5):
        x, y = torch.randn(4, 3, 16, 16), torch.randint(10, (4,))
        out = net(x)
        if step == 1:
            torch.use_deterministic_algorithms(True)
        if step == 2:
            torch._C._set_mkldnn_enabled(False)
        if step == 3:
            torch.set_num_threads(2)
        loss = nn.functional.cross_entropy(out, y)
        t.evict_all()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        torch.use_deterministic_algorithms(False)
        torch._C._set_mkldnn_enabled(True)
        torch.set_num_threads(1)
        t.out("loss%d" % step, loss.item())
    t.model("net", net)


@case(0, budget=None, profiles=ALL_PROFILES)
def workers_allocate(t):
    """Two OpenMP threads at sorts, scatters and convolutions that take memory inside of them."""
    torch = t.torch
    torch.set_num_threads(2)
    x = torch.randn(256, 512, requires_grad=True)
    y = x.sort(dim=0)[0].cumsum(1) + x.topk(4, dim=1)[0].sum(1, keepdim=True)
    z = torch.nn.functional.conv1d(y.unsqueeze(0), torch.randn(8, 256, 5))
    w = torch.zeros(512).index_add(0, torch.randint(512, (4096,)), torch.randn(4096))
    t.evict_all()
    (z.pow(2).mean() + (y * w).mean()).backward()
    t.out("z", z)
    t.out("w", w)
    t.out("x.grad", x.grad)
    torch.set_num_threads(1)
