# SPDX-License-Identifier: Apache-2.0
"""Nets as people train them: what the zoo has from packages, in small and without a download."""
import math

from harness import ALL_PROFILES, case


def cross_entropy(torch, net, x, y):
    return torch.nn.functional.cross_entropy(net(x), y)


@case(0, budget=0.85, profiles=ALL_PROFILES)
def densely_connected(t):
    """DenseNet: every layer reads the concatenation of all before it; batch norm in place."""
    torch = t.torch
    nn = torch.nn

    class Block(nn.Module):
        def __init__(self, channels, growth, layers):
            super().__init__()
            self.layers = nn.ModuleList(
                nn.Sequential(nn.BatchNorm2d(channels + i * growth), nn.ReLU(inplace=True),
                              nn.Conv2d(channels + i * growth, growth, 3, padding=1, bias=False))
                for i in range(layers))

        def forward(self, x):
            features = [x]
            for layer in self.layers:
                features.append(layer(torch.cat(features, 1)))
            return torch.cat(features, 1)
    net = nn.Sequential(nn.Conv2d(3, 8, 3, padding=1), Block(8, 8, 4), nn.Conv2d(40, 16, 1), nn.AvgPool2d(2),
                        Block(16, 8, 3), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(40, 10))
    optimizer = torch.optim.SGD(net.parameters(), lr=0.05, momentum=0.9, nesterov=True)
    for step in range(3):
        loss = cross_entropy(torch, net, torch.randn(4, 3, 16, 16), torch.randint(10, (4,)))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        t.out("loss%d" % step, loss.item())
    t.model("net", net)
    t.optimizer("optimizer", optimizer)


@case(0, budget=0.85, profiles=ALL_PROFILES)
def u_shaped(t):
    """U-Net: skips over the whole depth, transposed convolutions, half of the gradients kept by hooks."""
    torch = t.torch
    nn = torch.nn
    relu = nn.functional.relu

    class UNet(nn.Module):
        def __init__(self):
            super().__init__()
            widths = (8, 12, 16)
            self.down = nn.ModuleList(nn.Conv2d(a, b, 3, padding=1) for a, b in zip((3,) + widths, widths))
            self.up = nn.ModuleList(nn.ConvTranspose2d(a, b, 2, stride=2) for a, b in ((16, 12), (12, 8)))
            self.merge = nn.ModuleList(nn.Conv2d(2 * b, b, 3, padding=1) for b in (12, 8))
            self.norm = nn.InstanceNorm2d(8, affine=True)
            self.head = nn.Conv2d(8, 1, 1)

        def forward(self, x):
            skips = []
            for i, layer in enumerate(self.down):
                x = relu(layer(x if i == 0 else nn.functional.max_pool2d(x, 2)), inplace=True)
                skips.append(x)
            for up, merge, skip in zip(self.up, self.merge, skips[-2::-1]):
                x = relu(merge(torch.cat((up(x), skip), 1)))
            return self.head(self.norm(x))
    net = UNet()
    optimizer = torch.optim.Adam(net.parameters(), lr=1e-3, amsgrad=True)
    for step in range(3):
        loss = nn.functional.binary_cross_entropy_with_logits(net(torch.randn(2, 3, 32, 32)),
                                                              torch.rand(2, 1, 32, 32).round())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        t.out("loss%d" % step, loss.item())
    t.model("net", net)


