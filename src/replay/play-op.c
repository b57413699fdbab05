/* SPDX-License-Identifier: Apache-2.0 */
/* Operators of a program: the first run, and those that the engine asks for again. */
#include "replay/play-private.h"

/* As a live host does: an operator that is refused memory gives up what it has, tensors are moved
 * together (before the second attempt all that can go is evicted as well), and it runs again. */
#define RESCUES 2

/* ---- what an operator does to memory ---- */

/* The blocks of one attempt. */
typedef struct {
  CoopPlay *play;
  const CoopCall *call;
  const CoopProgramOp *op;
  guint64 *addr;       /* of outputs; COOP_NO_ADDR: not (yet) */
  guint64 *block;      /* by step: a block to be freed then, + 1 */
  gboolean again;
} Attempt;

/* The step that frees the block of step i in the same operator, or n_steps. */
static guint
freed_by (const CoopProgramOp *op, guint i)
{
  guint k = i + 1;
  while (k < op->n_steps && (op->steps[k].kind != COOP_STEP_FREE || op->steps[k].index != op->steps[i].index))
    k++;
  return k;
}

static gboolean
make_output (Attempt *a, guint i)
{
  return a->op->outputs[i].slot == COOP_NO_SLOT
         || coop_play_alloc (a->play, a->call, a->op->outputs[i].bytes, &a->addr[i]);
}

/* What outlives an operator was made once (a library's own) and is not made by a replay. */
static gboolean
make_tmp (Attempt *a, guint i)
{
  const CoopProgramStep *step = &a->op->steps[i];
  guint end = freed_by (a->op, i);
  guint64 addr;
  if (end == a->op->n_steps && a->again)
    return TRUE;
  if (!coop_play_alloc (a->play, a->call, step->bytes, &addr))
    return FALSE;
  if (end < a->op->n_steps)
    a->block[end] = addr + 1;
  else
    a->play->block[step->index] = addr + 1;
  return TRUE;
}

static void
free_block (CoopPlay *play, guint64 *block)
{
  if (*block != 0)
    coop_engine_free (play->engine, *block - 1);
  *block = 0;
}

static gboolean
do_step (Attempt *a, guint i)
{
  const CoopProgramStep *step = &a->op->steps[i];
  switch (step->kind)
    {
    case COOP_STEP_OUT:
      return make_output (a, step->index);
    case COOP_STEP_TMP:
      return make_tmp (a, i);
    case COOP_STEP_FREE:
      free_block (a->play, &a->block[i]);
      if (!a->again)
        free_block (a->play, &a->play->block[step->index]);
      return TRUE;
    case COOP_STEP_RELEASE:
      if (!a->again && step->index != COOP_NO_SLOT)
        coop_play_release (a->play, step->index);
      return TRUE;
    }
  return TRUE;
}

static gboolean
do_steps (Attempt *a)
{
  guint n = a->op->steps != NULL ? a->op->n_steps : a->op->n_outputs;
  for (guint i = 0; i < n; i++)
    if (!(a->op->steps != NULL ? do_step (a, i) : make_output (a, i)))
      return FALSE;
  return TRUE;
}

static void
give_up_output (Attempt *a, guint i)
{
  if (a->addr[i] != COOP_NO_ADDR)
    coop_engine_free (a->play->engine, a->addr[i]);
  a->addr[i] = COOP_NO_ADDR;
}

/* What came last goes first. */
static void
give_up (Attempt *a)
{
  const CoopProgramOp *op = a->op;
  for (guint i = op->n_steps; i-- > 0;)
    if (op->steps[i].kind == COOP_STEP_OUT)
      give_up_output (a, op->steps[i].index);
    else if (op->steps[i].kind == COOP_STEP_TMP)
      {
        free_block (a->play, &a->block[freed_by (op, i)]);
        if (!a->again)
          free_block (a->play, &a->play->block[op->steps[i].index]);
      }
  for (guint i = op->n_outputs; i-- > 0;)
    give_up_output (a, i);
}

static void
compact (CoopPlay *play, CoopCall *call)
{
  CoopAction action;
  while (coop_engine_compact (play->engine, call, &action))
    coop_play_place (play, &action);
}

