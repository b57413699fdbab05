/* SPDX-License-Identifier: Apache-2.0 */
/* Rematerialization: what must run again before a call's operator may.
 *
 * Each call has an explicit stack of frames; a frame is a record to be run again and the tensor it
 * is run for. A frame pins all inputs of its record from the start, so what is there stays; what is
 * missing pushes a frame of its own. Intermediates that nobody holds stay, unpinned, until no call
 * gathers its inputs any more.
 *
 * When its inputs are there, the call is settled: inputs that become constant do, and what depends
 * on a value that is about to be overwritten (or to leave our sight) is brought back and becomes
 * constant too. */
#include "engine-private.h"

#include <stdlib.h>

#define MAX_RUNS 3 /* of one frame */

/* ---- frames ------------------------------------------------------------------------------- */

static void
push (CoopCallState *cs, CoopVersion *target)
{
  CoopOp *op = target->producer;
  cs->frame = coop_grow (cs->frame, &cs->frame_room, cs->n_frames + 1, sizeof *cs->frame);
  cs->frame[cs->n_frames++] = (CoopFrame) { op, target, 0 };
  cs->call->n_frames = cs->n_frames;
  op->busy++;
  coop_pin (target);
  for (uint32_t i = 0; i < op->n_inputs; i++)
    coop_pin (op->inputs[i].tensor);
}

static void
pop (CoopEngine *e, CoopCallState *cs)
{
  CoopFrame frame = cs->frame[--cs->n_frames];
  cs->call->n_frames = cs->n_frames;
  for (uint32_t i = 0; i < frame.op->n_inputs; i++)
    coop_unpin (e, frame.op->inputs[i].tensor);
  coop_unpin (e, frame.target);
  coop_op_release_busy (e, frame.op);
}

static CoopVersion *
missing_input (const CoopOp *op)
{
  for (uint32_t i = 0; i < op->n_inputs; i++)
    if (op->inputs[i].tensor->piece == 0)
      return op->inputs[i].tensor;
  return NULL;
}

/* The written input's old bytes may be used up unless somebody else counts on them. */
static bool
must_copy (const CoopUse *use)
{
  const CoopVersion *v = use->tensor;
  if (use->use & COOP_USE_SCRATCH)
    return true;
  return coop_use_writes (use->use) && (v->t.pins > 1 || v->t.state != COOP_BORROWED || v->t.chosen);
}

static void
emit_replay (CoopEngine *e, uint64_t id, const CoopOp *op)
{
  if (e->sink.emit == NULL)
    return;
  uint64_t *ids = coop_make ((op->n_inputs + 8) * sizeof *ids);
  for (uint32_t i = 0; i < op->n_inputs; i++)
    ids[i] = op->inputs[i].tensor->t.id;
  coop_emit_op_begin (e, id, op->name, op->id, op->stack, e->phase, op->n_inputs, ids);
  free (ids);
}

static void
start (CoopEngine *e, CoopCallState *cs, CoopReplay *step)
{
  CoopOp *op = cs->frame[cs->n_frames - 1].op;
  cs->inputs = coop_grow (cs->inputs, &cs->input_room, op->n_inputs + 1, sizeof *cs->inputs);
  cs->copy = coop_grow (cs->copy, &cs->copy_room, op->n_inputs + 1, sizeof *cs->copy);
  for (uint32_t i = 0; i < op->n_inputs; i++)
    {
      cs->inputs[i] = &op->inputs[i].tensor->t;
      cs->copy[i] = must_copy (&op->inputs[i]);
      op->inputs[i].tensor->last = e->clock;
    }
  cs->frame[cs->n_frames - 1].runs++;
  cs->running = ++e->last_op;
  emit_replay (e, cs->running, op);
  *step = (CoopReplay) { .op = op, .op_host = op->host, .replay = cs->running,
                         .n_inputs = op->n_inputs, .inputs = cs->inputs, .copy = cs->copy,
                         .n_outputs = op->n_outputs };
}

/* ---- settling ----------------------------------------------------------------------------- */

/* Which lasting pin the call gives this input; NONE if none. */
static CoopPin
pin_given (const CoopEngine *e, const CoopCall *call, const CoopInput *input, CoopKind *kind)
{
  const CoopVersion *v = coop_version (input->tensor);
  *kind = (CoopKind) v->t.kind;
  if (input->use & COOP_USE_STATE)
    *kind = COOP_KIND_STATE;
  if (input->use & COOP_USE_ESCAPE)
    return COOP_PIN_ESCAPED;
  if (input->use & COOP_USE_KEEP)
    return COOP_PIN_USER;
  if (input->use & (COOP_USE_STATE | COOP_USE_SCRATCH))
    return COOP_PIN_CONSTANT;
  /* state that outlives the step it was made in: known by its first update in a later one */
  if ((input->use & COOP_USE_WRITE) && call->name != 0 && v->born_step < e->step)
    {
      *kind = COOP_KIND_STATE;
      return COOP_PIN_CONSTANT;
    }
  return COOP_PIN_NONE;
}

