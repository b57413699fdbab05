# SPDX-License-Identifier: Apache-2.0
"""`python -m coopscope.record MODEL.py`: one training step as a program, without the memory or the time for it.

MODEL.py defines

    def build(device):       # makes model, optimizer and batch on the device ..
        ...
        return step          # .. and returns a function that makes one whole training step

The step is made on PyTorch's meta device, where tensors have shapes and no bytes: once to warm up, so that
gradients were made and optimizer state exists, and once more to be recorded. What is alive between the two
(parameters, buffers, optimizer state, the batch) is constant. The program says of each operator which
storages it reads, writes and makes, what it costs on the machine that was named (a roofline, see
record_machine.py), and between operators when the last reference to a storage went. `coop replay` and
`coop sweep` play it. The same MODEL.py, PyTorch and machine give the same file, byte for byte (but for
`--machine cpu`, which is measured).

What a meta device cannot show: workspaces inside of kernels, the caching of an allocator, operators that
read values (`item`, boolean masks), which stop the recording. Operators are those that PyTorch chooses for
the meta device; dropout, which is one operator on CUDA and three elsewhere, is CUDA's unless the machine is
`cpu`. The collector of cycles is off while the step is recorded: memory goes with its last reference.
"""

import argparse
import contextlib
import gc
import gzip
import importlib.util
import inspect
import json
import os
import sys

from coopscope import record_machine

ROUND = 512  # blocks of the pool
# Written, though the schema does not say so: running mean and variance.
HIDDEN_WRITES = {"native_batch_norm": (3, 4), "cudnn_batch_norm": (3, 4), "_native_batch_norm_legit": (3, 4)}


class _Storage:
    __slots__ = ("id", "ref", "bytes")

    def __init__(self, number, ref, size):
        self.id, self.ref, self.bytes = number, ref, size


def _of(tensor):
    return tensor.untyped_storage() if hasattr(tensor, "untyped_storage") else tensor._storage()


def _tensors(torch, value, out):
    """Tensors in arguments or results, in order."""
    if isinstance(value, torch.Tensor):
        out.append(value)
    elif isinstance(value, (list, tuple)):
        for item in value:
            _tensors(torch, item, out)
    elif isinstance(value, dict):
        for item in value.values():
            _tensors(torch, item, out)
    return out


class Program:
    """What was recorded; `save` writes it."""

    def __init__(self):
        self.meta, self.constants, self.lines = {}, [], []

    def renumber(self):
        """Ids in the order in which the program names them: small, and the same whatever went before."""
        new = {}

        def of(number):
            return new.setdefault(number, len(new))

        self.constants = [[of(i), size] for i, size in self.constants]
        for line in self.lines:
            if "rel" in line:
                line["rel"] = of(line["rel"])
                continue
            line["out"] = [[of(i), size] for i, size in line["out"]]
            for key in ("in", "mut", "scratch"):
                if key in line:
                    line[key] = [of(i) for i in line[key]]

    def save(self, path):
        """Replaces the file only when all is written. Gzipped if the path ends in .gz."""
        temporary = f"{path}.{os.getpid()}.tmp"
        rows = [{"meta": self.meta}, *({"const": c} for c in self.constants), *self.lines]
        text = "".join(json.dumps(row, separators=(",", ":")) + "\n" for row in rows).encode()
        try:
            with open(temporary, "wb") as raw:
                if path.endswith(".gz"):
                    with gzip.GzipFile("", "wb", 9, raw, mtime=0) as file:
                        file.write(text)
                else:
                    raw.write(text)
            os.replace(temporary, path)
        except BaseException:
            with contextlib.suppress(OSError):
                os.unlink(temporary)
            raise


