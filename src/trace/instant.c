/* SPDX-License-Identifier: Apache-2.0 */
/* Instant: see the header. The peak is looked up in the levels of usage first, so that of a long trace
 * only the events of one millisecond are read. */
#include "trace/instant.h"

#include <string.h>

#include "trace/reader-private.h"
#include "trace/store-private.h"

static gboolean
refuse (GError **error, const char *format, const char *text)
{
  g_set_error (error, COOP_TRACE_ERROR, COOP_TRACE_ERROR_QUERY, format, text);
  return FALSE;
}

/* The last event at or before ts; -1 if the first comes later. Times and numbers grow together. */
static gint64
seq_before (CoopReader *reader, gint64 ts)
{
  gint64 lo = 0, hi = (gint64) MIN (coop_reader_last_seq (reader), G_MAXINT64 - 1) + 1;
  sqlite3_stmt *row = coop_reader_prepare (reader, "SELECT seq, ts FROM event WHERE seq >= ? ORDER BY seq LIMIT 1", NULL);
  while (row != NULL && lo < hi)
    {
      gint64 middle = lo + (hi - lo) / 2;
      sqlite3_bind_int64 (row, 1, middle);
      if (!coop_reader_step (reader, row, NULL) || sqlite3_column_int64 (row, 1) > ts)
        hi = middle;
      else
        lo = sqlite3_column_int64 (row, 0) + 1;
      sqlite3_reset (row);
    }
  sqlite3_finalize (row);
  return lo - 1;
}

static gint64
find_peak (CoopReader *reader)
{
  gint64 bucket = coop_reader_int (reader, "SELECT bucket FROM usage_lod WHERE level = 0 ORDER BY used_max DESC, bucket LIMIT 1", -1);
  const char *all = "SELECT seq FROM event ORDER BY used DESC, seq LIMIT 1";
  if (bucket < 0 || bucket >= G_MAXINT64 >> COOP_LOD_SHIFT (0)) /* none, or damaged */
    return coop_reader_int (reader, all, -1);
  gint64 from = seq_before (reader, (bucket << COOP_LOD_SHIFT (0)) - 1) + 1;
  gint64 to = seq_before (reader, ((bucket + 1) << COOP_LOD_SHIFT (0)) - 1);
  g_autofree char *sql = g_strdup_printf ("SELECT seq FROM event WHERE seq BETWEEN %" G_GINT64_FORMAT " AND %" G_GINT64_FORMAT
                                          " ORDER BY used DESC, seq LIMIT 1", from, to);
  gint64 found = coop_reader_int (reader, sql, -1);
  return found >= 0 ? found : coop_reader_int (reader, all, -1);
}

/* ns; -1 if it is no time. */
static gint64
parse_time (const char *text)
{
  static const struct { const char *unit; double ns; } units[] = { { "ns", 1 }, { "us", 1e3 }, { "ms", 1e6 }, { "s", 1e9 } };
  char *end;
  double value = g_ascii_strtod (text, &end);
  if (end == text || !(value >= 0))
    return -1;
  while (*end == ' ')
    end++;
  for (guint i = 0; i < G_N_ELEMENTS (units); i++)
    if (g_str_equal (end, units[i].unit) && value * units[i].ns < 9e18)
      return (gint64) (value * units[i].ns);
  return -1;
}

static gboolean
find_step (CoopReader *reader, const char *number, gint64 *seq, GError **error)
{
  guint64 step;
  if (!g_ascii_string_to_unsigned (number, 10, 0, G_MAXINT64, &step, NULL))
    return refuse (error, "step:%s: a number is wanted", number);
  g_autofree char *sql = g_strdup_printf ("SELECT min (event) FROM step WHERE step = %" G_GUINT64_FORMAT, step);
  *seq = coop_reader_int (reader, sql, -1);
  return *seq >= 0 || refuse (error, "there is no step %s in the trace", number);
}

static gboolean
find_number (CoopReader *reader, const char *text, gint64 *seq, GError **error)
{
  guint64 number, last = coop_reader_last_seq (reader);
  if (!g_ascii_string_to_unsigned (text, 10, 0, G_MAXINT64, &number, NULL))
    return refuse (error, "\"%s\" is no instant; one is: " COOP_INSTANTS, text);
  g_autofree char *after = g_strdup_printf ("%" G_GUINT64_FORMAT, last);
  *seq = (gint64) number;
  return number <= last || refuse (error, "the last event is %s", after);
}

gboolean
coop_reader_instant (CoopReader *reader, const char *text, guint64 *seq, GError **error)
{
  gint64 found = -1, ts = -1;
  if (coop_reader_last_seq (reader) == G_MAXUINT64)
    return refuse (error, "%s: the trace has no events", text);
  if (g_str_equal (text, "peak"))
    found = find_peak (reader);
  else if (g_str_equal (text, "end"))
    found = (gint64) coop_reader_last_seq (reader);
  else if (g_str_equal (text, "oom"))
    found = coop_reader_int (reader, "SELECT max (event) FROM oom", -1);
  else if (g_str_has_prefix (text, "step:"))
    {
      if (!find_step (reader, text + strlen ("step:"), &found, error))
        return FALSE;
    }
  else if ((ts = parse_time (text)) >= 0)
    found = seq_before (reader, ts);
  else if (!find_number (reader, text, &found, error))
    return FALSE;
  if (found < 0)
    return g_str_equal (text, "oom") ? refuse (error, "%s: every request was served", text)
                                     : refuse (error, "%s: there is no event then", text);
  *seq = (guint64) found;
  return TRUE;
}
