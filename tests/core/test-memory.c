/* SPDX-License-Identifier: Apache-2.0 */
/* Requests, windows, victims, placement and limits, by cases made by hand. Scores are made plain by a
 * staleness exponent of 0: h is then the operator's cost. */
#include "support/ref-host.h"

#include <math.h>

#define K 1024u

static CoopPolicy
plain (uint64_t budget, CoopEvictorName evictor)
{
  CoopPolicy policy;
  coop_policy_init (&policy);
  coop_policy_preset (&policy, evictor);
  policy.v[COOP_PARAM_BUDGET].i = (int64_t) budget;
  policy.v[COOP_PARAM_STALENESS_EXPONENT].d = 0;
  policy.v[COOP_PARAM_GROUPS].i = 1;
  policy.v[COOP_PARAM_HOLD].i = 0;
  return policy;
}

static RefHost *
host_new (uint64_t capacity, const CoopPolicy *policy)
{
  RefHost *host = ref_host_new (capacity, policy);
  host->check = host->record_events = true;
  return host;
}

/* Fills the pool with tensors of these sizes (KiB) and costs, from the low end up. */
static void
fill (RefHost *host, unsigned n, const unsigned (*size_cost)[2], RefStorage **out)
{
  uint64_t at = 0;
  for (unsigned i = 0; i < n; i++)
    {
      out[i] = ref_make (host, size_cost[i][0] * K, size_cost[i][1], 0);
      g_assert_cmpuint (out[i]->addr, ==, at);
      at += size_cost[i][0] * K;
    }
}

static void
drop_all (RefHost *host, unsigned n, RefStorage **s)
{
  for (unsigned i = 0; i < n; i++)
    ref_host_drop (host, s[i]);
  ref_host_free (host);
}

static void
test_start (void)
{
  CoopPolicy policy = plain (16 * K, COOP_EVICTOR_COOP);
  uint64_t kinds[64] = { 0 };
  RefHost *host = ref_host_new (64 * K, &policy);
  g_assert_cmpuint (host->n_events, ==, 2 + COOP_N_PARAMS);
  host->record_events = true;
  policy.v[COOP_PARAM_BUDGET].i = 32 * K;
  policy.v[COOP_PARAM_VERIFY].i = 1;
  coop_engine_set_policy (host->engine, &policy, COOP_SOURCE_SLIDER, 7);
  coop_engine_set_policy (host->engine, &policy, COOP_SOURCE_SLIDER, 8);
  for (guint i = 0; i < host->events->len; i++)
    kinds[g_array_index (host->events, CoopEvent, i).kind]++;
  g_assert_cmpuint (kinds[COOP_EVENT_POLICY], ==, 2);
  const CoopEvent *ev = ref_host_event (host, COOP_EVENT_POLICY, 0, NULL);
  g_assert_cmpuint (ev->u.policy.param, ==, COOP_PARAM_BUDGET);
  g_assert_cmpint (ev->u.policy.old_bits, ==, 16 * K);
  g_assert_cmpint (ev->u.policy.new_bits, ==, 32 * K);
  g_assert_cmpuint (ev->u.policy.source, ==, COOP_SOURCE_SLIDER);
  g_assert_cmpuint (ev->u.policy.generation, ==, 7);
  ref_host_free (host);
}

static void
test_best_fit (void)
{
  static const unsigned size_cost[][2] = { { 4, 1 }, { 1, 1 }, { 2, 1 }, { 1, 1 }, { 2, 1 }, { 1, 1 } };
  CoopPolicy policy = plain (16 * K, COOP_EVICTOR_NONE);
  RefHost *host = host_new (16 * K, &policy);
  RefStorage *s[6];
  fill (host, 6, size_cost, s);
  ref_host_drop (host, s[0]);
  ref_host_drop (host, s[2]);
  ref_host_drop (host, s[4]);
  /* holes: 4K at 0, 2K at 5K and 8K, 5K at the end: smallest that fits, lowest address */
  RefStorage *a = ref_make (host, 1500, 1, 0), *b = ref_make (host, 2 * K, 1, 0);
  g_assert_cmpuint (a->addr, ==, 5 * K);
  g_assert_cmpuint (b->addr, ==, 8 * K);
  const CoopEvent *ev = ref_host_event (host, COOP_EVENT_ALLOC, 6, NULL);
  g_assert_cmpuint (ev->u.alloc.addr, ==, 5 * K);
  g_assert_cmpuint (ev->u.alloc.bytes, ==, 1536);
  g_assert_cmpuint (ev->u.alloc.requested, ==, 1500);
  g_assert_cmpuint (ev->u.alloc.block, ==, 7);
  g_assert_false (coop_engine_free (host->engine, 512));
  g_assert_null (coop_engine_tensor_at (host->engine, 512));
  g_assert_true (coop_engine_tensor_at (host->engine, 5 * K) == a->tensor);
  ref_host_drop (host, a);
  ref_host_drop (host, b);
  RefStorage *rest[] = { s[1], s[3], s[5] };
  drop_all (host, 3, rest);
}

