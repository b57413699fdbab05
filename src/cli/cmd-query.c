/* SPDX-License-Identifier: Apache-2.0 */
/* coop query: one SELECT on a trace, or one that has a name, as a table, CSV or JSON. */
#include "cli.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "trace/instant.h"
#include "trace/queries.h"
#include "trace/store.h"

#define NAME "query"
#define MEASURED_ROWS 1000 /* of a table, held back to find the widths of columns */
#define MAX_WIDTH 60
#define NAMED_ROWS 20      /* of a query with a name, unless told otherwise */

enum { TYPE_INTEGER = 1, TYPE_REAL = 2, TYPE_TEXT = 3, TYPE_BLOB = 4, TYPE_NULL = 5 };

typedef enum { FORM_TABLE, FORM_CSV, FORM_JSON } Form;

typedef struct {
  Form form;
  guint64 rows;
  int n;
  char **names;
  glong *widths;
  GPtrArray *held; /* char **, with the types behind: see hold() */
  GArray *types;   /* int, n a held row */
} Printer;

static const char *
text_of (const char *value, int type)
{
  return type == TYPE_NULL ? "" : type == TYPE_BLOB ? "(blob)" : value;
}

/* ---- CSV: RFC 4180, NULL is empty ---- */

static void
csv_field (const char *text, gboolean first)
{
  if (!first)
    putchar (',');
  if (strpbrk (text, ",\"\r\n") == NULL)
    {
      fputs (text, stdout);
      return;
    }
  putchar ('"');
  for (; *text != 0; text++)
    {
      if (*text == '"')
        putchar ('"');
      putchar (*text);
    }
  putchar ('"');
}

static void
csv_row (int n, const char *const *values, const int *types)
{
  for (int i = 0; i < n; i++)
    csv_field (types != NULL ? text_of (values[i], types[i]) : values[i], i == 0);
  fputs ("\n", stdout);
}

/* ---- JSON: an array of objects, a row a line ---- */

static void
json_row (guint64 row, int n, const char *const *names, const char *const *values, const int *types)
{
  g_autoptr (GString) out = g_string_new (NULL);
  coop_json_open (out, NULL, '{');
  for (int i = 0; i < n; i++)
    switch (types[i])
      {
      case TYPE_INTEGER:
        coop_json_int (out, names[i], g_ascii_strtoll (values[i], NULL, 10));
        break;
      case TYPE_REAL:
        coop_json_real (out, names[i], g_ascii_strtod (values[i], NULL));
        break;
      case TYPE_NULL:
        coop_json_string (out, names[i], NULL);
        break;
      default:
        coop_json_string (out, names[i], text_of (values[i], types[i]));
      }
  coop_json_close (out, '}');
  printf ("%s%s", row == 0 ? "[" : ",\n", out->str);
}

/* ---- table ---- */

/* A row is one line, and a trace of somebody else's must not drive the terminal. */
static char *
table_text (const char *text)
{
  g_autofree char *valid = g_utf8_make_valid (text, -1);
  GString *out = g_string_new (NULL);
  for (const char *p = valid; *p != 0; p = g_utf8_next_char (p))
    {
      gunichar c = g_utf8_get_char (p);
      if (c == '\n' || c == '\t')
        g_string_append (out, c == '\n' ? "\\n" : "\\t");
      else if (g_unichar_iscntrl (c))
        g_string_append_printf (out, "\\x%02x", c);
      else
        g_string_append_unichar (out, c);
    }
  return g_string_free (out, FALSE);
}

static void
table_field (const Printer *p, int i, const char *text, int type)
{
  glong pad = p->widths[i] - g_utf8_strlen (text, -1);
  gboolean right = type == TYPE_INTEGER || type == TYPE_REAL;
  printf ("%s%*s%s", i > 0 ? "  " : "", right && pad > 0 ? (int) pad : 0, "", text);
  if (!right && pad > 0 && i + 1 < p->n)
    printf ("%*s", (int) pad, "");
}

static void
table_row (const Printer *p, char *const *values, const int *types)
{
  for (int i = 0; i < p->n; i++)
    table_field (p, i, values[i], types[i]);
  putchar ('\n');
}

/* Prints the names and what was held back, once the widths are known. */
static void
table_begin (Printer *p)
{
  for (int i = 0; i < p->n; i++)
    table_field (p, i, p->names[i], p->types->len > 0 ? g_array_index (p->types, int, i) : TYPE_TEXT);
  putchar ('\n');
  for (int i = 0; i < p->n; i++)
    {
      printf ("%s", i > 0 ? "  " : "");
      for (glong k = 0; k < p->widths[i]; k++)
        putchar ('-');
    }
  putchar ('\n');
  for (guint r = 0; r < p->held->len; r++)
    table_row (p, p->held->pdata[r], &g_array_index (p->types, int, r * (guint) p->n));
}

