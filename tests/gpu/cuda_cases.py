# SPDX-License-Identifier: Apache-2.0
"""PyTorch on CUDA under Coopscope. TAP.

    cuda_cases.py PACKAGE_DIR [CASE...]

Runs on the stand-in libraries (tests/gpu/standin.py), where kernels do nothing and copies are real, so
the bits that are compared come from copies alone; and on a GPU, where COOP_GPU=1 adds the cases that
compute. One process, one budget: 40 MiB.
"""

import ctypes
import gc
import os
import sys
import threading
import time

PACKAGE = sys.argv[1]
sys.path.insert(0, PACKAGE)
os.environ["COOPSCOPE_DEVICE"] = "cuda"

import torch  # noqa: E402

from coopscope import _adapter  # noqa: E402
from coopscope import _coopscope as native  # noqa: E402

MIB = 1 << 20
BUDGET = 40 * MIB
STANDIN = os.environ.get("COOP_GPU") != "1"


_most = [BUDGET]  # the largest budget until now
_start = {}  # what while_cuda_starts saw


def fake():
    return ctypes.CDLL("libcuda.so.1") if STANDIN else None


def ramp(mib, base=0.0):
    return torch.arange(mib * MIB // 4, dtype=torch.float32) + base


def settle():
    gc.collect()
    torch.cuda.synchronize()
    wrong = native.check()
    assert wrong is None, wrong
    stats = native.stats()
    assert stats["live"] <= BUDGET and stats["peak"] <= _most[0], stats
    return stats


def case_evicts_and_brings_back():
    """Twice the budget's worth of copies; every one reads back as it was."""
    x = ramp(4)
    before = native.stats()
    chain = [x.cuda()]
    for _ in range(20):
        chain.append(chain[-1].clone())
    middle = native.stats()
    assert middle["evictions"] > before["evictions"]
    for tensor in reversed(chain):
        assert torch.equal(tensor.cpu(), x)
    assert native.stats()["replays"] > before["replays"]
    info = native.cuda_info()
    assert info["committed"] == BUDGET, info
    if STANDIN:
        assert info["total"] - info["free"] == info["committed"], info  # nothing outside


def case_views_and_aliases():
    x = ramp(2)
    base = x.cuda().clone()
    view, part = base.view(512, -1), base[1000:2000]
    for _ in range(30):
        push = ramp(2).cuda().clone()
    del push
    assert torch.equal(view.cpu().flatten(), x)
    assert torch.equal(part.cpu(), x[1000:2000])


def case_out_of_memory():
    """PyTorch's own error, from inside an operator and from outside of one; then all goes on."""
    for make in (lambda: torch.empty(100 * MIB, dtype=torch.uint8, device="cuda"),
                 lambda: torch.UntypedStorage(100 * MIB, device="cuda")):
        try:
            make()
        except torch.OutOfMemoryError as error:
            assert str(error).startswith("CUDA out of memory"), error
        else:
            raise AssertionError("100 MiB in a budget of 40 MiB")
    assert torch.equal(ramp(1).cuda().clone().cpu(), ramp(1))


def case_streams_share_memory():
    """A block goes from one stream to another while work on it is queued: the second waits."""
    x, w = ramp(4), ramp(4, base=7.0)
    a, b = x.cuda(), w.cuda()
    first, second = torch.cuda.Stream(), torch.cuda.Stream()
    torch.cuda.synchronize()
    if STANDIN:
        fake().fake_cuda_lazy(True)
    try:
        for _ in range(8):
            with torch.cuda.stream(first):
                gone = a.clone()
            place = gone.data_ptr()
            del gone
            with torch.cuda.stream(second):
                kept = b.clone()
            assert kept.data_ptr() == place, "the test needs the same block"
            second.synchronize()  # in the wrong order first's copy would come over it now
            first.synchronize()
            with torch.cuda.stream(second):
                assert torch.equal(kept.cpu(), w)
            del kept
    finally:
        if STANDIN:
            fake().fake_cuda_lazy(False)


def case_record_stream():
    """A tensor lent to another stream: its block is overwritten only after that stream's work."""
    x, w = ramp(4), ramp(4, base=9.0)
    other = torch.cuda.Stream()
    lent, b = x.cuda(), w.cuda()
    torch.cuda.synchronize()
    if STANDIN:
        fake().fake_cuda_lazy(True)
    try:
        with torch.cuda.stream(other):
            read = lent.clone()
        lent.record_stream(other)
        place = lent.data_ptr()
        del lent
        kept = b.clone()
        assert kept.data_ptr() == place, "the test needs the same block"
        torch.cuda.current_stream().synchronize()
        other.synchronize()
        with torch.cuda.stream(other):
            assert torch.equal(read.cpu(), x)
    finally:
        if STANDIN:
            fake().fake_cuda_lazy(False)


def case_statistics():
    keep = ramp(3).cuda()
    assert torch.cuda.memory_allocated() == native.stats()["live"] >= 3 * MIB
    assert torch.cuda.max_memory_allocated() >= torch.cuda.memory_allocated()
    assert torch.cuda.memory_reserved() == BUDGET
    free, total = torch.cuda.mem_get_info()
    assert total == BUDGET and free == BUDGET - native.stats()["live"]
    assert torch.cuda.memory_stats()["allocated_bytes.all.current"] == native.stats()["live"]
    assert "budget" in torch.cuda.memory_summary()
    torch.cuda.reset_peak_memory_stats()
    torch.cuda.empty_cache()
    torch.backends.cudnn.benchmark = True
    assert not torch.backends.cudnn.benchmark
    assert torch.cuda.get_allocator_backend() == "pluggable"
    del keep


def case_graphs_are_refused():
    try:
        with torch.cuda.graph(torch.cuda.CUDAGraph()):
            pass
    except RuntimeError as error:
        assert "CUDA graphs" in str(error), error
    else:
        raise AssertionError("a capture began")


def model():
    return torch.nn.Sequential(torch.nn.Embedding(1000, 256), torch.nn.LayerNorm(256), torch.nn.GELU(),
                               torch.nn.LayerNorm(256), torch.nn.Softmax(-1)).cuda()


def case_trains():
    """Forward, backward, optimiser: memory is flat from step to step and below the budget."""
    net = model()
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9)
    live = []
    for _ in range(6):
        tokens = torch.randint(0, 1000, (1024,)).cuda()  # more are sorted by kernels, which do nothing here
        loss = net(tokens).sum()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        del loss, tokens
        live.append(settle()["live"])
    assert live[-1] == live[-3], live
    assert native.stats()["step"] > 0


