/* SPDX-License-Identifier: Apache-2.0 */
/* The reviewer's program on a GPU: p1, p2 and p3 of one unit each, p1 and p3 freed, p4 of two units
 * asked for. Does it fit? With plain cudaMalloc, with the driver's pool, with page tables, inside one
 * arena, and inside one arena whose tensors may move.
 *
 * A ballast takes the rest of the device first: on a large one everything fits and nothing is shown.
 * What is left beside three units is a little slack for the driver. It prints what happened and
 * asserts nothing about the driver. */
#include "device/cuda-private.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "core/engine.h"

#define SLACK ((uint64_t) 64 << 20)
#define UNIT_MOST ((uint64_t) 7 << 30)
#define BLOCK ((uint64_t) 1 << 20)  /* each has a word of its own */

typedef struct Probe Probe;

typedef struct {
  const char *name, *what;
  uint64_t threshold;
  bool sync;
  CoopCuResult (*begin) (Probe *p);
  CoopCuResult (*alloc) (Probe *p, uint64_t bytes, CoopCuPtr *out);
  CoopCuResult (*release) (Probe *p, CoopCuPtr at);
  CoopCuResult (*settle) (Probe *p);
  bool (*end) (Probe *p);
} Variant;

struct Probe {
  CoopCudaDevice d;
  const Variant *v;
  uint64_t unit;
  CoopCuStream stream;
  CoopCuPtr ballast;
  CoopCudaPages *pages;
  CoopCudaPool *pool;
  CoopCudaArena *arena;
  CoopEngine *engine;
  CoopCuPtr p[5];            /* p[1] to p[4] */
  bool moves, json, broke;
  FILE *out;
};

static double
now_ms (void)
{
  struct timespec t;
  clock_gettime (CLOCK_MONOTONIC, &t);
  return (double) t.tv_sec * 1e3 + (double) t.tv_nsec / 1e6;
}

/* ---- the ways to allocate ----------------------------------------------------------------------- */

static CoopCuResult
nothing (Probe *p)
{
  return 0;
}

static bool
nothing_to_end (Probe *p)
{
  return true;
}

static CoopCuResult
plain_alloc (Probe *p, uint64_t bytes, CoopCuPtr *out)
{
  return FN (&p->d)->mem_alloc (out, bytes);
}

static CoopCuResult
plain_release (Probe *p, CoopCuPtr at)
{
  return FN (&p->d)->mem_free (at);
}

static CoopCuResult
pool_begin (Probe *p)
{
  const CoopCudaPoolOptions options = { true, true, true, p->v->threshold };
  return coop_cuda_pool_new (&p->d, UINT64_MAX / 2, &options, &p->pool);
}

static CoopCuResult
pool_alloc (Probe *p, uint64_t bytes, CoopCuPtr *out)
{
  return coop_cuda_pool_alloc (p->pool, bytes, p->stream, out);
}

static CoopCuResult
pool_release (Probe *p, CoopCuPtr at)
{
  return coop_cuda_pool_release (p->pool, at, p->stream);
}

static CoopCuResult
synchronize (Probe *p)
{
  return p->v->sync ? FN (&p->d)->stream_synchronize (p->stream) : 0;
}

static bool
pool_end (Probe *p)
{
  bool done = p->pool == NULL || coop_cuda_pool_free (p->pool);

  p->pool = done ? NULL : p->pool;
  return done;
}

static CoopCuResult
pages_begin (Probe *p)
{
  return coop_cuda_pages_new (&p->d, coop_round_up (p->unit, p->d.granule) * 3, 0, &p->pages);
}

static CoopCuResult
pages_alloc (Probe *p, uint64_t bytes, CoopCuPtr *out)
{
  return coop_cuda_pages_alloc (p->pages, bytes, out);
}

static CoopCuResult
pages_release (Probe *p, CoopCuPtr at)
{
  return coop_cuda_pages_release (p->pages, at, &p->stream, 1) ? 0 : COOP_CU_INVALID_VALUE;
}

