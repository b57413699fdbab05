/* SPDX-License-Identifier: Apache-2.0 */
/* The other side scribbles over header and body at random: push, wait, drain and open come back,
 * hand out whole events of defined kinds only, and never touch what is not theirs. Under the address
 * sanitizer this is the test of every bound. */
#include <sys/mman.h>
#include <unistd.h>

#include "wire-support.h"

#define RING ((gsize) 64 << 10)

static bool
take_any (void *user, const CoopEvent *ev, const void *body)
{
  guint64 *sum = user;
  const guint8 *bytes = body;
  g_assert_cmpuint (ev->kind, >, 0);
  g_assert_cmpuint (ev->kind, <, COOP_N_EVENT_KINDS);
  for (gsize i = 0; i < (gsize) ev->more * 64; i++)
    *sum += bytes[i];
  return true;
}

static void
scribble (guint8 *bytes, gsize n, int times)
{
  for (int i = 0; i < times; i++)
    {
      gsize at = (gsize) g_test_rand_double_range (0, (double) n - 8);
      guint64 word = g_test_rand_int_range (0, 3) == 0
                         ? (guint64) g_test_rand_int_range (0, 1 << 20)
                         : (guint64) (guint32) g_test_rand_int () << 32 | (guint32) g_test_rand_int ();
      memcpy (bytes + (at & ~(gsize) 7), &word, 8);
    }
}

static void
test_running (void)
{
  gsize page = (gsize) sysconf (_SC_PAGESIZE);
  guint64 sum = 0, broken = 0;
  for (int round = 0; round < 400; round++)
    {
      CoopWire *wire = support_wire (RING);
      guint8 *map = mmap (NULL, 2 * page + RING, PROT_READ | PROT_WRITE, MAP_SHARED,
                          coop_wire_fd (wire), 0);
      g_assert_true (map != MAP_FAILED);
      for (int k = 0; k < 50; k++)
        {
          for (guint64 i = 0; i < 40; i++)
            support_push (wire, i);
          if (k % 3 == 0)
            scribble (map, 512, 2);                     /* identity, positions */
          else
            scribble (map + 2 * page, RING, 200);       /* events */
          coop_ring_wait (wire, 4096, 0.01);
          g_assert_cmpuint (coop_ring_room (wire), <=, RING);
          broken += coop_ring_drain (wire, 60, take_any, &sum) < 0;
          CoopRingStats stats;
          coop_ring_stats (wire, &stats);
          g_assert_cmpuint (stats.fill, <=, stats.size);
        }
      munmap (map, 2 * page + RING);
      coop_wire_free (wire);
    }
  g_assert_cmpuint (broken, >, 100);   /* the fuzz does reach the checks */
}

static void
test_open (void)
{
  gsize page = (gsize) sysconf (_SC_PAGESIZE);
  guint64 sum = 0;
  int opened = 0;
  for (int round = 0; round < 4000; round++)
    {
      CoopWire *wire = support_wire (RING), *other = NULL;
      guint8 *map = mmap (NULL, page, PROT_READ | PROT_WRITE, MAP_SHARED, coop_wire_fd (wire), 0);
      scribble (map, 320, g_test_rand_int_range (1, 3));
      if (coop_wire_open (coop_wire_fd (wire), &other) == COOP_WIRE_OK)
        {
          opened++;
          support_push (other, 1);
          coop_ring_drain (other, 100, take_any, &sum);
          coop_wire_free (other);
        }
      munmap (map, page);
      coop_wire_free (wire);
    }
  g_assert_cmpint (opened, >, 100);
  g_assert_cmpint (opened, <, 3900);
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  g_test_add_func ("/fuzz/running", test_running);
  g_test_add_func ("/fuzz/open", test_open);
  return g_test_run ();
}
