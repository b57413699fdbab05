/* SPDX-License-Identifier: Apache-2.0 */
/* coop: finds the command and calls it. */
#include "config.h"

#include "cli.h"

#include <locale.h>
#include <stdio.h>
#include <string.h>

static const CoopCommand commands[] = {
  { "run", "run a script inside a memory budget and record it", coop_cmd_run },
  { "attach", "follow a run that is under way, or change its policy", coop_cmd_attach },
  { "info", "what a trace holds: peak, budget, evictions, state, floor", coop_cmd_info },
  { "query", "ask a trace: one SELECT, or a question with a name", coop_cmd_query },
  { "diff", "two traces side by side", coop_cmd_diff },
  { "check", "replay a trace against a naive model of memory", coop_cmd_check },
  { "policy", "list the parameters, or explain one", coop_cmd_policy },
  { "replay", "play a recorded program under any policy, on a virtual clock", coop_cmd_replay },
  { "rehearse", "find the policy, or the budget, that suits a recorded run", coop_cmd_rehearse },
  { "sweep", "play programs at many budgets under many policies", coop_cmd_sweep },
  { "tune", "search the parameters of a policy with Optuna", coop_cmd_tune },
  { "merge", "bring the results of several sweeps into one file", coop_cmd_merge },
  { "report", "write what a sweep found as pages, charts and tables", coop_cmd_report },
  { "probe", "does freed memory make one block? ask this machine's allocators", coop_cmd_probe },
  { "import", "read programs and logs of others", coop_cmd_import },
  { "export", "a trace for other tools, as pictures, or as a program", coop_cmd_export },
  { "collect", "record a ring made by coopscope.start (started by it)", coop_cmd_collect },
};

static void
print_help (FILE *out)
{
  fputs ("Usage: coop COMMAND [OPTIONS...]\n\n", out);
  for (guint i = 0; i < G_N_ELEMENTS (commands); i++)
    fprintf (out, "  %-9s %s\n", commands[i].name, commands[i].help);
  fputs ("\n`coop COMMAND --help` explains one. For example:\n\n"
         "  coop run --budget 300MiB -- python3 train.py\n", out);
}

static int
unknown (const char *name)
{
  const char *names[G_N_ELEMENTS (commands) + 1] = { NULL };
  for (guint i = 0; i < G_N_ELEMENTS (commands); i++)
    names[i] = commands[i].name;
  const char *near = coop_cli_nearest (name, names);
  if (near != NULL)
    return coop_cli_usage (NULL, "unknown command \"%s\"; did you mean %s?", name, near);
  return coop_cli_usage (NULL, "unknown command \"%s\"; `coop --help` lists them", name);
}

int
main (int argc, char **argv)
{
  setlocale (LC_ALL, "");
  setlocale (LC_NUMERIC, "C");   /* figures are for scripts too */
  if (argc < 2)
    {
      print_help (stderr);
      return COOP_EXIT_USAGE;
    }
  if (g_str_equal (argv[1], "--help") || g_str_equal (argv[1], "-h") || g_str_equal (argv[1], "help"))
    {
      print_help (stdout);
      return COOP_EXIT_DONE;
    }
  if (g_str_equal (argv[1], "--version"))
    {
      printf ("coop %s\n", COOP_VERSION);
      return COOP_EXIT_DONE;
    }
  for (guint i = 0; i < G_N_ELEMENTS (commands); i++)
    if (g_str_equal (argv[1], commands[i].name))
      return commands[i].main (argc - 1, argv + 1);
  return unknown (argv[1]);
}