static bool
pages_end (Probe *p)
{
  bool done = p->pages == NULL || coop_cuda_pages_free (p->pages);

  p->pages = done ? NULL : p->pages;
  return done;
}

static CoopCuResult
arena_begin (Probe *p)
{
  CoopEngineOptions options = { .capacity = 3 * p->unit };

  coop_policy_init (&options.policy);
  coop_policy_preset (&options.policy, COOP_EVICTOR_NONE);
  options.policy.v[COOP_PARAM_GROUPS].i = 1; /* plain best fit */
  options.policy.v[COOP_PARAM_SMALL].i = 0;
  options.policy.v[COOP_PARAM_BUDGET].i = (int64_t) options.capacity;
  p->engine = coop_engine_new (&options);
  return p->engine ? coop_cuda_arena_new (&p->d, 3 * p->unit, 3 * p->unit, &p->arena)
                   : COOP_CU_OUT_OF_MEMORY;
}

static CoopCuResult
arena_alloc (Probe *p, uint64_t bytes, CoopCuPtr *out)
{
  CoopRequest req = { .bytes = bytes };
  CoopCuPtr base = coop_cuda_arena_base (p->arena);
  CoopCuResult rc = 0;

  bool placed = coop_engine_try (p->engine, &req);
  if (!placed && p->moves)
    { /* p2 goes to the beginning, where p1 was */
      rc = FN (&p->d)->copy_dtod (base, p->p[2], p->unit, p->stream);
      coop_engine_free (p->engine, p->p[2] - base);
      CoopRequest again = { .bytes = p->unit };
      if (rc != 0 || !coop_engine_try (p->engine, &again) || again.addr != 0)
        return rc ? rc : COOP_CU_UNKNOWN;
      p->p[2] = base;
      rc = FN (&p->d)->stream_synchronize (p->stream);
      placed = rc == 0 && coop_engine_try (p->engine, &req);
    }
  if (!placed)
    return rc ? rc : COOP_CU_OUT_OF_MEMORY;
  *out = base + req.addr;
  return 0;
}

static CoopCuResult
arena_move_begin (Probe *p)
{
  p->moves = true;
  return arena_begin (p);
}

static CoopCuResult
arena_release (Probe *p, CoopCuPtr at)
{
  return coop_engine_free (p->engine, at - coop_cuda_arena_base (p->arena)) ? 0 : COOP_CU_INVALID_VALUE;
}

static bool
arena_end (Probe *p)
{
  bool done = p->arena == NULL || coop_cuda_arena_free (p->arena);

  p->arena = done ? NULL : p->arena;
  if (p->engine != NULL)
    coop_engine_free_all (p->engine);
  p->engine = NULL;
  p->moves = false;
  return done;
}

static const Variant variants[] = {
  { "malloc", "cuMemAlloc and cuMemFree", 0, false, nothing, plain_alloc, plain_release, nothing,
    nothing_to_end },
  { "async", "the driver's pool, threshold 0, synchronised after the frees", 0, true, pool_begin,
    pool_alloc, pool_release, synchronize, pool_end },
  { "async-keep", "the same, keeping all it has (threshold at its largest)", UINT64_MAX, true,
    pool_begin, pool_alloc, pool_release, synchronize, pool_end },
  { "async-keep-nosync", "the same, without a synchronisation", UINT64_MAX, false, pool_begin,
    pool_alloc, pool_release, synchronize, pool_end },
  { "page", "one handle a page, mapped anew", 0, false, pages_begin, pages_alloc, pages_release, nothing,
    pages_end },
  { "merge", "best fit inside one arena", 0, false, arena_begin, arena_alloc, arena_release, nothing,
    arena_end },
  { "merge-move", "the same, and p2 may move", 0, false, arena_move_begin, arena_alloc, arena_release,
    nothing, arena_end },
};

/* ---- contents ----------------------------------------------------------------------------------- */

