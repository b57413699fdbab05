/* SPDX-License-Identifier: Apache-2.0 */
/* Map widget, inside: map-zoom.c holds what moves the part that is seen, map-widget.c the rest.
 */
#pragma once

#include "map-widget.h"

struct _CoopMapWidget
{
  GtkWidget parent_instance;

  CoopShot *shot;
  GskRenderNode *labels;
  CoopMapView labels_view; /* for which they were made */
  int labels_gutter;
  double pointer_x, pointer_y; /* device pixels of the picture; NaN: outside */
  guint64 cursor;          /* address of the keyboard's cursor */
  gboolean cursor_shown;
  long pointed;
  guint64 ghost;
  gboolean bare;
  int zoom;                /* wanted: the picture follows a moment later */
  guint64 from;
  double scrolled;         /* less than a step of a fine wheel */
  CoopMapView dragged;     /* as it was when the drag began; rows 0: none */
  int wanted_width, wanted_height;
};

void coop_map_widget_add_zoom (CoopMapWidget *self);
void coop_map_widget_class_add_zoom (GtkWidgetClass *widget_class);
