/* SPDX-License-Identifier: Apache-2.0 */
#include "probe-host.h"

#include "cli.h"
#include "core/engine.h"
#include "device/device.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>

#define NAME "probe"
#define UNIT (G_GUINT64_CONSTANT (64) << 20)
#define UNIT_MOST (G_GUINT64_CONSTANT (1) << 36)
#define ROOM 16             /* units of address space; memory is three */
#define PAGE 4096u          /* of the system */
#define PAGE_DEFAULT (2u << 20)
#define PAGE_MOST (20u << 20)

typedef enum { HOST_MALLOC, HOST_ENGINE } Way;

typedef struct {
  const char *name, *what;
  Way way;
  CoopAllocatorName allocator;
  gboolean give_back, moves;
} Variant;

static const Variant variants[] = {
  { "malloc", "the C library's, three units of address space left", HOST_MALLOC },
  { "merge", "best fit inside one arena", HOST_ENGINE, COOP_ALLOCATOR_MERGE, FALSE, FALSE },
  { "merge-move", "the same, and p2 may move", HOST_ENGINE, COOP_ALLOCATOR_MERGE, FALSE, TRUE },
  { "class", "a list for each size, nothing goes back to the system", HOST_ENGINE, COOP_ALLOCATOR_CLASS, FALSE, FALSE },
  { "class-back", "the same, and whole chunks may go back", HOST_ENGINE, COOP_ALLOCATOR_CLASS, TRUE, FALSE },
  { "caching", "PyTorch's rules for CUDA", HOST_ENGINE, COOP_ALLOCATOR_CACHING, TRUE, FALSE },
  { "page", "pages from anywhere, mapped together", HOST_ENGINE, COOP_ALLOCATOR_PAGE, FALSE, FALSE },
};

typedef struct {
  const Variant *v;
  guint64 unit, page;
  gboolean json;
  CoopEngine *engine;
  CoopArena *arena;
  struct rlimit before;
  guint8 *p[5];             /* p[1] to p[4] */
  CoopTensor *tensor;       /* of p2, where it may move */
  guint64 copied, pages;    /* bytes; pages moved by the page table */
} Probe;

/* ---- where bytes are ---- */

/* The system's page table moves them; nothing is copied. What they leave is empty again. */
static void
remap (void *user, guint64 from, guint64 to, guint64 bytes)
{
  Probe *p = user;
  void *a = coop_arena_addr (p->arena, from), *b = coop_arena_addr (p->arena, to);
  if (mremap (a, bytes, bytes, MREMAP_MAYMOVE | MREMAP_FIXED, b) == MAP_FAILED)
    g_error ("mremap failed");
  if (mmap (a, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0) == MAP_FAILED)
    g_error ("mmap failed");
  p->pages += bytes / PAGE;
}

static void
unmap (void *user, guint64 addr, guint64 bytes)
{
  coop_arena_trim (((Probe *) user)->arena, addr, bytes);
}

static gboolean
begin_engine (Probe *p)
{
  CoopEngineOptions o = { .capacity = p->v->allocator == COOP_ALLOCATOR_MERGE ? 3 * p->unit : ROOM * p->unit };
  o.backing = (CoopBacking) { .unmap = unmap, .remap = remap, .user = p };
  coop_policy_init (&o.policy);
  coop_policy_preset (&o.policy, COOP_EVICTOR_NONE);
  o.policy.v[COOP_PARAM_GROUPS].i = 1;   /* plain best fit */
  o.policy.v[COOP_PARAM_SMALL].i = 0;
  o.policy.v[COOP_PARAM_COPY_RATE].d = 0;
  o.policy.v[COOP_PARAM_ALLOCATOR].i = p->v->allocator;
  o.policy.v[COOP_PARAM_PAGE].i = (gint64) p->page;
  o.policy.v[COOP_PARAM_GIVE_BACK].i = p->v->give_back;
  o.policy.v[COOP_PARAM_BUDGET].i = (gint64) (3 * p->unit);
  p->arena = coop_arena_new (o.capacity);
  p->engine = p->arena != NULL ? coop_engine_new (&o) : NULL;
  return p->engine != NULL;
}