/* Each block of p2 has its number in all of its words. */
static CoopCuResult
fill (Probe *p, CoopCuPtr at, uint64_t bytes, unsigned first)
{
  CoopCuResult rc = 0;

  for (uint64_t i = 0; rc == 0 && i < bytes; i += BLOCK)
    {
      uint64_t n = bytes - i < BLOCK ? bytes - i : BLOCK;
      rc = FN (&p->d)->set_d32 (at + i, first + (unsigned) (i / BLOCK), n / 4, p->stream);
    }
  return rc ? rc : FN (&p->d)->stream_synchronize (p->stream);
}

static CoopCuResult
compare (Probe *p, CoopCuPtr at, uint64_t bytes, unsigned first, bool *same)
{
  unsigned *got = malloc (BLOCK);
  CoopCuResult rc = got ? 0 : COOP_CU_OUT_OF_MEMORY;

  *same = true;
  for (uint64_t i = 0; rc == 0 && i < bytes; i += BLOCK)
    {
      uint64_t n = bytes - i < BLOCK ? bytes - i : BLOCK;
      rc = FN (&p->d)->copy_dtoh (got, at + i, n, p->stream);
      rc = rc ? rc : FN (&p->d)->stream_synchronize (p->stream);
      for (uint64_t w = 0; rc == 0 && w < n / 4; w++)
        *same &= got[w] == first + (unsigned) (i / BLOCK);
    }
  free (got);
  return rc;
}

/* ---- printing ----------------------------------------------------------------------------------- */

static const char *
size_text (uint64_t bytes, char out[24])
{
  coop_size_format (bytes, out, 24);
  return out;
}

static void
print_step (Probe *p, const char *step, CoopCuResult rc, CoopCuPtr at, double ms)
{
  uint64_t free = 0, total = 0;
  CoopCudaPoolFigures pool = { 0 };
  char a[24], b[24], c[24];

  coop_cuda_device_info (&p->d, &free, &total);
  if (p->pool != NULL)
    coop_cuda_pool_figures (p->pool, &pool);
  if (p->json)
    {
      fprintf (p->out, "{\"variant\":\"%s\",\"step\":\"%s\",\"result\":%d,\"address\":%llu,\"free\":%llu,"
               "\"total\":%llu,", p->v->name, step, rc, (unsigned long long) at,
               (unsigned long long) free, (unsigned long long) total);
      if (p->pool != NULL)
        fprintf (p->out, "\"reserved\":%llu,\"used\":%llu,", (unsigned long long) pool.reserved,
                 (unsigned long long) pool.used);
      fprintf (p->out, "\"ms\":%.3f}\n", ms);
      return;
    }
  fprintf (p->out, "  %-8s %-28s 0x%012llx  free %10s", step, rc ? coop_cuda_error (p->d.cuda, rc) : "ok",
           (unsigned long long) at, size_text (free, a));
  if (p->pool != NULL)
    fprintf (p->out, "  reserved %10s  used %10s", size_text (pool.reserved, b), size_text (pool.used, c));
  fprintf (p->out, "  %9.3f ms\n", ms);
}

static CoopCuResult
take (Probe *p, int i, uint64_t bytes)
{
  char step[16];
  double begin = now_ms ();
  CoopCuResult rc = p->v->alloc (p, bytes, &p->p[i]);

  snprintf (step, sizeof step, "p%d", i);
  if (rc != 0)
    p->p[i] = 0;
  print_step (p, step, rc, p->p[i], now_ms () - begin);
  return rc;
}

static CoopCuResult
give (Probe *p, int i)
{
  char step[16];
  double begin = now_ms ();
  CoopCuResult rc = p->v->release (p, p->p[i]);

  snprintf (step, sizeof step, "free p%d", i);
  print_step (p, step, rc, p->p[i], now_ms () - begin);
  p->p[i] = rc == 0 ? 0 : p->p[i];
  return rc;
}

