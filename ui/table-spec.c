/* SPDX-License-Identifier: Apache-2.0 */
/* Table specs: see the header. */
#include "config.h"

#include "table-spec.h"

#include <gio/gio.h>
#include <glib/gi18n.h>
#include <string.h>

#include "core/policy.h"
#include "format.h"

#define OPERATOR "replace(replace(n.text, 'aten.', ''), '.default', '')"
/* Path without folders, as the map says it. */
#define FILE_NAME "replace(f.text, rtrim(f.text, replace(f.text, '/', '')), '')"

const CoopTableSpec coop_table_specs[] = {
  { "all-events", N_("All Events"),
    "event e LEFT JOIN enum_label k ON k.enum = 'event' AND k.value = e.kind"
    " LEFT JOIN tensor t ON t.id = e.tensor LEFT JOIN op o ON o.id = coalesce(e.op, t.op)"
    " LEFT JOIN string n ON n.id = o.name",
    NULL, "e.seq", "e.block", "e.seq", -1, FALSE,
    { { "event", N_("Event"), "e.seq", COOP_CELL_COUNT, FALSE },
      { "time", N_("Time"), "e.ts", COOP_CELL_SECONDS, FALSE },
      { "what", N_("What"), "k.label", COOP_CELL_TEXT, FALSE },
      { "operator", N_("Operator"), OPERATOR, COOP_CELL_TEXT, TRUE },
      { "size", N_("Size"), "e.bytes", COOP_CELL_BYTES, FALSE },
      { "address", N_("Address"), "e.addr", COOP_CELL_ADDR, FALSE },
      { "block", N_("Block"), "e.block", COOP_CELL_COUNT, FALSE },
      { "tensor", N_("Tensor"), "e.tensor", COOP_CELL_COUNT, FALSE },
      { "used", N_("Used After"), "e.used", COOP_CELL_BYTES, FALSE } } },
  { "all-blocks", N_("All Blocks"),
    "block b LEFT JOIN tensor t ON t.id = b.tensor LEFT JOIN string d ON d.id = t.dtype"
    " LEFT JOIN enum_label k ON k.enum = 'kind' AND k.value = t.kind"
    " LEFT JOIN op o ON o.id = coalesce(t.op, b.op) LEFT JOIN string n ON n.id = o.name"
    " LEFT JOIN enum_label e ON e.enum = 'event' AND e.value = b.ended",
    NULL, "b.id", "b.id", "b.born_event", -1, FALSE,
    { { "block", N_("Block"), "b.id", COOP_CELL_COUNT, FALSE },
      { "size", N_("Size"), "b.bytes", COOP_CELL_BYTES, FALSE },
      { "address", N_("Address"), "b.addr", COOP_CELL_ADDR, FALSE },
      { "kind", N_("Kind"), "k.label", COOP_CELL_TEXT, FALSE },
      { "shape", N_("Shape"), "d.text || ' ' || t.shape", COOP_CELL_TEXT, FALSE },
      { "operator", N_("Operator"), OPERATOR, COOP_CELL_TEXT, TRUE },
      { "born", N_("Born"), "b.born_ns", COOP_CELL_SECONDS, FALSE },
      { "life", N_("Life"), "b.died_ns - b.born_ns", COOP_CELL_NS, FALSE },
      { "end", N_("Ended By"), "e.label", COOP_CELL_TEXT, FALSE },
      { "tensor", N_("Tensor"), "b.tensor", COOP_CELL_COUNT, FALSE } } },
  { "operators", N_("Operators"), "op o LEFT JOIN string n ON n.id = o.name", "o.name", NULL, NULL,
    "min(o.begin_event)", 3, TRUE,
    { { "operator", N_("Operator"), OPERATOR, COOP_CELL_TEXT, TRUE },
      { "runs", N_("Runs"), "count(*)", COOP_CELL_COUNT, FALSE },
      { "again", N_("Run Again"), "sum(o.replay_of IS NOT NULL)", COOP_CELL_COUNT, FALSE },
      { "total", N_("Time in All"), "sum(o.duration_ns)", COOP_CELL_NS, FALSE },
      { "each", N_("Time Each"), "avg(o.duration_ns)", COOP_CELL_NS, FALSE },
      { "wasted", N_("Time Run Again"), "sum(iif(o.replay_of IS NOT NULL, o.duration_ns, 0))", COOP_CELL_NS, FALSE },
      { "workspace", N_("Most Workspace"), "max(o.workspace)", COOP_CELL_BYTES, FALSE } } },
  { "evictions", N_("Evictions"),
    "eviction v LEFT JOIN event e ON e.seq = v.event LEFT JOIN op o ON o.id = v.op"
    " LEFT JOIN string n ON n.id = o.name",
    NULL, "v.id", NULL, "v.event", -1, FALSE,
    { { "event", N_("Event"), "v.event", COOP_CELL_COUNT, FALSE },
      { "time", N_("Time"), "e.ts", COOP_CELL_SECONDS, FALSE },
      { "need", N_("Asked For"), "v.need", COOP_CELL_BYTES, FALSE },
      { "victims", N_("Victims"), "v.victims", COOP_CELL_COUNT, FALSE },
      { "gone", N_("Evicted"), "(SELECT sum(x.bytes) FROM evicted x WHERE x.eviction = v.id)", COOP_CELL_BYTES,
        FALSE },
      { "h", N_("h"), "v.cost", COOP_CELL_REAL, FALSE },
      { "next", N_("Runner-up"), "v.next_cost", COOP_CELL_REAL, FALSE },
      { "search", N_("Search"), "v.search_ns", COOP_CELL_NS, FALSE },
      { "free", N_("Free Before"), "v.free_before", COOP_CELL_BYTES, FALSE },
      { "largest", N_("Largest Hole"), "v.largest_before", COOP_CELL_BYTES, FALSE },
      { "operator", N_("Operator"), OPERATOR, COOP_CELL_TEXT, TRUE } } },
  { "lines", N_("Lines"),
    "op o JOIN stack s ON s.id = o.stack JOIN frame fr ON fr.id = s.frame LEFT JOIN string f ON f.id = fr.file"
    " LEFT JOIN string fn ON fn.id = fr.func"
    " LEFT JOIN (SELECT op, sum(bytes) AS bytes, count(*) AS n FROM tensor WHERE op IS NOT NULL GROUP BY op) t"
    " ON t.op = o.id"
    " LEFT JOIN (SELECT y.op AS op, sum(x.bytes) AS bytes FROM evicted x JOIN tensor y ON y.id = x.tensor"
    " GROUP BY y.op) w ON w.op = o.id",
    "fr.id", NULL, NULL, "min(o.begin_event)", 2, TRUE,
    { { "line", N_("Line"), FILE_NAME " || ':' || fr.line", COOP_CELL_TEXT, TRUE },
      { "function", N_("Function"), "fn.text", COOP_CELL_TEXT, FALSE },
      { "made", N_("Tensors Made"), "sum(t.bytes)", COOP_CELL_BYTES, FALSE },
      { "evicted", N_("Evicted"), "sum(w.bytes)", COOP_CELL_BYTES, FALSE },
      { "runs", N_("Operators Run"), "count(*)", COOP_CELL_COUNT, FALSE },
      { "again", N_("Run Again"), "sum(o.replay_of IS NOT NULL)", COOP_CELL_COUNT, FALSE },
      { "total", N_("Time in All"), "sum(o.duration_ns)", COOP_CELL_NS, FALSE } } },
};
const guint coop_n_table_specs = G_N_ELEMENTS (coop_table_specs);

