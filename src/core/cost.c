/* SPDX-License-Identifier: Apache-2.0 */
/* Cost: measured, or by a model that makes a run repeatable:
 *
 *   cheap      1000 ns + bytes of inputs and outputs * 0.05 ns   (20 GB/s)
 *   expensive  1000 ns + bytes of inputs and outputs * 1 ns      (arithmetic, not memory, is the limit)
 *
 * And the cost density of operators by name, cost / bytes of outputs over all calls, which decides
 * at which end of the pool their outputs are placed; with density 0, and before the first call, the
 * class does that the host gave the operator. */
#include "engine-private.h"

#include <stdlib.h>

uint64_t
coop_cost (const CoopEngine *e, CoopOpClass op_class, uint64_t bytes, uint64_t measured)
{
  if (e->policy.v[COOP_PARAM_COST].i != COOP_COST_MODEL)
    return measured;
  return 1000 + (op_class == COOP_CLASS_EXPENSIVE ? bytes : bytes / 20);
}

static CoopNameCost *
slot_of (CoopNameCost *names, uint32_t slots, uint64_t name)
{
  uint32_t s = (uint32_t) ((name * UINT64_C (0x9e3779b97f4a7c15)) >> 32) & (slots - 1);
  while (names[s].name != 0 && names[s].name != name)
    s = (s + 1) & (slots - 1);
  return &names[s];
}

void
coop_cost_learn (CoopEngine *e, uint64_t name, uint64_t cost, uint64_t bytes)
{
  if (name == 0 || bytes == 0)
    return;
  if ((e->n_names + 1) * 2 > e->name_slots)
    {
      uint32_t slots = e->name_slots ? e->name_slots * 2 : 256;
      CoopNameCost *names = coop_make (slots * sizeof *names);
      for (uint32_t s = 0; s < e->name_slots; s++)
        if (e->names[s].name != 0)
          *slot_of (names, slots, e->names[s].name) = e->names[s];
      free (e->names);
      e->names = names;
      e->name_slots = slots;
    }
  CoopNameCost *slot = slot_of (e->names, e->name_slots, name);
  e->n_names += slot->name == 0;
  slot->name = name;
  slot->cost += cost;
  slot->bytes += bytes;
}

bool
coop_cost_expensive (const CoopEngine *e, uint64_t name, CoopOpClass op_class)
{
  if (name != 0 && e->name_slots != 0 && e->policy.v[COOP_PARAM_DENSITY].d > 0)
    {
      const CoopNameCost *slot = slot_of (e->names, e->name_slots, name);
      if (slot->name != 0)
        return (double) slot->cost >= e->policy.v[COOP_PARAM_DENSITY].d * (double) slot->bytes;
    }
  return op_class == COOP_CLASS_EXPENSIVE;
}
