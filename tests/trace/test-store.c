/* SPDX-License-Identifier: Apache-2.0 */
/* The store: nothing is lost on the way into the file and out again; who may write; what happens
 * when writing fails or the writer dies. */
#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "trace-support.h"
#include "trace/event-codec.h"
#include "trace/model-private.h"
#include "trace/store-private.h"

typedef struct {
  CoopGen *gen;
  guint64 n, stop;
} Compare;

static gboolean
compare_one (gpointer user, const CoopEvent *ev, const void *body)
{
  Compare *c = user;
  const void *expected_body;
  const CoopEvent *expected = coop_gen_next (c->gen, &expected_body);
  g_assert_cmpmem (ev, sizeof *ev, expected, sizeof *expected);
  g_assert_cmpmem (body, body ? 64 * ev->more : 0, expected_body, expected_body ? 64 * expected->more : 0);
  return ++c->n < c->stop;
}

static void
test_lossless (void)
{
  Place place = place_new ();
  GError *error = NULL;
  record_file (place.path, 5, 30000);
  g_assert_cmpuint (place_files (&place), ==, 1);
  CoopReader *reader = coop_reader_open (place.path, &error);
  g_assert_no_error (error);
  Compare c = { coop_gen_new (5, BUDGET), 0, 30000 };
  g_assert_cmpint (coop_reader_events (reader, 0, compare_one, &c, &error), ==, 30000);
  g_assert_no_error (error);
  g_assert_cmpuint (coop_reader_last_seq (reader), >, 30000);
  g_autofree char *command = coop_reader_meta (reader, "command");
  g_assert_cmpstr (command, ==, "python3 train.py");
  coop_reader_free (reader);
  coop_gen_free (c.gen);
  place_clear (&place);
}

/* Every kind, with words and bodies that no engine makes. */
static void
test_codec (void)
{
  g_autoptr (GRand) rand = g_rand_new_with_seed (1);
  g_autoptr (GByteArray) rest = g_byte_array_new ();
  g_autoptr (GByteArray) body_out = g_byte_array_new ();
  for (guint round = 0; round < 20000; round++)
    {
      guint8 body[256];
      CoopEvent ev = { .seq = round, .kind = round % 64, .more = g_rand_int_range (rand, 0, 5) };
      for (guint i = 0; i < 5; i++)
        switch (g_rand_int_range (rand, 0, 4))
          {
          case 0:
            ev.u.word[i] = G_MAXUINT64;
            break;
          case 1:
            ev.u.word[i] = (guint64) g_rand_int (rand) << 32 | g_rand_int (rand);
            break;
          case 2:
            ev.u.word[i] = g_rand_int_range (rand, 0, 1000);
            break;
          default:
            break;
          }
      for (guint i = 0; i < sizeof body; i++)
        body[i] = g_rand_boolean (rand) ? g_rand_int (rand) : 0;
      CoopColumns columns;
      CoopEvent out = { .seq = ev.seq, .kind = ev.kind };
      coop_event_pack (&ev, body, &columns, rest);
      g_assert_true (coop_event_unpack (&out, &columns, rest->data, rest->len, body_out));
      g_assert_cmpmem (&out, sizeof out, &ev, sizeof ev);
      g_assert_cmpmem (body_out->data, body_out->len, body, 64 * ev.more);
    }
}

static void
test_model_at (void)
{
  Place place = place_new ();
  GError *error = NULL;
  record_file (place.path, 6, 20000);
  CoopReader *reader = coop_reader_open (place.path, &error);
  CoopGen *gen = coop_gen_new (6, BUDGET);
  CoopModel *live = coop_model_new ();
  for (guint64 seq = 0; seq < 20000; seq++)
    {
      const void *body;
      const CoopEvent *ev = coop_gen_next (gen, &body);
      coop_model_apply (live, ev, body, NULL);
      if (seq % 977 != 0 && seq != 4095 && seq != 4096 && seq != 8191)
        continue;
      CoopModel *model = coop_reader_model_at (reader, seq, &error);
      g_assert_no_error (error);
      g_autoptr (GBytes) a = coop_model_save_parts (live, FALSE);
      g_autoptr (GBytes) b = coop_model_save_parts (model, FALSE);
      g_assert_true (g_bytes_equal (a, b));
      g_assert_cmpuint (model->strings.n, ==, live->strings.n);
      g_assert_cmpuint (model->stacks.n, ==, live->stacks.n);
      coop_model_free (model);
    }
  coop_model_free (live);
  coop_gen_free (gen);
  coop_reader_free (reader);
  place_clear (&place);
}

