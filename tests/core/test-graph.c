/* SPDX-License-Identifier: Apache-2.0 */
/* Versions, records and rematerialization: each rule by a case made by hand. The host compares every
 * value on the way. */
#include "support/ref-host.h"

#include "core/engine-private.h"

#define K 1024u

static RefHost *
host_new (uint64_t budget)
{
  CoopPolicy policy;
  coop_policy_init (&policy);
  policy.v[COOP_PARAM_BUDGET].i = (int64_t) budget;
  policy.v[COOP_PARAM_GROUPS].i = 1;
  policy.v[COOP_PARAM_HOLD].i = 0;
  policy.v[COOP_PARAM_SMALL].i = 0;
  RefHost *host = ref_host_new (budget, &policy);
  host->check = host->record_events = true;
  return host;
}

static CoopTotals
totals (RefHost *host)
{
  CoopTotals t;
  coop_engine_totals (host->engine, &t);
  return t;
}

static void
drop (RefHost *host, unsigned n, ...)
{
  va_list args;
  va_start (args, n);
  for (unsigned i = 0; i < n; i++)
    ref_host_drop (host, va_arg (args, RefStorage *));
  va_end (args);
}

/* An operator with one input of the given use and `outputs` outputs of 1 KiB. */
static bool
use_one (RefHost *host, RefStorage *s, unsigned use, CoopPhase phase, unsigned outputs,
         RefStorage **out)
{
  RefOp op = { .input = { s }, .use = { use }, .n_inputs = 1, .name = 7, .cost = 3, .phase = phase,
               .n_outputs = outputs, .out_bytes = { K, K, K } };
  return ref_host_run (host, &op, out);
}

static void
test_back (void)
{
  RefHost *host = host_new (64 * K);
  RefStorage *a = ref_make (host, K, 5, 0), *b = ref_make (host, 2 * K, 7, 1, a);
  ref_host_stress (host);
  g_assert_cmpuint (totals (host).evicted, ==, 3 * K);
  g_assert_cmpint (b->tensor->state, ==, COOP_EVICTED);
  g_assert_true (ref_host_read (host, b));
  /* a is brought back on the way: it is the user's, so it is handed over too */
  g_assert_cmpint (a->tensor->state, ==, COOP_LIVE);
  g_assert_cmpuint (totals (host).replays, ==, 2);
  g_assert_cmpuint (totals (host).replay_ns, ==, 12);
  g_assert_cmpuint (ref_host_count (host, COOP_EVENT_HANDOVER), ==, 2);
  const CoopEvent *ev = ref_host_event (host, COOP_EVENT_HANDOVER, 1, NULL);
  g_assert_cmpuint (ev->u.handover.tensor, ==, b->tensor->id);
  g_assert_cmpuint (ev->u.handover.addr, ==, b->addr);
  g_assert_cmpuint (ev->u.handover.block, >, ev->u.handover.old_block);
  ev = ref_host_event (host, COOP_EVENT_OP_BEGIN, 3, NULL);
  g_assert_cmpuint (ev->u.op_begin.replay_of, ==, 1);
  /* replays move the clock: a was used when b's replay, of 7, began */
  const void *body;
  ref_host_stress (host);
  ref_host_event (host, COOP_EVENT_EVICT, 2, &body);
  g_assert_cmpuint (((const CoopEvictBody *) body)->staleness, ==, 7);
  ref_host_event (host, COOP_EVENT_EVICT, 3, &body);
  g_assert_cmpuint (((const CoopEvictBody *) body)->staleness, ==, 0);
  drop (host, 2, a, b);
  ref_host_free (host);
}

/* Rule 1: all inputs are pinned before the first is brought back, and let go whatever happens. */
static void
test_pinned_together (void)
{
  RefHost *host = host_new (16 * K);
  RefStorage *s[3], *out;
  for (unsigned i = 0; i < 3; i++)
    s[i] = ref_make (host, 5 * K, 10, 0);
  ref_host_stress (host);
  RefOp op = { .input = { s[0], s[1] }, .n_inputs = 2, .name = 7, .n_outputs = 1,
               .out_bytes = { 5 * K } };
  RefCall call;
  ref_host_begin (host, &call, &op);
  g_assert_cmpuint (s[0]->tensor->pins, ==, 1);
  g_assert_cmpuint (s[1]->tensor->pins, ==, 1);
  g_assert_true (ref_host_prepare (host, &call));
  g_assert_true (ref_host_finish (host, &call, &out));
  g_assert_cmpuint (s[0]->tensor->pins, ==, 0);
  /* three of 5 KiB and one more do not fit in 16 together: fails, and nothing stays pinned */
  op.input[2] = s[2];
  op.n_inputs = 3;
  op.name = 8;
  RefStorage *more;
  g_assert_false (ref_host_run (host, &op, &more));
  for (unsigned i = 0; i < 3; i++)
    g_assert_cmpuint (s[i]->tensor->pins, ==, 0);
  g_assert_true (ref_host_read (host, s[2]));
  drop (host, 4, s[0], s[1], s[2], out);
  ref_host_free (host);
}

