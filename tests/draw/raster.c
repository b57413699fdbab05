/* SPDX-License-Identifier: Apache-2.0 */
/* Raster of the map against an oracle that asks for every pixel, byte by byte, what is there, and
 * follows the layers listed in draw/map.h; and how long a million pieces take.
 */
#include <string.h>
#include <time.h>

#include "pieces.h"

/* ---- the oracle ---- */

typedef struct {
  gboolean any, used, pinned, pending, begins, ends;
  guint kind, mark, age;
} Column;

static gboolean
same_class (const CoopDrawPiece *a, const CoopDrawPiece *b)
{
  gboolean void_a = !a->used && a->kind == COOP_KIND_UNMANAGED, void_b = !b->used && b->kind == COOP_KIND_UNMANAGED;
  if (void_a || void_b)
    return void_a && void_b;
  if (a->used != b->used || a->mark != b->mark)
    return FALSE;
  return !a->used || (a->kind == b->kind && !a->pin == !b->pin
                      && (a->pin == COOP_PIN_PENDING) == (b->pin == COOP_PIN_PENDING));
}

static Column
look (const CoopDrawPiece *pieces, guint n, guint64 from, guint64 to, guint64 unit)
{
  Column column = { 0 };
  guint64 most = 0;
  for (guint i = 0; i < n; i++)
    {
      guint64 end = pieces[i].addr + pieces[i].bytes, bytes = 0, ages = 0;
      gboolean nothing = !pieces[i].used && pieces[i].kind == COOP_KIND_UNMANAGED;
      gboolean wide = !nothing && (end - 1) / unit - pieces[i].addr / unit >= 4;
      column.begins |= wide && pieces[i].addr / unit == from / unit;
      column.ends |= wide && (end - 1) / unit == from / unit;
      for (guint j = 0; j < n; j++)
        if (same_class (&pieces[i], &pieces[j]))
          for (guint64 b = from; b < to; b++)
            if (b >= pieces[j].addr && b < pieces[j].addr + pieces[j].bytes)
              {
                bytes++;
                ages += pieces[j].age;
              }
      if (bytes > most && pieces[i].addr < to && end > from)
        {
          most = bytes;
          column.any = !nothing;
          column.used = pieces[i].used;
          column.pinned = pieces[i].used && pieces[i].pin;
          column.pending = pieces[i].pin == COOP_PIN_PENDING;
          column.kind = pieces[i].kind;
          column.mark = pieces[i].mark;
          column.age = (guint) (ages / bytes);
        }
    }
  return column;
}

static guint32
expected_color (const CoopMapView *view, Column column, int x, int line, int y, int h)
{
  bool dark = view->dark, contrast = view->contrast;
  guint32 ink[COOP_N_INKS], color;
  for (int i = 0; i < COOP_N_INKS; i++)
    ink[i] = coop_map_ink ((CoopMapInk) i, dark, contrast);
  gboolean beyond = column.mark & COOP_MARK_BEYOND, largest = column.mark & COOP_MARK_LARGEST;

  if (!column.any)
    color = ink[COOP_INK_PAGE];
  else if (column.used)
    color = coop_map_shade (coop_map_kind_color (column.kind, dark, contrast), (guint8) column.age, dark,
                            contrast);
  else
    color = ink[beyond ? COOP_INK_BEYOND : largest ? COOP_INK_LARGEST : COOP_INK_HOLE];
  if (column.any && column.used)
    {
      guint32 base = color;
      if (column.pinned && (column.pending ? x + 6000 - line : x + line) % 6 < 2)
        color = coop_map_hatch (base, contrast);
      if (column.begins)
        color = coop_map_edge (base, dark);
    }
  if (column.any && !column.used && !beyond)
    {
      int thick = largest ? 2 : 1;
      if (y < thick || y >= h - thick || column.begins || column.ends)
        color = ink[largest ? COOP_INK_STRONG : COOP_INK_OUTLINE];
    }
  if (column.any && column.mark & COOP_MARK_VICTIM && y >= h - 3)
    color = ink[COOP_INK_WARN];
  if (column.any && column.used && beyond && y < 3)
    color = ink[COOP_INK_WARN];
  if (column.any && column.mark & COOP_MARK_SELECTED && (y < 2 || y >= h - 2))
    color = ink[COOP_INK_STRONG];
  return color;
}

