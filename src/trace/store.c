/* SPDX-License-Identifier: Apache-2.0 */
/* Store: the file. Events go straight into prepared statements inside one transaction, which ends
 * after 4096 events or 50 ms. The first failure ends writing for good: the batch is rolled back,
 * everything from there on is dropped and counted, and the file stays what it was at the last batch. */
#include "trace/reader-private.h"
#include "trace/store-private.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "config.h"
#include "sql.h"
#include "trace/model-private.h"

#define BATCH_EVENTS 4096
#define BATCH_US 50000
#define KEYFRAME_EVENTS 4096

G_DEFINE_QUARK (coop-trace-error-quark, coop_trace_error)

/* ---- batches and failure ---- */

void
coop_store_fail (CoopStore *store, const char *why)
{
  if (store->why != NULL)
    return;
  store->why = g_strdup (why);
  store->lost += store->batched;
  store->batched = 0;
  if (store->in_batch)
    sqlite3_exec (store->db, "ROLLBACK", NULL, NULL, NULL);
  store->in_batch = FALSE;
}

static void
fail_sqlite (CoopStore *store)
{
  int code = sqlite3_extended_errcode (store->db);
  const char *what = (code & 0xff) == SQLITE_FULL ? coop_store_full_text (store) : sqlite3_errmsg (store->db);
  int system = sqlite3_system_errno (store->db);
  g_autofree char *why = (code & 0xff) == SQLITE_IOERR && system != 0
                           ? g_strdup_printf ("%s (%s)", what, g_strerror (system)) : g_strdup (what);
  coop_store_fail (store, why);
}

void
coop_store_step (CoopStore *store, CoopStatement id)
{
  sqlite3_stmt *statement = store->statements[id];
  if (!coop_store_ok (store) || store->mute)
    return;
  int result = sqlite3_step (statement);
  if (result != SQLITE_DONE && result != SQLITE_ROW)
    fail_sqlite (store);
  sqlite3_reset (statement);
}

static void
exec (CoopStore *store, const char *sql)
{
  if (coop_store_ok (store) && sqlite3_exec (store->db, sql, NULL, NULL, NULL) != SQLITE_OK)
    fail_sqlite (store);
}

void
coop_store_begin (CoopStore *store)
{
  if (store->in_batch || !coop_store_ok (store))
    return;
  exec (store, "BEGIN IMMEDIATE");
  store->in_batch = coop_store_ok (store);
  store->batch_begin = g_get_monotonic_time ();
}

static void
set_stat (CoopStore *store, const char *name, guint64 value)
{
  CoopBind bind = coop_bind (store, COOP_STATEMENT_STAT);
  coop_bind_text (&bind, name, -1);
  coop_bind_int (&bind, value);
  coop_store_step (store, COOP_STATEMENT_STAT);
}

/* The totals go along with each batch, so that nothing has to count rows to show a number. */
static void
write_totals (CoopStore *store)
{
  const CoopModelTotals *t = &store->totals;
  const struct { const char *name; guint64 value; } stats[] = {
    { "events", store->events }, { "last_ns", t->ts }, { "budget", t->budget },
    { "capacity", t->capacity }, { "used", t->used }, { "peak", t->peak },
    { "pinned", t->pinned }, { "evictable", t->evictable }, { "evicted", t->evicted },
    { "free", t->free }, { "largest", t->largest }, { "holes", t->holes },
    { "allocs", t->allocs }, { "frees", t->frees }, { "evictions", t->evictions },
    { "evicted_bytes", t->evicted_bytes }, { "handovers", t->handovers }, { "moves", t->moves },
    { "searches", t->searches }, { "search_ns", t->search_ns }, { "ops", t->ops },
    { "op_ns", t->op_ns }, { "replays", t->replays }, { "replay_ns", t->replay_ns },
    { "ooms", t->ooms }, { "step", t->step }, { "missing_events", t->missing },
    { "lost_events", store->lost }, { "repeated_events", store->repeated },
    { "trimmed_events", store->trimmed }, { "trimmed_ns", store->trimmed_ns },
  };
  for (guint i = 0; i < G_N_ELEMENTS (stats); i++)
    set_stat (store, stats[i].name, stats[i].value);
  CoopBind bind = coop_bind (store, COOP_STATEMENT_STAT);
  coop_bind_text (&bind, "fragmentation", -1);
  coop_bind_real (&bind, t->fragmentation);
  coop_store_step (store, COOP_STATEMENT_STAT);
  set_stat (store, "peak_event", store->peak_seq);
  if (store->base >= 0)
    set_stat (store, "trimmed_to", (guint64) store->base);
}

