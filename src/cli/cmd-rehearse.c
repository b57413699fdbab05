/* SPDX-License-Identifier: Apache-2.0 */
/* coop rehearse: which policy suits this run at this budget, or what each budget would cost. */
#include "cli.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "progress.h"
#include "replay/rehearse.h"

#define NAME "rehearse"

typedef struct {
  char *budget, *output;
  char **set;
  double ratio, copy_rate, seconds;
  gboolean budgets, json, all;
} Flags;

typedef struct {
  const Flags *flags;
  CoopProgram *program;
  CoopRehearseOptions options;
  CoopPolicy policy;
  guint64 peak;
  guint trials;
} Rehearse;

static double
percent (double overhead)
{
  return 100 * (overhead - 1);
}

static const char *
title (const CoopTrial *t)
{
  return *t->text != 0 ? t->text : "(as it is)";
}

/* ---- one budget ---- */

static void
tried (gpointer user, const CoopTrial *trial)
{
  Rehearse *r = user;
  r->trials++;
  if (r->flags->all && !r->flags->json)
    {
      coop_progress_clear (STDERR_FILENO);
      if (isfinite (trial->overhead))
        printf ("  %7.1f %%  %s\n", percent (trial->overhead), title (trial));
      else
        printf ("  %9s  %s\n", coop_play_label (trial->result), title (trial));
    }
  if (!isatty (STDERR_FILENO))
    return;
  g_autofree char *text = g_strdup_printf ("rehearse: %u policies tried", r->trials);
  coop_progress_draw (STDERR_FILENO, text);
}

static void
print_trial (const char *what, const CoopTrial *t)
{
  if (!isfinite (t->overhead))
    {
      printf ("  %-12s does not run through: %s\n", what, coop_play_text (t->result));
      return;
    }
  g_autofree char *again = coop_cli_duration ((double) t->recomputed_ns);
  g_autofree char *copied = coop_cli_duration ((double) t->copied_ns);
  printf ("  %-12s %.1f %% slower than without a limit (%s recomputed, %s copied)\n", what, percent (t->overhead),
          again, copied);
}

/* The evictor goes first: it sets what its preset names. */
static gboolean
write_policy (const Rehearse *r, const CoopRehearsal *out)
{
  const CoopPolicy *policy = &out->best.policy;
  g_autoptr (GError) error = NULL;
  g_autoptr (GString) text = g_string_new (NULL);
  CoopPolicy written;
  char value[64];
  g_string_append_printf (text, "# coop rehearse: %s, %u policies tried\n", r->program->name, out->trials);
  g_string_append_printf (text, "# promised: %.1f %% slower than without a limit; before: ",
                          percent (out->best.overhead));
  if (isfinite (out->as_is.overhead))
    g_string_append_printf (text, "%.1f %%\n", percent (out->as_is.overhead));
  else
    g_string_append_printf (text, "%s\n", coop_play_label (out->as_is.result));
  coop_policy_init (&written);
  coop_policy_preset (&written, (CoopEvictorName) policy->v[COOP_PARAM_EVICTOR].i);
  coop_param_format (COOP_PARAM_EVICTOR, policy->v[COOP_PARAM_EVICTOR], value, sizeof value);
  g_string_append_printf (text, "evictor=%s\n", value);
  for (guint p = 0; p < COOP_N_PARAMS; p++)
    {
      if (coop_value_equal ((CoopParam) p, policy->v[p], written.v[p]))
        continue;
      coop_param_format ((CoopParam) p, policy->v[p], value, sizeof value);
      g_string_append_printf (text, "%s=%s\n", coop_param_info[p].name, value);
    }
  if (g_file_set_contents (r->flags->output, text->str, (gssize) text->len, &error))
    return TRUE;
  coop_cli_warn (NAME, "%s", error->message);
  return FALSE;
}

static void
json_trial (GString *out, const char *key, const CoopTrial *t)
{
  coop_json_open (out, key, '{');
  coop_json_string (out, "change", t->text);
  coop_json_string (out, "result", coop_play_label (t->result));
  coop_json_real (out, "overhead", t->overhead);
  coop_json_uint (out, "recomputed_ns", t->recomputed_ns);
  coop_json_uint (out, "copied_ns", t->copied_ns);
  coop_json_close (out, '}');
}