static void
compare (const CoopMapView *view, GArray *array)
{
  const CoopDrawPiece *pieces = (const CoopDrawPiece *) array->data;
  gsize stride = (gsize) view->width * 4 + 8;
  g_autofree guint32 *pixels = g_malloc (stride * (gsize) view->height);
  guint64 unit = (guint64) view->bytes_per_pixel;
  int pitch = view->row_height + view->gap;

  memset (pixels, 0x55, stride * (gsize) view->height);
  coop_map_raster (view, pieces, array->len, pixels, stride);
  for (int row = 0; row <= view->height / pitch; row++)
    for (int x = 0; x < view->width; x++)
      {
        guint64 from = view->from + ((guint64) row * view->width + x) * unit;
        guint64 to = MIN (from + unit, view->from + view->bytes);
        Column column = { 0 };
        if (row < view->rows && from < to)
          column = look (pieces, array->len, from, to, unit);
        if (row < view->rows && from < to && !column.any && view->budget > 0 && from >= view->budget)
          column = (Column) { .any = TRUE, .mark = COOP_MARK_BEYOND };
        int h = MIN (view->row_height, view->height - row * pitch);
        for (int y = 0; y < pitch && row * pitch + y < view->height; y++)
          {
            int line = row * pitch + y;
            guint32 color = expected_color (view, column, x, line, y, h);
            if (y >= view->row_height)
              color = coop_map_ink (COOP_INK_PAGE, view->dark, view->contrast);
            else if (row < view->rows && view->budget > 0 && view->budget < view->from + view->bytes
                     && view->budget / unit == from / unit)
              color = coop_map_ink (COOP_INK_WARN, view->dark, view->contrast);
            guint32 got = ((guint32 *) (gpointer) ((char *) pixels + stride * (gsize) line))[x];
            if (got != color)
              g_error ("%dx%d, rows %d of %d, unit %" G_GUINT64_FORMAT ": pixel %d,%d is %08x, not %08x",
                       view->width, view->height, view->rows, view->row_height, unit, x, line, got,
                       color);
          }
      }
  for (int line = 0; line < view->height; line++)  /* nothing is written past a line */
    g_assert_cmpint (((guint8 *) pixels)[stride * (gsize) line + (gsize) view->width * 4], ==, 0x55);
}

static void
test_oracle (void)
{
  for (int i = 0; i < 150; i++)
    {
      guint64 bytes = (guint64) g_test_rand_int_range (1, 3000);
      gint32 most = 1 << g_test_rand_int_range (0, 10);
      CoopMapView view = random_view (bytes);
      view.width = MIN (view.width, 60);
      view.height = MIN (view.height, 80);
      view.row_height = g_test_rand_int_range (1, 25);
      coop_map_layout (&view);
      g_autoptr (GArray) pieces = random_pieces (bytes, MAX (1, bytes / 60), MAX (1, most / 16), TRUE);
      compare (&view, pieces);
      coop_map_zoom (&view, g_test_rand_int_range (0, 5), (guint64) g_test_rand_int_range (0, (gint32) bytes));
      compare (&view, pieces);
    }
}

static void
test_by_hand (void)
{
  /* 16 bytes on 8 x 1 pixels of 2 bytes: used blue, a hole of 3 pixels, one pixel shared 1:1 */
  CoopDrawPiece pieces[] = {
    { 0, 8, 1, COOP_KIND_STATE, COOP_PIN_NONE, 0, 0 },
    { 8, 5, 0, 0, 0, 0, 0 },
    { 13, 3, 1, COOP_KIND_ACTIVATION, COOP_PIN_NONE, 0, 0 },
  };
  CoopMapView view = { .bytes = 16, .width = 8, .height = 9, .row_height = 9 };
  guint32 pixels[9][8];
  coop_map_layout (&view);
  g_assert_cmpfloat (view.bytes_per_pixel, ==, 2);
  coop_map_raster (&view, pieces, 3, pixels[0], sizeof pixels[0]);
  guint32 blue = coop_map_kind_color (COOP_KIND_STATE, false, false);
  guint32 orange = coop_map_kind_color (COOP_KIND_ACTIVATION, false, false);
  guint32 hole = coop_map_ink (COOP_INK_HOLE, false, false);
  guint32 row[8] = { blue, blue, blue, blue, hole, hole, hole, orange };
  g_assert_cmpmem (pixels[4], sizeof row, row, sizeof row);
  for (int x = 4; x < 7; x++)
    g_assert_cmphex (pixels[0][x], ==, coop_map_ink (COOP_INK_OUTLINE, false, false));
}

/* Relative luminance of sRGB, then CIE L*. */
static double
lightness (guint32 color)
{
  double y = 0, weight[] = { 0.0722, 0.7152, 0.2126 };
  for (int i = 0; i < 3; i++)
    {
      double c = (color >> (8 * i) & 0xff) / 255.0;
      double linear = c / 12.92;
      if (c > 0.04045)
        {
          /* ((c + 0.055) / 1.055) ^ 2.4 = x^2 * (x^2)^(1/5); fifth root by Newton */
          double x = (c + 0.055) / 1.055, square = x * x, root = 1;
          for (int k = 0; k < 60; k++)
            root -= (root * root * root * root * root - square) / (5 * root * root * root * root);
          linear = square * root;
        }
      y += weight[i] * linear;
    }
  double t = 1;
  for (int k = 0; k < 60; k++)
    t -= (t * t * t - y) / (3 * t * t);
  return 116 * t - 16;
}

