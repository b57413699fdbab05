/* SPDX-License-Identifier: Apache-2.0 */
/* libcoop as a program sees it: whatever is dropped, moved and run again, bytes are what they would be
 * in plain memory. */
#include <coop.h>

#include <glib.h>
#include <string.h>

#define KIB 1024u

/* ---- a toy operator: fills what it writes from a hash of what it reads ---- */

typedef struct {
  guint64 seed;
  guint n_in, n_out;
  guint8 access[COOP_MOST];
} Toy;

typedef struct {
  gint runs, again;
  gboolean fail_again;   /* raise when run again */
  guint64 drift;         /* added to the seed when run again: other bits */
  gboolean slow;         /* takes its time, and leaves nonsense meanwhile where it may write */
} ToyUser;

static guint64
mix (guint64 h, const guint8 *data, gsize n)
{
  for (gsize i = 0; i < n; i++)
    h = (h ^ data[i]) * 0x100000001b3u;
  return h;
}

static void
fill (guint8 *data, gsize n, guint64 h)
{
  for (gsize i = 0; i < n; i++)
    {
      h = h * 6364136223846793005u + 1442695040888963407u;
      data[i] = (guint8) (h >> 56);
    }
}

static void
compute (const Toy *toy, guint64 seed, void *const *in, const gsize *in_bytes, void *const *out,
         const gsize *out_bytes)
{
  guint64 h = seed;
  for (guint i = 0; i < toy->n_in; i++)
    if (toy->access[i] != COOP_SCRATCH)
      h = mix (h, in[i], in_bytes[i]);
  for (guint i = 0; i < toy->n_out; i++)
    fill (out[i], out_bytes[i], h + i);
  for (guint i = 0; i < toy->n_in; i++)
    if (toy->access[i] != COOP_READ)
      fill (in[i], in_bytes[i], h + 100 + i);
}

static void
dawdle (const Toy *toy, const CoopWork *work)
{
  bool writes = toy->n_in > 0 && toy->access[0] == COOP_WRITE;
  void *before = writes ? g_memdup2 (work->in[0], work->in_bytes[0]) : NULL;
  if (writes)
    memset (work->in[0], 0x11, work->in_bytes[0]);
  g_usleep (500);
  if (writes)
    memcpy (work->in[0], before, work->in_bytes[0]);
  g_free (before);
}

static int
run_toy (const CoopWork *work)
{
  const Toy *toy = work->params;
  ToyUser *user = work->user;
  g_assert_cmpuint (work->params_bytes, ==, sizeof *toy);
  g_assert_cmpuint (work->n_in, ==, toy->n_in);
  g_assert_cmpuint (work->n_out, ==, toy->n_out);
  g_atomic_int_inc (work->again ? &user->again : &user->runs);
  if (work->again && user->fail_again)
    return 7;
  if (work->workspace != NULL)
    memset (work->workspace, 0xee, work->workspace_bytes);
  if (user->slow)
    dawdle (toy, work);
  compute (toy, toy->seed + (work->again ? user->drift : 0), work->in, work->in_bytes, work->out,
           work->out_bytes);
  return 0;
}

/* ---- a pool beside plain memory ---- */

typedef struct {
  CoopStorage *storage;
  guint8 *shadow;
  gsize bytes;
} Thing;

typedef struct {
  Coop *coop;
  const CoopOperator *toy, *once;
  ToyUser user;
  GArray *things;
} Fix;

static Fix *
fix_new (const char *const *policy, void *memory, gsize capacity)
{
  Fix *f = g_new0 (Fix, 1);
  char why[256] = "";
  CoopOptions options = { .memory = memory, .capacity = capacity, .policy = policy, .why = why,
                          .why_size = sizeof why };
  g_assert_cmpint (coop_new (&options, &f->coop), ==, COOP_DONE);
  f->toy = coop_operator (f->coop, &(CoopOperatorInfo) { "toy", run_toy, &f->user, false, false });
  f->once = coop_operator (f->coop, &(CoopOperatorInfo) { "once", run_toy, &f->user, true, true });
  f->things = g_array_new (FALSE, FALSE, sizeof (Thing));
  return f;
}

static Thing *
thing (Fix *f, guint i)
{
  return &g_array_index (f->things, Thing, i);
}

static void
forget (Fix *f, guint i)
{
  coop_drop (thing (f, i)->storage);
  g_free (thing (f, i)->shadow);
  g_array_remove_index_fast (f->things, i);
}

static void
fix_free (Fix *f)
{
  CoopStats stats;
  while (f->things->len > 0)
    forget (f, f->things->len - 1);
  coop_stats (f->coop, &stats);
  g_assert_cmpuint (stats.live, ==, 0);
  g_assert_cmpuint (stats.evicted, ==, 0);
  g_assert_cmpuint (stats.storages, ==, 0);
  g_assert_null (coop_check (f->coop));
  coop_destroy (f->coop);
  g_array_unref (f->things);
  g_free (f);
}

static CoopResult
make (Fix *f, gsize bytes, guint64 seed)
{
  Thing t = { .bytes = bytes, .shadow = g_malloc (bytes) };
  fill (t.shadow, bytes, seed);
  CoopResult result = coop_storage_new (f->coop, bytes, t.shadow, seed & 1 ? COOP_STATE : 0, &t.storage);
  if (result == COOP_DONE)
    g_array_append_val (f->things, t);
  else
    g_free (t.shadow);
  return result;
}

