/* SPDX-License-Identifier: Apache-2.0 */
/* What a host may meet or do wrong: failures half way, several calls at once, moves, costs. */
#include "core-cases.h"

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

/* Two threads: one overwrites x in place while the other needs what x held, to make `reads` again. */
static void
test_overwritten_by_another_thread (void)
{
  RefHost *host = host_new (64 * K);
  RefStorage *x = ref_make (host, K, 10, 0), *reads = ref_make (host, K, 1, 1, x);
  ref_host_stress (host);
  g_assert_true (ref_host_read (host, x));
  RefOp writes = { .input = { x }, .use = { COOP_USE_WRITE }, .n_inputs = 1, .name = 7 };
  RefOp wants = { .input = { reads }, .n_inputs = 1, .name = 8 };
  RefCall a, b;
  ref_host_begin (host, &a, &writes);
  a.call.thread = &a;
  g_assert_true (ref_host_prepare (host, &a));
  ref_host_begin (host, &b, &wants);
  b.call.thread = &b;
  g_assert_cmpint (ref_host_advance (host, &b, 9), ==, COOP_STEP_WAIT);
  g_assert_cmpint (ref_host_advance (host, &b, 9), ==, COOP_STEP_WAIT);
  g_assert_true (ref_host_finish (host, &a, NULL));
  g_assert_true (ref_host_prepare (host, &b));   /* by way of what x was; the host compares the bits */
  g_assert_true (ref_host_finish (host, &b, NULL));
  drop (host, 2, x, reads);
  ref_host_free (host);
}

/* The other way round: it is being read when the operator comes to overwrite it; and an operator of the same thread,
 * inside of which that would be, does not wait for itself. */
static void
test_read_by_another_thread (void)
{
  RefHost *host = host_new (64 * K);
  RefStorage *x = ref_make (host, K, 10, 0), *reads = ref_make (host, K, 1, 1, x);
  ref_host_stress (host);
  g_assert_true (ref_host_read (host, x));
  RefOp writes = { .input = { x }, .use = { COOP_USE_WRITE }, .n_inputs = 1, .name = 7 };
  RefOp wants = { .input = { reads }, .n_inputs = 1, .name = 8 };
  RefCall a, b;
  CoopReplay step;
  ref_host_begin (host, &b, &wants);
  b.call.thread = &b;
  g_assert_cmpint (coop_engine_next (host->engine, &b.call, &step), ==, COOP_STEP_REPLAY);
  ref_host_begin (host, &a, &writes);
  a.call.thread = &b;
  g_assert_cmpint (ref_host_advance (host, &a, 1), ==, COOP_STEP_READY);
  ref_host_abort (host, &a);
  ref_host_begin (host, &a, &writes);
  a.call.thread = &a;
  g_assert_cmpint (ref_host_advance (host, &a, 1), ==, COOP_STEP_WAIT);
  ref_host_abort (host, &b);
  g_assert_cmpint (ref_host_advance (host, &a, 1), ==, COOP_STEP_READY);
  g_assert_true (ref_host_finish (host, &a, NULL));
  drop (host, 2, x, reads);
  ref_host_free (host);
}

/* What a rematerialization uses up is not there for another thread meanwhile. */
static void
test_used_up_by_another_thread (void)
{
  RefHost *host = host_new (64 * K);
  RefStorage *x = ref_make (host, K, 10, 0), *reads = ref_make (host, K, 1, 1, x);
  ref_write (host, x, COOP_USE_WRITE, 10);
  ref_host_stress (host);
  RefOp newer = { .input = { x }, .n_inputs = 1, .name = 7 }, older = { .input = { reads }, .n_inputs = 1, .name = 8 };
  RefCall a, b;
  CoopReplay step;
  ref_host_begin (host, &a, &newer);
  a.call.thread = &a;
  g_assert_cmpint (ref_host_advance (host, &a, 1), ==, COOP_STEP_REPLAY);   /* the old version is borrowed */
  g_assert_cmpint (coop_engine_next (host->engine, &a.call, &step), ==, COOP_STEP_REPLAY);
  g_assert_false (step.copy[0]);
  ref_host_begin (host, &b, &older);
  b.call.thread = &b;
  g_assert_cmpint (ref_host_advance (host, &b, 9), ==, COOP_STEP_WAIT);
  ref_host_abort (host, &a);
  g_assert_true (ref_host_prepare (host, &b));
  g_assert_true (ref_host_finish (host, &b, NULL));
  drop (host, 2, x, reads);
  ref_host_free (host);
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  g_test_add_func ("/core/graph/version-pinned-elsewhere", test_version_pinned_elsewhere);
  g_test_add_func ("/core/graph/replay-fails", test_replay_fails);
  g_test_add_func ("/core/graph/spoiled", test_spoiled);
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
  g_test_add_func ("/core/graph/overwritten-by-another-thread", test_overwritten_by_another_thread);
  g_test_add_func ("/core/graph/read-by-another-thread", test_read_by_another_thread);
  g_test_add_func ("/core/graph/used-up-by-another-thread", test_used_up_by_another_thread);
  return g_test_run ();
}
