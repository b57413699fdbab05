/* SPDX-License-Identifier: Apache-2.0 */
/* Calls: an operator of the program from begin to end. What comes between, bringing its inputs back,
 * is in replay.c. */
#include "engine-private.h"

#include <stdlib.h>
#include <string.h>

/* ---- begin -------------------------------------------------------------------------------- */

/* The optimizer runs in no phase of its own: a step begins with the first update of state after a
 * backward operator, and what follows outside forward and backward belongs to the optimizer. Counters
 * that a forward pass moves on (batch norm's) are no update. */
static void
recognise (CoopEngine *e, const CoopCall *call)
{
  bool updates = false;
  for (unsigned i = 0; i < call->n_inputs; i++)
    updates |= (call->inputs[i].use & COOP_USE_WRITE)
               && ((call->inputs[i].use & COOP_USE_STATE)
                   || call->inputs[i].tensor->kind == COOP_KIND_STATE)
               && (call->phase != COOP_PHASE_FORWARD || call->inputs[i].tensor->requested > 8);
  if (call->phase == COOP_PHASE_BACKWARD)
    e->backward_seen = e->ever_backward = true;
  CoopPhase phase = call->phase;
  if (updates && e->backward_seen && phase != COOP_PHASE_BACKWARD)
    {
      e->backward_seen = false;
      if (e->step == 0)
        e->first_state = coop_state_bytes (e);
      coop_emit_words (e, COOP_EVENT_STEP, ++e->step, 0, 0, 0, 0);
      e->step_cost = e->step > 1 ? e->clock - e->step_clock : 0;
      e->step_clock = e->clock;
      phase = COOP_PHASE_OPTIMIZER;
    }
  else if (phase == COOP_PHASE_OTHER && e->phase == COOP_PHASE_OPTIMIZER)
    phase = COOP_PHASE_OPTIMIZER;
  if (phase != e->phase)
    {
      if (phase == COOP_PHASE_BACKWARD)
        e->pass_clock = e->clock;
      e->phase = phase;
      coop_emit_words (e, COOP_EVENT_PHASE, phase, 0, 0, 0, 0);
    }
}

static void
emit_begin (CoopEngine *e, const CoopCall *call)
{
  uint64_t few[16], *ids = few;
  if (e->sink.emit == NULL)
    return;
  if (call->n_inputs > 8)
    ids = coop_make ((call->n_inputs + 8) * sizeof *ids);
  memset (few, 0, sizeof few);
  for (unsigned i = 0; i < call->n_inputs; i++)
    ids[i] = call->inputs[i].tensor->id;
  coop_emit_op_begin (e, call->id, call->name, 0, call->stack, e->phase, call->n_inputs, ids);
  if (ids != few)
    free (ids);
}

bool
coop_engine_begin (CoopEngine *e, CoopCall *call)
{
  CoopCallState *cs = calloc (1, sizeof *cs);
  if (cs == NULL)
    return false;
  cs->call = call;
  cs->gathering = true;
  e->gathering++;
  call->frames = cs;
  call->outer = e->n_calls > 0 ? e->calls[e->n_calls - 1]->call : NULL;
  e->calls = coop_grow (e->calls, &e->call_room, e->n_calls + 1, sizeof *e->calls);
  e->calls[e->n_calls++] = cs;
  if (call->name != 0)
    recognise (e, call);
  call->id = ++e->last_op;
  for (unsigned i = 0; i < call->n_inputs; i++)
    coop_pin (coop_version (call->inputs[i].tensor));
  if (call->name != 0)
    emit_begin (e, call);
  return true;
}

/* ---- end ---------------------------------------------------------------------------------- */

static void
close_call (CoopEngine *e, CoopCall *call)
{
  CoopCallState *cs = call->frames;
  coop_gather_stop (e, call);
  for (unsigned i = 0; i < call->n_inputs; i++)
    coop_unpin (e, coop_version (call->inputs[i].tensor));
  uint32_t at = 0;
  while (e->calls[at] != cs)
    at++;
  memmove (&e->calls[at], &e->calls[at + 1], (e->n_calls - at - 1) * sizeof *e->calls);
  e->n_calls--;
  for (uint32_t i = 0; i < e->n_calls; i++)
    if (e->calls[i]->call->outer == call)
      e->calls[i]->call->outer = call->outer;
  free (cs->frame);
  free (cs->todo);
  free (cs->inputs);
  free (cs->copy);
  free (cs);
  call->frames = NULL;
  coop_return_borrowed (e);
  coop_reap (e);
}

void
coop_engine_abort (CoopEngine *e, CoopCall *call)
{
  if (call->frames == NULL)
    return;
  coop_replay_abort (e, call);
  if (call->name != 0)
    coop_emit_op_end (e, call->id, 0, 0, 0, true, 0, NULL);
  close_call (e, call);
}