@case(0, budget=0.9, profiles=ALL_PROFILES)
def adversaries(t):
    """A GAN: two nets, two optimizers, one's gradients through the other, detach, spectral norm."""
    torch = t.torch
    nn = torch.nn
    maker = nn.Sequential(nn.Linear(16, 64), nn.BatchNorm1d(64), nn.LeakyReLU(0.2, inplace=True), nn.Linear(64, 128), nn.Tanh())
    critic = nn.Sequential(nn.utils.spectral_norm(nn.Linear(128, 64)), nn.LeakyReLU(0.2), nn.Dropout(0.2), nn.Linear(64, 1))
    makers = torch.optim.Adam(maker.parameters(), lr=2e-3, betas=(0.5, 0.999))
    critics = torch.optim.RMSprop(critic.parameters(), lr=1e-3)
    judge = nn.functional.binary_cross_entropy_with_logits
    for step in range(3):
        real, fake = torch.randn(32, 128), maker(torch.randn(32, 16))
        critics.zero_grad()
        loss = judge(critic(real), torch.ones(32, 1)) + judge(critic(fake.detach()), torch.zeros(32, 1))
        loss.backward()
        critics.step()
        makers.zero_grad()
        other = judge(critic(fake), torch.ones(32, 1))
        other.backward()
        makers.step()
        t.out("losses%d" % step, (loss.item(), other.item()))
    t.model("maker", maker)
    t.model("critic", critic)


@case(0, budget=0.85, profiles=ALL_PROFILES)
def variational(t):
    """A VAE: the reparametrised draw, a distribution's objects, a warm-up and a schedule."""
    torch = t.torch
    nn = torch.nn
    encode = nn.Sequential(nn.Linear(128, 96), nn.SiLU(), nn.Linear(96, 32))
    decode = nn.Sequential(nn.Linear(16, 96), nn.SiLU(), nn.Linear(96, 128))
    parameters = list(encode.parameters()) + list(decode.parameters())
    optimizer = torch.optim.AdamW(parameters, lr=1e-3)
    schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: min(1.0, (step + 1) / 3))
    for step in range(4):
        x = torch.rand(64, 128)
        mean, log_variance = encode(x).chunk(2, 1)
        prior = torch.distributions.Normal(torch.zeros_like(mean), torch.ones_like(mean), validate_args=False)
        posterior = torch.distributions.Normal(mean, (0.5 * log_variance).exp(), validate_args=False)
        z = posterior.rsample()
        loss = nn.functional.binary_cross_entropy_with_logits(decode(z), x, reduction="sum")
        loss = loss + torch.distributions.kl_divergence(posterior, prior).sum()
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_value_(parameters, 0.5)
        optimizer.step()
        schedule.step()
        t.out("loss%d" % step, (loss.item(), schedule.get_last_lr()))
    t.model("encode", encode)
    t.model("decode", decode)


@case(0, budget=0.85, profiles=ALL_PROFILES)
def language_model(t):
    """A decoder with tied weights, SDPA or what stood for it, accumulation, clipping, a schedule, AdamW."""
    torch = t.torch
    nn = torch.nn
    attend = getattr(nn.functional, "scaled_dot_product_attention", None)

    class Layer(nn.Module):
        def __init__(self, width, heads):
            super().__init__()
            self.heads, self.dropout = heads, nn.Dropout(0.1)
            self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
            self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
            self.mlp = nn.Sequential(nn.Linear(width, 2 * width), nn.GELU(), nn.Linear(2 * width, width))

        def forward(self, x, mask):
            b, n, width = x.shape
            q, k, v = (part.view(b, n, self.heads, -1).transpose(1, 2) for part in self.qkv(self.norm1(x)).chunk(3, -1))
            if attend is not None:
                y = attend(q, k, v, is_causal=True)
            else:
                scores = (q @ k.transpose(-1, -2)) / math.sqrt(q.shape[-1])
                y = scores.masked_fill(mask, -math.inf).softmax(-1) @ v
            x = x + self.dropout(self.out(y.transpose(1, 2).reshape(b, n, width)))
            return x + self.dropout(self.mlp(self.norm2(x)))

    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.embed, self.place = nn.Embedding(64, 48), nn.Embedding(24, 48)
            self.layers = nn.ModuleList(Layer(48, 4) for _ in range(2))
            self.head = nn.Linear(48, 64, bias=False)
            self.head.weight = self.embed.weight
            self.register_buffer("mask", torch.ones(24, 24, dtype=torch.bool).triu(1))

        def forward(self, ids):
            x = self.embed(ids) + self.place(torch.arange(ids.shape[1]))
            for layer in self.layers:
                x = layer(x, self.mask)
            return self.head(x)
    net = Model()
    optimizer = torch.optim.AdamW(net.parameters(), lr=1e-3, weight_decay=0.1, foreach=True)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 4)
    for step in range(2):
        optimizer.zero_grad(set_to_none=step == 0)
        for _ in range(2):
            ids = torch.randint(64, (4, 24))
            loss = nn.functional.cross_entropy(net(ids)[:, :-1].reshape(-1, 64), ids[:, 1:].reshape(-1)) / 2
            loss.backward()
        norm = nn.utils.clip_grad_norm_(net.parameters(), 0.5)
        optimizer.step()
        schedule.step()
        t.out("loss%d" % step, (loss.item(), norm.item()))
    t.model("net", net)
    t.optimizer("optimizer", optimizer)


