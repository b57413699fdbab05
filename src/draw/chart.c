/* SPDX-License-Identifier: Apache-2.0 */
/* Chart of memory over time; see the header. The budget has the colour that it has on the map, pinned
 * bytes the hatch, and each line its own dash, so that none is told by colour alone.
 */
#include "draw/chart.h"

#include <math.h>
#include <stdio.h>

#include "draw/map.h"
#include "draw/text.h"

#define FONT_SIZE 10.5
#define STRIP 8.0 /* layout pixels for the marks below the plot */

static double
scale_of (const CoopChartView *view)
{
  return view->scale > 0 ? view->scale : 1;
}

void
coop_chart_layout (CoopChartView *view, const CoopChartPoint *points, size_t n, uint64_t now)
{
  double s = scale_of (view);
  uint64_t most = 0;
  for (size_t i = 0; i < n; i++)
    {
      most = points[i].used_max > most ? points[i].used_max : most;
      most = points[i].budget > most ? points[i].budget : most;
    }
  view->from_ts = n > 0 ? points[0].ts : 0;
  view->to_ts = now > view->from_ts ? now : view->from_ts + 1;
  view->top = coop_map_extent (0, most + most / 16);
  view->x = round (64 * s);
  view->y = round (8 * s);
  view->w = fmax (1, view->width - view->x - round (10 * s));
  view->h = fmax (1, view->height - view->y - round ((STRIP + 20) * s));
}

double
coop_chart_x (const CoopChartView *view, uint64_t ts)
{
  if (ts <= view->from_ts)
    return view->x;
  if (ts >= view->to_ts)
    return view->x + view->w;
  return view->x + view->w * (double) (ts - view->from_ts) / (double) (view->to_ts - view->from_ts);
}

double
coop_chart_y (const CoopChartView *view, uint64_t bytes)
{
  double part = view->top > 0 ? (double) bytes / (double) view->top : 0;
  return view->y + view->h * (1 - fmin (part, 1));
}

uint64_t
coop_chart_ts (const CoopChartView *view, double x)
{
  double part = view->w > 0 ? (x - view->x) / view->w : 0;
  part = fmin (fmax (part, 0), 1);
  return view->from_ts + (uint64_t) (part * (double) (view->to_ts - view->from_ts));
}

long
coop_chart_point_at (const CoopChartPoint *points, size_t n, uint64_t ts)
{
  size_t low = 0, high = n;
  while (low < high)
    {
      size_t middle = low + (high - low) / 2;
      if (points[middle].ts <= ts)
        low = middle + 1;
      else
        high = middle;
    }
  return (long) low - 1;
}

static uint32_t
strong (bool dark, bool contrast)
{
  return coop_map_ink (COOP_INK_STRONG, dark, contrast);
}

static uint32_t
green (bool dark)
{
  return dark ? 0xff57e389 : 0xff137547;
}

static uint64_t
value (const CoopChartPoint *point, CoopChartSeries series)
{
  switch (series)
    {
    case COOP_CHART_USED:
      return point->used_max;
    case COOP_CHART_PINNED:
      return point->pinned_max;
    case COOP_CHART_LARGEST:
      return point->largest_min;
    case COOP_CHART_BUDGET:
      return point->budget;
    case COOP_CHART_EVICTION:
      return point->evictions;
    case COOP_CHART_HANDOVER:
      return point->handovers;
    }
  return 0;
}

/* A staircase through a series; breaks where a budget is not set. */
static void
stairs (const CoopChartView *view, const CoopChartPoint *points, size_t n, CoopChartSeries series,
        cairo_t *cr)
{
  bool down = false;
  for (size_t i = 0; i < n; i++)
    {
      uint64_t bytes = value (&points[i], series);
      double x = coop_chart_x (view, points[i].ts);
      double end = i + 1 < n ? coop_chart_x (view, points[i + 1].ts) : view->x + view->w;
      double y = coop_chart_y (view, bytes);
      if (series == COOP_CHART_BUDGET && bytes == 0)
        {
          down = false;
          continue;
        }
      if (down)
        cairo_line_to (cr, x, y);
      else
        cairo_move_to (cr, x, y);
      cairo_line_to (cr, end, y);
      down = true;
    }
}

/* Closes the staircase down to zero. */
static void
area (const CoopChartView *view, const CoopChartPoint *points, size_t n, CoopChartSeries series,
      cairo_t *cr)
{
  if (n == 0)
    return;
  stairs (view, points, n, series, cr);
  cairo_line_to (cr, view->x + view->w, view->y + view->h);
  cairo_line_to (cr, coop_chart_x (view, points[0].ts), view->y + view->h);
  cairo_close_path (cr);
}