/* All that this process has, and three units: more than malloc's own needs are below one. */
static gboolean
begin_malloc (Probe *p)
{
  g_autofree char *text = NULL;
  unsigned long long used = 0;
  struct rlimit limit;
  if (!g_file_get_contents ("/proc/self/statm", &text, NULL, NULL) || sscanf (text, "%llu", &used) != 1
      || getrlimit (RLIMIT_AS, &p->before) != 0)
    return FALSE;
  limit = p->before;
  limit.rlim_cur = used * PAGE + 3 * p->unit + p->unit / 2;
  return setrlimit (RLIMIT_AS, &limit) == 0;
}

static gboolean
begin (Probe *p)
{
  p->copied = p->pages = 0;
  p->tensor = NULL;
  return p->v->way == HOST_MALLOC ? begin_malloc (p) : begin_engine (p);
}

static void
end (Probe *p)
{
  if (p->v->way == HOST_MALLOC)
    {
      for (guint i = 1; i <= 4; i++)
        free (p->p[i]);
      setrlimit (RLIMIT_AS, &p->before);
    }
  if (p->engine != NULL)
    coop_engine_free_all (p->engine);
  if (p->arena != NULL)   /* arenas stay mapped; their pages do not */
    coop_arena_trim (p->arena, 0, (p->v->allocator == COOP_ALLOCATOR_MERGE ? 3 : ROOM) * p->unit);
  p->engine = NULL;
  p->arena = NULL;
  memset (p->p, 0, sizeof p->p);
}

/* ---- the steps ---- */

static void
compact (Probe *p)
{
  CoopCall call = { .inputs = NULL };
  CoopAction a;
  coop_engine_begin (p->engine, &call);
  while (coop_engine_compact (p->engine, &call, &a))
    {
      memmove (coop_arena_addr (p->arena, a.to), coop_arena_addr (p->arena, a.from), p->unit);
      p->copied += p->unit;
      coop_engine_placed (p->engine, a.tensor, a.to, true);
      p->p[2] = coop_arena_addr (p->arena, p->tensor->addr);
    }
  coop_engine_abort (p->engine, &call);
}

static guint8 *
take (Probe *p, guint64 bytes)
{
  CoopRequest req = { .bytes = bytes, .retry = true };
  if (p->v->way == HOST_MALLOC)
    return malloc (bytes);
  CoopStatus status = coop_engine_alloc (p->engine, &req);
  if (status != COOP_OK && p->v->moves)
    {
      compact (p);
      req = (CoopRequest) { .bytes = bytes };
      status = coop_engine_alloc (p->engine, &req);
    }
  return status == COOP_OK ? coop_arena_addr (p->arena, req.addr) : NULL;
}

static void
give (Probe *p, guint8 *at)
{
  if (p->v->way == HOST_MALLOC)
    free (at);
  else
    coop_engine_free (p->engine, coop_arena_offset (p->arena, at));
}

/* So that it may move: the engine knows what lies there. */
static void
claim (Probe *p)
{
  CoopAdopt a = { .addr = coop_arena_offset (p->arena, p->p[2]), .requested = p->unit, .kind = COOP_KIND_STATE,
                  .pin = COOP_PIN_CONSTANT };
  p->tensor = coop_engine_adopt (p->engine, &a);
}

static void
fill (guint8 *at, guint64 bytes, guint64 seed)
{
  for (guint64 i = 0; i < bytes / 8; i++)
    ((guint64 *) (void *) at)[i] = seed + i;
}

static gboolean
holds (const guint8 *at, guint64 bytes, guint64 seed)
{
  for (guint64 i = 0; i < bytes / 8; i++)
    if (((const guint64 *) (const void *) at)[i] != seed + i)
      return FALSE;
  return TRUE;
}

/* ---- printing ---- */

