/* SPDX-License-Identifier: Apache-2.0 */
/* The map at an instant: the pixels that the window shows, with addresses at the left, a scale and a
 * legend that says how much there is of what. In an SVG the map itself is an image of twice the
 * resolution: its hatching and shading are made of pixels. */
#include "export/picture.h"

#include <math.h>
#include <string.h>

#include "draw/picture.h"
#include "draw/text.h"
#include "trace/instant.h"

#define ADDRESSES 70.0   /* left of the rows */
#define BELOW 44.0       /* for the scale and the space below the legend */
#define ROW_HEIGHT 22
#define ROW_GAP 3
#define SVG_SCALE 2.0
#define PALER "Paler: not used for longer."

typedef struct {
  CoopModel *model;
  const CoopModelTotals *totals;
  const char *at;
  guint64 seq;
  GArray *pieces;  /* CoopMapPiece */
  GArray *drawn;   /* CoopDrawPiece, the same */
  GArray *victims; /* CoopDrawRange */
  guint64 largest, end;
  gboolean voids, pending; /* there are such */
} Map;

static guint8
age_of (guint64 now, guint64 used)
{
  double ms = now > used ? (double) (now - used) / 1e6 : 0;
  return (guint8) MIN (255, 255 * log1p (ms) / log1p (30000));
}

/* Marks what is past the budget, and the largest hole below it, as the window does. Where memory comes in
 * segments, addresses know no budget, and what is not backed is no hole. */
static void
gather (Map *map)
{
  long largest = -1;
  coop_model_pieces (map->model, map->pieces);
  for (guint i = 0; i < map->pieces->len; i++)
    map->voids |= coop_piece_is_void (&g_array_index (map->pieces, CoopMapPiece, i));
  guint64 budget = map->voids ? 0 : map->totals->budget;
  for (guint i = 0; i < map->pieces->len; i++)
    {
      const CoopMapPiece *p = &g_array_index (map->pieces, CoopMapPiece, i);
      CoopDrawPiece piece = { .addr = p->addr, .bytes = p->bytes, .used = p->used, .kind = p->kind, .pin = p->pin,
                              .age = p->used ? age_of (map->totals->ts, p->used_ts) : 0 };
      guint64 below = p->bytes;
      if (!coop_piece_is_void (p))
        map->end = p->addr + p->bytes;
      map->pending |= p->pin == COOP_PIN_PENDING;
      if (budget > 0 && p->addr + p->bytes > budget)
        {
          below = p->addr < budget ? budget - p->addr : 0;
          piece.mark = p->used || below == 0 ? COOP_MARK_BEYOND : 0;
        }
      if (coop_draw_is_hole (&piece) && below > map->largest)
        {
          map->largest = below;
          largest = (long) i;
        }
      g_array_append_val (map->drawn, piece);
    }
  if (largest >= 0)
    g_array_index (map->drawn, CoopDrawPiece, largest).mark |= COOP_MARK_LARGEST;
  const CoopLastEviction *last = coop_model_last_eviction (map->model);
  for (guint i = 0; last != NULL && i < last->n_victims; i++)
    g_array_append_val (map->victims, ((CoopDrawRange) { last->victims[i].addr, last->victims[i].bytes }));
}

/* ---- words ---- */

static char *
size_text (guint64 bytes)
{
  char text[32];
  coop_text_size (bytes, text, sizeof text);
  return g_strdup (text);
}

static char *
instant_words (const Map *map)
{
  if (g_str_equal (map->at, "peak"))
    return g_strdup ("at the peak");
  if (g_str_equal (map->at, "end"))
    return g_strdup ("at the end");
  if (g_str_has_prefix (map->at, "step:"))
    return g_strdup_printf ("where step %s begins", map->at + strlen ("step:"));
  return g_strdup (g_str_equal (map->at, "oom") ? "when memory ran out" : "at one moment");
}

