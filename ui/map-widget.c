/* SPDX-License-Identifier: Apache-2.0 */
/* Map widget: one texture node, a cached node of row addresses, and a handful of outlines. Where the
 * outlines go is asked of draw/map.h, which also placed the pixels below them.
 */
#include "config.h"

#include "map-widget-private.h"

#include <glib/gi18n.h>
#include <math.h>

#include "draw/text.h"

#define GUTTER 64  /* at least so much for the addresses of the rows */
#define WIDTH_STEP 32 /* the map is a multiple of this wide, so that rows begin at round addresses */
#define N_RECTS 64 /* outlines have at most so many parts */

G_DEFINE_FINAL_TYPE (CoopMapWidget, coop_map_widget, GTK_TYPE_WIDGET)

enum { RESIZED, POINTED, CHOSEN, N_SIGNALS };
static guint signals[N_SIGNALS + 1]; /* the last is "looked", by map-zoom.c */

static const CoopScene *
scene_of (CoopMapWidget *self)
{
  return self->shot ? self->shot->scene : NULL;
}

/* Room left of the map: what is over when its width is rounded lies here. */
static int
gutter (CoopMapWidget *self)
{
  int width = gtk_widget_get_width (GTK_WIDGET (self)) - GUTTER;
  return width < WIDTH_STEP ? GUTTER : GUTTER + width % WIDTH_STEP;
}

void
coop_map_widget_get_area (CoopMapWidget *self, graphene_rect_t *area)
{
  const CoopScene *scene = scene_of (self);
  float width = (float) MAX (0, gtk_widget_get_width (GTK_WIDGET (self)) - gutter (self));
  float height = (float) gtk_widget_get_height (GTK_WIDGET (self));
  if (scene)
    {
      width = (float) (scene->view.width / scene->scale);
      height = (float) (scene->view.height / scene->scale);
    }
  graphene_rect_init (area, (float) gutter (self), 0, width, height);
}

void
coop_map_widget_get_wanted (CoopMapWidget *self, int *width, int *height, double *scale)
{
  int factor = gtk_widget_get_scale_factor (GTK_WIDGET (self));
  *width = MAX (0, gtk_widget_get_width (GTK_WIDGET (self)) - gutter (self)) * factor;
  *height = gtk_widget_get_height (GTK_WIDGET (self)) * factor;
  *scale = factor;
}

/* ---- pointing ---- */

static void
find_pointed (CoopMapWidget *self)
{
  const CoopScene *scene = scene_of (self);
  long pointed = -1;
  if (scene && !isnan (self->pointer_x))
    pointed = coop_map_piece_under (&scene->view, scene->pieces, scene->n_pieces, self->pointer_x,
                                    self->pointer_y);
  else if (scene && self->cursor_shown)
    pointed = coop_map_piece_at (scene->pieces, scene->n_pieces, self->cursor);
  self->pointed = pointed;
  g_signal_emit (self, signals[POINTED], 0);
}

static void
motion (GtkEventControllerMotion *controller, double x, double y, CoopMapWidget *self)
{
  double scale = self->shot && self->shot->scene ? self->shot->scene->scale : 1;
  self->pointer_x = (x - gutter (self)) * scale;
  self->pointer_y = y * scale;
  find_pointed (self);
  gtk_widget_queue_draw (GTK_WIDGET (self));
}

static void
leave (GtkEventControllerMotion *controller, CoopMapWidget *self)
{
  self->pointer_x = self->pointer_y = NAN;
  find_pointed (self);
  gtk_widget_queue_draw (GTK_WIDGET (self));
}

static void
pressed (GtkGestureClick *gesture, int n, double x, double y, CoopMapWidget *self)
{
  gtk_widget_grab_focus (GTK_WIDGET (self));
}

/* Not at the press: that may be the begin of a drag. */
static void
released (GtkGestureClick *gesture, int n, double x, double y, CoopMapWidget *self)
{
  const CoopScene *scene = scene_of (self);
  motion (NULL, x, y, self);
  if (scene && self->pointed >= 0)
    self->cursor = scene->pieces[self->pointed].addr;
  g_signal_emit (self, signals[CHOSEN], 0);
}

