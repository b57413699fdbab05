/* SPDX-License-Identifier: Apache-2.0 */
/* The last eviction on the map. The window is outlined as one shape: a row that goes on in the next has
 * no line at that end.
 */
#include <cairo.h>

#include "draw/map-private.h"
#include "draw/picture.h"
#include "draw/text.h"

#define FONT_SIZE 11.0
#define N_RECTS 256

static void
trace_range (cairo_t *cr, const CoopMapView *view, double scale, uint64_t lo, uint64_t hi)
{
  CoopRect rects[N_RECTS];
  size_t n = coop_map_rects (view, lo, hi - lo, rects, N_RECTS);
  double inset = scale;
  n = n < N_RECTS ? n : N_RECTS;
  for (size_t i = 0; i < n; i++)
    {
      double x = rects[i].x, y = rects[i].y + inset, w = rects[i].width, h = rects[i].height - 2 * inset;
      cairo_move_to (cr, x, y);
      cairo_line_to (cr, x + w, y);
      cairo_move_to (cr, x, y + h);
      cairo_line_to (cr, x + w, y + h);
      if (i == 0 && lo >= view->from)
        {
          cairo_move_to (cr, x + inset, y);
          cairo_line_to (cr, x + inset, y + h);
        }
      if (i == n - 1 && hi <= view->from + view->bytes)
        {
          cairo_move_to (cr, x + w - inset, y);
          cairo_line_to (cr, x + w - inset, y + h);
        }
    }
  cairo_stroke (cr);
}

/* Twice: a wide line of the page's colour below, so that it is seen on any ground. */
static void
outline (cairo_t *cr, const CoopMapView *view, double scale, uint64_t lo, uint64_t hi, bool dashed)
{
  double dash[] = { 6 * scale, 4 * scale };
  if (hi <= lo)
    return;
  cairo_set_dash (cr, dash, 0, 0);
  cairo_set_line_width (cr, 5 * scale);
  coop_text_color (cr, coop_map_ink (COOP_INK_PAGE, view->dark, view->contrast), 1);
  trace_range (cr, view, scale, lo, hi);
  cairo_set_dash (cr, dash, dashed ? 2 : 0, 0);
  cairo_set_line_width (cr, 2 * scale);
  coop_text_color (cr, coop_map_ink (dashed ? COOP_INK_STRONG : COOP_INK_WARN, view->dark, view->contrast), 1);
  trace_range (cr, view, scale, lo, hi);
}

/* On a ground of its own, in the widest row, where it fits whole. */
static void
write_victim (cairo_t *cr, const CoopMapView *view, double scale, const CoopDrawVictim *victim)
{
  CoopRect rects[3], best = { 0, 0, 0, 0 };
  size_t n = coop_map_rects (view, victim->addr, victim->bytes, rects, 3);
  for (size_t i = 0; i < n && i < 3; i++)
    if (rects[i].width > best.width)
      best = rects[i];
  cairo_text_extents_t extents;
  cairo_text_extents (cr, victim->text, &extents);
  double width = extents.x_advance + 10 * scale, height = (FONT_SIZE + 5) * scale;
  if (best.width < width || best.height < height)
    return;
  double x = (int) (best.x + (best.width - width) / 2), y = (int) (best.y + (best.height - height) / 2);
  coop_text_color (cr, coop_map_ink (COOP_INK_PAGE, view->dark, view->contrast), 0.92);
  cairo_rectangle (cr, x, y, width, height);
  cairo_fill (cr);
  coop_text_color (cr, coop_map_ink (COOP_INK_STRONG, view->dark, view->contrast), 1);
  cairo_move_to (cr, x + 5 * scale, y + height - 5 * scale);
  cairo_show_text (cr, victim->text);
}

void
coop_picture_why (const CoopMapView *view, double scale, const CoopDrawWhy *why, uint32_t *pixels,
                  size_t stride)
{
  if (view->rows <= 0)
    return;
  cairo_surface_t *surface = cairo_image_surface_create_for_data (
      (unsigned char *) pixels, CAIRO_FORMAT_ARGB32, view->width, view->height, (int) stride);
  cairo_t *cr = cairo_create (surface);
  outline (cr, view, scale, why->next_lo, why->next_hi, true);
  outline (cr, view, scale, why->lo, why->hi, false);
  coop_text_font (cr, FONT_SIZE * scale, true);
  for (size_t i = 0; i < why->n_victims; i++)
    write_victim (cr, view, scale, &why->victims[i]);
  cairo_destroy (cr);
  cairo_surface_destroy (surface);
}