/* Rule 2: what a skip connection needs twice is made once. */
static void
test_skip_connections (void)
{
  enum { DEPTH = 40 };
  RefHost *host = host_new (64 * K);
  RefStorage *s[DEPTH];
  s[0] = ref_make (host, K, 1, 0);
  s[1] = ref_make (host, K, 1, 1, s[0]);
  for (unsigned i = 2; i < DEPTH; i++)
    {
      s[i] = ref_make (host, K, 1, 2, s[i - 2], s[i - 1]);
      ref_host_drop (host, s[i - 2]);
    }
  ref_host_drop (host, s[DEPTH - 2]);
  ref_host_stress (host);
  g_assert_cmpuint (totals (host).live, ==, 0);
  g_assert_true (ref_host_read (host, s[DEPTH - 1]));
  g_assert_cmpuint (totals (host).replays, ==, DEPTH);
  /* the intermediates went back */
  g_assert_cmpuint (totals (host).live, ==, K);
  ref_host_drop (host, s[DEPTH - 1]);
  g_assert_cmpuint (totals (host).records, ==, 0);
  ref_host_free (host);
}

/* Rule 2, under pressure: intermediates are evicted and made again where there is no room for all. */
static void
test_skip_under_pressure (void)
{
  enum { DEPTH = 24 };
  RefHost *host = host_new (6 * K);
  RefStorage *s[DEPTH];
  s[0] = ref_make (host, K, 1, 0);
  s[1] = ref_make (host, K, 1, 1, s[0]);
  for (unsigned i = 2; i < DEPTH; i++)
    {
      s[i] = ref_make (host, K, 1, 2, s[i - 2], s[i - 1]);
      ref_host_drop (host, s[i - 2]);
    }
  ref_host_drop (host, s[DEPTH - 2]);
  ref_host_stress (host);
  g_assert_true (ref_host_read (host, s[DEPTH - 1]));
  g_assert_cmpuint (totals (host).peak, <=, 6 * K);
  g_assert_cmpuint (totals (host).evictions, >, DEPTH / 2);
  ref_host_drop (host, s[DEPTH - 1]);
  ref_host_free (host);
}

/* Rule 3: neither bringing back nor dying recurses. */
static void
test_long_chain (void)
{
  enum { LENGTH = 5000 };
  RefHost *host = host_new (64 * K);
  host->check = false;
  RefStorage *last = ref_make (host, K, 1, 0);
  for (unsigned i = 1; i < LENGTH; i++)
    {
      RefStorage *next = ref_make (host, K, 1, 1, last);
      ref_host_drop (host, last);
      last = next;
    }
  g_assert_cmpuint (totals (host).records, ==, LENGTH);
  ref_host_stress (host);
  g_assert_true (ref_host_read (host, last));
  g_assert_cmpuint (totals (host).replays, >=, LENGTH);
  g_assert_cmpuint (totals (host).replays, <, LENGTH + LENGTH / 10);
  ref_host_verify (host);
  ref_host_drop (host, last);
  g_assert_cmpuint (totals (host).records, ==, 0);
  g_assert_cmpuint (totals (host).tensors, ==, 0);
  ref_host_free (host);
}

/* Rule 4: a constant input is held for the records that read it, also one that becomes constant
 * later; small inputs too; and let go with the last record. */
static void
test_hold (void)
{
  RefHost *host = host_new (64 * K);
  RefStorage *c = ref_host_constant (host, K, COOP_KIND_OTHER, 1);
  RefStorage *a = ref_make (host, K, 1, 0), *b = ref_make (host, K, 1, 2, a, c);
  g_assert_cmpuint (c->holds, ==, 1);
  g_assert_cmpuint (a->holds, ==, 0);
  g_assert_true (use_one (host, a, COOP_USE_KEEP, COOP_PHASE_OTHER, 0, NULL));
  g_assert_cmpuint (a->holds, ==, 1);
  g_assert_cmpint (a->tensor->pin, ==, COOP_PIN_USER);
  drop (host, 2, a, c);
  g_assert_cmpuint (totals (host).live, ==, 3 * K);
  ref_host_stress (host);
  g_assert_true (ref_host_read (host, b));
  g_assert_cmpuint (totals (host).replays, ==, 1);
  ref_host_drop (host, b);
  g_assert_cmpuint (totals (host).live, ==, 0);
  ref_host_free (host);
}

static void
test_hold_small (void)
{
  RefHost *host = host_new (64 * K);
  CoopPolicy policy = *coop_engine_policy (host->engine);
  RefStorage *a = ref_make (host, K, 1, 0), *b = ref_make (host, 2 * K, 1, 1, a);
  g_assert_cmpuint (a->holds, ==, 0);
  policy.v[COOP_PARAM_HOLD].i = K;
  coop_engine_set_policy (host->engine, &policy, COOP_SOURCE_API, 1);
  ref_host_actions (host);
  g_assert_cmpuint (a->holds, ==, 1);
  /* overwritten: the storage holds a new version, which no record reads */
  ref_write (host, a, COOP_USE_WRITE, 1);
  g_assert_cmpuint (a->holds, ==, 0);
  RefStorage *c = ref_make (host, 2 * K, 1, 1, a);
  g_assert_cmpuint (a->holds, ==, 1);
  policy.v[COOP_PARAM_HOLD].i = K - 1;
  coop_engine_set_policy (host->engine, &policy, COOP_SOURCE_API, 2);
  ref_host_actions (host);
  g_assert_cmpuint (a->holds, ==, 0);
  drop (host, 3, a, b, c);
  ref_host_free (host);
}

