/* SPDX-License-Identifier: Apache-2.0 */
/* Check: the tables beside the events. */
#include "trace/check-private.h"
#include "trace/store-private.h"

#include "sql.h"

gboolean
coop_check_integrity (Check *check)
{
  gboolean ok = FALSE;
  sqlite3_stmt *row = coop_reader_prepare (check->reader, "PRAGMA integrity_check (5)", NULL);
  int result = SQLITE_ERROR;
  while (row != NULL && (result = sqlite3_step (row)) == SQLITE_ROW)
    {
      const char *text = (const char *) sqlite3_column_text (row, 0);
      ok = g_strcmp0 (text, "ok") == 0;
      if (!ok)
        coop_check_say (check, 0, COOP_FAULT_FORMAT, "the file is damaged: %s", text);
    }
  if (result != SQLITE_DONE)
    coop_check_say (check, 0, COOP_FAULT_FORMAT, "the file is damaged: %s", sqlite3_errmsg (check->reader->db));
  sqlite3_finalize (row);
  return ok && result == SQLITE_DONE;
}

/* Each table and view of the schema, and the one row of the session. */
gboolean
coop_check_schema (Check *check)
{
  gboolean whole = TRUE;
  sqlite3 *model = NULL;
  sqlite3_stmt *row = NULL;
  if (coop_reader_int (check->reader, "PRAGMA user_version", 0) == COOP_SCHEMA_VERSION
      && sqlite3_open (":memory:", &model) == SQLITE_OK && sqlite3_exec (model, coop_sql_schema, NULL, NULL, NULL) == SQLITE_OK)
    sqlite3_prepare_v2 (model, "SELECT type, name FROM sqlite_schema WHERE type IN ('table', 'view')", -1, &row, NULL);
  while (row != NULL && sqlite3_step (row) == SQLITE_ROW)
    {
      const char *type = (const char *) sqlite3_column_text (row, 0), *name = (const char *) sqlite3_column_text (row, 1);
      g_autofree char *sql = g_strdup_printf ("SELECT count(*) FROM sqlite_schema WHERE type = '%s' AND name = '%s'", type, name);
      if (coop_reader_int (check->reader, sql, 0) == 1)
        continue;
      coop_check_say (check, 0, COOP_FAULT_FORMAT, "%s %s is missing", type, name);
      whole = FALSE;
    }
  sqlite3_finalize (row);
  sqlite3_close (model);
  if (whole && coop_reader_int (check->reader, "SELECT count(*) FROM session", 0) != 1)
    coop_check_say (check, 0, COOP_FAULT_FORMAT, "table session has not one row");
  return whole;
}

static gboolean
differs (sqlite3_stmt *row, int column, guint64 value, gboolean null_if_zero)
{
  gboolean null = sqlite3_column_type (row, column) == SQLITE_NULL;
  if (null_if_zero && value == 0)
    return !null;
  return null || (guint64) sqlite3_column_int64 (row, column) != value;
}

void
coop_check_life (Check *check, const CheckLife *life, const CoopEvent *end)
{
  sqlite3_stmt *row = check->block;
  guint64 seq = end != NULL ? end->seq : check->seq;
  sqlite3_bind_int64 (row, 1, life->id);
  if (!coop_reader_step (check->reader, row, NULL))
    coop_check_say (check, seq, COOP_FAULT_FREE, "block %" G_GUINT64_FORMAT " has no row", life->id);
  else
    {
      const char *what = differs (row, 0, life->addr, FALSE) ? "address"
                         : differs (row, 1, life->bytes, FALSE) ? "size"
                         : differs (row, 2, life->requested, TRUE) ? "requested size"
                         : differs (row, 3, life->tensor, TRUE) ? "tensor"
                         : !life->born_unknown && differs (row, 4, life->op, TRUE) ? "operator"
                         : !life->born_unknown && differs (row, 5, life->born_event, FALSE) ? "first event"
                         : !life->born_unknown && differs (row, 6, life->born_ns, FALSE) ? "birth"
                         : end == NULL && sqlite3_column_type (row, 7) != SQLITE_NULL ? "last event"
                         : end != NULL && differs (row, 7, end->seq, FALSE) ? "last event"
                         : end != NULL && differs (row, 8, end->ts, FALSE) ? "death"
                         : end != NULL && differs (row, 9, end->kind, FALSE) ? "kind of end" : NULL;
      if (what != NULL)
        coop_check_say (check, seq, COOP_FAULT_FREE, "the row of block %" G_GUINT64_FORMAT " has another %s than the events",
                        life->id, what);
    }
  sqlite3_reset (row);
}

