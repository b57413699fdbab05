/* SPDX-License-Identifier: Apache-2.0 */
#include "replay/sweep.h"

#include <math.h>
#include <string.h>
#include <time.h>

#define PROGRESS_US 200000

typedef struct {
  CoopProgram *program;
  char *digest;
  guint64 peak;
} Program;

typedef struct {
  const Program *program;
  int evictor, allocator;
  gint64 ratio;
  const char *settings;
  CoopPlayOutcome out;
  gint64 wall_us;
  double busy;             /* seconds of processor time */
} Job;

typedef struct {
  const CoopSweepOptions *options;
  CoopSweepStore *store;
  CoopSweepTotals *totals;
  GArray *programs;        /* Program */
  GPtrArray *jobs;
  GAsyncQueue *done;       /* Job */
  gint stop;               /* atomic */
} Sweep;

/* ---- the grid ---- */

static gboolean
parse_one (const char *text, gint64 *ppm)
{
  char *end = NULL;
  double value = g_ascii_strtod (text, &end);
  if (end == text || *end != 0 || !(value > 0) || value > 100)
    return FALSE;
  *ppm = (gint64) floor (value * 1e6 + 0.5);
  return *ppm > 0;
}

static int
falling (gconstpointer a, gconstpointer b)
{
  gint64 x = *(const gint64 *) a, y = *(const gint64 *) b;
  return x > y ? -1 : x < y;
}

static gboolean
add_range (GArray *out, const char *text)
{
  g_auto (GStrv) parts = g_strsplit (text, ":", -1);
  gint64 from, to, step;
  guint n = g_strv_length (parts);
  if ((n != 1 && n != 3) || !parse_one (parts[0], &from))
    return FALSE;
  if (n == 1)
    {
      g_array_append_val (out, from);
      return TRUE;
    }
  if (!parse_one (parts[1], &to) || !parse_one (parts[2], &step) || ABS (from - to) / step > 100000)
    return FALSE;
  if (from < to)
    {
      gint64 swap = from;
      from = to;
      to = swap;
    }
  for (gint64 r = from; r >= to; r -= step)
    g_array_append_val (out, r);
  return TRUE;
}

GArray *
coop_sweep_parse_ratios (const char *text)
{
  g_autoptr (GArray) out = g_array_new (FALSE, FALSE, sizeof (gint64));
  g_auto (GStrv) parts = g_strsplit (text, ",", -1);
  guint n = 0;
  for (guint i = 0; parts[i] != NULL; i++)
    if (!add_range (out, parts[i]))
      return NULL;
  if (out->len == 0)
    return NULL;
  g_array_sort (out, falling);
  for (guint i = 0; i < out->len; i++)
    if (i == 0 || g_array_index (out, gint64, i) != g_array_index (out, gint64, n - 1))
      g_array_index (out, gint64, n++) = g_array_index (out, gint64, i);
  g_array_set_size (out, n);
  return g_steal_pointer (&out);
}

guint64
coop_sweep_budget (guint64 peak, gint64 ratio_ppm)
{
  guint64 r = (guint64) ratio_ppm;
  return MAX (512, peak / 1000000 * r + peak % 1000000 * r / 1000000);
}

/* ---- programs ---- */

static void
program_clear (gpointer data)
{
  Program *p = data;
  coop_program_free (p->program);
  g_free (p->digest);
}

static gboolean
load (Sweep *sweep, const char *path, GError **error)
{
  Program p = { .program = coop_program_load (path, error) };
  if (p.program == NULL)
    return FALSE;
  g_autofree char *bytes = NULL;
  gsize n = 0;
  if (!g_file_get_contents (path, &bytes, &n, error))
    {
      program_clear (&p);
      return FALSE;
    }
  p.digest = g_compute_checksum_for_data (G_CHECKSUM_SHA256, (const guchar *) bytes, n);
  p.peak = coop_play_peak (p.program);
  g_array_append_val (sweep->programs, p);
  if (p.peak == 0)
    g_set_error (error, COOP_PROGRAM_ERROR, COOP_PROGRAM_ERROR_DAMAGED,
                 "%s does not run through even without a limit", path);
  return p.peak > 0;
}

/* ---- jobs ---- */

static void
key_of (const Job *job, CoopSweepRow *row)
{
  *row = (CoopSweepRow) { .digest = job->program->digest, .ratio_ppm = job->ratio, .settings = job->settings };
  row->evictor = coop_param_info[COOP_PARAM_EVICTOR].labels[job->evictor];
  row->allocator = coop_param_info[COOP_PARAM_ALLOCATOR].labels[job->allocator];
}