/* Rule 4: memory of the engine is flat over a thousand steps of a small training loop. */
static void
test_flat (void)
{
  RefHost *host = host_new (12 * K);
  host->check = host->record_events = false;
  RefStorage *w = ref_host_constant (host, K, COOP_KIND_STATE, 1);
  CoopTotals early = { 0 };
  for (unsigned step = 0; step < 1000; step++)
    {
      RefStorage *act[6], *grad, *next;
      act[0] = ref_make (host, 2 * K, 10, 1, w);
      for (unsigned i = 1; i < 6; i++)
        act[i] = ref_make (host, 2 * K, 10, 2, act[i - 1], w);
      g_assert_true (use_one (host, act[5], COOP_USE_READ, COOP_PHASE_BACKWARD, 1, &grad));
      for (unsigned i = 5; i > 0; i--)
        {
          RefOp back = { .input = { grad, act[i - 1], w }, .n_inputs = 3, .name = 9, .cost = 10,
                         .phase = COOP_PHASE_BACKWARD, .n_outputs = 1, .out_bytes = { K } };
          g_assert_true (ref_host_run (host, &back, &next));
          ref_host_drop (host, grad);
          grad = next;
          ref_host_drop (host, act[i]);
        }
      RefOp update = { .input = { w, grad }, .use = { COOP_USE_WRITE | COOP_USE_STATE }, .n_inputs = 2,
                       .name = 10, .cost = 1 };
      g_assert_true (ref_host_run (host, &update, NULL));
      drop (host, 2, act[0], grad);
      CoopTotals now = totals (host);
      g_assert_cmpuint (now.step, ==, step + 1);
      if (step == 5)
        early = now;
      if (step > 5)
        {
          g_assert_cmpuint (now.tensors, ==, early.tensors);
          g_assert_cmpuint (now.records, ==, early.records);
          g_assert_cmpuint (now.live, ==, early.live);
        }
    }
  g_assert_cmpuint (totals (host).evictions, >, 1000);
  ref_host_verify (host);
  ref_host_drop (host, w);
  ref_host_free (host);
}

/* Rule 5: what needs the old value of a constant comes back before it is overwritten, through what
 * nobody holds, and becomes constant; what hangs on those does not. */
static void
test_overwrite (void)
{
  RefHost *host = host_new (64 * K);
  RefStorage *w = ref_host_constant (host, K, COOP_KIND_STATE, 1);
  RefStorage *a = ref_make (host, K, 1, 1, w), *b = ref_make (host, K, 1, 1, a);
  RefStorage *c = ref_make (host, K, 1, 1, b), *d = ref_make (host, K, 1, 1, w);
  RefStorage *other = ref_make (host, K, 1, 0);
  ref_host_drop (host, a);
  ref_host_stress (host);
  g_assert_true (ref_host_read (host, d));
  ref_write (host, w, COOP_USE_WRITE, 1);
  g_assert_cmpint (b->tensor->pin, ==, COOP_PIN_CONSTANT);
  g_assert_cmpint (b->tensor->state, ==, COOP_LIVE);
  g_assert_cmpint (d->tensor->pin, ==, COOP_PIN_CONSTANT);
  g_assert_cmpint (c->tensor->pin, ==, COOP_PIN_NONE);
  g_assert_cmpint (c->tensor->state, ==, COOP_EVICTED);
  g_assert_cmpint (other->tensor->pin, ==, COOP_PIN_NONE);
  g_assert_cmpuint (w->tensor->id, ==, 1);
  g_assert_cmpuint (b->holds, ==, 1);
  const CoopEvent *ev = ref_host_event (host, COOP_EVENT_WRITE, 0, NULL);
  g_assert_cmpuint (ev->u.write.old_tensor, ==, ev->u.write.new_tensor);
  g_assert_true (ref_host_read (host, c));
  drop (host, 5, w, b, c, d, other);
  ref_host_free (host);
}

/* Running statistics: written on the side, outputs do not depend on them, but who reads them does. */
static void
test_scratch (void)
{
  RefHost *host = host_new (64 * K);
  RefStorage *stats = ref_host_constant (host, K, COOP_KIND_STATE, 1), *x = ref_make (host, K, 1, 0);
  RefOp norm = { .input = { x, stats }, .use = { COOP_USE_READ, COOP_USE_SCRATCH }, .n_inputs = 2,
                 .name = 20, .cost = 5, .n_outputs = 1, .out_bytes = { K } };
  RefStorage *y, *z, *reads = ref_make (host, K, 1, 1, stats);
  ref_host_stress (host);
  g_assert_true (ref_host_run (host, &norm, &y));
  /* the reader came back before the first write */
  g_assert_cmpint (reads->tensor->pin, ==, COOP_PIN_CONSTANT);
  g_assert_true (ref_host_run (host, &norm, &z));
  g_assert_cmpint (y->tensor->pin, ==, COOP_PIN_NONE);
  ref_host_stress (host);
  g_assert_true (ref_host_read (host, y));
  ref_host_drop (host, stats);
  g_assert_cmpuint (totals (host).live, >=, 2 * K);
  ref_host_stress (host);
  g_assert_true (ref_host_read (host, z));
  drop (host, 4, x, y, z, reads);
  ref_host_free (host);
}

