# SPDX-License-Identifier: Apache-2.0
"""A transformer that learns to continue synthetic sequences: dropout, layer norm, AdamW.

Attention is written out, so that the same operators run on every PyTorch from 1.13 on:
python3 transformer.py --steps 10
"""
import math

import torch
import torch.nn as nn
import torch.nn.functional as F

import loop

SIZES = {
    "tiny": dict(batch=2, length=16, width=32, heads=2, layers=2, words=50),
    "small": dict(batch=8, length=64, width=128, heads=4, layers=4, words=200),
    "normal": dict(batch=16, length=128, width=256, heads=8, layers=5, words=1000),
}
DROPOUT = 0.1


class Attention(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.qkv = nn.Linear(width, 3 * width)
        self.out = nn.Linear(width, width)
        self.dropout = nn.Dropout(DROPOUT)

    def forward(self, x, mask):
        batch, length, width = x.shape
        q, k, v = (part.view(batch, length, self.heads, -1).transpose(1, 2)
                   for part in self.qkv(x).chunk(3, dim=-1))
        score = q @ k.transpose(-2, -1) / math.sqrt(width // self.heads)
        weight = self.dropout(score.masked_fill(mask, float("-inf")).softmax(-1))
        return self.out((weight @ v).transpose(1, 2).reshape(batch, length, width))


class Layer(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.norm1 = nn.LayerNorm(width)
        self.attention = Attention(width, heads)
        self.norm2 = nn.LayerNorm(width)
        self.feed = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Dropout(DROPOUT),
                                  nn.Linear(4 * width, width))
        self.dropout = nn.Dropout(DROPOUT)

    def forward(self, x, mask):
        x = x + self.dropout(self.attention(self.norm1(x), mask))
        return x + self.dropout(self.feed(self.norm2(x)))


class Transformer(nn.Module):
    def __init__(self, words, length, width, heads, layers):
        super().__init__()
        self.word = nn.Embedding(words, width)
        self.place = nn.Parameter(torch.randn(length, width) * 0.02)
        self.dropout = nn.Dropout(DROPOUT)
        self.layers = nn.ModuleList(Layer(width, heads) for _ in range(layers))
        self.norm = nn.LayerNorm(width)
        self.head = nn.Linear(width, words)
        self.register_buffer("mask", torch.ones(length, length, dtype=torch.bool).triu(1))

    def forward(self, tokens):
        x = self.dropout(self.word(tokens) + self.place)
        for layer in self.layers:
            x = layer(x, self.mask)
        return self.head(self.norm(x))


def batches(batch, length, words):
    """Arithmetic sequences modulo the number of words; a tenth of the words is replaced."""
    while True:
        first = torch.randint(words, (batch, 1))
        step = torch.randint(1, 8, (batch, 1))
        tokens = (first + step * torch.arange(length + 1)) % words
        noise = torch.randint(words, tokens.shape)
        tokens = torch.where(torch.rand(tokens.shape) < 0.1, noise, tokens)
        yield tokens[:, :-1], tokens[:, 1:]


def main():
    args = loop.arguments(__doc__, SIZES)
    shape = dict(args.shape)
    batch = shape.pop("batch")
    model = Transformer(**shape)
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-4, weight_decay=0.01)
    loop.train(args, model, optimizer, batches(batch, shape["length"], shape["words"]),
               lambda output, target: F.cross_entropy(output.flatten(0, 1), target.flatten()))


if __name__ == "__main__":
    main()
