# SPDX-License-Identifier: Apache-2.0
"""Nets on pictures, as torchvision defines them. SGD with momentum, gradients dropped after the step."""
import torch
import torchvision.models as models


def _train(net, size, batch, classes=1000, loss=None):
    image = torch.empty(batch, 3, size, size)
    label = torch.empty(batch, dtype=torch.long)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9, weight_decay=1e-4, foreach=False)
    loss = loss or (lambda out, label: torch.nn.functional.cross_entropy(out, label))
    net.train()

    def step():
        loss(net(image), label).backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)

    return step


def resnet50(device):
    return _train(models.resnet50(), 224, 115)


def resnet152(device):
    return _train(models.resnet152(), 224, 55)


def densenet121(device):
    return _train(models.densenet121(), 224, 70)


def inception_v3(device):
    def loss(out, label):
        entropy = torch.nn.functional.cross_entropy
        return entropy(out.logits, label) + 0.4 * entropy(out.aux_logits, label)

    return _train(models.inception_v3(aux_logits=True, init_weights=False), 299, 96, loss=loss)


def swin_t(device):
    net = models.swin_t()
    image, label = torch.empty(40, 3, 224, 224), torch.empty(40, dtype=torch.long)
    optimizer = torch.optim.AdamW(net.parameters(), lr=1e-3, weight_decay=0.05, foreach=False)
    net.train()

    def step():
        torch.nn.functional.cross_entropy(net(image), label).backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)

    return step
