# SPDX-License-Identifier: Apache-2.0
"""Rules 5 to 7: constants that are overwritten, state that outlives a step, hidden writers and
random operators."""
import copy

from harness import case

WIDE = 8192


def convolutions(torch, **norm):
    """Little state, many activations: what a budget can do something about."""
    nn = torch.nn
    layers = []
    for inputs in (3, 8, 8, 8, 8, 8):
        layers += [nn.Conv2d(inputs, 8, 3, padding=1), nn.BatchNorm2d(8, **norm), nn.ReLU(inplace=True)]
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(2), nn.Flatten(), nn.Linear(32, 10))


def steps(t, net, optimizer, make, n=5, before_step=None):
    for step in range(n):
        x, y = make()
        optimizer.zero_grad(set_to_none=True)
        loss = t.torch.nn.functional.cross_entropy(net(x), y)
        loss.backward()
        if before_step:
            before_step(step)
        optimizer.step()
        t.out("loss%d" % step, loss.item())
        del loss, x, y
    t.model("net", net)
    t.optimizer("optimizer", optimizer)


def images(torch, batch=8):
    return lambda: (torch.randn(batch, 3, 16, 16), torch.randint(10, (batch,)))


# ---- 5 ---------------------------------------------------------------------------------------

@case(5, budget=None)
def parameter_overwritten(t):
    """What was computed from the old value must stay what it was."""
    torch = t.torch
    w = torch.nn.Parameter(torch.randn(128, 128))
    x = torch.randn(64, 128)
    with torch.no_grad():
        y = x @ w
        t.evict_all()
        w.mul_(0.5)
        z = x @ w
        t.evict_all()
        w.add_(1)
    t.evict_all()
    t.out("y", y)
    t.out("z", z)
    t.out("w", w)


@case(5, budget=None)
def parameter_overwritten_behind_dead_ones(t):
    """The held tensor reaches the constant through tensors the script let go."""
    torch = t.torch
    w = torch.nn.Parameter(torch.randn(128, 128))
    with torch.no_grad():
        h = w * 2
        for _ in range(5):
            h = h.tanh() + 0.1
        y = h.exp()
        del h
        t.evict_all()
        w.zero_()
        t.evict_all()
        t.out("y", y)
        t.out("w", w)


@case(5, budget=None)
def batch_overwritten(t):
    """A batch made by hand and refilled in place, as a double buffer would."""
    torch = t.torch
    x = torch.empty(64, 128)
    results = []
    for step in range(4):
        x.copy_(torch.randn(64, 128))
        results.append((x * 2).sigmoid())
        t.evict_all()
        x[: 32] = step
        results.append(x.exp())
    x.zero_()
    t.evict_all()
    for i, r in enumerate(results):
        t.out("r%d" % i, r)


@case(5, budget=None)
def data_assigned(t):
    """p.data = other: the parameter gets another storage."""
    torch = t.torch
    p = torch.nn.Parameter(torch.randn(128, 128))
    y = (p.detach() * 3).cos()
    t.evict_all()
    p.data = torch.randn(128, 128)
    z = p.detach() * 2
    t.evict_all()
    p.data.add_(1)
    t.evict_all()
    t.out("y", y)
    t.out("z", z)
    t.out("p", p)


@case(5, budget=None)
def in_place_chain_over_a_batch(t):
    """Many versions of one storage, with readers of each."""
    torch = t.torch
    x = torch.randn(WIDE)
    x = x * 1
    readers = []
    for i in range(8):
        readers.append(x.sin())
        x.mul_(1.1)
        readers.append(x + i)
        x.add_(0.1).clamp_(-2, 2)
    t.evict_all()
    for i in (3, 0, 15, 7, 12):
        t.out("reader%d" % i, readers[i])
    t.out("x", x)


@case(5, budget=None)
def read_after_every_update(t):
    """An update between the making and the reading of a dozen tensors."""
    torch = t.torch
    w = torch.nn.Parameter(torch.randn(WIDE))
    made = []
    with torch.no_grad():
        for i in range(12):
            made.append((w * (i + 1)).tanh())
            w -= 0.01 * made[-1]
    t.evict_all()
    for i, y in enumerate(made):
        t.out("made%d" % i, y)
    t.out("w", w)