static void
print_verdict (Probe *p, CoopCuResult p4, bool intact, bool usable)
{
  CoopTotals t = { 0 };
  CoopCudaPagesFigures g = { 0 };
  char a[24], b[24];

  if (p->engine != NULL)
    coop_engine_totals (p->engine, &t);
  if (p->pages != NULL)
    coop_cuda_pages_figures (p->pages, &g);
  if (p->json)
    {
      fprintf (p->out, "{\"variant\":\"%s\",\"step\":\"verdict\",\"p4\":%s,\"p2_intact\":%s,"
               "\"p4_usable\":%s,\"maps\":%llu,\"unmaps\":%llu}\n", p->v->name, p4 == 0 ? "true" : "false",
               intact ? "true" : "false", usable ? "true" : "false", (unsigned long long) g.maps,
               (unsigned long long) g.unmaps);
      return;
    }
  fprintf (p->out, "  -> p4 %s; p2 %s", p4 == 0 ? (usable ? "fits and holds what is written" : "FITS BUT DOES NOT HOLD ITS BYTES")
                                                : "does not fit", intact ? "intact" : "DAMAGED");
  if (p->engine != NULL && p4 != 0)
    fprintf (p->out, "; %s free, largest hole %s", size_text (t.free, a), size_text (t.largest, b));
  if (p->pages != NULL)
    fprintf (p->out, "; %llu pages of %s mapped, %llu unmapped", (unsigned long long) g.maps,
             size_text (g.page, a), (unsigned long long) g.unmaps);
  fputs ("\n", p->out);
}

/* ---- the program -------------------------------------------------------------------------------- */

static CoopCuResult
body (Probe *p)
{
  bool intact = false, usable = false;
  CoopCuResult rc, p4;

  for (int i = 1; i <= 3; i++)
    if ((rc = take (p, i, p->unit)) != 0)
      return rc;
  if ((rc = fill (p, p->p[2], p->unit, 1)) != 0 || (rc = give (p, 1)) != 0 || (rc = give (p, 3)) != 0)
    return rc;
  double begin = now_ms ();
  if ((rc = p->v->settle (p)) != 0)
    return rc;
  if (p->v->settle != nothing && p->v->sync)
    print_step (p, "settle", rc, 0, now_ms () - begin);
  p4 = take (p, 4, 2 * p->unit);
  if (p4 != 0 && p4 != COOP_CU_OUT_OF_MEMORY)
    return p4;
  if (p4 == 0 && ((rc = fill (p, p->p[4], 2 * p->unit, 1u << 24)) != 0
                  || (rc = compare (p, p->p[4], 2 * p->unit, 1u << 24, &usable)) != 0))
    return rc;
  if ((rc = compare (p, p->p[2], p->unit, 1, &intact)) != 0)
    return rc;
  print_verdict (p, p4, intact, usable);
  return 0;
}

static void
run_variant (Probe *p, const Variant *v, FILE *err)
{
  CoopCuResult rc;

  p->v = v;
  if (!p->json)
    fprintf (p->out, "%s: %s\n", v->name, v->what);
  rc = v->begin (p);
  if (rc == 0)
    rc = body (p);
  for (int i = 1; i <= 4; i++)
    if (p->p[i] != 0)
      {
        v->release (p, p->p[i]);
        p->p[i] = 0;
      }
  FN (&p->d)->ctx_synchronize ();
  if (!v->end (p) && !v->end (p) && rc == 0)
    rc = COOP_CU_UNKNOWN;
  if (rc == COOP_CU_NOT_SUPPORTED)
    fprintf (err, "coop probe: %s: the device cannot do this\n", v->name);
  else if (rc != 0)
    {
      fprintf (err, "coop probe: %s: broke off: %s\n", v->name, coop_cuda_error (p->d.cuda, rc));
      p->broke = true;
    }
}

