/* SPDX-License-Identifier: Apache-2.0 */
/* One producer and one consumer at full speed on one mapping, so that the thread sanitizer sees both
 * sides of every access; and a waiter beside them, as the adapter's other threads are. */
#include "wire-support.h"

#define EVENTS 300000

typedef struct {
  CoopWire *wire;
  guint64 dropped;
  gint done;
} Shared;

static gpointer
produce (gpointer user)
{
  Shared *shared = user;
  for (guint64 i = 0; i < EVENTS; i++)
    {
      coop_ring_wait (shared->wire, 64 * (2 + (gsize) support_more (i)), 50);
      shared->dropped += support_push (shared->wire, i) ? 0 : 1;
    }
  g_atomic_int_set (&shared->done, 1);
  return NULL;
}

static gpointer
look (gpointer user)
{
  Shared *shared = user;
  CoopRingStats stats;
  while (g_atomic_int_get (&shared->done) == 0)
    {
      coop_ring_wait (shared->wire, (gsize) 60 << 10, 0.1);
      coop_ring_stats (shared->wire, &stats);
      g_assert_cmpuint (stats.fill, <=, stats.size);
    }
  return NULL;
}

static void
test_threads (void)
{
  Shared shared = { .wire = support_wire ((gsize) 64 << 10) };
  Seen seen = { 0 };
  GThread *producer = g_thread_new ("producer", produce, &shared);
  GThread *looker = g_thread_new ("looker", look, &shared);
  while (g_atomic_int_get (&shared.done) == 0)
    g_assert_cmpint (coop_ring_drain (shared.wire, 1000, support_take, &seen), >=, 0);
  g_thread_join (producer);
  g_thread_join (looker);
  coop_ring_drain (shared.wire, SIZE_MAX, support_take, &seen);
  support_push (shared.wire, EVENTS);
  coop_ring_drain (shared.wire, SIZE_MAX, support_take, &seen);
  g_assert_cmpuint (seen.missing, ==, shared.dropped);
  g_assert_cmpuint (seen.events + seen.missing, ==, EVENTS + 1);
  g_test_message ("%" G_GUINT64_FORMAT " of %d dropped", shared.dropped, EVENTS);
  coop_wire_free (shared.wire);
}

typedef struct {
  CoopWire *wire;
  gint64 base;
  gint *stop;
} Writer;

/* Always sets budget, small and hold to one and the same number. */
static gpointer
write_control (gpointer user)
{
  Writer *w = user;
  CoopPolicy policy = { 0 };
  guint64 mask = 1u << COOP_PARAM_BUDGET | 1u << COOP_PARAM_SMALL | 1u << COOP_PARAM_HOLD;
  for (gint64 i = 0; g_atomic_int_get (w->stop) == 0; i = (i + 1) % 1000)
    {
      gint64 v = w->base + i;
      policy.v[COOP_PARAM_BUDGET].i = policy.v[COOP_PARAM_SMALL].i = policy.v[COOP_PARAM_HOLD].i = v;
      coop_control_set_many (w->wire, &policy, mask, COOP_SOURCE_SLIDER);
      g_usleep (20);
    }
  return NULL;
}

/* Two writers, one reader: a preset is seen as a whole, and the generation never goes back. */
static void
test_control_is_whole (void)
{
  CoopWire *wire = support_wire (0);
  gint stop = 0;
  Writer a = { wire, 1000, &stop }, b = { wire, 500000, &stop };
  CoopPolicy policy;
  guint32 source[COOP_N_PARAMS];
  guint64 last = 0, changes = 0;
  coop_control_set_many (wire, &(CoopPolicy) { 0 },
                         1u << COOP_PARAM_BUDGET | 1u << COOP_PARAM_SMALL | 1u << COOP_PARAM_HOLD,
                         COOP_SOURCE_API);
  GThread *ta = g_thread_new ("a", write_control, &a), *tb = g_thread_new ("b", write_control, &b);
  gint64 end = g_get_monotonic_time () + 500000;
  while (g_get_monotonic_time () < end)
    {
      guint64 generation = coop_control_read (wire, &policy, source);
      g_assert_cmpuint (generation, >=, last);
      changes += generation != last;
      last = generation;
      g_assert_cmpint (policy.v[COOP_PARAM_BUDGET].i, ==, policy.v[COOP_PARAM_SMALL].i);
      g_assert_cmpint (policy.v[COOP_PARAM_BUDGET].i, ==, policy.v[COOP_PARAM_HOLD].i);
    }
  g_atomic_int_set (&stop, 1);
  g_thread_join (ta);
  g_thread_join (tb);
  g_assert_cmpuint (changes, >, 100);
  coop_wire_free (wire);
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  g_test_add_func ("/ring/threads", test_threads);
  g_test_add_func ("/control/whole", test_control_is_whole);
  return g_test_run ();
}