# ---- 6 ---------------------------------------------------------------------------------------

OPTIMIZERS = {
    "sgd": lambda o, p: o.SGD(p, lr=0.05, momentum=0.9, weight_decay=1e-3, nesterov=True),
    "adam": lambda o, p: o.Adam(p, lr=1e-3, amsgrad=True),
    "adamw": lambda o, p: o.AdamW(p, lr=1e-3),
    "adamw_foreach": lambda o, p: o.AdamW(p, lr=1e-3, foreach=True),
    "sgd_foreach": lambda o, p: o.SGD(p, lr=0.05, momentum=0.9, foreach=True),
    "rmsprop": lambda o, p: o.RMSprop(p, lr=1e-3, momentum=0.5, centered=True),
    "adagrad": lambda o, p: o.Adagrad(p, lr=1e-2),
    "adadelta": lambda o, p: o.Adadelta(p),
    "rprop": lambda o, p: o.Rprop(p),
    "nadam": lambda o, p: o.NAdam(p),
    "asgd": lambda o, p: o.ASGD(p),
}


def optimizer_case(name):
    def run(t):
        net = convolutions(t.torch)
        steps(t, net, OPTIMIZERS[name](t.torch.optim, net.parameters()), images(t.torch))
    run.__name__ = "optimizer_" + name
    case(6, budget=0.8)(run)


for _name in OPTIMIZERS:
    optimizer_case(_name)


@case(6, budget=0.8, needs=lambda torch: hasattr(torch, "_fused_adamw_"))
def optimizer_fused(t):
    net = convolutions(t.torch)
    try:
        optimizer = t.torch.optim.AdamW(net.parameters(), lr=1e-3, fused=True)
    except RuntimeError:
        optimizer = t.torch.optim.AdamW(net.parameters(), lr=1e-3)
    steps(t, net, optimizer, images(t.torch))


@case(6, budget=0.9, timeout=120)
def lbfgs_with_closure(t):
    """The closure runs the net many times within one step."""
    torch = t.torch
    net = torch.nn.Sequential(torch.nn.Linear(64, 128), torch.nn.Tanh(), torch.nn.Linear(128, 8))
    x, y = torch.randn(2048, 64), torch.randn(2048, 8)
    optimizer = torch.optim.LBFGS(net.parameters(), lr=0.5, max_iter=6, history_size=4)
    for step in range(3):
        def closure():
            optimizer.zero_grad()
            loss = (net(x) - y).pow(2).mean()
            loss.backward()
            return loss
        t.out("loss%d" % step, optimizer.step(closure).item())
    t.model("net", net)


@case(6, budget=0.8)
def moving_average_of_parameters(t):
    """EMA by hand and a copied model: state that is neither parameter nor buffer."""
    torch = t.torch
    net = convolutions(torch)
    average = {k: v.detach().clone() for k, v in net.named_parameters()}
    teacher = copy.deepcopy(net)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)

    def update(step):
        with torch.no_grad():
            for k, v in net.named_parameters():
                average[k].mul_(0.9).add_(v, alpha=0.1)
            for a, b in zip(teacher.parameters(), net.parameters()):
                a.lerp_(b, 0.25)
    steps(t, net, optimizer, images(torch), before_step=update)
    for k, v in average.items():
        t.out("average." + k, v)
    t.model("teacher", teacher)


@case(6, budget=0.8)
def state_carried_over_steps(t):
    """A hidden state handed from step to step, detached, as in truncated backpropagation."""
    torch = t.torch
    cell = torch.nn.GRUCell(32, 64)
    optimizer = torch.optim.Adam(cell.parameters(), lr=1e-2)
    hidden = torch.zeros(256, 64)
    for step in range(6):
        hidden = hidden.detach()
        loss = 0
        for _ in range(4):
            hidden = cell(torch.randn(256, 32), hidden)
            loss = loss + hidden.pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        t.out("loss%d" % step, loss.item())
    t.out("hidden", hidden)
    t.model("cell", cell)


