/* SPDX-License-Identifier: Apache-2.0 */
/* The engine as a whole: begin and end, policy, and what can be seen of it. */
#include "engine-private.h"

#include <stdlib.h>

#define SMALL_SHARE 64                          /* of the budget, for small blocks */
#define SMALL_MOST (UINT64_C (10) << 20)
#define SMALL_LEAST (UINT64_C (64) << 10)       /* below it the area is not worth having */

/* Bytes for the area of small blocks under the policy in force. */
static uint64_t
small_bytes (const CoopEngine *e, uint64_t limit)
{
  if (!e->limited || e->policy.v[COOP_PARAM_SMALL].i == 0)
    return 0;
  uint64_t bytes = limit / SMALL_SHARE;
  bytes = bytes > SMALL_MOST ? SMALL_MOST : bytes / COOP_GRAIN * COOP_GRAIN;
  return bytes < SMALL_LEAST ? 0 : bytes;
}

/* The area may not swallow blocks that windows must be able to evict. */
static bool
only_small_below (const CoopEngine *e, uint64_t line)
{
  const CoopNode *node = e->pool.node;
  for (uint32_t p = node[0].next; p != 0 && node[p].addr < line; p = node[p].next)
    if (node[p].used != PIECE_FREE
        && node[p].requested > (uint64_t) e->policy.v[COOP_PARAM_SMALL].i)
      return false;
  return true;
}

static const CoopAllocator *
allocator_of (const CoopPolicy *policy)
{
  switch ((CoopAllocatorName) policy->v[COOP_PARAM_ALLOCATOR].i)
    {
    case COOP_ALLOCATOR_CLASS:
      return &coop_alloc_class;
    case COOP_ALLOCATOR_CACHING:
      return policy->v[COOP_PARAM_EXPANDABLE].i ? &coop_alloc_expandable : &coop_alloc_caching;
    case COOP_ALLOCATOR_PAGE:
      return &coop_alloc_page;
    case COOP_ALLOCATOR_MERGE:
    case COOP_N_ALLOCATORS:
      break;
    }
  return &coop_alloc_merge;
}

/* What tells how blocks are laid out cannot change under them. */
static bool
is_fixed (int param)
{
  return param == COOP_PARAM_ALLOCATOR || param == COOP_PARAM_STEPS || param == COOP_PARAM_EXPANDABLE
         || param == COOP_PARAM_PAGE;
}

static void
apply_budget (CoopEngine *e)
{
  uint64_t budget = (uint64_t) e->policy.v[COOP_PARAM_BUDGET].i, limit = e->pool.capacity;
  bool was_limited = e->limited;
  e->limited = budget > 0;
  if (e->limited && budget < limit)
    limit = budget / COOP_GRAIN * COOP_GRAIN;
  if (e->pool.segmented)
    {
      uint64_t unit = e->allocator == &coop_alloc_page ? e->allocator->unit (e, AREA_GENERAL) : 1;
      e->budget = limit / unit * unit;
      return;
    }
  uint64_t small = small_bytes (e, limit);
  if (!only_small_below (e, small))
    small = e->pool.small_end < small ? e->pool.small_end : small;
  bool tighter = (e->limited && !was_limited) || limit < e->budget;
  e->budget = limit;
  coop_pool_set_lines (&e->pool, small, limit);
  for (CoopVersion *v = tighter ? e->tensors : NULL; v != NULL; v = v->next)
    {
      v->place_tried = 0;
      coop_place_later (e, v);
    }
}

