/* SPDX-License-Identifier: Apache-2.0 */
/* Chart widget: see the header. */
#include "config.h"

#include "chart-widget.h"

#include <glib/gi18n.h>
#include <math.h>

#include "draw/map.h"
#include "format.h"

struct _CoopChartWidget
{
  GtkWidget parent_instance;

  CoopShot *shot;
  guint64 now;
  double pointer_x; /* NaN: outside */
  int width, height;
  gboolean seekable;
};

G_DEFINE_FINAL_TYPE (CoopChartWidget, coop_chart_widget, GTK_TYPE_WIDGET)

static guint resized_signal, sought_signal;

static const CoopChartShot *
chart_of (CoopChartWidget *self)
{
  return self->shot ? self->shot->chart : NULL;
}

static void
draw_line (GtkSnapshot *snapshot, const CoopChartShot *chart, double x, CoopMapInk ink)
{
  guint32 argb = coop_map_ink (ink, chart->view.dark, chart->view.contrast);
  GdkRGBA color = { (float) (argb >> 16 & 0xff) / 255, (float) (argb >> 8 & 0xff) / 255,
                    (float) (argb & 0xff) / 255, 0.85f };
  gtk_snapshot_append_color (snapshot, &color,
                             &GRAPHENE_RECT_INIT ((float) floor (x), (float) (chart->view.y / chart->scale), 1,
                                                  (float) (chart->view.h / chart->scale)));
}

static void
coop_chart_widget_snapshot (GtkWidget *widget, GtkSnapshot *snapshot)
{
  CoopChartWidget *self = COOP_CHART_WIDGET (widget);
  const CoopChartShot *chart = chart_of (self);
  if (!chart)
    return;
  double s = chart->scale;
  gtk_snapshot_push_clip (snapshot, &GRAPHENE_RECT_INIT (0, 0, (float) gtk_widget_get_width (widget),
                                                         (float) gtk_widget_get_height (widget)));
  gtk_snapshot_append_texture (
      snapshot, chart->texture,
      &GRAPHENE_RECT_INIT (0, 0, (float) (chart->view.width / s), (float) (chart->view.height / s)));
  if (self->now != G_MAXUINT64)
    draw_line (snapshot, chart, coop_chart_x (&chart->view, self->now) / s, COOP_INK_STRONG);
  if (!isnan (self->pointer_x))
    draw_line (snapshot, chart, self->pointer_x, COOP_INK_OUTLINE);
  gtk_snapshot_pop (snapshot);
}

static gboolean
query_tooltip (GtkWidget *widget, int x, int y, gboolean keyboard, GtkTooltip *tooltip, gpointer data)
{
  CoopChartWidget *self = COOP_CHART_WIDGET (widget);
  const CoopChartShot *chart = chart_of (self);
  if (!chart || keyboard)
    return FALSE;
  guint64 ts = coop_chart_ts (&chart->view, x * chart->scale);
  long at = coop_chart_point_at (chart->points, chart->n_points, ts);
  if (at < 0)
    return FALSE;
  const CoopChartPoint *point = &chart->points[at];
  g_autofree char *time = coop_format_ns (ts), *used = coop_format_bytes (point->used_max);
  g_autofree char *pinned = coop_format_bytes (point->pinned_max);
  g_autofree char *hole = coop_format_bytes (point->largest_min);
  g_autofree char *budget = point->budget ? coop_format_bytes (point->budget) : g_strdup (_("no limit"));
  g_autofree char *text = g_strdup_printf (
      /* Translators: time, then sizes, then numbers */
      _("%s\nused %s, pinned %s\nlargest hole %s\nbudget %s\n%u evicted, %u brought back"), time, used,
      pinned, hole, budget, point->evictions, point->handovers);
  g_autofree char *with_hint = g_strconcat (text, "\n", _("Click to see the map at this time."), NULL);
  gtk_tooltip_set_text (tooltip, self->seekable ? with_hint : text);
  return TRUE;
}

static void
motion (GtkEventControllerMotion *controller, double x, double y, CoopChartWidget *self)
{
  self->pointer_x = x;
  gtk_widget_queue_draw (GTK_WIDGET (self));
}

static void
leave (GtkEventControllerMotion *controller, CoopChartWidget *self)
{
  self->pointer_x = NAN;
  gtk_widget_queue_draw (GTK_WIDGET (self));
}

static void
drag_begin (GtkGestureDrag *drag, double x, double y, CoopChartWidget *self)
{
  coop_chart_widget_seek (self, x);
}

static void
drag_update (GtkGestureDrag *drag, double dx, double dy, CoopChartWidget *self)
{
  double x, y;
  if (gtk_gesture_drag_get_start_point (drag, &x, &y))
    coop_chart_widget_seek (self, x + dx);
}

static void
coop_chart_widget_size_allocate (GtkWidget *widget, int width, int height, int baseline)
{
  CoopChartWidget *self = COOP_CHART_WIDGET (widget);
  if (width == self->width && height == self->height)
    return;
  self->width = width;
  self->height = height;
  g_signal_emit (self, resized_signal, 0);
}

