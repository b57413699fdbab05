#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Markdown -> one HTML page, as far as the manual uses it: headings, paragraphs, lists, tables, code.

    to-html.py MANUAL.md POLICY.h SCHEMA.md OUT.html

A line {{parameters}} becomes the table of all parameters of the policy, and {{schema}} the page that is made of the
trace's schema, so that the manual cannot lag behind.
"""
import html
import re
import sys

STYLE = """body { max-width: 46em; margin: 2em auto; padding: 0 1em; font: 16px/1.5 sans-serif; }
code, pre { background: rgba(128, 128, 128, 0.15); border-radius: 4px; } code { padding: 0 0.25em; }
pre { padding: 0.7em; overflow-x: auto; } pre code { background: none; padding: 0; }
table { border-collapse: collapse; } td, th { padding: 0.25em 0.7em; text-align: left; vertical-align: top;
border-bottom: 1px solid rgba(128, 128, 128, 0.4); } h1, h2, h3 { line-height: 1.2; }
@media (prefers-color-scheme: dark) { body { background: #242424; color: #eee; } a { color: #78aeed; } }"""


def inline(text):
    text = html.escape(text, quote=False)
    text = re.sub(r"`([^`]+)`", r"<code>\1</code>", text)
    text = re.sub(r"\*\*([^*]+)\*\*", r"<b>\1</b>", text)
    return re.sub(r"\[([^\]]+)\]\(([^)]+)\)", r'<a href="\2">\1</a>', text)


def anchor(text):
    return re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")


def parameters(policy):
    """Rows of the X-macro list: name, range or kind, help."""
    with open(policy) as f:
        text = f.read()
    listed = text[text.index("#define COOP_PARAMS(X)"):].split("\n\n")[0].replace("\\\n", " ")
    found = re.findall(r'X \(\w+, "(\w+)", (\w+),.*?"([^"]*)",\s*"([\w-]+)",\s*"((?:[^"\\]|\\.)*)"\)', listed)
    assert len(found) == listed.count("X (") and found, "a parameter is not understood"
    return ["| name | kind | what it does |", "|---|---|---|"] + [
        f"| `{name}` | {kind.lower()}{', ' + unit if unit else ''} | {words} |"
        for name, kind, unit, _group, words in found]


def table(rows):
    cells = [[inline(c.strip()) for c in row.strip().strip("|").split("|")] for row in rows]
    head = "".join(f"<th>{c}</th>" for c in cells[0])
    body = "".join("<tr>" + "".join(f"<td>{c}</td>" for c in row) + "</tr>\n" for row in cells[2:])
    return f"<table>\n<tr>{head}</tr>\n{body}</table>"


def block(lines):
    """One run of lines without an empty one between."""
    first = lines[0]
    heading = re.match(r"(#{1,4}) (.*)", first)
    if heading:
        n = len(heading[1])
        rest = block(lines[1:]) if lines[1:] else ""
        return f'<h{n} id="{anchor(heading[2])}">{inline(heading[2])}</h{n}>\n' + rest
    if first.startswith("|"):
        return table(lines)
    if re.match(r"(- |\d+\. )", first):
        kind = "ul" if first.startswith("- ") else "ol"
        items = re.split(r"\n(?:- |\d+\. )", "\n" + "\n".join(lines))[1:]
        return f"<{kind}>\n" + "".join(f"<li>{inline(' '.join(i.split()))}</li>\n" for i in items) + f"</{kind}>"
    return f"<p>{inline(' '.join(lines))}</p>"


def schema(page):
    """Its title is the chapter's own; the other headings go down one level."""
    with open(page, encoding="utf-8") as f:
        text = f.read().split("\n", 1)[1]
    return re.sub(r"^#", "##", text, flags=re.M).strip()


def convert(text, policy, page):
    text = text.replace("{{parameters}}", "\n".join(parameters(policy))).replace("{{schema}}", schema(page))
    out = []
    for i, part in enumerate(text.split("```")):
        if i % 2:
            out.append("<pre><code>" + html.escape(part.split("\n", 1)[1].rstrip(), quote=False) + "</code></pre>")
            continue
        for run in re.split(r"\n\s*\n", part):
            lines = [line for line in run.split("\n") if line.strip()]
            if lines:
                out.append(block(lines))
    title = re.search(r"^# (.*)", text, re.M)[1]
    return (f'<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8"/>\n<title>{html.escape(title)}</title>\n'
            f"<style>\n{STYLE}\n</style>\n</head>\n<body>\n" + "\n".join(out) + "\n</body>\n</html>\n")


def main():
    manual, policy, page, out = sys.argv[1:]
    with open(manual, encoding="utf-8") as f:
        text = f.read()
    text = re.sub(r"<!--.*?-->\n?", "", text, flags=re.S)
    with open(out, "w", encoding="utf-8") as f:
        f.write(convert(text, policy, page))


if __name__ == "__main__":
    main()
