/* SPDX-License-Identifier: Apache-2.0 */
/* coop diff: two traces side by side. */
#include "cli.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "trace/diff.h"

#define NAME "diff"
#define TOP 12

/* ---- for people ---- */

static char *
figure_text (char unit, double value)
{
  if (isnan (value))
    return g_strdup ("-");
  switch (unit)
    {
    case 'B':
      return coop_cli_size ((guint64) value);
    case 'T':
      return coop_cli_duration (value);
    case 'P':
      return g_strdup_printf ("%.1f %%", value);
    default:
      return g_strdup_printf ("%.0f", value);
    }
}

/* "+12.5 %", "2.1 times"; points where the figures are per cent themselves; nothing if equal or unknown. */
static char *
change_text (char unit, double a, double b)
{
  if (isnan (a) || isnan (b) || a == b)
    return g_strdup ("");
  if (unit == 'P')
    return g_strdup_printf ("%+.1f points", b - a);
  if (a == 0)
    return g_strdup ("new");
  if (b / a >= 2)
    return g_strdup_printf ("%.1f times", b / a);
  double percent = 100 * (b / a - 1);
  return fabs (percent) < 0.05 ? g_strdup ("") : g_strdup_printf ("%+.1f %%", percent);
}

static void
print_runs (const CoopDiff *diff)
{
  for (int side = 0; side < 2; side++)
    {
      const CoopDiffRun *run = &diff->run[side];
      printf ("%c  %s: %s (%s)\n", 'A' + side, run->path, run->command != NULL ? run->command : "unknown command", run->result);
    }
  printf ("\n%-18s %14s %14s   %s\n", "", "A", "B", "B against A");
  for (guint i = 0; i < COOP_DIFF_N_FIGURES; i++)
    {
      double a = diff->run[0].figures[i], b = diff->run[1].figures[i];
      g_autofree char *a_text = figure_text (coop_diff_units[i], a), *b_text = figure_text (coop_diff_units[i], b);
      g_autofree char *change = change_text (coop_diff_units[i], a, b);
      g_autofree char *line = g_strdup_printf ("%-18s %14s %14s   %s", coop_diff_names[i], a_text, b_text, change);
      printf ("%s\n", g_strchomp (line));
    }
  if (diff->run[0].figures[COOP_DIFF_steps] != diff->run[1].figures[COOP_DIFF_steps])
    printf ("\nThe runs have different numbers of steps; sums are not a step's.\n");
}

static void
print_params (const CoopDiff *diff)
{
  if (diff->params->len == 0)
    return;
  printf ("\npolicy at the end\n");
  for (guint i = 0; i < diff->params->len; i++)
    {
      const CoopDiffParam *p = &g_array_index (diff->params, CoopDiffParam, i);
      printf ("%-18s %14s %14s\n", p->param, p->value[0] != NULL ? p->value[0] : "-", p->value[1] != NULL ? p->value[1] : "-");
    }
}

static void
print_rows (const char *title, const GArray *rows, guint top)
{
  guint n = top > 0 ? MIN (top, rows->len) : rows->len;
  if (n == 0)
    return;
  printf ("\n%s%s\n", title, n < rows->len ? ", the largest changes of time" : "");
  printf ("%-34s %15s %19s %15s %19s %19s\n", "", "calls", "ms, all of them", "recomputed", "evicted, MiB", "at the peak, MiB");
  printf ("%-34s %7s %7s %9s %9s %7s %7s %9s %9s %9s %9s\n", "", "A", "B", "A", "B", "A", "B", "A", "B", "A", "B");
  for (guint i = 0; i < n; i++)
    {
      const CoopDiffRow *r = &g_array_index (rows, CoopDiffRow, i);
      double ms[2], evicted[2], peak[2];
      for (int side = 0; side < 2; side++)
        {
          ms[side] = (double) (r->own_ns[side] + r->again_ns[side]) / 1e6;
          evicted[side] = (double) r->evicted_bytes[side] / 1048576.0;
          peak[side] = (double) r->at_peak_bytes[side] / 1048576.0;
        }
      printf ("%-34s %7" G_GUINT64_FORMAT " %7" G_GUINT64_FORMAT " %9.1f %9.1f %7" G_GUINT64_FORMAT " %7" G_GUINT64_FORMAT
              " %9.1f %9.1f %9.1f %9.1f\n", r->key, r->calls[0], r->calls[1], ms[0], ms[1], r->recomputed[0], r->recomputed[1],
              evicted[0], evicted[1], peak[0], peak[1]);
    }
}

/* ---- for programs ---- */

