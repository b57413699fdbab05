/* SPDX-License-Identifier: Apache-2.0 */
/* Rehearsal: first the presets, then from the best of them one parameter after the other, as long as one
 * of them gains. A trial takes as long as a replay of the program, so a search of some thirty trials on a
 * few recorded steps takes a second or two. */
#include "rehearse.h"

#include <math.h>
#include <string.h>
#include <time.h>

#define ROUNDS 2   /* through all parameters */
#define COMPARED 3 /* steps at the end */

static const CoopEvictorName presets[] = { COOP_EVICTOR_COOP, COOP_EVICTOR_COOP_PLUS, COOP_EVICTOR_DTR_EQ, COOP_EVICTOR_DTE,
                                           COOP_EVICTOR_LRU };

static const struct {
  CoopParam param;
  double value;
} moves[] = {
  { COOP_PARAM_GROUPS, 1 },
  { COOP_PARAM_GROUPS, 2 },
  { COOP_PARAM_DENSITY, 0 },
  { COOP_PARAM_DENSITY, 0.05 },
  { COOP_PARAM_DENSITY, 1 },
  { COOP_PARAM_CHAIN, COOP_CHAIN_EXACT },
  { COOP_PARAM_CHAIN, COOP_CHAIN_UNION },
  { COOP_PARAM_STALENESS_EXPONENT, 0.3 },
  { COOP_PARAM_STALENESS_EXPONENT, 0.6 },
  { COOP_PARAM_STALENESS_EXPONENT, 1.5 },
  { COOP_PARAM_COST_EXPONENT, 0.7 },
  { COOP_PARAM_COPY_RATE, 0.3 },   /* times what it is */
  { COOP_PARAM_COPY_RATE, 3 },
  { COOP_PARAM_SIZE_EXPONENT, 0 },
  { COOP_PARAM_SIZE_EXPONENT, 1 },
};

void
coop_rehearse_options_init (CoopRehearseOptions *options)
{
  *options = (CoopRehearseOptions) { .gain = 0.01, .disturb = 0.1 };
}

void
coop_trial_clear (CoopTrial *trial)
{
  g_clear_pointer (&trial->text, g_free);
}

void
coop_rehearsal_clear (CoopRehearsal *out)
{
  coop_trial_clear (&out->as_is);
  coop_trial_clear (&out->best);
}

/* ---- one trial ---- */

/* At the beginning of a step, and at the end. */
typedef struct {
  guint64 plain, again, copied;   /* ns until then */
} Mark;

typedef struct {
  double copy_rate;
  Mark now;
  guint64 replayed;               /* the operator under way is run again for the operator of this number; 0: it is not */
  GArray *marks;
} Watch;

static void
watch (void *user, CoopEvent *ev, const void *payload)
{
  Watch *w = user;
  (void) payload;
  switch (ev->kind)
    {
    case COOP_EVENT_OP_BEGIN:
      w->replayed = ev->u.op_begin.replay_of;
      break;
    case COOP_EVENT_OP_END:
      *(w->replayed != 0 ? &w->now.again : &w->now.plain) += ev->u.op_end.cost;
      w->replayed = 0;
      break;
    case COOP_EVENT_MOVE:
      w->now.copied += (guint64) ((double) ev->u.move.bytes / w->copy_rate);
      break;
    case COOP_EVENT_STEP:
      g_array_append_val (w->marks, w->now);
      break;
    default:
      break;
    }
}

/* The latest whole steps; all, if there is none but the first. */
static void
compare (const Watch *w, CoopTrial *trial, guint *steps)
{
  Mark from = { 0 }, to = w->now;
  *steps = 0;
  if (w->marks->len > 2)
    {
      *steps = MIN (COMPARED, w->marks->len - 2);
      from = g_array_index (w->marks, Mark, w->marks->len - 1 - *steps);
      to = g_array_index (w->marks, Mark, w->marks->len - 1);
    }
  guint64 plain = to.plain - from.plain;
  trial->recomputed_ns = to.again - from.again;
  trial->copied_ns = to.copied - from.copied;
  if (trial->result == COOP_PLAY_OK && plain > 0)
    trial->overhead = (double) (plain + trial->recomputed_ns + trial->copied_ns) / (double) plain;
}

