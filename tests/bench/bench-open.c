/* SPDX-License-Identifier: Apache-2.0 */
/* How soon a large trace shows something: totals, the first map, the first chart, any moment, a zoomed
 * chart; against the same questions asked of the raw rows.
 *
 *   bench-open FILE [EVENTS]     makes the file first if it is not there (10,000,000 events)
 */
#include <glib/gstdio.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>

#include "median.h"
#include "../trace/trace-support.h"

#define MOMENTS 200
#define WINDOWS 200
#define ROUNDS 5

static double
ms_since (gint64 start)
{
  return (double) (g_get_monotonic_time () - start) / 1e3;
}

typedef struct {
  const char *path;
  guint64 last, end_ts;
  CoopReader *reader;
} Bench;

static void
ask_info (Bench *b, guint round)
{
  CoopReader *reader = coop_reader_open (b->path, NULL);
  CoopTraceInfo info;
  g_assert_true (coop_reader_info (reader, &info, NULL));
  coop_trace_info_clear (&info);
  coop_reader_free (reader);
}

static void
pieces_at (CoopReader *reader, guint64 seq)
{
  g_autoptr (GArray) pieces = g_array_new (FALSE, FALSE, sizeof (CoopMapPiece));
  CoopModel *model = coop_reader_model_at (reader, seq, NULL);
  coop_model_pieces (model, pieces);
  g_assert_cmpuint (pieces->len, >, 0);
  coop_model_free (model);
}

static void
ask_map (Bench *b, guint round)
{
  CoopReader *reader = coop_reader_open (b->path, NULL);
  pieces_at (reader, b->last - 100); /* before all is let go */
  coop_reader_free (reader);
}

static void
ask_chart (Bench *b, guint round)
{
  CoopReader *reader = coop_reader_open (b->path, NULL);
  g_autoptr (GArray) usage = coop_reader_usage (reader, 0, b->end_ts, 1000, NULL);
  g_assert_cmpuint (usage->len, >, 100);
  coop_reader_free (reader);
}

static guint64
somewhere (guint round, guint64 end)
{
  return (guint64) ((double) end * 0.98 * (double) (round * 7919 % 1009) / 1009);
}

static void
ask_moment (Bench *b, guint round)
{
  pieces_at (b->reader, somewhere (round, b->last) + 10);
}

static void
ask_window (Bench *b, guint round)
{
  guint64 width = b->end_ts / b->last * 1000; /* about a thousand events */
  guint64 from = somewhere (round, b->end_ts);
  g_autoptr (GArray) usage = coop_reader_usage (b->reader, from, from + width, 500, NULL);
  g_assert_cmpuint (usage->len, >, 0);
}

/* The median in ms; the most through *most. */
static double
measure (Bench *b, void (*ask) (Bench *b, guint round), guint rounds, double *most)
{
  g_autofree double *ms = g_new (double, rounds);
  for (guint i = 0; i < rounds; i++)
    {
      gint64 start = g_get_monotonic_time ();
      ask (b, i);
      ms[i] = ms_since (start);
    }
  double middle = median (ms, rounds);
  *most = ms[rounds - 1];
  return middle;
}

static double
raw (const char *path, const char *sql)
{
  sqlite3 *db;
  sqlite3_stmt *row;
  gint64 start = g_get_monotonic_time ();
  g_assert_cmpint (sqlite3_open_v2 (path, &db, SQLITE_OPEN_READONLY, NULL), ==, SQLITE_OK);
  g_assert_cmpint (sqlite3_prepare_v2 (db, sql, -1, &row, NULL), ==, SQLITE_OK);
  while (sqlite3_step (row) == SQLITE_ROW)
    ;
  sqlite3_finalize (row);
  sqlite3_close (db);
  return ms_since (start);
}

int
main (int argc, char **argv)
{
  if (argc < 2)
    return 2;
  Bench b = { .path = argv[1] };
  if (!g_file_test (b.path, G_FILE_TEST_EXISTS))
    record_file (b.path, 1, argc > 2 ? g_ascii_strtoull (argv[2], NULL, 10) : 10000000);
  b.reader = coop_reader_open (b.path, NULL);
  b.last = coop_reader_last_seq (b.reader);
  CoopModel *model = coop_reader_model_at (b.reader, b.last, NULL);
  b.end_ts = coop_model_totals (model)->ts;
  coop_model_free (model);
  const struct {
    const char *name;
    void (*ask) (Bench *b, guint round);
    guint rounds;
    char *sql; /* NULL: nothing of raw rows compares */
  } asked[] = {
    { "info", ask_info, ROUNDS, g_strdup ("SELECT max(used), sum(kind = 12), sum(kind = 31) FROM event") },
    { "first_map", ask_map, ROUNDS,
      g_strdup_printf ("SELECT addr, bytes FROM block WHERE born_event <= %1$" G_GUINT64_FORMAT
                       " AND (died_event IS NULL OR died_event > %1$" G_GUINT64_FORMAT ") ORDER BY addr", b.last - 100) },
    { "first_chart", ask_chart, ROUNDS,
      g_strdup_printf ("SELECT ts / %" G_GUINT64_FORMAT " AS b, min(used), max(used) FROM event GROUP BY b", b.end_ts / 1000) },
    { "any_moment", ask_moment, MOMENTS, NULL },
    { "zoomed_window", ask_window, WINDOWS,
      g_strdup_printf ("SELECT ts, used, largest FROM event WHERE ts BETWEEN %" G_GUINT64_FORMAT " AND %" G_GUINT64_FORMAT,
                       b.end_ts / 2, b.end_ts / 2 + b.end_ts / b.last * 1000) },
  };
  printf ("# %" G_GUINT64_FORMAT " events\n", b.last + 1);
  for (guint i = 0; i < G_N_ELEMENTS (asked); i++)
    {
      double most, median = measure (&b, asked[i].ask, asked[i].rounds, &most);
      double rows = asked[i].sql != NULL ? raw (b.path, asked[i].sql) : 0;
      printf ("bench open_%s %.2f ms (most %.2f)", asked[i].name, median, most);
      if (rows > 0)
        printf (" ratio %.4f vs raw_rows (%.0f ms)", median / rows, rows);
      printf ("\n");
      fflush (stdout);
      g_free (asked[i].sql);
    }
  coop_reader_free (b.reader);
  return 0;
}
