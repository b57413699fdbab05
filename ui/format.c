/* SPDX-License-Identifier: Apache-2.0 */
/* Numbers and words for people. */
#include "format.h"

#include <math.h>

#include "core/policy.h"

char *
coop_format_bytes (guint64 bytes)
{
  char text[32];
  coop_size_format (bytes, text, sizeof text);
  return g_strdup (text);
}

char *
coop_format_addr (guint64 addr)
{
  return g_strdup_printf ("0x%" G_GINT64_MODIFIER "x", addr);
}

char *
coop_format_ns (guint64 ns)
{
  static const char *const units[] = { "ns", "µs", "ms", "s" };
  double value = (double) ns;
  guint unit = 0;
  while (value >= 999.5 && unit + 1 < G_N_ELEMENTS (units))
    {
      value /= 1000;
      unit++;
    }
  int digits = value >= 99.95 || unit == 0 ? 0 : value >= 9.995 ? 1 : 2;
  return g_strdup_printf ("%.*f %s", digits, value, units[unit]);
}

char *
coop_format_count (guint64 n)
{
  return g_strdup_printf ("%'" G_GINT64_MODIFIER "u", n);
}

char *
coop_format_clock (guint64 ns)
{
  guint64 seconds = ns / G_GUINT64_CONSTANT (1000000000);
  guint64 hours = seconds / 3600, minutes = seconds / 60 % 60;
  if (hours > 0)
    return g_strdup_printf ("%" G_GUINT64_FORMAT ":%02u:%02u", hours, (guint) minutes,
                            (guint) (seconds % 60));
  return g_strdup_printf ("%u:%02u", (guint) minutes, (guint) (seconds % 60));
}

char *
coop_format_score (double h)
{
  return isfinite (h) ? g_strdup_printf ("h %.3g", h) : g_strdup ("h ∞");
}
