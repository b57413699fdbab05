# SPDX-License-Identifier: Apache-2.0
"""U-Net (Ronneberger et al., 2015) with batch normalisation and padding, as is usual today: 460 x 608
pictures, two classes, binary cross-entropy, SGD with momentum."""
import torch
from torch import nn

WIDTHS = (64, 128, 256, 512, 1024)
BATCH, HEIGHT, WIDTH = 5, 460, 608


def _twice(n_in, n_out):
    layers = []
    for n in (n_in, n_out):
        layers += [nn.Conv2d(n, n_out, 3, padding=1, bias=False), nn.BatchNorm2d(n_out), nn.ReLU(inplace=True)]
    return nn.Sequential(*layers)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.down = nn.ModuleList(map(_twice, (3, *WIDTHS), WIDTHS))
        self.up = nn.ModuleList(nn.ConvTranspose2d(2 * n, n, 2, 2) for n in WIDTHS[-2::-1])
        self.merge = nn.ModuleList(_twice(2 * n, n) for n in WIDTHS[-2::-1])
        self.out = nn.Conv2d(WIDTHS[0], 2, 1)

    def forward(self, x):
        skips = []
        for i, block in enumerate(self.down):
            x = block(nn.functional.max_pool2d(x, 2) if i else x)
            skips.append(x)
        skips.pop()
        for up, merge in zip(self.up, self.merge):
            x, skip = up(x), skips.pop()
            missing = [skip.shape[d] - x.shape[d] for d in (3, 2)]  # where a height was odd
            x = nn.functional.pad(x, (missing[0] // 2, missing[0] - missing[0] // 2,
                                      missing[1] // 2, missing[1] - missing[1] // 2))
            x = merge(torch.cat([skip, x], 1))
        return self.out(x)


def unet(device):
    net = Net()
    picture, mask = torch.empty(BATCH, 3, HEIGHT, WIDTH), torch.empty(BATCH, 2, HEIGHT, WIDTH)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.01, momentum=0.9, weight_decay=1e-4, foreach=False)

    def step():
        nn.functional.binary_cross_entropy_with_logits(net(picture), mask).backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)

    return step
