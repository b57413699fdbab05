/* SPDX-License-Identifier: Apache-2.0 */
/* Reports: totals, and what is said when memory runs out. */
#include "engine-private.h"

#include <string.h>

/* Why the used piece may not be evicted now; NONE if it may. */
static CoopPin
reason (const CoopEngine *e, const CoopNode *n)
{
  const CoopVersion *v = n->tensor;
  if (v == NULL)
    return COOP_PIN_UNCLAIMED;
  if (v->t.pin != COOP_PIN_NONE)
    return (CoopPin) v->t.pin;
  return coop_evictable (e, v) ? COOP_PIN_NONE : COOP_PIN_OPERATOR;
}

static void
sum_pieces (const CoopEngine *e, uint64_t by_reason[COOP_N_PINS])
{
  memset (by_reason, 0, COOP_N_PINS * sizeof *by_reason);
  for (uint32_t p = e->pool.node[0].next; p != 0; p = e->pool.node[p].next)
    if (e->pool.node[p].used == PIECE_USED)
      by_reason[reason (e, &e->pool.node[p])] += e->pool.node[p].bytes;
}

static uint64_t
sum_lasting (const uint64_t by_reason[COOP_N_PINS])
{
  return by_reason[COOP_PIN_CONSTANT] + by_reason[COOP_PIN_ESCAPED] + by_reason[COOP_PIN_USER]
         + by_reason[COOP_PIN_UNMANAGED];
}

void
coop_engine_totals (const CoopEngine *e, CoopTotals *t)
{
  uint64_t by_reason[COOP_N_PINS];
  sum_pieces (e, by_reason);
  memset (t, 0, sizeof *t);
  t->budget = (uint64_t) e->policy.v[COOP_PARAM_BUDGET].i;
  t->capacity = e->pool.capacity;
  t->live = e->pool.live;
  t->peak = e->peak;
  t->free = coop_free_bytes (e);
  t->largest = coop_largest (e);
  t->constant = sum_lasting (by_reason);
  t->pinned = e->pool.live - by_reason[COOP_PIN_NONE];
  t->evicted = e->evicted;
  t->allocs = e->allocs;
  t->frees = e->frees;
  t->evictions = e->evictions;
  t->evicted_bytes = e->evicted_bytes;
  t->searches = e->searches;
  t->search_ns = e->search_ns;
  t->ops = e->ops_run;
  t->replays = e->replays;
  t->ooms = e->ooms;
  t->moves = e->moves;
  t->op_ns = e->op_ns;
  t->replay_ns = e->replay_ns;
  t->fragmentation = e->searches > 0 ? e->fragmentation / (double) e->searches : 0;
  t->step = e->step;
  t->phase = e->phase;
  t->held = e->pool.held;
  t->held_most = e->held_most;
  t->segments = coop_engine_segments (e, NULL, 0);
  t->returned = e->returned;
  t->remaps = e->remaps;
  t->device_ns = e->device_ns;
  t->records = e->n_ops;
  t->tensors = e->n_tensors;
  t->record_bytes = e->op_bytes + e->n_tensors * sizeof (CoopVersion);
}

uint64_t
coop_state_bytes (const CoopEngine *e)
{
  uint64_t bytes = 0;
  for (const CoopVersion *v = e->tensors; v != NULL; v = v->next)
    if (v->piece != 0 && v->t.kind == COOP_KIND_STATE && v->t.pin != COOP_PIN_NONE)
      bytes += coop_node (e, v)->bytes;
  return bytes;
}

/* Constants when the script has come to its full size. Before the first update of the parameters
 * all their gradients come together with them, and the optimizer's own state is made: two tensors a
 * parameter is the most that the usual ones keep. From the third step on all state is known. */
static uint64_t
constants_to_come (const CoopEngine *e, uint64_t constant)
{
  uint64_t state = coop_state_bytes (e);
  uint64_t params = e->step > 0 ? e->first_state : state;
  uint64_t full = e->step > 2 ? state + params : 4 * params;
  return constant - state + (full > state ? full : state);
}

/* A budget that would do, by all that is known: constants to come; a few times the largest set of
 * inputs, outputs and workspace of one operator, since a rematerialization keeps the inputs of all
 * it has begun, and more as long as no backward was seen, whose sets are larger; half as much again
 * for evictors that do not free in one piece; 15 % for holes; the share of small blocks. Never less
 * than what just failed. It cannot know what the script has not come to. */
static uint64_t
advise (const CoopEngine *e, const CoopOom *oom)
{
  uint64_t constant = constants_to_come (e, sum_lasting (oom->pinned));
  uint64_t set = oom->pinned[COOP_PIN_OPERATOR] + oom->unclaimed + coop_round (oom->asked);
  if (e->largest_set > set)
    set = e->largest_set;
  double factor = e->ever_backward ? 2 : 4;
  if (e->policy.v[COOP_PARAM_EVICTOR].i != COOP_EVICTOR_COOP)
    factor *= 1.5;
  double bytes = (double) constant + factor * (double) set;
  /* from the backward pass on, what the program holds at most is known: enough with no eviction */
  double all = (double) (e->held_peak + constant - sum_lasting (oom->pinned)) + (double) oom->asked;
  if (e->ever_backward && all < bytes)
    bytes = all;
  bytes *= 1.15 * 65 / 64;
  /* what blocks and segments take beyond what was asked for */
  if (e->pool.segmented && e->asked > 0 && e->pool.held > e->asked)
    bytes *= e->pool.held > 2 * e->asked ? 2 : (double) e->pool.held / (double) e->asked;
  uint64_t asked = oom->asked;
  if (e->pool.segmented)
    asked = e->allocator->supply (e, e->allocator->block (e, asked));
  double least = 1.1 * (double) e->budget + (double) asked;
  if (e->limited && bytes < least)
    bytes = least;
  const double mib = 1048576;
  return (uint64_t) (bytes / mib + 1) * 1048576;
}

void
coop_report_oom (CoopEngine *e, CoopRequest *req)
{
  CoopOom *oom = &req->oom;
  memset (oom, 0, sizeof *oom);
  sum_pieces (e, oom->pinned);
  oom->asked = req->bytes;
  oom->free = coop_free_bytes (e);
  oom->largest = coop_largest (e);
  oom->evictable = oom->pinned[COOP_PIN_NONE];
  oom->pinned[COOP_PIN_NONE] = 0;
  oom->unclaimed = oom->pinned[COOP_PIN_UNCLAIMED];
  oom->budget = e->budget;
  oom->op = req->call != NULL ? req->call->id : 0;
  oom->advice = advise (e, oom);
  e->ooms++;
  coop_emit_oom (e, oom);
}
