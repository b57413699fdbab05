/* SPDX-License-Identifier: Apache-2.0 */
/* Diff: see the header. */
#include "trace/diff.h"

#include <math.h>
#include <string.h>

#include "trace/instant.h"

#define SECONDS 600.0

const char *const coop_diff_names[COOP_DIFF_N_FIGURES] = {
#define X(field, name, unit) name,
  COOP_DIFF_FIGURES (X)
#undef X
};
const char coop_diff_units[COOP_DIFF_N_FIGURES] = {
#define X(field, name, unit) unit,
  COOP_DIFF_FIGURES (X)
#undef X
};

/* %s: what rows are made by; %llu: the event of the peak. */
#define ROWS                                                                                        \
  "WITH gone AS (SELECT t.op, sum (x.bytes) AS bytes FROM evicted x JOIN tensor t ON t.id = x.tensor GROUP BY t.op)," \
  " live AS (SELECT coalesce (t.op, b.op) AS op, sum (b.bytes) AS bytes FROM block b LEFT JOIN tensor t ON t.id = b.tensor" \
  "  WHERE coalesce (b.born_event, 0) <= %" G_GUINT64_FORMAT " AND (b.died_event IS NULL OR b.died_event > %" G_GUINT64_FORMAT ") GROUP BY 1)" \
  " SELECT %s, sum (o.replay_of IS NULL), sum (CASE WHEN o.replay_of IS NULL THEN o.duration_ns END),"  \
  "  sum (o.replay_of IS NOT NULL), sum (CASE WHEN o.replay_of IS NOT NULL THEN o.duration_ns END),"    \
  "  sum (g.bytes), sum (l.bytes)"                                                                      \
  " FROM op o LEFT JOIN string n ON n.id = o.name LEFT JOIN stack st ON st.id = o.stack"                \
  "  LEFT JOIN frame fr ON fr.id = st.shown LEFT JOIN string fi ON fi.id = fr.file"                     \
  "  LEFT JOIN string fu ON fu.id = fr.func LEFT JOIN gone g ON g.op = o.id LEFT JOIN live l ON l.op = o.id" \
  " GROUP BY 1"
#define BY_OPERATOR "replace (replace (replace (n.text, 'aten::', ''), 'aten.', ''), '.default', '')"
#define BY_LINE                                                                                     \
  "replace (fi.text, rtrim (fi.text, replace (fi.text, '/', '')), '') || ':' || fr.line || coalesce (' in ' || fu.text, '')"
/* What was made outside of operators, as in imported snapshots; the event of the peak, twice. */
#define LONE                                                                                        \
  "SELECT " BY_LINE ", 0, 0, 0, 0, 0, sum (b.bytes) FROM block b JOIN stack st ON st.id = b.stack"    \
  " LEFT JOIN frame fr ON fr.id = st.shown LEFT JOIN string fi ON fi.id = fr.file"                    \
  " LEFT JOIN string fu ON fu.id = fr.func LEFT JOIN tensor t ON t.id = b.tensor"                     \
  " WHERE coalesce (b.born_event, 0) <= %" G_GUINT64_FORMAT " AND (b.died_event IS NULL OR b.died_event > %" G_GUINT64_FORMAT ")" \
  "  AND coalesce (t.op, b.op) IS NULL GROUP BY 1"
#define PARAMS "SELECT param, new FROM policy_change p WHERE event = (SELECT max (event) FROM policy_change q WHERE q.param = p.param)"

typedef struct {
  CoopDiff *diff;
  int side;
  GArray *rows;       /* CoopDiffRow or CoopDiffParam */
  GHashTable *known;  /* key -> index + 1 */
} Fill;

static guint64
number (const char *text)
{
  return text != NULL ? g_ascii_strtoull (text, NULL, 10) : 0;
}