static void
test_read_while_written (void)
{
  Place place = place_new ();
  GError *error = NULL;
  CoopTraceInfo info;
  CoopGen *gen = coop_gen_new (8, BUDGET);
  CoopModel *model = coop_model_new ();
  CoopStore *store = coop_store_create (place.path, NULL, &error);
  g_assert_no_error (error);
  record (gen, model, store, 5000);
  g_usleep (60000);
  coop_store_tick (store);
  CoopReader *reader = coop_reader_open (place.path, &error);
  g_assert_no_error (error);
  g_assert_cmpuint (coop_reader_last_seq (reader), ==, 4999);
  g_assert_true (coop_reader_info (reader, &info, &error));
  g_assert_cmpint (info.state, ==, COOP_RUN_RUNNING);
  g_assert_cmpuint (info.events, ==, 5000);
  g_assert_cmpuint (info.peak, ==, coop_model_totals (model)->peak);
  coop_trace_info_clear (&info);
  record (gen, model, store, 5000);
  g_usleep (60000);
  coop_store_tick (store);
  g_assert_cmpuint (coop_reader_last_seq (reader), ==, 9999);
  g_assert_cmpuint (coop_store_bytes (store), >, 100000);
  g_assert_true (coop_store_close (store, COOP_RUN_KILLED, 15, &error));
  g_assert_true (coop_reader_info (reader, &info, &error));
  g_assert_cmpint (info.state, ==, COOP_RUN_KILLED);
  g_assert_cmpint (info.exit_code, ==, 15);
  coop_trace_info_clear (&info);
  coop_reader_free (reader);
  coop_model_free (model);
  coop_gen_free (gen);
  place_clear (&place);
}

static void
assert_refused (const char *path, gboolean create, int code, const char *part)
{
  g_autoptr (GError) error = NULL;
  if (create)
    g_assert_null (coop_store_create (path, NULL, &error));
  else
    g_assert_null (coop_reader_open (path, &error));
  g_assert_error (error, COOP_TRACE_ERROR, code);
  if (strstr (error->message, part) == NULL)
    g_error ("\"%s\" does not say \"%s\"", error->message, part);
  g_assert_null (strchr (error->message, '\n'));
}

static void
test_refusals (void)
{
  Place place = place_new ();
  sqlite3 *db;
  g_autofree char *missing = g_build_filename (place.dir, "no such folder", "x.coop", NULL);
  g_assert_true (g_file_set_contents (place.path, "import torch\n", -1, NULL));
  assert_refused (place.path, TRUE, COOP_TRACE_ERROR_EXISTS, "left alone");
  assert_refused (place.path, FALSE, COOP_TRACE_ERROR_FOREIGN, "not a trace");
  assert_refused (place.dir, TRUE, COOP_TRACE_ERROR_EXISTS, "left alone");
  assert_refused (place.dir, FALSE, COOP_TRACE_ERROR_FOREIGN, "not a trace");
  assert_refused (missing, TRUE, COOP_TRACE_ERROR_IO, "No such file");
  assert_refused (missing, FALSE, COOP_TRACE_ERROR_IO, "No such file");
  g_remove (place.path);
  sqlite3_open (place.path, &db);
  sqlite3_exec (db, "CREATE TABLE mine (x)", NULL, NULL, NULL);
  sqlite3_close (db);
  assert_refused (place.path, TRUE, COOP_TRACE_ERROR_EXISTS, "left alone");
  assert_refused (place.path, FALSE, COOP_TRACE_ERROR_FOREIGN, "application id");
  g_remove (place.path);
  record_file (place.path, 1, 500);
  record_file (place.path, 1, 500); /* a finished trace is replaced */
  sqlite3_open (place.path, &db);
  sqlite3_exec (db, "PRAGMA user_version = 7", NULL, NULL, NULL);
  sqlite3_close (db);
  assert_refused (place.path, FALSE, COOP_TRACE_ERROR_NEWER, "version 7");
  g_assert_cmpint (truncate (place.path, 50), ==, 0);
  assert_refused (place.path, FALSE, COOP_TRACE_ERROR_FOREIGN, "too short");
  place_clear (&place);
}