static void
settle_input (CoopEngine *e, const CoopCall *call, const CoopInput *input)
{
  CoopVersion *v = coop_version (input->tensor);
  CoopKind kind;
  CoopPin pin = pin_given (e, call, input, &kind);
  if (pin == COOP_PIN_NONE)
    return;
  bool leaves = pin == COOP_PIN_ESCAPED || pin == COOP_PIN_USER;
  if (v->t.pin != COOP_PIN_NONE && !leaves)
    {
      if (v->t.kind == kind || v->t.kind == COOP_KIND_UNMANAGED || pin != COOP_PIN_CONSTANT
          || kind != COOP_KIND_STATE)
        return;
      pin = (CoopPin) v->t.pin;
    }
  bool news = v->t.pin != pin;
  coop_version_make_constant (e, v, kind, pin);
  if (news && leaves)
    coop_emit_pin (e, v, pin == COOP_PIN_ESCAPED ? COOP_EVENT_ESCAPE : COOP_EVENT_PIN);
}

static bool
value_goes (const CoopInput *input)
{
  return input->tensor->pin != COOP_PIN_NONE
         && (input->use & (COOP_USE_WRITE | COOP_USE_SCRATCH | COOP_USE_ESCAPE));
}

static void
add_todo (CoopCallState *cs, CoopVersion *v)
{
  cs->todo = coop_grow (cs->todo, &cs->todo_room, cs->n_todo + 1, sizeof *cs->todo);
  cs->todo[cs->n_todo++] = v;
  coop_pin (v);
}

typedef struct
{
  CoopVersion **list;
  uint32_t n, room;
} Walk;

static void
walk_add (CoopEngine *e, Walk *walk, CoopVersion *v)
{
  if (v->mark == e->stamp)
    return;
  v->mark = e->stamp;
  walk->list = coop_grow (walk->list, &walk->room, walk->n + 1, sizeof *walk->list);
  walk->list[walk->n++] = v;
}

static int
by_age (const void *a, const void *b)
{
  const CoopVersion *const *v = a, *const *w = b;
  return ((*v)->t.id < (*w)->t.id) - ((*v)->t.id > (*w)->t.id);
}

/* Every version that the user holds and that would need an old value of the call's inputs, through
 * any number that nobody holds: into todo. True: some are not constant yet. */
static bool
gather_dependents (CoopEngine *e, CoopCallState *cs)
{
  Walk walk = { 0 };
  bool more = false;
  const CoopCall *call = cs->call;
  e->stamp++;
  for (unsigned i = 0; i < call->n_inputs; i++)
    if (value_goes (&call->inputs[i]))
      walk_add (e, &walk, coop_version (call->inputs[i].tensor));
  while (walk.n > 0)
    for (CoopUse *use = walk.list[--walk.n]->readers; use != NULL; use = use->next)
      for (uint32_t i = 0; i < use->op->n_outputs && !(use->use & COOP_USE_SCRATCH); i++)
        {
          CoopVersion *v = use->op->outputs[i];
          if (v == NULL || v->mark == e->stamp)
            continue;
          if (!v->held)
            walk_add (e, &walk, v);
          else
            {
              v->mark = e->stamp;
              more |= v->t.pin == COOP_PIN_NONE;
              add_todo (cs, v);
            }
        }
  free (walk.list);
  if (cs->n_todo > 1)
    qsort (cs->todo, cs->n_todo, sizeof *cs->todo, by_age);
  return more;
}

/* What an optimizer made and still holds when the parameter it came from is overwritten is its state:
 * placed with the parameters now, not one step later, when its first update would tell. */
static CoopKind
kind_kept (const CoopCall *call, const CoopVersion *v)
{
  return call->phase == COOP_PHASE_OPTIMIZER && v->t.kind == COOP_KIND_OTHER
             ? COOP_KIND_STATE
             : (CoopKind) v->t.kind;
}

/* The next of todo that is not there, the youngest first: on its way the older ones come back. NULL:
 * all were there and are constant now. Not one by one, or the records that they share would go. */
static CoopVersion *
next_todo (CoopEngine *e, CoopCallState *cs)
{
  for (uint32_t i = 0; i < cs->n_todo; i++)
    if (cs->todo[i]->held && cs->todo[i]->piece == 0)
      return cs->todo[i];
  while (cs->n_todo > 0)
    {
      CoopVersion *v = cs->todo[--cs->n_todo];
      if (v->held && v->t.pin == COOP_PIN_NONE)
        coop_version_make_constant (e, v, kind_kept (cs->call, v), COOP_PIN_CONSTANT);
      coop_unpin (e, v);
    }
  return NULL;
}

