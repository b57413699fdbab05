/* SPDX-License-Identifier: Apache-2.0 */
/* Session: one run, watched. Launches the script (or follows one that is running), drains its ring
 * on a collector thread into the model and the store, and publishes frames for whoever looks.
 */
#ifndef COOP_SESSION_H
#define COOP_SESSION_H

#include <gio/gio.h>

#include "trace/store.h"

#define COOP_SESSION_ERROR (coop_session_error_quark ())
typedef enum {
  COOP_SESSION_ERROR_COMMAND,   /* no such program, script or folder */
  COOP_SESSION_ERROR_TORCH,     /* interpreter without torch, or too old */
  COOP_SESSION_ERROR_BUDGET,    /* a budget that cannot be */
  COOP_SESSION_ERROR_PROCESS,   /* no such process, not ours, not under Coopscope */
  COOP_SESSION_ERROR_SYSTEM
} CoopSessionError;
GQuark coop_session_error_quark (void);

#define COOP_TRACE_LIMIT (G_GUINT64_CONSTANT (4) << 30) /* unless told otherwise */

typedef struct {
  char **argv;          /* command and arguments */
  char **envp;          /* NULL: inherit; entries KEY=VALUE are added to what is inherited */
  char *cwd;            /* NULL: here */
  char *trace;          /* path, or NULL: a name made from the script's and the time, in cwd */
  CoopPolicy policy;
  gsize ring_bytes;     /* 0: default */
  guint64 trace_limit;  /* bytes that the trace may take, 4 GiB by default; 0: no limit */
  CoopTraceDetail trace_detail;
  gboolean terminal;    /* the child shares our terminal (coop run); else its output is captured */
  double rehearse;      /* share of one core for trying other policies while it runs; 0: none */
  gboolean checked;     /* coop_session_check has been asked */
} CoopRunOptions;
void coop_run_options_init (CoopRunOptions *options);
void coop_run_options_clear (CoopRunOptions *options);

typedef enum {
  COOP_SESSION_STARTING,     /* launched, no hello from PyTorch yet */
  COOP_SESSION_RECORDING,
  COOP_SESSION_ENDED,        /* exit code known, all drained */
  COOP_SESSION_KILLED,       /* by a signal */
  COOP_SESSION_LOST          /* the target's records make no sense, or it vanished (attached) */
} CoopSessionState;

/* What the window shows at one instant. Immutable, reference counted, any thread. */
typedef struct {
  gint ref_count;                /* use the functions */
  guint64 generation;            /* counts up from 1 */
  CoopModelTotals totals;
  CoopPolicy policy;
  guint n_pieces;
  CoopMapPiece *pieces;          /* address order, holes included */
  guint64 need;                  /* what the last request asked for (search or oom) */
  /* last eviction, as drawn on the map; victims may be empty */
  guint64 search_seq, search_need, search_lo, search_hi;
  double search_cost, search_next_cost;
  CoopSearchBody search;
  guint n_victims;
  CoopVictim *victims;
  gboolean has_oom;
  CoopLastOom oom;
} CoopFrame;
CoopFrame *coop_frame_ref (CoopFrame *frame);
void coop_frame_unref (CoopFrame *frame);
/* The frame of a model, also for history. */
CoopFrame *coop_frame_new (CoopModel *model, guint64 generation);

/* One sample of the usage chart: min and max over its time. */
typedef struct {
  guint64 ts;
  guint64 used_min, used_max, pinned_max, largest_min, budget;
  guint32 evictions, handovers;
} CoopSample;

#define COOP_TYPE_SESSION (coop_session_get_type ())
G_DECLARE_FINAL_TYPE (CoopSession, coop_session, COOP, SESSION, GObject)
/* Signals, on the main context of the thread that made it:
 *   "state-changed" (), "output" (const char *text, gboolean is_stderr) captured lines of the child,
 *   "message" (const char *text) things a person should know: trace lost, events dropped, thrashing. */

/* Whether the command can be run at all: no such program, script or folder, no PyTorch. Starts the
 * interpreter to see, which takes from some ms to seconds; any thread. */
gboolean coop_session_check (const CoopRunOptions *options, GError **error);
/* Starts at once. NULL with error if it cannot; what coop_session_check finds is found before, unless
 * the options say that it was asked already. */
CoopSession *coop_session_start (const CoopRunOptions *options, GError **error);
/* Follows a process that runs under Coopscope: frames come from its trace file, policy goes to its
 * control page. */
CoopSession *coop_session_attach (int pid, GError **error);
/* Records what process `pid` (0: whoever claims it) writes into the wire behind fd, until it ends: what
 * `coop collect` does for a notebook. fd stays the caller's. */
CoopSession *coop_session_collect (int fd, const char *trace, int pid, GError **error);

CoopSessionState coop_session_get_state (CoopSession *session);
/* Exit code, or the signal when KILLED; when LOST the exit code or 128 + signal, if known; else -1. */
int coop_session_get_exit (CoopSession *session);
int coop_session_get_pid (CoopSession *session);
const char *coop_session_get_trace (CoopSession *session);
/* The newest frame with a reference, NULL before the first. Cheap; any thread; never waits. Each call
 * also asks the collector for a newer one, made within a few ms if something changed since: who calls
 * once a redraw gets a frame at most one redraw old. The last frame of a run is there before its end
 * is signalled. */
CoopFrame *coop_session_frame (CoopSession *session);
/* Samples of the whole run (element CoopSample), about n; copied. */
GArray *coop_session_usage (CoopSession *session, guint n);
/* The latest events in words, newest last: pairs of (seq, text); at most n. Element CoopEventLine. */
typedef struct { guint64 seq, ts; guint16 kind; char *text; } CoopEventLine;
GPtrArray *coop_session_events (CoopSession *session, guint n);
/* A block explained: tensor, operator, size, cost, age, line of the script, why pinned. g_free; NULL
 * if that block is gone. */
char *coop_session_describe_block (CoopSession *session, guint64 block);
/* The same as of a frame of this session, so that the words fit what is drawn of it. */
char *coop_session_describe_in (CoopSession *session, const CoopFrame *frame, guint64 block);

/* As coop_model_name, of the session's model. Any thread. */
char *coop_session_name (CoopSession *session, CoopNameKind kind, guint64 id);

void coop_session_set_param (CoopSession *session, CoopParam param, CoopValue value, CoopSource source);
void coop_session_set_policy (CoopSession *session, const CoopPolicy *policy, guint64 mask,
                              CoopSource source);
/* SIGINT first, as Ctrl-C would; again: SIGTERM; a third time: SIGKILL. */
void coop_session_stop (CoopSession *session);
void coop_session_signal (CoopSession *session, int signum);

typedef struct {
  double events_per_s, lag_ms, ring_fill;
  double closing;       /* 0: not yet; else how much of the trace's end, indexes, is done */
  guint64 dropped, lost, trace_bytes;
} CoopSessionHealth;
void coop_session_health (CoopSession *session, CoopSessionHealth *health);

#endif
