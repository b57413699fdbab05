/* SPDX-License-Identifier: Apache-2.0 */
/* What the engine costs, each line beside something that is measured in the same run:
 *
 *   window-N     one search of `coop` for a window among N evictable pieces, ns a piece visited; beside
 *                the same walk over an ordered map (GTree) with each score computed anew
 *   dtr-eq-N, dte-N  one search for a single victim, ns a candidate; beside the same
 *   pair-DEMO    alloc + free on the sequence of two training steps of a demo; beside glibc, mimalloc
 *                and jemalloc where installed
 *   pair-N       alloc + free of random sizes with N blocks live; beside the same with 1,000
 *   emit         an event from the engine into the ring, beside the clock_gettime that is part of it
 *
 *     bench-core [--quick] [LINE]     --quick: up to 10,000 pieces, fewer rounds. LINE: those alone whose
 *                                     name begins so
 *
 * Times are of the thread's own clock, so others on the machine do not count; medians with quartiles. */
#include "core/engine-private.h"
#include "wire/wire.h"

#include <dlfcn.h>
#include <glib.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define MOST_ROUNDS 21
#define PAIRS 20000
#define AHEAD 8
#define TUNABLES "GLIBC_TUNABLES"

static volatile uint64_t sink_of_sums;
static int rounds = MOST_ROUNDS;
static const char *only = "";

static double
now_ns (void)
{
  struct timespec t;
  clock_gettime (CLOCK_THREAD_CPUTIME_ID, &t);
  return (double) t.tv_sec * 1e9 + (double) t.tv_nsec;
}

static int
by_value (const void *a, const void *b)
{
  double x = *(const double *) a, y = *(const double *) b;
  return (x > y) - (x < y);
}

typedef struct
{
  double low, median, high;
} Spread;

static Spread
spread (double *v)
{
  qsort (v, (size_t) rounds, sizeof *v, by_value);
  return (Spread) { v[rounds / 4], v[rounds / 2], v[rounds * 3 / 4] };
}

/* ---- the table ---------------------------------------------------------------------------- */

typedef struct
{
  char name[32], peer[24], reach[40];
  const char *unit;
  Spread ours, theirs;
} Line;

static Line table[64];
static unsigned n_lines;

static Line *
say (const char *name, double *ours, double *theirs, const char *unit, const char *peer, const char *reach)
{
  Line *line = &table[n_lines++];
  *line = (Line) { .unit = unit, .ours = spread (ours), .theirs = spread (theirs) };
  snprintf (line->name, sizeof line->name, "%s", name);
  snprintf (line->peer, sizeof line->peer, "%s", peer);
  snprintf (line->reach, sizeof line->reach, "%s", reach);
  printf ("bench %s %.2f %s ratio %.3f vs %s\n", name, line->ours.median, unit,
          line->ours.median / line->theirs.median, peer);
  fflush (stdout);
  return line;
}

static bool
wanted (const char *what, unsigned live)
{
  char name[48];
  snprintf (name, sizeof name, live > 0 ? "%s-%u" : "%s", what, live);
  return strncmp (name, only, strlen (only)) == 0;
}

static void
print_table (void)
{
  printf ("#\n#  %-20s %28s   %-10s %28s  %8s   %s\n", "what", "ours (quartiles)", "beside",
          "theirs (quartiles)", "ratio", "to reach");
  for (unsigned i = 0; i < n_lines; i++)
    {
      const Line *l = &table[i];
      printf ("#  %-20s %9.2f (%7.2f to %7.2f)   %-10s %9.2f (%7.2f to %7.2f)  %8.3f   %s\n", l->name,
              l->ours.median, l->ours.low, l->ours.high, l->peer, l->theirs.median, l->theirs.low,
              l->theirs.high, l->ours.median / l->theirs.median, l->reach);
    }
  printf ("#\n#  bytes: piece %zu, tensor %zu, operator record %zu and %zu an input, 8 an output\n",
          sizeof (CoopNode), sizeof (CoopVersion), sizeof (CoopOp), sizeof (CoopUse));
}

/* ---- an engine ---------------------------------------------------------------------------- */

static uint32_t
next_random (uint32_t *state)
{
  *state ^= *state << 13;
  *state ^= *state >> 17;
  *state ^= *state << 5;
  return *state;
}

static uint64_t
random_size (uint32_t *state)
{
  return 512 + next_random (state) % (64u << (next_random (state) % 11));
}

