/* SPDX-License-Identifier: Apache-2.0 */
/* Chain cost without approximation (DTR's e*): the operators that would have to run first, up through
 * inputs without bytes, and those whose results would wait, down through outputs without bytes. Each
 * operator counts once, however many of its outputs are gone. Walked anew for each score: that is
 * what the classes of chain.c save, and what they are measured against. */
#include "engine-private.h"

typedef struct
{
  uint32_t n;            /* of e->walk, which is kept for the next one */
  uint64_t cost;
} Walk;

static void
visit (CoopEngine *e, Walk *walk, CoopVersion *v)
{
  if (v == NULL || v->chain == 0 || v->mark == e->stamp)
    return;
  v->mark = e->stamp;
  e->walk = coop_grow (e->walk, &e->walk_room, walk->n + 1, sizeof *e->walk);
  e->walk[walk->n++] = v;
  if (v->producer->mark != e->stamp)
    walk->cost += v->producer->cost;
  v->producer->mark = e->stamp;
}

static void
up (CoopEngine *e, Walk *walk, const CoopVersion *v)
{
  for (uint32_t i = 0; i < v->producer->n_inputs; i++)
    visit (e, walk, v->producer->inputs[i].tensor);
}

static void
down (CoopEngine *e, Walk *walk, const CoopVersion *v)
{
  for (const CoopUse *use = v->readers; use != NULL; use = use->next)
    for (uint32_t i = 0; i < use->op->n_outputs; i++)
      visit (e, walk, use->op->outputs[i]);
}

static uint64_t
region (CoopEngine *e, const CoopVersion *v, void (*f) (CoopEngine *, Walk *, const CoopVersion *))
{
  Walk walk = { 0 };
  e->stamp++;
  v->producer->mark = e->stamp; /* its own cost is counted elsewhere */
  f (e, &walk, v);
  while (walk.n > 0)
    f (e, &walk, e->walk[--walk.n]);
  return walk.cost;
}

uint64_t
coop_chain_ancestors (CoopEngine *e, const CoopVersion *v)
{
  return region (e, v, up);
}

uint64_t
coop_chain_exact (CoopEngine *e, const CoopVersion *v)
{
  return region (e, v, up) + region (e, v, down);
}
