/* SPDX-License-Identifier: Apache-2.0 */
/* The last resort: what waits for its missing inputs may go, and comes back when its turn comes. */
#include "core-cases.h"

/* D = f (A, C), C = g (B); only D is held, and nothing is there. A comes back first and waits for C.
 * B and A together leave no room for C. */
static RefHost *
chain_new (uint64_t budget, RefStorage **d)
{
  RefHost *host = host_new (16 * K);
  RefStorage *a = ref_make (host, 4 * K, 10, 0);
  RefStorage *b = ref_make (host, 6 * K, 10, 0);
  RefStorage *c = ref_make (host, 2 * K, 10, 1, b);
  *d = ref_make (host, 2 * K, 10, 2, a, c);
  drop (host, 3, a, b, c);
  ref_host_stress (host);
  CoopPolicy policy = *coop_engine_policy (host->engine);
  policy.v[COOP_PARAM_BUDGET].i = (int64_t) budget;
  coop_engine_set_policy (host->engine, &policy, COOP_SOURCE_API, 1);
  g_assert_cmpuint (totals (host).live, ==, 0);
  return host;
}

static void
test_waiting_goes (void)
{
  static const struct { unsigned kib, replays; } cases[] = { { 12, 4 }, { 10, 5 }, { 8, 5 } };
  for (unsigned i = 0; i < G_N_ELEMENTS (cases); i++)
    {
      RefStorage *d;
      RefHost *host = chain_new (cases[i].kib * K, &d);
      g_assert_true (ref_host_read (host, d));
      g_assert_cmpuint (totals (host).replays, ==, cases[i].replays);
      g_assert_cmpuint (ref_host_count (host, COOP_EVENT_OOM), ==, 0);
      ref_host_drop (host, d);
      ref_host_free (host);
    }
}

/* Not enough for the largest link: an error like any other, and all pins are gone. */
static void
test_link_too_large (void)
{
  RefStorage *d;
  RefHost *host = chain_new (8 * K - 512, &d);
  g_assert_false (ref_host_read (host, d));
  g_assert_cmpuint (ref_host_count (host, COOP_EVENT_OOM), ==, 1);
  g_assert_cmpuint (d->tensor->pins, ==, 0);
  g_assert_cmpuint (totals (host).live, ==, 0);
  ref_host_drop (host, d);
  ref_host_free (host);
}

/* Two inputs that do not fit together chase each other, but not for ever. */
static void
test_chase_ends (void)
{
  RefHost *host = host_new (16 * K);
  RefStorage *p = ref_make (host, 4 * K, 10, 0), *q = ref_make (host, 4 * K, 10, 0);
  RefStorage *r = ref_make (host, K, 10, 2, p, q);
  drop (host, 2, p, q);
  ref_host_stress (host);
  CoopPolicy policy = *coop_engine_policy (host->engine);
  policy.v[COOP_PARAM_BUDGET].i = 7 * K;
  coop_engine_set_policy (host->engine, &policy, COOP_SOURCE_API, 1);
  g_assert_false (ref_host_read (host, r));
  g_assert_cmpuint (totals (host).replays, >, 2);
  g_assert_cmpuint (totals (host).replays, <, 100);
  g_assert_cmpuint (r->tensor->pins, ==, 0);
  policy.v[COOP_PARAM_BUDGET].i = 9 * K;
  coop_engine_set_policy (host->engine, &policy, COOP_SOURCE_API, 2);
  g_assert_true (ref_host_read (host, r));
  ref_host_drop (host, r);
  ref_host_free (host);
}

/* Inputs of a call that gathers go for another call's sake, and are there when it runs. */
static void
test_other_call (void)
{
  RefHost *host = host_new (16 * K);
  RefStorage *b = ref_make (host, 4 * K, 10, 0), *a = ref_make (host, 4 * K, 10, 0);
  RefStorage *c = ref_make (host, 2 * K, 10, 1, b), *out, *other;
  RefOp holds = { .input = { a }, .n_inputs = 1, .name = 2 };
  RefCall holder;
  ref_host_begin (host, &holder, &holds);
  ref_host_drop (host, b);
  ref_host_stress (host);
  ref_host_abort (host, &holder);
  g_assert_true (a->addr == 4 * K && c->addr == COOP_NO_ADDR);
  RefOp wants = { .input = { a, c }, .n_inputs = 2, .name = 3, .cost = 5, .n_outputs = 1,
                  .out_bytes = { K } };
  RefOp large = { .name = 4, .cost = 5, .n_outputs = 1, .out_bytes = { 11 * K } };
  RefCall call, second;
  ref_host_begin (host, &call, &wants);
  /* b is back, c is next: b is pinned by the frame on top, a by the operator that waits */
  g_assert_cmpint (ref_host_advance (host, &call, 1), ==, COOP_STEP_REPLAY);
  g_assert_true (a->addr == 4 * K);
  ref_host_begin (host, &second, &large);
  g_assert_true (ref_host_prepare (host, &second));
  g_assert_true (ref_host_finish (host, &second, &other));
  g_assert_cmpuint (a->addr, ==, COOP_NO_ADDR);
  g_assert_cmpuint (a->tensor->pins, ==, 1);
  ref_host_drop (host, other);
  g_assert_true (ref_host_prepare (host, &call));
  g_assert_true (ref_host_finish (host, &call, &out));
  drop (host, 3, a, c, out);
  ref_host_free (host);
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  g_test_add_func ("/core/loosen/waiting-goes", test_waiting_goes);
  g_test_add_func ("/core/loosen/link-too-large", test_link_too_large);
  g_test_add_func ("/core/loosen/chase-ends", test_chase_ends);
  g_test_add_func ("/core/loosen/other-call", test_other_call);
  return g_test_run ();
}
