/* SPDX-License-Identifier: Apache-2.0 */
/* Score: h = (own cost + chain cost)^a / (staleness^b * bytes^c). Lowest goes first. What was used
 * just now has no staleness and scores infinite; so does 0 / 0, whatever the exponents. With `beside`
 * the free bytes next to a tensor are counted with its own.
 *
 * A search reads thousands of scores of which few changed since the last one. So each tensor keeps
 * its cost with the stamps of the (at most two) classes that it came from; what changes the cost of a
 * class changes its stamp, and what changes a neighbour makes the cost unknown. */
#include "engine-private.h"

#include <math.h>

static double
power (double x, double exponent)
{
  if (exponent == 1)
    return x;
  return exponent == 0 ? 1 : pow (x, exponent);
}

static uint64_t
chain_of (CoopEngine *e, const CoopVersion *v)
{
  switch ((CoopChain) e->policy.v[COOP_PARAM_CHAIN].i)
    {
    case COOP_CHAIN_UNION:
      return coop_chain_cost (e, v);
    case COOP_CHAIN_EXACT:
      return coop_chain_exact (e, v);
    case COOP_CHAIN_ANCESTORS:
      return coop_chain_ancestors (e, v);
    case COOP_CHAIN_NONE:
    case COOP_N_CHAINS:
      break;
    }
  return 0;
}

static CoopScore
costs_of (CoopEngine *e, const CoopVersion *v)
{
  const CoopValue *p = e->policy.v;
  CoopScore s = { .own = v->producer != NULL ? v->producer->cost : 0,
                  .staleness = e->clock - v->last };
  if (v->producer != NULL)
    s.chain = chain_of (e, v);
  if (p[COOP_PARAM_DESCENT].i)
    s.chain += v->descent;
  return s;
}

CoopScale
coop_scale (const CoopEngine *e)
{
  const CoopValue *p = e->policy.v;
  CoopScale scale = { p[COOP_PARAM_COST_EXPONENT].d, p[COOP_PARAM_STALENESS_EXPONENT].d,
                      p[COOP_PARAM_SIZE_EXPONENT].d, p[COOP_PARAM_BESIDE].i != 0, false };
  scale.plain = scale.cost == 1 && scale.staleness == 1 && scale.size == 0;
  return scale;
}

/* Bytes in one piece once v is gone; its own alone without `beside`. */
static uint64_t
size_of (const CoopEngine *e, const CoopVersion *v, bool beside)
{
  const CoopNode *node = e->pool.node, *n = coop_node (e, v);
  uint64_t bytes = n->bytes;
  if (beside && n->prev != 0 && node[n->prev].used == PIECE_FREE)
    bytes += node[n->prev].bytes;
  if (beside && n->next != 0 && node[n->next].used == PIECE_FREE
      && node[n->next].area != AREA_BEYOND)
    bytes += node[n->next].bytes;
  return bytes;
}

static double
weigh (const CoopEngine *e, const CoopVersion *v, const CoopScale *scale, uint64_t cost)
{
  uint64_t staleness = e->clock - v->last;
  if (scale->plain)
    return staleness > 0 ? (double) cost / (double) staleness : INFINITY;
  double above = power ((double) cost, scale->cost);
  double below = power ((double) staleness, scale->staleness)
                 * power ((double) size_of (e, v, scale->beside), scale->size);
  return below > 0 ? above / below : INFINITY;
}

CoopScore
coop_score (CoopEngine *e, const CoopVersion *v)
{
  CoopScale scale = coop_scale (e);
  CoopScore s = costs_of (e, v);
  s.h = weigh (e, v, &scale, s.own + s.chain);
  return s;
}

/* Roots of no class have the stamp 0 for ever. */
static bool
holds (const CoopEngine *e, const CoopVersion *v)
{
  return v->known == e->costs && e->chain[v->known_root[0]].stamp == v->known_stamp[0]
         && e->chain[v->known_root[1]].stamp == v->known_stamp[1];
}

double
coop_h (CoopEngine *e, CoopVersion *v, const CoopScale *scale)
{
  if (!holds (e, v))
    {
      CoopScore s = costs_of (e, v);
      v->known_cost = s.own + s.chain;
      v->known = coop_chain_keep (e, v) ? e->costs : 0;
    }
  return weigh (e, v, scale, v->known_cost);
}
