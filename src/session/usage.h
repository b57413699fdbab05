/* SPDX-License-Identifier: Apache-2.0 */
/* Usage: samples of a run of any length in bounded memory.
 *
 * Buckets of equal time; when they are used up, neighbours are merged and the width doubles. A
 * bucket keeps minima and maxima, so no peak is ever lost, only its place gets coarser. */
#ifndef COOP_USAGE_H
#define COOP_USAGE_H

#include "session.h"

#define COOP_USAGE_BUCKETS 4096

typedef struct {
  CoopSample sample[COOP_USAGE_BUCKETS];   /* ts = begin of the bucket */
  guint n;
  guint64 width;                           /* ns */
  guint64 evictions, handovers;            /* totals when the last bucket was last touched */
} CoopUsageLog;

void coop_usage_log_init (CoopUsageLog *log);
/* Totals after an event; ts must not go backwards (an earlier one counts for the last bucket). */
void coop_usage_log_add (CoopUsageLog *log, const CoopModelTotals *totals);
/* Takes over what happened before, in order of time; the log is empty until then. */
void coop_usage_log_seed (CoopUsageLog *log, const CoopSample *samples, guint n);
/* At most n samples that cover all (n > 0), each of k buckets; element CoopSample. */
GArray *coop_usage_log_get (const CoopUsageLog *log, guint n);

#endif