char *
coop_cell_format (CoopCellKind kind, const char *value)
{
  if (!value)
    return g_strdup ("");
  switch (kind)
    {
    case COOP_CELL_COUNT:
      return coop_format_count (g_ascii_strtoull (value, NULL, 10));
    case COOP_CELL_BYTES:
      return coop_format_bytes (g_ascii_strtoull (value, NULL, 10));
    case COOP_CELL_NS:
      return coop_format_ns ((guint64) g_ascii_strtod (value, NULL));
    case COOP_CELL_SECONDS:
      return g_strdup_printf ("%.4f s", g_ascii_strtod (value, NULL) / 1e9);
    case COOP_CELL_ADDR:
      return coop_format_addr (g_ascii_strtoull (value, NULL, 10));
    case COOP_CELL_REAL:
      return g_strdup_printf ("%.3g", g_ascii_strtod (value, NULL));
    case COOP_CELL_TEXT:
      break;
    }
  return g_strdup (value);
}

/* ---- filters ---- */

static char *
quoted (const char *text)
{
  g_auto (GStrv) parts = g_strsplit (text, "'", -1);
  g_autofree char *joined = g_strjoinv ("''", parts);
  return g_strconcat ("'", joined, "'", NULL);
}

/* % and _ as themselves. */
static char *
like (const char *text)
{
  GString *pattern = g_string_new ("%");
  for (const char *c = text; *c; c++)
    {
      if (strchr ("%_\\", *c))
        g_string_append_c (pattern, '\\');
      g_string_append_c (pattern, *c);
    }
  g_string_append_c (pattern, '%');
  g_autofree char *whole = g_string_free (pattern, FALSE);
  return quoted (whole);
}