/* ---- next --------------------------------------------------------------------------------- */

/* What is missing with no frame open; NULL: nothing. */
static CoopVersion *
next_target (CoopEngine *e, CoopCallState *cs)
{
  CoopCall *call = cs->call;
  for (unsigned i = 0; i < call->n_inputs; i++)
    if (call->inputs[i].tensor->addr == COOP_NO_ADDR)
      return coop_version (call->inputs[i].tensor);
  if (!cs->settled)
    {
      cs->settled = true;
      for (unsigned i = 0; i < call->n_inputs; i++)
        settle_input (e, call, &call->inputs[i]);
      gather_dependents (e, cs);
    }
  CoopVersion *v = next_todo (e, cs);
  for (bool more = cs->gathering; v == NULL && more;)
    {
      /* a member of todo that was let go meanwhile may have left dependents of its own; one that has
       * become constant may itself be written by the call */
      more = gather_dependents (e, cs);
      v = next_todo (e, cs);
    }
  return v;
}

void
coop_gather_stop (CoopEngine *e, CoopCall *call)
{
  CoopCallState *cs = call->frames;
  if (cs->gathering)
    {
      cs->gathering = false;
      e->gathering--;
    }
}

static CoopNext
ready (CoopEngine *e, CoopCall *call)
{
  for (unsigned i = 0; i < call->n_inputs; i++)
    coop_version (call->inputs[i].tensor)->last = e->clock;
  coop_gather_stop (e, call);
  coop_return_borrowed (e);
  coop_reap (e);
  return COOP_STEP_READY;
}

/* Run again and again without giving its target: the host hands in blocks that are none. */
static bool
is_exhausted (const CoopCallState *cs, const CoopVersion *missing)
{
  return cs->n_frames > 0 && cs->frame[cs->n_frames - 1].target == missing;
}

CoopNext
coop_engine_next (CoopEngine *e, CoopCall *call, CoopReplay *step)
{
  CoopCallState *cs = call->frames;
  coop_tighten (cs);
  *step = (CoopReplay) { 0 };
  for (;;)
    {
      CoopVersion *missing;
      while (cs->n_frames > 0 && cs->frame[cs->n_frames - 1].target->piece != 0)
        pop (e, cs);
      if (cs->n_frames > 0)
        missing = missing_input (cs->frame[cs->n_frames - 1].op);
      else
        missing = next_target (e, cs);
      if (missing == NULL && cs->n_frames == 0)
        return coop_operator_waits (e, cs) ? COOP_STEP_WAIT : ready (e, call);
      if (missing == NULL && cs->frame[cs->n_frames - 1].runs == MAX_RUNS)
        missing = cs->frame[cs->n_frames - 1].target;
      else if (missing == NULL && coop_replay_waits (e, cs))
        return COOP_STEP_WAIT;
      else if (missing == NULL)
        {
          start (e, cs, step);
          return COOP_STEP_REPLAY;
        }
      if (missing->producer == NULL || is_exhausted (cs, missing))
        {
          step->tensor = &missing->t;
          return COOP_STEP_LOST;
        }
      push (cs, missing);
    }
}

/* ---- after a replay ----------------------------------------------------------------------- */

static void
count_back (CoopEngine *e, CoopVersion *v)
{
  int64_t thrash = e->policy.v[COOP_PARAM_THRASH].i;
  if (v->back_step != e->step)
    v->backs = 0;
  v->back_step = e->step;
  v->backs++;
  if (thrash > 0 && v->backs == (uint64_t) thrash + 1)
    coop_due (e, COOP_ACTION_THRASH, v, NULL);
}

static bool
is_consumed (const CoopCallState *cs, uint32_t i)
{
  const CoopUse *use = &cs->frame[cs->n_frames - 1].op->inputs[i];
  return coop_use_writes (use->use) && !cs->copy[i] && use->tensor->piece != 0;
}

static CoopWhat
accept (CoopEngine *e, CoopVersion *v, uint64_t addr)
{
  uint32_t p = coop_pool_at (&e->pool, addr);
  if (v == NULL || v->piece != 0 || p == 0 || e->pool.node[p].tensor != NULL)
    return COOP_DROP;
  CoopNode *n = &e->pool.node[p];
  bool user = v->t.state == COOP_EVICTED;
  if (!user && v->n_readers == 0 && v->t.pins == 0)
    return COOP_DROP;
  v->last = e->clock;
  coop_version_back (e, v, p, user ? COOP_LIVE : COOP_BORROWED);
  count_back (e, v);
  if (!user)
    {
      /* tells whose the block is now */
      coop_emit_tensor (e, v, v->producer != NULL ? v->producer->id : 0);
      return COOP_BORROW;
    }
  uint64_t old = n->block;
  n->block = ++e->last_block;
  v->handing = true;
  coop_emit_words (e, COOP_EVENT_HANDOVER, n->block, n->addr, n->bytes, v->t.id, old);
  return COOP_HANDOVER;
}

