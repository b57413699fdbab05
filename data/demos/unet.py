# SPDX-License-Identifier: Apache-2.0
"""A U-Net that segments synthetic discs: skip connections that live from one end to the other, Adam.

Needs nothing but PyTorch (1.13 or newer): python3 unet.py --steps 10
"""
import torch
import torch.nn as nn
import torch.nn.functional as F

import loop

SIZES = {
    "tiny": dict(batch=2, width=4, pixels=16, depth=2),
    "small": dict(batch=4, width=8, pixels=64, depth=3),
    "normal": dict(batch=8, width=24, pixels=128, depth=4),
}


def double(inputs, outputs):
    return nn.Sequential(nn.Conv2d(inputs, outputs, 3, padding=1, bias=False), nn.BatchNorm2d(outputs),
                         nn.ReLU(),
                         nn.Conv2d(outputs, outputs, 3, padding=1, bias=False), nn.BatchNorm2d(outputs),
                         nn.ReLU())


class UNet(nn.Module):
    def __init__(self, width, depth):
        super().__init__()
        widths = [width << level for level in range(depth + 1)]
        self.down = nn.ModuleList(double(a, b) for a, b in zip([1] + widths[:-2], widths[:-1]))
        self.bottom = double(widths[-2], widths[-1])
        self.up = nn.ModuleList(nn.ConvTranspose2d(2 * w, w, 2, stride=2) for w in reversed(widths[:-1]))
        self.join = nn.ModuleList(double(2 * w, w) for w in reversed(widths[:-1]))
        self.head = nn.Conv2d(width, 1, 1)

    def forward(self, x):
        skips = []
        for down in self.down:
            x = down(x)
            skips.append(x)
            x = F.max_pool2d(x, 2)
        x = self.bottom(x)
        for up, join in zip(self.up, self.join):
            x = join(torch.cat([skips.pop(), up(x)], dim=1))
        return self.head(x)


def batches(batch, pixels):
    """A bright disc of random place and radius under noise; the target is the disc."""
    line = torch.linspace(-1, 1, pixels)
    while True:
        x, y = (torch.rand(2, batch, 1, 1, 1) - 0.5).unbind(0)
        radius = torch.rand(batch, 1, 1, 1) * 0.4 + 0.1
        target = ((line.view(1, 1, 1, -1) - x) ** 2 + (line.view(1, 1, -1, 1) - y) ** 2
                  < radius ** 2).float()
        yield target + torch.randn(batch, 1, pixels, pixels), target


def main():
    args = loop.arguments(__doc__, SIZES)
    shape = args.shape
    model = UNet(shape["width"], shape["depth"])
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    loop.train(args, model, optimizer, batches(shape["batch"], shape["pixels"]),
               F.binary_cross_entropy_with_logits)


if __name__ == "__main__":
    main()
