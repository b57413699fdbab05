/* SPDX-License-Identifier: Apache-2.0 */
/* The CUDA files over the fake driver: what they do, in which order, and what is left when the driver
 * refuses any one of their calls. */
#include "device/cuda.h"
#include "fake-cuda.h"

#include <glib.h>
#include <stdlib.h>
#include <string.h>

#define PAGE ((uint64_t) 64 << 10)

typedef struct {
  CoopCuda cuda;
  CoopCudaDevice device;
} Fixture;

static void
open_device (Fixture *f, uint64_t bytes)
{
  CoopCudaTable table;

  fake_cuda_reset (bytes, PAGE);
  fake_cuda_table (&table);
  g_assert_true (coop_cuda_begin (&f->cuda, &table));
  g_assert_cmpint (coop_cuda_device_open (&f->device, &f->cuda, 0), ==, 0);
}

static void
close_device (Fixture *f)
{
  g_assert_true (coop_cuda_device_close (&f->device));
  g_assert_cmpstr (fake_cuda_leaks (), ==, NULL);
  g_assert_cmpuint (fake_cuda_used (), ==, 0);
  g_assert_cmpint (fake_cuda_broken (), ==, 0);
}

static void
fill (Fixture *f, CoopCuPtr at, uint64_t bytes, unsigned value)
{
  g_assert_cmpint (f->cuda.fn.set_d32 (at, value, bytes / 4, NULL), ==, 0);
}

/* Every word of a range, read back. */
static void
assert_filled (Fixture *f, CoopCuPtr at, uint64_t bytes, unsigned value)
{
  unsigned *got = g_malloc (bytes);

  g_assert_cmpint (f->cuda.fn.copy_dtoh (got, at, bytes, NULL), ==, 0);
  g_assert_cmpint (f->cuda.fn.stream_synchronize (NULL), ==, 0);
  for (uint64_t i = 0; i < bytes / 4; i++)
    g_assert_cmphex (got[i], ==, value);
  g_free (got);
}

static void
test_device (void)
{
  Fixture f;
  uint64_t free, total;

  open_device (&f, 32 * PAGE);
  g_assert_cmpint (f.cuda.version, ==, 13000);
  g_assert_cmpstr (f.device.name, ==, "fake device 0");
  g_assert_true (f.device.has_pages && f.device.has_pools);
  g_assert_cmpuint (f.device.granule, ==, PAGE);
  g_assert_cmpint (coop_cuda_device_info (&f.device, &free, &total), ==, 0);
  g_assert_cmpuint (free, ==, 32 * PAGE);
  g_assert_cmpuint (total, ==, 32 * PAGE);
  g_assert_cmpstr (coop_cuda_error (&f.cuda, 2), ==, "CUDA_ERROR_OUT_OF_MEMORY (2)");
  g_assert_cmpstr (coop_cuda_error (&f.cuda, 12345), ==, "CUDA error (12345)");
  g_assert_cmpint (coop_cuda_device_open (&f.device, &f.cuda, 1), ==, COOP_CU_INVALID_DEVICE);
  g_assert_cmpint (coop_cuda_device_open (&f.device, &f.cuda, 0), ==, 0);
  g_assert_true (coop_cuda_device_close (&f.device));
  g_assert_cmpint (coop_cuda_device_open (&f.device, &f.cuda, 0), ==, 0);
  g_assert_true (coop_cuda_device_close (&f.device));
}

static gpointer
enter_elsewhere (gpointer device)
{
  uint64_t free, total;
  return GINT_TO_POINTER (coop_cuda_device_info (device, &free, &total));
}

/* A thread that never heard of CUDA, such as autograd's, has no context. */
static void
test_other_thread (void)
{
  Fixture f;

  open_device (&f, 32 * PAGE);
  GThread *thread = g_thread_new ("other", enter_elsewhere, &f.device);
  g_assert_cmpint (GPOINTER_TO_INT (g_thread_join (thread)), ==, 0);
  close_device (&f);
}