/* SQLite's lock on the trace, as another process sees it. */
static gboolean
locked_for_others (const char *path)
{
  int status;
  pid_t child = fork ();
  if (child == 0)
    {
      struct flock lock = { .l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = 0x40000002, .l_len = 510 };
      int fd = open (path, O_RDWR);
      _exit (fd >= 0 && fcntl (fd, F_GETLK, &lock) == 0 && lock.l_type != F_UNLCK ? 0 : 1);
    }
  waitpid (child, &status, 0);
  return status == 0;
}

/* A reader that comes and goes in the writer's process takes no lock of its away: without it anybody
 * else that leaves would fold in the log and remove it. */
static void
test_lock_stays (void)
{
  Place place = place_new ();
  GError *error = NULL;
  CoopGen *gen = coop_gen_new (3, BUDGET);
  CoopModel *model = coop_model_new ();
  CoopStore *store = coop_store_create (place.path, NULL, &error);
  g_assert_no_error (error);
  record (gen, model, store, 5000);
  g_assert_true (locked_for_others (place.path));
  CoopReader *reader = coop_reader_open (place.path, &error);
  g_assert_no_error (error);
  g_assert_true (locked_for_others (place.path));
  coop_reader_free (reader);
  g_assert_true (locked_for_others (place.path));
  g_assert_true (coop_store_close (store, COOP_RUN_ENDED, 0, NULL));
  g_assert_false (locked_for_others (place.path));
  coop_model_free (model);
  coop_gen_free (gen);
  place_clear (&place);
}

static void
note_part (gpointer user, double part)
{
  g_array_append_val ((GArray *) user, part);
}

/* Whoever waits for the end is told how far it is: once an index, never backwards, never beyond all of it. */
static void
test_closing (void)
{
  Place place = place_new ();
  GError *error = NULL;
  g_autoptr (GArray) parts = g_array_new (FALSE, FALSE, sizeof (double));
  CoopGen *gen = coop_gen_new (3, BUDGET);
  CoopModel *model = coop_model_new ();
  CoopStore *store = coop_store_create (place.path, NULL, &error);
  g_assert_no_error (error);
  record (gen, model, store, 1000);
  coop_store_set_closing (store, note_part, parts);
  g_assert_true (coop_store_close (store, COOP_RUN_ENDED, 0, NULL));
  g_assert_cmpuint (parts->len, >=, 3);
  g_assert_cmpfloat (g_array_index (parts, double, 0), ==, 0);
  for (guint i = 1; i < parts->len; i++)
    g_assert_cmpfloat (g_array_index (parts, double, i), >, g_array_index (parts, double, i - 1));
  g_assert_cmpfloat (g_array_index (parts, double, parts->len - 1), <=, 1);
  coop_model_free (model);
  coop_gen_free (gen);
  place_clear (&place);
}

static void
test_busy (void)
{
  Place place = place_new ();
  GError *error = NULL;
  CoopStore *store = coop_store_create (place.path, NULL, &error);
  g_assert_no_error (error);
  assert_refused (place.path, TRUE, COOP_TRACE_ERROR_BUSY, "another run");
  pid_t child = fork ();
  if (child == 0)
    _exit (coop_store_create (place.path, NULL, &error) == NULL
           && g_error_matches (error, COOP_TRACE_ERROR, COOP_TRACE_ERROR_BUSY) ? 0 : 1);
  int status;
  waitpid (child, &status, 0);
  g_assert_cmpint (status, ==, 0);
  g_assert_true (coop_store_close (store, COOP_RUN_ENDED, 0, NULL));
  record_file (place.path, 1, 100);
  place_clear (&place);
}