/* Which of the tensors are gone, as a string of . (here) and x (evicted). */
static char *
picture (RefStorage **s, unsigned n)
{
  char *out = g_strnfill (n, '.');
  for (unsigned i = 0; i < n; i++)
    if (s[i]->addr == COOP_NO_ADDR)
      out[i] = 'x';
  return out;
}

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
  RefHost *host = host_new (budget, &policy);
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
  RefHost *host = host_new (16 * K, &policy);
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
  RefHost *host = host_new (12 * K, &policy);
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
  RefHost *host = host_new (64 * K, &policy);
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
  RefHost *host = host_new (12 * K, &policy);
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

/* A request that cannot be served says why, and leaves no mark. */
static void
test_no_memory (void)
{
  CoopPolicy policy = plain (16 * K, COOP_EVICTOR_COOP);
  RefHost *host = host_new (32 * K, &policy);
  RefStorage *s[4], *out;
  s[0] = ref_make (host, 2 * K, 10, 0);
  s[1] = ref_host_constant (host, 3 * K, COOP_KIND_OTHER, 1);
  s[2] = ref_make (host, K, 10, 0);
  s[3] = ref_make (host, 2 * K, 10, 0);
  coop_engine_pin (host->engine, s[3]->tensor, COOP_PIN_ESCAPED);
  RefOp op = { .input = { s[0] }, .use = { COOP_USE_READ }, .n_inputs = 1, .name = 5,
               .n_outputs = 1, .out_bytes = { 9 * K }, .workspace = 512 };
  g_assert_false (ref_host_run (host, &op, &out));
  g_assert_cmpuint (host->oom.asked, ==, 9 * K);
  g_assert_cmpuint (host->oom.free, ==, 16 * K - 8 * K - 512);
  g_assert_cmpuint (host->oom.largest, ==, 8 * K - 512);
  g_assert_cmpuint (host->oom.evictable, ==, K);
  g_assert_cmpuint (host->oom.unclaimed, ==, 512);
  g_assert_cmpuint (host->oom.budget, ==, 16 * K);
  g_assert_cmpuint (host->oom.pinned[COOP_PIN_OPERATOR], ==, 2 * K);
  g_assert_cmpuint (host->oom.pinned[COOP_PIN_CONSTANT], ==, 3 * K);
  g_assert_cmpuint (host->oom.pinned[COOP_PIN_ESCAPED], ==, 2 * K);
  g_assert_cmpuint (host->oom.advice, >=, 17 * K + 512);
  g_assert_cmpuint (ref_host_count (host, COOP_EVENT_OOM), ==, 1);
  const void *body;
  const CoopEvent *ev = ref_host_event (host, COOP_EVENT_SEARCH, 0, &body);
  g_assert_cmpuint (ev->u.search.lo, ==, COOP_NO_ADDR);
  g_assert_true (isnan (((const CoopSearchBody *) body)->cost));
  for (unsigned i = 0; i < 4; i++)
    g_assert_cmpuint (s[i]->tensor->pins, ==, 0);
  /* evictor none searches nothing */
  coop_policy_preset (&policy, COOP_EVICTOR_NONE);
  coop_engine_set_policy (host->engine, &policy, COOP_SOURCE_API, 1);
  unsigned searches = ref_host_count (host, COOP_EVENT_SEARCH);
  g_assert_false (ref_host_run (host, &op, &out));
  g_assert_cmpuint (ref_host_count (host, COOP_EVENT_SEARCH), ==, searches);
  drop_all (host, 4, s);
}

