/* SPDX-License-Identifier: Apache-2.0 */
/* Line: which line of the script an operator belongs to; a backward operator has its forward's. */
#include "torch/call.h"
#include "torch/site.h"

#include <string.h>

/* Of the last operator of this backward pass. */
static _Thread_local struct {
  uint64_t stack;
  const char *where;
} before;

void
coop_line_find (CoopDispatch *d)
{
  int64_t wanted = coop.policy.v[COOP_PARAM_STACKS].i;
  bool backward = atomic_load_explicit (&coop.backward, memory_order_relaxed) > 0;

  d->grad = coop_grad_enabled ();
  d->sited = wanted == COOP_STACKS_OFF;
  if (!d->sited)
    d->call.stack = coop_site_find (d->info, wanted == COOP_STACKS_EVERY, d->grad, backward, &d->sited);
}

/* Where PyTorch does not say whose backward this is: that of the parameter or the batch it reads, or of a
 * saved activation, or of the operator before. */
static void
guess_line (CoopDispatch *d)
{
  bool saved = strstr (d->info->name, "_backward") != NULL;
  const CoopHost *best = NULL;

  for (unsigned i = 0; i < d->n_inputs; i++)
    {
      const CoopTensor *t = d->inputs[i].tensor;
      const CoopHost *host = t->host;
      if (host == NULL || host->site == 0)
        continue;
      if (t->kind != COOP_KIND_ACTIVATION || (saved && best == NULL))
        best = host;
      if (t->kind == COOP_KIND_STATE)
        break;
    }
  if (best != NULL || before.stack != 0)
    {
      d->call.stack = best ? best->site : before.stack;
      d->info->where = best ? best->site_where : before.where;
    }
}

/* Parameters and batches remember who read them last, for guess_line. */
static void
mark_readers (CoopDispatch *d)
{
  for (unsigned i = 0; i < d->n_inputs; i++)
    {
      CoopHost *host = d->inputs[i].tensor->host;
      CoopKind kind = (CoopKind) d->inputs[i].tensor->kind;
      if (host == NULL || (kind != COOP_KIND_STATE && kind != COOP_KIND_OTHER))
        continue;
      host->site = d->call.stack;
      host->site_where = d->info->where;
    }
}

void
coop_line_settle (CoopDispatch *d)
{
  if (d->call.phase == COOP_PHASE_FORWARD)
    {
      before.stack = 0;
      if (d->call.stack != 0)
        mark_readers (d);
      return;
    }
  if (d->call.phase != COOP_PHASE_BACKWARD || d->call.stack == 0)
    return;
  if (!d->sited)
    guess_line (d);
  before.stack = d->call.stack;
  before.where = d->info->where;
}