static void
table_take (Printer *p, const char *const *values, const int *types)
{
  g_auto (GStrv) row = g_new0 (char *, p->n + 1);
  for (int i = 0; i < p->n; i++)
    row[i] = table_text (types[i] == TYPE_NULL ? "NULL" : text_of (values[i], types[i]));
  if (p->rows == MEASURED_ROWS)
    table_begin (p);
  if (p->rows >= MEASURED_ROWS)
    {
      table_row (p, row, types);
      return;
    }
  for (int i = 0; i < p->n; i++)
    p->widths[i] = MIN (MAX (p->widths[i], g_utf8_strlen (row[i], -1)), MAX_WIDTH);
  g_array_append_vals (p->types, types, (guint) p->n);
  g_ptr_array_add (p->held, g_steal_pointer (&row));
}

/* ---- all ---- */

static void
begin (Printer *p, int n, const char *const *names)
{
  p->n = n;
  p->names = g_new0 (char *, n + 1);
  p->widths = g_new0 (glong, n);
  for (int i = 0; i < n; i++)
    {
      p->names[i] = g_strdup (names[i]);
      p->widths[i] = g_utf8_strlen (names[i], -1);
    }
  if (p->form == FORM_CSV)
    csv_row (n, names, NULL);
}

static gboolean
take_row (gpointer user, int n, const char *const *names, const char *const *values, const int *types)
{
  Printer *p = user;
  if (p->rows == 0)
    begin (p, n, names);
  switch (p->form)
    {
    case FORM_CSV:
      csv_row (n, values, types);
      break;
    case FORM_JSON:
      json_row (p->rows, n, names, values, types);
      break;
    case FORM_TABLE:
      table_take (p, values, types);
      break;
    }
  p->rows++;
  return !ferror (stdout);
}

static void
finish (Printer *p)
{
  if (p->form == FORM_JSON)
    printf ("%s]\n", p->rows == 0 ? "[" : "");
  else if (p->form == FORM_TABLE && p->rows > 0 && p->rows <= MEASURED_ROWS)
    table_begin (p);
  if (p->form == FORM_TABLE && isatty (STDOUT_FILENO))
    printf ("(%" G_GUINT64_FORMAT " %s)\n", p->rows, p->rows == 1 ? "row" : "rows");
}

/* ---- .schema ---- */

#define VIEWS "SELECT name FROM sqlite_schema WHERE type = 'view' AND name GLOB 'v_*' ORDER BY rowid"
/* One row of NULLs, for the names of the columns. */
#define COLUMNS "SELECT v.* FROM (SELECT 1) LEFT JOIN (SELECT * FROM \"%s\" LIMIT 0) v ON 1"

static gboolean
take_view (gpointer user, int n, const char *const *names, const char *const *values, const int *types)
{
  g_ptr_array_add (user, g_strdup (values[0]));
  return TRUE;
}

typedef struct {
  Printer *printer;
  const char *view;
} Columns;

static gboolean
take_columns (gpointer user, int n, const char *const *names, const char *const *values, const int *types)
{
  static const char *const head[] = { "view", "column", "meaning" };
  static const int texts[] = { TYPE_TEXT, TYPE_TEXT, TYPE_TEXT };
  Columns *c = user;
  for (int i = 0; i < n; i++)
    {
      const char *meaning = coop_schema_column (c->view, names[i]);
      const char *const row[] = { c->view, names[i], meaning != NULL ? meaning : "" };
      if (c->printer->form == FORM_TABLE)
        printf ("  %-16s  %s\n", row[1], row[2]);
      else
        take_row (c->printer, 3, head, row, texts);
    }
  return FALSE;
}

/* What the views' columns mean; for people under a heading a view. */
static gboolean
print_schema (CoopReader *reader, double seconds, Printer *p, GError **error)
{
  g_autoptr (GPtrArray) views = g_ptr_array_new_with_free_func (g_free);
  if (!coop_reader_query (reader, VIEWS, seconds, take_view, views, error))
    return FALSE;
  for (guint i = 0; i < views->len; i++)
    {
      Columns columns = { p, views->pdata[i] };
      const char *what = coop_schema_view (columns.view);
      g_autofree char *sql = g_strdup_printf (COLUMNS, columns.view);
      if (p->form == FORM_TABLE)
        printf ("%s%s  %s\n", i > 0 ? "\n" : "", columns.view, what != NULL ? what : "");
      if (!coop_reader_query (reader, sql, seconds, take_columns, &columns, error))
        return FALSE;
    }
  return TRUE;
}