/* Sizes the unit and takes the rest. */
static CoopCuResult
take_ballast (Probe *p, uint64_t unit, FILE *err)
{
  uint64_t free = 0, total = 0, step = p->d.granule ? p->d.granule : (uint64_t) 2 << 20;
  char a[24], b[24], c[24], d[24];
  CoopCuResult rc = coop_cuda_device_info (&p->d, &free, &total);

  if (rc != 0)
    return rc;
  p->unit = unit ? unit : free / 6 < UNIT_MOST ? free / 6 : UNIT_MOST;
  p->unit = p->unit / step * step;
  if (p->unit == 0 || p->unit > free / 3 || 3 * p->unit + SLACK > free)
    {
      fprintf (err, "coop probe: three units of %s and %s do not fit into %s free\n",
               size_text (unit ? unit : step, a), size_text (SLACK, b), size_text (free, c));
      return COOP_CU_OUT_OF_MEMORY;
    }
  uint64_t ballast = free - 3 * p->unit - SLACK;
  if (ballast > 0 && (rc = FN (&p->d)->mem_alloc (&p->ballast, ballast)) != 0)
    return rc;
  if (p->json)
    fprintf (p->out, "{\"device\":\"%s\",\"driver\":%d,\"granule\":%llu,\"recommended\":%llu,\"pools\":%s,"
             "\"total\":%llu,\"free\":%llu,\"unit\":%llu,\"ballast\":%llu}\n", p->d.name,
             p->d.cuda->version, (unsigned long long) p->d.granule, (unsigned long long) p->d.recommended,
             p->d.has_pools ? "true" : "false", (unsigned long long) total, (unsigned long long) free,
             (unsigned long long) p->unit, (unsigned long long) ballast);
  else
    fprintf (p->out, "%s, compute %d.%d, driver %d.%d; %s free of %s; smallest page %s\n"
             "p1, p2, p3 of %s each; p1 and p3 freed; p4 of twice the size asked for. Ballast %s.\n",
             p->d.name, p->d.major, p->d.minor, p->d.cuda->version / 1000,
             p->d.cuda->version % 1000 / 10, size_text (free, a), size_text (total, b),
             p->d.granule ? size_text (p->d.granule, c) : "none", size_text (p->unit, d),
             ballast ? size_text (ballast, (char[24]){ 0 }) : "none");
  return 0;
}

int
coop_cuda_probe (const CoopCuda *cuda, int ordinal, uint64_t unit, const char *only, bool json, FILE *out,
                 FILE *err)
{
  Probe p = { .json = json, .out = out };
  bool found = only == NULL;

  for (size_t i = 0; only != NULL && i < sizeof variants / sizeof *variants; i++)
    found |= strcmp (variants[i].name, only) == 0;
  if (!found)
    {
      fprintf (err, "coop probe: no variant \"%s\"; there are", only);
      for (size_t i = 0; i < sizeof variants / sizeof *variants; i++)
        fprintf (err, " %s", variants[i].name);
      fputs ("\n", err);
      return 2;
    }
  CoopCuResult rc = coop_cuda_device_open (&p.d, cuda, ordinal);
  if (rc == 0)
    rc = FN (&p.d)->stream_create (&p.stream, COOP_CU_STREAM_NON_BLOCKING);
  bool begun = rc == 0 && (rc = take_ballast (&p, unit, err)) == 0;
  for (size_t i = 0; begun && i < sizeof variants / sizeof *variants; i++)
    if (only == NULL || strcmp (variants[i].name, only) == 0)
      run_variant (&p, &variants[i], err);
  if (rc != 0 && rc != COOP_CU_OUT_OF_MEMORY)
    fprintf (err, "coop probe: device %d: %s\n", ordinal, coop_cuda_error (cuda, rc));
  if (p.ballast != 0)
    FN (&p.d)->mem_free (p.ballast);
  if (p.stream != NULL)
    FN (&p.d)->stream_destroy (p.stream);
  coop_cuda_device_close (&p.d);
  return rc != 0 || p.broke;
}
