/* SPDX-License-Identifier: Apache-2.0 */
/* Format: numbers and words for people. All results are to be freed with g_free. */
#pragma once

#include <glib.h>

G_BEGIN_DECLS

/* "37.7 MiB" */
char *coop_format_bytes (guint64 bytes);
/* "0x1a00000", as the map and the trace name addresses. */
char *coop_format_addr (guint64 addr);
/* "12.4 ms", three digits. */
char *coop_format_ns (guint64 ns);
/* "1,234,567" by the locale. */
char *coop_format_count (guint64 n);
/* "h 0.04": the score of a victim; infinite if it was never used. */
char *coop_format_score (double h);
/* "0:42" or "1:02:03" */
char *coop_format_clock (guint64 ns);

G_END_DECLS