/* ---- the keyboard's cursor ---- */

/* Moves by pieces; args: "(i)" -1 or 1, or by rows: -1000 or 1000. */
static gboolean
move_cursor (GtkWidget *widget, GVariant *args, gpointer user_data)
{
  CoopMapWidget *self = COOP_MAP_WIDGET (widget);
  const CoopScene *scene = scene_of (self);
  int by;
  g_variant_get (args, "(i)", &by);
  if (!scene || scene->n_pieces == 0)
    return FALSE;
  long at = coop_map_piece_at (scene->pieces, scene->n_pieces, self->cursor);
  if (at < 0)
    at = 0;
  else if (self->cursor_shown && ABS (by) == 1)
    at = CLAMP (at + by, 0, (long) scene->n_pieces - 1);
  else if (self->cursor_shown)
    {
      guint64 row = (guint64) (scene->view.bytes_per_pixel * scene->view.width);
      guint64 addr = self->cursor;
      addr = by > 0 ? addr + row : addr - MIN (addr, row);
      long found = coop_map_piece_at (scene->pieces, scene->n_pieces, addr);
      if (found >= 0)
        {
          self->cursor = addr;
          at = -1;
        }
    }
  if (at >= 0)
    self->cursor = scene->pieces[at].addr;
  self->cursor_shown = TRUE;
  self->pointer_x = self->pointer_y = NAN;
  coop_map_widget_show_range (self, self->cursor, 1, FALSE);
  find_pointed (self);
  gtk_widget_queue_draw (widget);
  return TRUE;
}

static gboolean
choose (GtkWidget *widget, GVariant *args, gpointer user_data)
{
  g_signal_emit (widget, signals[CHOSEN], 0);
  return TRUE;
}

/* ---- drawing ---- */

static GdkRGBA
rgba_of (guint32 argb, float alpha)
{
  return (GdkRGBA) { (float) (argb >> 16 & 0xff) / 255, (float) (argb >> 8 & 0xff) / 255,
                     (float) (argb & 0xff) / 255, alpha };
}

/* Addresses left of the rows, as many as there is room for. */
static GskRenderNode *
make_labels (CoopMapWidget *self, const CoopScene *scene)
{
  const CoopMapView *view = &scene->view;
  GtkSnapshot *snapshot = gtk_snapshot_new ();
  g_autoptr (PangoLayout) layout = gtk_widget_create_pango_layout (GTK_WIDGET (self), NULL);
  g_autoptr (PangoAttrList) attrs = pango_attr_list_new ();
  GdkRGBA color;
  double pitch = (view->row_height + view->gap) / scene->scale;
  double row_bytes = view->bytes_per_pixel * view->width;
  int height, every;

  gtk_style_context_get_color (gtk_widget_get_style_context (GTK_WIDGET (self)), &color);
  if (!view->contrast)
    color.alpha *= 0.6f;
  pango_attr_list_insert (attrs, pango_attr_scale_new (0.82));
  pango_attr_list_insert (attrs, pango_attr_font_features_new ("tnum=1"));
  pango_layout_set_attributes (layout, attrs);
  pango_layout_set_text (layout, "0", -1);
  pango_layout_get_pixel_size (layout, NULL, &height);
  every = MAX (1, (int) ceil ((height + 4) / pitch));
  for (int row = 0; row < view->rows; row += every)
    {
      char text[32];
      int width;
      guint64 addr = view->from + (guint64) (row * row_bytes);
      coop_text_size (addr, text, sizeof text);
      pango_layout_set_text (layout, addr == 0 ? "0" : text, -1);
      pango_layout_get_pixel_size (layout, &width, NULL);
      gtk_snapshot_save (snapshot);
      gtk_snapshot_translate (
          snapshot, &GRAPHENE_POINT_INIT ((float) (gutter (self) - 8 - width),
                                          (float) (row * pitch + (view->row_height / scene->scale - height) / 2)));
      gtk_snapshot_append_layout (snapshot, layout, &color);
      gtk_snapshot_restore (snapshot);
    }
  return gtk_snapshot_free_to_node (snapshot);
}

