# SPDX-License-Identifier: Apache-2.0
"""Random programs from a seed: whatever operators, views, in-place writes, escapes and releases are
strung together, every value read must be the plain run's.

COOP_SEEDS=first:last in the environment runs others than the usual ones; the seed is in the name of
the case.
"""
import os
import random

from harness import case

SIDE = 64            # tensors of 64 x 64 floats: 16 KiB, above the area of small blocks
LENGTH = 300
HELD = 24


class Program:
    """Names of tensors are slots of a list; the choice of operators never depends on data."""

    def __init__(self, t, seed):
        self.t, self.torch, self.choice = t, t.torch, random.Random(seed)
        self.slots = [t.torch.randn(SIDE, SIDE) for _ in range(8)]
        self.weight = t.torch.nn.Parameter(t.torch.randn(SIDE, SIDE) * 0.1)
        self.arrays, self.reads = [], 0

    def pick(self):
        return self.choice.choice(self.slots)

    def put(self, tensor):
        if len(self.slots) < HELD:
            self.slots.append(tensor)
        else:
            self.slots[self.choice.randrange(HELD)] = tensor

    # ---- what a step may be ----

    def unary(self):
        name = self.choice.choice(("sin", "tanh", "sigmoid", "abs", "neg", "relu", "erf", "clone"))
        self.put(getattr(self.torch, name)(self.pick()))

    def binary(self):
        name = self.choice.choice(("add", "sub", "mul", "maximum", "atan2"))
        self.put(getattr(self.torch, name)(self.pick(), self.pick()).clamp(-4, 4))

    def matmul(self):
        self.put((self.pick() @ self.pick()).mul(0.02).tanh())

    def many(self):
        picked = [self.pick() for _ in range(self.choice.randrange(2, 4))]
        self.put(self.torch.stack(picked).mean(0))

    def several_outputs(self):
        values, order = self.pick().sort(dim=self.choice.randrange(2))
        self.put(values)
        self.put(order.float().mul(0.01))

    def in_place(self):
        x = self.pick()
        name = self.choice.choice(("mul_", "add_", "sin_", "tanh_", "clamp_", "zero_", "copy_", "addcmul_"))
        if name in ("mul_", "add_"):
            getattr(x, name)(0.75)
        elif name == "clamp_":
            x.clamp_(-1, 1)
        elif name == "copy_":
            x.copy_(self.pick().clone())
        elif name == "addcmul_":
            x.addcmul_(self.pick().clone(), self.pick().clone(), value=0.1).clamp_(-4, 4)
        else:
            getattr(x, name)()

    def write_to_a_part(self):
        x, row = self.pick(), self.choice.randrange(SIDE - 3)
        what = self.choice.randrange(4)
        if what == 0:
            x[row] = 0.5
        elif what == 1:
            x[:, row] += 0.25
        elif what == 2:
            x.t()[row, ::2].mul_(-1)
        else:
            x[row:row + 3, 5:40].copy_(self.pick().clone()[10:13, 5:40])

    def view(self):
        """A slot that shares its storage with another."""
        x = self.pick()
        self.put(self.choice.choice((x.t(), x.detach(), x.view_as(x), x.unsqueeze(0)[0], x.transpose(0, 1))))

    def draw(self):
        what = self.choice.randrange(4)
        if what == 0:
            self.put(self.torch.randn(SIDE, SIDE))
        elif what == 1:
            self.put(self.torch.nn.functional.dropout(self.pick(), 0.3))
        elif what == 2:
            self.pick().uniform_(-1, 1)
        else:
            self.put(self.torch.bernoulli(self.torch.sigmoid(self.pick())) - 0.5)

    def read(self):
        x = self.pick()
        self.reads += 1
        value = self.choice.choice((lambda: x.sum().item(), lambda: x[3].tolist()[:4], lambda: float(x.max()),
                                    lambda: bool((x > 0).any()), lambda: str(x[0, :2])))()
        self.t.out("read%d" % self.reads, value)

    def escape(self):
        x = self.pick()
        self.arrays.append(x.detach().numpy())
        del self.arrays[:-2]

    def write_behind(self):
        if self.arrays:
            array = self.choice.choice(self.arrays)
            array[self.choice.randrange(array.shape[0])] = self.choice.randrange(3)

    def use_weight(self):
        with self.torch.no_grad():
            self.put((self.pick() @ self.weight).tanh())

    def update_weight(self):
        with self.torch.no_grad():
            self.weight.add_(self.pick().clone(), alpha=0.01).clamp_(-1, 1)

    def backward(self):
        x = self.pick().detach().clone().requires_grad_()
        h = (x @ self.weight).sigmoid()
        (h * x).pow(2).mean().backward()
        self.put(x.grad * SIDE)
        self.put(self.weight.grad.clone())
        self.weight.grad = None

    def forget(self):
        if len(self.slots) > 8:
            del self.slots[self.choice.randrange(len(self.slots))]

    def evict(self):
        self.t.evict_all()

    def run(self):
        steps = [self.unary] * 6 + [self.binary] * 6 + [self.matmul] * 3 + [self.many] * 2 + [
            self.several_outputs, self.in_place, self.in_place, self.in_place, self.write_to_a_part,
            self.write_to_a_part, self.view, self.view, self.draw, self.draw, self.read, self.read, self.escape,
            self.write_behind, self.write_behind, self.use_weight, self.use_weight, self.update_weight,
            self.backward, self.forget, self.forget, self.evict, self.evict, self.evict]
        for _ in range(LENGTH):
            self.choice.choice(steps)()
        for number, x in enumerate(self.slots):
            self.t.out("slot%d" % number, x)
        self.t.out("weight", self.weight)


def program_case(seed):
    def run(t):
        t.set(stress=0)
        Program(t, seed).run()
    run.__name__ = "random_program_%d" % seed
    case(0, budget=0.85)(run)


_first, _last = (int(word) for word in os.environ.get("COOP_SEEDS", "1:12").split(":"))
for _seed in range(_first, _last + 1):
    program_case(_seed)
