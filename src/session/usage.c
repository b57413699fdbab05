/* SPDX-License-Identifier: Apache-2.0 */
#include "usage.h"

#include <string.h>

#define FIRST_WIDTH 1000000   /* 1 ms: a run of 4 s fills the log once */

void
coop_usage_log_init (CoopUsageLog *log)
{
  memset (log, 0, sizeof *log);
  log->width = FIRST_WIDTH;
}

static void
merge (CoopSample *into, const CoopSample *from)
{
  into->used_min = MIN (into->used_min, from->used_min);
  into->used_max = MAX (into->used_max, from->used_max);
  into->pinned_max = MAX (into->pinned_max, from->pinned_max);
  into->largest_min = MIN (into->largest_min, from->largest_min);
  into->budget = from->budget;
  into->evictions += from->evictions;
  into->handovers += from->handovers;
}

/* Doubles the width: buckets that now begin alike become one. Empty stretches hold no bucket. */
static void
coarsen (CoopUsageLog *log)
{
  guint n = 0;
  log->width *= 2;
  for (guint i = 0; i < log->n; i++)
    {
      CoopSample s = log->sample[i];
      s.ts -= s.ts % log->width;
      if (n > 0 && log->sample[n - 1].ts == s.ts)
        merge (&log->sample[n - 1], &s);
      else
        log->sample[n++] = s;
    }
  log->n = n;
}

static void
put (CoopUsageLog *log, CoopSample s)
{
  guint64 ts = s.ts;
  s.ts -= ts % log->width;
  while (log->n == COOP_USAGE_BUCKETS && s.ts > log->sample[log->n - 1].ts)
    {
      coarsen (log);
      s.ts = ts - ts % log->width;
    }
  if (log->n > 0 && s.ts <= log->sample[log->n - 1].ts)
    merge (&log->sample[log->n - 1], &s);
  else
    log->sample[log->n++] = s;
}

void
coop_usage_log_seed (CoopUsageLog *log, const CoopSample *samples, guint n)
{
  for (guint i = 0; i < n; i++)
    put (log, samples[i]);
}

void
coop_usage_log_add (CoopUsageLog *log, const CoopModelTotals *t)
{
  CoopSample s = { .ts = t->ts, .used_min = t->used, .used_max = t->used, .pinned_max = t->pinned,
                   .largest_min = t->largest, .budget = t->budget };
  s.evictions = (guint32) (t->evictions - log->evictions);
  s.handovers = (guint32) (t->handovers - log->handovers);
  log->evictions = t->evictions;
  log->handovers = t->handovers;
  put (log, s);
}

GArray *
coop_usage_log_get (const CoopUsageLog *log, guint n)
{
  GArray *out = g_array_new (FALSE, FALSE, sizeof (CoopSample));
  guint each = n == 0 ? 1 : (log->n + n - 1) / n;
  for (guint i = 0; i < log->n; i++)
    {
      if (i % MAX (each, 1) == 0)
        g_array_append_val (out, log->sample[i]);
      else
        merge (&g_array_index (out, CoopSample, out->len - 1), &log->sample[i]);
    }
  return out;
}
