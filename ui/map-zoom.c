/* SPDX-License-Identifier: Apache-2.0 */
/* Map widget: zoom and pan. What is wanted is kept as a level and an address, and reckoned from one
 * wish to the next, so that a fast wheel does not wait for the picture of the step before.
 */
#include "config.h"

#include <math.h>

#include "map-widget-private.h"

static const CoopScene *
coop_map_widget_scene (CoopMapWidget *self)
{
  return self->shot ? self->shot->scene : NULL;
}

/* The view as it will be; FALSE: there is nothing to zoom into. */
static gboolean
wanted_view (CoopMapWidget *self, CoopMapView *view)
{
  const CoopScene *scene = coop_map_widget_scene (self);
  if (!scene || scene->view.rows <= 0)
    return FALSE;
  *view = scene->view;
  coop_map_zoom (view, self->zoom, self->from);
  return TRUE;
}

static void
look_at (CoopMapWidget *self, CoopMapView *view, int level, guint64 from)
{
  coop_map_zoom (view, level, from);
  if (self->zoom == view->zoom && self->from == view->from)
    return;
  self->zoom = view->zoom;
  self->from = view->from;
  g_signal_emit_by_name (self, "looked");
}

static void
zoom_at (CoopMapWidget *self, int by, double x, double y)
{
  CoopMapView view;
  if (!wanted_view (self, &view))
    return;
  int level = MAX (0, view.zoom + by);
  look_at (self, &view, level, coop_map_zoom_from (&view, level, x, y));
}

static void
pan (CoopMapWidget *self, double dx, double dy)
{
  CoopMapView view;
  if (wanted_view (self, &view))
    look_at (self, &view, view.zoom, coop_map_pan_from (&view, dx, dy));
}

static gboolean
scrolled (GtkEventControllerScroll *controller, double dx, double dy, CoopMapWidget *self)
{
  const CoopScene *scene = coop_map_widget_scene (self);
  GdkModifierType state = gtk_event_controller_get_current_event_state (GTK_EVENT_CONTROLLER (controller));
  if (!scene)
    return FALSE;
  int pitch = scene->view.row_height + scene->view.gap;
  if (state & GDK_SHIFT_MASK || ABS (dx) > ABS (dy))
    {
      pan (self, scene->view.rows == 1 ? -(dx + dy) * scene->view.width / 10 : -dx * scene->view.width / 10,
           scene->view.rows == 1 ? 0 : -dy * pitch);
      return TRUE;
    }
  self->scrolled -= dy;
  int by = (int) self->scrolled;
  self->scrolled -= by;
  if (by != 0 && !isnan (self->pointer_x))
    zoom_at (self, by, self->pointer_x, self->pointer_y);
  return TRUE;
}

static void
drag_begin (GtkGestureDrag *gesture, double x, double y, CoopMapWidget *self)
{
  self->dragged.rows = 0;
  if (self->zoom == 0 || !wanted_view (self, &self->dragged))
    gtk_gesture_set_state (GTK_GESTURE (gesture), GTK_EVENT_SEQUENCE_DENIED);
}

static void
drag_update (GtkGestureDrag *gesture, double dx, double dy, CoopMapWidget *self)
{
  const CoopScene *scene = coop_map_widget_scene (self);
  if (!scene || self->dragged.rows == 0)
    return;
  if (!gtk_drag_check_threshold (GTK_WIDGET (self), 0, 0, (int) dx, (int) dy)
      && self->dragged.from == self->from)
    return;
  gtk_gesture_set_state (GTK_GESTURE (gesture), GTK_EVENT_SEQUENCE_CLAIMED);
  CoopMapView view = self->dragged;
  look_at (self, &view, view.zoom, coop_map_pan_from (&self->dragged, dx * scene->scale, dy * scene->scale));
}

/* args: "(i)": as coop_map_widget_zoom. */
static gboolean
zoom_by_key (GtkWidget *widget, GVariant *args, gpointer user_data)
{
  int by;
  g_variant_get (args, "(i)", &by);
  coop_map_widget_zoom (COOP_MAP_WIDGET (widget), by);
  return TRUE;
}

/* args: "(ii)" tenths of a row to the right, rows down. */
static gboolean
pan_by_key (GtkWidget *widget, GVariant *args, gpointer user_data)
{
  CoopMapWidget *self = COOP_MAP_WIDGET (widget);
  const CoopScene *scene = coop_map_widget_scene (self);
  int right, down;
  g_variant_get (args, "(ii)", &right, &down);
  if (scene)
    pan (self, -right * scene->view.width / 10.0, -down * (scene->view.row_height + scene->view.gap));
  return TRUE;
}

