/* SPDX-License-Identifier: Apache-2.0 */
/* Random maps for the tests of this folder. */
#ifndef COOP_TEST_PIECES_H
#define COOP_TEST_PIECES_H

#include <glib.h>

#include "draw/map.h"

/* Pieces of 1..most units that tile [0, bytes); about one in eight is left out (nothing is there). */
static inline GArray *
random_pieces (guint64 bytes, guint64 unit, gint32 most, gboolean gaps)
{
  GArray *pieces = g_array_new (FALSE, TRUE, sizeof (CoopDrawPiece));
  for (guint64 addr = 0; addr < bytes;)
    {
      guint64 size = (guint64) g_test_rand_int_range (1, most + 1) * unit;
      size = MIN (size, bytes - addr);
      CoopDrawPiece piece = { .addr = addr, .bytes = size };
      piece.used = g_test_rand_int_range (0, 3) > 0;
      piece.kind = (guint8) g_test_rand_int_range (0, COOP_N_KINDS);
      piece.pin = (guint8) (g_test_rand_bit () ? g_test_rand_int_range (0, COOP_N_PINS) : 0);
      piece.age = (guint8) g_test_rand_int_range (0, 256);
      piece.mark = (guint32) (g_test_rand_bit () ? g_test_rand_int_range (0, 16) : 0);
      if (!gaps || g_test_rand_int_range (0, 8) > 0)
        g_array_append_val (pieces, piece);
      addr += size;
    }
  return pieces;
}

static inline CoopMapView
random_view (guint64 bytes)
{
  CoopMapView view = {
    .bytes = bytes,
    .width = g_test_rand_int_range (1, 300),
    .height = g_test_rand_int_range (1, 300),
    .row_height = g_test_rand_int_range (1, 30),
    .gap = g_test_rand_int_range (0, 5),
    .dark = g_test_rand_bit (),
    .contrast = g_test_rand_bit (),
  };
  if (g_test_rand_bit ())
    view.budget = (guint64) g_test_rand_int_range (0, (gint32) MIN (bytes + 1, G_MAXINT32));
  coop_map_layout (&view);
  return view;
}

#endif
