/* SPDX-License-Identifier: Apache-2.0 */
/* Operators of a program: the first run, and those that the engine asks for again. */
#include "replay/play-private.h"

/* ---- what an operator does to memory ---- */

/* Makes the outputs, in order. */
static gboolean
make_outputs (CoopPlay *play, const CoopCall *call, const CoopProgramOp *op, guint64 *addr)
{
  for (guint i = 0; i < op->n_outputs; i++)
    if (op->outputs[i].slot != COOP_NO_SLOT
        && !coop_play_alloc (play, call, op->outputs[i].bytes, &addr[i]))
      return FALSE;
  return TRUE;
}

static gboolean
first_step (CoopPlay *play, const CoopCall *call, const CoopProgramOp *op, const CoopProgramStep *step,
            guint64 *addr)
{
  guint64 block;
  switch (step->kind)
    {
    case COOP_STEP_OUT:
      return coop_play_alloc (play, call, op->outputs[step->index].bytes, &addr[step->index]);
    case COOP_STEP_TMP:
      if (!coop_play_alloc (play, call, step->bytes, &block))
        return FALSE;
      play->block[step->index] = block + 1;
      return TRUE;
    case COOP_STEP_FREE:
      if (play->block[step->index] != 0)
        coop_engine_free (play->engine, play->block[step->index] - 1);
      play->block[step->index] = 0;
      return TRUE;
    case COOP_STEP_RELEASE:
      if (step->index != COOP_NO_SLOT)
        coop_play_release (play, step->index);
      return TRUE;
    }
  return TRUE;
}

static gboolean
first_memory (CoopPlay *play, const CoopCall *call, const CoopProgramOp *op, guint64 *addr)
{
  if (op->steps == NULL)
    return make_outputs (play, call, op, addr);
  for (guint i = 0; i < op->n_steps; i++)
    if (!first_step (play, call, op, &op->steps[i], addr))
      return FALSE;
  return TRUE;
}

/* The step that frees the block of step i in the same operator, or n_steps. What outlives an operator
 * was made once (a library's own) and is not made by a replay. */
static guint
freed_by (const CoopProgramOp *op, guint i)
{
  guint k = i + 1;
  while (k < op->n_steps && (op->steps[k].kind != COOP_STEP_FREE || op->steps[k].index != op->steps[i].index))
    k++;
  return k;
}

static gboolean
again_memory (CoopPlay *play, const CoopCall *call, const CoopProgramOp *op, guint64 *addr)
{
  if (op->steps == NULL)
    return make_outputs (play, call, op, addr);
  g_autofree guint64 *block = g_new0 (guint64, op->n_steps + 1);   /* to be freed by step i, + 1 */
  for (guint i = 0; i < op->n_steps; i++)
    {
      const CoopProgramStep *step = &op->steps[i];
      guint64 at;
      if (step->kind == COOP_STEP_OUT
          && !coop_play_alloc (play, call, op->outputs[step->index].bytes, &addr[step->index]))
        return FALSE;
      if (step->kind == COOP_STEP_FREE && block[i] != 0)
        coop_engine_free (play->engine, block[i] - 1);
      guint end = step->kind == COOP_STEP_TMP ? freed_by (op, i) : op->n_steps;
      if (end < op->n_steps)
        {
          if (!coop_play_alloc (play, call, step->bytes, &at))
            return FALSE;
          block[end] = at + 1;
        }
    }
  return TRUE;
}

/* ---- again ---- */

static guint64
cost_of_replay (CoopPlay *play, const CoopProgramOp *op, guint32 line)
{
  guint32 k = play->replays[line]++;
  return k < op->n_again ? op->again[k] : op->cost;
}

/* What is written by the operator but must survive is copied first. copies[i]: block + 1. */
static gboolean
make_copies (CoopPlay *play, const CoopCall *call, const CoopReplay *step, guint64 *copies)
{
  for (guint i = 0; i < step->n_inputs; i++)
    if (step->copy[i] && !coop_play_alloc (play, call, step->inputs[i]->requested, &copies[i]))
      return FALSE;
    else if (step->copy[i])
      copies[i]++;
  return TRUE;
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
  if (!make_copies (play, call, step, copies) || !again_memory (play, call, op, addr))
    return FALSE;
  guint n = written_blocks (play, op, step, copies, addr, used);
  guint64 cost = cost_of_replay (play, op, line);
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
  while ((next = coop_engine_next (play->engine, call, &step)) == COOP_STEP_REPLAY)
    if (!replay (play, call, &step))
      break;
  if (next == COOP_STEP_READY)
    return TRUE;
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

static void
stress (CoopPlay *play)
{
  CoopRequest req = { .bytes = 0 };
  gint64 every = coop_engine_policy (play->engine)->v[COOP_PARAM_STRESS].i;
  if (every <= 0 || ++play->since_stress < (guint64) every)
    return;
  play->since_stress = 0;
  unsigned n = coop_engine_choose_all (play->engine, &req);
  for (unsigned i = 0; i < n; i++)
    {
      if (req.victims[i]->state == COOP_BORROWED)
        coop_play_host (play, req.victims[i])->borrowed = 0;
      coop_engine_evicted (play->engine, req.victims[i]);
    }
  coop_engine_cancel (play->engine, &req);
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
  if (!first_memory (play, &call, op, addr) && !op->failed)
    {
      coop_engine_abort (play->engine, &call);
      return FALSE;
    }
  if (op->failed)
    return op_raised (play, &call, op);
  finish (play, &call, line, addr);
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
