/* SPDX-License-Identifier: Apache-2.0 */
/* The tables of a trace: rows read as they are looked at, against SQL that is asked directly. */
#include <adwaita.h>
#include <string.h>
#include <time.h>

#include "drawer.h"
#include "made-trace.h"
#include "run-page.h"
#include "trace-table.h"
#include "trace/store.h"
#include "ui-support.h"
#include "window.h"

#define BUDGET (1 << 20)

static gboolean
take_text (gpointer user, int n, const char *const *names, const char *const *values, const int *types)
{
  *(char **) user = g_strdup (values[0]);
  return FALSE;
}

/* The first value that a query finds. */
static char *
ask (const MadeTrace *trace, const char *sql)
{
  CoopReader *reader = coop_reader_open (trace->path, NULL);
  char *text = NULL;
  coop_reader_query (reader, sql, 10, take_text, &text, NULL);
  coop_reader_free (reader);
  return text;
}

static guint64
ask_number (const MadeTrace *trace, const char *sql)
{
  g_autofree char *text = ask (trace, sql);
  return text ? g_ascii_strtoull (text, NULL, 10) : 0;
}

static const CoopTableSpec *
spec (const char *id)
{
  for (guint i = 0; i < coop_n_table_specs; i++)
    if (g_str_equal (coop_table_specs[i].id, id))
      return &coop_table_specs[i];
  g_assert_not_reached ();
}

static guint
settled (CoopRows *rows)
{
  spin_until (!coop_rows_is_busy (rows));
  g_assert_cmpstr (coop_rows_get_error (rows), ==, NULL);
  return g_list_model_get_n_items (G_LIST_MODEL (rows));
}

static char *
cell_now (CoopRows *rows, guint row, guint column)
{
  g_autoptr (CoopListRow) item = g_list_model_get_item (G_LIST_MODEL (rows), row);
  return item ? g_strdup (coop_list_row_get_cell (item, column)) : NULL;
}

/* The rows may be asked for anew meanwhile, and are others then. */
static char *
cell (CoopRows *rows, guint row, guint column)
{
  char *text = NULL;
  spin_until ((text = cell_now (rows, row, column)));
  return text;
}

#define assert_cell(rows, row, column, text)                                                        \
  G_STMT_START                                                                                      \
  {                                                                                                 \
    g_autofree char *cell_ = cell (rows, row, column);                                              \
    g_assert_cmpstr (cell_, ==, text);                                                              \
  }                                                                                                 \
  G_STMT_END

static void
test_rows (void)
{
  g_autoptr (MadeTrace) trace = made_trace_new (9000, BUDGET);
  CoopRows *rows = coop_rows_new (trace->path);
  coop_rows_show (rows, spec ("all-events"), "", -1, FALSE);
  g_assert_cmpuint (settled (rows), ==, 9000);
  assert_cell (rows, 0, 0, "0");
  assert_cell (rows, 8999, 0, "8999");
  assert_cell (rows, 4567, 0, "4567"); /* far from all that was read */
  g_autoptr (CoopListRow) row = g_list_model_get_item (G_LIST_MODEL (rows), 4567);
  g_assert_cmpuint (coop_list_row_get_event (row), ==, 4567);

  coop_rows_show (rows, spec ("all-events"), "", -1, TRUE);
  settled (rows);
  assert_cell (rows, 0, 0, "8999");

  coop_rows_show (rows, spec ("all-blocks"), "", 1, TRUE); /* the largest block first */
  g_assert_cmpuint (settled (rows), ==, ask_number (trace, "SELECT count(*) FROM block"));
  g_autofree char *largest = coop_cell_format (COOP_CELL_BYTES, "0");
  g_free (largest);
  g_autofree char *most = ask (trace, "SELECT max(bytes) FROM block");
  largest = coop_cell_format (COOP_CELL_BYTES, most);
  assert_cell (rows, 0, 1, largest);
  for (guint i = 0; i < coop_n_table_specs; i++) /* each table can be read, and sorted by each of its columns */
    for (int column = 0; coop_table_specs[i].columns[column].id; column++)
      {
        coop_rows_show (rows, &coop_table_specs[i], "", column, column % 2 == 0);
        guint n = settled (rows);
        if (n > 0)
          g_free (cell (rows, n - 1, (guint) column));
      }
  g_object_unref (rows);
}