@case(6, budget=0.85)
def losses_kept_over_steps(t):
    """A script that keeps graphs and results of earlier steps while parameters move on."""
    torch = t.torch
    net = torch.nn.Linear(128, 128)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9)
    losses, outputs = [], []
    for step in range(6):
        output = net(torch.randn(256, 128)).tanh()
        loss = output.pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss)
        outputs.append(output.detach())
    t.out("losses", torch.stack([loss.detach() for loss in losses]))
    for i, output in enumerate(outputs):
        t.out("output%d" % i, output)


@case(6, budget=0.8)
def gradients_accumulated(t):
    """Four backward passes a step into the same gradients, zeroed in place."""
    torch = t.torch
    net = convolutions(torch)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.05, momentum=0.9)
    make = images(torch, 8)
    for step in range(3):
        try:
            optimizer.zero_grad(set_to_none=False)
        except TypeError:
            optimizer.zero_grad()
        for part in range(4):
            x, y = make()
            (torch.nn.functional.cross_entropy(net(x), y) / 4).backward()
        t.out("norm%d" % step, torch.nn.utils.clip_grad_norm_(net.parameters(), 0.5).item())
        optimizer.step()
    t.model("net", net)


@case(6, budget=0.8)
def saved_and_loaded_in_the_middle(t):
    """torch.save to memory, another net and optimizer, load_state_dict, and on."""
    import io
    torch = t.torch

    def new():
        net = convolutions(torch)
        return net, torch.optim.AdamW(net.parameters(), lr=1e-3)
    net, optimizer = new()
    steps_of = images(torch)

    def train(n):
        for _ in range(n):
            x, y = steps_of()
            loss = torch.nn.functional.cross_entropy(net(x), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        return loss.item()
    t.out("before", train(2))
    file = io.BytesIO()
    torch.save({"net": net.state_dict(), "optimizer": optimizer.state_dict()}, file)
    net, optimizer = new()
    file.seek(0)
    saved = torch.load(file)
    net.load_state_dict(saved["net"])
    optimizer.load_state_dict(saved["optimizer"])
    t.out("after", train(3))
    t.model("net", net)
    t.optimizer("optimizer", optimizer)


# ---- 7 ---------------------------------------------------------------------------------------

@case(7, budget=0.8)
def batch_norm_statistics(t):
    """Running mean, variance and num_batches_tracked must count each batch once."""
    net = convolutions(t.torch)
    optimizer = t.torch.optim.SGD(net.parameters(), lr=0.05)
    steps(t, net, optimizer, images(t.torch), n=4)
    t.out("tracked", net[1].num_batches_tracked.item())


@case(7, budget=0.8)
def batch_norm_cumulative_and_eval(t):
    torch = t.torch
    net = convolutions(torch, momentum=None)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.05)
    steps(t, net, optimizer, images(torch), n=3)
    net.eval()
    with torch.no_grad():
        t.out("eval", net(torch.randn(8, 3, 16, 16)))


@case(7, budget=None)
def batch_norm_read_between(t):
    """A held output of batch norm is read after the statistics have moved on."""
    torch = t.torch
    norm = torch.nn.BatchNorm1d(256)
    outputs = [norm(torch.randn(64, 256) * (i + 1)) for i in range(4)]
    t.evict_all()
    t.out("mean", norm.running_mean.clone())
    for i, output in enumerate(outputs):
        t.out("output%d" % i, output)
    t.model("norm", norm)


@case(7, budget=None)
def instance_norm_with_statistics(t):
    torch = t.torch
    norm = torch.nn.InstanceNorm2d(8, affine=True, track_running_stats=True)
    x = torch.randn(4, 8, 16, 16, requires_grad=True)
    y = torch.relu_(norm(x))
    t.evict_all()
    y.pow(2).sum().backward()
    t.out("x.grad", x.grad)
    t.model("norm", norm)


@case(7, budget=None)
def embedding_with_max_norm(t):
    """The lookup renormalises the weight in place first."""
    torch = t.torch
    table = torch.nn.Embedding(64, 256, max_norm=1.0)
    optimizer = torch.optim.SGD(table.parameters(), lr=0.5)
    for step in range(3):
        loss = table(torch.randint(64, (40,))).sin().sum()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        t.out("loss%d" % step, loss.item())
    t.model("table", table)


