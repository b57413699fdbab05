# SPDX-License-Identifier: Apache-2.0
"""Turns SQL files into C strings: embed.py OUT.h NAME=FILE..."""
import sys

with open(sys.argv[1], "w") as out:
    for arg in sys.argv[2:]:
        name, path = arg.split("=", 1)
        out.write(f"static const char coop_sql_{name}[] =\n")
        for line in open(path):
            text = line.split("--")[0].rstrip()
            if text:
                out.write('  "%s\\n"\n' % text.replace("\\", "\\\\").replace('"', '\\"'))
        out.write("  ;\n")
