/* SPDX-License-Identifier: Apache-2.0 */
/* Geometry of the map: layout, round trips, rectangles that tile, lookups against a linear search. */
#include <math.h>

#include "pieces.h"

#define ROUNDS 400

static guint64
random_bytes (void)
{
  return (guint64) g_test_rand_int_range (1, 2000000) << g_test_rand_int_range (0, 20);
}

static int
rows_needed (guint64 bytes, double scale, int width)
{
  return (int) ceil (ceil ((double) bytes / scale) / width);
}

static void
test_layout (void)
{
  for (int i = 0; i < ROUNDS; i++)
    {
      CoopMapView wanted = { .bytes = random_bytes (), .width = g_test_rand_int_range (1, 2000),
                             .height = g_test_rand_int_range (1, 1200), .row_height = 20, .gap = 3 };
      CoopMapView view = wanted;
      int exponent;
      coop_map_layout (&view);
      g_assert_cmpfloat (frexp (view.bytes_per_pixel, &exponent), ==, 0.5);
      g_assert_cmpint (view.rows, ==, rows_needed (view.bytes, view.bytes_per_pixel, view.width));
      /* it fits, but for an area too low for one row of the least height */
      int used = view.rows * view.row_height + (view.rows - 1) * view.gap;
      g_assert_cmpint (used, <=, MAX (view.height, 1));
      if (view.height >= wanted.row_height)
        {
          g_assert_cmpint (view.row_height, >=, wanted.row_height);
          /* and at half the scale it would not */
          int rows = rows_needed (view.bytes, view.bytes_per_pixel / 2, view.width);
          if (view.bytes_per_pixel > 1)
            g_assert_cmpint (rows * 20 + (rows - 1) * 3, >, view.height);
        }
    }
}

static void
test_layout_of_nothing (void)
{
  CoopMapView view = { .bytes = 4096, .width = 0, .height = 10 };
  uint64_t addr;
  coop_map_layout (&view);
  g_assert_cmpint (view.rows, ==, 0);
  g_assert_false (coop_map_addr_at (&view, 0, 0, &addr));
  g_assert_cmpuint (coop_map_rects (&view, 0, 4096, NULL, 0), ==, 0);
}

static void
test_extent (void)
{
  g_assert_cmpuint (coop_map_extent (340 << 20, 0), ==, 352 << 20);
  g_assert_cmpuint (coop_map_extent (512 << 20, 100), ==, 512 << 20);
  g_assert_cmpuint (coop_map_extent (0, (512 << 20) + 1), ==, 576 << 20);
  for (int i = 0; i < ROUNDS; i++)
    {
      guint64 budget = random_bytes (), end = random_bytes (), most = MAX (budget, end);
      guint64 extent = coop_map_extent (budget, end);
      g_assert_cmpuint (extent, >=, most);
      if (most > 1024)
        g_assert_cmpuint (extent - most, <, most / 8 + 1);
      g_assert_cmpuint (coop_map_extent (extent, 0), ==, extent);
    }
}

/* Pixel -> address -> rectangle of that byte: it holds the pixel, and nothing left of it does. */
static void
test_round_trip (void)
{
  for (int i = 0; i < ROUNDS; i++)
    {
      CoopMapView view = random_view (random_bytes ());
      for (int k = 0; k < 50; k++)
        {
          int x = g_test_rand_int_range (0, view.width), y = g_test_rand_int_range (0, view.height);
          int row = y / (view.row_height + view.gap);
          gboolean in_row = y % (view.row_height + view.gap) < view.row_height && row < view.rows;
          double offset = ((double) row * view.width + x) * view.bytes_per_pixel;
          uint64_t addr = 0;
          gboolean hit = coop_map_addr_at (&view, x + 0.5, y + 0.5, &addr);
          g_assert_cmpint (hit, ==, in_row && offset < (double) view.bytes);
          if (!hit)
            continue;
          CoopRect rect;
          g_assert_cmpfloat ((double) addr, ==, offset);
          g_assert_cmpuint (coop_map_rects (&view, addr, 1, &rect, 1), ==, 1);
          g_assert_cmpint (rect.x, ==, x);
          g_assert_cmpint (rect.width, ==, 1);
          g_assert_true (y >= rect.y && y < rect.y + rect.height);
        }
    }
}

