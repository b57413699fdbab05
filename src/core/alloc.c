/* SPDX-License-Identifier: Apache-2.0 */
/* Memory: requests, searches for victims, owners of blocks. */
#include "engine-private.h"

#include <math.h>
#include <stdlib.h>

const CoopEvictor *
coop_evictor (const CoopEngine *e)
{
  bool segmented = e->pool.segmented, page = e->allocator == &coop_alloc_page;
  if (segmented && e->policy.v[COOP_PARAM_EVICTOR].i == COOP_EVICTOR_COOP_PLUS)
    return &coop_evict_set; /* bytes that go back are side by side again: nothing needs to move */
  switch ((CoopEvictorName) e->policy.v[COOP_PARAM_EVICTOR].i)
    {
    case COOP_EVICTOR_COOP_PLUS:
      return &coop_evict_plus;
    case COOP_EVICTOR_COOP:
      if (!segmented && (e->policy.v[COOP_PARAM_BYTES_FIRST].i || e->policy.v[COOP_PARAM_MOVES].i))
        return &coop_evict_plus;
      return !segmented ? &coop_evict_window : page ? &coop_evict_set : &coop_evict_row;
    case COOP_EVICTOR_COOP_CLASS:
      return !segmented ? &coop_evict_window : &coop_evict_set;
    case COOP_EVICTOR_DTR:
    case COOP_EVICTOR_DTR_EQ:
    case COOP_EVICTOR_DTR_LOCAL:
    case COOP_EVICTOR_MSPS:
    case COOP_EVICTOR_DTE:
    case COOP_EVICTOR_LRU:
    case COOP_EVICTOR_SIZE:
      return &coop_evict_single;
    case COOP_EVICTOR_RANDOM:
      return &coop_evict_random;
    case COOP_EVICTOR_NONE:
    case COOP_N_EVICTORS:
      break;
    }
  return &coop_evict_none;
}

/* ---- placing ------------------------------------------------------------------------------ */

static void
hand_out (CoopEngine *e, CoopRequest *req, uint32_t p)
{
  CoopNode *n = &e->pool.node[p];
  CoopCallState *cs = req->call != NULL ? req->call->frames : NULL;
  n->block = ++e->last_block;
  n->requested = req->bytes;
  n->op = cs == NULL ? 0 : cs->running != 0 ? cs->running : req->call->id;
  if (cs != NULL && cs->running == 0)
    {
      cs->bytes += n->bytes;
      if (cs->bytes > cs->top)
        cs->top = cs->bytes;
    }
  e->allocs++;
  e->asked += coop_round (req->bytes);
  if (e->asked > e->peak)
    e->peak = e->asked;
  if (e->pool.live + e->evicted > e->held_peak)
    e->held_peak = e->pool.live + e->evicted;
  coop_emit_alloc (e, n);
  req->addr = n->addr;
}

/* ---- victims ------------------------------------------------------------------------------ */

void
coop_add_victim (CoopRequest *req, CoopVersion *v)
{
  uint32_t room = req->capacity;
  req->victims = coop_grow (req->victims, &room, req->n_victims + 1, sizeof *req->victims);
  req->capacity = room;
  req->victims[req->n_victims++] = &v->t;
  v->t.chosen = 1;
  v->search = req->search;
}

/* Those of the last round that are still there lose their mark; the range is no longer kept. */
/* Moves that were not made. */
static void
drop_moves (CoopEngine *e, CoopRequest *req)
{
  for (unsigned i = 0; i < req->n_moves; i++)
    {
      CoopVersion *v = coop_version (req->moves[i].tensor);
      bool fixed = v->fixed;
      v->t.chosen = 0;
      if (v->moving)
        coop_engine_placed (e, &v->t, req->moves[i].to, false);
      v->fixed = fixed; /* nobody tried */
      coop_version_update (e, v);
    }
  req->n_moves = 0;
}

static void
drop_round (CoopEngine *e, CoopRequest *req)
{
  drop_moves (e, req);
  if (req->reserved)
    coop_pool_unclaim (&e->pool, (uint32_t) req->search);
  req->reserved = false;
  for (unsigned i = 0; i < req->n_victims; i++)
    {
      CoopVersion *v = coop_version (req->victims[i]);
      v->t.chosen = 0;
      coop_version_update (e, v);
    }
  req->n_victims = 0;
}

