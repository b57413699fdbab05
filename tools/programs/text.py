# SPDX-License-Identifier: Apache-2.0
"""Transformers on text as their papers define them, with attention in single operators (no fused kernel), which is
what can be dropped piece by piece. AdamW, dropout 0.1, float32. BERT is Hugging Face's; the decoders are written out
here: GPT-2 small, and a GPT-3-style one of 24 layers and 2048 wide (1.3 billion parameters), as large as fits with
its optimizer state, unsplit, beside its activations into 80 GB."""
import torch
from torch import nn


def _train(net, compute_loss):
    optimizer = torch.optim.AdamW(net.parameters(), lr=1e-4, weight_decay=0.01, foreach=False)
    net.train()

    def step():
        compute_loss().backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)

    return step


def _bert(batch, length):
    from transformers import BertConfig, BertForPreTraining

    shape = BertConfig(hidden_size=1024, num_hidden_layers=24, num_attention_heads=16, intermediate_size=4096,
                       attn_implementation="eager")
    net = BertForPreTraining(shape)
    words, label = torch.empty(batch, length, dtype=torch.long), torch.empty(batch, length, dtype=torch.long)
    follows = torch.empty(batch, dtype=torch.long)

    def loss():
        return net(input_ids=words, labels=label, next_sentence_label=follows).loss

    return _train(net, loss)


def bert_large(device):
    return _bert(16, 512)


def bert_large_4(device):
    """As the four of the authors' early scripts."""
    return _bert(4, 512)


class Block(nn.Module):
    def __init__(self, width, heads, length):
        super().__init__()
        self.heads = heads
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.project = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.wide, self.narrow = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)
        self.drop = nn.Dropout(0.1)
        self.register_buffer("future", torch.ones(length, length, dtype=torch.bool).triu(1), persistent=False)

    def attention(self, x):
        b, t, width = x.shape
        q, k, v = (y.view(b, t, self.heads, -1).transpose(1, 2) for y in self.qkv(x).split(width, 2))
        score = (q @ k.transpose(2, 3)) * (width // self.heads) ** -0.5
        weight = self.drop(score.masked_fill(self.future, float("-inf")).softmax(-1))
        return self.drop(self.project((weight @ v).transpose(1, 2).reshape(b, t, width)))

    def forward(self, x):
        x = x + self.attention(self.norm1(x))
        return x + self.drop(self.narrow(nn.functional.gelu(self.wide(self.norm2(x)), approximate="tanh")))


class Decoder(nn.Module):
    def __init__(self, layers, width, heads, length, words=50257):
        super().__init__()
        self.word, self.place = nn.Embedding(words, width), nn.Embedding(length, width)
        self.blocks = nn.Sequential(*(Block(width, heads, length) for _ in range(layers)))
        self.norm, self.drop = nn.LayerNorm(width), nn.Dropout(0.1)
        self.register_buffer("places", torch.arange(length), persistent=False)

    def forward(self, words):
        x = self.drop(self.word(words) + self.place(self.places))
        return nn.functional.linear(self.norm(self.blocks(x)), self.word.weight)


def _decoder(layers, width, heads, length, batch):
    net = Decoder(layers, width, heads, length)
    words, label = torch.empty(batch, length, dtype=torch.long), torch.empty(batch, length, dtype=torch.long)
    return _train(net, lambda: nn.functional.cross_entropy(net(words).flatten(0, 1), label.flatten()))


def gpt2(device):
    return _decoder(12, 768, 12, 1024, 8)


def gpt3(device):
    return _decoder(24, 2048, 16, 1024, 8)