static void
test_arena (void)
{
  const uint64_t piece = 64u << 20;
  Fixture f;
  CoopCudaArena *a;
  uint64_t free, total;

  open_device (&f, 4 * piece);
  g_assert_cmpint (coop_cuda_arena_new (&f.device, 8 * piece, piece + 1, &a), ==, 0);
  g_assert_cmpuint (coop_cuda_arena_committed (a), ==, piece + PAGE);
  g_assert_cmpint (coop_cuda_device_info (&f.device, &free, &total), ==, 0);
  g_assert_cmpuint (total - free, ==, piece + PAGE); /* the device agrees to the byte */
  CoopCuPtr base = coop_cuda_arena_base (a);
  fill (&f, base + piece - 4096, 8192, 7); /* over the seam of two pieces */
  g_assert_cmpint (coop_cuda_arena_commit (a, 3 * piece), ==, 0);
  g_assert_cmpuint (coop_cuda_arena_base (a), ==, base);
  assert_filled (&f, base + piece - 4096, 8192, 7);
  fill (&f, base + 3 * piece - PAGE, PAGE, 9);
  g_assert_cmpint (coop_cuda_arena_commit (a, piece), ==, 0);
  g_assert_cmpuint (coop_cuda_arena_committed (a), ==, piece);
  assert_filled (&f, base + piece - 4096, 4096, 7);
  /* What does not fit changes nothing but what could be had. */
  g_assert_cmpint (coop_cuda_arena_commit (a, 5 * piece), ==, COOP_CU_OUT_OF_MEMORY);
  g_assert_cmpuint (coop_cuda_arena_committed (a), ==, 4 * piece);
  g_assert_cmpint (coop_cuda_arena_commit (a, 9 * piece), ==, COOP_CU_INVALID_VALUE);
  g_assert_cmpint (coop_cuda_arena_commit (a, piece), ==, 0);
  g_assert_true (coop_cuda_arena_free (a));
  close_device (&f);
}

/* Growing, refused at create, map or access: the piece goes back at once. */
static void
test_arena_undoes (void)
{
  Fixture f;
  CoopCudaArena *a;

  open_device (&f, 256u << 20);
  g_assert_cmpint (coop_cuda_arena_new (&f.device, 256u << 20, PAGE, &a), ==, 0);
  for (unsigned long k = 1; k <= 4; k++)
    {
      fake_cuda_fail (k, 1, COOP_CU_UNKNOWN);
      CoopCuResult rc = coop_cuda_arena_commit (a, 2 * PAGE);
      fake_cuda_fail (0, 0, 0);
      g_assert_cmpint (rc, ==, k == 1 ? 0 : COOP_CU_UNKNOWN); /* 1: which context is current */
      g_assert_cmpuint (coop_cuda_arena_committed (a), ==, fake_cuda_used ());
      g_assert_cmpint (coop_cuda_arena_commit (a, PAGE), ==, 0);
    }
  g_assert_true (coop_cuda_arena_free (a));
  close_device (&f);
}

static void
test_arena_without_pages (void)
{
  Fixture f;
  CoopCudaArena *a;

  open_device (&f, 32 * PAGE);
  f.device.has_pages = false;
  g_assert_cmpint (coop_cuda_arena_new (&f.device, 99 * PAGE, 5 * PAGE, &a), ==, 0);
  g_assert_cmpuint (coop_cuda_arena_committed (a), ==, 5 * PAGE);
  fill (&f, coop_cuda_arena_base (a), 5 * PAGE, 3);
  g_assert_true (coop_cuda_arena_free (a));
  g_assert_cmpint (coop_cuda_arena_new (&f.device, 99 * PAGE, 33 * PAGE, &a), ==,
                   COOP_CU_OUT_OF_MEMORY);
  g_assert_null (a);
  close_device (&f);
}