static gboolean
take_row (gpointer user, int n, const char *const *names, const char *const *values, const int *types)
{
  Fill *fill = user;
  const char *key = values[0] != NULL ? values[0] : "(unknown)";
  guint at = GPOINTER_TO_UINT (g_hash_table_lookup (fill->known, key));
  if (at == 0)
    {
      CoopDiffRow row = { .key = g_strdup (key) };
      g_array_append_val (fill->rows, row);
      at = fill->rows->len;
      g_hash_table_insert (fill->known, g_strdup (key), GUINT_TO_POINTER (at));
    }
  CoopDiffRow *row = &g_array_index (fill->rows, CoopDiffRow, at - 1);
  guint64 *const fields[] = { row->calls, row->own_ns, row->recomputed, row->again_ns, row->evicted_bytes, row->at_peak_bytes };
  for (guint i = 0; i < G_N_ELEMENTS (fields); i++)
    fields[i][fill->side] += number (values[1 + i]);
  return TRUE;
}

static gboolean
take_param (gpointer user, int n, const char *const *names, const char *const *values, const int *types)
{
  Fill *fill = user;
  for (guint i = 0; i < fill->rows->len; i++)
    {
      CoopDiffParam *param = &g_array_index (fill->rows, CoopDiffParam, i);
      if (g_str_equal (param->param, values[0]))
        {
          param->value[fill->side] = g_strdup (values[1]);
          return TRUE;
        }
    }
  CoopDiffParam param = { .param = g_strdup (values[0]) };
  param.value[fill->side] = g_strdup (values[1]);
  g_array_append_val (fill->rows, param);
  return TRUE;
}

/* ---- the runs ---- */

static char *
result_of (const CoopTraceInfo *info)
{
  if (info->state == COOP_RUN_RUNNING)
    return g_strdup ("running");
  if (info->state == COOP_RUN_INTERRUPTED)
    return g_strdup ("interrupted");
  if (info->state == COOP_RUN_KILLED)
    return g_strdup_printf ("killed by %d", info->exit_code);
  return info->exit_code == 0 ? g_strdup ("ended") : g_strdup_printf ("exit code %d", info->exit_code);
}

static double
some (guint64 value)
{
  return value > 0 ? (double) value : NAN;
}

static gboolean
read_run (CoopReader *reader, const char *path, CoopDiffRun *run, GError **error)
{
  CoopTraceInfo info;
  if (!coop_reader_info (reader, &info, error))
    return FALSE;
  const CoopModelTotals *t = &info.totals;
  run->path = g_strdup (path);
  run->command = g_strdup (info.command);
  run->result = result_of (&info);
  const double figures[COOP_DIFF_N_FIGURES] = {
    [COOP_DIFF_budget] = some (info.budget), [COOP_DIFF_peak] = (double) info.peak, [COOP_DIFF_state] = some (info.state_bytes),
    [COOP_DIFF_floor] = some (info.floor_bytes), [COOP_DIFF_steps] = (double) t->step, [COOP_DIFF_time] = (double) t->ts,
    [COOP_DIFF_operators] = (double) t->ops, [COOP_DIFF_own] = (double) t->op_ns, [COOP_DIFF_recomputed] = (double) t->replays,
    [COOP_DIFF_again] = (double) t->replay_ns, [COOP_DIFF_extra] = t->op_ns > 0 ? 100.0 * (double) t->replay_ns / (double) t->op_ns : NAN,
    [COOP_DIFF_evictions] = (double) t->evictions, [COOP_DIFF_evicted] = (double) t->evicted_bytes,
    [COOP_DIFF_searches] = (double) t->searches, [COOP_DIFF_search] = (double) t->search_ns,
    [COOP_DIFF_fragmentation] = t->searches > 0 && info.budget > 0 ? 100 * t->fragmentation : NAN, [COOP_DIFF_ooms] = (double) t->ooms,
  };
  memcpy (run->figures, figures, sizeof figures);
  coop_trace_info_clear (&info);
  return TRUE;
}

static gboolean
read_rows (CoopReader *reader, Fill *fill, const char *by, guint64 peak, GError **error)
{
  g_autofree char *sql = g_strdup_printf (ROWS, peak, peak, by);
  return coop_reader_query (reader, sql, SECONDS, take_row, fill, error);
}

