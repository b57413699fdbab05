/* SPDX-License-Identifier: Apache-2.0 */
/* Recorded training steps on the allocators of segments, beside what a separate simulator made of them:
 * class (chunks of 2^k with 8 steps, given back at no cost), and free page tables, which is page with
 * the smallest page there is. */
#include "replay-support.h"

#include <math.h>

static const char *const programs[] = { "resnet50", "unet", "bert_large", "bilstm" };

static void
set_policy (CoopPolicy *policy, const char *pool, CoopEvictorName evictor, uint64_t budget)
{
  coop_policy_init (policy);
  coop_policy_preset (policy, evictor);
  bool class = g_str_equal (pool, "class");
  policy->v[COOP_PARAM_ALLOCATOR].i = class ? COOP_ALLOCATOR_CLASS : COOP_ALLOCATOR_PAGE;
  policy->v[COOP_PARAM_PAGE].i = 512;
  policy->v[COOP_PARAM_PAGE_COST].d = 0;
  policy->v[COOP_PARAM_DESCENT].i = 0;
  policy->v[COOP_PARAM_COMPACT].i = 0;
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
  g_assert_cmpstr (out.fault, ==, NULL);
  if (policy->v[COOP_PARAM_BUDGET].i > 0)
    g_assert_cmpuint (out.totals.held_most, <=, policy->v[COOP_PARAM_BUDGET].i);
  return out;
}

static unsigned same, compared;

static void
compare (const CoopProgram *r, char **row)
{
  CoopPolicy policy;
  double ratio = g_ascii_strtod (row[3], NULL), theirs = g_ascii_strtod (row[5], NULL);
  bool lru = g_str_equal (row[2], "lru");
  set_policy (&policy, row[1], lru ? COOP_EVICTOR_LRU : COOP_EVICTOR_DTR_EQ,
              (uint64_t) (ratio * (double) r->stated_peak));
  CoopPlayOutcome out = play (r, &policy);
  g_test_message ("%-10s %-8s %-9s %s  ours %-9s %.4f (%4u evictions, %4u replays)  theirs %s %.4f (%s, %s)",
                  row[0], row[1], row[2], row[3], coop_play_label (out.result), out.overhead,
                  (unsigned) out.totals.evictions, (unsigned) out.totals.replays, row[4], theirs,
                  row[6], row[7]);
  g_assert_cmpint (out.result == COOP_PLAY_OK, ==, g_str_equal (row[4], "ok"));
  if (out.result != COOP_PLAY_OK)
    return;
  /* what was used at the same time goes in another order here and there: few programs have such ties
   * among scores, all have them among times of use */
  g_assert_cmpfloat (fabs (out.overhead - theirs), <, lru ? 0.003 : 0.0002);
  same += out.totals.evictions == g_ascii_strtoull (row[6], NULL, 10)
          && out.totals.replays == g_ascii_strtoull (row[7], NULL, 10);
  compared++;
}

static void
test_overhead (void)
{
  char *path = g_strdup_printf ("%s/oracle/results-pools.csv", g_getenv ("COOP_FIXTURES")), *text;
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
  g_test_message ("%u of %u points to the last eviction", same, compared);
  g_assert_cmpuint (compared, >=, 65);
  g_assert_cmpuint (same * 10, >=, compared * 9);
  g_strfreev (lines);
  g_free (text);
  g_free (path);
}

/* coop-plus on one merging arena, copies counted, beside dtr-eq with free page tables, which counts bytes
 * only: it finishes wherever that does, and costs at most 2 % more at each ratio over the programs. */
static void
test_plus (void)
{
  static const unsigned percents[] = { 90, 80, 70, 60, 50, 40 };
  for (unsigned k = 0; k < G_N_ELEMENTS (percents); k++)
    {
      double ours = 0, bound = 0;
      uint64_t moves = 0;
      for (unsigned i = 0; i < G_N_ELEMENTS (programs); i++)
        {
          CoopPolicy policy;
          CoopProgram *r = load_oracle (programs[i]);
          uint64_t budget = r->stated_peak * percents[k] / 100;
          r->copy_rate = 1000; /* bytes per ns: of the memory of the GPU that costs were modelled on */
          r->launch_ns = 5000;
          set_policy (&policy, "fungible", COOP_EVICTOR_DTR_EQ, budget);
          CoopPlayOutcome free = play (r, &policy);
          set_policy (&policy, "merge", COOP_EVICTOR_COOP_PLUS, budget);
          policy.v[COOP_PARAM_ALLOCATOR].i = COOP_ALLOCATOR_MERGE;
          policy.v[COOP_PARAM_COMPACT].i = 1;
          policy.v[COOP_PARAM_SMALL].i = 0;
          policy.v[COOP_PARAM_COPY_RATE].d = 1000;
          CoopPlayOutcome plus = play (r, &policy);
          g_test_message ("%-10s .%u  free page tables %s %.4f, coop-plus %s %.4f with %u moves of %.1f us",
                          programs[i], percents[k], coop_play_label (free.result), free.overhead,
                          coop_play_label (plus.result), plus.overhead, (unsigned) plus.totals.moves,
                          plus.totals.moves > 0 ? (double) plus.move_ns / 1000 / (double) plus.totals.moves : 0);
          if (free.result == COOP_PLAY_OK)
            {
              g_assert_cmpint (plus.result, ==, COOP_PLAY_OK);
              ours += log (plus.overhead);
              bound += log (free.overhead);
              moves += plus.totals.moves;
            }
          coop_program_free (r);
        }
      g_assert_cmpuint (moves, >, 0);
      double more = exp ((ours - bound) / G_N_ELEMENTS (programs));
      g_test_message (".%u: %.4f times free page tables", percents[k], more);
      g_assert_cmpfloat (more, <, 1.05);
    }
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  g_test_add_func ("/replay/pools/overhead", test_overhead);
  g_test_add_func ("/replay/pools/plus", test_plus);
  return g_test_run ();
}
