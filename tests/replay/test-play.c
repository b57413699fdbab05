/* SPDX-License-Identifier: Apache-2.0 */
/* Programs so small that every decision was worked out with a pencil. Sizes are 1 KiB unless said. */
#include "replay-support.h"

#include <math.h>

/* LRU, room for three. d needs room: a was used at 10 (by B), b at 30 (by C), c is pinned: a goes. E needs
 * a again: A runs again in b's place (b was used at 30, c at 60); E's own block takes c's. */
static const char chain[] = "{\"op\":\"A\",\"in\":[],\"out\":[[1,1024]],\"mut\":[],\"cost\":10}\n"
                            "{\"op\":\"B\",\"in\":[1],\"out\":[[2,1024]],\"mut\":[],\"cost\":20}\n"
                            "{\"op\":\"C\",\"in\":[2],\"out\":[[3,1024]],\"mut\":[],\"cost\":30}\n"
                            "{\"op\":\"D\",\"in\":[3],\"out\":[[4,1024]],\"mut\":[],\"cost\":40}\n"
                            "{\"op\":\"E\",\"in\":[1,4],\"out\":[[5,1024]],\"mut\":[],\"cost\":50}\n";

static void
test_lru (void)
{
  CoopPlayOptions o;
  CoopPlayOutcome out;
  g_autoptr (CoopProgram) p = program_of (chain);
  plain_policy (&o, COOP_EVICTOR_LRU, 3072);
  g_autofree char *log = play_log (p, &o, &out);
  g_assert_cmpstr (log, ==, "A0 A1024 A2048 E0 A0 E1024 A1024 E2048 A2048");
  g_assert_cmpint (out.result, ==, COOP_PLAY_OK);
  g_assert_cmpuint (out.plain_ns, ==, 150);
  g_assert_cmpuint (out.cost_ns, ==, 160);
  g_assert_cmpuint (out.totals.evictions, ==, 3);
  g_assert_cmpuint (out.totals.replays, ==, 1);
  g_assert_cmpuint (out.totals.peak, ==, 3072);
  g_assert_cmpuint (coop_play_peak (p), ==, 5 * 1024);
}

/* At 2020 a has staleness 1020, b 1010, c 1000, d none (made now). a and b together 1000/1020 + 10/1010,
 * b and c 10/1010 + 10/1000: the window is b and c, though LRU would take a and b. */
static void
test_window (void)
{
  CoopPlayOptions o;
  CoopPlayOutcome out;
  g_autoptr (CoopProgram) p
      = program_of ("{\"op\":\"A\",\"in\":[],\"out\":[[1,1024]],\"mut\":[],\"cost\":1000}\n"
                    "{\"op\":\"B\",\"in\":[],\"out\":[[2,1024]],\"mut\":[],\"cost\":10}\n"
                    "{\"op\":\"C\",\"in\":[],\"out\":[[3,1024]],\"mut\":[],\"cost\":10}\n"
                    "{\"op\":\"D\",\"in\":[],\"out\":[[4,1024]],\"mut\":[],\"cost\":1000}\n"
                    "{\"op\":\"F\",\"in\":[],\"out\":[[5,2048]],\"mut\":[],\"cost\":1}\n");
  plain_policy (&o, COOP_EVICTOR_COOP, 4096);
  g_autofree char *coop = play_log (p, &o, &out);
  g_assert_cmpstr (coop, ==, "A0 A1024 A2048 A3072 E1024 E2048 A1024");
  plain_policy (&o, COOP_EVICTOR_LRU, 4096);
  g_autofree char *lru = play_log (p, &o, &out);
  g_assert_cmpstr (lru, ==, "A0 A1024 A2048 A3072 E0 E1024 A0");
}

/* Everything is evicted after every operator. B: A again. M: A again. E wants x' and y: A again, M on what
 * it gave; and, for y, the old x: A again, B again. 4 x 10 + 20 + 5 on top of 36. */
static void
test_in_place (void)
{
  CoopPlayOptions o;
  CoopPlayOutcome out;
  g_autoptr (CoopProgram) p
      = program_of ("{\"op\":\"A\",\"in\":[],\"out\":[[1,1024]],\"mut\":[],\"cost\":10}\n"
                    "{\"op\":\"B\",\"in\":[1],\"out\":[[2,1024]],\"mut\":[],\"cost\":20}\n"
                    "{\"op\":\"M\",\"in\":[1],\"out\":[],\"mut\":[1],\"cost\":5}\n"
                    "{\"op\":\"E\",\"in\":[1,2],\"out\":[[3,1024]],\"mut\":[],\"cost\":1}\n");
  plain_policy (&o, COOP_EVICTOR_LRU, 0);
  o.policy.v[COOP_PARAM_STRESS].i = 1;
  coop_play (p, &o, &out);
  g_assert_cmpint (out.result, ==, COOP_PLAY_OK);
  g_assert_cmpuint (out.totals.replays, ==, 6);
  g_assert_cmpuint (out.plain_ns, ==, 36);
  g_assert_cmpuint (out.cost_ns, ==, 36 + 65);
  g_assert_cmpstr (out.fault, ==, NULL);
}