static void
print_step (Probe *p, const char *step, gboolean ok, const guint8 *at, gint64 us)
{
  CoopTotals t = { 0 };
  if (p->engine != NULL)
    coop_engine_totals (p->engine, &t);
  if (p->json)
    {
      g_autoptr (GString) out = g_string_new (NULL);
      coop_json_open (out, NULL, '{');
      coop_json_string (out, "variant", p->v->name);
      coop_json_string (out, "step", step);
      coop_json_bool (out, "result", ok);
      coop_json_uint (out, "address", GPOINTER_TO_SIZE (at));
      if (p->engine != NULL)
        {
          coop_json_uint (out, "free", t.free);
          coop_json_uint (out, "largest", t.largest);
        }
      coop_json_real (out, "ms", (double) us / 1e3);
      coop_json_close (out, '}');
      printf ("%s\n", out->str);
      return;
    }
  g_autofree char *free_text = coop_cli_size (t.free), *largest = coop_cli_size (t.largest);
  printf ("  %-8s %-14s 0x%012" G_GINT64_MODIFIER "x", step, ok ? "ok" : "out of memory", (guint64) GPOINTER_TO_SIZE (at));
  if (p->engine != NULL)
    printf ("  free %9s  largest run %9s", free_text, largest);
  printf ("  %9.3f ms\n", (double) us / 1e3);
}

static void
print_verdict (Probe *p, gboolean fits, gboolean intact, gboolean usable)
{
  if (p->json)
    {
      g_autoptr (GString) out = g_string_new (NULL);
      coop_json_open (out, NULL, '{');
      coop_json_string (out, "variant", p->v->name);
      coop_json_string (out, "step", "verdict");
      coop_json_bool (out, "p4", fits);
      coop_json_bool (out, "p2_intact", intact);
      coop_json_bool (out, "p4_usable", usable);
      coop_json_uint (out, "bytes_copied", p->copied);
      coop_json_uint (out, "pages_moved", p->pages);
      coop_json_close (out, '}');
      printf ("%s\n", out->str);
      return;
    }
  g_autofree char *copied = coop_cli_size (p->copied);
  printf ("  -> p4 %s; p2 %s", !fits ? "does not fit" : usable ? "fits and holds what is written"
                                                               : "FITS BUT DOES NOT HOLD ITS BYTES",
          intact ? "intact" : "DAMAGED");
  if (p->copied > 0)
    printf ("; %s copied", copied);
  if (p->pages > 0)
    printf ("; %" G_GUINT64_FORMAT " pages of the system moved, nothing copied", p->pages);
  printf ("\n");
}

/* ---- the program ---- */

static gboolean
timed_take (Probe *p, guint i, guint64 bytes)
{
  char step[8];
  gint64 began = g_get_monotonic_time ();
  p->p[i] = take (p, bytes);
  gint64 us = g_get_monotonic_time () - began;
  g_snprintf (step, sizeof step, "p%u", i);
  print_step (p, step, p->p[i] != NULL, p->p[i], us);
  return p->p[i] != NULL;
}

static void
timed_give (Probe *p, guint i)
{
  char step[8];
  guint8 *at = p->p[i];
  gint64 began = g_get_monotonic_time ();
  give (p, at);
  gint64 us = g_get_monotonic_time () - began;
  p->p[i] = NULL;
  g_snprintf (step, sizeof step, "free p%u", i);
  print_step (p, step, TRUE, at, us);
}

static gboolean
run (Probe *p)
{
  for (guint i = 1; i <= 3; i++)
    {
      if (!timed_take (p, i, p->unit))
        {   /* segments are larger than what was asked for */
          print_verdict (p, FALSE, TRUE, FALSE);
          return TRUE;
        }
      fill (p->p[i], p->unit, i);
    }
  if (p->v->moves)
    claim (p);
  timed_give (p, 1);
  timed_give (p, 3);
  gboolean fits = timed_take (p, 4, 2 * p->unit), usable = FALSE;
  if (fits)
    {
      fill (p->p[4], 2 * p->unit, 4);
      usable = holds (p->p[4], 2 * p->unit, 4);
    }
  gboolean intact = holds (p->p[2], p->unit, 2);
  print_verdict (p, fits, intact, usable);
  return intact && (!fits || usable);
}

/* ---- what it takes to map a page ---- */

#define MAP_SIZES 4
#define MAP_BYTES (G_GUINT64_CONSTANT (80) << 20)

