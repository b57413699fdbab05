/* SPDX-License-Identifier: Apache-2.0 */
/* Traces that may not grow, and slim ones: what they hold is what the whole trace holds there. */
#include <sqlite3.h>

#include "trace-support.h"

#define EVENTS 120000
#define LIMIT (4u << 20)

static void
record_limited (const char *path, guint32 seed, guint64 limit, CoopTraceDetail detail, guint64 *most)
{
  GError *error = NULL;
  CoopGen *gen = coop_gen_new (seed, BUDGET);
  CoopModel *model = coop_model_new ();
  CoopStore *store = coop_store_create (path, NULL, &error);
  g_assert_no_error (error);
  coop_store_set_limits (store, limit, detail);
  for (guint64 i = 0; i < EVENTS; i += 4096)
    {
      GStatBuf st;
      record (gen, model, store, 4096);
      if (most != NULL && g_stat (path, &st) == 0)
        *most = MAX (*most, (guint64) st.st_size);
    }
  coop_gen_finish (gen, 0);
  record (gen, model, store, G_MAXUINT64);
  g_assert_cmpuint (coop_store_trimmed (store) > 0, ==, limit > 0);
  g_assert_true (coop_store_close (store, COOP_RUN_ENDED, 0, &error));
  g_assert_no_error (error);
  coop_model_free (model);
  coop_gen_free (gen);
}

static void
assert_sound (const char *path)
{
  GError *error = NULL;
  g_autoptr (GArray) findings = coop_check (path, 5, NULL, NULL, &error);
  g_assert_no_error (error);
  for (guint i = 0; i < findings->len; i++)
    g_test_message ("%" G_GUINT64_FORMAT ": %s", g_array_index (findings, CoopFinding, i).seq,
                    g_array_index (findings, CoopFinding, i).text);
  g_assert_cmpuint (findings->len, ==, 0);
}

static gint64
one (const char *path, const char *sql)
{
  sqlite3 *db;
  sqlite3_stmt *row;
  g_assert_cmpint (sqlite3_open_v2 (path, &db, SQLITE_OPEN_READONLY, NULL), ==, SQLITE_OK);
  g_assert_cmpint (sqlite3_prepare_v2 (db, sql, -1, &row, NULL), ==, SQLITE_OK);
  g_assert_cmpint (sqlite3_step (row), ==, SQLITE_ROW);
  gint64 value = sqlite3_column_int64 (row, 0);
  sqlite3_finalize (row);
  sqlite3_close (db);
  return value;
}

static void
assert_same_moment (CoopReader *a, CoopReader *b, guint64 seq)
{
  CoopModel *x = coop_reader_model_at (a, seq, NULL), *y = coop_reader_model_at (b, seq, NULL);
  g_autoptr (GBytes) p = coop_model_save (x), q = coop_model_save (y);
  g_assert_true (g_bytes_equal (p, q));
  coop_model_free (x);
  coop_model_free (y);
}

static void
test_trimmed (void)
{
  Place place = place_new ();
  g_autofree char *whole = g_build_filename (place.dir, "whole.coop", NULL);
  guint64 most = 0, first, first_ts;
  GStatBuf st;
  record_limited (whole, 5, 0, COOP_DETAIL_FULL, NULL);
  record_limited (place.path, 5, LIMIT, COOP_DETAIL_FULL, &most);
  g_assert_cmpint (g_stat (place.path, &st), ==, 0);
  g_test_message ("%" G_GUINT64_FORMAT " bytes while recording, %" G_GINT64_FORMAT " at the end", most, (gint64) st.st_size);
  g_assert_cmpuint (most, <=, LIMIT);
  g_assert_cmpint (st.st_size, <=, LIMIT);
  g_assert_cmpint (st.st_size, >, LIMIT / 2);
  assert_sound (place.path);
  CoopReader *a = coop_reader_open (whole, NULL), *b = coop_reader_open (place.path, NULL);
  g_assert_false (coop_reader_trimmed (a, &first, NULL));
  g_assert_true (coop_reader_trimmed (b, &first, &first_ts));
  guint64 last = coop_reader_last_seq (a);
  g_assert_cmpuint (coop_reader_last_seq (b), ==, last);
  for (guint i = 0; i < 20; i++)
    assert_same_moment (a, b, first + (last - first) * i / 19);
  /* what was before shows the first moment that is known */
  CoopModel *early = coop_reader_model_at (b, 0, NULL);
  g_assert_cmpuint (coop_model_totals (early)->seq, ==, first);
  coop_model_free (early);
  g_autoptr (GArray) usage = coop_reader_usage (b, 0, G_MAXINT64, 100, NULL);
  g_assert_cmpuint (usage->len, >, 0);
  /* at most a bucket early */
  g_assert_cmpuint (g_array_index (usage, CoopUsage, 0).bucket_ts + G_MAXINT64 / 100, >=, first_ts);
  coop_reader_free (a);
  coop_reader_free (b);
  /* nothing is left of what is gone, in any table that grows with the run */
  g_autofree char *gone = g_strdup_printf ("SELECT (SELECT count(*) FROM block WHERE died_event <= %1$" G_GUINT64_FORMAT
                                           ") + (SELECT count(*) FROM evicted WHERE event <= %1$" G_GUINT64_FORMAT
                                           ") + (SELECT count(*) FROM event WHERE seq <= %1$" G_GUINT64_FORMAT ")", first);
  g_assert_cmpint (one (place.path, gone), ==, 0);
  g_autofree char *ops = g_strdup_printf ("SELECT count(*) FROM op WHERE end_event <= %" G_GUINT64_FORMAT, first);
  g_autofree char *same = g_strdup_printf ("SELECT count(*) FROM op WHERE end_event > %" G_GUINT64_FORMAT, first);
  g_assert_cmpint (one (place.path, ops), <, 2000); /* what living tensors come from */
  g_assert_cmpint (one (place.path, same), ==, one (whole, same));
  place_clear (&place);
}

