# SPDX-License-Identifier: Apache-2.0
"""Runs tests that are functions, and prints TAP."""
import os
import tempfile
import traceback


def run(tests, *args, folder=None):
    """tests: [(name, function)]. Each gets args and a folder: this one, or an empty one of its own. What it returns,
    if anything, is a remark. Returns the exit status."""
    failed, here = 0, os.getcwd()
    print(f"1..{len(tests)}")
    for i, (name, function) in enumerate(tests, 1):
        try:
            with tempfile.TemporaryDirectory(prefix="coop-test-") as own:
                remark = function(*args, folder or own)
            print(f"ok {i} - {name}" + (f" # {remark}" if remark else ""), flush=True)
        except Exception:
            failed += 1
            print("".join("# " + line + "\n" for line in traceback.format_exc().splitlines()), end="")
            print(f"not ok {i} - {name}", flush=True)
        os.chdir(here)
    return failed > 0


def main(names, *args, folder=None):
    """The functions test_* among a script's globals(), in their order."""
    return run([(name[5:], f) for name, f in names.items() if name.startswith("test_")], *args, folder=folder)
