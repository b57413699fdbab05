/* SPDX-License-Identifier: Apache-2.0 */
#include "trace/sweep-store.h"

#include <math.h>
#include <sqlite3.h>

#include "config.h"

#define BUSY_MS 30000
#define COLUMNS                                                                                     \
  "digest, evictor, allocator, ratio_ppm, settings, program, result, reason, budget,"               \
  " peak_without_limit, peak, overhead, plain_ns, cost_ns, operators, recomputed, evictions,"       \
  " evicted_bytes, searches, moves, search_ns, fragmentation, steps, wall_ns"
#define SAME_KEY                                                                                    \
  "digest = ?1 AND evictor = ?2 AND allocator = ?3 AND ratio_ppm = ?4 AND settings = ?5"

static const char schema[]
    = "CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL) STRICT, WITHOUT ROWID;"
      "CREATE TABLE run ("
      " digest TEXT NOT NULL, evictor TEXT NOT NULL, allocator TEXT NOT NULL, ratio_ppm INTEGER NOT NULL,"
      " settings TEXT NOT NULL, program TEXT NOT NULL, result TEXT NOT NULL, reason TEXT,"
      " budget INTEGER NOT NULL, peak_without_limit INTEGER NOT NULL, peak INTEGER, overhead REAL,"
      " plain_ns INTEGER, cost_ns INTEGER, operators INTEGER, recomputed INTEGER, evictions INTEGER,"
      " evicted_bytes INTEGER, searches INTEGER, moves INTEGER, search_ns INTEGER, fragmentation REAL,"
      " steps INTEGER, wall_ns INTEGER,"
      " PRIMARY KEY (digest, evictor, allocator, ratio_ppm, settings)) STRICT;"
      "CREATE VIEW v_run AS SELECT program, evictor, allocator, settings, ratio_ppm / 1e6 AS ratio, result,"
      " reason, overhead, budget, peak_without_limit, evictions, recomputed, searches, search_ns,"
      " fragmentation, moves FROM run;";

struct CoopSweepStore {
  sqlite3 *db;
  char *path;
  sqlite3_stmt *has, *add;
};

static gboolean
fail (CoopSweepStore *store, GError **error)
{
  g_set_error (error, COOP_TRACE_ERROR, COOP_TRACE_ERROR_IO, "%s: %s", store->path,
               sqlite3_errmsg (store->db));
  return FALSE;
}

static gboolean
run_sql (CoopSweepStore *store, const char *sql, GError **error)
{
  return sqlite3_exec (store->db, sql, NULL, NULL, NULL) == SQLITE_OK || fail (store, error);
}

static gint64
one_number (CoopSweepStore *store, const char *sql)
{
  sqlite3_stmt *statement = NULL;
  gint64 value = -1;
  if (sqlite3_prepare_v2 (store->db, sql, -1, &statement, NULL) == SQLITE_OK
      && sqlite3_step (statement) == SQLITE_ROW)
    value = sqlite3_column_int64 (statement, 0);
  sqlite3_finalize (statement);
  return value;
}

/* ---- opening ---- */

static gboolean
is_ours (CoopSweepStore *store, GError **error)
{
  if (one_number (store, "PRAGMA application_id") != COOP_SWEEP_APPLICATION_ID)
    g_set_error (error, COOP_TRACE_ERROR, COOP_TRACE_ERROR_FOREIGN, "%s is no sweep", store->path);
  else if (one_number (store, "PRAGMA user_version") > COOP_SWEEP_VERSION)
    g_set_error (error, COOP_TRACE_ERROR, COOP_TRACE_ERROR_NEWER, "%s was made by a newer version",
                 store->path);
  else
    return TRUE;
  return FALSE;
}

/* An empty file becomes a sweep, by one transaction: another process may be at it as well. */
static gboolean
set_up (CoopSweepStore *store, GError **error)
{
  g_autofree char *sql = g_strdup_printf ("%s INSERT INTO meta VALUES ('coopscope', '" COOP_VERSION "');"
                                          "PRAGMA application_id = %d; PRAGMA user_version = %d;",
                                          schema, COOP_SWEEP_APPLICATION_ID, COOP_SWEEP_VERSION);
  if (!run_sql (store, "BEGIN IMMEDIATE", error))
    return FALSE;
  gboolean ok = one_number (store, "SELECT count(*) FROM sqlite_schema") != 0 || run_sql (store, sql, error);
  return run_sql (store, ok ? "COMMIT" : "ROLLBACK", ok ? error : NULL) && ok;
}