/* A wish that comes while another is under way replaces it; one that is stopped keeps what it has. */
static void
test_newest_wins (void)
{
  g_autoptr (MadeTrace) trace = made_trace_new (9000, BUDGET);
  CoopRows *rows = coop_rows_new (trace->path);
  for (int i = 0; i < 50; i++)
    coop_rows_show (rows, spec ("all-events"), i % 2 ? "e.seq < 10" : "", 4, TRUE);
  g_assert_cmpuint (settled (rows), ==, 10);
  coop_rows_query (rows, "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT sum(i) FROM n");
  spin_ms (100);
  g_assert_true (coop_rows_is_busy (rows));
  coop_rows_stop (rows);
  g_assert_cmpuint (settled (rows), ==, 0);
  coop_rows_query (rows, "SELECT 1 FROM nowhere");
  spin_until (coop_rows_get_error (rows));
  g_assert_nonnull (strstr (coop_rows_get_error (rows), "nowhere"));
  coop_rows_query (rows, "DELETE FROM event");
  spin_until (coop_rows_get_error (rows) && strstr (coop_rows_get_error (rows), "SELECT"));
  coop_rows_query (rows, "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT i FROM n");
  g_assert_cmpuint (settled (rows), ==, 100000);
  g_assert_true (coop_rows_is_cut (rows));
  g_object_unref (rows); /* in the middle of nothing; and in the middle of something: */
  rows = coop_rows_new (trace->path);
  coop_rows_query (rows, "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT sum(i) FROM n");
  spin_ms (50);
  g_object_unref (rows);
}

static void
test_filter (void)
{
  static const struct { const char *text, *sql; } cases[] = {
    { "", "" },
    { "size>10KiB", "b.bytes > 10240" },
    { "size>=1.5MB life<2ms", "b.bytes >= 1500000 AND b.died_ns - b.born_ns < 2000000" },
    { "address=0x1000", "b.addr = 4096" },
    { "kind=it's", "k.label = 'it''s'" },
    { "kind~100%", "k.label LIKE '%100\\%%' ESCAPE '\\'" },
    { "BLOCK!=7", "b.id != 7" },
  };
  for (gsize i = 0; i < G_N_ELEMENTS (cases); i++)
    {
      g_autofree char *sql = coop_filter_to_sql (spec ("all-blocks"), cases[i].text, NULL);
      g_assert_cmpstr (sql, ==, cases[i].sql);
    }
  static const char *const wrong[] = { "weight>1", "size>many", "size=>3", "size>1 OR 1=1" };
  for (gsize i = 0; i < G_N_ELEMENTS (wrong); i++)
    {
      g_autoptr (GError) error = NULL;
      g_assert_null (coop_filter_to_sql (spec ("all-blocks"), wrong[i], &error));
      g_assert_nonnull (error);
    }
}

static void
note_csv (CoopRows *rows, const char *csv, char **out)
{
  g_free (*out);
  *out = g_strdup (csv);
}

static void
test_csv (void)
{
  g_autoptr (MadeTrace) trace = made_trace_new (6000, BUDGET);
  CoopRows *rows = coop_rows_new (trace->path);
  g_autofree char *csv = NULL;
  g_signal_connect (rows, "copied", G_CALLBACK (note_csv), &csv);
  coop_rows_query (rows, "SELECT 'a,b' AS x, 'say \"hi\"' AS \"y,z\" UNION ALL SELECT 1, NULL");
  settled (rows);
  coop_rows_copy (rows, 100);
  spin_until (csv);
  g_assert_cmpstr (csv, ==, "x,\"y,z\"\n\"a,b\",\"say \"\"hi\"\"\"\n1,\n");
  g_clear_pointer (&csv, g_free);
  coop_rows_show (rows, spec ("all-blocks"), "", -1, FALSE);
  guint n = settled (rows), lines = 0;
  coop_rows_copy (rows, G_MAXUINT);
  spin_until (csv);
  for (const char *c = csv; *c; c++)
    lines += *c == '\n';
  g_assert_cmpuint (lines, ==, n + 1);
  g_autofree char *first = ask (trace, "SELECT b.id || ',' || b.bytes || ',' || b.addr FROM block b ORDER BY id LIMIT 1");
  g_assert_true (g_str_has_prefix (strchr (csv, '\n') + 1, first)); /* bytes, not words */
  g_object_unref (rows);
}

