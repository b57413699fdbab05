/* SPDX-License-Identifier: Apache-2.0 */
/* Text on the map, by cairo's plain text interface with all font options fixed, so that the window
 * and a picture made without a screen agree pixel by pixel.
 */
#include "draw/picture.h"

#include <cairo.h>

#include "draw/map-private.h"
#include "draw/text.h"

#define FONT_SIZE 11.0
#define PADDING 6.0

/* The widest part of a hole, by rows: at most its first row, one whole row, or its last. */
static CoopRect
widest (const CoopMapView *view, const CoopDrawPiece *piece)
{
  CoopRect rects[3], best = { 0, 0, 0, 0 };
  size_t n = coop_map_rects (view, piece->addr, piece->bytes, rects, 3);
  for (size_t i = 0; i < n && i < 3; i++)
    if (rects[i].width > best.width)
      best = rects[i];
  return best;
}

static void
write_size (cairo_t *cr, const CoopMapView *view, double scale, const CoopDrawPiece *piece)
{
  CoopRect rect = widest (view, piece);
  if (rect.height < (FONT_SIZE + 4) * scale || rect.width < 30 * scale)
    return;
  char text[32];
  coop_text_size (piece->bytes, text, sizeof text);
  cairo_text_extents_t extents;
  cairo_text_extents (cr, text, &extents);
  if (extents.x_advance + 2 * PADDING * scale > rect.width)
    return;
  cairo_font_extents_t font;
  cairo_font_extents (cr, &font);
  cairo_move_to (cr, (int) (rect.x + (rect.width - extents.x_advance) / 2),
                 (int) (rect.y + (rect.height + font.ascent - font.descent) / 2));
  cairo_show_text (cr, text);
}

/* As COOP_MARK_VICTIM marks a whole piece. */
static void
underline (const CoopMapView *view, const CoopDrawRange *range, uint32_t *pixels, size_t stride)
{
  CoopRect rects[128];
  uint32_t color = coop_map_ink (COOP_INK_WARN, view->dark, view->contrast);
  size_t n = coop_map_rects (view, range->addr, range->bytes, rects, 128);
  for (size_t i = 0; i < n && i < 128; i++)
    {
      int bottom = rects[i].y + rects[i].height;
      if (bottom > view->height)
        bottom = view->height;
      for (int y = bottom - 3 > rects[i].y ? bottom - 3 : rects[i].y; y < bottom; y++)
        {
          uint32_t *line = (uint32_t *) ((char *) pixels + (size_t) y * stride);
          for (int x = rects[i].x; x < rects[i].x + rects[i].width; x++)
            line[x] = color;
        }
    }
}

void
coop_picture_map (const CoopMapView *view, double scale, const CoopDrawPiece *pieces, size_t n,
                  const CoopDrawRange *victims, size_t n_victims, uint32_t *pixels, size_t stride)
{
  coop_map_raster (view, pieces, n, pixels, stride);
  if (view->rows <= 0)
    return;
  for (size_t i = 0; i < n_victims; i++)
    underline (view, &victims[i], pixels, stride);

  cairo_surface_t *surface = cairo_image_surface_create_for_data (
      (unsigned char *) pixels, CAIRO_FORMAT_ARGB32, view->width, view->height, (int) stride);
  cairo_t *cr = cairo_create (surface);
  double least = 30 * scale * view->bytes_per_pixel;
  for (int large = 0; large < 2; large++)
    {
      coop_text_font (cr, FONT_SIZE * scale, large);
      coop_text_color (cr, coop_map_ink (COOP_INK_STRONG, view->dark, view->contrast),
                       large || view->contrast ? 1 : 0.72);
      for (size_t i = 0; i < n; i++)
        if (coop_draw_is_hole (&pieces[i]) && (double) pieces[i].bytes >= least
            && !(pieces[i].mark & COOP_MARK_BEYOND)
            && !(pieces[i].mark & COOP_MARK_LARGEST) == !large)
          write_size (cr, view, scale, &pieces[i]);
    }
  cairo_destroy (cr);
  cairo_surface_destroy (surface);
}
