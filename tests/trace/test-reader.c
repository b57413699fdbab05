/* SPDX-License-Identifier: Apache-2.0 */
/* The reader: usage against the events themselves, state and floor of a run made by hand, queries. */
#include <sqlite3.h>

#include "trace-support.h"

/* ---- usage ---- */

typedef struct {
  guint64 ts, used, largest, pinned;
  guint evictions, handovers;
} Sample;

static GArray *
samples_of (guint32 seed, guint64 n)
{
  GArray *samples = g_array_new (FALSE, FALSE, sizeof (Sample));
  CoopGen *gen = coop_gen_new (seed, BUDGET);
  CoopModel *model = coop_model_new ();
  for (guint64 i = 0; i < n; i++)
    {
      const void *body;
      const CoopEvent *ev = coop_gen_next (gen, &body);
      coop_model_apply (model, ev, body, NULL);
      const CoopModelTotals *t = coop_model_totals (model);
      Sample s = { ev->ts, t->used, t->largest, t->pinned, ev->kind == COOP_EVENT_EVICT, ev->kind == COOP_EVENT_HANDOVER };
      g_array_append_val (samples, s);
    }
  coop_model_free (model);
  coop_gen_free (gen);
  return samples;
}

/* Every bucket, by brute force: what was in force when it began, and what happened in it. */
static void
compare_usage (const GArray *usage, const GArray *samples, guint64 last_ts)
{
  /* The run has an end that the samples do not have: the last bucket only says where the one before it ends. */
  for (guint i = 0; i + 1 < usage->len; i++)
    {
      const CoopUsage *u = &g_array_index (usage, CoopUsage, i);
      guint64 end = g_array_index (usage, CoopUsage, i + 1).bucket_ts;
      Sample before = { 0 };
      guint64 lo = G_MAXUINT64, hi = 0, largest = G_MAXUINT64, pinned = 0;
      guint evictions = 0, handovers = 0;
      for (guint k = 0; k < samples->len; k++)
        {
          const Sample *s = &g_array_index (samples, Sample, k);
          if (s->ts < u->bucket_ts)
            before = *s;
          if (s->ts < u->bucket_ts || s->ts >= end || s->ts > last_ts)
            continue;
          lo = MIN (lo, s->used);
          hi = MAX (hi, s->used);
          largest = MIN (largest, s->largest);
          pinned = MAX (pinned, s->pinned);
          evictions += s->evictions;
          handovers += s->handovers;
        }
      g_assert_cmpuint (u->used_min, ==, MIN (lo, before.used));
      g_assert_cmpuint (u->used_max, ==, MAX (hi, before.used));
      g_assert_cmpuint (u->largest_min, ==, MIN (largest, before.largest));
      g_assert_cmpuint (u->pinned_max, ==, MAX (pinned, before.pinned));
      g_assert_cmpuint (u->evictions, ==, evictions);
      g_assert_cmpuint (u->handovers, ==, handovers);
    }
}

static void
test_usage (void)
{
  Place place = place_new ();
  GError *error = NULL;
  g_autoptr (GArray) samples = NULL;
  guint64 n;
  record_file (place.path, 13, 20000);
  CoopReader *reader = coop_reader_open (place.path, &error);
  n = coop_reader_last_seq (reader) + 1;
  samples = samples_of (13, 20000);
  guint64 end = g_array_index (samples, Sample, samples->len - 1).ts;
  g_assert_cmpuint (n, >, 20000);
  g_assert_cmpuint (end, >, 20u << 20);
  const struct { guint64 from, to; guint n; } cases[] = {
    { 0, end, 4 }, { 0, end, 10 }, { 0, end, 300 }, { end / 3, end / 2, 3 }, { end / 3, end / 2, 50 },
    { end / 2, end / 2 + 10000, 20 }, { end - 2000, end, 1 }, { 7, 7, 5 },
  };
  for (guint i = 0; i < G_N_ELEMENTS (cases); i++)
    {
      g_autoptr (GArray) usage = coop_reader_usage (reader, cases[i].from, cases[i].to, cases[i].n, &error);
      g_assert_no_error (error);
      g_assert_cmpuint (usage->len, >=, cases[i].n > 1 && cases[i].to > cases[i].from ? cases[i].n / 2 : 1);
      g_assert_cmpuint (usage->len, <=, cases[i].n * 2 + 2);
      compare_usage (usage, samples, end);
    }
  g_autoptr (GArray) beyond = coop_reader_usage (reader, end * 100, end * 200, 10, &error);
  g_assert_cmpuint (beyond->len, ==, 0);
  coop_reader_free (reader);
  place_clear (&place);
}

