/* SPDX-License-Identifier: Apache-2.0 */
/* Lots: a segmented pool as the evictors see it.
 *
 * There are two ways to make room in it: a run inside one segment that is long enough, and memory that
 * goes back to the device (or, as pages, elsewhere). The second comes in lots: whole segments, or as
 * many pages as no block crosses the ends of. */
#include "engine-private.h"

#include "weight.h"

static uint64_t
down_to (uint64_t x, uint64_t unit)
{
  return x / unit * unit;
}

static void
add_piece (CoopEngine *e, CoopLot *lot, uint32_t p, const CoopScale *scale)
{
  const CoopNode *n = &e->pool.node[p];
  if (n->used == PIECE_FREE && n->claim == 0)
    return;
  lot->empty = false;
  if (n->used != PIECE_USED || n->tensor == NULL || !coop_evictable (e, n->tensor))
    lot->blocked = true;
  else if (scale != NULL)
    {
      Weight w = weigh (coop_h (e, n->tensor, scale));
      if (w == WEIGHT_INFINITE)
        lot->infinite++;
      else
        lot->sum += w;
    }
}

/* The lot that begins at `at` in piece p; *next is the piece in which it ends or that comes behind. */
static void
read_lot (CoopEngine *e, uint32_t p, uint64_t at, const CoopScale *scale, CoopLot *lot, uint32_t *next)
{
  const CoopNode *node = e->pool.node;
  const CoopSegment *segment = &e->pool.segment[node[p].segment];
  uint64_t unit = e->allocator->unit (e, (CoopArea) segment->area);
  *lot = (CoopLot) { .lo = at, .first = p, .segment = node[p].segment, .empty = true };
  for (;; p = node[p].next)
    {
      uint64_t end = node[p].addr + node[p].bytes;
      bool cuts = unit != 0 && node[p].used == PIECE_FREE && node[p].claim == 0;
      add_piece (e, lot, p, scale);
      *next = p;
      /* a free piece may be cut: after all its whole pages, or where the page ends that began before */
      lot->hi = cuts ? at == lot->lo ? down_to (end, unit) : down_to (at + unit - 1, unit) : end;
      if (cuts && lot->hi > lot->lo && lot->hi <= end)
        break;
      lot->hi = end;
      if (end == segment->hi || (unit != 0 && !cuts && end % unit == 0))
        break;
      at = end;
    }
  if (lot->hi == node[*next].addr + node[*next].bytes)
    *next = node[*next].next;
}

void
coop_lots (CoopEngine *e, bool scores)
{
  const CoopScale scale = coop_scale (e);
  uint32_t p = e->pool.node[0].next;
  uint64_t at = 0;
  e->n_lots = 0;
  while (p != 0)
    {
      const CoopNode *n = &e->pool.node[p];
      if (n->segment == 0)
        {
          p = n->next;
          continue;
        }
      at = at > n->addr ? at : n->addr;
      e->lot = coop_grow (e->lot, &e->lot_room, e->n_lots + 1, sizeof *e->lot);
      CoopLot *lot = &e->lot[e->n_lots++];
      read_lot (e, p, at, scores ? &scale : NULL, lot, &p);
      at = lot->hi;
    }
}

/* ---- what an eviction can do --------------------------------------------------------------- */

static bool
may_go (const CoopEngine *e, const CoopNode *n)
{
  return n->used == PIECE_USED && n->tensor != NULL && coop_evictable (e, n->tensor);
}

static void
mark_run (CoopEngine *e, uint32_t from, uint32_t behind)
{
  for (; from != behind; from = e->pool.node[from].next)
    e->useful[from] = e->pool.node[from].used == PIECE_USED;
}

/* Runs inside a segment that will be long enough. */
static void
mark_runs (CoopEngine *e, uint64_t block)
{
  const CoopNode *node = e->pool.node;
  CoopArea area = e->allocator->area (e, block);
  for (uint32_t p = node[0].next, last; p != 0; p = last)
    {
      uint64_t bytes = 0;
      for (last = p; last != 0 && node[last].segment == node[p].segment && node[last].segment != 0
                     && ((node[last].used == PIECE_FREE && node[last].claim == 0)
                         || may_go (e, &node[last]));
           last = node[last].next)
        bytes += node[last].bytes;
      if (last == p)
        last = node[p].next;
      else if (e->pool.segment[node[p].segment].area == area && e->allocator->fits (e, block, bytes))
        mark_run (e, p, last);
    }
}

/* Lots that can go back, if all of them together are enough. */
static void
mark_lots (CoopEngine *e, uint64_t block)
{
  uint64_t stays = 0;
  coop_lots (e, false);
  for (uint32_t i = 0; i < e->n_lots; i++)
    stays += e->lot[i].blocked ? e->lot[i].hi - e->lot[i].lo : 0;
  if (!e->allocator->returns (e) || stays + e->allocator->supply (e, block) > e->budget)
    return;
  for (uint32_t i = 0; i < e->n_lots; i++)
    for (uint32_t p = e->lot[i].first;
         !e->lot[i].blocked && p != 0 && e->pool.node[p].addr < e->lot[i].hi; p = e->pool.node[p].next)
      e->useful[p] = e->pool.node[p].used == PIECE_USED;
}

void
coop_lots_useful (CoopEngine *e, uint64_t block)
{
  e->useful = coop_grow (e->useful, &e->useful_room, e->pool.n_nodes, 1);
  memset (e->useful, 0, e->pool.n_nodes);
  mark_lots (e, block);
  mark_runs (e, block);
}
