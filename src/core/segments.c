/* SPDX-License-Identifier: Apache-2.0 */
/* Memory of the device: what is taken from it and given back, with the events and the calls that go
 * with it, and the sums that a budget is kept by. */
#include "engine-private.h"

void
coop_emit_segment (CoopEngine *e, const CoopSegment *s, bool born)
{
  coop_emit_words (e, COOP_EVENT_SEGMENT, s->id, 1, s->lo, s->hi - s->lo, born);
}

void
coop_backed (CoopEngine *e, uint32_t s)
{
  if (e->pool.held > e->held_most)
    e->held_most = e->pool.held;
  coop_emit_segment (e, &e->pool.segment[s], true);
}

uint32_t
coop_back (CoopEngine *e, uint32_t p, uint64_t addr, uint64_t bytes, CoopArea area)
{
  p = coop_segment_new (&e->pool, p, addr, bytes, area);
  coop_backed (e, e->pool.node[p].segment);
  return p;
}

void
coop_unback (CoopEngine *e, uint32_t p, uint64_t lo, uint64_t hi)
{
  uint32_t s = e->pool.node[p].segment, rest;
  CoopSegment old = e->pool.segment[s];
  coop_segment_cut (&e->pool, p, lo, hi, &rest);
  coop_emit_segment (e, &old, false);
  if (lo > old.lo || hi < old.hi)
    {
      e->pool.segment[s].id = ++e->pool.last_segment;
      coop_emit_segment (e, &e->pool.segment[s], true);
    }
  if (rest != 0)
    {
      e->pool.segment[rest].id = ++e->pool.last_segment;
      coop_emit_segment (e, &e->pool.segment[rest], true);
    }
}

static void
join (CoopEngine *e, uint32_t s, uint32_t behind)
{
  coop_emit_segment (e, &e->pool.segment[s], false);
  coop_emit_segment (e, &e->pool.segment[behind], false);
  coop_segment_join (&e->pool, s, behind);
  e->pool.segment[s].id = ++e->pool.last_segment;
  coop_emit_segment (e, &e->pool.segment[s], true);
}

static bool
is_neighbour (const CoopEngine *e, uint32_t s, uint32_t behind)
{
  return s != 0 && behind != 0 && e->pool.segment[s].area == e->pool.segment[behind].area;
}

void
coop_back_join (CoopEngine *e, uint32_t s)
{
  const CoopNode *node = e->pool.node;
  uint32_t p = e->pool.segment[s].first, before = node[node[p].prev].segment, behind;
  while (p != 0 && node[p].segment == s)
    p = node[p].next;
  behind = p != 0 ? node[p].segment : 0;
  if (is_neighbour (e, before, s))
    {
      join (e, before, s);
      s = before;
    }
  if (is_neighbour (e, s, behind))
    join (e, s, behind);
}

/* ---- giving back -------------------------------------------------------------------------- */

static uint64_t
idle_pages (const CoopEngine *e)
{
  const CoopNode *node = e->pool.node;
  uint64_t bytes = 0;
  for (uint32_t p = node[0].next; p != 0; p = node[p].next)
    if (node[p].used == PIECE_FREE && node[p].segment != 0 && node[p].claim == 0)
      {
        uint64_t unit = e->allocator->unit (e, (CoopArea) node[p].area);
        uint64_t from = (node[p].addr + unit - 1) / unit, to = (node[p].addr + node[p].bytes) / unit;
        bytes += to > from ? (to - from) * unit : 0;
      }
  return bytes;
}

uint64_t
coop_idle_bytes (const CoopEngine *e)
{
  uint64_t bytes = 0;
  if (e->allocator->unit (e, AREA_GENERAL) != 0)
    return idle_pages (e);
  for (uint32_t s = 1; s < e->pool.n_segments; s++)
    if (coop_segment_idle (&e->pool, s))
      bytes += e->pool.segment[s].hi - e->pool.segment[s].lo;
  return bytes;
}

