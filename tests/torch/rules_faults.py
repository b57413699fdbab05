# SPDX-License-Identifier: Apache-2.0
"""What goes wrong in the middle of a step: memory that is refused, the adapter's own mallocs failing, callbacks that
raise, signals. The script catches the error, puts its state back and does the step again, so all bits must be as in a
plain run; no pin may be left, the engine must be sound, and the adapter must hold as many blocks as before.

COOP_FAIL_ALLOC names libfail-alloc.so of tests/support; without it the cases that need it are left out.
COOP_FAULTS=all tries every call, else a selection."""
import ctypes
import gc
import os
import signal
import subprocess
import threading

from harness import case, engine_fault

ALL = os.environ.get("COOP_FAULTS") == "all"
TIMEOUT = 1200.0 if ALL else 60.0
REQUESTS = range(1, 201) if ALL else range(1, 201, 5)   # for memory, each of which is refused once
# Not "resize": a storage that PyTorch can make empty it can always make empty.
CALLBACKS = ("storage_of", "weak_ref", "open_weak", "storage_new", "is_grad_enabled", "set_grad_enabled",
             "module_name", "describe", "empty", "set", "conj", "neg", "number", "no_functions", "environment_get",
             "environment_set")


class Injected(Exception):
    pass


class Trainer:
    """A step of everything: convolution, running statistics, in-place, dropout, views, cat, an LSTM, Adam; little scratch."""

    def __init__(self, t):
        self.t, self.torch = t, t.torch
        nn = t.torch.nn
        self.net = nn.ModuleDict({
            "conv": nn.Conv2d(3, 4, 3, padding=1), "norm": nn.BatchNorm2d(4), "act": nn.ReLU(inplace=True),
            "drop": nn.Dropout(0.2), "more": nn.Sequential(*[nn.LayerNorm(8) for _ in range(6)]),
            "lstm": nn.LSTM(16, 8), "out": nn.Linear(16, 4)})
        self.optimizer = t.torch.optim.Adam(self.net.parameters(), lr=1e-2)
        self.x = t.torch.randn(32, 3, 8, 8)

    def step(self):
        torch, net = self.torch, self.net
        h = net["drop"](net["act"](net["norm"](net["conv"](self.x))))
        for layer in net["more"]:
            h = torch.tanh(layer(h)) + h
        h, _ = net["lstm"](h.mean(1).reshape(32, 4, 16).transpose(0, 1))
        h = torch.cat([h[0], h.mean(0)], 1)
        loss = torch.nn.functional.cross_entropy(net["out"](h), torch.arange(32) % 4)
        self.optimizer.zero_grad(set_to_none=True)
        loss.backward()
        self.optimizer.step()
        return loss.item()

    def tensors(self):
        yield from self.net.parameters()
        yield from self.net.buffers()
        for state in self.optimizer.state.values():
            yield from (v for v in state.values() if isinstance(v, self.torch.Tensor))

    def save(self):
        self.saved = [v.tolist() for v in self.tensors()]
        self.random = self.torch.get_rng_state()

    def restore(self):
        gc.collect()   # what a traceback held
        with self.torch.no_grad():
            for v, was in zip(self.tensors(), self.saved):
                v.copy_(self.torch.tensor(was, dtype=v.dtype))
        self.torch.set_rng_state(self.random)
        self.optimizer.zero_grad(set_to_none=True)


def pins():
    """Of operators and the like, which must be over between two steps."""
    from coopscope import _coopscope
    return sum(what[3] for _, _, what in _coopscope.pieces() if what)


def sound(t, what):
    t.check(pins() == 0, "%s: %d pins are left" % (what, pins()))
    wrong = engine_fault()
    t.check(wrong is None, "%s: engine: %s" % (what, wrong))


def try_step(t, trainer, what, begin, end):
    """A step with a fault between begin() and end(); done again where it did not survive. Returns the loss and whether
    it had to be done again."""
    trainer.save()
    failed = None
    begin()
    try:
        try:
            loss = trainer.step()
        finally:
            end()   # a signal may come as late as here
    except (Injected, MemoryError, RuntimeError) as error:   # nothing else
        failed = repr(error).replace("\n", " ")
    sound(t, what)
    if failed is not None:
        gc.collect()   # the frames that the exception went through, and what they made
        t.torch.set_grad_enabled(True)   # an exception inside of no_grad's own __exit__ leaves it off, in PyTorch alone, too
        trainer.restore()
        loss = trainer.step()
        sound(t, what + ", again")
    return loss, failed


def steps_with(t, faults, survive=None):
    """Two steps without, then one for each of faults = [(name, begin, end)]."""
    trainer = Trainer(t)
    losses = [trainer.step(), trainer.step()]
    errors = {}
    for name, begin, end in faults:
        if t.managed:
            loss, failed = try_step(t, trainer, name, begin, end)
            if failed is not None:
                errors[name] = failed
        else:
            loss = trainer.step()
        losses.append(loss)
    t.note("errors", len(errors))
    if survive is not None:
        t.check(survive(len(errors)), "%d of %d steps failed: %s" % (len(errors), len(faults), list(errors.items())[:5]))
    t.out("losses", losses)
    t.model("net", trainer.net)
    t.optimizer("optimizer", trainer.optimizer)
    return errors


