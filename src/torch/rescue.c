/* SPDX-License-Identifier: Apache-2.0 */
/* Rescue: what is tried before an operator is refused memory. Its bytes may all be there and only not
 * in one piece, cut up by what may not be evicted: its own inputs first of all. So the attempt is given
 * up, tensors are moved together (the first time), everything that can go is evicted as well (the
 * second), and the operator runs again from its beginning. Whoever calls sees to it that a half-done
 * attempt has left no mark. GIL, not the lock. */
#include "torch/host.h"

#include <stdlib.h>
#include <string.h>

void
coop_evict_all (void)
{
  CoopRequest req = { .bytes = 0 };

  coop_lock ();
  unsigned n = coop_engine_choose_all (coop.engine, &req);
  coop_unlock ();
  for (unsigned i = 0; i < n; i++)
    coop_evict (req.victims[i]);
  coop_lock ();
  coop_engine_cancel (coop.engine, &req);
  coop_unlock ();
}

bool
coop_rescue_wanted (void)
{
  return coop.policy.v[COOP_PARAM_COMPACT].i && coop.policy.v[COOP_PARAM_BUDGET].i > 0;
}

void
coop_rescue_arm (bool on)
{
  coop_thread.rescue = on;
  coop_thread.refused = false;
}

static void
compact (CoopCall *call)
{
  CoopAction action;
  bool more;

  do
    {
      coop_lock ();
      more = coop_engine_compact (coop.engine, call, &action);
      coop_unlock ();
      if (more)
        coop_place (&action, action.tensor->host);
    }
  while (more);
}

/* For `stress`: all that may move does, as if an operator had been refused memory. */
void
coop_move_all (void)
{
  compact (NULL);
}

bool
coop_rescue (CoopCall *call, unsigned attempt)
{
  bool ours = coop_thread.rescue && coop_thread.refused;

  coop_rescue_arm (false);
  if (!ours)
    return false;
  PyErr_Clear ();
  coop_act (); /* what the attempt let go */
  if (attempt > 0)
    coop_evict_all ();
  compact (call);
  return true;
}
