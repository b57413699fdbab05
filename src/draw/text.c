/* SPDX-License-Identifier: Apache-2.0 */
/* Text helpers: fixed font options, short sizes. */
#include "draw/text.h"

#include <stdio.h>

void
coop_text_font (cairo_t *cr, double size, bool bold)
{
  cairo_font_options_t *options = cairo_font_options_create ();
  cairo_font_options_set_antialias (options, CAIRO_ANTIALIAS_GRAY);
  cairo_font_options_set_hint_style (options, CAIRO_HINT_STYLE_SLIGHT);
  cairo_font_options_set_hint_metrics (options, CAIRO_HINT_METRICS_ON);
  cairo_set_font_options (cr, options);
  cairo_font_options_destroy (options);
  cairo_select_font_face (cr, "sans-serif", CAIRO_FONT_SLANT_NORMAL,
                          bold ? CAIRO_FONT_WEIGHT_BOLD : CAIRO_FONT_WEIGHT_NORMAL);
  cairo_set_font_size (cr, size);
}

void
coop_text_color (cairo_t *cr, uint32_t argb, double alpha)
{
  cairo_set_source_rgba (cr, (argb >> 16 & 0xff) / 255.0, (argb >> 8 & 0xff) / 255.0,
                         (argb & 0xff) / 255.0, alpha);
}

void
coop_text_size (uint64_t bytes, char *out, size_t size)
{
  static const char *const units[] = { "B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB" };
  double value = (double) bytes;
  int unit = 0;
  while (value >= 1024 && unit < 6)
    {
      value /= 1024;
      unit++;
    }
  double tenths = (double) (long long) (value * 10 + 0.5) / 10;
  bool whole = tenths == (double) (long long) tenths;
  snprintf (out, size, whole || tenths >= 100 ? "%.0f %s" : "%.1f %s", tenths, units[unit]);
}
