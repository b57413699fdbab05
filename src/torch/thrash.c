/* SPDX-License-Identifier: Apache-2.0 */
/* Thrash: says that a tensor comes back again and again: at the first time for each place in the script, then at ten
 * times as many. */
#include "torch/host.h"

#include <stdio.h>
#include <stdlib.h>

#define PLACES 256 /* more than that share */

typedef struct {
  const CoopOpInfo *op;
  const char *where;
  uint64_t n, next;
} Place;

static Place *
place_of (const CoopHost *host)
{
  static Place places[PLACES];
  uintptr_t hash = ((uintptr_t) host->op >> 4) ^ ((uintptr_t) host->where >> 3);

  for (unsigned i = 0; i < PLACES; i++)
    {
      Place *p = &places[(hash + i) % PLACES];
      if (p->next == 0)
        *p = (Place){ host->op, host->where, 0, 1 };
      if (p->op == host->op && p->where == host->where)
        return p;
    }
  return &places[hash % PLACES];
}

void
coop_thrash (const CoopHost *host, uint64_t tensor)
{
  CoopTotals now = { 0 };
  char text[640], budget[32], often[48] = "";
  const char *where = "line unknown";
  Place *place = host ? place_of (host) : NULL;

  if (place == NULL || ++place->n < place->next)
    return;
  place->next = place->n * 10;
  coop_lock ();
  coop_engine_totals (coop.engine, &now);
  coop_unlock ();
  coop_size_format (now.live + now.evicted, budget, sizeof budget);
  if (host->where != NULL || host->site_where != NULL)
    where = host->where ? host->where : host->site_where;
  if (place->n > 1)
    snprintf (often, sizeof often, ", %llu tensors by now", (unsigned long long) place->n);
  snprintf (text, sizeof text,
            "thrashing: a tensor of %s (%s) was brought back more than %lld times in one step%s; all that there is at "
            "this moment would need a budget of %s",
            host->op ? host->op->name : "an operator", where,
            (long long) coop.policy.v[COOP_PARAM_THRASH].i, often, budget);
  coop_warn (text, tensor, 0);
}
