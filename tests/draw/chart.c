/* SPDX-License-Identifier: Apache-2.0 */
/* Chart: time and bytes to pixels and back, lookups, and what is drawn where. */
#include "draw/chart.h"

#include <glib.h>
#include <math.h>

#include "draw/map.h"

#define MIB (1ull << 20)

static void
test_layout (void)
{
  CoopChartPoint points[] = { { 1000, 0, 10 * MIB, 0, 0, 340 * MIB, 0, 0 },
                              { 2000, 0, 100 * MIB, 0, 0, 340 * MIB, 0, 0 } };
  CoopChartView view = { .width = 800, .height = 160 };
  coop_chart_layout (&view, points, 2, 9000);
  g_assert_cmpuint (view.from_ts, ==, 1000);
  g_assert_cmpuint (view.to_ts, ==, 9000);
  g_assert_cmpuint (view.top, >=, 340 * MIB);
  g_assert_cmpfloat (coop_chart_x (&view, 1000), ==, view.x);
  g_assert_cmpfloat (coop_chart_x (&view, 9000), ==, view.x + view.w);
  g_assert_cmpfloat (coop_chart_x (&view, 5000), ==, view.x + view.w / 2);
  g_assert_cmpfloat (coop_chart_y (&view, 0), ==, view.y + view.h);
  g_assert_cmpfloat (coop_chart_y (&view, view.top), ==, view.y);
  g_assert_cmpuint (coop_chart_ts (&view, view.x + view.w / 4), ==, 3000);
  g_assert_cmpuint (coop_chart_ts (&view, -50), ==, 1000);
  g_assert_cmpuint (coop_chart_ts (&view, 5000), ==, 9000);
  g_assert_true (view.x > 0 && view.x + view.w < 800 && view.y + view.h < 160);
}

static void
test_nothing (void)
{
  CoopChartView view = { .width = 300, .height = 100 };
  cairo_surface_t *surface = cairo_image_surface_create (CAIRO_FORMAT_ARGB32, 300, 100);
  coop_chart_layout (&view, NULL, 0, 0);
  coop_chart_raster (&view, NULL, 0, (guint32 *) (gpointer) cairo_image_surface_get_data (surface),
                     (gsize) cairo_image_surface_get_stride (surface));
  cairo_surface_destroy (surface);
}

static void
test_point_at (void)
{
  for (int round = 0; round < 200; round++)
    {
      CoopChartPoint points[50] = { 0 };
      int n = g_test_rand_int_range (0, 50);
      guint64 ts = 0;
      for (int i = 0; i < n; i++)
        points[i].ts = ts += (guint64) g_test_rand_int_range (1, 10);
      guint64 at = (guint64) g_test_rand_int_range (0, 300);
      long expected = -1;
      for (int i = 0; i < n; i++)
        if (points[i].ts <= at)
          expected = i;
      g_assert_cmpint (coop_chart_point_at (points, (gsize) n, at), ==, expected);
    }
}

/* The budget line lies on its value, in the colour of the map's budget mark; a second value of the
 * budget makes a second line; used memory darkens all below it. */
static void
test_lines (void)
{
  CoopChartPoint points[] = { { 0, 0, 100 * MIB, 0, 0, 400 * MIB, 0, 0 },
                              { 500, 0, 100 * MIB, 0, 0, 300 * MIB, 3, 1 } };
  CoopChartView view = { .width = 400, .height = 200, .dark = TRUE };
  guint32 *pixels = g_new0 (guint32, 400 * 200);
  guint32 warn = coop_map_ink (COOP_INK_WARN, true, false);
  guint32 page = coop_map_ink (COOP_INK_PAGE, true, false);
  coop_chart_layout (&view, points, 2, 1000);
  coop_chart_raster (&view, points, 2, pixels, 1600);
  for (int part = 0; part < 2; part++)
    {
      int x = (int) (view.x + view.w * (part ? 0.75 : 0.25)), hits = 0;
      int wanted = (int) coop_chart_y (&view, points[part].budget);
      for (int y = 0; y < 200; y++)
        if (pixels[y * 400 + x] == warn)
          {
            hits++;
            g_assert_cmpint (ABS (y - wanted), <=, 1);
          }
      g_assert_cmpint (hits, >=, 1);
      g_assert_cmphex (pixels[(int) coop_chart_y (&view, 60 * MIB) * 400 + x], !=, page);
      g_assert_cmphex (pixels[(int) coop_chart_y (&view, 160 * MIB) * 400 + x], ==, page);
    }
  /* the mark of the evictions stands under its time */
  int x = (int) coop_chart_x (&view, 500);
  g_assert_cmphex (pixels[(int) (view.y + view.h + 4) * 400 + x], ==, warn);
  g_free (pixels);
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  g_test_add_func ("/draw/chart/layout", test_layout);
  g_test_add_func ("/draw/chart/nothing", test_nothing);
  g_test_add_func ("/draw/chart/point-at", test_point_at);
  g_test_add_func ("/draw/chart/lines", test_lines);
  return g_test_run ();
}
