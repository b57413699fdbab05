/* SPDX-License-Identifier: Apache-2.0 */
/* coop import: a file of somebody else's, checked: memory snapshots of PyTorch become traces, all else
 * becomes a program in JSON lines. */
#include "cli.h"

#include <glib-unix.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "replay/program.h"
#include "trace/snapshot.h"

#define NAME "import"

/* "unet.jsonl.gz" in the current folder */
static char *
name_for (const CoopProgram *program)
{
  g_autofree char *name = g_strdup (program->name);
  g_strcanon (name, G_CSET_a_2_z G_CSET_A_2_Z G_CSET_DIGITS "-_.", '_');
  return g_strconcat (name, ".jsonl.gz", NULL);
}

/* ---- memory snapshots ---- */

typedef struct {
  gint64 start;
  gboolean drawn;
} Progress;

static volatile sig_atomic_t interrupted;

static void
on_signal (int signum)
{
  interrupted = TRUE;
}

static gboolean
go_on (gpointer user, double part)
{
  Progress *p = user;
  if (isatty (STDERR_FILENO) && g_get_monotonic_time () - p->start > G_USEC_PER_SEC)
    {
      p->drawn = TRUE;
      fprintf (stderr, "\rreading %3.0f %%", 100 * part);
      fflush (stderr);
    }
  return !interrupted;
}

/* "oom.coop" in the current folder for "/tmp/oom.pickle" */
static char *
trace_for (const char *from)
{
  g_autofree char *base = g_path_get_basename (from);
  char *dot = strrchr (base, '.');
  if (dot != NULL && dot != base)
    *dot = 0;
  return g_strconcat (base, ".coop", NULL);
}

static void
print_trace (const char *path)
{
  g_autoptr (GError) error = NULL;
  CoopTraceInfo info = { .events = 0 };
  CoopReader *reader = coop_reader_open (path, &error);
  if (reader != NULL && coop_reader_info (reader, &info, &error))
    {
      g_autofree char *peak = coop_cli_size (info.peak), *used = coop_cli_size (info.totals.used);
      g_autofree char *allocs = coop_cli_count (info.totals.allocs, "allocation", "allocations");
      g_autofree char *frees = coop_cli_count (info.totals.frees, "free", "frees");
      g_autofree char *ooms = coop_cli_count (info.totals.ooms, "time", "times");
      printf ("%s: %s, %s, %s out of memory; peak %s, %s at the end\n", path, allocs, frees, ooms, peak, used);
    }
  else
    coop_cli_warn (NAME, "%s", error->message);
  coop_trace_info_clear (&info);
  coop_reader_free (reader);
}

static int
import_snapshot (const char *from, const char *to, gboolean force)
{
  g_autoptr (GError) error = NULL;
  g_autofree char *out = to != NULL ? g_strdup (to) : trace_for (from);
  Progress progress = { g_get_monotonic_time (), FALSE };
  CoopSnapshotJob job = { .path = from, .out = out, .replace = force, .go_on = go_on, .user = &progress };
  struct sigaction old, ours = { .sa_handler = on_signal };
  interrupted = FALSE;
  sigaction (SIGINT, &ours, &old);
  gboolean ok = coop_snapshot_import (&job, &error);
  sigaction (SIGINT, &old, NULL);
  if (progress.drawn)
    fprintf (stderr, "\r\033[K");
  for (guint i = 0; ok && i < job.traces->len; i++)
    print_trace (job.traces->pdata[i]);
  for (guint i = 0; ok && i < job.notes->len; i++)
    printf ("note: %s\n", (char *) job.notes->pdata[i]);
  coop_snapshot_clear (&job);
  return ok ? COOP_EXIT_DONE : coop_cli_fail (NAME, "%s", error->message);
}

/* ---- programs ---- */

static int
import (const char *from, const char *to, gboolean force)
{
  if (coop_snapshot_is_pickle (from))
    return import_snapshot (from, to, force);
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
    { "output", 'o', 0, G_OPTION_ARG_FILENAME, &to, "The trace (NAME.coop here) or program (NAME.jsonl.gz)", "FILE" },
    { "force", 'f', 0, G_OPTION_ARG_NONE, &force, "Replace a file that is there", NULL },
    { NULL }
  };
  if (!coop_cli_parse ("FILE...", "Reads memory snapshots of PyTorch (torch.cuda.memory._dump_snapshot, of every version) and "
                       "writes traces, one a device.\nReads logs of DTR's simulator, programs in JSON lines and "
                       "traces (.coop), checks them, and writes programs in\nJSON lines, which `coop replay` and "
                       "`coop sweep` play. Views in a DTR log are no operators.", entries, &argc, &argv))
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