static void
write_head (const CoopExportJob *job, CoopPage *page, const Map *map, GString *description)
{
  const CoopModelTotals *t = map->totals;
  g_autofree char *name = coop_page_name (job), *time = coop_page_time (t->ts), *used = size_text (t->used);
  g_autofree char *budget = t->budget > 0 ? size_text (t->budget) : NULL, *pinned = size_text (t->pinned);
  g_autofree char *free = size_text (t->free), *largest = size_text (t->largest), *evicted = size_text (t->evicted);
  const char *phase = coop_phase_label (t->phase);
  g_autofree char *words = instant_words (map), *title = g_strdup_printf ("Memory of %s %s", name, words);
  g_autofree char *when = g_strdup_printf ("Event %" G_GUINT64_FORMAT ", %s after the begin, step %" G_GUINT64_FORMAT "%s%s",
                                           map->seq, time, t->step, phase != NULL ? ", " : "", phase != NULL ? phase : "");
  g_autofree char *in_use = budget != NULL ? g_strdup_printf ("In use %s of a budget of %s", used, budget)
                                           : g_strdup_printf ("In use %s, no budget", used);
  g_autofree char *rest = budget != NULL ? g_strdup_printf ("; free %s in %" G_GUINT64_FORMAT " holes, the largest %s", free, t->holes, largest)
                                         : g_strdup ("");
  g_autofree char *figures = g_strdup_printf ("%s, %s pinned%s; evicted %s", in_use, pinned, rest, evicted);
  coop_page_title (page, title);
  coop_page_line (page, when);
  coop_page_line (page, figures);
  g_string_append_printf (description, "%s. %s. %s.", title, when, figures);
  const CoopLastOom *oom = coop_model_last_oom (map->model);
  if (oom != NULL && oom->seq == map->seq)
    {
      g_autofree char *asked = size_text (oom->asked);
      g_autofree char *line = g_strdup_printf ("A request for %s could not be served: %s", asked,
                                               oom->free >= oom->asked ? "enough is free, but in pieces" : "so much is not free");
      coop_page_line (page, line);
      g_string_append_printf (description, " %s.", line);
    }
}

/* ---- the map ---- */

static void
paint_map (CoopPage *page, const Map *map, const CoopMapView *view, double factor, double x, double y)
{
  cairo_surface_t *image = cairo_image_surface_create (CAIRO_FORMAT_RGB24, view->width, view->height);
  cairo_surface_flush (image);
  coop_picture_map (view, factor, (const CoopDrawPiece *) (gpointer) map->drawn->data, map->drawn->len,
                    (const CoopDrawRange *) (gpointer) map->victims->data, map->victims->len,
                    (uint32_t *) (gpointer) cairo_image_surface_get_data (image), (size_t) cairo_image_surface_get_stride (image));
  cairo_surface_mark_dirty (image);
  cairo_save (page->cr);
  cairo_translate (page->cr, x, y);
  cairo_scale (page->cr, 1 / factor, 1 / factor);
  cairo_set_source_surface (page->cr, image, 0, 0);
  cairo_pattern_set_filter (cairo_get_source (page->cr), CAIRO_FILTER_NEAREST);
  cairo_paint (page->cr);
  cairo_restore (page->cr);
  cairo_surface_destroy (image);
}

static void
write_addresses (CoopPage *page, const CoopMapView *view, double factor, double x, double y)
{
  double last = -1e9;
  for (int row = 0; row < view->rows; row++)
    {
      double top = row * (double) (view->row_height + view->gap) / factor;
      guint64 addr = (guint64) ((double) row * view->width * view->bytes_per_pixel);
      if (top - last < 15 || addr >= view->bytes)
        continue;
      g_autofree char *text = size_text (addr);
      coop_page_text (page, x - 8, y + top + view->row_height / factor / 2 + 4, text, TRUE);
      last = top;
    }
}