static gboolean
rescue_wanted (const CoopPlay *play)
{
  const CoopPolicy *policy = coop_engine_policy (play->engine);
  return policy->v[COOP_PARAM_COMPACT].i != 0 && policy->v[COOP_PARAM_BUDGET].i > 0;
}

/* What the operator allocates and frees while it runs, `before` first (copies of inputs). */
static gboolean
run_memory (Attempt *a, CoopCall *call, gboolean repeatable, gboolean (*before) (Attempt *a, gpointer user),
            void (*undo) (Attempt *a, gpointer user), gpointer user)
{
  gboolean ok = FALSE;
  a->block = g_new0 (guint64, a->op->n_steps + 1);
  for (guint n = 0; !ok; n++)
    {
      a->play->retry = repeatable && n < RESCUES;
      ok = (before == NULL || before (a, user)) && do_steps (a);
      if (ok || !a->play->retry)
        break;
      a->play->retry = FALSE;
      a->play->out->result = COOP_PLAY_OK;
      give_up (a);
      if (undo != NULL)
        undo (a, user);
      coop_play_act (a->play);
      if (n > 0)
        coop_play_evict_all (a->play);
      compact (a->play, call);
    }
  a->play->retry = FALSE;
  g_clear_pointer (&a->block, g_free);
  return ok;
}

/* ---- again ---- */

static guint64
cost_of_replay (CoopPlay *play, const CoopProgramOp *op, guint32 line)
{
  guint32 k = play->replays[line]++;
  return k < op->n_again ? op->again[k] : op->cost;
}

/* Copies of what is written by the operator but must survive. copies[i]: block + 1. */
typedef struct {
  const CoopReplay *step;
  guint64 *copies;
} Copies;

static gboolean
make_copies (Attempt *a, gpointer user)
{
  const Copies *c = user;
  guint64 addr;
  for (guint i = 0; i < c->step->n_inputs; i++)
    if (c->step->copy[i])
      {
        if (!coop_play_alloc (a->play, a->call, c->step->inputs[i]->requested, &addr))
          return FALSE;
        c->copies[i] = addr + 1;
      }
  return TRUE;
}

static void
undo_copies (Attempt *a, gpointer user)
{
  const Copies *c = user;
  for (guint i = 0; i < c->step->n_inputs; i++)
    free_block (a->play, &c->copies[i]);
}

/* Whether an attempt that fails half way can be followed by another: nothing but copies was written. */
static gboolean
replay_repeatable (CoopPlay *play, const CoopProgramOp *op, const CoopReplay *step)
{
  for (guint i = 0, k = 0; i < op->n_inputs && k < step->n_inputs; i++)
    if (!(op->inputs[i].use & COOP_USE_UNRECORDED))
      {
        if ((op->inputs[i].use & COOP_USE_WRITE) && !step->copy[k])
          return FALSE;
        k++;
      }
  return rescue_wanted (play);
}

/* The record's inputs are those of the line that were recorded. Appends the blocks of new versions. */
static guint
written_blocks (CoopPlay *play, const CoopProgramOp *op, const CoopReplay *step, const guint64 *copies,
                guint64 *addr, gboolean *used)
{
  guint n = op->n_outputs, k = 0;
  for (guint i = 0; i < op->n_inputs && k < step->n_inputs; i++)
    {
      guint32 use = op->inputs[i].use;
      if (use & COOP_USE_UNRECORDED)
        continue;
      if ((use & COOP_USE_WRITE) && !(use & COOP_USE_SCRATCH) && n < step->n_outputs)
        {
          if (!step->copy[k])
            coop_play_host (play, step->inputs[k])->borrowed = 0;
          addr[n++] = step->copy[k] ? copies[k] - 1 : step->inputs[k]->addr;
          used[k] = TRUE;
        }
      k++;
    }
  return n;
}

static void
hand_out (CoopPlay *play, guint n, const guint64 *addr, const CoopWhat *what, CoopTensor **tensor)
{
  for (guint i = 0; i < n; i++)
    if (what[i] == COOP_HANDOVER)
      coop_engine_ref (play->engine, addr[i]);
    else if (what[i] == COOP_BORROW)
      coop_play_host (play, tensor[i])->borrowed = addr[i] + 1;
}

