/* SPDX-License-Identifier: Apache-2.0 */
/* Score, the part that a search runs for every piece: from what is known of a tensor where that still
 * holds. Included by engine-private.h. What it computes and why it may: score.c. */
#ifndef COOP_SCORE_H
#define COOP_SCORE_H

#include <math.h>

/* coop_weigh for exponents other than 0 and 1. */
double coop_weigh_slowly (const CoopEngine *e, const CoopVersion *v, const CoopScale *scale, uint64_t cost);

/* Bytes in one piece once v is gone; its own alone without `beside`. */
static inline uint64_t
coop_size_gained (const CoopEngine *e, const CoopVersion *v, bool beside)
{
  const CoopNode *node = e->pool.node, *n = coop_node (e, v);
  uint64_t bytes = n->bytes;
  if (beside && n->prev != 0 && node[n->prev].used == PIECE_FREE
      && node[n->prev].segment == n->segment)
    bytes += node[n->prev].bytes;
  if (beside && n->next != 0 && node[n->next].used == PIECE_FREE
      && node[n->next].area != AREA_BEYOND && node[n->next].segment == n->segment)
    bytes += node[n->next].bytes;
  return bytes;
}

static inline double
coop_weigh (const CoopEngine *e, const CoopVersion *v, const CoopScale *scale, uint64_t cost)
{
  if (!scale->simple)
    return coop_weigh_slowly (e, v, scale, cost);
  double below = (double) (e->clock - v->last);
  if (scale->sized)
    below *= (double) coop_size_gained (e, v, scale->beside);
  return below > 0 ? (double) cost / below : INFINITY;
}

/* Roots of no class have the stamp 0 for ever. */
static inline bool
coop_known_holds (const CoopEngine *e, const CoopVersion *v)
{
  return v->known == e->costs && e->chain[v->known_root[0]].stamp == v->known_stamp[0]
         && e->chain[v->known_root[1]].stamp == v->known_stamp[1];
}

static inline double
coop_h (CoopEngine *e, CoopVersion *v, const CoopScale *scale)
{
  if (__builtin_expect (!coop_known_holds (e, v), false))
    coop_know (e, v);
  return coop_weigh (e, v, scale, v->known_cost);
}

#endif
