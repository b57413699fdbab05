# SPDX-License-Identifier: Apache-2.0
"""ResNet-18 on synthetic images: batch norm, ReLU in place, SGD with momentum.

Needs nothing but PyTorch (1.13 or newer): python3 resnet.py --steps 10
"""
import torch
import torch.nn as nn
import torch.nn.functional as F

import loop

SIZES = {
    "tiny": dict(batch=4, width=8, pixels=16),
    "small": dict(batch=16, width=16, pixels=32),
    "normal": dict(batch=32, width=32, pixels=64),
}
CLASSES = 10


class Block(nn.Module):
    """Two 3x3 convolutions and a shortcut."""

    def __init__(self, inputs, outputs, stride):
        super().__init__()
        self.conv1 = nn.Conv2d(inputs, outputs, 3, stride, 1, bias=False)
        self.norm1 = nn.BatchNorm2d(outputs)
        self.conv2 = nn.Conv2d(outputs, outputs, 3, 1, 1, bias=False)
        self.norm2 = nn.BatchNorm2d(outputs)
        self.relu = nn.ReLU(inplace=True)
        self.shortcut = nn.Identity()
        if stride != 1 or inputs != outputs:
            self.shortcut = nn.Sequential(nn.Conv2d(inputs, outputs, 1, stride, bias=False),
                                          nn.BatchNorm2d(outputs))

    def forward(self, x):
        y = self.relu(self.norm1(self.conv1(x)))
        y = self.norm2(self.conv2(y))
        y += self.shortcut(x)
        return self.relu(y)


class ResNet18(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.stem = nn.Sequential(nn.Conv2d(3, width, 3, 1, 1, bias=False), nn.BatchNorm2d(width),
                                  nn.ReLU(inplace=True))
        blocks = []
        inputs = width
        for stage in range(4):
            outputs = width << stage
            for index in range(2):
                blocks.append(Block(inputs, outputs, 2 if stage and not index else 1))
                inputs = outputs
        self.blocks = nn.Sequential(*blocks)
        self.head = nn.Linear(inputs, CLASSES)

    def forward(self, x):
        x = self.blocks(self.stem(x))
        return self.head(F.adaptive_avg_pool2d(x, 1).flatten(1))


def batches(batch, pixels):
    """Each class is a fixed pattern under noise."""
    patterns = torch.randn(CLASSES, 3, pixels, pixels)
    while True:
        target = torch.randint(CLASSES, (batch,))
        yield patterns[target] + torch.randn(batch, 3, pixels, pixels), target


def main():
    args = loop.arguments(__doc__, SIZES)
    shape = args.shape
    model = ResNet18(shape["width"])
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9, weight_decay=5e-4)
    loop.train(args, model, optimizer, batches(shape["batch"], shape["pixels"]), F.cross_entropy)


if __name__ == "__main__":
    main()
