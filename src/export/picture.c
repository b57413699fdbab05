/* SPDX-License-Identifier: Apache-2.0 */
/* Pictures: the page around the drawing, and the two file formats. No display is needed, and the same
 * trace gives the same bytes. */
#include "export/picture.h"

#include <cairo-svg.h>
#include <math.h>
#include <string.h>

#include "draw/map.h"
#include "draw/text.h"

#define TITLE_SIZE 18.0
#define TEXT_SIZE 12.0
#define MOST_PIXELS 32000.0 /* cairo's own limit is 32767 */

static uint32_t
ink (const CoopPage *page)
{
  return coop_map_ink (COOP_INK_STRONG, page->dark, page->contrast);
}

void
coop_page_text (CoopPage *page, double x, double y, const char *text, gboolean right)
{
  cairo_text_extents_t extents;
  coop_text_font (page->cr, TEXT_SIZE, false);
  coop_text_color (page->cr, ink (page), page->contrast ? 1 : 0.85);
  cairo_text_extents (page->cr, text, &extents);
  cairo_move_to (page->cr, right ? x - extents.x_advance : x, y);
  cairo_show_text (page->cr, text);
}

void
coop_page_title (CoopPage *page, const char *text)
{
  page->y += TITLE_SIZE;
  coop_text_font (page->cr, TITLE_SIZE, true);
  coop_text_color (page->cr, ink (page), 1);
  cairo_move_to (page->cr, COOP_PAGE_MARGIN, page->y);
  cairo_show_text (page->cr, text);
  page->y += 8;
}

double
coop_page_text_width (CoopPage *page, const char *text)
{
  cairo_text_extents_t extents;
  coop_text_font (page->cr, TEXT_SIZE, false);
  cairo_text_extents (page->cr, text, &extents);
  return extents.x_advance;
}

void
coop_page_line (CoopPage *page, const char *text)
{
  g_auto (GStrv) words = g_strsplit (text, " ", -1);
  g_autoptr (GString) line = g_string_new (NULL);
  for (guint i = 0; words[i] != NULL; i++)
    {
      gsize before = line->len;
      g_string_append_printf (line, "%s%s", before > 0 ? " " : "", words[i]);
      gboolean full = before > 0 && coop_page_text_width (page, line->str) > page->width - 2 * COOP_PAGE_MARGIN;
      if (full)
        g_string_truncate (line, before);
      if (!full && words[i + 1] != NULL)
        continue;
      page->y += TEXT_SIZE + 2;
      coop_page_text (page, COOP_PAGE_MARGIN, page->y, line->str, FALSE);
      page->y += 4;
      g_string_truncate (line, 0);
      if (full)
        i--;
    }
}

CoopLegend
coop_legend_begin (CoopPage *page, double y, gboolean dry)
{
  return (CoopLegend) { page, COOP_PAGE_MARGIN, y, dry };
}

void
coop_legend_entry (CoopLegend *legend, const char *text, double *x, double *y)
{
  cairo_text_extents_t extents;
  coop_text_font (legend->page->cr, TEXT_SIZE, false);
  cairo_text_extents (legend->page->cr, text, &extents);
  double width = COOP_SAMPLE_WIDTH + 7 + extents.x_advance;
  if (legend->x > COOP_PAGE_MARGIN && legend->x + width > legend->page->width - COOP_PAGE_MARGIN)
    {
      legend->x = COOP_PAGE_MARGIN;
      legend->y += COOP_LEGEND_ROW;
    }
  *x = legend->x;
  *y = legend->y;
  if (!legend->dry)
    coop_page_text (legend->page, legend->x + COOP_SAMPLE_WIDTH + 7, legend->y + COOP_SAMPLE_HEIGHT - 2.5, text, FALSE);
  legend->x = ceil (legend->x + width + 20);
}

char *
coop_page_name (const CoopExportJob *job)
{
  g_autofree char *script = job->anonymiser == NULL ? coop_reader_meta (job->reader, "script") : NULL;
  return script != NULL ? g_path_get_basename (script) : g_strdup ("a run");
}

