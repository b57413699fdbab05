/* SPDX-License-Identifier: Apache-2.0 */
/* Timeline: one walk over a trace that turns events into what timeline viewers show: slices on a track
 * a thread, instants, and counters. Perfetto's and Chrome's writers take the same items.
 */
#ifndef COOP_EXPORT_TIMELINE_H
#define COOP_EXPORT_TIMELINE_H

#include "export/export-private.h"

/* Tracks that are no thread's. */
enum { COOP_TRACK_STEPS = -1, COOP_TRACK_PHASES = -2 };

typedef enum {
  COOP_ITEM_TRACK,    /* a track comes into being: track, name */
  COOP_ITEM_BEGIN,    /* a slice begins: track, name, category, args, file, func, line */
  COOP_ITEM_END,      /* the newest open slice of the track ends: args */
  COOP_ITEM_INSTANT,  /* track, name, category, args */
  COOP_ITEM_COUNTER   /* counter, value */
} CoopItemType;

typedef enum {
  COOP_COUNTER_USED, COOP_COUNTER_PINNED, COOP_COUNTER_LARGEST, COOP_COUNTER_EVICTED, COOP_COUNTER_BUDGET,
  COOP_N_COUNTERS
} CoopCounter;

typedef struct {
  const char *name;
  enum { COOP_ARG_UINT, COOP_ARG_REAL, COOP_ARG_TEXT } type;
  guint64 number;
  double real;
  const char *text;
} CoopArg;

#define COOP_MAX_ARGS 12

typedef struct {
  CoopItemType type;
  guint64 ts;                 /* ns of the run's clock */
  int track;                  /* number of the thread, or COOP_TRACK_* */
  const char *name, *category;
  const char *file, *func;    /* of the script's line; NULL unknown */
  gint64 line;
  CoopCounter counter;
  guint64 value;
  CoopArg args[COOP_MAX_ARGS];
  guint n_args;
} CoopItem;

/* FALSE ends the walk. */
typedef gboolean (*CoopTakeItem) (gpointer user, const CoopItem *item);

/* Items in order of time; a track before what is on it; every slice that begins ends, at the latest
 * with the trace. */
gboolean coop_timeline_walk (const CoopExportJob *job, CoopTakeItem take, gpointer user, GError **error);

const char *coop_counter_label (CoopCounter counter);
/* "resnet.py", or "coop" for an anonymised run; g_free. And the run's process, 1 if unknown. */
char *coop_timeline_process (const CoopExportJob *job, guint64 *pid);

#endif