@case(0, budget=0.9, profiles=ALL_PROFILES)
def gated_recurrent(t):
    """GRU and a hand-made LSTM cell, truncated backward through time, packed sequences that change length."""
    torch = t.torch
    nn = torch.nn
    embed, gru, cell, head = nn.Embedding(32, 24), nn.GRU(24, 32, batch_first=True), nn.LSTMCell(32, 32), nn.Linear(32, 32)
    net = nn.ModuleList([embed, gru, cell, head])
    optimizer = torch.optim.Adam(net.parameters(), lr=1e-2)
    carried = torch.zeros(1, 8, 32)
    for step in range(3):
        lengths = torch.randint(2, 6, (8,)).sort(descending=True)[0]
        ids = torch.randint(32, (8, int(lengths[0])))
        packed = nn.utils.rnn.pack_padded_sequence(embed(ids), lengths, batch_first=True)
        out, carried = gru(packed, carried.detach())
        out, _ = nn.utils.rnn.pad_packed_sequence(out, batch_first=True)
        h = c = torch.zeros(8, 32)
        for i in range(out.shape[1]):
            h, c = cell(out[:, i], (h, c))
        loss = nn.functional.cross_entropy(head(h), ids[:, 0])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        t.out("loss%d" % step, loss.item())
    t.out("carried", carried)
    t.model("net", net)


@case(0, budget=0.9, profiles=ALL_PROFILES)
def mean_teacher(t):
    """A student and its moving average, trained in bf16 autocast with a checkpointed block."""
    torch = t.torch
    import copy

    from torch.utils.checkpoint import checkpoint
    nn = torch.nn
    block = nn.Sequential(nn.Linear(64, 128), nn.GELU(), nn.Dropout(0.1), nn.Linear(128, 64))
    student = nn.ModuleDict({"first": nn.Linear(32, 64), "block": block, "last": nn.Linear(64, 8)})
    teacher = copy.deepcopy(student).requires_grad_(False)
    optimizer = torch.optim.SGD(student.parameters(), lr=0.05, momentum=0.9)

    def forward(net, x, again):
        h = net["first"](x).relu()
        h = h + (checkpoint(net["block"], h, use_reentrant=False) if again else net["block"](h))
        return net["last"](h)
    for step in range(3):
        x = torch.randn(64, 32)
        with torch.autocast("cpu", dtype=torch.bfloat16):
            with torch.no_grad():
                target = forward(teacher, x, False).softmax(-1)
            loss = -(target * forward(student, x + 0.1 * torch.randn(64, 32), True).log_softmax(-1)).sum(-1).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        with torch.no_grad():
            for a, b in zip(teacher.parameters(), student.parameters()):
                a.lerp_(b, 0.1)
        t.out("loss%d" % step, loss.item())
    t.model("student", student)
    t.model("teacher", teacher)
