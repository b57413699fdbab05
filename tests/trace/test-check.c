/* SPDX-License-Identifier: Apache-2.0 */
/* The checker: silent on good traces, and finds each fault that is planted in a copy. */
#include <sqlite3.h>
#include <unistd.h>

#include "trace-support.h"

#define ALLOC "(SELECT seq FROM event WHERE kind = 10 AND seq > 3000 ORDER BY seq LIMIT 1)"
#define FREE "(SELECT seq FROM event WHERE kind = 11 AND seq > 3000 ORDER BY seq LIMIT 1)"
#define EVICT "(SELECT seq FROM event WHERE kind = 12 AND seq > 3000 ORDER BY seq LIMIT 1)"
#define OP_BEGIN "(SELECT seq FROM event WHERE kind = 30 AND seq > 3000 ORDER BY seq LIMIT 1)"

/* What is planted, the fault that must be found, and where (a query; NULL: anywhere). */
static const struct {
  const char *name, *sql;
  CoopFault fault;
  const char *where, *text;
} plants[] = {
  { "overlap", "UPDATE event SET addr = (SELECT addr FROM event WHERE kind = 10 LIMIT 1) WHERE seq = " ALLOC,
    COOP_FAULT_OVERLAP, ALLOC, "begins over block" },
  { "past-budget", "UPDATE event SET addr = 655360 - 512, bytes = 1024 WHERE seq = " ALLOC, COOP_FAULT_BUDGET, ALLOC,
    "past the budget" },
  { "free-of-nothing", "UPDATE event SET block = 99999999 WHERE seq = " FREE, COOP_FAULT_FREE, FREE, "not there" },
  { "free-elsewhere", "UPDATE event SET addr = addr + 512 WHERE seq = " FREE, COOP_FAULT_FREE, FREE, "another place" },
  { "evict-of-another", "UPDATE event SET tensor = 1 WHERE seq = " EVICT, COOP_FAULT_FREE, EVICT, "tensor" },
  { "table-gone", "DROP TABLE oom", COOP_FAULT_FORMAT, NULL, "table oom is missing" },
  { "view-gone", "DROP VIEW v_block", COOP_FAULT_FORMAT, NULL, "view v_block is missing" },
  { "session-gone", "DELETE FROM session", COOP_FAULT_FORMAT, NULL, "table session has not one row" },
  { "gap", "DELETE FROM event WHERE seq = 4000", COOP_FAULT_SEQUENCE, "4001", "4000 was due" },
  { "begin-missing", "DELETE FROM event WHERE seq < 10", COOP_FAULT_SEQUENCE, "10", "0 was due" },
  { "used", "UPDATE event SET used = used + 512 WHERE seq = 5000", COOP_FAULT_BUDGET, "5000", "column used" },
  { "largest", "UPDATE event SET largest = largest - 1 WHERE seq = 5000", COOP_FAULT_BUDGET, "5000", "column largest" },
  { "time", "UPDATE event SET ts = 1 WHERE seq = 5000", COOP_FAULT_TIME, "5000", "time goes back" },
  { "kind", "UPDATE event SET kind = 60 WHERE seq = 5000", COOP_FAULT_FORMAT, "5000", "not defined" },
  { "rest", "UPDATE event SET rest = x'ffffffff' WHERE seq = 5000", COOP_FAULT_FORMAT, NULL, "damaged" },
  { "unknown-tensor", "UPDATE event SET tensor = 88888888 WHERE seq = (SELECT seq FROM event WHERE kind = 20 LIMIT 1)",
    COOP_FAULT_UNKNOWN, "(SELECT seq FROM event WHERE kind = 20 LIMIT 1)", "88888888" },
  { "unknown-op", "UPDATE event SET op = 88888888 WHERE seq = " ALLOC, COOP_FAULT_UNKNOWN, ALLOC, "88888888" },
  { "block-bytes", "UPDATE block SET bytes = bytes + 512 WHERE id = 100", COOP_FAULT_FREE, NULL, "another size" },
  { "block-born", "UPDATE block SET born_event = born_event + 1 WHERE id = 100", COOP_FAULT_FREE, NULL, "another first event" },
  { "block-end", "UPDATE block SET ended = 13 WHERE id = (SELECT id FROM block WHERE ended = 11 LIMIT 1)", COOP_FAULT_FREE, NULL,
    "another kind of end" },
  { "block-gone", "DELETE FROM block WHERE id = 100", COOP_FAULT_FREE, NULL, "block 100 has no row" },
  { "block-extra", "INSERT INTO block (id, addr, bytes, born_event, born_ns) VALUES (77777777, 0, 512, 1, 1)", COOP_FAULT_FREE,
    NULL, "lives" },
  { "op-gone", "DELETE FROM op WHERE id = (SELECT op FROM tensor WHERE op IS NOT NULL LIMIT 1)", COOP_FAULT_UNKNOWN, NULL,
    "which has no row" },
  { "tensor-gone", "DELETE FROM tensor WHERE id = 20", COOP_FAULT_UNKNOWN, NULL, "tensor 20, which has no row" },
  { "input", "UPDATE op SET inputs = '[5,66666666]' WHERE id = 10", COOP_FAULT_UNKNOWN, NULL, "66666666" },
  { "evicted-gone", "DELETE FROM evicted WHERE block = (SELECT min (block) FROM evicted)", COOP_FAULT_UNKNOWN, NULL,
    "table evicted" },
  { "policy-gone", "DELETE FROM policy_change WHERE event = (SELECT max (event) FROM policy_change)", COOP_FAULT_UNKNOWN, NULL,
    "table policy_change" },
  { "keyframe", "UPDATE layout_keyframe SET model = (SELECT model FROM layout_keyframe ORDER BY event DESC LIMIT 1)"
                " WHERE event = (SELECT min (event) FROM layout_keyframe)",
    COOP_FAULT_FORMAT, "(SELECT min (event) FROM layout_keyframe)", "layout kept" },
  { "peak", "UPDATE stat SET value = 5 WHERE name = 'peak'", COOP_FAULT_BUDGET, NULL, "a peak of 5" },
  { "lost", "UPDATE stat SET value = 5 WHERE name = 'lost_events'", COOP_FAULT_SEQUENCE, NULL, "could not be written" },
};