static void
finish (CoopEngine *e, CoopRequest *req)
{
  drop_round (e, req);
  if (req->loosened)
    coop_tighten_all (e);
  req->loosened = false;
  if (req->victims != NULL || req->moves != NULL)
    {
      free (req->victims);
      free (req->moves);
      req->victims = NULL;
      req->moves = NULL;
      req->capacity = req->move_room = 0;
    }
  coop_return_borrowed (e);
  coop_reap (e);
}

void
coop_take_range (CoopEngine *e, CoopRequest *req, uint64_t lo, uint64_t hi, uint32_t from)
{
  for (uint32_t p = from != 0 ? from : e->pool.node[0].next; p != 0 && e->pool.node[p].addr < hi;
       p = e->pool.node[p].next)
    {
      const CoopNode *n = &e->pool.node[p];
      if (n->addr >= lo && n->used == PIECE_USED)
        coop_add_victim (req, n->tensor);
    }
}

static void
take_lots (CoopEngine *e, CoopRequest *req)
{
  for (uint32_t i = 0; i < e->n_lots; i++)
    if (e->lot[i].chosen)
      coop_take_range (e, req, e->lot[i].lo, e->lot[i].hi, e->lot[i].first);
}

/* The free piece that begins at addr. */
static uint32_t
hole_at (const CoopEngine *e, uint64_t addr)
{
  uint32_t p = e->pool.node[0].next;
  while (p != 0 && (e->pool.node[p].addr != addr || e->pool.node[p].used != PIECE_FREE))
    p = e->pool.node[p].next;
  return p;
}

static void
add_move (CoopEngine *e, CoopRequest *req, const CoopPlan *plan)
{
  CoopVersion *v = e->pool.node[plan->piece].tensor;
  uint32_t p = coop_pool_take (&e->pool, hole_at (e, plan->to), coop_node (e, v)->bytes, false,
                               PIECE_ARRIVAL);
  e->pool.node[p].block = ++e->last_block;
  v->moving = true;
  v->t.chosen = 1;
  v->search = req->search;
  uint32_t room = req->move_room;
  req->moves = coop_grow (req->moves, &room, req->n_moves + 1, sizeof *req->moves);
  req->move_room = room;
  req->moves[req->n_moves++] = (CoopAction) { .kind = COOP_ACTION_PLACE, .tensor = &v->t, .id = v->t.id,
                                              .from = v->t.addr, .to = plan->to };
}

static int
by_target (const void *a, const void *b)
{
  const CoopPlan *x = a, *y = b;
  return x->to < y->to ? -1 : x->to > y->to;
}

/* Holes are used from their low end up. */
static void
take_plan (CoopEngine *e, CoopRequest *req)
{
  qsort (e->plan, e->n_plan, sizeof *e->plan, by_target);
  for (uint32_t i = 0; i < e->n_plan; i++)
    if (e->plan[i].to == COOP_NO_ADDR)
      coop_add_victim (req, e->pool.node[e->plan[i].piece].tensor);
    else
      add_move (e, req, &e->plan[i]);
}

static void
claim (CoopEngine *e, CoopRequest *req, const CoopChoice *choice)
{
  req->window_lo = choice->lo;
  req->window_hi = choice->hi;
  req->reserved = true;
  if (!choice->lots)
    coop_pool_claim (&e->pool, choice->lo, choice->hi, (uint32_t) req->search);
  for (uint32_t i = 0; choice->lots && i < e->n_lots; i++)
    if (e->lot[i].chosen)
      coop_pool_claim (&e->pool, e->lot[i].lo, e->lot[i].hi, (uint32_t) req->search);
}

static uint64_t
time_now (const CoopEngine *e)
{
  return e->now != NULL ? e->now (e->now_user) : 0;
}

static const CoopChoice no_choice
    = { .lo = COOP_NO_ADDR, .hi = COOP_NO_ADDR, .cost = NAN, .next_cost = NAN,
        .next_lo = COOP_NO_ADDR, .next_hi = COOP_NO_ADDR };

