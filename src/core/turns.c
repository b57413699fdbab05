/* SPDX-License-Identifier: Apache-2.0 */
/* Turns: whose kernel may be at work on a tensor. A rematerialization reads tensors, and uses some up, without
 * the program knowing; so one thread's operator that overwrites in place and another thread's rematerialization
 * wait for each other (COOP_STEP_WAIT). Calls of one thread nest and never wait. */
#include "engine-private.h"

/* The frame that is being run again, or NULL. */
static const CoopFrame *
frame_running (const CoopCallState *cs)
{
  return cs->running != 0 ? &cs->frame[cs->n_frames - 1] : NULL;
}

/* Whether a kernel of the call may be reading v on behalf of a rematerialization: nobody but we knows of it. */
static bool
reads_again (const CoopCallState *cs, const CoopVersion *v)
{
  const CoopFrame *frame = frame_running (cs);
  for (uint32_t i = 0; frame != NULL && i < frame->op->n_inputs; i++)
    if (frame->op->inputs[i].tensor == v)
      return true;
  return false;
}

/* Whether a kernel of the call may be overwriting v: its own, for which all inputs are there, or one run again
 * that uses up what it reads. */
static bool
overwrites (const CoopCallState *cs, const CoopVersion *v)
{
  const CoopFrame *frame = frame_running (cs);
  for (uint32_t i = 0; frame != NULL && i < frame->op->n_inputs; i++)
    if (frame->op->inputs[i].tensor == v && coop_use_writes (frame->op->inputs[i].use) && !cs->copy[i])
      return true;
  for (unsigned i = 0; !cs->gathering && i < cs->call->n_inputs; i++)
    if (coop_version (cs->call->inputs[i].tensor) == v && coop_use_writes (cs->call->inputs[i].use))
      return true;
  return false;
}

static bool
other_does (const CoopEngine *e, const CoopCallState *cs, const CoopVersion *v,
            bool (*does) (const CoopCallState *, const CoopVersion *))
{
  for (uint32_t i = 0; i < e->n_calls; i++)
    if (e->calls[i]->call->thread != cs->call->thread && does (e->calls[i], v))
      return true;
  return false;
}

bool
coop_replay_waits (const CoopEngine *e, const CoopCallState *cs)
{
  const CoopOp *op = cs->frame[cs->n_frames - 1].op;
  for (uint32_t i = 0; e->n_calls > 1 && i < op->n_inputs; i++)
    if (other_does (e, cs, op->inputs[i].tensor, overwrites))
      return true;
  return false;
}

bool
coop_operator_waits (const CoopEngine *e, const CoopCallState *cs)
{
  for (unsigned i = 0; e->n_calls > 1 && i < cs->call->n_inputs; i++)
    if ((cs->call->inputs[i].use & COOP_USE_WRITE)
        && other_does (e, cs, coop_version (cs->call->inputs[i].tensor), reads_again))
      return true;
  return false;
}
