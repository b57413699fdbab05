/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of the store share.
 *
 *   store.c        the file: create, lock, batches, failure, close
 *   store-rows.c   one event -> its rows; blocks, tensors, operators
 *   store-marks.c  decisions, texts, marks
 *   store-lod.c    usage over time
 *   store-lock.c   who writes
 *   store-bind.c   values into statements
 *   store-room.c   room for the last words on a full disk
 *   store-trim.c   the oldest events go where the file may not grow
 *   store-detail.c what is left out of a slim file
 */
#ifndef COOP_STORE_PRIVATE_H
#define COOP_STORE_PRIVATE_H

#include <sqlite3.h>

#include "trace/event-codec.h"
#include "trace/id-map.h"
#include "trace/store.h"

/* X (ID, sql): the prepared statements. */
#define COOP_STATEMENTS(X)                                                                          \
  X (EVENT, "INSERT INTO event VALUES (?,?,?,?,?,?,?,?,?,?,?,?)")                                   \
  X (META, "INSERT OR REPLACE INTO meta VALUES (?,?)")                                              \
  X (STAT, "INSERT OR REPLACE INTO stat VALUES (?,?)")                                              \
  X (STRING, "INSERT OR REPLACE INTO string VALUES (?,?,?)")                                        \
  X (FRAME, "INSERT OR REPLACE INTO frame VALUES (?,?,?,?,?)")                                      \
  X (STACK, "INSERT OR REPLACE INTO stack VALUES (?1,?2,?3,?4,"                                     \
            " coalesce ((SELECT depth FROM stack WHERE id = ?3), 0) + 1, ?5)")                          \
  X (POOL, "INSERT OR REPLACE INTO pool VALUES (?,?,?,?,?,?)")                                      \
  X (SEGMENT, "INSERT OR REPLACE INTO segment VALUES (?,?,?,?,?,NULL,?,?,?,?,?,?)")                             \
  X (SEGMENT_END, "UPDATE segment SET died_event = ?2 WHERE id = ?1")                               \
  X (POLICY, "INSERT INTO policy_change VALUES (?,?,?,?,?,?)")                                      \
  X (BLOCK, "INSERT OR REPLACE INTO block VALUES (?,?,?,?,?,?,?,?,?,?,?,?)")                          \
  X (TENSOR, "INSERT OR REPLACE INTO tensor VALUES (?,?,?,?,?,?,?,?,?,?)")                          \
  X (TENSOR_WRITE, "INSERT OR IGNORE INTO tensor SELECT ?1,?3,storage,?4,output,dtype,shape,"       \
                   "bytes,kind,pin FROM tensor WHERE id = ?2")                                      \
  X (TENSOR_KIND, "UPDATE tensor SET kind = ?2, pin = ?3 WHERE id = ?1")                            \
  X (TENSOR_PIN, "UPDATE tensor SET pin = ?2 WHERE id = ?1")                                        \
  X (OP, "INSERT OR REPLACE INTO op VALUES (?,?,?,?,?,?,?,?,?,?,?,?,?,?,?)")                        \
  X (OP_COST, "UPDATE op SET cost_ns = ?2 WHERE id = ?1")                                           \
  X (EVICTION, "INSERT OR REPLACE INTO eviction VALUES (?,?,?,?,?,?,?,?,?,?,?,?,?,?)")              \
  X (EVICTED, "INSERT OR REPLACE INTO evicted VALUES (?,?,?,?,?,?,?,?,?,?)")                        \
  X (OOM, "INSERT INTO oom VALUES (?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?)")                                   \
  X (STEP, "INSERT INTO step VALUES (?,?,?)")                                                       \
  X (ANNOTATION, "INSERT INTO annotation VALUES (?,?,?)")                                           \
  X (WARNING, "INSERT INTO warning VALUES (?,?,?,?,?)")                                             \
  X (GAP, "INSERT INTO gap VALUES (?,?,?)")                                                         \
  X (KEYFRAME, "INSERT INTO layout_keyframe VALUES (?,?,?)")                                        \
  X (LOD, "INSERT OR REPLACE INTO usage_lod VALUES (?,?,?,?,?,?,?,?,?,?,?,?,?)")                    \
  X (SESSION, "UPDATE session SET end_ns = ?, state = ?, exit_code = ?")                            \
  X (DELETE_BLOCK, "DELETE FROM block WHERE id = ?")                                                \
  X (DELETE_OP, "DELETE FROM op WHERE id = ?")                                                      \
  X (DELETE_TENSOR, "DELETE FROM tensor WHERE id = ?")                                              \
  X (DELETE_EVICTION, "DELETE FROM eviction WHERE id = ?")                                          \
  X (DELETE_EVICTED, "DELETE FROM evicted WHERE block = ?")                                         \
  X (TRIM_EVENTS, "DELETE FROM event WHERE seq <= ?")                                               \
  X (TRIM_KEYFRAMES, "DELETE FROM layout_keyframe WHERE event < ?")                                 \
  X (TRIM_LOD, "DELETE FROM usage_lod WHERE level = ? AND bucket < ?")                              \
  X (NEXT_KEYFRAME, "SELECT event, model FROM layout_keyframe WHERE event > ? ORDER BY event LIMIT 1") \
  X (FREE_PAGES, "PRAGMA freelist_count")                                                           \
  X (PAGES, "PRAGMA page_count")                                                                    \
  X (MOST_PAGES, "PRAGMA max_page_count")