/* ---- state and floor ---- */

typedef struct {
  CoopModel *model;
  CoopStore *store;
  guint64 seq;
} Hand;

static void
put (Hand *hand, CoopEvent ev, const void *body, gsize bytes)
{
  guint8 records[128] = { 0 };
  if (bytes > 0)
    memcpy (records, body, bytes);
  ev.more = (bytes + 63) / 64;
  ev.seq = hand->seq++;
  ev.ts = 1000 * ev.seq;
  g_assert_cmpint (coop_model_apply (hand->model, &ev, records, NULL), ==, COOP_FAULT_NONE);
  coop_store_append (hand->store, hand->model, &ev, records);
}
#define PUT(hand, ...) put (hand, (CoopEvent) { __VA_ARGS__ }, NULL, 0)

static Hand
hand_new (const char *path)
{
  Hand hand = { coop_model_new (), coop_store_create (path, NULL, NULL), 0 };
  CoopPolicy policy;
  coop_policy_init (&policy);
  PUT (&hand, .kind = COOP_EVENT_POOL, .u.pool = { 1, 0, 1 << 20 });
  PUT (&hand, .kind = COOP_EVENT_POLICY, .u.policy = { .param = COOP_PARAM_EVICTOR, .new_bits = COOP_EVICTOR_LRU });
  return hand;
}

static CoopTraceInfo
hand_info (Hand *hand, const char *path)
{
  CoopTraceInfo info;
  GError *error = NULL;
  coop_store_close (hand->store, COOP_RUN_ENDED, 0, &error);
  g_assert_no_error (error);
  coop_model_free (hand->model);
  CoopReader *reader = coop_reader_open (path, &error);
  coop_reader_info (reader, &info, &error);
  g_assert_no_error (error);
  coop_reader_free (reader);
  g_assert_cmpstr (info.evictor, ==, "lru");
  coop_trace_info_clear (&info);
  return info;
}

static void
alloc (Hand *hand, guint64 block, guint64 addr, guint64 bytes, guint64 op)
{
  PUT (hand, .kind = COOP_EVENT_ALLOC, .u.alloc = { block, addr, bytes, bytes, op });
}

static void
tensor (Hand *hand, guint64 id, guint64 storage, guint64 block, guint64 bytes, guint64 op, guint kind, guint pin)
{
  CoopTensorBody body = { .kind = kind, .pin = pin };
  put (hand, (CoopEvent) { .kind = COOP_EVENT_TENSOR, .u.tensor = { id, storage, op, bytes, block } }, &body, sizeof body);
}

static void
begin (Hand *hand, guint64 op, guint64 a, guint64 b)
{
  guint64 ids[] = { a, b };
  put (hand, (CoopEvent) { .kind = COOP_EVENT_OP_BEGIN, .u.op_begin = { .id = op, .n_inputs = b != 0 ? 2 : 1 } }, ids, sizeof ids);
}

static void
finish (Hand *hand, guint64 op, guint64 output, guint64 workspace)
{
  put (hand, (CoopEvent) { .kind = COOP_EVENT_OP_END, .u.op_end = { .id = op, .cost = 5, .duration = 5, .workspace = workspace,
                                                                    .n_outputs = output != 0 } }, &output, 8);
}

/* One step: parameter 1 (4096 bytes), a batch (tensor 2 + 10 i, 8192 bytes), an activation of 2048
 * bytes made of both with 1024 bytes of workspace, a gradient of the parameter that is kept, and an
 * in-place update of it at `parameter`. */
