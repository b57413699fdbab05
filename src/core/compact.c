/* SPDX-License-Identifier: Apache-2.0 */
/* Compaction: the last resort before an operator is refused memory.
 *
 * Pinned pieces cut the pool into runs, and a budget that would do by its bytes fails for want of one
 * run. Between two attempts of an operator nothing of it is in use, so its own inputs may move too:
 * from the low end upwards each piece that may move goes down into the hole before it, by a copy that
 * may overlap. What stays in its way: blocks no tensor has claimed, escaped pointers, and what another
 * operator under way holds. */
#include "engine-private.h"

/* Pins that come from `call`: they do not keep a tensor from moving between two attempts. */
static void
count_own (CoopEngine *e, CoopVersion *v)
{
  if (v->mark != e->stamp)
    v->own_pins = 0;
  v->mark = e->stamp;
  v->own_pins++;
}

static void
count_pins (CoopEngine *e, const CoopCall *call)
{
  const CoopCallState *cs = call->frames;
  e->stamp++;
  for (unsigned i = 0; i < call->n_inputs; i++)
    count_own (e, coop_version (call->inputs[i].tensor));
  for (uint32_t f = 0; f < cs->n_frames; f++)
    {
      count_own (e, cs->frame[f].target);
      for (uint32_t i = 0; i < cs->frame[f].op->n_inputs; i++)
        count_own (e, cs->frame[f].op->inputs[i].tensor);
    }
  for (uint32_t i = 0; i < cs->n_todo; i++)
    count_own (e, cs->todo[i]);
}

static bool
movable (const CoopEngine *e, const CoopNode *n)
{
  const CoopVersion *v = n->tensor;
  if (n->used != PIECE_USED || v == NULL || v->moving || v->handing || v->t.chosen)
    return false;
  if ((v->t.state != COOP_LIVE && v->t.state != COOP_BORROWED) || (v->t.pin != COOP_PIN_NONE && v->t.pin != COOP_PIN_CONSTANT)
      || v->t.kind == COOP_KIND_UNMANAGED || v->fixed)
    return false;
  return v->t.pins == (v->mark == e->stamp ? v->own_pins : 0);
}

bool
coop_engine_compact (CoopEngine *e, const CoopCall *call, CoopAction *action)
{
  CoopNode *node = e->pool.node;
  count_pins (e, call);
  for (uint32_t p = node[0].next; p != 0 && node[p].addr < e->pool.limit; p = node[p].next)
    {
      uint32_t q = node[p].next;
      if (node[p].used != PIECE_FREE || node[p].area != AREA_GENERAL || node[p].claim != 0
          || q == 0 || !movable (e, &node[q]))
        continue;
      CoopVersion *v = node[q].tensor;
      uint32_t to = coop_pool_take (&e->pool, p, node[p].bytes, false, PIECE_ARRIVAL);
      node = e->pool.node;
      node[to].block = ++e->last_block;
      v->moving = true;
      *action = (CoopAction) { .kind = COOP_ACTION_PLACE, .tensor = &v->t, .id = v->t.id,
                               .from = v->t.addr, .to = node[to].addr };
      return true;
    }
  return false;
}
