/* SPDX-License-Identifier: Apache-2.0 */
/* The evictors that take one victim at a time, each by what sets it apart, and the chain costs. */
#include "core-cases.h"

static CoopPolicy
preset (uint64_t budget, CoopEvictorName evictor)
{
  CoopPolicy policy;
  coop_policy_init (&policy);
  coop_policy_preset (&policy, evictor);
  policy.v[COOP_PARAM_BUDGET].i = (int64_t) budget;
  policy.v[COOP_PARAM_SMALL].i = policy.v[COOP_PARAM_HOLD].i = 0;
  policy.v[COOP_PARAM_DESCENT].i = 0;
  return policy;
}

/* c lies between a, b and d, e, all evicted; beside a hangs f, which c needs not. d is one operator with
 * two outputs. Costs are powers of ten, so the sum tells what was counted. */
static uint64_t
chain_of_c (CoopChain chain)
{
  CoopPolicy policy = preset (16 * K, COOP_EVICTOR_DTR);
  policy.v[COOP_PARAM_CHAIN].i = chain;
  RefHost *host = host_under (16 * K, &policy);
  RefStorage *a = ref_make (host, K, 1, 0), *b = ref_make (host, K, 10, 1, a);
  RefStorage *c = ref_make (host, K, 100, 1, b), *d[2], *f = ref_make (host, K, 100000, 1, a);
  RefOp two = { .input = { c }, .n_inputs = 1, .name = 7, .cost = 1000, .n_outputs = 2,
                .out_bytes = { K, K } };
  g_assert_true (ref_host_run (host, &two, d));
  RefStorage *e = ref_make (host, K, 10000, 2, d[0], d[1]);
  RefOp op = { .input = { c }, .n_inputs = 1, .name = 5 };
  RefCall call;
  ref_host_begin (host, &call, &op);
  ref_host_stress (host);
  ref_host_abort (host, &call);
  g_assert_true (c->addr != COOP_NO_ADDR && ref_host_count (host, COOP_EVENT_EVICT) == 6);
  ref_host_stress (host);
  const void *body;
  ref_host_event (host, COOP_EVENT_EVICT, 6, &body);
  uint64_t cost = ((const CoopEvictBody *) body)->chain_cost;
  g_assert_cmpuint (((const CoopEvictBody *) body)->own_cost, ==, 100);
  drop (host, 7, a, b, c, d[0], d[1], e, f);
  ref_host_free (host);
  return cost;
}

static void
test_chains (void)
{
  g_assert_cmpuint (chain_of_c (COOP_CHAIN_NONE), ==, 0);
  g_assert_cmpuint (chain_of_c (COOP_CHAIN_ANCESTORS), ==, 11);
  g_assert_cmpuint (chain_of_c (COOP_CHAIN_EXACT), ==, 11011);
  g_assert_cmpuint (chain_of_c (COOP_CHAIN_UNION), ==, 100011 + 12000);
}

/* Fills the pool, lets go of `hole`, asks for `need` KiB: who went. */
static char *
victims (const CoopPolicy *policy, unsigned n, const unsigned (*size_cost)[2], int hole, unsigned need)
{
  RefStorage *s[16], *more;
  RefHost *host = host_under ((uint64_t) policy->v[COOP_PARAM_BUDGET].i, policy);
  fill (host, n, size_cost, s);
  if (hole >= 0)
    ref_host_drop (host, s[hole]);
  more = ref_make (host, need * K, 1, 0);
  char *seen = g_strnfill (n, '.');
  for (unsigned i = 0; i < n; i++)
    if ((int) i != hole)
      {
        seen[i] = s[i]->addr == COOP_NO_ADDR ? 'x' : '.';
        ref_host_drop (host, s[i]);
      }
  ref_host_drop (host, more);
  ref_host_free (host);
  return seen;
}

static void
expect (CoopEvictorName evictor, unsigned n, const unsigned (*size_cost)[2], int hole, unsigned need,
        const char *expected)
{
  uint64_t budget = 0;
  for (unsigned i = 0; i < n; i++)
    budget += size_cost[i][0] * K;
  CoopPolicy policy = preset (budget, evictor);
  char *seen = victims (&policy, n, size_cost, hole, need);
  g_assert_cmpstr (seen, ==, expected);
  g_free (seen);
}

static void
test_what_counts (void)
{
  /* the last one was used just now, which is all that lru and the dtr family see; msps sees cost per
   * byte, size the bytes */
  static const unsigned a[][2] = { { 4, 20 }, { 2, 900 }, { 4, 10 } };
  expect (COOP_EVICTOR_LRU, 3, a, -1, 2, "x..");
  expect (COOP_EVICTOR_DTR_LOCAL, 3, a, -1, 2, "x..");
  expect (COOP_EVICTOR_DTR, 3, a, -1, 2, "x..");
  expect (COOP_EVICTOR_MSPS, 3, a, -1, 2, "..x");
  static const unsigned b[][2] = { { 2, 1 }, { 8, 1000 }, { 4, 1 } };
  expect (COOP_EVICTOR_SIZE, 3, b, -1, 2, ".x.");
}

/* Beside the hole, a victim frees more than its own bytes. */
static void
test_beside (void)
{
  static const unsigned sizes[][2] = { { 4, 10 }, { 4, 1 }, { 4, 11 }, { 4, 9 }, { 4, 99 } };
  uint64_t budget = 20 * K;
  CoopPolicy policy = preset (budget, COOP_EVICTOR_DTE);
  policy.v[COOP_PARAM_STALENESS_EXPONENT].d = 0;
  char *with = victims (&policy, 5, sizes, 1, 8);
  policy.v[COOP_PARAM_BESIDE].i = 0;
  char *without = victims (&policy, 5, sizes, 1, 8);
  g_assert_cmpstr (with, ==, "x....");
  g_assert_cmpstr (without, ==, "x..x.");
  g_free (with);
  g_free (without);
}

/* The same seed gives the same victims; over many seeds each piece has its turn, as often as others. */
static void
test_random (void)
{
  static const unsigned sizes[][2] = { { 4, 1 }, { 4, 20 }, { 4, 300 }, { 4, 4000 } };
  unsigned hits[4] = { 0 };
  for (int seed = 0; seed < 400; seed++)
    {
      CoopPolicy policy = preset (16 * K, COOP_EVICTOR_RANDOM);
      policy.v[COOP_PARAM_SEED].i = seed;
      char *seen = victims (&policy, 4, sizes, -1, 4), *again = victims (&policy, 4, sizes, -1, 4);
      g_assert_cmpstr (seen, ==, again);
      for (unsigned i = 0; i < 4; i++)
        hits[i] += seen[i] == 'x';
      g_free (seen);
      g_free (again);
    }
  for (unsigned i = 0; i < 4; i++)
    g_assert_true (hits[i] > 60 && hits[i] < 140); /* 100 expected, 4.6 standard deviations */
  g_assert_cmpuint (hits[0] + hits[1] + hits[2] + hits[3], ==, 400);
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  g_test_add_func ("/core/evictors/chains", test_chains);
  g_test_add_func ("/core/evictors/what-counts", test_what_counts);
  g_test_add_func ("/core/evictors/beside", test_beside);
  g_test_add_func ("/core/evictors/random", test_random);
  return g_test_run ();
}
