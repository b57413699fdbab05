# SPDX-License-Identifier: Apache-2.0
"""count.py TESTLOG.JSON [FAILED]: the last line of check.sh, `N passed, N failed`.

Counts what the test programs say in TAP, point by point; a program without TAP is one test. A
program that crashed, ran out of time or said less than it planned is one failure more. FAILED is
what failed elsewhere. Exit status 0 if nothing failed and something was tested.
"""

import json
import re
import sys

POINT = re.compile(r"^(not )?ok\b(?:\s+\d+)?(.*)$", re.MULTILINE)


def count(run):
    """(passed, failed, skipped) of one test program."""
    good = run["result"] in ("OK", "EXPECTEDFAIL")
    passed = failed = skipped = 0
    for bad, rest in POINT.findall(run.get("stdout") or ""):
        if bad:
            failed += 1
        elif re.search(r"#\s*skip\b", rest, re.IGNORECASE):
            skipped += 1
        else:
            passed += 1
    if run["result"] == "SKIP" and not passed + failed + skipped:
        return 0, 0, 1
    if good and not passed + failed + skipped:
        passed = 1
    if not good and run["result"] != "SKIP" and not failed:
        failed = 1
    return passed, failed, skipped


def main():
    totals = [0, int(sys.argv[2]) if len(sys.argv) > 2 else 0, 0]
    bad = []
    with open(sys.argv[1]) as log:
        for line in log:
            run = json.loads(line)
            numbers = count(run)
            totals = [a + b for a, b in zip(totals, numbers)]
            if numbers[1]:
                bad.append(f"{run['name']}: {run['result'].lower()}, {numbers[1]} failed")
    for line in bad:
        print(line)
    passed, failed, skipped = totals
    if skipped:
        print(f"{skipped} skipped")
    print(f"{passed} passed, {failed} failed")
    sys.exit(1 if failed or not passed else 0)


main()
