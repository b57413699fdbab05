# SPDX-License-Identifier: Apache-2.0
"""Forked children, threads, DataLoader workers, signals and exit, in one process with the adapter."""
import os
import sys
import threading

from harness import case

WIDE = 8192


def in_child(t, work):
    """Runs `work` in a forked child; returns its exit status and what it wrote to standard error."""
    read, write = os.pipe()
    sys.stdout.flush()
    pid = os.fork()
    if pid == 0:
        os.close(read)
        os.dup2(write, 2)
        code = 3
        try:
            code = 0 if work() else 1
        except BaseException as error:                                   # noqa: B902
            sys.stderr.write("%s: %s\n" % (type(error).__name__, error))
            sys.stderr.flush()
        finally:
            os._exit(code)
    os.close(write)
    text = b""
    while True:
        part = os.read(read, 65536)
        if not part:
            break
        text += part
    os.close(read)
    return os.waitpid(pid, 0)[1], text.decode(errors="replace")


@case(0, budget=None)
def forked_child_writes(t):
    """What a child writes to its tensors must not be seen by the parent, nor the reverse."""
    torch = t.torch
    x = torch.randn(WIDE) * 2
    w = torch.nn.Parameter(torch.randn(64, 64))
    want = x.sum().item()
    t.set(stress=0)

    def work():
        ok = x.sum().item() == want
        x.zero_()
        w.data.fill_(7)
        y = (torch.ones(64, 64) @ w).sum()
        y.backward()
        junk = [torch.full((WIDE,), float(i)) for i in range(50)]
        return ok and x.sum().item() == 0 and y.item() == 64 * 64 * 64 * 7.0 and junk[49][5].item() == 49.0
    x.sum().item()
    w.sum().item()
    status, text = in_child(t, work)
    t.out("status", (status, text))
    t.evict_all()
    t.out("x", x)
    t.out("w", w)


@case(0, budget=None)
def forked_child_reads_an_evicted_tensor(t):
    """The child cannot make it again: it must get the right bytes, or die with the tensor's name."""
    torch = t.torch
    x = torch.randn(WIDE)
    y = x.sin() * 2
    want = y.sum().item()
    t.set(stress=0)
    gone = t.evict_all()
    t.check(gone >= 1, "nothing was evicted")
    status, text = in_child(t, lambda: y.sum().item() == want)
    t.note("child", (status, text))
    if t.evicting:
        assert status != 256, "the child read other bytes: " + text
        if status:
            assert "mul" in text or "sin" in text, "no tensor is named: %d %s" % (status, text)
    else:
        assert status == 0, (status, text)
    t.out("y", y)


@case(0, budget=None)
def forked_child_trains(t):
    """A child that trains on, while the parent does."""
    torch = t.torch
    net = torch.nn.Sequential(torch.nn.Linear(64, 256), torch.nn.Tanh(), torch.nn.Linear(256, 64))

    def step():
        loss = net(torch.ones(64, 64)).pow(2).mean()
        loss.backward()
        with torch.no_grad():
            for p in net.parameters():
                p -= 0.1 * p.grad
                p.grad = None
        return loss.item()
    t.set(stress=0)
    first = step()
    values = {}

    def work():
        values["child"] = [step() for _ in range(3)]
        os.write(2, repr(values["child"]).encode())
        return True
    for p in net.parameters():
        p.sum().item()
    status, text = in_child(t, work)
    after = [step() for _ in range(3)]
    t.out("first", first)
    t.out("status", status)
    t.out("child", text)
    t.out("same", text == repr(after))
    t.model("net", net)


