/* SPDX-License-Identifier: Apache-2.0 */
#include "replay/report-private.h"

#include <errno.h>
#include <glib/gstdio.h>
#include <math.h>
#include <string.h>

/* ---- what is asked of a series ---- */

gint64
coop_report_minimum (const CoopReportSeries *series)
{
  gint64 least = 0;
  for (guint i = 0; i < series->points->len; i++)
    if (g_array_index (series->points, CoopReportPoint, i).ok)
      least = g_array_index (series->points, CoopReportPoint, i).ratio_ppm;
  return least;
}

gint64
coop_report_all_down_to (const CoopReportSeries *series)
{
  gint64 least = 0;
  for (guint i = 0; i < series->points->len; i++)
    {
      const CoopReportPoint *p = &g_array_index (series->points, CoopReportPoint, i);
      if (!p->ok)
        break;
      least = p->ratio_ppm;
    }
  return least;
}

const CoopReportPoint *
coop_report_at (const CoopReportSeries *series, gint64 ratio_ppm)
{
  for (guint i = 0; i < series->points->len; i++)
    if (g_array_index (series->points, CoopReportPoint, i).ratio_ppm == ratio_ppm)
      return &g_array_index (series->points, CoopReportPoint, i);
  return NULL;
}

/* ---- rows -> programs and series ---- */

static void
point_clear (gpointer data)
{
  g_free (((CoopReportPoint *) data)->result);
  g_free (((CoopReportPoint *) data)->reason);
}

static void
series_free (gpointer data)
{
  CoopReportSeries *s = data;
  g_free (s->name);
  g_free (s->evictor);
  g_free (s->allocator);
  g_free (s->settings);
  g_array_unref (s->points);
  g_free (s);
}

static void
program_free (gpointer data)
{
  CoopReportProgram *p = data;
  g_free (p->name);
  g_free (p->digest);
  g_free (p->file);
  g_ptr_array_unref (p->series);
  g_free (p);
}

/* Rows come sorted, so what a row belongs to is the last of its kind, or new. */
static CoopReportProgram *
program_of (CoopReport *report, const CoopSweepRow *row)
{
  CoopReportProgram *last = report->programs->len > 0 ? report->programs->pdata[report->programs->len - 1] : NULL;
  if (last != NULL && g_str_equal (last->digest, row->digest))
    return last;
  CoopReportProgram *p = g_new0 (CoopReportProgram, 1);
  p->name = g_strdup (row->program);
  p->digest = g_strdup (row->digest);
  p->peak = row->peak_without_limit;
  p->series = g_ptr_array_new_with_free_func (series_free);
  gboolean twin = last != NULL && g_str_equal (last->name, row->program);
  p->file = twin ? g_strdup_printf ("%s-%.8s", row->program, row->digest) : g_strdup (row->program);
  g_strcanon (p->file, G_CSET_a_2_z G_CSET_A_2_Z G_CSET_DIGITS "-_.", '_');
  if (p->file[0] == '.')
    p->file[0] = '_';
  g_ptr_array_add (report->programs, p);
  return p;
}

static CoopReportSeries *
series_of (CoopReportProgram *program, const CoopSweepRow *row)
{
  CoopReportSeries *last = program->series->len > 0 ? program->series->pdata[program->series->len - 1] : NULL;
  if (last != NULL && g_str_equal (last->evictor, row->evictor) && g_str_equal (last->allocator, row->allocator)
      && g_str_equal (last->settings, row->settings))
    return last;
  CoopReportSeries *s = g_new0 (CoopReportSeries, 1);
  s->evictor = g_strdup (row->evictor);
  s->allocator = g_strdup (row->allocator);
  s->settings = g_strdup (row->settings);
  s->points = g_array_new (FALSE, FALSE, sizeof (CoopReportPoint));
  g_array_set_clear_func (s->points, point_clear);
  g_ptr_array_add (program->series, s);
  return s;
}

static void
take_row (gpointer user, const CoopSweepRow *row)
{
  CoopReport *report = user;
  CoopReportSeries *s = series_of (program_of (report, row), row);
  CoopReportPoint p = { .ratio_ppm = row->ratio_ppm, .ok = g_str_equal (row->result, "ok"),
                        .result = g_strdup (row->result), .reason = g_strdup (row->reason),
                        .fragmentation = row->fragmentation, .evictions = row->evictions,
                        .recomputed = row->recomputed, .moves = row->moves, .budget = row->budget };
  p.overhead = p.ok ? row->overhead : NAN;
  p.search_us = row->search_ns >= 0 && row->searches > 0 ? (double) row->search_ns / 1e3 / (double) row->searches : NAN;
  g_array_append_val (s->points, p);
  report->n_runs++;
  report->n_failed += !p.ok;
}