static void
hand_step (Hand *hand, guint64 i, gboolean evicted_over_step)
{
  guint64 base = 10 * i, batch = base + 2, activation = base + 3, at = 100000 * i;
  alloc (hand, batch, at + 8192, 8192, 0);
  tensor (hand, batch, batch, batch, 8192, 0, COOP_KIND_OTHER, COOP_PIN_CONSTANT);
  begin (hand, base + 1, 1, batch);
  alloc (hand, activation, at + 16384, 2048, base + 1);
  tensor (hand, activation, activation, activation, 2048, base + 1, COOP_KIND_ACTIVATION, COOP_PIN_NONE);
  finish (hand, base + 1, activation, 1024);
  if (evicted_over_step)
    {
      CoopEvictBody why = { .h = 1 };
      put (hand, (CoopEvent) { .kind = COOP_EVENT_EVICT, .u.evict = { activation, at + 16384, 2048, activation, 0 } }, &why, sizeof why);
    }
  PUT (hand, .kind = COOP_EVENT_STEP, .u.step = { i });
  begin (hand, base + 2, 1, 0);
  PUT (hand, .kind = COOP_EVENT_WRITE, .u.write = { 1, 1, 1, base + 2 });
  finish (hand, base + 2, 1, 0);
  if (!evicted_over_step)
    {
      PUT (hand, .kind = COOP_EVENT_RELEASE, .u.release = { activation, activation });
      PUT (hand, .kind = COOP_EVENT_FREE, .u.free = { activation, at + 16384, 2048, activation, 0 });
    }
  PUT (hand, .kind = COOP_EVENT_RELEASE, .u.release = { batch, batch });
  PUT (hand, .kind = COOP_EVENT_FREE, .u.free = { batch, at + 8192, 8192, batch, 0 });
}

/* What is reported is what the program ran under, not what was set to let it end. */
static void
test_budget (void)
{
  Place place = place_new ();
  Hand hand = hand_new (place.path);
  PUT (&hand, .kind = COOP_EVENT_POLICY, .u.policy = { .param = COOP_PARAM_BUDGET, .new_bits = 1 << 19 });
  PUT (&hand, .kind = COOP_EVENT_POLICY, .u.policy = { .param = COOP_PARAM_BUDGET, .new_bits = 1 << 18 });
  PUT (&hand, .kind = COOP_EVENT_OP_BEGIN, .u.op_begin = { .id = 1 });
  finish (&hand, 1, 0, 0);
  PUT (&hand, .kind = COOP_EVENT_POLICY, .u.policy = { .param = COOP_PARAM_BUDGET, .new_bits = 0 });
  PUT (&hand, .kind = COOP_EVENT_OP_BEGIN, .u.op_begin = { .id = 2, .replay_of = 1 });
  finish (&hand, 2, 0, 0);
  CoopTraceInfo info = hand_info (&hand, place.path);
  g_assert_cmpuint (info.budget, ==, 1 << 18);
  place_clear (&place);
}

static void
start_parameter (Hand *hand)
{
  alloc (hand, 1, 0, 4096, 0);
  tensor (hand, 1, 1, 1, 4000, 0, COOP_KIND_STATE, COOP_PIN_CONSTANT);
}

static void
test_state_and_floor (void)
{
  Place place = place_new ();
  Hand hand = hand_new (place.path);
  start_parameter (&hand);
  for (guint64 i = 1; i <= 3; i++)
    hand_step (&hand, i, FALSE);
  CoopTraceInfo info = hand_info (&hand, place.path);
  g_assert_cmpuint (info.state_bytes, ==, 4096);
  /* parameter (state), batch, activation, workspace */
  g_assert_cmpuint (info.floor_bytes, ==, 4096 + 8192 + 2048 + 1024);
  g_assert_cmpuint (info.peak, ==, 4096 + 8192 + 2048);
  g_assert_cmpuint (info.totals.step, ==, 3);
  place_clear (&place);
}

/* What is evicted and not let go between two steps survives: its bytes must be found again. */
static void
test_state_evicted (void)
{
  Place place = place_new ();
  Hand hand = hand_new (place.path);
  start_parameter (&hand);
  for (guint64 i = 1; i <= 3; i++)
    hand_step (&hand, i, TRUE);
  CoopTraceInfo info = hand_info (&hand, place.path);
  /* Activations 1 and 2 were there at step 2 and still are at step 3. */
  g_assert_cmpuint (info.state_bytes, ==, 4096 + 2 * 2048);
  g_assert_cmpuint (info.floor_bytes, ==, 4096 + 2 * 2048 + 8192 + 2048 + 1024);
  place_clear (&place);
}

