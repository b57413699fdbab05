/* SPDX-License-Identifier: Apache-2.0 */
/* Chart widget: memory over time, as a texture made elsewhere, with a line and words at the pointer.
 */
#pragma once

#include <gtk/gtk.h>

#include "camera.h"

G_BEGIN_DECLS

#define COOP_TYPE_CHART_WIDGET (coop_chart_widget_get_type ())
G_DECLARE_FINAL_TYPE (CoopChartWidget, coop_chart_widget, COOP, CHART_WIDGET, GtkWidget)
/* Signals:
 *   "resized" ()             the picture wanted has another size
 *   "sought" (guint64 ts)    a person clicked or dragged to that time, where that is of use
 */

GtkWidget *coop_chart_widget_new (void);
void coop_chart_widget_set_shot (CoopChartWidget *self, CoopShot *shot);
/* Size of the picture wanted, in device pixels. */
void coop_chart_widget_get_wanted (CoopChartWidget *self, int *width, int *height, double *scale);
/* A time to mark (that of the event shown); G_MAXUINT64: none. */
void coop_chart_widget_set_now (CoopChartWidget *self, guint64 ts);
/* Whether the chart may be clicked at. */
void coop_chart_widget_set_seekable (CoopChartWidget *self, gboolean seekable);
/* As a click at that place would, in layout pixels of the widget. */
void coop_chart_widget_seek (CoopChartWidget *self, double x);

G_END_DECLS