/* Only what differs between the series of the sweep is worth saying. */
static void
name_series (CoopReport *report)
{
  gboolean allocators = FALSE, settings = FALSE;
  const CoopReportSeries *first = NULL;
  for (guint i = 0; i < report->programs->len; i++)
    {
      CoopReportProgram *p = report->programs->pdata[i];
      for (guint k = 0; k < p->series->len; k++)
        {
          const CoopReportSeries *s = p->series->pdata[k];
          first = first != NULL ? first : s;
          allocators |= !g_str_equal (first->allocator, s->allocator);
          settings |= !g_str_equal (first->settings, s->settings);
        }
    }
  for (guint i = 0; i < report->programs->len; i++)
    {
      CoopReportProgram *p = report->programs->pdata[i];
      for (guint k = 0; k < p->series->len; k++)
        {
          CoopReportSeries *s = p->series->pdata[k];
          s->name = g_strconcat (s->evictor, allocators ? " on " : "", allocators ? s->allocator : "",
                                 settings && s->settings[0] != 0 ? ", " : "", settings ? s->settings : "", NULL);
        }
    }
}

/* ---- files ---- */

static gboolean
write_file (const char *folder, const char *name, GString *text, GError **error)
{
  g_autofree char *path = g_build_filename (folder, name, NULL);
  gboolean ok = g_file_set_contents (path, text->str, (gssize) text->len, error);
  g_string_truncate (text, 0);
  return ok;
}

static gboolean
write_charts (const CoopReport *report, const char *folder, GError **error)
{
  g_autoptr (GString) text = g_string_new (NULL);
  for (guint i = 0; i < report->programs->len; i++)
    for (int c = 0; c < COOP_N_CHARTS; c++)
      {
        const CoopReportProgram *p = report->programs->pdata[i];
        g_autofree char *name = g_strdup_printf ("%s-%s.svg", p->file, coop_report_chart_name ((CoopReportChart) c));
        if (coop_report_svg (text, p, (CoopReportChart) c) && !write_file (folder, name, text, error))
          return FALSE;
      }
  return TRUE;
}

static gboolean
write_all (const CoopReport *report, const char *folder, GError **error)
{
  static const struct {
    const char *name;
    void (*write) (GString *out, const CoopReport *report);
  } files[] = { { "runs.csv", coop_report_runs_csv }, { "minimum.csv", coop_report_minimum_csv },
                { "matrix.csv", coop_report_matrix_csv }, { "report.md", coop_report_markdown }, { "index.html", coop_report_html } };
  g_autoptr (GString) text = g_string_new (NULL);
  CoopReportMatrix *matrix = coop_report_matrix_new (report);
  gboolean pages = coop_report_pages_svg (text, matrix);
  coop_report_matrix_free (matrix);
  if (pages && !write_file (folder, "page-size.svg", text, error))
    return FALSE;
  for (guint i = 0; i < G_N_ELEMENTS (files); i++)
    {
      files[i].write (text, report);
      if (!write_file (folder, files[i].name, text, error))
        return FALSE;
    }
  return write_charts (report, folder, error);
}

gboolean
coop_report_write (CoopSweepStore *store, const char *folder, guint *n_runs, GError **error)
{
  CoopReport report = { .programs = g_ptr_array_new_with_free_func (program_free) };
  gboolean ok = coop_sweep_each (store, take_row, &report, error);
  name_series (&report);
  if (ok && report.n_runs == 0)
    {
      g_set_error (error, COOP_TRACE_ERROR, COOP_TRACE_ERROR_IO, "there is no run in it");
      ok = FALSE;
    }
  if (ok && g_mkdir_with_parents (folder, 0777) != 0)
    {
      g_set_error (error, COOP_TRACE_ERROR, COOP_TRACE_ERROR_IO, "%s: %s", folder, g_strerror (errno));
      ok = FALSE;
    }
  ok = ok && write_all (&report, folder, error);
  if (n_runs != NULL)
    *n_runs = report.n_runs;
  g_ptr_array_unref (report.programs);
  return ok;
}