static void
outline (GtkSnapshot *snapshot, const graphene_rect_t *rect, float thick, guint32 argb)
{
  GdkRGBA color = rgba_of (argb, 1);
  GskRoundedRect rounded;
  gsk_rounded_rect_init_from_rect (&rounded, rect, 0);
  gtk_snapshot_append_border (snapshot, &rounded, (float[4]) { thick, thick, thick, thick },
                              (GdkRGBA[4]) { color, color, color, color });
}

/* A light line inside a dark one is seen on any ground. */
static void
outline_range (CoopMapWidget *self, GtkSnapshot *snapshot, const CoopScene *scene, guint64 addr,
               guint64 bytes, guint32 argb, float fill)
{
  CoopRect rects[N_RECTS];
  size_t n = coop_map_rects (&scene->view, addr, bytes, rects, N_RECTS);
  for (size_t i = 0; i < MIN (n, N_RECTS); i++)
    {
      float s = (float) scene->scale;
      graphene_rect_t rect = GRAPHENE_RECT_INIT (
          (float) rects[i].x / s + (float) gutter (self) - 1, (float) rects[i].y / s - 1,
          (float) rects[i].width / s + 2, (float) rects[i].height / s + 2);
      if (fill > 0)
        {
          GdkRGBA color = rgba_of (argb, fill);
          gtk_snapshot_append_color (snapshot, &color, &rect);
        }
      outline (snapshot, &rect, 2, argb);
      graphene_rect_inset (&rect, 2, 2);
      if (rect.size.width > 2 && rect.size.height > 2)
        outline (snapshot, &rect, 1, coop_map_ink (COOP_INK_PAGE, scene->view.dark, scene->view.contrast));
    }
}

/* Which part is seen: a bar along the lower edge. */
static void
draw_place (CoopMapWidget *self, GtkSnapshot *snapshot, const CoopScene *scene)
{
  const CoopMapView *view = &scene->view;
  graphene_rect_t area;
  GdkRGBA ground = rgba_of (coop_map_ink (COOP_INK_OUTLINE, view->dark, view->contrast), 0.5f);
  GdkRGBA color = rgba_of (coop_map_ink (COOP_INK_STRONG, view->dark, view->contrast), 0.9f);
  coop_map_widget_get_area (self, &area);
  float y = (float) gtk_widget_get_height (GTK_WIDGET (self)) - 5, whole = (float) MAX (view->whole, 1);
  gtk_snapshot_append_color (snapshot, &ground, &GRAPHENE_RECT_INIT (area.origin.x, y, area.size.width, 5));
  float from = (float) view->from / whole, part = (float) view->bytes / whole;
  gtk_snapshot_append_color (snapshot, &color,
                             &GRAPHENE_RECT_INIT (area.origin.x + from * area.size.width, y,
                                                  MAX (4, part * area.size.width), 5));
}

static void
draw_on_top (CoopMapWidget *self, GtkSnapshot *snapshot, const CoopScene *scene)
{
  bool dark = scene->view.dark, contrast = scene->view.contrast;
  if (scene->view.zoom > 0)
    draw_place (self, snapshot, scene);
  if (self->ghost > 0 && scene->largest >= 0)
    outline_range (self, snapshot, scene, scene->pieces[scene->largest].addr, self->ghost,
                   coop_map_ink (COOP_INK_WARN, dark, contrast), 0.18f);
  gboolean by_pointer = !isnan (self->pointer_x);
  gboolean by_cursor = self->cursor_shown && gtk_widget_has_focus (GTK_WIDGET (self));
  if (self->pointed >= 0 && self->pointed < (long) scene->n_pieces && (by_pointer || by_cursor))
    {
      const CoopDrawPiece *piece = &scene->pieces[self->pointed];
      outline_range (self, snapshot, scene, piece->addr, piece->bytes,
                     coop_map_ink (COOP_INK_STRONG, dark, contrast), 0);
    }
}