/* p1, p2, p3 fill the budget; p1 and p3 go; twice the size comes, and p2 is untouched. */
static void
test_pages (void)
{
  Fixture f;
  CoopCudaPages *p;
  CoopCudaPagesFigures g;
  CoopCuPtr p1, p2, p3, p4, more;

  open_device (&f, 32 * PAGE);
  g_assert_cmpint (coop_cuda_pages_new (&f.device, 9 * PAGE, 0, &p), ==, 0);
  g_assert_cmpint (coop_cuda_pages_alloc (p, 3 * PAGE, &p1), ==, 0);
  g_assert_cmpint (coop_cuda_pages_alloc (p, 3 * PAGE - 100, &p2), ==, 0);
  g_assert_cmpint (coop_cuda_pages_alloc (p, 2 * PAGE + 1, &p3), ==, 0);
  g_assert_cmpint (coop_cuda_pages_alloc (p, 1, &more), ==, COOP_CU_OUT_OF_MEMORY);
  coop_cuda_pages_figures (p, &g);
  g_assert_cmpuint (g.used, ==, 9 * PAGE);
  g_assert_cmpuint (g.used - g.asked, ==, 100 + PAGE - 1);
  g_assert_cmpuint (g.maps, ==, 9);
  g_assert_cmpuint (g.accesses, ==, 3); /* one a block, not one a page */
  fill (&f, p2, 3 * PAGE, 22);
  g_assert_true (coop_cuda_pages_release (p, p1, NULL, 0));
  g_assert_true (coop_cuda_pages_release (p, p3, NULL, 0));
  g_assert_false (coop_cuda_pages_release (p, p3, NULL, 0));
  g_assert_false (coop_cuda_pages_release (p, p2 + PAGE, NULL, 0));
  g_assert_cmpint (coop_cuda_pages_alloc (p, 6 * PAGE, &p4), ==, 0);
  fill (&f, p4, 6 * PAGE, 44);
  assert_filled (&f, p2, 3 * PAGE, 22);
  coop_cuda_pages_figures (p, &g);
  g_assert_cmpuint (g.created, ==, 9 * PAGE);
  g_assert_cmpuint (fake_cuda_used (), ==, 9 * PAGE);
  g_assert_cmpuint (g.unmaps, ==, 6);
  g_assert_true (coop_cuda_pages_free (p));
  close_device (&f);
}

/* Nothing that queued work may touch is unmapped before the work is done. */
static void
test_pages_in_flight (void)
{
  Fixture f;
  CoopCudaPages *p;
  CoopCudaPagesFigures g;
  CoopCuPtr at, other;
  CoopCuStream s[2];

  open_device (&f, 32 * PAGE);
  g_assert_cmpint (f.cuda.fn.stream_create (&s[0], 1), ==, 0);
  g_assert_cmpint (f.cuda.fn.stream_create (&s[1], 1), ==, 0);
  g_assert_cmpint (coop_cuda_pages_new (&f.device, 6 * PAGE, 0, &p), ==, 0);
  g_assert_cmpint (coop_cuda_pages_alloc (p, 4 * PAGE, &at), ==, 0);
  fake_cuda_lazy (true);
  g_assert_cmpint (fake_cuda_touch (at, 4 * PAGE, true, s[0]), ==, 0);
  g_assert_cmpint (fake_cuda_touch (at, 4 * PAGE, false, s[1]), ==, 0);
  g_assert_true (coop_cuda_pages_release (p, at, s, 2));
  coop_cuda_pages_figures (p, &g);
  g_assert_cmpuint (g.leaving, ==, 4 * PAGE);
  g_assert_cmpuint (g.used, ==, 0);
  g_assert_cmpuint (g.unmaps, ==, 0);
  /* What fits beside it does not wait; */
  g_assert_cmpint (coop_cuda_pages_alloc (p, 2 * PAGE, &other), ==, 0);
  coop_cuda_pages_figures (p, &g);
  g_assert_cmpuint (g.unmaps, ==, 0);
  /* what does not, waits for both streams. */
  g_assert_cmpint (coop_cuda_pages_alloc (p, 4 * PAGE, &at), ==, 0);
  coop_cuda_pages_figures (p, &g);
  g_assert_cmpuint (g.unmaps, ==, 4);
  g_assert_cmpint (fake_cuda_broken (), ==, 0);
  g_assert_true (coop_cuda_pages_free (p));
  g_assert_cmpint (f.cuda.fn.stream_destroy (s[0]), ==, 0);
  g_assert_cmpint (f.cuda.fn.stream_destroy (s[1]), ==, 0);
  close_device (&f);
}

