/* SPDX-License-Identifier: Apache-2.0 */
/* The pool against a naive map of bytes: one byte a grain. Random takes, gives, claims and lines. */
#include "core/pool.h"
#include "support/ref-engine.h"

#include <glib.h>

#define GRAINS 600

typedef struct
{
  CoopPool pool;
  uint8_t used[GRAINS];          /* 1: taken */
  uint64_t blocks[GRAINS], sizes[GRAINS];
  unsigned n;
  uint64_t block;
  uint64_t claim_lo, claim_hi;   /* empty: none */
} Naive;

/* Free runs of the map, cut at the lines and at the claim. */
static size_t
runs (const Naive *naive, RefPiece *out)
{
  size_t n = 0;
  for (uint64_t g = 0; g < GRAINS; g++)
    {
      uint64_t at = g * COOP_GRAIN;
      bool claimed = at >= naive->claim_lo && at < naive->claim_hi;
      if (naive->used[g] || claimed || at >= naive->pool.limit)
        continue;
      RefPiece *last = n > 0 ? &out[n - 1] : NULL;
      if (last != NULL && last->addr + last->bytes == at && at != naive->pool.small_end)
        last->bytes += COOP_GRAIN;
      else
        out[n++] = (RefPiece) { .addr = at, .bytes = COOP_GRAIN };
    }
  return n;
}

static void
take (Naive *naive, GRand *rand)
{
  RefPiece pieces[GRAINS];
  size_t n = runs (naive, pieces);
  bool high = g_rand_boolean (rand), small = g_rand_int_range (rand, 0, 4) == 0;
  uint64_t bytes = COOP_GRAIN * (uint64_t) g_rand_int_range (rand, 1, small ? 4 : 40);
  uint64_t lo = small ? 0 : naive->pool.small_end;
  uint64_t hi = small ? naive->pool.small_end : naive->pool.limit;
  uint64_t want = ref_fit (pieces, n, lo, hi, bytes, high);
  uint32_t p = coop_pool_fit (&naive->pool, small ? AREA_SMALL : AREA_GENERAL, bytes, high);
  g_assert_cmpint (p != 0, ==, want != COOP_NO_ADDR);
  if (p == 0)
    return;
  p = coop_pool_take (&naive->pool, p, bytes, high, PIECE_USED);
  naive->pool.node[p].block = ++naive->block;
  g_assert_cmpuint (naive->pool.node[p].addr, ==, want);
  for (uint64_t g = want / COOP_GRAIN; g < (want + bytes) / COOP_GRAIN; g++)
    naive->used[g] = 1;
  naive->blocks[naive->n] = want;
  naive->sizes[naive->n++] = bytes;
}

static void
give (Naive *naive, GRand *rand)
{
  if (naive->n == 0)
    return;
  unsigned i = (unsigned) g_rand_int_range (rand, 0, (int) naive->n);
  uint64_t addr = naive->blocks[i], bytes = naive->sizes[i];
  uint32_t p = coop_pool_at (&naive->pool, addr);
  g_assert_cmpuint (p, !=, 0);
  g_assert_cmpuint (naive->pool.node[p].bytes, ==, bytes);
  coop_pool_give (&naive->pool, p);
  g_assert_cmpuint (coop_pool_at (&naive->pool, addr), ==, 0);
  for (uint64_t g = addr / COOP_GRAIN; g < (addr + bytes) / COOP_GRAIN; g++)
    naive->used[g] = 0;
  naive->blocks[i] = naive->blocks[--naive->n];
  naive->sizes[i] = naive->sizes[naive->n];
}

/* A claim covers whole pieces: a few from a random one on. */
static void
claim (Naive *naive, GRand *rand)
{
  const CoopNode *node = naive->pool.node;
  if (naive->claim_hi > 0)
    {
      coop_pool_unclaim (&naive->pool, 1);
      naive->claim_lo = naive->claim_hi = 0;
      return;
    }
  uint32_t p = node[0].next;
  for (int skip = g_rand_int_range (rand, 0, (int) naive->pool.n_pieces); skip > 0; skip--)
    p = node[p].next;
  if (node[p].addr < naive->pool.small_end || node[p].addr >= naive->pool.limit)
    return;
  naive->claim_lo = node[p].addr;
  for (int i = g_rand_int_range (rand, 0, 4); i > 0 && node[p].next != 0
       && node[node[p].next].addr < naive->pool.limit; i--)
    p = node[p].next;
  naive->claim_hi = node[p].addr + node[p].bytes;
  coop_pool_claim (&naive->pool, naive->claim_lo, naive->claim_hi, 1);
}

static void
lines (Naive *naive, GRand *rand)
{
  uint64_t limit = COOP_GRAIN * (uint64_t) g_rand_int_range (rand, GRAINS / 2, GRAINS + 1);
  uint64_t small = COOP_GRAIN * (uint64_t) g_rand_int_range (rand, 0, 40);
  coop_pool_set_lines (&naive->pool, small, limit);
}

static void
compare (const Naive *naive)
{
  RefPiece pieces[GRAINS];
  size_t n = runs (naive, pieces);
  uint64_t largest = 0;
  g_assert_cmpstr (coop_pool_check (&naive->pool), ==, NULL);
  for (size_t i = 0; i < n; i++)
    largest = MAX (largest, pieces[i].bytes);
  g_assert_cmpuint (coop_pool_largest (&naive->pool), ==, largest);
}

static void
test_random (void)
{
  for (unsigned seed = 1; seed <= 60; seed++)
    {
      Naive naive = { 0 };
      GRand *rand = g_rand_new_with_seed (seed);
      g_test_message ("seed %u", seed);
      coop_pool_init (&naive.pool, GRAINS * COOP_GRAIN);
      for (int i = 0; i < 1500; i++)
        {
          int what = g_rand_int_range (rand, 0, 100);
          if (what < 52)
            take (&naive, rand);
          else if (what < 90)
            give (&naive, rand);
          else if (what < 96)
            claim (&naive, rand);
          else
            lines (&naive, rand);
          compare (&naive);
        }
      coop_pool_clear (&naive.pool);
      g_rand_free (rand);
    }
}

/* The check finds what is wrong: break each thing once. */
static void
test_check_works (void)
{
  CoopPool pool;
  coop_pool_init (&pool, 64 * COOP_GRAIN);
  uint32_t p = coop_pool_take (&pool, coop_pool_fit (&pool, AREA_GENERAL, 1024, false), 1024, false,
                               PIECE_USED);
  pool.node[p].block = 1;
  g_assert_cmpstr (coop_pool_check (&pool), ==, NULL);
  pool.node[p].bytes += 512;
  g_assert_cmpstr (coop_pool_check (&pool), !=, NULL);
  pool.node[p].bytes -= 512;
  pool.live += 1;
  g_assert_cmpstr (coop_pool_check (&pool), !=, NULL);
  pool.live -= 1;
  pool.free -= 512;
  g_assert_cmpstr (coop_pool_check (&pool), !=, NULL);
  pool.free += 512;
  pool.node[p].refs = 0;
  g_assert_cmpstr (coop_pool_check (&pool), !=, NULL);
  pool.node[p].refs = 1;
  uint32_t rest = pool.node[p].next;
  coop_bins_remove (&pool, rest);
  g_assert_cmpstr (coop_pool_check (&pool), !=, NULL);
  coop_bins_insert (&pool, rest);
  g_assert_cmpstr (coop_pool_check (&pool), ==, NULL);
  coop_pool_clear (&pool);
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  g_test_add_func ("/core/pool/random", test_random);
  g_test_add_func ("/core/pool/check-works", test_check_works);
  return g_test_run ();
}