def case_autocast():
    with torch.autocast("cuda", dtype=torch.bfloat16):
        y = model()(torch.randint(0, 1000, (64,)).cuda())
        y.sum().backward()


def case_stress():
    native.policy_set({"stress": "1"})
    try:
        x = ramp(1)
        chain = [x.cuda()]
        for _ in range(40):
            chain.append(chain[-1].clone())
        for tensor in chain:
            assert torch.equal(tensor.cpu(), x)
        case_trains()
    finally:
        native.policy_set({"stress": "0"})


def case_moves():
    """Tensors are moved together on the GPU: small ones in between would leave no hole."""
    x = ramp(1)
    row = [x.cuda() for _ in range(36)]  # copies from the CPU: constant, never evicted
    del row[::2]
    gc.collect()
    before = native.stats()["moves"]
    large = torch.empty(16 * MIB, dtype=torch.uint8, device="cuda")
    assert native.stats()["moves"] > before
    for tensor in row:
        assert torch.equal(tensor.cpu(), x)
    del large


def case_budget_changes():
    try:
        native.policy_set({"budget": str(60 * MIB)})
        _most[0] = 60 * MIB
        hold = [ramp(4).cuda() for _ in range(14)]
        assert native.stats()["live"] == 56 * MIB
        assert native.cuda_info()["committed"] >= 56 * MIB
        for tensor in hold:
            assert torch.equal(tensor.cpu(), ramp(4))
        del hold, tensor
    finally:
        native.policy_set({"budget": str(BUDGET)})
    gc.collect()
    torch.empty(1, device="cuda")


