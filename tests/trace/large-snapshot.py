# SPDX-License-Identifier: Apache-2.0
"""A large memory snapshot, to be measured with: large-snapshot.py OUT [ENTRIES [STACKS [DEPTH]]].

Entries are alloc, free_requested, free_completed in equal parts, 3,000 blocks alive; the stacks are shared
through the pickle's memo, as PyTorch's are.
"""
import pickle
import random
import sys

entries, stacks, depth = (int(a) for a in (sys.argv[2:] + ["1000000", "5000", "50"][len(sys.argv) - 2:]))
rng = random.Random(1)
frames = [{"name": f"function_{i}", "filename": f"/home/u/model/part_{i % 40}.py", "line": i} for i in range(2000)]
trees = [[rng.choice(frames) for _ in range(depth)] for _ in range(stacks)]
base, slot, n_slots = 0x7F0000000000, 1 << 21, 4096
free, live, trace, t = list(range(n_slots)), [], [], 1_700_000_000_000_000


def entry(action, at, size, when):
    return {"action": action, "addr": base + at * slot, "size": size, "stream": 0, "time_us": when,
            "frames": rng.choice(trees), "compile_context": "N/A", "user_metadata": "", "pool_id": (0, 0)}


while len(trace) < entries:
    t += 7
    if len(live) < 3000 or (free and len(trace) % 3 == 0):
        at, size = free.pop(rng.randrange(len(free))), rng.randrange(1, slot)
        live.append((at, size))
        trace.append(entry("alloc", at, size, t))
    else:
        at, size = live.pop(rng.randrange(len(live)))
        free.append(at)
        trace += [entry("free_requested", at, size, t), entry("free_completed", at, size, t)]
alive = dict(live)
blocks = []
for at in range(n_slots):
    size = alive.get(at, 0)
    used = (size + 511) // 512 * 512
    if used:
        blocks.append({"address": base + at * slot, "size": used, "requested_size": size, "state": "active_allocated", "frames": []})
    if used < slot:
        blocks.append({"address": base + at * slot + used, "size": slot - used, "requested_size": 0, "state": "inactive", "frames": []})
segment = {"device": 0, "address": base, "total_size": n_slots * slot, "allocated_size": 0, "active_size": 0, "requested_size": 0,
           "stream": 0, "segment_type": "large", "segment_pool_id": (0, 0), "is_expandable": False, "frames": [], "blocks": blocks}
with open(sys.argv[1], "wb") as out:
    pickle.dump({"segments": [segment], "device_traces": [trace], "allocator_settings": {}}, out, protocol=4)