/* Each query gives an event number, an id, and another, for every row that is wrong. */
static const struct {
  const char *sql, *text;
  gboolean op; /* the other is an operator: without a row while it runs, in a file that was not closed */
} dangling[] = {
  { "SELECT o.begin_event, o.id, j.value FROM op o, json_each (o.inputs) j"
    " WHERE j.value <> 0 AND NOT EXISTS (SELECT 1 FROM tensor t WHERE t.id = j.value)",
    "operator %" G_GINT64_FORMAT " has input tensor %" G_GINT64_FORMAT ", which has no row", FALSE },
  { "SELECT o.end_event, o.id, j.value FROM op o, json_each (o.outputs) j"
    " WHERE j.value <> 0 AND NOT EXISTS (SELECT 1 FROM tensor t WHERE t.id = j.value)",
    "operator %" G_GINT64_FORMAT " has output tensor %" G_GINT64_FORMAT ", which has no row", FALSE },
  { "SELECT t.event, t.id, t.op FROM tensor t"
    " WHERE t.op IS NOT NULL AND NOT EXISTS (SELECT 1 FROM op o WHERE o.id = t.op)",
    "tensor %" G_GINT64_FORMAT " comes from operator %" G_GINT64_FORMAT ", which has no row", TRUE },
  { "SELECT o.begin_event, o.id, o.replay_of FROM op o"
    " WHERE o.replay_of IS NOT NULL AND NOT EXISTS (SELECT 1 FROM op p WHERE p.id = o.replay_of)",
    "operator %" G_GINT64_FORMAT " repeats operator %" G_GINT64_FORMAT ", which has no row", TRUE },
  { "SELECT b.born_event, b.id, b.tensor FROM block b"
    " WHERE b.tensor IS NOT NULL AND NOT EXISTS (SELECT 1 FROM tensor t WHERE t.id = b.tensor)",
    "block %" G_GINT64_FORMAT " holds tensor %" G_GINT64_FORMAT ", which has no row", FALSE },
  { "SELECT x.event, x.block, x.eviction FROM evicted x"
    " WHERE x.eviction IS NOT NULL AND NOT EXISTS (SELECT 1 FROM eviction v WHERE v.id = x.eviction)",
    "block %" G_GINT64_FORMAT " was evicted by search %" G_GINT64_FORMAT ", which has no row", FALSE },
};

static void
check_dangling (Check *check, gboolean closed)
{
  for (guint i = 0; i < G_N_ELEMENTS (dangling) && !coop_check_full (check); i++)
    {
      sqlite3_stmt *row = coop_reader_prepare (check->reader, dangling[i].sql, NULL);
      while (row != NULL && !coop_check_full (check) && coop_reader_step (check->reader, row, NULL))
        {
          gint64 other = sqlite3_column_int64 (row, 2);
          if (!closed && dangling[i].op && g_hash_table_contains (check->running, &other))
            continue;
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
          g_autofree char *text = g_strdup_printf (dangling[i].text, (gint64) sqlite3_column_int64 (row, 1), other);
#pragma GCC diagnostic pop
          coop_check_say (check, sqlite3_column_int64 (row, 0), COOP_FAULT_UNKNOWN, "%s", text);
        }
      sqlite3_finalize (row);
    }
}

/* One row an event: as many rows as events of the kind. */
static void
check_counts (Check *check)
{
  static const struct {
    const char *table;
    guint kind;
  } tables[] = {
    { "evicted", COOP_EVENT_EVICT }, { "eviction", COOP_EVENT_SEARCH }, { "policy_change", COOP_EVENT_POLICY },
    { "oom", COOP_EVENT_OOM }, { "gap", COOP_EVENT_GAP }, { "step", COOP_EVENT_STEP },
    { "string", COOP_EVENT_STRING },
  };
  for (guint i = 0; i < G_N_ELEMENTS (tables); i++)
    {
      g_autofree char *rows = g_strdup_printf ("SELECT count(*) FROM %s", tables[i].table);
      g_autofree char *events = g_strdup_printf ("SELECT count(*) FROM event WHERE kind = %u", tables[i].kind);
      gint64 a = coop_reader_int (check->reader, rows, -1), b = coop_reader_int (check->reader, events, -1);
      if (a != b)
        coop_check_say (check, check->seq, COOP_FAULT_UNKNOWN, "table %s has %" G_GINT64_FORMAT " rows for %"
                        G_GINT64_FORMAT " events", tables[i].table, a, b);
    }
}

static void
check_stats (Check *check)
{
  gint64 events = coop_reader_int (check->reader, "SELECT value FROM stat WHERE name = 'events'", -1);
  gint64 lost = coop_reader_int (check->reader, "SELECT value FROM stat WHERE name = 'lost_events'", 0);
  gint64 peak = coop_reader_int (check->reader, "SELECT value FROM stat WHERE name = 'peak'", -1);
  if (lost > 0)
    coop_check_say (check, check->seq, COOP_FAULT_SEQUENCE, "%" G_GINT64_FORMAT " events after this one could not be written",
                    lost);
  if (events != (gint64) (check->n + check->trimmed))
    coop_check_say (check, check->seq, COOP_FAULT_SEQUENCE, "stat says %" G_GINT64_FORMAT " events, there are %"
                    G_GUINT64_FORMAT, events, check->n + check->trimmed);
  if (!check->gap && !check->no_blocks && peak != (gint64) check->peak)
    coop_check_say (check, check->seq, COOP_FAULT_BUDGET, "stat says a peak of %" G_GINT64_FORMAT ", the events make it %"
                    G_GUINT64_FORMAT, peak, check->peak);
}

void
coop_check_tables (Check *check)
{
  /* A store that failed could not say what still lived. */
  gboolean closed = coop_reader_int (check->reader, "SELECT state FROM session", COOP_RUN_RUNNING) != COOP_RUN_RUNNING
                    && coop_reader_int (check->reader, "SELECT value FROM stat WHERE name = 'lost_events'", 0) == 0;
  for (guint i = 0; closed && !check->gap && i < check->lives->len && !coop_check_full (check); i++)
    coop_check_life (check, &g_array_index (check->lives, CheckLife, i), NULL);
  gint64 rows = coop_reader_int (check->reader, "SELECT count(*) FROM block", -1);
  gint64 lives = (gint64) check->n_lives + (closed ? check->lives->len : 0);
  if (!check->gap && rows != lives)
    coop_check_say (check, check->seq, COOP_FAULT_FREE, "table block has %" G_GINT64_FORMAT " rows for %" G_GINT64_FORMAT
                    " lives", rows, lives);
  /* What was given up is still referred to. */
  if (!check->gap && check->trimmed == 0)
    check_dangling (check, closed);
  if (check->trimmed == 0)
    check_counts (check);
  check_stats (check);
}
