/* SPDX-License-Identifier: Apache-2.0 */
/* Sweep: programs x evictors x allocators x settings x ratios, in parallel, into one file. What is in
 * the file already is not run again, so a sweep that was ended at any moment goes on where it was. */
#ifndef COOP_SWEEP_H
#define COOP_SWEEP_H

#include "replay/play.h"
#include "trace/sweep-store.h"

typedef struct {
  const char *const *files;
  const int *evictors;          /* CoopEvictorName */
  guint n_evictors;
  const int *allocators;        /* CoopAllocatorName */
  guint n_allocators;
  const gint64 *ratios;         /* millionths of the peak without limit */
  guint n_ratios;
  const char *const *settings;  /* each "KEY=VALUE KEY=VALUE", checked, sorted; at least one (may be "") */
  guint n_settings;
  guint threads;
  guint shard, shards;          /* shard of 0 .. shards - 1: every shards-th run */
  double most;                  /* as in CoopPlayOptions */
  gboolean measure;
  /* from the caller's thread, a few times a second and at the end; FALSE ends the sweep */
  gboolean (*progress) (gpointer user, guint64 done, guint64 total, double seconds_left);
  gpointer user;
} CoopSweepOptions;

typedef struct {
  guint64 runs, ok, failed, skipped;   /* skipped: there already */
  guint64 steps;                       /* engine events of the runs */
  double seconds, busy_seconds;        /* busy: processor time of the runs */
  gboolean stopped;
} CoopSweepTotals;

/* FALSE with error: a program cannot be read or has no peak, or the file cannot be written. */
gboolean coop_sweep_run (const CoopSweepOptions *options, CoopSweepStore *store, CoopSweepTotals *totals,
                         GError **error);

/* "1:0.2:0.02" (from, to, step; both ends), "0.9", or such with commas between, into gint64 millionths,
 * each once, falling. NULL: not understood. */
GArray *coop_sweep_parse_ratios (const char *text);
/* budget = peak * ratio, rounded down. */
guint64 coop_sweep_budget (guint64 peak, gint64 ratio_ppm);

#endif
