#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""coop probe on this machine's memory. Usage: probe.py COOP. Prints TAP."""
import json
import os
import subprocess
import sys

sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
import tap

COOP = sys.argv[1]
UNIT = 16 << 20


def probe(*args):
    return subprocess.run([COOP, "probe", *args], capture_output=True, text=True, timeout=100)


def steps(*args):
    result = probe("--json", "--unit", "16MiB", *args)
    assert result.returncode == 0 and result.stderr == "", result
    out = {}
    for line in result.stdout.splitlines():
        step = json.loads(line)
        out.setdefault(step["variant"], {})[step["step"]] = step
    return out


def test_who_makes_one_block_of_two(_):
    out = steps()
    times = out.pop("map")["map"]
    assert times["us"] > 0 and times["page"] == 20 << 20, times
    # what merges neighbours cannot, as p2 lies between, unless p2 moves; what has its memory page by page can
    fits = {"malloc": True, "merge": False, "merge-move": True, "class": False, "class-back": True, "caching": True,
            "page": True}
    assert {name: v["verdict"]["p4"] for name, v in out.items()} == fits, out
    for name, v in out.items():
        verdict = v["verdict"]
        assert verdict["p2_intact"] and verdict["p4_usable"] == fits[name], (name, verdict)
        assert verdict["bytes_copied"] == (UNIT if name == "merge-move" else 0), (name, verdict)
        assert (verdict["pages_moved"] > 0) == (name == "page"), (name, verdict)
    assert out["page"]["verdict"]["pages_moved"] == 2 * UNIT // 4096
    assert (out["merge"]["free p3"]["free"], out["merge"]["free p3"]["largest"]) == (2 * UNIT, UNIT), out["merge"]
    at = [out["merge"][f"p{i}"]["address"] for i in (1, 2, 3)]
    assert (at[1] - at[0], at[2] - at[1]) == (UNIT, UNIT)


def test_one_variant_and_page_sizes(_):
    for page in ("4KiB", "64KiB", "2MiB", "20MiB"):
        out = steps("--variant", "page", "--page", page)
        assert list(out) == ["page"] and out["page"]["verdict"]["p4"], out


def test_segments_are_larger_than_blocks(_):
    # blocks of 8 MiB come out of segments of 20, so two of them are all that 24 MiB hold
    result = probe("--variant", "caching", "--unit", "8MiB")
    assert result.returncode == 0 and "p3       out of memory" in result.stdout and "p4 does not fit" in result.stdout, result


def test_what_is_refused(_):
    for args, says in ((("--device", "tpu"), "host, cuda"), (("--unit", "x"), "not a size"), (("--page", "5000"), "4 KiB"),
                       (("--variant", "best"), "merge-move"), (("more",), "too much"), (("--unit", "65GiB"), "64 GiB")):
        result = probe(*args)
        assert result.returncode == 2 and says in result.stderr and result.stdout == "", (args, result)


sys.exit(tap.main(globals()))
