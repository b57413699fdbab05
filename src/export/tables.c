/* SPDX-License-Identifier: Apache-2.0 */
/* CSV and JSON lines: the rows of the public views, and of the small tables that have none.
 *
 * CSV is RFC 4180 with a line of names; NULL is an empty field, an empty text is "". JSON lines have the
 * view in "view"; lists of numbers are arrays. */
#include "export/export-private.h"

#include <errno.h>
#include <glib/gstdio.h>
#include <string.h>

enum { TYPE_INTEGER = 1, TYPE_REAL = 2, TYPE_TEXT = 3, TYPE_BLOB = 4, TYPE_NULL = 5 };

#define VIEWS                                                                                       \
  "SELECT name FROM sqlite_schema WHERE type = 'view' AND name GLOB 'v_*'"                          \
  " UNION ALL SELECT name FROM sqlite_schema t WHERE type = 'table' AND name IN"                    \
  " ('meta', 'session', 'stat', 'pool', 'segment', 'step', 'gap')"                                  \
  " AND NOT EXISTS (SELECT 1 FROM sqlite_schema v WHERE v.name = 'v_' || t.name)"
/* Their texts are in table string. */
#define ANNOTATION "SELECT a.event, a.ts AS ts_ns, s.text FROM annotation a LEFT JOIN string s ON s.id = a.string"
#define WARNING "SELECT w.event, e.ts AS ts_ns, w.text, w.tensor, w.op FROM warning w LEFT JOIN event e ON e.seq = w.event"

typedef struct {
  const CoopExportJob *job;
  const char *view;
  CoopOut *out;
  GString *line;
  gboolean headed;
} Rows;

static const char *
text_of (Rows *rows, const char *column, const char *const *values, int i)
{
  if (g_str_equal (rows->view, "meta") && g_str_equal (column, "value"))
    return coop_anonymise_meta (rows->job->anonymiser, values[0], values[i]);
  return coop_anonymise_text (rows->job->anonymiser, values[i]);
}

/* ---- CSV ---- */

static void
csv_field (GString *line, const char *text)
{
  if (*text != 0 && strpbrk (text, ",\"\n") == NULL)
    {
      g_string_append (line, text);
      return;
    }
  g_string_append_c (line, '"');
  for (; *text != 0; text++)
    {
      if (*text == '"')
        g_string_append_c (line, '"');
      g_string_append_c (line, *text);
    }
  g_string_append_c (line, '"');
}

static gboolean
csv_row (gpointer user, int n, const char *const *names, const char *const *values, const int *types)
{
  Rows *rows = user;
  g_string_truncate (rows->line, 0);
  for (int i = 0; !rows->headed && i < n; i++)
    g_string_append_printf (rows->line, "%s%s", i > 0 ? "," : "", names[i]);
  if (!rows->headed)
    g_string_append (rows->line, "\n");
  rows->headed = TRUE;
  for (int i = 0; i < n; i++)
    {
      if (i > 0)
        g_string_append_c (rows->line, ',');
      if (types[i] == TYPE_TEXT)
        csv_field (rows->line, text_of (rows, names[i], values, i));
      else if (types[i] != TYPE_NULL && types[i] != TYPE_BLOB)
        g_string_append (rows->line, values[i]);
    }
  g_string_append (rows->line, "\n");
  coop_out_write (rows->out, rows->line->str, rows->line->len);
  return coop_out_ok (rows->out);
}

/* The names of a view without rows, from one row of NULLs. */
static gboolean
csv_names (gpointer user, int n, const char *const *names, const char *const *values, const int *types)
{
  Rows *rows = user;
  for (int i = 0; i < n; i++)
    coop_out_printf (rows->out, "%s%s", i > 0 ? "," : "", names[i]);
  coop_out_text (rows->out, "\n");
  return FALSE;
}

static gboolean
csv_file (const CoopExportJob *job, const char *view, const char *select, GError **error)
{
  const char *bare = g_str_has_prefix (view, "v_") ? view + 2 : view;
  g_autofree char *name = g_strconcat (bare, ".csv", NULL);
  g_autofree char *path = g_build_filename (job->to, name, NULL);
  Rows rows = { .job = job, .view = view };
  rows.out = coop_out_open (path, job->options->replace, job->options->stop, error);
  if (rows.out == NULL)
    return FALSE;
  rows.line = g_string_new (NULL);
  gboolean done = coop_reader_query (job->reader, select, COOP_QUERY_SECONDS, csv_row, &rows, error);
  if (done && !rows.headed)
    {
      g_autofree char *sql = g_strdup_printf ("SELECT v.* FROM (SELECT 1) LEFT JOIN (SELECT * FROM (%s) LIMIT 0) v ON 1", select);
      done = coop_reader_query (job->reader, sql, COOP_QUERY_SECONDS, csv_names, &rows, error);
    }
  g_string_free (rows.line, TRUE);
  return coop_out_close (rows.out, done, error) && done;
}

