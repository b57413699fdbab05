# SPDX-License-Identifier: Apache-2.0
"""Builds the wheel (PEP 517) with meson: pip install ./src/torch.

meson-python wants the project's meson.build beside pyproject.toml; ours is two folders up, with much that is no
part of the wheel. Needs a C compiler and the headers of GLib, SQLite and cairo; meson and ninja are fetched by pip
where they are not installed.
"""

import base64
import hashlib
import os
import re
import shutil
import subprocess
import sys
import sysconfig
import tempfile
import zipfile

HERE = os.path.dirname(os.path.abspath(__file__))
PACKAGE = os.path.join(HERE, "..", "coopscope")
ROOT = os.path.abspath(os.path.join(HERE, "..", "..", ".."))
TARGETS = {"_coopscope.abi3.so": "src/torch/_coopscope.abi3.so", "_coopscope_cuda.so": "src/torch/_coopscope_cuda.so",
           "_bin/coop": "src/cli/coop"}
# Read where the package lies: a wheel knows no build folder.
PATHS = '''"""Where the programs of this build lie. Written by packaging/wheel.py."""

import os

BUILD_ROOT = os.path.join(os.path.realpath(os.path.dirname(__file__)), "_bin")
BUILD = INSTALLED = os.path.join(BUILD_ROOT, "coop")
'''


def get_requires_for_build_wheel(config_settings=None):
    return [tool for tool, wanted in (("meson", "meson>=1.0"), ("ninja", "ninja")) if not shutil.which(tool)
            for tool in [wanted]]


def _version():
    with open(os.path.join(ROOT, "meson.build")) as file:
        return re.search(r"version: '([^']+)'", file.read()).group(1)


def _environment():
    """pip's own hides what is installed from a meson of the system, which is a Python program, too."""
    clean = {k: v for k, v in os.environ.items() if not k.startswith("PYTHON")}
    works = subprocess.run(["meson", "--version"], capture_output=True).returncode == 0
    return dict(os.environ) if works else clean


def _build(folder):
    """Configures and builds what the wheel needs. Returns {name in the package: file}."""
    env = _environment()
    subprocess.run(["meson", "setup", folder, ROOT, "--buildtype=release", "-Dui=disabled", "-Dtests=false",
                    "-Dtorch=enabled", "-Dpython=" + sys.executable], check=True, stdout=subprocess.DEVNULL, env=env)
    have = subprocess.run(["ninja", "-C", folder, "-t", "targets", "all"], check=True, capture_output=True, text=True,
                          env=env).stdout
    found = {name: target for name, target in TARGETS.items() if target + ":" in have}
    subprocess.run(["ninja", "-C", folder, *found.values()], check=True, stdout=subprocess.DEVNULL, env=env)
    return {name: os.path.join(folder, target) for name, target in found.items()}


def _files(folder):
    """(name in the wheel, bytes, whether it is a program)"""
    for where, _, names in os.walk(PACKAGE):
        for name in sorted(names):
            path = os.path.join(where, name)
            if name.endswith(".py") or name == "py.typed":
                with open(path, "rb") as file:
                    yield "coopscope/" + os.path.relpath(path, PACKAGE), file.read(), False
    yield "coopscope/_paths.py", PATHS.encode(), False
    for name, path in _build(folder).items():
        with open(path, "rb") as file:
            yield "coopscope/" + name, file.read(), True


def _metadata(version, tag):
    yield "METADATA", ("Metadata-Version: 2.1\nName: coopscope\nVersion: %s\nLicense: Apache-2.0\nRequires-Python: >=3.9\n"
                       "Summary: Trains a PyTorch script inside a hard memory budget, and shows its memory\n" % version)
    yield "WHEEL", "Wheel-Version: 1.0\nGenerator: coopscope\nRoot-Is-Purelib: false\nTag: %s\n" % tag
    yield "entry_points.txt", "[console_scripts]\ncoop = coopscope._collector:run_coop\n"


def _add(wheel, records, name, data, program=False):
    entry = zipfile.ZipInfo(name, (2020, 1, 1, 0, 0, 0))
    entry.external_attr = (0o100755 if program else 0o100644) << 16
    wheel.writestr(entry, data, zipfile.ZIP_DEFLATED)
    digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
    records.append("%s,sha256=%s,%d" % (name, digest, len(data)))


def _tag():
    return "cp39-abi3-" + sysconfig.get_platform().replace("-", "_").replace(".", "_")


def prepare_metadata_for_build_wheel(metadata_directory, config_settings=None):
    info = "coopscope-%s.dist-info" % _version()
    os.mkdir(os.path.join(metadata_directory, info))
    for file, text in _metadata(_version(), _tag()):
        with open(os.path.join(metadata_directory, info, file), "w") as out:
            out.write(text)
    return info


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    version, tag = _version(), _tag()
    name = "coopscope-%s-%s.whl" % (version, tag)
    info = "coopscope-%s.dist-info" % version
    records = []
    with tempfile.TemporaryDirectory(prefix="coopscope-wheel-") as folder, \
            zipfile.ZipFile(os.path.join(wheel_directory, name), "w") as wheel:
        for path, data, program in _files(folder):
            _add(wheel, records, path, data, program)
        for file, text in _metadata(version, tag):
            _add(wheel, records, info + "/" + file, text.encode())
        records.append(info + "/RECORD,,")
        wheel.writestr(info + "/RECORD", "\n".join(records) + "\n")
    return name
