/* SPDX-License-Identifier: Apache-2.0 */
/* A chart of the report as SVG: one line a series over the memory ratio, broken where a run failed;
 * failed runs are crosses below the axis. Series differ in shape as well as in colour, and the text is
 * the surroundings' colour, so it reads on dark pages and in print. */
#include "replay/report-private.h"

#include <math.h>

#define WIDTH 720
#define LEFT 64
#define RIGHT 16
#define TOP 34
#define PLOT_HEIGHT 260
#define ROW 14                /* of failed runs, one a series */
#define LEGEND 18
#define OVERHEAD_MOST 3.0

/* Okabe and Ito's colours, which most kinds of colour blindness tell apart. */
static const char *const colours[] = { "#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9",
                                       "#999999", "#b2a800" };

static const struct {
  const char *name, *title, *unit;
  double least;               /* where the axis begins */
} charts[COOP_N_CHARTS] = {
  [COOP_CHART_OVERHEAD] = { "overhead", "Overhead", "time / time without limit", 1 },
  [COOP_CHART_FRAGMENTATION] = { "fragmentation", "Fragmentation rate", "free at a search, % of the budget", 0 },
  [COOP_CHART_EVICTIONS] = { "evictions", "Evictions", "tensors", 0 },
  [COOP_CHART_RECOMPUTED] = { "recomputed", "Recomputed operators", "operators", 0 },
  [COOP_CHART_SEARCH] = { "search", "Search time", "us a search", 0 },
};

typedef struct {
  GString *out;
  const CoopReportProgram *program;
  CoopReportChart chart;
  double x_min, x_max, y_min, y_max, y_step;
} Plot;

const char *
coop_report_chart_name (CoopReportChart chart)
{
  return charts[chart].name;
}

static double
value_of (CoopReportChart chart, const CoopReportPoint *p)
{
  if (!p->ok)
    return NAN;
  switch (chart)
    {
    case COOP_CHART_OVERHEAD:
      return p->overhead;
    case COOP_CHART_FRAGMENTATION:
      return 100 * p->fragmentation;
    case COOP_CHART_EVICTIONS:
      return (double) p->evictions;
    case COOP_CHART_RECOMPUTED:
      return (double) p->recomputed;
    case COOP_CHART_SEARCH:
      return p->search_us;
    case COOP_N_CHARTS:
      break;
    }
  return NAN;
}

static const CoopReportPoint *
point (const CoopReportSeries *s, guint i)
{
  return &g_array_index (s->points, CoopReportPoint, i);
}

/* ---- axes ---- */

/* 1, 2 or 5 times a power of ten, so that about five fit. */
static double
nice_step (double span)
{
  double raw = span / 5, unit = pow (10, floor (log10 (raw)));
  double part = raw / unit;
  return unit * (part <= 1 ? 1 : part <= 2 ? 2 : part <= 5 ? 5 : 10);
}

/* FALSE: no value at all. */
static gboolean
measure (Plot *plot)
{
  double most = -INFINITY;
  plot->x_min = INFINITY;
  plot->x_max = -INFINITY;
  for (guint k = 0; k < plot->program->series->len; k++)
    {
      const CoopReportSeries *s = plot->program->series->pdata[k];
      for (guint i = 0; i < s->points->len; i++)
        {
          double x = (double) point (s, i)->ratio_ppm / 1e6, y = value_of (plot->chart, point (s, i));
          plot->x_min = fmin (plot->x_min, x);
          plot->x_max = fmax (plot->x_max, x);
          if (isfinite (y))
            most = fmax (most, y);
        }
    }
  if (!isfinite (most))
    return FALSE;
  plot->y_min = charts[plot->chart].least;
  double span = plot->chart == COOP_CHART_OVERHEAD ? fmin (most, OVERHEAD_MOST) - 1 : most;
  plot->y_step = nice_step (fmax (span, 0.05));
  plot->y_max = plot->y_min + plot->y_step * ceil (fmax (span, 0.05) / plot->y_step - 1e-9);
  if (plot->x_max - plot->x_min < 1e-9)
    {
      plot->x_min -= 0.05;
      plot->x_max += 0.05;
    }
  return TRUE;
}

static double
to_x (const Plot *plot, double ratio)
{
  return LEFT + (WIDTH - LEFT - RIGHT) * (ratio - plot->x_min) / (plot->x_max - plot->x_min);
}

static double
to_y (const Plot *plot, double value)
{
  double part = (fmin (value, plot->y_max) - plot->y_min) / (plot->y_max - plot->y_min);
  return TOP + PLOT_HEIGHT * (1 - part);
}

static void
draw_axes (const Plot *plot)
{
  GString *out = plot->out;
  double step = nice_step (plot->x_max - plot->x_min);
  guint rows = plot->program->series->len;
  for (double y = plot->y_min; y <= plot->y_max + plot->y_step / 2; y += plot->y_step)
    g_string_append_printf (out, "<line x1='%d' y1='%.1f' x2='%d' y2='%.1f' stroke='currentColor' opacity='.15'/>"
                            "<text x='%d' y='%.1f' text-anchor='end'>%g</text>\n", LEFT, to_y (plot, y),
                            WIDTH - RIGHT, to_y (plot, y), LEFT - 6, to_y (plot, y) + 4,
                            floor (y * 1e6 + 0.5) / 1e6);
  for (double x = ceil (plot->x_min / step - 1e-9) * step; x <= plot->x_max + 1e-9; x += step)
    g_string_append_printf (out, "<text x='%.1f' y='%d' text-anchor='middle'>%g</text>\n", to_x (plot, x),
                            TOP + PLOT_HEIGHT + ROW * (int) rows + 18, floor (x * 1e6 + 0.5) / 1e6);
  g_string_append_printf (out, "<text x='%d' y='%d' text-anchor='middle'>memory ratio: budget / peak without limit"
                          "</text>\n", (LEFT + WIDTH - RIGHT) / 2, TOP + PLOT_HEIGHT + ROW * (int) rows + 34);
}

