/* SPDX-License-Identifier: Apache-2.0 */
/* Tensors and records: how they come to be, what keeps them, and how whole chains go at once.
 *
 * A tensor is needed while the user holds it or a live record reads it. A record is alive while an
 * output of it is needed and not constant. Both counts are kept up to date by
 * coop_version_update; what may have died is put on a list and disposed of by coop_reap, so death
 * runs down a chain of any length without recursion. */
#include "engine-private.h"

#include <stdlib.h>
#include <string.h>

CoopShape *
coop_shape_new (uint64_t dtype, uint32_t ndim, const int64_t *dims)
{
  CoopShape *s = coop_make (sizeof *s + ndim * sizeof *dims);
  s->dtype = dtype;
  s->ndim = ndim;
  if (ndim > 0)
    memcpy (s->dims, dims, ndim * sizeof *dims);
  return s;
}

/* Takes one more reference of the shape. */
CoopVersion *
coop_version_new (CoopEngine *e, uint32_t piece, CoopShape *shape, uint64_t requested)
{
  CoopVersion *v = coop_make_line (sizeof *v); /* searches read two cache lines of it */
  v->t.id = ++e->last_tensor;
  v->t.addr = e->pool.node[piece].addr;
  v->t.requested = requested;
  v->t.state = COOP_LIVE;
  v->piece = piece;
  v->held = true;
  v->last = e->clock;
  v->born_step = e->step;
  v->shape = shape;
  shape->refs++;
  v->next = e->tensors;
  if (v->next != NULL)
    v->next->prev = v;
  e->tensors = v;
  e->n_tensors++;
  e->pool.node[piece].tensor = v;
  return v;
}

static void
link_use (CoopUse *use)
{
  CoopVersion *v = use->tensor;
  use->prev = NULL;
  use->next = v->readers;
  if (use->next != NULL)
    use->next->prev = use;
  v->readers = use;
  if (use->use & COOP_USE_SCRATCH)
    v->n_keepers++;
  else
    v->n_readers++;
}

static void
unlink_use (CoopUse *use)
{
  CoopVersion *v = use->tensor;
  if (use->prev != NULL)
    use->prev->next = use->next;
  else
    v->readers = use->next;
  if (use->next != NULL)
    use->next->prev = use->prev;
  if (use->use & COOP_USE_SCRATCH)
    v->n_keepers--;
  else
    v->n_readers--;
}

static uint64_t
record_bytes (const CoopOp *op)
{
  return sizeof *op + op->n_inputs * sizeof (CoopUse) + op->n_outputs * sizeof (CoopVersion *);
}

CoopOp *
coop_record_new (CoopEngine *e, CoopCall *call, uint32_t n_new, uint32_t n_written)
{
  uint32_t n = 0;
  for (unsigned i = 0; i < call->n_inputs; i++)
    n += !(call->inputs[i].use & COOP_USE_UNRECORDED);
  CoopOp *op = coop_make (sizeof *op + n * sizeof (CoopUse));
  op->id = call->id;
  op->name = call->name;
  op->stack = call->stack;
  op->op_class = (uint8_t) call->op_class;
  op->phase = (uint8_t) e->phase;
  op->n_new = n_new;
  op->n_outputs = n_new + n_written;
  op->outputs = coop_make ((op->n_outputs + 1) * sizeof *op->outputs);
  for (unsigned i = 0; i < call->n_inputs; i++)
    if (!(call->inputs[i].use & COOP_USE_UNRECORDED))
      {
        CoopUse *use = &op->inputs[op->n_inputs++];
        use->tensor = coop_version (call->inputs[i].tensor);
        use->op = op;
        use->use = (uint8_t) (call->inputs[i].use & (COOP_USE_WRITE | COOP_USE_SCRATCH));
        link_use (use);
      }
  op->next = e->ops;
  if (op->next != NULL)
    op->next->prev = op;
  e->ops = op;
  e->n_ops++;
  e->op_bytes += record_bytes (op);
  return op;
}

void
coop_record_add_output (CoopOp *op, uint32_t i, CoopVersion *v)
{
  op->outputs[i] = v;
  v->producer = op;
  v->output = i;
}

static bool
needed (const CoopVersion *v)
{
  return v->held || v->n_readers > 0;
}

/* Records keep small and constant inputs alive: they are not made again. */
bool
coop_hold_wanted (const CoopEngine *e, const CoopVersion *v)
{
  int64_t hold = e->policy.v[COOP_PARAM_HOLD].i;
  return v->held && v->readers != NULL
         && (v->t.pin != COOP_PIN_NONE || (hold > 0 && v->t.requested <= (uint64_t) hold));
}

static void
suspect_op (CoopEngine *e, CoopOp *op)
{
  if (op->alive > 0 || op->busy > 0 || op->suspect)
    return;
  op->suspect = true;
  e->dead_ops = coop_grow (e->dead_ops, &e->dead_op_room, e->n_dead_ops + 1, sizeof *e->dead_ops);
  e->dead_ops[e->n_dead_ops++] = op;
}

static bool
may_go (const CoopVersion *v)
{
  return !needed (v) && v->n_keepers == 0 && v->piece == 0 && v->t.pins == 0 && !v->t.chosen
         && !v->spoiled;
}

