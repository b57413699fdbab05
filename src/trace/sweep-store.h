/* SPDX-License-Identifier: Apache-2.0 */
/* Sweep store: the results of many replays in one SQLite file. One row a run, whatever came of it; a
 * run's key is program, evictor, allocator, ratio and settings, so a run is never there twice and a
 * sweep that was ended goes on where it was. Each row is committed by itself; several processes may
 * write one file.
 */
#ifndef COOP_SWEEP_STORE_H
#define COOP_SWEEP_STORE_H

#include <glib.h>

#include "trace/store.h"

#define COOP_SWEEP_APPLICATION_ID 0x434F5357  /* "COSW" */
#define COOP_SWEEP_VERSION 1

/* Strings belong to whoever fills the row; those of coop_sweep_each are valid during the call. */
typedef struct {
  /* the key */
  const char *digest;      /* of the program's file */
  const char *evictor, *allocator;
  gint64 ratio_ppm;        /* budget / peak without limit, in millionths */
  const char *settings;    /* "groups=1 small=0", sorted; "" for the presets */
  /* the rest */
  const char *program;     /* name */
  const char *result;      /* "ok", or why not: the label of a CoopPlayResult */
  const char *reason;      /* NULL, or a sentence */
  guint64 budget, peak_without_limit, peak;
  double overhead;         /* NaN: unknown */
  guint64 plain_ns, cost_ns, operators, recomputed, evictions, evicted_bytes, searches, moves;
  gint64 search_ns;        /* -1: not measured */
  double fragmentation;    /* free / budget, mean over searches; NaN: there was none */
  guint64 steps;           /* engine events: allocations, frees, evictions, searches, operators */
  guint64 wall_ns;         /* the replay itself took */
} CoopSweepRow;

typedef struct CoopSweepStore CoopSweepStore;

/* create: makes the file if there is none. Foreign files are refused. */
CoopSweepStore *coop_sweep_open (const char *path, gboolean create, GError **error);
/* Leaves one file behind. */
void coop_sweep_close (CoopSweepStore *store);
gboolean coop_sweep_has (CoopSweepStore *store, const CoopSweepRow *key);
/* A row whose key is there already changes nothing. */
gboolean coop_sweep_add (CoopSweepStore *store, const CoopSweepRow *row, GError **error);
guint64 coop_sweep_count (CoopSweepStore *store);

typedef void (*CoopSweepTake) (gpointer user, const CoopSweepRow *row);
/* By program, allocator, settings, evictor, ratio falling. */
gboolean coop_sweep_each (CoopSweepStore *store, CoopSweepTake take, gpointer user, GError **error);

typedef struct {
  guint64 added, same, differing;   /* differing: the key is there with another result; left alone */
} CoopSweepMerge;
gboolean coop_sweep_merge (CoopSweepStore *store, const char *path, CoopSweepMerge *counts, GError **error);

#endif
