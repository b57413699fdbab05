/* SPDX-License-Identifier: Apache-2.0 */
/* Versions, records and rematerialization: each rule by a case made by hand. The host compares every
 * value on the way. */
#include "core-cases.h"

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

/* The pointer leaves: pinned for good, and what depends on it too. KEEP leaves dependents alone. */
/* Written together: w, a of w, b of a. What w's change makes constant is overwritten by the same operator, and so
 * on: c of b is brought back before, though no step of that is seen until the one before is done. */
static void
test_overwritten_in_turn (void)
{
  RefHost *host = host_new (64 * K);
  RefStorage *w = ref_host_constant (host, K, COOP_KIND_STATE, 1);
  RefStorage *a = ref_make (host, K, 5, 1, w), *b = ref_make (host, K, 5, 1, a), *c = ref_make (host, K, 5, 1, b);
  RefStorage *d = ref_make (host, K, 5, 1, c);
  ref_host_stress (host);
  RefOp op = { .input = { w, a, b }, .n_inputs = 3, .name = 7, .once = true,
               .use = { COOP_USE_WRITE | COOP_USE_STATE, COOP_USE_WRITE, COOP_USE_WRITE } };
  g_assert_true (ref_host_run (host, &op, NULL));
  g_assert_cmpint (c->tensor->pin, ==, COOP_PIN_CONSTANT);
  g_assert_cmpint (d->tensor->pin, ==, COOP_PIN_NONE);
  ref_host_stress (host);
  g_assert_true (ref_host_read (host, c));
  g_assert_true (ref_host_read (host, d));
  drop (host, 5, w, a, b, c, d);
  ref_host_free (host);
}

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
  g_test_add_func ("/core/graph/overwritten-in-turn", test_overwritten_in_turn);
  g_test_add_func ("/core/graph/escape", test_escape);
  g_test_add_func ("/core/graph/not-recorded", test_not_recorded);
  g_test_add_func ("/core/graph/outputs", test_outputs);
  return g_test_run ();
}
