/* SPDX-License-Identifier: Apache-2.0 */
/* Allocator merge: one arena, best fit, free neighbours merge at once. Small blocks in an area of their
 * own; with 2 groups, expensive tensors from the low end and cheap ones from the high end; with 4 and
 * 6, the rest of the pool in two and three equal regions, the expensive end of every second one on the
 * right, so that cheap ends meet (OneFlow's tensor partitioning). */
#include "engine-private.h"

/* Whether what the call makes is cheap. A replay is priced by the operator it runs again. */
static bool
is_cheap (const CoopEngine *e, const CoopCall *call)
{
  if (call == NULL || call->name == 0)
    return true;
  const CoopCallState *cs = call->frames;
  if (cs != NULL && cs->running != 0)
    {
      const CoopOp *op = cs->frame[cs->n_frames - 1].op;
      return !coop_cost_expensive (e, op->name, (CoopOpClass) op->op_class);
    }
  return !coop_cost_expensive (e, call->name, call->op_class);
}

/* Best fit among the free pieces that reach into region `r` of `n`, at its low or high end and no further
 * out of it than by half. The free pieces are walked: regions are few, and an experiment. */
static uint32_t
fit_region (const CoopEngine *e, unsigned r, unsigned n, uint64_t need, bool high, uint64_t *addr)
{
  const CoopNode *node = e->pool.node;
  uint64_t first = e->pool.small_end, part = (e->pool.limit - first) / n / COOP_GRAIN * COOP_GRAIN;
  uint64_t lo = first + r * part, hi = r + 1 == n ? e->pool.limit : lo + part;
  uint32_t best = 0;
  for (uint32_t p = node[0].next; p != 0 && node[p].addr < hi; p = node[p].next)
    {
      uint64_t begin = node[p].addr, end = begin + node[p].bytes;
      if (node[p].used != PIECE_FREE || node[p].claim != 0 || node[p].area != AREA_GENERAL || end <= lo
          || end - begin < need)
        continue;
      uint64_t at = high ? (end < hi ? end : hi) : (begin > lo ? begin : lo);
      at = high ? (at - begin < need ? begin : at - need) : (end - at < need ? end - need : at);
      uint64_t inside = (at + need < hi ? at + need : hi) - (at > lo ? at : lo);
      bool better = best == 0 || node[p].bytes < node[best].bytes
                    || (high && node[p].bytes == node[best].bytes);
      if (at + need > lo && 2 * inside >= need && better)
        {
          best = p;
          *addr = at;
        }
    }
  return best;
}

/* A class stays in its region until that is full: what one operator makes lies together. */
static uint32_t
place_region (CoopEngine *e, unsigned n, uint64_t need, bool cheap)
{
  uint64_t addr;
  for (unsigned i = 0; i < n; i++)
    {
      unsigned r = (e->region[cheap] + i) % n;
      uint32_t p = fit_region (e, r, n, need, cheap != (r % 2 == 1), &addr);
      if (p == 0)
        continue;
      e->region[cheap] = r;
      return coop_pool_take_at (&e->pool, p, addr, need, PIECE_USED);
    }
  return 0;
}

static uint32_t
place (CoopEngine *e, const CoopRequest *req)
{
  uint64_t need = coop_round (req->bytes);
  if (req->bytes <= (uint64_t) e->policy.v[COOP_PARAM_SMALL].i)
    {
      uint32_t p = coop_pool_fit (&e->pool, AREA_SMALL, need, false);
      if (p != 0)
        return coop_pool_take (&e->pool, p, need, false, PIECE_USED);
    }
  unsigned regions = e->limited ? (unsigned) e->policy.v[COOP_PARAM_GROUPS].i / 2 : 0;
  bool cheap = regions > 0 && is_cheap (e, req->call);
  uint32_t p = regions > 1 ? place_region (e, regions, need, cheap) : 0;
  if (p != 0)
    return p;
  p = coop_pool_fit (&e->pool, AREA_GENERAL, need, cheap);
  return p != 0 ? coop_pool_take (&e->pool, p, need, cheap, PIECE_USED) : 0;
}

static uint64_t
block (const CoopEngine *e, uint64_t bytes)
{
  return coop_round (bytes);
}

const CoopAllocator coop_alloc_merge
    = { .name = "merge", .slides = true, .block = block, .place = place };
