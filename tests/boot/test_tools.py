# SPDX-License-Identifier: Apache-2.0
"""tools/ and po/: the count that check.sh ends with, what setup.sh says where it cannot install, and
whether every text can be translated."""

import json
import os
import shutil
import subprocess
import sys

from support import contains, equal, main

TOOLS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "tools")


def test_files_to_translate(w):
    """po/POTFILES names exactly the files with text for people."""
    top = os.path.join(TOOLS, "..")
    found = ["src/core/policy.h", "data/io.github.coopscope.Coopscope.desktop.in"]
    for folder in ("ui", "ui/gtk", "src/cli", "src/session"):
        for name in os.listdir(os.path.join(top, folder)):
            mark = {".c": "gi18n", ".ui": "translatable="}.get(os.path.splitext(name)[1])
            if mark is not None:
                with open(os.path.join(top, folder, name)) as f:
                    if mark in f.read():
                        found.append(f"{folder}/{name}")
    with open(os.path.join(top, "po", "POTFILES")) as f:
        listed = [line.strip() for line in f if not line.startswith("#")]
    equal(listed, sorted(found))


def count(w, runs, *args):
    log = w.write("log.json", "".join(json.dumps(r) + "\n" for r in runs))
    done = subprocess.run([sys.executable, os.path.join(TOOLS, "count.py"), log, *args],
                          capture_output=True, text=True)
    return done.stdout.splitlines()[-1], done.returncode


def run(result, stdout="", name="t"):
    return {"name": name, "result": result, "stdout": stdout}


def test_count(w):
    equal(count(w, [run("OK", "1..2\nok 1 a\nok 2 - b\n"), run("OK")]), ("3 passed, 0 failed", 0))
    equal(count(w, [run("FAIL", "1..2\nok 1\nnot ok 2 b\n")]), ("1 passed, 1 failed", 1))
    equal(count(w, [run("OK", "1..0 # skip\n"), run("OK", "ok 1 # SKIP no\nok 2\nbook 3\n")]),
          ("2 passed, 0 failed", 0))


def test_count_of_what_died(w):
    equal(count(w, [run("ERROR", "1..9\nok 1\n")]), ("1 passed, 1 failed", 1))
    equal(count(w, [run("TIMEOUT", "1..9\nok 1\n")]), ("1 passed, 1 failed", 1))
    equal(count(w, [run("FAIL")]), ("0 passed, 1 failed", 1))


def test_count_of_failures_elsewhere(w):
    equal(count(w, [run("OK")], "1"), ("1 passed, 1 failed", 1))


def test_count_of_nothing(w):
    equal(count(w, []), ("0 passed, 0 failed", 1))
    equal(count(w, [run("SKIP")]), ("0 passed, 0 failed", 1))


def setup(w, **stubs):
    """setup.sh where only the usual small tools and the stubs (name: shell text) can be found."""
    folder = w.path("stubs")
    os.mkdir(folder)
    for tool in ("sh", "grep", "cat", "sed", "mkdir", "env"):
        os.symlink(shutil.which(tool), os.path.join(folder, tool))
    for name, text in stubs.items():
        path = w.write("stubs/" + name.replace("_", "-"), "#!/bin/sh\n" + text + "\n")
        os.chmod(path, 0o755)
    python = w.write("python-with-torch", "#!/bin/sh\necho 9.9\n")
    os.chmod(python, 0o755)
    env = {"PATH": folder, "COOP_PYTHON": python, "HOME": w.folder}
    done = subprocess.run(["sh", os.path.join(TOOLS, "setup.sh")], env=env, cwd=w.folder,
                          capture_output=True, text=True)
    return done.stdout, done.stderr, done.returncode


def test_setup_with_all_present(w):
    out, err, code = setup(w, apt_get="exit 9", dpkg_query="echo install ok installed")
    equal((out.splitlines()[0], err, code), (w.path("python-with-torch") + "\t9.9", "", 0))


def test_setup_as_a_user_with_sudo(w):
    out, err, code = setup(
        w, id="echo 1000", sudo=f'echo "$*" >>{w.path("sudo.log")}', apt_get="exit 9",
        dpkg_query='case "$*" in *meson) exit 1 ;; *) echo install ok installed ;; esac')
    equal(code, 0)
    with open(w.path("sudo.log")) as log:
        update, install = log.read().splitlines()
    contains(update, "DEBIAN_FRONTEND=noninteractive")
    contains(update, "apt-get -q -y")
    equal(install.split("--no-install-recommends ")[1].split(), ["meson"])


def test_setup_as_a_user_without_sudo(w):
    out, err, code = setup(w, id="echo 1000", apt_get="exit 9", dpkg_query="exit 1")
    equal((out, code), ("", 1))
    contains(err, "there is no sudo; as root:\n  apt-get install gcc")


def test_setup_without_apt_names_all_that_is_missing(w):
    out, err, code = setup(w, cc="", pkg_config='case "$*" in *gtk4*) exit 1 ;; esac')
    equal((out, code), ("", 1))
    for part in ("no apt-get", "the program meson", "the program ninja", "files of gtk4 >= 4.8"):
        contains(err, part)
    equal("the program cc" in err or "glib-2.0" in err, False)


def test_setup_without_apt_where_nothing_is_missing(w):
    out, err, code = setup(w, cc="", pkg_config="", meson="", ninja="", msgfmt="",
                           glib_compile_resources="", Xvfb="", dbus_run_session="", gdbus="")
    equal((out.splitlines()[0], err, code), (w.path("python-with-torch") + "\t9.9", "", 0))


if __name__ == "__main__":
    main(sys.modules["__main__"])