/* A writer that was killed leaves whole batches, no lock, and a file that says interrupted. */
static void
test_killed (void)
{
  Place place = place_new ();
  GError *error = NULL;
  CoopTraceInfo info;
  int fds[2], status;
  char byte;
  g_assert_cmpint (pipe (fds), ==, 0);
  pid_t child = fork ();
  if (child == 0)
    {
      CoopGen *gen = coop_gen_new (2, BUDGET);
      CoopModel *model = coop_model_new ();
      CoopStore *store = coop_store_create (place.path, NULL, NULL);
      record (gen, model, store, 6000);
      g_usleep (60000);
      coop_store_tick (store);
      g_assert_cmpint (write (fds[1], "x", 1), ==, 1);
      pause ();
    }
  g_assert_cmpint (read (fds[0], &byte, 1), ==, 1);
  assert_refused (place.path, TRUE, COOP_TRACE_ERROR_BUSY, "another run");
  kill (child, SIGKILL);
  waitpid (child, &status, 0);
  CoopReader *reader = coop_reader_open (place.path, &error);
  g_assert_no_error (error);
  g_assert_true (coop_reader_info (reader, &info, &error));
  g_assert_cmpint (info.state, ==, COOP_RUN_INTERRUPTED);
  g_assert_cmpuint (info.events, ==, 6000);
  coop_trace_info_clear (&info);
  coop_reader_free (reader);
  g_autoptr (GArray) findings = coop_check (place.path, 50, NULL, NULL, &error);
  g_assert_no_error (error);
  g_assert_cmpuint (findings->len, ==, 0);
  record_file (place.path, 1, 100);
  g_assert_cmpuint (place_files (&place), ==, 1);
  place_clear (&place);
}

static gboolean
take_number (gpointer user, int n, const char *const *names, const char *const *values, const int *types)
{
  *(guint64 *) user = g_ascii_strtoull (values[0], NULL, 10);
  return FALSE;
}

/* Numbers that come again are counted, and cost nothing but themselves. */
static void
test_repeated (void)
{
  Place place = place_new ();
  GError *error = NULL;
  CoopGen *gen = coop_gen_new (9, BUDGET);
  CoopModel *model = coop_model_new ();
  CoopStore *store = coop_store_create (place.path, NULL, &error);
  guint64 faults = 0, repeated = 0;
  for (guint i = 0; i < 9000; i++)
    {
      const void *body;
      const CoopEvent *ev = coop_gen_next (gen, &body);
      for (guint times = i % 1000 == 999 ? 2 : 1; times > 0; times--)
        {
          faults += coop_model_apply (model, ev, body, NULL) != COOP_FAULT_NONE;
          coop_store_append (store, model, ev, body);
        }
    }
  g_assert_cmpuint (faults, ==, 9);
  g_assert_cmpuint (coop_store_lost (store, NULL), ==, 0);
  g_assert_true (coop_store_close (store, COOP_RUN_ENDED, 0, &error));
  CoopReader *reader = coop_reader_open (place.path, &error);
  coop_reader_query (reader, "SELECT value FROM stat WHERE name = 'repeated_events'", 5, take_number, &repeated, &error);
  g_assert_no_error (error);
  g_assert_cmpuint (repeated, ==, 9);
  CoopModel *read = coop_reader_model_at (reader, G_MAXINT64, &error);
  g_autoptr (GBytes) a = coop_model_save_parts (model, FALSE);
  g_autoptr (GBytes) b = coop_model_save_parts (read, FALSE);
  g_assert_true (g_bytes_equal (a, b));
  coop_model_free (read);
  coop_reader_free (reader);
  g_autoptr (GArray) findings = coop_check (place.path, 50, NULL, NULL, &error);
  g_assert_cmpuint (findings->len, ==, 0);
  coop_model_free (model);
  coop_gen_free (gen);
  place_clear (&place);
}

typedef struct {
  guint64 lost, rows;
  char *why;
} Told;

static gboolean
take_told (gpointer user, int n, const char *const *names, const char *const *values, const int *types)
{
  Told *told = user;
  told->lost = g_ascii_strtoull (values[0], NULL, 10);
  told->why = g_strdup (values[1]);
  told->rows = g_ascii_strtoull (values[2], NULL, 10);
  return TRUE;
}

