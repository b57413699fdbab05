/* SPDX-License-Identifier: Apache-2.0 */
/* What the engine costs: alloc and free beside malloc (and mimalloc, jemalloc where installed), searches
 * for victims beside a plain walk over the same pieces, an operator with its events beside one without.
 *
 *     bench-core [--quick]      at 1,000 and 10,000 live pieces; without --quick at 100,000 too
 */
#include "core/engine-private.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define ROUNDS 21
#define PAIRS 20000
#define SEARCHES 5

static volatile uint64_t sink_of_sums;

static double
now_ns (void)
{
  struct timespec t;
  clock_gettime (CLOCK_MONOTONIC, &t);
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
  qsort (v, ROUNDS, sizeof *v, by_value);
  return (Spread) { v[ROUNDS / 4], v[ROUNDS / 2], v[ROUNDS * 3 / 4] };
}

static void
say (const char *what, unsigned live, double *ours, double *theirs, const char *unit, const char *peer)
{
  char name[64];
  snprintf (name, sizeof name, live > 0 ? "%s-%u" : "%s", what, live);
  Spread a = spread (ours), b = spread (theirs);
  printf ("bench %s %.2f %s ratio %.2f vs %s\n", name, a.median, unit, a.median / b.median, peer);
  printf ("#  %-20s %9.2f (%.2f to %.2f)   %-10s %9.2f (%.2f to %.2f) %s\n", name, a.median, a.low,
          a.high, peer, b.median, b.low, b.high, unit);
}

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
engine_new (uint64_t capacity, uint64_t budget, void (*emit) (void *, CoopEvent *, const void *))
{
  CoopEngineOptions options = { .capacity = capacity, .sink = { emit, NULL } };
  coop_policy_init (&options.policy);
  options.policy.v[COOP_PARAM_BUDGET].i = (int64_t) budget;
  options.policy.v[COOP_PARAM_SMALL].i = 0;
  options.policy.v[COOP_PARAM_GROUPS].i = 1;
  return coop_engine_new (&options);
}

static void
count (void *user, CoopEvent *ev, const void *body)
{
  sink_of_sums += ev->kind;
}

/* ---- alloc and free at a constant number of live pieces ----------------------------------- */

static uint64_t
take (CoopEngine *e, uint64_t bytes)
{
  CoopRequest req = { .bytes = bytes };
  if (coop_engine_alloc (e, &req) != COOP_OK)
    abort ();
  return req.addr;
}

typedef struct
{
  const char *name, *library, *take, *give;
} Peer;

static const Peer peers[] = {
  { "malloc", NULL, "malloc", "free" },
  { "mimalloc", "libmimalloc.so.2", "mi_malloc", "mi_free" },
  { "jemalloc", "libjemalloc.so.2", "malloc", "free" },
};
#define N_PEERS (sizeof peers / sizeof *peers)

static double
engine_round (CoopEngine *e, uint64_t *addr, unsigned live, uint32_t *state)
{
  double began = now_ns ();
  for (int i = 0; i < PAIRS; i++)
    {
      uint32_t k = next_random (state) % live;
      coop_engine_free (e, addr[k]);
      addr[k] = take (e, random_size (state));
    }
  return (now_ns () - began) / PAIRS;
}

/* The same sequence of sizes with another allocator. */
static bool
peer_rounds (const Peer *peer, unsigned live, double *out)
{
  void *handle = dlopen (peer->library, RTLD_NOW | RTLD_LOCAL);
  if (handle == NULL)
    return false;
  void *(*get) (size_t) = (void *(*) (size_t)) dlsym (handle, peer->take);
  void (*give) (void *) = (void (*) (void *)) dlsym (handle, peer->give);
  void **block = malloc (live * sizeof *block);
  uint32_t state = 12345;
  for (unsigned i = 0; i < live; i++)
    block[i] = get (random_size (&state));
  for (int round = 0; round < ROUNDS; round++)
    {
      double began = now_ns ();
      for (int i = 0; i < PAIRS; i++)
        {
          uint32_t k = next_random (&state) % live;
          give (block[k]);
          block[k] = get (random_size (&state));
        }
      out[round] = (now_ns () - began) / PAIRS;
    }
  for (unsigned i = 0; i < live; i++)
    give (block[i]);
  free (block);
  return true;
}