/* A bar of a round number of bytes, between 60 and 120 layout pixels, with what a row and a pixel are. */
static void
write_scale (CoopPage *page, const CoopMapView *view, double factor, double x, double y)
{
  double bytes = view->bytes_per_pixel * factor, bar = 60;
  guint64 step = 1;
  while ((double) step < bar * bytes)
    step *= 2;
  bar = (double) step / bytes;
  g_autofree char *size = size_text (step), *row = size_text ((guint64) (view->width * view->bytes_per_pixel));
  const char *how = page->width >= 760 ? "Read like text: addresses grow to the right and down, a row is" : "A row is";
  g_autofree char *text = g_strdup_printf ("%s.   %s %s.", size, how, row);
  coop_text_color (page->cr, coop_map_ink (COOP_INK_STRONG, page->dark, page->contrast), 1);
  cairo_set_line_width (page->cr, 1.5);
  cairo_move_to (page->cr, x + 0.5, y - 8);
  cairo_line_to (page->cr, x + 0.5, y);
  cairo_line_to (page->cr, x + bar - 0.5, y);
  cairo_line_to (page->cr, x + bar - 0.5, y - 8);
  cairo_stroke (page->cr);
  coop_page_text (page, x + bar + 8, y, text, FALSE);
}

static CoopMapView
lay_out (const CoopPage *page, const Map *map, double factor, double width, double height)
{
  CoopMapView view = {
    .bytes = coop_map_extent (map->totals->budget, map->totals->budget == 0 ? MAX (map->end, map->totals->peak) : map->end),
    .budget = map->voids ? 0 : map->totals->budget,
    .width = (int) (width * factor), .height = (int) (height * factor),
    .row_height = (int) (ROW_HEIGHT * factor), .gap = (int) (ROW_GAP * factor),
    .dark = page->dark, .contrast = page->contrast,
  };
  coop_map_layout (&view);
  return view;
}

/* ---- the legend ---- */

static void
sample (CoopLegend *legend, const char *text, CoopKind kind, gboolean used, CoopPin pin, gboolean victim)
{
  CoopPage *page = legend->page;
  double x, y, factor = page->scale > 1 ? page->scale : SVG_SCALE;
  int w = (int) (COOP_SAMPLE_WIDTH * factor), h = (int) (COOP_SAMPLE_HEIGHT * factor);
  coop_legend_entry (legend, text, &x, &y);
  if (legend->dry)
    return;
  cairo_surface_t *image = cairo_image_surface_create (CAIRO_FORMAT_RGB24, w, h);
  cairo_surface_flush (image);
  coop_map_swatch (kind, used, pin, victim, page->dark, page->contrast,
                   (uint32_t *) (gpointer) cairo_image_surface_get_data (image), w, h, (size_t) cairo_image_surface_get_stride (image));
  cairo_surface_mark_dirty (image);
  cairo_save (page->cr);
  cairo_translate (page->cr, x, y);
  cairo_scale (page->cr, 1 / factor, 1 / factor);
  cairo_set_source_surface (page->cr, image, 0, 0);
  cairo_paint (page->cr);
  cairo_restore (page->cr);
  cairo_surface_destroy (image);
}

/* The last byte below the budget, as a line. */
static void
budget_sample (CoopLegend *legend, guint64 budget)
{
  double x, y;
  g_autofree char *size = size_text (budget), *text = g_strdup_printf ("budget %s", size);
  coop_legend_entry (legend, text, &x, &y);
  if (legend->dry)
    return;
  coop_text_color (legend->page->cr, coop_map_ink (COOP_INK_WARN, legend->page->dark, legend->page->contrast), 1);
  cairo_rectangle (legend->page->cr, x + COOP_SAMPLE_WIDTH / 2 - 1, y, 2, COOP_SAMPLE_HEIGHT);
  cairo_fill (legend->page->cr);
}

/* The last thing is a sentence without a sample. */
static void
write_age (CoopLegend *legend)
{
  double x, y;
  CoopLegend before = *legend;
  before.dry = TRUE;
  coop_legend_entry (&before, PALER, &x, &y);
  legend->y = y;
  if (!legend->dry)
    coop_page_text (legend->page, x, y + COOP_SAMPLE_HEIGHT - 2.5, PALER, FALSE);
}

