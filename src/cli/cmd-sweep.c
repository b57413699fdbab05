/* SPDX-License-Identifier: Apache-2.0 */
/* coop sweep: many programs, policies and budgets into one file; and coop merge, for clusters. */
#include "cli.h"

#include <glib-unix.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "replay/sweep.h"

#define NAME "sweep"
#define MERGE "merge"

typedef struct {
  char *evictors, *allocators, *ratios, *shard, *output;
  char **set;
  double most;
  int threads;
  gboolean measure, json, quiet;
} Flags;

static volatile sig_atomic_t interrupted;

static void
on_signal (int number)
{
  interrupted = 1;
}

/* ---- options ---- */

/* Names with commas between, as values of an ENUM parameter, each once. NULL: a message was printed. */
static GArray *
parse_names (const char *key, const char *text)
{
  g_auto (GStrv) names = g_strsplit (text, ",", -1);
  g_autoptr (GArray) out = g_array_new (FALSE, FALSE, sizeof (int));
  CoopPolicy policy;
  guint64 mask = 0, seen = 0;
  coop_policy_init (&policy);
  for (guint i = 0; names[i] != NULL; i++)
    {
      if (!coop_cli_policy_set (NAME, key, g_strstrip (names[i]), &policy, &mask))
        return NULL;
      int value = (int) policy.v[coop_param_find (key)].i;
      if (!(seen >> value & 1))
        g_array_append_val (out, value);
      seen |= (guint64) 1 << value;
    }
  return g_steal_pointer (&out);
}

/* "KEY=V1,V2" multiplies what there is by its values. */
static gboolean
multiply_settings (GPtrArray *settings, const char *set)
{
  CoopPolicy policy;
  guint64 mask = 0;
  const char *equals = strchr (set, '=');
  coop_policy_init (&policy);
  if (equals == NULL || equals == set)
    return coop_cli_policy_assign (NAME, set, &policy, &mask);
  g_autofree char *key = g_strndup (set, (gsize) (equals - set));
  g_auto (GStrv) values = g_strsplit (equals + 1, ",", -1);
  guint n = settings->len;
  for (guint i = 0; values[i] != NULL; i++)
    {
      int param = coop_param_find (key);
      if (!coop_cli_policy_set (NAME, key, values[i], &policy, &mask))
        return FALSE;
      if (param == COOP_PARAM_BUDGET || param == COOP_PARAM_EVICTOR || param == COOP_PARAM_ALLOCATOR)
        return coop_cli_usage (NAME, "%s has an option of its own: --ratios, --evictors, --allocators",
                               coop_param_info[param].name) < 0;
      char text[64];
      coop_param_format ((CoopParam) param, policy.v[param], text, sizeof text);
      for (guint k = 0; k < n; k++)
        {
          const char *before = settings->pdata[k];
          g_ptr_array_add (settings, g_strdup_printf ("%s%s%s=%s", before, before[0] != 0 ? " " : "",
                                                      coop_param_info[param].name, text));
        }
    }
  g_ptr_array_remove_range (settings, 0, n);
  return TRUE;
}

static int
by_text (gconstpointer a, gconstpointer b)
{
  return strcmp (*(char *const *) a, *(char *const *) b);
}

/* One order of words for one meaning: it is part of a run's key. */
static char *
sorted (const char *settings)
{
  g_auto (GStrv) words = g_strsplit (settings, " ", -1);
  qsort (words, g_strv_length (words), sizeof *words, by_text);
  return g_strjoinv (" ", words);
}

static GPtrArray *
parse_settings (char **set, double most)
{
  g_autoptr (GPtrArray) settings = g_ptr_array_new_with_free_func (g_free);
  g_ptr_array_add (settings, g_strdup (""));
  for (; set != NULL && *set != NULL; set++)
    if (!multiply_settings (settings, *set))
      return NULL;
  for (guint i = 0; i < settings->len; i++)
    {
      char *old = settings->pdata[i];
      settings->pdata[i] = sorted (old);
      g_free (old);
      if (most == 3)
        continue;
      old = settings->pdata[i];   /* another limit gives other results */
      settings->pdata[i] = g_strdup_printf ("%s%smost=%g", old, old[0] != 0 ? " " : "", most);
      g_free (old);
    }
  g_ptr_array_add (settings, NULL);
  return g_steal_pointer (&settings);
}

static gboolean
parse_shard (const char *text, guint *shard, guint *shards)
{
  int used = 0;
  *shard = 0;
  *shards = 1;
  if (text == NULL)
    return TRUE;
  if (sscanf (text, "%u/%u%n", shard, shards, &used) != 2 || text[used] != 0 || *shard < 1 || *shard > *shards)
    return coop_cli_usage (NAME, "--shard wants I/N with I from 1 to N, not \"%s\"", text) < 0;
  (*shard)--;
  return TRUE;
}