static gboolean
focus_by_key (GtkWidget *widget, GVariant *args, gpointer user_data)
{
  CoopMapWidget *self = COOP_MAP_WIDGET (widget);
  const CoopScene *scene = coop_map_widget_scene (self);
  long found = self->pointed;
  for (guint i = 0; scene && i < scene->n_pieces; i++)
    if (scene->pieces[i].mark & COOP_MARK_SELECTED)
      found = i;
  if (scene && found >= 0 && found < (long) scene->n_pieces)
    coop_map_widget_show_range (self, scene->pieces[found].addr, scene->pieces[found].bytes, TRUE);
  return TRUE;
}

void
coop_map_widget_get_zoom (CoopMapWidget *self, int *zoom, guint64 *from)
{
  *zoom = self->zoom;
  *from = self->from;
}

void
coop_map_widget_zoom (CoopMapWidget *self, int by)
{
  CoopMapView view;
  CoopRect rect;
  if (!wanted_view (self, &view))
    return;
  double x = view.width / 2.0, y = view.height / 2.0;
  if (self->cursor_shown && coop_map_rects (&view, self->cursor, 1, &rect, 1) == 1)
    {
      x = rect.x;
      y = rect.y;
    }
  else if (!isnan (self->pointer_x))
    {
      x = self->pointer_x;
      y = self->pointer_y;
    }
  if (by == 0)
    look_at (self, &view, 0, 0);
  else
    zoom_at (self, by, x, y);
}

void
coop_map_widget_show_range (CoopMapWidget *self, guint64 addr, guint64 bytes, gboolean closer)
{
  CoopMapView view;
  if (!wanted_view (self, &view))
    return;
  int level = view.zoom;
  if (closer)
    {
      double part = (double) view.whole / (2.0 * (double) MAX (bytes, 1));
      level = part > 1 ? (int) log2 (part) : 0;
    }
  else if (addr >= view.from && addr + MIN (bytes, view.bytes) <= view.from + view.bytes)
    return;
  coop_map_zoom (&view, level, 0);
  guint64 spare = view.bytes > bytes ? (view.bytes - bytes) / 2 : 0;
  look_at (self, &view, level, addr - MIN (addr, spare));
}

void
coop_map_widget_add_zoom (CoopMapWidget *self)
{
  GtkEventController *scroll = gtk_event_controller_scroll_new (GTK_EVENT_CONTROLLER_SCROLL_BOTH_AXES);
  g_signal_connect (scroll, "scroll", G_CALLBACK (scrolled), self);
  gtk_widget_add_controller (GTK_WIDGET (self), scroll);
  GtkGesture *drag = gtk_gesture_drag_new ();
  gtk_gesture_single_set_button (GTK_GESTURE_SINGLE (drag), 0);
  g_signal_connect (drag, "drag-begin", G_CALLBACK (drag_begin), self);
  g_signal_connect (drag, "drag-update", G_CALLBACK (drag_update), self);
  gtk_widget_add_controller (GTK_WIDGET (self), GTK_EVENT_CONTROLLER (drag));
}

void
coop_map_widget_class_add_zoom (GtkWidgetClass *widget_class)
{
  static const struct { guint key; int by; } zooms[] = {
    { GDK_KEY_plus, 1 }, { GDK_KEY_equal, 1 }, { GDK_KEY_KP_Add, 1 }, { GDK_KEY_minus, -1 },
    { GDK_KEY_KP_Subtract, -1 }, { GDK_KEY_0, 0 }, { GDK_KEY_KP_0, 0 },
  };
  static const struct { guint key; int right, down; } pans[] = {
    { GDK_KEY_Left, -1, 0 }, { GDK_KEY_Right, 1, 0 }, { GDK_KEY_Up, 0, -1 }, { GDK_KEY_Down, 0, 1 },
  };
  for (gsize i = 0; i < G_N_ELEMENTS (zooms); i++)
    gtk_widget_class_add_binding (widget_class, zooms[i].key, 0, zoom_by_key, "(i)", zooms[i].by);
  gtk_widget_class_add_binding (widget_class, GDK_KEY_plus, GDK_SHIFT_MASK, zoom_by_key, "(i)", 1);
  for (gsize i = 0; i < G_N_ELEMENTS (pans); i++)
    gtk_widget_class_add_binding (widget_class, pans[i].key, GDK_SHIFT_MASK, pan_by_key, "(ii)", pans[i].right,
                                  pans[i].down);
  gtk_widget_class_add_binding (widget_class, GDK_KEY_f, 0, focus_by_key, NULL);
}