static void
test_kinds_differ_in_grey (void)
{
  for (int theme = 0; theme < 4; theme++)
    for (int a = 0; a < COOP_N_KINDS; a++)
      for (int b = 0; b < a; b++)
        {
          double d = lightness (coop_map_kind_color (a, theme & 1, theme & 2))
                     - lightness (coop_map_kind_color (b, theme & 1, theme & 2));
          g_assert_cmpfloat (d * d, >=, 8 * 8);
        }
}

static void
test_swatch (void)
{
  guint32 pixels[16][24];
  coop_map_swatch (COOP_KIND_GRADIENT, true, COOP_PIN_NONE, false, true, false, pixels[0], 24, 16,
                   sizeof pixels[0]);
  for (int y = 0; y < 16; y++)
    for (int x = 0; x < 24; x++)
      g_assert_cmphex (pixels[y][x], ==, coop_map_kind_color (COOP_KIND_GRADIENT, true, false));
  coop_map_swatch (COOP_KIND_UNKNOWN, false, COOP_PIN_NONE, false, false, false, pixels[0], 24, 16,
                   sizeof pixels[0]);
  g_assert_cmphex (pixels[8][0], ==, coop_map_ink (COOP_INK_OUTLINE, false, false));
  g_assert_cmphex (pixels[8][12], ==, coop_map_ink (COOP_INK_HOLE, false, false));
  g_assert_cmphex (pixels[8][23], ==, coop_map_ink (COOP_INK_OUTLINE, false, false));
}

/* Addresses that no memory backs are the page, without an outline, whatever mark they carry; freed blocks
 * that wait are hatched the other way. */
static void
test_void_and_pending (void)
{
  CoopDrawPiece pieces[] = {
    { 0, 60, 0, COOP_KIND_UNMANAGED, COOP_PIN_NONE, 0, COOP_MARK_LARGEST },
    { 60, 60, 1, COOP_KIND_STATE, COOP_PIN_PENDING, 0, 0 },
    { 120, 60, 1, COOP_KIND_STATE, COOP_PIN_CONSTANT, 0, 0 },
  };
  CoopMapView view = { .bytes = 180, .width = 180, .height = 24, .row_height = 24 };
  guint32 pixels[24][180], page = coop_map_ink (COOP_INK_PAGE, false, false);
  guint32 blue = coop_map_kind_color (COOP_KIND_STATE, false, false), dark = coop_map_hatch (blue, false);
  g_assert_true (coop_draw_is_void (&pieces[0]) && !coop_draw_is_hole (&pieces[0]) && !coop_draw_is_void (&pieces[1]));
  coop_map_layout (&view);
  coop_map_raster (&view, pieces, 3, pixels[0], sizeof pixels[0]);
  for (int y = 0; y < 24; y++)
    for (int x = 0; x < 60; x++)
      g_assert_cmphex (pixels[y][x], ==, page);
  for (int y = 0; y < 24; y++)
    for (int x = 1; x < 60; x++)
      {
        g_assert_cmphex (pixels[y][60 + x], ==, (60 + x + 24 - y) % 6 < 2 ? dark : blue);
        g_assert_cmphex (pixels[y][120 + x], ==, (120 + x + y) % 6 < 2 ? dark : blue);
      }
}

static double
cpu_ms (void)
{
  struct timespec t;
  clock_gettime (CLOCK_THREAD_CPUTIME_ID, &t);
  return (double) t.tv_sec * 1e3 + (double) t.tv_nsec / 1e6;
}

/* A frame at 30 a second. Time of this thread alone, best of ten: others may be busy. */
static void
test_million (void)
{
  g_autoptr (GArray) pieces = random_pieces (3000000, 1, 5, FALSE);
  g_autofree guint32 *pixels = g_new (guint32, 1600 * 900);
  CoopMapView view = { .bytes = 3000000, .width = 1600, .height = 900, .gap = 3 };
  double best = G_MAXDOUBLE;
  g_array_set_size (pieces, 1000000);
  for (int i = 0; i < 10; i++)
    {
      double begin = cpu_ms ();
      view.row_height = 20;
      coop_map_layout (&view);
      coop_map_raster (&view, (CoopDrawPiece *) pieces->data, pieces->len, pixels, 1600 * 4);
      best = MIN (best, cpu_ms () - begin);
    }
  g_test_message ("1000000 pieces on 1600 x 900: %.1f ms", best);
  g_assert_cmpfloat (best, <, 33);
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  g_test_add_func ("/draw/raster/by-hand", test_by_hand);
  g_test_add_func ("/draw/raster/oracle", test_oracle);
  g_test_add_func ("/draw/raster/kinds-differ-in-grey", test_kinds_differ_in_grey);
  g_test_add_func ("/draw/raster/swatch", test_swatch);
  g_test_add_func ("/draw/raster/void-and-pending", test_void_and_pending);
  g_test_add_func ("/draw/raster/million", test_million);
  return g_test_run ();
}
