/* SPDX-License-Identifier: Apache-2.0 */
/* Helpers of the cases made by hand. */
#ifndef CORE_CASES_H
#define CORE_CASES_H

#include "support/ref-host.h"

#include "core/engine-private.h"

#define K 1024u

/* A pool of exactly `budget`, one group, no holds of small inputs; values and invariants are checked. */
static inline RefHost *
host_new (uint64_t budget)
{
  CoopPolicy policy;
  coop_policy_init (&policy);
  policy.v[COOP_PARAM_BUDGET].i = (int64_t) budget;
  policy.v[COOP_PARAM_GROUPS].i = 1;
  policy.v[COOP_PARAM_HOLD].i = 0;
  policy.v[COOP_PARAM_SMALL].i = 0;
  RefHost *host = ref_host_new (budget, &policy);
  host->check = host->record_events = true;
  return host;
}

static inline CoopTotals
totals (RefHost *host)
{
  CoopTotals t;
  coop_engine_totals (host->engine, &t);
  return t;
}

static inline void
drop (RefHost *host, unsigned n, ...)
{
  va_list args;
  va_start (args, n);
  for (unsigned i = 0; i < n; i++)
    ref_host_drop (host, va_arg (args, RefStorage *));
  va_end (args);
}

/* An operator with one input of the given use and `outputs` outputs of 1 KiB. */
static inline bool
use_one (RefHost *host, RefStorage *s, unsigned use, CoopPhase phase, unsigned outputs,
         RefStorage **out)
{
  RefOp op = { .input = { s }, .use = { use }, .n_inputs = 1, .name = 7, .cost = 3, .phase = phase,
               .n_outputs = outputs, .out_bytes = { K, K, K } };
  return ref_host_run (host, &op, out);
}

/* Scores made plain by a staleness exponent of 0: h is then the cost of the operator. */
static inline CoopPolicy
plain (uint64_t budget, CoopEvictorName evictor)
{
  CoopPolicy policy;
  coop_policy_init (&policy);
  coop_policy_preset (&policy, evictor);
  policy.v[COOP_PARAM_BUDGET].i = (int64_t) budget;
  policy.v[COOP_PARAM_STALENESS_EXPONENT].d = 0;
  policy.v[COOP_PARAM_GROUPS].i = 1;
  policy.v[COOP_PARAM_HOLD].i = 0;
  return policy;
}

static inline RefHost *
host_under (uint64_t capacity, const CoopPolicy *policy)
{
  RefHost *host = ref_host_new (capacity, policy);
  host->check = host->record_events = true;
  return host;
}

/* Fills the pool with tensors of these sizes (KiB) and costs, from the low end up. */
static inline void
fill (RefHost *host, unsigned n, const unsigned (*size_cost)[2], RefStorage **out)
{
  uint64_t at = 0;
  for (unsigned i = 0; i < n; i++)
    {
      out[i] = ref_make (host, size_cost[i][0] * K, size_cost[i][1], 0);
      g_assert_cmpuint (out[i]->addr, ==, at);
      at += size_cost[i][0] * K;
    }
}

static inline void
drop_all (RefHost *host, unsigned n, RefStorage **s)
{
  for (unsigned i = 0; i < n; i++)
    ref_host_drop (host, s[i]);
  ref_host_free (host);
}

/* Which of the tensors are gone, as a string of . (here) and x (evicted). */
static inline char *
picture (RefStorage **s, unsigned n)
{
  char *out = g_strnfill (n, '.');
  for (unsigned i = 0; i < n; i++)
    if (s[i]->addr == COOP_NO_ADDR)
      out[i] = 'x';
  return out;
}

#endif
