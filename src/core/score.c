/* SPDX-License-Identifier: Apache-2.0 */
/* Score: h = (own cost + chain cost)^a / (staleness^b * bytes^c). Lowest goes first. What was used
 * just now has no staleness and scores infinite; so does 0 / 0, whatever the exponents. */
#include "engine-private.h"

#include <math.h>

static double
power (double x, double exponent)
{
  if (exponent == 1)
    return x;
  return exponent == 0 ? 1 : pow (x, exponent);
}

CoopScore
coop_score (CoopEngine *e, const CoopVersion *v)
{
  const CoopValue *p = e->policy.v;
  CoopScore s = { .own = v->producer != NULL ? v->producer->cost : 0,
                  .staleness = e->clock - v->last };
  if (v->producer != NULL && p[COOP_PARAM_CHAIN].i == COOP_CHAIN_UNION)
    s.chain = coop_chain_cost (e, v);
  if (p[COOP_PARAM_DESCENT].i)
    s.chain += v->descent;
  double above = power ((double) (s.own + s.chain), p[COOP_PARAM_COST_EXPONENT].d);
  double below = power ((double) s.staleness, p[COOP_PARAM_STALENESS_EXPONENT].d)
                 * power ((double) coop_node (e, v)->bytes, p[COOP_PARAM_SIZE_EXPONENT].d);
  s.h = below > 0 ? above / below : INFINITY;
  return s;
}