static void
test_pool (void)
{
  Fixture f;
  CoopCudaPool *p;
  CoopCudaPoolFigures g;
  CoopCuPtr a, b;
  const CoopCudaPoolOptions options = { true, false, false, UINT64_MAX };

  open_device (&f, 32 * PAGE);
  g_assert_cmpint (coop_cuda_pool_new (&f.device, 8 * PAGE, &options, &p), ==, 0);
  g_assert_cmpint (coop_cuda_pool_alloc (p, 4 * PAGE, NULL, &a), ==, 0);
  g_assert_cmpint (coop_cuda_pool_alloc (p, 1, NULL, &b), ==, 0);
  g_assert_cmpint (coop_cuda_pool_figures (p, &g), ==, 0);
  g_assert_cmpuint (g.asked, ==, 4 * PAGE + 512);
  g_assert_cmpuint (g.used, ==, 4 * PAGE + 1);
  g_assert_cmpuint (g.reserved, ==, 5 * PAGE);
  g_assert_cmpint (coop_cuda_pool_alloc (p, 4 * PAGE, NULL, &a), ==, COOP_CU_OUT_OF_MEMORY);
  g_assert_cmpint (coop_cuda_pool_release (p, a + 1, NULL), ==, COOP_CU_INVALID_VALUE);
  g_assert_cmpint (coop_cuda_pool_release (p, a, NULL), ==, 0);
  g_assert_cmpint (f.cuda.fn.ctx_synchronize (), ==, 0);
  g_assert_cmpint (coop_cuda_pool_figures (p, &g), ==, 0);
  g_assert_cmpuint (g.reserved, ==, 5 * PAGE); /* the threshold keeps it */
  g_assert_cmpint (coop_cuda_pool_trim (p, 0), ==, 0);
  g_assert_cmpint (coop_cuda_pool_figures (p, &g), ==, 0);
  g_assert_cmpuint (g.reserved, ==, PAGE);
  g_assert_true (coop_cuda_pool_free (p)); /* with a block out */
  close_device (&f);
}

/* ---- a driver that refuses ---------------------------------------------------------------------- */

/* A run of calls in which any may fail. Error of the first that did, 0 if all went well. */
typedef struct {
  Fixture f;
  CoopCudaArena *arena;
  CoopCudaPages *pages;
  CoopCudaPool *pool;
  bool made;             /* the arena is more than something to give back */
} Run;

#define TRY(call)            \
  do                         \
    if ((rc = (call)) != 0)  \
      return rc;             \
  while (0)

static CoopCuResult
run_arena (Run *r)
{
  CoopCuResult rc;

  TRY (coop_cuda_arena_new (&r->f.device, 192u << 20, 65u << 20, &r->arena));
  r->made = true;
  TRY (coop_cuda_arena_commit (r->arena, 129u << 20));
  TRY (coop_cuda_arena_commit (r->arena, 1u << 20));
  TRY (coop_cuda_arena_commit (r->arena, 66u << 20));
  return 0;
}

static CoopCuResult
run_pages (Run *r)
{
  CoopCuPtr a, b, c;
  CoopCudaPagesFigures g;
  CoopCuStream stream = NULL;
  CoopCuResult rc;

  TRY (coop_cuda_pages_new (&r->f.device, 6 * PAGE, 0, &r->pages));
  TRY (coop_cuda_pages_alloc (r->pages, 3 * PAGE, &a));
  TRY (coop_cuda_pages_alloc (r->pages, 2 * PAGE, &b));
  fake_cuda_lazy (true);
  TRY (fake_cuda_touch (a, 3 * PAGE, true, stream)); /* unmapped too early it would break */
  TRY (fake_cuda_touch (b, 2 * PAGE, true, stream));
  g_assert_true (coop_cuda_pages_release (r->pages, a, &stream, 1));
  TRY (coop_cuda_pages_alloc (r->pages, 4 * PAGE, &c));
  coop_cuda_pages_figures (r->pages, &g);
  g_assert_cmpuint (g.created, <=, 6 * PAGE);
  g_assert_cmpuint (g.used, ==, 6 * PAGE);
  g_assert_true (coop_cuda_pages_release (r->pages, b, NULL, 0));
  g_assert_true (coop_cuda_pages_release (r->pages, c, &stream, 1));
  return 0;
}

