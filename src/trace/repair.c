/* SPDX-License-Identifier: Apache-2.0 */
/* Repair: what a writer would have written at its end. The events are gone through once as if they were
 * recorded again, without a row being written; what has not ended then gets its rows, and the file is
 * closed as any other. */
#include "trace/reader-private.h"
#include "trace/store-private.h"

#include <string.h>

#include "sql.h"

typedef struct {
  CoopStore *store;
  CoopModel *model;  /* at the end; texts for the rows come from it */
  GPtrArray *done;
  gint64 state, exit_code, start_ns;
} Repair;

static gint64
one_int (sqlite3 *db, const char *sql, gint64 otherwise)
{
  sqlite3_stmt *row = NULL;
  gint64 value = otherwise;
  if (sqlite3_prepare_v2 (db, sql, -1, &row, NULL) == SQLITE_OK && sqlite3_step (row) == SQLITE_ROW
      && sqlite3_column_type (row, 0) != SQLITE_NULL)
    value = sqlite3_column_int64 (row, 0);
  sqlite3_finalize (row);
  return value;
}

static void
say (Repair *r, const char *format, ...) G_GNUC_PRINTF (2, 3);

static void
say (Repair *r, const char *format, ...)
{
  va_list args;
  va_start (args, format);
  g_ptr_array_add (r->done, g_strdup_vprintf (format, args));
  va_end (args);
}

static gboolean
fail (Repair *r, GError **error)
{
  g_set_error (error, COOP_TRACE_ERROR, COOP_TRACE_ERROR_IO, "%s: %s", r->store->path, sqlite3_errmsg (r->store->db));
  return FALSE;
}

static gboolean
is_sound (Repair *r, GError **error)
{
  sqlite3_stmt *row = NULL;
  if (sqlite3_prepare_v2 (r->store->db, "PRAGMA integrity_check (1)", -1, &row, NULL) != SQLITE_OK)
    return fail (r, error);
  const char *text = sqlite3_step (row) == SQLITE_ROW ? (const char *) sqlite3_column_text (row, 0) : "unreadable";
  gboolean sound = g_strcmp0 (text, "ok") == 0;
  if (!sound)
    g_set_error (error, COOP_TRACE_ERROR, COOP_TRACE_ERROR_IO, "%s: damaged beyond repair: %s", r->store->path, text);
  sqlite3_finalize (row);
  return sound;
}

static gboolean
update_schema (Repair *r, GError **error)
{
  gint64 version = one_int (r->store->db, "PRAGMA user_version", 0);
  if (version == COOP_SCHEMA_VERSION)
    return TRUE;
  if (!coop_migrate_in_place (r->store->db, (guint) MAX (version, 0), error))
    return FALSE;
  say (r, "its schema was version %d, and is %d now", (int) version, COOP_SCHEMA_VERSION);
  return TRUE;
}

/* Layouts that cannot be read, or are of another moment. */
static gboolean
drop_layouts (Repair *r, GError **error)
{
  g_autoptr (GArray) bad = g_array_new (FALSE, FALSE, sizeof (gint64));
  sqlite3_stmt *row = NULL;
  if (sqlite3_prepare_v2 (r->store->db, "SELECT event, model FROM layout_keyframe", -1, &row, NULL) != SQLITE_OK)
    return fail (r, error);
  while (sqlite3_step (row) == SQLITE_ROW)
    {
      gint64 event = sqlite3_column_int64 (row, 0);
      g_autoptr (GBytes) bytes = g_bytes_new (sqlite3_column_blob (row, 1), (gsize) sqlite3_column_bytes (row, 1));
      CoopModel *model = coop_model_load (bytes, NULL);
      if (model == NULL || coop_model_totals (model)->seq != (guint64) event)
        g_array_append_val (bad, event);
      coop_model_free (model);
    }
  sqlite3_finalize (row);
  for (guint i = 0; i < bad->len; i++)
    {
      g_autofree char *sql = g_strdup_printf ("DELETE FROM layout_keyframe WHERE event = %" G_GINT64_FORMAT,
                                              g_array_index (bad, gint64, i));
      if (sqlite3_exec (r->store->db, sql, NULL, NULL, NULL) != SQLITE_OK)
        return fail (r, error);
    }
  if (bad->len > 0)
    say (r, "%u layouts could not be read, and are gone; it takes a little longer to come to these moments", bad->len);
  return TRUE;
}

/* ---- ends ---- */

static gboolean
follow (gpointer user, const CoopEvent *ev, const void *body)
{
  Repair *r = user;
  coop_store_rows (r->store, r->model, ev, body);
  return TRUE;
}

