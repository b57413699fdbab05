/* SPDX-License-Identifier: Apache-2.0 */
/* Events: what the engine tells the sink. The layouts stand in event.h. */
#include "engine-private.h"

#include <string.h>

static void
emit (CoopEngine *e, CoopEvent *ev, const void *body)
{
  if (e->sink.emit != NULL)
    e->sink.emit (e->sink.user, ev, body);
}

void
coop_emit_pool (CoopEngine *e)
{
  CoopEvent ev = { .kind = COOP_EVENT_POOL };
  ev.u.pool.id = 1;
  ev.u.pool.budget = e->limited ? e->budget : 0;
  ev.u.pool.capacity = e->pool.capacity;
  ev.u.pool.allocator = (uint32_t) e->policy.v[COOP_PARAM_ALLOCATOR].i;
  emit (e, &ev, NULL);
  if (e->pool.segmented)
    return;
  CoopEvent seg = { .kind = COOP_EVENT_SEGMENT };
  seg.u.segment.id = 1;
  seg.u.segment.pool = 1;
  seg.u.segment.bytes = e->pool.capacity;
  seg.u.segment.born = 1;
  emit (e, &seg, NULL);
}

void
coop_emit_policy (CoopEngine *e, CoopParam param, CoopSource source, CoopValue from,
                  uint64_t generation)
{
  CoopEvent ev = { .kind = COOP_EVENT_POLICY };
  ev.u.policy.param = param;
  ev.u.policy.source = source;
  ev.u.policy.old_bits = from.i;
  ev.u.policy.new_bits = e->policy.v[param].i;
  ev.u.policy.generation = generation;
  emit (e, &ev, NULL);
}

void
coop_emit_alloc (CoopEngine *e, const CoopNode *n)
{
  if (e->sink.emit == NULL) /* often enough to be worth asking */
    return;
  CoopEvent ev = { .kind = COOP_EVENT_ALLOC };
  ev.u.alloc.block = n->block;
  ev.u.alloc.addr = n->addr;
  ev.u.alloc.bytes = n->bytes;
  ev.u.alloc.requested = n->requested;
  ev.u.alloc.op = n->op;
  emit (e, &ev, NULL);
}

void
coop_emit_free (CoopEngine *e, const CoopNode *n)
{
  if (e->sink.emit == NULL) /* often enough to be worth asking */
    return;
  CoopEvent ev = { .kind = COOP_EVENT_FREE };
  ev.u.free.block = n->block;
  ev.u.free.addr = n->addr;
  ev.u.free.bytes = n->bytes;
  ev.u.free.tensor = n->tensor != NULL ? n->tensor->t.id : 0;
  ev.u.free.op = n->op;
  emit (e, &ev, NULL);
}

void
coop_emit_evict (CoopEngine *e, CoopVersion *v)
{
  if (e->sink.emit == NULL)
    return;
  const CoopNode *n = coop_node (e, v);
  CoopScore score = coop_score (e, v);
  CoopEvent ev = { .kind = COOP_EVENT_EVICT, .more = 1 };
  ev.u.evict.block = n->block;
  ev.u.evict.addr = n->addr;
  ev.u.evict.bytes = n->bytes;
  ev.u.evict.tensor = v->t.id;
  ev.u.evict.search = v->search;
  CoopEvictBody body = { .h = score.h, .own_cost = score.own, .chain_cost = score.chain,
                         .staleness = score.staleness, .requested = v->t.requested };
  emit (e, &ev, &body);
}

void
coop_emit_search (CoopEngine *e, const CoopRequest *req, const CoopChoice *choice,
                  uint32_t victims, uint64_t ns)
{
  CoopEvent ev = { .kind = COOP_EVENT_SEARCH, .more = 1 };
  ev.u.search.id = req->search;
  ev.u.search.need = e->allocator->block (e, req->bytes);
  ev.u.search.lo = choice->lo;
  ev.u.search.hi = choice->hi;
  ev.u.search.victims = victims;
  ev.u.search.visited = choice->visited;
  CoopSearchBody body = { .cost = choice->cost, .ns = ns, .free_bytes = coop_free_bytes (e),
                          .largest = coop_largest (e),
                          .next_cost = choice->next_cost,
                          .next_lo = choice->next_lo, .next_hi = choice->next_hi,
                          .op = req->call != NULL ? req->call->id : 0 };
  emit (e, &ev, &body);
}