/* What is said in the file after a failure: the events lost and why; all before is there. */
static void
assert_told (const char *path, guint64 pushed)
{
  GError *error = NULL;
  Told told = { 0 };
  CoopReader *reader = coop_reader_open (path, &error);
  g_assert_no_error (error);
  coop_reader_query (reader, "SELECT (SELECT value FROM stat WHERE name = 'lost_events'),"
                             " (SELECT value FROM meta WHERE key = 'trace_error'), count(*) FROM event",
                     5, take_told, &told, &error);
  g_assert_no_error (error);
  g_assert_cmpuint (told.rows, >, 0);
  g_assert_cmpuint (told.lost, >, 0);
  g_assert_cmpuint (told.lost + told.rows, ==, pushed);
  g_assert_nonnull (told.why);
  g_free (told.why);
  coop_reader_free (reader);
  g_autoptr (GArray) findings = coop_check (path, 50, NULL, NULL, &error);
  g_assert_no_error (error);
  for (guint i = 0; i < findings->len; i++)
    g_test_message ("%s", g_array_index (findings, CoopFinding, i).text);
  g_assert_cmpuint (findings->len, ==, 1);
  g_assert_nonnull (strstr (g_array_index (findings, CoopFinding, 0).text, "could not be written"));
}

static void
test_disk_full (void)
{
  Place place = place_new ();
  GError *error = NULL;
  const char *why;
  CoopGen *gen = coop_gen_new (8, BUDGET);
  CoopModel *model = coop_model_new ();
  CoopStore *store = coop_store_create (place.path, NULL, &error);
  g_assert_no_error (error);
  g_assert_cmpuint (coop_store_lost (store, &why), ==, 0);
  g_assert_null (why);
  sqlite3_exec (store->db, "PRAGMA max_page_count = 500", NULL, NULL, NULL);
  record (gen, model, store, 60000);
  g_assert_cmpuint (coop_store_lost (store, &why), >, 0);
  g_assert_cmpstr (why, ==, "the disk is full");
  g_assert_false (coop_store_close (store, COOP_RUN_ENDED, 0, &error));
  g_assert_error (error, COOP_TRACE_ERROR, COOP_TRACE_ERROR_IO);
  g_assert_nonnull (strstr (error->message, "the disk is full"));
  g_clear_error (&error);
  assert_told (place.path, 60000);
  coop_model_free (model);
  coop_gen_free (gen);
  place_clear (&place);
}

/* The same with real write errors: the system allows no file over so many bytes. */
static void
write_error (guint64 limit_bytes, guint64 n)
{
  Place place = place_new ();
  int status;
  pid_t child = fork ();
  if (child == 0)
    {
      struct rlimit limit = { limit_bytes, limit_bytes };
      signal (SIGXFSZ, SIG_IGN);
      setrlimit (RLIMIT_FSIZE, &limit);
      CoopGen *gen = coop_gen_new (8, BUDGET);
      CoopModel *model = coop_model_new ();
      CoopStore *store = coop_store_create (place.path, NULL, NULL);
      record (gen, model, store, n);
      gboolean lost = coop_store_lost (store, NULL) > 0;
      _exit (lost && !coop_store_close (store, COOP_RUN_ENDED, 0, NULL) ? 0 : 1);
    }
  waitpid (child, &status, 0);
  g_assert_cmpint (status, ==, 0);
  assert_told (place.path, n);
  place_clear (&place);
}

/* Where the limit cuts in: in the log, in the file while the log is folded, in both. */
static void
test_write_error (void)
{
  for (guint64 limit = 1 << 20; limit <= 6 << 20; limit += 700001)
    write_error (limit, 100000);
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  g_test_add_func ("/store/codec", test_codec);
  g_test_add_func ("/store/lossless", test_lossless);
  g_test_add_func ("/store/model-at", test_model_at);
  g_test_add_func ("/store/read-while-written", test_read_while_written);
  g_test_add_func ("/store/refusals", test_refusals);
  g_test_add_func ("/store/lock-stays", test_lock_stays);
  g_test_add_func ("/store/busy", test_busy);
  g_test_add_func ("/store/closing", test_closing);
  g_test_add_func ("/store/killed", test_killed);
  g_test_add_func ("/store/repeated", test_repeated);
  g_test_add_func ("/store/disk-full", test_disk_full);
  g_test_add_func ("/store/write-error", test_write_error);
  return g_test_run ();
}