/* Runs the toy on things in[], on the pool and on plain memory. */
static CoopResult
run (Fix *f, const CoopOperator *op, Toy *toy, const guint *in, const gsize *out_bytes, gsize workspace)
{
  CoopIn args_in[COOP_MOST];
  CoopStorage *out[COOP_MOST];
  void *shadow_in[COOP_MOST], *shadow_out[COOP_MOST];
  gsize in_bytes[COOP_MOST];
  for (guint i = 0; i < toy->n_in; i++)
    {
      args_in[i] = (CoopIn) { thing (f, in[i])->storage, (CoopAccess) toy->access[i] };
      shadow_in[i] = thing (f, in[i])->shadow;
      in_bytes[i] = thing (f, in[i])->bytes;
    }
  CoopArgs args = { .in = args_in, .n_in = toy->n_in, .out_bytes = out_bytes, .n_out = toy->n_out,
                    .workspace = workspace, .params = toy, .params_bytes = sizeof *toy };
  CoopResult result = coop_run (f->coop, op, &args, out);
  if (result != COOP_DONE)
    {
      for (guint i = 0; i < toy->n_out; i++)
        g_assert_null (out[i]);
      return result;
    }
  for (guint i = 0; i < toy->n_out; i++)
    shadow_out[i] = g_malloc (out_bytes[i]);
  compute (toy, toy->seed, shadow_in, in_bytes, shadow_out, out_bytes);
  for (guint i = 0; i < toy->n_out; i++)
    {
      Thing t = { out[i], shadow_out[i], out_bytes[i] };
      g_array_append_val (f->things, t);
    }
  return result;
}

/* One output from at most one input. */
static CoopResult
step (Fix *f, guint64 seed, gint in, gsize bytes)
{
  Toy toy = { .seed = seed, .n_in = in >= 0, .n_out = 1 };
  guint from[] = { (guint) in };
  return run (f, f->toy, &toy, from, &bytes, 0);
}

static CoopResult
overwrite (Fix *f, guint64 seed, guint i, CoopAccess access)
{
  Toy toy = { .seed = seed, .n_in = 1, .access = { (guint8) access } };
  return run (f, f->toy, &toy, &i, NULL, 0);
}

static void
compare (Fix *f, guint i)
{
  void *bytes;
  g_assert_cmpint (coop_get (thing (f, i)->storage, COOP_READ, &bytes), ==, COOP_DONE);
  g_assert_true (memcmp (bytes, thing (f, i)->shadow, thing (f, i)->bytes) == 0);
  coop_release (thing (f, i)->storage);
}

static void
compare_all (Fix *f)
{
  for (guint i = 0; i < f->things->len; i++)
    compare (f, i);
  g_assert_cmpstr (coop_check (f->coop), ==, NULL);
}

#define POLICY(...) ((const char *const[]) { __VA_ARGS__, NULL })

/* ---- by hand ---- */

static void
test_evicts_and_brings_back (void)
{
  Fix *f = fix_new (POLICY ("budget", "64 KiB", "small", "0"), NULL, 0);
  CoopStats stats;
  make (f, 8 * KIB, 2);
  for (guint i = 0; i < 9; i++)
    g_assert_cmpint (step (f, i, (gint) i, 8 * KIB), ==, COOP_DONE);
  coop_stats (f->coop, &stats);
  g_assert_cmpuint (stats.budget, ==, 64 * KIB);
  g_assert_cmpuint (stats.live, <=, 64 * KIB);
  g_assert_cmpuint (stats.evictions, ==, 2);   /* ten of eight KiB in room for eight */
  g_assert_cmpuint (stats.evicted, ==, 16 * KIB);
  g_assert_cmpuint (stats.storages, ==, 10);
  g_assert_true (coop_storage_present (thing (f, 0)->storage));
  compare_all (f);
  g_assert_cmpint (f->user.again, >=, 2);
  coop_stats (f->coop, &stats);
  g_assert_cmpuint (stats.rematerializations, ==, (guint) f->user.again);
  fix_free (f);
}

static void
test_callers_memory (void)
{
  guint8 *memory = g_malloc (40 * KIB + 1);
  memset (memory, 0x5a, 40 * KIB + 1);
  Fix *f = fix_new (POLICY ("small", "0"), memory + 1, 40 * KIB - 3);
  CoopStats stats;
  coop_stats (f->coop, &stats);
  g_assert_cmpuint (stats.budget, <=, 40 * KIB - 3);
  g_assert_cmpuint (stats.budget, >, 39 * KIB - 3);
  make (f, 8 * KIB, 2);
  for (guint i = 0; i < 9; i++)
    g_assert_cmpint (step (f, i, (gint) i, 8 * KIB), ==, COOP_DONE);
  void *at;
  g_assert_cmpint (coop_get (thing (f, 5)->storage, COOP_READ, &at), ==, COOP_DONE);
  g_assert_true ((guint8 *) at > memory && (guint8 *) at + 8 * KIB <= memory + 40 * KIB - 2);
  g_assert_cmpuint ((guintptr) at % 512, ==, 0);
  coop_release (thing (f, 5)->storage);
  compare_all (f);
  fix_free (f);
  g_assert_cmphex (memory[0], ==, 0x5a);
  for (guint i = 40 * KIB - 2; i <= 40 * KIB; i++)
    g_assert_cmphex (memory[i], ==, 0x5a);
  g_free (memory);
}