/* Somebody removed or moved the file: what is written goes to a place without a name. */
static gboolean
is_there (const CoopStore *store)
{
  struct stat st;
  return store->inode == 0 || (stat (store->path, &st) == 0 && st.st_dev == store->device && st.st_ino == store->inode);
}

static void
commit (CoopStore *store)
{
  if (!store->in_batch)
    return;
  coop_store_lod_flush (store);
  coop_store_trim (store);
  write_totals (store);
  coop_store_room_keep (store);
  exec (store, "COMMIT");
  if (!coop_store_ok (store))
    return;
  store->in_batch = FALSE;
  store->batched = 0;
  if (is_there (store))
    return;
  coop_store_fail (store, "the file was removed or moved while it was written");
  store->lost = MAX (store->lost, store->events);
}

void
coop_store_tick (CoopStore *store)
{
  if (store->in_batch && g_get_monotonic_time () - store->batch_begin >= BATCH_US)
    commit (store);
}

static void
write_keyframe (CoopStore *store, const CoopModel *model, guint64 seq)
{
  guint64 entities = coop_model_n_entities (model);
  if (++store->since_keyframe < MAX (KEYFRAME_EVENTS, entities))
    return;
  g_autoptr (GBytes) bytes = coop_model_save_parts (model, FALSE);
  CoopBind bind = coop_bind (store, COOP_STATEMENT_KEYFRAME);
  gsize size;
  gconstpointer data = g_bytes_get_data (bytes, &size);
  coop_bind_int (&bind, seq);
  coop_bind_int (&bind, entities);
  sqlite3_bind_blob64 (bind.statement, ++bind.n, data, size, SQLITE_STATIC);
  coop_store_step (store, COOP_STATEMENT_KEYFRAME);
  store->since_keyframe = 0;
}

void
coop_store_append (CoopStore *store, const CoopModel *model, const CoopEvent *ev, const void *body)
{
  if (!coop_store_ok (store))
    {
      store->lost++;
      return;
    }
  /* A row has the event's number, and rows are read in that order. The model leaves these out, too. */
  if (ev->seq < store->next_seq)
    {
      store->repeated++;
      return;
    }
  CoopEvent slim = *ev;
  gboolean peak = coop_model_totals (model)->peak > store->totals.peak;
  coop_store_begin (store);
  store->next_seq = ev->seq + 1;
  store->batched++;
  store->totals = *coop_model_totals (model);
  coop_store_lod_add (store, ev, &store->totals);
  if (store->detail != COOP_DETAIL_FULL)
    {
      if (coop_store_slim (store, &slim))
        {
          store->events++;
          coop_model_apply (store->slim, &slim, body, NULL);
          coop_store_rows (store, store->slim, &slim, body);
          write_keyframe (store, store->slim, slim.seq);
        }
    }
  else
    {
      store->events++;
      coop_store_rows (store, model, ev, body);
      write_keyframe (store, model, ev->seq);
    }
  if (peak)
    store->peak_seq = store->detail != COOP_DETAIL_FULL ? store->own_seq - 1 : ev->seq;
  if (store->batched >= BATCH_EVENTS)
    commit (store);
  else if (store->batched % 64 == 0)
    coop_store_tick (store);
}

void
coop_store_set_meta (CoopStore *store, const char *key, const char *value)
{
  coop_store_begin (store);
  CoopBind bind = coop_bind (store, COOP_STATEMENT_META);
  coop_bind_text (&bind, key, -1);
  coop_bind_text (&bind, value, -1);
  coop_store_step (store, COOP_STATEMENT_META);
}

void
coop_store_set_stat (CoopStore *store, const char *name, gint64 value)
{
  coop_store_begin (store);
  set_stat (store, name, value);
}

void
coop_store_set_wall (CoopStore *store, gint64 start_ns, gint64 end_ns)
{
  g_autofree char *sql = g_strdup_printf ("UPDATE session SET start_ns = nullif (%" G_GINT64_FORMAT ", 0), pid = NULL", start_ns);
  coop_store_begin (store);
  exec (store, sql);
  store->end_ns = end_ns;
  store->walled = TRUE;
}