static uint64_t
op_bytes (const CoopEngine *e, const CoopOp *op, const uint64_t *addr)
{
  uint64_t bytes = 0;
  for (uint32_t i = 0; i < op->n_inputs; i++)
    bytes += coop_round (op->inputs[i].tensor->t.requested);
  for (uint32_t i = 0; i < op->n_outputs; i++)
    {
      uint32_t p = coop_pool_at (&e->pool, addr[i]);
      bytes += p != 0 ? e->pool.node[p].bytes : 0;
    }
  return bytes;
}

/* A measured cost is the mean of the latest and what was known. */
static void
learn (CoopEngine *e, CoopOp *op, uint64_t cost)
{
  uint64_t mean = op->cost + (uint64_t) (((int64_t) cost - (int64_t) op->cost) / 2);
  if (e->policy.v[COOP_PARAM_COST].i == COOP_COST_MODEL || mean == op->cost)
    return;
  op->cost = mean;
  for (uint32_t i = 0; i < op->n_outputs; i++)
    if (op->outputs[i] != NULL)
      op->outputs[i]->known = 0;
  coop_emit_words (e, COOP_EVENT_COST, op->id, mean, 0, 0, 0);
}

void
coop_engine_replayed (CoopEngine *e, CoopCall *call, const uint64_t *addr, uint64_t cost,
                      CoopWhat *what, CoopTensor **tensor)
{
  CoopCallState *cs = call->frames;
  coop_tighten (cs);
  CoopOp *op = cs->frame[cs->n_frames - 1].op;
  uint64_t measured = cost;
  cost = coop_cost (e, (CoopOpClass) op->op_class, op_bytes (e, op, addr), measured);
  uint64_t *ids = coop_make ((op->n_outputs + 8) * sizeof *ids);
  e->clock += cost;
  e->replays++;
  e->replay_ns += cost;
  learn (e, op, cost);
  /* the block of a written input holds the output now, or nothing of use */
  for (uint32_t i = 0; i < op->n_inputs; i++)
    if (is_consumed (cs, i))
      coop_node (e, op->inputs[i].tensor)->tensor = NULL;
  for (uint32_t i = 0; i < op->n_outputs; i++)
    {
      CoopVersion *v = op->outputs[i];
      what[i] = accept (e, v, addr[i]);
      tensor[i] = v != NULL ? &v->t : NULL;
      ids[i] = v != NULL ? v->t.id : 0;
    }
  /* last, so that the old version joins no class that an output has just left */
  for (uint32_t i = 0; i < op->n_inputs; i++)
    if (is_consumed (cs, i))
      coop_version_lose (e, op->inputs[i].tensor, COOP_DEAD);
  coop_emit_op_end (e, cs->running, cost, measured, 0, false, op->n_outputs, ids);
  free (ids);
  cs->running = 0;
  /* should the target still be missing, the frame stays and is tried again */
  while (cs->n_frames > 0 && cs->frame[cs->n_frames - 1].target->piece != 0)
    pop (e, cs);
  coop_reap (e);
}

/* A replay that failed half way may have spoiled the version it was writing on. */
static void
spoil (CoopEngine *e, CoopCallState *cs)
{
  const CoopOp *op = cs->frame[cs->n_frames - 1].op;
  for (uint32_t i = 0; i < op->n_inputs; i++)
    {
      CoopVersion *v = op->inputs[i].tensor;
      if (!is_consumed (cs, i))
        continue;
      v->spoiled = true;
      coop_node (e, v)->tensor = NULL;
      coop_version_lose (e, v, COOP_DEAD);
      if (!v->return_due)
        coop_due (e, COOP_ACTION_RETURN, v, NULL);
      v->return_due = true;
    }
}

void
coop_replay_abort (CoopEngine *e, CoopCall *call)
{
  CoopCallState *cs = call->frames;
  coop_tighten (cs);
  if (cs->running != 0)
    {
      spoil (e, cs);
      coop_emit_op_end (e, cs->running, 0, 0, 0, true, 0, NULL);
      e->replays++;
      cs->running = 0;
    }
  while (cs->n_frames > 0)
    pop (e, cs);
  while (cs->n_todo > 0)
    coop_unpin (e, cs->todo[--cs->n_todo]);
}