static void
test_plain_blocks (void)
{
  Fix *f = fix_new (POLICY ("budget", "64 KiB", "small", "0"), NULL, 0);
  guint8 *block = coop_alloc (f->coop, 30000);
  memset (block, 0x77, 30000);
  for (guint i = 0; i < 9; i++)
    g_assert_cmpint (step (f, i, (gint) i - 1, 8 * KIB), ==, COOP_DONE);
  for (guint i = 0; i < 30000; i++)
    g_assert_cmphex (block[i], ==, 0x77);
  g_assert_null (coop_alloc (f->coop, 60000));
  g_assert_nonnull (strstr (coop_message (f->coop), "out of memory"));
  g_assert_null (coop_alloc (f->coop, G_MAXSIZE));
  coop_free (f->coop, block);
  coop_free (f->coop, NULL);
  block = coop_alloc (f->coop, 60000);
  g_assert_nonnull (block);
  coop_free (f->coop, block);
  block = coop_alloc (f->coop, 0);
  g_assert_nonnull (block);
  coop_free (f->coop, block);
  compare_all (f);
  fix_free (f);
}

static void
test_get_pins (void)
{
  Fix *f = fix_new (POLICY ("budget", "32 KiB", "small", "0"), NULL, 0);
  void *a, *b;
  step (f, 1, -1, 8 * KIB);
  CoopStorage *s = thing (f, 0)->storage;
  g_assert_cmpint (coop_get (s, COOP_READ, &a), ==, COOP_DONE);
  g_assert_cmpint (coop_get (s, COOP_READ, &b), ==, COOP_DONE);
  g_assert_true (a == b);
  g_assert_cmpint (coop_get (s, COOP_WRITE, &b), ==, COOP_FAILED_VALUE);
  g_assert_null (b);
  coop_release (s);
  for (guint i = 0; i < 6; i++)
    g_assert_cmpint (step (f, 10 + i, (gint) i, 8 * KIB), ==, COOP_DONE);
  g_assert_true (memcmp (a, thing (f, 0)->shadow, 8 * KIB) == 0);
  g_assert_cmpint (overwrite (f, 3, 0, COOP_WRITE), ==, COOP_FAILED_VALUE);
  coop_release (s);
  coop_release (s); /* once too often is nothing */
  for (guint i = 0; i < 6; i++)
    g_assert_cmpint (step (f, 20 + i, 6, 8 * KIB), ==, COOP_DONE);
  g_assert_false (coop_storage_present (s));
  compare_all (f);
  fix_free (f);
}

/* Writing by hand: the storage stays; what was made from the old bytes keeps its own. */
static void
test_get_write (void)
{
  Fix *f = fix_new (POLICY ("budget", "32 KiB", "small", "0"), NULL, 0);
  void *bytes;
  make (f, 4 * KIB, 3);
  g_assert_cmpint (step (f, 1, 0, 8 * KIB), ==, COOP_DONE);
  g_assert_cmpint (coop_set (f->coop, "stress", "1"), ==, COOP_DONE);
  g_assert_cmpint (step (f, 2, 0, 4 * KIB), ==, COOP_DONE);
  g_assert_cmpint (coop_set (f->coop, "stress", "0"), ==, COOP_DONE);
  for (guint n = 0; n < 2; n++)
    {
      guint i = 1 - n; /* the one that was made first: afterwards it depends on nothing */
      g_assert_cmpint (coop_get (thing (f, i)->storage, COOP_WRITE, &bytes), ==, COOP_DONE);
      fill (bytes, thing (f, i)->bytes, 99);
      fill (thing (f, i)->shadow, thing (f, i)->bytes, 99);
      coop_release (thing (f, i)->storage);
    }
  gint again = f->user.again;
  compare (f, 1);
  g_assert_cmpint (f->user.again, ==, again);
  for (guint i = 0; i < 5; i++)
    g_assert_cmpint (step (f, 30 + i, 1, 4 * KIB), ==, COOP_DONE);
  g_assert_true (coop_storage_present (thing (f, 1)->storage));
  compare_all (f);
  fix_free (f);
}

static void
test_in_place (void)
{
  Fix *f = fix_new (POLICY ("budget", "40 KiB", "small", "0", "verify", "1"), NULL, 0);
  make (f, 4 * KIB, 2);
  g_assert_cmpint (step (f, 1, 0, 8 * KIB), ==, COOP_DONE);
  g_assert_cmpint (step (f, 2, 1, 8 * KIB), ==, COOP_DONE);
  for (guint i = 0; i < 5; i++)
    g_assert_cmpint (overwrite (f, 40 + i, 1, COOP_WRITE), ==, COOP_DONE);
  g_assert_cmpint (step (f, 3, 1, 8 * KIB), ==, COOP_DONE);
  for (guint i = 0; i < 4; i++)
    g_assert_cmpint (step (f, 50 + i, 3, 8 * KIB), ==, COOP_DONE);
  compare_all (f);
  /* of a parameter: it stays where it is, and what was made from its old bytes is kept */
  g_assert_cmpint (overwrite (f, 60, 0, COOP_WRITE), ==, COOP_DONE);
  compare_all (f);
  fix_free (f);
}

