/* SPDX-License-Identifier: Apache-2.0 */
/* Reader: a trace, also while it is written. Every call is short: no statement stays open between
 * calls, so that the writer's log can be folded in. */
#include "trace/reader-private.h"

#include <string.h>

#include "trace/event-codec.h"
#include "trace/model-private.h"
#include "trace/store-private.h"

void
coop_reader_error (CoopReader *reader, GError **error)
{
  g_autofree char *why = coop_reader_failure (reader, sqlite3_errcode (reader->db));
  g_set_error (error, COOP_TRACE_ERROR, COOP_TRACE_ERROR_IO, "%s: %s", reader->path, why);
}

sqlite3_stmt *
coop_reader_prepare (CoopReader *reader, const char *sql, GError **error)
{
  sqlite3_stmt *statement = NULL;
  if (sqlite3_prepare_v2 (reader->db, sql, -1, &statement, NULL) != SQLITE_OK)
    {
      coop_reader_error (reader, error);
      return NULL;
    }
  return statement;
}

gboolean
coop_reader_step (CoopReader *reader, sqlite3_stmt *statement, GError **error)
{
  int result = sqlite3_step (statement);
  if (result != SQLITE_ROW && result != SQLITE_DONE)
    coop_reader_error (reader, error);
  return result == SQLITE_ROW;
}

gint64
coop_reader_int (CoopReader *reader, const char *sql, gint64 otherwise)
{
  sqlite3_stmt *statement = coop_reader_prepare (reader, sql, NULL);
  gint64 value = otherwise;
  if (statement != NULL && coop_reader_step (reader, statement, NULL)
      && sqlite3_column_type (statement, 0) != SQLITE_NULL)
    value = sqlite3_column_int64 (statement, 0);
  sqlite3_finalize (statement);
  return value;
}

CoopReader *
coop_reader_open (const char *path, GError **error)
{
  if (!coop_trace_identify (path, error))
    return NULL;
  CoopReader *reader = g_new0 (CoopReader, 1);
  reader->path = g_strdup (path);
  int result = sqlite3_open_v2 (path, &reader->db, SQLITE_OPEN_READONLY | SQLITE_OPEN_NOMUTEX, NULL);
  sqlite3_busy_timeout (reader->db, 2000);
  /* The first read finds what open does not: a damaged file, a log that cannot be read. */
  sqlite3_stmt *statement = result == SQLITE_OK ? coop_reader_prepare (reader, "SELECT count(*) FROM session", error) : NULL;
  if (result != SQLITE_OK)
    coop_reader_error (reader, error);
  if (statement == NULL || !coop_reader_step (reader, statement, error))
    {
      sqlite3_finalize (statement);
      coop_reader_free (reader);
      return NULL;
    }
  sqlite3_finalize (statement);
  gint64 version = coop_reader_int (reader, "PRAGMA user_version", COOP_SCHEMA_VERSION);
  if (version < COOP_SCHEMA_VERSION && !coop_migrate_view (reader->db, (guint) MAX (version, 0), error))
    {
      g_prefix_error (error, "%s: ", path);
      coop_reader_free (reader);
      return NULL;
    }
  reader->params = coop_param_map_new (reader);
  return reader;
}

void
coop_reader_hold (CoopReader *reader)
{
  sqlite3_exec (reader->db, "BEGIN", NULL, NULL, NULL);
  coop_reader_int (reader, "SELECT count(*) FROM session", 0);
}

void
coop_reader_free (CoopReader *reader)
{
  if (reader == NULL)
    return;
  coop_param_map_free (reader->params);
  sqlite3_close (reader->db);
  g_free (reader->path);
  g_free (reader);
}

guint64
coop_reader_last_seq (CoopReader *reader)
{
  return (guint64) coop_reader_int (reader, "SELECT max(seq) FROM event", -1);
}

gboolean
coop_reader_trimmed (CoopReader *reader, guint64 *seq, guint64 *ts)
{
  gint64 base = coop_reader_int (reader, "SELECT value FROM stat WHERE name = 'trimmed_to'", -1);
  *seq = base >= 0 ? (guint64) base : 0;
  if (ts != NULL)
    *ts = base >= 0 ? (guint64) coop_reader_int (reader, "SELECT value FROM stat WHERE name = 'trimmed_ns'", 0) : 0;
  return base >= 0;
}

CoopTraceDetail
coop_reader_detail (CoopReader *reader)
{
  g_autofree char *label = coop_reader_meta (reader, "trace_detail");
  for (guint i = 0; label != NULL && i < COOP_N_DETAILS; i++)
    if (strcmp (label, coop_detail_label (i)) == 0)
      return i;
  return COOP_DETAIL_FULL;
}

char *
coop_reader_meta (CoopReader *reader, const char *key)
{
  sqlite3_stmt *statement = coop_reader_prepare (reader, "SELECT value FROM meta WHERE key = ?", NULL);
  char *value = NULL;
  if (statement == NULL)
    return NULL;
  sqlite3_bind_text (statement, 1, key, -1, SQLITE_STATIC);
  if (coop_reader_step (reader, statement, NULL))
    value = g_strdup ((const char *) sqlite3_column_text (statement, 0));
  sqlite3_finalize (statement);
  return value;
}

/* ---- events ---- */

gboolean
coop_reader_decode (sqlite3_stmt *row, CoopEvent *ev, GByteArray *body)
{
  CoopColumns columns;
  memset (ev, 0, sizeof *ev);
  ev->seq = sqlite3_column_int64 (row, 0);
  ev->ts = sqlite3_column_int64 (row, 1);
  ev->kind = sqlite3_column_int (row, 2);
  ev->thread = sqlite3_column_int64 (row, 3);
  for (guint i = 0; i < COOP_N_COLUMNS; i++)
    {
      columns.present[i] = sqlite3_column_type (row, 4 + i) != SQLITE_NULL;
      columns.value[i] = sqlite3_column_int64 (row, 4 + i);
    }
  const guint8 *rest = sqlite3_column_blob (row, 9);
  return coop_event_unpack (ev, &columns, rest, sqlite3_column_bytes (row, 9), body);
}

