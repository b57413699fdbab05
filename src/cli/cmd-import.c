/* SPDX-License-Identifier: Apache-2.0 */
/* coop import: a file of somebody else's, checked and written as a program in JSON lines. */
#include "cli.h"

#include <stdio.h>
#include <string.h>

#include "replay/program.h"

#define NAME "import"

/* "unet.jsonl.gz" in the current folder */
static char *
name_for (const CoopProgram *program)
{
  g_autofree char *name = g_strdup (program->name);
  g_strcanon (name, G_CSET_a_2_z G_CSET_A_2_Z G_CSET_DIGITS "-_.", '_');
  return g_strconcat (name, ".jsonl.gz", NULL);
}

static int
import (const char *from, const char *to, gboolean force)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (CoopProgram) program = coop_program_load (from, &error);
  if (program == NULL)
    return coop_cli_fail (NAME, "%s", error->message);
  g_autofree char *path = to != NULL ? g_strdup (to) : name_for (program);
  if (!force && g_file_test (path, G_FILE_TEST_EXISTS))
    return coop_cli_fail (NAME, "%s is there already; --force replaces it", path);
  if (!coop_program_save (program, path, &error))
    return coop_cli_fail (NAME, "%s", error->message);
  g_autofree char *cost = coop_cli_duration ((double) program->total_ns);
  g_autofree char *constant = coop_cli_size (program->constant);
  printf ("%s: %" G_GUINT64_FORMAT " operators, %s, %s of constants\n", path, program->ops, cost, constant);
  return COOP_EXIT_DONE;
}

int
coop_cmd_import (int argc, char **argv)
{
  g_autofree char *to = NULL;
  gboolean force = FALSE;
  const GOptionEntry entries[] = {
    { "output", 'o', 0, G_OPTION_ARG_FILENAME, &to, "The program (NAME.jsonl.gz here); .gz is gzipped", "FILE" },
    { "force", 'f', 0, G_OPTION_ARG_NONE, &force, "Replace a file that is there", NULL },
    { NULL }
  };
  if (!coop_cli_parse ("FILE...", "Reads logs of DTR's simulator, programs in JSON lines and traces (.coop), checks "
                       "them, and writes\nprograms in JSON lines, which `coop replay` and `coop sweep` play. "
                       "Views in a DTR log are no operators.", entries, &argc, &argv))
    return COOP_EXIT_USAGE;
  if (argc < 2)
    return coop_cli_usage (NAME, "which file? coop import FILE...");
  if (argc > 2 && to != NULL)
    return coop_cli_usage (NAME, "--output is for one file; without it each gets a name of its own");
  int code = COOP_EXIT_DONE;
  for (int i = 1; i < argc; i++)
    if (import (argv[i], to, force) != COOP_EXIT_DONE)
      code = COOP_EXIT_FAILED;
  return code;
}
