# SPDX-License-Identifier: Apache-2.0
"""Memory snapshots of every era of PyTorch, made by hand, as the object that is pickled.

snapshots.py NAME OUT writes one; snapshots.py --list names them.
"""
import pickle
import random
import sys

KIB, MIB = 1 << 10, 1 << 20
BASE = 0x7F1200000000
SITE = [{"name": "forward", "filename": "/home/u/train.py", "line": 18},
        {"name": "main", "filename": "/home/u/train.py", "line": 40}]
DEEP = [{"name": "at::empty", "filename": "", "line": 0}] + SITE


def block(size, requested=0, state="inactive", address=None, frames=None, **more):
    out = {"size": size, "requested_size": requested, "state": state}
    if address is not None:
        out["address"] = address
    if frames is not None:
        out["frames"] = frames
    return {**out, **more}


def segment(address, total, blocks, device=0, stream=0, kind="large", pool=(0, 0), **more):
    active = [b for b in blocks if b["state"] != "inactive"]
    allocated = [b for b in blocks if b["state"] == "active_allocated"]
    return {"device": device, "address": address, "total_size": total,
            "allocated_size": sum(b["size"] for b in allocated), "active_size": sum(b["size"] for b in active),
            "requested_size": sum(b.get("requested_size", 0) for b in active), "stream": stream,
            "segment_type": kind, "segment_pool_id": pool, "is_expandable": False, "frames": [],
            "blocks": blocks, **more}


def entry(action, addr, size, time_us, frames=SITE, stream=0, **more):
    return {"action": action, "addr": addr, "size": size, "stream": stream, "time_us": time_us,
            "frames": frames, **more}


def freed(addr, size, time_us, **more):
    return [entry("free_requested", addr, size, time_us, **more), entry("free_completed", addr, size, time_us, **more)]


def without(objects, *keys):
    """The same with some keys left out, at any depth."""
    if isinstance(objects, dict):
        return {k: without(v, *keys) for k, v in objects.items() if k not in keys}
    if isinstance(objects, (list, tuple)):
        return type(objects)(without(v, *keys) for v in objects)
    return objects


def v2_3():
    """2.3 and later: a life to the end, one that ends, out of memory."""
    blocks = [block(2 * MIB, 2 * MIB, "active_allocated", BASE, DEEP), block(18 * MIB, 3 * MIB, "inactive", BASE + 2 * MIB, [])]
    return {"segments": [segment(BASE, 20 * MIB, blocks)],
            "device_traces": [[entry("segment_alloc", BASE, 20 * MIB, 1000, DEEP),
                               entry("alloc", BASE, 2 * MIB, 1001, DEEP),
                               entry("alloc", BASE + 2 * MIB, 3 * MIB - 100, 1002),
                               *freed(BASE + 2 * MIB, 3 * MIB - 100, 1005),
                               {"action": "oom", "size": 300 * MIB, "device_free": 5 * MIB, "stream": 0, "time_us": 1006,
                                "frames": SITE},
                               {"action": "snapshot", "addr": 0, "size": 2 * MIB, "stream": 0, "time_us": 1007}]],
            "allocator_settings": {"PYTORCH_CUDA_ALLOC_CONF": "max_split_size_mb:64", "max_split_size": -1,
                                   "garbage_collection_threshold": 0.8, "expandable_segments": False,
                                   "roundup_power2_divisions": {"1": 0, "2": 0}},
            "external_annotations": [{"stage": "START", "name": "step", "device": 0, "time_us": 1001},
                                     {"stage": "END", "name": "step", "device": 0, "time_us": 1009}]}


def v2_2():
    """No settings, no annotations yet."""
    return {k: v for k, v in v2_3().items() if k in ("segments", "device_traces")}


def v2_1():
    """No times yet."""
    return without(v2_2(), "time_us")


def v2_0():
    """No addresses of blocks and no pools either; what was first asked for is in a history."""
    out = without(v2_1(), "segment_pool_id", "is_expandable", "address")
    for s in out["segments"]:
        s["address"] = BASE
        for b in s["blocks"]:
            if b["state"] != "inactive":
                b["history"] = [{"addr": BASE, "real_size": 2 * MIB - 24, "frames": b.pop("frames")}]
            del b["requested_size"]
    return out


def v1_13():
    """The list of segments alone."""
    return v2_0()["segments"]


