/* SPDX-License-Identifier: Apache-2.0 */
/* Tables of the report: all runs as CSV, and per program and policy the smallest ratio and the overhead
 * at a few ratios, as CSV, Markdown and HTML. */
#include "replay/report-private.h"

#include <math.h>
#include <string.h>

static const gint64 ratios[] = { 900000, 800000, 700000, 600000, 500000, 400000, 300000, 200000 };

static const char note[]
    = "Overhead is the cost of all operators with recomputation over that without; a dash is a run that failed, "
      "blank is a ratio that is not in the sweep. Minimum: the smallest ratio that finished. All to: the smallest "
      "down to which all finished; whether a run finishes is not monotonic in the ratio. Costs are those of the "
      "recorded programs, nothing is run; copies of "
      "moves are priced where a program says what its machine copies.";

/* ---- cells ---- */

static char *
ratio_text (gint64 ppm)
{
  return ppm == 0 ? g_strdup ("none") : g_strdup_printf ("%.3g", (double) ppm / 1e6);
}

static char *
overhead_text (const CoopReportSeries *s, gint64 ppm)
{
  const CoopReportPoint *p = coop_report_at (s, ppm);
  if (p == NULL)
    return g_strdup ("");
  return p->ok ? g_strdup_printf ("%.4f", p->overhead) : g_strdup ("-");
}

static void
each_series (GString *out, const CoopReport *report, CoopReportRow row)
{
  for (guint i = 0; i < report->programs->len; i++)
    {
      const CoopReportProgram *p = report->programs->pdata[i];
      for (guint k = 0; k < p->series->len; k++)
        {
          const CoopReportSeries *s = p->series->pdata[k];
          g_autoptr (GPtrArray) cells = g_ptr_array_new_with_free_func (g_free);
          g_ptr_array_add (cells, g_strdup (p->name));
          g_ptr_array_add (cells, g_strdup (s->name));
          g_ptr_array_add (cells, ratio_text (coop_report_minimum (s)));
          g_ptr_array_add (cells, ratio_text (coop_report_all_down_to (s)));
          for (guint r = 0; r < G_N_ELEMENTS (ratios); r++)
            g_ptr_array_add (cells, overhead_text (s, ratios[r]));
          row (out, cells->len, (const char *const *) cells->pdata);
        }
    }
}

static void
header (GString *out, CoopReportRow row)
{
  const char *cells[4 + G_N_ELEMENTS (ratios)] = { "program", "policy", "minimum", "all to", "0.9", "0.8", "0.7",
                                                   "0.6", "0.5", "0.4", "0.3", "0.2" };
  row (out, G_N_ELEMENTS (cells), cells);
}

/* ---- CSV ---- */

static void
csv_cell (GString *out, const char *text)
{
  if (strpbrk (text, ",\"\n\r") == NULL)
    {
      g_string_append (out, text);
      return;
    }
  g_string_append_c (out, '"');
  for (; *text != 0; text++)
    g_string_append_printf (out, *text == '"' ? "\"\"" : "%c", *text);
  g_string_append_c (out, '"');
}

static void
csv_row (GString *out, guint n, const char *const *cells)
{
  for (guint i = 0; i < n; i++)
    {
      if (i > 0)
        g_string_append_c (out, ',');
      csv_cell (out, cells[i]);
    }
  g_string_append (out, "\r\n");
}

void
coop_report_minimum_csv (GString *out, const CoopReport *report)
{
  header (out, csv_row);
  each_series (out, report, csv_row);
}

void
coop_report_matrix_csv (GString *out, const CoopReport *report)
{
  CoopReportMatrix *m = coop_report_matrix_new (report);
  coop_report_matrix (out, m, csv_row, csv_row);
  coop_report_matrix_free (m);
}

static void
csv_real (GString *out, double value)
{
  char text[G_ASCII_DTOSTR_BUF_SIZE];
  if (isfinite (value))
    g_string_append (out, g_ascii_formatd (text, sizeof text, "%.6g", value));
}

static void
csv_run (GString *out, const CoopReportProgram *p, const CoopReportSeries *s, const CoopReportPoint *point)
{
  const char *texts[] = { p->name, s->evictor, s->allocator, s->settings, point->result };
  for (guint i = 0; i < G_N_ELEMENTS (texts); i++)
    {
      csv_cell (out, texts[i]);
      g_string_append_c (out, ',');
    }
  csv_real (out, (double) point->ratio_ppm / 1e6);
  g_string_append_printf (out, ",%" G_GUINT64_FORMAT ",", point->budget);
  csv_real (out, point->overhead);
  g_string_append_printf (out, ",%" G_GUINT64_FORMAT ",%" G_GUINT64_FORMAT ",%" G_GUINT64_FORMAT ",", point->evictions,
                          point->recomputed, point->moves);
  csv_real (out, point->fragmentation);
  g_string_append_c (out, ',');
  csv_real (out, point->search_us);
  g_string_append_c (out, ',');
  csv_cell (out, point->reason != NULL ? point->reason : "");
  g_string_append (out, "\r\n");
}

void
coop_report_runs_csv (GString *out, const CoopReport *report)
{
  g_string_append (out, "program,evictor,allocator,settings,result,ratio,budget,overhead,evictions,recomputed,moves,"
                   "fragmentation,search_us,reason\r\n");
  for (guint i = 0; i < report->programs->len; i++)
    {
      const CoopReportProgram *p = report->programs->pdata[i];
      for (guint k = 0; k < p->series->len; k++)
        {
          const CoopReportSeries *s = p->series->pdata[k];
          for (guint n = 0; n < s->points->len; n++)
            csv_run (out, p, s, &g_array_index (s->points, CoopReportPoint, n));
        }
    }
}