static gboolean
is_schema (const char *sql)
{
  g_autofree char *word = g_strstrip (g_strdup (sql));
  return strcmp (word, ".schema") == 0;
}

/* ---- queries with a name ---- */

static void
print_named (void)
{
  guint n;
  const CoopNamedQuery *queries = coop_named_queries (&n);
  for (guint i = 0; i < n; i++)
    printf ("  @%-14s %s\n", queries[i].name, queries[i].help);
}

static const CoopNamedQuery *
find_named (const char *word)
{
  guint n;
  const CoopNamedQuery *query = coop_named_query (word + 1), *queries = coop_named_queries (&n);
  g_autofree const char **names = g_new0 (const char *, n + 1);
  if (query != NULL)
    return query;
  for (guint i = 0; i < n; i++)
    names[i] = queries[i].name;
  g_autofree char *low = g_ascii_strdown (word + 1, -1);
  const char *near = coop_cli_nearest (low, names);
  if (near != NULL)
    coop_cli_usage (NAME, "there is no query %s; did you mean @%s?", word, near);
  else
    coop_cli_usage (NAME, "there is no query %s; `coop query --list` lists them", word);
  return NULL;
}

/* ---- the command ---- */

typedef struct {
  const char *path, *sql;
  const CoopNamedQuery *named; /* NULL: sql is the user's own */
  const char *at;
  guint top;
  double seconds;
  gboolean show;               /* the statement, not its rows */
} Question;

static gboolean
take_missing (gpointer user, int n, const char *const *names, const char *const *values, const int *types)
{
  *(gint64 *) user = values[0] != NULL ? g_ascii_strtoll (values[0], NULL, 10) : 0;
  return FALSE;
}

/* Rows of blocks are written when their lives end, or with the end of the trace. */
static void
warn_unfinished (const Question *q, CoopReader *reader)
{
  guint64 seq = 0;
  gint64 missing = 0;
  g_autofree char *asked = q->at != NULL ? g_strdup (q->at) : g_strdup (q->named->at);
  g_auto (GStrv) names = g_strsplit (asked, "|", -1);
  for (guint i = 0; names[i] != NULL && !coop_reader_instant (reader, names[i], &seq, NULL); i++)
    continue;
  g_autofree char *sql = g_strdup_printf ("SELECT (SELECT used FROM event WHERE seq = %" G_GUINT64_FORMAT ") - (SELECT coalesce (sum (bytes), 0)"
                                          " FROM block WHERE coalesce (born_event, 0) <= %" G_GUINT64_FORMAT
                                          " AND (died_event IS NULL OR died_event > %" G_GUINT64_FORMAT "))", seq, seq, seq);
  if (!coop_reader_query (reader, sql, q->seconds, take_missing, &missing, NULL) || missing <= 0)
    return;
  g_autofree char *size = coop_cli_size ((guint64) missing);
  coop_cli_warn (NAME, "%s in use at that moment are not counted: they lived when the last row was written. The run goes on,"
                 " or was interrupted", size);
}

/* Answers can be no better than what is there. */
static void
warn_caveats (CoopReader *reader)
{
  g_autoptr (GArray) caveats = coop_reader_caveats (reader);
  for (guint i = 0; i < caveats->len; i++)
    {
      const CoopCaveat *caveat = &g_array_index (caveats, CoopCaveat, i);
      coop_cli_warn (NAME, "%s: %s", caveat->label, caveat->text);
    }
}

static gboolean
answer (const Question *q, CoopReader *reader, Printer *printer, GError **error)
{
  g_autofree char *named = NULL;
  if (is_schema (q->sql))
    return print_schema (reader, q->seconds, printer, error);
  if (q->named != NULL)
    named = coop_named_query_sql (reader, q->named, q->at, q->top, error);
  if (q->named != NULL && named == NULL)
    return FALSE;
  const char *sql = named != NULL ? named : q->sql;
  if (!q->show)
    warn_caveats (reader);
  if (q->named != NULL && q->named->at != NULL && !q->show)
    warn_unfinished (q, reader);
  if (q->show)
    return printf ("%s\n", sql) > 0;
  return coop_reader_query (reader, sql, q->seconds, take_row, printer, error);
}

