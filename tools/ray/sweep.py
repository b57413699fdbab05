#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A sweep on a Ray cluster (pip install ray).

    python tools/ray/sweep.py -o all.db [--shards N] [--address auto] -- [coop sweep's options] FILE...

Each task is `coop sweep --shard I/N` on one processor. Programs and results travel with the tasks, so nodes
share no file system; `coop` must be at the same place on all of them (--coop). Shards are merged as they come,
and what all.db holds already is not played again: the same command goes on after an interruption.
"""
import argparse
import os
import shutil
import subprocess
import sys
import tempfile


def run_shard(coop, shard, options, programs, known):
    """In a worker: the shard's results as bytes. programs: [(name, bytes)]; known: a sweep, or None."""
    with tempfile.TemporaryDirectory() as tmp:
        files, database = [], os.path.join(tmp, "shard.db")
        for number, (name, content) in enumerate(programs):
            os.mkdir(os.path.join(tmp, str(number)))  # two may have one name
            files.append(os.path.join(tmp, str(number), name))
            with open(files[-1], "wb") as file:
                file.write(content)
        if known is not None:
            with open(database, "wb") as file:
                file.write(known)
        result = subprocess.run([coop, "sweep", *options, "-q", "-j", "1", "--shard", shard, "-o", database, *files],
                                capture_output=True, text=True)
        if result.returncode != 0:
            raise RuntimeError(f"shard {shard}: {result.stderr.strip() or result.stdout.strip()}")
        with open(database, "rb") as file:
            return file.read()


def merge(coop, results, output):
    with tempfile.NamedTemporaryFile(suffix=".db") as file:
        file.write(results)
        file.flush()
        result = subprocess.run([coop, "merge", file.name, "-o", output], capture_output=True, text=True)
    if result.returncode != 0:
        sys.exit(result.stderr.strip())


def split(arguments):
    """Options of `coop sweep`, and its programs: what ends the list and is a file."""
    end = len(arguments)
    while end > 0 and os.path.isfile(arguments[end - 1]):
        end -= 1
    return arguments[:end], arguments[end:]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0], usage="sweep.py -o FILE.db [--shards N] "
                                     "[--address A] [--coop PATH] -- [coop sweep's options] FILE...")
    parser.add_argument("-o", "--output", required=True)
    parser.add_argument("--shards", type=int, default=0, help="tasks (four a processor of the cluster)")
    parser.add_argument("--address", help="of the cluster; auto: the one at hand. None: this machine alone")
    parser.add_argument("--coop", default=shutil.which("coop"))
    parser.add_argument("arguments", nargs="+")
    flags = parser.parse_args()
    options, files = split(flags.arguments)
    if flags.coop is None or not files:
        parser.error("coop is not on PATH; name it with --coop" if flags.coop is None else "which programs?")
    import ray

    ray.init(address=flags.address, log_to_driver=False, include_dashboard=False)
    shards = flags.shards or max(1, 4 * int(ray.cluster_resources().get("CPU", 1)))
    programs = ray.put([(os.path.basename(f), open(f, "rb").read()) for f in files])
    known = ray.put(open(flags.output, "rb").read() if os.path.exists(flags.output) else None)
    remote = ray.remote(num_cpus=1, max_retries=3)(run_shard)
    waiting = [remote.remote(flags.coop, f"{i}/{shards}", options, programs, known) for i in range(1, shards + 1)]
    while waiting:
        ready, waiting = ray.wait(waiting)
        merge(flags.coop, ray.get(ready[0]), flags.output)
        print(f"\r{shards - len(waiting)} of {shards} shards", end="" if waiting else "\n", file=sys.stderr, flush=True)
    ray.shutdown()


if __name__ == "__main__":
    main()