def make_recorder(torch, device, machine):
    """A dispatch mode (the class needs torch, which is imported late)."""
    from torch.multiprocessing.reductions import StorageWeakRef
    from torch.utils._python_dispatch import TorchDispatchMode

    class Recorder(TorchDispatchMode):
        def __init__(self):
            super().__init__()
            self.storages = {}  # by address of the storage; the weak reference keeps it from being used again
            self.known = []  # those that are not released yet
            self.constant = set()
            self.program = None  # while a step is recorded
            self.phases = []
            self.views = self.total = self.live = self.peak = self.bottleneck = 0

        # ---- storages ----

        def find(self, tensor):
            """None: not ours, or no bytes."""
            if tensor.device.type != device or tensor.layout is not torch.strided:
                return None
            return self.storages.get(_of(tensor)._cdata)

        def define(self, tensor):
            """The storage of a tensor if it was not seen before, else None."""
            if tensor.device.type != device or tensor.layout is not torch.strided:
                return None
            storage = _of(tensor)
            size = storage.nbytes()
            if size == 0 or storage._cdata in self.storages:
                return None
            made = _Storage(len(self.storages), StorageWeakRef(storage), size)
            self.storages[storage._cdata] = made
            self.known.append(made)
            return made

        def forget(self):
            """Those that are gone, in the order in which they were made."""
            gone = [s for s in self.known if s.ref.expired()]
            if gone:
                self.known = [s for s in self.known if not s.ref.expired()]
            return gone

        def release(self):
            for storage in self.forget():
                if storage.id not in self.constant:
                    self.program.lines.append({"rel": storage.id})
                    self.live -= -(-storage.bytes // ROUND) * ROUND

        # ---- operators ----

        def written(self, func, args, kwargs):
            out = []
            for i, arg in enumerate(func._schema.arguments):
                if arg.alias_info is not None and arg.alias_info.is_write:
                    _tensors(torch, args[i] if i < len(args) else kwargs.get(arg.name), out)
            return out

        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            kwargs = kwargs or {}
            if self.program is None:
                out = func(*args, **kwargs)
                for tensor in _tensors(torch, out, []):
                    self.define(tensor)
                return out
            self.release()
            inputs = _tensors(torch, (args, kwargs), [])
            read = list(dict.fromkeys(s.id for s in map(self.find, inputs) if s is not None))
            out = func(*args, **kwargs)
            self.record(func, args, inputs, read, self.written(func, args, kwargs), _tensors(torch, out, []))
            return out

        def record(self, func, args, inputs, read, written, outputs):
            made = [s for s in map(self.define, [*outputs, *written]) if s is not None]
            changed = [s.id for s in map(self.find, written) if s is not None and s.id in read]
            if not made and not changed:
                self.views += bool(outputs)
                return
            name = func._schema.name
            name = name[6:] if name.startswith("aten::") else name
            ours = [t for t in (*inputs, *outputs) if t.device.type == device]
            first = next((t for t in outputs if t.device.type == device), None)
            cost = record_machine.cost(machine, torch, name, args, ours, first)
            line = {"op": name, "in": read, "out": [[s.id, s.bytes] for s in made],
                    "mut": list(dict.fromkeys(changed)), "cost": cost}
            hidden = [self.find(args[i]) for i in HIDDEN_WRITES.get(name, ()) if i < len(args) and args[i] is not None]
            if hidden:
                line["scratch"] = [s.id for s in hidden]
            line["phase"] = self.phases[-1] if self.phases else "forward"
            self.program.lines.append(line)
            self.count(line, made)

        def count(self, line, made):
            self.total += line["cost"]
            self.live += sum(-(-s.bytes // ROUND) * ROUND for s in made)
            self.peak = max(self.peak, self.live)
            sizes = {s.id: s.bytes for s in self.known}
            used = {i for i in line["in"] if i not in self.constant} | {s.id for s in made}
            self.bottleneck = max(self.bottleneck, sum(-(-sizes[i] // ROUND) * ROUND for i in used))

        # ---- the step ----

        def begin(self):
            gc.collect()
            self.forget()
            self.program = Program()
            self.constant = {s.id for s in self.known}
            self.program.constants = [[s.id, s.bytes] for s in self.known]
            self.live = self.peak = self.fixed = sum(-(-s.bytes // ROUND) * ROUND for s in self.known)

        def end(self, name):
            self.release()
            program, self.program = self.program, None
            program.renumber()
            ops = sum("op" in line for line in program.lines)
            program.meta = {"name": name, "ops": ops, "views": self.views, "total_ns": self.total, "peak": self.peak,
                            "const": self.fixed, "bottleneck": self.fixed + self.bottleneck,
                            "torch": torch.__version__, "machine": machine._asdict()}
            return program

    return Recorder()


@contextlib.contextmanager
def _phases(torch, recorder):
    """Tells the recorder of backward passes and optimizer steps."""
    undo = []

    def wrap(owner, name, phase):
        original = vars(owner)[name]

        def wrapper(*args, **kwargs):
            recorder.phases.append(phase)
            try:
                return original(*args, **kwargs)
            finally:
                recorder.phases.pop()

        wrapper.hooked = True  # so that Optimizer does not wrap it once more
        setattr(owner, name, wrapper)
        undo.append((owner, name, original))

    def make(self, *args, **kwargs):
        begin(self, *args, **kwargs)
        if not any(owner is type(self) for owner, _, _ in undo) and "step" in vars(type(self)):
            wrap(type(self), "step", "optimizer")

    begin = torch.optim.Optimizer.__init__
    torch.optim.Optimizer.__init__ = make
    try:
        wrap(torch.autograd, "backward", "backward")
        wrap(torch.autograd, "grad", "backward")
        yield
    finally:
        torch.optim.Optimizer.__init__ = begin
        for owner, name, original in reversed(undo):
            setattr(owner, name, original)


@contextlib.contextmanager
def _cuda_dropout(torch):
    """One operator that returns the mask too, as on CUDA."""
    functional, originals = torch.nn.functional, (torch.nn.functional.dropout, torch.dropout)

    def functional_dropout(input, p=0.5, training=True, inplace=False):
        if not training or p == 0 or inplace:
            return originals[0](input, p, training, inplace)
        return torch.native_dropout(input, p, True)[0]

    def dropout(input, p, train):
        return torch.native_dropout(input, p, True)[0] if train and p > 0 else originals[1](input, p, train)

    functional.dropout, torch.dropout = functional_dropout, dropout
    try:
        yield
    finally:
        functional.dropout, torch.dropout = originals


def _make_step(torch, build, device):
    takes = bool(inspect.signature(build).parameters)
    with contextlib.ExitStack() as stack:
        if hasattr(torch.device, "__enter__"):  # from 2.0: what is made in here is made there
            stack.enter_context(torch.device(device))
        step = build(device) if takes else build()
    if not callable(step):
        raise TypeError(f"{build.__name__} returned {type(step).__name__}, not a function that makes one step")
    return step


def record(build, name="program", machine="a100", device="meta", warm_up=1):
    """A Program: the step that `build(device)` returns, after `warm_up` steps."""
    import torch

    found = machine if isinstance(machine, record_machine.Machine) else record_machine.find(machine, torch)
    recorder = make_recorder(torch, device, found)
    with contextlib.ExitStack() as stack:
        if found.name != "cpu":
            stack.enter_context(_cuda_dropout(torch))
        stack.enter_context(_phases(torch, recorder))
        stack.enter_context(recorder)
        step = _make_step(torch, build, device)
        for _ in range(warm_up):
            step()
        recorder.begin()
        collecting = gc.isenabled()
        gc.disable()
        try:
            step()
        finally:
            if collecting:
                gc.enable()
        return recorder.end(name)


# ---- the command ----


def _load(path, function):
    spec = importlib.util.spec_from_file_location("coopscope_model", path)
    if spec is None:
        raise ImportError(f"{path} is no Python file")
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    sys.path.insert(0, os.path.dirname(os.path.abspath(path)))
    spec.loader.exec_module(module)
    build = getattr(module, function, None)
    if not callable(build):
        raise ImportError(f"{path} defines no function {function}(device) that returns a training step")
    return build


def _parse(arguments):
    parser = argparse.ArgumentParser(
        prog="python -m coopscope.record",
        description="Records one training step as a program for `coop replay` and `coop sweep`, without the memory "
                    "or the time for it. MODEL.py defines build(device), which makes model, optimizer and batch and "
                    "returns a function that makes one step.")
    parser.add_argument("model", metavar="MODEL.py[:FUNCTION]", help="the function is called build unless said otherwise")
    parser.add_argument("--device", choices=["meta"], default="meta", help="where tensors have no bytes")
    parser.add_argument("--machine", choices=record_machine.NAMES, default="a100",
                        help="whose costs (a100); cpu: this one, measured")
    parser.add_argument("--warm-up", type=int, default=1, metavar="N", help="steps before the recorded one (1)")
    parser.add_argument("--name", help="of the program (the function, or MODEL)")
    parser.add_argument("-o", "--output", metavar="FILE", help="NAME.jsonl.gz")
    parser.add_argument("-q", "--quiet", action="store_true", help="say nothing")
    return parser.parse_args(arguments)


def _say(program, path):
    meta = program.meta
    mib = 2**20
    print(f"{path}: {meta['ops']} operators, {meta['total_ns'] / 1e6:.1f} ms on {meta['machine']['name']}, "
          f"peak {meta['peak'] / mib:.1f} MiB, {meta['const'] / mib:.1f} MiB of them constant, "
          f"floor {meta['bottleneck'] / mib:.1f} MiB")


def _reason(error, path):
    """One line: the first sentences, and the model's line in which it happened."""
    text = " ".join((str(error) or type(error).__name__).split("\n")[0].split())
    if len(text) > 200:
        text = text[: text.find(". ", 40) + 1] or text[:200]
    frames, line = error.__traceback__, None
    while frames is not None:
        if os.path.abspath(frames.tb_frame.f_code.co_filename) == os.path.abspath(path):
            line = frames.tb_lineno
        frames = frames.tb_next
    return text if line is None else f"{text} ({os.path.basename(path)}:{line})"


def main(arguments=None):
    flags = _parse(arguments)
    path, _, function = flags.model.partition(":")
    function = function or "build"
    if flags.warm_up < 0:
        print("coopscope.record: --warm-up must not be negative", file=sys.stderr)
        return 2
    stem = os.path.splitext(os.path.basename(path))[0]
    name = flags.name or (stem if function == "build" else function)
    output = flags.output or f"{name}.jsonl.gz"
    try:
        program = record(_load(path, function), name, flags.machine, flags.device, flags.warm_up)
        program.save(output)
    except Exception as error:  # the model's own fault, most likely: where, and what
        print(f"coopscope.record: {_reason(error, path)}", file=sys.stderr)
        return 1
    if not flags.quiet:
        _say(program, output)
    return 0


if __name__ == "__main__":
    sys.exit(main())