static void
add_job (Sweep *sweep, const Job *job, guint64 *index)
{
  CoopSweepRow key;
  key_of (job, &key);
  if ((*index)++ % sweep->options->shards != sweep->options->shard)
    return;
  if (coop_sweep_has (sweep->store, &key))
    sweep->totals->skipped++;
  else
    g_ptr_array_add (sweep->jobs, g_memdup2 (job, sizeof *job));
}

static void
make_jobs (Sweep *sweep)
{
  const CoopSweepOptions *o = sweep->options;
  guint64 index = 0;
  for (guint p = 0; p < sweep->programs->len; p++)
    for (guint a = 0; a < o->n_allocators; a++)
      for (guint s = 0; s < o->n_settings; s++)
        for (guint e = 0; e < o->n_evictors; e++)
          for (guint r = 0; r < o->n_ratios; r++)
            {
              Job job = { .program = &g_array_index (sweep->programs, Program, p), .evictor = o->evictors[e],
                          .allocator = o->allocators[a], .settings = o->settings[s], .ratio = o->ratios[r] };
              add_job (sweep, &job, &index);
            }
}

/* The preset, then the settings. They were checked before. */
static void
policy_for (const Job *job, CoopPolicy *policy)
{
  g_auto (GStrv) sets = g_strsplit (job->settings, " ", -1);
  coop_policy_init (policy);
  coop_policy_preset (policy, (CoopEvictorName) job->evictor);
  coop_play_copy_rate (job->program->program, policy);
  policy->v[COOP_PARAM_ALLOCATOR].i = job->allocator;
  for (guint i = 0; sets[i] != NULL; i++)
    {
      char *equals = strchr (sets[i], '=');
      if (equals == NULL)
        continue;
      *equals = 0;
      int param = coop_param_find (sets[i]);
      if (param >= 0)
        coop_param_parse ((CoopParam) param, equals + 1, &policy->v[param]);
    }
  policy->v[COOP_PARAM_BUDGET].i = (gint64) coop_sweep_budget (job->program->peak, job->ratio);
}

static gboolean
keep_on (gpointer user, double part)
{
  return !g_atomic_int_get (&((Sweep *) user)->stop);
}

static double
thread_seconds (void)
{
  struct timespec t;
  clock_gettime (CLOCK_THREAD_CPUTIME_ID, &t);
  return (double) t.tv_sec + (double) t.tv_nsec / 1e9;
}

static void
work (gpointer data, gpointer user)
{
  Job *job = data;
  Sweep *sweep = user;
  CoopPlayOptions options;
  gint64 began = g_get_monotonic_time ();
  double busy = thread_seconds ();
  coop_play_options_init (&options);
  policy_for (job, &options.policy);
  options.most = sweep->options->most;
  options.measure = sweep->options->measure;
  options.keep_on = keep_on;
  options.user = sweep;
  coop_play (job->program->program, &options, &job->out);
  job->wall_us = g_get_monotonic_time () - began;
  job->busy = thread_seconds () - busy;
  g_async_queue_push (sweep->done, job);
}

static guint64
steps_of (const CoopTotals *t)
{
  return t->allocs + t->frees + t->evictions + t->searches + t->ops + t->replays;
}

static char *
reason_of (const CoopPlayOutcome *o)
{
  char asked[32], free_bytes[32], largest[32];
  if (o->fault != NULL)
    return g_strdup_printf ("the engine contradicts itself: %s", o->fault);
  if (o->result == COOP_PLAY_OK)
    return NULL;
  if (o->oom.asked == 0)
    return g_strdup (coop_play_text (o->result));
  coop_size_format (o->oom.asked, asked, sizeof asked);
  coop_size_format (o->oom.free, free_bytes, sizeof free_bytes);
  coop_size_format (o->oom.largest, largest, sizeof largest);
  return g_strdup_printf ("%s; asked %s, free %s, largest hole %s", coop_play_text (o->result), asked, free_bytes,
                          largest);
}

