# SPDX-License-Identifier: Apache-2.0
"""The steps of check.sh that train: check.py BUILD bits|time|evict|cupti|cost. JSON lines.

Each measurement is a process of its own: allocators cannot be changed once CUDA is up.
"""

import json
import os
import subprocess
import sys
import time

STEPS = 6


def emit(**row):
    print(json.dumps(row), flush=True)


# ---- in the measured process ------------------------------------------------------------------------


def net(torch):
    torch.manual_seed(1)
    nn = torch.nn

    def block(i, o):
        return nn.Sequential(nn.Conv2d(i, o, 3, padding=1), nn.GroupNorm(8, o), nn.ReLU())

    return nn.Sequential(block(3, 32), block(32, 64), nn.MaxPool2d(2), block(64, 128), block(128, 128),
                         nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(128, 512), nn.GELU(),
                         nn.Dropout(0.1), nn.Linear(512, 10)).cuda()


def train(batch):
    """Losses as bits, seconds a step, the largest use of the GPU while it ran."""
    import torch

    torch.backends.cudnn.deterministic = True
    torch.backends.cudnn.benchmark = False
    torch.backends.cuda.matmul.allow_tf32 = False
    model = net(torch)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    generator = torch.Generator().manual_seed(2)
    losses, times, least = [], [], None
    for _ in range(STEPS):
        images = torch.randn(batch, 3, 64, 64, generator=generator).cuda()
        labels = torch.randint(0, 10, (batch,), generator=generator).cuda()
        torch.cuda.synchronize()
        begin = time.perf_counter()
        optimizer.zero_grad()
        loss = torch.nn.functional.cross_entropy(model(images), labels)
        loss.backward()
        optimizer.step()
        torch.cuda.synchronize()
        times.append(time.perf_counter() - begin)
        losses.append(loss.detach().cpu().numpy().tobytes().hex())
        free = torch.cuda.cudart().cudaMemGetInfo(0)[0]
        least = free if least is None else min(least, free)
    return losses, sorted(times)[len(times) // 2], least


def measured(kind, budget, batch):
    """One process: kind is native, expandable, async, or coop."""
    row = {}
    if kind == "coop":
        os.environ["COOPSCOPE_DEVICE"] = "cuda"
    import torch

    if kind == "coop":
        from coopscope import _adapter
        from coopscope import _coopscope as native

        _adapter.install(torch, None, {"budget": str(budget)} if budget else {})
    losses, step, least = train(batch)
    if kind == "coop":
        stats, info = native.stats(), native.cuda_info()
        row = {k: stats[k] for k in ("peak", "live", "evictions", "replays", "moves", "searches", "ooms")}
        row.update(committed=info["committed"], outside=info["outside"], check=native.check())
    else:
        row = {"peak": torch.cuda.max_memory_allocated(), "reserved": torch.cuda.max_memory_reserved()}
    row.update(losses=losses, step_s=step, least_free=least)
    print("ROW " + json.dumps(row))


# ---- the steps ----------------------------------------------------------------------------------------


def measure(build, kind, budget=0, batch=256):
    env = dict(os.environ, PYTHONPATH=os.path.join(build, "src", "torch", "python"))
    if kind == "expandable":
        env["PYTORCH_CUDA_ALLOC_CONF"] = "expandable_segments:True"
    elif kind == "async":
        env["PYTORCH_CUDA_ALLOC_CONF"] = "backend:cudaMallocAsync"
    done = subprocess.run([sys.executable, __file__, build, "--measured", kind, str(budget), str(batch)],
                          env=env, capture_output=True, text=True)
    for line in done.stdout.splitlines():
        if line.startswith("ROW "):
            return json.loads(line[4:])
    return {"failed": (done.stderr.strip().splitlines() or ["no word"])[-1][:300]}


def shown(row):
    return {k: v for k, v in row.items() if k != "losses"}


def step_bits(build):
    """The same losses, to the bit, without and with a budget of 60 % of the peak."""
    native = measure(build, "native")
    free = measure(build, "coop")
    emit(what="native", **shown(native))
    emit(what="coop, no limit", same=free.get("losses") == native.get("losses"), **shown(free))
    if "failed" in native or "failed" in free:
        sys.exit("a run failed")
    tight = measure(build, "coop", int(free["peak"] * 0.6))
    emit(what="coop at 60 %", same=tight.get("losses") == native["losses"], **shown(tight))
    same = free["losses"] == native["losses"] == tight.get("losses")
    if not same:
        sys.exit("losses differ")


def step_time(build):
    """Seconds a step and memory: PyTorch's allocators and ours."""
    for kind in ("native", "expandable", "async", "coop"):
        emit(what=kind, **shown(measure(build, kind)))


def step_evict(build):
    """From all of the peak down: bits, budget, evictions, slowdown."""
    whole = measure(build, "coop")
    if "failed" in whole:
        sys.exit(whole["failed"])
    bad = []
    for share in (1.0, 0.8, 0.6, 0.4):
        row = measure(build, "coop", int(whole["peak"] * share))
        same = row.get("losses") == whole["losses"]
        slower = row["step_s"] / whole["step_s"] if "step_s" in row else None
        emit(what="budget", share=share, same=same, slower=slower, **shown(row))
        if "failed" not in row and (not same or row["peak"] > int(whole["peak"] * share)):
            bad.append(share)
    if bad:
        sys.exit("bits or budget wrong at %s" % bad)


def step_cupti(build):
    print("not built yet: kernel times come from events", file=sys.stderr)
    sys.exit(77)


def step_cost(build):
    """An operator's time by events and by the wall, with the launch and without it."""
    import torch

    for n in (256, 1024, 4096):
        a, b = (torch.randn(n, n, device="cuda") for _ in range(2))
        for name, f in (("mm", lambda: a @ b), ("add", lambda: a + b), ("softmax", lambda: a.softmax(-1))):
            f()
            torch.cuda.synchronize()
            events, begin = [], time.perf_counter()
            for _ in range(20):
                pair = [torch.cuda.Event(enable_timing=True) for _ in range(2)]
                pair[0].record()
                f()
                pair[1].record()
                events.append(pair)
            host = (time.perf_counter() - begin) / 20
            torch.cuda.synchronize()
            wall = (time.perf_counter() - begin) / 20
            times = sorted(x.elapsed_time(y) * 1e3 for x, y in events)
            emit(what="cost", op=name, n=n, event_us=times[10], least_us=times[0], host_us=host * 1e6,
                 wall_us=wall * 1e6)


def main():
    build, step = sys.argv[1:3]
    if step == "--measured":
        measured(sys.argv[3], int(sys.argv[4]), int(sys.argv[5]))
    else:
        globals()["step_" + step](build)


if __name__ == "__main__":
    main()
