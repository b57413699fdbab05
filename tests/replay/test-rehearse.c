/* SPDX-License-Identifier: Apache-2.0 */
/* Rehearsal: what is compared, and that the best of what was tried is what it says. */
#include "replay-support.h"

#include <math.h>

#include "replay/rehearse.h"

/* One step: the first operator costs 100, every other 10; w is the state. Six operators, 150 ns. */
static void
add_step (GString *text, guint k)
{
  guint id = 10 * (k + 1);
  static const char *const lines[] = {
    "{\"op\":\"F1\",\"phase\":\"forward\",\"in\":[1],\"state\":[1],\"out\":[[@1,1024]],\"mut\":[],\"cost\":100}\n",
    "{\"op\":\"F2\",\"phase\":\"forward\",\"in\":[@1],\"out\":[[@2,1024]],\"mut\":[],\"cost\":10}\n",
    "{\"op\":\"F3\",\"phase\":\"forward\",\"in\":[@2],\"out\":[[@3,1024]],\"mut\":[],\"cost\":10}\n",
    "{\"op\":\"B3\",\"phase\":\"backward\",\"in\":[@3],\"out\":[[@4,1024]],\"mut\":[],\"cost\":10}\n",
    "{\"rel\":@3}\n",
    "{\"op\":\"B2\",\"phase\":\"backward\",\"in\":[@2,@4],\"out\":[],\"mut\":[@4],\"cost\":10}\n",
    "{\"rel\":@2}\n",
    "{\"op\":\"B1\",\"phase\":\"backward\",\"in\":[@1,@4],\"out\":[[@6,1024]],\"mut\":[],\"cost\":10}\n",
    "{\"rel\":@1}\n{\"rel\":@4}\n",
    "{\"op\":\"U\",\"phase\":\"optimizer\",\"in\":[@6,1],\"state\":[1],\"out\":[],\"mut\":[1],\"cost\":0}\n",
    "{\"rel\":@6}\n" };
  for (guint i = 0; i < G_N_ELEMENTS (lines); i++)
    for (const char *c = lines[i]; *c != 0; c++)
      if (*c == '@')
        g_string_append_printf (text, "%u", id + (guint) (*++c - '0'));
      else
        g_string_append_c (text, *c);
}

static CoopProgram *
steps (guint n)
{
  g_autoptr (GString) text = g_string_new ("{\"const\":[1,1024]}\n");
  for (guint k = 0; k < n; k++)
    add_step (text, k);
  return program_of (text->str);
}

static CoopPolicy
policy_of (CoopEvictorName evictor, guint64 budget)
{
  CoopPlayOptions o;
  plain_policy (&o, evictor, budget);
  return o.policy;
}

/* Room for w and three more: B3 needs a place while F1, F2 and F3 lie there. LRU drops F1, which costs 100
 * to make again; by cost it is F2, which costs 10. */
static void
test_steps (void)
{
  static const struct { CoopEvictorName evictor; double overhead; } cases[] = {
    { COOP_EVICTOR_LRU, 250.0 / 150 }, { COOP_EVICTOR_COOP, 160.0 / 150 } };
  g_autoptr (CoopProgram) p = steps (5);
  CoopRehearseOptions o;
  coop_rehearse_options_init (&o);
  o.disturb = 0;
  for (guint i = 0; i < G_N_ELEMENTS (cases); i++)
    {
      CoopTrial t;
      CoopPolicy policy = policy_of (cases[i].evictor, 4096);
      coop_rehearse_one (p, &policy, &o, &t);
      g_assert_cmpint (t.result, ==, COOP_PLAY_OK);
      g_assert_cmpfloat_with_epsilon (t.overhead, cases[i].overhead, 1e-12);
      coop_trial_clear (&t);
    }
}

static void
count (gpointer user, const CoopTrial *trial)
{
  guint *n = user;
  g_assert_true (trial->overhead >= 1);
  (*n)++;
}

static void
test_search (void)
{
  g_autoptr (CoopProgram) p = steps (5);
  CoopRehearseOptions o;
  CoopRehearsal out;
  guint n = 0;
  CoopPolicy from = policy_of (COOP_EVICTOR_LRU, 4096);
  coop_rehearse_options_init (&o);
  o.disturb = 0;
  o.tried = count;
  o.user = &n;
  coop_rehearse (p, &from, &o, &out);
  g_assert_cmpuint (out.steps, ==, 3);
  g_assert_cmpuint (out.trials, ==, n);
  g_assert_false (out.stopped);
  g_assert_cmpfloat_with_epsilon (out.as_is.overhead, 250.0 / 150, 1e-12);
  g_assert_cmpfloat_with_epsilon (out.best.overhead, 160.0 / 150, 1e-12);
  g_assert_cmpint (out.best.policy.v[COOP_PARAM_EVICTOR].i, !=, COOP_EVICTOR_LRU);
  g_assert_cmpint (out.best.policy.v[COOP_PARAM_BUDGET].i, ==, 4096);
  g_assert_nonnull (strstr (out.best.text, "evictor="));
  CoopTrial again;
  coop_rehearse_one (p, &out.best.policy, &o, &again);
  g_assert_cmpfloat (again.overhead, ==, out.best.overhead);
  coop_trial_clear (&again);
  coop_rehearsal_clear (&out);
}

