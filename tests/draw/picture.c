/* SPDX-License-Identifier: Apache-2.0 */
/* Text on the map: written where it fits whole, never outside its hole, the same every time. */
#include <string.h>

#include "draw/picture.h"
#include "draw/text.h"
#include "pieces.h"

static CoopMapView
one_row (void)
{
  CoopMapView view = { .bytes = 1000, .width = 1000, .height = 30, .row_height = 30 };
  coop_map_layout (&view);
  g_assert_cmpfloat (view.bytes_per_pixel, ==, 1);
  return view;
}

/* Number of pixels that text changed, and where. */
static int
written (int hole, int *left, int *right)
{
  CoopDrawPiece pieces[] = {
    { 0, 400, 1, COOP_KIND_STATE, COOP_PIN_CONSTANT, 9, 0 },
    { 400, (guint64) hole, 0, 0, 0, 0, 0 },
    { (guint64) (400 + hole), (guint64) (600 - hole), 1, COOP_KIND_OTHER, COOP_PIN_NONE, 9, 0 },
  };
  CoopMapView view = one_row ();
  static guint32 plain[30][1000], text[30][1000];
  int n = 0;
  coop_map_raster (&view, pieces, 3, plain[0], sizeof plain[0]);
  coop_picture_map (&view, 1, pieces, 3, NULL, 0, text[0], sizeof text[0]);
  *left = 1000;
  *right = -1;
  for (int y = 0; y < 30; y++)
    for (int x = 0; x < 1000; x++)
      if (plain[y][x] != text[y][x])
        {
          n++;
          *left = MIN (*left, x);
          *right = MAX (*right, x);
        }
  return n;
}

static void
test_fits (void)
{
  int left, right;
  g_assert_cmpint (written (200, &left, &right), >, 0);
  g_assert_cmpint (left, >, 400);
  g_assert_cmpint (right, <, 599);
  g_assert_cmpint (ABS ((left - 400) - (600 - right)), <=, 6);  /* in the middle */
  g_assert_cmpint (written (24, &left, &right), ==, 0);
  for (int hole = 25; hole < 120; hole++)
    if (written (hole, &left, &right) > 0)
      {
        g_assert_cmpint (left, >, 401);
        g_assert_cmpint (right, <, 399 + hole);
      }
}

static void
test_same_again (void)
{
  g_autoptr (GArray) pieces = random_pieces (40000, 1, 2000, FALSE);
  CoopMapView view = { .bytes = 40000, .width = 500, .height = 300, .row_height = 20, .gap = 2 };
  g_autofree guint32 *a = g_new (guint32, 500 * 300), *b = g_new (guint32, 500 * 300);
  coop_map_layout (&view);
  coop_picture_map (&view, 1, (CoopDrawPiece *) pieces->data, pieces->len, NULL, 0, a, 2000);
  coop_picture_map (&view, 1, (CoopDrawPiece *) pieces->data, pieces->len, NULL, 0, b, 2000);
  g_assert_cmpmem (a, 500 * 300 * 4, b, 500 * 300 * 4);
}

/* Exactly the columns of the range, and the three lowest lines of its rows. */
static void
test_underline (void)
{
  CoopMapView view = { .bytes = 400, .width = 100, .height = 86, .row_height = 20, .gap = 2 };
  CoopDrawPiece piece = { 0, 400, 1, COOP_KIND_STATE, COOP_PIN_NONE, 0, 0 };
  CoopDrawRange range = { 150, 60 };
  static guint32 plain[86][100], marked[86][100];
  coop_map_layout (&view);
  g_assert_cmpint (view.rows, ==, 4);
  coop_picture_map (&view, 1, &piece, 1, NULL, 0, plain[0], sizeof plain[0]);
  coop_picture_map (&view, 1, &piece, 1, &range, 1, marked[0], sizeof marked[0]);
  for (int y = 0; y < 86; y++)
    for (int x = 0; x < 100; x++)
      {
        int column = y / 22 * 100 + x, line = y % 22;
        gboolean in = column >= 150 && column < 210 && line >= 17 && line < 20;
        g_assert_cmphex (marked[y][x], ==, in ? coop_map_ink (COOP_INK_WARN, false, false) : plain[y][x]);
      }
}

static void
test_sizes (void)
{
  static const struct { guint64 bytes; const char *text; } cases[] = {
    { 0, "0 B" }, { 512, "512 B" }, { 1536, "1.5 KiB" }, { 512ull << 20, "512 MiB" },
    { 39531315, "37.7 MiB" }, { 1ull << 40, "1 TiB" }, { G_MAXUINT64, "16 EiB" },
  };
  for (gsize i = 0; i < G_N_ELEMENTS (cases); i++)
    {
      char text[32];
      coop_text_size (cases[i].bytes, text, sizeof text);
      g_assert_cmpstr (text, ==, cases[i].text);
    }
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  g_test_add_func ("/draw/picture/fits", test_fits);
  g_test_add_func ("/draw/picture/same-again", test_same_again);
  g_test_add_func ("/draw/picture/underline", test_underline);
  g_test_add_func ("/draw/picture/sizes", test_sizes);
  return g_test_run ();
}
