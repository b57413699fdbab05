# SPDX-License-Identifier: Apache-2.0
"""Single Path One-Shot (Guo et al., 2020) on CIFAR-10: a super net of 20 layers with four choices each
(ShuffleNet v2 units with kernels 3, 5, 7, and an Xception-like one), of which a step trains one path;
two of the layers halve the picture. SGD 0.025, momentum 0.9, decay 3e-4. The path is drawn from a fixed
seed; parameters that it does not touch are there as well, without gradients."""
import random

import torch
from torch import nn

BATCH = 256
WIDTHS = (16, *[64] * 4, *[160] * 4, *[320] * 8, *[640] * 4)
HALVING = (4, 8)


def _norm(n):
    return nn.BatchNorm2d(n, affine=False)


def _depthwise(n, kernel, stride):
    return [nn.Conv2d(n, n, kernel, stride, kernel // 2, groups=n, bias=False), _norm(n)]


def _pointwise(n_in, n_out):
    return [nn.Conv2d(n_in, n_out, 1, bias=False), _norm(n_out), nn.ReLU(inplace=True)]


class Choice(nn.Module):
    """kernel 0: the Xception-like one, three depthwise convolutions of 3."""

    def __init__(self, n_in, n_out, stride, kernel):
        super().__init__()
        self.stride, half = stride, n_out // 2
        side = n_in if stride == 2 else n_in // 2
        if kernel:
            layers = _pointwise(side, half) + _depthwise(half, kernel, stride) + _pointwise(half, n_out - side)
        else:
            layers = (_depthwise(side, 3, stride) + _pointwise(side, half) + _depthwise(half, 3, 1)
                      + _pointwise(half, half) + _depthwise(half, 3, 1) + _pointwise(half, n_out - side))
        self.main = nn.Sequential(*layers)
        self.side = nn.Sequential(*_depthwise(n_in, kernel or 3, 2), *_pointwise(n_in, n_in)) if stride == 2 else None

    def forward(self, x):
        if self.side is not None:
            return torch.cat([self.side(x), self.main(x)], 1)
        b, c, h, w = x.shape
        still, x = x.view(b, c // 2, 2, h, w).transpose(1, 2).reshape(2, b, c // 2, h, w).unbind(0)
        return torch.cat([still, self.main(x)], 1)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.stem = nn.Sequential(nn.Conv2d(3, 16, 3, 1, 1, bias=False), _norm(16), nn.ReLU(inplace=True))
        self.layers = nn.ModuleList(
            nn.ModuleList(Choice(n_in, n_out, 2 if i in HALVING else 1, kernel) for kernel in (3, 5, 7, 0))
            for i, (n_in, n_out) in enumerate(zip(WIDTHS, WIDTHS[1:])))
        self.last = nn.Sequential(*_pointwise(WIDTHS[-1], 1024))
        self.out = nn.Linear(1024, 10, bias=False)

    def forward(self, x, path):
        x = self.stem(x)
        for layer, choice in zip(self.layers, path):
            x = layer[choice](x)
        return self.out(nn.functional.dropout(self.last(x).mean((2, 3)), 0.1, self.training))


def spos(device):
    net, draw = Net(), random.Random(0)
    picture, label = torch.empty(BATCH, 3, 32, 32), torch.empty(BATCH, dtype=torch.long)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.025, momentum=0.9, weight_decay=3e-4, foreach=False)
    path = [draw.randrange(4) for _ in net.layers]

    def step():
        nn.functional.cross_entropy(net(picture, path), label).backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)

    return step
