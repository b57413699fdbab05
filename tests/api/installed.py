#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""libcoop as somebody else's program finds it: installed, found by pkg-config, with the header alone.

Usage: installed.py BUILD EXAMPLE.c COOP.H API-DOC.PY CC...   Prints TAP.
"""
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile

BUILD, EXAMPLE, HEADER, DOC = sys.argv[1:5]
CC = sys.argv[5:]


def sh(*argv, env=None):
    done = subprocess.run(argv, capture_output=True, text=True, timeout=60, env=env)
    assert done.returncode == 0, "%s: %d\n%s%s" % (argv, done.returncode, done.stdout, done.stderr)
    return done.stdout


def find(root, name):
    for folder, _, names in os.walk(root):
        if name in names:
            return os.path.join(folder, name)
    raise AssertionError("%s is not installed" % name)


class Installed:
    """What `meson install` put into a folder."""

    def __init__(self, root):
        self.root = root
        sh("meson", "install", "-C", BUILD, "--no-rebuild", "--destdir", root, "--tags", "devel,libcoop")
        self.pc = find(root, "coop.pc")
        self.lib = os.path.dirname(find(root, "libcoop.so.0"))
        self.env = {**os.environ, "PKG_CONFIG_PATH": os.path.dirname(self.pc),
                    "PKG_CONFIG_SYSROOT_DIR": root, "LD_LIBRARY_PATH": self.lib}

    def flags(self):
        return shlex.split(sh("pkg-config", "--cflags", "--libs", "coop", env=self.env))


def declared():
    text = re.sub(r"/\*.*?\*/", "", open(HEADER, encoding="utf-8").read(), flags=re.S)
    return set(re.findall(r"\b(coop_[a-z_]+) \(", text))


def example_runs(there):
    """The example, compiled with what pkg-config says and nothing of the source tree."""
    program = os.path.join(there.root, "two-layers")
    sh(*CC, "-std=c11", "-Wall", "-Wextra", "-Werror", find(there.root, "two-layers.c"), "-o", program,
       *there.flags(), "-lm", env=there.env)
    assert "same bits" in sh(program, env=there.env)


def exports(there):
    """The library shows what the header declares, no less and no more."""
    table = sh("nm", "-D", "--defined-only", os.path.join(there.lib, "libcoop.so.0"))
    seen = {line.split()[2].split("@")[0] for line in table.splitlines() if " T " in line}
    assert seen == declared(), seen ^ declared()


def cplusplus(there):
    """The header stands alone, in C++ too where there is a compiler for it."""
    for compiler, suffix in ((CC, ".c"), (["c++"], ".cc")):
        if shutil.which(compiler[0]) is None:
            print("# no %s here" % compiler[0])
            continue
        source = os.path.join(there.root, "alone" + suffix)
        with open(source, "w", encoding="utf-8") as file:
            file.write("#include <coop.h>\nint main (void) { return coop_result_text (COOP_DONE) == 0; }\n")
        program = source + ".out"
        sh(*compiler, "-Wall", "-Wextra", "-pedantic", "-Werror", source, "-o", program, *there.flags(),
           env=there.env)
        sh(program, env=there.env)


def needs_little(there):
    """No GLib, no SQLite: the C library alone."""
    table = sh("readelf", "-d", os.path.join(there.lib, "libcoop.so.0"))
    needed = set(re.findall(r"NEEDED.*\[(.*?)\]", table))
    assert all(re.match(r"lib(c|m|pthread)\.so|ld-linux", name) for name in needed), needed


def documented(there):
    """Each declaration has its comment, and becomes part of the reference."""
    page = os.path.join(there.root, "coop.html")
    sh(sys.executable, DOC, HEADER, page)
    text = open(page, encoding="utf-8").read()
    missing = [name for name in declared() if 'id="%s"' % name not in text]
    assert not missing, missing
    with open(HEADER, encoding="utf-8") as file:
        bare = re.sub(r"/\*\* Numbers of now\. \*/\n", "", file.read())
    broken = os.path.join(there.root, "broken.h")
    with open(broken, "w", encoding="utf-8") as file:
        file.write(bare)
    refused = subprocess.run([sys.executable, DOC, broken, page], capture_output=True, text=True)
    assert refused.returncode == 1 and "coop_stats" in refused.stderr, refused


def main():
    tests = [example_runs, exports, cplusplus, needs_little, documented]
    print("1..%d" % len(tests))
    failed = 0
    with tempfile.TemporaryDirectory() as root:
        there = Installed(root)
        for number, test in enumerate(tests, 1):
            try:
                test(there)
                print("ok %d - %s" % (number, test.__name__))
            except Exception as error:
                failed += 1
                print("not ok %d - %s" % (number, test.__name__))
                for line in str(error).splitlines():
                    print("# " + line)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
