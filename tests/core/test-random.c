/* SPDX-License-Identifier: Apache-2.0 */
/* Random programs from a seed: invariants after every step, every value through evictions and
 * rematerializations byte by byte, windows, victims and placements against the slow reference. COOP_SEED
 * chooses the first seed, COOP_PROGRAMS how many. */
#include "support/ref-program.h"

#include <stdlib.h>

static bool
from_rand (void *user, uint8_t *byte)
{
  *byte = (uint8_t) g_rand_int_range (user, 0, 256);
  return true;
}

static unsigned
number_of (const char *name, unsigned otherwise)
{
  const char *text = g_getenv (name);
  return text != NULL ? (unsigned) strtoul (text, NULL, 10) : otherwise;
}

static void
run_programs (unsigned n, CoopAllocatorName allocator, bool expandable, RefProgramStats *s)
{
  unsigned seed = number_of ("COOP_SEED", 1);
  for (unsigned i = 0; i < n; i++)
    {
      g_test_message ("seed %u", seed + i);
      if (g_getenv ("COOP_SEED"))
        g_printerr ("# seed %u\n", seed + i);
      GRand *rand = g_rand_new_with_seed (seed + i);
      RefBytes source = { .next = from_rand, .user = rand, .allocator = allocator,
                          .expandable = expandable };
      ref_program_run (&source, 400, s);
      g_rand_free (rand);
    }
}

/* Every evictor on an allocator of segments. */
static void
test_segmented (gconstpointer which)
{
  CoopAllocatorName allocator = (CoopAllocatorName) (GPOINTER_TO_UINT (which) & 7);
  bool expandable = (GPOINTER_TO_UINT (which) & 8) != 0;
  unsigned n = number_of ("COOP_PROGRAMS", 40);
  RefProgramStats s = { 0 };
  run_programs (n, allocator, expandable, &s);
  g_test_message ("%" G_GUINT64_FORMAT " steps, %" G_GUINT64_FORMAT " evictions, %" G_GUINT64_FORMAT
                  " replays, %" G_GUINT64_FORMAT " ooms, %" G_GUINT64_FORMAT " windows or lots, %"
                  G_GUINT64_FORMAT " single victims, %" G_GUINT64_FORMAT " sets of which %"
                  G_GUINT64_FORMAT " the cheapest, %" G_GUINT64_FORMAT " given back, %"
                  G_GUINT64_FORMAT " remapped",
                  s.steps, s.evictions, s.replays, s.ooms, s.windows, s.singles, s.sets, s.optima,
                  s.returned, s.remaps);
  g_assert_cmpuint (s.evictions, >, n * 20);
  g_assert_cmpuint (s.replays, >, n * 20);
  g_assert_cmpuint (s.windows, >, n * 5);
  g_assert_cmpuint (s.singles, >, n * 5);
  g_assert_cmpuint (s.optima * 10, >=, s.sets * 9);
  if (allocator == COOP_ALLOCATOR_PAGE)
    g_assert_cmpuint (s.remaps, >, n);
  else
    g_assert_cmpuint (s.returned, >, n);
}

static void
test_programs (void)
{
  unsigned n = number_of ("COOP_PROGRAMS", 120);
  RefProgramStats s = { 0 };
  run_programs (n, COOP_ALLOCATOR_MERGE, false, &s);
  g_test_message ("%" G_GUINT64_FORMAT " steps, %" G_GUINT64_FORMAT " evictions, %" G_GUINT64_FORMAT
                  " replays, %" G_GUINT64_FORMAT " ooms, %" G_GUINT64_FORMAT " moves, %"
                  G_GUINT64_FORMAT " windows, %" G_GUINT64_FORMAT " single victims, %" G_GUINT64_FORMAT
                  " fits",
                  s.steps, s.evictions, s.replays, s.ooms, s.moves, s.windows, s.singles, s.fits);
  /* the programs must reach what they are there to test */
  g_test_message ("%" G_GUINT64_FORMAT " windows with moves", s.plans);
  g_assert_cmpuint (s.plans, >, n / 8);
  g_assert_cmpuint (s.evictions, >, n * 20);
  g_assert_cmpuint (s.replays, >, n * 20);
  g_assert_cmpuint (s.windows, >, n * 5);
  g_assert_cmpuint (s.singles, >, n * 5);
  g_assert_cmpuint (s.moves, >, n / 4);
  g_assert_cmpuint (s.ooms, >, n / 4);
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  g_test_add_func ("/core/random/programs", test_programs);
  g_test_add_data_func ("/core/random/class", GUINT_TO_POINTER (COOP_ALLOCATOR_CLASS), test_segmented);
  g_test_add_data_func ("/core/random/caching", GUINT_TO_POINTER (COOP_ALLOCATOR_CACHING),
                        test_segmented);
  g_test_add_data_func ("/core/random/expandable", GUINT_TO_POINTER (COOP_ALLOCATOR_CACHING | 8),
                        test_segmented);
  g_test_add_data_func ("/core/random/page", GUINT_TO_POINTER (COOP_ALLOCATOR_PAGE), test_segmented);
  return g_test_run ();
}