static int
query (const Question *q, Form form)
{
  g_autoptr (GError) error = NULL;
  Printer printer = {
    .form = form, .held = g_ptr_array_new_with_free_func ((GDestroyNotify) g_strfreev),
    .types = g_array_new (FALSE, FALSE, sizeof (int)),
  };
  int status = COOP_EXIT_DONE;
  CoopReader *reader = coop_reader_open (q->path, &error);
  if (reader != NULL)
    coop_reader_hold (reader);
  if (reader == NULL || !answer (q, reader, &printer, &error))
    status = coop_cli_fail (NAME, "%s", error->message);
  else if (!q->show && (!is_schema (q->sql) || form != FORM_TABLE))
    finish (&printer);
  if (status == COOP_EXIT_DONE && q->named != NULL && !q->show && printer.rows == 0 && form == FORM_TABLE)
    printf ("(nothing)\n");
  if (status == COOP_EXIT_DONE && q->named != NULL && !q->show && form == FORM_TABLE && q->top > 0
      && printer.rows == q->top)
    printf ("(the first %u; --top 0 gives all)\n", q->top);
  coop_reader_free (reader);
  g_ptr_array_unref (printer.held);
  g_array_unref (printer.types);
  g_strfreev (printer.names);
  g_free (printer.widths);
  return status;
}

/* FALSE: a message was printed. */
static gboolean
check_named (Question *q, int top)
{
  gboolean named = q->sql[0] == '@';
  q->named = named ? find_named (q->sql) : NULL;
  q->top = (guint) (top == G_MININT ? NAMED_ROWS : top);
  if (named && q->named == NULL)
    return FALSE;
  if (!named && coop_named_query (q->sql) != NULL)
    coop_cli_usage (NAME, "\"%s\" is no statement; the query of that name is @%s", q->sql, q->sql);
  else if (!named && (q->at != NULL || top != G_MININT || q->show))
    coop_cli_usage (NAME, "--at, --top and --sql are for the queries with a name");
  else if (top < 0 && top != G_MININT)
    coop_cli_usage (NAME, "--top must be 0 (all) or more");
  else if (named && q->at != NULL && q->named->at == NULL)
    coop_cli_usage (NAME, "%s is about the whole run, not about an instant", q->sql);
  else
    return TRUE;
  return FALSE;
}

#define SUMMARY                                                                                     \
  "Runs one SELECT on a trace, read-only. The views v_event, v_operator, v_tensor,\n"               \
  "v_block, v_usage, v_eviction, v_evicted, v_fragmentation, v_policy and v_oom are\n"              \
  "the ones to use; `coop query FILE .schema` says what their columns mean.\n\n"                    \
  "Many questions have a name: `coop query FILE @peak`. `coop query --list` lists them,\n"          \
  "--sql shows one as a statement to start from."

int
coop_cmd_query (int argc, char **argv)
{
  gboolean csv = FALSE, json = FALSE, table = FALSE, list = FALSE;
  int top = G_MININT;
  g_autofree char *at = NULL;
  Question q = { .seconds = 60 };
  const GOptionEntry entries[] = {
    { "table", 0, 0, G_OPTION_ARG_NONE, &table, "Columns for people (default)", NULL },
    { "csv", 0, 0, G_OPTION_ARG_NONE, &csv, "Comma-separated values with a header line", NULL },
    { "json", 0, 0, G_OPTION_ARG_NONE, &json, "An array of objects", NULL },
    { "seconds", 0, 0, G_OPTION_ARG_DOUBLE, &q.seconds, "Longest time the query may take (60)", "S" },
    { "list", 0, 0, G_OPTION_ARG_NONE, &list, "List the queries with a name", NULL },
    { "at", 0, 0, G_OPTION_ARG_STRING, &at, "Of those: " COOP_INSTANTS, "INSTANT" },
    { "top", 0, 0, G_OPTION_ARG_INT, &top, "Of those: most rows (20); 0 is all", "N" },
    { "sql", 0, 0, G_OPTION_ARG_NONE, &q.show, "Of those: print the statement instead", NULL },
    G_OPTION_ENTRY_NULL
  };
  if (!coop_cli_parse ("FILE SQL", SUMMARY, entries, &argc, &argv))
    return COOP_EXIT_USAGE;
  if (list || (argc == 3 && g_str_equal (argv[2], "@")))
    {
      print_named ();
      return COOP_EXIT_DONE;
    }
  if (argc != 3)
    return coop_cli_usage (NAME, "give a trace and a SELECT or a @NAME: coop query FILE SQL");
  if (csv + json + table > 1)
    return coop_cli_usage (NAME, "--table, --csv and --json exclude each other");
  if (!(q.seconds > 0))
    return coop_cli_usage (NAME, "--seconds must be more than 0");
  q.path = argv[1];
  q.sql = argv[2];
  q.at = at;
  return check_named (&q, top) ? query (&q, csv ? FORM_CSV : json ? FORM_JSON : FORM_TABLE) : COOP_EXIT_USAGE;
}