static gboolean
replay (CoopPlay *play, CoopCall *call, const CoopReplay *step)
{
  guint32 line = GPOINTER_TO_UINT (step->op_host) - 1;
  const CoopProgramOp *op = g_array_index (play->program->lines, CoopProgramLine, line).op;
  guint room = MAX (step->n_outputs, op->n_outputs) + 1;
  g_autofree guint64 *addr = g_new (guint64, room), *copies = g_new0 (guint64, step->n_inputs + 1);
  g_autofree gboolean *used = g_new0 (gboolean, step->n_inputs + 1);
  g_autofree CoopWhat *what = g_new0 (CoopWhat, room);
  g_autofree CoopTensor **tensor = g_new0 (CoopTensor *, room);
  for (guint i = 0; i < room; i++)
    addr[i] = COOP_NO_ADDR;
  guint n_inputs = step->n_inputs;
  Attempt attempt = { .play = play, .call = call, .op = op, .addr = addr, .again = TRUE };
  Copies c = { step, copies };
  if (!run_memory (&attempt, call, replay_repeatable (play, op, step), make_copies, undo_copies, &c))
    return FALSE;
  guint n = written_blocks (play, op, step, copies, addr, used);
  guint64 cost = cost_of_replay (play, op, line);
  play->replayed++;
  play->out->cost_ns += cost;
  coop_engine_replayed (play->engine, call, addr, cost, what, tensor);
  hand_out (play, n, addr, what, tensor);
  for (guint i = 0; i < n_inputs; i++)
    if (copies[i] != 0 && !used[i])
      coop_engine_free (play->engine, copies[i] - 1);
  for (guint i = 0; i < n; i++)
    if (what[i] != COOP_BORROW && addr[i] != COOP_NO_ADDR)
      coop_engine_free (play->engine, addr[i]);
  coop_play_act (play);
  if (play->options->most > 0
      && (double) play->out->cost_ns > play->options->most * (double) play->program->total_ns)
    {
      play->out->result = COOP_PLAY_TOO_SLOW;
      return FALSE;
    }
  return TRUE;
}

/* FALSE: aborted, with the reason in the outcome. */
static gboolean
gather (CoopPlay *play, CoopCall *call)
{
  CoopReplay step;
  CoopNext next;
  guint64 replays = play->replayed;
  while ((next = coop_engine_next (play->engine, call, &step)) == COOP_STEP_REPLAY)
    if (!replay (play, call, &step))
      break;
  if (next == COOP_STEP_READY)
    {
      if (play->replayed > replays)   /* what was borrowed goes back before the operator asks for memory */
        coop_play_act (play);
      return TRUE;
    }
  if (next == COOP_STEP_LOST)
    play->out->result = COOP_PLAY_LOST;
  coop_engine_abort (play->engine, call);
  return FALSE;
}

/* ---- the first time ---- */

static gboolean
set_inputs (CoopPlay *play, const CoopProgramOp *op, CoopInput *inputs)
{
  for (guint i = 0; i < op->n_inputs; i++)
    {
      inputs[i] = (CoopInput) { play->tensor[op->inputs[i].slot], op->inputs[i].use };
      if (inputs[i].tensor != NULL)
        continue;
      play->out->result = COOP_PLAY_LOST;
      return FALSE;
    }
  return TRUE;
}

static void
take_outputs (CoopPlay *play, const CoopProgramOp *op, const CoopOutput *outputs, CoopTensor **written)
{
  for (guint i = 0; i < op->n_outputs; i++)
    if (op->outputs[i].slot != COOP_NO_SLOT)
      play->tensor[op->outputs[i].slot] = outputs[i].tensor;
  for (guint i = 0; i < op->n_inputs; i++)
    if (written[i] != NULL)
      play->tensor[op->inputs[i].slot] = written[i];
}