void
coop_version_update (CoopEngine *e, CoopVersion *v)
{
  bool count = v->producer != NULL && needed (v);
  if (count != v->counted)
    {
      v->counted = count;
      if (count)
        v->producer->alive++;
      else if (v->producer != NULL && --v->producer->alive == 0)
        suspect_op (e, v->producer);
    }
  if (coop_hold_wanted (e, v) != v->hold && !v->hold_due)
    {
      v->hold_due = true;
      coop_due (e, COOP_ACTION_HOLD, v, NULL);
    }
  if (!v->suspect && may_go (v))
    {
      v->suspect = true;
      e->suspects = coop_grow (e->suspects, &e->suspect_room, e->n_suspects + 1,
                               sizeof *e->suspects);
      e->suspects[e->n_suspects++] = v;
    }
}

/* v is no longer an output of its producer. */
static void
detach (CoopEngine *e, CoopVersion *v)
{
  CoopOp *op = v->producer;
  if (op == NULL)
    return;
  op->outputs[v->output] = NULL;
  v->producer = NULL;
  if (v->counted)
    {
      v->counted = false;
      op->alive--;
    }
  suspect_op (e, op);
}

void
coop_version_lose (CoopEngine *e, CoopVersion *v, CoopState state)
{
  if (v->t.state == COOP_BORROWED)
    coop_borrowed_remove (e, v);
  v->t.state = (uint8_t) state;
  v->t.addr = COOP_NO_ADDR;
  v->piece = 0;
  v->handing = false;
  v->held = state == COOP_EVICTED;
  if (state == COOP_EVICTED)
    e->evicted += coop_round (v->t.requested);
  coop_chain_lose (e, v);
  coop_version_update (e, v);
}

void
coop_version_back (CoopEngine *e, CoopVersion *v, uint32_t piece, CoopState state)
{
  if (v->t.state == COOP_EVICTED)
    e->evicted -= coop_round (v->t.requested);
  coop_chain_back (e, v);
  v->piece = piece;
  v->t.addr = e->pool.node[piece].addr;
  v->t.state = (uint8_t) state;
  v->held = state == COOP_LIVE;
  e->pool.node[piece].tensor = v;
  if (state == COOP_BORROWED)
    {
      e->borrowed = coop_grow (e->borrowed, &e->borrowed_room, e->n_borrowed + 1,
                               sizeof *e->borrowed);
      e->borrowed[e->n_borrowed++] = v;
    }
  coop_version_update (e, v);
}

void
coop_borrowed_remove (CoopEngine *e, CoopVersion *v)
{
  for (uint32_t i = e->n_borrowed; i-- > 0;)
    if (e->borrowed[i] == v)
      {
        memmove (&e->borrowed[i], &e->borrowed[i + 1],
                 (e->n_borrowed - i - 1) * sizeof *e->borrowed);
        e->n_borrowed--;
        return;
      }
}

void
coop_version_make_constant (CoopEngine *e, CoopVersion *v, CoopKind kind, CoopPin pin)
{
  bool same = v->t.pin == pin && v->t.kind == kind;
  v->t.kind = (uint8_t) kind;
  v->t.pin = (uint8_t) pin;
  v->t.chosen = 0;
  detach (e, v);
  if (!same)
    coop_emit_reclassify (e, v);
  coop_version_update (e, v);
  coop_place_later (e, v);
}

void
coop_pin (CoopVersion *v)
{
  v->t.pins++;
}

void
coop_unpin (CoopEngine *e, CoopVersion *v)
{
  if (--v->t.pins == 0)
    coop_version_update (e, v);
}

void
coop_op_release_busy (CoopEngine *e, CoopOp *op)
{
  op->busy--;
  suspect_op (e, op);
}

static void
bury_tensor (CoopEngine *e, CoopVersion *v)
{
  v->suspect = false;
  if (v->gone || !may_go (v))
    return;
  v->gone = true;
  coop_place_forget (e, v);
  coop_chain_back (e, v);
  detach (e, v);
  if (v->next != NULL)
    v->next->prev = v->prev;
  if (v->prev != NULL)
    v->prev->next = v->next;
  else
    e->tensors = v->next;
  e->n_tensors--;
  if (--v->shape->refs == 0)
    free (v->shape);
  v->shape = NULL;
  coop_due (e, COOP_ACTION_TENSOR_GONE, v, NULL);
}

static void
bury_op (CoopEngine *e, CoopOp *op)
{
  op->suspect = false;
  if (op->alive > 0 || op->busy > 0)
    return;
  for (uint32_t i = 0; i < op->n_outputs; i++)
    if (op->outputs[i] != NULL)
      {
        coop_chain_back (e, op->outputs[i]);
        op->outputs[i]->producer = NULL;
        op->outputs[i]->counted = false;
      }
  for (uint32_t i = 0; i < op->n_inputs; i++)
    {
      unlink_use (&op->inputs[i]);
      coop_version_update (e, op->inputs[i].tensor);
    }
  e->op_bytes -= record_bytes (op);
  e->n_ops--;
  if (op->next != NULL)
    op->next->prev = op->prev;
  if (op->prev != NULL)
    op->prev->next = op->next;
  else
    e->ops = op->next;
  free (op->outputs);
  op->outputs = NULL;
  op->n_outputs = op->n_inputs = 0;
  coop_due (e, COOP_ACTION_OP_GONE, NULL, op);
}

void
coop_reap (CoopEngine *e)
{
  if (e->loosened > 0) /* pins were taken away from what is still referred to */
    return;
  while (e->n_dead_ops > 0 || e->n_suspects > 0)
    if (e->n_dead_ops > 0)
      bury_op (e, e->dead_ops[--e->n_dead_ops]);
    else
      bury_tensor (e, e->suspects[--e->n_suspects]);
}