static void
assert_found (const char *path, CoopFault fault, gint64 seq, const char *text)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (GArray) findings = coop_check (path, 50, NULL, NULL, &error);
  g_assert_no_error (error);
  for (guint i = 0; i < findings->len; i++)
    {
      const CoopFinding *f = &g_array_index (findings, CoopFinding, i);
      if (f->fault == fault && (seq < 0 || f->seq == (guint64) seq) && strstr (f->text, text) != NULL)
        return;
    }
  for (guint i = 0; i < findings->len; i++)
    g_test_message ("%s", g_array_index (findings, CoopFinding, i).text);
  g_error ("\"%s\" was not found in %u findings", text, findings->len);
}

static void
assert_clean (const char *path)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (GArray) findings = coop_check (path, 50, NULL, NULL, &error);
  g_assert_no_error (error);
  if (findings->len > 0)
    g_error ("event %" G_GUINT64_FORMAT ": %s", g_array_index (findings, CoopFinding, 0).seq,
             g_array_index (findings, CoopFinding, 0).text);
}

static void
test_clean (void)
{
  Place place = place_new ();
  for (guint32 seed = 1; seed <= 6; seed++)
    {
      record_file (place.path, seed, 9000);
      assert_clean (place.path);
    }
  place_clear (&place);
}

static gint64
number (sqlite3 *db, const char *expression)
{
  g_autofree char *sql = g_strdup_printf ("SELECT %s", expression);
  sqlite3_stmt *row;
  g_assert_cmpint (sqlite3_prepare_v2 (db, sql, -1, &row, NULL), ==, SQLITE_OK);
  g_assert_cmpint (sqlite3_step (row), ==, SQLITE_ROW);
  gint64 value = sqlite3_column_int64 (row, 0);
  sqlite3_finalize (row);
  return value;
}

static void
test_plants (void)
{
  Place place = place_new ();
  g_autofree char *copy = g_build_filename (place.dir, "copy.coop", NULL);
  g_autofree char *bytes = NULL;
  gsize size;
  record_file (place.path, 11, 12000);
  assert_clean (place.path);
  g_assert_true (g_file_get_contents (place.path, &bytes, &size, NULL));
  for (guint i = 0; i < G_N_ELEMENTS (plants); i++)
    {
      sqlite3 *db;
      g_test_message ("%s", plants[i].name);
      g_assert_true (g_file_set_contents (copy, bytes, size, NULL));
      sqlite3_open (copy, &db);
      gint64 where = plants[i].where != NULL ? number (db, plants[i].where) : -1;
      g_assert_cmpint (sqlite3_exec (db, plants[i].sql, NULL, NULL, NULL), ==, SQLITE_OK);
      g_assert_true (sqlite3_changes (db) > 0 || g_str_has_prefix (plants[i].sql, "DROP"));
      sqlite3_close (db);
      assert_found (copy, plants[i].fault, where, plants[i].text);
    }
  place_clear (&place);
}

