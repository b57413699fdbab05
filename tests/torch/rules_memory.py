# SPDX-License-Identifier: Apache-2.0
"""Rule 8: memory that others can write has no versions."""
import copy
import ctypes
import io
import os
import pickle
import tempfile

from harness import case

WIDE = 8192


@case(8, budget=None)
def numpy_buffer_refilled(t):
    """from_numpy shares the array, which the script fills again between operators."""
    import numpy as np
    torch = t.torch
    buffer = np.zeros(WIDE, dtype=np.float32)
    x = torch.from_numpy(buffer)
    results = []
    for step in range(5):
        buffer[:] = np.arange(WIDE) % (7 + step)
        y = x * 0.5
        results.append(y.cos())
        results.append((x + y).sin())
        t.evict_all()
    buffer[:] = -1
    for i, r in enumerate(results):
        t.out("r%d" % i, r)
    t.out("x", x)


@case(8, budget=None)
def numpy_buffer_small_output(t):
    """The output is smaller than what it read: keeping a copy would not pay."""
    import numpy as np
    torch = t.torch
    buffer = np.arange(WIDE * 8, dtype=np.float32)
    x = torch.from_numpy(buffer)
    sums = [x.view(8, -1).sum(0) * k for k in (1, 2)]
    buffer[:] = 3
    sums.append(x.view(8, -1).sum(0) * 3)
    t.evict_all()
    for i, s in enumerate(sums):
        t.out("sum%d" % i, s)


@case(8, budget=None)
def other_buffers(t):
    """frombuffer, as_tensor, asarray over memory of Python's."""
    import array
    torch = t.torch
    raw = bytearray(4 * WIDE)
    numbers = array.array("f", [1.0] * WIDE)
    a, b = torch.frombuffer(raw, dtype=torch.float32), torch.frombuffer(numbers, dtype=torch.float32)
    y = a + b
    z = y.exp()
    t.evict_all()
    raw[:8] = b"\x00\x00\x80\x3f\x00\x00\x00\x40"
    numbers[3] = 9.0
    w = a * b
    t.evict_all()
    raw[:8] = b"\xff" * 8
    t.out("y", y)
    t.out("z", z)
    t.out("w", w)


@case(8, budget=None)
def array_of_an_evicted_tensor(t):
    """.numpy() of a tensor without bytes brings it back, and writing to the array is seen."""
    torch = t.torch
    x = torch.randn(WIDE)
    y = x * 2
    before = y.sin()
    t.evict_all()
    array = y.numpy()
    after = y.cos()
    array[:100] = 5
    later = y.tan()
    t.evict_all()
    array[100:200] = 6
    t.out("array", array.sum())
    t.out("before", before)
    t.out("after", after)
    t.out("later", later)
    t.out("y", y)


@case(8, budget=None)
def array_of_a_view(t):
    """The array is of a view; the base and its other views share it."""
    import numpy as np
    torch = t.torch
    x = torch.randn(64, 128) * 2
    left, right = x.chunk(2, dim=1)
    before = (x + 1).tanh()
    t.evict_all()
    array = left[8:16].t().numpy()
    row = np.asarray(x[0])
    middle = x.tanh()
    array[:] = 0
    row[:] = 7
    t.evict_all()
    t.out("before", before)
    t.out("middle", middle)
    t.out("right", right)
    t.out("x", x)


@case(8, budget=None)
def array_protocol(t):
    """numpy functions take tensors through __array__."""
    import numpy as np
    torch = t.torch
    x = torch.randn(WIDE) * 3
    y = x.sin()
    t.evict_all()
    t.out("mean", float(np.mean(np.asarray(x, dtype=np.float64))))
    t.out("sum", float(np.add(x, y).sum()))
    t.evict_all()
    t.out("x", x)
    t.out("y", y)


@case(8, budget=None)
def data_pointer(t):
    """ctypes writes through data_ptr; what was computed before must not change."""
    torch = t.torch
    x = torch.randn(WIDE) * 3
    y = x.sin()
    t.evict_all()
    pointer = (ctypes.c_float * WIDE).from_address(x.data_ptr())
    t.out("first", pointer[0])
    t.evict_all()
    for i in range(100):
        pointer[i] = i
    z = x.sin()
    t.evict_all()
    for i in range(100):
        pointer[i] = -i
    t.out("y", y)
    t.out("z", z)
    t.out("x", x)