static CoopCuResult
run_pool (Run *r)
{
  const CoopCudaPoolOptions options = { true, true, false, 3 * PAGE };
  CoopCudaPoolFigures g;
  CoopCuPtr a, b;
  CoopCuResult rc;

  TRY (coop_cuda_pool_new (&r->f.device, 6 * PAGE, &options, &r->pool));
  TRY (coop_cuda_pool_alloc (r->pool, 3 * PAGE, NULL, &a));
  TRY (coop_cuda_pool_alloc (r->pool, 2 * PAGE, NULL, &b));
  TRY (coop_cuda_pool_figures (r->pool, &g));
  TRY (coop_cuda_pool_release (r->pool, a, NULL));
  TRY (coop_cuda_pool_trim (r->pool, 0));
  return 0;
}

static CoopCuResult
run (Run *r, CoopCuResult (*body) (Run *))
{
  CoopCuResult rc;

  TRY (coop_cuda_device_open (&r->f.device, &r->f.cuda, 0));
  return body (r);
}

/* Now the driver does as it is told: once is enough, and nothing is left. */
static void
put_away (Run *r)
{
  fake_cuda_fail (0, 0, 0);
  if (r->pages != NULL)
    {
      CoopCudaPagesFigures g;
      g_assert_cmpint (coop_cuda_pages_collect (r->pages, true), ==, 0);
      coop_cuda_pages_figures (r->pages, &g);
      g_assert_cmpuint (g.stuck + g.leaving, ==, 0);
      g_assert_true (coop_cuda_pages_free (r->pages));
    }
  if (r->made)
    { /* what a refusal left half-done does not stand in the way of the next */
      g_assert_cmpint (coop_cuda_arena_commit (r->arena, 140u << 20), ==, 0);
      g_assert_cmpuint (coop_cuda_arena_committed (r->arena), ==, 140u << 20);
      fill (&r->f, coop_cuda_arena_base (r->arena) + (139u << 20), 1u << 20, 1);
    }
  if (r->arena != NULL)
    g_assert_true (coop_cuda_arena_free (r->arena));
  if (r->pool != NULL)
    g_assert_true (coop_cuda_pool_free (r->pool));
  close_device (&r->f);
}

/* The k-th call fails, alone or with all after it, for every k. Returns how many k made a call fail
 * for the caller. */
static unsigned
refuse_each (CoopCuResult (*body) (Run *), unsigned long in_a_row)
{
  unsigned refused = 0;

  for (unsigned long k = 1;; k++)
    {
      Run r = { 0 };
      CoopCudaTable table;
      fake_cuda_reset (256u << 20, PAGE);
      fake_cuda_table (&table);
      g_assert_true (coop_cuda_begin (&r.f.cuda, &table));
      fake_cuda_fail (k, in_a_row, COOP_CU_UNKNOWN);
      CoopCuResult rc = run (&r, body);
      bool reached = fake_cuda_calls () >= k;
      g_assert_true (rc == 0 || (reached && (rc == COOP_CU_UNKNOWN || rc == COOP_CU_OUT_OF_MEMORY)));
      refused += rc != 0;
      put_away (&r);
      if (!reached)
        return refused;
    }
}

static void
test_refused (gconstpointer body)
{
  CoopCuResult (*f) (Run *) = (CoopCuResult (*) (Run *)) body;

  g_assert_cmpuint (refuse_each (f, 1), >, 10);
  g_assert_cmpuint (refuse_each (f, 3), >, 10);
  g_assert_cmpuint (refuse_each (f, 1000000), >, 10);
}