static CoopKind
kind_of_output (const CoopCall *call)
{
  switch (call->phase)
    {
    case COOP_PHASE_FORWARD:
      return COOP_KIND_ACTIVATION;
    case COOP_PHASE_BACKWARD:
      return COOP_KIND_GRADIENT;
    case COOP_PHASE_OTHER:
    case COOP_PHASE_OPTIMIZER:
    case COOP_N_PHASES:
      break;
    }
  return COOP_KIND_OTHER;
}

static bool
makes_version (const CoopInput *input)
{
  return coop_use_writes (input->use)
         && input->tensor->pin == COOP_PIN_NONE && input->tensor->state == COOP_LIVE;
}

/* An operator can be run again if the host says so and if nothing that it reads was overwritten by
 * it for good: a constant it writes has no old version. */
static bool
is_recorded (const CoopCall *call)
{
  if (!call->replayable)
    return false;
  for (unsigned i = 0; i < call->n_inputs; i++)
    {
      unsigned use = call->inputs[i].use;
      if (coop_use_writes (use)
          && (!makes_version (&call->inputs[i]) || (use & COOP_USE_UNRECORDED)))
        return false;
    }
  return true;
}

/* The new version takes over block, storage and host; the old one goes on as a name that its
 * producer can be run for. */
static CoopVersion *
overwrite (CoopEngine *e, CoopVersion *old, uint64_t op)
{
  CoopVersion *new = coop_version_new (e, old->piece, old->shape, old->t.requested);
  new->t.storage = old->t.storage;
  new->t.kind = old->t.kind;
  new->born_step = old->born_step;
  new->hold = old->hold;
  new->t.host = old->t.host;
  old->t.host = NULL;
  old->hold = false;
  coop_version_lose (e, old, COOP_DEAD);
  return new;
}

static uint64_t
set_of (const CoopEngine *e, const CoopCall *call)
{
  const CoopCallState *cs = call->frames;
  uint64_t bytes = cs->top;
  for (unsigned i = 0; i < call->n_inputs; i++)
    {
      const CoopVersion *v = coop_version (call->inputs[i].tensor);
      if (v->piece != 0 && v->t.pin == COOP_PIN_NONE)
        bytes += coop_node (e, v)->bytes;
    }
  return bytes;
}

typedef struct
{
  CoopOp *op;
  uint32_t n;            /* outputs so far */
  uint64_t *ids;
  uint64_t bytes;        /* of outputs */
} Ending;

static void
add_output (CoopEngine *e, CoopCall *call, Ending *end, CoopVersion *v, bool constant)
{
  if (constant || end->op == NULL)
    v->t.pin = COOP_PIN_CONSTANT;
  else
    coop_record_add_output (end->op, end->n, v);
  v->descent = e->phase == COOP_PHASE_BACKWARD ? e->clock - e->pass_clock : 0;
  v->output = end->n;
  end->ids[end->n++] = v->t.id;
  end->bytes += coop_node (e, v)->bytes;
  coop_emit_tensor (e, v, call->id);
}

static void
claim_outputs (CoopEngine *e, CoopCall *call, Ending *end, CoopOutput *outputs, unsigned n)
{
  for (unsigned i = 0; i < n; i++)
    {
      uint32_t p = coop_pool_at (&e->pool, outputs[i].addr);
      outputs[i].tensor = NULL;
      if (p == 0 || e->pool.node[p].tensor != NULL)
        {
          end->ids[end->n++] = 0;
          continue;
        }
      CoopShape *shape = coop_shape_new (outputs[i].dtype, outputs[i].ndim, outputs[i].dims);
      CoopVersion *v = coop_version_new (e, p, shape, outputs[i].requested);
      v->t.storage = ++e->last_storage;
      v->t.kind = (uint8_t) kind_of_output (call);
      add_output (e, call, end, v, outputs[i].constant);
      outputs[i].tensor = &v->t;
    }
}

static void
write_inputs (CoopEngine *e, CoopCall *call, Ending *end, CoopTensor **written)
{
  for (unsigned i = 0; i < call->n_inputs; i++)
    {
      CoopVersion *old = coop_version (call->inputs[i].tensor);
      unsigned use = call->inputs[i].use;
      if (written != NULL)
        written[i] = NULL;
      if (makes_version (&call->inputs[i]))
        {
          CoopVersion *new = overwrite (e, old, call->id);
          add_output (e, call, end, new, false);
          coop_emit_words (e, COOP_EVENT_WRITE, old->t.id, new->t.id, coop_node (e, new)->block,
                           call->id, 0);
          coop_version_update (e, new);
          if (written != NULL)
            written[i] = &new->t;
        }
      else if ((use & (COOP_USE_WRITE | COOP_USE_SCRATCH)) && old->piece != 0)
        coop_emit_words (e, COOP_EVENT_WRITE, old->t.id, old->t.id, coop_node (e, old)->block,
                         call->id, 0);
    }
}