@case(8, budget=None)
def storage_in_hand(t):
    """The storage object itself: read, written, and shared with a second tensor."""
    torch = t.torch
    x = torch.randn(WIDE) * 3
    y = x.sin()
    t.evict_all()
    storage = x.untyped_storage() if hasattr(x, "untyped_storage") else x.storage().untyped()
    t.out("bytes", [storage[i] for i in range(8)])
    other = torch.empty(0)
    other.set_(storage, 0, (WIDE // 2,), (2,))
    z = other.cos()
    t.evict_all()
    other.zero_()
    w = x.cos()
    t.evict_all()
    for i in range(16):
        storage[i] = 64
    t.out("y", y)
    t.out("z", z)
    t.out("w", w)
    t.out("x", x)


@case(8, budget=None)
def dlpack(t):
    from torch.utils.dlpack import from_dlpack, to_dlpack
    torch = t.torch
    x = torch.randn(WIDE) * 3
    y = x.sin()
    t.evict_all()
    twin = from_dlpack(to_dlpack(x))
    z = twin.cos()
    t.evict_all()
    twin.fill_(0.5)
    w = x.cos() + 1
    t.evict_all()
    t.out("y", y)
    t.out("z", z)
    t.out("w", w)
    t.out("x", x)


@case(8, budget=None)
def dlpack_to_numpy(t):
    """numpy takes the tensor by __dlpack__, on its own."""
    import numpy as np
    torch = t.torch
    x = torch.randn(WIDE) * 3
    y = x.sin()
    t.evict_all()
    array = np.from_dlpack(x)
    t.out("array", float(array.sum()))
    t.evict_all()
    t.out("again", float(array.sum()))
    t.out("y", y)


@case(8, budget=None)
def shared_memory(t):
    """share_memory_ moves the tensor out of the pool; it calls itself resizable and is not."""
    torch = t.torch
    x = torch.randn(WIDE) * 3
    y = x.sin()
    t.evict_all()
    x.share_memory_()
    z = x.cos()
    t.evict_all()
    x.mul_(2)
    w = x.cos()
    t.evict_all()
    t.out("shared", x.is_shared())
    t.out("x", x)
    t.out("y", y)
    t.out("z", z)
    t.out("w", w)


@case(8, budget=None)
def mapped_file(t):
    """A file mapped as a tensor, written by others meanwhile."""
    import numpy as np
    torch = t.torch
    with tempfile.NamedTemporaryFile() as file:
        np.arange(WIDE, dtype=np.float32).tofile(file)
        file.flush()
        x = torch.from_file(file.name, shared=True, size=WIDE, dtype=torch.float32)
        y = x * 2
        t.evict_all()
        with open(file.name, "r+b") as again:
            again.write(b"\x00" * 400)
        z = x * 3
        t.evict_all()
        with open(file.name, "r+b") as again:
            again.write(b"\x40" * 400)
        t.out("y", y)
        t.out("z", z)


@case(8, budget=0.8)
def pickled_and_copied(t):
    """Pickle, deepcopy, save and tolist of evicted tensors: for the call only, not pinned for life."""
    torch = t.torch
    x = torch.randn(WIDE) * 3
    tensors = [x * i for i in range(1, 9)]
    t.set(stress=0)
    t.evict_all()
    t.now("pickle", pickle.loads(pickle.dumps(tensors[0])))
    t.now("deepcopy", copy.deepcopy(tensors[1]))
    file = io.BytesIO()
    torch.save(tensors[2:5], file)
    file.seek(0)
    for i, loaded in enumerate(torch.load(file)):
        t.now("saved%d" % i, loaded)
    t.out("list", sum(tensors[5].tolist()))
    t.out("text", repr(tensors[6][:3]))
    t.out("more", sum(tensors[7].tolist()))
    gone = t.evict_all()
    t.check(gone >= 6, "only %d of 8 tensors could go again" % gone)
    for i, tensor in enumerate(tensors):
        t.out("t%d" % i, tensor)


@case(8, budget=None)
def printed(t):
    """print and format of evicted tensors."""
    torch = t.torch
    torch.set_printoptions(precision=10)
    x = torch.randn(64, 128) * 3
    y = x.sin()
    t.evict_all()
    t.out("repr", str(x))
    t.evict_all()
    t.out("format", "%r %s" % (y[0], format(y[1, 1], ".9f")))
    t.out("y", y)


@case(8, budget=None)
def escaped_input_of_many(t):
    """Every held dependent of the escaping tensor, also through dead ones."""
    torch = t.torch
    x = torch.randn(WIDE) * 2
    dead = x.sin()
    held = [dead * i for i in range(4)] + [x + 1, x.view(64, -1).t().contiguous()]
    del dead
    t.evict_all()
    x.numpy()[:] = 0
    t.evict_all()
    for i, h in enumerate(held):
        t.out("held%d" % i, h)


@case(8, budget=None)
def kept_by_the_user(t):
    """coopscope.keep: the address stays, whatever is evicted."""
    torch = t.torch
    t.set(stress=0)
    x = torch.randn(WIDE) * 2
    y = x.sin()
    if t.managed:
        from coopscope import _adapter
        _adapter.keep(x)
    t.set(stress=0)
    t.evict_all()
    t.evict_all()
    if t.evicting:
        from coopscope import _coopscope
        before = t.stats()["replays"]
        x.sum().item()
        t.check(t.stats()["replays"] == before, "a kept tensor had to be made again")
    t.out("x", x)
    t.out("y", y)


@case(8, budget=None)
def numpy_made_in_the_step(t):
    """A loss on numpy's side within a training step, with backward."""
    import numpy as np
    torch = t.torch
    w = torch.randn(128, 128, requires_grad=True)
    for step in range(3):
        x = torch.from_numpy(np.random.RandomState(step).randn(64, 128).astype(np.float32))
        h = (x @ w).tanh()
        weight = torch.from_numpy(1 / (1 + np.abs(h.detach().numpy())))
        (h * weight).sum().backward()
        t.evict_all()
        with torch.no_grad():
            w -= 0.01 * w.grad
            w.grad = None
        t.out("h%d" % step, h)
    t.out("w", w)


@case(8, budget=None, evicts=False)
def memory_of_a_tensor_that_lives_elsewhere(t):
    """resize_, set_ and out= on storages in and out of the pool."""
    torch = t.torch
    x = torch.randn(WIDE) * 2
    y = torch.empty(0)
    torch.add(x, 1, out=y)
    z = y.cos()
    t.evict_all()
    y.resize_(WIDE * 2)
    y[WIDE:] = 4
    t.evict_all()
    y.resize_(16)
    torch.mul(x[:16], 3, out=y)
    t.evict_all()
    t.out("z", z)
    t.out("y", y)
    t.out("x", x)