typedef enum {
#define X(ID, sql) COOP_STATEMENT_##ID,
  COOP_STATEMENTS (X)
#undef X
  COOP_N_STATEMENTS
} CoopStatement;

/* Level L has buckets of 2^(20 + 3 L) ns: 1 ms, 8 ms, ... 2.4 hours. */
#define COOP_LOD_LEVELS 9
#define COOP_LOD_SHIFT(level) (20 + 3 * (level))

typedef struct {
  gboolean open;
  guint64 bucket, used_min, used_max, used_last, largest_min, largest_last, pinned_max, pinned_last,
    budget, evictions, handovers, n;
} CoopLodBucket;

struct CoopStore {
  char *path;
  int lock_fd;
  guint64 device, inode;  /* of the file */
  sqlite3 *db;
  sqlite3_stmt *statements[COOP_N_STATEMENTS];
  gboolean in_batch;
  guint batched;          /* events in the open batch */
  gint64 batch_begin;     /* monotonic us */
  guint64 events, since_keyframe;
  guint64 next_seq;       /* after the last event written */
  guint64 repeated;       /* left out: their numbers were written already, or passed by */
  guint64 lost;
  gboolean size_limited;  /* RLIMIT_FSIZE */
  gboolean mute;          /* rows are worked out and not written */
  gboolean walled;        /* not recorded now: end_ns says when it ended, 0 unknown */
  gint64 end_ns;
  char *why;              /* set: writing has failed and is over */
  void (*closing) (gpointer user, double part);
  gpointer closing_user;
  CoopIdMap lives;        /* block -> CoopLife */
  CoopIdMap running;      /* operator -> CoopRunning */
  CoopLodBucket lod[COOP_LOD_LEVELS];
  CoopTraceDetail detail;
  CoopModel *slim;        /* of what a slim file holds */
  guint64 own_seq;        /* next number in a slim file */
  guint64 limit;          /* bytes; 0: none */
  gint64 base;            /* the layout that the file begins with; -1: nothing was given up */
  guint64 trimmed, trimmed_ns;
  GArray *kept_ops, *kept_tensors; /* of before the base, and still known at it */
  GArray *kept_searches;  /* their victims may come after the base */
  CoopModelTotals totals; /* after the last event */
  guint64 peak_seq;       /* event of the peak */
  GByteArray *rest;
  GString *text;
};