/* The user may let go of an input while the operator runs; its new version then has no owner. */
static void
finish (CoopPlay *play, CoopCall *call, guint32 line, const guint64 *addr)
{
  const CoopProgramOp *op = g_array_index (play->program->lines, CoopProgramLine, line).op;
  g_autofree CoopOutput *outputs = g_new0 (CoopOutput, op->n_outputs + 1);
  g_autofree CoopTensor **written = g_new0 (CoopTensor *, op->n_inputs + 1);
  for (guint i = 0; i < op->n_outputs; i++)
    outputs[i] = (CoopOutput) { .addr = addr[i], .requested = op->outputs[i].bytes,
                                .constant = op->outputs[i].fixed || !op->replayable };
  play->out->cost_ns += op->cost;
  play->out->plain_ns += op->cost;
  CoopOp *record = coop_engine_end (play->engine, call, outputs, op->n_outputs, op->cost, written);
  if (record != NULL)
    coop_op_set_host (record, GUINT_TO_POINTER (line + 1));
  take_outputs (play, op, outputs, written);
}

/* What the run let go of between the end of the operator and the moves that followed. */
static void
let_go_early (CoopPlay *play, guint32 line)
{
  const GArray *lines = play->program->lines;
  for (guint i = line + 1; i < lines->len && g_array_index (lines, CoopProgramLine, i).early; i++)
    coop_play_let_go (play, &g_array_index (lines, CoopProgramLine, i));
}

static void
stress (CoopPlay *play)
{
  const CoopPolicy *policy = coop_engine_policy (play->engine);
  gint64 every = policy->v[COOP_PARAM_STRESS].i;
  if (every <= 0 || ++play->since_stress < (guint64) every)
    return;
  play->since_stress = 0;
  coop_play_evict_all (play);
  if (policy->v[COOP_PARAM_COMPACT].i)
    compact (play, NULL);
}

/* One that writes in place has one attempt. */
static gboolean
first_repeatable (CoopPlay *play, const CoopProgramOp *op)
{
  for (guint i = 0; i < op->n_inputs; i++)
    if (op->inputs[i].use & COOP_USE_WRITE)
      return FALSE;
  return op->replayable && rescue_wanted (play);
}

/* An operator that raised in the recorded run raises here as well. */
static gboolean
op_raised (CoopPlay *play, CoopCall *call, const CoopProgramOp *op)
{
  coop_engine_abort (play->engine, call);
  coop_play_act (play);
  play->out->result = COOP_PLAY_OK;
  return TRUE;
}

gboolean
coop_play_op (CoopPlay *play, guint32 line)
{
  const CoopProgramOp *op = g_array_index (play->program->lines, CoopProgramLine, line).op;
  g_autofree CoopInput *inputs = g_new0 (CoopInput, op->n_inputs + 1);
  g_autofree guint64 *addr = g_new (guint64, op->n_outputs + 1);
  CoopCall call = { .inputs = inputs, .n_inputs = op->n_inputs, .name = op->name + 1,
                    .phase = (CoopPhase) op->phase, .op_class = (CoopOpClass) op->op_class,
                    .replayable = op->replayable };
  for (guint i = 0; i < op->n_outputs; i++)
    addr[i] = COOP_NO_ADDR;
  if (!set_inputs (play, op, inputs))
    return FALSE;
  coop_engine_begin (play->engine, &call);
  if (!gather (play, &call))
    return op->failed && play->out->result != COOP_PLAY_LOST && op_raised (play, &call, op);
  Attempt attempt = { .play = play, .call = &call, .op = op, .addr = addr };
  if (!run_memory (&attempt, &call, first_repeatable (play, op), NULL, NULL, NULL) && !op->failed)
    {
      coop_engine_abort (play->engine, &call);
      return FALSE;
    }
  if (op->failed)
    return op_raised (play, &call, op);
  finish (play, &call, line, addr);
  let_go_early (play, line);
  coop_play_act (play);
  stress (play);
  return TRUE;
}

gboolean
coop_play_touch (CoopPlay *play, const CoopProgramLine *line)
{
  CoopTensor *t = line->slot != COOP_NO_SLOT ? play->tensor[line->slot] : NULL, *written = NULL;
  CoopInput input = { t, line->use };
  CoopCall call = { .inputs = &input, .n_inputs = t != NULL };
  coop_engine_begin (play->engine, &call);
  if (!gather (play, &call))
    return FALSE;
  coop_play_act (play);
  coop_engine_end (play->engine, &call, NULL, 0, 0, &written);
  coop_play_act (play);
  return TRUE;
}
