/* SPDX-License-Identifier: Apache-2.0 */
#include "ref-program.h"

#define MOST 28

typedef struct
{
  const RefBytes *source;
  bool ended;
  RefHost *host;
  RefStorage *have[MOST + 4 * REF_MAX];
  unsigned n;
  bool large;          /* a pool with an area for small blocks */
  uint64_t unit;
  CoopPhase phase;
  uint64_t budget;
  uint64_t generation;
} Program;

static unsigned
pick (Program *p, unsigned below)
{
  uint8_t byte = 0;
  if (!p->ended && !p->source->next (p->source->user, &byte))
    p->ended = true;
  return byte % below;
}

static uint64_t
size (Program *p)
{
  if (p->large && pick (p, 3) == 0)
    return 1 + pick (p, 256) * 4;
  return 1 + pick (p, 200) * p->unit + pick (p, 256);
}

static void
keep (Program *p, RefStorage *s)
{
  if (s != NULL)
    p->have[p->n++] = s;
}

static void
drop (Program *p, unsigned i)
{
  RefStorage *s = p->have[i];
  p->have[i] = p->have[--p->n];
  ref_host_drop (p->host, s);
}

static bool
has_input (const RefOp *op, const RefStorage *s)
{
  for (unsigned i = 0; i < op->n_inputs; i++)
    if (op->input[i] == s)
      return true;
  return false;
}

static void
add_input (Program *p, RefOp *op, unsigned use)
{
  if (p->n == 0)
    return;
  RefStorage *s = p->have[pick (p, p->n)];
  if (has_input (op, s))
    return;
  op->input[op->n_inputs] = s;
  op->use[op->n_inputs++] = use;
}

static unsigned
random_use (Program *p)
{
  switch (pick (p, 24))
    {
    case 0:
    case 1:
    case 2:
      return COOP_USE_WRITE;
    case 3:
      return COOP_USE_WRITE | COOP_USE_STATE;
    case 4:
      return COOP_USE_SCRATCH;
    case 5:
      return COOP_USE_STATE;
    case 6:
      return COOP_USE_UNRECORDED;
    default:
      return COOP_USE_READ;
    }
}

static void
random_op (Program *p, RefOp *op)
{
  *op = (RefOp) { .name = 1 + pick (p, 12), .cost = pick (p, 64) * 37, .phase = p->phase };
  op->op_class = (CoopOpClass) pick (p, 2);
  op->once = pick (p, 24) == 0;
  unsigned n = pick (p, 5);
  for (unsigned i = 0; i < n; i++)
    add_input (p, op, random_use (p));
  /* what an unrecorded input holds must not show in the outputs: it is not read by the toy */
  op->n_outputs = op->n_inputs > 0 && pick (p, 4) == 0 ? 0 : 1 + pick (p, 3) % 2;
  for (unsigned i = 0; i < op->n_outputs; i++)
    {
      op->out_bytes[i] = size (p);
      op->out_constant[i] = pick (p, 32) == 0;
    }
  op->workspace = pick (p, 6) == 0 ? size (p) : 0;
}

static void
run_op (Program *p)
{
  RefOp op;
  RefStorage *out[REF_MAX];
  random_op (p, &op);
  p->host->fail_replays = pick (p, 64) == 0;
  p->host->refuse = pick (p, 32) == 0 ? 2 : 0;
  if (ref_host_run (p->host, &op, out))
    for (unsigned i = 0; i < op.n_outputs; i++)
      keep (p, out[i]);
  p->host->fail_replays = p->host->refuse = 0;
}

/* Two calls at once, as two threads make them: the second begins while the first still gathers its
 * inputs, or after it has them, and ends before it. */
static void
run_two (Program *p)
{
  RefOp first, second;
  RefCall a, b;
  RefStorage *out[REF_MAX];
  random_op (p, &first);
  random_op (p, &second);
  for (unsigned i = 0; i < first.n_inputs; i++)
    first.use[i] &= COOP_USE_STATE | COOP_USE_UNRECORDED; /* no write while another reads */
  for (unsigned i = 0; i < second.n_inputs; i++)
    if (has_input (&first, second.input[i]))
      second.use[i] = COOP_USE_READ;
  ref_host_begin (p->host, &a, &first);
  CoopNext next = ref_host_advance (p->host, &a, pick (p, 6));
  p->host->fail_replays = pick (p, 8) == 0;
  ref_host_begin (p->host, &b, &second);
  if (ref_host_prepare (p->host, &b) && ref_host_finish (p->host, &b, out))
    for (unsigned i = 0; i < second.n_outputs; i++)
      keep (p, out[i]);
  p->host->fail_replays = 0;
  if (next == COOP_STEP_LOST)
    return;
  if (pick (p, 8) == 0)
    ref_host_abort (p->host, &a);
  else if ((next == COOP_STEP_READY || ref_host_prepare (p->host, &a)) && ref_host_finish (p->host, &a, out))
    for (unsigned i = 0; i < first.n_outputs; i++)
      keep (p, out[i]);
}

static void
leave (Program *p, unsigned use)
{
  RefOp op = { .name = 0, .phase = p->phase };
  add_input (p, &op, use);
  ref_host_run (p->host, &op, NULL);
}