/* ---- JSON lines ---- */

static void
json_value (Rows *rows, const char *name, const char *const *values, int i, int type)
{
  gboolean list = g_str_equal (name, "inputs") || g_str_equal (name, "outputs") || g_str_equal (name, "shape");
  if (type == TYPE_NULL || type == TYPE_BLOB)
    g_string_append (rows->line, "null");
  else if (type == TYPE_INTEGER || (list && values[i][0] == '['))
    g_string_append (rows->line, values[i]);
  else if (type == TYPE_REAL)
    coop_json_double (rows->line, g_ascii_strtod (values[i], NULL));
  else
    coop_json_quote (rows->line, text_of (rows, name, values, i));
}

static gboolean
json_row (gpointer user, int n, const char *const *names, const char *const *values, const int *types)
{
  Rows *rows = user;
  g_string_assign (rows->line, "{\"view\":");
  coop_json_quote (rows->line, rows->view);
  for (int i = 0; i < n; i++)
    {
      g_string_append_c (rows->line, ',');
      coop_json_quote (rows->line, names[i]);
      g_string_append_c (rows->line, ':');
      json_value (rows, names[i], values, i, types[i]);
    }
  g_string_append (rows->line, "}\n");
  coop_out_write (rows->out, rows->line->str, rows->line->len);
  return coop_out_ok (rows->out);
}

/* ---- both ---- */

static gboolean
take_name (gpointer user, int n, const char *const *names, const char *const *values, const int *types)
{
  g_ptr_array_add (user, g_strdup (values[0]));
  return TRUE;
}

typedef gboolean (*EachView) (const CoopExportJob *job, const char *view, const char *select, gpointer user, GError **error);

static gboolean
each_view (const CoopExportJob *job, EachView each, gpointer user, GError **error)
{
  g_autoptr (GPtrArray) views = g_ptr_array_new_with_free_func (g_free);
  if (!coop_reader_query (job->reader, VIEWS, COOP_QUERY_SECONDS, take_name, views, error))
    return FALSE;
  for (guint i = 0; i < views->len; i++)
    {
      g_autofree char *select = g_strdup_printf ("SELECT * FROM \"%s\"", (const char *) views->pdata[i]);
      if (!each (job, views->pdata[i], select, user, error))
        return FALSE;
    }
  return each (job, "annotation", ANNOTATION, user, error) && each (job, "warning", WARNING, user, error);
}

static gboolean
csv_each (const CoopExportJob *job, const char *view, const char *select, gpointer user, GError **error)
{
  return csv_file (job, view, select, error);
}

static gboolean
json_each (const CoopExportJob *job, const char *view, const char *select, gpointer out, GError **error)
{
  Rows rows = { .job = job, .view = view, .out = out };
  rows.line = g_string_new (NULL);
  gboolean done = coop_reader_query (job->reader, select, COOP_QUERY_SECONDS, json_row, &rows, error);
  g_string_free (rows.line, TRUE);
  return done && coop_out_ok (out);
}

/* One that was made here, with what was written into it. */
static void
remove_folder (const char *path)
{
  GDir *dir = g_dir_open (path, 0, NULL);
  for (const char *name; dir != NULL && (name = g_dir_read_name (dir)) != NULL;)
    {
      g_autofree char *file = g_build_filename (path, name, NULL);
      g_unlink (file);
    }
  g_clear_pointer (&dir, g_dir_close);
  g_rmdir (path);
}

gboolean
coop_export_csv (const CoopExportJob *job, GError **error)
{
  gboolean there = g_file_test (job->to, G_FILE_TEST_EXISTS);
  if (there && !job->options->replace)
    {
      g_set_error (error, G_IO_ERROR, G_IO_ERROR_EXISTS, "%s is there already", job->to);
      return FALSE;
    }
  if (!there && g_mkdir (job->to, 0777) != 0)
    {
      g_set_error (error, G_IO_ERROR, g_io_error_from_errno (errno), "%s: %s", job->to, g_strerror (errno));
      return FALSE;
    }
  gboolean done = each_view (job, csv_each, NULL, error);
  if (!done && !there)
    remove_folder (job->to);
  return done;
}

gboolean
coop_export_jsonl (const CoopExportJob *job, CoopOut *out, GError **error)
{
  return each_view (job, json_each, out, error);
}