static CoopEngine *
engine_new (uint64_t capacity, uint64_t budget, CoopEvictorName evictor, CoopSink sink)
{
  CoopEngineOptions options = { .capacity = capacity, .sink = sink };
  coop_policy_init (&options.policy);
  coop_policy_preset (&options.policy, evictor);
  options.policy.v[COOP_PARAM_BUDGET].i = (int64_t) budget;
  options.policy.v[COOP_PARAM_SMALL].i = 0;
  options.policy.v[COOP_PARAM_GROUPS].i = 1;
  return coop_engine_new (&options);
}

static uint64_t
take (CoopEngine *e, uint64_t bytes)
{
  CoopRequest req = { .bytes = bytes };
  if (coop_engine_alloc (e, &req) != COOP_OK)
    abort ();
  return req.addr;
}

/* ---- alloc and free on recorded sequences ------------------------------------------------- */

typedef struct
{
  int64_t *what;         /* > 0: bytes of the next allocation; else the number of the one that ends */
  uint32_t n, n_allocs;
} Sequence;

static bool
read_sequence (const char *path, Sequence *s)
{
  char *text;
  if (!g_file_get_contents (path, &text, NULL, NULL))
    return false;
  *s = (Sequence) { .what = malloc (strlen (text) * sizeof *s->what) };
  for (char *p = strchr (text, '\n'), *end; p != NULL; p = end)
    {
      int64_t v = strtoll (p, &end, 10);
      if (end == p)
        break;
      bool ends = *(p + strspn (p, " \n")) == '-';
      s->what[s->n++] = ends ? v : v * 512;
      s->n_allocs += !ends;
    }
  g_free (text);
  return s->n > 0;
}

typedef struct
{
  const char *name, *library, *take, *give;
} Peer;

static const Peer peers[] = {
  { "glibc", NULL, "malloc", "free" },
  { "mimalloc", "libmimalloc.so.2", "mi_malloc", "mi_free" },
  { "jemalloc", "libjemalloc.so.2", "malloc", "free" },
};
#define N_PEERS (sizeof peers / sizeof *peers)

static double
engine_sequence (CoopEngine *e, const Sequence *s, uint64_t *at, unsigned times)
{
  double began = now_ns ();
  for (unsigned t = 0; t < times; t++)
    for (uint32_t i = 0, k = 0; i < s->n; i++)
      if (s->what[i] > 0)
        at[k++] = take (e, (uint64_t) s->what[i]);
      else
        coop_engine_free (e, at[-s->what[i]]);
  return (now_ns () - began) / ((double) s->n_allocs * times);
}

/* PyTorch asks for an alignment of 64, which none of them is asked for here: to their good. */
static double
peer_sequence (void *(*get) (size_t), void (*give) (void *), const Sequence *s, void **at, unsigned times)
{
  double began = now_ns ();
  for (unsigned t = 0; t < times; t++)
    for (uint32_t i = 0, k = 0; i < s->n; i++)
      if (s->what[i] > 0)
        at[k++] = get ((size_t) s->what[i]);
      else
        give (at[-s->what[i]]);
  return (now_ns () - began) / ((double) s->n_allocs * times);
}

static bool
open_peer (const Peer *peer, void *(**get) (size_t), void (**give) (void *))
{
  void *handle = dlopen (peer->library, RTLD_NOW | RTLD_LOCAL);
  if (handle == NULL)
    {
      printf ("#  no %s: %s\n", peer->name, dlerror ());
      return false;
    }
  *get = (void *(*) (size_t)) dlsym (handle, peer->take);
  *give = (void (*) (void *)) dlsym (handle, peer->give);
  return *get != NULL && *give != NULL;
}

static void
bench_sequence (const char *demo, const char *path)
{
  double ours[MOST_ROUNDS], theirs[N_PEERS][MOST_ROUNDS];
  void *(*get[N_PEERS]) (size_t);
  void (*give[N_PEERS]) (void *);
  bool have[N_PEERS];
  Sequence s;
  char name[32];
  if (!read_sequence (path, &s))
    {
      printf ("#  %s cannot be read\n", path);
      return;
    }
  CoopEngine *e = engine_new (UINT64_C (1) << 40, 0, COOP_EVICTOR_COOP, (CoopSink) { 0 });
  uint64_t *at = malloc (s.n_allocs * sizeof *at);
  void **block = malloc (s.n_allocs * sizeof *block);
  unsigned times = 1 + PAIRS / s.n_allocs;
  for (size_t i = 0; i < N_PEERS; i++)
    have[i] = open_peer (&peers[i], &get[i], &give[i]);
  for (int r = -1; r < rounds; r++) /* once to warm up */
    {
      int to = r < 0 ? 0 : r;
      ours[to] = engine_sequence (e, &s, at, times);
      for (size_t i = 0; i < N_PEERS; i++)
        if (have[i])
          theirs[i][to] = peer_sequence (get[i], give[i], &s, block, times);
    }
  snprintf (name, sizeof name, "pair-%s", demo);
  for (size_t i = 0; i < N_PEERS; i++)
    {
      double copy[MOST_ROUNDS];
      memcpy (copy, ours, sizeof copy);
      if (have[i])
        say (name, copy, theirs[i], "ns", peers[i].name, "<= 1 of the fastest");
    }
  free (at);
  free (block);
  free (s.what);
  coop_engine_free_all (e);
}