static gboolean
store_job (Sweep *sweep, const Job *job, GError **error)
{
  const CoopPlayOutcome *o = &job->out;
  const CoopTotals *t = &o->totals;
  CoopSweepRow row;
  g_autofree char *reason = reason_of (o);
  key_of (job, &row);
  row.program = job->program->program->name;
  row.result = o->fault != NULL ? "fault" : coop_play_label (o->result);
  row.reason = reason;
  row.budget = coop_sweep_budget (job->program->peak, job->ratio);
  row.peak_without_limit = job->program->peak;
  row.peak = t->peak;
  row.overhead = o->result == COOP_PLAY_OK ? o->overhead : NAN;
  row.plain_ns = o->plain_ns;
  row.cost_ns = o->cost_ns;
  row.operators = t->ops;
  row.recomputed = t->replays;
  row.evictions = t->evictions;
  row.evicted_bytes = t->evicted_bytes;
  row.searches = t->searches;
  row.moves = o->moves;
  row.search_ns = sweep->options->measure ? (gint64) t->search_ns : -1;
  row.fragmentation = t->searches > 0 ? t->fragmentation : NAN;
  row.steps = steps_of (t);
  row.wall_ns = (guint64) job->wall_us * 1000;
  sweep->totals->runs++;
  sweep->totals->ok += o->result == COOP_PLAY_OK && o->fault == NULL;
  sweep->totals->failed += o->result != COOP_PLAY_OK || o->fault != NULL;
  sweep->totals->steps += row.steps;
  sweep->totals->busy_seconds += job->busy;
  return coop_sweep_add (sweep->store, &row, error);
}

/* ---- the run ---- */

static void
tell (Sweep *sweep, gint64 began, guint64 left_of)
{
  const CoopSweepOptions *o = sweep->options;
  guint64 done = sweep->totals->runs;
  double seconds = (double) (g_get_monotonic_time () - began) / 1e6;
  double left = done > 0 ? seconds / (double) done * (double) (left_of - done) : NAN;
  if (o->progress != NULL && !o->progress (o->user, done, left_of, left))
    g_atomic_int_set (&sweep->stop, 1);
}

/* Takes results as they come; those that were interrupted are no results. */
static gboolean
collect (Sweep *sweep, gint64 began, GError **error)
{
  gint64 told = 0;
  gboolean ok = TRUE;
  for (guint n = 0; n < sweep->jobs->len;)
    {
      Job *job = g_async_queue_timeout_pop (sweep->done, PROGRESS_US);
      if (job != NULL)
        n++;
      if (job != NULL && job->out.result != COOP_PLAY_STOPPED && ok)
        ok = store_job (sweep, job, error);
      if (!ok)
        g_atomic_int_set (&sweep->stop, 1);
      if (g_get_monotonic_time () - told < PROGRESS_US)
        continue;
      told = g_get_monotonic_time ();
      tell (sweep, began, sweep->jobs->len);
    }
  tell (sweep, began, sweep->jobs->len);
  sweep->totals->stopped = g_atomic_int_get (&sweep->stop) != 0;
  return ok;
}

static gboolean
run_jobs (Sweep *sweep, GError **error)
{
  gint64 began = g_get_monotonic_time ();
  GThreadPool *pool = g_thread_pool_new (work, sweep, (int) MAX (1, sweep->options->threads), FALSE, error);
  if (pool == NULL)
    return FALSE;
  for (guint i = 0; i < sweep->jobs->len; i++)
    g_thread_pool_push (pool, sweep->jobs->pdata[i], NULL);
  gboolean ok = collect (sweep, began, error);
  g_thread_pool_free (pool, FALSE, TRUE);
  sweep->totals->seconds = (double) (g_get_monotonic_time () - began) / 1e6;
  return ok;
}

gboolean
coop_sweep_run (const CoopSweepOptions *options, CoopSweepStore *store, CoopSweepTotals *totals,
                GError **error)
{
  Sweep sweep = { .options = options, .store = store, .totals = totals };
  gboolean ok = TRUE;
  *totals = (CoopSweepTotals) { 0 };
  sweep.programs = g_array_new (FALSE, FALSE, sizeof (Program));
  g_array_set_clear_func (sweep.programs, program_clear);
  sweep.jobs = g_ptr_array_new_with_free_func (g_free);
  sweep.done = g_async_queue_new ();
  for (guint i = 0; ok && options->files[i] != NULL; i++)
    ok = load (&sweep, options->files[i], error);
  if (ok)
    make_jobs (&sweep);
  ok = ok && run_jobs (&sweep, error);
  g_async_queue_unref (sweep.done);
  g_ptr_array_unref (sweep.jobs);
  g_array_unref (sweep.programs);
  return ok;
}
