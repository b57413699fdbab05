/* SPDX-License-Identifier: Apache-2.0 */
/* Victims: windows and single ones, by cases made by hand. */
#include "core-cases.h"

/* Fills a pool exactly, asks for `need` KiB more, says who went. */
static void
ask (CoopEvictorName evictor, unsigned n, const unsigned (*size_cost)[2], unsigned pinned,
     unsigned need, const char *expected, double cost)
{
  uint64_t budget = 0;
  RefStorage *s[16];
  for (unsigned i = 0; i < n; i++)
    budget += size_cost[i][0] * K;
  CoopPolicy policy = plain (budget, evictor);
  RefHost *host = host_under (budget, &policy);
  fill (host, n, size_cost, s);
  for (unsigned i = 0; i < n; i++)
    if (pinned & (1u << i))
      coop_engine_pin (host->engine, s[i]->tensor, COOP_PIN_USER);
  s[n] = ref_make (host, need * K, 1, 0);
  char *seen = picture (s, n);
  g_assert_cmpstr (seen, ==, expected);
  g_free (seen);
  const void *body;
  const CoopEvent *ev = ref_host_event (host, COOP_EVENT_SEARCH, 0, &body);
  g_assert_cmpuint (ev->u.search.need, ==, need * K);
  g_assert_cmpfloat (((const CoopSearchBody *) body)->cost, ==, cost);
  drop_all (host, n + 1, s);
}

static void
test_window (void)
{
  /* the cheapest window, not the cheapest pieces: 1 + 1 apart free nothing for 8 */
  static const unsigned apart[][2] = { { 4, 1 }, { 4, 9 }, { 4, 1 }, { 4, 3 }, { 4, 4 } };
  ask (COOP_EVICTOR_COOP, 5, apart, 0, 8, "..xx.", 4);
  /* one expensive survivor between two halves (the paper's example) */
  static const unsigned survivor[][2] = { { 5, 1 }, { 1, 100 }, { 5, 1 }, { 5, 2 }, { 5, 2 } };
  ask (COOP_EVICTOR_COOP, 5, survivor, 0, 10, "..xx.", 3);
  /* leftmost of equals */
  static const unsigned equal[][2] = { { 4, 2 }, { 4, 2 }, { 4, 2 } };
  ask (COOP_EVICTOR_COOP, 3, equal, 0, 4, "x..", 2);
  /* a pinned piece ends the window */
  ask (COOP_EVICTOR_COOP, 5, apart, 1u << 3, 8, "xx...", 10);
  ask (COOP_EVICTOR_COOP, 5, apart, 1u << 1, 8, "..xx.", 4);
}

/* The sum of h is what is small, not h per byte: one large tensor with a higher sum stays. */
static void
test_window_is_a_sum (void)
{
  static const unsigned sizes[][2] = { { 16, 10 }, { 4, 6 } };
  ask (COOP_EVICTOR_COOP, 2, sizes, 0, 4, ".x", 6);
}

/* Upstream never shrinks the window that touches the top: it would evict both. */
static void
test_window_at_the_top (void)
{
  static const unsigned sizes[][2] = { { 1, 5 }, { 4, 1 } };
  ask (COOP_EVICTOR_COOP, 2, sizes, 0, 2, ".x", 1);
}

/* Upstream takes an infinite score out of a running sum and gets NaN for the rest of the scan. */
static void
test_window_infinite (void)
{
  CoopPolicy policy = plain (16 * K, COOP_EVICTOR_COOP);
  policy.v[COOP_PARAM_STALENESS_EXPONENT].d = 1;
  RefHost *host = host_under (16 * K, &policy);
  RefStorage *s[5];
  for (unsigned i = 0; i < 4; i++)
    s[i] = ref_make (host, 4 * K, 100 - 10 * i, 0);
  /* the lowest is used just now: its staleness is 0 */
  g_assert_true (ref_host_read (host, s[0]));
  s[4] = ref_make (host, 4 * K, 1, 0);
  char *seen = picture (s, 4);
  /* h: infinite, 90/150, 80/70, infinite: [1] is the cheapest */
  g_assert_cmpstr (seen, ==, ".x..");
  g_free (seen);
  const void *body;
  ref_host_event (host, COOP_EVENT_SEARCH, 0, &body);
  const CoopSearchBody *search = body;
  g_assert_cmpfloat (search->cost, ==, 90.0 / 150);
  g_assert_cmpfloat (search->next_cost, ==, 80.0 / 70);
  g_assert_cmpuint (search->next_lo, ==, 8 * K);
  g_assert_cmpuint (search->next_hi, ==, 12 * K);
  drop_all (host, 5, s);
}

