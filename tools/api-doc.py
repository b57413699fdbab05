#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes the reference of libcoop, one page of HTML, from the comments of coop.h.

Usage: api-doc.py COOP.H OUT.html

A comment that begins with two stars belongs to the declaration right after it, one that begins with
`/**<` to the member before it; `/* ---- text ---- */` begins a chapter. A public declaration without a
comment is an error: its name is told and the exit status is 1.
"""
import html
import re
import sys

TOKEN = re.compile(
    r"/\* ---- (?P<chapter>.*?) ---- \*/"
    r"|/\*\*(?!<)(?P<doc>.*?)\*/"
    r"|(?P<define>^#define (?P<macro>COOP_MOST)\b[^\n]*)"
    r"|(?P<decl>^(?:typedef (?:enum|struct) \{.*?\} \w+;|enum \{.*?\};|[a-zA-Z][^#{}]*?;))",
    re.S | re.M,
)
STYLE = """body{font:16px/1.5 sans-serif;max-width:52em;margin:2em auto;padding:0 1em;color:#222}
pre{background:#f4f4f2;padding:.7em 1em;overflow-x:auto;font-size:14px}
h2{border-bottom:1px solid #ccc;margin-top:2em}h3{font-family:monospace;margin-bottom:0}
@media (prefers-color-scheme:dark){body{background:#1e1e1e;color:#ddd}pre{background:#2a2a2a}a{color:#8cf}}"""


def plain(comment):
    """The text of a comment without its stars; indented parts stay as they are."""
    lines = [re.sub(r"^\s*\*? ?", "", line, count=1) for line in comment.split("\n")]
    return "\n".join(lines).strip()


def paragraphs(text):
    out = []
    for part in re.split(r"\n\s*\n", text):
        if all(line.startswith("    ") for line in part.split("\n") if line):
            code = "\n".join(line[4:] for line in part.split("\n"))
            out.append("<pre>%s</pre>" % html.escape(code))
        else:
            words = html.escape(part)
            words = re.sub(r"`([^`]+)`", r"<code>\1</code>", words)
            out.append("<p>%s</p>" % words)
    return "\n".join(out)


def name_of(declaration):
    for pattern in (r"\}\s*(\w+);$", r"^typedef .*?(\w+);$", r"(coop_\w+) \(", r"^#define (\w+)", r"^enum \{\s*(\w+)"):
        match = re.search(pattern, declaration, re.S)
        if match:
            return match.group(1)
    return declaration


def read(text):
    """(title text, [(kind, ...)]) of a header, and the names that have no comment."""
    parts, bare, doc, head = [], [], None, None
    text = text[text.index("/** "):]
    for match in TOKEN.finditer(text):
        if match["chapter"]:
            parts.append(("chapter", match["chapter"]))
        elif match["doc"] is not None:
            if head is None:
                head = plain(match["doc"])
            else:
                doc = plain(match["doc"])
        else:
            declaration = (match["define"] or match["decl"]).replace("/**<", "/*")
            name = name_of(declaration)
            if doc is None:
                bare.append(name)
            parts.append(("declaration", name, declaration, doc or ""))
            doc = None
    return head, parts, bare


def page(head, parts):
    names = {part[1] for part in parts if part[0] == "declaration"}
    link = re.compile(r"\b(%s)\b" % "|".join(sorted(map(re.escape, names), key=len, reverse=True)))
    title = head.split("\n")[0].rstrip(".")
    out = ["<!DOCTYPE html>", '<html lang="en"><meta charset="utf-8"><title>libcoop</title>',
           "<style>%s</style>" % STYLE, "<h1>libcoop</h1>", paragraphs(head), "<h2>Contents</h2><ul>"]
    out += ['<li><a href="#%s">%s</a>' % (p[1].replace(" ", "-"), html.escape(p[1])) for p in parts
            if p[0] == "chapter"]
    out.append("</ul>")
    for part in parts:
        if part[0] == "chapter":
            out.append('<h2 id="%s">%s</h2>' % (part[1].replace(" ", "-"), html.escape(part[1])))
            continue
        _, name, declaration, doc = part
        out.append('<h3 id="%s">%s</h3>' % (name, name))
        out.append("<pre>%s</pre>" % link.sub(r'<a href="#\1">\1</a>', html.escape(declaration)))
        out.append(link.sub(r'<a href="#\1">\1</a>', paragraphs(doc)))
    assert title
    return "\n".join(out) + "\n</html>\n"


def main():
    if len(sys.argv) != 3:
        print(__doc__, file=sys.stderr)
        return 2
    with open(sys.argv[1], encoding="utf-8") as file:
        head, parts, bare = read(file.read())
    for name in bare:
        print("%s: %s has no comment" % (sys.argv[1], name), file=sys.stderr)
    with open(sys.argv[2], "w", encoding="utf-8") as file:
        file.write(page(head, parts))
    return 1 if bare else 0


if __name__ == "__main__":
    sys.exit(main())
