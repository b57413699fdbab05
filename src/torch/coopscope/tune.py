# SPDX-License-Identifier: Apache-2.0
"""`coop tune`: searches the parameters of a policy for one recorded program and one budget, with Optuna.

Each trial is a replay (`coop replay --json`), so it takes no PyTorch. What counts is the overhead; a run
that does not finish counts as FAILED and a little more the earlier it ends, so that the search has a slope
to follow. The presets are tried first: what comes out is never worse than the best of them. With --storage
the trials are kept in an SQLite file, several processes or machines may work on, and more trials go on from
where it was.
"""

import argparse
import json
import os
import subprocess
import sys

from coopscope._collector import find_coop

FAILED = 4.0
# What decides about a replay beside the evictor. Bounds are those of `coop policy`, or narrower.
REALS = {"cost_exponent": (0, 2), "staleness_exponent": (0, 2), "size_exponent": (0, 2)}
CHOICES = {"chain": ("none", "union", "ancestors"), "groups": (1, 2), "beside": ("false", "true"),
           "descent": ("false", "true")}
DENSITY = (1e-4, 10)


def _fail(text, code=1):
    print(f"coop tune: {text}", file=sys.stderr)
    sys.exit(code)


def _optuna():
    try:
        import optuna
    except ImportError:
        _fail(f"needs Optuna, which {sys.executable} does not have. Install it there (pip install optuna), or name "
              "another interpreter with --python")
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    return optuna


def replay(program, budget, evictor, settings):
    """What `coop replay` found. budget: its option and value."""
    command = [find_coop(), "replay", "--json", *budget, "--evictor", evictor, program]
    for key, value in settings.items():
        command += ["--set", f"{key}={value}"]
    result = subprocess.run(command, capture_output=True, text=True)
    if not result.stdout:
        _fail(result.stderr.strip().split(": ", 1)[-1] or "coop replay failed", result.returncode)
    return json.loads(result.stdout)


def value_of(outcome):
    if outcome["result"] == "ok":
        return outcome["overhead"]
    return FAILED + 1 - outcome["lines_played"] / outcome["lines"]


def suggest(trial, evictors):
    """Evictor and settings of a trial."""
    evictor = trial.suggest_categorical("evictor", evictors)
    settings = {name: round(trial.suggest_float(name, low, high), 3) for name, (low, high) in REALS.items()}
    settings |= {name: trial.suggest_categorical(name, values) for name, values in CHOICES.items()}
    settings["density"] = float(f"{trial.suggest_float('density', *DENSITY, log=True):.3g}")
    return evictor, settings


def _study(optuna, storage, name, seed):
    sampler = optuna.samplers.TPESampler(seed=seed, multivariate=True)
    return optuna.create_study(storage=storage, study_name=name, sampler=sampler, load_if_exists=True)


def work(flags, name, seed, trials, tell):
    optuna = _optuna()
    storage = flags.storage and f"sqlite:///{flags.storage}"
    study = _study(optuna, storage, name, seed)
    if study.trials:
        study.sampler.reseed_rng()  # what goes on does not begin with the same guesses

    def objective(trial):
        evictor, settings = suggest(trial, flags.evictors)
        outcome = replay(flags.program, flags.limit, evictor, settings)
        trial.set_user_attr("result", outcome["result"])
        trial.set_user_attr("settings", settings)
        return value_of(outcome)

    study.optimize(objective, n_trials=trials, callbacks=[tell] if tell else None)
    return study


def _workers(flags, name):
    """Further processes on the same study; each makes its part of the trials."""
    share, rest = divmod(flags.trials, flags.jobs)
    command = [sys.executable, "-m", "coopscope.tune", "--worker", name]
    others = [subprocess.Popen([*command, f"{seed}:{share}", *flags.again]) for seed in range(1, flags.jobs)]
    return others, share + rest


def _presets(flags):
    return {evictor: replay(flags.program, flags.limit, evictor, {}) for evictor in flags.evictors}


def _describe(outcome):
    return f"{outcome['overhead']:.4f}" if outcome["result"] == "ok" else f"does not finish ({outcome['result']})"