static void
coop_chart_widget_measure (GtkWidget *widget, GtkOrientation orientation, int for_size, int *minimum,
                           int *natural, int *minimum_baseline, int *natural_baseline)
{
  *minimum = *natural = orientation == GTK_ORIENTATION_HORIZONTAL ? 240 : 96;
}

static void
coop_chart_widget_dispose (GObject *object)
{
  g_clear_pointer (&COOP_CHART_WIDGET (object)->shot, coop_shot_unref);
  G_OBJECT_CLASS (coop_chart_widget_parent_class)->dispose (object);
}

static void
coop_chart_widget_class_init (CoopChartWidgetClass *class)
{
  GtkWidgetClass *widget_class = GTK_WIDGET_CLASS (class);
  G_OBJECT_CLASS (class)->dispose = coop_chart_widget_dispose;
  widget_class->snapshot = coop_chart_widget_snapshot;
  widget_class->measure = coop_chart_widget_measure;
  widget_class->size_allocate = coop_chart_widget_size_allocate;
  gtk_widget_class_set_css_name (widget_class, "coopchart");
  gtk_widget_class_set_accessible_role (widget_class, GTK_ACCESSIBLE_ROLE_IMG);
  resized_signal = g_signal_new ("resized", G_TYPE_FROM_CLASS (class), G_SIGNAL_RUN_LAST, 0, NULL, NULL,
                                 NULL, G_TYPE_NONE, 0);
  sought_signal = g_signal_new ("sought", G_TYPE_FROM_CLASS (class), G_SIGNAL_RUN_LAST, 0, NULL, NULL, NULL,
                                G_TYPE_NONE, 1, G_TYPE_UINT64);
}

static void
coop_chart_widget_init (CoopChartWidget *self)
{
  self->pointer_x = NAN;
  self->now = G_MAXUINT64;
  gtk_widget_set_hexpand (GTK_WIDGET (self), TRUE);
  gtk_widget_set_has_tooltip (GTK_WIDGET (self), TRUE);
  g_signal_connect (self, "query-tooltip", G_CALLBACK (query_tooltip), NULL);
  gtk_accessible_update_property (GTK_ACCESSIBLE (self), GTK_ACCESSIBLE_PROPERTY_LABEL,
                                  _("Memory over time"), -1);
  GtkEventController *controller = gtk_event_controller_motion_new ();
  g_signal_connect (controller, "enter", G_CALLBACK (motion), self);
  g_signal_connect (controller, "motion", G_CALLBACK (motion), self);
  g_signal_connect (controller, "leave", G_CALLBACK (leave), self);
  gtk_widget_add_controller (GTK_WIDGET (self), controller);
  GtkGesture *drag = gtk_gesture_drag_new ();
  g_signal_connect (drag, "drag-begin", G_CALLBACK (drag_begin), self);
  g_signal_connect (drag, "drag-update", G_CALLBACK (drag_update), self);
  gtk_widget_add_controller (GTK_WIDGET (self), GTK_EVENT_CONTROLLER (drag));
  g_signal_connect_swapped (self, "notify::scale-factor", G_CALLBACK (gtk_widget_queue_allocate), self);
}

GtkWidget *
coop_chart_widget_new (void)
{
  return g_object_new (COOP_TYPE_CHART_WIDGET, NULL);
}

void
coop_chart_widget_set_shot (CoopChartWidget *self, CoopShot *shot)
{
  guint before = self->shot ? self->shot->chart_serial : 0;
  if (shot)
    coop_shot_ref (shot);
  g_clear_pointer (&self->shot, coop_shot_unref);
  self->shot = shot;
  if (!shot || shot->chart_serial != before)
    gtk_widget_queue_draw (GTK_WIDGET (self));
}

void
coop_chart_widget_get_wanted (CoopChartWidget *self, int *width, int *height, double *scale)
{
  int factor = gtk_widget_get_scale_factor (GTK_WIDGET (self));
  *width = gtk_widget_get_width (GTK_WIDGET (self)) * factor;
  *height = gtk_widget_get_height (GTK_WIDGET (self)) * factor;
  *scale = factor;
}

void
coop_chart_widget_set_now (CoopChartWidget *self, guint64 ts)
{
  if (self->now == ts)
    return;
  self->now = ts;
  gtk_widget_queue_draw (GTK_WIDGET (self));
}

void
coop_chart_widget_set_seekable (CoopChartWidget *self, gboolean seekable)
{
  self->seekable = seekable;
  gtk_widget_set_cursor_from_name (GTK_WIDGET (self), seekable ? "pointer" : NULL);
}

void
coop_chart_widget_seek (CoopChartWidget *self, double x)
{
  const CoopChartShot *chart = chart_of (self);
  if (chart && self->seekable)
    g_signal_emit (self, sought_signal, 0, coop_chart_ts (&chart->view, x * chart->scale));
}
