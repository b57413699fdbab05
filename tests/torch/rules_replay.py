# SPDX-License-Identifier: Apache-2.0
"""Rules 1 to 4: pins, intermediates, depth, and how long records live."""
from harness import case

WIDE = 8192    # floats: 32 KiB, above the area of small blocks


@case(1)
def inputs_are_pinned_together(t):
    """An operator of three evicted inputs, each of which must be made again."""
    torch = t.torch
    x = torch.randn(WIDE)
    a, b, c = (x * k for k in (1.5, 2.5, 3.5))
    others = [x * k for k in range(8)]
    for step in range(6):
        t.evict_all()
        a, b, c = torch.addcmul(a, b, c, value=0.25), torch.lerp(b, a, 0.5), torch.where(x > 0, c, a)
    t.out("a", a)
    t.out("b", b)
    t.out("c", c)
    for k, other in enumerate(others):
        t.out("other%d" % k, other)


@case(1, budget=0.8)
def cat_of_64_evicted(t):
    """torch.cat must hold 64 inputs at once while any of them is recomputed."""
    torch = t.torch
    x = torch.randn(WIDE // 2)
    parts = [x + i for i in range(64)]
    filler = [torch.randn(WIDE) for _ in range(16)]
    del filler
    t.evict_all()
    t.out("cat", torch.cat(parts).cos())
    t.out("stack", torch.stack(parts[::4]).sum(0))


@case(1, budget=0.8)
def same_input_twice(t):
    torch = t.torch
    x = torch.randn(WIDE).exp()
    y = x.sqrt()
    for _ in range(4):
        t.evict_all()
        y = torch.addcmul(y, y, y, value=0.01) + y * y
    t.out("y", y)


@case(1, budget=0.5)
def consumed_temporaries_keep_no_pin(t):
    """Temporaries written in place and let go: a stale pin on each would fill the budget."""
    torch = t.torch
    x = torch.randn(WIDE)
    total = torch.zeros(WIDE)
    hold = [x * i for i in range(12)]
    for i in range(60):
        y = x * i
        y.add_(1).mul_(0.5)
        y.relu_()
        total = total + y.sigmoid_()
        del y
    pinned = t.stats()["pinned"]
    t.check(pinned <= 6 * WIDE * 4 + (64 << 10), "%d bytes are still pinned" % pinned)
    t.out("total", total)
    for i, h in enumerate(hold):
        t.out("hold%d" % i, h)


@case(1)
def failed_operator_releases_pins(t):
    """An operator that raises leaves neither a pin nor a wrong record."""
    torch = t.torch
    a, b = torch.randn(WIDE) * 2, torch.randn(WIDE // 2) * 3
    before = None
    for i in range(20):
        t.evict_all()
        try:
            a + b
            raise AssertionError("shapes fit?")
        except RuntimeError:
            pass
        if before is None:
            before = t.stats()["pinned"]
    t.check(t.stats()["pinned"] <= before, "pins grow with each failure")
    keep = [torch.randn(WIDE) * i for i in range(6)]
    t.out("a", a)
    t.out("b", b)
    t.out("keep", keep[5])


@case(2, budget=None, timeout=30)
def skip_connections_cost_no_power_of_two(t):
    """60 levels of x -> f(x) + g(x), all dead but the last: 2^60 replays if each level forgot."""
    torch = t.torch
    levels = 60
    x = torch.randn(WIDE)
    t.set(stress=0)
    for _ in range(levels):
        x = x.tanh() + x * 0.5
    before = t.stats()["replays"]
    t.evict_all()
    t.out("sum", x.sum().item())
    replays = t.stats()["replays"] - before
    t.check(replays >= 3 * levels, "%d replays: was it evicted?" % replays)
    t.check(replays <= 4 * levels, "%d replays of %d operators" % (replays, 3 * levels))
    t.out("x", x)


@case(2, budget=0.6)
def dense_connections(t):
    """Each layer reads all before it (as in DenseNet), with backward."""
    torch = t.torch
    x = torch.randn(256, 64, requires_grad=True)
    weights = [torch.randn(64 * (i + 1), 64).mul_(0.05).requires_grad_() for i in range(8)]
    features = [x]
    for w in weights:
        features.append((torch.cat(features, 1) @ w).tanh())
    loss = torch.cat(features, 1).pow(2).mean()
    loss.backward()
    t.out("loss", loss)
    t.out("x.grad", x.grad)
    for i, w in enumerate(weights):
        t.out("w%d.grad" % i, w.grad)


@case(2, stress=None, budget=0.5)
def borrowed_may_go_under_pressure(t):
    """A replay whose intermediates do not all fit at once."""
    torch = t.torch
    x = torch.randn(WIDE * 4)
    parts = []
    for i in range(10):
        y = x * (i + 1)
        for _ in range(6):
            y = (y.sin() + y.cos()) * 0.7
        parts.append(y)
    for i, y in enumerate(parts):
        t.out("sum%d" % i, y.sum().item())
    t.out("first", parts[0])


@case(3, budget=None, timeout=90)
def chain_of_5000(t):
    """One value at the end of 5,000 dead ones, evicted, then read."""
    torch = t.torch
    t.set(stress=0)
    x = torch.randn(WIDE // 2)
    for i in range(5000):
        x = x * 0.999 if i % 2 else x + 0.001
    before = t.stats()["replays"]
    t.evict_all()
    t.out("sum", x.sum().item())
    replays = t.stats()["replays"] - before
    t.check(5000 <= replays <= 5010, "%d replays for a chain of 5,000" % replays)
    t.out("x", x)


@case(3, stress=None, budget=0.3, timeout=90)
def backward_through_5000(t):
    """Autograd's saved tensors of a chain of 5,000, under 30 % of their bytes."""
    torch = t.torch
    x = torch.randn(4096, requires_grad=True)
    y = x
    for i in range(2500):
        y = y.sin()
        y = y * 1.01
        if i % 500 == 0:
            t.out("item%d" % i, y[0].item())
    y.sum().backward()
    t.out("grad", x.grad)


@case(3, budget=None)
def chain_dies_at_once(t):
    """Records of a long chain die together and without recursion when its end is let go."""
    torch = t.torch
    t.set(stress=0)
    x = torch.randn(WIDE // 2)
    for _ in range(3000):
        x = x * 1.0001
    t.evict_all()
    before = t.stats()["records"]
    t.check(before >= 3000, "%d records of a chain of 3,000" % before)
    del x
    torch.zeros(1).add_(1)
    t.check(t.stats()["records"] < 50, "%d records are left" % t.stats()["records"])
    y = torch.randn(WIDE) * 2
    t.evict_all()
    t.out("y", y)


@case(4, stress=None, budget=0.8, timeout=90)
def memory_is_flat_over_1000_steps(t):
    """Records, tensors, and this process's memory do not grow."""
    torch = t.torch
    net = torch.nn.Sequential(torch.nn.Linear(64, 128), torch.nn.ReLU(inplace=True), torch.nn.Dropout(0.2),
                              torch.nn.Linear(128, 128), torch.nn.GELU(), torch.nn.Linear(128, 64))
    optimizer = torch.optim.SGD(net.parameters(), lr=0.01, momentum=0.9)
    seen = {}
    for step in range(1, 1001):
        x = torch.randn(256, 64)
        optimizer.zero_grad(set_to_none=True)
        loss = (net(x) - x).pow(2).mean()
        loss.backward()
        optimizer.step()
        if step in (200, 1000):
            seen[step] = (t.stats()["records"], t.stats()["tensors"], resident())
    t.check(seen[1000][0] <= seen[200][0] + 4, "records: %r" % seen)
    t.check(seen[1000][1] <= seen[200][1] + 4, "tensors: %r" % seen)
    t.check(seen[1000][2] <= seen[200][2] * 1.01 + (1 << 20), "resident: %r" % seen)
    t.model("net", net)


@case(4, budget=None)
def small_inputs_are_held(t):
    """A record keeps its small inputs though the script let them go; large ones are made again."""
    torch = t.torch
    x = torch.randn(64, 512)
    index = torch.randperm(64)
    scale = torch.randn(512)
    y = x[index] * scale
    z = y.masked_fill(torch.rand(64, 1) < 0.5, 0.0)
    del index, scale
    t.evict_all()
    t.out("y", y)
    t.out("z", z)


@case(4, budget=None)
def inputs_that_became_constant_are_held(t):
    """A record reads a tensor that later becomes a constant and is then dropped by the script."""
    torch = t.torch
    a = torch.randn(WIDE) * 2
    b = a.exp()
    a.numpy()[0] = 3.0
    del a
    junk = [torch.randn(WIDE) for _ in range(4)]
    t.evict_all()
    t.out("b", b)
    t.out("junk", junk[3])


def resident():
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) * 1024 for line in status if line.startswith("RssAnon"))