/* Returns the height it takes. */
static double
write_legend (CoopPage *page, const Map *map, double y, gboolean dry)
{
  static const char *const names[COOP_N_KINDS] = {
    [COOP_KIND_STATE] = "state", [COOP_KIND_ACTIVATION] = "activations", [COOP_KIND_GRADIENT] = "gradients",
    [COOP_KIND_OTHER] = "batches, results", [COOP_KIND_UNKNOWN] = "workspace", [COOP_KIND_UNMANAGED] = "unmanaged",
  };
  CoopLegend legend = coop_legend_begin (page, y, dry);
  guint64 by_kind[COOP_N_KINDS] = { 0 };
  for (guint i = 0; i < map->pieces->len; i++)
    {
      const CoopMapPiece *p = &g_array_index (map->pieces, CoopMapPiece, i);
      if (p->used && p->kind < COOP_N_KINDS)
        by_kind[p->kind] += p->bytes;
    }
  for (guint kind = 0; kind < COOP_N_KINDS; kind++)
    if (by_kind[kind] > 0)
      {
        g_autofree char *size = size_text (by_kind[kind]), *text = g_strdup_printf ("%s %s", names[kind], size);
        sample (&legend, text, (CoopKind) kind, TRUE, COOP_PIN_NONE, FALSE);
      }
  sample (&legend, "pinned: may not be evicted now", COOP_KIND_ACTIVATION, TRUE, COOP_PIN_CONSTANT, FALSE);
  if (map->pending)
    sample (&legend, "freed, waits for a stream", COOP_KIND_ACTIVATION, TRUE, COOP_PIN_PENDING, FALSE);
  sample (&legend, "hole, its size inside (the largest tinted)", COOP_KIND_UNKNOWN, FALSE, COOP_PIN_NONE, FALSE);
  if (map->voids)
    sample (&legend, "not backed by the device", COOP_KIND_UNMANAGED, FALSE, COOP_PIN_NONE, FALSE);
  if (map->victims->len > 0)
    sample (&legend, "where the last victims lay", COOP_KIND_UNKNOWN, FALSE, COOP_PIN_NONE, TRUE);
  if (map->totals->budget > 0 && !map->voids)
    budget_sample (&legend, map->totals->budget);
  write_age (&legend);
  return legend.y + COOP_LEGEND_ROW - y;
}

static gboolean
load (const CoopExportJob *job, Map *map, GError **error)
{
  map->at = job->options->at != NULL ? job->options->at : "peak";
  if (!coop_reader_instant (job->reader, map->at, &map->seq, error))
    return FALSE;
  map->model = coop_reader_model_at (job->reader, map->seq, error);
  if (map->model == NULL)
    return FALSE;
  map->totals = coop_model_totals (map->model);
  gather (map);
  return TRUE;
}

gboolean
coop_page_map (const CoopExportJob *job, CoopPage *page, GString *description, GError **error)
{
  Map map = { .pieces = g_array_new (FALSE, FALSE, sizeof (CoopMapPiece)), .drawn = g_array_new (FALSE, FALSE, sizeof (CoopDrawPiece)),
              .victims = g_array_new (FALSE, FALSE, sizeof (CoopDrawRange)) };
  gboolean done = load (job, &map, error);
  if (done)
    {
      write_head (job, page, &map, description);
      double factor = job->options->format == COOP_EXPORT_SVG ? SVG_SCALE : page->scale;
      double x = COOP_PAGE_MARGIN + ADDRESSES, y = ceil (page->y + 10), bottom = page->height - BELOW - write_legend (page, &map, 0, TRUE);
      CoopMapView view = lay_out (page, &map, factor, page->width - x - COOP_PAGE_MARGIN, bottom - y);
      paint_map (page, &map, &view, factor, x, y);
      write_addresses (page, &view, factor, x, y);
      write_scale (page, &view, factor, x, bottom + 22);
      write_legend (page, &map, bottom + 38, FALSE);
    }
  g_array_unref (map.pieces);
  g_array_unref (map.drawn);
  g_array_unref (map.victims);
  coop_model_free (map.model);
  return done;
}