# ---- memory is refused ---------------------------------------------------------------------------------------


def refusals(t):
    from coopscope import _coopscope as native
    return [("request %d" % k, lambda k=k: native.refuse(k), lambda: native.refuse(0)) for k in REQUESTS]


@case(12, budget=0.5, stress=7, timeout=TIMEOUT, profiles=("plain", "none", "stress", "moving", "budget"))
def each_request_for_memory_is_refused(t):
    """PyTorch's own error reaches the script, wherever it strikes, or the operator runs once more."""
    steps_with(t, refusals(t), lambda n: n < len(REQUESTS) if t.profile == "budget" else n == len(REQUESTS))


@case(12, budget=0.9, stress=None, timeout=TIMEOUT, compact=False)
def each_request_is_refused_without_rescue(t):
    steps_with(t, refusals(t), lambda n: n == len(REQUESTS))


# ---- the adapter's own malloc --------------------------------------------------------------------------------


def fail_library():
    return os.environ.get("COOP_FAIL_ALLOC")


def engine_addresses(extension):
    """The engine's functions in the extension: it ends the process where it has no memory for its own lists, by design."""
    core = os.path.join(os.path.dirname(os.path.realpath(extension)), "..", "core", "libcoop-core.a")

    def symbols(file):
        text = subprocess.run(["nm", "--defined-only", file], capture_output=True, text=True, check=True).stdout
        return [line.split() for line in text.splitlines() if len(line.split()) == 3]
    names = {name for _, kind, name in symbols(core) if kind == "T"}
    found = sorted(int(address, 16) for address, kind, name in symbols(extension) if kind in "Tt" and name in names)
    return found[0], found[-1] + 4096


def own_mallocs(t):
    library = ctypes.CDLL(fail_library())
    library.fail_at.restype = library.fail_held.restype = ctypes.c_long
    if t.managed:
        from coopscope import _coopscope as native
        library.fail_spare(*map(ctypes.c_ulong, engine_addresses(native.__file__)))
        assert library.fail_install(b"_coopscope.abi3.so") >= 4
    return library


def malloc_faults(library, calls):
    return [("malloc %d" % k, lambda k=k: library.fail_at(k), lambda: library.fail_at(0)) for k in calls]


@case(12, budget=0.9, stress=7, timeout=TIMEOUT, needs=lambda torch: fail_library())
def each_malloc_of_the_adapter_fails(t):
    library = own_mallocs(t)
    steps_with(t, malloc_faults(library, range(1, 1000) if ALL else range(1, 1000, 29)))


@case(0, budget=0.5, stress=7, timeout=TIMEOUT, needs=lambda torch: fail_library())
def nothing_is_held_after_faults(t):
    """As many blocks of the adapter after a hundred failures as after ten, but for the texts of the trace: a warning's
    is kept for good."""
    from coopscope import _coopscope as native
    library = own_mallocs(t)
    trainer, held = Trainer(t), []
    losses = [trainer.step() for _ in range(3)]
    for round in range(3):
        for k in range(3, 240, 12 if ALL else 40):
            for begin, end in ((lambda: native.refuse(k), lambda: native.refuse(0)),
                               (lambda: library.fail_at(7 * k), lambda: library.fail_at(0))):
                losses.append(try_step(t, trainer, "%d" % k, begin, end)[0] if t.managed else trainer.step())
        gc.collect()
        stats = t.stats()
        held.append((library.fail_held() - stats["texts"], stats["records"], stats["tensors"]))
    t.note("held", held)
    t.check(held[2][0] <= max(held[0][0], held[1][0]), "blocks held after each round: %s" % held)
    t.out("losses", losses)


# ---- callbacks that raise ------------------------------------------------------------------------------------

raising = {"name": None, "in": 0}


def wrap_callbacks():
    """Before the adapter asks for them."""
    from coopscope import _adapter
    original = _adapter._functions

    def faulty(name, function):
        def call(*args, **kwargs):
            if raising["name"] == name:
                raising["in"] -= 1
                if raising["in"] == 0:
                    raise Injected(name)
            return function(*args, **kwargs)
        return call

    def functions(torch):
        made = original(torch)
        made.update({name: faulty(name, made[name]) for name in CALLBACKS})
        return made
    _adapter._functions = functions


@case(0, budget=0.9, stress=7, timeout=TIMEOUT, before=wrap_callbacks)
def each_callback_raises(t):
    """Once in each place, at the first, second, ... call."""
    def begin(name, k):
        raising.update({"name": name, "in": k})

    def end():
        raising.update({"name": None, "in": 0})
    faults = [("%s, call %d" % (name, k), lambda n=name, k=k: begin(n, k), end)
              for name in CALLBACKS for k in ((1, 2, 13) if not ALL else range(1, 60))]
    errors = steps_with(t, faults)
    t.check(not errors or all("Injected" in e or "coopscope" in e for e in errors.values()), "%s" % errors)