static void
json_runs (GString *out, const CoopDiff *diff)
{
  static const char *const keys[COOP_DIFF_N_FIGURES] = {
#define X(field, name, unit) #field,
    COOP_DIFF_FIGURES (X)
#undef X
  };
  for (int side = 0; side < 2; side++)
    {
      const CoopDiffRun *run = &diff->run[side];
      coop_json_open (out, side == 0 ? "a" : "b", '{');
      coop_json_string (out, "file", run->path);
      coop_json_string (out, "command", run->command);
      coop_json_string (out, "result", run->result);
      for (guint i = 0; i < COOP_DIFF_N_FIGURES; i++)
        {
          const char *suffix = coop_diff_units[i] == 'B' ? "_bytes" : coop_diff_units[i] == 'T' ? "_ns" : coop_diff_units[i] == 'P' ? "_percent" : "";
          g_autofree char *key = g_strconcat (keys[i], suffix, NULL);
          if (isnan (run->figures[i]) || coop_diff_units[i] == 'P')
            coop_json_real (out, key, run->figures[i]);
          else
            coop_json_uint (out, key, (guint64) run->figures[i]);
        }
      coop_json_close (out, '}');
    }
}

static void
json_pair (GString *out, const char *key, const guint64 *values)
{
  coop_json_open (out, key, '[');
  coop_json_uint (out, NULL, values[0]);
  coop_json_uint (out, NULL, values[1]);
  coop_json_close (out, ']');
}

static void
json_rows (GString *out, const char *key, const char *what, const GArray *rows, guint top)
{
  coop_json_open (out, key, '[');
  for (guint i = 0; i < rows->len && (top == 0 || i < top); i++)
    {
      const CoopDiffRow *r = &g_array_index (rows, CoopDiffRow, i);
      coop_json_open (out, NULL, '{');
      coop_json_string (out, what, r->key);
      json_pair (out, "calls", r->calls);
      json_pair (out, "own_ns", r->own_ns);
      json_pair (out, "recomputed", r->recomputed);
      json_pair (out, "recompute_ns", r->again_ns);
      json_pair (out, "evicted_bytes", r->evicted_bytes);
      json_pair (out, "at_peak_bytes", r->at_peak_bytes);
      coop_json_close (out, '}');
    }
  coop_json_close (out, ']');
}

static void
print_json (const CoopDiff *diff, guint top)
{
  g_autoptr (GString) out = g_string_new (NULL);
  coop_json_open (out, NULL, '{');
  json_runs (out, diff);
  coop_json_open (out, "policy", '[');
  for (guint i = 0; i < diff->params->len; i++)
    {
      const CoopDiffParam *p = &g_array_index (diff->params, CoopDiffParam, i);
      coop_json_open (out, NULL, '{');
      coop_json_string (out, "param", p->param);
      coop_json_string (out, "a", p->value[0]);
      coop_json_string (out, "b", p->value[1]);
      coop_json_close (out, '}');
    }
  coop_json_close (out, ']');
  json_rows (out, "operators", "operator", diff->operators, top);
  json_rows (out, "lines", "line", diff->lines, top);
  coop_json_close (out, '}');
  printf ("%s\n", out->str);
}

int
coop_cmd_diff (int argc, char **argv)
{
  gboolean json = FALSE;
  int top = -1;
  const GOptionEntry entries[] = {
    { "json", 0, 0, G_OPTION_ARG_NONE, &json, "Print one JSON object; sizes in bytes, times in ns, pairs are [A, B]", NULL },
    { "top", 0, 0, G_OPTION_ARG_INT, &top, "Most operators and lines (12; JSON all); 0 is all", "N" },
    G_OPTION_ENTRY_NULL
  };
  if (!coop_cli_parse ("A B", "Puts two traces side by side: peak, evictions, recomputation and time of the runs, what their policies\n"
                       "differ in, and the same by operator and by line of the script, the largest changes first.\n"
                       "For two policies on the very same run see `coop replay`.", entries, &argc, &argv))
    return COOP_EXIT_USAGE;
  if (argc != 3)
    return coop_cli_usage (NAME, "give two traces: coop diff A B");
  g_autoptr (GError) error = NULL;
  CoopDiff *diff = coop_diff_new (argv[1], argv[2], &error);
  if (diff == NULL)
    return coop_cli_fail (NAME, "%s", error->message);
  if (json)
    print_json (diff, (guint) MAX (top, 0));
  else
    {
      guint n = (guint) (top < 0 ? TOP : top);
      print_runs (diff);
      print_params (diff);
      print_rows ("by operator", diff->operators, n);
      print_rows ("by line", diff->lines, n);
    }
  coop_diff_free (diff);
  return COOP_EXIT_DONE;
}