static void
print_one (const Rehearse *r, const CoopRehearsal *out)
{
  g_autofree char *budget = coop_cli_size ((guint64) r->policy.v[COOP_PARAM_BUDGET].i);
  g_autofree char *took = coop_cli_duration (out->seconds * 1e9);
  if (r->flags->json)
    {
      g_autoptr (GString) text = g_string_new (NULL);
      coop_json_open (text, NULL, '{');
      coop_json_string (text, "program", r->program->name);
      coop_json_int (text, "budget", r->policy.v[COOP_PARAM_BUDGET].i);
      coop_json_uint (text, "peak_without_limit", r->peak);
      coop_json_uint (text, "trials", out->trials);
      coop_json_uint (text, "steps_compared", out->steps);
      coop_json_real (text, "seconds", out->seconds);
      json_trial (text, "as_is", &out->as_is);
      json_trial (text, "best", &out->best);
      coop_json_close (text, '}');
      printf ("%s\n", text->str);
      return;
    }
  printf ("%s at %s (%.3f of the peak): ", r->program->name, budget,
          (double) r->policy.v[COOP_PARAM_BUDGET].i / (double) r->peak);
  if (out->steps > 0)
    printf ("the latest %u steps", out->steps);
  else
    printf ("the whole program");
  printf (", %u policies in %s%s\n", out->trials, took, out->stopped ? " (stopped early)" : "");
  print_trial ("as it is", &out->as_is);
  if (*out->best.text == 0)
    printf ("  best         the same: nothing tried is better\n");
  else
    {
      print_trial ("best", &out->best);
      printf ("  by           %s\n", out->best.text);
    }
}

static int
rehearse_one (Rehearse *r)
{
  CoopRehearsal out;
  r->options.tried = tried;
  coop_rehearse (r->program, &r->policy, &r->options, &out);
  coop_progress_clear (STDERR_FILENO);
  print_one (r, &out);
  gboolean found = isfinite (out.best.overhead), written = TRUE;
  if (found && r->flags->output != NULL)
    {
      written = write_policy (r, &out);
      if (written && !r->flags->json)
        printf ("  policy file  %s (coop run --policy %s -- ...)\n", r->flags->output, r->flags->output);
    }
  coop_rehearsal_clear (&out);
  return found && written ? COOP_EXIT_DONE : COOP_EXIT_FAILED;
}

/* ---- all budgets ---- */

#define BUDGETS 20 /* between the peak and nothing */

static void
print_row (const Rehearse *r, GString *json, guint64 budget, const CoopRehearsal *out)
{
  g_autofree char *size = coop_cli_size (budget);
  if (r->flags->json)
    {
      coop_json_open (json, NULL, '{');
      coop_json_uint (json, "budget", budget);
      coop_json_real (json, "ratio", (double) budget / (double) r->peak);
      json_trial (json, "as_is", &out->as_is);
      json_trial (json, "best", &out->best);
      coop_json_close (json, '}');
      return;
    }
  g_autofree char *as_is = isfinite (out->as_is.overhead)
                               ? g_strdup_printf ("%.1f %%", percent (out->as_is.overhead))
                               : g_strdup ("stops");
  g_autofree char *best = isfinite (out->best.overhead) ? g_strdup_printf ("%.1f %%", percent (out->best.overhead))
                                                        : g_strdup ("stops");
  printf ("  %10s  %5.3f  %10s  %10s  %s\n", size, (double) budget / (double) r->peak, as_is, best, out->best.text);
}

/* From the peak downwards until nothing runs through any more. */
static int
all_budgets (Rehearse *r)
{
  g_autoptr (GString) json = g_string_new (NULL);
  gboolean runs = TRUE;
  guint64 least = 0;
  if (r->flags->json)
    {
      coop_json_open (json, NULL, '{');
      coop_json_string (json, "program", r->program->name);
      coop_json_uint (json, "peak_without_limit", r->peak);
      coop_json_open (json, "budgets", '[');
    }
  else
    {
      g_autofree char *peak = coop_cli_size (r->peak);
      printf ("%s: %s without a limit; time that a budget adds to a step\n", r->program->name, peak);
      printf ("  %10s  %5s  %10s  %10s\n", "budget", "ratio", "as it is", "rehearsed");
    }
  for (guint i = BUDGETS; i > 0 && runs; i--)
    {
      CoopRehearsal out;
      CoopPolicy policy = r->policy;
      guint64 budget = r->peak * i / BUDGETS;
      policy.v[COOP_PARAM_BUDGET].i = (gint64) budget;
      coop_rehearse (r->program, &policy, &r->options, &out);
      runs = isfinite (out.best.overhead);
      least = runs ? budget : least;
      print_row (r, json, budget, &out);
      fflush (stdout);
      coop_rehearsal_clear (&out);
    }
  if (r->flags->json)
    {
      coop_json_close (json, ']');
      coop_json_close (json, '}');
      printf ("%s\n", json->str);
    }
  return least > 0 ? COOP_EXIT_DONE : COOP_EXIT_FAILED;
}

/* ---- the command ---- */