static void
change_policy (Program *p)
{
  CoopPolicy policy = *coop_engine_policy (p->host->engine);
  switch (pick (p, 5))
    {
    case 0:
      coop_policy_preset (&policy, (CoopEvictorName) pick (p, COOP_N_EVICTORS));
      break;
    case 1:
      policy.v[COOP_PARAM_GROUPS].i = 1 + pick (p, 6);
      break;
    case 2:
      policy.v[COOP_PARAM_HOLD].i = pick (p, 2) * 4096;
      break;
    case 3:
      policy.v[COOP_PARAM_BUDGET].i = 0;
      break;
    default:
      policy.v[COOP_PARAM_BUDGET].i = (int64_t) (p->budget * (60 + pick (p, 80)) / 100);
      break;
    }
  coop_engine_set_policy (p->host->engine, &policy, COOP_SOURCE_API, ++p->generation);
  ref_host_actions (p->host);
  ref_host_verify (p->host);
}

static void
step (Program *p)
{
  unsigned what = pick (p, 40);
  if (p->n >= MOST || (what < 8 && p->n > 4))
    drop (p, pick (p, p->n));
  else if (what < 25)
    run_op (p);
  else if (what < 28 && p->n > 0)
    ref_host_read (p->host, p->have[pick (p, p->n)]);
  else if (what < 30)
    run_two (p);
  else if (what == 30)
    leave (p, COOP_USE_ESCAPE);
  else if (what == 31)
    leave (p, COOP_USE_KEEP);
  else if (what == 32)
    ref_host_stress (p->host);
  else if (what == 33)
    keep (p, ref_host_constant (p->host, size (p), (CoopKind) (1 + pick (p, 5)), pick (p, 256)));
  else if (what == 34)
    change_policy (p);
  else
    p->phase = (CoopPhase) pick (p, COOP_PHASE_BACKWARD + 1);
}

/* coop half the time, or one of the others. */
static CoopEvictorName
evictor_that_evicts (Program *p)
{
  unsigned i = pick (p, 2 * COOP_N_EVICTORS);
  return i >= COOP_N_EVICTORS || i == COOP_EVICTOR_NONE ? COOP_EVICTOR_COOP : (CoopEvictorName) i;
}

/* Addresses enough that they never run out. */
static uint64_t
segmented (Program *p, CoopPolicy *policy)
{
  static const uint64_t pages[] = { 512, 1024, 4096 };
  policy->v[COOP_PARAM_ALLOCATOR].i = p->source->allocator;
  policy->v[COOP_PARAM_EXPANDABLE].i = p->source->expandable;
  policy->v[COOP_PARAM_STEPS].i = 1 + pick (p, 8);
  policy->v[COOP_PARAM_PAGE].i = (int64_t) pages[pick (p, 3)];
  policy->v[COOP_PARAM_GIVE_BACK].i = pick (p, 8) != 0;
  p->large = false;
  p->unit = p->source->allocator == COOP_ALLOCATOR_CACHING ? 100 : 16;
  p->budget = p->source->allocator == COOP_ALLOCATOR_CACHING ? 160u << 10 : 16384;
  p->budget += pick (p, 64) * 512u * (p->unit / 16);
  policy->v[COOP_PARAM_BUDGET].i = (int64_t) p->budget;
  return 2u << 20;
}

static void
begin (Program *p)
{
  CoopPolicy policy;
  coop_policy_init (&policy);
  coop_policy_preset (&policy, evictor_that_evicts (p));
  p->large = pick (p, 8) == 0;
  p->unit = p->large ? 700 : 16;
  p->budget = p->large ? (4u << 20) + pick (p, 16) * 4096u : 16384 + pick (p, 64) * 512u;
  policy.v[COOP_PARAM_BUDGET].i = (int64_t) p->budget;
  policy.v[COOP_PARAM_SMALL].i = p->large ? 1024 : 0;
  policy.v[COOP_PARAM_GROUPS].i = 1 + pick (p, 6);
  if (pick (p, 4) == 0)
    policy.v[COOP_PARAM_CHAIN].i = pick (p, COOP_N_CHAINS);
  policy.v[COOP_PARAM_HOLD].i = pick (p, 2) * 600;
  policy.v[COOP_PARAM_COST].i = pick (p, 2);
  policy.v[COOP_PARAM_THRASH].i = 3;
  if (pick (p, 2) == 0)
    {
      /* moves as dear as evictions are */
      policy.v[COOP_PARAM_EVICT_PRICE].d = 20;
      policy.v[COOP_PARAM_MOVE_COST].d = 0.5;
    }
  uint64_t capacity = p->large ? 6u << 20 : 128u << 10;
  if (p->source->allocator != COOP_ALLOCATOR_MERGE)
    capacity = segmented (p, &policy);
  p->host = ref_host_new_watched (capacity, &policy, &p->source->watch);
  p->host->check = true;
}

void
ref_program_run (const RefBytes *source, unsigned max_steps, RefProgramStats *stats)
{
  Program p = { .source = source };
  CoopTotals totals;
  begin (&p);
  for (unsigned i = 0; i < max_steps && !p.ended; i++)
    {
      step (&p);
      ref_host_verify (p.host);
      stats->steps++;
    }
  coop_engine_totals (p.host->engine, &totals);
  stats->evictions += totals.evictions;
  stats->replays += totals.replays;
  stats->ooms += totals.ooms;
  stats->moves += totals.moves;
  stats->windows += p.host->brute_windows;
  stats->singles += p.host->brute_singles;
  stats->fits += p.host->brute_fits;
  stats->plans += p.host->brute_plans;
  stats->sets += p.host->brute_sets;
  stats->optima += p.host->brute_optima;
  stats->segments += totals.held_most > 0;
  stats->returned += totals.returned;
  stats->remaps += totals.remaps;
  while (p.n > 0)
    drop (&p, 0);
  ref_host_free (p.host);
}