/* The same storage twice: read and read, read and scratch. */
static void
test_twice (void)
{
  Fix *f = fix_new (POLICY ("budget", "64 KiB", "small", "0"), NULL, 0);
  gsize bytes = 4 * KIB;
  guint in[] = { 0, 0 };
  step (f, 1, -1, 4 * KIB);
  Toy toy = { .seed = 5, .n_in = 2, .n_out = 1 };
  g_assert_cmpint (run (f, f->toy, &toy, in, &bytes, 0), ==, COOP_DONE);
  Toy both = { .seed = 6, .n_in = 2, .n_out = 1, .access = { COOP_READ, COOP_SCRATCH } };
  g_assert_cmpint (run (f, f->toy, &both, in, &bytes, 0), ==, COOP_DONE);
  g_assert_cmpint (coop_set (f->coop, "stress", "1"), ==, COOP_DONE);
  step (f, 7, 0, 512);
  g_assert_false (coop_storage_present (thing (f, 0)->storage));
  compare_all (f);
  fix_free (f);
}

static void
test_workspace (void)
{
  Fix *f = fix_new (POLICY ("budget", "32 KiB", "small", "0"), NULL, 0);
  gsize bytes = 8 * KIB;
  Toy toy = { .seed = 5, .n_in = 0, .n_out = 1 };
  for (guint i = 0; i < 5; i++)
    g_assert_cmpint (run (f, f->toy, &toy, NULL, &bytes, 20 * KIB), ==, COOP_DONE);
  g_assert_cmpint (run (f, f->toy, &toy, NULL, &bytes, 30 * KIB), ==, COOP_FAILED_MEMORY);
  compare_all (f);
  fix_free (f);
}

static void
test_keep_and_once (void)
{
  Fix *f = fix_new (POLICY ("budget", "40 KiB", "small", "0"), NULL, 0);
  gsize bytes = 4 * KIB;
  Toy toy = { .seed = 5, .n_in = 0, .n_out = 1 };
  g_assert_cmpint (step (f, 1, -1, 4 * KIB), ==, COOP_DONE);
  g_assert_cmpint (run (f, f->once, &toy, NULL, &bytes, 0), ==, COOP_DONE);
  g_assert_cmpint (coop_keep (thing (f, 0)->storage), ==, COOP_DONE);
  coop_set (f->coop, "stress", "1");
  for (guint i = 0; i < 20; i++)
    g_assert_cmpint (step (f, 10 + i, 0, 4 * KIB), ==, COOP_DONE);
  g_assert_true (coop_storage_present (thing (f, 0)->storage));
  g_assert_true (coop_storage_present (thing (f, 1)->storage));
  g_assert_false (coop_storage_present (thing (f, 2)->storage));
  compare_all (f);
  fix_free (f);
}

/* What was dropped and is needed to make another again is made again, too. */
static void
test_through_dropped (void)
{
  Fix *f = fix_new (POLICY ("budget", "24 KiB", "small", "0", "hold", "0"), NULL, 0);
  make (f, 512, 2);
  step (f, 1, 0, 8 * KIB);
  step (f, 2, 1, 8 * KIB);
  forget (f, 1); /* the last one takes its place */
  g_assert_cmpint (step (f, 3, 0, 16 * KIB), ==, COOP_DONE);
  g_assert_false (coop_storage_present (thing (f, 1)->storage));
  compare_all (f);
  g_assert_cmpint (f->user.again, ==, 2 + 1);
  fix_free (f);
}

static void
test_budget (void)
{
  Fix *f = fix_new (POLICY ("budget", "256 KiB", "small", "0"), NULL, 1024 * KIB);
  CoopStats stats;
  char text[64];
  for (guint i = 0; i < 25; i++)
    g_assert_cmpint (step (f, i, (gint) i - 1, 8 * KIB), ==, COOP_DONE);
  g_assert_cmpint (coop_set (f->coop, "budget", "64KiB"), ==, COOP_DONE);
  coop_stats (f->coop, &stats);
  g_assert_cmpuint (stats.budget, ==, 64 * KIB);
  g_assert_cmpuint (stats.live, <=, 64 * KIB);   /* at once */
  compare_all (f);
  coop_stats (f->coop, &stats);
  g_assert_cmpuint (stats.live, <=, 64 * KIB);
  g_assert_cmpint (coop_set (f->coop, "budget", "512KiB"), ==, COOP_DONE);
  guint64 before = stats.evictions;
  compare_all (f);
  coop_stats (f->coop, &stats);
  g_assert_cmpuint (stats.evictions, ==, before);
  g_assert_cmpuint (stats.live, ==, 25 * 8 * KIB);
  g_assert_cmpint (coop_value (f->coop, "budget", text, sizeof text), ==, 6);
  g_assert_cmpstr (text, ==, "524288");
  fix_free (f);
}

/* Pinned bytes are in the way of a smaller budget, until they are not. */
static void
test_budget_pinned (void)
{
  Fix *f = fix_new (POLICY ("budget", "256 KiB", "small", "0", "groups", "1"), NULL, 0);
  CoopStats stats;
  void *bytes;
  for (guint i = 0; i < 25; i++)
    step (f, i, (gint) i - 1, 8 * KIB);
  g_assert_cmpint (coop_get (thing (f, 24)->storage, COOP_READ, &bytes), ==, COOP_DONE);
  g_assert_cmpint (coop_set (f->coop, "budget", "64KiB"), ==, COOP_DONE);
  coop_stats (f->coop, &stats);
  g_assert_cmpuint (stats.live, <=, 64 * KIB + 8 * KIB);
  g_assert_true (memcmp (bytes, thing (f, 24)->shadow, 8 * KIB) == 0);
  coop_release (thing (f, 24)->storage);
  compare_all (f);
  coop_stats (f->coop, &stats);
  g_assert_cmpuint (stats.live, <=, 64 * KIB);
  fix_free (f);
}