/* The first and third of three blocks are let go; the middle stays. Two blocks' worth is free and in two
 * places: no room, unless the middle may be moved. */
static const char split[] = "{\"op\":\"A\",\"in\":[],\"out\":[[1,1024]],\"mut\":[],\"cost\":10}\n"
                            "{\"op\":\"B\",\"in\":[],\"out\":[[2,1024]],\"mut\":[],\"cost\":10}\n"
                            "{\"op\":\"C\",\"in\":[],\"out\":[[3,1024]],\"mut\":[],\"cost\":10}\n"
                            "{\"pin\":[2,\"constant\"]}\n{\"rel\":1}\n{\"rel\":3}\n"
                            "{\"op\":\"F\",\"in\":[],\"out\":[[4,2048]],\"mut\":[],\"cost\":1}\n";

static void
test_no_room (void)
{
  CoopPlayOptions o;
  CoopPlayOutcome out;
  g_autoptr (CoopProgram) p = program_of (split);
  plain_policy (&o, COOP_EVICTOR_COOP, 3072);
  coop_play (p, &o, &out);
  g_assert_cmpint (out.result, ==, COOP_PLAY_NO_ROOM);
  g_assert_cmpuint (out.line, ==, 6);
  g_assert_cmpuint (out.oom.asked, ==, 2048);
  g_assert_cmpuint (out.oom.free, ==, 2048);
  g_assert_cmpuint (out.oom.largest, ==, 1024);
  o.policy.v[COOP_PARAM_COMPACT].i = 1;
  g_autofree char *log = play_log (p, &o, &out);
  g_assert_cmpint (out.result, ==, COOP_PLAY_OK);
  g_assert_cmpstr (log, ==, "A0 A1024 A2048 M1024>0 A1024");
}

/* Free are a KiB at both ends; between them 1 KiB that must stay and 2 KiB that may go for their cost. To move
 * them takes as long as copying 3 KiB. */
static void
test_move_or_evict (void)
{
  static const struct { unsigned cost; double rate; const char *rest; } cases[] = {
    { 3000, 1, "E2048 A2048" },
    { 3100, 1, "M1024>0 M2048>1024 A3072" },
    { 3100, 0.9, "E2048 A2048" },
    { 3100, 0, "E2048 A2048" },
  };
  for (guint i = 0; i < G_N_ELEMENTS (cases); i++)
    {
      CoopPlayOptions o;
      CoopPlayOutcome out;
      g_autofree char *text = g_strdup_printf (
          "{\"op\":\"A\",\"in\":[],\"out\":[[1,1024]],\"mut\":[],\"cost\":10}\n"
          "{\"op\":\"B\",\"in\":[],\"out\":[[2,1024]],\"mut\":[],\"cost\":10}\n"
          "{\"op\":\"C\",\"in\":[],\"out\":[[3,2048]],\"mut\":[],\"cost\":%u}\n"
          "{\"op\":\"D\",\"in\":[],\"out\":[[4,1024]],\"mut\":[],\"cost\":10}\n"
          "{\"pin\":[2,\"constant\"]}\n{\"rel\":1}\n{\"rel\":4}\n"
          "{\"op\":\"F\",\"in\":[],\"out\":[[5,2048]],\"mut\":[],\"cost\":1}\n", cases[i].cost);
      g_autoptr (CoopProgram) p = program_of (text);
      plain_policy (&o, COOP_EVICTOR_COOP, 5120);
      o.policy.v[COOP_PARAM_COMPACT].i = 1;
      o.policy.v[COOP_PARAM_COPY_RATE].d = cases[i].rate;
      g_autofree char *log = play_log (p, &o, &out);
      g_autofree char *want = g_strconcat ("A0 A1024 A2048 A4096 ", cases[i].rest, NULL);
      g_assert_cmpint (out.result, ==, COOP_PLAY_OK);
      g_assert_cmpstr (log, ==, want);
    }
}

static void
test_no_memory (void)
{
  CoopPlayOptions o;
  CoopPlayOutcome out;
  g_autoptr (CoopProgram) p = program_of (chain);
  plain_policy (&o, COOP_EVICTOR_LRU, 2048);   /* E needs three blocks at once */
  coop_play (p, &o, &out);
  g_assert_cmpint (out.result, ==, COOP_PLAY_NO_BYTES);
  g_autoptr (CoopProgram) constants
      = program_of ("{\"const\":[1,1024]}\n{\"const\":[2,4096]}\n"
                    "{\"op\":\"A\",\"in\":[1],\"out\":[],\"mut\":[],\"cost\":1}\n");
  plain_policy (&o, COOP_EVICTOR_COOP, 4096);
  coop_play (constants, &o, &out);
  g_assert_cmpint (out.result, ==, COOP_PLAY_CONSTANTS);
  g_assert_true (isnan (out.overhead));
}