/* In place: a new version of the same storage survives as the old one would, and counts once. */
static void
test_state_in_place (void)
{
  Place place = place_new ();
  Hand hand = hand_new (place.path);
  start_parameter (&hand);
  alloc (&hand, 2, 4096, 1024, 0);
  tensor (&hand, 2, 2, 2, 1024, 0, COOP_KIND_OTHER, COOP_PIN_NONE);
  PUT (&hand, .kind = COOP_EVENT_STEP, .u.step = { 1 });
  begin (&hand, 1, 2, 1);
  tensor (&hand, 3, 2, 2, 1024, 1, COOP_KIND_OTHER, COOP_PIN_NONE);
  PUT (&hand, .kind = COOP_EVENT_WRITE, .u.write = { 2, 3, 2, 1 });
  finish (&hand, 1, 3, 0);
  PUT (&hand, .kind = COOP_EVENT_STEP, .u.step = { 2 });
  CoopTraceInfo info = hand_info (&hand, place.path);
  g_assert_cmpuint (info.state_bytes, ==, 4096 + 1024);
  g_assert_cmpuint (info.floor_bytes, ==, 4096 + 1024);
  place_clear (&place);
}

/* Two gradients that die with their step: while the first parameter is updated, with 512 bytes of
 * workspace, both are there. Each step has its own. */
static void
test_floor_of_the_update (void)
{
  Place place = place_new ();
  Hand hand = hand_new (place.path);
  start_parameter (&hand);
  for (guint64 i = 1; i <= 3; i++)
    {
      guint64 a = 10 * i, b = a + 1, at = 100000 * i;
      alloc (&hand, a, at, 3072, 0);
      tensor (&hand, a, a, a, 3072, 0, COOP_KIND_GRADIENT, COOP_PIN_NONE);
      alloc (&hand, b, at + 4096, 2048, 0);
      tensor (&hand, b, b, b, 2048, 0, COOP_KIND_GRADIENT, COOP_PIN_NONE);
      PUT (&hand, .kind = COOP_EVENT_STEP, .u.step = { i });
      guint64 ids[] = { 1, a };
      put (&hand, (CoopEvent) { .kind = COOP_EVENT_OP_BEGIN, .u.op_begin = { .id = i, .n_inputs = 2, .step = i,
                                                                                 .phase = COOP_PHASE_OPTIMIZER } },
           ids, sizeof ids);
      PUT (&hand, .kind = COOP_EVENT_WRITE, .u.write = { 1, 1, 1, i });
      finish (&hand, i, 1, 512);
      for (guint64 g = a; g <= b; g++)
        {
          PUT (&hand, .kind = COOP_EVENT_RELEASE, .u.release = { g, g });
          PUT (&hand, .kind = COOP_EVENT_FREE, .u.free = { g, g == a ? at : at + 4096, g == a ? 3072 : 2048, g, 0 });
        }
    }
  CoopTraceInfo info = hand_info (&hand, place.path);
  g_assert_cmpuint (info.state_bytes, ==, 4096);
  g_assert_cmpuint (info.floor_bytes, ==, 4096 + 3072 + 2048 + 512);
  place_clear (&place);
}

static void
test_one_step (void)
{
  Place place = place_new ();
  Hand hand = hand_new (place.path);
  start_parameter (&hand);
  hand_step (&hand, 1, FALSE);
  CoopTraceInfo info = hand_info (&hand, place.path);
  g_assert_cmpuint (info.state_bytes, ==, 0);
  g_assert_cmpuint (info.floor_bytes, ==, 4096 + 8192 + 2048 + 1024);
  place_clear (&place);
}

/* ---- queries ---- */

static gboolean
take_text (gpointer user, int n, const char *const *names, const char *const *values, const int *types)
{
  GString *out = user;
  for (int i = 0; i < n; i++)
    g_string_append_printf (out, "%s%s", i > 0 ? "|" : "", values[i] != NULL ? values[i] : "NULL");
  g_string_append_c (out, '\n');
  return TRUE;
}

static char *
query (CoopReader *reader, const char *sql, GError **error)
{
  GString *out = g_string_new (NULL);
  if (!coop_reader_query (reader, sql, 2, take_text, out, error))
    g_string_assign (out, "failed");
  return g_string_free (out, FALSE);
}