@case(0, budget=None)
def loader_with_workers(t):
    """Forked workers read the data set; batches come back through shared memory."""
    torch = t.torch
    from torch.utils.data import DataLoader, TensorDataset
    t.set(stress=0)
    data = TensorDataset(torch.randn(64, 128), torch.randint(8, (64,)))
    net = torch.nn.Linear(128, 8)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    for epoch in range(2):
        t.set(stress=0)
        data.tensors[0].sum().item(), data.tensors[1].sum().item()
        batches = iter(DataLoader(data, batch_size=16, shuffle=True, num_workers=2))
        t.set(stress=1)
        for x, y in batches:
            h = (x * 2).tanh()
            loss = torch.nn.functional.cross_entropy(net(h), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        t.out("loss%d" % epoch, loss.item())
    t.model("net", net)


@case(0, budget=None)
def threads_of_the_script(t):
    """Threads that compute on tensors of their own and of each other."""
    torch = t.torch
    x = torch.randn(WIDE) * 2
    results = {}
    gate = threading.Barrier(3)

    def work(k):
        gate.wait()
        y = x
        for i in range(40):
            y = (y * (k + 1)).sin() + x
        results[k] = y
    threads = [threading.Thread(target=work, args=(k,)) for k in range(3)]
    for thread in threads:
        thread.start()
    for i in range(40):
        x.cos()
    for thread in threads:
        thread.join()
    t.evict_all()
    for k in range(3):
        t.out("y%d" % k, results[k])
    t.out("x", x)


@case(0, budget=None)
def training_in_a_thread(t):
    """A thread trains from beginning to end while the main thread allocates."""
    torch = t.torch
    net = torch.nn.Sequential(torch.nn.Linear(128, 256), torch.nn.ReLU(inplace=True), torch.nn.Linear(256, 8))
    data = [(torch.randn(64, 128), torch.randint(8, (64,))) for _ in range(4)]
    losses = []

    def work():
        optimizer = torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9)
        for x, y in data:
            loss = torch.nn.functional.cross_entropy(net(x), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
    thread = threading.Thread(target=work)
    thread.start()
    held = [torch.ones(WIDE) * i for i in range(100)]
    thread.join()
    t.evict_all()
    t.out("losses", losses)
    t.out("held", held[99])
    t.model("net", net)


@case(0, budget=0.85)
def two_operator_threads(t):
    """Two threads within each operator."""
    torch = t.torch
    torch.set_num_threads(2)
    nn = torch.nn
    net = nn.Sequential(nn.Conv2d(3, 16, 3, padding=1), nn.BatchNorm2d(16), nn.ReLU(inplace=True),
                        nn.Conv2d(16, 16, 3, padding=1), nn.ReLU(), nn.Conv2d(16, 16, 3, padding=1), nn.ReLU(),
                        nn.AdaptiveAvgPool2d(2), nn.Flatten(), nn.Linear(64, 8))
    optimizer = torch.optim.Adam(net.parameters(), lr=1e-3)
    for step in range(3):
        loss = torch.nn.functional.cross_entropy(net(torch.randn(8, 3, 24, 24)), torch.randint(8, (8,)))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        t.out("loss%d" % step, loss.item())
    t.model("net", net)


@case(0, budget=None)
def finalisers_and_cycles(t):
    """Tensors that die in the garbage collector, in finalisers, and inside other operators."""
    import gc
    import weakref
    torch = t.torch
    order = []

    class Node:
        def __init__(self, tensor):
            self.tensor, self.me = tensor, self

        def __del__(self):
            order.append((self.tensor * 2).sum().item())
    x = torch.randn(WIDE)
    gc.disable()
    for i in range(10):
        node = Node(x * i)
        y = node.tensor.sin()
        reference = weakref.ref(node)
        del node
        t.evict_all()
        if i % 3 == 0:
            gc.collect()
    gc.enable()
    gc.collect()
    t.out("dead", reference() is None)
    t.out("order", sorted(order))
    t.out("y", y)


@case(0, budget=None)
def many_small_tensors(t):
    """Scalars and small blocks by the thousand, beside large ones."""
    torch = t.torch
    scalars = [torch.tensor(float(i)) * 0.5 for i in range(2000)]
    total = torch.zeros(())
    big = [torch.randn(WIDE) * i for i in range(8)]
    if t.evicting:
        t.set(stress=50)
    for s in scalars:
        total = total + s.sin()
    t.evict_all()
    t.out("total", total)
    t.out("stack", torch.stack(scalars[::10]))
    for i, b in enumerate(big):
        t.out("big%d" % i, b)
