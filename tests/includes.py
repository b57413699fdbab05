#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks what src/DESIGN.md promises of the source tree.

1. A folder includes only folders to its left.
2. Each library is used where it may be: GLib in the tool, SQLite in trace, GTK in ui, Python in torch.
3. Every file of ours names its licence in the first lines.

Usage: includes.py ROOT. Prints TAP.
"""
import os
import re
import sys

TOOL = {"core", "wire", "trace", "replay", "session"}
MAY = {
    "core": set(),
    "wire": {"core"},
    "api": {"core", "wire"},
    "device": {"core", "wire"},
    "torch": {"core", "wire", "device"},
    "trace": {"core", "wire"},
    "replay": {"core", "wire", "trace"},
    "session": {"core", "wire", "trace", "replay"},
    "draw": {"core"},
    "export": {"core", "wire", "trace", "draw"},
    "cli": TOOL | {"draw", "export", "device"},
    "ui": TOOL | {"draw", "export"},
}
GLIB = {"trace", "replay", "session", "draw", "export", "cli", "ui"}
LIBRARIES = [
    (re.compile(r"^(glib|gio|gobject|gmodule)([-./]|$)"), GLIB, "GLib"),
    (re.compile(r"^sqlite3"), {"trace"}, "SQLite"),
    (re.compile(r"^(gtk|gdk|gsk|graphene|adwaita)"), {"ui"}, "GTK"),
    (re.compile(r"^cairo"), {"draw", "export", "ui", "cli"}, "cairo"),
    (re.compile(r"^(Python|structmember)\.h"), {"torch"}, "Python"),
]
INCLUDE = re.compile(r'^\s*#\s*include\s*(["<])([^">]+)[">]')
LICENSED = (".c", ".h", ".cc", ".py", ".sh", ".ui", ".sql", ".css", ".build", ".in", ".map")
LICENSED_NAMES = ("meson.build", "meson_options.txt", ".clang-format")
SKIP = {".git", "__pycache__"}


def files(root):
    for folder, folders, names in os.walk(root):
        folders[:] = sorted(f for f in folders if f not in SKIP and not f.startswith("build")
                            and not os.path.exists(os.path.join(folder, f, "meson-private")))
        for name in sorted(names):
            yield os.path.relpath(os.path.join(folder, name), root)


def folder_of(path):
    parts = path.split("/")
    if parts[0] == "ui":
        return "ui"
    return parts[1] if parts[0] == "src" and len(parts) > 2 else None


def target_of(root, path, name):
    """Folder that a quoted include leads to; None when it is not one of ours."""
    for base in (os.path.dirname(path), "src", ""):
        candidate = os.path.normpath(os.path.join(base, name))
        if os.path.exists(os.path.join(root, candidate)):
            return folder_of(candidate)
    return name.split("/")[0] if name.split("/")[0] in MAY else None


def faults_of(root, path, text):
    folder = folder_of(path)
    if folder not in MAY:
        if folder is not None:
            yield "%s: folder %s is not in the include rule" % (path, folder)
        return
    for number, line in enumerate(text.splitlines(), 1):
        match = INCLUDE.match(line)
        if not match:
            continue
        target = target_of(root, path, match.group(2))
        if target is not None and target != folder and target not in MAY[folder]:
            yield "%s:%d: %s includes %s, of %s" % (path, number, folder, match.group(2), target)
        for pattern, folders, name in LIBRARIES:
            if target is None and pattern.match(match.group(2)) and folder not in folders:
                yield "%s:%d: %s in %s" % (path, number, name, folder)


def needs_licence(path):
    name = os.path.basename(path)
    return name in LICENSED_NAMES or name.endswith(LICENSED) or path == ".ci/run"


def self_test():
    """The check must find what it is for."""
    planted = {
        "src/core/x.c": '#include "wire/wire.h"\n',
        "src/core/y.c": "#include <glib.h>\n",
        "src/wire/x.c": '#include "device/device.h"\n',
        "src/trace/x.c": "#include <gtk/gtk.h>\n",
        "src/session/x.c": "#include <sqlite3.h>\n",
        "src/draw/x.c": '#include "trace/model.h"\n',
        "src/cli/x.c": '#include "torch/adapter.h"\n',
        "src/nowhere/x.c": "\n",
    }
    missed = [path for path, text in planted.items() if not list(faults_of("/nonexistent", path, text))]
    innocent = list(faults_of("/nonexistent", "src/cli/x.c", '#include "session/session.h"\n#include <gio/gio.h>\n'))
    return missed + innocent


def main():
    root = os.path.abspath(sys.argv[1] if len(sys.argv) > 1 else ".")
    include_faults, licence_faults, seen = [], [], 0
    for path in files(root):
        if not (path.endswith((".c", ".h", ".cc")) or needs_licence(path)):
            continue
        with open(os.path.join(root, path), encoding="utf-8") as file:
            text = file.read()
        seen += 1
        if path.endswith((".c", ".h", ".cc")):
            include_faults += faults_of(root, path, text)
        head = "\n".join(text.splitlines()[:5])
        if needs_licence(path) and "SPDX-License-Identifier: Apache-2.0" not in head:
            licence_faults.append("%s: no SPDX line" % path)
    results = [
        ("planted faults are found", self_test()),
        ("%d files read" % seen, [] if seen > 20 else ["too few: is %s the source tree?" % root]),
        ("a folder includes only folders to its left", include_faults),
        ("every file names its licence", licence_faults),
    ]
    print("1..%d" % len(results))
    for number, (name, faults) in enumerate(results, 1):
        print("%s %d - %s" % ("not ok" if faults else "ok", number, name))
        for fault in faults:
            print("# " + fault)
    return 1 if any(faults for _, faults in results) else 0


if __name__ == "__main__":
    sys.exit(main())
