/* SPDX-License-Identifier: Apache-2.0 */
/* coop check: is a trace what it says? Exit 0 if nothing is wrong, 1 if anything is. What was left undone
 * can be made good first. */
#include "cli.h"

#include <stdio.h>
#include <unistd.h>

#include "trace/store.h"

#define NAME "check"

static const char *
fault_label (CoopFault fault)
{
  switch (fault)
    {
    case COOP_FAULT_NONE:
      return "none";
    case COOP_FAULT_SEQUENCE:
      return "sequence";
    case COOP_FAULT_OVERLAP:
      return "overlap";
    case COOP_FAULT_BUDGET:
      return "budget";
    case COOP_FAULT_FREE:
      return "free";
    case COOP_FAULT_UNKNOWN:
      return "unknown";
    case COOP_FAULT_TIME:
      return "time";
    case COOP_FAULT_FORMAT:
      break;
    }
  return "format";
}

typedef struct {
  gint64 start;
  gboolean drawn;
} Progress;

static void
progress (gpointer user, double part)
{
  Progress *p = user;
  if (!p->drawn && g_get_monotonic_time () - p->start < G_USEC_PER_SEC)
    return;
  p->drawn = TRUE;
  fprintf (stderr, "\rchecking %3.0f %%", 100 * MIN (part, 1.0));
  fflush (stderr);
}

static void
print_text (const char *path, const GArray *findings, guint max)
{
  for (guint i = 0; i < findings->len; i++)
    {
      const CoopFinding *f = &g_array_index (findings, CoopFinding, i);
      printf ("event %" G_GUINT64_FORMAT ": %s: %s\n", f->seq, fault_label (f->fault), f->text);
    }
  if (findings->len == 0)
    printf ("%s: nothing wrong\n", path);
  else if (findings->len >= max)
    printf ("%s: %u faults, and there may be more (--max)\n", path, findings->len);
  else
    printf ("%s: %u %s\n", path, findings->len, findings->len == 1 ? "fault" : "faults");
}

static void
print_json (const char *path, const GArray *findings)
{
  g_autoptr (GString) out = g_string_new (NULL);
  coop_json_open (out, NULL, '{');
  coop_json_string (out, "file", path);
  coop_json_bool (out, "ok", findings->len == 0);
  coop_json_open (out, "faults", '[');
  for (guint i = 0; i < findings->len; i++)
    {
      const CoopFinding *f = &g_array_index (findings, CoopFinding, i);
      coop_json_open (out, NULL, '{');
      coop_json_uint (out, "event", f->seq);
      coop_json_string (out, "fault", fault_label (f->fault));
      coop_json_string (out, "text", f->text);
      coop_json_close (out, '}');
    }
  coop_json_close (out, ']');
  coop_json_close (out, '}');
  printf ("%s\n", out->str);
}

/* FALSE: it cannot be repaired, and that was said. */
static gboolean
repair (const char *path, gboolean quiet)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (GPtrArray) done = g_ptr_array_new_with_free_func (g_free);
  if (!coop_repair (path, done, &error))
    {
      coop_cli_fail (NAME, "%s", error->message);
      return FALSE;
    }
  for (guint i = 0; i < done->len && !quiet; i++)
    printf ("repaired: %s\n", (char *) done->pdata[i]);
  return TRUE;
}

int
coop_cmd_check (int argc, char **argv)
{
  gboolean json = FALSE, mend = FALSE;
  int max = 20;
  const GOptionEntry entries[] = {
    { "max", 0, 0, G_OPTION_ARG_INT, &max, "Stop after so many faults (20)", "N" },
    { "repair", 0, 0, G_OPTION_ARG_NONE, &mend, "First make good what an interrupted run or an older version left", NULL },
    { "json", 0, 0, G_OPTION_ARG_NONE, &json, "Print one JSON object", NULL },
    G_OPTION_ENTRY_NULL
  };
  if (!coop_cli_parse ("FILE", "Replays the events of a trace against a naive model of memory: overlaps, use past\n"
                       "the budget, frees of nothing, gaps, rows that disagree, damage. Exit 1 if it finds any.",
                       entries, &argc, &argv))
    return COOP_EXIT_USAGE;
  if (argc != 2)
    return coop_cli_usage (NAME, "give one trace: coop check FILE");
  if (max < 1)
    return coop_cli_usage (NAME, "--max must be at least 1");
  if (mend && !repair (argv[1], json))
    return COOP_EXIT_FAILED;
  g_autoptr (GError) error = NULL;
  Progress state = { g_get_monotonic_time (), FALSE };
  g_autoptr (GArray) findings = coop_check (argv[1], (guint) max, isatty (STDERR_FILENO) ? progress : NULL, &state, &error);
  if (state.drawn)
    fprintf (stderr, "\r\033[K");
  if (findings == NULL)
    return coop_cli_fail (NAME, "%s", error->message);
  if (json)
    print_json (argv[1], findings);
  else
    print_text (argv[1], findings, (guint) max);
  return findings->len == 0 ? COOP_EXIT_DONE : COOP_EXIT_FAILED;
}
