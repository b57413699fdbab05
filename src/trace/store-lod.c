/* SPDX-License-Identifier: Apache-2.0 */
/* Store: usage over time, coarser and coarser. Each level keeps its open bucket in memory and writes
 * it when time passes on, and with each batch, so that zoomed-out charts are right during recording. */
#include "trace/store-private.h"

static void
put_bucket (CoopStore *store, guint level)
{
  const CoopLodBucket *b = &store->lod[level];
  const guint64 values[] = {
    level, b->bucket, b->used_min, b->used_max, b->used_last, b->largest_min, b->largest_last,
    b->pinned_max, b->pinned_last, b->budget, b->evictions, b->handovers, b->n,
  };
  CoopBind bind = coop_bind (store, COOP_STATEMENT_LOD);
  for (guint i = 0; i < G_N_ELEMENTS (values); i++)
    coop_bind_int (&bind, values[i]);
  coop_store_step (store, COOP_STATEMENT_LOD);
}

static void
add (CoopStore *store, guint level, const CoopEvent *ev, const CoopModelTotals *t)
{
  CoopLodBucket *b = &store->lod[level];
  guint64 bucket = t->ts >> COOP_LOD_SHIFT (level);
  if (b->open && b->bucket != bucket)
    put_bucket (store, level);
  if (!b->open || b->bucket != bucket)
    *b = (CoopLodBucket) { .open = TRUE, .bucket = bucket, .used_min = G_MAXINT64, .largest_min = G_MAXINT64 };
  b->used_min = MIN (b->used_min, t->used);
  b->used_max = MAX (b->used_max, t->used);
  b->used_last = t->used;
  b->largest_min = MIN (b->largest_min, t->largest);
  b->largest_last = t->largest;
  b->pinned_max = MAX (b->pinned_max, t->pinned);
  b->pinned_last = t->pinned;
  b->budget = t->budget;
  b->evictions += ev->kind == COOP_EVENT_EVICT;
  b->handovers += ev->kind == COOP_EVENT_HANDOVER;
  b->n++;
}

void
coop_store_lod_add (CoopStore *store, const CoopEvent *ev, const CoopModelTotals *totals)
{
  for (guint level = 0; level < COOP_LOD_LEVELS; level++)
    add (store, level, ev, totals);
}

void
coop_store_lod_flush (CoopStore *store)
{
  for (guint level = 0; level < COOP_LOD_LEVELS; level++)
    if (store->lod[level].open)
      put_bucket (store, level);
}