static void
bench_alloc (unsigned live)
{
  double ours[ROUNDS], theirs[ROUNDS];
  CoopEngine *e = engine_new (UINT64_C (1) << 40, 0, NULL);
  uint64_t *addr = malloc (live * sizeof *addr);
  uint32_t state = 12345;
  for (unsigned i = 0; i < live; i++)
    addr[i] = take (e, random_size (&state));
  for (int round = 0; round < ROUNDS; round++)
    ours[round] = engine_round (e, addr, live, &state);
  for (size_t i = 0; i < N_PEERS; i++)
    if (peer_rounds (&peers[i], live, theirs))
      say ("alloc-free", live, ours, theirs, "ns", peers[i].name);
    else
      printf ("#  %s is not installed\n", peers[i].name);
  free (addr);
  coop_engine_free_all (e);
}

/* ---- one search over `live` evictable pieces ----------------------------------------------- */

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

/* Every other tensor is evicted: the rest has two classes beside it, and free pieces between. */
static void
evict_half (CoopEngine *e)
{
  CoopRequest req = { 0 };
  unsigned n = coop_engine_choose_all (e, &req);
  for (unsigned i = 0; i < n; i += 2)
    coop_engine_evicted (e, req.victims[i]);
  coop_engine_cancel (e, &req);
}

static double
search_ns (CoopEngine *e, const CoopEvictor *evictor)
{
  uint64_t visited = 0;
  double began = now_ns ();
  for (int i = 0; i < SEARCHES; i++)
    {
      CoopChoice choice = { 0 };
      evictor->choose (e, 65536, &choice);
      sink_of_sums += choice.lo;
      visited += choice.visited;
    }
  return (now_ns () - began) / (double) visited;
}

static double
walk_ns (const CoopEngine *e)
{
  uint64_t visited = 0;
  double began = now_ns ();
  for (int i = 0; i < SEARCHES; i++)
    for (uint32_t p = e->pool.node[0].next; p != 0; p = e->pool.node[p].next, visited++)
      sink_of_sums += e->pool.node[p].bytes;
  return (now_ns () - began) / (double) visited;
}

static void
bench_search (const char *what, const CoopEvictor *evictor, unsigned live, bool half)
{
  double ours[ROUNDS], theirs[ROUNDS];
  CoopEngine *e = engine_new (UINT64_C (1024) * live, UINT64_C (1024) * live, NULL);
  operators (e, live, 1024);
  if (half)
    evict_half (e);
  for (int round = 0; round < ROUNDS; round++)
    {
      ours[round] = search_ns (e, evictor);
      theirs[round] = walk_ns (e);
    }
  say (what, live, ours, theirs, "ns", "walk");
  coop_engine_free_all (e);
}

/* ---- an operator with one input and one output, and its events ----------------------------- */

static double
operator_ns (void (*emit) (void *, CoopEvent *, const void *))
{
  CoopEngine *e = engine_new (UINT64_C (1) << 32, 0, emit);
  operators (e, 1000, 1024);
  double began = now_ns ();
  operators (e, PAIRS, 1024);
  double ns = (now_ns () - began) / PAIRS;
  coop_engine_free_all (e);
  return ns;
}

static void
bench_emit (void)
{
  double with[ROUNDS], without[ROUNDS];
  for (int round = 0; round < ROUNDS; round++)
    {
      with[round] = operator_ns (count);
      without[round] = operator_ns (NULL);
    }
  say ("operator", 0, with, without, "ns", "no-events");
}

int
main (int argc, char **argv)
{
  static const unsigned sizes[] = { 1000, 10000, 100000 };
  bool quick = argc == 2 && strcmp (argv[1], "--quick") == 0;
  if (argc > 1 && !quick)
    return 2;
  for (unsigned i = 0; i < (quick ? 2 : 3); i++)
    {
      bench_alloc (sizes[i]);
      bench_search ("window-piece", &coop_evict_window, sizes[i], false);
      bench_search ("window-chain", &coop_evict_window, sizes[i], true);
      bench_search ("single-piece", &coop_evict_single, sizes[i], false);
    }
  bench_emit ();
  printf ("#  bytes: piece %zu, tensor %zu, record %zu and %zu an input\n", sizeof (CoopNode),
          sizeof (CoopVersion), sizeof (CoopOp), sizeof (CoopUse));
  return 0;
}