guint64
coop_store_lost (const CoopStore *store, const char **why)
{
  if (why != NULL)
    *why = store->why;
  return store->lost;
}

static guint64
size_of (const char *path, const char *suffix)
{
  g_autofree char *name = g_strconcat (path, suffix, NULL);
  struct stat st;
  return stat (name, &st) == 0 ? (guint64) st.st_size : 0;
}

guint64
coop_store_bytes (const CoopStore *store)
{
  return size_of (store->path, "") + size_of (store->path, "-wal");
}

const char *
coop_store_path (const CoopStore *store)
{
  return store->path;
}

/* ---- creating ---- */

static void
put_label (CoopStore *store, sqlite3_stmt *statement, const char *name, gint64 value, const char *label)
{
  if (label == NULL)
    return;
  sqlite3_bind_text (statement, 1, name, -1, SQLITE_STATIC);
  sqlite3_bind_int64 (statement, 2, value);
  sqlite3_bind_text (statement, 3, label, -1, SQLITE_STATIC);
  if (sqlite3_step (statement) != SQLITE_DONE)
    fail_sqlite (store);
  sqlite3_reset (statement);
}

static void
put_labels (CoopStore *store)
{
  static const char *const states[] = { "running", "ended", "killed", "interrupted" };
  sqlite3_stmt *s = NULL;
  if (sqlite3_prepare_v2 (store->db, "INSERT INTO enum_label VALUES (?,?,?)", -1, &s, NULL) != SQLITE_OK)
    {
      fail_sqlite (store);
      return;
    }
  for (guint i = 0; i < COOP_N_EVENT_KINDS; i++)
    put_label (store, s, "event", i, coop_event_kind_label (i));
  for (guint i = 0; i < COOP_N_KINDS; i++)
    put_label (store, s, "kind", i, coop_kind_label (i));
  for (guint i = 0; i < COOP_N_PHASES; i++)
    put_label (store, s, "phase", i, coop_phase_label (i));
  for (guint i = 0; i < COOP_N_PINS; i++)
    put_label (store, s, "pin", i, coop_pin_label (i));
  for (guint i = 0; i < COOP_N_SOURCES; i++)
    put_label (store, s, "source", i, coop_source_labels[i]);
  for (guint i = 0; i < G_N_ELEMENTS (states); i++)
    put_label (store, s, "state", i, states[i]);
  for (guint p = 0; p < COOP_N_PARAMS; p++)
    put_label (store, s, "param", p, coop_param_info[p].name);
  for (guint p = 0; p < COOP_N_PARAMS; p++)
    for (guint i = 0; coop_param_info[p].labels != NULL && coop_param_info[p].labels[i] != NULL; i++)
      put_label (store, s, coop_param_info[p].name, i, coop_param_info[p].labels[i]);
  sqlite3_finalize (s);
}

void
coop_store_prepare (CoopStore *store)
{
  static const char *const sql[COOP_N_STATEMENTS] = {
#define X(ID, text) text,
    COOP_STATEMENTS (X)
#undef X
  };
  for (guint i = 0; i < COOP_N_STATEMENTS && coop_store_ok (store); i++)
    if (sqlite3_prepare_v3 (store->db, sql[i], -1, SQLITE_PREPARE_PERSISTENT, &store->statements[i], NULL)
        != SQLITE_OK)
      fail_sqlite (store);
}

static void
set_up (CoopStore *store, const char *const *meta)
{
  g_autofree char *identity = g_strdup_printf (
    "PRAGMA application_id = %d; PRAGMA user_version = %d;"
    "PRAGMA page_size = 4096; PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL;"
    "PRAGMA cache_size = -16384; PRAGMA journal_size_limit = 33554432; PRAGMA foreign_keys = OFF",
    COOP_APPLICATION_ID, COOP_SCHEMA_VERSION);
  g_autofree char *session = g_strdup_printf (
    "INSERT INTO session VALUES (1, %" G_GINT64_FORMAT ", NULL, %d, NULL, %d)",
    g_get_real_time () * 1000, COOP_RUN_RUNNING, (int) getpid ());
  exec (store, identity);
  coop_store_room_begin (store);
  coop_store_begin (store);
  exec (store, coop_sql_schema);
  exec (store, session);
  if (coop_store_ok (store))
    put_labels (store);
  coop_store_prepare (store);
  if (!coop_store_ok (store))
    return;
  coop_store_set_meta (store, "coopscope", COOP_VERSION);
  coop_store_set_meta (store, "clock", "recorded");
  for (guint i = 0; meta != NULL && meta[i] != NULL && meta[i + 1] != NULL; i += 2)
    coop_store_set_meta (store, meta[i], meta[i + 1]);
  commit (store);
}

