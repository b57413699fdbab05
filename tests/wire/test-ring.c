/* SPDX-License-Identifier: Apache-2.0 */
/* The ring by itself: order, wrap, drops and gaps, waiting, claims, what is refused. */
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "wire-support.h"
#include "wire/wire-private.h"

#define RING ((gsize) 64 << 10)

static void
test_order_and_wrap (void)
{
  CoopWire *wire = support_wire (RING);
  Seen seen = { 0 };
  guint64 n = 0;
  while (n < 20000)
    {
      for (int i = 0; i < 50; i++)
        g_assert_true (support_push (wire, n++));
      coop_ring_drain (wire, (gsize) g_test_rand_int_range (1, 200), support_take, &seen);
      while (coop_ring_room (wire) < RING / 2)
        g_assert_cmpint (coop_ring_drain (wire, 10, support_take, &seen), ==, 10);
    }
  g_assert_cmpint (coop_ring_drain (wire, SIZE_MAX, support_take, &seen), >=, 0);
  g_assert_cmpuint (seen.events, ==, n);
  g_assert_cmpuint (seen.gaps, ==, 0);
  CoopRingStats stats;
  coop_ring_stats (wire, &stats);
  g_assert_cmpuint (stats.pushed, ==, n);
  g_assert_cmpuint (stats.taken, ==, n);
  g_assert_cmpuint (stats.dropped, ==, 0);
  g_assert_cmpuint (stats.fill, ==, 0);
  g_assert_cmpuint (stats.fill_peak, >, 0);
  coop_wire_free (wire);
}

/* Full: drops are counted, then told in one gap with the right numbers, and nothing else is lost. */
static void
test_gap (void)
{
  CoopWire *wire = support_wire (RING);
  Seen seen = { 0 };
  guint64 n = 0, dropped = 0;
  for (int round = 0; round < 20; round++)
    {
      for (int i = 0; i < 2000; i++)
        dropped += support_push (wire, n++) ? 0 : 1;
      coop_ring_drain (wire, 300, support_take, &seen);
    }
  g_assert_cmpuint (dropped, >, 1000);
  coop_ring_drain (wire, SIZE_MAX, support_take, &seen);
  g_assert_true (support_push (wire, n++));   /* tells what was dropped last */
  coop_ring_drain (wire, SIZE_MAX, support_take, &seen);
  g_assert_cmpuint (seen.missing, ==, dropped);
  g_assert_cmpuint (seen.events + seen.missing, ==, n);
  CoopRingStats stats;
  coop_ring_stats (wire, &stats);
  g_assert_cmpuint (stats.dropped, ==, dropped);
  coop_wire_free (wire);
}

static void
test_gap_at_end (void)
{
  CoopWire *wire = support_wire (RING);
  Seen seen = { 0 };
  guint64 n = 0;
  while (support_push (wire, n++))
    ;
  coop_ring_drain (wire, 5, support_take, &seen);
  g_assert_cmpint (coop_wire_claim (wire), ==, COOP_WIRE_OK);
  coop_wire_end (wire);
  coop_ring_drain (wire, SIZE_MAX, support_take, &seen);
  g_assert_cmpuint (seen.missing, ==, 1);
  g_assert_cmpuint (seen.next, ==, n + 1);
  coop_wire_free (wire);
}

static void
test_too_large (void)
{
  CoopWire *wire = support_wire (RING);
  g_autofree guint8 *body = g_malloc0 ((gsize) 64 * 65535);
  CoopEvent ev = { .kind = COOP_EVENT_OP_BEGIN, .more = 65535 };
  g_assert_false (coop_ring_push (wire, &ev, body));
  g_assert_false (coop_ring_wait (wire, (gsize) 64 * 65536, 1000));   /* at once */
  Seen seen = { 0 };
  g_assert_true (support_push (wire, 1));
  coop_ring_drain (wire, SIZE_MAX, support_take, &seen);
  g_assert_cmpuint (seen.missing, ==, 1);
  coop_wire_free (wire);
}

static bool
take_one (void *user, const CoopEvent *ev, const void *body)
{
  (*(int *) user)++;
  return false;
}

static void
test_take_stops (void)
{
  CoopWire *wire = support_wire (RING);
  int n = 0;
  for (guint64 i = 0; i < 10; i++)
    support_push (wire, i);
  g_assert_cmpint (coop_ring_drain (wire, SIZE_MAX, take_one, &n), ==, 1);
  g_assert_cmpint (coop_ring_drain (wire, 0, take_one, &n), ==, 0);
  g_assert_cmpint (n, ==, 1);
  coop_wire_free (wire);
}

static void
fill (CoopWire *wire)
{
  CoopEvent ev = { .kind = COOP_EVENT_STEP };
  while (coop_ring_push (wire, &ev, NULL))
    ;
}

