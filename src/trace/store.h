/* SPDX-License-Identifier: Apache-2.0 */
/* Store and reader: the .coop file. SQLite is used in src/trace and nowhere else.
 *
 * One writer a file, on one thread. WAL while recording, one file when closed. A store never stops
 * the run: once writing fails (disk full, file removed) it drops, counts, and says so in its error,
 * in `stat` as far as that can be written, and through coop_store_lost.
 */
#ifndef COOP_STORE_H
#define COOP_STORE_H

#include <glib.h>

#include "trace/model.h"

#define COOP_APPLICATION_ID 0x434F4F50
#define COOP_SCHEMA_VERSION 2

#define COOP_TRACE_ERROR (coop_trace_error_quark ())
typedef enum {
  COOP_TRACE_ERROR_FOREIGN,   /* not a trace */
  COOP_TRACE_ERROR_NEWER,     /* a schema this version does not know */
  COOP_TRACE_ERROR_BUSY,      /* another run writes it */
  COOP_TRACE_ERROR_EXISTS,    /* there is something else of that name */
  COOP_TRACE_ERROR_IO,        /* cannot be created, read or written; message says why */
  COOP_TRACE_ERROR_QUERY,     /* SQL of the user's is wrong or took too long */
  COOP_TRACE_ERROR_CANCELLED
} CoopTraceError;
GQuark coop_trace_error_quark (void);

typedef struct CoopStore CoopStore;

/* Creates the file. An existing finished trace at path is replaced; a foreign file is not (EXISTS);
 * one that a live process writes is not (BUSY). meta: key, value pairs, NULL-terminated. */
CoopStore *coop_store_create (const char *path, const char *const *meta, GError **error);

typedef enum { COOP_DETAIL_FULL, COOP_DETAIL_BLOCKS, COOP_DETAIL_SUMMARY, COOP_N_DETAILS } CoopTraceDetail;
/* "full", "blocks", "summary"; NULL if there is no such. */
const char *coop_detail_label (guint detail);
/* To be called before the first event. limit: bytes that the file should not pass, 0 for none; of a run
 * that takes more the latest events are kept (it is no program any more, and says so). detail: BLOCKS
 * leaves tensors and operators out, SUMMARY also blocks; events are then numbered anew. Usage over time,
 * decisions, marks and totals are always there. */
void coop_store_set_limits (CoopStore *store, guint64 limit, CoopTraceDetail detail);
/* Events that were given up for the limit. */
guint64 coop_store_trimmed (const CoopStore *store);

/* Appends one event. `model` is the caller's, and has just applied the event: the store takes from it
 * what a row needs (used bytes, largest hole, lives of blocks). Batches by itself. An
 * event that the model leaves out is left out here, too, and counted in stat.repeated_events. */
void coop_store_append (CoopStore *store, const CoopModel *model, const CoopEvent *ev, const void *body);
/* Writes the batch if it is older than 50 ms. To be called when idle. */
void coop_store_tick (CoopStore *store);
void coop_store_set_meta (CoopStore *store, const char *key, const char *value);
void coop_store_set_stat (CoopStore *store, const char *name, gint64 value);
/* Of what was not recorded now: when it began and ended, ns since 1970; 0: unknown. */
void coop_store_set_wall (CoopStore *store, gint64 start_ns, gint64 end_ns);
/* Events not written, and why (valid for the store's life); 0 and NULL while all is well. */
guint64 coop_store_lost (const CoopStore *store, const char **why);
guint64 coop_store_bytes (const CoopStore *store);
const char *coop_store_path (const CoopStore *store);

typedef enum { COOP_RUN_RUNNING, COOP_RUN_ENDED, COOP_RUN_KILLED, COOP_RUN_INTERRUPTED } CoopRunState;
/* coop_store_close tells how far it is, 0 to 1, in its own thread: indexes of a long trace take a while. */
void coop_store_set_closing (CoopStore *store, void (*closing) (gpointer user, double part), gpointer user);
/* Last batch, indexes, checkpoint, one file. exit_code: of the script; signal number when KILLED. */
gboolean coop_store_close (CoopStore *store, CoopRunState state, int exit_code, GError **error);

/* ---- reading ---- */
typedef struct CoopReader CoopReader;

/* Read-only; works on a file that is being written. A file whose writer is gone without an end is
 * reported as INTERRUPTED. */