def v1_4():
    """Not even a history."""
    return without(v1_13(), "history", "frames", "requested_size")


def v2026():
    """The newest: pinned memory of the host, user data, pools at entries, an overflow."""
    base = v2_3()
    events = base["device_traces"][0]
    for e in events:
        e.update(compile_context="N/A", user_metadata={"a": 1}, pool_id=(0, 0))
    events.append(entry("annotate", 0, 0, 1008, [], user_metadata="epoch 2"))
    base["allocator_settings"].update(trace_alloc_overflowed=[True], trace_alloc_max_entries=[8],
                                      graph_capture_record_stream_reuse=False)
    base["host_segments"] = [segment(0x5000, 1 * MIB, [block(64 * KIB, 60000, "active_allocated", 0x5000, SITE)])]
    base["host_traces"] = [entry("alloc", 0x5000, 60000, 1003)]
    for s in base["segments"]:
        s["user_metadata"] = ""
        for b in s["blocks"]:
            b["user_metadata"] = ""
    return base


def unknown():
    """Keys and actions of a future version."""
    base = v2_2()
    base["device_traces"][0].append(entry("future_action", BASE, 1, 1008))
    base["xyz"] = base["segments"][0]["xyz"] = base["segments"][0]["blocks"][0]["xyz"] = 1
    base["device_traces"][0][1]["xyz"] = {"deep": [1, 2, 3]}
    base["device_traces"][0][1]["wide"] = 1 << 100
    return base


def devices():
    """Two devices, with a gap in between; streams; a private pool."""
    pool = [block(2 * MIB, 2 * MIB, "active_allocated", BASE, SITE)]
    side = [block(1 * MIB, 1 * MIB, "active_allocated", BASE + 64 * MIB, SITE), block(1 * MIB, 0, "inactive", BASE + 65 * MIB)]
    other = [block(512, 4, "active_allocated", BASE, SITE), block(2 * MIB - 512, 0, "inactive", BASE + 512)]
    return {"segments": [segment(BASE, 2 * MIB, pool, pool=[3, 1]),
                         segment(BASE + 64 * MIB, 2 * MIB, side, stream=0x55AA),
                         segment(BASE, 2 * MIB, other, device=2, kind="small")],
            "device_traces": [[entry("alloc", BASE, 2 * MIB, 10), entry("alloc", BASE + 64 * MIB, MIB, 11, stream=0x55AA)],
                              [], [entry("alloc", BASE, 4, 20)]]}


def expandable():
    """A segment that grows twice, gives back its middle, and is two from then on."""
    t = BASE
    first = [block(2 * MIB, 2 * MIB, "active_allocated", t, SITE)]
    last = [block(2 * MIB, 2 * MIB, "active_allocated", t + 4 * MIB, SITE)]
    return {"segments": [segment(t, 2 * MIB, first, is_expandable=True),
                         segment(t + 4 * MIB, 2 * MIB, last, is_expandable=True)],
            "device_traces": [[entry("segment_map", t, 2 * MIB, 1), entry("alloc", t, 2 * MIB, 2),
                               entry("segment_map", t + 2 * MIB, 2 * MIB, 3),
                               entry("segment_map", t + 4 * MIB, 2 * MIB, 4),
                               entry("alloc", t + 4 * MIB, 2 * MIB, 5),
                               entry("segment_unmap", t + 2 * MIB, 2 * MIB, 6)]]}


def pending():
    """400 MiB on their way back while 300 MiB are asked for; 1 MiB still waits at the end."""
    return {"segments": [segment(BASE, 500 * MIB, [block(400 * MIB, 400 * MIB, "inactive", BASE),
                                                   block(MIB, MIB, "active_pending_free", BASE + 400 * MIB, SITE),
                                                   block(99 * MIB, 0, "inactive", BASE + 401 * MIB)])],
            "device_traces": [[entry("alloc", BASE, 400 * MIB, 1), entry("free_requested", BASE, 400 * MIB, 2),
                               {"action": "oom", "size": 300 * MIB, "device_free": MIB, "stream": 0, "time_us": 3, "frames": []},
                               entry("alloc", BASE + 400 * MIB, MIB, 4), entry("free_completed", BASE, 400 * MIB, 5),
                               entry("free_requested", BASE + 400 * MIB, MIB, 6)]]}


