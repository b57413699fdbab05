/* SPDX-License-Identifier: Apache-2.0 */
/* Reader: one SELECT of the user's. It cannot write, attach files or load code, and is stopped after
 * its time. */
#include <string.h>

#include "trace/reader-private.h"

static int
authorize (void *user, int action, const char *a, const char *b, const char *db, const char *trigger)
{
  switch (action)
    {
    case SQLITE_SELECT:
    case SQLITE_READ:
    case SQLITE_RECURSIVE:
      return SQLITE_OK;
    case SQLITE_FUNCTION:
      return b != NULL && g_ascii_strcasecmp (b, "load_extension") == 0 ? SQLITE_DENY : SQLITE_OK;
    default:
      return SQLITE_DENY;
    }
}

static int
out_of_time (void *user)
{
  return g_get_monotonic_time () > *(const gint64 *) user;
}

static gboolean
query_error (CoopReader *reader, GError **error, int code, double seconds)
{
  g_autofree char *why = coop_reader_failure (reader, code);
  if (code == SQLITE_CORRUPT || code == SQLITE_NOTADB)
    g_set_error (error, COOP_TRACE_ERROR, COOP_TRACE_ERROR_IO, "%s: %s", reader->path, why);
  else if (code == SQLITE_INTERRUPT)
    g_set_error (error, COOP_TRACE_ERROR, COOP_TRACE_ERROR_QUERY, "stopped after %g s", seconds);
  else if (code == SQLITE_AUTH)
    g_set_error (error, COOP_TRACE_ERROR, COOP_TRACE_ERROR_QUERY, "only SELECT is allowed");
  else
    g_set_error (error, COOP_TRACE_ERROR, COOP_TRACE_ERROR_QUERY, "%s", why);
  return FALSE;
}

const char *
coop_real_text (char *text, double value)
{
  for (guint digits = 15; digits < 17; digits++)
    {
      char format[8];
      g_snprintf (format, sizeof format, "%%.%ug", digits);
      if (g_ascii_strtod (g_ascii_formatd (text, G_ASCII_DTOSTR_BUF_SIZE, format, value), NULL) == value)
        return text;
    }
  return g_ascii_dtostr (text, G_ASCII_DTOSTR_BUF_SIZE, value);
}

/* SQLite's text of a number, unless it is not that number: it has 15 digits, and a double may need 17. */
static const char *
text_of (sqlite3_stmt *statement, int i, char **exact)
{
  gboolean real = sqlite3_column_type (statement, i) == SQLITE_FLOAT;
  double value = real ? sqlite3_column_double (statement, i) : 0;
  const char *text = (const char *) sqlite3_column_text (statement, i);
  if (!real || text == NULL || g_ascii_strtod (text, NULL) == value)
    return text;
  if (*exact == NULL)
    *exact = g_malloc (G_ASCII_DTOSTR_BUF_SIZE);
  return coop_real_text (*exact, value);
}

static gboolean
run (CoopReader *reader, sqlite3_stmt *statement, double seconds, CoopRow row, gpointer user, GError **error)
{
  int n = sqlite3_column_count (statement), result;
  g_autofree const char **names = g_new0 (const char *, n + 1);
  g_autofree const char **values = g_new0 (const char *, n + 1);
  g_autofree int *types = g_new0 (int, n + 1);
  g_autofree char **exact = g_new0 (char *, n + 1);
  gboolean more = TRUE;
  for (int i = 0; i < n; i++)
    names[i] = sqlite3_column_name (statement, i);
  while ((result = sqlite3_step (statement)) == SQLITE_ROW)
    {
      for (int i = 0; i < n; i++)
        {
          types[i] = sqlite3_column_type (statement, i);
          values[i] = types[i] == SQLITE_NULL ? NULL : text_of (statement, i, &exact[i]);
        }
      more = row (user, n, names, values, types);
      if (!more)
        break;
    }
  for (int i = 0; i < n; i++)
    g_clear_pointer (&exact[i], g_free);
  return !more || result == SQLITE_DONE || query_error (reader, error, result, seconds);
}

gboolean
coop_reader_query (CoopReader *reader, const char *sql, double seconds, CoopRow row, gpointer user,
                   GError **error)
{
  gint64 deadline = g_get_monotonic_time () + (gint64) (seconds * 1e6);
  sqlite3_stmt *statement = NULL;
  const char *tail = NULL;
  gboolean done = FALSE;
  /* Table-valued functions come into being at their first use, by what looks like a write. */
  sqlite3_prepare_v2 (reader->db, "SELECT 1 FROM json_each ('[]'), json_tree ('[]')", -1, &statement, NULL);
  sqlite3_finalize (statement);
  statement = NULL;
  sqlite3_set_authorizer (reader->db, authorize, NULL);
  sqlite3_progress_handler (reader->db, 1000, out_of_time, &deadline);
  int result = sqlite3_prepare_v2 (reader->db, sql, -1, &statement, &tail);
  if (result != SQLITE_OK)
    query_error (reader, error, result, seconds);
  else if (statement == NULL)
    g_set_error (error, COOP_TRACE_ERROR, COOP_TRACE_ERROR_QUERY, "there is no statement");
  else if (tail != NULL && strspn (tail, " \t\r\n;") != strlen (tail))
    g_set_error (error, COOP_TRACE_ERROR, COOP_TRACE_ERROR_QUERY, "one statement at a time");
  else
    done = run (reader, statement, seconds, row, user, error);
  sqlite3_finalize (statement);
  sqlite3_progress_handler (reader->db, 0, NULL, NULL);
  sqlite3_set_authorizer (reader->db, NULL, NULL);
  return done;
}

void
coop_reader_interrupt (CoopReader *reader)
{
  sqlite3_interrupt (reader->db);
}