static gboolean
read_ns (const char *text, double *value)
{
  static const struct { const char *unit; double ns; } units[]
      = { { "", 1 }, { "ns", 1 }, { "us", 1e3 }, { "µs", 1e3 }, { "ms", 1e6 }, { "s", 1e9 } };
  char *end;
  double number = g_ascii_strtod (text, &end);
  for (gsize i = 0; i < G_N_ELEMENTS (units) && end != text; i++)
    if (g_str_equal (end, units[i].unit))
      {
        *value = number * units[i].ns;
        return TRUE;
      }
  return FALSE;
}

/* A number as SQL, or NULL. */
static char *
number_for (CoopCellKind kind, const char *text)
{
  char buffer[G_ASCII_DTOSTR_BUF_SIZE], *end;
  guint64 bytes;
  double value;
  if (kind == COOP_CELL_BYTES)
    return coop_size_parse (text, &bytes) == COOP_PARSE_OK ? g_strdup_printf ("%" G_GUINT64_FORMAT, bytes) : NULL;
  if (kind == COOP_CELL_NS || kind == COOP_CELL_SECONDS)
    return read_ns (text, &value) ? g_strdup (g_ascii_dtostr (buffer, sizeof buffer, value)) : NULL;
  if (kind == COOP_CELL_ADDR)
    {
      bytes = g_ascii_strtoull (text, &end, 0);
      return end != text && *end == '\0' ? g_strdup_printf ("%" G_GUINT64_FORMAT, bytes) : NULL;
    }
  value = g_ascii_strtod (text, &end);
  return end != text && *end == '\0' ? g_strdup (g_ascii_dtostr (buffer, sizeof buffer, value)) : NULL;
}

static const CoopColumnSpec *
find_column (const CoopTableSpec *spec, const char *id, gsize length)
{
  for (const CoopColumnSpec *column = spec->columns; column->id; column++)
    if (strlen (column->id) == length && g_ascii_strncasecmp (column->id, id, length) == 0)
      return column;
  return NULL;
}

static char *
known_columns (const CoopTableSpec *spec)
{
  GString *names = g_string_new (NULL);
  for (const CoopColumnSpec *column = spec->columns; column->id; column++)
    g_string_append_printf (names, "%s%s", names->len > 0 ? ", " : "", column->id);
  return g_string_free (names, FALSE);
}

static char *
bare_word (const CoopTableSpec *spec, const char *word)
{
  g_autofree char *pattern = like (word);
  GString *sql = g_string_new ("(");
  for (const CoopColumnSpec *column = spec->columns; column->id; column++)
    if (column->kind == COOP_CELL_TEXT)
      g_string_append_printf (sql, "%s%s LIKE %s ESCAPE '\\'", sql->len > 1 ? " OR " : "", column->sql, pattern);
  g_string_append_c (sql, ')');
  return g_string_free (sql, FALSE);
}

static char *
condition (const CoopTableSpec *spec, const char *word, GError **error)
{
  gsize length = strcspn (word, "<>=!~");
  gsize sign = strspn (word + length, "<>=!~");
  if (sign == 0)
    return bare_word (spec, word);
  const CoopColumnSpec *column = find_column (spec, word, length);
  if (!column)
    {
      g_autofree char *known = known_columns (spec);
      g_set_error (error, G_IO_ERROR, G_IO_ERROR_INVALID_ARGUMENT,
                   /* Translators: a word and a list of words, all English in every language */
                   _("No column is called “%.*s”. There are: %s."), (int) length, word, known);
      return NULL;
    }
  g_autofree char *op = g_strndup (word + length, sign);
  const char *value = word + length + sign;
  static const char *const ops[] = { "=", "!=", "<", ">", "<=", ">=", "~", NULL };
  g_autofree char *sql = NULL;
  if (g_str_equal (op, "~"))
    sql = like (value);
  else if (column->kind == COOP_CELL_TEXT)
    sql = quoted (value);
  else
    sql = number_for (column->kind, value);
  if (!sql || !g_strv_contains (ops, op))
    {
      g_set_error (error, G_IO_ERROR, G_IO_ERROR_INVALID_ARGUMENT, _("“%s” is not understood."), word);
      return NULL;
    }
  if (g_str_equal (op, "~"))
    return g_strdup_printf ("%s LIKE %s ESCAPE '\\'", column->sql, sql);
  return g_strdup_printf ("%s %s %s", column->sql, op, sql);
}

char *
coop_filter_to_sql (const CoopTableSpec *spec, const char *text, GError **error)
{
  g_auto (GStrv) words = g_strsplit_set (text ? text : "", " \t", -1);
  GString *sql = g_string_new (NULL);
  for (char **word = words; *word; word++)
    {
      if (!**word)
        continue;
      g_autofree char *one = condition (spec, *word, error);
      if (!one)
        {
          g_string_free (sql, TRUE);
          return NULL;
        }
      g_string_append_printf (sql, "%s%s", sql->len > 0 ? " AND " : "", one);
    }
  return g_string_free (sql, FALSE);
}