/* What victims free is kept for the request: another one in between does not get it. */
static void
test_reservation (void)
{
  static const unsigned size_cost[][2] = { { 4, 1 }, { 4, 2 }, { 4, 9 }, { 4, 9 } };
  CoopPolicy policy = plain (16 * K, COOP_EVICTOR_COOP);
  RefHost *host = host_new (16 * K, &policy);
  RefStorage *s[4];
  fill (host, 4, size_cost, s);
  CoopRequest first = { .bytes = 8 * K }, second = { .bytes = 512 };
  g_assert_cmpint (coop_engine_alloc (host->engine, &first), ==, COOP_EVICT);
  g_assert_cmpuint (first.n_victims, ==, 2);
  /* chosen is chosen: another request takes the next best, and gives it back */
  g_assert_cmpint (coop_engine_alloc (host->engine, &second), ==, COOP_EVICT);
  g_assert_cmpuint (second.n_victims, ==, 1);
  g_assert_true (second.victims[0] == s[2]->tensor);
  coop_engine_cancel (host->engine, &second);
  for (unsigned i = 0; i < 2; i++)
    {
      g_assert_true (first.victims[i] == s[i]->tensor);
      g_assert_cmpuint (first.victims[i]->chosen, ==, 1);
      s[i]->addr = COOP_NO_ADDR;
      coop_engine_evicted (host->engine, first.victims[i]);
    }
  memset (host->memory, 0xdd, 8 * K);
  /* 8 KiB are free, but spoken for: the second request must evict [2] */
  g_assert_cmpint (coop_engine_alloc (host->engine, &second), ==, COOP_EVICT);
  g_assert_cmpuint (second.n_victims, ==, 1);
  g_assert_true (second.victims[0] == s[2]->tensor);
  coop_engine_cancel (host->engine, &second);
  g_assert_cmpuint (s[2]->tensor->chosen, ==, 0);
  ref_host_verify (host);
  g_assert_cmpint (coop_engine_alloc (host->engine, &first), ==, COOP_OK);
  g_assert_cmpuint (first.addr, ==, 0);
  g_assert_true (coop_engine_free (host->engine, first.addr));
  drop_all (host, 4, s);
}

/* A victim may be let go by the user, or refused by the host, between choice and eviction. */
static void
test_victim_changes (void)
{
  static const unsigned size_cost[][2] = { { 4, 1 }, { 4, 2 }, { 4, 9 } };
  CoopPolicy policy = plain (12 * K, COOP_EVICTOR_COOP);
  RefHost *host = host_new (12 * K, &policy);
  RefStorage *s[3];
  fill (host, 3, size_cost, s);
  CoopRequest req = { .bytes = 8 * K };
  g_assert_cmpint (coop_engine_alloc (host->engine, &req), ==, COOP_EVICT);
  CoopTensor *gone = req.victims[0];
  ref_host_drop (host, s[0]);
  g_assert_cmpuint (gone->addr, ==, COOP_NO_ADDR);
  coop_engine_evicted (host->engine, gone);
  coop_engine_evict_failed (host->engine, req.victims[1], COOP_PIN_UNMANAGED);
  /* [1] is pinned for good: only [2] is left, and no window is large enough */
  g_assert_cmpint (coop_engine_alloc (host->engine, &req), ==, COOP_NO_MEMORY);
  g_assert_cmpuint (req.oom.pinned[COOP_PIN_UNMANAGED], ==, 4 * K);
  ref_host_actions (host);
  ref_host_verify (host);
  drop_all (host, 2, s + 1);
}

/* Mean of free bytes / budget over the searches, before the block is handed out. */
static void
test_fragmentation (void)
{
  static const unsigned size_cost[][2] = { { 4, 1 }, { 2, 90 }, { 4, 5 }, { 4, 99 }, { 2, 99 } };
  CoopPolicy policy = plain (16 * K, COOP_EVICTOR_COOP);
  CoopTotals totals;
  RefHost *host = host_new (16 * K, &policy);
  RefStorage *s[6];
  fill (host, 5, size_cost, s);
  ref_host_drop (host, s[1]);
  s[1] = ref_make (host, 4 * K, 1, 0);
  coop_engine_totals (host->engine, &totals);
  g_assert_cmpuint (totals.searches, ==, 1);
  g_assert_cmpfloat (totals.fragmentation, ==, 2.0 / 16);
  g_assert_cmpuint (totals.evictions, ==, 1);
  g_assert_cmpuint (totals.evicted, ==, 4 * K);
  g_assert_cmpuint (totals.evicted_bytes, ==, 4 * K);
  g_assert_cmpuint (totals.live, ==, 14 * K);
  g_assert_cmpuint (totals.free, ==, 2 * K);
  g_assert_cmpuint (totals.peak, ==, 16 * K);
  g_assert_cmpuint (totals.budget, ==, 16 * K);
  /* one more, with 2 KiB less free */
  RefStorage *more = ref_make (host, 2 * K, 99, 0);
  g_assert_true (ref_host_read (host, s[0]));
  coop_engine_totals (host->engine, &totals);
  g_assert_cmpuint (totals.searches, ==, 2);
  g_assert_cmpfloat (totals.fragmentation, ==, (2.0 / 16 + 0) / 2);
  ref_host_drop (host, more);
  drop_all (host, 5, s);
}

