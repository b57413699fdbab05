/* SPDX-License-Identifier: Apache-2.0 */
/* coop tune: hands over to the Python driver, which asks Optuna what to try and `coop replay` what came of it. */
#include "cli.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "session/preflight.h"

#define NAME "tune"

typedef struct {
  char *budget, *evictors, *storage, *output, *python;
  double ratio;
  int trials, jobs;
  gboolean json;
} Flags;

/* What the driver would say late, and Optuna not at all. */
static gboolean
flags_are_right (const Flags *f)
{
  guint64 bytes = 0;
  if ((f->budget == NULL) == isnan (f->ratio))
    return coop_cli_usage (NAME, "give one of --budget and --ratio") < 0;
  if (f->budget != NULL && (coop_size_parse (f->budget, &bytes) != COOP_PARSE_OK || bytes == 0))
    return coop_cli_usage (NAME, "--budget: \"%s\" is not a size", f->budget) < 0;
  if (!isnan (f->ratio) && !(f->ratio > 0 && f->ratio <= 100))
    return coop_cli_usage (NAME, "--ratio must be above 0 and at most 100: 1 is the peak without limit") < 0;
  if (f->trials < 1 || f->jobs < 1)
    return coop_cli_usage (NAME, "--trials and --jobs must be at least 1") < 0;
  if (f->jobs > 1 && f->storage == NULL)
    return coop_cli_usage (NAME, "several workers meet in a file: give --storage FILE.db") < 0;
  g_auto (GStrv) names = g_strsplit (f->evictors, ",", -1);
  for (guint i = 0; names[i] != NULL; i++)
    {
      CoopPolicy policy;
      guint64 mask = 0;
      coop_policy_init (&policy);
      if (!coop_cli_policy_set (NAME, "evictor", names[i], &policy, &mask))
        return FALSE;
    }
  return TRUE;
}

static void
add (GPtrArray *argv, const char *option, const char *value)
{
  g_ptr_array_add (argv, g_strdup (option));
  if (value != NULL)
    g_ptr_array_add (argv, g_strdup (value));
}

static GPtrArray *
driver_for (const Flags *f, const char *program)
{
  GPtrArray *argv = g_ptr_array_new_with_free_func (g_free);
  g_autofree char *trials = g_strdup_printf ("%d", f->trials), *jobs = g_strdup_printf ("%d", f->jobs);
  char ratio[G_ASCII_DTOSTR_BUF_SIZE];
  add (argv, f->python != NULL ? f->python : "python3", "-m");
  add (argv, "coopscope.tune", NULL);
  if (f->budget != NULL)
    add (argv, "--budget", f->budget);
  else
    add (argv, "--ratio", g_ascii_dtostr (ratio, sizeof ratio, f->ratio));
  add (argv, "--evictors", f->evictors);
  add (argv, "--trials", trials);
  add (argv, "--jobs", jobs);
  if (f->storage != NULL)
    add (argv, "--storage", f->storage);
  if (f->output != NULL)
    add (argv, "--output", f->output);
  if (f->json)
    add (argv, "--json", NULL);
  add (argv, "--", program);
  g_ptr_array_add (argv, NULL);
  return argv;
}

static int
tune (const Flags *f, const char *program)
{
  g_autofree char *package = coop_python_dir ();
  const char *old = g_getenv ("PYTHONPATH");
  if (package == NULL)
    return coop_cli_fail (NAME, "Coopscope's Python package is not installed");
  if (access (program, R_OK) != 0)
    return coop_cli_fail (NAME, "%s: %s", program, g_strerror (errno));
  g_autoptr (GPtrArray) argv = driver_for (f, program);
  g_autofree char *path = old != NULL && old[0] != 0 ? g_strconcat (package, ":", old, NULL) : g_strdup (package);
  g_setenv ("PYTHONPATH", path, TRUE);
  execvp (argv->pdata[0], (char **) argv->pdata);
  return coop_cli_fail (NAME, "%s: %s", (char *) argv->pdata[0], g_strerror (errno));
}

int
coop_cmd_tune (int argc, char **argv)
{
  Flags f = { .ratio = NAN, .trials = 100, .jobs = 1 };
  const GOptionEntry entries[] = {
    { "budget", 0, 0, G_OPTION_ARG_STRING, &f.budget, "Bytes of tensor memory: 300MiB, 1.5GB", "SIZE" },
    { "ratio", 0, 0, G_OPTION_ARG_DOUBLE, &f.ratio, "The same, as a part of the peak without limit: 0.6", "R" },
    { "evictors", 0, 0, G_OPTION_ARG_STRING, &f.evictors, "Which may be chosen (coop)", "A,B" },
    { "trials", 'n', 0, G_OPTION_ARG_INT, &f.trials, "Policies to try (100)", "N" },
    { "jobs", 'j', 0, G_OPTION_ARG_INT, &f.jobs, "Processes that try (1)", "N" },
    { "storage", 0, 0, G_OPTION_ARG_FILENAME, &f.storage, "Keep the trials here; the next call goes on from them", "FILE" },
    { "output", 'o', 0, G_OPTION_ARG_FILENAME, &f.output, "Write the policy, for coop run --policy", "FILE" },
    { "python", 0, 0, G_OPTION_ARG_STRING, &f.python, "An interpreter that has Optuna (python3)", "PATH" },
    { "json", 0, 0, G_OPTION_ARG_NONE, &f.json, "Print one JSON object", NULL },
    { NULL }
  };
  int code = COOP_EXIT_USAGE;
  if (coop_cli_parse ("FILE", "Searches the parameters of a policy for one recorded program and one budget, and says "
                      "what they gain\nover the preset. Each trial is a replay. Optuna (pip install optuna) says "
                      "what to try next.", entries, &argc, &argv))
    {
      if (f.evictors == NULL)
        f.evictors = g_strdup ("coop");
      code = argc != 2 ? coop_cli_usage (NAME, "which program? coop tune FILE --budget SIZE")
             : flags_are_right (&f) ? tune (&f, argv[1]) : COOP_EXIT_USAGE;
    }
  g_free (f.budget);
  g_free (f.evictors);
  g_free (f.storage);
  g_free (f.output);
  g_free (f.python);
  return code;
}