static gboolean
prepare (CoopSweepStore *store, GError **error)
{
  const char *has = "SELECT 1 FROM run WHERE " SAME_KEY;
  const char *add = "INSERT OR IGNORE INTO run (" COLUMNS ") VALUES"
                    " (?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?)";
  return (sqlite3_prepare_v2 (store->db, has, -1, &store->has, NULL) == SQLITE_OK
          && sqlite3_prepare_v2 (store->db, add, -1, &store->add, NULL) == SQLITE_OK)
         || fail (store, error);
}

CoopSweepStore *
coop_sweep_open (const char *path, gboolean create, GError **error)
{
  CoopSweepStore *store = g_new0 (CoopSweepStore, 1);
  store->path = g_strdup (path);
  int flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX | (create ? SQLITE_OPEN_CREATE : 0);
  gboolean ok = sqlite3_open_v2 (path, &store->db, flags, NULL) == SQLITE_OK || fail (store, error);
  if (ok)
    sqlite3_busy_timeout (store->db, BUSY_MS);
  if (ok && create && one_number (store, "SELECT count(*) FROM sqlite_schema") == 0)
    ok = set_up (store, error);
  ok = ok && is_ours (store, error);
  if (ok && create)
    ok = run_sql (store, "PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL", error);
  if (!ok || !prepare (store, error))
    {
      coop_sweep_close (store);
      return NULL;
    }
  return store;
}

void
coop_sweep_close (CoopSweepStore *store)
{
  if (store == NULL)
    return;
  sqlite3_finalize (store->has);
  sqlite3_finalize (store->add);
  sqlite3_busy_timeout (store->db, 0);   /* not while others write */
  sqlite3_exec (store->db, "PRAGMA journal_mode = DELETE", NULL, NULL, NULL);
  sqlite3_close (store->db);
  g_free (store->path);
  g_free (store);
}

/* ---- rows ---- */

static void
bind_text (sqlite3_stmt *s, int i, const char *text)
{
  if (text == NULL)
    sqlite3_bind_null (s, i);
  else
    sqlite3_bind_text (s, i, text, -1, SQLITE_TRANSIENT);
}

static void
bind_key (sqlite3_stmt *s, const CoopSweepRow *row)
{
  bind_text (s, 1, row->digest);
  bind_text (s, 2, row->evictor);
  bind_text (s, 3, row->allocator);
  sqlite3_bind_int64 (s, 4, row->ratio_ppm);
  bind_text (s, 5, row->settings);
}

static void
bind_real (sqlite3_stmt *s, int i, double value)
{
  if (isfinite (value))
    sqlite3_bind_double (s, i, value);
  else
    sqlite3_bind_null (s, i);
}

static void
bind_row (sqlite3_stmt *s, const CoopSweepRow *row)
{
  bind_key (s, row);
  bind_text (s, 6, row->program);
  bind_text (s, 7, row->result);
  bind_text (s, 8, row->reason);
  sqlite3_bind_int64 (s, 9, (gint64) row->budget);
  sqlite3_bind_int64 (s, 10, (gint64) row->peak_without_limit);
  sqlite3_bind_int64 (s, 11, (gint64) row->peak);
  bind_real (s, 12, row->overhead);
  const guint64 numbers[] = { row->plain_ns, row->cost_ns, row->operators, row->recomputed, row->evictions,
                              row->evicted_bytes, row->searches, row->moves };
  for (guint i = 0; i < G_N_ELEMENTS (numbers); i++)
    sqlite3_bind_int64 (s, 13 + (int) i, (gint64) numbers[i]);
  if (row->search_ns >= 0)
    sqlite3_bind_int64 (s, 21, row->search_ns);
  else
    sqlite3_bind_null (s, 21);
  bind_real (s, 22, row->fragmentation);
  sqlite3_bind_int64 (s, 23, (gint64) row->steps);
  sqlite3_bind_int64 (s, 24, (gint64) row->wall_ns);
}

gboolean
coop_sweep_has (CoopSweepStore *store, const CoopSweepRow *key)
{
  bind_key (store->has, key);
  gboolean found = sqlite3_step (store->has) == SQLITE_ROW;
  sqlite3_reset (store->has);
  return found;
}

gboolean
coop_sweep_add (CoopSweepStore *store, const CoopSweepRow *row, GError **error)
{
  bind_row (store->add, row);
  int result = sqlite3_step (store->add);
  if (result != SQLITE_DONE)
    fail (store, error);
  sqlite3_reset (store->add);
  return result == SQLITE_DONE;
}

