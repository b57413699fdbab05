/* SPDX-License-Identifier: Apache-2.0 */
/* Two processes, as in earnest; and each of them killed in the middle. */
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "wire-support.h"

/* In the child: pushes events 0..n - 1, waiting for room; says END where n was reached. */
static void
child_produce (int fd, guint64 n)
{
  CoopWire *wire = NULL;
  if (coop_wire_open (fd, &wire) != COOP_WIRE_OK || coop_wire_claim (wire) != COOP_WIRE_OK)
    _exit (3);
  for (guint64 i = 0; i < n; i++)
    {
      coop_ring_wait (wire, 64 * (2 + (gsize) support_more (i)), 100);
      support_push (wire, i);
    }
  coop_wire_end (wire);
  _exit (0);
}

static void
test_two_processes (void)
{
  CoopWire *wire = support_wire ((gsize) 1 << 20);
  Seen seen = { 0 };
  guint64 n = 200000;
  pid_t pid = fork ();
  if (pid == 0)
    child_produce (coop_wire_fd (wire), n);
  while (coop_wire_target (wire, NULL) != COOP_TARGET_ENDED)
    if (coop_ring_drain (wire, 4096, support_take, &seen) == 0)
      g_usleep (500);
  coop_ring_drain (wire, SIZE_MAX, support_take, &seen);
  int status = 1;
  waitpid (pid, &status, 0);
  g_assert_cmpint (status, ==, 0);
  g_assert_cmpuint (seen.events + seen.missing, ==, n);
  coop_wire_free (wire);
}

/* Everything that a killed producer had published is there, whole, in order. */
static void
test_producer_killed (void)
{
  for (int round = 0; round < 10; round++)
    {
      CoopWire *wire = support_wire ((gsize) 16 << 20);
      Seen seen = { 0 };
      CoopRingStats stats;
      int status = 0;
      pid_t pid = fork ();
      if (pid == 0)
        child_produce (coop_wire_fd (wire), G_MAXUINT64);
      do
        coop_ring_stats (wire, &stats);
      while (stats.pushed < (guint64) g_test_rand_int_range (10, 5000));
      kill (pid, SIGKILL);
      waitpid (pid, &status, 0);
      g_assert_true (WIFSIGNALED (status));
      coop_ring_stats (wire, &stats);
      g_assert_cmpint (coop_ring_drain (wire, SIZE_MAX, support_take, &seen), >=, 0);
      /* `pushed` is written after the position: a kill between the two leaves it one behind. */
      g_assert_cmpuint (seen.events + seen.gaps, >=, stats.pushed);
      g_assert_cmpuint (seen.events + seen.gaps, <=, stats.pushed + 1);
      g_assert_cmpint (coop_wire_target (wire, NULL), ==, COOP_TARGET_RUNNING);
      coop_wire_free (wire);
    }
}

/* A killed consumer costs its producer one wait, and not one more. */
static void
test_consumer_killed (void)
{
  CoopWire *wire = support_wire ((gsize) 64 << 10);
  pid_t pid = fork ();
  if (pid == 0)
    {
      CoopWire *mine = NULL;
      Seen seen = { 0 };
      if (coop_wire_open (coop_wire_fd (wire), &mine) != COOP_WIRE_OK)
        _exit (3);
      for (;;)
        coop_ring_drain (mine, 100, support_take, &seen);
    }
  CoopRingStats stats;
  guint64 i = 0, dropped = 0;
  do
    {
      coop_ring_wait (wire, 4096, 50);
      support_push (wire, i++);
      coop_ring_stats (wire, &stats);
    }
  while (stats.taken < 20000);
  int status = 0;
  kill (pid, SIGKILL);
  waitpid (pid, &status, 0);
  gint64 start = g_get_monotonic_time ();
  for (int k = 0; k < 200000; k++)
    {
      coop_ring_wait (wire, 4096, 50);
      dropped += support_push (wire, i++) ? 0 : 1;
    }
  g_assert_cmpint (g_get_monotonic_time () - start, <, 5000000);
  g_assert_cmpuint (dropped, >, 190000);
  coop_wire_free (wire);
}

static void
test_host_memory (void)
{
  guint64 bytes = coop_host_memory ();
  g_assert_cmpuint (bytes, >, 64u << 20);
  g_assert_cmpuint (bytes, <=, (guint64) sysconf (_SC_PHYS_PAGES) * (guint64) sysconf (_SC_PAGESIZE));
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  g_test_add_func ("/process/two", test_two_processes);
  g_test_add_func ("/process/producer-killed", test_producer_killed);
  g_test_add_func ("/process/consumer-killed", test_consumer_killed);
  g_test_add_func ("/wire/host-memory", test_host_memory);
  return g_test_run ();
}
