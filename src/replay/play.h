/* SPDX-License-Identifier: Apache-2.0 */
/* Play: a program through the engine on a virtual clock. No bytes, no PyTorch, no threads: the same
 * program and policy give the same events on every run and machine.
 *
 * What a live host does is done here in the same order, so a program that came from a trace, under
 * the trace's own policy, makes the decisions that the run made.
 */
#ifndef COOP_PLAY_H
#define COOP_PLAY_H

#include "replay/program.h"

typedef enum {
  COOP_PLAY_OK,
  COOP_PLAY_NO_BYTES,   /* out of memory: not enough even with all that may be evicted */
  COOP_PLAY_NO_ROOM,    /* out of memory: enough bytes, but not side by side */
  COOP_PLAY_CONSTANTS,  /* the constants alone do not fit */
  COOP_PLAY_TOO_SLOW,   /* given up: more than `most` times the cost */
  COOP_PLAY_LOST,       /* a tensor cannot be made again: the program does not say how */
  COOP_PLAY_STOPPED,    /* by `keep_on` */
  COOP_N_PLAYS
} CoopPlayResult;
const char *coop_play_label (CoopPlayResult result);   /* "ok", "no-bytes", ... */
const char *coop_play_text (CoopPlayResult result);    /* for people */

typedef struct {
  CoopPolicy policy;
  guint64 capacity;          /* 0: the program's, or room enough */
  gboolean as_recorded;      /* policy changes in the program take effect */
  gboolean measure;          /* time searches; off: they are not timed, and runs are identical */
  double most;               /* gives up at so many times the cost; 0: never */
  CoopSink sink;             /* gets events with seq and ts filled in; emit may be NULL */
  gboolean (*keep_on) (gpointer user, double part);   /* may be NULL; FALSE stops */
  gpointer user;
} CoopPlayOptions;
void coop_play_options_init (CoopPlayOptions *options);

typedef struct {
  CoopPlayResult result;
  guint64 line;              /* lines of the program that were played */
  guint64 plain_ns;          /* cost of the operators played, each once */
  guint64 cost_ns;           /* with recomputation */
  guint64 moves, moved_bytes;   /* since the first operator */
  guint64 move_ns;           /* their copies, at the rate of the program's machine; 0 if it does not say */
  guint64 device_ns;         /* pages moved, segments given back */
  double overhead;           /* (cost + move + device) / plain; NaN if nothing was played */
  guint64 events, thrashing; /* thrashing: tensors brought back too often */
  CoopTotals totals;
  CoopOom oom;               /* of the request that failed */
  const char *fault;         /* coop_engine_check at the end; NULL: all is well. Static */
} CoopPlayOutcome;

/* The policy reckons with what the program's machine copies, if the program says it. */
void coop_play_copy_rate (const CoopProgram *program, CoopPolicy *policy);

void coop_play (const CoopProgram *program, const CoopPlayOptions *options, CoopPlayOutcome *outcome);

/* Largest sum of live bytes with no limit and no eviction, what ratios refer to. 0 if the program
 * cannot be played. */
guint64 coop_play_peak (const CoopProgram *program);

#endif
