# SPDX-License-Identifier: Apache-2.0
"""Turns queries.sql into a C table: queries.py QUERIES.sql OUT.h

Some things are written so often that they have names: {op:X} is an operator's name X as people say it,
{joins:o} brings name and line of operator o, {joins:o,b} those of block b where it has its own, {line} says
that line, {line:v} that of a row v of v_block.
"""
import re
import sys

OP = "replace (replace (replace (%s, 'aten::', ''), 'aten.', ''), '.default', '')"
JOINS = ("LEFT JOIN string n ON n.id = %(o)s.name LEFT JOIN stack st ON st.id = %(stack)s\n"
         "LEFT JOIN frame fr ON fr.id = st.shown LEFT JOIN string fi ON fi.id = fr.file\n"
         "LEFT JOIN string fu ON fu.id = fr.func")
LINE = ("replace (%(file)s, rtrim (%(file)s, replace (%(file)s, '/', '')), '') || ':' || %(line)s\n"
        "  || coalesce (' in ' || %(func)s, '')")


def expand(sql):
    sql = re.sub(r"\{op:([\w.]+)\}", lambda m: OP % m.group(1), sql)
    sql = re.sub(r"\{joins:(\w+)\}", lambda m: JOINS % {"o": m[1], "stack": m[1] + ".stack"}, sql)
    sql = re.sub(r"\{joins:(\w+),(\w+)\}", lambda m: JOINS % {"o": m[1], "stack": "coalesce (%s.stack, %s.stack)" % (m[2], m[1])}, sql)
    sql = re.sub(r"\{line:(\w+)\}", lambda m: LINE % {key: m[1] + "." + key for key in ("file", "line", "func")}, sql)
    return sql.replace("{line}", LINE % {"file": "fi.text", "line": "fr.line", "func": "fu.text"})


def quote(text):
    return '"%s"' % text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", '\\n"\n    "')


with open(sys.argv[1]) as source, open(sys.argv[2], "w") as out:
    out.write("static const CoopNamedQuery queries[] = {\n")
    for part in re.split(r"^-- @", source.read(), flags=re.M)[1:]:
        head, _, sql = part.partition("\n")
        name, help = head.split(None, 1)
        at = re.match(r"-- at: (\S+)\n", sql)
        sql = sql[at.end():] if at else sql
        sql = sql.strip().rstrip(";")
        assert not re.search(r"^--", sql, re.M) and (":at" in sql) == bool(at), name
        out.write("  { %s, %s, %s,\n    %s },\n"
                  % (quote(name), quote(help.strip()), quote(at.group(1)) if at else "NULL", quote(expand(sql))))
    out.write("};\n")
