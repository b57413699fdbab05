/* SPDX-License-Identifier: Apache-2.0 */
/* Last resort: what waits may go.
 *
 * While the inputs of an operator are brought back, every frame of the stack but the top one waits,
 * and so does the operator itself. Their inputs are pinned so that no work is done twice. Where
 * nothing else can go, these pins are taken away for the length of one request; what is evicted then
 * is found missing when its frame comes to the top, and is brought back once more. So a chain needs
 * room for its largest link, not for the inputs of all its links. Two inputs that do not fit together
 * would chase each other for ever: a call is loosened a bounded number of times. */
#include "engine-private.h"

#define MOST 64 /* of one call */

static void
each_waiting (CoopCallState *cs, void (*f) (CoopEngine *, CoopVersion *), CoopEngine *e)
{
  for (uint32_t k = 0; k + 1 < cs->n_frames; k++)
    for (uint32_t i = 0; i < cs->frame[k].op->n_inputs; i++)
      f (e, cs->frame[k].op->inputs[i].tensor);
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
  return cs->gathering && cs->n_frames > 0 && !cs->loose && cs->loosened < MOST;
}

bool
coop_loosen (CoopEngine *e)
{
  bool any = false;
  for (uint32_t i = 0; i < e->n_calls; i++)
    any |= waits (e->calls[i]);
  if (!any)
    return false;
  e->loosened++;
  for (uint32_t i = 0; i < e->n_calls; i++)
    if (waits (e->calls[i]))
      {
        e->calls[i]->loose = true;
        e->calls[i]->loosened++;
        each_waiting (e->calls[i], coop_unpin, e);
      }
  return true;
}

void
coop_tighten (CoopCallState *cs)
{
  if (cs->loose)
    each_waiting (cs, pin, NULL);
  cs->loose = false;
}

void
coop_tighten_all (CoopEngine *e)
{
  if (--e->loosened > 0)
    return;
  for (uint32_t i = 0; i < e->n_calls; i++)
    coop_tighten (e->calls[i]);
}