static gboolean
apply_flags (Rehearse *r)
{
  const Flags *f = r->flags;
  guint64 mask = 0;
  if (!isnan (f->ratio) && f->budget != NULL)
    return coop_cli_usage (NAME, "--budget and --ratio say the same thing twice; give one") < 0;
  if (!isnan (f->ratio) && !(f->ratio > 0 && f->ratio <= 1))
    return coop_cli_usage (NAME, "--ratio must be above 0 and at most 1: 1 is the peak without limit") < 0;
  if (!(f->copy_rate >= 0) || !isfinite (f->copy_rate))
    return coop_cli_usage (NAME, "--copy-rate must be a number of GB/s") < 0;
  if (!(f->seconds >= 0))
    return coop_cli_usage (NAME, "--seconds must be 0 (no bound) or more") < 0;
  if (f->budgets && f->output != NULL)
    return coop_cli_usage (NAME, "--budgets tries them all; a policy file is written for one: give --budget") < 0;
  if (f->budget != NULL && !coop_cli_policy_set (NAME, "budget", f->budget, &r->policy, &mask))
    return FALSE;
  for (char **s = f->set; s != NULL && *s != NULL; s++)
    if (!coop_cli_policy_assign (NAME, *s, &r->policy, &mask))
      return FALSE;
  return TRUE;
}

static int
rehearse (const Flags *flags, const char *path)
{
  Rehearse r = { .flags = flags };
  g_autoptr (GError) error = NULL;
  coop_policy_init (&r.policy);
  coop_rehearse_options_init (&r.options);
  r.options.copy_rate = flags->copy_rate;
  r.options.seconds = flags->seconds;
  r.options.user = &r;
  if (!apply_flags (&r))   /* wrong use is told before a file is read */
    return COOP_EXIT_USAGE;
  g_autoptr (CoopProgram) program = coop_program_load (path, &error);
  if (program == NULL)
    return coop_cli_fail (NAME, "%s", error->message);
  r.program = program;
  if (program->has_policy)
    r.policy = program->policy;
  coop_play_copy_rate (program, &r.policy);
  if (!apply_flags (&r))
    return COOP_EXIT_USAGE;
  r.peak = coop_play_peak (program);
  if (r.peak == 0)
    return coop_cli_fail (NAME, "the program does not run through even without a limit");
  if (!isnan (flags->ratio))
    r.policy.v[COOP_PARAM_BUDGET].i = (gint64) (flags->ratio * (double) r.peak);
  if (r.policy.v[COOP_PARAM_EVICTOR].i == COOP_EVICTOR_NONE)
    coop_policy_preset (&r.policy, COOP_EVICTOR_COOP);
  if (flags->budgets)
    return all_budgets (&r);
  if (r.policy.v[COOP_PARAM_BUDGET].i == 0)
    return coop_cli_usage (NAME, "the program was recorded without a limit: say for which budget "
                                 "(--budget SIZE or --ratio R), or try all with --budgets");
  return rehearse_one (&r);
}

int
coop_cmd_rehearse (int argc, char **argv)
{
  Flags f = { .ratio = NAN };
  const GOptionEntry entries[] = {
    { "budget", 0, 0, G_OPTION_ARG_STRING, &f.budget, "Bytes of tensor memory: 300MiB, 1.5GB", "SIZE" },
    { "ratio", 0, 0, G_OPTION_ARG_DOUBLE, &f.ratio, "The same, as a part of the peak without limit: 0.6", "R" },
    { "budgets", 0, 0, G_OPTION_ARG_NONE, &f.budgets, "What every budget from the peak down would cost", NULL },
    { "set", 0, 0, G_OPTION_ARG_STRING_ARRAY, &f.set, "What to begin from; `coop policy` lists the parameters", "KEY=VALUE" },
    { "output", 'o', 0, G_OPTION_ARG_FILENAME, &f.output, "Write the policy for coop run --policy", "FILE" },
    { "copy-rate", 0, 0, G_OPTION_ARG_DOUBLE, &f.copy_rate, "What moving a tensor takes, in GB/s (that of the program's machine, or 4)", "R" },
    { "seconds", 0, 0, G_OPTION_ARG_DOUBLE, &f.seconds, "Processor time allowed for one budget; 0: no bound", "S" },
    { "all", 0, 0, G_OPTION_ARG_NONE, &f.all, "Print each policy tried", NULL },
    { "json", 0, 0, G_OPTION_ARG_NONE, &f.json, "Print one JSON object; sizes in bytes, times in ns", NULL },
    { NULL }
  };
  int code = COOP_EXIT_USAGE;
  if (coop_cli_parse ("FILE", "Training repeats itself: what policy would have suited the latest steps of this run? "
                      "The program (a trace, JSON\nlines, a log of DTR's simulator) is played under many, from the "
                      "presets on parameter by parameter, and the\nbest is told. Moving tensors counts as time. "
                      "--budgets: what each budget adds, under the policy as it is and\nunder the best. Fails (1) "
                      "where nothing runs through.",
                      entries, &argc, &argv))
    code = argc != 2 ? coop_cli_usage (NAME, "give one program: coop rehearse FILE --budget SIZE")
                     : rehearse (&f, argv[1]);
  g_free (f.budget);
  g_free (f.output);
  g_strfreev (f.set);
  return code;
}