void
coop_emit_tensor (CoopEngine *e, const CoopVersion *v, uint64_t op)
{
  if (e->sink.emit == NULL)
    return;
  const CoopShape *s = v->shape;
  uint32_t ndim = s->ndim > 253 ? 253 : s->ndim;
  uint64_t words[8 * 33];
  CoopTensorBody body = { .kind = v->t.kind, .pin = v->t.pin, .dtype = s->dtype, .ndim = ndim,
                          .output = v->output };
  CoopEvent ev = { .kind = COOP_EVENT_TENSOR, .more = 1 };
  memset (words, 0, sizeof words);
  for (uint32_t i = 0; i < ndim && i < 5; i++)
    body.dims[i] = s->dims[i];
  memcpy (words, &body, sizeof body);
  for (uint32_t i = 5; i < ndim; i++)
    words[8 + i - 5] = (uint64_t) s->dims[i];
  if (ndim > 5)
    ev.more = (uint16_t) (1 + (ndim - 5 + 7) / 8);
  ev.u.tensor.id = v->t.id;
  ev.u.tensor.storage = v->t.storage;
  ev.u.tensor.op = op;
  ev.u.tensor.bytes = v->t.requested;
  ev.u.tensor.block = v->piece != 0 ? coop_node (e, v)->block : 0;
  emit (e, &ev, words);
}

void
coop_emit_reclassify (CoopEngine *e, const CoopVersion *v)
{
  CoopEvent ev = { .kind = COOP_EVENT_RECLASSIFY };
  ev.u.reclassify.tensor = v->t.id;
  ev.u.reclassify.kind = v->t.kind;
  ev.u.reclassify.pin = v->t.pin;
  emit (e, &ev, NULL);
}

void
coop_emit_pin (CoopEngine *e, const CoopVersion *v, CoopEventKind kind)
{
  CoopEvent ev = { .kind = (uint16_t) kind };
  ev.u.pin.tensor = v->t.id;
  ev.u.pin.block = v->piece != 0 ? coop_node (e, v)->block : 0;
  ev.u.pin.reason = v->t.pin;
  ev.u.pin.count = 1;
  emit (e, &ev, NULL);
}

/* Lists of ids travel eight to a record. */

static uint16_t
records_for (uint32_t n)
{
  return (uint16_t) ((n + 7) / 8);
}

void
coop_emit_op_begin (CoopEngine *e, uint64_t id, uint64_t name, uint64_t replay_of, uint64_t stack,
                    CoopPhase phase, uint32_t n, const uint64_t *inputs)
{
  CoopEvent ev = { .kind = COOP_EVENT_OP_BEGIN, .more = records_for (n) };
  ev.u.op_begin.id = id;
  ev.u.op_begin.name = name;
  ev.u.op_begin.replay_of = replay_of;
  ev.u.op_begin.stack = stack;
  ev.u.op_begin.phase = (uint16_t) phase;
  ev.u.op_begin.n_inputs = (uint16_t) n;
  ev.u.op_begin.step = (uint32_t) e->step;
  emit (e, &ev, inputs);
}

void
coop_emit_op_end (CoopEngine *e, uint64_t id, uint64_t cost, uint64_t duration, uint64_t workspace,
                  bool failed, uint32_t n, const uint64_t *outputs)
{
  CoopEvent ev = { .kind = COOP_EVENT_OP_END, .more = records_for (n) };
  ev.u.op_end.id = id;
  ev.u.op_end.cost = cost;
  ev.u.op_end.duration = duration;
  ev.u.op_end.workspace = workspace;
  ev.u.op_end.n_outputs = (uint16_t) n;
  ev.u.op_end.failed = failed;
  emit (e, &ev, outputs);
}

void
coop_emit_words (CoopEngine *e, CoopEventKind kind, uint64_t a, uint64_t b, uint64_t c, uint64_t d,
                 uint64_t f)
{
  CoopEvent ev = { .kind = (uint16_t) kind };
  const uint64_t words[5] = { a, b, c, d, f };
  memcpy (ev.u.word, words, sizeof words);
  emit (e, &ev, NULL);
}

void
coop_emit_oom (CoopEngine *e, const CoopOom *oom)
{
  CoopEvent ev = { .kind = COOP_EVENT_OOM, .more = 1 };
  ev.u.oom.asked = oom->asked;
  ev.u.oom.free = oom->free;
  ev.u.oom.largest = oom->largest;
  ev.u.oom.advice = oom->advice;
  ev.u.oom.op = oom->op;
  CoopOomBody body = { .budget = oom->budget, .evictable = oom->evictable,
                       .unclaimed = oom->unclaimed };
  body.pinned[0] = oom->pinned[COOP_PIN_OPERATOR];
  body.pinned[1] = oom->pinned[COOP_PIN_CONSTANT];
  body.pinned[2] = oom->pinned[COOP_PIN_ESCAPED];
  body.pinned[3] = oom->pinned[COOP_PIN_USER];
  body.pinned[4] = oom->pinned[COOP_PIN_UNMANAGED];
  emit (e, &ev, &body);
}