/* ---- what goes wrong ---- */

static void
test_bad_values (void)
{
  Coop *coop;
  char why[200], value[8];
  CoopOptions options = { .policy = POLICY ("bugdet", "1"), .why = why, .why_size = sizeof why };
  g_assert_cmpint (coop_new (&options, &coop), ==, COOP_FAILED_VALUE);
  g_assert_null (coop);
  g_assert_cmpstr (why, ==, "there is no parameter \"bugdet\"; is it \"budget\"?");
  options.policy = POLICY ("budget", "lots");
  g_assert_cmpint (coop_new (&options, &coop), ==, COOP_FAILED_VALUE);
  g_assert_cmpstr (why, ==, "\"lots\" is no value of budget");
  options.policy = POLICY ("budget");
  g_assert_cmpint (coop_new (&options, &coop), ==, COOP_FAILED_VALUE);
  g_assert_cmpstr (why, ==, "budget has no value");
  options = (CoopOptions) { .memory = why, .capacity = 100, .why = why, .why_size = sizeof why };
  g_assert_cmpint (coop_new (&options, &coop), ==, COOP_FAILED_VALUE);
  options = (CoopOptions) { .memory = &options, .capacity = 4096, .policy = POLICY ("allocator", "page"),
                            .why = why, .why_size = sizeof why };
  g_assert_cmpint (coop_new (&options, &coop), ==, COOP_FAILED_VALUE);
  g_assert_cmpstr (why, ==, "allocator page wants memory of the pool's own");
  options = (CoopOptions) { .capacity = (gsize) 1 << 60, .why = why, .why_size = sizeof why };
  g_assert_cmpint (coop_new (&options, &coop), ==, COOP_FAILED_SYSTEM);

  g_assert_cmpint (coop_new (NULL, &coop), ==, COOP_DONE);
  g_assert_cmpstr (coop_message (coop), ==, "");
  g_assert_cmpint (coop_set (coop, "groups", "999"), ==, COOP_FAILED_VALUE);
  g_assert_cmpint (coop_set (coop, "evictor", "cool"), ==, COOP_FAILED_VALUE);
  g_assert_cmpint (coop_set (coop, "allocator", "page"), ==, COOP_FAILED_VALUE);
  g_assert_cmpstr (coop_message (coop), ==, "allocator is fixed when the pool begins");
  g_assert_cmpint (coop_set (coop, "allocator", "merge"), ==, COOP_DONE);
  g_assert_cmpint (coop_value (coop, "nothing", value, sizeof value), ==, -1);
  g_assert_cmpint (coop_set (coop, "preset", "lru"), ==, COOP_DONE);
  g_assert_cmpint (coop_value (coop, "evictor", value, sizeof value), ==, 3);
  g_assert_cmpstr (value, ==, "lru");
  g_assert_cmpint (coop_value (coop, "cost_exponent", value, sizeof value), >, 0);
  g_assert_cmpstr (value, ==, "0");   /* of lru's */
  g_assert_null (coop_operator (coop, &(CoopOperatorInfo) { .name = "no function" }));
  g_assert_null (coop_operator (coop, &(CoopOperatorInfo) { .run = run_toy }));
  coop_destroy (coop);
  coop_destroy (NULL);
}

static void
test_bad_arguments (void)
{
  Fix *f = fix_new (POLICY ("budget", "64 KiB"), NULL, 0), *other = fix_new (POLICY ("budget", "64 KiB"), NULL, 0);
  CoopStorage *out = NULL;
  gsize zero = 0, huge = G_MAXSIZE, fine = 512;
  make (f, 512, 2);
  make (other, 512, 2);
  const CoopIn none = { NULL, COOP_READ }, foreign = { thing (other, 0)->storage, COOP_READ };
  const CoopArgs bad[] = {
    { .out_bytes = &zero, .n_out = 1 }, { .out_bytes = &huge, .n_out = 1 },
    { .in = &none, .n_in = 1 }, { .in = &foreign, .n_in = 1 }, { .n_in = COOP_MOST + 1 },
    { .out_bytes = &fine, .n_out = 1, .workspace = G_MAXSIZE },
  };
  for (guint i = 0; i < G_N_ELEMENTS (bad); i++)
    {
      g_assert_cmpint (coop_run (f->coop, f->toy, &bad[i], &out), ==, COOP_FAILED_VALUE);
      g_assert_null (out);
      g_assert_cmpstr (coop_message (f->coop), !=, "");
    }
  g_assert_cmpint (coop_run (f->coop, NULL, &(CoopArgs) { .n_in = 0 }, NULL), ==, COOP_FAILED_VALUE);
  g_assert_cmpint (coop_storage_new (f->coop, 0, NULL, 0, &out), ==, COOP_FAILED_VALUE);
  g_assert_cmpint (coop_storage_new (f->coop, 100 * KIB, NULL, 0, &out), ==, COOP_FAILED_MEMORY);
  coop_drop (NULL);
  for (int r = COOP_DONE; r <= COOP_FAILED_SYSTEM; r++)
    g_assert_cmpstr (coop_result_text ((CoopResult) r), !=, coop_result_text ((CoopResult) 99));
  fix_free (f);
  fix_free (other);
}