/* Diagonals over the current clip. */
static void
hatch (cairo_t *cr, double x, double y, double w, double h, double step)
{
  for (double at = x - h; at < x + w; at += step)
    {
      cairo_move_to (cr, at, y + h);
      cairo_line_to (cr, at + h, y);
    }
  cairo_stroke (cr);
}

static void
style (cairo_t *cr, CoopChartSeries series, double s, bool dark, bool contrast)
{
  static const double dots[] = { 2, 3 }, none[] = { 0 };
  double scaled[2] = { dots[0] * s, dots[1] * s };
  cairo_set_dash (cr, series == COOP_CHART_LARGEST ? scaled : none,
                  series == COOP_CHART_LARGEST ? 2 : 0, 0);
  switch (series)
    {
    case COOP_CHART_USED:
      coop_text_color (cr, strong (dark, contrast), contrast ? 1 : 0.75);
      cairo_set_line_width (cr, 1.25 * s);
      break;
    case COOP_CHART_PINNED:
      coop_text_color (cr, strong (dark, contrast), contrast ? 0.8 : 0.38);
      cairo_set_line_width (cr, 1 * s);
      break;
    case COOP_CHART_LARGEST:
      coop_text_color (cr, green (dark), 1);
      cairo_set_line_width (cr, 2 * s);
      break;
    case COOP_CHART_BUDGET:
    case COOP_CHART_EVICTION:
      coop_text_color (cr, coop_map_ink (COOP_INK_WARN, dark, contrast), 1);
      cairo_set_line_width (cr, 2 * s);
      break;
    case COOP_CHART_HANDOVER:
      /* thin marks: the paler of the two blues is the one that is seen on black */
      coop_text_color (cr, coop_map_kind_color (dark ? COOP_KIND_OTHER : COOP_KIND_STATE, dark, contrast), 1);
      cairo_set_line_width (cr, 1.5 * s);
      break;
    }
}

static void
draw_grid (const CoopChartView *view, cairo_t *cr)
{
  double s = scale_of (view);
  uint32_t ink = strong (view->dark, view->contrast);
  coop_text_font (cr, FONT_SIZE * s, false);
  for (int quarter = 0; quarter <= 4; quarter += 2)
    {
      uint64_t bytes = view->top / 4 * (uint64_t) quarter;
      double y = round (coop_chart_y (view, bytes)) + 0.5;
      char text[32];
      cairo_text_extents_t extents;
      coop_text_size (bytes, text, sizeof text);
      cairo_text_extents (cr, text, &extents);
      coop_text_color (cr, ink, view->contrast ? 1 : 0.6);
      cairo_move_to (cr, view->x - extents.x_advance - 8 * s, y + FONT_SIZE * s * 0.36);
      cairo_show_text (cr, text);
      coop_text_color (cr, ink, 0.14);
      cairo_set_line_width (cr, 1);
      cairo_move_to (cr, view->x, y);
      cairo_line_to (cr, view->x + view->w, y);
      cairo_stroke (cr);
    }
}

/* 1, 2 or 5 times a power of ten seconds, at least 80 layout pixels apart. */
static double
tick_seconds (const CoopChartView *view)
{
  double span = (double) (view->to_ts - view->from_ts) / 1e9;
  double least = span * 80 * scale_of (view) / view->w;
  double power = pow (10, floor (log10 (fmax (least, 1e-9))));
  double steps[] = { 1, 2, 5, 10 };
  for (int i = 0; i < 4; i++)
    if (steps[i] * power >= least)
      return steps[i] * power;
  return 10 * power;
}

static void
draw_time (const CoopChartView *view, cairo_t *cr)
{
  double s = scale_of (view), step = tick_seconds (view);
  uint32_t ink = strong (view->dark, view->contrast);
  double first = ceil ((double) view->from_ts / 1e9 / step);
  int digits = step < 1 ? (int) ceil (-log10 (step) - 1e-9) : 0;
  coop_text_font (cr, FONT_SIZE * s, false);
  coop_text_color (cr, ink, view->contrast ? 1 : 0.6);
  for (double at = first; at * step * 1e9 <= (double) view->to_ts; at++)
    {
      char text[32];
      cairo_text_extents_t extents;
      double x = coop_chart_x (view, (uint64_t) (at * step * 1e9));
      snprintf (text, sizeof text, "%.*f s", digits, at * step);
      cairo_text_extents (cr, text, &extents);
      double left = fmin (x - extents.x_advance / 2, view->x + view->w - extents.x_advance);
      cairo_move_to (cr, left, view->y + view->h + (STRIP + 15) * s);
      cairo_show_text (cr, text);
    }
}