static void
assert_query (CoopReader *reader, const char *sql, const char *expected)
{
  g_autoptr (GError) error = NULL;
  g_autofree char *text = query (reader, sql, &error);
  g_assert_no_error (error);
  g_assert_cmpstr (text, ==, expected);
}

static void
assert_denied (CoopReader *reader, const char *sql, const char *part)
{
  g_autoptr (GError) error = NULL;
  g_autofree char *text = query (reader, sql, &error);
  g_assert_cmpstr (text, ==, "failed");
  g_assert_error (error, COOP_TRACE_ERROR, COOP_TRACE_ERROR_QUERY);
  if (strstr (error->message, part) == NULL)
    g_error ("%s: \"%s\" does not say \"%s\"", sql, error->message, part);
}

static void
test_query (void)
{
  static const char *const views[] = {
    "v_event", "v_operator", "v_operator_input", "v_operator_output", "v_tensor", "v_block", "v_usage", "v_eviction",
    "v_evicted", "v_fragmentation", "v_policy",
  };
  Place place = place_new ();
  g_autofree char *out = g_build_filename (place.dir, "out.db", NULL);
  g_autofree char *attach = g_strdup_printf ("ATTACH '%s' AS other", out);
  g_autofree char *vacuum = g_strdup_printf ("VACUUM INTO '%s'", out);
  record_file (place.path, 14, 9000);
  CoopReader *reader = coop_reader_open (place.path, NULL);
  for (guint i = 0; i < G_N_ELEMENTS (views); i++)
    {
      g_autofree char *sql = g_strdup_printf ("SELECT count(*) > 0 FROM (SELECT * FROM %s LIMIT 5)", views[i]);
      assert_query (reader, sql, "1\n");
    }
  assert_query (reader, "SELECT count(*) = (SELECT count(*) FROM event WHERE kind = 40) FROM v_oom", "1\n");
  assert_query (reader, "SELECT param, new, source FROM v_policy WHERE param = 'evictor'", "evictor|coop|initial\n");
  assert_query (reader, "SELECT kind, bytes FROM v_event WHERE kind = 'segment'", "segment|655360\n");
  assert_query (reader, "SELECT DISTINCT line, func FROM v_operator WHERE file LIKE '%train.py' ORDER BY line",
                "18|forward\n19|forward\n");
  assert_query (reader, "SELECT sum (events) = (SELECT count(*) FROM event) FROM v_usage", "1\n");
  assert_query (reader, "SELECT count(*) FROM v_block b JOIN v_block c ON c.born_event < b.died_event"
                        " AND b.born_event < c.born_event AND c.addr < b.addr + b.bytes AND b.addr < c.addr + c.bytes",
                "0\n");
  assert_query (reader, "SELECT NULL, 1 ;  ", "NULL|1\n");
  assert_denied (reader, "DELETE FROM event", "only SELECT");
  assert_denied (reader, "CREATE TABLE x (y)", "only SELECT");
  assert_denied (reader, "PRAGMA user_version = 3", "only SELECT");
  assert_denied (reader, attach, "only SELECT");
  assert_denied (reader, vacuum, "only SELECT");
  assert_denied (reader, "SELECT load_extension ('x')", "authorized");
  assert_denied (reader, "SELECT 1; SELECT 2", "one statement");
  assert_denied (reader, "", "no statement");
  assert_denied (reader, "SELEC 1", "syntax");
  assert_denied (reader, "WITH RECURSIVE n (x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n) SELECT count(*) FROM n",
                 "stopped after 2 s");
  g_assert_false (g_file_test (out, G_FILE_TEST_EXISTS));
  coop_reader_free (reader);
  place_clear (&place);
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  g_test_add_func ("/reader/usage", test_usage);
  g_test_add_func ("/reader/state-and-floor", test_state_and_floor);
  g_test_add_func ("/reader/floor-of-the-update", test_floor_of_the_update);
  g_test_add_func ("/reader/state-evicted", test_state_evicted);
  g_test_add_func ("/reader/state-in-place", test_state_in_place);
  g_test_add_func ("/reader/one-step", test_one_step);
  g_test_add_func ("/reader/budget", test_budget);
  g_test_add_func ("/reader/query", test_query);
  return g_test_run ();
}
