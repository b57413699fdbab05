# SPDX-License-Identifier: Apache-2.0
"""`python -m coopscope [coop run's options] -- train.py [arguments]`: `coop run` with this Python."""

import os
import sys

from coopscope._collector import find_coop

USAGE = "usage: python -m coopscope [coop run's options] -- SCRIPT [ARGUMENT...]   (or -- -m MODULE)"


def main() -> None:
    args = sys.argv[1:]
    if "-h" in args[: args.index("--") if "--" in args else None] or args[:1] == ["--help"]:
        print(USAGE)
        sys.exit(0)
    if "--" not in args or args[-1] == "--":
        print(USAGE, file=sys.stderr)
        sys.exit(2)
    split = args.index("--")
    coop = find_coop()
    os.execv(coop, [coop, "run", *args[:split], "--", sys.executable, *args[split + 1 :]])


try:
    main()
except (OSError, RuntimeError) as error:
    print(f"coopscope: {error}", file=sys.stderr)
    sys.exit(1)