static RefStorage *
make_class (RefHost *host, uint64_t name, CoopOpClass op_class, uint64_t bytes, uint64_t cost)
{
  RefOp op = { .name = name, .cost = cost, .op_class = op_class, .n_outputs = 1,
               .out_bytes = { bytes } };
  RefStorage *out = NULL;
  g_assert_true (ref_host_run (host, &op, &out));
  return out;
}

/* Two groups: expensive from the low end, cheap from the high end of the budget; what was measured
 * overrules the class. */
static void
test_groups (void)
{
  CoopPolicy policy = plain (32 * K, COOP_EVICTOR_COOP);
  policy.v[COOP_PARAM_GROUPS].i = 2;
  policy.v[COOP_PARAM_DENSITY].d = 0.5;
  RefHost *host = host_new (64 * K, &policy);
  RefStorage *s[7];
  s[0] = make_class (host, 11, COOP_CLASS_EXPENSIVE, 2 * K, 2 * K); /* density 1 */
  s[1] = make_class (host, 12, COOP_CLASS_CHEAP, 2 * K, 2);
  s[2] = make_class (host, 11, COOP_CLASS_CHEAP, 2 * K, 2 * K); /* measured: expensive */
  s[3] = make_class (host, 12, COOP_CLASS_EXPENSIVE, 2 * K, 2); /* measured: cheap */
  s[4] = make_class (host, 13, COOP_CLASS_CHEAP, 2 * K, K);     /* density is exactly 0.5 */
  s[5] = make_class (host, 13, COOP_CLASS_CHEAP, 2 * K, K);
  s[6] = ref_host_constant (host, 2 * K, COOP_KIND_OTHER, 1);   /* no operator: cheap */
  static const unsigned want[] = { 0, 30, 2, 28, 26, 4, 24 };
  for (unsigned i = 0; i < 7; i++)
    g_assert_cmpuint (s[i]->addr, ==, want[i] * K);
  drop_all (host, 7, s);
}

/* Small blocks live below a line that windows never cross, and spill over when it is full. */
static void
test_small (void)
{
  const uint64_t budget = 8u << 20, area = budget / 64;
  CoopPolicy policy = plain (budget, COOP_EVICTOR_COOP);
  policy.v[COOP_PARAM_SMALL].i = 10 * K;
  RefHost *host = host_new (budget, &policy);
  RefStorage *s[20];
  s[0] = ref_make (host, 10 * K + 1, 1, 0);
  g_assert_cmpuint (s[0]->addr, ==, area);
  for (unsigned i = 1; i < 14; i++)
    s[i] = ref_make (host, 10 * K, 1, 0);
  for (unsigned i = 1; i < 13; i++)
    g_assert_cmpuint (s[i]->addr, ==, (i - 1) * 10 * K);
  g_assert_cmpuint (s[13]->addr, >=, area);
  s[14] = ref_make (host, budget - area, 1, 0);
  for (unsigned i = 1; i < 13; i++)
    g_assert_cmpuint (s[i]->addr, !=, COOP_NO_ADDR);
  g_assert_cmpuint (s[0]->addr, ==, COOP_NO_ADDR);
  g_assert_cmpuint (s[13]->addr, ==, COOP_NO_ADDR);
  drop_all (host, 15, s);
}

static void
set_budget (RefHost *host, uint64_t budget)
{
  CoopPolicy policy = *coop_engine_policy (host->engine);
  policy.v[COOP_PARAM_BUDGET].i = (int64_t) budget;
  coop_engine_set_policy (host->engine, &policy, COOP_SOURCE_SLIDER, 1);
  ref_host_actions (host);
  ref_host_verify (host);
}