/* Rule 6: a buffer first updated in a later step than it was made in is state. */
static void
test_becomes_state (void)
{
  RefHost *host = host_new (64 * K);
  RefStorage *w = ref_host_constant (host, K, COOP_KIND_STATE, 1), *grad, *momentum = NULL;
  for (unsigned step = 1; step <= 3; step++)
    {
      g_assert_true (use_one (host, w, COOP_USE_READ, COOP_PHASE_BACKWARD, 1, &grad));
      if (step == 1)
        g_assert_cmpuint (totals (host).step, ==, 0);
      ref_write (host, w, COOP_USE_WRITE | COOP_USE_STATE, 1);
      g_assert_cmpuint (totals (host).step, ==, step);
      /* further updates are of the same step */
      ref_write (host, w, COOP_USE_WRITE | COOP_USE_STATE, 1);
      g_assert_cmpuint (totals (host).step, ==, step);
      if (momentum == NULL)
        momentum = ref_make (host, K, 1, 1, grad);
      g_assert_true (use_one (host, momentum, COOP_USE_WRITE, COOP_PHASE_OTHER, 0, NULL));
      g_assert_cmpint (momentum->tensor->pin, ==, step == 1 ? COOP_PIN_NONE : COOP_PIN_CONSTANT);
      g_assert_cmpint (momentum->tensor->kind, ==,
                       step == 1 ? COOP_KIND_ACTIVATION : COOP_KIND_STATE);
      ref_host_drop (host, grad);
      ref_host_stress (host);
    }
  g_assert_cmpuint (ref_host_count (host, COOP_EVENT_STEP), ==, 3);
  const CoopEvent *ev = ref_host_event (host, COOP_EVENT_PHASE, 1, NULL);
  g_assert_cmpuint (ev->u.phase.phase, ==, COOP_PHASE_OPTIMIZER);
  drop (host, 2, w, momentum);
  ref_host_free (host);
}

/* In-place updates: a new version at the same address, each of them recomputable. */
static void
test_versions (void)
{
  RefHost *host = host_new (64 * K);
  RefStorage *x = ref_make (host, K, 10, 0), *reads = ref_make (host, K, 1, 1, x);
  CoopTensor *old = x->tensor;
  uint64_t addr = x->addr;
  ref_write (host, x, COOP_USE_WRITE, 10);
  g_assert_true (x->tensor != old);
  g_assert_cmpuint (x->tensor->storage, ==, old->storage);
  g_assert_cmpuint (x->addr, ==, addr);
  g_assert_cmpint (old->state, ==, COOP_DEAD);
  g_assert_true (coop_engine_tensor_at (host->engine, addr) == x->tensor);
  ref_host_stress (host);
  uint64_t allocs = totals (host).allocs;
  g_assert_true (ref_host_read (host, x));
  /* the old version's block is used up: one block in all */
  g_assert_cmpuint (totals (host).allocs, ==, allocs + 1);
  g_assert_cmpuint (totals (host).replays, ==, 2);
  g_assert_cmpint (old->state, ==, COOP_DEAD);
  g_assert_cmpuint (old->pins, ==, 0);
  g_assert_true (ref_host_read (host, reads));
  g_assert_cmpuint (totals (host).replays, ==, 4);
  drop (host, 2, x, reads);
  g_assert_cmpuint (totals (host).records, ==, 0);
  ref_host_free (host);
}

/* A version that another frame has pinned is not used up: the replay works on a copy. */
static void
test_version_pinned_elsewhere (void)
{
  RefHost *host = host_new (64 * K);
  RefStorage *x = ref_make (host, K, 10, 0), *reads = ref_make (host, K, 1, 1, x);
  CoopTensor *old = x->tensor;
  ref_write (host, x, COOP_USE_WRITE, 10);
  ref_host_stress (host);
  /* one call has brought the old version back and pins it while it is about to replay `reads` */
  CoopReplay step;
  RefCall first, second;
  RefOp a = { .input = { reads }, .n_inputs = 1, .name = 7 };
  RefOp b = { .input = { x }, .n_inputs = 1, .name = 8 };
  ref_host_begin (host, &first, &a);
  g_assert_cmpint (coop_engine_next (host->engine, &first.call, &step), ==, COOP_STEP_REPLAY);
  ref_host_begin (host, &second, &b);
  uint64_t allocs = totals (host).allocs;
  g_assert_true (ref_host_prepare (host, &second));
  /* the old version, and a copy of it for the update */
  g_assert_cmpuint (totals (host).allocs, ==, allocs + 2);
  g_assert_cmpint (old->state, ==, COOP_BORROWED);
  g_assert_true (ref_host_finish (host, &second, NULL));
  g_assert_cmpint (old->state, ==, COOP_BORROWED);
  ref_host_abort (host, &first);
  g_assert_cmpint (old->state, ==, COOP_DEAD);
  drop (host, 2, x, reads);
  ref_host_free (host);
}

/* A replay that raises leaves nothing pinned and nothing half written in use. */
static void
test_replay_fails (void)
{
  RefHost *host = host_new (64 * K);
  RefStorage *x = ref_make (host, K, 10, 0);
  for (unsigned i = 0; i < 4; i++)
    ref_write (host, x, COOP_USE_WRITE, 10);
  for (unsigned i = 0; i < 5; i++)
    {
      ref_host_stress (host);
      RefCall call;
      RefOp op = { .input = { x }, .n_inputs = 1, .name = 7 };
      ref_host_begin (host, &call, &op);
      host->fail_replays = 1;
      g_assert_false (ref_host_prepare (host, &call));
      g_assert_cmpuint (totals (host).live, ==, 0);
      ref_host_verify (host);
    }
  g_assert_cmpuint (ref_host_count (host, COOP_EVENT_OP_END), >, 10);
  g_assert_true (ref_host_read (host, x));
  ref_host_drop (host, x);
  ref_host_free (host);
}

