# SPDX-License-Identifier: Apache-2.0
"""Rule 12: out of memory is PyTorch's own error, and life goes on after it; and the limits of what
a person may turn while a program runs."""
from harness import case

WIDE = 8192
MIB = 1 << 20


@case(12, budget=4 * MIB, stress=None)
def too_large_a_request(t):
    """One tensor over the whole budget raises RuntimeError, and then smaller ones work."""
    torch = t.torch
    x = torch.randn(WIDE) * 2
    said = []
    for _ in range(3):
        try:
            torch.empty(3 * MIB).fill_(1)
        except RuntimeError as error:
            said.append(str(error))
    t.check(len(said) == 3, "12 MiB fit into 4?")
    for word in ("memory", "12582912"):
        t.check(all(word in s for s in said), "%r does not tell %s" % (said[:1], word))
    pieces = [x * i for i in range(300)]
    t.out("x", x)
    t.out("last", pieces[299])
    t.out("first", pieces[0])


@case(12, budget=6 * MIB, stress=None)
def training_goes_on_after(t):
    """A batch that does not fit is caught by the script, which goes on with a smaller one."""
    torch = t.torch
    nn = torch.nn
    net = nn.Sequential(nn.Linear(128, 512), nn.ReLU(inplace=True), nn.Dropout(0.1), nn.Linear(512, 128))
    optimizer = torch.optim.SGD(net.parameters(), lr=0.05, momentum=0.9)

    def step(batch):
        optimizer.zero_grad(set_to_none=True)
        loss = (net(torch.randn(batch, 128)) ** 2).mean()
        loss.backward()
        optimizer.step()
        return loss.item()
    t.out("before", [step(64) for _ in range(3)])
    caught = 0
    if t.profile == "budget":
        for _ in range(3):
            state = torch.get_rng_state()
            try:
                step(1 << 16)
            except RuntimeError:
                caught += 1
            torch.set_rng_state(state)
        t.check(caught == 3, "caught %d of 3" % caught)
    t.out("after", [step(600) for _ in range(4)])
    t.model("net", net)


@case(12, budget=3 * MIB, stress=None)
def failure_in_the_middle_of_replays(t):
    """Memory ends while inputs are being brought back: every pin must be released."""
    torch = t.torch
    x = torch.randn(WIDE)
    held = []
    for i in range(200):
        y = x * (i + 1)
        held.append((y.sin() + y.cos()) * 0.5)
        del y
    before = t.stats()["pinned"]
    failed = 0
    if t.profile == "budget":
        for _ in range(3):
            try:
                torch.cat(held)
            except RuntimeError:
                failed += 1
        t.check(failed == 3, "6 MiB of inputs fit into 3?")
        after = t.stats()["pinned"]
        t.check(after <= before + 4096, "pinned before %d, after %d" % (before, after))
    for i in (0, 77, 199):
        t.out("held%d" % i, held[i])
    t.out("half", torch.cat(held[:8]).sum().item())


@case(12, budget=3 * MIB, stress=None, evictor="lru")
def failure_with_another_evictor(t):
    failure_in_the_middle_of_replays(t)


@case(12, budget=6 * MIB, stress=None)
def failure_in_backward(t):
    """The error crosses autograd's engine; the graph can be let go and trained again."""
    torch = t.torch
    w = torch.randn(256, 256, requires_grad=True)
    if t.profile == "budget":
        failed = 0
        for _ in range(2):
            class Hungry(torch.autograd.Function):
                @staticmethod
                def forward(ctx, x):
                    return x * 1

                @staticmethod
                def backward(ctx, g):
                    return g + torch.ones(8 * MIB).sum()
            try:
                Hungry.apply(torch.ones(64, 256) @ w).sum().backward()
            except RuntimeError:
                failed += 1
        t.check(failed == 2, "32 MiB fit into 6?")
        w.grad = None
    for step in range(3):
        h = torch.randn(900, 256) @ w
        for _ in range(6):
            h = (h.tanh() + h) * 0.5
        h.pow(2).mean().backward()
    t.out("grad", w.grad)


@case(12, stress=None, budget=0.75)
def budget_turned_while_running(t):
    """Smaller, larger, off and on again, in the middle of steps."""
    torch = t.torch
    nn = torch.nn
    net = nn.Sequential(*[m for _ in range(4) for m in (nn.Linear(256, 256), nn.GELU(), nn.Dropout(0.1))])
    optimizer = torch.optim.SGD(net.parameters(), lr=0.05)
    t.note("budget turned", True)
    for step in range(8):
        if t.profile == "budget":
            t.set(budget=(t.budget, 0, t.budget + MIB, 2 * t.budget)[step % 4])
        h = net(torch.randn(512, 256))
        if t.profile == "budget" and step % 2:
            t.set(budget=t.budget)
        loss = h.pow(2).mean()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        t.out("loss%d" % step, loss.item())
    if t.profile == "budget":
        t.set(budget=t.budget)
    t.model("net", net)


def evictor_case(name):
    def run(t):
        torch = t.torch
        nn = torch.nn
        net = nn.Sequential(nn.Conv2d(3, 16, 3, padding=1), nn.BatchNorm2d(16), nn.ReLU(inplace=True),
                            nn.Conv2d(16, 16, 3, padding=1), nn.BatchNorm2d(16), nn.ReLU(inplace=True),
                            nn.Conv2d(16, 16, 3, padding=1), nn.BatchNorm2d(16), nn.ReLU(inplace=True),
                            nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(16, 10))
        optimizer = torch.optim.SGD(net.parameters(), lr=0.05, momentum=0.9)
        for step in range(4):
            loss = nn.functional.cross_entropy(net(torch.randn(8, 3, 24, 24)), torch.randint(10, (8,)))
            optimizer.zero_grad(set_to_none=True)
            loss.backward()
            optimizer.step()
            t.out("loss%d" % step, loss.item())
        t.model("net", net)
    run.__name__ = "evictor_" + name.replace("-", "_")
    case(12, stress=None, budget=0.85, evictor=name)(run)


for _name in ("coop", "dtr-eq", "lru"):
    evictor_case(_name)


@case(12, stress=None, budget=0.7, groups=1, small=0, hold=0, chain="none", cost="measured")
def measured_costs_without_extras(t):
    """Real times as costs, one group, no area for small blocks, nothing held for being small."""
    torch = t.torch
    w = [torch.randn(128, 128).mul_(0.1).requires_grad_() for _ in range(6)]
    h = torch.randn(256, 128)
    for x in w:
        h = torch.nn.functional.layer_norm((h @ x).relu() + h, (128,))
    h.pow(2).sum().backward()
    for i, x in enumerate(w):
        t.out("grad%d" % i, x.grad)