/* Giving back, refused at every call: what is left is given back by the next attempt. */
static void
test_refused_to_the_end (void)
{
  for (unsigned long k = 1, calls = 1; k <= calls; k++)
    {
      Run r = { 0 };
      CoopCudaTable table;
      fake_cuda_reset (256u << 20, PAGE);
      fake_cuda_table (&table);
      g_assert_true (coop_cuda_begin (&r.f.cuda, &table));
      g_assert_cmpint (run (&r, run_pages), ==, 0);
      g_assert_cmpint (run_arena (&r), ==, 0);
      g_assert_cmpint (run_pool (&r), ==, 0);
      fake_cuda_fail (k, 1, COOP_CU_UNKNOWN);
      unsigned failures = 0;
      failures += !coop_cuda_pages_free (r.pages) && !coop_cuda_pages_free (r.pages);
      failures += !coop_cuda_arena_free (r.arena) && !coop_cuda_arena_free (r.arena);
      failures += !coop_cuda_pool_free (r.pool) && !coop_cuda_pool_free (r.pool);
      failures += !coop_cuda_device_close (&r.f.device) && !coop_cuda_device_close (&r.f.device);
      calls = fake_cuda_calls ();
      g_assert_cmpuint (failures, ==, 0);
      fake_cuda_fail (0, 0, 0);
      close_device (&r.f);
    }
}

/* The fence's own calls, each refused: events are never lost. */
static void
test_fence (void)
{
  for (unsigned long k = 1, calls = 1; k <= calls; k++)
    {
      Fixture f;
      CoopCudaFence fence = { .n = 0 };
      CoopCuStream s[2] = { NULL, NULL };
      open_device (&f, 32 * PAGE);
      g_assert_cmpint (f.cuda.fn.stream_create (&s[1], 1), ==, 0);
      fake_cuda_lazy (true);
      fake_cuda_fail (k, 1, COOP_CU_UNKNOWN);
      CoopCuResult rc = coop_cuda_fence_record (&f.device, &fence, s, 2);
      if (rc == 0 && coop_cuda_fence_query (&f.device, &fence) == COOP_CU_NOT_READY
          && coop_cuda_fence_order (&f.device, &fence, s[1]) == 0)
        coop_cuda_fence_wait (&f.device, &fence);
      calls = fake_cuda_calls ();
      fake_cuda_fail (0, 0, 0);
      g_assert_cmpint (coop_cuda_fence_wait (&f.device, &fence), ==, 0);
      g_assert_cmpuint (fence.n, ==, 0);
      g_assert_cmpint (f.cuda.fn.stream_destroy (s[1]), ==, 0);
      close_device (&f);
    }
}

/* ---- probe ------------------------------------------------------------------------------------- */

static char *
probe (uint64_t unit, const char *only, unsigned long k, int *status)
{
  CoopCuda cuda;
  CoopCudaTable table;
  char *text = NULL;
  size_t bytes = 0;
  FILE *out = open_memstream (&text, &bytes);

  fake_cuda_reset (80u << 20, PAGE);
  fake_cuda_table (&table);
  g_assert_true (coop_cuda_begin (&cuda, &table));
  fake_cuda_fail (k, 1, COOP_CU_UNKNOWN);
  *status = coop_cuda_probe (&cuda, 0, unit, only, true, out, out);
  fclose (out);
  return text;
}

static bool
says (const char *text, const char *variant, const char *what)
{
  char *line = g_strdup_printf ("{\"variant\":\"%s\",\"step\":\"verdict\",%s", variant, what);
  bool found = strstr (text, line) != NULL;
  g_free (line);
  return found;
}

static void
test_probe (void)
{
  const char *fits[] = { "malloc", "async", "async-keep", "async-keep-nosync", "page", "merge-move" };
  const char *yes = "\"p4\":true,\"p2_intact\":true,\"p4_usable\":true";
  int status;
  char *text = probe (1u << 20, NULL, 0, &status);

  g_assert_cmpint (status, ==, 0);
  g_assert_cmpstr (fake_cuda_leaks (), ==, NULL);
  for (unsigned i = 0; i < G_N_ELEMENTS (fits); i++)
    g_assert_true (says (text, fits[i], yes));
  g_assert_true (says (text, "merge", "\"p4\":false,\"p2_intact\":true"));
  free (text);
  text = probe (0, "no-such", 0, &status);
  g_assert_cmpint (status, ==, 2);
  g_assert_nonnull (strstr (text, "merge-move"));
  free (text);
  text = probe (6u << 20, NULL, 0, &status); /* three of these and the slack do not fit */
  g_assert_cmpint (status, ==, 1);
  g_assert_nonnull (strstr (text, "do not fit"));
  free (text);
}

