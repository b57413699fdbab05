# SPDX-License-Identifier: Apache-2.0
"""Translations: each is whole and well formed, and all text can be extracted.

The help of the parameters (core/policy.h) may stay English for a while, so that who words it anew need
not speak every language.
"""

import os
import re
import subprocess
import sys
import tempfile

TOP = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
KEYWORDS = ["_", "N_", "g_dngettext:2,3", "X:9"]


def tool(*args):
    done = subprocess.run(args, cwd=TOP, capture_output=True, text=True,
                          env=dict(os.environ, LC_ALL="C.UTF-8"))
    return done.returncode, done.stdout, done.stderr


def lines_of(name):
    with open(os.path.join(TOP, "po", name)) as f:
        return [line.strip() for line in f if line.strip() and not line.startswith("#")]


def extract(files, out):
    """All text as a template; a string put together with a macro, like a PRIu64, is cut short: an error."""
    flags = [flag for word in KEYWORDS for flag in ("-k" + word,)]
    code, _, said = tool("xgettext", "--from-code=UTF-8", "-F", *flags, "-o", out, *files)
    assert code == 0 and "warning" not in said, said


def untranslated(po, pot, out):
    code, _, said = tool("msgmerge", "-q", "-N", "-o", out, po, pot)
    assert code == 0, said
    _, text, _ = tool("msgattrib", "--untranslated", "--no-obsolete", "--no-wrap", out)
    return re.findall(r'^msgid (".+)$', text, re.M)


def entries(po):
    """Pairs of text and translation."""
    _, text, _ = tool("msgcat", "--no-wrap", po)
    return re.findall(r'^msgid "(.+)"\nmsgstr "(.*)"$', text, re.M)


def check(language, folder):
    po = os.path.join("po", language + ".po")
    pot, merged = os.path.join(folder, "all.pot"), os.path.join(folder, "merged.po")
    code, _, said = tool("msgfmt", "--check", "-o", os.devnull, po)
    assert code == 0 and "warning" not in said, said
    extract([f for f in lines_of("POTFILES") if not f.endswith("policy.h")], pot)
    missing = untranslated(po, pot, merged)
    assert not missing, f"{po} lacks {missing}"
    for text, translation in entries(po):
        if re.match(r"_?[A-Z][^_]*$|[A-Z][^_]*_[^_]+$", text) and "_" in text:
            assert translation.count("_") == 1, f"{po}: no key to press in {translation!r}"


def main():
    languages, failed = lines_of("LINGUAS"), 0
    assert languages == sorted(languages)
    print(f"1..{len(languages)}")
    for n, language in enumerate(languages, 1):
        with tempfile.TemporaryDirectory() as folder:
            try:
                check(language, folder)
                print(f"ok {n} {language}")
            except AssertionError as error:
                failed += 1
                print(f"not ok {n} {language}\n# {error}")
    return 1 if failed else 0


sys.exit(main())