def case_driver_refuses():
    """Each call of the driver fails once: PyTorch raises, nothing is lost or damaged."""
    if not STANDIN:
        return
    driver, x = fake(), ramp(4)
    raised, k = 0, 1
    while k < 400:
        driver.fake_cuda_fail(ctypes.c_ulong(k), ctypes.c_ulong(1), 999)
        chain = []
        try:
            chain.append(x.cuda())
            for _ in range(14):
                chain.append(chain[-1].clone())
            for tensor in chain:
                tensor.cpu()
        except RuntimeError:  # torch.AcceleratorError, torch.OutOfMemoryError
            raised += 1
        driver.fake_cuda_fail(ctypes.c_ulong(0), ctypes.c_ulong(0), 0)
        del chain
        gc.collect()
        wrong = native.check()
        assert wrong is None, (k, wrong)
        k += 1 + k // 4  # PyTorch writes a stack for each of its errors, which takes a second
    assert raised > 2, raised
    assert torch.equal(x.cuda().clone().cpu(), x)


def case_threads(seconds=float(os.environ.get("COOP_THREADS_S", "3"))):
    """Two threads allocate and copy while a third evicts all it can.

    What cannot be dropped leaves room: of each of the two a copy from the CPU, an input and an output.
    """
    end, failures, rounds = time.monotonic() + seconds, [], [0]

    def work(number):
        x = ramp(1, base=number)
        try:
            while time.monotonic() < end:
                chain = [x.cuda()]
                for _ in range(8):
                    chain.append(chain[-1].clone())
                for tensor in chain:
                    assert torch.equal(tensor.cpu(), x), "damaged"
                rounds[0] += 1
        except BaseException as error:  # noqa: B902: told by the main thread
            failures.append(error)

    def evict():
        native.policy_set({"stress": "3"})
        while time.monotonic() < end:
            try:
                torch.empty(24 * MIB, dtype=torch.uint8, device="cuda")
            except torch.OutOfMemoryError:
                pass

    threads = [threading.Thread(target=work, args=(n,)) for n in range(2)]
    threads.append(threading.Thread(target=evict))
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(seconds + 60)
        assert not thread.is_alive(), "a deadlock"
    native.policy_set({"stress": "0"})
    assert not failures, failures
    assert rounds[0] > 0


def while_cuda_starts():
    """Runs after the pool has begun and before it is known what a tensor of the GPU looks like."""
    if _start:
        return
    torch.empty(1, device="cuda")
    host = ramp(1)
    at = host.data_ptr()
    thread = threading.Thread(target=lambda: _start.update(equal=torch.equal(host.clone(), ramp(1))))
    thread.start()
    thread.join()
    _start["kept"] = host.data_ptr() == at


def case_starts_among_threads():
    """What another thread does with tensors of the CPU while CUDA starts leaves them there."""
    torch.empty(1, device="cuda")
    assert _start == {"equal": True, "kept": True}, _start


def main():
    cases = [(n[5:], f) for n, f in globals().items() if n.startswith("case_")]
    chosen = sys.argv[2:] or [n for n, _ in cases]
    torch.cuda._lazy_call(while_cuda_starts)
    _adapter.install(torch, None, {"budget": str(BUDGET)})
    print("1..%d" % len(chosen))
    failed = 0
    for number, name in enumerate(chosen, 1):
        try:
            dict(cases)[name]()
            settle()
            print("ok %d - %s" % (number, name), flush=True)
        except Exception as error:
            failed += 1
            print("not ok %d - %s\n# %s: %s" % (number, name, type(error).__name__, str(error)[:1000]), flush=True)
            if os.environ.get("COOP_TRACE"):
                import traceback

                traceback.print_exc()
    return failed > 0


if __name__ == "__main__":
    status = main()
    sys.stdout.flush()
    sys.exit(status)