/* Scores are those before anything of the window went: members do not count each other. */
static void
test_window_before (void)
{
  CoopPolicy policy = plain (12 * K, COOP_EVICTOR_COOP);
  RefHost *host = host_under (12 * K, &policy);
  RefStorage *s[4];
  s[0] = ref_make (host, 4 * K, 10, 0);
  s[1] = ref_make (host, 4 * K, 20, 1, s[0]);
  s[2] = ref_make (host, 4 * K, 40, 1, s[1]);
  s[3] = ref_make (host, 8 * K, 1, 0);
  const void *body;
  ref_host_event (host, COOP_EVENT_SEARCH, 0, &body);
  g_assert_cmpfloat (((const CoopSearchBody *) body)->cost, ==, 30);
  /* in the order of eviction the second sees the first */
  ref_host_event (host, COOP_EVENT_EVICT, 0, &body);
  g_assert_cmpuint (((const CoopEvictBody *) body)->chain_cost, ==, 0);
  ref_host_event (host, COOP_EVENT_EVICT, 1, &body);
  g_assert_cmpuint (((const CoopEvictBody *) body)->own_cost, ==, 20);
  g_assert_cmpuint (((const CoopEvictBody *) body)->chain_cost, ==, 10);
  drop_all (host, 4, s);
}

/* Two evicted neighbours of one class count once; upstream adds the class for each. */
static void
test_chain_once (void)
{
  CoopPolicy policy = plain (64 * K, COOP_EVICTOR_COOP);
  RefHost *host = host_under (64 * K, &policy);
  RefStorage *s[5];
  s[0] = ref_make (host, K, 1, 0);
  s[1] = ref_make (host, K, 10, 1, s[0]);
  s[2] = ref_make (host, K, 100, 2, s[0], s[1]);
  s[3] = ref_make (host, K, 1000, 2, s[1], s[2]);
  s[4] = ref_make (host, K, 10000, 0);
  coop_engine_pin (host->engine, s[4]->tensor, COOP_PIN_USER);
  RefCall call;
  RefOp op = { .input = { s[3] }, .use = { COOP_USE_READ }, .n_inputs = 1, .name = 5 };
  ref_host_begin (host, &call, &op);
  ref_host_stress (host);
  ref_host_abort (host, &call);
  char *seen = picture (s, 5);
  g_assert_cmpstr (seen, ==, "xxx..");
  g_free (seen);
  ref_host_stress (host);
  const void *body;
  ref_host_event (host, COOP_EVENT_EVICT, 3, &body);
  g_assert_cmpuint (((const CoopEvictBody *) body)->own_cost, ==, 1000);
  g_assert_cmpuint (((const CoopEvictBody *) body)->chain_cost, ==, 111);
  drop_all (host, 5, s);
}

static void
test_single (void)
{
  /* bytes in the denominator: 8/4 < 3/1; and one at a time, scattered, until it fits */
  static const unsigned dtr[][2] = { { 4, 8 }, { 1, 3 }, { 4, 9 }, { 4, 99 } };
  ask (COOP_EVICTOR_DTR_EQ, 4, dtr, 0, 4, "x...", 8.0 / (4 * K));
  ask (COOP_EVICTOR_DTR_EQ, 4, dtr, 0, 5, "xxx.", 8.0 / (4 * K));
  static const unsigned equal[][2] = { { 4, 2 }, { 4, 2 }, { 4, 2 } };
  ask (COOP_EVICTOR_DTR_EQ, 3, equal, 0, 4, "x..", 2.0 / (4 * K));
}

static void
test_lru (void)
{
  CoopPolicy policy = plain (12 * K, COOP_EVICTOR_LRU);
  policy.v[COOP_PARAM_STALENESS_EXPONENT].d = 1;
  RefHost *host = host_under (12 * K, &policy);
  RefStorage *s[5];
  for (unsigned i = 0; i < 3; i++)
    s[i] = ref_make (host, 4 * K, 10, 0);
  /* an input counts as used when its operator begins: twice, to come after [2] */
  RefOp use = { .input = { s[0] }, .use = { COOP_USE_READ }, .n_inputs = 1, .name = 5, .cost = 10 };
  g_assert_true (ref_host_run (host, &use, NULL) && ref_host_run (host, &use, NULL));
  s[3] = ref_make (host, 4 * K, 10, 0);
  s[4] = ref_make (host, 4 * K, 10, 0);
  char *seen = picture (s, 5);
  g_assert_cmpstr (seen, ==, ".xx..");
  g_free (seen);
  drop_all (host, 5, s);
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  g_test_add_func ("/core/window/cheapest", test_window);
  g_test_add_func ("/core/window/sum", test_window_is_a_sum);
  g_test_add_func ("/core/window/top", test_window_at_the_top);
  g_test_add_func ("/core/window/infinite", test_window_infinite);
  g_test_add_func ("/core/window/before", test_window_before);
  g_test_add_func ("/core/chain/once", test_chain_once);
  g_test_add_func ("/core/single/order", test_single);
  g_test_add_func ("/core/single/lru", test_lru);
  return g_test_run ();
}