guint64
coop_sweep_count (CoopSweepStore *store)
{
  return (guint64) MAX (0, one_number (store, "SELECT count(*) FROM run"));
}

static double
real_at (sqlite3_stmt *s, int i)
{
  return sqlite3_column_type (s, i) == SQLITE_NULL ? NAN : sqlite3_column_double (s, i);
}

static void
read_row (sqlite3_stmt *s, CoopSweepRow *row)
{
  const char **texts[] = { &row->digest, &row->evictor, &row->allocator, NULL, &row->settings, &row->program,
                           &row->result, &row->reason };
  guint64 *numbers[] = { &row->plain_ns, &row->cost_ns, &row->operators, &row->recomputed, &row->evictions,
                         &row->evicted_bytes, &row->searches, &row->moves };
  for (guint i = 0; i < G_N_ELEMENTS (texts); i++)
    if (texts[i] != NULL)
      *texts[i] = (const char *) sqlite3_column_text (s, (int) i);
  row->ratio_ppm = sqlite3_column_int64 (s, 3);
  row->budget = (guint64) sqlite3_column_int64 (s, 8);
  row->peak_without_limit = (guint64) sqlite3_column_int64 (s, 9);
  row->peak = (guint64) sqlite3_column_int64 (s, 10);
  row->overhead = real_at (s, 11);
  for (guint i = 0; i < G_N_ELEMENTS (numbers); i++)
    *numbers[i] = (guint64) sqlite3_column_int64 (s, 12 + (int) i);
  row->search_ns = sqlite3_column_type (s, 20) == SQLITE_NULL ? -1 : sqlite3_column_int64 (s, 20);
  row->fragmentation = real_at (s, 21);
  row->steps = (guint64) sqlite3_column_int64 (s, 22);
  row->wall_ns = (guint64) sqlite3_column_int64 (s, 23);
}

gboolean
coop_sweep_each (CoopSweepStore *store, CoopSweepTake take, gpointer user, GError **error)
{
  const char *sql = "SELECT " COLUMNS " FROM run ORDER BY program, digest, allocator, settings, evictor,"
                    " ratio_ppm DESC";
  sqlite3_stmt *s = NULL;
  int result = sqlite3_prepare_v2 (store->db, sql, -1, &s, NULL);
  while (result == SQLITE_OK || result == SQLITE_ROW)
    {
      CoopSweepRow row = { 0 };
      result = sqlite3_step (s);
      if (result != SQLITE_ROW)
        break;
      read_row (s, &row);
      take (user, &row);
    }
  if (result != SQLITE_DONE)
    fail (store, error);
  sqlite3_finalize (s);
  return result == SQLITE_DONE;
}

/* ---- merging ---- */

typedef struct {
  CoopSweepStore *to;
  sqlite3_stmt *same;
  CoopSweepMerge *counts;
  GError **error;
  gboolean ok;
} Merge;

static void
merge_row (gpointer user, const CoopSweepRow *row)
{
  Merge *m = user;
  if (!m->ok)
    return;
  bind_key (m->same, row);
  if (sqlite3_step (m->same) == SQLITE_ROW)
    {
      const char *result = (const char *) sqlite3_column_text (m->same, 0);
      double overhead = real_at (m->same, 1);
      gboolean same = g_strcmp0 (result, row->result) == 0
                      && (overhead == row->overhead || (isnan (overhead) && isnan (row->overhead)));
      m->counts->same += same;
      m->counts->differing += !same;
      sqlite3_reset (m->same);
      return;
    }
  sqlite3_reset (m->same);
  m->ok = coop_sweep_add (m->to, row, m->error);
  m->counts->added += m->ok;
}

gboolean
coop_sweep_merge (CoopSweepStore *store, const char *path, CoopSweepMerge *counts, GError **error)
{
  Merge m = { .to = store, .counts = counts, .error = error, .ok = TRUE };
  CoopSweepStore *from = coop_sweep_open (path, FALSE, error);
  if (from == NULL)
    return FALSE;
  gboolean ok = sqlite3_prepare_v2 (store->db, "SELECT result, overhead FROM run WHERE " SAME_KEY, -1, &m.same,
                                    NULL) == SQLITE_OK
                || fail (store, error);
  ok = ok && run_sql (store, "BEGIN IMMEDIATE", error);
  if (ok)
    {
      ok = coop_sweep_each (from, merge_row, &m, error) && m.ok;
      ok = run_sql (store, ok ? "COMMIT" : "ROLLBACK", ok ? error : NULL) && ok;
    }
  sqlite3_finalize (m.same);
  coop_sweep_close (from);
  return ok;
}
