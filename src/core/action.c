/* SPDX-License-Identifier: Apache-2.0 */
/* Actions: what only the host can do, queued in order. An entry that is no longer due when its turn
 * comes (held and let go again, returned by an eviction) is passed over. State that should lie lower
 * waits in a list of its own, since it is pinned when it is first known to be state. */
#include "engine-private.h"

#include <stdlib.h>
#include <string.h>

void
coop_due (CoopEngine *e, CoopActionKind kind, CoopVersion *v, CoopOp *op)
{
  if (e->n_due == e->due_room)
    {
      uint32_t old = e->due_room;
      e->due = coop_grow (e->due, &e->due_room, old + 1, sizeof *e->due);
      /* the part that had wrapped to the front goes behind the old end; the room has doubled */
      if (e->due_first > 0)
        memcpy (&e->due[old], e->due, e->due_first * sizeof *e->due);
    }
  e->due[(e->due_first + e->n_due++) % e->due_room] = (CoopDue) { kind, v, op };
}

void
coop_return_borrowed (CoopEngine *e)
{
  if (e->gathering > 0)
    return;
  for (uint32_t i = 0; i < e->n_borrowed; i++)
    {
      CoopVersion *v = e->borrowed[i];
      if (v->t.pins > 0 || v->return_due)
        continue;
      v->return_due = true;
      coop_due (e, COOP_ACTION_RETURN, v, NULL);
    }
}

/* ---- state goes to the low end ------------------------------------------------------------ */

static bool
may_place (const CoopEngine *e, const CoopVersion *v)
{
  return e->limited && !e->pool.segmented && v->t.kind == COOP_KIND_STATE && v->t.pin == COOP_PIN_CONSTANT
         && v->t.state == COOP_LIVE && v->piece != 0 && !v->moving && !v->gone
         && v->t.addr >= e->pool.small_end;
}

void
coop_place_later (CoopEngine *e, CoopVersion *v)
{
  if (v->place_due || !may_place (e, v))
    return;
  v->place_due = true;
  e->place = coop_grow (e->place, &e->place_room, e->n_place + 1, sizeof *e->place);
  e->place[e->n_place++] = v;
}

void
coop_place_forget (CoopEngine *e, CoopVersion *v)
{
  for (uint32_t i = 0; v->place_due && i < e->n_place; i++)
    if (e->place[i] == v)
      {
        memmove (&e->place[i], &e->place[i + 1], (e->n_place - i - 1) * sizeof *e->place);
        e->n_place--;
        v->place_due = false;
      }
}

/* Reserves the lowest hole below v and fills in the action; false if there is none. */
static bool
place_one (CoopEngine *e, CoopVersion *v, CoopAction *action)
{
  uint32_t hole = coop_pool_lowest (&e->pool, coop_node (e, v)->bytes, v->t.addr);
  if (hole == 0)
    return false;
  uint32_t to = coop_pool_take (&e->pool, hole, coop_node (e, v)->bytes, false, PIECE_ARRIVAL);
  e->pool.node[to].block = ++e->last_block;
  v->moving = true;
  *action = (CoopAction) { .kind = COOP_ACTION_PLACE, .tensor = &v->t, .id = v->t.id,
                           .from = v->t.addr, .to = e->pool.node[to].addr };
  return true;
}

static bool
next_place (CoopEngine *e, CoopAction *action)
{
  for (uint32_t i = 0; i < e->n_place;)
    {
      CoopVersion *v = e->place[i];
      if (may_place (e, v) && (v->t.pins > 0 || v->place_tried == e->step + 1))
        {
          i++;
          continue;
        }
      if (!may_place (e, v))
        coop_place_forget (e, v);
      else if (place_one (e, v, action))
        {
          coop_place_forget (e, v);
          return true;
        }
      else
        v->place_tried = e->step + 1;
    }
  return false;
}