/* An operator that fails the first time, or when it is run again: nothing is lost but what it would make. */
static void
test_failing_operator (void)
{
  Fix *f = fix_new (POLICY ("budget", "24 KiB", "small", "0"), NULL, 0);
  void *bytes;
  CoopStats stats;
  step (f, 1, -1, 8 * KIB);
  step (f, 2, -1, 8 * KIB);
  step (f, 3, -1, 15 * KIB);
  g_assert_false (coop_storage_present (thing (f, 0)->storage));
  f->user.fail_again = TRUE;
  g_assert_cmpint (coop_get (thing (f, 0)->storage, COOP_READ, &bytes), ==, COOP_FAILED_OPERATOR);
  g_assert_null (bytes);
  g_assert_cmpstr (coop_message (f->coop), ==, "operator \"toy\" failed when it was run again");
  g_assert_cmpint (step (f, 4, 0, 512), ==, COOP_FAILED_OPERATOR);
  g_assert_cmpint (coop_keep (thing (f, 0)->storage), ==, COOP_FAILED_OPERATOR);
  g_assert_cmpstr (coop_check (f->coop), ==, NULL);
  f->user.fail_again = FALSE;
  compare_all (f);
  coop_stats (f->coop, &stats);
  g_assert_cmpuint (stats.failures, ==, 0);
  fix_free (f);
}

static void
test_other_bits (void)
{
  Fix *f = fix_new (POLICY ("budget", "24 KiB", "small", "0", "verify", "1"), NULL, 0);
  void *bytes;
  step (f, 1, -1, 8 * KIB);
  step (f, 2, -1, 8 * KIB);
  step (f, 3, -1, 15 * KIB);
  f->user.drift = 1;
  g_assert_cmpint (coop_get (thing (f, 0)->storage, COOP_READ, &bytes), ==, COOP_FAILED_BITS);
  g_assert_cmpstr (coop_message (f->coop), ==, "operator \"toy\" gave other bits when it was run again");
  g_assert_cmpstr (coop_check (f->coop), ==, NULL);
  fix_free (f);
}

static void
test_out_of_memory (void)
{
  Fix *f = fix_new (POLICY ("budget", "24 KiB", "small", "0"), NULL, 0);
  CoopStats stats;
  make (f, 16 * KIB, 2);
  g_assert_cmpint (step (f, 1, 0, 8 * KIB), ==, COOP_DONE);
  g_assert_cmpint (step (f, 1, 0, 8 * KIB + 1), ==, COOP_FAILED_MEMORY);
  g_assert_true (g_str_has_prefix (coop_message (f->coop), "out of memory: asked 8.0 KiB, free"));
  coop_stats (f->coop, &stats);
  g_assert_cmpuint (stats.failures, ==, 1);
  compare_all (f);
  fix_free (f);
}

/* Room enough, but not in one piece: the operator's own input lies in the middle, and moves. */
static void
test_compacts (void)
{
  Fix *f = fix_new (POLICY ("budget", "24 KiB", "small", "0", "groups", "1"), NULL, 0);
  CoopStats stats;
  for (guint i = 0; i < 3; i++)
    g_assert_cmpint (step (f, i, -1, 8 * KIB), ==, COOP_DONE);
  forget (f, 0);
  forget (f, 0);  /* the third took the first one's place */
  coop_stats (f->coop, &stats);
  g_assert_cmpuint (stats.largest, ==, 8 * KIB);
  g_assert_cmpint (step (f, 9, 0, 16 * KIB), ==, COOP_DONE);
  coop_stats (f->coop, &stats);
  g_assert_cmpuint (stats.moves, ==, 1);
  g_assert_cmpuint (stats.evictions, ==, 0);
  compare_all (f);
  fix_free (f);
}

/* A pool ends with whatever is in it. */
static void
test_destroy_full (void)
{
  Fix *f = fix_new (POLICY ("budget", "64 KiB", "small", "0"), NULL, 0);
  void *bytes;
  make (f, 512, 1);
  for (guint i = 0; i < 8; i++)
    step (f, i, (gint) i, 8 * KIB);
  coop_alloc (f->coop, 100);
  for (guint i = 0; i < 3; i++)
    g_assert_cmpint (coop_get (thing (f, i)->storage, COOP_READ, &bytes), ==, COOP_DONE);
  g_assert_cmpint (coop_get (thing (f, 8)->storage, COOP_WRITE, &bytes), ==, COOP_DONE);
  coop_drop (thing (f, 1)->storage);
  g_assert_cmpint (((guint8 *) bytes)[0], ==, thing (f, 8)->shadow[0]);
  coop_destroy (f->coop);
  for (guint i = 0; i < f->things->len; i++)
    g_free (thing (f, i)->shadow);
  g_array_unref (f->things);
  g_free (f);
}

/* ---- random programs ---- */