/* ---- alloc and free with many live -------------------------------------------------------- */

typedef struct
{
  CoopEngine *e;
  uint64_t *addr;
  unsigned live;
  uint32_t state, which[PAIRS + AHEAD];
  uint64_t bytes[PAIRS];
} Crowd;

static Crowd *
crowd_new (unsigned live)
{
  Crowd *c = calloc (1, sizeof *c);
  c->e = engine_new (UINT64_C (1) << 44, 0, COOP_EVICTOR_COOP, (CoopSink) { 0 });
  c->addr = malloc (live * sizeof *c->addr);
  c->live = live;
  c->state = 12345;
  for (unsigned i = 0; i < live; i++)
    c->addr[i] = take (c->e, random_size (&c->state));
  return c;
}

static void
crowd_free (Crowd *c)
{
  coop_engine_free_all (c->e);
  free (c->addr);
  free (c);
}

/* What goes and what comes is drawn beforehand, and where the bench itself keeps addresses is fetched
 * ahead: its own waiting for memory is not the engine's. */
static double
crowd_round (Crowd *c)
{
  for (int i = 0; i < PAIRS + AHEAD; i++)
    c->which[i] = next_random (&c->state) % c->live;
  for (int i = 0; i < PAIRS; i++)
    c->bytes[i] = random_size (&c->state);
  double began = now_ns ();
  for (int i = 0; i < PAIRS; i++)
    {
      uint32_t k = c->which[i];
      __builtin_prefetch (&c->addr[c->which[i + AHEAD]]);
      coop_engine_free (c->e, c->addr[k]);
      c->addr[k] = take (c->e, c->bytes[i]);
    }
  return (now_ns () - began) / PAIRS;
}

static void
bench_crowd (unsigned live)
{
  double ours[MOST_ROUNDS], theirs[MOST_ROUNDS];
  char name[32];
  Crowd *many = crowd_new (live), *few = crowd_new (1000);
  for (int r = -1; r < rounds; r++)
    {
      ours[r < 0 ? 0 : r] = crowd_round (many);
      theirs[r < 0 ? 0 : r] = crowd_round (few);
    }
  snprintf (name, sizeof name, "pair-%u", live);
  say (name, ours, theirs, "ns", "pair-1000", live == 100000 ? "<= 2" : "");
  crowd_free (many);
  crowd_free (few);
}

/* ---- searches ----------------------------------------------------------------------------- */

static void
operators (CoopEngine *e, unsigned n, uint64_t bytes)
{
  CoopTensor *last = NULL;
  for (unsigned i = 0; i < n; i++)
    {
      CoopInput input = { last, COOP_USE_READ };
      CoopCall call = { .inputs = &input, .n_inputs = last != NULL, .name = 1, .replayable = true };
      CoopReplay step;
      CoopTensor *written[1];
      coop_engine_begin (e, &call);
      if (coop_engine_next (e, &call, &step) != COOP_STEP_READY)
        abort ();
      CoopOutput out = { .addr = take (e, bytes), .requested = bytes };
      coop_engine_end (e, &call, &out, 1, 1000 + i % 97, written);
      last = out.tensor;
    }
}

/* Every fourth tensor is evicted: the rest has classes beside it, and free pieces between. */
static void
evict_some (CoopEngine *e)
{
  CoopRequest req = { 0 };
  unsigned n = coop_engine_choose_all (e, &req);
  for (unsigned i = 0; i < n; i += 4)
    coop_engine_evicted (e, req.victims[i]);
  coop_engine_cancel (e, &req);
}

/* The naive way: pieces in a map by address, a list of the window's members, scores computed anew. */
typedef struct
{
  CoopEngine *e;
  GTree *map;            /* address -> index of the node + 1 */
  uint64_t need, bytes;
  double cost, best;
  GQueue members;        /* of gsize: node index */
  GQueue costs;          /* of double * */
  uint64_t visited, lo;
  bool single;
} Naive;

