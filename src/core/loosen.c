/* SPDX-License-Identifier: Apache-2.0 */
/* Last resort: what waits may go.
 *
 * While the inputs of an operator are brought back, every frame of the stack but the top one waits,
 * and so does the operator itself. Their inputs are pinned so that no work is done twice. Where
 * nothing else can go, these pins are taken away for the length of one request; what is evicted then
 * is found missing when its frame comes to the top, and is brought back once more. So a chain needs
 * room for its largest link, not for the inputs of all its links. What waits longest goes first: the
 * operator's own inputs, then frame by frame from the bottom of the stack, so that the work of the
 * frames above is kept. Two inputs that do not fit together would chase each other for ever: a call is
 * loosened a bounded number of times. */
#include "engine-private.h"

#define MOST 64 /* requests of one call */

/* Level 0: the call itself. Level k: its frame k - 1. The top frame does not wait. */
static void
each_at (CoopCallState *cs, uint32_t level, void (*f) (CoopEngine *, CoopVersion *), CoopEngine *e)
{
  if (level > 0)
    {
      const CoopOp *op = cs->frame[level - 1].op;
      for (uint32_t i = 0; i < op->n_inputs; i++)
        f (e, op->inputs[i].tensor);
      return;
    }
  for (unsigned i = 0; i < cs->call->n_inputs; i++)
    f (e, coop_version (cs->call->inputs[i].tensor));
  for (uint32_t i = 0; i < cs->n_todo; i++)
    f (e, cs->todo[i]);
}

static void
pin (CoopEngine *e, CoopVersion *v)
{
  coop_pin (v);
}

/* Between one frame's end and the next step nothing is on top: such a call does not wait. */
static bool
waits (const CoopCallState *cs)
{
  return cs->gathering && cs->loose < cs->n_frames && (cs->loose > 0 || cs->loosened < MOST);
}

bool
coop_loosen (CoopEngine *e, bool first)
{
  bool any = false;
  for (uint32_t i = 0; i < e->n_calls; i++)
    any |= waits (e->calls[i]);
  if (!any)
    return false;
  e->loosened += first;
  for (uint32_t i = 0; i < e->n_calls; i++)
    if (waits (e->calls[i]))
      {
        CoopCallState *cs = e->calls[i];
        cs->loosened += cs->loose == 0;
        each_at (cs, cs->loose++, coop_unpin, e);
      }
  return true;
}

void
coop_tighten (CoopCallState *cs)
{
  while (cs->loose > 0)
    each_at (cs, --cs->loose, pin, NULL);
}

void
coop_tighten_all (CoopEngine *e)
{
  if (--e->loosened > 0)
    return;
  for (uint32_t i = 0; i < e->n_calls; i++)
    coop_tighten (e->calls[i]);
}