@case(7, budget=0.85)
def dropout_draws_once(t):
    """The same masks, and a generator that ends where it ended."""
    torch = t.torch
    nn = torch.nn
    net = nn.Sequential(nn.Linear(128, 256), nn.Dropout(0.3), nn.ReLU(), nn.Linear(256, 128),
                        nn.Dropout(0.5, inplace=True), nn.AlphaDropout(0.2), nn.RReLU(), nn.Linear(128, 10))
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    steps(t, net, optimizer, lambda: (torch.randn(512, 128), torch.randint(10, (512,))), n=4)
    t.out("next", torch.rand(4).tolist())


@case(7, budget=None)
def every_random_operator(t):
    torch = t.torch
    p = torch.full((WIDE,), 0.4)
    made = {
        "bernoulli": torch.bernoulli(p) * 2,
        "bernoulli_p": torch.empty(WIDE).bernoulli_(0.3) + 1,
        "rand": torch.rand(WIDE) * 3,
        "randn_like": torch.randn_like(p) * 3,
        "randint": torch.randint(0, 100, (WIDE,)) + 1,
        "randperm": torch.randperm(WIDE) * 2,
        "multinomial": torch.multinomial(p[:4096], 4096, replacement=True) + 1,
        "poisson": torch.poisson(p) + 1,
        "normal": torch.normal(p, 2.0) + 1,
        "normal_": torch.empty(WIDE).normal_() + 1,
        "uniform_": torch.empty(WIDE).uniform_(-1, 2) + 1,
        "exponential_": torch.empty(WIDE).exponential_() + 1,
        "geometric_": torch.empty(WIDE).geometric_(0.3) + 1,
        "cauchy_": torch.empty(WIDE).cauchy_() + 1,
        "log_normal_": torch.empty(WIDE).log_normal_() + 1,
        "random_": torch.empty(WIDE).random_(50) + 1,
    }
    t.evict_all()
    for name, value in reversed(list(made.items())):
        t.out(name, value)
    t.out("next", torch.rand(4).tolist())


@case(7, budget=None)
def random_in_place_over_a_value(t):
    """A held reader of the value before the random write."""
    torch = t.torch
    x = torch.randn(WIDE) * 2
    before = x.tanh()
    x.normal_()
    middle = x.tanh()
    x.uniform_()
    t.evict_all()
    t.out("middle", middle)
    t.out("before", before)
    t.out("x", x)


@case(7, budget=None)
def generators(t):
    """Generators of the script's own, seeded again, shared, and saved."""
    torch = t.torch
    a, b = torch.Generator(), torch.Generator()
    a.manual_seed(1)
    b.manual_seed(2)
    made = []
    for i in range(4):
        made.append(torch.randn(WIDE, generator=a) * 2)
        made.append(torch.rand(WIDE, generator=b) * 2)
        made.append(torch.rand(WIDE) * 2)
        if i == 1:
            state = a.get_state()
        if i == 2:
            a.set_state(state)
            torch.manual_seed(7)
    with torch.random.fork_rng():
        torch.manual_seed(9)
        made.append(torch.rand(WIDE) * 2)
    t.evict_all()
    for i in range(len(made) - 1, -1, -1):
        t.out("made%d" % i, made[i])
    t.out("a", torch.rand(3, generator=a).tolist())
    t.out("b", torch.rand(3, generator=b).tolist())


@case(7, budget=None)
def values_read_by_the_host(t):
    """Control flow, shapes and Python numbers that come from the data."""
    torch = t.torch
    x = torch.randn(WIDE) * 2
    found = []
    for i in range(6):
        t.evict_all()
        if x.sum() > 0:
            x = x - 0.5
        else:
            x = x + 0.75
        found.append(x.max().item())
        found.append(x[:3].tolist())
        found.append(len((x > 1).nonzero()))
        found.append(bool((x > 0).any()))
        found.append(float(x[5]))
        found.append(torch.equal(x, x + 0))
    y = x[x > 0.5]
    u, counts = (x * 3).long().unique(return_counts=True)
    z = torch.masked_select(x, x < 0) * 2
    t.evict_all()
    t.out("found", found)
    t.out("y", y)
    t.out("u", u)
    t.out("counts", counts)
    t.out("z", z)
    t.out("x", x)
