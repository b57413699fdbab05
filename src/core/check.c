/* SPDX-License-Identifier: Apache-2.0 */
/* Invariants of the whole engine, counted anew from the objects themselves. Slow. */
#include "engine-private.h"

static const char *
check_bytes (const CoopEngine *e, const CoopVersion *v)
{
  bool bytes = v->t.state == COOP_LIVE || v->t.state == COOP_BORROWED;
  if (bytes != (v->piece != 0) || bytes != (v->t.addr != COOP_NO_ADDR))
    return "a tensor's state does not agree with its bytes";
  if (v->held != (v->t.state == COOP_LIVE || v->t.state == COOP_EVICTED))
    return "a tensor's state does not agree with its being held";
  if (!bytes)
    return NULL;
  const CoopNode *n = coop_node (e, v);
  if (n->used != PIECE_USED || n->tensor != v || n->addr != v->t.addr)
    return "a tensor and its block do not know each other";
  if (n->bytes < v->t.requested)
    return "a block is smaller than its tensor";
  return v->chain == 0 ? NULL : "a tensor with bytes is in a chain class";
}

static const char *
check_readers (const CoopVersion *v)
{
  uint32_t readers = 0, keepers = 0;
  for (const CoopUse *u = v->readers; u != NULL; u = u->next)
    {
      if (u->tensor != v || (u->next != NULL && u->next->prev != u))
        return "a list of readers is broken";
      if (u->use & COOP_USE_SCRATCH)
        keepers++;
      else
        readers++;
    }
  return readers == v->n_readers && keepers == v->n_keepers ? NULL : "a count of readers is wrong";
}

static const char *
check_tensor (const CoopEngine *e, const CoopVersion *v)
{
  const char *fault = check_bytes (e, v);
  if (fault == NULL)
    fault = check_readers (v);
  if (fault != NULL)
    return fault;
  if (v->t.pin != COOP_PIN_NONE && v->producer != NULL)
    return "a constant has a producer";
  if (v->t.state == COOP_EVICTED && v->producer == NULL)
    return "an evicted tensor cannot be made again";
  if (v->t.state == COOP_DEAD && v->n_readers > 0 && v->producer == NULL)
    return "a tensor that is needed cannot be made again";
  if (v->producer != NULL && v->producer->outputs[v->output] != v)
    return "a tensor and its producer do not know each other";
  if (v->counted != (v->producer != NULL && (v->held || v->n_readers > 0)))
    return "a tensor is not counted by its producer";
  if (v->hold != coop_hold_wanted (e, v) && !v->hold_due)
    return "a hold is neither in force nor due";
  if (v->t.state == COOP_DEAD && v->n_readers == 0 && v->n_keepers == 0 && v->t.pins == 0
      && !v->t.chosen && !v->spoiled)
    return "a dead tensor was not let go";
  return NULL;
}

static const char *
check_op (const CoopOp *op)
{
  uint32_t alive = 0;
  for (uint32_t i = 0; i < op->n_outputs; i++)
    if (op->outputs[i] != NULL)
      {
        if (op->outputs[i]->producer != op)
          return "a record and its output do not know each other";
        alive += op->outputs[i]->counted;
      }
  if (alive != op->alive)
    return "a record's count of needed outputs is wrong";
  return alive > 0 || op->busy > 0 ? NULL : "a dead record was not let go";
}

/* Pins are those of open calls, their frames and their lists. */
static const char *
check_pins (const CoopEngine *e)
{
  uint64_t sum = 0, expected = 0;
  for (const CoopVersion *v = e->tensors; v != NULL; v = v->next)
    sum += v->t.pins;
  for (uint32_t i = 0; i < e->n_calls; i++)
    {
      const CoopCallState *cs = e->calls[i];
      expected += cs->call->n_inputs + cs->n_todo;
      for (uint32_t f = 0; f < cs->n_frames; f++)
        expected += 1 + cs->frame[f].op->n_inputs;
    }
  return sum == expected ? NULL : "the count of pins is wrong";
}

static const char *
check_chain (const CoopEngine *e)
{
  int64_t tensors = 0, roots = 0;
  for (const CoopVersion *v = e->tensors; v != NULL; v = v->next)
    tensors += v->chain != 0 ? (int64_t) v->chain_cost : 0;
  for (uint32_t i = 1; i < e->n_chain; i++)
    if (e->chain[i].refs > 0 && e->chain[i].parent == i)
      roots += e->chain[i].cost;
  return tensors == roots ? NULL : "chain costs do not add up";
}

static const char *
check_lists (const CoopEngine *e)
{
  uint64_t n_tensors = 0, n_ops = 0, borrowed = 0, evicted = 0;
  const char *fault = NULL;
  for (const CoopVersion *v = e->tensors; v != NULL && fault == NULL; v = v->next)
    {
      n_tensors++;
      borrowed += v->t.state == COOP_BORROWED;
      evicted += v->t.state == COOP_EVICTED ? coop_round (v->t.requested) : 0;
      fault = check_tensor (e, v);
    }
  for (const CoopOp *op = e->ops; op != NULL && fault == NULL; op = op->next)
    {
      n_ops++;
      fault = check_op (op);
    }
  if (fault != NULL)
    return fault;
  if (n_tensors != e->n_tensors || n_ops != e->n_ops || borrowed != e->n_borrowed)
    return "a count of tensors, records or borrowed tensors is wrong";
  return evicted == e->evicted ? NULL : "the sum of evicted bytes is wrong";
}

/* What is known of a tensor's cost is its cost. Marks of walks are all that is written. */
static const char *
check_known (CoopEngine *e)
{
  const CoopScale scale = coop_scale (e);
  for (CoopVersion *v = e->tensors; v != NULL; v = v->next)
    if (coop_evictable (e, v))
      {
        double h = coop_score (e, v).h;
        if (coop_h (e, v, &scale) != h)
          return "a cost that is known is no longer true";
      }
  return NULL;
}

const char *
coop_engine_check (const CoopEngine *e)
{
  const char *fault = coop_pool_check (&e->pool);
  if (fault == NULL)
    fault = check_lists (e);
  if (fault == NULL)
    fault = check_pins (e);
  if (fault == NULL)
    fault = check_chain (e);
  if (fault == NULL)
    fault = check_known ((CoopEngine *) e);
  return fault;
}