/* us to move one page to another address by the page table, each by itself; NaN: it cannot be told. */
static double
map_once (guint64 page)
{
  guint64 n = MAP_BYTES / page;
  guint8 *base = mmap (NULL, 2 * MAP_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (base == MAP_FAILED)
    return NAN;
  memset (base, 1, MAP_BYTES);
  gint64 began = g_get_monotonic_time ();
  gboolean ok = TRUE;
  for (guint64 i = 0; ok && i < n; i++)   /* in the order opposite to their addresses, so that none joins another */
    ok = mremap (base + i * page, page, page, MREMAP_MAYMOVE | MREMAP_FIXED, base + 2 * MAP_BYTES - (i + 1) * page) != MAP_FAILED;
  double us = (double) (g_get_monotonic_time () - began) / (double) n;
  munmap (base, 2 * MAP_BYTES);
  return ok ? us : NAN;
}

/* Others run on this machine too: the best of a few rounds. */
static double
map_time (guint64 page)
{
  double best = map_once (page);
  for (guint i = 1; i < 7; i++)
    best = fmin (best, map_once (page));
  return best;
}

static void
print_map_times (gboolean json)
{
  static const guint64 pages[MAP_SIZES] = { 4 << 10, 64 << 10, 2 << 20, 20 << 20 };
  if (!json)
    printf ("map: one page moved by the page table\n");
  for (guint i = 0; i < MAP_SIZES; i++)
    {
      g_autofree char *text = coop_cli_size (pages[i]);
      double us = map_time (pages[i]);
      if (json)
        {
          g_autoptr (GString) out = g_string_new (NULL);
          coop_json_open (out, NULL, '{');
          coop_json_string (out, "variant", "map");
          coop_json_string (out, "step", "map");
          coop_json_uint (out, "page", pages[i]);
          coop_json_real (out, "us", us);
          coop_json_close (out, '}');
          printf ("%s\n", out->str);
        }
      else
        printf ("  %9s  %8.2f us\n", text, us);
    }
}

static int
no_such (const char *only)
{
  g_autoptr (GString) names = g_string_new (NULL);
  for (guint i = 0; i < G_N_ELEMENTS (variants); i++)
    g_string_append_printf (names, " %s", variants[i].name);
  g_string_append (names, " map");
  return coop_cli_usage (NAME, "no variant \"%s\"; there are%s", only, names->str);
}

int
coop_probe_host (guint64 unit, guint64 page, const char *only, gboolean json)
{
  Probe p = { .unit = unit != 0 ? unit : UNIT, .page = page != 0 ? page : PAGE_DEFAULT, .json = json };
  gboolean found = only == NULL || g_str_equal (only, "map"), ok = TRUE;
  if (p.unit > UNIT_MOST || p.page % PAGE != 0 || p.page > PAGE_MOST)
    return coop_cli_usage (NAME, "--unit is at most 64 GiB here, --page a multiple of 4 KiB and at most 20 MiB");
  p.unit = (p.unit + p.page - 1) / p.page * p.page;   /* whole pages, so that three units are three */
  for (guint i = 0; i < G_N_ELEMENTS (variants); i++)
    found |= g_strcmp0 (only, variants[i].name) == 0;
  if (!found)
    return no_such (only);
  g_autofree char *text = coop_cli_size (p.unit);
  if (!json)
    printf ("This machine's memory. p1, p2, p3 of %s each fill it; p1 and p3 freed; p4 of twice the size asked for.\n", text);
  for (guint i = 0; i < G_N_ELEMENTS (variants); i++)
    {
      p.v = &variants[i];
      if (only != NULL && !g_str_equal (only, p.v->name))
        continue;
      if (!json)
        printf ("%s: %s\n", p.v->name, p.v->what);
      gboolean ran = begin (&p) && run (&p);
      end (&p);
      if (!ran)
        coop_cli_warn (NAME, "%s: broke off", variants[i].name);
      ok &= ran;
    }
  if (only == NULL || g_str_equal (only, "map"))
    print_map_times (json);
  return ok ? COOP_EXIT_DONE : COOP_EXIT_FAILED;
}