/* store.c */
/* Begins a batch if none is open. */
void coop_store_begin (CoopStore *store);
/* Resets a statement that was bound, runs it; on failure the store is over. */
void coop_store_step (CoopStore *store, CoopStatement id);
void coop_store_fail (CoopStore *store, const char *why);
/* The parts of creating one: nothing opened yet; statements of an open database. */
CoopStore *coop_store_new (const char *path, int lock_fd);
void coop_store_prepare (CoopStore *store);
void coop_store_free (CoopStore *store);
static inline gboolean
coop_store_ok (const CoopStore *store)
{
  return store->why == NULL;
}

/* store-bind.c: binds in order of the statement's parameters. NULL for 0 where 0 means none. */
typedef struct {
  sqlite3_stmt *statement;
  int n;
} CoopBind;
CoopBind coop_bind (CoopStore *store, CoopStatement id);
void coop_bind_int (CoopBind *bind, guint64 value);
void coop_bind_id (CoopBind *bind, guint64 value);   /* 0: NULL */
void coop_bind_addr (CoopBind *bind, guint64 value); /* COOP_NO_ADDR: NULL */
void coop_bind_real (CoopBind *bind, double value);  /* NaN: NULL */
void coop_bind_text (CoopBind *bind, const char *text, gssize bytes); /* NULL: NULL; must outlive the step */
void coop_bind_null (CoopBind *bind);

/* store-rows.c */
void coop_store_rows (CoopStore *store, const CoopModel *model, const CoopEvent *ev, const void *body);
/* Rows of what has not ended: blocks that live, operators that run. */
void coop_store_open_rows (CoopStore *store);
void coop_store_rows_clear (CoopStore *store);

/* store-marks.c: one function a kind of event or a few */
void coop_store_row_search (CoopStore *store, const CoopEvent *ev, const void *body);
void coop_store_row_policy (CoopStore *store, const CoopEvent *ev);
void coop_store_row_oom (CoopStore *store, const CoopEvent *ev, const void *body);
void coop_store_row_warning (CoopStore *store, const CoopEvent *ev, const void *body);
void coop_store_rows_text (CoopStore *store, const CoopModel *model, const CoopEvent *ev, const void *body);
void coop_store_rows_pool (CoopStore *store, const CoopEvent *ev, const void *body);
void coop_store_rows_mark (CoopStore *store, const CoopModel *model, const CoopEvent *ev);

/* store-lod.c */
void coop_store_lod_add (CoopStore *store, const CoopEvent *ev, const CoopModelTotals *totals);
void coop_store_lod_flush (CoopStore *store);

/* store-room.c */
void coop_store_room_begin (CoopStore *store);
/* In a batch, before COMMIT: the file gets all the room that it needs to take the log in. */
void coop_store_room_keep (CoopStore *store);
/* After a failure: the log is folded into that room, and a few pages may be added. */
void coop_store_room_use (CoopStore *store);
/* Before the last COMMIT: the file ends where its pages end. */
void coop_store_room_end (CoopStore *store);
const char *coop_store_full_text (const CoopStore *store);

/* store-trim.c */
/* In a batch, before COMMIT. */
void coop_store_trim (CoopStore *store);
void coop_store_trim_clear (CoopStore *store);

/* store-detail.c */
/* The event as a slim file has it; FALSE if it has none. */
gboolean coop_store_slim (CoopStore *store, CoopEvent *ev);

/* store-lock.c: the lock is a flock on FILE-lock, beside the trace, for as long as it is written.
 * It dies with its process; the file that a killed one leaves behind means nothing. It is not
 * on the trace itself: closing any descriptor of that one would drop SQLite's own locks. */
/* Descriptor; -1 with BUSY or IO. */
int coop_store_lock (const char *path, GError **error);
void coop_store_unlock (const char *path, int fd);
gboolean coop_store_locked (const char *path);

#endif
