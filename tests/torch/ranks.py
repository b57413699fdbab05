#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Two ranks under one `coop run`: the same bits, and one trace a rank, named by rank.

    ranks.py --package FOLDER --coop PROGRAM        prints TAP
"""
import argparse
import json
import os
import subprocess
import sys
import tempfile

RANKS = 2
TRAIN = """
import sys, torch, torch.distributed as dist
rank, ranks = int(sys.argv[1]), int(sys.argv[2])
torch.set_num_threads(1)
if ranks > 1:
    dist.init_process_group("gloo", init_method="file://" + sys.argv[3], rank=rank, world_size=ranks)
torch.manual_seed(rank)
net = torch.nn.Sequential(*[m for _ in range(4) for m in (torch.nn.Linear(64, 64), torch.nn.Tanh(), torch.nn.Dropout(0.1))])
net = torch.nn.parallel.DistributedDataParallel(net) if ranks > 1 else net
optimizer = torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9)
for step in range(3):
    optimizer.zero_grad()
    loss = net(torch.randn(1024, 64)).pow(2).mean()
    loss.backward()
    optimizer.step()
    sys.stdout.write("rank %d step %d %s\\n" % (rank, step, loss.item().hex()))
    sys.stdout.flush()
if ranks > 1:
    dist.barrier()
    dist.destroy_process_group()
"""
# As torchrun does, which some builds of 1.13 lack.
LAUNCH = """
import os, subprocess, sys
ranks = int(sys.argv[2])
workers = [subprocess.Popen([sys.executable, sys.argv[1], str(rank), str(ranks), sys.argv[3]],
                            env=dict(os.environ, RANK=str(rank), WORLD_SIZE=str(ranks))) for rank in range(ranks)]
sys.exit(max(worker.wait() for worker in workers))
"""


def run(command):
    out = subprocess.run(command, capture_output=True, text=True, timeout=110)
    return out.returncode, sorted(line for line in out.stdout.splitlines() if line.startswith("rank ")), out.stderr


def check(number, name, ok, text=""):
    print("%s %d - %s%s" % ("ok" if ok else "not ok", number, name, "" if ok else " # " + " ".join(str(text).split())[-300:]))
    return not ok


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--package", required=True)
    parser.add_argument("--coop", required=True)
    options = parser.parse_args()
    failed = number = 0
    with tempfile.TemporaryDirectory(prefix="coop-ranks-") as folder:
        files = {}
        for name, text in (("train.py", TRAIN), ("launch.py", LAUNCH)):
            files[name] = os.path.join(folder, name)
            with open(files[name], "w") as file:
                file.write(text)
        for ranks in (1, RANKS):
            def command(meeting):
                return [sys.executable, files["launch.py"], files["train.py"], str(ranks), os.path.join(folder, meeting)]
            trace = os.path.join(folder, "run%d.coop" % ranks)
            plain = run(command("plain%d" % ranks))
            ours = run([options.coop, "run", "--budget", "2200KiB", "-o", trace, "--"] + command("ours%d" % ranks))
            number += 1
            failed += check(number, "%d ranks: same bits" % ranks, ours[0] == 0 and len(plain[1]) == 3 * ranks
                            and ours[1] == plain[1], (plain, ours))
            for rank in range(ranks):
                file = trace if rank == 0 else trace.replace(".coop", "-rank%d.coop" % rank)
                out = subprocess.run([options.coop, "info", "--json", file], capture_output=True, text=True)
                info = json.loads(out.stdout) if out.returncode == 0 else {}
                meta = subprocess.run([options.coop, "query", "--json", file, "SELECT value FROM meta WHERE key = 'rank'"],
                                      capture_output=True, text=True).stdout
                sound = subprocess.run([options.coop, "check", file], capture_output=True, text=True)
                number += 1
                failed += check(number, "rank %d of %d: a trace of its own, in the budget" % (rank, ranks),
                                info.get("evictions", 0) > 0 and '"%d"' % rank in meta and sound.returncode == 0
                                and 0 < info["peak"] <= 2200 << 10, (info, meta, sound.stdout, out.stderr, ours[2]))
    print("1..%d" % number)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