static uint32_t
arrival_at (const CoopEngine *e, uint64_t addr)
{
  for (uint32_t p = e->pool.node[0].next; p != 0; p = e->pool.node[p].next)
    if (e->pool.node[p].addr == addr && e->pool.node[p].used == PIECE_ARRIVAL)
      return p;
  return 0;
}

void
coop_engine_placed (CoopEngine *e, CoopTensor *t, uint64_t to, bool done)
{
  CoopVersion *v = coop_version (t);
  uint32_t p = arrival_at (e, to);
  if (p == 0)
    return;
  v->moving = false;
  if (done && v->piece != 0)
    {
      CoopNode *old = coop_node (e, v), *new = &e->pool.node[p];
      coop_emit_words (e, COOP_EVENT_MOVE, old->block, old->addr, to, old->bytes, new->block);
      new->requested = old->requested;
      new->op = old->op;
      new->refs = old->refs;
      if (new->next == v->piece)
        coop_pool_slide (&e->pool, p);
      coop_pool_give (&e->pool, v->piece);
      coop_pool_arrive (&e->pool, p);
      e->pool.node[p].tensor = v;
      v->piece = p;
      v->t.addr = to;
      e->moves++;
    }
  else
    {
      coop_pool_give (&e->pool, p);
      v->fixed = true;
      if (v->left_while_moving)
        coop_engine_free (e, v->t.addr);
    }
  v->left_while_moving = false;
  coop_version_update (e, v);
  coop_reap (e);
}

/* ---- the queue ---------------------------------------------------------------------------- */

static bool
take_return (CoopEngine *e, CoopVersion *v)
{
  v->return_due = false;
  if (v->spoiled)
    {
      v->spoiled = false;
      coop_version_update (e, v);
      return true;
    }
  if (v->t.state != COOP_BORROWED || v->t.pins > 0 || v->t.chosen)
    return false;
  /* from here on the block is a temporary without a tensor: nobody may count on its bytes */
  coop_node (e, v)->tensor = NULL;
  coop_version_lose (e, v, COOP_DEAD);
  return true;
}

static bool
take_hold (CoopEngine *e, CoopVersion *v, CoopAction *action)
{
  v->hold_due = false;
  bool wanted = coop_hold_wanted (e, v);
  if (v->gone || wanted == v->hold)
    return false;
  v->hold = wanted;
  action->kind = wanted ? COOP_ACTION_HOLD : COOP_ACTION_UNHOLD;
  return true;
}

static bool
take (CoopEngine *e, const CoopDue *due, CoopAction *action)
{
  CoopVersion *v = due->tensor;
  *action = (CoopAction) { .kind = due->kind };
  if (v == NULL) /* OP_GONE */
    {
      action->id = due->op->id;
      action->host = due->op->host;
      e->taken_op = due->op;
      return true;
    }
  action->tensor = &v->t;
  action->id = v->t.id;
  switch (due->kind)
    {
    case COOP_ACTION_HOLD:
    case COOP_ACTION_UNHOLD:
      return take_hold (e, v, action);
    case COOP_ACTION_RETURN:
      return take_return (e, v);
    case COOP_ACTION_TENSOR_GONE:
      action->tensor = NULL;
      action->host = v->t.host;
      e->taken_tensor = v;
      return true;
    case COOP_ACTION_THRASH:
      return !v->gone;
    case COOP_ACTION_OP_GONE:
    case COOP_ACTION_PLACE:
      break;
    }
  return false;
}

bool
coop_engine_action (CoopEngine *e, CoopAction *action)
{
  free (e->taken_tensor);
  free (e->taken_op);
  e->taken_tensor = NULL;
  e->taken_op = NULL;
  while (e->n_due > 0)
    {
      CoopDue due = e->due[e->due_first];
      e->due_first = (e->due_first + 1) % e->due_room;
      e->n_due--;
      bool taken = take (e, &due, action);
      coop_reap (e);
      if (taken)
        return true;
    }
  return next_place (e, action);
}
