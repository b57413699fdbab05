/* SPDX-License-Identifier: Apache-2.0 */
/* Memory over time: the chart of the window, with where steps begin and a legend. */
#include "export/picture.h"

#include <math.h>

#include "draw/chart.h"
#include "draw/map.h"
#include "draw/text.h"

#define BELOW 42.0  /* for the time axis's name and the space below the legend */
#define STEPS 18.0  /* above the chart, for the steps' numbers */

typedef struct {
  GArray *points; /* CoopChartPoint */
  GArray *steps;  /* Step */
  guint64 last_ts;
  CoopTraceInfo info;
} Usage;

typedef struct {
  guint64 step, ts;
} Step;

static gboolean
take_step (gpointer user, int n, const char *const *names, const char *const *values, const int *types)
{
  Step step = { g_ascii_strtoull (values[0], NULL, 10), g_ascii_strtoull (values[1], NULL, 10) };
  g_array_append_val ((GArray *) user, step);
  return TRUE;
}

/* A point every two layout pixels at most: more would only blur. */
static gboolean
load (const CoopExportJob *job, const CoopPage *page, Usage *usage, GError **error)
{
  if (!coop_reader_info (job->reader, &usage->info, error))
    return FALSE;
  usage->last_ts = usage->info.totals.ts;
  GArray *read = coop_reader_usage (job->reader, 0, usage->last_ts, (guint) page->width / 2, error);
  if (read == NULL)
    return FALSE;
  for (guint i = 0; i < read->len; i++)
    {
      const CoopUsage *u = &g_array_index (read, CoopUsage, i);
      CoopChartPoint point = { u->bucket_ts, u->used_min, u->used_max, u->pinned_max, u->largest_min, u->budget,
                               u->evictions, u->handovers };
      g_array_append_val (usage->points, point);
    }
  g_array_unref (read);
  return coop_reader_query (job->reader, "SELECT step, ts FROM step ORDER BY event", COOP_QUERY_SECONDS, take_step, usage->steps, error);
}

static void
write_head (const CoopExportJob *job, CoopPage *page, const Usage *usage, GString *description)
{
  const CoopTraceInfo *info = &usage->info;
  char peak[32], budget[32];
  coop_text_size (info->peak, peak, sizeof peak);
  coop_text_size (info->budget, budget, sizeof budget);
  g_autofree char *name = coop_page_name (job), *time = coop_page_time (usage->last_ts);
  g_autofree char *title = g_strdup_printf ("Memory of %s over time", name);
  g_autofree char *limit = info->budget > 0 ? g_strdup_printf ("budget %s", budget) : g_strdup ("no budget");
  double extra = info->totals.op_ns > 0 ? 100.0 * (double) info->totals.replay_ns / (double) info->totals.op_ns : 0;
  g_autofree char *line = g_strdup_printf ("%" G_GUINT64_FORMAT " steps in %s; peak %s, %s; %" G_GUINT64_FORMAT " evictions, %"
                                           G_GUINT64_FORMAT " operators run again, %.1f %% more operator time",
                                           info->totals.step, time, peak, limit, info->totals.evictions, info->totals.replays, extra);
  coop_page_title (page, title);
  coop_page_line (page, line);
  g_string_append_printf (description, "%s. %s.", title, line);
}

static void
draw_steps (CoopPage *page, const Usage *usage, const CoopChartView *view, double x, double y)
{
  uint32_t ink = coop_map_ink (COOP_INK_STRONG, page->dark, page->contrast);
  double last = -1e9;
  for (guint i = 0; i < usage->steps->len; i++)
    {
      const Step *step = &g_array_index (usage->steps, Step, i);
      double at = round (x + coop_chart_x (view, step->ts)) + 0.5;
      g_autofree char *text = g_strdup_printf ("step %" G_GUINT64_FORMAT, step->step);
      if (at - last < 58)
        continue;
      double before = last;
      last = at;
      coop_text_color (page->cr, ink, page->contrast ? 0.7 : 0.35);
      cairo_set_line_width (page->cr, 1);
      cairo_move_to (page->cr, at, y - 14);
      cairo_line_to (page->cr, at, y + view->y + view->h);
      cairo_stroke (page->cr);
      if (at + 4 + coop_page_text_width (page, text) <= page->width)
        coop_page_text (page, at + 4, y - 3, text, FALSE);
      else if (at - before >= 116) /* no room at its right */
        coop_page_text (page, at - 4, y - 3, text, TRUE);
    }
}

/* Returns the height it takes. */
static double
write_legend (CoopPage *page, const CoopTraceInfo *info, double y, gboolean dry)
{
  static const struct { CoopChartSeries series; const char *text; } entries[] = {
    { COOP_CHART_USED, "in use" }, { COOP_CHART_PINNED, "of it pinned: may not be evicted" }, { COOP_CHART_LARGEST, "largest hole" },
    { COOP_CHART_BUDGET, "budget" }, { COOP_CHART_EVICTION, "evictions" }, { COOP_CHART_HANDOVER, "tensors brought back" },
  };
  CoopLegend legend = coop_legend_begin (page, y, dry);
  for (guint i = 0; i < G_N_ELEMENTS (entries); i++)
    {
      double at_x, at_y;
      if (entries[i].series == COOP_CHART_BUDGET && info->budget == 0)
        continue;
      coop_legend_entry (&legend, entries[i].text, &at_x, &at_y);
      if (dry)
        continue;
      cairo_save (page->cr);
      cairo_translate (page->cr, at_x, at_y);
      coop_chart_swatch (entries[i].series, page->dark, page->contrast, page->cr, COOP_SAMPLE_WIDTH, COOP_SAMPLE_HEIGHT);
      cairo_restore (page->cr);
    }
  return legend.y + COOP_LEGEND_ROW - y;
}

static void
draw_chart (CoopPage *page, const Usage *usage)
{
  double y = ceil (page->y + 8 + STEPS), bottom = page->height - BELOW - write_legend (page, &usage->info, 0, TRUE);
  CoopChartView view = { .width = (int) page->width - 16, .height = (int) (bottom - y), .scale = 1, .dark = page->dark,
                         .contrast = page->contrast };
  const CoopChartPoint *points = (const CoopChartPoint *) (gpointer) usage->points->data;
  coop_chart_layout (&view, points, usage->points->len, usage->last_ts);
  cairo_save (page->cr);
  cairo_rectangle (page->cr, 0, y, view.width, view.height);
  cairo_clip (page->cr);
  cairo_translate (page->cr, 0, y);
  coop_chart_draw (&view, points, usage->points->len, page->cr);
  cairo_restore (page->cr);
  draw_steps (page, usage, &view, 0, y);
  coop_page_text (page, view.x + view.w, bottom + 14, "time since the run began", TRUE);
  write_legend (page, &usage->info, bottom + 24, FALSE);
}

gboolean
coop_page_usage (const CoopExportJob *job, CoopPage *page, GString *description, GError **error)
{
  Usage usage = { .points = g_array_new (FALSE, FALSE, sizeof (CoopChartPoint)), .steps = g_array_new (FALSE, FALSE, sizeof (Step)) };
  gboolean done = load (job, page, &usage, error);
  if (done)
    {
      write_head (job, page, &usage, description);
      draw_chart (page, &usage);
    }
  g_array_unref (usage.points);
  g_array_unref (usage.steps);
  coop_trace_info_clear (&usage.info);
  return done;
}