/* What is right already stays as it is, and says nothing. */
static void
test_nothing_better (void)
{
  g_autoptr (CoopProgram) p = steps (4);
  CoopRehearseOptions o;
  CoopRehearsal out;
  CoopPolicy from = policy_of (COOP_EVICTOR_COOP, 4096);
  coop_rehearse_options_init (&o);
  o.disturb = 0;
  coop_rehearse (p, &from, &o, &out);
  g_assert_cmpstr (out.best.text, ==, "");
  g_assert_cmpmem (&out.best.policy, sizeof from, &from, sizeof from);
  coop_rehearsal_clear (&out);
}

static gboolean
never (gpointer user)
{
  (void) user;
  return FALSE;
}

static void
test_stopped (void)
{
  g_autoptr (CoopProgram) p = steps (4);
  CoopRehearseOptions o;
  CoopRehearsal out;
  CoopPolicy from = policy_of (COOP_EVICTOR_LRU, 4096);
  coop_rehearse_options_init (&o);
  o.disturb = 0;
  o.keep_on = never;
  coop_rehearse (p, &from, &o, &out);
  g_assert_true (out.stopped);
  g_assert_cmpint (out.best.policy.v[COOP_PARAM_EVICTOR].i, ==, COOP_EVICTOR_LRU);
  coop_rehearsal_clear (&out);
}

/* Costs that are off by up to a tenth move the mean, by no more than a tenth of what is run again. */
static void
test_disturbed (void)
{
  g_autoptr (CoopProgram) p = steps (5);
  CoopRehearseOptions o;
  CoopTrial t, again;
  CoopPolicy policy = policy_of (COOP_EVICTOR_LRU, 4096);
  coop_rehearse_options_init (&o);
  coop_rehearse_one (p, &policy, &o, &t);
  coop_rehearse_one (p, &policy, &o, &again);
  g_assert_cmpfloat (t.overhead, ==, again.overhead);
  g_assert_cmpfloat (t.overhead, !=, 250.0 / 150);
  g_assert_cmpfloat_with_epsilon (t.overhead, 250.0 / 150, 0.1);
  g_assert_cmpuint (t.recomputed_ns, ==, 300);
  coop_trial_clear (&t);
  coop_trial_clear (&again);
}

/* Constants do not fit: nothing runs through, and no policy is said to be good. */
static void
test_no_way (void)
{
  g_autoptr (CoopProgram) p = steps (3);
  CoopRehearseOptions o;
  CoopRehearsal out;
  CoopPolicy from = policy_of (COOP_EVICTOR_COOP, 512);
  coop_rehearse_options_init (&o);
  o.disturb = 0;
  coop_rehearse (p, &from, &o, &out);
  g_assert_true (isinf (out.best.overhead));
  g_assert_cmpstr (out.best.text, ==, "");
  coop_rehearsal_clear (&out);
}

/* Three KiB are copied at 4 bytes a ns, unless told otherwise, to make room: time like any other. */
static void
test_copies_count (void)
{
  g_autoptr (CoopProgram) p
      = program_of ("{\"op\":\"A\",\"in\":[],\"out\":[[1,1024]],\"mut\":[],\"cost\":10}\n"
                    "{\"op\":\"B\",\"in\":[],\"out\":[[2,1024]],\"mut\":[],\"cost\":10}\n"
                    "{\"op\":\"C\",\"in\":[],\"out\":[[3,2048]],\"mut\":[],\"cost\":9000}\n"
                    "{\"op\":\"D\",\"in\":[],\"out\":[[4,1024]],\"mut\":[],\"cost\":10}\n"
                    "{\"pin\":[2,\"constant\"]}\n{\"rel\":1}\n{\"rel\":4}\n"
                    "{\"op\":\"F\",\"in\":[],\"out\":[[5,2048]],\"mut\":[],\"cost\":1}\n");
  CoopRehearseOptions o;
  CoopTrial t;
  CoopPolicy policy = policy_of (COOP_EVICTOR_COOP, 5120);
  policy.v[COOP_PARAM_COMPACT].i = 1;
  coop_rehearse_options_init (&o);
  o.disturb = 0;
  coop_rehearse_one (p, &policy, &o, &t);
  g_assert_cmpuint (t.copied_ns, ==, 3072 / 4);
  g_assert_cmpuint (t.recomputed_ns, ==, 0);
  g_assert_cmpfloat_with_epsilon (t.overhead, (9031.0 + 768) / 9031, 1e-12);
  coop_trial_clear (&t);
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  g_test_add_func ("/replay/rehearse/steps", test_steps);
  g_test_add_func ("/replay/rehearse/search", test_search);
  g_test_add_func ("/replay/rehearse/nothing-better", test_nothing_better);
  g_test_add_func ("/replay/rehearse/stopped", test_stopped);
  g_test_add_func ("/replay/rehearse/disturbed", test_disturbed);
  g_test_add_func ("/replay/rehearse/no-way", test_no_way);
  g_test_add_func ("/replay/rehearse/copies-count", test_copies_count);
  return g_test_run ();
}