/* A half-written version that another call had brought back is not used by that call. */
static void
test_spoiled (void)
{
  RefHost *host = host_new (64 * K);
  RefStorage *x = ref_make (host, K, 10, 0), *r[2];
  CoopTensor *old = x->tensor;
  for (unsigned i = 0; i < 2; i++)
    r[i] = ref_make (host, K, 1 + i, 1, x);
  ref_write (host, x, COOP_USE_WRITE, 10);
  ref_host_stress (host);
  RefCall first, second;
  RefOp a = { .input = { r[0], r[1] }, .n_inputs = 2, .name = 7 };
  RefOp b = { .input = { x }, .n_inputs = 1, .name = 8 };
  ref_host_begin (host, &first, &a);
  g_assert_cmpint (ref_host_advance (host, &first, 2), ==, COOP_STEP_REPLAY);
  g_assert_cmpint (r[0]->tensor->state, ==, COOP_LIVE);
  g_assert_cmpint (old->state, ==, COOP_BORROWED);
  g_assert_cmpuint (old->pins, ==, 0);
  ref_host_begin (host, &second, &b);
  host->fail_replays = 1;
  g_assert_false (ref_host_prepare (host, &second));
  g_assert_cmpint (old->state, ==, COOP_DEAD);
  g_assert_true (ref_host_prepare (host, &first));
  g_assert_true (ref_host_finish (host, &first, NULL));
  g_assert_true (ref_host_read (host, x));
  drop (host, 3, x, r[0], r[1]);
  ref_host_free (host);
}

/* The pointer leaves: pinned for good, and what depends on it too. KEEP leaves dependents alone. */
static void
test_escape (void)
{
  RefHost *host = host_new (64 * K);
  RefStorage *x = ref_make (host, K, 10, 0), *y = ref_make (host, K, 10, 1, x);
  RefStorage *k = ref_make (host, K, 10, 0), *l = ref_make (host, K, 10, 1, k);
  RefOp escape = { .input = { x }, .use = { COOP_USE_ESCAPE }, .n_inputs = 1 };
  RefOp keep = { .input = { k }, .use = { COOP_USE_KEEP }, .n_inputs = 1 };
  ref_host_stress (host);
  unsigned begun = ref_host_count (host, COOP_EVENT_OP_BEGIN);
  g_assert_true (ref_host_run (host, &escape, NULL) && ref_host_run (host, &keep, NULL));
  g_assert_cmpint (x->tensor->pin, ==, COOP_PIN_ESCAPED);
  g_assert_cmpint (y->tensor->pin, ==, COOP_PIN_CONSTANT);
  g_assert_cmpint (k->tensor->pin, ==, COOP_PIN_USER);
  g_assert_cmpint (l->tensor->pin, ==, COOP_PIN_NONE);
  g_assert_cmpuint (ref_host_count (host, COOP_EVENT_ESCAPE), ==, 1);
  g_assert_cmpuint (ref_host_count (host, COOP_EVENT_PIN), ==, 1);
  /* not operators of the program: only the three replays begin */
  g_assert_cmpuint (ref_host_count (host, COOP_EVENT_OP_BEGIN), ==, begun + 3);
  ref_host_stress (host);
  g_assert_cmpint (l->tensor->state, ==, COOP_EVICTED);
  drop (host, 4, x, y, k, l);
  ref_host_free (host);
}

/* What cannot be repeated, and what is made by writing a constant, is constant from birth. */
static void
test_not_recorded (void)
{
  RefHost *host = host_new (64 * K);
  RefStorage *c = ref_host_constant (host, K, COOP_KIND_STATE, 1), *out[2];
  RefOp once = { .input = { c }, .n_inputs = 1, .name = 7, .n_outputs = 1, .out_bytes = { K },
                 .once = true };
  g_assert_true (ref_host_run (host, &once, &out[0]));
  g_assert_cmpint (out[0]->tensor->pin, ==, COOP_PIN_CONSTANT);
  once.use[0] = COOP_USE_WRITE;
  once.once = false;
  g_assert_true (ref_host_run (host, &once, &out[1]));
  g_assert_cmpint (out[1]->tensor->pin, ==, COOP_PIN_CONSTANT);
  g_assert_cmpuint (totals (host).records, ==, 0);
  drop (host, 3, c, out[0], out[1]);
  ref_host_free (host);
}

/* One constant output of two: the other is still recomputable, and the replay leaves the first be. */
static void
test_outputs (void)
{
  RefHost *host = host_new (64 * K);
  RefStorage *out[3];
  RefOp op = { .name = 7, .cost = 4, .n_outputs = 3, .out_bytes = { K, K, K },
               .out_constant = { true } };
  g_assert_true (ref_host_run (host, &op, out));
  ref_host_drop (host, out[2]);
  ref_host_stress (host);
  g_assert_cmpint (out[0]->tensor->state, ==, COOP_LIVE);
  g_assert_true (ref_host_read (host, out[1]));
  g_assert_cmpuint (totals (host).live, ==, 2 * K);
  drop (host, 2, out[0], out[1]);
  ref_host_free (host);
}

static void
test_thrash (void)
{
  RefHost *host = host_new (64 * K);
  CoopPolicy policy = *coop_engine_policy (host->engine);
  policy.v[COOP_PARAM_THRASH].i = 3;
  coop_engine_set_policy (host->engine, &policy, COOP_SOURCE_API, 1);
  RefStorage *x = ref_make (host, K, 10, 0);
  for (unsigned i = 1; i <= 6; i++)
    {
      ref_host_stress (host);
      g_assert_true (ref_host_read (host, x));
      g_assert_cmpuint (host->thrashed, ==, i > 3);
    }
  ref_host_drop (host, x);
  ref_host_free (host);
}