def _progress(trials):
    if not sys.stderr.isatty():
        return None

    def tell(study, trial):
        done = len(study.trials)
        end = "\n" if done >= trials else ""
        print(f"\rtune: {done} of {trials} trials, best {study.best_value:.4f}\033[K", end=end, file=sys.stderr, flush=True)

    return tell


def _write_policy(path, evictor, settings, what):
    with open(path, "w") as file:
        file.write(f"# coop tune: {what}\nevictor={evictor}\n")
        file.writelines(f"{key}={value}\n" for key, value in settings.items())


def search(flags):
    presets = _presets(flags)
    name = f"{os.path.basename(flags.program)} {flags.limit[1]} {','.join(flags.evictors)}"
    if flags.storage is None and flags.jobs > 1:
        _fail("several workers meet in a file: give --storage FILE.db", 2)
    _study(_optuna(), flags.storage and f"sqlite:///{flags.storage}", name, 0)  # once, before others look for it
    others, mine = _workers(flags, name) if flags.jobs > 1 else ([], flags.trials)
    try:
        study = work(flags, name, 0, mine, _progress(flags.trials))
    finally:
        ended = [process.wait() for process in others]
    if any(ended):
        _fail("a worker ended early")
    if flags.jobs > 1:
        study = _study(_optuna(), f"sqlite:///{flags.storage}", name, 0)
    best_preset = min(presets, key=lambda e: value_of(presets[e]))
    best, settings = study.best_trial, {}
    evictor, outcome = best_preset, presets[best_preset]
    if best.value < value_of(outcome):
        evictor, settings = best.params["evictor"], best.user_attrs["settings"]
        outcome = replay(flags.program, flags.limit, evictor, settings)
    _report(flags, study, presets, evictor, settings, outcome)
    return 0 if outcome["result"] == "ok" else 1


def _report(flags, study, presets, evictor, settings, outcome):
    trials = len(study.trials)
    if flags.output:
        _write_policy(flags.output, evictor, settings, f"{outcome['program']}, {trials} trials, {_describe(outcome)}")
    if flags.json:
        print(json.dumps({"program": outcome["program"], "budget": outcome["budget"], "trials": trials,
                          "presets": {e: o["overhead"] if o["result"] == "ok" else None for e, o in presets.items()},
                          "evictor": evictor, "settings": settings, "result": outcome["result"],
                          "overhead": outcome["overhead"] if outcome["result"] == "ok" else None}))
        return
    print(f"{outcome['program']}, {' '.join(flags.limit)[2:]}: {trials} trials")
    for name, preset in presets.items():
        print(f"  {name:16} {_describe(preset)}   preset")
    if not settings:
        print("  nothing better than the best preset was found")
        return
    gain = ""
    if presets[evictor]["result"] == "ok" and outcome["result"] == "ok":
        gain = f"   {100 * (presets[evictor]['overhead'] - outcome['overhead']):.1f} % of a step less than its preset"
    print(f"  {evictor:16} {_describe(outcome)}   tuned{gain}")
    print("  --evictor " + " ".join([evictor, *(f"--set {key}={value}" for key, value in settings.items())]))


def _parse(arguments):
    parser = argparse.ArgumentParser(prog="coop tune", add_help=False)
    parser.add_argument("program")
    limit = parser.add_mutually_exclusive_group(required=True)
    limit.add_argument("--budget")
    limit.add_argument("--ratio")
    parser.add_argument("--evictors", default="coop")
    parser.add_argument("--trials", type=int, default=100)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--storage")
    parser.add_argument("--output")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--worker", nargs=2, metavar=("STUDY", "SEED:TRIALS"))
    flags = parser.parse_args(arguments)
    flags.again = [a for a in arguments if a != "--json"]
    flags.evictors = flags.evictors.split(",")
    flags.limit = ["--budget", flags.budget] if flags.budget is not None else ["--ratio", flags.ratio]
    return flags


def main(arguments=None):
    flags = _parse(sys.argv[1:] if arguments is None else arguments)
    if flags.worker:
        seed, trials = map(int, flags.worker[1].split(":"))
        work(flags, flags.worker[0], seed, trials, None)
        return 0
    return search(flags)


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit(130)