def late():
    """The ring begins late: a free of what nobody saw made, a block that no entry is about."""
    return {"segments": [segment(BASE, 40 * MIB, [block(10 * MIB, 10 * MIB, "active_allocated", BASE, SITE),
                                                  block(30 * MIB, 30 * MIB, "inactive", BASE + 10 * MIB)])],
            "device_traces": [[*freed(BASE + 10 * MIB, 30 * MIB, 7), entry("alloc", BASE + 10 * MIB, 4 * MIB, 8),
                               *freed(BASE + 10 * MIB, 4 * MIB, 9)]]}


def silent():
    """Segments and no entry at all."""
    return {**late(), "device_traces": []}


def one_entry():
    """What is left of a history with room for one entry."""
    out = v2_2()
    out["device_traces"][0] = out["device_traces"][0][-1:]
    return out


def trimmed():
    """Somebody kept the first entries only: what they left alive is gone in the segments."""
    out = late()
    out["device_traces"] = [[entry("alloc", BASE + 10 * MIB, 4 * MIB, 8), entry("alloc", BASE + 20 * MIB, MIB, 9)]]
    return out


def reuse():
    """One address, three lives; a segment that goes and comes back."""
    out = [entry("segment_alloc", BASE, 2 * MIB, 1)]
    for i in range(2):
        out += [entry("alloc", BASE, MIB, 2 + 2 * i), *freed(BASE, MIB, 3 + 2 * i)]
    out += [entry("segment_free", BASE, 2 * MIB, 6), entry("segment_alloc", BASE, 2 * MIB, 7), entry("alloc", BASE, 512, 8)]
    return {"segments": [segment(BASE, 2 * MIB, [block(512, 512, "active_allocated", BASE, SITE),
                                                 block(2 * MIB - 512, 0, "inactive", BASE + 512)])],
            "device_traces": [out]}


def skipped():
    """Recorded with free_completed left out by choice."""
    out = reuse()
    out["device_traces"][0] = [e for e in out["device_traces"][0] if e["action"] != "free_completed"]
    return out


def marks():
    """For some months of 2024 marks were entries with a frame that says what they are."""
    out = v2_2()
    out["device_traces"][0].insert(1, entry("user_defined", 0, 0, 1000, [{"name": "START", "filename": "epoch", "line": 0}]))
    return out


def categories():
    """As PyTorch's profiler sorts them."""
    out = v2_2()
    out["categories"] = ["PARAMETER", "ACTIVATION"]
    out["device_traces"][0][1]["category"] = "PARAMETER"
    out["device_traces"][0][2]["category"] = "ACTIVATION"
    return out


def nonsense(seed):
    """Entries and segments that have nothing to do with each other."""
    r, out, at = random.Random(seed), {"segments": [], "device_traces": [[]]}, BASE
    for _ in range(r.randrange(4)):
        at += r.choice((0, 2 * MIB))
        end, blocks, total = at, [], r.randrange(1, 5) * 2 * MIB
        while end < at + total:
            size = min(r.choice((MIB // 2, MIB, 2 * MIB)), at + total - end)
            blocks.append(block(size, size, r.choice(("inactive", "active_allocated", "active_pending_free")), end, SITE))
            end += size
        out["segments"].append(segment(at, total, blocks, stream=r.randrange(2), is_expandable=r.random() < .5))
        at = end
    for time in range(60):
        action = r.choice(("alloc",) * 4 + ("free_requested", "free_completed") * 3
                          + ("segment_alloc", "segment_free", "segment_map", "segment_unmap", "oom"))
        where, size = BASE + r.randrange(32) * MIB // 2, r.choice((1, 512, MIB // 2, MIB, 2 * MIB, 3 * MIB))
        if action.startswith("segment"):
            where, size = BASE + r.randrange(8) * 2 * MIB, 2 * MIB * r.randrange(1, 3)
        out["device_traces"][0].append(entry(action, where, size, time))
    return out


ALL = {f.__name__: f for f in (v2_3, v2_2, v2_1, v2_0, v1_13, v1_4, v2026, unknown, devices, expandable, pending, late,
                               silent, one_entry, trimmed, reuse, skipped, marks, categories)}

if __name__ == "__main__":
    if sys.argv[1:] == ["--list"]:
        print("\n".join(ALL))
    else:
        with open(sys.argv[2], "wb") as out:
            pickle.dump(ALL[sys.argv[1]](), out, protocol=4)
