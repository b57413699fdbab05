#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""coop tune, and the scripts for Slurm and Ray. Optuna and Ray are large and not ours to test: two modules of
their names, a page together, stand in and keep to the calls that the drivers make.

Usage: drivers.py COOP SOURCE. Prints TAP.
"""
import glob
import json
import os
import sqlite3
import subprocess
import sys

sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
import tap

COOP, SOURCE = (os.path.abspath(p) for p in sys.argv[1:3])
PROGRAMS = [os.path.join(SOURCE, "data", "programs", name + ".jsonl.gz") for name in ("unet", "resnet50")]
SWEEP = ["--evictors", "coop,lru", "--ratios", "1:0.4:0.1", *PROGRAMS]

OPTUNA = """
import json, os, random, types
logging = types.SimpleNamespace(set_verbosity=lambda level: None, ERROR=0)

class TPESampler:
    def __init__(self, seed, multivariate):
        self.random = random.Random(seed)
    def reseed_rng(self):
        self.random = random.Random(1000)

samplers = types.SimpleNamespace(TPESampler=TPESampler)

class Trial:
    def __init__(self, sampler):
        self.random, self.params, self.user_attrs, self.value = sampler.random, {}, {}, None
    def suggest_float(self, name, low, high, log=False):
        return self.params.setdefault(name, self.random.uniform(low, high))
    def suggest_categorical(self, name, values):
        return self.params.setdefault(name, self.random.choice(list(values)))
    def set_user_attr(self, key, value):
        self.user_attrs[key] = value

class Study:
    def __init__(self, path, sampler):
        self.path, self.sampler = path, sampler
    @property
    def trials(self):
        if self.path is None:
            return list(vars(self).get("made", []))
        if not os.path.exists(self.path):
            return []
        out = []
        for line in open(self.path):
            trial = Trial(self.sampler)
            trial.params, trial.user_attrs, trial.value = json.loads(line)
            out.append(trial)
        return out
    @property
    def best_trial(self):
        return min(self.trials, key=lambda trial: trial.value)
    @property
    def best_value(self):
        return self.best_trial.value
    def optimize(self, objective, n_trials, callbacks):
        for _ in range(n_trials):
            trial = Trial(self.sampler)
            trial.value = objective(trial)
            if self.path is None:
                vars(self).setdefault("made", []).append(trial)
            else:
                with open(self.path, "a") as file:
                    file.write(json.dumps([trial.params, trial.user_attrs, trial.value]) + "\\n")

def create_study(storage, study_name, sampler, load_if_exists):
    return Study(storage and storage.split("///")[1], sampler)
"""

RAY = """
class Ref(object):
    def __init__(self, value):
        self.value = value
def init(address, log_to_driver, include_dashboard):
    pass
def cluster_resources():
    return {"CPU": 1.0}
put = Ref
def get(ref):
    return ref.value
class Remote:
    def __init__(self, function):
        self.function = function
    def remote(self, *args):
        return Ref(self.function(*[a.value if isinstance(a, Ref) else a for a in args]))
def remote(num_cpus, max_retries):
    return Remote
def wait(refs):
    return refs[:1], refs[1:]
def shutdown():
    pass