static int
by_address (gconstpointer a, gconstpointer b, gpointer user)
{
  return (GPOINTER_TO_SIZE (a) > GPOINTER_TO_SIZE (b)) - (GPOINTER_TO_SIZE (a) < GPOINTER_TO_SIZE (b));
}

static void
naive_drop_first (Naive *n)
{
  const CoopNode *node = &n->e->pool.node[GPOINTER_TO_SIZE (g_queue_pop_head (&n->members))];
  double *h = g_queue_pop_head (&n->costs);
  n->bytes -= node->bytes;
  n->cost -= *h;
  g_free (h);
}

static gboolean
naive_visit (gpointer key, gpointer value, gpointer user)
{
  Naive *n = user;
  const CoopNode *node = &n->e->pool.node[GPOINTER_TO_SIZE (value)];
  bool used = node->used == PIECE_USED;
  n->visited++;
  if (used && (node->tensor == NULL || !coop_evictable (n->e, node->tensor)))
    {
      while (!g_queue_is_empty (&n->members))
        naive_drop_first (n);
      return FALSE;
    }
  double h = used ? coop_score (n->e, node->tensor).h : 0;
  if (n->single)
    {
      if (used && h < n->best)
        {
          n->best = h;
          n->lo = node->addr;
        }
      return FALSE;
    }
  g_queue_push_tail (&n->members, value);
  g_queue_push_tail (&n->costs, g_memdup2 (&h, sizeof h));
  n->bytes += node->bytes;
  n->cost += h;
  while (n->bytes - n->e->pool.node[GPOINTER_TO_SIZE (g_queue_peek_head (&n->members))].bytes >= n->need)
    naive_drop_first (n);
  if (n->bytes >= n->need && n->cost < n->best)
    {
      n->best = n->cost;
      n->lo = n->e->pool.node[GPOINTER_TO_SIZE (g_queue_peek_head (&n->members))].addr;
    }
  return FALSE;
}

static GTree *
map_of (const CoopEngine *e)
{
  GTree *map = g_tree_new_full (by_address, NULL, NULL, NULL);
  for (uint32_t p = e->pool.node[0].next; p != 0; p = e->pool.node[p].next)
    g_tree_insert (map, GSIZE_TO_POINTER (e->pool.node[p].addr), GSIZE_TO_POINTER ((gsize) p));
  return map;
}

static double
naive_ns (CoopEngine *e, GTree *map, uint64_t need, bool single, int times)
{
  uint64_t visited = 0;
  double began = now_ns ();
  for (int i = 0; i < times; i++)
    {
      Naive n = { .e = e, .need = need, .best = INFINITY, .single = single };
      g_queue_init (&n.members);
      g_queue_init (&n.costs);
      g_tree_foreach (map, naive_visit, &n);
      while (!g_queue_is_empty (&n.members))
        naive_drop_first (&n);
      sink_of_sums += n.lo;
      visited += n.visited;
    }
  return (now_ns () - began) / (double) visited;
}

static double
search_ns (CoopEngine *e, const CoopEvictor *evictor, uint64_t need, int times)
{
  uint64_t visited = 0;
  double began = now_ns ();
  for (int i = 0; i < times; i++)
    {
      CoopChoice choice = { .lo = COOP_NO_ADDR };
      evictor->choose (e, need, &choice);
      sink_of_sums += choice.lo;
      visited += choice.visited;
    }
  return (now_ns () - began) / (double) visited;
}

static void
bench_search (const char *what, CoopEvictorName name, unsigned live, const char *reach)
{
  double ours[MOST_ROUNDS], theirs[MOST_ROUNDS];
  bool single = name != COOP_EVICTOR_COOP;
  char line[32];
  CoopEngine *e = engine_new (UINT64_C (1024) * live, UINT64_C (1024) * live, name, (CoopSink) { 0 });
  operators (e, live, 1024);
  evict_some (e);
  GTree *map = map_of (e);
  const CoopEvictor *evictor = single ? &coop_evict_single : &coop_evict_window;
  int times = live >= 100000 ? 2 : (int) (200000 / live);
  for (int r = -1; r < rounds; r++)
    {
      ours[r < 0 ? 0 : r] = search_ns (e, evictor, 65536, times);
      theirs[r < 0 ? 0 : r] = naive_ns (e, map, 65536, single, 1 + times / 10);
    }
  snprintf (line, sizeof line, "%s-%u", what, live);
  say (line, ours, theirs, "ns", "map", reach);
  g_tree_unref (map);
  coop_engine_free_all (e);
}

