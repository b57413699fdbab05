/* SPDX-License-Identifier: Apache-2.0 */
/* Store: room kept for the last words. A disk fills while the log is written, and then neither the
 * log can grow nor the file into which it is to be folded, so that nothing more could be said.
 * Therefore each batch allocates, before it counts, all that the file needs to take the log in, and
 * some pages more: folding and the few rows of the last words then write where room already is. */
#include "trace/store-private.h"

#include <sys/resource.h>

#define PAGE_BYTES 4096
#define CHUNK_BYTES 65536      /* by which the file grows while it is written */
#define SPARE_PAGES 16         /* more than the last words take */
#define FOLD_TRIES 5           /* of a second each: a reader may have to finish first */

static gint64
pages (CoopStore *store, CoopStatement id)
{
  sqlite3_stmt *statement = store->statements[id];
  gint64 n = sqlite3_step (statement) == SQLITE_ROW ? sqlite3_column_int64 (statement, 0) : 0;
  sqlite3_reset (statement);
  return n;
}

static void
set_most_pages (CoopStore *store, gint64 n)
{
  g_autofree char *sql = g_strdup_printf ("PRAGMA max_page_count = %" G_GINT64_FORMAT, n);
  sqlite3_exec (store->db, sql, NULL, NULL, NULL);
}

void
coop_store_room_begin (CoopStore *store)
{
  int chunk = CHUNK_BYTES;
  gint64 kept = SPARE_PAGES + CHUNK_BYTES / PAGE_BYTES;
  struct rlimit limit;
  sqlite3_file_control (store->db, "main", SQLITE_FCNTL_CHUNK_SIZE, &chunk);
  store->size_limited = getrlimit (RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY;
  /* Else the log could hold pages that the file may not take in. */
  if (store->size_limited && limit.rlim_cur / PAGE_BYTES > 2 * (guint64) kept)
    set_most_pages (store, MIN (limit.rlim_cur / PAGE_BYTES, G_MAXUINT32) - kept);
}

void
coop_store_room_keep (CoopStore *store)
{
  sqlite3_int64 bytes = (pages (store, COOP_STATEMENT_PAGES) + SPARE_PAGES) * PAGE_BYTES;
  if (coop_store_ok (store)
      && sqlite3_file_control (store->db, "main", SQLITE_FCNTL_SIZE_HINT, &bytes) != SQLITE_OK)
    coop_store_fail (store, coop_store_full_text (store));
}

void
coop_store_room_use (CoopStore *store)
{
  int result = SQLITE_BUSY;
  for (guint i = 0; i < FOLD_TRIES && result == SQLITE_BUSY; i++)
    result = sqlite3_wal_checkpoint_v2 (store->db, NULL, SQLITE_CHECKPOINT_RESTART, NULL, NULL);
  if (result != SQLITE_OK)
    g_debug ("%s: the log stays: %s", store->path, sqlite3_errmsg (store->db));
  set_most_pages (store, pages (store, COOP_STATEMENT_MOST_PAGES) + SPARE_PAGES);
}

void
coop_store_room_end (CoopStore *store)
{
  int chunk = 0;
  sqlite3_file_control (store->db, "main", SQLITE_FCNTL_CHUNK_SIZE, &chunk);
}

const char *
coop_store_full_text (const CoopStore *store)
{
  return store->size_limited ? "the disk is full, or a file of this process may not be larger"
                             : "the disk is full";
}
