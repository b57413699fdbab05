# SPDX-License-Identifier: Apache-2.0
"""Whole programs and the features of PyTorch that people use: nothing here is about one rule."""
import contextlib
import io
import os
import runpy
import sys

from harness import case

WIDE = 8192


# ---- views -----------------------------------------------------------------------------------

@case(0, budget=None)
def views_of_an_evicted_tensor(t):
    """detach, chunk, unbind, slices of a tensor without bytes: no bytes are needed for them."""
    torch = t.torch
    x = torch.randn(64, 256) * 2
    t.evict_all()
    before = t.stats()["replays"]
    parts = [x.detach(), x[3:9], x.t(), x.view(-1), x.view(128, -1), x.unsqueeze(0).expand(3, -1, -1)]
    parts += x.chunk(4, dim=1) + x.unbind(0)[:2] + x.split(20) + (x.diagonal(), x.view_as(x), x.narrow(1, 5, 7))
    shapes = [(p.shape, p.stride(), p.storage_offset(), p.is_contiguous()) for p in parts]
    same = [p._base is x for p in parts[1:]]
    t.check(t.stats()["replays"] == before, "a view needed the bytes")
    t.out("shapes", shapes)
    t.out("same", same)
    del x
    t.evict_all()
    for i in range(len(parts) - 1, -1, -1):
        t.out("part%d" % i, parts[i])


@case(0, budget=None)
def in_place_on_views(t):
    """Writing through one alias is seen through every other, evicted or not."""
    torch = t.torch
    x = torch.randn(64, 256) * 2
    rows, columns = x.unbind(0), x.t()
    readers = [x.sin()]
    t.evict_all()
    rows[5].add_(1)
    readers.append(x.sin())
    t.evict_all()
    columns[7].mul_(3)
    readers.append(columns.cos())
    t.evict_all()
    x[10:20, ::3] = torch.arange(86.)
    x[torch.randint(64, (5,))] += 2
    x.view(-1)[::1000].zero_()
    readers.append(rows[5] * 2)
    t.evict_all()
    x.t_()
    x.sub_(0.5)
    t.evict_all()
    for i, r in enumerate(readers):
        t.out("reader%d" % i, r)
    t.out("row", rows[11])
    t.out("columns", columns)
    t.out("x", x)


@case(0, budget=None)
def in_place_with_autograd(t):
    """In-place operators on views inside a graph; version counters must not move by eviction."""
    torch = t.torch
    w = torch.randn(64, 256, requires_grad=True)
    x = w * 2
    x[:, :128].mul_(0.5)
    y = x.sin()
    y[3] = 0
    z = torch.relu_(y - 1)
    t.evict_all()
    version = (x._version, y._version, z._version)
    z.sigmoid().sum().backward()
    t.out("version", version)
    t.out("grad", w.grad)
    a = torch.randn(WIDE, requires_grad=True)
    b = a * 1
    c = b.sin()
    t.evict_all()
    b.add_(1)
    try:
        c.sum().backward()
        said = ""
    except RuntimeError as error:
        said = "modified by an inplace operation" in str(error)
    t.out("error", said)


@case(0, budget=None)
def out_variants(t):
    torch = t.torch
    x, y = torch.randn(64, 256), torch.randn(64, 256)
    out = torch.empty(64, 256)
    torch.add(x, y, out=out)
    a = out.sin()
    t.evict_all()
    torch.mul(x, out, out=out)
    b = out.sin()
    values, indices = torch.empty(64), torch.empty(64, dtype=torch.long)
    t.evict_all()
    torch.max(out, 1, out=(values, indices))
    big = torch.zeros(64, 512)
    torch.cat([out, y], 1, out=big)
    torch.matmul(x, y.t(), out=big[:, :64])
    t.evict_all()
    for name, value in (("a", a), ("b", b), ("values", values), ("indices", indices), ("big", big), ("out", out)):
        t.out(name, value)


# ---- autograd --------------------------------------------------------------------------------

