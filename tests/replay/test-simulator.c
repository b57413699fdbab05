/* SPDX-License-Identifier: Apache-2.0 */
/* Logs of DTR's simulator, decided upon as it decides: a pool that counts bytes alone, and nothing that
 * the published methods lack. */
#include "replay/play.h"

#include <math.h>

static const char *
label (CoopEvictorName evictor)
{
  return coop_param_info[COOP_PARAM_EVICTOR].labels[evictor];
}

static CoopPlayOutcome
play (const CoopProgram *p, CoopEvictorName evictor, guint64 budget, double most)
{
  CoopPlayOptions o;
  CoopPlayOutcome out;
  coop_play_options_init (&o);
  coop_policy_init (&o.policy);
  coop_policy_preset (&o.policy, evictor);
  o.policy.v[COOP_PARAM_ALLOCATOR].i = COOP_ALLOCATOR_PAGE;
  o.policy.v[COOP_PARAM_PAGE].i = 512;
  o.policy.v[COOP_PARAM_PAGE_COST].d = 0;
  o.policy.v[COOP_PARAM_COMPACT].i = 0;
  o.policy.v[COOP_PARAM_DESCENT].i = 0;
  o.policy.v[COOP_PARAM_SMALL].i = 0;
  o.policy.v[COOP_PARAM_BUDGET].i = (gint64) budget;
  o.most = most;
  coop_play (p, &o, &out);
  g_assert_cmpstr (out.fault, ==, NULL);
  return out;
}

/* 2,048 bytes for a (1,024), b (512), c (1,024) and d (512), by hand. For c, whose input is b, only a can
 * go. d = k (a) asks for a again; b (last used at 111) or c (just made, at 161) has to go for it:
 *   dtr-eq  b: (10 + 100 of a, evicted beside it) / (512 * 50); c: no time has passed, infinite   -> b
 *   lru     b is older                                                                           -> b
 *   size    1 / 512 against 1 / 1,024                                                            -> c
 *   msps    b: (10 + 100 of a above it) / 512; c: 50 / 1,024, as b is there                      -> c
 * With b gone 512 bytes are still wanted for d, and c goes, too; with c gone there is room. */
static void
test_twelve (void)
{
  static const struct {
    CoopEvictorName evictor;
    guint evictions;
  } rows[] = { { COOP_EVICTOR_DTR_EQ, 3 }, { COOP_EVICTOR_LRU, 3 }, { COOP_EVICTOR_SIZE, 2 }, { COOP_EVICTOR_MSPS, 2 } };
  g_autofree char *path = g_build_filename (g_getenv ("COOP_FIXTURES"), "dtr", "twelve.log", NULL);
  g_autoptr (GError) error = NULL;
  g_autoptr (CoopProgram) p = coop_program_load (path, &error);
  g_assert_no_error (error);
  g_assert_cmpuint (p->total_ns, ==, 200);
  g_assert_cmpuint (coop_play_peak (p), ==, 3072);
  for (guint i = 0; i < G_N_ELEMENTS (rows); i++)
    {
      CoopPlayOutcome out = play (p, rows[i].evictor, 2048, 0);
      g_test_message ("%s", label (rows[i].evictor));
      g_assert_cmpint (out.result, ==, COOP_PLAY_OK);
      g_assert_cmpuint (out.totals.evictions, ==, rows[i].evictions);
      g_assert_cmpuint (out.totals.replays, ==, 1);
      g_assert_cmpuint (out.cost_ns, ==, 300);
    }
}

/* What the simulator, unchanged, makes of its own logs: overhead at parts of its own peak. Where an in-place
 * write, a copy there, or what it fetches back at the end begins to count, rows are left out: the rules differ. */
static const struct {
  const char *log;
  CoopEvictorName evictor;
  guint64 peak;
  double overhead[7];   /* at .9, .8, .7, ... .3; 0: left out */
} published[] = {
  { "resnet32", COOP_EVICTOR_DTR_EQ, 10061179152, { 1.0131, 1.0248, 1.0463, 1.0737, 1.1068, 1.1404, 1.1786 } },
  { "unet", COOP_EVICTOR_DTR_EQ, 8415764640, { 1.0331, 1.0577, 1.0846 } },
  { "transformer", COOP_EVICTOR_DTR_EQ, 9864405000, { 1.0090, 1.0199, 1.0314, 1.0442, 1.0584, 1.0914, 1.1238 } },
  { "tv_densenet121", COOP_EVICTOR_DTR_EQ, 11020749360, { 1.0258, 1.0638, 1.1036, 1.1414 } },
  { "resnet32", COOP_EVICTOR_LRU, 10061179152, { 0, 0, 0, 1.1301 } },
};

static char *
find_log (const char *folder, const char *prefix)
{
  g_autoptr (GDir) dir = g_dir_open (folder, 0, NULL);
  for (const char *name; dir != NULL && (name = g_dir_read_name (dir)) != NULL;)
    if (g_str_has_prefix (name, prefix) && name[strlen (prefix)] == '-')
      return g_build_filename (folder, name, NULL);
  return NULL;
}

static void
test_published (void)
{
  const char *folder = g_getenv ("COOP_DTR_LOGS");
  if (folder == NULL)
    {
      g_test_skip ("COOP_DTR_LOGS names no folder with the logs of dtr-prototype's simrd/logs.zip");
      return;
    }
  for (guint i = 0; i < G_N_ELEMENTS (published); i++)
    {
      g_autofree char *path = find_log (folder, published[i].log);
      g_autoptr (GError) error = NULL;
      if (path == NULL)
        g_error ("%s holds no log of %s", folder, published[i].log);
      g_autoptr (CoopProgram) p = coop_program_load (path, &error);
      g_assert_no_error (error);
      for (guint k = 0; k < G_N_ELEMENTS (published[i].overhead); k++)
        {
          double theirs = published[i].overhead[k], ratio = 0.9 - 0.1 * k;
          if (theirs == 0)
            continue;
          CoopPlayOutcome out = play (p, published[i].evictor, (guint64) ((double) published[i].peak * ratio), 2);
          g_test_message ("%s %s %.1f: ours %.4f, theirs %.4f", published[i].log,
                          label (published[i].evictor), ratio, out.overhead, theirs);
          g_assert_cmpint (out.result, ==, COOP_PLAY_OK);
          g_assert_cmpfloat (fabs (out.overhead - theirs), <, 0.001);
        }
    }
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  g_test_add_func ("/replay/simulator/twelve-lines", test_twelve);
  g_test_add_func ("/replay/simulator/published", test_published);
  return g_test_run ();
}