static gboolean
labels_fit (CoopMapWidget *self, const CoopMapView *view)
{
  const CoopMapView *old = &self->labels_view;
  return self->labels && self->labels_gutter == gutter (self) && old->rows == view->rows && old->from == view->from && old->bytes_per_pixel == view->bytes_per_pixel
         && old->width == view->width && old->row_height == view->row_height && old->dark == view->dark
         && old->contrast == view->contrast;
}

static void
coop_map_widget_snapshot (GtkWidget *widget, GtkSnapshot *snapshot)
{
  CoopMapWidget *self = COOP_MAP_WIDGET (widget);
  const CoopScene *scene = scene_of (self);
  graphene_rect_t area;
  if (!scene)
    return;
  coop_map_widget_get_area (self, &area);
  gtk_snapshot_push_clip (snapshot, &GRAPHENE_RECT_INIT (0, 0, (float) gtk_widget_get_width (widget),
                                                         (float) gtk_widget_get_height (widget)));
  gtk_snapshot_append_texture (snapshot, self->shot->map, &area);
  if (!labels_fit (self, &scene->view))
    {
      g_clear_pointer (&self->labels, gsk_render_node_unref);
      self->labels = make_labels (self, scene);
      self->labels_view = scene->view;
      self->labels_gutter = gutter (self);
    }
  if (self->labels)
    gtk_snapshot_append_node (snapshot, self->labels);
  if (!self->bare)
    draw_on_top (self, snapshot, scene);
  gtk_snapshot_pop (snapshot);
}

/* ---- the widget ---- */

static void
coop_map_widget_size_allocate (GtkWidget *widget, int width, int height, int baseline)
{
  CoopMapWidget *self = COOP_MAP_WIDGET (widget);
  if (width == self->wanted_width && height == self->wanted_height)
    return;
  self->wanted_width = width;
  self->wanted_height = height;
  g_signal_emit (self, signals[RESIZED], 0);
}

static void
coop_map_widget_measure (GtkWidget *widget, GtkOrientation orientation, int for_size, int *minimum,
                         int *natural, int *minimum_baseline, int *natural_baseline)
{
  *minimum = orientation == GTK_ORIENTATION_HORIZONTAL ? 320 : 96;
  *natural = orientation == GTK_ORIENTATION_HORIZONTAL ? 800 : 400;
}

static void
coop_map_widget_dispose (GObject *object)
{
  CoopMapWidget *self = COOP_MAP_WIDGET (object);
  g_clear_pointer (&self->shot, coop_shot_unref);
  g_clear_pointer (&self->labels, gsk_render_node_unref);
  G_OBJECT_CLASS (coop_map_widget_parent_class)->dispose (object);
}

static void
add_keys (GtkWidgetClass *widget_class)
{
  static const struct { guint key; int by; } keys[] = {
    { GDK_KEY_Left, -1 }, { GDK_KEY_Right, 1 }, { GDK_KEY_Up, -1000 }, { GDK_KEY_Down, 1000 },
  };
  for (gsize i = 0; i < G_N_ELEMENTS (keys); i++)
    gtk_widget_class_add_binding (widget_class, keys[i].key, 0, move_cursor, "(i)", keys[i].by);
  coop_map_widget_class_add_zoom (widget_class);
  gtk_widget_class_add_binding (widget_class, GDK_KEY_Return, 0, choose, NULL);
  gtk_widget_class_add_binding (widget_class, GDK_KEY_KP_Enter, 0, choose, NULL);
}

