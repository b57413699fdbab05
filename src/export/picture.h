/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by the pictures: a page with a title, lines under it, a drawing and a legend.
 */
#ifndef COOP_EXPORT_PICTURE_H
#define COOP_EXPORT_PICTURE_H

#include <cairo.h>

#include "export/export-private.h"

#define COOP_PAGE_MARGIN 24.0
#define COOP_LEGEND_ROW 24.0

typedef struct {
  cairo_t *cr;           /* layout pixels */
  double scale;          /* pixels of the output to one of the layout */
  double width, height;  /* layout pixels */
  double y;              /* where the next thing goes */
  bool dark, contrast;
} CoopPage;

/* A line of text at the page's y, which goes on below it; a long one is broken. */
void coop_page_title (CoopPage *page, const char *text);
void coop_page_line (CoopPage *page, const char *text);
/* Text in the page's ink; `right`: x is where it ends. */
void coop_page_text (CoopPage *page, double x, double y, const char *text, gboolean right);
double coop_page_text_width (CoopPage *page, const char *text);

/* Legend entries flow from left to right and down. */
typedef struct {
  CoopPage *page;
  double x, y;
  gboolean dry;  /* only measures */
} CoopLegend;
CoopLegend coop_legend_begin (CoopPage *page, double y, gboolean dry);
/* Moves on past an entry with a sample of `sample` pixels; returns where the sample's upper left corner
 * goes. */
void coop_legend_entry (CoopLegend *legend, const char *text, double *x, double *y);

#define COOP_SAMPLE_WIDTH 26.0
#define COOP_SAMPLE_HEIGHT 14.0

/* Draw the page; each adds a sentence for those who cannot see it to `description`. */
gboolean coop_page_map (const CoopExportJob *job, CoopPage *page, GString *description, GError **error);
gboolean coop_page_usage (const CoopExportJob *job, CoopPage *page, GString *description, GError **error);
/* The script's name, or "a run" where it is unknown or hidden; g_free. */
char *coop_page_name (const CoopExportJob *job);
/* "1.24 s" */
char *coop_page_time (guint64 ns);

#endif
