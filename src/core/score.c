/* SPDX-License-Identifier: Apache-2.0 */
/* Score: h = (own cost + chain cost)^a / (staleness^b * bytes^c). Lowest goes first. What was used
 * just now has no staleness and scores infinite; so does 0 / 0, whatever the exponents. With `beside`
 * the free bytes next to a tensor are counted with its own.
 *
 * A search reads thousands of scores of which few changed since the last one. So each tensor keeps
 * its cost with the stamps of the (at most two) classes that it came from; what changes the cost of a
 * class changes its stamp, and what changes a neighbour makes the cost unknown. */
#include "engine-private.h"

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
                      p[COOP_PARAM_SIZE_EXPONENT].d, p[COOP_PARAM_BESIDE].i != 0, false, false };
  scale.simple = scale.cost == 1 && scale.staleness == 1 && (scale.size == 0 || scale.size == 1);
  scale.sized = scale.size == 1;
  return scale;
}

static double
power (double x, double exponent)
{
  if (exponent == 1)
    return x;
  return exponent == 0 ? 1 : pow (x, exponent);
}

double
coop_weigh_slowly (const CoopEngine *e, const CoopVersion *v, const CoopScale *scale, uint64_t cost)
{
  double above = power ((double) cost, scale->cost);
  double below = power ((double) (e->clock - v->last), scale->staleness)
                 * power ((double) coop_size_gained (e, v, scale->beside), scale->size);
  return below > 0 ? above / below : INFINITY;
}

CoopScore
coop_score (CoopEngine *e, const CoopVersion *v)
{
  CoopScale scale = coop_scale (e);
  CoopScore s = costs_of (e, v);
  s.h = coop_weigh (e, v, &scale, s.own + s.chain);
  return s;
}

void
coop_know (CoopEngine *e, CoopVersion *v)
{
  CoopScore s = costs_of (e, v);
  v->known_cost = s.own + s.chain;
  v->known = coop_chain_keep (e, v) ? e->costs : 0;
}
