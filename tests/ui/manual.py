# SPDX-License-Identifier: Apache-2.0
"""The manual: well-formed HTML, links that lead somewhere, every parameter, and keys that the window has."""
import os
import re
import subprocess
import sys
import tempfile
import xml.etree.ElementTree as tree

TOP = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")


SCHEMA = [os.path.join(TOP, "src", *part) for part in (("trace", "schema.sql"), ("cli", "schema.c"), ("trace", "store.h"))]


def read(*parts):
    with open(os.path.join(TOP, *parts), encoding="utf-8") as f:
        return f.read()


def build():
    with tempfile.TemporaryDirectory() as folder:
        out, schema = os.path.join(folder, "manual.html"), os.path.join(folder, "schema.md")
        subprocess.run([sys.executable, os.path.join(TOP, "src", "cli", "schema-page.py"), *SCHEMA, schema], check=True)
        subprocess.run([sys.executable, os.path.join(TOP, "data", "manual", "to-html.py"),
                        os.path.join(TOP, "data", "manual", "manual.md"), os.path.join(TOP, "src", "core", "policy.h"),
                        schema, out], check=True)
        with open(out, encoding="utf-8") as f:
            return f.read()


def links_lead_somewhere(page):
    ids = {e.get("id") for e in page.iter()}
    for link in page.iter("a"):
        target = link.get("href")
        assert not target.startswith("#") or target[1:] in ids, target


def every_parameter_is_there(page):
    words = {e.text for e in page.iter("code")}
    for name in re.findall(r'^ +X \(\w+, "(\w+)", (?:SIZE|INT|REAL|BOOL|ENUM)', read("src", "core", "policy.h"), re.M):
        assert name in words, name


def every_view_is_there(page):
    words = {"".join(e.itertext()) for e in page.iter("h4")}
    for name in re.findall(r"^CREATE VIEW (\w+)", read("src", "trace", "schema.sql"), re.M):
        assert name in words, name
    assert "largest free range below the budget after the event" in "".join(page.itertext())


def keys_are_real(page):
    """Ctrl+X in the text is a key of some action, or of a table."""
    text = "".join(page.itertext())
    known = {k.replace("<Control>", "Ctrl+").replace("<Shift>", "Shift+").lower()
             for k in re.findall(r'"(<Control>[^"]+)"', read("ui", "application.c"))}
    known |= {"ctrl+shift+c", "ctrl+z", "ctrl+c", "ctrl+?"}
    for key in re.findall(r"Ctrl\+(?:Shift\+)?[A-Z?]", text):
        assert key.lower() in known, key


def main():
    page = tree.fromstring(build().replace("<!DOCTYPE html>", ""))
    checks = [links_lead_somewhere, every_parameter_is_there, every_view_is_there, keys_are_real]
    print(f"1..{len(checks)}")
    failed = 0
    for n, check in enumerate(checks, 1):
        try:
            check(page)
            print(f"ok {n} {check.__name__}")
        except AssertionError as error:
            failed += 1
            print(f"not ok {n} {check.__name__}\n# {error}")
    return 1 if failed else 0


sys.exit(main())
