/* SPDX-License-Identifier: Apache-2.0 */
/* Evictors dtr-eq and lru: one victim at a time, the lowest score anywhere in the general area, then
 * the allocator tries again. Which of the two it is, the exponents of the policy say. Of equals the
 * lowest address goes. */
#include "engine-private.h"

#include <math.h>

static void
choose (CoopEngine *e, uint64_t need, CoopChoice *choice)
{
  double best = NAN, next = NAN;
  const CoopScale scale = coop_scale (e);
  const CoopNode *node = e->pool.node;
  for (uint32_t p = node[0].next; p != 0; p = node[p].next)
    {
      const CoopNode *n = &node[p];
      if (n->addr < e->pool.small_end)
        continue;
      choice->visited++;
      coop_look_ahead (node, p);
      if (n->used != PIECE_USED || n->tensor == NULL || !coop_evictable (e, n->tensor))
        continue;
      double h = coop_h (e, n->tensor, &scale);
      if (!choice->found || h < best)
        {
          next = best;
          choice->next_lo = choice->lo;
          choice->next_hi = choice->hi;
          best = h;
          choice->lo = n->addr;
          choice->hi = n->addr + n->bytes;
          choice->found = true;
        }
      else if (isnan (next) || h < next)
        {
          next = h;
          choice->next_lo = n->addr;
          choice->next_hi = n->addr + n->bytes;
        }
    }
  choice->cost = best;
  choice->next_cost = next;
}

const CoopEvictor coop_evict_single = { "single", choose };

static void
choose_none (CoopEngine *e, uint64_t need, CoopChoice *choice)
{
  choice->cost = choice->next_cost = NAN;
}

/* Evictor none: shows what a script needs. */
const CoopEvictor coop_evict_none = { "none", choose_none };
