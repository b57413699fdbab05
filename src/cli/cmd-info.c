/* SPDX-License-Identifier: Apache-2.0 */
/* coop info: what a trace holds, on one page. */
#include "cli.h"

#include <glib/gstdio.h>
#include <stdio.h>
#include <string.h>

#include "trace/store.h"

#define NAME "info"
#define AT_PEAK 5

/* What is printed, in either form. */
typedef struct {
  CoopReader *reader;
  const char *path;
  CoopTraceInfo info;
  guint64 file_bytes, lost, peak_seq;
  GArray *pieces;      /* CoopMapPiece, the largest at the peak */
  CoopModel *at_peak;
} Report;

/* ---- gathering ---- */

static gboolean
take_uint (gpointer user, int n, const char *const *names, const char *const *values, const int *types)
{
  if (values[0] != NULL)
    *(guint64 *) user = g_ascii_strtoull (values[0], NULL, 10);
  return FALSE;
}

static int
by_size (gconstpointer a, gconstpointer b)
{
  const CoopMapPiece *x = a, *y = b;
  if (x->used != y->used)
    return x->used ? -1 : 1;
  return x->bytes > y->bytes ? -1 : x->bytes < y->bytes ? 1 : x->addr < y->addr ? -1 : x->addr > y->addr;
}

static void
look_at_peak (Report *r)
{
  g_autofree char *sql = g_strdup_printf ("SELECT seq FROM event WHERE used = %" G_GUINT64_FORMAT
                                          " ORDER BY seq LIMIT 1", r->info.peak);
  r->peak_seq = r->info.peak_seq;
  if (r->info.trimmed > 0 || r->info.detail == COOP_DETAIL_SUMMARY)   /* the peak may be among what is gone */
    return;
  if (r->info.peak == 0 || (r->peak_seq == G_MAXUINT64 && !coop_reader_query (r->reader, sql, 10, take_uint, &r->peak_seq, NULL))
      || r->peak_seq == G_MAXUINT64)
    return;
  r->at_peak = coop_reader_model_at (r->reader, r->peak_seq, NULL);
  if (r->at_peak == NULL)
    return;
  coop_model_pieces (r->at_peak, r->pieces);
  g_array_sort (r->pieces, by_size);
  for (guint i = 0; i < r->pieces->len; i++)
    if (i == AT_PEAK || !g_array_index (r->pieces, CoopMapPiece, i).used)
      g_array_set_size (r->pieces, i);
}

static gboolean
gather (Report *r, GError **error)
{
  GStatBuf st;
  r->reader = coop_reader_open (r->path, error);
  r->pieces = g_array_new (FALSE, FALSE, sizeof (CoopMapPiece));
  if (r->reader != NULL)
    coop_reader_hold (r->reader);
  if (r->reader == NULL || !coop_reader_info (r->reader, &r->info, error))
    return FALSE;
  g_autofree char *log = g_strconcat (r->path, "-wal", NULL); /* of a run under way, or interrupted */
  r->file_bytes = g_stat (r->path, &st) == 0 ? (guint64) st.st_size : 0;
  r->file_bytes += g_stat (log, &st) == 0 ? (guint64) st.st_size : 0;
  coop_reader_query (r->reader, "SELECT value FROM stat WHERE name = 'lost_events'", 5, take_uint, &r->lost, NULL);
  look_at_peak (r);
  return TRUE;
}

static void
clear (Report *r)
{
  coop_trace_info_clear (&r->info);
  coop_model_free (r->at_peak);
  g_clear_pointer (&r->pieces, g_array_unref);
  coop_reader_free (r->reader);
}

static double
extra_time (const CoopModelTotals *t)
{
  return t->op_ns > 0 ? (double) t->replay_ns / (double) t->op_ns : 0;
}

static const char *
run_state (const Report *r)
{
  switch (r->info.state)
    {
    case COOP_RUN_RUNNING:
      return "running";
    case COOP_RUN_ENDED:
      return "ended";
    case COOP_RUN_KILLED:
      return "killed";
    case COOP_RUN_INTERRUPTED:
      break;
    }
  return "interrupted";
}

/* "conv2d output", "state", "workspace of relu" */
static char *
name_piece (const Report *r, const CoopMapPiece *p)
{
  g_autofree char *name = coop_model_op_text (r->at_peak, p->op);
  if (p->tensor == 0)
    return name != NULL ? g_strdup_printf ("workspace of %s", name) : g_strdup ("unclaimed block");
  return name != NULL ? g_strdup_printf ("%s output", name) : g_strdup ("made outside operators");
}