static void
random_step (Fix *f, GRand *rand)
{
  Toy toy = { .seed = g_rand_int (rand), .n_in = (guint) g_rand_int_range (rand, 0, 4),
              .n_out = (guint) g_rand_int_range (rand, 0, 3) };
  guint in[4];
  gsize out[4];
  bool writes = false;
  if (f->things->len == 0)
    toy.n_in = 0;
  for (guint i = 0; i < toy.n_in; i++)
    {
      in[i] = (guint) g_rand_int_range (rand, 0, (gint32) f->things->len);
      gint what = g_rand_int_range (rand, 0, 12);
      toy.access[i] = what < 2 ? COOP_WRITE : what < 3 ? COOP_SCRATCH : COOP_READ;
      writes |= toy.access[i] != COOP_READ;
    }
  if (writes && toy.n_in > 1) /* aliases that are written: another test's business */
    toy.n_in = 1;
  for (guint i = 0; i < toy.n_out; i++)
    out[i] = (gsize) g_rand_int_range (rand, 1, 6000);
  coop_part (f->coop, (CoopPart) g_rand_int_range (rand, 0, 4));
  const CoopOperator *op = g_rand_int_range (rand, 0, 30) == 0 ? f->once : f->toy;
  CoopResult result = run (f, op, &toy, in, out, g_rand_int_range (rand, 0, 5) == 0 ? 3000 : 0);
  g_assert_true (result == COOP_DONE || result == COOP_FAILED_MEMORY);
}

static void
random_look (Fix *f, guint i)
{
  void *bytes;
  CoopResult result = coop_get (thing (f, i)->storage, COOP_READ, &bytes);
  if (result == COOP_FAILED_MEMORY)
    return;
  g_assert_cmpint (result, ==, COOP_DONE);
  g_assert_true (memcmp (bytes, thing (f, i)->shadow, thing (f, i)->bytes) == 0);
  coop_release (thing (f, i)->storage);
}

static void
random_turn (Fix *f, GRand *rand)
{
  static const char *const budgets[] = { "40000", "30000", "60000", "100000" };
  static const char *const presets[] = { "coop", "lru", "dtr-eq", "size" };
  if (g_rand_boolean (rand))
    g_assert_cmpint (coop_set (f->coop, "budget", budgets[g_rand_int_range (rand, 0, 4)]), ==, COOP_DONE);
  else
    g_assert_cmpint (coop_set (f->coop, "preset", presets[g_rand_int_range (rand, 0, 4)]), ==, COOP_DONE);
}

static void
random_program (guint32 seed, CoopStats *sum)
{
  CoopStats stats;
  GRand *rand = g_rand_new_with_seed (seed);
  static const char *const allocators[] = { "merge", "merge", "class", "page" };
  const char *allocator = allocators[seed % 4];
  Fix *f = fix_new (POLICY ("budget", "40000", "small", seed & 1 ? "1000" : "0", "verify", "1", "stress",
                            seed % 5 == 0 ? "3" : "0", "hold", seed & 2 ? "0" : "4096", "allocator", allocator,
                            "page", "1024"), NULL, seed % 4 < 2 ? 100352 : 16u << 20);
  for (guint i = 0; i < 120; i++)
    {
      gint what = g_rand_int_range (rand, 0, 20);
      if (what == 0)
        make (f, (gsize) g_rand_int_range (rand, 1, 3000), g_rand_int (rand));
      else if (what == 1)
        random_turn (f, rand);
      else if (f->things->len > 0 && (what < 6 || f->things->len > 20))
        forget (f, (guint) g_rand_int_range (rand, 0, (gint32) f->things->len));
      else if (f->things->len > 0 && what < 9)
        random_look (f, (guint) g_rand_int_range (rand, 0, (gint32) f->things->len));
      else
        random_step (f, rand);
      g_assert_cmpstr (coop_check (f->coop), ==, NULL);
    }
  coop_set (f->coop, "budget", "0");
  compare_all (f);
  coop_stats (f->coop, &stats);
  sum->evictions += stats.evictions;
  sum->rematerializations += stats.rematerializations;
  sum->moves += stats.moves;
  sum->failures += stats.failures;
  fix_free (f);
  g_rand_free (rand);
}

static void
test_random (void)
{
  CoopStats sum = { 0 };
  for (guint32 seed = 1; seed <= 300; seed++)
    {
      g_test_message ("seed %u", seed);
      random_program (seed, &sum);
    }
  g_test_message ("%lu evictions, %lu run again, %lu moves, %lu failures", sum.evictions,
                  sum.rematerializations, sum.moves, sum.failures);
  g_assert_cmpuint (sum.evictions, >, 3000);
  g_assert_cmpuint (sum.rematerializations, >, 2000);
  g_assert_cmpuint (sum.moves, >, 200);
}

/* ---- threads ---- */

typedef struct {
  Fix *f;
  guint seed;
} Work;