static void
coop_map_widget_class_init (CoopMapWidgetClass *class)
{
  GtkWidgetClass *widget_class = GTK_WIDGET_CLASS (class);
  static const char *const names[] = { "resized", "pointed", "chosen", "looked" };
  G_OBJECT_CLASS (class)->dispose = coop_map_widget_dispose;
  widget_class->snapshot = coop_map_widget_snapshot;
  widget_class->measure = coop_map_widget_measure;
  widget_class->size_allocate = coop_map_widget_size_allocate;
  gtk_widget_class_set_css_name (widget_class, "coopmap");
  gtk_widget_class_set_accessible_role (widget_class, GTK_ACCESSIBLE_ROLE_IMG);
  for (gsize i = 0; i < G_N_ELEMENTS (names); i++)
    signals[i] = g_signal_new (names[i], G_TYPE_FROM_CLASS (class), G_SIGNAL_RUN_LAST, 0, NULL, NULL,
                               NULL, G_TYPE_NONE, 0);
  add_keys (widget_class);
}

static void
coop_map_widget_init (CoopMapWidget *self)
{
  self->pointer_x = self->pointer_y = NAN;
  self->pointed = -1;
  gtk_widget_set_focusable (GTK_WIDGET (self), TRUE);
  gtk_widget_set_hexpand (GTK_WIDGET (self), TRUE);
  gtk_widget_set_vexpand (GTK_WIDGET (self), TRUE);
  gtk_accessible_update_property (GTK_ACCESSIBLE (self), GTK_ACCESSIBLE_PROPERTY_LABEL,
                                  _("Map of the address space"), -1);

  GtkEventController *controller = gtk_event_controller_motion_new ();
  g_signal_connect (controller, "enter", G_CALLBACK (motion), self);
  g_signal_connect (controller, "motion", G_CALLBACK (motion), self);
  g_signal_connect (controller, "leave", G_CALLBACK (leave), self);
  gtk_widget_add_controller (GTK_WIDGET (self), controller);
  GtkGesture *click = gtk_gesture_click_new ();
  g_signal_connect (click, "pressed", G_CALLBACK (pressed), self);
  g_signal_connect (click, "released", G_CALLBACK (released), self);
  gtk_widget_add_controller (GTK_WIDGET (self), GTK_EVENT_CONTROLLER (click));
  coop_map_widget_add_zoom (self);
  g_signal_connect_swapped (self, "notify::scale-factor", G_CALLBACK (gtk_widget_queue_allocate), self);
}

GtkWidget *
coop_map_widget_new (void)
{
  return g_object_new (COOP_TYPE_MAP_WIDGET, NULL);
}

void
coop_map_widget_set_shot (CoopMapWidget *self, CoopShot *shot)
{
  guint before = self->shot ? self->shot->map_serial : 0;
  if (shot)
    coop_shot_ref (shot);
  else
    {
      self->zoom = 0;
      self->from = 0;
    }
  g_clear_pointer (&self->shot, coop_shot_unref);
  self->shot = shot;
  if (shot && shot->map_serial == before)
    return;
  if (!isnan (self->pointer_x) || self->cursor_shown)
    find_pointed (self);
  gtk_widget_queue_draw (GTK_WIDGET (self));
}

long
coop_map_widget_get_pointed (CoopMapWidget *self)
{
  return self->pointed;
}

void
coop_map_widget_set_ghost (CoopMapWidget *self, guint64 bytes)
{
  if (self->ghost == bytes)
    return;
  self->ghost = bytes;
  gtk_widget_queue_draw (GTK_WIDGET (self));
}

void
coop_map_widget_set_bare (CoopMapWidget *self, gboolean bare)
{
  self->bare = bare;
  gtk_widget_queue_draw (GTK_WIDGET (self));
}

gboolean
coop_map_widget_get_point (CoopMapWidget *self, double *x, double *y)
{
  const CoopScene *scene = scene_of (self);
  CoopRect rect;
  *x = self->pointer_x;
  *y = self->pointer_y;
  if (!isnan (self->pointer_x))
    return self->pointer_x >= 0 && self->pointer_y >= 0;
  if (!scene || !self->cursor_shown || coop_map_rects (&scene->view, self->cursor, 1, &rect, 1) != 1)
    return FALSE;
  *x = rect.x;
  *y = rect.y + rect.height / 2;
  return TRUE;
}