static bool
search (CoopEngine *e, CoopRequest *req)
{
  CoopChoice choice = no_choice;
  uint64_t began = time_now (e);
  e->may_move = req->may_move;
  e->may_compact = coop_evictor (e) == &coop_evict_plus && coop_compact_cheaper (e, req, UINT64_MAX);
  coop_evictor (e)->choose (e, e->allocator->block (e, req->bytes), &choice);
  uint64_t ns = time_now (e) - began;
  req->search = ++e->last_search;
  req->rounds++;
  e->searches++;
  e->search_ns += ns;
  if (e->budget > 0)
    e->fragmentation += (double) coop_free_bytes (e) / (double) e->budget;
  if (choice.found && choice.plan)
    take_plan (e, req);
  else if (choice.found && choice.lots)
    take_lots (e, req);
  else if (choice.found)
    coop_take_range (e, req, choice.lo, choice.hi, 0);
  coop_emit_search (e, req, &choice, req->n_victims, ns);
  if (choice.claim)
    claim (e, req, &choice);
  return choice.found;
}

static uint64_t
cost_of_victims (CoopEngine *e, const CoopRequest *req)
{
  uint64_t cost = 0;
  for (unsigned i = 0; i < req->n_victims; i++)
    {
      CoopScore s = coop_score (e, coop_version (req->victims[i]));
      cost += s.own + s.chain;
    }
  return cost;
}

/* Among what may go, and if that does not do, among what waits too. */
static bool
search_all (CoopEngine *e, CoopRequest *req)
{
  if (e->policy.v[COOP_PARAM_EVICTOR].i == COOP_EVICTOR_NONE)
    return false;
  bool found = search (e, req);
  if (coop_compact_cheaper (e, req, found ? cost_of_victims (e, req) : UINT64_MAX))
    return false;
  if (found)
    return true;
  while (coop_loosen (e, !req->loosened))
    {
      req->loosened = true;
      if (search (e, req))
        return true;
    }
  return false;
}

static bool
may_go (const CoopEngine *e, const CoopNode *n)
{
  return n->used == PIECE_USED && n->tensor != NULL && coop_evictable (e, n->tensor);
}

/* The piece that ends highest above the limit and may go, from p on downwards; 0: none. */
static uint32_t
next_above (const CoopEngine *e, uint32_t p)
{
  const CoopNode *node = e->pool.node;
  for (; p != 0 && node[p].addr + node[p].bytes > e->pool.limit; p = node[p].prev)
    if (may_go (e, &node[p]))
      return p;
  return 0;
}

static bool
find_above (CoopEngine *e, CoopRequest *req)
{
  if (e->pool.segmented)
    return coop_clear_excess (e, req);
  for (uint32_t p = next_above (e, e->pool.node[0].prev); p != 0;
       p = next_above (e, e->pool.node[p].prev))
    coop_add_victim (req, e->pool.node[p].tensor);
  return req->n_victims > 0;
}

/* After the budget shrank: what lies above the limit and may go, goes first. */
static bool
clear_above (CoopEngine *e, CoopRequest *req)
{
  if (!find_above (e, req))
    return false;
  req->search = ++e->last_search;
  for (unsigned i = 0; i < req->n_victims; i++)
    coop_version (req->victims[i])->search = req->search;
  CoopChoice choice = no_choice;
  choice.lo = e->pool.segmented ? 0 : e->pool.limit;
  choice.hi = e->pool.capacity;
  coop_emit_search (e, req, &choice, req->n_victims, 0);
  return true;
}

bool
coop_engine_try (CoopEngine *e, CoopRequest *req)
{
  if (e->pool.segmented ? e->pool.held > e->budget : next_above (e, e->pool.node[0].prev) != 0)
    return false;
  uint32_t p = e->allocator->place (e, req);
  if (p == 0)
    return false;
  hand_out (e, req, p);
  finish (e, req);
  return true;
}

CoopStatus
coop_engine_alloc (CoopEngine *e, CoopRequest *req)
{
  drop_round (e, req);
  if (clear_above (e, req))
    return COOP_EVICT;
  uint32_t p = e->allocator->place (e, req);
  if (p == 0 && search_all (e, req))
    return COOP_EVICT;
  if (p == 0)
    {
      if (req->retry)
        coop_compact_want (e, req);
      else
        coop_report_oom (e, req);
      finish (e, req);
      return COOP_NO_MEMORY;
    }
  hand_out (e, req, p);
  finish (e, req);
  return COOP_OK;
}

