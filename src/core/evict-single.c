/* SPDX-License-Identifier: Apache-2.0 */
/* Evictors dtr, dtr-eq, dtr-local, msps, dte, lru and size: one victim at a time, the lowest score
 * anywhere in the general area, then the allocator tries again. Which of them it is, the exponents and
 * switches of the policy say. Of equals the lowest address goes. And random: any of them.
 *
 * In a segmented pool only what can help is looked at: a small block in a segment that something else
 * holds makes no room for a large one, however cheap it is. */
#include "engine-private.h"

#include <math.h>

/* In a segmented pool: which pieces are worth evicting at all. NULL: any. */
static const uint8_t *
survey (CoopEngine *e, uint64_t need)
{
  if (!e->pool.segmented)
    return NULL;
  coop_lots_useful (e, need);
  return e->useful;
}

static void
choose (CoopEngine *e, uint64_t need, CoopChoice *choice)
{
  double best = NAN, next = NAN;
  const CoopScale scale = coop_scale (e);
  const CoopNode *node = e->pool.node;
  const uint8_t *useful = survey (e, need);
  for (uint32_t p = node[0].next; p != 0; p = node[p].next)
    {
      const CoopNode *n = &node[p];
      if (n->addr < e->pool.small_end)
        continue;
      choice->visited++;
      coop_look_ahead (node, p);
      if (n->used != PIECE_USED || n->tensor == NULL || !coop_evictable (e, n->tensor)
          || (useful != NULL && !useful[p]))
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

/* splitmix64: the draw depends on the seed and on how many came before it. */
static uint64_t
draw (CoopEngine *e)
{
  uint64_t x = ((uint64_t) e->policy.v[COOP_PARAM_SEED].i << 32) + ++e->draws;
  x *= UINT64_C (0x9e3779b97f4a7c15);
  x = (x ^ x >> 30) * UINT64_C (0xbf58476d1ce4e5b9);
  x = (x ^ x >> 27) * UINT64_C (0x94d049bb133111eb);
  return x ^ x >> 31;
}

/* The piece of that number among those that may go, from 0; 0 if there are fewer. */
static uint32_t
candidate (const CoopEngine *e, const uint8_t *useful, uint64_t number, uint64_t *n)
{
  const CoopNode *node = e->pool.node;
  *n = 0;
  for (uint32_t p = node[0].next; p != 0; p = node[p].next)
    if (node[p].addr >= e->pool.small_end && node[p].used == PIECE_USED && node[p].tensor != NULL
        && coop_evictable (e, node[p].tensor) && (useful == NULL || useful[p]) && (*n)++ == number)
      return p;
  return 0;
}

static void
choose_random (CoopEngine *e, uint64_t need, CoopChoice *choice)
{
  uint64_t n;
  const uint8_t *useful = survey (e, need);
  candidate (e, useful, UINT64_MAX, &n);
  choice->visited = e->pool.n_pieces;
  choice->cost = choice->next_cost = NAN;
  if (n == 0)
    return;
  const CoopNode *victim = &e->pool.node[candidate (e, useful, draw (e) % n, &n)];
  const CoopScale scale = coop_scale (e);
  choice->found = true;
  choice->cost = coop_h (e, victim->tensor, &scale);
  choice->lo = victim->addr;
  choice->hi = victim->addr + victim->bytes;
}

const CoopEvictor coop_evict_random = { "random", choose_random };

static void
choose_none (CoopEngine *e, uint64_t need, CoopChoice *choice)
{
  choice->cost = choice->next_cost = NAN;
}

/* Evictor none: shows what a script needs. */
const CoopEvictor coop_evict_none = { "none", choose_none };
