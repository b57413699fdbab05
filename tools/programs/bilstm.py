# SPDX-License-Identifier: Apache-2.0
"""A bidirectional LSTM over 128 steps: 100 wide in, 256 hidden, one label a sequence, Adam. Cell by cell: PyTorch
has no fused LSTM on the meta device, and cuDNN's would be one operator, of which nothing can be dropped."""
import torch
from torch import nn

BATCH, LENGTH, INPUT, HIDDEN, CLASSES = 2048, 128, 100, 256, 2


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.lstm = nn.LSTM(INPUT, HIDDEN, bidirectional=True, batch_first=True)
        self.out = nn.Linear(2 * HIDDEN, CLASSES)

    def forward(self, x):
        return self.out(self.lstm(x)[0][:, -1])


def bilstm(device):
    net = Net()
    sequence, label = torch.empty(BATCH, LENGTH, INPUT), torch.empty(BATCH, dtype=torch.long)
    optimizer = torch.optim.Adam(net.parameters(), lr=1e-3, foreach=False)

    def step():
        nn.functional.cross_entropy(net(sequence), label).backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)

    return step