/* A consumer that did not move during one full wait is not waited for again, until it moves. */
static void
test_wait_remembers (void)
{
  CoopWire *wire = support_wire (RING);
  int n = 0;
  g_assert_true (coop_ring_wait (wire, 64, 1000));   /* room: at once */
  fill (wire);
  gint64 t = g_get_monotonic_time ();
  g_assert_false (coop_ring_wait (wire, 64, 30));
  g_assert_cmpint (g_get_monotonic_time () - t, >=, 30000);
  CoopRingStats before, after;
  coop_ring_stats (wire, &before);
  g_assert_cmpuint (before.waits, ==, 1);
  g_assert_cmpuint (before.wait_ns, >=, 30000000);
  for (int i = 0; i < 1000; i++)
    g_assert_false (coop_ring_wait (wire, 64, 1000));
  coop_ring_stats (wire, &after);
  g_assert_cmpuint (after.waits, ==, 1);
  coop_ring_drain (wire, 1, take_one, &n);
  fill (wire);
  g_assert_false (coop_ring_wait (wire, 64, 10));    /* it moved: worth a wait again */
  coop_ring_stats (wire, &after);
  g_assert_cmpuint (after.waits, ==, 2);
  g_assert_false (coop_ring_wait (wire, 64, 0));
  g_assert_false (coop_ring_wait (wire, 64, -1));
  coop_wire_free (wire);
}

static void
test_wait_dead_heart (void)
{
  CoopWire *wire = support_wire (RING);
  coop_ring_beat (wire);
  fill (wire);
  g_usleep (1100000);
  CoopRingStats stats;
  g_assert_false (coop_ring_wait (wire, 64, 1000));
  coop_ring_stats (wire, &stats);
  g_assert_cmpuint (stats.waits, ==, 0);
  coop_wire_free (wire);
}

static void
test_claim (void)
{
  CoopWire *wire = support_wire (RING), *other = NULL;
  pid_t pid = -1;
  char path[8];
  g_assert_cmpint (coop_wire_target (wire, &pid), ==, COOP_TARGET_NONE);
  g_assert_cmpint (coop_wire_open (coop_wire_fd (wire), &other), ==, COOP_WIRE_OK);
  g_assert_cmpint (coop_wire_claim (other), ==, COOP_WIRE_OK);
  g_assert_cmpint (coop_wire_claim (wire), ==, COOP_WIRE_CLAIMED);
  g_assert_cmpuint (coop_wire_turned_away (wire), ==, 0);   /* it was this process itself */
  for (guint i = 1; i <= 2; i++)
    {
      int status;
      pid_t child = fork ();
      if (child == 0)
        _exit (coop_wire_claim (wire) != COOP_WIRE_CLAIMED);
      g_assert_cmpint (waitpid (child, &status, 0), ==, child);
      g_assert_cmpint (status, ==, 0);
      g_assert_cmpuint (coop_wire_turned_away (other), ==, i);
    }
  g_assert_cmpint (coop_wire_target (wire, &pid), ==, COOP_TARGET_RUNNING);
  g_assert_cmpint (pid, ==, getpid ());
  coop_wire_set_trace (wire, "/tmp/x.coop");
  coop_wire_trace (other, path, sizeof path);
  g_assert_cmpstr (path, ==, "/tmp/x.");
  support_push (other, 7);
  Seen seen = { 0 };
  g_assert_cmpint (coop_ring_drain (wire, SIZE_MAX, support_take, &seen), ==, 1);
  coop_wire_end (other);
  g_assert_cmpint (coop_wire_target (wire, NULL), ==, COOP_TARGET_ENDED);
  coop_wire_free (other);
  coop_wire_free (wire);
}

static void
test_refused (void)
{
  CoopWire *wire = NULL;
  int null = open ("/dev/null", O_RDWR), fd = memfd_create ("x", MFD_ALLOW_SEALING);
  g_assert_cmpint (coop_wire_open (-1, &wire), ==, COOP_WIRE_SYSTEM);
  g_assert_cmpint (coop_wire_open (null, &wire), ==, COOP_WIRE_FOREIGN);
  g_assert_cmpint (ftruncate (fd, 1 << 20), ==, 0);
  g_assert_cmpint (coop_wire_open (fd, &wire), ==, COOP_WIRE_FOREIGN);   /* not sealed */
  g_assert_cmpint (fcntl (fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW), ==, 0);
  g_assert_cmpint (coop_wire_open (fd, &wire), ==, COOP_WIRE_FOREIGN);   /* no magic */
  g_assert_null (wire);
  close (fd);
  close (null);
  wire = support_wire (RING);
  guint32 protocol = COOP_PROTOCOL + 1;
  CoopWire *other = NULL;
  g_assert_cmpint (pwrite (coop_wire_fd (wire), &protocol, 4, 8), ==, 4);
  g_assert_cmpint (coop_wire_open (coop_wire_fd (wire), &other), ==, COOP_WIRE_PROTOCOL);
  g_assert_cmpint (ftruncate (coop_wire_fd (wire), 4096), !=, 0);        /* sealed */
  coop_wire_free (wire);
}