/* State goes to the lowest hole once it is known to be state, not while it is in use. */
static void
test_place (void)
{
  RefHost *host = host_new (32 * K);
  RefStorage *a = ref_make (host, 4 * K, 1, 0), *b = ref_make (host, 4 * K, 1, 0);
  RefStorage *w = ref_make (host, 2 * K, 1, 0);
  ref_host_drop (host, a);
  RefCall call;
  RefOp op = { .input = { w }, .use = { COOP_USE_STATE }, .n_inputs = 1, .name = 7 };
  ref_host_begin (host, &call, &op);
  g_assert_true (ref_host_prepare (host, &call));
  g_assert_cmpuint (w->addr, ==, 8 * K);
  g_assert_true (ref_host_finish (host, &call, NULL));
  g_assert_cmpuint (w->addr, ==, 0);
  g_assert_cmpuint (host->placed, ==, 1);
  const CoopEvent *ev = ref_host_event (host, COOP_EVENT_MOVE, 0, NULL);
  g_assert_cmpuint (ev->u.move.from, ==, 8 * K);
  g_assert_cmpuint (ev->u.move.to, ==, 0);
  g_assert_cmpuint (ev->u.move.bytes, ==, 2 * K);
  g_assert_cmpuint (ev->u.move.new_block, >, ev->u.move.block);
  /* no lower hole: stays */
  RefStorage *v = ref_host_constant (host, 2 * K, COOP_KIND_STATE, 2);
  g_assert_cmpuint (v->addr, ==, 2 * K);
  g_assert_cmpuint (host->placed, ==, 1);
  drop (host, 3, b, w, v);
  ref_host_free (host);
}

/* The host may fail to move, and the user may let go meanwhile. */
static void
test_place_fails (void)
{
  RefHost *host = host_new (32 * K);
  RefStorage *a = ref_make (host, 4 * K, 1, 0), *w[2];
  for (unsigned i = 0; i < 2; i++)
    w[i] = ref_make (host, 2 * K, 1, 0);
  ref_host_drop (host, a);
  CoopAction action;
  coop_engine_pin (host->engine, w[0]->tensor, COOP_PIN_CONSTANT);
  for (unsigned i = 0; i < 2; i++)
    {
      coop_version_make_constant (host->engine, coop_version (w[i]->tensor), COOP_KIND_STATE,
                                  COOP_PIN_CONSTANT);
      coop_reap (host->engine);
      bool place = false;
      while (!place && coop_engine_action (host->engine, &action))
        {
          place = action.kind == COOP_ACTION_PLACE;
          if (action.kind == COOP_ACTION_OP_GONE)
            g_free (action.host);
        }
      g_assert_true (place);
      if (i == 1)
        {
          g_assert_true (coop_engine_free (host->engine, w[1]->addr));
          memset (host->memory + w[1]->addr, 0xdd, 2 * K);
          w[1]->tensor->host = NULL;
        }
      g_assert_cmpuint (totals (host).live, ==, 4 * K);
      coop_engine_placed (host->engine, action.tensor, action.to, false);
      g_assert_cmpuint (totals (host).live, ==, i == 0 ? 4 * K : 2 * K);
      g_assert_cmpstr (coop_engine_check (host->engine), ==, NULL);
    }
  g_ptr_array_remove_fast (host->storages, w[1]);
  g_free (w[1]->shadow);
  g_free (w[1]);
  ref_host_drop (host, w[0]);
  ref_host_free (host);
}

/* A tensor without bytes that nothing can make is reported, not looped over. */
static void
test_lost (void)
{
  RefHost *host = host_new (64 * K);
  RefStorage *c = ref_host_constant (host, K, COOP_KIND_OTHER, 1), *y = ref_make (host, K, 1, 1, c);
  ref_host_stress (host);
  /* a host that lets a held storage go all the same */
  CoopTensor *t = c->tensor;
  g_assert_cmpuint (c->holds, ==, 1);
  memset (host->memory + c->addr, 0xdd, K);
  t->host = NULL;
  g_assert_true (coop_engine_free (host->engine, c->addr));
  CoopAction action;
  g_assert_true (coop_engine_action (host->engine, &action));
  g_assert_cmpint (action.kind, ==, COOP_ACTION_UNHOLD);
  g_assert_true (action.tensor == t);
  CoopReplay step;
  RefCall call;
  RefOp op = { .input = { y }, .n_inputs = 1, .name = 7 };
  ref_host_begin (host, &call, &op);
  g_assert_cmpint (coop_engine_next (host->engine, &call.call, &step), ==, COOP_STEP_LOST);
  g_assert_true (step.tensor == t);
  coop_engine_abort (host->engine, &call.call);
  g_assert_cmpuint (y->tensor->pins, ==, 0);
  g_ptr_array_remove_fast (host->storages, c);
  g_free (c->shadow);
  g_free (c);
  ref_host_drop (host, y);
  ref_host_free (host);
}

/* A failed hand-over leaves the user's storage as empty as before. */
static void
test_handover_fails (void)
{
  RefHost *host = host_new (64 * K);
  RefStorage *x = ref_make (host, K, 10, 0);
  ref_host_stress (host);
  CoopReplay step;
  RefCall call;
  RefOp op = { .input = { x }, .n_inputs = 1, .name = 7 };
  ref_host_begin (host, &call, &op);
  g_assert_cmpint (coop_engine_next (host->engine, &call.call, &step), ==, COOP_STEP_REPLAY);
  CoopRequest req = { .bytes = K, .call = &call.call };
  CoopWhat what;
  CoopTensor *t;
  g_assert_cmpint (coop_engine_alloc (host->engine, &req), ==, COOP_OK);
  coop_engine_replayed (host->engine, &call.call, &req.addr, 10, &what, &t);
  g_assert_cmpint (what, ==, COOP_HANDOVER);
  g_assert_false (coop_evictable (host->engine, coop_version (t)));
  g_assert_true (coop_engine_free (host->engine, req.addr));
  g_assert_cmpint (t->state, ==, COOP_EVICTED);
  ref_host_abort (host, &call);
  g_assert_true (ref_host_read (host, x));
  ref_host_drop (host, x);
  ref_host_free (host);
}