CoopEngine *
coop_engine_new (const CoopEngineOptions *options)
{
  CoopEngine *e = calloc (1, sizeof *e);
  if (e == NULL)
    return NULL;
  e->policy = options->policy;
  for (int i = 0; i < COOP_N_PARAMS; i++)
    e->policy.v[i] = coop_param_clamp ((CoopParam) i, e->policy.v[i]);
  e->sink = options->sink;
  e->now = options->now;
  e->now_user = options->now_user;
  e->backing = options->backing;
  e->allocator = allocator_of (&e->policy);
  e->mib = UINT64_C (1) << 20;
  coop_pool_init (&e->pool, options->capacity / COOP_GRAIN * COOP_GRAIN);
  if (e->allocator->segmented)
    coop_pool_segmented (&e->pool);
  e->chain = coop_grow (NULL, &e->chain_room, 2, sizeof *e->chain);
  e->n_chain = 1;
  e->costs = 1;
  apply_budget (e);
  coop_emit_pool (e);
  for (int i = 0; i < COOP_N_PARAMS; i++)
    coop_emit_policy (e, (CoopParam) i,
                      options->source != NULL ? (CoopSource) options->source[i] : COOP_SOURCE_INITIAL,
                      e->policy.v[i], 0);
  return e;
}

static void
free_objects (CoopEngine *e)
{
  for (uint32_t i = 0; i < e->n_due; i++)
    {
      CoopDue *due = &e->due[(e->due_first + i) % e->due_room];
      if (due->kind == COOP_ACTION_TENSOR_GONE)
        free (due->tensor);
      if (due->kind == COOP_ACTION_OP_GONE)
        free (due->op);
    }
  for (CoopVersion *v = e->tensors, *next; v != NULL; v = next)
    {
      next = v->next;
      if (--v->shape->refs == 0)
        free (v->shape);
      free (v);
    }
  for (CoopOp *op = e->ops, *next; op != NULL; op = next)
    {
      next = op->next;
      free (op->outputs);
      free (op);
    }
  free (e->taken_tensor);
  free (e->taken_op);
}

void
coop_engine_free_all (CoopEngine *e)
{
  if (e == NULL)
    return;
  while (e->n_calls > 0)
    coop_engine_abort (e, e->calls[e->n_calls - 1]->call);
  free_objects (e);
  coop_pool_clear (&e->pool);
  free (e->calls);
  free (e->borrowed);
  free (e->place);
  free (e->suspects);
  free (e->dead_ops);
  free (e->due);
  free (e->chain);
  free (e->names);
  free (e->member);
  free (e->lot);
  free (e->plan);
  free (e->useful);
  free (e->walk);
  free (e);
}

void
coop_engine_set_policy (CoopEngine *e, const CoopPolicy *policy, CoopSource source,
                        uint64_t generation)
{
  bool changed[COOP_N_PARAMS] = { false };
  for (int i = 0; i < COOP_N_PARAMS; i++)
    {
      CoopValue from = e->policy.v[i], to = coop_param_clamp ((CoopParam) i, policy->v[i]);
      if (coop_value_equal ((CoopParam) i, from, to) || is_fixed (i))
        continue;
      e->policy.v[i] = to;
      changed[i] = true;
      coop_emit_policy (e, (CoopParam) i, source, from, generation);
    }
  e->costs += changed[COOP_PARAM_CHAIN] || changed[COOP_PARAM_DESCENT];
  if (changed[COOP_PARAM_BUDGET] || changed[COOP_PARAM_SMALL])
    apply_budget (e);
  for (CoopVersion *v = changed[COOP_PARAM_HOLD] ? e->tensors : NULL; v != NULL; v = v->next)
    coop_version_update (e, v);
  coop_reap (e);
}

const CoopPolicy *
coop_engine_policy (const CoopEngine *e)
{
  return &e->policy;
}

size_t
coop_engine_pieces (const CoopEngine *e, CoopPiece *out, size_t n)
{
  size_t i = 0;
  for (uint32_t p = e->pool.node[0].next; p != 0; p = e->pool.node[p].next, i++)
    if (i < n)
      {
        const CoopNode *node = &e->pool.node[p];
        bool used = node->used == PIECE_USED;
        out[i] = (CoopPiece) { .addr = node->addr, .bytes = node->bytes, .used = used,
                               .block = used ? node->block : 0,
                               .tensor = used && node->tensor ? &node->tensor->t : NULL };
      }
  return i;
}