static void
test_too_slow (void)
{
  CoopPlayOptions o;
  CoopPlayOutcome out;
  g_autoptr (CoopProgram) p = program_of (chain);
  plain_policy (&o, COOP_EVICTOR_LRU, 3072);
  o.most = 1.5;
  coop_play (p, &o, &out);
  g_assert_cmpint (out.result, ==, COOP_PLAY_OK);
  o.policy.v[COOP_PARAM_STRESS].i = 1;
  o.most = 1.05;   /* 150: up to 157 */
  coop_play (p, &o, &out);
  g_assert_cmpint (out.result, ==, COOP_PLAY_TOO_SLOW);
}

/* What the k-th recomputation cost, where the program says so. */
static void
test_again (void)
{
  CoopPlayOptions o;
  CoopPlayOutcome out;
  g_autofree char *text = g_strdup (chain);
  char *cost = strstr (text, "\"cost\":10");
  g_autofree char *with = g_strdup_printf ("%.*s\"cost\":10,\"again\":[7]%s", (int) (cost - text), text, cost + 9);
  g_autoptr (CoopProgram) p = program_of (with);
  plain_policy (&o, COOP_EVICTOR_LRU, 3072);
  coop_play (p, &o, &out);
  g_assert_cmpuint (out.cost_ns, ==, 157);
}

/* A workspace is allocated and freed beside the output, in a recomputation as well. */
static void
test_workspace (void)
{
  CoopPlayOptions o;
  CoopPlayOutcome out;
  g_autoptr (CoopProgram) p
      = program_of ("{\"op\":\"A\",\"in\":[],\"out\":[[1,1024]],\"mut\":[],\"cost\":10,"
                    "\"do\":[[\"tmp\",1,2048],[\"out\",0],[\"free\",1]]}\n"
                    "{\"op\":\"B\",\"in\":[1],\"out\":[[2,1024]],\"mut\":[],\"cost\":10}\n");
  plain_policy (&o, COOP_EVICTOR_LRU, 0);
  o.policy.v[COOP_PARAM_STRESS].i = 1;
  o.capacity = 1 << 20;
  g_autofree char *log = play_log (p, &o, &out);
  g_assert_cmpstr (log, ==, "A0 A2048 E2048 A0 A2048 A0 E0 E2048");
  g_assert_cmpuint (out.totals.peak, ==, 3072);
}

/* The same events each time, to the byte. */
static void
note_bytes (void *user, CoopEvent *ev, const void *body)
{
  g_checksum_update (user, (const guchar *) ev, sizeof *ev);
  if (ev->more > 0)
    g_checksum_update (user, body, (gssize) ev->more * COOP_RECORD_BYTES);
}

static void
test_deterministic (void)
{
  g_autofree char *path = g_strdup_printf ("%s/oracle/unet.jsonl.gz", g_getenv ("COOP_FIXTURES"));
  g_autoptr (CoopProgram) p = coop_program_load (path, NULL);
  char *sums[2] = { NULL, NULL };
  for (int i = 0; i < 2; i++)
    {
      CoopPlayOptions o;
      CoopPlayOutcome out;
      g_autoptr (GChecksum) sum = g_checksum_new (G_CHECKSUM_SHA256);
      coop_play_options_init (&o);
      o.policy.v[COOP_PARAM_BUDGET].i = (gint64) (p->stated_peak / 2);
      o.sink = (CoopSink) { note_bytes, sum };
      coop_play (p, &o, &out);
      g_assert_cmpuint (out.events, >, 1000);
      sums[i] = g_strdup (g_checksum_get_string (sum));
    }
  g_assert_cmpstr (sums[0], ==, sums[1]);
  g_free (sums[0]);
  g_free (sums[1]);
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  g_test_add_func ("/replay/play/lru", test_lru);
  g_test_add_func ("/replay/play/window", test_window);
  g_test_add_func ("/replay/play/in-place", test_in_place);
  g_test_add_func ("/replay/play/no-room", test_no_room);
  g_test_add_func ("/replay/play/move-or-evict", test_move_or_evict);
  g_test_add_func ("/replay/play/no-memory", test_no_memory);
  g_test_add_func ("/replay/play/too-slow", test_too_slow);
  g_test_add_func ("/replay/play/again", test_again);
  g_test_add_func ("/replay/play/workspace", test_workspace);
  g_test_add_func ("/replay/play/deterministic", test_deterministic);
  return g_test_run ();
}
