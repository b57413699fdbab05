/* SPDX-License-Identifier: Apache-2.0 */
/* What an event costs its producer, beside one clock_gettime (which the producer pays anyway), and
 * whether a paced producer is ever held up: 100,000 events/s sustained, 200,000/s for 10 s, with a
 * consumer thread that polls as the collector does and spends as long on an event as the store
 * (`--take-ns`, default 7800: the collector then keeps up with 100,000/s and falls behind at
 * 200,000/s, which is what the ring must hold).
 *
 *     bench-ring [--seconds S] [--ring BYTES] [--take-ns N]
 */
#include <glib.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "wire/wire.h"

#define ROUNDS 301
#define BATCH 1000

typedef struct {
  CoopWire *wire;
  gint stop;
  gint64 take_ns;
  guint64 taken;
} Consumer;

static gint64
now_ns (void)
{
  struct timespec t;
  clock_gettime (CLOCK_MONOTONIC, &t);
  return (gint64) t.tv_sec * 1000000000 + t.tv_nsec;
}

static int
by_value (const void *a, const void *b)
{
  double x = *(const double *) a, y = *(const double *) b;
  return (x > y) - (x < y);
}

static double
quantile (double *v, int n, double q)
{
  qsort (v, (size_t) n, sizeof *v, by_value);
  return v[(int) (q * (n - 1))];
}

static CoopWire *
make_wire (gsize bytes)
{
  CoopPolicy policy;
  CoopWire *wire = NULL;
  coop_policy_init (&policy);
  CoopWireError error = coop_wire_create (bytes, &policy, &wire);
  if (error != COOP_WIRE_OK)
    g_error ("cannot make a wire: %s", coop_wire_strerror (error));
  return wire;
}

/* The real mix: of ten events five are one record, four have one body record, one has four. */
static guint16
mix_more (guint64 i)
{
  static const guint16 more[10] = { 0, 1, 0, 1, 0, 4, 1, 0, 1, 0 };
  return more[i % 10];
}

static gboolean
emit (CoopWire *wire, guint64 i, const void *body)
{
  CoopEvent ev = { .ts = i, .kind = COOP_EVENT_ALLOC, .more = mix_more (i) };
  ev.u.alloc.block = i;
  return coop_ring_push (wire, &ev, body);
}

static bool
take_none (void *user, const CoopEvent *ev, const void *body)
{
  return true;
}

static bool
take_slow (void *user, const CoopEvent *ev, const void *body)
{
  Consumer *c = user;
  gint64 until = c->take_ns > 0 ? now_ns () + c->take_ns : 0;
  while (c->take_ns > 0 && now_ns () < until)
    ;
  c->taken++;
  return true;
}

static gpointer
consume (gpointer user)
{
  Consumer *c = user;
  for (;;)
    {
      gboolean stop = g_atomic_int_get (&c->stop);
      if (coop_ring_drain (c->wire, 4096, take_slow, c) == 0)
        {
          if (stop)
            return NULL;
          g_usleep (2000);
        }
    }
}

static void
bench_emit (gsize ring)
{
  CoopWire *wire = make_wire (ring);
  guint64 body[8 * 8] = { 0 };
  static double emit_ns[ROUNDS], clock_ns[ROUNDS];
  for (int r = 0; r < ROUNDS; r++)
    {
      gint64 a = now_ns ();
      for (guint64 i = 0; i < BATCH; i++)
        emit (wire, i, body);
      gint64 b = now_ns ();
      for (int i = 0; i < BATCH; i++)
        now_ns ();
      gint64 c = now_ns ();
      emit_ns[r] = (double) (b - a) / BATCH;
      clock_ns[r] = (double) (c - b) / BATCH;
      coop_ring_drain (wire, SIZE_MAX, take_none, NULL);
    }
  double e = quantile (emit_ns, ROUNDS, .5), k = quantile (clock_ns, ROUNDS, .5);
  printf ("bench ring-emit %.1f ns ratio %.2f vs clock_gettime\n", e, e / k);
  printf ("#   emit p10 %.1f p90 %.1f, clock_gettime %.1f ns\n", quantile (emit_ns, ROUNDS, .1),
          quantile (emit_ns, ROUNDS, .9), k);
  coop_wire_free (wire);
}

/* Pushes `rate` events a second in slices of 1 ms, as bursts come in earnest. */
static void
bench_rate (const char *name, guint64 rate, double seconds, gsize ring, gint64 take_ns)
{
  Consumer consumer = { .wire = make_wire (ring), .take_ns = take_ns };
  guint64 body[8 * 8] = { 0 }, n = 0, total = (guint64) ((double) rate * seconds);
  GThread *thread = g_thread_new ("consumer", consume, &consumer);
  gint64 start = now_ns (), busy = 0;
  while (n < total)
    {
      gint64 a = now_ns ();
      guint64 due = MIN (total, (guint64) ((double) (a - start) * 1e-9 * (double) rate));
      for (; n < due; n++)
        {
          coop_ring_wait (consumer.wire, 64 * 8, 4);
          emit (consumer.wire, n, body);
        }
      busy += now_ns () - a;
      g_usleep (1000);
    }
  double took = (double) (now_ns () - start) * 1e-9;
  CoopRingStats s;
  coop_ring_stats (consumer.wire, &s);
  guint64 behind = s.pushed - s.taken;
  g_atomic_int_set (&consumer.stop, 1);
  g_thread_join (thread);
  coop_ring_stats (consumer.wire, &s);
  printf ("bench %s %.0f events/s ratio %.3f vs wanted-rate\n", name, (double) n / took,
          (double) rate / ((double) n / took));
  printf ("#   dropped %lu, waits %lu (%.1f ms), ring peak %.1f of %.0f MiB, behind at the end %lu,"
          " producer busy %.1f %%, taken %lu\n",
          s.dropped, s.waits, (double) s.wait_ns * 1e-6, (double) s.fill_peak / (1 << 20),
          (double) s.size / (1 << 20), behind, 100e-9 * (double) busy / took, consumer.taken);
  coop_wire_free (consumer.wire);
}

int
main (int argc, char **argv)
{
  double seconds = 10;
  gint64 ring = 512 << 20, take_ns = 7800;
  const GOptionEntry entries[] = {
    { "seconds", 0, 0, G_OPTION_ARG_DOUBLE, &seconds, "Length of each run", "S" },
    { "ring", 0, 0, G_OPTION_ARG_INT64, &ring, "Ring for the burst", "BYTES" },
    { "take-ns", 0, 0, G_OPTION_ARG_INT64, &take_ns, "Consumer's time an event", "N" },
    { NULL }
  };
  g_autoptr (GOptionContext) context = g_option_context_new (NULL);
  g_option_context_add_main_entries (context, entries, NULL);
  if (!g_option_context_parse (context, &argc, &argv, NULL))
    return 2;
  bench_emit (COOP_RING_BYTES);
  bench_rate ("ring-sustained", 100000, seconds, COOP_RING_BYTES, take_ns);
  bench_rate ("ring-burst", 200000, seconds, (gsize) ring, take_ns);
  return 0;
}
