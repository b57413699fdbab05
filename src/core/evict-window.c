/* SPDX-License-Identifier: Apache-2.0 */
/* Evictor coop: the cheapest window of the address space.
 *
 * Two pointers run over the general area in address order. The window grows to the right until it
 * holds enough bytes and is shrunk from the left while it still does; of all such windows the one
 * with the smallest sum of scores wins, the leftmost of equals. Free pieces cost nothing. What must
 * stay ends the window. For a given right end the shortest window is the cheapest, so none is missed,
 * the one that touches the top of the area included.
 *
 * Sums are exact: a score becomes a 128-bit fixed-point number, so taking away what was added leaves
 * no rounding behind, and infinite scores are counted beside the sum. */
#include "engine-private.h"

#include <math.h>

typedef unsigned __int128 Weight;

#define ONE 0x1p64
#define LARGEST 0x1p62 /* above it a score counts as infinite */

typedef struct
{
  uint32_t first, end;   /* indices into scanned, weight */
  uint64_t bytes;
  Weight sum;
  uint32_t infinite;
} Window;

typedef struct
{
  bool found;
  uint64_t lo, hi;
  Weight sum;
  uint32_t infinite;
} Best;

static Weight
weigh (double h)
{
  return h <= LARGEST ? (Weight) (h * ONE) : ~(Weight) 0;
}

static bool
cheaper (const Window *w, const Best *b)
{
  if (!b->found)
    return true;
  return w->infinite != b->infinite ? w->infinite < b->infinite : w->sum < b->sum;
}

static double
value (const Best *b)
{
  if (!b->found)
    return NAN;
  return b->infinite > 0 ? INFINITY : (double) b->sum / ONE;
}

/* Bytes of a piece that lie in the general area. */
static uint64_t
usable (const CoopEngine *e, const CoopNode *n)
{
  uint64_t end = n->addr + n->bytes;
  return (end < e->pool.limit ? end : e->pool.limit) - n->addr;
}

static void
push (CoopEngine *e, Window *w, uint32_t p, double h)
{
  e->weight = coop_grow (e->weight, &e->weight_room, w->end + 1, sizeof *e->weight);
  e->scanned = coop_grow (e->scanned, &e->scanned_room, w->end + 1, sizeof *e->scanned);
  Weight weight = weigh (h);
  e->scanned[w->end] = p;
  e->weight[w->end++] = weight;
  w->bytes += usable (e, &e->pool.node[p]);
  if (weight == ~(Weight) 0)
    w->infinite++;
  else
    w->sum += weight;
}

static void
shift (CoopEngine *e, Window *w)
{
  Weight weight = e->weight[w->first];
  w->bytes -= usable (e, &e->pool.node[e->scanned[w->first]]);
  if (weight == ~(Weight) 0)
    w->infinite--;
  else
    w->sum -= weight;
  w->first++;
}

static void
consider (const CoopEngine *e, const Window *w, Best *best, Best *next)
{
  const CoopNode *last = &e->pool.node[e->scanned[w->end - 1]];
  Best this = { true, e->pool.node[e->scanned[w->first]].addr, last->addr + last->bytes, w->sum,
                w->infinite };
  if (cheaper (w, best))
    {
      *next = *best;
      *best = this;
    }
  else if (cheaper (w, next))
    *next = this;
}

static void
choose (CoopEngine *e, uint64_t need, CoopChoice *choice)
{
  Window w = { 0 };
  Best best = { 0 }, next = { 0 };
  const CoopNode *node = e->pool.node;
  for (uint32_t p = node[0].next; p != 0 && node[p].addr < e->pool.limit; p = node[p].next)
    {
      const CoopNode *n = &node[p];
      if (n->addr < e->pool.small_end)
        continue;
      choice->visited++;
      bool free = n->used == PIECE_FREE && n->claim == 0;
      if (!free && !(n->used == PIECE_USED && n->tensor != NULL && coop_evictable (e, n->tensor)))
        {
          w = (Window) { 0 };
          continue;
        }
      push (e, &w, p, free ? 0 : coop_score (e, n->tensor).h);
      while (w.bytes - usable (e, &node[e->scanned[w.first]]) >= need)
        shift (e, &w);
      if (w.bytes >= need)
        consider (e, &w, &best, &next);
    }
  choice->found = choice->claim = best.found;
  choice->cost = value (&best);
  choice->next_cost = value (&next);
  if (best.found)
    {
      choice->lo = best.lo;
      choice->hi = best.hi;
    }
  if (next.found)
    {
      choice->next_lo = next.lo;
      choice->next_hi = next.hi;
    }
}

const CoopEvictor coop_evict_window = { "coop", choose };
