/* SPDX-License-Identifier: Apache-2.0 */
/* coop export: a trace for other tools, and as pictures. */
#include "cli.h"

#include <signal.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "export/export.h"
#include "replay/program.h"
#include "trace/instant.h"

#define NAME "export"
#define PROGRAM "program"

static const char *const formats[] = {
  PROGRAM,
#define X(ID, label, suffix) label,
  COOP_EXPORT_FORMATS (X)
#undef X
  NULL
};

static int
refuse_format (const char *format)
{
  const char *near = format != NULL ? coop_cli_nearest (format, formats) : NULL;
  g_autofree char *all = g_strjoinv (", ", (char **) formats);
  if (format == NULL)
    return coop_cli_usage (NAME, "--to what? there is: %s", all);
  if (near != NULL)
    return coop_cli_usage (NAME, "unknown format \"%s\"; did you mean %s?", format, near);
  return coop_cli_usage (NAME, "unknown format \"%s\"; there is: %s", format, all);
}

/* The format that a name promises; NULL if none does. */
static const char *
format_of (const char *path)
{
  static const struct { const char *suffix, *format; } known[] = {
    { ".png", "png" }, { ".svg", "svg" }, { ".svg.gz", "svg" }, { ".pftrace", "perfetto" }, { ".pftrace.gz", "perfetto" },
    { ".coop", "coop" }, { ".pickle", "pytorch" }, { ".pkl", "pytorch" }, { ".json", "chrome" }, { ".json.gz", "chrome" },
  };
  for (guint i = 0; path != NULL && i < G_N_ELEMENTS (known); i++)
    if (g_str_has_suffix (path, known[i].suffix))
      return known[i].format;
  return NULL;
}

/* Beside the trace, or here if it has no folder. */
static char *
name_for (const char *from, const char *suffix)
{
  gsize n = strlen (from) - (g_str_has_suffix (from, ".coop") ? 5 : 0);
  return g_strdup_printf ("%.*s%s", (int) n, from, suffix);
}

static gboolean
is_there (const char *path, gboolean force)
{
  if (force || g_str_equal (path, "-") || !g_file_test (path, G_FILE_TEST_EXISTS))
    return FALSE;
  coop_cli_warn (NAME, "%s is there already; --force replaces it", path);
  return TRUE;
}

static int
export_program (const char *from, const char *to, gboolean force)
{
  g_autoptr (GError) error = NULL;
  g_autofree char *path = to != NULL ? g_strdup (to) : name_for (from, ".jsonl.gz");
  if (is_there (path, force))
    return COOP_EXIT_FAILED;
  g_autoptr (CoopProgram) program = coop_program_load (from, &error);
  if (program == NULL || !coop_program_save (program, path, &error))
    return coop_cli_fail (NAME, "%s", error->message);
  return COOP_EXIT_DONE;
}

static int stop; /* set by Ctrl-C: what is begun is taken away */

static void
on_interrupt (int signum)
{
  g_atomic_int_set (&stop, 1);
}

static int
export_trace (const char *from, const char *to, CoopExportOptions *options)
{
  /* A second one ends the program as ever. */
  const struct sigaction action = { .sa_handler = on_interrupt, .sa_flags = (int) SA_RESETHAND };
  sigaction (SIGINT, &action, NULL);
  sigaction (SIGTERM, &action, NULL);
  options->stop = &stop;
  g_autoptr (GError) error = NULL;
  g_autofree char *path = to != NULL ? g_strdup (to) : name_for (from, coop_export_suffix (options->format));
  if (!coop_export_available (options->format))
    return coop_cli_fail (NAME, "this build cannot draw: it was made without cairo");
  if ((options->format == COOP_EXPORT_CSV || options->format == COOP_EXPORT_COPY) && g_str_equal (path, "-"))
    return coop_cli_usage (NAME, "%s needs a place of its own; give one with -o", coop_export_label (options->format));
  if (is_there (path, options->replace))
    return COOP_EXIT_FAILED;
  if (!coop_export (from, path, options, &error))
    return coop_cli_fail (NAME, "%s", error->message);
  return COOP_EXIT_DONE;
}