/* ---- progress ---- */

static gboolean
progress (gpointer user, guint64 done, guint64 total, double left)
{
  const Flags *f = user;
  if (f->quiet || !isatty (STDERR_FILENO) || total == 0)
    return !interrupted;
  int filled = (int) (30 * done / total);
  g_autofree char *time = isfinite (left) ? coop_cli_duration (left * 1e9) : g_strdup ("unknown");
  fprintf (stderr, "\r[%.*s%.*s] %" G_GUINT64_FORMAT "/%" G_GUINT64_FORMAT "  %s left\033[K%s", filled,
           "##############################", 30 - filled, "                              ", done, total, time,
           done == total ? "\n" : "");
  return !interrupted;
}

/* ---- the commands ---- */

static void
print_totals (const Flags *f, const CoopSweepTotals *t)
{
  double rate = t->busy_seconds > 0 ? (double) t->steps / t->busy_seconds : 0;
  if (f->json)
    {
      g_autoptr (GString) out = g_string_new (NULL);
      coop_json_open (out, NULL, '{');
      coop_json_string (out, "file", f->output);
      coop_json_uint (out, "runs", t->runs);
      coop_json_uint (out, "finished", t->ok);
      coop_json_uint (out, "failed", t->failed);
      coop_json_uint (out, "there_already", t->skipped);
      coop_json_real (out, "seconds", t->seconds);
      coop_json_real (out, "events_per_cpu_s", rate);
      coop_json_bool (out, "interrupted", t->stopped);
      coop_json_close (out, '}');
      printf ("%s\n", out->str);
      return;
    }
  g_autofree char *time = coop_cli_duration (t->seconds * 1e9);
  printf ("%s: %" G_GUINT64_FORMAT " runs in %s, %" G_GUINT64_FORMAT " finished, %" G_GUINT64_FORMAT " failed, %"
          G_GUINT64_FORMAT " there already\n", f->output, t->runs, time, t->ok, t->failed, t->skipped);
  if (t->runs > 0)
    printf ("%.2f million engine events a second of processor time (allocations, frees, evictions, searches, operators)\n",
            rate / 1e6);
  if (t->stopped)
    printf ("interrupted; the same command goes on from here\n");
}

static int
sweep (const Flags *f, CoopSweepOptions *options)
{
  g_autoptr (GError) error = NULL;
  CoopSweepTotals totals;
  CoopSweepStore *store = coop_sweep_open (f->output, TRUE, &error);
  if (store == NULL)
    return coop_cli_fail (NAME, "%s", error->message);
  signal (SIGINT, on_signal);
  signal (SIGTERM, on_signal);
  options->progress = progress;
  options->user = (gpointer) f;
  gboolean ok = coop_sweep_run (options, store, &totals, &error);
  coop_sweep_close (store);
  if (!ok)
    return coop_cli_fail (NAME, "%s", error->message);
  print_totals (f, &totals);
  return totals.stopped ? COOP_EXIT_FAILED : COOP_EXIT_DONE;
}

static int
check_and_sweep (const Flags *f, char **files)
{
  CoopSweepOptions o = { .files = (const char *const *) files, .most = f->most, .measure = f->measure };
  if (f->output == NULL)
    return coop_cli_usage (NAME, "where to? give -o FILE.db");
  if (f->threads < 0 || f->threads > 4096)
    return coop_cli_usage (NAME, "-j wants a number of threads, 0 for one a processor");
  if (!(f->most == 0 || f->most >= 1) || !isfinite (f->most))
    return coop_cli_usage (NAME, "--most must be 0 (never give up) or at least 1");
  if (!parse_shard (f->shard, &o.shard, &o.shards))
    return COOP_EXIT_USAGE;
  g_autoptr (GArray) evictors = parse_names ("evictor", f->evictors != NULL ? f->evictors : "coop,dtr-eq,lru");
  g_autoptr (GArray) allocators
      = evictors != NULL ? parse_names ("allocator", f->allocators != NULL ? f->allocators : "merge") : NULL;
  g_autoptr (GPtrArray) settings = allocators != NULL ? parse_settings (f->set, f->most) : NULL;
  if (settings == NULL)
    return COOP_EXIT_USAGE;
  g_autoptr (GArray) ratios = coop_sweep_parse_ratios (f->ratios != NULL ? f->ratios : "1:0.2:0.02");
  if (ratios == NULL)
    return coop_cli_usage (NAME, "--ratios wants FROM:TO:STEP or numbers with commas between, not \"%s\"", f->ratios);
  o.evictors = (const int *) (void *) evictors->data;
  o.n_evictors = evictors->len;
  o.allocators = (const int *) (void *) allocators->data;
  o.n_allocators = allocators->len;
  o.settings = (const char *const *) settings->pdata;
  o.n_settings = settings->len - 1;
  o.ratios = (const gint64 *) (void *) ratios->data;
  o.n_ratios = ratios->len;
  o.threads = f->threads > 0 ? (guint) f->threads : g_get_num_processors ();
  return sweep (f, &o);
}