static gboolean
find_ends (Repair *r, GError **error)
{
  CoopReader *reader = coop_reader_open (r->store->path, error);
  if (reader == NULL)
    return FALSE;
  r->model = coop_reader_model_at (reader, G_MAXINT64, error);
  r->store->mute = TRUE;
  gboolean ok = r->model != NULL && coop_reader_events (reader, 0, follow, r, error) >= 0;
  r->store->mute = FALSE;
  coop_reader_free (reader);
  if (!ok)
    return FALSE;
  r->store->totals = *coop_model_totals (r->model);
  say (r, "the run was interrupted after event %" G_GUINT64_FORMAT "; %" G_GSIZE_FORMAT " blocks lived and %" G_GSIZE_FORMAT
       " operators ran", r->store->totals.seq, r->store->lives.n, r->store->running.n);
  r->state = COOP_RUN_INTERRUPTED;
  r->exit_code = -1;
  coop_store_set_wall (r->store, r->start_ns, r->start_ns > 0 ? r->start_ns + (gint64) r->store->totals.ts : 0);
  return TRUE;
}

/* What the totals of the file say goes on being said. */
static void
take_totals (Repair *r)
{
  sqlite3 *db = r->store->db;
  r->store->events = (guint64) one_int (db, "SELECT value FROM stat WHERE name = 'events'", 0);
  r->store->lost = (guint64) one_int (db, "SELECT value FROM stat WHERE name = 'lost_events'", 0);
  r->store->repeated = (guint64) one_int (db, "SELECT value FROM stat WHERE name = 'repeated_events'", 0);
  r->store->trimmed = (guint64) one_int (db, "SELECT value FROM stat WHERE name = 'trimmed_events'", 0);
  r->store->trimmed_ns = (guint64) one_int (db, "SELECT value FROM stat WHERE name = 'trimmed_ns'", 0);
  r->store->base = one_int (db, "SELECT value FROM stat WHERE name = 'trimmed_to'", -1);
  gint64 peak = one_int (db, "SELECT value FROM stat WHERE name = 'peak_event'", -1);
  if (peak < 0)
    peak = one_int (db, "SELECT seq FROM event WHERE used = (SELECT value FROM stat WHERE name = 'peak') ORDER BY seq LIMIT 1", 0);
  r->store->peak_seq = (guint64) peak;
  r->start_ns = one_int (db, "SELECT start_ns FROM session", 0);
  r->state = one_int (db, "SELECT state FROM session", COOP_RUN_RUNNING);
  r->exit_code = one_int (db, "SELECT exit_code FROM session", -1);
  r->store->walled = TRUE;
  r->store->end_ns = one_int (db, "SELECT end_ns FROM session", 0);
}

static gboolean
keep_totals (Repair *r, GError **error)
{
  CoopReader *reader = coop_reader_open (r->store->path, error);
  CoopModel *model = reader != NULL ? coop_reader_model_at (reader, G_MAXINT64, error) : NULL;
  if (model != NULL)
    r->store->totals = *coop_model_totals (model);
  coop_reader_free (reader);
  coop_model_free (model);
  return model != NULL;
}

static guint
missing_indexes (sqlite3 *db)
{
  guint wanted = 0;
  for (const char *at = coop_sql_index; (at = strstr (at, "CREATE INDEX")) != NULL; at++)
    wanted++;
  gint64 there = one_int (db, "SELECT count(*) FROM sqlite_schema WHERE type = 'index' AND sql IS NOT NULL", 0);
  return there < wanted ? wanted - (guint) there : 0;
}

static gboolean
repair_all (Repair *r, GError **error)
{
  if (sqlite3_open_v2 (r->store->path, &r->store->db, SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX, NULL) != SQLITE_OK)
    return fail (r, error);
  sqlite3_busy_timeout (r->store->db, 2000);
  if (!is_sound (r, error) || !update_schema (r, error) || !drop_layouts (r, error))
    return FALSE;
  coop_store_prepare (r->store);
  take_totals (r);
  guint indexes = missing_indexes (r->store->db);
  if (!(r->state == COOP_RUN_RUNNING ? find_ends (r, error) : keep_totals (r, error)))
    return FALSE;
  if (indexes > 0)
    say (r, "%u indexes were missing", indexes);
  return TRUE;
}

gboolean
coop_repair (const char *path, GPtrArray *done, GError **error)
{
  if (!coop_trace_identify (path, error))
    return FALSE;
  int fd = coop_store_lock (path, error);
  if (fd < 0)
    return FALSE;
  Repair r = { .store = coop_store_new (path, fd), .done = done };
  gboolean ok = repair_all (&r, error);
  if (ok && done->len > 0)
    ok = coop_store_close (r.store, (CoopRunState) r.state, (int) r.exit_code, error);
  else
    coop_store_free (r.store);
  coop_model_free (r.model);
  return ok;
}
