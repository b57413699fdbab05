/* SPDX-License-Identifier: Apache-2.0 */
/* Segments: the ranges of a pool that the device backs, how they come, go, shrink and join. */
#include "pool.h"

void
coop_pool_segmented (CoopPool *pool)
{
  uint32_t p = pool->node[0].next; /* one free piece: nothing was handed out yet */
  coop_bins_remove (pool, p);
  pool->segmented = true;
  pool->free = 0;
  pool->segment = coop_grow (NULL, &pool->segment_room, 8, sizeof *pool->segment);
  pool->n_segments = 1;
  pool->node[p].area = AREA_VOID;
  coop_bins_insert (pool, p);
}

static uint32_t
entry_new (CoopPool *pool)
{
  uint32_t s = pool->spare_segment;
  if (s != 0)
    pool->spare_segment = pool->segment[s].spare;
  else
    {
      s = pool->n_segments++;
      pool->segment = coop_grow (pool->segment, &pool->segment_room, pool->n_segments,
                                 sizeof *pool->segment);
    }
  pool->segment[s] = (CoopSegment) { .id = ++pool->last_segment };
  return s;
}

static void
entry_drop (CoopPool *pool, uint32_t s)
{
  pool->segment[s] = (CoopSegment) { .spare = pool->spare_segment };
  pool->spare_segment = s;
}

uint32_t
coop_segment_new (CoopPool *pool, uint32_t p, uint64_t addr, uint64_t bytes, CoopArea area)
{
  uint32_t s = entry_new (pool);
  coop_bins_remove (pool, p);
  if (pool->node[p].addr < addr)
    {
      uint32_t q = coop_pool_cut (pool, p, addr - pool->node[p].addr);
      coop_bins_insert (pool, p);
      p = q;
    }
  if (pool->node[p].bytes > bytes)
    coop_bins_insert (pool, coop_pool_cut (pool, p, bytes));
  CoopNode *n = &pool->node[p];
  pool->segment[s] = (CoopSegment) { .lo = n->addr, .hi = n->addr + bytes, .id = pool->last_segment,
                                     .first = p, .area = (uint8_t) area };
  n->segment = s;
  n->area = (uint8_t) area;
  pool->free += bytes;
  pool->held += bytes;
  coop_bins_insert (pool, p);
  return p;
}

/* What lies behind `hi` in segment s goes to an entry of its own. */
static uint32_t
split_off (CoopPool *pool, uint32_t s, uint64_t hi, uint32_t first)
{
  uint32_t rest = entry_new (pool);
  CoopSegment *from = &pool->segment[s], *to = &pool->segment[rest];
  *to = (CoopSegment) { .lo = hi, .hi = from->hi, .id = to->id, .first = first, .area = from->area };
  for (uint32_t q = first; q != 0 && pool->node[q].segment == s; q = pool->node[q].next)
    {
      pool->node[q].segment = rest;
      if (pool->node[q].used != PIECE_FREE)
        to->used += pool->node[q].bytes;
    }
  from->used -= to->used;
  return rest;
}

void
coop_segment_cut (CoopPool *pool, uint32_t p, uint64_t lo, uint64_t hi, uint32_t *rest)
{
  uint32_t s = pool->node[p].segment, mid = p, tail = 0;
  *rest = 0;
  coop_bins_remove (pool, p);
  if (pool->node[p].addr < lo)
    {
      mid = coop_pool_cut (pool, p, lo - pool->node[p].addr);
      coop_bins_insert (pool, p);
    }
  if (pool->node[mid].addr + pool->node[mid].bytes > hi)
    {
      tail = coop_pool_cut (pool, mid, hi - pool->node[mid].addr);
      coop_bins_insert (pool, tail);
    }
  CoopSegment *segment = &pool->segment[s];
  uint32_t behind = pool->node[mid].next;
  pool->node[mid].segment = 0;
  if (segment->lo == lo && segment->hi == hi)
    entry_drop (pool, s);
  else if (segment->hi == hi)
    segment->hi = lo;
  else if (segment->lo == lo)
    {
      segment->lo = hi;
      segment->first = behind;
    }
  else
    {
      *rest = split_off (pool, s, hi, behind);
      pool->segment[s].hi = lo;
    }
  pool->free -= hi - lo;
  pool->held -= hi - lo;
  pool->node[mid].area = AREA_VOID;
  coop_pool_settle (pool, mid);
}

void
coop_segment_join (CoopPool *pool, uint32_t s, uint32_t behind)
{
  CoopSegment *segment = &pool->segment[s], *other = &pool->segment[behind];
  uint32_t p = other->first, q = p;
  segment->hi = other->hi;
  segment->used += other->used;
  for (; q != 0 && pool->node[q].segment == behind; q = pool->node[q].next)
    pool->node[q].segment = s;
  entry_drop (pool, behind);
  if (pool->node[p].used != PIECE_FREE)
    return;
  if (pool->node[p].claim == 0)
    coop_bins_remove (pool, p);
  coop_pool_settle (pool, p);
}

bool
coop_segment_idle (const CoopPool *pool, uint32_t s)
{
  const CoopSegment *segment = &pool->segment[s];
  return segment->hi != 0 && segment->used == 0 && pool->node[segment->first].claim == 0
         && pool->node[segment->first].bytes == segment->hi - segment->lo;
}

static const char *
check_one (const CoopPool *pool, uint32_t s)
{
  const CoopSegment *segment = &pool->segment[s];
  uint64_t at = segment->lo, used = 0;
  uint32_t p = segment->first;
  for (; p != 0 && pool->node[p].segment == s; p = pool->node[p].next)
    {
      const CoopNode *n = &pool->node[p];
      if (n->addr != at)
        return "pieces do not tile a segment";
      if (n->used == PIECE_FREE && n->area != segment->area)
        return "a free piece is in the wrong tree";
      at += n->bytes;
      used += n->used != PIECE_FREE ? n->bytes : 0;
    }
  if (at != segment->hi)
    return "pieces do not fill a segment";
  return used == segment->used ? NULL : "the used bytes of a segment are wrong";
}

const char *
coop_segment_check (const CoopPool *pool)
{
  uint64_t held = 0, backed = 0;
  for (uint32_t s = 1; s < pool->n_segments; s++)
    if (pool->segment[s].hi != 0)
      {
        const char *fault = check_one (pool, s);
        if (fault != NULL)
          return fault;
        held += pool->segment[s].hi - pool->segment[s].lo;
      }
  for (uint32_t p = pool->node[0].next; p != 0; p = pool->node[p].next)
    {
      const CoopNode *n = &pool->node[p];
      if (n->segment == 0 && (n->used != PIECE_FREE || n->area != AREA_VOID))
        return "a piece outside all segments is not void";
      backed += n->segment != 0 ? n->bytes : 0;
    }
  return held == pool->held && backed == held ? NULL : "the sum of held bytes is wrong";
}