/* Evictions: triangles pointing down out of the pool; tensors brought back: bars. */
static void
draw_marks (const CoopChartView *view, const CoopChartPoint *points, size_t n, cairo_t *cr)
{
  double s = scale_of (view), base = view->y + view->h + 2 * s;
  double last = -1e9;
  for (size_t i = 0; i < n; i++)
    {
      double x = coop_chart_x (view, points[i].ts);
      if (points[i].handovers > 0)
        {
          style (cr, COOP_CHART_HANDOVER, s, view->dark, view->contrast);
          cairo_move_to (cr, x, base + 4 * s);
          cairo_line_to (cr, x, base + STRIP * s);
          cairo_stroke (cr);
        }
      if (points[i].evictions > 0 && x - last >= 4 * s)
        {
          style (cr, COOP_CHART_EVICTION, s, view->dark, view->contrast);
          cairo_move_to (cr, x - 3 * s, base);
          cairo_line_to (cr, x + 3 * s, base);
          cairo_line_to (cr, x, base + 5 * s);
          cairo_close_path (cr);
          cairo_fill (cr);
          last = x;
        }
    }
}

static void
draw_areas (const CoopChartView *view, const CoopChartPoint *points, size_t n, cairo_t *cr)
{
  double s = scale_of (view);
  area (view, points, n, COOP_CHART_USED, cr);
  coop_text_color (cr, strong (view->dark, view->contrast), view->dark ? 0.2 : 0.13);
  cairo_fill (cr);

  cairo_save (cr);
  area (view, points, n, COOP_CHART_PINNED, cr);
  cairo_clip (cr);
  style (cr, COOP_CHART_PINNED, s, view->dark, view->contrast);
  hatch (cr, view->x, view->y, view->w, view->h, 5 * s);
  cairo_restore (cr);

  for (int series = COOP_CHART_USED; series <= COOP_CHART_BUDGET; series++)
    {
      stairs (view, points, n, (CoopChartSeries) series, cr);
      style (cr, (CoopChartSeries) series, s, view->dark, view->contrast);
      cairo_stroke (cr);
    }
}

void
coop_chart_draw (const CoopChartView *view, const CoopChartPoint *points, size_t n, cairo_t *cr)
{
  cairo_save (cr);
  coop_text_color (cr, coop_map_ink (COOP_INK_PAGE, view->dark, view->contrast), 1);
  cairo_paint (cr);
  draw_grid (view, cr);
  if (n > 0)
    {
      draw_areas (view, points, n, cr);
      draw_marks (view, points, n, cr);
      draw_time (view, cr);
    }
  cairo_restore (cr);
}

void
coop_chart_raster (const CoopChartView *view, const CoopChartPoint *points, size_t n, uint32_t *pixels,
                   size_t stride)
{
  cairo_surface_t *surface = cairo_image_surface_create_for_data (
      (unsigned char *) pixels, CAIRO_FORMAT_ARGB32, view->width, view->height, (int) stride);
  cairo_t *cr = cairo_create (surface);
  coop_chart_draw (view, points, n, cr);
  cairo_destroy (cr);
  cairo_surface_destroy (surface);
}

void
coop_chart_swatch (CoopChartSeries series, bool dark, bool contrast, cairo_t *cr, double width,
                   double height)
{
  double middle = round (height / 2);
  cairo_save (cr);
  style (cr, series, 1, dark, contrast);
  switch (series)
    {
    case COOP_CHART_PINNED:
      cairo_rectangle (cr, 0, 0, width, height);
      cairo_clip (cr);
      hatch (cr, 0, 0, width, height, 5);
      break;
    case COOP_CHART_USED:
      coop_text_color (cr, strong (dark, contrast), dark ? 0.2 : 0.13);
      cairo_rectangle (cr, 0, 2, width, height - 2);
      cairo_fill (cr);
      style (cr, series, 1, dark, contrast);
      cairo_move_to (cr, 0, 2.5);
      cairo_line_to (cr, width, 2.5);
      cairo_stroke (cr);
      break;
    case COOP_CHART_EVICTION:
      cairo_move_to (cr, width / 2 - 4, middle - 3);
      cairo_line_to (cr, width / 2 + 4, middle - 3);
      cairo_line_to (cr, width / 2, middle + 4);
      cairo_close_path (cr);
      cairo_fill (cr);
      break;
    case COOP_CHART_HANDOVER:
      cairo_move_to (cr, width / 2, middle - 4);
      cairo_line_to (cr, width / 2, middle + 4);
      cairo_stroke (cr);
      break;
    case COOP_CHART_LARGEST:
    case COOP_CHART_BUDGET:
      cairo_move_to (cr, 0, middle);
      cairo_line_to (cr, width, middle);
      cairo_stroke (cr);
      break;
    }
  cairo_restore (cr);
}
