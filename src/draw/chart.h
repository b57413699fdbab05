/* SPDX-License-Identifier: Apache-2.0 */
/* Chart: memory over time. Used bytes with their range, pinned bytes (hatched, as on the map), the
 * largest hole, the budget, and marks for evictions and tensors brought back. No GTK.
 */
#ifndef COOP_CHART_H
#define COOP_CHART_H

#include <cairo.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* What happened from ts to the next point's ts. budget 0: none. */
typedef struct {
  uint64_t ts; /* ns */
  uint64_t used_min, used_max, pinned_max, largest_min, budget;
  uint32_t evictions, handovers;
} CoopChartPoint;

typedef struct {
  int width, height;     /* pixels, labels included */
  double scale;          /* pixels of the screen to one of the layout; 0: 1 */
  bool dark, contrast;
  double x, y, w, h;     /* out of coop_chart_layout: the plot itself */
  uint64_t from_ts, to_ts;
  uint64_t top;          /* bytes at the upper edge */
} CoopChartView;

/* Chooses the plot's place and ranges: time from the first point to `now`, bytes from 0 to the
 * largest value seen, in steps, so that it rests while values move. */
void coop_chart_layout (CoopChartView *view, const CoopChartPoint *points, size_t n, uint64_t now);
double coop_chart_x (const CoopChartView *view, uint64_t ts);
double coop_chart_y (const CoopChartView *view, uint64_t bytes);
/* Clamped to the range of the chart. */
uint64_t coop_chart_ts (const CoopChartView *view, double x);
/* The point whose time holds ts; -1 if none. Points in order of time. */
long coop_chart_point_at (const CoopChartPoint *points, size_t n, uint64_t ts);

void coop_chart_draw (const CoopChartView *view, const CoopChartPoint *points, size_t n, cairo_t *cr);
/* The same into a buffer like the map's. Any thread. */
void coop_chart_raster (const CoopChartView *view, const CoopChartPoint *points, size_t n,
                        uint32_t *pixels, size_t stride);

/* One sample for a legend. */
typedef enum {
  COOP_CHART_USED, COOP_CHART_PINNED, COOP_CHART_LARGEST, COOP_CHART_BUDGET, COOP_CHART_EVICTION,
  COOP_CHART_HANDOVER
} CoopChartSeries;
void coop_chart_swatch (CoopChartSeries series, bool dark, bool contrast, cairo_t *cr, double width,
                        double height);

#endif