unsigned
coop_engine_choose_all (CoopEngine *e, CoopRequest *req)
{
  drop_round (e, req);
  req->search = ++e->last_search;
  for (uint32_t p = e->pool.node[0].next; p != 0; p = e->pool.node[p].next)
    {
      const CoopNode *n = &e->pool.node[p];
      if (may_go (e, n))
        coop_add_victim (req, n->tensor);
    }
  CoopChoice choice = no_choice;
  choice.visited = e->pool.n_pieces;
  if (req->n_victims > 0)
    {
      choice.lo = 0;
      choice.hi = e->pool.capacity;
      coop_emit_search (e, req, &choice, req->n_victims, 0);
    }
  return req->n_victims;
}

void
coop_engine_cancel (CoopEngine *e, CoopRequest *req)
{
  finish (e, req);
}

void
coop_engine_evicted (CoopEngine *e, CoopTensor *t)
{
  CoopVersion *v = coop_version (t);
  if (v->piece == 0)
    return;
  uint32_t p = v->piece;
  bool user = v->t.state == COOP_LIVE;
  e->evictions++;
  e->evicted_bytes += e->pool.node[p].bytes;
  e->asked -= coop_round (e->pool.node[p].requested);
  coop_emit_evict (e, v);
  coop_version_lose (e, v, user ? COOP_EVICTED : COOP_DEAD);
  coop_pool_give (&e->pool, p);
}

void
coop_engine_evict_failed (CoopEngine *e, CoopTensor *t, CoopPin why)
{
  CoopVersion *v = coop_version (t);
  if (why == COOP_PIN_NONE)
    v->refused = e->clock + 1;
  else if (v->piece != 0)
    coop_engine_pin (e, t, why);
}

/* ---- owners ------------------------------------------------------------------------------- */

void
coop_engine_ref (CoopEngine *e, uint64_t addr)
{
  uint32_t p = coop_pool_at (&e->pool, addr);
  if (p == 0)
    return;
  e->pool.node[p].refs++;
  if (e->pool.node[p].tensor != NULL)
    e->pool.node[p].tensor->handing = false;
}

CoopCallState *
coop_call_state (const CoopEngine *e, uint64_t op)
{
  for (uint32_t i = e->n_calls; i-- > 0;)
    if (e->calls[i]->call->id == op)
      return e->calls[i];
  return NULL;
}

/* The last owner of v's block let go. */
static void
let_go (CoopEngine *e, CoopVersion *v)
{
  if (v->handing)
    {
      /* the hand-over did not take place: the user's storage is as empty as before */
      coop_version_lose (e, v, COOP_EVICTED);
      return;
    }
  if (v->t.state == COOP_LIVE)
    coop_emit_words (e, COOP_EVENT_RELEASE, v->t.id, coop_node (e, v)->block, 0, 0, 0);
  coop_version_lose (e, v, COOP_DEAD);
}

bool
coop_engine_free (CoopEngine *e, uint64_t addr)
{
  uint32_t p = coop_pool_at (&e->pool, addr);
  if (p == 0)
    return false;
  CoopNode *n = &e->pool.node[p];
  if (n->tensor != NULL && n->tensor->moving)
    {
      n->tensor->left_while_moving = true;
      return true;
    }
  if (--n->refs > 0)
    return true;
  CoopCallState *cs = n->op != 0 ? coop_call_state (e, n->op) : NULL;
  if (cs != NULL)
    cs->bytes -= n->bytes;
  e->frees++;
  e->asked -= coop_round (n->requested);
  if (n->tensor == NULL)
    coop_emit_free (e, n);
  else
    {
      const CoopNode copy = *n;
      let_go (e, n->tensor);
      coop_emit_free (e, &copy);
    }
  coop_pool_give (&e->pool, p);
  coop_reap (e);
  return true;
}

void
coop_engine_release (CoopEngine *e, CoopTensor *t)
{
  CoopVersion *v = coop_version (t);
  if (v->t.state != COOP_EVICTED)
    return;
  coop_emit_words (e, COOP_EVENT_RELEASE, v->t.id, 0, 0, 0, 0);
  e->evicted -= coop_round (v->t.requested);
  v->t.state = COOP_DEAD;
  v->held = false;
  coop_version_update (e, v);
  coop_reap (e);
}

CoopTensor *
coop_engine_tensor_at (const CoopEngine *e, uint64_t addr)
{
  uint32_t p = coop_pool_at (&e->pool, addr);
  return p != 0 && e->pool.node[p].tensor != NULL ? &e->pool.node[p].tensor->t : NULL;
}