static gboolean
keep_on (gpointer user, double part)
{
  const CoopRehearseOptions *options = user;
  (void) part;
  return options->keep_on == NULL || options->keep_on (options->user);
}

static void
play_one (const CoopProgram *program, const CoopPolicy *policy, const CoopRehearseOptions *options, double most,
          CoopTrial *trial, guint *steps)
{
  CoopPlayOptions play;
  CoopPlayOutcome outcome;
  g_autoptr (GArray) marks = g_array_new (FALSE, FALSE, sizeof (Mark));
  double rate = program->copy_rate > 0 ? program->copy_rate : 4;
  Watch w = { .copy_rate = options->copy_rate > 0 ? options->copy_rate : rate, .marks = marks };
  coop_play_options_init (&play);
  play.policy = *policy;
  play.policy.v[COOP_PARAM_VERIFY].i = play.policy.v[COOP_PARAM_STRESS].i = 0;
  play.most = most;
  play.sink = (CoopSink) { watch, &w };
  play.keep_on = keep_on;
  play.user = (gpointer) options;
  coop_play (program, &play, &outcome);
  trial->policy = *policy;
  trial->result = outcome.result;
  trial->overhead = INFINITY;
  compare (&w, trial, steps);
}

/* ---- costs that are off ---- */

/* The program with the cost of each operator off by a part within +-disturb, the same on every call. Operators
 * share what they point to with the original. NULL: not asked for. */
static CoopProgram *
disturbed (const CoopProgram *program, double disturb)
{
  g_autoptr (GRand) rand = g_rand_new_with_seed (1);
  if (disturb <= 0)
    return NULL;
  CoopProgram *off = g_memdup2 (program, sizeof *program);
  off->lines = g_array_copy (program->lines);
  for (guint i = 0; i < off->lines->len; i++)
    {
      CoopProgramLine *line = &g_array_index (off->lines, CoopProgramLine, i);
      if (line->kind != COOP_DO_OP)
        continue;
      line->op = g_memdup2 (line->op, sizeof *line->op);
      line->op->cost = (guint64) ((double) line->op->cost * g_rand_double_range (rand, 1 - disturb, 1 + disturb));
    }
  return off;
}

static void
disturbed_free (CoopProgram *off)
{
  for (guint i = 0; off != NULL && i < off->lines->len; i++)
    g_free (g_array_index (off->lines, CoopProgramLine, i).op);   /* NULL where the line is no operator */
  if (off != NULL)
    g_array_unref (off->lines);
  g_free (off);
}

static void
try (const CoopProgram *program, const CoopProgram *off, const CoopPolicy *policy, const CoopRehearseOptions *options,
     double most, CoopTrial *trial, guint *steps)
{
  CoopTrial second = { 0 };
  play_one (program, policy, options, most, trial, steps);
  if (off == NULL || !isfinite (trial->overhead))
    return;
  play_one (off, policy, options, most, &second, steps);
  trial->result = second.result;
  trial->overhead = (trial->overhead + second.overhead) / 2;
}

void
coop_rehearse_one (const CoopProgram *program, const CoopPolicy *policy, const CoopRehearseOptions *options,
                   CoopTrial *trial)
{
  guint steps;
  CoopProgram *off = disturbed (program, options->disturb);
  *trial = (CoopTrial) { .text = g_strdup ("") };
  try (program, off, policy, options, 0, trial, &steps);
  disturbed_free (off);
}

/* ---- the search ---- */

typedef struct {
  const CoopProgram *program;
  CoopProgram *off;            /* the same with other costs, or NULL */
  const CoopRehearseOptions *options;
  CoopRehearsal *out;
  double began;
} Search;

static double
processor_seconds (void)
{
  struct timespec ts;
  clock_gettime (CLOCK_THREAD_CPUTIME_ID, &ts);
  return (double) ts.tv_sec + (double) ts.tv_nsec * 1e-9;
}