@case(0, budget=0.85)
def double_backward(t):
    """A gradient penalty: the graph of the gradient is differentiated again."""
    torch = t.torch
    w = [torch.randn(128, 128).mul_(0.1).requires_grad_() for _ in range(3)]
    x = torch.randn(256, 128, requires_grad=True)
    for step in range(2):
        h = x
        for p in w:
            h = (h @ p).tanh()
        g, = torch.autograd.grad(h.sum(), x, create_graph=True)
        t.evict_all()
        loss = (g.norm(2, dim=1) - 1).pow(2).mean()
        loss.backward()
        t.out("loss%d" % step, loss)
        with torch.no_grad():
            for p in w:
                p -= 0.1 * p.grad
                p.grad = None
    for i, p in enumerate(w):
        t.out("w%d" % i, p)


@case(0, budget=0.8)
def graph_retained(t):
    torch = t.torch
    w = torch.randn(256, 256, requires_grad=True)
    x = torch.randn(64, 256)
    h = ((x @ w).tanh() @ w).sigmoid()
    for i in range(4):
        g, = torch.autograd.grad(h[:, i * 50:(i + 1) * 50].sum(), w, retain_graph=True)
        t.evict_all()
        t.out("g%d" % i, g)
    h.sum().backward()
    t.out("grad", w.grad)


