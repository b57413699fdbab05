/* SPDX-License-Identifier: Apache-2.0 */
/* coop export: a trace for other tools. */
#include "cli.h"

#include <stdio.h>
#include <string.h>

#include "replay/program.h"

#define NAME "export"

static const char *const formats[] = { "program", NULL };

static int
export_program (const char *from, const char *to)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (CoopProgram) program = coop_program_load (from, &error);
  if (program == NULL || !coop_program_save (program, to, &error))
    return coop_cli_fail (NAME, "%s", error->message);
  return COOP_EXIT_DONE;
}

/* Beside the trace, or here if it has no folder. */
static char *
name_for (const char *from)
{
  gsize n = strlen (from) - (g_str_has_suffix (from, ".coop") ? 5 : 0);
  return g_strdup_printf ("%.*s.jsonl.gz", (int) n, from);
}

int
coop_cmd_export (int argc, char **argv)
{
  g_autofree char *to = NULL, *format = NULL;
  const GOptionEntry entries[] = {
    { "to", 0, 0, G_OPTION_ARG_STRING, &format, "program: what the run asked for, in JSON lines", "FORMAT" },
    { "output", 'o', 0, G_OPTION_ARG_FILENAME, &to, "Where to (FILE.jsonl.gz); .gz is gzipped", "PATH" },
    { NULL }
  };
  if (!coop_cli_parse ("FILE", "Writes a trace for other tools. A program holds operators, sizes, costs and the moments "
                       "at which\nthe run let go; what the policy decided is left out.", entries, &argc, &argv))
    return COOP_EXIT_USAGE;
  if (argc != 2)
    return coop_cli_usage (NAME, "give one trace: coop export FILE --to program");
  if (format == NULL)
    return coop_cli_usage (NAME, "--to what? there is: program");
  if (!g_strv_contains (formats, format))
    return coop_cli_usage (NAME, "unknown format \"%s\"; there is: program", format);
  g_autofree char *path = to != NULL ? g_strdup (to) : name_for (argv[1]);
  return export_program (argv[1], path);
}