CoopReader *coop_reader_open (const char *path, GError **error);
/* From now on the file is as it is at this moment, whoever writes on: for what looks at all of it. The
 * writer's log cannot be folded in meanwhile, so this is for minutes, not for a window. */
void coop_reader_hold (CoopReader *reader);
void coop_reader_free (CoopReader *reader);
/* Ends a query under way at its next step, with an error. Any thread, while the reader lives. */
void coop_reader_interrupt (CoopReader *reader);

/* Events from seq on, exactly as they were on the wire (seq, ts, kind, body). FALSE from `take` ends.
 * Returns the number handed out; follows no further than what is committed now. */
typedef gboolean (*CoopTakeEvent) (gpointer user, const CoopEvent *ev, const void *body);
gint64 coop_reader_events (CoopReader *reader, guint64 from, CoopTakeEvent take, gpointer user,
                           GError **error);
guint64 coop_reader_last_seq (CoopReader *reader);
/* The first moment that is known: where the beginning of a run was given up for the limit on the file's
 * size, the number of the last event before what is there. FALSE: all is there. ts may be NULL. */
gboolean coop_reader_trimmed (CoopReader *reader, guint64 *seq, guint64 *ts);
CoopTraceDetail coop_reader_detail (CoopReader *reader);
/* The model after event seq (keyframe + short replay); seq past the end means the end. */
CoopModel *coop_reader_model_at (CoopReader *reader, guint64 seq, GError **error);

typedef struct {
  guint64 bucket_ts;                       /* begin of the bucket, ns */
  guint64 used_min, used_max, largest_min, pinned_max, budget;
  guint32 evictions, handovers;
} CoopUsage;
/* Usage between two times in about n buckets (element CoopUsage). */
GArray *coop_reader_usage (CoopReader *reader, guint64 from_ts, guint64 to_ts, guint n, GError **error);

typedef struct {
  CoopModelTotals totals;    /* at the end */
  CoopRunState state;
  int exit_code;
  guint64 start_ns, end_ns;  /* wall clock, Unix */
  guint64 events;
  guint64 state_bytes;       /* survive from one step to the next; 0 if no two steps were seen */
  guint64 floor_bytes;       /* max over operators of state + inputs + outputs + workspace as a set */
  guint64 peak;              /* as in the model: largest sum of live rounded bytes */
  char *command, *evictor, *allocator;
  guint64 budget;            /* at the last operator of the program's own; 0 = none */
  guint64 peak_seq;          /* the first event after which `peak` was in use; G_MAXUINT64: unknown */
  guint64 trimmed;           /* events that were given up at the beginning */
  CoopTraceDetail detail;
} CoopTraceInfo;
gboolean coop_reader_info (CoopReader *reader, CoopTraceInfo *info, GError **error);
void coop_trace_info_clear (CoopTraceInfo *info);
/* NULL if there is none; g_free. */
char *coop_reader_meta (CoopReader *reader, const char *key);

/* What is not in the trace, a sentence each, under a word for it; free with g_array_unref. */
typedef struct {
  const char *label;
  char *text;
} CoopCaveat;
GArray *coop_reader_caveats (CoopReader *reader);

/* One SELECT of the user's, read-only, at most `seconds`. Calls `row` with column texts (NULL = NULL). */
typedef gboolean (*CoopRow) (gpointer user, int n, const char *const *names, const char *const *values,
                             const int *types);
gboolean coop_reader_query (CoopReader *reader, const char *sql, double seconds, CoopRow row,
                            gpointer user, GError **error);

/* The shortest text that reads as that number again. text: G_ASCII_DTOSTR_BUF_SIZE bytes; returned. */
const char *coop_real_text (char *text, double value);

/* ---- repairing ---- */

/* What a run that was killed, an older version or a crash left undone: ends, the rows of what lived,
 * indexes, the schema, layouts that do not load. Never touches an event. done: sentences for people
 * (element char *), empty if there was nothing to do. A file that is damaged is refused. */
gboolean coop_repair (const char *path, GPtrArray *done, GError **error);

/* ---- checking ---- */
typedef struct {
  guint64 seq;
  CoopFault fault;
  char *text;
} CoopFinding;
/* Replays the whole file against a naive map of memory of its own (not the model) and compares the
 * stored columns and block rows with it. Elements CoopFinding, at most `max`. progress may be NULL. */
GArray *coop_check (const char *path, guint max, void (*progress) (gpointer user, double part),
                    gpointer user, GError **error);

#endif