int
coop_cmd_sweep (int argc, char **argv)
{
  Flags f = { .most = 3 };
  const GOptionEntry entries[] = {
    { "evictors", 0, 0, G_OPTION_ARG_STRING, &f.evictors, "Which (coop,dtr-eq,lru)", "A,B" },
    { "allocators", 0, 0, G_OPTION_ARG_STRING, &f.allocators, "Which (merge)", "A,B" },
    { "ratios", 0, 0, G_OPTION_ARG_STRING, &f.ratios, "Budgets as parts of the peak without limit (1:0.2:0.02)", "GRID" },
    { "set", 0, 0, G_OPTION_ARG_STRING_ARRAY, &f.set, "Any parameter; several values are all tried", "KEY=VALUE[,VALUE]" },
    { "most", 0, 0, G_OPTION_ARG_DOUBLE, &f.most, "Give a run up at so many times the cost (3); 0 never", "N" },
    { "measure", 0, 0, G_OPTION_ARG_NONE, &f.measure, "Time the searches", NULL },
    { "jobs", 'j', 0, G_OPTION_ARG_INT, &f.threads, "Threads (one a processor)", "N" },
    { "shard", 0, 0, G_OPTION_ARG_STRING, &f.shard, "Only every N-th run, from the I-th; each shard its own file", "I/N" },
    { "output", 'o', 0, G_OPTION_ARG_FILENAME, &f.output, "The results; what is there is not run again", "FILE" },
    { "quiet", 'q', 0, G_OPTION_ARG_NONE, &f.quiet, "No progress", NULL },
    { "json", 0, 0, G_OPTION_ARG_NONE, &f.json, "Print one JSON object at the end", NULL },
    { NULL }
  };
  int code = COOP_EXIT_USAGE;
  if (coop_cli_parse ("FILE...", "Plays programs at many budgets under many policies, in parallel, into one SQLite file. "
                      "A run that\nfails is a row with the reason. Ended at any moment, the same command goes on "
                      "where it was.\nA program's own policy is not used: each evictor's preset is, and --set.",
                      entries, &argc, &argv))
    code = argc < 2 ? coop_cli_usage (NAME, "which programs? coop sweep FILE... -o FILE.db")
                    : check_and_sweep (&f, argv + 1);
  g_free (f.evictors);
  g_free (f.allocators);
  g_free (f.ratios);
  g_free (f.shard);
  g_free (f.output);
  g_strfreev (f.set);
  return code;
}

static int
merge (const char *to, char **files)
{
  g_autoptr (GError) error = NULL;
  CoopSweepMerge counts = { 0 };
  CoopSweepStore *store = coop_sweep_open (to, TRUE, &error);
  gboolean ok = store != NULL;
  for (char **file = files; ok && *file != NULL; file++)
    ok = coop_sweep_merge (store, *file, &counts, &error);
  guint64 n = store != NULL ? coop_sweep_count (store) : 0;
  coop_sweep_close (store);
  if (!ok)
    return coop_cli_fail (MERGE, "%s", error->message);
  printf ("%s: %" G_GUINT64_FORMAT " runs, %" G_GUINT64_FORMAT " of them new, %" G_GUINT64_FORMAT
          " were there already\n", to, n, counts.added, counts.same);
  if (counts.differing > 0)
    return coop_cli_fail (MERGE, "%" G_GUINT64_FORMAT " runs are in both with different results; those of %s were kept",
                          counts.differing, to);
  return COOP_EXIT_DONE;
}

int
coop_cmd_merge (int argc, char **argv)
{
  g_autofree char *to = NULL;
  const GOptionEntry entries[] = {
    { "output", 'o', 0, G_OPTION_ARG_FILENAME, &to, "The sweep that takes them all; may be there already", "FILE" },
    { NULL }
  };
  if (!coop_cli_parse ("FILE...", "Brings the results of several sweeps (shards) into one file. A run that is in two of "
                       "them counts once.", entries, &argc, &argv))
    return COOP_EXIT_USAGE;
  if (argc < 2 || to == NULL)
    return coop_cli_usage (MERGE, "coop merge FILE... -o FILE.db");
  return merge (to, argv + 1);
}