/* A chain of its own in the pool of all. */
static gpointer
work (gpointer data)
{
  Work *w = data;
  Fix *f = w->f;
  gsize bytes = 4 * KIB;
  CoopStorage *chain[8] = { NULL };
  guint8 *shadow[8] = { NULL };
  for (guint n = 0; n < 200; n++)
    {
      guint i = n % 8, from = (n + 7) % 8;
      Toy toy = { .seed = w->seed + n, .n_in = n > 0, .n_out = 1 };
      CoopIn in = { chain[from], COOP_READ };
      CoopArgs args = { .in = &in, .n_in = toy.n_in, .out_bytes = &bytes, .n_out = 1, .params = &toy,
                        .params_bytes = sizeof toy };
      CoopStorage *out;
      g_assert_cmpint (coop_run (f->coop, f->toy, &args, &out), ==, COOP_DONE);
      void *shadow_out = g_malloc (bytes), *got;
      compute (&toy, toy.seed, (void *const *) &shadow[from], &bytes, &shadow_out, &bytes);
      coop_drop (chain[i]);
      g_free (shadow[i]);
      chain[i] = out;
      shadow[i] = shadow_out;
      guint look = n < 8 ? n : n * 5 % 8;
      g_assert_cmpint (coop_get (chain[look], COOP_READ, &got), ==, COOP_DONE);
      g_assert_true (memcmp (got, shadow[look], bytes) == 0);
      coop_release (chain[look]);
    }
  for (guint i = 0; i < 8; i++)
    {
      coop_drop (chain[i]);
      g_free (shadow[i]);
    }
  return NULL;
}

static void
test_threads (void)
{
  Fix *f = fix_new (POLICY ("budget", "100 KiB", "small", "0", "verify", "1"), NULL, 0);
  Work w[4];
  GThread *thread[4];
  CoopStats stats;
  for (guint i = 0; i < 4; i++)
    {
      w[i] = (Work) { f, i * 1000 };
      thread[i] = g_thread_new ("work", work, &w[i]);
    }
  for (guint i = 0; i < 4; i++)
    g_thread_join (thread[i]);
  coop_stats (f->coop, &stats);
  g_assert_cmpuint (stats.evictions, >, 0);
  g_assert_cmpuint (stats.peak, <=, 100 * KIB);
  fix_free (f);
}

static gpointer
look (gpointer f)
{
  compare (f, 1);
  return NULL;
}

/* One thread overwrites what the other's storage was made from, and is about to be made from again. */
static void
test_threads_in_place (void)
{
  Fix *f = fix_new (POLICY ("budget", "96 KiB", "small", "0", "hold", "0", "stress", "1"), NULL, 0);
  g_assert_cmpint (step (f, 1, -1, 16 * KIB), ==, COOP_DONE);
  f->user.slow = TRUE;
  for (guint n = 0; n < 40; n++)
    {
      compare (f, 0);
      g_assert_cmpint (step (f, 10 + n, 0, 8 * KIB), ==, COOP_DONE);
      g_assert_false (coop_storage_present (thing (f, 1)->storage));
      compare (f, 0);
      GThread *thread = g_thread_new ("look", look, f);
      g_usleep (n % 4 * 100);
      g_assert_cmpint (overwrite (f, 100 + n, 0, COOP_WRITE), ==, COOP_DONE);
      g_thread_join (thread);
      forget (f, 1);
    }
  compare_all (f);
  fix_free (f);
}

/* Between get and release the bytes are the new version's, whatever is run again meanwhile. */
static void
test_open_write (void)
{
  Fix *f = fix_new (POLICY ("budget", "64 KiB", "small", "0", "hold", "0"), NULL, 0);
  void *bytes;
  g_assert_cmpint (step (f, 1, -1, 8 * KIB), ==, COOP_DONE);
  g_assert_cmpint (step (f, 2, 0, 8 * KIB), ==, COOP_DONE);
  coop_set (f->coop, "stress", "1");
  g_assert_cmpint (step (f, 3, -1, 512), ==, COOP_DONE);
  g_assert_false (coop_storage_present (thing (f, 1)->storage));
  g_assert_cmpint (coop_get (thing (f, 0)->storage, COOP_WRITE, &bytes), ==, COOP_DONE);
  fill (bytes, 8 * KIB, 99);
  fill (thing (f, 0)->shadow, 8 * KIB, 99);
  compare (f, 1);
  coop_release (thing (f, 0)->storage);
  compare_all (f);
  fix_free (f);
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  g_test_add_func ("/api/evicts-and-brings-back", test_evicts_and_brings_back);
  g_test_add_func ("/api/callers-memory", test_callers_memory);
  g_test_add_func ("/api/plain-blocks", test_plain_blocks);
  g_test_add_func ("/api/get-pins", test_get_pins);
  g_test_add_func ("/api/get-write", test_get_write);
  g_test_add_func ("/api/in-place", test_in_place);
  g_test_add_func ("/api/twice", test_twice);
  g_test_add_func ("/api/workspace", test_workspace);
  g_test_add_func ("/api/keep-and-once", test_keep_and_once);
  g_test_add_func ("/api/through-dropped", test_through_dropped);
  g_test_add_func ("/api/budget", test_budget);
  g_test_add_func ("/api/budget-pinned", test_budget_pinned);
  g_test_add_func ("/api/bad-values", test_bad_values);
  g_test_add_func ("/api/bad-arguments", test_bad_arguments);
  g_test_add_func ("/api/failing-operator", test_failing_operator);
  g_test_add_func ("/api/other-bits", test_other_bits);
  g_test_add_func ("/api/out-of-memory", test_out_of_memory);
  g_test_add_func ("/api/compacts", test_compacts);
  g_test_add_func ("/api/destroy-full", test_destroy_full);
  g_test_add_func ("/api/random", test_random);
  g_test_add_func ("/api/threads", test_threads);
  g_test_add_func ("/api/threads-in-place", test_threads_in_place);
  g_test_add_func ("/api/open-write", test_open_write);
  return g_test_run ();
}
