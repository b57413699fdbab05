/* SPDX-License-Identifier: Apache-2.0 */
/* Compaction: the last resort before an operator is refused memory, and the better way where what would
 * have to be evicted takes longer to recompute than a copy of what lies in the way.
 *
 * Pinned pieces cut the pool into runs, and a budget that would do by its bytes fails for want of one
 * run. Between two attempts of an operator nothing of it is in use, so its own inputs may move too:
 * from the low end upwards each piece that may move goes down into the hole before it, by a copy that
 * may overlap. What stays in its way: blocks no tensor has claimed, escaped pointers, and what another
 * operator under way holds. */
#include "engine-private.h"

#include <math.h>

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
  const CoopCallState *cs = call != NULL ? call->frames : NULL;
  e->stamp++;
  if (cs == NULL)
    return;
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

/* What another search than `own` has chosen goes soon. */
static bool
movable (const CoopEngine *e, const CoopNode *n, uint64_t own)
{
  const CoopVersion *v = n->tensor;
  if (n->used != PIECE_USED || v == NULL || v->moving || v->handing
      || (v->t.chosen && v->search != own))
    return false;
  if ((v->t.state != COOP_LIVE && v->t.state != COOP_BORROWED) || (v->t.pin != COOP_PIN_NONE && v->t.pin != COOP_PIN_CONSTANT)
      || v->t.kind == COOP_KIND_UNMANAGED || v->fixed)
    return false;
  return v->t.pins == (v->mark == e->stamp ? v->own_pins : 0);
}

/* What the attempt under way has allocated goes with it and comes again: it lies in nobody's way. */
static bool
goes (const CoopNode *n, const CoopCall *call, uint64_t attempt)
{
  return n->used == PIECE_USED && n->tensor == NULL && (n->op == attempt || n->op == call->id);
}

/* ---- coop-plus: no more than what the request needs ---------------------------------------- */

void
coop_compact_want (CoopEngine *e, const CoopRequest *req)
{
  const CoopNode *node = e->pool.node;
  CoopCallState *cs = req->call != NULL ? req->call->frames : NULL;
  if (cs == NULL || coop_evictor (e) != &coop_evict_plus)
    return;
  uint64_t attempt = cs->running != 0 ? cs->running : req->call->id;
  cs->wanted = coop_round (req->bytes);
  for (uint32_t p = node[0].next; p != 0; p = node[p].next)
    if (goes (&node[p], req->call, attempt))
      cs->wanted += node[p].bytes;
}

static bool
is_hole (const CoopNode *n)
{
  return n->used == PIECE_FREE && n->area == AREA_GENERAL && n->claim == 0;
}

/* The range of holes with enough bytes, between which only what may move lies, that is the cheapest to
 * bring together. All of the pool if there is none. */
static void
choose_slide (CoopEngine *e, CoopCallState *cs)
{
  const CoopNode *node = e->pool.node;
  double launch = e->policy.v[COOP_PARAM_MOVE_COST].d * 1000, rate = e->policy.v[COOP_PARAM_COPY_RATE].d;
  double cost = 0, best = HUGE_VAL;
  uint64_t bytes = 0;
  uint32_t first = 0;
  cs->slide_lo = 0;
  cs->slide_hi = UINT64_MAX;
  for (uint32_t p = node[0].next; p != 0 && node[p].addr < e->pool.limit; p = node[p].next)
    {
      bool hole = is_hole (&node[p]);
      if (!hole && !movable (e, &node[p], 0))
        {
          first = 0;
          bytes = 0;
          cost = 0;
          continue;
        }
      first = first != 0 ? first : p;
      bytes += hole ? node[p].bytes : 0;
      cost += hole ? 0 : launch + (rate > 0 ? (double) node[p].bytes / rate : 0);
      for (; first != p && (!is_hole (&node[first]) || bytes - node[first].bytes >= cs->wanted);
           first = node[first].next)
        if (is_hole (&node[first]))
          bytes -= node[first].bytes;
        else
          cost -= launch + (rate > 0 ? (double) node[first].bytes / rate : 0);
      if (!hole || bytes < cs->wanted || !(cost < best))
        continue;
      best = cost;
      cs->slide_lo = node[first].addr;
      cs->slide_hi = node[p].addr + node[p].bytes;
    }
}

bool
coop_engine_compact (CoopEngine *e, const CoopCall *call, CoopAction *action)
{
  CoopNode *node = e->pool.node;
  CoopCallState nobody = { 0 }, *cs = call != NULL ? call->frames : &nobody;
  cs->compacted = cs->running != 0 || call == NULL ? cs->running : call->id;
  if (!e->allocator->slides)
    return false;
  count_pins (e, call);
  if (cs->wanted > 0)
    choose_slide (e, cs);
  else if (cs->slide_hi == 0)
    cs->slide_hi = UINT64_MAX;
  cs->wanted = 0;
  for (uint32_t p = node[0].next; p != 0 && node[p].addr < e->pool.limit; p = node[p].next)
    {
      uint32_t q = node[p].next;
      if (node[p].addr < cs->slide_lo || q == 0 || node[q].addr >= cs->slide_hi)
        continue;
      if (node[p].used != PIECE_FREE || node[p].area > AREA_GENERAL || node[p].claim != 0
          || (node[p].area == AREA_SMALL && !e->pool.segmented) || q == 0
          || node[q].segment != node[p].segment || !movable (e, &node[q], 0))
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

/* Bytes to be copied until the request finds them free in one run; UINT64_MAX: it never will. The request's
 * own search is over: what it has chosen may move. */
static uint64_t
way (CoopEngine *e, const CoopRequest *req, uint64_t attempt)
{
  const CoopNode *node = e->pool.node;
  uint64_t bytes = 0, gap = 0, largest = 0;
  count_pins (e, req->call);
  for (uint32_t p = node[0].next; p != 0 && node[p].addr < e->pool.limit; p = node[p].next)
    {
      const CoopNode *n = &node[p];
      if (n->segment != node[n->prev].segment)
        gap = 0;
      if (n->used == PIECE_FREE && n->area == AREA_GENERAL
          && (n->claim == 0 || n->claim == (uint32_t) req->search))
        gap += n->bytes;
      else if (movable (e, n, req->search))
        bytes += gap > 0 ? n->bytes : 0;
      else if (!goes (n, req->call, attempt))
        gap = 0;
      if (gap > largest)
        largest = gap;
    }
  return largest >= coop_round (req->bytes) ? bytes : UINT64_MAX;
}

bool
coop_compact_cheaper (CoopEngine *e, const CoopRequest *req, uint64_t cost)
{
  double rate = e->policy.v[COOP_PARAM_COPY_RATE].d;
  if (!req->retry || req->call == NULL || req->call->frames == NULL || rate <= 0)
    return false;
  const CoopCallState *cs = req->call->frames;
  uint64_t attempt = cs->running != 0 ? cs->running : req->call->id;
  if (cs->compacted == attempt || !e->allocator->slides)
    return false;
  uint64_t bytes = way (e, req, attempt);
  return bytes != UINT64_MAX && (double) bytes / rate < (double) cost;
}
