/* SPDX-License-Identifier: Apache-2.0 */
/* Requests, placement, reservations, limits and totals, by cases made by hand. */
#include "core-cases.h"

#include <math.h>

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
take_source (void *user, CoopEvent *ev, const void *body)
{
  if (ev->kind == COOP_EVENT_POLICY)
    ((uint32_t *) user)[ev->u.policy.param] = ev->u.policy.source;
}

/* Each first value says where it came from. */
static void
test_sources (void)
{
  uint32_t source[COOP_N_PARAMS], seen[COOP_N_PARAMS] = { 0 };
  for (unsigned i = 0; i < COOP_N_PARAMS; i++)
    source[i] = i % COOP_N_SOURCES;
  CoopEngineOptions options = { .capacity = 64 * K, .source = source, .sink = { take_source, seen } };
  coop_policy_init (&options.policy);
  coop_engine_free_all (coop_engine_new (&options));
  g_assert_cmpmem (seen, sizeof seen, source, sizeof source);
  options.source = NULL;
  coop_engine_free_all (coop_engine_new (&options));
  for (unsigned i = 0; i < COOP_N_PARAMS; i++)
    g_assert_cmpuint (seen[i], ==, COOP_SOURCE_INITIAL);
}

static void
test_best_fit (void)
{
  static const unsigned size_cost[][2] = { { 4, 1 }, { 1, 1 }, { 2, 1 }, { 1, 1 }, { 2, 1 }, { 1, 1 } };
  CoopPolicy policy = plain (16 * K, COOP_EVICTOR_NONE);
  RefHost *host = host_under (16 * K, &policy);
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

/* A request that cannot be served says why, and leaves no mark. */
static void
test_no_memory (void)
{
  CoopPolicy policy = plain (16 * K, COOP_EVICTOR_COOP);
  RefHost *host = host_under (32 * K, &policy);
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

/* A try places what fits and else does nothing that shows; the same request goes on with alloc. */
static void
test_try (void)
{
  static const unsigned size_cost[][2] = { { 4, 1 }, { 4, 2 } };
  CoopPolicy policy = plain (12 * K, COOP_EVICTOR_COOP);
  RefHost *host = host_under (24 * K, &policy);
  RefStorage *s[2];
  fill (host, 2, size_cost, s);
  CoopRequest fits = { .bytes = 4 * K }, evicts = { .bytes = 4 * K }, never = { .bytes = 13 * K };
  g_assert_true (coop_engine_try (host->engine, &fits));
  g_assert_cmpuint (fits.addr, ==, 8 * K);
  CoopTotals before = totals (host);
  guint events = host->events->len;
  g_assert_false (coop_engine_try (host->engine, &evicts));
  g_assert_false (coop_engine_try (host->engine, &never));
  CoopTotals after = totals (host);
  g_assert_cmpuint (host->events->len, ==, events);
  g_assert_true (memcmp (&before, &after, sizeof before) == 0);
  g_assert_cmpint (coop_engine_alloc (host->engine, &evicts), ==, COOP_EVICT);
  g_assert_true (evicts.n_victims == 1 && evicts.victims[0] == s[0]->tensor);
  coop_engine_cancel (host->engine, &evicts);
  g_assert_true (coop_engine_free (host->engine, fits.addr));
  /* 4 KiB are free, but [1] lies above a limit that came down and must go first */
  policy.v[COOP_PARAM_BUDGET].i = 6 * K;
  coop_engine_set_policy (host->engine, &policy, COOP_SOURCE_API, 1);
  CoopRequest small = { .bytes = 512 };
  ref_host_drop (host, s[0]);
  g_assert_false (coop_engine_try (host->engine, &small));
  g_assert_cmpint (coop_engine_alloc (host->engine, &small), ==, COOP_EVICT);
  g_assert_true (small.n_victims == 1 && small.victims[0] == s[1]->tensor);
  coop_engine_cancel (host->engine, &small);
  drop_all (host, 1, s + 1);
}

/* What victims free is kept for the request: another one in between does not get it. */
static void
test_reservation (void)
{
  static const unsigned size_cost[][2] = { { 4, 1 }, { 4, 2 }, { 4, 9 }, { 4, 9 } };
  CoopPolicy policy = plain (16 * K, COOP_EVICTOR_COOP);
  RefHost *host = host_under (16 * K, &policy);
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
  RefHost *host = host_under (12 * K, &policy);
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
  RefHost *host = host_under (16 * K, &policy);
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

/* In KiB. Drops all. */
static void
lie_at (RefHost *host, unsigned n, RefStorage **s, const unsigned *want)
{
  for (unsigned i = 0; i < n; i++)
    g_assert_cmpuint (s[i]->addr, ==, want[i] * K);
  drop_all (host, n, s);
}

/* Two groups: expensive from the low end, cheap from the high end of the budget; what was measured
 * overrules the class. */
static void
test_groups (void)
{
  CoopPolicy policy = plain (32 * K, COOP_EVICTOR_COOP);
  policy.v[COOP_PARAM_GROUPS].i = 2;
  policy.v[COOP_PARAM_DENSITY].d = 0.5;
  RefHost *host = host_under (64 * K, &policy);
  RefStorage *s[7];
  s[0] = make_class (host, 11, COOP_CLASS_EXPENSIVE, 2 * K, 2 * K); /* density 1 */
  s[1] = make_class (host, 12, COOP_CLASS_CHEAP, 2 * K, 2);
  s[2] = make_class (host, 11, COOP_CLASS_CHEAP, 2 * K, 2 * K); /* measured: expensive */
  s[3] = make_class (host, 12, COOP_CLASS_EXPENSIVE, 2 * K, 2); /* measured: cheap */
  s[4] = make_class (host, 13, COOP_CLASS_CHEAP, 2 * K, K);     /* density is exactly 0.5 */
  s[5] = make_class (host, 13, COOP_CLASS_CHEAP, 2 * K, K);
  s[6] = ref_host_constant (host, 2 * K, COOP_KIND_OTHER, 1);   /* no operator: cheap */
  static const unsigned want[] = { 0, 30, 2, 28, 26, 4, 24 };
  lie_at (host, 7, s, want);
}

/* Four groups: two regions of 16 KiB; in the second the expensive end is on the right. A class stays
 * where it was until that is full, and a block may reach out of its region by half. */
static void
test_four_groups (void)
{
  CoopPolicy policy = plain (32 * K, COOP_EVICTOR_COOP);
  policy.v[COOP_PARAM_GROUPS].i = 5; /* as 4 */
  policy.v[COOP_PARAM_DENSITY].d = 0;
  RefHost *host = host_under (64 * K, &policy);
  RefStorage *s[8];
  s[0] = make_class (host, 11, COOP_CLASS_EXPENSIVE, 6 * K, 1);
  s[1] = make_class (host, 12, COOP_CLASS_CHEAP, 6 * K, 1);
  s[2] = make_class (host, 11, COOP_CLASS_EXPENSIVE, 3 * K, 1);
  s[3] = make_class (host, 11, COOP_CLASS_EXPENSIVE, 4 * K, 1); /* 1 KiB is left: on to the second */
  s[4] = make_class (host, 12, COOP_CLASS_CHEAP, 4 * K, 1);     /* the left end of the second */
  s[5] = make_class (host, 11, COOP_CLASS_EXPENSIVE, K, 1);     /* stays there, though the first has room */
  s[6] = make_class (host, 12, COOP_CLASS_CHEAP, 2 * K, 1);
  s[7] = make_class (host, 12, COOP_CLASS_CHEAP, 5 * K, 1);
  static const unsigned want[] = { 0, 10, 6, 28, 16, 27, 20, 22 };
  lie_at (host, 8, s, want);
}

/* Of two blocks at the border of two regions, one reaches over it by half and one would by more. */
static void
test_groups_border (void)
{
  CoopPolicy policy = plain (16 * K, COOP_EVICTOR_COOP);
  policy.v[COOP_PARAM_GROUPS].i = 4;
  policy.v[COOP_PARAM_DENSITY].d = 0;
  RefHost *host = host_under (64 * K, &policy);
  RefStorage *s[3];
  s[0] = make_class (host, 11, COOP_CLASS_EXPENSIVE, 6 * K, 1);
  s[1] = make_class (host, 11, COOP_CLASS_EXPENSIVE, 4 * K, 1); /* [6, 10): 2 of 4 KiB inside [0, 8) */
  s[2] = make_class (host, 11, COOP_CLASS_EXPENSIVE, 2 * K, 1); /* the right end of the second region */
  static const unsigned want[] = { 0, 6, 14 };
  lie_at (host, 3, s, want);
}

/* Small blocks live below a line that windows never cross, and spill over when it is full. */
static void
test_small (void)
{
  const uint64_t budget = 8u << 20, area = budget / 64;
  CoopPolicy policy = plain (budget, COOP_EVICTOR_COOP);
  policy.v[COOP_PARAM_SMALL].i = 10 * K;
  RefHost *host = host_under (budget, &policy);
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
  RefHost *host = host_under (64 * K, &policy);
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
  RefHost *host = host_under (budget, &policy);
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
      RefHost *host = host_under (24 * K, &policy);
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
  g_test_add_func ("/core/memory/sources", test_sources);
  g_test_add_func ("/core/memory/best-fit", test_best_fit);
  g_test_add_func ("/core/memory/no-memory", test_no_memory);
  g_test_add_func ("/core/memory/try", test_try);
  g_test_add_func ("/core/memory/reservation", test_reservation);
  g_test_add_func ("/core/memory/victim-changes", test_victim_changes);
  g_test_add_func ("/core/memory/fragmentation", test_fragmentation);
  g_test_add_func ("/core/memory/groups", test_groups);
  g_test_add_func ("/core/memory/groups/four", test_four_groups);
  g_test_add_func ("/core/memory/groups/border", test_groups_border);
  g_test_add_func ("/core/memory/small", test_small);
  g_test_add_func ("/core/memory/budget-moves", test_budget_moves);
  g_test_add_func ("/core/memory/small-comes-later", test_small_comes_later);
  g_test_add_func ("/core/memory/repeats", test_repeats);
  return g_test_run ();
}