static void
test_budget_moves (void)
{
  static const unsigned size_cost[][2] = { { 4, 1 }, { 4, 2 }, { 4, 9 }, { 4, 9 } };
  CoopPolicy policy = plain (16 * K, COOP_EVICTOR_COOP);
  CoopTotals totals;
  RefHost *host = host_new (64 * K, &policy);
  RefStorage *s[8];
  fill (host, 4, size_cost, s);
  set_budget (host, 24 * K);
  s[4] = ref_make (host, 8 * K, 1, 0);
  g_assert_cmpuint (s[4]->addr, ==, 16 * K);
  coop_engine_pin (host->engine, s[3]->tensor, COOP_PIN_USER);
  set_budget (host, 14 * K);
  /* [4] above the limit goes at the next request; [3] across it is pinned and waits for its free */
  s[5] = ref_make (host, 4 * K, 1, 0);
  char *seen = picture (s, 5);
  g_assert_cmpstr (seen, ==, "x...x");
  g_free (seen);
  g_assert_cmpuint (s[5]->addr, ==, 0);
  ref_host_drop (host, s[3]);
  coop_engine_totals (host->engine, &totals);
  g_assert_cmpuint (totals.free, ==, 2 * K);
  g_assert_cmpuint (totals.largest, ==, 2 * K);
  set_budget (host, 0);
  coop_engine_totals (host->engine, &totals);
  g_assert_cmpuint (totals.free, ==, 52 * K);
  RefStorage *rest[] = { s[0], s[1], s[2], s[4], s[5] };
  drop_all (host, 5, rest);
}

/* A budget that comes later makes no area of small blocks where larger ones lie: windows must be able
 * to evict those. */
static void
test_small_comes_later (void)
{
  const uint64_t budget = 8u << 20;
  CoopPolicy policy = plain (0, COOP_EVICTOR_COOP);
  RefHost *host = host_new (budget, &policy);
  RefStorage *s[3];
  s[0] = ref_make (host, 20 * K, 1, 0);
  g_assert_cmpuint (s[0]->addr, ==, 0);
  set_budget (host, budget);
  s[1] = ref_make (host, K, 1, 0);
  s[2] = ref_make (host, budget, 1, 0);
  g_assert_cmpuint (s[0]->addr, ==, COOP_NO_ADDR);
  g_assert_cmpuint (s[1]->addr, ==, COOP_NO_ADDR);
  drop_all (host, 3, s);
}

/* The same program twice gives the same events, bit for bit. */
static void
test_repeats (void)
{
  GArray *seen[2];
  for (int run = 0; run < 2; run++)
    {
      CoopPolicy policy = plain (24 * K, COOP_EVICTOR_COOP);
      policy.v[COOP_PARAM_STALENESS_EXPONENT].d = 1;
      policy.v[COOP_PARAM_GROUPS].i = 2;
      RefHost *host = host_new (24 * K, &policy);
      RefStorage *s[30];
      s[0] = ref_make (host, K, 5, 0);
      for (unsigned i = 1; i < 30; i++)
        s[i] = ref_make (host, (1 + i * 7 % 4) * K, i * 31 % 17, 1, s[i * 5 % i]);
      for (unsigned i = 0; i < 30; i++)
        ref_host_drop (host, s[i]);
      seen[run] = g_array_ref (host->events);
      ref_host_free (host);
    }
  g_assert_cmpuint (seen[0]->len, >, 100);
  g_assert_cmpmem (seen[0]->data, seen[0]->len * sizeof (CoopEvent), seen[1]->data,
                   seen[1]->len * sizeof (CoopEvent));
  g_array_unref (seen[0]);
  g_array_unref (seen[1]);
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  g_test_add_func ("/core/memory/start", test_start);
  g_test_add_func ("/core/memory/best-fit", test_best_fit);
  g_test_add_func ("/core/window/cheapest", test_window);
  g_test_add_func ("/core/window/sum", test_window_is_a_sum);
  g_test_add_func ("/core/window/top", test_window_at_the_top);
  g_test_add_func ("/core/window/infinite", test_window_infinite);
  g_test_add_func ("/core/window/before", test_window_before);
  g_test_add_func ("/core/chain/once", test_chain_once);
  g_test_add_func ("/core/single/order", test_single);
  g_test_add_func ("/core/single/lru", test_lru);
  g_test_add_func ("/core/memory/no-memory", test_no_memory);
  g_test_add_func ("/core/memory/reservation", test_reservation);
  g_test_add_func ("/core/memory/victim-changes", test_victim_changes);
  g_test_add_func ("/core/memory/fragmentation", test_fragmentation);
  g_test_add_func ("/core/memory/groups", test_groups);
  g_test_add_func ("/core/memory/small", test_small);
  g_test_add_func ("/core/memory/budget-moves", test_budget_moves);
  g_test_add_func ("/core/memory/small-comes-later", test_small_comes_later);
  g_test_add_func ("/core/memory/repeats", test_repeats);
  return g_test_run ();
}