/* ---- series ---- */

static void
draw_mark (GString *out, guint shape, double x, double y, const char *colour)
{
  switch (shape % 4)
    {
    case 0:
      g_string_append_printf (out, "<circle cx='%.1f' cy='%.1f' r='3' fill='%s'/>", x, y, colour);
      break;
    case 1:
      g_string_append_printf (out, "<rect x='%.1f' y='%.1f' width='6' height='6' fill='%s'/>", x - 3, y - 3, colour);
      break;
    case 2:
      g_string_append_printf (out, "<path d='M%.1f %.1fl4 7h-8z' fill='%s'/>", x, y - 4, colour);
      break;
    default:
      g_string_append_printf (out, "<path d='M%.1f %.1fl4 4l-4 4l-4 -4z' fill='%s'/>", x, y - 4, colour);
      break;
    }
}

static void
draw_line (const Plot *plot, const CoopReportSeries *s, const char *colour)
{
  gboolean open = FALSE;
  for (guint i = 0; i < s->points->len; i++)
    {
      double y = value_of (plot->chart, point (s, i));
      if (!isfinite (y))
        {
          if (open)
            g_string_append_printf (plot->out, "' fill='none' stroke='%s' stroke-width='1.5'/>\n", colour);
          open = FALSE;
          continue;
        }
      if (!open)
        g_string_append (plot->out, "<polyline points='");
      open = TRUE;
      g_string_append_printf (plot->out, "%.1f,%.1f ", to_x (plot, (double) point (s, i)->ratio_ppm / 1e6),
                              to_y (plot, y));
    }
  if (open)
    g_string_append_printf (plot->out, "' fill='none' stroke='%s' stroke-width='1.5'/>\n", colour);
}

static void
draw_series (const Plot *plot, guint k)
{
  const CoopReportSeries *s = plot->program->series->pdata[k];
  const char *colour = colours[k % G_N_ELEMENTS (colours)];
  g_autofree char *name = g_markup_escape_text (s->name, -1);
  int failed = TOP + PLOT_HEIGHT + ROW * (int) k + 10;
  g_string_append_printf (plot->out, "<g><title>%s</title>\n", name);
  draw_line (plot, s, colour);
  for (guint i = 0; i < s->points->len; i++)
    {
      double x = to_x (plot, (double) point (s, i)->ratio_ppm / 1e6), y = value_of (plot->chart, point (s, i));
      if (isfinite (y))
        draw_mark (plot->out, k, x, to_y (plot, y), colour);
      else if (!point (s, i)->ok)
        g_string_append_printf (plot->out, "<path d='M%.1f %dl6 6m0 -6l-6 6' stroke='%s' fill='none'><title>%s at "
                                "%g: %s</title></path>", x - 3, failed - 3, colour, name,
                                (double) point (s, i)->ratio_ppm / 1e6, point (s, i)->result);
    }
  g_string_append (plot->out, "</g>\n");
}

static void
draw_legend (const Plot *plot)
{
  guint n = plot->program->series->len;
  int top = TOP + PLOT_HEIGHT + ROW * (int) n + 54;
  for (guint k = 0; k < n; k++)
    {
      const CoopReportSeries *s = plot->program->series->pdata[k];
      g_autofree char *name = g_markup_escape_text (s->name, -1);
      int x = LEFT + (int) (k % 2) * 320, y = top + LEGEND * (int) (k / 2);
      draw_mark (plot->out, k, x + 4, y - 4, colours[k % G_N_ELEMENTS (colours)]);
      g_string_append_printf (plot->out, "<text x='%d' y='%d'>%s</text>\n", x + 14, y, name);
    }
}

gboolean
coop_report_svg (GString *out, const CoopReportProgram *program, CoopReportChart chart)
{
  Plot plot = { .out = out, .program = program, .chart = chart };
  if (!measure (&plot))
    return FALSE;
  guint n = program->series->len;
  g_autofree char *name = g_markup_escape_text (program->name, -1);
  int height = TOP + PLOT_HEIGHT + ROW * (int) n + 60 + LEGEND * (int) ((n + 1) / 2);
  g_string_append_printf (out, "<svg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 %d %d' width='%d' height='%d' "
                          "role='img' font-family='sans-serif' font-size='12' fill='currentColor'>\n"
                          "<title>%s of %s</title>\n<desc>%s over the memory ratio, one line a policy. Crosses "
                          "below the axis are runs that failed.</desc>\n"
                          "<text x='%d' y='18' font-size='14'>%s: %s <tspan opacity='.7'>(%s)</tspan></text>\n",
                          WIDTH, height, WIDTH, height, charts[chart].title, name, charts[chart].title, LEFT, name,
                          charts[chart].title, charts[chart].unit);
  draw_axes (&plot);
  for (guint k = 0; k < n; k++)
    draw_series (&plot, k);
  draw_legend (&plot);
  g_string_append (out, "</svg>\n");
  return TRUE;
}