/* cost = model: 1000 ns + bytes / 20, or + bytes if expensive; whatever was measured. */
static void
test_model_cost (void)
{
  RefHost *host = host_new (64 * K);
  CoopPolicy policy = *coop_engine_policy (host->engine);
  policy.v[COOP_PARAM_COST].i = COOP_COST_MODEL;
  coop_engine_set_policy (host->engine, &policy, COOP_SOURCE_API, 1);
  RefStorage *a = ref_make (host, 10 * K, 77, 0), *b;
  RefOp op = { .input = { a }, .n_inputs = 1, .name = 7, .cost = 77, .n_outputs = 1,
               .out_bytes = { 2 * K }, .op_class = COOP_CLASS_EXPENSIVE };
  g_assert_true (ref_host_run (host, &op, &b));
  const CoopEvent *ev = ref_host_event (host, COOP_EVENT_OP_END, 0, NULL);
  g_assert_cmpuint (ev->u.op_end.cost, ==, 1000 + 10 * K / 20);
  g_assert_cmpuint (ev->u.op_end.duration, ==, 77);
  ev = ref_host_event (host, COOP_EVENT_OP_END, 1, NULL);
  g_assert_cmpuint (ev->u.op_end.cost, ==, 1000 + 12 * K);
  ref_host_stress (host);
  g_assert_true (ref_host_read (host, b));
  /* replays cost the same by the model */
  ev = ref_host_event (host, COOP_EVENT_OP_END, 3, NULL);
  g_assert_cmpuint (ev->u.op_end.cost, ==, 1000 + 12 * K);
  g_assert_cmpuint (ref_host_count (host, COOP_EVENT_COST), ==, 0);
  drop (host, 2, a, b);
  ref_host_free (host);
}

/* Workspace is what an operator asked for beyond its outputs. */
static void
test_workspace (void)
{
  RefHost *host = host_new (64 * K);
  RefStorage *out;
  RefOp op = { .name = 7, .cost = 4, .n_outputs = 1, .out_bytes = { K }, .workspace = 3 * K };
  g_assert_true (ref_host_run (host, &op, &out));
  const CoopEvent *ev = ref_host_event (host, COOP_EVENT_OP_END, 0, NULL);
  g_assert_cmpuint (ev->u.op_end.workspace, ==, 3 * K);
  ref_host_drop (host, out);
  ref_host_free (host);
}

/* A measured cost moves towards what a replay took, and says so. */
static void
test_cost_learnt (void)
{
  RefHost *host = host_new (64 * K);
  RefStorage *x = ref_make (host, K, 100, 0);
  ref_host_stress (host);
  CoopReplay step;
  RefCall call;
  RefOp op = { .input = { x }, .n_inputs = 1, .name = 7 };
  ref_host_begin (host, &call, &op);
  g_assert_cmpint (coop_engine_next (host->engine, &call.call, &step), ==, COOP_STEP_REPLAY);
  CoopRequest req = { .bytes = K, .call = &call.call };
  CoopWhat what;
  CoopTensor *t;
  g_assert_cmpint (coop_engine_alloc (host->engine, &req), ==, COOP_OK);
  const CoopEvent *ev = ref_host_event (host, COOP_EVENT_ALLOC, 1, NULL);
  g_assert_cmpuint (ev->u.alloc.op, ==, step.replay);
  coop_engine_replayed (host->engine, &call.call, &req.addr, 40, &what, &t);
  ev = ref_host_event (host, COOP_EVENT_COST, 0, NULL);
  g_assert_cmpuint (ev->u.cost.op, ==, 1);
  g_assert_cmpuint (ev->u.cost.cost, ==, 70);
  g_assert_true (coop_engine_free (host->engine, req.addr));
  ref_host_abort (host, &call);
  ref_host_drop (host, x);
  ref_host_free (host);
}

/* A host whose replays never yield a block of the pool is told so instead of being asked for ever. */
static void
test_replay_without_result (void)
{
  RefHost *host = host_new (64 * K);
  RefStorage *x = ref_make (host, K, 100, 0);
  ref_host_stress (host);
  RefCall call;
  CoopReplay step;
  RefOp op = { .input = { x }, .n_inputs = 1, .name = 7 };
  ref_host_begin (host, &call, &op);
  unsigned n = 0;
  while (coop_engine_next (host->engine, &call.call, &step) == COOP_STEP_REPLAY)
    {
      uint64_t nowhere = 32 * K;
      CoopWhat what;
      CoopTensor *t;
      g_assert_cmpuint (n++, <, 10);
      coop_engine_replayed (host->engine, &call.call, &nowhere, 1, &what, &t);
      g_assert_cmpint (what, ==, COOP_DROP);
    }
  g_assert_true (step.tensor == x->tensor);
  ref_host_abort (host, &call);
  ref_host_drop (host, x);
  ref_host_free (host);
}

/* Outputs that are not blocks of the pool, or are somebody's already, are passed over. */
static void
test_unknown_outputs (void)
{
  RefHost *host = host_new (64 * K);
  RefStorage *x = ref_make (host, K, 100, 0);
  CoopInput input = { x->tensor, COOP_USE_READ };
  CoopCall call = { .inputs = &input, .n_inputs = 1, .name = 7, .replayable = true };
  CoopReplay step;
  CoopTensor *written[1];
  CoopOutput out[2] = { { .addr = 32 * K, .requested = K }, { .addr = x->addr, .requested = K } };
  g_assert_true (coop_engine_begin (host->engine, &call));
  g_assert_cmpint (coop_engine_next (host->engine, &call, &step), ==, COOP_STEP_READY);
  g_assert_null (coop_engine_end (host->engine, &call, out, 2, 10, written));
  g_assert_null (out[0].tensor);
  g_assert_null (out[1].tensor);
  CoopAction action;
  g_assert_true (coop_engine_action (host->engine, &action));
  g_assert_cmpint (action.kind, ==, COOP_ACTION_OP_GONE);
  g_assert_null (action.host);
  ref_host_verify (host);
  ref_host_drop (host, x);
  ref_host_free (host);
}

