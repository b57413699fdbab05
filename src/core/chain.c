/* SPDX-License-Identifier: Apache-2.0 */
/* Chain cost: what else would have to be computed first. Tensors without bytes form classes, joined
 * along the edges of the graph when they lose their bytes; a class knows the sum of its costs (DTR's
 * e* by union-find). A tensor that comes back takes its own cost out of the class and leaves; the
 * class is not split, as in DTR. Nodes outlive their tensors while others point at them, so a class
 * keeps its root; union by size keeps paths short, so find need not write. */
#include "engine-private.h"

static uint32_t
node_new (CoopEngine *e)
{
  uint32_t n = e->chain_spare;
  if (n != 0)
    e->chain_spare = e->chain[n].parent;
  else
    {
      n = e->n_chain++;
      e->chain = coop_grow (e->chain, &e->chain_room, e->n_chain, sizeof *e->chain);
    }
  e->chain[n] = (CoopChainNode) { .parent = n, .refs = 1, .size = 1, .stamp = ++e->chain_stamp };
  return n;
}

static void
node_unref (CoopEngine *e, uint32_t n)
{
  while (--e->chain[n].refs == 0)
    {
      uint32_t parent = e->chain[n].parent;
      e->chain[n].parent = e->chain_spare;
      e->chain_spare = n;
      if (parent == n)
        return;
      n = parent;
    }
}

static uint32_t
find (const CoopEngine *e, uint32_t n)
{
  while (e->chain[n].parent != n)
    n = e->chain[n].parent;
  return n;
}

static void
join (CoopEngine *e, uint32_t a, uint32_t b)
{
  a = find (e, a);
  b = find (e, b);
  if (a == b)
    return;
  if (e->chain[a].size < e->chain[b].size)
    {
      uint32_t swap = a;
      a = b;
      b = swap;
    }
  e->chain[b].parent = a;
  e->chain[a].stamp = ++e->chain_stamp;
  e->chain[b].stamp = ++e->chain_stamp;
  e->chain[a].refs++;
  e->chain[a].size += e->chain[b].size;
  e->chain[a].cost += e->chain[b].cost;
}

/* Calls f for the node of each neighbour without bytes: inputs of the producer, outputs of readers. */
#define FOR_NEIGHBOURS(v, n, ...)                                                                  \
  do                                                                                               \
    {                                                                                              \
      for (uint32_t i_ = 0; i_ < (v)->producer->n_inputs; i_++)                                    \
        {                                                                                          \
          uint32_t n = (v)->producer->inputs[i_].tensor->chain;                                    \
          if (n != 0)                                                                              \
            __VA_ARGS__;                                                                           \
        }                                                                                          \
      for (const CoopUse *u_ = (v)->readers; u_ != NULL; u_ = u_->next)                            \
        for (uint32_t i_ = 0; i_ < u_->op->n_outputs; i_++)                                        \
          {                                                                                        \
            uint32_t n = u_->op->outputs[i_] != NULL ? u_->op->outputs[i_]->chain : 0;             \
            if (n != 0)                                                                            \
              __VA_ARGS__;                                                                         \
          }                                                                                        \
    }                                                                                              \
  while (0)

/* v lost or got back its bytes: its neighbours' costs are to be looked up anew. */
static void
forget_costs (CoopVersion *v)
{
  v->known = 0;
  for (uint32_t i = 0; v->producer != NULL && i < v->producer->n_inputs; i++)
    v->producer->inputs[i].tensor->known = 0;
  for (const CoopUse *use = v->readers; use != NULL; use = use->next)
    for (uint32_t i = 0; i < use->op->n_outputs; i++)
      if (use->op->outputs[i] != NULL)
        use->op->outputs[i]->known = 0;
}

void
coop_chain_lose (CoopEngine *e, CoopVersion *v)
{
  if (v->producer == NULL || v->chain != 0)
    return;
  uint32_t own = node_new (e);
  v->chain_cost = v->producer->cost;
  e->chain[own].cost = (int64_t) v->chain_cost;
  FOR_NEIGHBOURS (v, n, join (e, own, n));
  v->chain = own;
  forget_costs (v);
}

void
coop_chain_back (CoopEngine *e, CoopVersion *v)
{
  if (v->chain == 0)
    return;
  uint32_t root = find (e, v->chain);
  e->chain[root].cost -= (int64_t) v->chain_cost;
  e->chain[root].stamp = ++e->chain_stamp;
  node_unref (e, v->chain);
  v->chain = 0;
  forget_costs (v);
}

static int64_t
count_once (CoopEngine *e, uint32_t n)
{
  CoopChainNode *root = &e->chain[find (e, n)];
  if (root->mark == e->stamp)
    return 0;
  root->mark = e->stamp;
  return root->cost;
}

uint64_t
coop_chain_cost (CoopEngine *e, const CoopVersion *v)
{
  int64_t sum = 0;
  e->stamp++;
  FOR_NEIGHBOURS (v, n, sum += count_once (e, n));
  return (uint64_t) sum;
}

static bool
keep_root (CoopEngine *e, CoopVersion *v, uint32_t n, uint32_t *kept)
{
  uint32_t root = find (e, n);
  if (e->chain[root].mark == e->stamp)
    return true;
  e->chain[root].mark = e->stamp;
  if (*kept == 2)
    return false;
  v->known_root[*kept] = root;
  v->known_stamp[(*kept)++] = e->chain[root].stamp;
  return true;
}

bool
coop_chain_keep (CoopEngine *e, CoopVersion *v)
{
  uint32_t kept = 0;
  bool few = true;
  v->known_root[0] = v->known_root[1] = 0;
  v->known_stamp[0] = v->known_stamp[1] = 0;
  int64_t chain = e->policy.v[COOP_PARAM_CHAIN].i;
  if (v->producer == NULL || chain != COOP_CHAIN_UNION)
    return v->producer == NULL || chain == COOP_CHAIN_NONE;
  e->stamp++;
  FOR_NEIGHBOURS (v, n, few = few && keep_root (e, v, n, &kept));
  return few;
}