"""


def run(*command, **env):
    return subprocess.run(list(map(str, command)), capture_output=True, text=True, timeout=200,
                          env={**os.environ, **env})


def stand_in(tmp, name, text):
    with open(os.path.join(tmp, name + ".py"), "w") as file:
        file.write(text)
    return os.pathsep.join([tmp, os.environ.get("PYTHONPATH", "")]).rstrip(os.pathsep)


def tune(*args, path=""):
    return run(COOP, "tune", "--python", sys.executable, *args, PYTHONPATH=path)


def results(path):
    db = sqlite3.connect(path)
    try:
        return db.execute("SELECT program, evictor, ratio_ppm, result, overhead, evictions FROM run ORDER BY 1, 2, 3").fetchall()
    finally:
        db.close()


def whole(tmp):
    path = os.path.join(tmp, "whole.db")
    result = run(COOP, "sweep", "-q", "-o", path, *SWEEP)
    assert result.returncode == 0, result
    return results(path)


def test_tune_says_what_it_gained(tmp):
    path = stand_in(tmp, "optuna", OPTUNA)
    policy = os.path.join(tmp, "tuned.policy")
    result = tune(PROGRAMS[0], "--ratio", "0.5", "-n", "12", "-o", policy, "--json", path=path)
    assert result.returncode == 0 and result.stderr == "", result
    out = json.loads(result.stdout)
    assert out["trials"] == 12 and out["overhead"] <= out["presets"]["coop"], out
    # what it promises is what a replay with these settings says
    settings = [word for key, value in out["settings"].items() for word in ("--set", f"{key}={value}")]
    again = run(COOP, "replay", "--json", PROGRAMS[0], "--ratio", "0.5", "--evictor", out["evictor"], *settings)
    assert json.loads(again.stdout)["overhead"] == out["overhead"]
    with open(policy) as file:
        lines = dict(line.strip().split("=") for line in file if not line.startswith("#"))
    assert lines == {"evictor": out["evictor"], **{k: str(v) for k, v in out["settings"].items()}}, lines
    text = tune(PROGRAMS[0], "--ratio", "0.5", "-n", "2", path=path).stdout
    assert "preset" in text and "2 trials" in text, text


def test_tune_with_workers_and_again(tmp):
    path, storage = stand_in(tmp, "optuna", OPTUNA), os.path.join(tmp, "trials.db")
    args = (PROGRAMS[0], "--ratio", "0.6", "-n", "7", "-j", "3", "--storage", storage, "--evictors", "coop,dtr-eq", "--json")
    first = json.loads(tune(*args, path=path).stdout)
    assert first["trials"] == 7 and set(first["presets"]) == {"coop", "dtr-eq"}, first
    second = json.loads(tune(*args, path=path).stdout)
    assert second["trials"] == 14 and second["overhead"] <= first["overhead"], second


def test_tune_that_fails(tmp):
    path = stand_in(tmp, "optuna", OPTUNA)
    out = tune(PROGRAMS[0], "--budget", "300MB", "-n", "3", path=path)
    assert out.returncode == 1 and "does not finish" in out.stdout, out
    for args, code, says in (((PROGRAMS[0],), 2, "--budget and --ratio"), (("--ratio", "1"), 2, "which program"),
                             ((PROGRAMS[0], "--ratio", "0"), 2, "--ratio"),
                             ((PROGRAMS[0], "--ratio", "1", "-j", "2"), 2, "--storage"),
                             ((PROGRAMS[0], "--ratio", "1", "--evictors", "cop"), 2, "did you mean coop?"),
                             ((os.path.join(tmp, "none"), "--ratio", "1"), 1, "No such file"),
                             ((COOP, "--ratio", "1"), 1, "neither a trace")):
        out = tune(*args, path=path)
        assert out.returncode == code and says in out.stderr and len(out.stderr.splitlines()) == 1, (args, out)


def test_tune_without_optuna(tmp):
    path = stand_in(tmp, "optuna", "raise ImportError('none')\n")
    out = tune(PROGRAMS[0], "--ratio", "0.5", path=path)
    assert out.returncode == 1 and "pip install optuna" in out.stderr and len(out.stderr.splitlines()) == 1, out


def test_slurm_array(tmp):
    script, out = os.path.join(SOURCE, "tools", "slurm", "sweep.sh"), os.path.join(tmp, "out")
    for task in (1, 2, 3, 2):   # one is requeued
        result = run("sh", script, out, *SWEEP, SLURM_ARRAY_TASK_ID=str(task), SLURM_ARRAY_TASK_COUNT="3", COOP=COOP)
        assert result.returncode == 0, result
    merged = os.path.join(tmp, "all.db")
    assert run(COOP, "merge", *glob.glob(out + "/shard-*.db"), "-o", merged).returncode == 0
    assert results(merged) == whole(tmp)
    assert run("sh", script, out, *SWEEP).returncode == 2


def test_ray(tmp):
    path, merged = stand_in(tmp, "ray", RAY), os.path.join(tmp, "all.db")
    script = os.path.join(SOURCE, "tools", "ray", "sweep.py")
    command = (sys.executable, script, "-o", merged, "--shards", "3", "--coop", COOP, "--", *SWEEP)
    result = run(*command, PYTHONPATH=path)
    assert result.returncode == 0 and "3 of 3 shards" in result.stderr, result
    assert results(merged) == whole(tmp)
    assert run(*command, PYTHONPATH=path).returncode == 0
    assert results(merged) == whole(tmp)
    bad = run(*command[:-2], COOP, PYTHONPATH=path)
    assert bad.returncode != 0 and "neither a trace" in bad.stderr, bad


sys.exit(tap.main(globals()))
