/* SPDX-License-Identifier: Apache-2.0 */
/* Legend: what the colours and textures of the map mean, and its scale. */
#pragma once

#include <gtk/gtk.h>

#include "draw/map.h"

G_BEGIN_DECLS

#define COOP_TYPE_LEGEND (coop_legend_get_type ())
G_DECLARE_FINAL_TYPE (CoopLegend, coop_legend, COOP, LEGEND, GtkWidget)

GtkWidget *coop_legend_new (void);
/* Samples in the map's theme; the scale is told as "1 px = 8 KiB". */
/* Paints the samples; with the first view at the latest. */
void coop_legend_set_theme (CoopLegend *self, gboolean dark, gboolean contrast);
/* CoopLegendSample in place of the kinds; empty or NULL: the kinds. */
void coop_legend_set_samples (CoopLegend *self, GPtrArray *samples);
/* What few maps have: no memory behind some addresses, blocks that wait for a stream. */
void coop_legend_set_extras (CoopLegend *self, gboolean voids, gboolean pending);
void coop_legend_forget_extras (CoopLegend *self);
void coop_legend_set_view (CoopLegend *self, const CoopMapView *view);

/* Names of kinds and pins for people, translated. */
const char *coop_legend_kind_name (CoopKind kind);
const char *coop_legend_pin_name (CoopPin pin);

G_END_DECLS