#define SUMMARY                                                                                            \
  "Writes a trace for other tools, or draws it; no display is needed.\n\n"                                 \
  "  program   what the run asked for, in JSON lines, for coop replay and coop sweep: operators, sizes,\n" \
  "            costs and when the run let go; what the policy decided is left out\n"                       \
  "  csv       a folder with one file a view; `coop query FILE .schema` explains the columns\n"            \
  "  jsonl     the same, one JSON object a row\n"                                                          \
  "  perfetto  for ui.perfetto.dev: operators, what was recomputed for them, memory, evictions\n"          \
  "  chrome    the same for chrome://tracing and Speedscope\n"                                             \
  "  pytorch   a memory snapshot, for `python -m torch.cuda._memory_viz` and pytorch.org/memory_viz\n"     \
  "  coop      the trace again, for others to have with --anonymise; an interrupted one is finished\n"      \
  "  png, svg  the map at an instant (--at), or memory over time (--show usage)\n\n"                       \
  "Without --to the end of OUT tells (.png .svg .json .pftrace .pickle .coop). OUT that ends in .gz is gzipped,\n" \
  "- is standard output. Parquet: pyarrow or DuckDB read the CSV folder, or the trace itself, which is\n"   \
  "an SQLite file."

int
coop_cmd_export (int argc, char **argv)
{
  g_autofree char *to = NULL, *format = NULL, *show = NULL, *at = NULL;
  int width = G_MININT, height = G_MININT;
  double scale = NAN;
  CoopExportOptions o = { 0 };
  const GOptionEntry entries[] = {
    { "to", 0, 0, G_OPTION_ARG_STRING, &format, "One of the above", "FORMAT" },
    { "output", 'o', 0, G_OPTION_ARG_FILENAME, &to, "Where to (beside FILE, under its name)", "OUT" },
    { "force", 'f', 0, G_OPTION_ARG_NONE, &o.replace, "Replace what is there", NULL },
    { "anonymise", 0, 0, G_OPTION_ARG_NONE, &o.anonymise,
      "Leave out paths, host, user and command line; names of functions stay", NULL },
    { "show", 0, 0, G_OPTION_ARG_STRING, &show, "Picture: map (default) or usage", "WHAT" },
    { "at", 0, 0, G_OPTION_ARG_STRING, &at, "Map: " COOP_INSTANTS " (peak)", "INSTANT" },
    { "width", 0, 0, G_OPTION_ARG_INT, &width, "Picture: width (1200)", "PIXELS" },
    { "height", 0, 0, G_OPTION_ARG_INT, &height, "Picture: height (760; usage 460)", "PIXELS" },
    { "scale", 0, 0, G_OPTION_ARG_DOUBLE, &scale, "PNG: 2 for twice as many pixels, for print", "N" },
    { "dark", 0, 0, G_OPTION_ARG_NONE, &o.dark, "Picture: light on dark", NULL },
    { "contrast", 0, 0, G_OPTION_ARG_NONE, &o.contrast, "Picture: high contrast", NULL },
    G_OPTION_ENTRY_NULL
  };
  if (!coop_cli_parse ("FILE", SUMMARY, entries, &argc, &argv))
    return COOP_EXIT_USAGE;
  if (argc != 2)
    return coop_cli_usage (NAME, "give one trace: coop export FILE --to FORMAT -o OUT");
  const char *name = format != NULL ? format : format_of (to);
  if (name == NULL || !g_strv_contains (formats, name))
    return refuse_format (name);
  gboolean picture = g_str_equal (name, "png") || g_str_equal (name, "svg");
  if (!picture && (show != NULL || at != NULL || width != G_MININT || height != G_MININT || !isnan (scale) || o.dark || o.contrast))
    return coop_cli_usage (NAME, "--show, --at, --width, --height, --scale, --dark and --contrast are for png and svg");
  if (show != NULL && !g_str_equal (show, "map") && !g_str_equal (show, "usage"))
    return coop_cli_usage (NAME, "--show %s: there is map and usage", show);
  if ((width != G_MININT && width < 1) || (height != G_MININT && height < 1) || scale <= 0)
    return coop_cli_usage (NAME, "--width, --height and --scale must be more than 0");
  o.usage = show != NULL && g_str_equal (show, "usage");
  if (o.usage && at != NULL)
    return coop_cli_usage (NAME, "--at is for the map");
  if (g_str_equal (name, PROGRAM))
    return o.anonymise ? coop_cli_usage (NAME, "a program holds nothing to anonymise but its name: choose it with -o")
                       : export_program (argv[1], to, o.replace);
  o.format = coop_export_format (name);
  o.at = at;
  o.width = (guint) MAX (width, 0);
  o.height = (guint) MAX (height, 0);
  o.scale = isnan (scale) ? 0 : scale;
  return export_trace (argv[1], to, &o);
}
