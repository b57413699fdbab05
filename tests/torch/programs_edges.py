# SPDX-License-Identifier: Apache-2.0
"""Programs at the edge: very deep, very wide, and too large."""
from harness import case

WIDE = 1 << 14
BYTES = 4 * WIDE   # of one tensor


@case(0, budget=5 * BYTES, stress=500, small=0)
def chain_of_5000(t):
    """Five thousand operators, all results wanted, room for four beside the input; then those far back are read."""
    torch = t.torch
    x = torch.randn(WIDE)
    held = [x]
    for i in range(5000):
        held.append(held[-1] * 1.0001 if i % 2 else held[-1].neg())
        if i % 500 == 0:
            t.out("item%d" % i, held[-1][3].item())
    for i in (4999, 2500, 4000, 10):
        t.out("held%d" % i, held[i].sum().item())


@case(0, budget=5 * BYTES, stress=500, small=0, evicts=False)
def backward_through_5000(t):
    """Nothing is saved but the graph. (A number as an operand would be saved, as a tensor of 512 bytes.)"""
    torch = t.torch
    x = torch.randn(WIDE, requires_grad=True)
    h = x
    for i in range(5000):
        h = h.neg()
    h.sum().backward()
    t.out("grad", x.grad)


@case(0, budget=0.75)
def cat_of_64_evicted(t):
    torch = t.torch
    x = torch.randn(WIDE // 8)
    parts = [x * i for i in range(64)]
    other = [x + i for i in range(64)]
    t.evict_all()
    t.out("cat", torch.cat(parts))
    t.out("stack", torch.stack(other[::2]))
    t.evict_all()
    t.out("again", torch.cat(parts + other[:8]).sum().item())


@case(0, budget=0.6, stress=9)
def skip_connections_100_deep(t):
    """A U of a hundred levels: the first activation is the last one that is needed again."""
    torch = t.torch
    w = torch.randn(64, 64).mul_(0.1).requires_grad_()
    h, skips = torch.randn(64, 64), []
    for _ in range(100):
        h = torch.tanh(h @ w)
        skips.append(h)
    for skip in reversed(skips):
        h = torch.tanh(h @ w) + skip
    h.pow(2).mean().backward()
    t.out("grad", w.grad)


@case(12, budget=40 * BYTES, stress=None)
def too_large_with_its_siblings(t):
    """Inputs that do not fit together: PyTorch's error, what would do is told, and it does."""
    torch = t.torch
    x = torch.randn(WIDE)
    parts = [x * i for i in range(64)]
    t.note("budget turned", True)
    if t.profile == "budget":
        import coopscope
        told = []
        coopscope.on_oom(lambda oom: told.append(oom))
        try:
            torch.cat(parts)
            t.check(False, "8 MiB fit into %d" % t.budget)
        except RuntimeError as error:
            t.check("memory" in str(error), repr(error))
        t.check(told and told[-1].advice > t.budget, "told: %r" % told)
        t.check(coopscope.stats()["live"] <= t.budget, "over the budget")

        def more(oom):
            coopscope.policy.budget = max(oom.advice, oom.budget + oom.asked)
            return True
        coopscope.on_oom(more)
    t.out("cat", torch.cat(parts).sum().item())
    if t.profile == "budget":
        advised = told[-1].advice
        t.check(coopscope.policy.budget <= 2 * advised, "advised %d, needed %d" % (advised, coopscope.policy.budget))
        coopscope.on_oom(None)