char *
coop_page_time (guint64 ns)
{
  return ns >= 1000000000 ? g_strdup_printf ("%.3f s", (double) ns / 1e9) : g_strdup_printf ("%.3f ms", (double) ns / 1e6);
}

/* ---- files ---- */

static cairo_status_t
write_out (void *out, const unsigned char *data, unsigned n)
{
  coop_out_write (out, data, n);
  return coop_out_ok (out) ? CAIRO_STATUS_SUCCESS : CAIRO_STATUS_WRITE_ERROR;
}

static cairo_status_t
write_text (void *text, const unsigned char *data, unsigned n)
{
  g_string_append_len (text, (const char *) data, n);
  return CAIRO_STATUS_SUCCESS;
}

/* What a screen reader says of it, right after the opening tag. */
static void
put_svg (CoopOut *out, const GString *svg, const char *description)
{
  const char *stop = strstr (description, ". "); /* the first sentence is the title */
  g_autofree char *title = g_strndup (description, stop != NULL ? (gsize) (stop - description) : strlen (description));
  const char *root = strstr (svg->str, "<svg"), *end = root != NULL ? strchr (root, '>') : NULL;
  gsize head = end != NULL ? (gsize) (end - svg->str) + 1 : 0;
  g_autofree char *a = g_markup_escape_text (title, -1), *b = g_markup_escape_text (description, -1);
  coop_out_write (out, svg->str, head);
  coop_out_printf (out, "\n<title>%s</title>\n<desc>%s</desc>", a, b);
  coop_out_write (out, svg->str + head, svg->len - head);
}

static gboolean
draw (const CoopExportJob *job, cairo_surface_t *surface, CoopPage *page, GString *description, GError **error)
{
  page->cr = cairo_create (surface);
  page->y = COOP_PAGE_MARGIN - 6;
  coop_text_color (page->cr, coop_map_ink (COOP_INK_PAGE, page->dark, page->contrast), 1);
  cairo_paint (page->cr);
  gboolean done = job->options->usage ? coop_page_usage (job, page, description, error)
                                      : coop_page_map (job, page, description, error);
  cairo_destroy (page->cr);
  return done;
}

gboolean
coop_export_picture (const CoopExportJob *job, CoopOut *out, GError **error)
{
  const CoopExportOptions *o = job->options;
  gboolean svg = o->format == COOP_EXPORT_SVG;
  CoopPage page = { .scale = !svg && o->scale > 0 ? o->scale : 1, .dark = o->dark, .contrast = o->contrast };
  page.width = o->width > 0 ? o->width : 1200;
  page.height = o->height > 0 ? o->height : o->usage ? 460 : 760;
  if (page.width < 400 || page.height < 240 || page.width * page.scale > MOST_PIXELS || page.height * page.scale > MOST_PIXELS)
    {
      g_set_error_literal (error, G_IO_ERROR, G_IO_ERROR_INVALID_ARGUMENT, "a picture has 400x240 to 32000x32000 pixels");
      return FALSE;
    }
  g_autoptr (GString) text = g_string_new (NULL), description = g_string_new (NULL);
  cairo_surface_t *surface = svg ? cairo_svg_surface_create_for_stream (write_text, text, page.width, page.height)
                                 : cairo_image_surface_create (CAIRO_FORMAT_RGB24, (int) ceil (page.width * page.scale),
                                                               (int) ceil (page.height * page.scale));
  cairo_surface_set_device_scale (surface, svg ? 1 : page.scale, svg ? 1 : page.scale);
  gboolean done = draw (job, surface, &page, description, error);
  if (svg)
    cairo_surface_finish (surface);
  else if (done)
    cairo_surface_write_to_png_stream (surface, write_out, out);
  cairo_status_t status = cairo_surface_status (surface);
  if (done && status != CAIRO_STATUS_SUCCESS)
    {
      done = FALSE;
      g_set_error (error, G_IO_ERROR, G_IO_ERROR_FAILED, "cannot draw: %s", cairo_status_to_string (status));
    }
  if (done && svg)
    put_svg (out, text, description->str);
  cairo_surface_destroy (surface);
  return done;
}