/* A call that fails breaks a variant off, with the driver's word; nothing false is printed. */
static void
test_probe_refused (void)
{
  unsigned broke = 0;
  int status;

  free (probe (2 * PAGE, NULL, 0, &status));
  const unsigned long calls = fake_cuda_calls ();
  for (unsigned long k = 1; k <= calls; k++)
    {
      char *text = probe (2 * PAGE, NULL, k, &status);
      g_assert_null (strstr (text, "\"p2_intact\":false"));
      g_assert_null (strstr (text, "\"p4\":true,\"p2_intact\":true,\"p4_usable\":false"));
      g_assert_true (status == 0 || (status == 1 && strstr (text, "999") != NULL));
      broke += status;
      free (text);
    }
  g_assert_cmpuint (broke, >, 10);
}

/* ---- the fake is strict ------------------------------------------------------------------------- */

static void
test_strict (void)
{
  Fixture f;
  const CoopCudaTable *fn = &f.cuda.fn;
  CoopCuMemProp prop = { .type = COOP_CU_ALLOCATION_PINNED, .location = { COOP_CU_LOCATION_DEVICE, 0 } };
  CoopCuAccess access = { { COOP_CU_LOCATION_DEVICE, 0 }, COOP_CU_ACCESS_READWRITE };
  CoopCuPtr at;
  CoopCuHandle h;

  open_device (&f, 16 * PAGE);
  g_assert_cmpint (fn->address_reserve (&at, PAGE + 1, 0, 0, 0), ==, COOP_CU_INVALID_VALUE);
  g_assert_cmpint (fn->address_reserve (&at, 8 * PAGE, 0, 0, 0), ==, 0);
  g_assert_cmpint (fn->mem_create (&h, PAGE / 2, &prop, 0), ==, COOP_CU_INVALID_VALUE);
  g_assert_cmpint (fn->mem_create (&h, 17 * PAGE, &prop, 0), ==, COOP_CU_OUT_OF_MEMORY);
  g_assert_cmpint (fn->mem_create (&h, 4 * PAGE, &prop, 0), ==, 0);
  g_assert_cmpint (fn->mem_map (at, 2 * PAGE, PAGE, h, 0), ==, COOP_CU_INVALID_VALUE); /* an offset */
  g_assert_cmpint (fn->mem_map (at + 1, PAGE, 0, h, 0), ==, COOP_CU_INVALID_VALUE);
  g_assert_cmpint (fn->mem_map (at + 6 * PAGE, 4 * PAGE, 0, h, 0), ==, COOP_CU_INVALID_VALUE);
  g_assert_cmpint (fn->mem_map (at, 4 * PAGE, 0, h, 0), ==, 0);
  g_assert_cmpint (fn->mem_map (at + PAGE, PAGE, 0, h, 0), ==, COOP_CU_INVALID_VALUE);
  g_assert_cmpint (fn->mem_access (at, 8 * PAGE, &access, 1), ==, COOP_CU_INVALID_VALUE);
  g_assert_cmpint (fn->mem_access (at, 4 * PAGE, &access, 1), ==, 0);
  g_assert_cmpint (fn->mem_unmap (at, PAGE), ==, COOP_CU_INVALID_VALUE);               /* part of it */
  g_assert_cmpint (fn->address_free (at, 8 * PAGE), ==, COOP_CU_INVALID_VALUE);
  g_assert_cmpint (fn->mem_release (h), ==, 0);
  g_assert_cmpint (fn->mem_release (h), ==, COOP_CU_INVALID_VALUE);
  g_assert_cmpuint (fake_cuda_used (), ==, 4 * PAGE); /* until it is unmapped */
  g_assert_cmpint (fn->mem_unmap (at, 4 * PAGE), ==, 0);
  g_assert_cmpuint (fake_cuda_used (), ==, 0);
  g_assert_cmpint (fn->address_free (at, 4 * PAGE), ==, COOP_CU_INVALID_VALUE);
  g_assert_cmpint (fn->address_free (at, 8 * PAGE), ==, 0);
  close_device (&f);
}