/* Many of everything: tables grow, long lists of inputs travel whole, an engine is freed as it is. */
static void
test_many (void)
{
  enum { N = 3000 };
  RefHost *host = host_new (8u << 20);
  host->check = false;
  RefStorage *s[N], *out;
  for (unsigned i = 0; i < N; i++)
    {
      RefOp op = { .name = 1 + i % 700, .cost = i, .n_outputs = 1, .out_bytes = { K } };
      g_assert_true (ref_host_run (host, &op, &s[i]));
    }
  ref_host_verify (host);
  for (unsigned i = 0; i < N; i++)
    g_assert_true (coop_engine_tensor_at (host->engine, s[i]->addr) == s[i]->tensor);
  RefOp gather = { .name = 5, .n_inputs = REF_MAX, .n_outputs = 1, .out_bytes = { K } };
  for (unsigned i = 0; i < REF_MAX; i++)
    gather.input[i] = s[i];
  g_assert_true (ref_host_run (host, &gather, &out));
  const CoopEvent *ev = ref_host_event (host, COOP_EVENT_OP_BEGIN, N, NULL);
  g_assert_cmpuint (ev->u.op_begin.n_inputs, ==, REF_MAX);
  g_assert_cmpuint (ev->more, ==, REF_MAX / 8);
  for (unsigned i = 0; i < N; i++)
    ref_host_drop (host, s[i]);
  /* an output of 7 dimensions takes two records */
  ev = ref_host_event (host, COOP_EVENT_TENSOR, N, NULL);
  g_assert_cmpuint (ev->more, ==, 2);
  ref_host_drop (host, out);
  ref_host_free (host);
}

/* With calls open, tensors alive and actions in the queue nothing is leaked. */
static void
test_free_all (void)
{
  CoopEngineOptions options = { .capacity = 64 * K };
  coop_policy_init (&options.policy);
  CoopEngine *e = coop_engine_new (&options);
  CoopCall call = { .name = 7, .replayable = true }, open = { .name = 8 };
  CoopReplay step;
  CoopTensor *written[1];
  CoopRequest a = { .bytes = K }, b = { .bytes = K };
  g_assert_cmpint (coop_engine_alloc (e, &a), ==, COOP_OK);
  g_assert_cmpint (coop_engine_alloc (e, &b), ==, COOP_OK);
  CoopOutput out[2] = { { .addr = a.addr, .requested = K }, { .addr = b.addr, .requested = K } };
  g_assert_true (coop_engine_begin (e, &call));
  g_assert_cmpint (coop_engine_next (e, &call, &step), ==, COOP_STEP_READY);
  g_assert_nonnull (coop_engine_end (e, &call, out, 2, 10, written));
  g_assert_true (coop_engine_free (e, a.addr));
  g_assert_true (coop_engine_begin (e, &open));
  coop_engine_free_all (e);
  coop_engine_free_all (NULL);
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  g_test_add_func ("/core/graph/back", test_back);
  g_test_add_func ("/core/graph/pinned-together", test_pinned_together);
  g_test_add_func ("/core/graph/skip-connections", test_skip_connections);
  g_test_add_func ("/core/graph/skip-under-pressure", test_skip_under_pressure);
  g_test_add_func ("/core/graph/long-chain", test_long_chain);
  g_test_add_func ("/core/graph/hold", test_hold);
  g_test_add_func ("/core/graph/hold-small", test_hold_small);
  g_test_add_func ("/core/graph/flat", test_flat);
  g_test_add_func ("/core/graph/overwrite", test_overwrite);
  g_test_add_func ("/core/graph/scratch", test_scratch);
  g_test_add_func ("/core/graph/becomes-state", test_becomes_state);
  g_test_add_func ("/core/graph/versions", test_versions);
  g_test_add_func ("/core/graph/version-pinned-elsewhere", test_version_pinned_elsewhere);
  g_test_add_func ("/core/graph/replay-fails", test_replay_fails);
  g_test_add_func ("/core/graph/spoiled", test_spoiled);
  g_test_add_func ("/core/graph/escape", test_escape);
  g_test_add_func ("/core/graph/not-recorded", test_not_recorded);
  g_test_add_func ("/core/graph/outputs", test_outputs);
  g_test_add_func ("/core/graph/thrash", test_thrash);
  g_test_add_func ("/core/graph/place", test_place);
  g_test_add_func ("/core/graph/place-fails", test_place_fails);
  g_test_add_func ("/core/graph/lost", test_lost);
  g_test_add_func ("/core/graph/handover-fails", test_handover_fails);
  g_test_add_func ("/core/graph/model-cost", test_model_cost);
  g_test_add_func ("/core/graph/workspace", test_workspace);
  g_test_add_func ("/core/graph/cost-learnt", test_cost_learnt);
  g_test_add_func ("/core/graph/replay-without-result", test_replay_without_result);
  g_test_add_func ("/core/graph/unknown-outputs", test_unknown_outputs);
  g_test_add_func ("/core/graph/many", test_many);
  g_test_add_func ("/core/graph/free-all", test_free_all);
  return g_test_run ();
}
