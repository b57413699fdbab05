/* SPDX-License-Identifier: Apache-2.0 */
/* Diff: two traces side by side: the figures of the runs, what their policies differ in, and time,
 * recomputation, evictions and memory at the peak by operator and by line of the script.
 */
#ifndef COOP_DIFF_H
#define COOP_DIFF_H

#include "trace/store.h"

/* X (field, "name", unit): what is compared of the whole runs. Unit: B bytes, T ns, N a count, P per cent. */
#define COOP_DIFF_FIGURES(X)                                                                        \
  X (budget, "budget", 'B')                                                                         \
  X (peak, "peak", 'B')                                                                             \
  X (state, "state", 'B')                                                                           \
  X (floor, "floor", 'B')                                                                           \
  X (steps, "steps", 'N')                                                                           \
  X (time, "time", 'T')                                                                             \
  X (operators, "operators", 'N')                                                                   \
  X (own, "operator time", 'T')                                                                     \
  X (recomputed, "recomputed", 'N')                                                                 \
  X (again, "recompute time", 'T')                                                                  \
  X (extra, "extra time", 'P')                                                                      \
  X (evictions, "evictions", 'N')                                                                   \
  X (evicted, "evicted", 'B')                                                                       \
  X (searches, "searches", 'N')                                                                     \
  X (search, "search time", 'T')                                                                    \
  X (fragmentation, "free at a search", 'P')                                                        \
  X (ooms, "out of memory", 'N')

typedef enum {
#define X(field, name, unit) COOP_DIFF_##field,
  COOP_DIFF_FIGURES (X)
#undef X
  COOP_DIFF_N_FIGURES
} CoopDiffFigure;

typedef struct {
  char *path, *command, *result;            /* result: "ended", "exit code 1", "killed by 9", ... */
  double figures[COOP_DIFF_N_FIGURES];      /* NaN: unknown */
} CoopDiffRun;

/* An operator's name, or a line of the script, with its figures in A and in B. */
typedef struct {
  char *key;
  guint64 calls[2], own_ns[2], recomputed[2], again_ns[2], evicted_bytes[2], at_peak_bytes[2];
} CoopDiffRow;

typedef struct {
  char *param, *value[2];                   /* the last it had; NULL: it had none */
} CoopDiffParam;

typedef struct {
  CoopDiffRun run[2];
  GArray *params;                           /* CoopDiffParam that differ */
  GArray *operators, *lines;                /* CoopDiffRow, the largest change of time first */
} CoopDiff;

/* Lines match by the file's name without folders, so that a script may have moved. */
CoopDiff *coop_diff_new (const char *a, const char *b, GError **error);
void coop_diff_free (CoopDiff *diff);

extern const char *const coop_diff_names[COOP_DIFF_N_FIGURES];
extern const char coop_diff_units[COOP_DIFF_N_FIGURES];

#endif
