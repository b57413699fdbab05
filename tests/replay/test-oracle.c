/* SPDX-License-Identifier: Apache-2.0 */
/* Recorded training steps through the engine, beside what a separate simulator made of them. */
#include "replay-support.h"

#include <math.h>
#include <stdlib.h>

static const char *const programs[] = { "resnet50", "unet", "bert_large", "bilstm" };

static void
set_policy (CoopPolicy *policy, const char *name, uint64_t budget)
{
  coop_policy_init (policy);
  coop_policy_preset (policy, g_str_has_prefix (name, "coop") ? COOP_EVICTOR_COOP
                              : g_str_equal (name, "dtr")     ? COOP_EVICTOR_DTR_EQ
                                                              : COOP_EVICTOR_LRU);
  policy->v[COOP_PARAM_GROUPS].i = g_str_has_prefix (name, "coop") && name[4] != '1' ? 2 : 1;
  policy->v[COOP_PARAM_DENSITY].d = 0;
  policy->v[COOP_PARAM_DESCENT].i = 0;
  policy->v[COOP_PARAM_COMPACT].i = 0;
  policy->v[COOP_PARAM_SMALL].i = 0;
  policy->v[COOP_PARAM_HOLD].i = 0;
  policy->v[COOP_PARAM_THRASH].i = 0;
  policy->v[COOP_PARAM_BUDGET].i = (int64_t) budget;
}

static CoopPlayOutcome
play (const CoopProgram *r, const CoopPolicy *policy)
{
  CoopPlayOptions options;
  CoopPlayOutcome out;
  coop_play_options_init (&options);
  options.policy = *policy;
  coop_play (r, &options, &out);
  return out;
}

/* The recorded peak is the engine's own, to the byte, and without limit nothing is run twice. */
static void
test_peak (void)
{
  for (unsigned i = 0; i < G_N_ELEMENTS (programs); i++)
    {
      CoopPolicy policy;
      CoopProgram *r = load_oracle (programs[i]);
      set_policy (&policy, "coop", 0);
      CoopPlayOutcome out = play (r, &policy);
      g_test_message ("%s", programs[i]);
      g_assert_true ((out.result == COOP_PLAY_OK));
      g_assert_cmpuint (out.totals.peak, ==, r->stated_peak);
      g_assert_cmpuint (out.totals.replays, ==, 0);
      g_assert_cmpstr (out.fault, ==, NULL);
      coop_program_free (r);
    }
}

static void
compare (const CoopProgram *r, char **row)
{
  CoopPolicy policy;
  double ratio = g_ascii_strtod (row[2], NULL), theirs = g_ascii_strtod (row[4], NULL);
  bool finished = g_str_equal (row[3], "ok");
  set_policy (&policy, row[1], (uint64_t) (ratio * (double) r->stated_peak));
  CoopPlayOutcome out = play (r, &policy);
  g_test_message ("%-10s %-8s %s  ours %s %.4f (%4u evictions, %4u replays)  theirs %s %.4f (%s, %s)",
                  row[0], row[1], row[2], (out.result == COOP_PLAY_OK) ? "ok " : "no ", out.overhead,
                  (unsigned) out.totals.evictions, (unsigned) out.totals.replays, row[3], theirs,
                  row[5], row[6]);
  g_assert_cmpstr (out.fault, ==, NULL);
  g_assert_cmpuint (out.totals.peak, <=, policy.v[COOP_PARAM_BUDGET].i);
  /* the same rules make the same decisions, each of them; coop and coop1 there sum another chain */
  if (finished && (row[1][0] != 'c' || g_str_equal (row[1], "coop+eq")))
    {
      g_assert_true (out.result == COOP_PLAY_OK);
      g_assert_cmpfloat (fabs (out.overhead - theirs), <, 0.0001);
      g_assert_cmpuint (out.totals.evictions, ==, g_ascii_strtoull (row[5], NULL, 10));
      g_assert_cmpuint (out.totals.replays, ==, g_ascii_strtoull (row[6], NULL, 10));
    }
}

static void
test_overhead (void)
{
  char *path = g_strdup_printf ("%s/oracle/results.csv", g_getenv ("COOP_FIXTURES")), *text;
  g_assert_true (g_file_get_contents (path, &text, NULL, NULL));
  char **lines = g_strsplit (text, "\n", -1);
  for (unsigned i = 0; i < G_N_ELEMENTS (programs); i++)
    {
      CoopProgram *r = load_oracle (programs[i]);
      for (char **line = lines + 1; *line != NULL; line++)
        {
          char **row = g_strsplit (*line, ",", -1);
          if (row[0] != NULL && g_str_equal (row[0], programs[i]))
            compare (r, row);
          g_strfreev (row);
        }
      coop_program_free (r);
    }
  g_strfreev (lines);
  g_free (text);
  g_free (path);
}

/* Where memory runs out, the budget that the report names is enough: from 15 % of the peak on, below
 * which the program ends before an operator of usual size was seen. */
static void
test_advice (void)
{
  static const char *const names[] = { "coop", "dtr" };
  unsigned failed = 0;
  for (unsigned i = 0; i < G_N_ELEMENTS (programs); i++)
    {
      CoopProgram *r = load_oracle (programs[i]);
      for (unsigned k = 0; k < G_N_ELEMENTS (names); k++)
        for (unsigned percent = 15; percent <= 45; percent += 10)
          {
            CoopPolicy policy;
            set_policy (&policy, names[k], r->stated_peak * percent / 100);
            CoopPlayOutcome out = play (r, &policy);
            if ((out.result == COOP_PLAY_OK) || out.totals.ooms == 0)
              continue;
            failed++;
            policy.v[COOP_PARAM_BUDGET].i = (int64_t) out.oom.advice;
            CoopPlayOutcome again = play (r, &policy);
            g_test_message ("%s %s %u %%: advice %.0f %% of the peak, %s, overhead %.3f", programs[i],
                            names[k], percent,
                            100.0 * (double) out.oom.advice / (double) r->stated_peak,
                            (again.result == COOP_PLAY_OK) ? "enough" : "NOT ENOUGH", again.overhead);
            g_assert_true ((again.result == COOP_PLAY_OK));
            g_assert_cmpuint (out.oom.advice, >, r->stated_peak * percent / 100);
          }
      coop_program_free (r);
    }
  g_assert_cmpuint (failed, >, 10);
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  g_test_add_func ("/replay/oracle/peak", test_peak);
  g_test_add_func ("/replay/oracle/overhead", test_overhead);
  g_test_add_func ("/replay/oracle/advice", test_advice);
  return g_test_run ();
}
