/* SPDX-License-Identifier: Apache-2.0 */
/* The usage log against a list of all samples: no extreme is lost, counts add up, memory is bounded. */
#include "session/usage.h"

typedef struct {
  guint64 ts, used, pinned, largest;
} Point;

static void
check_cover (GArray *samples, GArray *points, guint64 width)
{
  guint at = 0;
  for (guint i = 0; i < samples->len; i++)
    {
      CoopSample *s = &g_array_index (samples, CoopSample, i);
      guint64 next = i + 1 < samples->len ? g_array_index (samples, CoopSample, i + 1).ts : G_MAXUINT64;
      guint64 low = G_MAXUINT64, high = 0, pinned = 0, largest = G_MAXUINT64;
      for (; at < points->len && g_array_index (points, Point, at).ts < next; at++)
        {
          Point *p = &g_array_index (points, Point, at);
          g_assert_cmpuint (p->ts, >=, s->ts);
          low = MIN (low, p->used);
          high = MAX (high, p->used);
          pinned = MAX (pinned, p->pinned);
          largest = MIN (largest, p->largest);
        }
      g_assert_cmpuint (s->used_min, ==, low);
      g_assert_cmpuint (s->used_max, ==, high);
      g_assert_cmpuint (s->pinned_max, ==, pinned);
      g_assert_cmpuint (s->largest_min, ==, largest);
    }
  g_assert_cmpuint (at, ==, points->len);
}

static void
test_random (void)
{
  g_autofree CoopUsageLog *log = g_new0 (CoopUsageLog, 1);
  g_autoptr (GArray) points = g_array_new (FALSE, FALSE, sizeof (Point));
  CoopModelTotals t = { 0 };
  coop_usage_log_init (log);
  for (int i = 0; i < 300000; i++)
    {
      t.ts += (guint64) g_test_rand_int_range (0, 2000000);
      if (i == 100000)
        t.ts += (guint64) 1000000000 * 3600;   /* an hour of nothing */
      t.used = (guint64) g_test_rand_int ();
      t.pinned = (guint64) g_test_rand_int ();
      t.largest = (guint64) g_test_rand_int ();
      t.evictions += i % 3 == 0;
      t.handovers += i % 5 == 0;
      Point p = { t.ts, t.used, t.pinned, t.largest };
      g_array_append_val (points, p);
      coop_usage_log_add (log, &t);
      g_assert_cmpuint (log->n, <=, COOP_USAGE_BUCKETS);
    }
  for (guint n = 1; n < 10000; n = n * 3 + 1)
    {
      g_autoptr (GArray) samples = coop_usage_log_get (log, n);
      guint64 evictions = 0, handovers = 0;
      g_assert_cmpuint (samples->len, <=, n);
      check_cover (samples, points, log->width);
      for (guint i = 0; i < samples->len; i++)
        {
          evictions += g_array_index (samples, CoopSample, i).evictions;
          handovers += g_array_index (samples, CoopSample, i).handovers;
        }
      g_assert_cmpuint (evictions, ==, t.evictions);
      g_assert_cmpuint (handovers, ==, t.handovers);
    }
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  g_test_add_func ("/usage/random", test_random);
  return g_test_run ();
}