/* Rectangles of pieces cut at pixel borders cover every pixel of the map once. */
static void
test_rects_tile (void)
{
  for (int i = 0; i < ROUNDS; i++)
    {
      CoopMapView view = random_view ((guint64) g_test_rand_int_range (1, 500000) * 64);
      guint64 unit = (guint64) view.bytes_per_pixel;
      g_autoptr (GArray) pieces = random_pieces (view.bytes, unit, 2000, FALSE);
      g_autofree guint8 *seen = g_new0 (guint8, (gsize) view.width * view.height);
      for (guint p = 0; p < pieces->len; p++)
        {
          CoopDrawPiece *piece = &g_array_index (pieces, CoopDrawPiece, p);
          size_t n = coop_map_rects (&view, piece->addr, piece->bytes, NULL, 0);
          g_autofree CoopRect *rects = g_new (CoopRect, n);
          g_assert_cmpuint (coop_map_rects (&view, piece->addr, piece->bytes, rects, n), ==, n);
          for (size_t r = 0; r < n; r++)
            for (int y = rects[r].y; y < rects[r].y + rects[r].height && y < view.height; y++)
              for (int x = rects[r].x; x < rects[r].x + rects[r].width; x++)
                g_assert_cmpint (seen[(gsize) y * view.width + x]++, ==, 0);
        }
      for (int y = 0; y < view.height; y++)
        for (int x = 0; x < view.width; x++)
          {
            uint64_t addr;
            gboolean inside = coop_map_addr_at (&view, x, y, &addr);
            g_assert_cmpint (seen[(gsize) y * view.width + x], ==, inside ? 1 : 0);
          }
    }
}

static void
test_lookup (void)
{
  for (int i = 0; i < ROUNDS; i++)
    {
      CoopMapView view = random_view ((guint64) g_test_rand_int_range (1, 20000));
      g_autoptr (GArray) array = random_pieces (view.bytes, 1, 300, TRUE);
      const CoopDrawPiece *pieces = (const CoopDrawPiece *) array->data;
      for (int k = 0; k < 60; k++)
        {
          guint64 addr = (guint64) g_test_rand_int_range (0, (gint32) view.bytes + 50);
          long expected = -1;
          for (guint p = 0; p < array->len; p++)
            if (addr >= pieces[p].addr && addr < pieces[p].addr + pieces[p].bytes)
              expected = p;
          g_assert_cmpint (coop_map_piece_at (pieces, array->len, addr), ==, expected);

          int x = g_test_rand_int_range (0, view.width), y = g_test_rand_int_range (0, view.height);
          guint64 most = 0;
          expected = -1;
          if (coop_map_addr_at (&view, x, y, &addr))
            for (guint p = 0; p < array->len; p++)
              {
                guint64 covered = 0;
                for (guint64 b = addr; b < addr + (guint64) view.bytes_per_pixel; b++)
                  covered += b >= pieces[p].addr && b < pieces[p].addr + pieces[p].bytes;
                if (covered > most)
                  {
                    most = covered;
                    expected = p;
                  }
              }
          g_assert_cmpint (coop_map_piece_under (&view, pieces, array->len, x, y), ==, expected);
        }
    }
}

/* What lies under the pointer stays there, all is within the extent, and the way back is the same. */
static void
test_zoom (void)
{
  for (int i = 0; i < ROUNDS; i++)
    {
      CoopMapView full = random_view (random_bytes ()), view = full;
      double x = g_test_rand_int_range (0, full.width), y = g_test_rand_int_range (0, full.height);
      guint64 before, after;
      int level = g_test_rand_int_range (1, 12);
      if (!coop_map_addr_at (&full, x, y, &before))
        continue;
      coop_map_zoom (&view, level, coop_map_zoom_from (&full, level, x, y));
      double unit = view.bytes_per_pixel;
      g_assert_cmpfloat (unit * (1 << view.zoom), ==, full.bytes_per_pixel);
      g_assert_cmpuint (view.from % (guint64) unit, ==, 0);
      g_assert_cmpuint (view.from + view.bytes, <=, full.bytes);
      g_assert_cmpuint (view.rows, ==, full.rows);
      if (view.zoom == level && coop_map_zoom_from (&full, level, x, y) == view.from)
        {
          g_assert_true (coop_map_addr_at (&view, x, y, &after));
          g_assert_cmpuint (after, ==, before);
        }
      /* one row down by hand is one row of bytes */
      guint64 row = (guint64) unit * (guint64) view.width;
      guint64 panned = coop_map_pan_from (&view, 0, -(view.row_height + view.gap));
      g_assert_cmpuint (panned, ==, view.from + row);
      coop_map_zoom (&view, 0, 0);
      g_assert_cmpmem (&view.bytes, sizeof view.bytes, &full.bytes, sizeof full.bytes);
      g_assert_cmpfloat (view.bytes_per_pixel, ==, full.bytes_per_pixel);
      g_assert_cmpuint (view.from, ==, 0);
    }
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  g_test_add_func ("/draw/geometry/layout", test_layout);
  g_test_add_func ("/draw/geometry/layout-of-nothing", test_layout_of_nothing);
  g_test_add_func ("/draw/geometry/extent", test_extent);
  g_test_add_func ("/draw/geometry/round-trip", test_round_trip);
  g_test_add_func ("/draw/geometry/rects-tile", test_rects_tile);
  g_test_add_func ("/draw/geometry/lookup", test_lookup);
  g_test_add_func ("/draw/geometry/zoom", test_zoom);
  return g_test_run ();
}