/* Rows of (used, largest) at what changes the layout, one after the other. */
#define LAYOUT "SELECT sum ((rowid % 1000003) * n) FROM (SELECT row_number () OVER (ORDER BY seq) AS rowid,"      \
               " used * 31 + largest + kind AS n FROM event WHERE kind BETWEEN 10 AND 14)"

static void
test_blocks (void)
{
  Place place = place_new ();
  g_autofree char *whole = g_build_filename (place.dir, "whole.coop", NULL);
  record_limited (whole, 6, 0, COOP_DETAIL_FULL, NULL);
  record_limited (place.path, 6, 0, COOP_DETAIL_BLOCKS, NULL);
  assert_sound (place.path);
  g_assert_cmpint (one (place.path, LAYOUT), ==, one (whole, LAYOUT));
  g_assert_cmpint (one (place.path, "SELECT count(*) FROM op"), ==, 0);
  g_assert_cmpint (one (place.path, "SELECT count(*) FROM tensor"), ==, 0);
  g_assert_cmpint (one (place.path, "SELECT count(*) FROM eviction"), ==, one (whole, "SELECT count(*) FROM eviction"));
  CoopReader *a = coop_reader_open (whole, NULL), *b = coop_reader_open (place.path, NULL);
  CoopTraceInfo x, y;
  g_assert_true (coop_reader_info (a, &x, NULL) && coop_reader_info (b, &y, NULL));
  g_assert_cmpint (coop_reader_detail (b), ==, COOP_DETAIL_BLOCKS);
  g_assert_cmpuint (x.peak, ==, y.peak);
  g_assert_cmpuint (x.totals.ops, ==, y.totals.ops);
  g_assert_cmpuint (x.totals.replay_ns, ==, y.totals.replay_ns);
  coop_trace_info_clear (&x);
  coop_trace_info_clear (&y);
  coop_reader_free (a);
  coop_reader_free (b);
  place_clear (&place);
}

static void
test_summary (void)
{
  Place place = place_new ();
  g_autofree char *whole = g_build_filename (place.dir, "whole.coop", NULL);
  record_limited (whole, 7, 0, COOP_DETAIL_FULL, NULL);
  record_limited (place.path, 7, 0, COOP_DETAIL_SUMMARY, NULL);
  assert_sound (place.path);
  g_assert_cmpint (one (place.path, "SELECT count(*) FROM block"), ==, 0);
  CoopReader *a = coop_reader_open (whole, NULL), *b = coop_reader_open (place.path, NULL);
  CoopTraceInfo x, y;
  g_assert_true (coop_reader_info (a, &x, NULL) && coop_reader_info (b, &y, NULL));
  g_assert_cmpuint (x.totals.peak, ==, y.totals.peak);
  g_assert_cmpuint (x.totals.evicted_bytes, ==, y.totals.evicted_bytes);
  for (guint n = 4; n <= 64; n *= 4)
    {
      g_autoptr (GArray) p = coop_reader_usage (a, 0, x.totals.ts, n, NULL);
      g_autoptr (GArray) q = coop_reader_usage (b, 0, x.totals.ts, n, NULL);
      g_assert_cmpmem (p->data, p->len * sizeof (CoopUsage), q->data, q->len * sizeof (CoopUsage));
    }
  coop_trace_info_clear (&x);
  coop_trace_info_clear (&y);
  coop_reader_free (a);
  coop_reader_free (b);
  place_clear (&place);
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  g_test_add_func ("/limits/trimmed", test_trimmed);
  g_test_add_func ("/limits/blocks", test_blocks);
  g_test_add_func ("/limits/summary", test_summary);
  return g_test_run ();
}
