/* SPDX-License-Identifier: Apache-2.0 */
/* How many events a second the model and the store take, on one core, with a generated mix like a
 * real one's; against the plainest thing SQLite can do: one table of seven integers, one row an event.
 *
 *   bench-store [EVENTS [ROUNDS]]
 */
#include <glib/gstdio.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "median.h"
#include "../support/gen-events.h"
#include "trace/store.h"

#define BUDGET (640u << 10)

typedef struct {
  GByteArray *bytes; /* header and body, one after the other */
  guint64 n;
} Run;

static Run
generate (guint64 n)
{
  Run run = { g_byte_array_new (), n };
  CoopGen *gen = coop_gen_new (1, BUDGET);
  for (guint64 i = 0; i < n; i++)
    {
      const void *body;
      const CoopEvent *ev = coop_gen_next (gen, &body);
      g_byte_array_append (run.bytes, (const guint8 *) ev, sizeof *ev);
      if (ev->more > 0)
        g_byte_array_append (run.bytes, body, 64 * ev->more);
    }
  coop_gen_free (gen);
  return run;
}

static double
seconds_since (gint64 start)
{
  return (double) (g_get_monotonic_time () - start) / 1e6;
}

/* Model alone if path is NULL. *bytes: size of the closed file; *closing: seconds of it. */
static double
record (const Run *run, const char *path, double *bytes, double *closing)
{
  CoopModel *model = coop_model_new ();
  CoopStore *store = path != NULL ? coop_store_create (path, NULL, NULL) : NULL;
  gint64 start = g_get_monotonic_time ();
  for (guint8 *at = run->bytes->data; at < run->bytes->data + run->bytes->len;)
    {
      const CoopEvent *ev = (const CoopEvent *) at;
      coop_model_apply (model, ev, at + 64, NULL);
      if (store != NULL)
        coop_store_append (store, model, ev, at + 64);
      at += 64 * (1 + ev->more);
    }
  double seconds = seconds_since (start);
  if (store != NULL)
    {
      GStatBuf st;
      g_assert_cmpuint (coop_store_lost (store, NULL), ==, 0);
      start = g_get_monotonic_time ();
      coop_store_close (store, COOP_RUN_ENDED, 0, NULL);
      *closing = seconds_since (start);
      *bytes = g_stat (path, &st) == 0 ? (double) st.st_size : 0;
      g_remove (path);
    }
  coop_model_free (model);
  return seconds;
}

static double
plain (const Run *run, const char *path)
{
  sqlite3 *db;
  sqlite3_stmt *statement;
  sqlite3_open (path, &db);
  sqlite3_exec (db, "PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL;"
                    "CREATE TABLE e (a INTEGER PRIMARY KEY, b, c, d, e, f, g)", NULL, NULL, NULL);
  sqlite3_prepare_v2 (db, "INSERT INTO e VALUES (?,?,?,?,?,?,?)", -1, &statement, NULL);
  gint64 start = g_get_monotonic_time ();
  guint64 n = 0;
  for (guint8 *at = run->bytes->data; at < run->bytes->data + run->bytes->len; n++)
    {
      const CoopEvent *ev = (const CoopEvent *) at;
      const guint64 values[] = { ev->seq, ev->ts, ev->kind, ev->u.word[0], ev->u.word[1], ev->u.word[2], ev->u.word[3] };
      if (n % 4096 == 0)
        sqlite3_exec (db, n > 0 ? "COMMIT; BEGIN" : "BEGIN", NULL, NULL, NULL);
      for (int i = 0; i < 7; i++)
        sqlite3_bind_int64 (statement, i + 1, (gint64) values[i]);
      sqlite3_step (statement);
      sqlite3_reset (statement);
      at += 64 * (1 + ev->more);
    }
  sqlite3_exec (db, "COMMIT", NULL, NULL, NULL);
  double seconds = seconds_since (start);
  sqlite3_finalize (statement);
  sqlite3_close (db);
  g_remove (path);
  return seconds;
}

int
main (int argc, char **argv)
{
  guint64 n = argc > 1 ? g_ascii_strtoull (argv[1], NULL, 10) : 400000;
  guint rounds = argc > 2 ? (guint) CLAMP (atoi (argv[2]), 1, 99) : 5;
  g_autofree char *dir = g_dir_make_tmp ("coop-bench-XXXXXX", NULL);
  g_autofree char *path = g_build_filename (dir, "bench.coop", NULL);
  g_autofree double *store = g_new (double, rounds);
  g_autofree double *model = g_new (double, rounds);
  g_autofree double *peer = g_new (double, rounds);
  double bytes = 0, closing = 0;
  Run run = generate (n);
  for (guint i = 0; i < rounds; i++)
    {
      model[i] = record (&run, NULL, NULL, NULL);
      store[i] = record (&run, path, &bytes, &closing);
      peer[i] = plain (&run, path);
    }
  double count = (double) n, s = median (store, rounds), m = median (model, rounds), p = median (peer, rounds);
  printf ("bench store_events %.0f events/s ratio %.2f vs sqlite_one_table\n", count / s, s / p);
  printf ("bench model_apply %.0f events/s ratio %.2f vs sqlite_one_table\n", count / m, m / p);
  printf ("bench store_bytes %.1f bytes/event ratio %.2f vs wire_records\n", bytes / count,
          bytes / (double) run.bytes->len);
  printf ("bench store_close %.2f s ratio %.2f vs recording\n", closing, closing / s);
  printf ("\n%" G_GUINT64_FORMAT " events, %u rounds, medians (least to most)\n", n, rounds);
  printf ("  model and store   %8.0f events/s (%.0f to %.0f)\n", count / s, count / store[rounds - 1], count / store[0]);
  printf ("  model alone       %8.0f events/s (%.0f to %.0f)\n", count / m, count / model[rounds - 1], count / model[0]);
  printf ("  one plain table   %8.0f events/s (%.0f to %.0f)\n", count / p, count / peer[rounds - 1], count / peer[0]);
  g_byte_array_unref (run.bytes);
  g_rmdir (dir);
  return 0;
}