static gboolean
read_side (CoopDiff *diff, int side, const char *path, Fill *by_operator, Fill *by_line, GError **error)
{
  Fill params = { .diff = diff, .side = side, .rows = diff->params };
  guint64 peak = 0;
  CoopReader *reader = coop_reader_open (path, error);
  if (reader == NULL)
    return FALSE;
  coop_reader_hold (reader);
  by_operator->side = by_line->side = side;
  coop_reader_instant (reader, "peak", &peak, NULL);
  g_autofree char *lone = g_strdup_printf (LONE, peak, peak);
  gboolean done = read_run (reader, path, &diff->run[side], error)
                  && coop_reader_query (reader, PARAMS, SECONDS, take_param, &params, error)
                  && read_rows (reader, by_operator, BY_OPERATOR, peak, error)
                  && read_rows (reader, by_line, BY_LINE, peak, error)
                  && coop_reader_query (reader, lone, SECONDS, take_row, by_line, error);
  coop_reader_free (reader);
  return done;
}

/* ---- both ---- */

static guint64
apart (guint64 a, guint64 b)
{
  return a > b ? a - b : b - a;
}

/* Of time; of bytes at the peak where there is none. */
static guint64
change (const CoopDiffRow *row, gboolean bytes)
{
  return bytes ? apart (row->at_peak_bytes[0], row->at_peak_bytes[1])
               : apart (row->own_ns[0] + row->again_ns[0], row->own_ns[1] + row->again_ns[1]);
}

static int
by_change (gconstpointer a, gconstpointer b)
{
  for (gboolean bytes = FALSE; bytes <= TRUE; bytes++)
    {
      guint64 x = change (a, bytes), y = change (b, bytes);
      if (x != y)
        return x > y ? -1 : 1;
    }
  return strcmp (((const CoopDiffRow *) a)->key, ((const CoopDiffRow *) b)->key);
}

static void
clear_row (gpointer row)
{
  g_free (((CoopDiffRow *) row)->key);
}

static void
clear_param (gpointer data)
{
  CoopDiffParam *param = data;
  g_free (param->param);
  g_free (param->value[0]);
  g_free (param->value[1]);
}

static void
drop_equal_params (GArray *params)
{
  for (guint i = params->len; i-- > 0;)
    {
      const CoopDiffParam *param = &g_array_index (params, CoopDiffParam, i);
      if (g_strcmp0 (param->value[0], param->value[1]) == 0)
        g_array_remove_index (params, i);
    }
}

CoopDiff *
coop_diff_new (const char *a, const char *b, GError **error)
{
  CoopDiff *diff = g_new0 (CoopDiff, 1);
  diff->params = g_array_new (FALSE, FALSE, sizeof (CoopDiffParam));
  diff->operators = g_array_new (FALSE, FALSE, sizeof (CoopDiffRow));
  diff->lines = g_array_new (FALSE, FALSE, sizeof (CoopDiffRow));
  g_array_set_clear_func (diff->params, clear_param);
  g_array_set_clear_func (diff->operators, clear_row);
  g_array_set_clear_func (diff->lines, clear_row);
  Fill by_operator = { .diff = diff, .rows = diff->operators }, by_line = { .diff = diff, .rows = diff->lines };
  by_operator.known = g_hash_table_new_full (g_str_hash, g_str_equal, g_free, NULL);
  by_line.known = g_hash_table_new_full (g_str_hash, g_str_equal, g_free, NULL);
  gboolean done = read_side (diff, 0, a, &by_operator, &by_line, error) && read_side (diff, 1, b, &by_operator, &by_line, error);
  g_hash_table_unref (by_operator.known);
  g_hash_table_unref (by_line.known);
  if (!done)
    {
      coop_diff_free (diff);
      return NULL;
    }
  drop_equal_params (diff->params);
  g_array_sort (diff->operators, by_change);
  g_array_sort (diff->lines, by_change);
  return diff;
}

void
coop_diff_free (CoopDiff *diff)
{
  if (diff == NULL)
    return;
  for (int side = 0; side < 2; side++)
    {
      g_free (diff->run[side].path);
      g_free (diff->run[side].command);
      g_free (diff->run[side].result);
    }
  g_array_unref (diff->params);
  g_array_unref (diff->operators);
  g_array_unref (diff->lines);
  g_free (diff);
}