static gboolean
remove_all (const char *path, GError **error)
{
  static const char *const suffixes[] = { "", "-wal", "-shm", "-journal" };
  for (guint i = 0; i < G_N_ELEMENTS (suffixes); i++)
    {
      g_autofree char *name = g_strconcat (path, suffixes[i], NULL);
      if (unlink (name) != 0 && errno != ENOENT)
        {
          g_set_error (error, COOP_TRACE_ERROR, COOP_TRACE_ERROR_IO, "%s: %s", name, g_strerror (errno));
          return FALSE;
        }
    }
  return TRUE;
}

/* Makes way for a new file: an old trace and an empty file may go, anything else stays. */
static gboolean
make_way (const char *path, GError **error)
{
  g_autoptr (GError) foreign = NULL;
  struct stat st;
  if (lstat (path, &st) != 0)
    return TRUE;
  if (!(S_ISREG (st.st_mode) && st.st_size == 0) && !coop_trace_identify (path, &foreign)
      && !g_error_matches (foreign, COOP_TRACE_ERROR, COOP_TRACE_ERROR_NEWER))
    {
      g_set_error (error, COOP_TRACE_ERROR, COOP_TRACE_ERROR_EXISTS,
                   "%s: there is something else of that name; it is left alone", path);
      return FALSE;
    }
  return remove_all (path, error);
}

CoopStore *
coop_store_new (const char *path, int lock_fd)
{
  CoopStore *store = g_new0 (CoopStore, 1);
  store->path = g_strdup (path);
  store->lock_fd = lock_fd;
  store->rest = g_byte_array_new ();
  store->text = g_string_new (NULL);
  coop_id_map_init (&store->lives);
  coop_id_map_init (&store->running);
  store->base = -1;
  return store;
}

void
coop_store_free (CoopStore *store)
{
  for (guint i = 0; i < COOP_N_STATEMENTS; i++)
    sqlite3_finalize (store->statements[i]);
  sqlite3_close (store->db);
  coop_store_unlock (store->path, store->lock_fd);
  coop_store_rows_clear (store);
  coop_store_trim_clear (store);
  coop_model_free (store->slim);
  g_byte_array_unref (store->rest);
  g_string_free (store->text, TRUE);
  g_free (store->path);
  g_free (store->why);
  g_free (store);
}

static void
remember_file (CoopStore *store)
{
  struct stat st;
  if (stat (store->path, &st) != 0)
    return;
  store->device = st.st_dev;
  store->inode = st.st_ino;
}

CoopStore *
coop_store_create (const char *path, const char *const *meta, GError **error)
{
  int lock_fd = coop_store_lock (path, error);
  if (lock_fd < 0)
    return NULL;
  if (!make_way (path, error))
    {
      coop_store_unlock (path, lock_fd);
      return NULL;
    }
  CoopStore *store = coop_store_new (path, lock_fd);
  if (sqlite3_open_v2 (path, &store->db, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX, NULL)
      != SQLITE_OK)
    fail_sqlite (store);
  sqlite3_busy_timeout (store->db, 1000);
  set_up (store, meta);
  remember_file (store);
  if (!coop_store_ok (store))
    {
      g_set_error (error, COOP_TRACE_ERROR, COOP_TRACE_ERROR_IO, "%s: %s", path, store->why);
      remove_all (path, NULL);
      coop_store_free (store);
      return NULL;
    }
  return store;
}

/* ---- closing ---- */

static void
write_session (CoopStore *store, CoopRunState state, int exit_code)
{
  if (!coop_store_ok (store))
    return;
  CoopBind bind = coop_bind (store, COOP_STATEMENT_SESSION);
  if (store->walled)
    coop_bind_id (&bind, (guint64) store->end_ns);
  else
    coop_bind_int (&bind, (guint64) g_get_real_time () * 1000);
  coop_bind_int (&bind, state);
  coop_bind_int (&bind, exit_code);
  coop_store_step (store, COOP_STATEMENT_SESSION);
}

