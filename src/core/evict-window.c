/* SPDX-License-Identifier: Apache-2.0 */
/* Evictor coop: the cheapest window of the address space.
 *
 * Two pointers run over the general area in address order. The window grows to the right until it
 * holds enough bytes and is shrunk from the left while it still does; of all such windows the one
 * with the smallest sum of scores wins, the leftmost of equals. Free pieces cost nothing. What must
 * stay ends the window. For a given right end the shortest window is the cheapest, so none is missed,
 * the one that touches the top of the area included.
 *
 * Sums are exact (weight.h). */
#include "engine-private.h"

#include "weight.h"

#include <math.h>
#include <string.h>

#define SHORT 256 /* members, for a start */

typedef struct
{
  CoopMember *first, *end; /* what is in it, in e->member */
  uint64_t bytes;
  Weight sum;
  uint32_t infinite;
} Window;

typedef struct
{
  uint64_t lo, hi;
  Weight sum;
  uint32_t infinite;     /* UINT32_MAX: none found yet */
} Best;

static inline bool
cheaper (const Window *w, const Best *b)
{
  return w->infinite != b->infinite ? w->infinite < b->infinite : w->sum < b->sum;
}

static double
value (const Best *b)
{
  if (b->infinite == UINT32_MAX)
    return NAN;
  return b->infinite > 0 ? INFINITY : (double) b->sum / WEIGHT_ONE;
}

static inline void
push (Window *w, uint64_t addr, uint64_t bytes, Weight weight)
{
  *w->end++ = (CoopMember) { weight, addr, bytes };
  w->bytes += bytes;
  if (weight == WEIGHT_INFINITE)
    w->infinite++;
  else
    w->sum += weight;
}

static inline void
shift (Window *w)
{
  const CoopMember *m = w->first++;
  w->bytes -= m->bytes;
  if (m->weight == WEIGHT_INFINITE)
    w->infinite--;
  else
    w->sum -= m->weight;
}

/* Room for one more member. What lies in the window goes back to the begin: most windows are short, and
 * so the list stays in the nearest cache whatever the number of pieces. */
static void
make_room (CoopEngine *e, Window *w)
{
  size_t n = (size_t) (w->end - w->first);
  if (2 * n >= e->member_room)
    {
      size_t first = (size_t) (w->first - e->member);
      e->member = coop_grow (e->member, &e->member_room, 2 * e->member_room + SHORT, sizeof *e->member);
      w->first = e->member + first;
    }
  memmove (e->member, w->first, n * sizeof *w->first);
  w->first = e->member;
  w->end = e->member + n;
}

/* A window of enough bytes that is cheaper than `next`. */
static void
consider (const CoopEngine *e, const Window *w, uint32_t last, Best *best, Best *next)
{
  const CoopNode *n = &e->pool.node[last];
  Best this = { w->first->addr, n->addr + n->bytes, w->sum, w->infinite };
  if (cheaper (w, best))
    {
      *next = *best;
      *best = this;
    }
  else
    *next = this;
}

static void
scan (CoopEngine *e, uint64_t need, CoopChoice *choice, Best *best, Best *next)
{
  const CoopNode *node = e->pool.node;
  const CoopScale scale = coop_scale (e);
  const uint64_t small_end = e->pool.small_end, limit = e->pool.limit;
  Window w = { .first = e->member, .end = e->member };
  for (uint32_t p = node[0].next; p != 0 && node[p].addr < limit; p = node[p].next)
    {
      const CoopNode *n = &node[p];
      if (n->addr < small_end)
        continue;
      choice->visited++;
      coop_look_ahead (node, p);
      bool free = n->used == PIECE_FREE && n->claim == 0;
      if (!free && !(n->used == PIECE_USED && n->tensor != NULL && coop_evictable (e, n->tensor)))
        {
          w = (Window) { .first = e->member, .end = e->member };
          continue;
        }
      if (w.end == e->member + e->member_room)
        make_room (e, &w);
      uint64_t bytes = n->bytes < limit - n->addr ? n->bytes : limit - n->addr;
      push (&w, n->addr, bytes, free ? 0 : weigh (coop_h (e, n->tensor, &scale)));
      while (w.bytes - w.first->bytes >= need)
        shift (&w);
      if (w.bytes >= need && cheaper (&w, next))
        consider (e, &w, p, best, next);
    }
}

static void
choose (CoopEngine *e, uint64_t need, CoopChoice *choice)
{
  Best best = { .infinite = UINT32_MAX }, next = best;
  e->member = coop_grow (e->member, &e->member_room, SHORT, sizeof *e->member);
  scan (e, need, choice, &best, &next);
  choice->found = choice->claim = best.infinite != UINT32_MAX;
  choice->cost = value (&best);
  choice->next_cost = value (&next);
  if (choice->found)
    {
      choice->lo = best.lo;
      choice->hi = best.hi;
    }
  if (next.infinite != UINT32_MAX)
    {
      choice->next_lo = next.lo;
      choice->next_hi = next.hi;
    }
}

const CoopEvictor coop_evict_window = { "coop", choose };