/* ---- events ------------------------------------------------------------------------------- */

static uint64_t
clock_ns (void)
{
  struct timespec t;
  clock_gettime (CLOCK_MONOTONIC, &t);
  return (uint64_t) t.tv_sec * 1000000000u + (uint64_t) t.tv_nsec;
}

/* What a host's sink does. */
static void
push (void *wire, CoopEvent *ev, const void *body)
{
  ev->ts = clock_ns ();
  ev->thread = 0;
  coop_ring_push (wire, ev, body);
}

static bool
take_none (void *user, const CoopEvent *ev, const void *body)
{
  return true;
}

static void
bench_emit (void)
{
  double ours[MOST_ROUNDS], theirs[MOST_ROUNDS];
  CoopPolicy policy;
  CoopWire *wire;
  coop_policy_init (&policy);
  if (coop_wire_create (2u << 20, &policy, &wire) != COOP_WIRE_OK) /* small: its pages are touched soon */
    return;
  CoopEngine *e = engine_new (1u << 30, 0, COOP_EVICTOR_COOP, (CoopSink) { push, wire });
  const CoopNode node = { .addr = 512, .bytes = 512, .block = 1, .requested = 512 };
  for (int r = -1; r < rounds; r++)
    {
      double began = now_ns ();
      for (int i = 0; i < PAIRS; i++)
        coop_emit_alloc (e, &node);
      ours[r < 0 ? 0 : r] = (now_ns () - began) / PAIRS;
      began = now_ns ();
      for (int i = 0; i < PAIRS; i++)
        sink_of_sums += clock_ns ();
      theirs[r < 0 ? 0 : r] = (now_ns () - began) / PAIRS;
      coop_ring_drain (wire, SIZE_MAX, take_none, NULL);
    }
  Line *line = say ("emit", ours, theirs, "ns", "clock", "");
  snprintf (line->reach, sizeof line->reach, "<= 20 ns beyond: %.1f",
            line->ours.median - line->theirs.median);
  coop_engine_free_all (e);
  coop_wire_free (wire);
}

static bool
parse (int argc, char **argv, bool *quick)
{
  for (int i = 1; i < argc; i++)
    if (strcmp (argv[i], "--quick") == 0)
      *quick = true;
    else if (argv[i][0] != '-' && *only == 0)
      only = argv[i];
    else
      return false;
  return true;
}

static void
bench_searches (unsigned live)
{
  const char *reach = live == 10000 ? "<= 2 ns, ratio <= .05" : "<= 2 ns";
  if (wanted ("window", live))
    bench_search ("window", COOP_EVICTOR_COOP, live, reach);
  if (wanted ("dtr-eq", live))
    bench_search ("dtr-eq", COOP_EVICTOR_DTR_EQ, live, "<= 4 ns");
  if (wanted ("dte", live))
    bench_search ("dte", COOP_EVICTOR_DTE, live, "<= 4 ns");
}

static void
bench_demo (const char *demo)
{
  char *path = g_strdup_printf ("%s/sequences/%s.txt", BENCH_DIR, demo);
  char *name = g_strdup_printf ("pair-%s", demo);
  if (wanted (name, 0))
    bench_sequence (demo, path);
  g_free (name);
  g_free (path);
}

int
main (int argc, char **argv)
{
  static const unsigned sizes[] = { 1000, 10000, 100000, 1000000 };
  static const char *const demos[] = { "resnet", "transformer", "unet" };
  bool quick = false;
  if (!parse (argc, argv, &quick))
    {
      fprintf (stderr, "usage: bench-core [--quick] [LINE]\n");
      return 2;
    }
  if (getenv (TUNABLES) == NULL)
    { /* jemalloc wants more thread-local memory than is left for libraries that come late */
      setenv (TUNABLES, "glibc.rtld.optional_static_tls=65536", 1);
      execv ("/proc/self/exe", argv);
    }
  rounds = quick ? 7 : MOST_ROUNDS;
  for (unsigned i = 0; i < 3; i++)
    bench_demo (demos[i]);
  for (unsigned i = 0; i < (quick ? 2 : 4); i++)
    bench_searches (sizes[i]);
  for (unsigned i = 1; i < 3; i++)
    if (wanted ("pair", sizes[i]))
      bench_crowd (sizes[i]);
  if (wanted ("emit", 0))
    bench_emit ();
  print_table ();
  return 0;
}
