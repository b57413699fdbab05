/* SPDX-License-Identifier: Apache-2.0 */
/* What the engine costs: alloc and free beside malloc, the search for a window beside a plain walk
 * over the same pieces, an operator with its events beside one without.
 *
 *     bench-core [LIVE]      pieces alive, default 100000
 */
#include "core/engine-private.h"

#include <stdio.h>
#include <stdlib.h>
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
say (const char *name, double *ours, double *theirs, const char *unit, const char *peer)
{
  Spread a = spread (ours), b = spread (theirs);
  printf ("bench %s %.2f %s ratio %.2f vs %s\n", name, a.median, unit, a.median / b.median, peer);
  printf ("#  %-14s %9.2f (%.2f to %.2f)   %-10s %9.2f (%.2f to %.2f) %s\n", name, a.median, a.low,
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

static void
bench_alloc (unsigned live)
{
  double ours[ROUNDS], theirs[ROUNDS];
  CoopEngine *e = engine_new (UINT64_C (1) << 40, 0, NULL);
  uint64_t *addr = malloc (live * sizeof *addr);
  void **block = malloc (live * sizeof *block);
  uint32_t state = 12345;
  for (unsigned i = 0; i < live; i++)
    {
      uint64_t bytes = random_size (&state);
      addr[i] = take (e, bytes);
      block[i] = malloc (bytes);
    }
  for (int round = 0; round < ROUNDS; round++)
    {
      uint32_t same = state;
      double began = now_ns ();
      for (int i = 0; i < PAIRS; i++)
        {
          uint32_t k = next_random (&state) % live;
          coop_engine_free (e, addr[k]);
          addr[k] = take (e, random_size (&state));
        }
      ours[round] = (now_ns () - began) / PAIRS;
      began = now_ns ();
      for (int i = 0; i < PAIRS; i++)
        {
          uint32_t k = next_random (&same) % live;
          free (block[k]);
          block[k] = malloc (random_size (&same));
        }
      theirs[round] = (now_ns () - began) / PAIRS;
    }
  say ("alloc-free", ours, theirs, "ns", "malloc");
  for (unsigned i = 0; i < live; i++)
    free (block[i]);
  free (block);
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

static void
bench_window (unsigned live)
{
  double ours[ROUNDS], theirs[ROUNDS];
  CoopEngine *e = engine_new (UINT64_C (1024) * live, UINT64_C (1024) * live, NULL);
  operators (e, live, 1024);
  for (int round = 0; round < ROUNDS; round++)
    {
      double began = now_ns ();
      for (int i = 0; i < SEARCHES; i++)
        {
          CoopChoice choice = { 0 };
          coop_evict_window.choose (e, 8192, &choice);
          sink_of_sums += choice.lo;
        }
      ours[round] = (now_ns () - began) / SEARCHES / live;
      began = now_ns ();
      for (int i = 0; i < SEARCHES; i++)
        for (uint32_t p = e->pool.node[0].next; p != 0; p = e->pool.node[p].next)
          sink_of_sums += e->pool.node[p].bytes;
      theirs[round] = (now_ns () - began) / SEARCHES / live;
    }
  say ("window-piece", ours, theirs, "ns", "walk");
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
  say ("operator", with, without, "ns", "no-events");
}

int
main (int argc, char **argv)
{
  unsigned live = argc > 1 ? (unsigned) strtoul (argv[1], NULL, 10) : 100000;
  if (live == 0)
    return 2;
  bench_alloc (live);
  bench_window (live);
  bench_emit ();
  return 0;
}