/* ---- for people ---- */

static void
line (const char *label, const char *format, ...) G_GNUC_PRINTF (2, 3);

static void
line (const char *label, const char *format, ...)
{
  va_list args;
  va_start (args, format);
  printf ("%-14s ", label);
  vprintf (format, args);
  printf ("\n");
  va_end (args);
}

static void
line_size (const char *label, guint64 bytes, const char *after)
{
  g_autofree char *size = coop_cli_size (bytes);
  line (label, "%s%s%s", size, *after != 0 ? "  " : "", after);
}

static void
print_run (const Report *r)
{
  const CoopTraceInfo *info = &r->info;
  g_autofree char *size = coop_cli_size (r->file_bytes);
  g_autofree char *time = coop_cli_duration ((double) info->totals.ts);
  g_autofree char *how = g_strdup (run_state (r));
  if (info->state == COOP_RUN_ENDED || info->state == COOP_RUN_KILLED)
    {
      g_free (how);
      how = g_strdup_printf ("%s %d", info->state == COOP_RUN_ENDED ? "ended with exit code" : "killed by signal",
                             info->exit_code);
    }
  g_autofree char *events = coop_cli_count (info->events, "event", "events");
  g_autofree char *steps = coop_cli_count (info->totals.step, "step", "steps");
  line ("trace", "%s, %s, %s", r->path, size, events);
  line ("command", "%s", info->command != NULL ? info->command : "unknown");
  line ("run", "%s after %s, %s", how, time, steps);
  line ("policy", "evictor %s, allocator %s", info->evictor, info->allocator);
  g_autoptr (GArray) caveats = coop_reader_caveats (r->reader);
  for (guint i = 0; i < caveats->len; i++)
    line (g_array_index (caveats, CoopCaveat, i).label, "%s", g_array_index (caveats, CoopCaveat, i).text);
}

static void
print_memory (const Report *r)
{
  const CoopTraceInfo *info = &r->info;
  printf ("\n");
  if (info->budget > 0)
    line_size ("budget", info->budget, "");
  else
    line ("budget", "none");
  line_size ("peak", info->peak, "largest sum of live bytes");
  if (info->state_bytes > 0)
    line_size ("state", info->state_bytes, "survives from step to step");
  else
    line ("state", "unknown: no two steps were seen");
  line_size ("floor", info->floor_bytes, "nothing finishes with less");
}

static void
print_work (const Report *r)
{
  const CoopModelTotals *t = &r->info.totals;
  g_autofree char *evicted = coop_cli_size (t->evicted_bytes);
  g_autofree char *replay = coop_cli_duration ((double) t->replay_ns);
  g_autofree char *search = coop_cli_duration (t->searches > 0 ? (double) t->search_ns / (double) t->searches : 0);
  printf ("\n");
  line ("operators", "%" G_GUINT64_FORMAT, t->ops);
  line ("evictions", "%" G_GUINT64_FORMAT ", %s", t->evictions, evicted);
  g_autofree char *again = coop_cli_count (t->replays, "operator", "operators");
  g_autofree char *back = coop_cli_count (t->handovers, "tensor", "tensors");
  g_autofree char *ooms = coop_cli_count (t->ooms, "time", "times");
  line ("recomputed", "%s, %s brought back", again, back);
  line ("extra time", "%s, %.1f %% of the operators' own", replay, 100 * extra_time (t));
  if (t->search_ns == 0)
    line ("searches", "%" G_GUINT64_FORMAT "%s", t->searches, t->searches > 0 ? ", not timed" : "");
  else
    line ("searches", "%" G_GUINT64_FORMAT ", %s each", t->searches, search);
  if (t->searches > 0 && r->info.budget > 0)
    line ("fragmentation", "%.1f %% of the budget free at a search, on average", 100 * t->fragmentation);
  line ("out of memory", "%s", ooms);
}

static void
print_peak (const Report *r)
{
  if (r->at_peak == NULL || r->pieces->len == 0)
    return;
  printf ("\nthe largest at the peak (event %" G_GUINT64_FORMAT ")\n", r->peak_seq);
  for (guint i = 0; i < r->pieces->len; i++)
    {
      const CoopMapPiece *p = &g_array_index (r->pieces, CoopMapPiece, i);
      g_autofree char *size = coop_cli_size (p->bytes);
      g_autofree char *name = name_piece (r, p);
      printf ("  %10s  %-10s  %s at %#" G_GINT64_MODIFIER "x\n", size, coop_kind_label (p->kind), name, p->addr);
    }
}