static uint32_t
largest_idle (const CoopEngine *e)
{
  const CoopSegment *segment = e->pool.segment;
  uint32_t best = 0;
  for (uint32_t s = 1; s < e->pool.n_segments; s++)
    if (coop_segment_idle (&e->pool, s)
        && (best == 0 || segment[s].hi - segment[s].lo > segment[best].hi - segment[best].lo))
      best = s;
  return best;
}

void
coop_give_back (CoopEngine *e, uint32_t p, uint64_t lo, uint64_t hi)
{
  coop_unback (e, p, lo, hi);
  if (e->backing.unmap != NULL)
    e->backing.unmap (e->backing.user, lo, hi - lo);
  e->returned++;
  e->device_ns += (uint64_t) (e->policy.v[COOP_PARAM_GIVE_BACK_COST].d * 1000);
}

static bool
give_back_largest (CoopEngine *e)
{
  uint32_t s = largest_idle (e);
  if (s != 0)
    coop_give_back (e, e->pool.segment[s].first, e->pool.segment[s].lo, e->pool.segment[s].hi);
  return s != 0;
}

bool
coop_make_budget (CoopEngine *e, uint64_t bytes, bool all)
{
  if (!e->allocator->returns (e) || e->pool.held - coop_idle_bytes (e) + bytes > e->budget)
    return e->pool.held + bytes <= e->budget;
  while ((all || e->pool.held + bytes > e->budget) && give_back_largest (e))
    ;
  return true;
}

/* From the high end down, so that what stays lies low. */
static void
trim_excess (CoopEngine *e)
{
  coop_lots (e, false);
  for (uint32_t i = e->n_lots; i-- > 0 && e->pool.held > e->budget;)
    if (e->lot[i].empty)
      coop_give_back (e, e->lot[i].first, e->lot[i].lo, e->lot[i].hi);
}

/* ---- sums --------------------------------------------------------------------------------- */

static uint64_t
rest_of_budget (const CoopEngine *e)
{
  return e->budget > e->pool.held ? e->budget - e->pool.held : 0;
}

uint64_t
coop_free_bytes (const CoopEngine *e)
{
  return e->pool.free + (e->pool.segmented ? rest_of_budget (e) : 0);
}

uint64_t
coop_largest (const CoopEngine *e)
{
  uint64_t largest = coop_pool_largest (&e->pool);
  if (!e->pool.segmented)
    return largest;
  uint64_t new = rest_of_budget (e) + (e->allocator->returns (e) ? coop_idle_bytes (e) : 0);
  return new > largest ? new : largest;
}

/* ---- a budget that shrank ----------------------------------------------------------------- */

bool
coop_clear_excess (CoopEngine *e, CoopRequest *req)
{
  if (e->pool.held <= e->budget || !e->allocator->returns (e))
    return false;
  trim_excess (e);
  if (e->pool.held <= e->budget || e->policy.v[COOP_PARAM_EVICTOR].i == COOP_EVICTOR_NONE)
    return false;
  uint64_t excess = e->pool.held - e->budget, found = 0;
  coop_lots (e, false);
  for (uint32_t i = e->n_lots; i-- > 0 && found < excess;)
    if (!e->lot[i].blocked && !e->lot[i].empty)
      {
        found += e->lot[i].hi - e->lot[i].lo;
        coop_take_range (e, req, e->lot[i].lo, e->lot[i].hi, e->lot[i].first);
      }
  return req->n_victims > 0;
}

size_t
coop_engine_segments (const CoopEngine *e, CoopSegmentInfo *out, size_t n)
{
  size_t i = 0;
  for (uint32_t s = 1; s < e->pool.n_segments; s++)
    if (e->pool.segment[s].hi != 0)
      {
        const CoopSegment *segment = &e->pool.segment[s];
        if (i < n)
          out[i] = (CoopSegmentInfo) { segment->lo, segment->hi - segment->lo, segment->id,
                                       segment->area == AREA_SMALL };
        i++;
      }
  return i;
}