/* A whole wire, but in a file that somebody could still shrink under us. */
static void
test_unsealed (void)
{
  CoopWire *wire = support_wire (RING), *other = NULL;
  gsize size = 2 * (gsize) sysconf (_SC_PAGESIZE) + RING;
  g_autofree guint8 *bytes = g_malloc (size);
  int fd = memfd_create ("x", MFD_ALLOW_SEALING);
  g_assert_cmpint (pread (coop_wire_fd (wire), bytes, size, 0), ==, (gssize) size);
  g_assert_cmpint (pwrite (fd, bytes, size, 0), ==, (gssize) size);
  g_assert_cmpint (coop_wire_open (fd, &other), ==, COOP_WIRE_FOREIGN);
  g_assert_cmpint (fcntl (fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW), ==, 0);
  g_assert_cmpint (coop_wire_open (fd, &other), ==, COOP_WIRE_OK);
  coop_wire_free (other);
  coop_wire_free (wire);
  close (fd);
}

static bool
take_count (void *user, const CoopEvent *ev, const void *body)
{
  (*(int *) user)++;
  return true;
}

static void
put (CoopWire *wire, goffset at, guint64 value, gsize bytes)
{
  g_assert_cmpint (pwrite (coop_wire_fd (wire), &value, bytes, at), ==, (gssize) bytes);
}

/* Each with a ring full of events that are right by themselves: only the check can tell. */
static void
test_nonsense (void)
{
  goffset head = offsetof (CoopWireHeader, head), body = 2 * sysconf (_SC_PAGESIZE);
  const guint64 heads[] = { RING + 64, G_MAXUINT64 - 63, RING * 1000, 32, 64 * 100 + 1 };
  for (guint i = 0; i < G_N_ELEMENTS (heads); i++)
    {
      CoopWire *wire = support_wire (RING);
      int taken = 0;
      for (guint k = 0; k < RING / 64; k++)
        coop_ring_push (wire, &(CoopEvent) { .kind = COOP_EVENT_STEP }, NULL);
      put (wire, head, heads[i], 8);
      g_assert_cmpint (coop_ring_drain (wire, 10, take_count, &taken), ==, -1);
      g_assert_cmpint (taken, ==, 0);
      coop_wire_free (wire);
    }
  const struct { guint kind, more; int result; } events[]
      = { { COOP_EVENT_STEP, 0, 2 }, { COOP_EVENT_STEP, 1, 1 }, { COOP_EVENT_STEP, 2, -1 },
          { COOP_EVENT_STEP, 65535, -1 }, { 0, 0, -1 }, { COOP_N_EVENT_KINDS, 0, -1 } };
  for (guint i = 0; i < G_N_ELEMENTS (events); i++)
    {
      CoopWire *wire = support_wire (RING);
      int taken = 0;
      for (guint k = 0; k < 2; k++)
        coop_ring_push (wire, &(CoopEvent) { .kind = COOP_EVENT_STEP }, NULL);
      put (wire, body + offsetof (CoopEvent, kind), events[i].kind, 2);
      put (wire, body + offsetof (CoopEvent, more), events[i].more, 2);
      g_assert_cmpint (coop_ring_drain (wire, 10, take_count, &taken), ==, events[i].result);
      g_assert_cmpint (taken, ==, MAX (events[i].result, 0));
      coop_wire_free (wire);
    }
}

/* A forked child cannot write into its parent's ring. */
static void
test_forked_child_is_mute (void)
{
  CoopWire *wire = support_wire (RING);
  coop_wire_claim (wire);
  support_push (wire, 1);
  pid_t pid = fork ();
  if (pid == 0)
    {
      gboolean pushed = support_push (wire, 2);
      gboolean waited = coop_ring_wait (wire, 64, 1000);
      coop_wire_end (wire);
      _exit (pushed || waited);
    }
  int status = 1;
  waitpid (pid, &status, 0);
  g_assert_cmpint (status, ==, 0);
  g_assert_cmpint (coop_wire_target (wire, NULL), ==, COOP_TARGET_RUNNING);
  support_push (wire, 3);
  Seen seen = { 0 };
  g_assert_cmpint (coop_ring_drain (wire, SIZE_MAX, support_take, &seen), ==, 2);
  coop_wire_free (wire);
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  g_test_add_func ("/ring/order-and-wrap", test_order_and_wrap);
  g_test_add_func ("/ring/gap", test_gap);
  g_test_add_func ("/ring/gap-at-end", test_gap_at_end);
  g_test_add_func ("/ring/too-large", test_too_large);
  g_test_add_func ("/ring/take-stops", test_take_stops);
  g_test_add_func ("/ring/wait-remembers", test_wait_remembers);
  g_test_add_func ("/ring/wait-dead-heart", test_wait_dead_heart);
  g_test_add_func ("/ring/claim", test_claim);
  g_test_add_func ("/ring/refused", test_refused);
  g_test_add_func ("/ring/unsealed", test_unsealed);
  g_test_add_func ("/ring/nonsense", test_nonsense);
  g_test_add_func ("/ring/forked-child-is-mute", test_forked_child_is_mute);
  return g_test_run ();
}
