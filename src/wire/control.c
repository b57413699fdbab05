/* SPDX-License-Identifier: Apache-2.0 */
/* The control page: a sequence lock over atomics.
 *
 * Window, command line and the program itself may all write, from two processes, and any of them
 * may be killed in the middle. So nobody waits for ever: a writer that finds `writing` odd for too
 * long takes it over, a reader gives up consistency (not safety: every value is one atomic and is
 * clamped into its range). */
#include "wire-private.h"

#include <math.h>
#include <time.h>

#define SPINS 2000
#define NAP_NS 5000   /* SPINS naps are at least 10 ms: a writer takes microseconds */

static void
nap (void)
{
  struct timespec t = { 0, NAP_NS };
  nanosleep (&t, NULL);
}

static CoopValue
checked (CoopParam param, int64_t bits)
{
  CoopValue value = { .i = bits };
  if (coop_param_info[param].type == COOP_TYPE_REAL && isnan (value.d))
    value.d = coop_param_info[param].def;
  return coop_param_clamp (param, value);
}

/* Returns the odd number that is ours. */
static uint64_t
write_begin (CoopControl *c)
{
  uint64_t seen = atomic_load_explicit (&c->writing, memory_order_acquire);
  for (int i = 0;; i++)
    {
      bool held = (seen & 1) != 0;
      if (held && i < SPINS)
        {
          nap ();
          uint64_t now = atomic_load_explicit (&c->writing, memory_order_acquire);
          if (now != seen)
            i = 0;
          seen = now;
          continue;
        }
      uint64_t mine = held ? seen + 2 : seen + 1;
      if (atomic_compare_exchange_weak_explicit (&c->writing, &seen, mine, memory_order_acq_rel,
                                                 memory_order_acquire))
        return mine;
    }
}

static void
write_end (CoopControl *c, uint64_t mine)
{
  atomic_fetch_add_explicit (&c->generation, 1, memory_order_acq_rel);
  /* Not if somebody took it over meanwhile. */
  atomic_compare_exchange_strong_explicit (&c->writing, &mine, mine + 1, memory_order_acq_rel,
                                           memory_order_relaxed);
}

void
coop_control_set_many (CoopWire *wire, const CoopPolicy *policy, uint64_t mask, CoopSource source)
{
  CoopControl *c = wire->control;
  uint64_t mine = write_begin (c);
  for (int i = 0; i < COOP_N_PARAMS; i++)
    if ((mask >> i & 1) != 0)
      {
        CoopValue value = checked ((CoopParam) i, policy->v[i].i);
        atomic_store_explicit (&c->source[i], source, memory_order_release);
        atomic_store_explicit (&c->bits[i], value.i, memory_order_release);
      }
  write_end (c, mine);
}

void
coop_control_set (CoopWire *wire, CoopParam param, CoopValue value, CoopSource source)
{
  CoopPolicy policy = { 0 };
  policy.v[param] = value;
  coop_control_set_many (wire, &policy, (uint64_t) 1 << param, source);
}

uint64_t
coop_control_generation (const CoopWire *wire)
{
  return atomic_load_explicit (&wire->control->generation, memory_order_acquire);
}

/* One attempt; false if a writer was at work. */
static bool
read_once (const CoopControl *c, CoopPolicy *policy, uint32_t source[COOP_N_PARAMS],
           uint64_t *generation)
{
  uint64_t before = atomic_load_explicit (&c->writing, memory_order_acquire);
  *generation = atomic_load_explicit (&c->generation, memory_order_acquire);
  for (int i = 0; i < COOP_N_PARAMS; i++)
    {
      policy->v[i].i = atomic_load_explicit (&c->bits[i], memory_order_acquire);
      uint32_t from = atomic_load_explicit (&c->source[i], memory_order_acquire);
      if (source != NULL)
        source[i] = from < COOP_N_SOURCES ? from : COOP_SOURCE_INITIAL;
    }
  return (before & 1) == 0
         && atomic_load_explicit (&c->writing, memory_order_relaxed) == before;
}

uint64_t
coop_control_read (const CoopWire *wire, CoopPolicy *policy, uint32_t source[COOP_N_PARAMS])
{
  uint64_t generation = 0;
  for (int i = 0; i < SPINS && !read_once (wire->control, policy, source, &generation); i++)
    nap ();
  for (int i = 0; i < COOP_N_PARAMS; i++)
    policy->v[i] = checked ((CoopParam) i, policy->v[i].i);
  return generation;
}

bool
coop_control_stop (const CoopWire *wire)
{
  return atomic_load_explicit (&wire->control->stop, memory_order_acquire) != 0;
}

void
coop_control_set_stop (CoopWire *wire)
{
  atomic_store_explicit (&wire->control->stop, 1, memory_order_release);
}