static gboolean
may_go_on (Search *s)
{
  const CoopRehearseOptions *o = s->options;
  s->out->seconds = processor_seconds () - s->began;
  if ((o->seconds > 0 && s->out->seconds > o->seconds) || !keep_on ((gpointer) o, 0))
    s->out->stopped = TRUE;
  return !s->out->stopped;
}

/* What the policy has other than the one it began from. */
static char *
difference (const CoopPolicy *from, const CoopPolicy *policy)
{
  g_autoptr (GString) text = g_string_new (NULL);
  for (guint p = 0; p < COOP_N_PARAMS; p++)
    {
      char value[64];
      if (coop_value_equal ((CoopParam) p, from->v[p], policy->v[p]))
        continue;
      coop_param_format ((CoopParam) p, policy->v[p], value, sizeof value);
      g_string_append_printf (text, "%s%s=%s", text->len > 0 ? " " : "", coop_param_info[p].name, value);
    }
  return g_string_free (g_steal_pointer (&text), FALSE);
}

static void
consider (Search *s, const CoopPolicy *policy)
{
  CoopRehearsal *out = s->out;
  CoopTrial trial = { 0 };
  guint steps;
  if (!may_go_on (s))
    return;
  /* what is twice as slow as the best need not be played to its end */
  double most = isfinite (out->best.overhead) ? 2 * out->best.overhead : 0;
  try (s->program, s->off, policy, s->options, most, &trial, &steps);
  trial.text = difference (&out->as_is.policy, policy);
  out->trials++;
  if (s->options->tried != NULL)
    s->options->tried (s->options->user, &trial);
  if (trial.overhead < out->best.overhead)
    {
      coop_trial_clear (&out->best);
      out->best = trial;
    }
  else
    coop_trial_clear (&trial);
}

static void
consider_presets (Search *s)
{
  for (guint i = 0; i < G_N_ELEMENTS (presets); i++)
    {
      CoopPolicy policy = s->out->as_is.policy;
      coop_policy_preset (&policy, presets[i]);
      if (memcmp (&policy, &s->out->as_is.policy, sizeof policy) != 0)
        consider (s, &policy);
    }
}

static gboolean
consider_moves (Search *s)
{
  double before = s->out->best.overhead;
  for (guint i = 0; i < G_N_ELEMENTS (moves); i++)
    {
      CoopPolicy policy = s->out->best.policy;
      CoopParam p = moves[i].param;
      CoopValue value = { .i = 0 };
      if (p == COOP_PARAM_COPY_RATE)
        value.d = moves[i].value * s->out->as_is.policy.v[p].d;
      else if (coop_param_info[p].type == COOP_TYPE_REAL)
        value.d = moves[i].value;
      else
        value.i = (gint64) moves[i].value;
      if (coop_value_equal (p, policy.v[p], value))
        continue;
      policy.v[p] = value;
      consider (s, &policy);
    }
  return s->out->best.overhead < before;
}

void
coop_rehearse (const CoopProgram *program, const CoopPolicy *from, const CoopRehearseOptions *options,
               CoopRehearsal *out)
{
  Search s = { program, disturbed (program, options->disturb), options, out, processor_seconds () };
  *out = (CoopRehearsal) { .trials = 1, .as_is.text = g_strdup ("") };
  try (program, s.off, from, options, 0, &out->as_is, &out->steps);
  if (options->tried != NULL)
    options->tried (options->user, &out->as_is);
  out->best = out->as_is;
  out->best.text = g_strdup ("");
  if (out->as_is.result == COOP_PLAY_STOPPED)
    out->stopped = TRUE;
  consider_presets (&s);
  for (guint i = 0; i < ROUNDS && !out->stopped && consider_moves (&s); i++)
    ;
  disturbed_free (s.off);
  out->seconds = processor_seconds () - s.began;
  /* too small a gain is noise: what runs stays */
  if (out->best.overhead > (1 - options->gain) * out->as_is.overhead)
    {
      coop_trial_clear (&out->best);
      out->best = out->as_is;
      out->best.text = g_strdup ("");
    }
}