gint64
coop_reader_events (CoopReader *reader, guint64 from, CoopTakeEvent take, gpointer user, GError **error)
{
  g_autoptr (GByteArray) body = g_byte_array_new ();
  g_autoptr (GError) local = NULL;
  gint64 n = 0;
  CoopEvent ev;
  sqlite3_stmt *row = coop_reader_prepare (
    reader, "SELECT seq, ts, kind, thread, block, tensor, op, addr, bytes, rest FROM event"
            " WHERE seq >= ? ORDER BY seq", error);
  if (row == NULL)
    return -1;
  sqlite3_bind_int64 (row, 1, (gint64) MIN (from, G_MAXINT64));
  while (coop_reader_step (reader, row, &local))
    {
      if (!coop_reader_decode (row, &ev, body))
        {
          g_set_error (&local, COOP_TRACE_ERROR, COOP_TRACE_ERROR_IO,
                       "%s: event %" G_GUINT64_FORMAT " is damaged", reader->path, ev.seq);
          break;
        }
      n++;
      if (ev.kind == COOP_EVENT_POLICY && reader->params != NULL)
        coop_param_map_event (reader->params, &ev);
      if (!take (user, &ev, ev.more > 0 ? body->data : NULL))
        break;
    }
  sqlite3_finalize (row);
  if (local == NULL)
    return n;
  g_propagate_error (error, g_steal_pointer (&local));
  return -1;
}

/* ---- the model at a moment ---- */

static gboolean
add_texts (CoopReader *reader, CoopModel *model, guint64 seq, GError **error)
{
  static const char *const sql[] = {
    "SELECT id, text FROM string WHERE event <= ?",
    "SELECT id, file, func, line FROM frame WHERE event <= ?",
    "SELECT id, parent, frame FROM stack WHERE event <= ?",
  };
  g_autoptr (GError) local = NULL;
  for (guint i = 0; i < G_N_ELEMENTS (sql) && local == NULL; i++)
    {
      sqlite3_stmt *row = coop_reader_prepare (reader, sql[i], &local);
      if (row == NULL)
        break;
      sqlite3_bind_int64 (row, 1, seq);
      while (coop_reader_step (reader, row, &local))
        {
          guint64 id = sqlite3_column_int64 (row, 0);
          if (i == 0)
            coop_model_add_string (model, id, (const char *) sqlite3_column_text (row, 1), sqlite3_column_bytes (row, 1));
          else if (i == 1)
            coop_model_add_frame (model, id, sqlite3_column_int64 (row, 1), sqlite3_column_int64 (row, 2), sqlite3_column_int64 (row, 3));
          else
            coop_model_add_stack (model, id, sqlite3_column_int64 (row, 1), sqlite3_column_int64 (row, 2));
        }
      sqlite3_finalize (row);
    }
  if (local == NULL)
    return TRUE;
  g_propagate_error (error, g_steal_pointer (&local));
  return FALSE;
}

static void
take_policy (gpointer user, CoopPolicy *policy, const guint64 *values, guint n)
{
  for (guint i = 0; i < n; i++)
    {
      guint param = i;
      gint64 bits = (gint64) values[i];
      if (coop_param_map_value (user, &param, &bits))
        policy->v[param].i = bits;
    }
}

/* The model of the last keyframe up to seq, or an empty one. */
static CoopModel *
load_keyframe (CoopReader *reader, guint64 seq, GError **error)
{
  CoopModel *model = NULL;
  guint64 at = 0;
  sqlite3_stmt *row = coop_reader_prepare (
    reader, "SELECT event, model FROM layout_keyframe WHERE event <= ? ORDER BY event DESC LIMIT 1", error);
  if (row == NULL)
    return NULL;
  sqlite3_bind_int64 (row, 1, (gint64) MIN (seq, G_MAXINT64));
  if (coop_reader_step (reader, row, NULL))
    {
      at = sqlite3_column_int64 (row, 0);
      g_autoptr (GBytes) bytes = g_bytes_new (sqlite3_column_blob (row, 1), sqlite3_column_bytes (row, 1));
      model = coop_model_load_from (bytes, reader->params != NULL ? take_policy : NULL, reader->params, NULL); /* a damaged keyframe costs time, no more */
    }
  sqlite3_finalize (row);
  if (model == NULL)
    return coop_model_new ();
  if (add_texts (reader, model, at, error))
    return model;
  coop_model_free (model);
  return NULL;
}

typedef struct {
  CoopModel *model;
  guint64 last;
} Replay;

static gboolean
replay_one (gpointer user, const CoopEvent *ev, const void *body)
{
  Replay *replay = user;
  if (ev->seq > replay->last)
    return FALSE;
  coop_model_apply (replay->model, ev, body, NULL);
  return TRUE;
}

CoopModel *
coop_reader_model_at (CoopReader *reader, guint64 seq, GError **error)
{
  guint64 first;
  if (coop_reader_trimmed (reader, &first, NULL))
    seq = MAX (seq, first); /* what was before is not known any more */
  CoopModel *model = load_keyframe (reader, seq, error);
  if (model == NULL)
    return NULL;
  Replay replay = { model, seq };
  if (coop_reader_events (reader, coop_model_totals (model)->seq + 1, replay_one, &replay, error) >= 0)
    return model;
  coop_model_free (model);
  return NULL;
}
