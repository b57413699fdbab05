/* SPDX-License-Identifier: Apache-2.0 */
/* Evictor coop-plus by hand: what goes and what moves when a hole is too small for all. */
#include "core-cases.h"

static void
escape (RefHost *host, RefStorage *s)
{
  RefOp op = { .input = { s }, .use = { COOP_USE_ESCAPE }, .n_inputs = 1 };
  g_assert_true (ref_host_run (host, &op, NULL));
}

/* [b 2][c 2][pinned 4][hole 2][pinned 4][hole 1][pinned 1][hole 1][pinned 1]: 4 are asked for, 4 are free. Only
 * b and c can make room side by side, and only one of them fits elsewhere. */
static void
case_of (uint64_t cost_b, uint64_t cost_c, double move_us, const char *expected, unsigned moves)
{
  static const unsigned sizes[] = { 2, 2, 4, 2, 4, 1, 1, 1, 1 };
  RefStorage *s[9], *more, *clock;
  CoopPolicy policy = plain (19 * K, COOP_EVICTOR_COOP_PLUS);
  policy.v[COOP_PARAM_SMALL].i = policy.v[COOP_PARAM_DESCENT].i = 0;
  policy.v[COOP_PARAM_EVICT_PRICE].d = 1;
  policy.v[COOP_PARAM_MOVE_COST].d = move_us;
  policy.v[COOP_PARAM_COPY_RATE].d = 1000;
  RefHost *host = host_under (19 * K, &policy);
  for (unsigned i = 0; i < 9; i++)
    s[i] = ref_make (host, sizes[i] * K, i == 0 ? cost_b : i == 1 ? cost_c : 1, 0);
  escape (host, s[2]);
  escape (host, s[4]);
  escape (host, s[6]);
  escape (host, s[8]);
  clock = ref_make (host, 512, 1000000, 0); /* long ago: all are as stale as the clock is late */
  ref_host_drop (host, clock);
  drop (host, 3, s[3], s[5], s[7]);
  more = ref_make (host, 4 * K, 1, 0);
  g_assert_nonnull (more);
  char *seen = picture (s, 2);
  g_assert_cmpstr (seen, ==, expected);
  g_free (seen);
  g_assert_cmpuint (ref_host_count (host, COOP_EVENT_MOVE), ==, moves);
  drop (host, 7, s[0], s[1], s[2], s[4], s[6], s[8], more);
  ref_host_free (host);
}

static void
test_one_hole (void)
{
  case_of (600, 1000, 0.4, "x.", 1); /* the dearer one moves */
  case_of (1000, 600, 0.4, ".x", 1);
  case_of (600, 1000, 2, "xx", 0);   /* neither is worth a move */
  case_of (100, 1000, 0.4, "x.", 1);
}

/* The preset switches both on, that of coop off. */
static void
test_parts (void)
{
  CoopPolicy policy;
  coop_policy_init (&policy);
  g_assert_true (!policy.v[COOP_PARAM_MOVES].i && !policy.v[COOP_PARAM_BYTES_FIRST].i);
  coop_policy_preset (&policy, COOP_EVICTOR_COOP_PLUS);
  g_assert_true (policy.v[COOP_PARAM_MOVES].i && policy.v[COOP_PARAM_BYTES_FIRST].i);
  coop_policy_preset (&policy, COOP_EVICTOR_COOP);
  g_assert_true (!policy.v[COOP_PARAM_MOVES].i && !policy.v[COOP_PARAM_BYTES_FIRST].i);
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  g_test_add_func ("/core/plus/one-hole", test_one_hole);
  g_test_add_func ("/core/plus/parts", test_parts);
  return g_test_run ();
}