static unsigned
count_written (const CoopCall *call)
{
  unsigned n = 0;
  for (unsigned i = 0; i < call->n_inputs; i++)
    n += makes_version (&call->inputs[i]);
  return n;
}

static uint64_t
price (const CoopEngine *e, const CoopCall *call, const Ending *end, uint64_t measured)
{
  uint64_t bytes = end->bytes;
  for (unsigned i = 0; i < call->n_inputs; i++)
    bytes += coop_round (call->inputs[i].tensor->requested);
  return coop_cost (e, call->op_class, bytes, measured);
}

/* Outputs that the engine does not know (0) must not be replayed into; count what is known. */
static uint64_t
bytes_of (const CoopEngine *e, const CoopOutput *outputs, unsigned n, const CoopCall *call)
{
  uint64_t bytes = 0;
  for (unsigned i = 0; i < n; i++)
    {
      uint32_t p = coop_pool_at (&e->pool, outputs[i].addr);
      bytes += p != 0 ? e->pool.node[p].bytes : 0;
    }
  for (unsigned i = 0; i < call->n_inputs; i++)
    if (makes_version (&call->inputs[i]))
      bytes += coop_round (call->inputs[i].tensor->requested);
  return bytes;
}

CoopOp *
coop_engine_end (CoopEngine *e, CoopCall *call, CoopOutput *outputs, unsigned n_outputs,
                 uint64_t cost, CoopTensor **written)
{
  CoopCallState *cs = call->frames;
  unsigned n_written = count_written (call);
  Ending end = { .ids = coop_make ((n_outputs + n_written + 8) * sizeof *end.ids) };
  uint64_t set = set_of (e, call), measured = cost;
  end.bytes = bytes_of (e, outputs, n_outputs, call);
  cost = call->name != 0 ? price (e, call, &end, cost) : 0;
  if (is_recorded (call) && n_outputs + n_written > 0)
    {
      end.op = coop_record_new (e, call, n_outputs, n_written);
      end.op->cost = cost;
      end.op->busy = 1;
    }
  e->clock += cost;
  end.bytes = 0;
  claim_outputs (e, call, &end, outputs, n_outputs);
  write_inputs (e, call, &end, written);
  for (unsigned i = 0; i < n_outputs; i++)
    if (outputs[i].tensor != NULL)
      coop_version_update (e, coop_version (outputs[i].tensor));
  for (uint32_t i = 0; end.op != NULL && i < end.op->n_inputs; i++)
    coop_version_update (e, end.op->inputs[i].tensor);
  if (set > e->largest_set)
    e->largest_set = set;
  if (call->name != 0)
    {
      uint64_t workspace = cs->top > end.bytes ? cs->top - end.bytes : 0;
      e->ops_run++;
      e->op_ns += cost;
      coop_cost_learn (e, call->name, cost, end.bytes);
      coop_emit_op_end (e, call->id, cost, measured, workspace, false, end.n, end.ids);
    }
  free (end.ids);
  uint64_t id = end.op != NULL ? end.op->id : 0;
  if (end.op != NULL)
    coop_op_release_busy (e, end.op);
  bool kept = end.op != NULL && end.op->alive > 0;
  close_call (e, call);
  return kept && id != 0 ? end.op : NULL;
}

void
coop_op_set_host (CoopOp *op, void *host)
{
  op->host = host;
}

void *
coop_op_host (const CoopOp *op)
{
  return op->host;
}

/* ---- outside operators -------------------------------------------------------------------- */

CoopTensor *
coop_engine_adopt (CoopEngine *e, const CoopAdopt *adopt)
{
  uint32_t p = coop_pool_at (&e->pool, adopt->addr);
  if (p == 0 || e->pool.node[p].tensor != NULL)
    return NULL;
  CoopShape *shape = coop_shape_new (adopt->dtype, adopt->ndim, adopt->dims);
  CoopVersion *v = coop_version_new (e, p, shape, adopt->requested);
  v->t.storage = ++e->last_storage;
  v->t.kind = (uint8_t) adopt->kind;
  v->t.pin = (uint8_t) adopt->pin;
  v->t.host = adopt->host;
  coop_emit_tensor (e, v, 0);
  coop_place_later (e, v);
  return &v->t;
}

void
coop_engine_pin (CoopEngine *e, CoopTensor *t, CoopPin why)
{
  CoopVersion *v = coop_version (t);
  if (v->piece == 0)
    return;
  coop_version_make_constant (e, v, (CoopKind) v->t.kind, why);
  coop_emit_pin (e, v, why == COOP_PIN_ESCAPED ? COOP_EVENT_ESCAPE : COOP_EVENT_PIN);
  coop_reap (e);
}
