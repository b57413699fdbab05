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
            " coalesce ((SELECT depth FROM stack WHERE id = ?3), 0) + 1)")                          \
  X (POOL, "INSERT OR REPLACE INTO pool VALUES (?,?,?,?,?,?)")                                      \
  X (SEGMENT, "INSERT OR REPLACE INTO segment VALUES (?,?,?,?,?,NULL)")                             \
  X (SEGMENT_END, "UPDATE segment SET died_event = ?2 WHERE id = ?1")                               \
  X (POLICY, "INSERT INTO policy_change VALUES (?,?,?,?,?,?)")                                      \
  X (BLOCK, "INSERT OR REPLACE INTO block VALUES (?,?,?,?,?,?,?,?,?,?,?)")                          \
  X (TENSOR, "INSERT OR REPLACE INTO tensor VALUES (?,?,?,?,?,?,?,?,?,?)")                          \
  X (TENSOR_WRITE, "INSERT OR IGNORE INTO tensor SELECT ?1,?3,storage,?4,output,dtype,shape,"       \
                   "bytes,kind,pin FROM tensor WHERE id = ?2")                                      \
  X (TENSOR_KIND, "UPDATE tensor SET kind = ?2, pin = ?3 WHERE id = ?1")                            \
  X (TENSOR_PIN, "UPDATE tensor SET pin = ?2 WHERE id = ?1")                                        \
  X (OP, "INSERT OR REPLACE INTO op VALUES (?,?,?,?,?,?,?,?,?,?,?,?,?,?,?)")                        \
  X (OP_COST, "UPDATE op SET cost_ns = ?2 WHERE id = ?1")                                           \
  X (EVICTION, "INSERT OR REPLACE INTO eviction VALUES (?,?,?,?,?,?,?,?,?,?,?,?,?,?)")              \
  X (EVICTED, "INSERT OR REPLACE INTO evicted VALUES (?,?,?,?,?,?,?,?,?,?)")                        \
  X (OOM, "INSERT INTO oom VALUES (?,?,?,?,?,?,?,?,?,?,?,?,?,?)")                                   \
  X (STEP, "INSERT INTO step VALUES (?,?,?)")                                                       \
  X (ANNOTATION, "INSERT INTO annotation VALUES (?,?,?)")                                           \
  X (WARNING, "INSERT INTO warning VALUES (?,?,?,?,?)")                                             \
  X (GAP, "INSERT INTO gap VALUES (?,?,?)")                                                         \
  X (KEYFRAME, "INSERT INTO layout_keyframe VALUES (?,?,?)")                                        \
  X (LOD, "INSERT OR REPLACE INTO usage_lod VALUES (?,?,?,?,?,?,?,?,?,?,?,?,?)")                    \
  X (SESSION, "UPDATE session SET end_ns = ?, state = ?, exit_code = ?")                            \
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
  char *why;              /* set: writing has failed and is over */
  CoopIdMap lives;        /* block -> CoopLife */
  CoopIdMap running;      /* operator -> CoopRunning */
  CoopLodBucket lod[COOP_LOD_LEVELS];
  CoopModelTotals totals; /* after the last event */
  GByteArray *rest;
  GString *text;
};

/* store.c */
/* Begins a batch if none is open. */
void coop_store_begin (CoopStore *store);
/* Resets a statement that was bound, runs it; on failure the store is over. */
void coop_store_step (CoopStore *store, CoopStatement id);
void coop_store_fail (CoopStore *store, const char *why);
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
void coop_store_rows_text (CoopStore *store, const CoopEvent *ev, const void *body);
void coop_store_rows_pool (CoopStore *store, const CoopEvent *ev);
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

/* store-lock.c: the lock is a flock on FILE-lock, beside the trace, for as long as it is written.
 * It dies with its process; the file that a killed one leaves behind means nothing. It is not
 * on the trace itself: closing any descriptor of that one would drop SQLite's own locks. */
/* Descriptor; -1 with BUSY or IO. */
int coop_store_lock (const char *path, GError **error);
void coop_store_unlock (const char *path, int fd);
gboolean coop_store_locked (const char *path);

#endif