/* The last words of a store that failed, into the room kept for them. */
static void
say_lost (CoopStore *store, CoopRunState state, int exit_code)
{
  g_autofree char *why = g_steal_pointer (&store->why);
  if (ftruncate (store->lock_fd, 0) != 0)
    g_debug ("%s: %s", store->path, g_strerror (errno));
  coop_store_room_use (store);
  coop_store_begin (store);
  if (!coop_store_ok (store))
    return;
  set_stat (store, "lost_events", store->lost);
  coop_store_set_meta (store, "trace_error", why);
  write_session (store, state, exit_code);
  coop_store_room_end (store);
  exec (store, "COMMIT");
}

/* A trace without its indexes is whole; only questions take longer. Each is its own batch, so that the
 * log is folded in between. */
static void
make_indexes (CoopStore *store)
{
  guint done = 0, all = 1;
  for (const char *at = coop_sql_index; (at = strstr (at, "CREATE INDEX")) != NULL; at++)
    all++;
  for (const char *rest = coop_sql_index; rest != NULL && *rest != 0 && coop_store_ok (store);)
    {
      sqlite3_stmt *statement = NULL;
      if (store->closing != NULL)
        store->closing (store->closing_user, (double) done / all);
      done += done < all;
      coop_store_begin (store);
      if (sqlite3_prepare_v2 (store->db, rest, -1, &statement, &rest) != SQLITE_OK
          || (statement != NULL && sqlite3_step (statement) != SQLITE_DONE))
        fail_sqlite (store);
      sqlite3_finalize (statement);
      commit (store);
    }
  if (coop_store_ok (store))
    return;
  g_debug ("%s: not all indexes: %s", store->path, store->why);
  g_clear_pointer (&store->why, g_free);
}

/* State and floor take a look at every operator: once, here, and not each time that somebody asks. */
static void
keep_floor (CoopStore *store)
{
  CoopReader reader = { store->path, store->db, NULL };
  CoopTraceInfo info = { 0 };
  if (!coop_reader_floor (&reader, &info, NULL))
    return;
  coop_store_begin (store);
  set_stat (store, "state_bytes", info.state_bytes);
  set_stat (store, "floor_bytes", info.floor_bytes);
  commit (store);
}

/* SQLite leaves its log behind where its file has another name now; all of it is in there, and whoever
 * opens another file of the old name would take it for that one's. */
static void
remove_log (const char *path)
{
  g_autofree char *log = g_strconcat (path, "-wal", NULL), *index = g_strconcat (path, "-shm", NULL);
  unlink (log);
  unlink (index);
}

/* One file that can be mailed; a reader that still has it open may keep it from that for now. */
static void
make_one_file (CoopStore *store)
{
  sqlite3_busy_timeout (store->db, 200);
  sqlite3_wal_checkpoint_v2 (store->db, NULL, SQLITE_CHECKPOINT_TRUNCATE, NULL, NULL);
  sqlite3_exec (store->db, "PRAGMA journal_mode = DELETE", NULL, NULL, NULL);
}

void
coop_store_set_closing (CoopStore *store, void (*closing) (gpointer user, double part), gpointer user)
{
  store->closing = closing;
  store->closing_user = user;
}

gboolean
coop_store_close (CoopStore *store, CoopRunState state, int exit_code, GError **error)
{
  coop_store_begin (store);
  coop_store_open_rows (store);
  write_session (store, state, exit_code);
  commit (store);
  gboolean whole = coop_store_ok (store);
  if (whole)
    {
      make_indexes (store);
      keep_floor (store);
      coop_store_begin (store);
      coop_store_room_end (store);
      commit (store);
    }
  else
    {
      g_set_error (error, COOP_TRACE_ERROR, COOP_TRACE_ERROR_IO, "%s: %s; %" G_GUINT64_FORMAT " events are not in it",
                   store->path, store->why, store->lost);
      say_lost (store, state, exit_code);
    }
  make_one_file (store);
  if (!is_there (store))
    remove_log (store->path);
  coop_store_free (store);
  return whole;
}