@case(0, budget=0.8)
def hooks_of_the_script_raise(t):
    """In forward and backward hooks, saved-tensor hooks, an autograd Function and a finalizer."""
    torch = t.torch
    trainer = Trainer(t)

    def boom(*args):
        raise Injected("hook")

    class Boom(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x.clone()

        @staticmethod
        def backward(ctx, g):
            raise Injected("backward")
    losses = []
    for number in range(5):
        losses.append(trainer.step())
        if not t.managed:
            continue
        trainer.save()
        handles, saved = [], None
        if number == 0:
            handles.append(trainer.net["lstm"].register_forward_hook(boom))
        elif number == 1:
            handles.append(trainer.net["norm"].weight.register_hook(boom))
        elif number == 2 and hasattr(torch.autograd.graph, "saved_tensors_hooks"):
            saved = torch.autograd.graph.saved_tensors_hooks(lambda x: x, boom)
        elif number == 3:
            handles.append(trainer.net["out"].register_forward_pre_hook(lambda m, a: (Boom.apply(a[0]),)))
        failed = False
        try:
            if saved is not None:
                with saved:
                    trainer.step()
            else:
                trainer.step()
        except (Injected, RuntimeError) as error:   # 1.13 makes its own of what a hook raises
            failed = "Injected" in repr(error)
        t.check(failed or number == 4, "hook %d did not raise" % number)
        sound(t, "hook %d" % number)
        for handle in handles:
            handle.remove()
        trainer.restore()
    trainer.optimizer.zero_grad(set_to_none=True)
    t.out("losses", losses)
    t.model("net", trainer.net)


# ---- signals -------------------------------------------------------------------------------------------------


@case(0, budget=0.8, stress=7, evicts=False)
def signals_during_eviction(t):
    """A handler that computes, many times a step; and one that raises, as Ctrl-C does."""
    torch = t.torch
    trainer = Trainer(t)
    losses, seen = [trainer.step()], [0]
    other = torch.randn(64)

    def compute(signum, frame):
        seen[0] += 1
        other.mul(2).sum().item()

    def interrupt(signum, frame):
        seen[0] += 1
        raise Injected("signal")
    old = signal.getsignal(signal.SIGALRM)
    signal.signal(signal.SIGALRM, compute)
    for _ in range(10):
        if t.managed:
            signal.setitimer(signal.ITIMER_REAL, 0.001, 0.001)
        losses.append(trainer.step())
        signal.setitimer(signal.ITIMER_REAL, 0)
        if t.managed:
            sound(t, "signals")
    signal.signal(signal.SIGALRM, interrupt)
    for number in range(30):
        def begin(n=number):
            signal.setitimer(signal.ITIMER_REAL, 0.0005 * (n + 1))

        def end():
            signal.setitimer(signal.ITIMER_REAL, 0)
        losses.append(try_step(t, trainer, "interrupt %d" % number, begin, end)[0] if t.managed else trainer.step())
    signal.signal(signal.SIGALRM, old)
    t.note("signals", seen[0])
    t.check(t.profile == "budget" or t.stats()["evictions"] > 1000, "too few evictions")
    t.out("losses", losses)
    t.model("net", trainer.net)


@case(0, budget=0.5, stress=1)
def finalizers_anywhere(t):
    """The collector runs whenever it likes, also while PyTorch has taken the mode off; what it finalizes computes."""
    trainer = Trainer(t)
    others, sums = [t.torch.randn(64) * i for i in range(8)], []

    class Node:
        def __init__(self, number):
            self.number, self.me = number, self

        def __del__(self):
            sums.append(others[self.number % 8].mul(2).sum().item())
    old, y = gc.get_threshold(), t.torch.zeros(64)
    gc.set_threshold(7)
    for number in range(200):   # garbage enough for a collection, and nothing made until PyTorch makes something
        gc.disable()
        for _ in range(10):
            Node(number)
        gc.enable()
        y = y.add(others[0])
    gc.set_threshold(*old)
    gc.collect()
    t.out("loss", trainer.step())
    t.out("sums", sorted(sums))
    t.out("y", y)


@case(0, budget=None, evicts=False)
def the_collector_runs_beside_kernels(t):
    """It waits while the adapter is at work, not as long as some thread has an operator under way."""
    torch, collections = t.torch, [0]

    class Node:
        def __init__(self):
            self.me = self

    def count(phase, info):
        collections[0] += phase == "start"

    def work():
        try:
            y[0] = x @ x
        finally:
            busy[0] = False

    x, y, made = torch.full((1200, 1200), 0.01), [None], 0
    gc.collect()
    gc.callbacks.append(count)
    for _ in range(50):
        busy = [True]
        thread = threading.Thread(target=work)
        thread.start()
        while busy[0]:
            Node()
            made += 1
        thread.join()
        if made > 30000:
            break
    gc.callbacks.remove(count)
    t.check(made > 30000, "the kernels left time for %d cycles only" % made)
    t.check(collections[0] > made / 2500, "%d collections for %d cycles" % (collections[0], made))
    t.out("y", y[0])
