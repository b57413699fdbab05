/* SPDX-License-Identifier: Apache-2.0 */
/* coop report: a sweep as pages for people. */
#include "cli.h"

#include <stdio.h>

#include "replay/report.h"

#define NAME "report"

int
coop_cmd_report (int argc, char **argv)
{
  g_autofree char *folder = NULL;
  g_autoptr (GError) error = NULL;
  guint n = 0;
  const GOptionEntry entries[] = {
    { "output", 'o', 0, G_OPTION_ARG_FILENAME, &folder, "The folder; made if it is not there", "DIR" },
    { NULL }
  };
  if (!coop_cli_parse ("SWEEP", "Writes what a sweep found: index.html (one self-contained page), its charts as SVG, "
                       "runs.csv,\nminimum.csv, matrix.csv and report.md. Files of these names are replaced.", entries, &argc, &argv))
    return COOP_EXIT_USAGE;
  if (argc != 2 || folder == NULL)
    return coop_cli_usage (NAME, "coop report SWEEP.db -o DIR");
  CoopSweepStore *store = coop_sweep_open (argv[1], FALSE, &error);
  gboolean ok = store != NULL && coop_report_write (store, folder, &n, &error);
  coop_sweep_close (store);
  if (!ok)
    return coop_cli_fail (NAME, "%s", error->message);
  printf ("%s/index.html: %u runs\n", folder, n);
  return COOP_EXIT_DONE;
}