/* From a row to the map and to its moment; from the map to the rows of a block. */
static void
test_links (void)
{
  g_autoptr (MadeTrace) trace = made_trace_new (6000, BUDGET);
  GtkWidget *window = coop_window_new (NULL);
  gtk_window_set_default_size (GTK_WINDOW (window), 1200, 900);
  gtk_window_present (GTK_WINDOW (window));
  coop_window_open (COOP_WINDOW (window), trace->path, G_MAXUINT64);
  CoopRunPage *page = COOP_RUN_PAGE (find_widget (window, COOP_TYPE_RUN_PAGE));
  GtkWidget *drawer = find_widget (window, COOP_TYPE_DRAWER);
  spin_until (coop_run_page_get_frame (page));
  coop_drawer_turn_to (COOP_DRAWER (drawer), "all-events");
  CoopTraceTable *table = COOP_TRACE_TABLE (find_widget (drawer, COOP_TYPE_TRACE_TABLE));
  spin_until (coop_trace_table_get_rows (table));
  CoopRows *rows = coop_trace_table_get_rows (table);
  g_assert_cmpuint (settled (rows), ==, 6000);

  coop_trace_table_set_text (table, "what=evict");
  guint64 n = ask_number (trace, "SELECT count(*) FROM v_event WHERE kind = 'evict'");
  g_assert_cmpuint (n, >, 2);
  spin_until (!coop_rows_is_busy (rows) && g_list_model_get_n_items (G_LIST_MODEL (rows)) == n);
  g_free (cell (rows, 1, 0));
  guint64 event = ask_number (trace, "SELECT seq FROM v_event WHERE kind = 'evict' ORDER BY seq LIMIT 1 OFFSET 1");
  g_signal_emit_by_name (find_widget (GTK_WIDGET (table), GTK_TYPE_COLUMN_VIEW), "activate", 1u);
  spin_until (coop_run_page_get_frame (page)->totals.seq == event);

  coop_trace_table_set_text (table, "no such");
  spin_until (!coop_rows_is_busy (rows) && g_list_model_get_n_items (G_LIST_MODEL (rows)) == 0);
  coop_trace_table_set_text (table, "nocolumn=1");
  spin_until (find_text (GTK_WIDGET (table), "nocolumn"));
  coop_trace_table_set_text (table, "");
  const CoopFrame *frame = coop_run_page_get_frame (page);
  guint64 block = 0;
  for (guint i = 0; i < frame->n_pieces && block == 0; i++)
    block = frame->pieces[i].block;
  g_signal_emit_by_name (drawer, "row", block, G_MAXUINT64, FALSE);
  coop_trace_table_set_only (table, TRUE);
  g_autofree char *sql = g_strdup_printf ("SELECT count(*) FROM event WHERE block = %" G_GUINT64_FORMAT, block);
  n = ask_number (trace, sql);
  spin_until (!coop_rows_is_busy (rows) && g_list_model_get_n_items (G_LIST_MODEL (rows)) == n);
  coop_trace_table_set_only (table, FALSE);

  /* a click on a title sorts, another the other way */
  coop_trace_table_sort (table, 4, TRUE);
  spin_until (!coop_rows_is_busy (rows) && g_list_model_get_n_items (G_LIST_MODEL (rows)) == 6000);
  g_autofree char *most = ask (trace, "SELECT max(bytes) FROM event");
  g_autofree char *largest = coop_cell_format (COOP_CELL_BYTES, most);
  assert_cell (rows, 0, 4, largest);
  assert_finalized (window);
}

static double
cpu_ms (void)
{
  struct timespec t;
  clock_gettime (CLOCK_THREAD_CPUTIME_ID, &t);
  return (double) t.tv_sec * 1e3 + (double) t.tv_nsec / 1e6;
}

/* Reading, filtering and sorting is the thread's work, and rows come into being a few at a time. */
static void
test_main_loop (void)
{
  g_autoptr (MadeTrace) trace = made_trace_new (30000, BUDGET);
  GtkWidget *window = coop_window_new (NULL);
  gtk_window_set_default_size (GTK_WINDOW (window), 1200, 900);
  gtk_window_present (GTK_WINDOW (window));
  coop_window_open (COOP_WINDOW (window), trace->path, G_MAXUINT64);
  GtkWidget *drawer = find_widget (window, COOP_TYPE_DRAWER);
  spin_until (coop_run_page_get_frame (COOP_RUN_PAGE (find_widget (window, COOP_TYPE_RUN_PAGE))));
  coop_drawer_turn_to (COOP_DRAWER (drawer), "all-events");
  CoopTraceTable *table = COOP_TRACE_TABLE (find_widget (drawer, COOP_TYPE_TRACE_TABLE));
  spin_until (coop_trace_table_get_rows (table));
  settled (coop_trace_table_get_rows (table));
  double worst = 0;
  for (int i = 0; i < 6; i++)
    {
      coop_trace_table_sort (table, i, i % 2);
      for (gint64 until = g_get_monotonic_time () + G_USEC_PER_SEC / 2; g_get_monotonic_time () < until;)
        {
          double begin = cpu_ms ();
          if (!g_main_context_iteration (NULL, FALSE))
            g_usleep (1000);
          worst = MAX (worst, cpu_ms () - begin);
        }
    }
  g_test_message ("worst turn of the main loop: %.1f ms of CPU time", worst);
  g_assert_cmpfloat (worst, <, 60); /* GTK takes away the 200 rows it has made at once */
  assert_finalized (window);
}

int
main (int argc, char **argv)
{
  gtk_test_init (&argc, &argv, NULL);
  adw_init ();
  g_test_add_func ("/ui/tables/rows", test_rows);
  g_test_add_func ("/ui/tables/newest-wins", test_newest_wins);
  g_test_add_func ("/ui/tables/filter", test_filter);
  g_test_add_func ("/ui/tables/csv", test_csv);
  g_test_add_func ("/ui/tables/links", test_links);
  g_test_add_func ("/ui/tables/main-loop", test_main_loop);
  return g_test_run ();
}