/* ---- Markdown ---- */

static void
md_row (GString *out, guint n, const char *const *cells)
{
  for (guint i = 0; i < n; i++)
    {
      g_string_append (out, i > 0 ? " | " : "| ");
      for (const char *c = cells[i]; *c != 0; c++)
        g_string_append_printf (out, *c == '|' ? "\\%c" : "%c", *c);
    }
  g_string_append (out, " |\n");
}

static void
md_nothing (GString *out, guint n, const char *const *cells)
{
}

static const char matrix_note[]
    = "Mean overhead over all programs and the ratios from 0.4 to below 1 (geometric; a failure counts as 3); in brackets the "
      "share that finished, if not all; from: mean of the smallest ratios that finished.";

static void
md_matrix (GString *out, const CoopReport *report)
{
  CoopReportMatrix *m = coop_report_matrix_new (report);
  g_string_append_printf (out, "\n## Evictors and allocators\n\n%s\n\n", matrix_note);
  coop_report_matrix (out, m, md_row, NULL);
  for (guint i = 0; i < coop_report_matrix_columns (m); i++)
    g_string_append (out, i == 0 ? "|---" : "|--:");
  g_string_append (out, "|\n");
  coop_report_matrix (out, m, md_nothing, md_row);
  coop_report_matrix_free (m);
}

void
coop_report_markdown (GString *out, const CoopReport *report)
{
  g_string_append_printf (out, "# Sweep\n\n%u runs, %u failed. %s\n\n", report->n_runs, report->n_failed, note);
  header (out, md_row);
  for (guint i = 0; i < 4 + G_N_ELEMENTS (ratios); i++)
    g_string_append (out, i < 2 ? "|---" : "|--:");
  g_string_append (out, "|\n");
  each_series (out, report, md_row);
  md_matrix (out, report);
  g_string_append_c (out, '\n');
  for (guint i = 0; i < report->programs->len; i++)
    {
      const CoopReportProgram *p = report->programs->pdata[i];
      char peak[32];
      coop_size_format (p->peak, peak, sizeof peak);
      g_string_append_printf (out, "- %s: peak without limit %s (%s-overhead.svg)\n", p->name, peak, p->file);
    }
}

/* ---- HTML ---- */

static const char style[]
    = ":root{color-scheme:light dark}body{font:15px/1.5 sans-serif;max-width:64rem;margin:2rem auto;padding:0 1rem}"
      "table{border-collapse:collapse;font-variant-numeric:tabular-nums}th,td{padding:.15rem .6rem;text-align:right;"
      "border-bottom:1px solid color-mix(in srgb,currentColor 20%,transparent)}td:first-child,td:nth-child(2),"
      "th:first-child,th:nth-child(2){text-align:left}.wide{overflow-x:auto}svg{max-width:100%;height:auto}";

static void
html_cells (GString *out, guint n, const char *const *cells, const char *tag)
{
  g_string_append (out, "<tr>");
  for (guint i = 0; i < n; i++)
    {
      g_autofree char *text = g_markup_escape_text (cells[i], -1);
      g_string_append_printf (out, "<%s>%s</%s>", tag, text, tag);
    }
  g_string_append (out, "</tr>\n");
}

static void
html_head (GString *out, guint n, const char *const *cells)
{
  html_cells (out, n, cells, "th");
}

static void
html_row (GString *out, guint n, const char *const *cells)
{
  html_cells (out, n, cells, "td");
}

static void
html_matrix (GString *out, const CoopReport *report)
{
  CoopReportMatrix *m = coop_report_matrix_new (report);
  g_string_append_printf (out, "<h2>Evictors and allocators</h2>\n<p>%s</p>\n<div class='wide'><table>\n", matrix_note);
  coop_report_matrix (out, m, html_head, html_row);
  g_string_append (out, "</table></div>\n");
  coop_report_pages_svg (out, m);
  coop_report_matrix_free (m);
}

static void
html_program (GString *out, const CoopReportProgram *p)
{
  char peak[32];
  g_autofree char *name = g_markup_escape_text (p->name, -1);
  coop_size_format (p->peak, peak, sizeof peak);
  g_string_append_printf (out, "<h2>%s</h2>\n<p>Peak without limit: %s.</p>\n", name, peak);
  for (int c = 0; c < COOP_N_CHARTS; c++)
    coop_report_svg (out, p, (CoopReportChart) c);
}

void
coop_report_html (GString *out, const CoopReport *report)
{
  g_string_append_printf (out, "<!DOCTYPE html>\n<html lang='en'><head><meta charset='utf-8'>"
                          "<meta name='viewport' content='width=device-width'><title>Sweep</title>"
                          "<style>%s</style></head><body>\n<h1>Sweep</h1>\n<p>%u runs, %u failed. %s</p>\n"
                          "<div class='wide'><table>\n<thead>", style, report->n_runs, report->n_failed, note);
  header (out, html_head);
  g_string_append (out, "</thead><tbody>\n");
  each_series (out, report, html_row);
  g_string_append (out, "</tbody></table></div>\n");
  html_matrix (out, report);
  for (guint i = 0; i < report->programs->len; i++)
    html_program (out, report->programs->pdata[i]);
  g_string_append (out, "</body></html>\n");
}
