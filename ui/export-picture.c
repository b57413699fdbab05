/* SPDX-License-Identifier: Apache-2.0 */
/* What is on screen, as a picture; see the header. In an SVG text stays text and lines stay lines; the map is
 * an image in it.
 */
#include "config.h"

#include "export-picture.h"

#include <cairo-svg.h>
#include <gio/gio.h>
#include <glib/gi18n.h>
#include <string.h>

static GskRenderNode *
node_of (GtkWidget *widget)
{
  g_autoptr (GdkPaintable) paintable = gtk_widget_paintable_new (widget);
  GtkSnapshot *snapshot = gtk_snapshot_new ();
  gdk_paintable_snapshot (paintable, GDK_SNAPSHOT (snapshot), gtk_widget_get_width (widget),
                          gtk_widget_get_height (widget));
  return gtk_snapshot_free_to_node (snapshot);
}

/* What lies behind the widget: its own ground may be see-through. */
static void
paint_ground (GtkWidget *widget, cairo_t *cr)
{
  GdkRGBA color = { 1, 1, 1, 1 };
  gtk_style_context_lookup_color (gtk_widget_get_style_context (widget), "window_bg_color", &color);
  gdk_cairo_set_source_rgba (cr, &color);
  cairo_paint (cr);
}

static cairo_status_t
write_svg (GtkWidget *widget, GskRenderNode *node, const char *path)
{
  cairo_surface_t *surface
      = cairo_svg_surface_create (path, gtk_widget_get_width (widget), gtk_widget_get_height (widget));
  cairo_t *cr = cairo_create (surface);
  paint_ground (widget, cr);
  gsk_render_node_draw (node, cr);
  cairo_destroy (cr);
  cairo_surface_finish (surface);
  cairo_status_t status = cairo_surface_status (surface);
  cairo_surface_destroy (surface);
  return status;
}

static cairo_status_t
write_png (GtkWidget *widget, GskRenderNode *node, const char *path)
{
  int scale = gtk_widget_get_scale_factor (widget);
  cairo_surface_t *surface = cairo_image_surface_create (
      CAIRO_FORMAT_RGB24, gtk_widget_get_width (widget) * scale, gtk_widget_get_height (widget) * scale);
  cairo_t *cr = cairo_create (surface);
  cairo_scale (cr, scale, scale);
  paint_ground (widget, cr);
  gsk_render_node_draw (node, cr);
  cairo_destroy (cr);
  cairo_status_t status = cairo_surface_write_to_png (surface, path);
  cairo_surface_destroy (surface);
  return status;
}

gboolean
coop_export_picture (GtkWidget *widget, const char *path, GError **error)
{
  GskRenderNode *node = gtk_widget_get_mapped (widget) ? node_of (widget) : NULL;
  if (!node)
    {
      g_set_error (error, G_IO_ERROR, G_IO_ERROR_FAILED, "%s", _("There is nothing on screen."));
      return FALSE;
    }
  cairo_status_t status = g_str_has_suffix (path, ".svg") ? write_svg (widget, node, path)
                                                          : write_png (widget, node, path);
  gsk_render_node_unref (node);
  if (status != CAIRO_STATUS_SUCCESS)
    g_set_error (error, G_IO_ERROR, G_IO_ERROR_FAILED, "%s: %s", path, cairo_status_to_string (status));
  return status == CAIRO_STATUS_SUCCESS;
}