/* Work reaches memory without access, or unmapped meanwhile: the context is broken for good. */
static void
test_breaks (void)
{
  for (int early = 0; early < 2; early++)
    {
      Fixture f;
      CoopCuMemProp prop = { .type = COOP_CU_ALLOCATION_PINNED,
                             .location = { COOP_CU_LOCATION_DEVICE, 0 } };
      CoopCuAccess access = { { COOP_CU_LOCATION_DEVICE, 0 }, COOP_CU_ACCESS_READWRITE };
      CoopCuPtr at;
      CoopCuHandle h;
      open_device (&f, 16 * PAGE);
      g_assert_cmpint (f.cuda.fn.address_reserve (&at, PAGE, 0, 0, 0), ==, 0);
      g_assert_cmpint (f.cuda.fn.mem_create (&h, PAGE, &prop, 0), ==, 0);
      g_assert_cmpint (f.cuda.fn.mem_map (at, PAGE, 0, h, 0), ==, 0);
      fake_cuda_lazy (true);
      if (early)
        g_assert_cmpint (f.cuda.fn.mem_access (at, PAGE, &access, 1), ==, 0);
      g_assert_cmpint (fake_cuda_touch (at, PAGE, true, NULL), ==, 0);
      if (early)
        g_assert_cmpint (f.cuda.fn.mem_unmap (at, PAGE), ==, 0);
      g_assert_cmpint (f.cuda.fn.ctx_synchronize (), ==, COOP_CU_ILLEGAL_ADDRESS);
      g_assert_cmpint (f.cuda.fn.mem_release (h), ==, COOP_CU_ILLEGAL_ADDRESS);
    }
  fake_cuda_reset (0, 0);
}

static void
test_no_driver (void)
{
  CoopCuda cuda;

  if (g_test_subprocess ())
    return;
  if (coop_cuda_load (&cuda)) /* there is one: then it must name its devices */
    g_assert_cmpint (cuda.n_devices, >, 0);
  else
    g_assert_cmpuint (strlen (cuda.why), >, 10);
}

static void
test_driver_does_not_start (void)
{
  CoopCuda cuda;
  CoopCudaTable table;

  fake_cuda_reset (0, 0);
  fake_cuda_table (&table);
  fake_cuda_fail (1, 1, COOP_CU_STUB_LIBRARY);
  g_assert_false (coop_cuda_begin (&cuda, &table));
  g_assert_cmpstr (cuda.why, ==, "libcuda.so.1 is the toolkit's stub, not a driver");
  fake_cuda_fail (1, 1, COOP_CU_UNKNOWN);
  g_assert_false (coop_cuda_begin (&cuda, &table));
  g_assert_cmpstr (cuda.why, ==, "the driver does not start: CUDA_ERROR_UNKNOWN (999)");
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  g_test_add_func ("/cuda/no-driver", test_no_driver);
  g_test_add_func ("/cuda/driver-does-not-start", test_driver_does_not_start);
  g_test_add_func ("/cuda/device", test_device);
  g_test_add_func ("/cuda/other-thread", test_other_thread);
  g_test_add_func ("/cuda/arena", test_arena);
  g_test_add_func ("/cuda/arena-undoes", test_arena_undoes);
  g_test_add_func ("/cuda/arena-without-pages", test_arena_without_pages);
  g_test_add_func ("/cuda/pages", test_pages);
  g_test_add_func ("/cuda/pages-in-flight", test_pages_in_flight);
  g_test_add_func ("/cuda/pool", test_pool);
  g_test_add_func ("/cuda/fence", test_fence);
  g_test_add_data_func ("/cuda/refused/arena", (gconstpointer) run_arena, test_refused);
  g_test_add_data_func ("/cuda/refused/pages", (gconstpointer) run_pages, test_refused);
  g_test_add_data_func ("/cuda/refused/pool", (gconstpointer) run_pool, test_refused);
  g_test_add_func ("/cuda/refused/to-the-end", test_refused_to_the_end);
  g_test_add_func ("/cuda/probe", test_probe);
  g_test_add_func ("/cuda/probe-refused", test_probe_refused);
  g_test_add_func ("/cuda/fake/strict", test_strict);
  g_test_add_func ("/cuda/fake/breaks", test_breaks);
  return g_test_run ();
}