/* ---- for programs ---- */

static gboolean
take_meta (gpointer user, int n, const char *const *names, const char *const *values, const int *types)
{
  coop_json_string (user, values[0], values[1]);
  return TRUE;
}

static void
json_totals (GString *out, const Report *r)
{
  const CoopModelTotals *t = &r->info.totals;
  const struct { const char *key; guint64 value; } values[] = {
    { "steps", t->step }, { "operators", t->ops }, { "operator_ns", t->op_ns },
    { "evictions", t->evictions }, { "evicted_bytes", t->evicted_bytes }, { "recomputed", t->replays },
    { "recomputed_ns", t->replay_ns }, { "rematerializations", t->handovers }, { "moves", t->moves },
    { "searches", t->searches }, { "search_ns", t->search_ns }, { "out_of_memory", t->ooms },
    { "allocs", t->allocs }, { "frees", t->frees }, { "missing_events", t->missing },
    { "trimmed_events", r->info.trimmed }, { "lost_events", r->lost },
  };
  for (guint i = 0; i < G_N_ELEMENTS (values); i++)
    coop_json_uint (out, values[i].key, values[i].value);
  coop_json_real (out, "extra_time", extra_time (t));
  coop_json_real (out, "fragmentation", t->fragmentation);
}

static void
json_peak (GString *out, const Report *r)
{
  coop_json_open (out, "at_peak", '[');
  for (guint i = 0; r->at_peak != NULL && i < r->pieces->len; i++)
    {
      const CoopMapPiece *p = &g_array_index (r->pieces, CoopMapPiece, i);
      g_autofree char *name = name_piece (r, p);
      coop_json_open (out, NULL, '{');
      coop_json_uint (out, "bytes", p->bytes);
      coop_json_uint (out, "addr", p->addr);
      coop_json_string (out, "kind", coop_kind_label (p->kind));
      coop_json_string (out, "what", name);
      coop_json_uint (out, "tensor", p->tensor);
      coop_json_close (out, '}');
    }
  coop_json_close (out, ']');
}

static void
print_json (const Report *r)
{
  const CoopTraceInfo *info = &r->info;
  g_autoptr (GString) out = g_string_new (NULL);
  coop_json_open (out, NULL, '{');
  coop_json_string (out, "file", r->path);
  coop_json_uint (out, "file_bytes", r->file_bytes);
  coop_json_uint (out, "events", info->events);
  coop_json_string (out, "command", info->command);
  coop_json_string (out, "run_state", run_state (r));
  coop_json_int (out, "exit_code", info->exit_code);
  coop_json_uint (out, "start_ns", info->start_ns);
  coop_json_uint (out, "end_ns", info->end_ns);
  coop_json_string (out, "evictor", info->evictor);
  coop_json_string (out, "allocator", info->allocator);
  coop_json_uint (out, "budget", info->budget);
  coop_json_uint (out, "peak", info->peak);
  coop_json_uint (out, "state_bytes", info->state_bytes);
  coop_json_uint (out, "floor_bytes", info->floor_bytes);
  json_totals (out, r);
  json_peak (out, r);
  coop_json_open (out, "meta", '{');
  coop_reader_query (r->reader, "SELECT key, value FROM meta ORDER BY key", 5, take_meta, out, NULL);
  coop_json_close (out, '}');
  coop_json_close (out, '}');
  printf ("%s\n", out->str);
}

int
coop_cmd_info (int argc, char **argv)
{
  gboolean json = FALSE;
  const GOptionEntry entries[] = {
    { "json", 0, 0, G_OPTION_ARG_NONE, &json, "Print one JSON object; sizes in bytes, times in ns", NULL },
    G_OPTION_ENTRY_NULL
  };
  if (!coop_cli_parse ("FILE", "Says what a trace holds: peak, budget, state, floor, evictions, extra time.",
                       entries, &argc, &argv))
    return COOP_EXIT_USAGE;
  if (argc != 2)
    return coop_cli_usage (NAME, "give one trace: coop info FILE");
  Report report = { .path = argv[1] };
  g_autoptr (GError) error = NULL;
  int status = COOP_EXIT_DONE;
  if (!gather (&report, &error))
    status = coop_cli_fail (NAME, "%s", error->message);
  else if (json)
    print_json (&report);
  else
    {
      print_run (&report);
      print_memory (&report);
      print_work (&report);
      print_peak (&report);
    }
  clear (&report);
  return status;
}