@case(0, budget=0.85)
def functions_of_the_scripts_own(t):
    """torch.autograd.Function with saved tensors, marked dirty, and with numpy inside."""
    torch = t.torch

    class Square(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            y = x * x
            ctx.save_for_backward(x, y)
            return y

        @staticmethod
        def backward(ctx, g):
            x, y = ctx.saved_tensors
            return 2 * g * x + 0 * y

    class Scale(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.mark_dirty(x)
            return x.mul_(3)

        @staticmethod
        def backward(ctx, g):
            return g * 3

    class Host(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return torch.from_numpy(x.detach().numpy() ** 3)

        @staticmethod
        def backward(ctx, g):
            x, = ctx.saved_tensors
            return torch.from_numpy(3 * x.numpy() ** 2) * g
    w = torch.randn(64, 256, requires_grad=True)
    for step in range(2):
        y = Host.apply(Scale.apply(Square.apply(w.sin()) * 0.3).tanh())
        t.evict_all()
        y.sum().backward()
    t.out("y", y)
    t.out("grad", w.grad)


@case(0, budget=0.8)
def checkpointed(t):
    """torch.utils.checkpoint, both ways, with dropout inside."""
    from torch.utils.checkpoint import checkpoint, checkpoint_sequential
    torch = t.torch
    nn = torch.nn
    blocks = nn.Sequential(*[nn.Sequential(nn.Linear(128, 256), nn.ReLU(inplace=True), nn.Dropout(0.2),
                                           nn.Linear(256, 128)) for _ in range(4)])
    x = torch.randn(256, 128, requires_grad=True)
    h = x
    for i, block in enumerate(blocks):
        h = checkpoint(block, h, use_reentrant=bool(i % 2)) + h
    t.evict_all()
    h.pow(2).mean().backward()
    try:
        h = checkpoint_sequential(blocks, 2, x, use_reentrant=True)
    except (TypeError, ValueError):
        h = checkpoint_sequential(blocks, 2, x)
    h.sum().backward()
    t.out("x.grad", x.grad)
    t.grads("blocks", blocks)


@case(0, budget=0.92)
def hooks(t):
    """Tensor hooks that replace gradients, module hooks, saved-tensor hooks."""
    torch = t.torch
    nn = torch.nn
    net = nn.Sequential(nn.Linear(128, 256), nn.Tanh(), nn.Linear(256, 64))
    seen = []
    net[0].register_forward_hook(lambda m, i, o: o * 1.5)
    net[2].register_full_backward_hook(lambda m, gi, go: (gi[0] * 0.5,) + tuple(gi[1:]))
    net[0].weight.register_hook(lambda g: seen.append(g.norm().item()) or g.clamp(-0.1, 0.1))
    for step in range(2):
        h = net(torch.randn(256, 128))
        h.retain_grad()
        h.register_hook(lambda g: g * 2)
        t.evict_all()
        h.pow(2).mean().backward()
        t.out("h.grad%d" % step, h.grad)
    packed = []
    with torch.autograd.graph.saved_tensors_hooks(lambda x: packed.append(x) or len(packed) - 1, lambda i: packed[i]):
        y = (net(torch.randn(64, 128)).sin()).cos()
    t.evict_all()
    y.sum().backward()
    t.out("seen", seen)
    t.grads("net", net)


@case(0, budget=None)
def functional_transforms(t):
    """Jacobian, Hessian, and vmap where there is one."""
    torch = t.torch
    w = torch.randn(32, 32)
    x = torch.randn(32)
    f = lambda x: (w @ x).tanh()                                          # noqa: E731
    t.out("jacobian", torch.autograd.functional.jacobian(f, x))
    t.evict_all()
    t.out("hessian", torch.autograd.functional.hessian(lambda x: f(x).sum(), x))
    t.evict_all()
    if hasattr(torch, "func"):
        batch = torch.randn(300, 32)
        t.out("vmap", torch.func.vmap(f)(batch))
        t.out("grad", torch.func.vmap(torch.func.grad(lambda x: f(x).sum()))(batch))
    else:
        t.out("w", w * 2)
    t.out("big", torch.randn(WIDE) * 2)


@case(0, budget=None)
def inference_mode(t):
    torch = t.torch
    net = torch.nn.Sequential(torch.nn.Linear(128, 256), torch.nn.ReLU(), torch.nn.Linear(256, 128)).eval()
    with torch.inference_mode():
        x = torch.randn(64, 128) * 2
        y = net(x)
        t.evict_all()
        y.add_(1)
        z = y.sin()
        t.evict_all()
        t.out("z", z)
        t.now("y", y)
    with torch.no_grad():
        w = net(x)
        t.evict_all()
        t.out("w", w)


# ---- nets ------------------------------------------------------------------------------------

def train(t, net, make, loss_of, steps=3, optimizer=None):
    optimizer = optimizer or t.torch.optim.SGD(net.parameters(), lr=0.05, momentum=0.9)
    for step in range(steps):
        x, y = make()
        optimizer.zero_grad(set_to_none=True)
        loss = loss_of(net(x), y)
        loss.backward()
        optimizer.step()
        t.out("loss%d" % step, loss.item())
        del loss, x, y
    t.model("net", net)


@case(0, budget=0.8, stress=9)
def recurrent(t):
    torch = t.torch
    nn = torch.nn

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.rnn = nn.LSTM(32, 64, num_layers=2, dropout=0.1, bidirectional=True, batch_first=True)
            self.head = nn.Linear(128, 8)

        def forward(self, x):
            packed = nn.utils.rnn.pack_padded_sequence(x, [10, 8, 7] + [5] * 13, batch_first=True)
            y, _ = nn.utils.rnn.pad_packed_sequence(self.rnn(packed)[0], batch_first=True)
            return self.head(y[:, -1])
    train(t, Net(), lambda: (torch.randn(16, 10, 32), torch.randint(8, (16,))), nn.functional.cross_entropy)


@case(0, budget=0.8)
def recurrent_unpacked(t):
    """mkldnn's LSTM makes one output more where gradients are recorded."""
    torch = t.torch
    nn = torch.nn

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.first = nn.Linear(32, 32)
            self.rnn = nn.LSTM(32, 32, num_layers=2, batch_first=True)
            self.rest = nn.Sequential(*[m for _ in range(4) for m in (nn.Linear(32, 32), nn.Tanh())])

        def forward(self, x):
            return self.rest(self.rnn(self.first(x))[0])
    train(t, Net(), lambda: (torch.randn(16, 24, 32), torch.randn(16, 24, 32)), nn.functional.mse_loss)


@case(0, budget=0.8)
def attention_of_torch(t):
    torch = t.torch
    nn = torch.nn
    layer = nn.TransformerEncoderLayer(64, 4, 128, dropout=0.1, batch_first=True, activation="gelu")
    net = nn.TransformerEncoder(layer, 2)
    train(t, net, lambda: (torch.randn(8, 24, 64), torch.randn(8, 24, 64)), nn.functional.mse_loss)


@case(0, budget=0.8)
def normalisations(t):
    torch = t.torch
    nn = torch.nn
    net = nn.Sequential(nn.Conv2d(3, 16, 3, padding=1), nn.GroupNorm(4, 16), nn.SiLU(inplace=True),
                        nn.utils.spectral_norm(nn.Conv2d(16, 16, 3, padding=1)), nn.LocalResponseNorm(3),
                        nn.LeakyReLU(0.1, True),
                        nn.utils.weight_norm(nn.Conv2d(16, 16, 3, stride=2)), nn.MaxPool2d(2), nn.PReLU(),
                        nn.ConvTranspose2d(16, 8, 2, stride=2), nn.Dropout2d(0.2), nn.Hardswish(inplace=True),
                        nn.AdaptiveAvgPool2d(2), nn.Flatten(), nn.LayerNorm(32), nn.Linear(32, 8))
    train(t, net, lambda: (torch.randn(4, 3, 24, 24), torch.randint(8, (4,))), nn.functional.cross_entropy)


@case(0, budget=0.9)
def scatter_and_sort(t):
    """Indexing, scatter, sort, cumulative operators with gradients."""
    torch = t.torch
    x = torch.randn(64, 256, requires_grad=True)
    for step in range(2):
        v, i = x.sort(dim=1)
        top = v.topk(32, dim=1)[0]
        s = torch.zeros(64, 256).scatter_add(1, i, v.cumsum(1) * 0.01)
        g = s.gather(1, i.flip(1)).index_add(0, torch.randint(64, (16,)), torch.ones(16, 256))
        p = torch.nn.functional.pad(g, (1, 2), mode="constant")[:, ::2]
        n = torch.nn.functional.normalize(p, dim=1).logsumexp(1)
        t.evict_all()
        (n.sum() + top.prod(1).tanh().sum() + s.var() + s.median()).backward()
        t.out("n%d" % step, n)
    t.out("grad", x.grad)


@case(0, budget=0.9)
def losses(t):
    torch = t.torch
    F = torch.nn.functional
    x = torch.randn(40, 4, 20, requires_grad=True)
    lengths = torch.full((4,), 40), torch.tensor([8, 7, 5, 9])
    log = x.log_softmax(-1)
    target = torch.randint(1, 20, (4, 9))
    a, b = torch.randn(64, 256, requires_grad=True), torch.randn(64, 256)
    t.evict_all()
    loss = F.ctc_loss(log, target, *lengths) + F.smooth_l1_loss(a, b)
    loss = loss + F.kl_div(a.log_softmax(1), b.softmax(1), reduction="batchmean")
    loss = loss + F.binary_cross_entropy_with_logits(a, (b > 0).float()) + F.cosine_embedding_loss(a, b, torch.ones(64))
    loss = loss + F.triplet_margin_loss(a, b, a.flip(0)) + F.nll_loss(a.log_softmax(1), torch.randint(256, (64,)))
    t.evict_all()
    loss.backward()
    t.out("loss", loss)
    t.out("x.grad", x.grad)
    t.out("a.grad", a.grad)


@case(0, budget=0.9)
def linear_algebra(t):
    torch = t.torch
    a = torch.randn(64, 64, dtype=torch.float64)
    a = (a @ a.t() + 64 * torch.eye(64)).requires_grad_()
    low = torch.linalg.cholesky(a)
    s = torch.linalg.svd(a, full_matrices=False)
    e = torch.linalg.eigh(a)
    q, r = torch.linalg.qr(a)
    t.evict_all()
    y = torch.linalg.solve(a, low) + torch.linalg.inv(a) + e[0] * 0.01 + s[1] * 0.01 + r
    (y.sum() + torch.logdet(a) + torch.einsum("ij,kj->ik", q, y).mean()).backward()
    t.out("y", y)
    t.out("grad", a.grad)


@case(0, budget=None)
def foreach_operators(t):
    torch = t.torch
    xs = [torch.randn(64, 128) * 2 for _ in range(8)]
    ys = torch._foreach_mul(xs, 0.5)
    torch._foreach_add_(xs, 1)
    zs = torch._foreach_sqrt(torch._foreach_abs(torch._foreach_add(xs, ys)))
    t.evict_all()
    torch._foreach_addcmul_(xs, ys, zs, value=0.1)
    torch._foreach_zero_(ys[:3])
    t.evict_all()
    for i in range(8):
        t.out("x%d" % i, xs[i])
        t.out("y%d" % i, ys[i])
        t.out("z%d" % i, zs[i])


@case(0, budget=0.85)
def weights_tied_and_swapped(t):
    """Shared parameters, a module replaced, and requires_grad turned while training."""
    torch = t.torch
    nn = torch.nn

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.word = nn.Embedding(64, 128)
            self.middle = nn.Linear(128, 128)
            self.head = nn.Linear(128, 64, bias=False)
            self.head.weight = self.word.weight

        def forward(self, x):
            return self.head(self.middle(self.word(x)).relu())
    net = Net()
    make = lambda: (torch.randint(64, (64, 16)), torch.randint(64, (1024,)))        # noqa: E731
    loss_of = lambda y, target: nn.functional.cross_entropy(y.flatten(0, 1), target)  # noqa: E731
    optimizer = torch.optim.Adam(net.parameters(), lr=1e-2)
    for step in range(6):
        if step == 2:
            net.middle.weight.requires_grad_(False)
        if step == 4:
            net.middle = nn.Linear(128, 128)
            optimizer = torch.optim.Adam(net.parameters(), lr=1e-2)
        x, y = make()
        optimizer.zero_grad()
        loss = loss_of(net(x), y)
        loss.backward()
        optimizer.step()
        t.out("loss%d" % step, loss.item())
    t.model("net", net)


@case(0, budget=None)
def scripted(t):
    """torch.jit.script: operators that come from no Python frame."""
    torch = t.torch
    import warnings
    warnings.simplefilter("ignore")
    net = torch.nn.Sequential(torch.nn.Linear(128, 256), torch.nn.ReLU(), torch.nn.Linear(256, 128))
    scripted_net = torch.jit.trace(net, torch.randn(4, 128))
    for step in range(3):
        x = torch.randn(64, 128)
        y = scripted_net(x)
        t.evict_all()
        y.pow(2).mean().backward()
    t.out("y", y)
    t.grads("net", net)


@case(0, budget=None)
def tensors_made_before_the_first_operator(t):
    """A training loop without zero_grad, without an optimizer, all by hand."""
    torch = t.torch
    w = torch.randn(128, 128, requires_grad=True)
    b = torch.zeros(128, requires_grad=True)
    for step in range(4):
        x = torch.randn(64, 128)
        y = (x @ w + b).tanh()
        loss = (y - x.roll(1, 1)).abs().mean()
        gw, gb = torch.autograd.grad(loss, (w, b))
        t.evict_all()
        w.data -= 0.1 * gw
        b.data.sub_(gb, alpha=0.1)
        t.out("y%d" % step, y)
    t.out("w", w)
    t.out("b", b)


# ---- the demos -------------------------------------------------------------------------------

def demo_case(name, steps):
    def run(t):
        text = io.StringIO()
        folder = os.environ["COOP_DEMOS"]
        sys.path.insert(0, folder)
        sys.argv = [name, "--size", "tiny", "--steps", str(steps)]
        with contextlib.redirect_stdout(text):
            runpy.run_path(os.path.join(folder, name), run_name="__main__")
        lines = text.getvalue().splitlines()
        assert len(lines) == steps + 3, lines
        for i, line in enumerate(lines):
            t.out("line%d" % i, line)
    run.__name__ = "demo_" + name[:-3]
    case(0, budget=None, timeout=120)(run)


for _name in ("resnet.py", "transformer.py", "unet.py"):
    demo_case(_name, 2)