static void
test_damaged (void)
{
  Place place = place_new ();
  g_autoptr (GRand) rand = g_rand_new_with_seed (3);
  g_autofree char *bytes = NULL;
  gsize size;
  record_file (place.path, 12, 9000);
  g_assert_true (g_file_get_contents (place.path, &bytes, &size, NULL));
  g_assert_cmpint (truncate (place.path, size * 2 / 3), ==, 0);
  assert_found (place.path, COOP_FAULT_FORMAT, -1, "cut short");
  g_assert_cmpint (truncate (place.path, 3000), ==, 0);
  assert_found (place.path, COOP_FAULT_FORMAT, -1, "cut short");
  for (guint round = 0; round < 100; round++) /* whatever is hit: an answer, no crash */
    {
      g_autofree char *copy = g_memdup2 (bytes, size);
      g_autoptr (GError) error = NULL;
      for (guint i = 0; i < 20; i++)
        copy[g_rand_int_range (rand, 100, size)] ^= 1 << g_rand_int_range (rand, 0, 8);
      g_assert_true (g_file_set_contents (place.path, copy, size, NULL));
      g_autoptr (GArray) findings = coop_check (place.path, 10, NULL, NULL, &error);
      g_assert_true ((findings == NULL) == (error != NULL));
    }
  place_clear (&place);
}

/* A gap that the recorder told of is found, and what it explains is not. */
static void
test_told_gap (void)
{
  Place place = place_new ();
  GError *error = NULL;
  CoopGen *gen = coop_gen_new (4, BUDGET);
  CoopModel *model = coop_model_new ();
  CoopStore *store = coop_store_create (place.path, NULL, &error);
  const void *body;
  for (guint i = 0; i < 6000; i++)
    {
      CoopEvent ev = *coop_gen_next (gen, &body);
      if (i >= 3000 && i < 3005)
        continue;
      if (i == 3005) /* it takes the place of an event, whose number it has */
        {
          ev = (CoopEvent) { .seq = ev.seq, .ts = ev.ts, .kind = COOP_EVENT_GAP, .u.gap = { 5, 3000 } };
          body = NULL;
        }
      coop_model_apply (model, &ev, body, NULL);
      coop_store_append (store, model, &ev, body);
    }
  coop_store_close (store, COOP_RUN_ENDED, 0, &error);
  g_assert_no_error (error);
  assert_found (place.path, COOP_FAULT_SEQUENCE, 3005, "5 events are missing");
  g_autoptr (GArray) findings = coop_check (place.path, 50, NULL, NULL, &error);
  for (guint i = 0; i < findings->len; i++)
    g_assert_cmpint (g_array_index (findings, CoopFinding, i).fault, ==, COOP_FAULT_SEQUENCE);
  coop_model_free (model);
  coop_gen_free (gen);
  place_clear (&place);
}

/* Whatever a target writes is kept, and read back by everything that reads. */
static void
test_nonsense (void)
{
  Place place = place_new ();
  for (guint32 seed = 1; seed <= 8; seed++)
    {
      g_autoptr (GRand) rand = g_rand_new_with_seed (seed);
      GError *error = NULL;
      CoopTraceInfo info;
      CoopGen *gen = coop_gen_new (seed, BUDGET);
      CoopModel *model = coop_model_new ();
      CoopStore *store = coop_store_create (place.path, NULL, &error);
      const void *body;
      for (guint i = 0; i < 5000; i++)
        {
          CoopEvent ev = *coop_gen_next (gen, &body);
          guint8 copy[1024] = { 0 };
          memcpy (copy, body != NULL ? body : "", body != NULL ? MIN (64 * ev.more, sizeof copy) : 0);
          if (i > 200 && g_rand_int_range (rand, 0, 8) == 0)
            {
              ev.kind = g_rand_boolean (rand) ? (guint) g_rand_int_range (rand, 0, 70) : ev.kind;
              ev.more = g_rand_int_range (rand, 0, 17);
              ev.u.word[g_rand_int_range (rand, 0, 5)] = g_rand_boolean (rand) ? g_rand_int (rand) % 400 : g_rand_int (rand);
              copy[g_rand_int_range (rand, 0, 1024)] = g_rand_int (rand);
            }
          coop_model_apply (model, &ev, copy, NULL);
          coop_store_append (store, model, &ev, copy);
        }
      const char *why;
      g_assert_cmpuint (coop_store_lost (store, &why), ==, 0);
      coop_store_close (store, COOP_RUN_ENDED, 0, &error);
      g_assert_no_error (error);
      g_autoptr (GArray) findings = coop_check (place.path, 100, NULL, NULL, &error);
      g_assert_no_error (error);
      g_assert_cmpuint (findings->len, >, 0);
      CoopReader *reader = coop_reader_open (place.path, &error);
      g_assert_true (coop_reader_info (reader, &info, &error));
      coop_trace_info_clear (&info);
      g_autoptr (GArray) usage = coop_reader_usage (reader, 0, G_MAXUINT64, 100, &error);
      g_assert_no_error (error);
      coop_reader_free (reader);
      coop_model_free (model);
      coop_gen_free (gen);
    }
  place_clear (&place);
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  g_test_add_func ("/check/clean", test_clean);
  g_test_add_func ("/check/plants", test_plants);
  g_test_add_func ("/check/damaged", test_damaged);
  g_test_add_func ("/check/told-gap", test_told_gap);
  g_test_add_func ("/check/nonsense", test_nonsense);
  return g_test_run ();
}
