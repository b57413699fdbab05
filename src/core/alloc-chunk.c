/* SPDX-License-Identifier: Apache-2.0 */
/* Allocators class and caching: memory comes from the device in segments and goes back as whole ones.
 *
 * class: a segment is one chunk, of a size between powers of two (`steps`), and serves its size alone.
 *
 * caching: PyTorch's rules for CUDA. Blocks up to 1 MiB come out of segments of 2 MiB, others below
 * 10 MiB out of segments of 20 MiB, larger ones out of a segment of their own in multiples of 2 MiB;
 * the two kinds do not mix. Best fit; what remains of a free piece is split off from 512 bytes on among
 * small blocks, only above 1 MiB among large ones. Free neighbours merge inside a segment. Before it
 * fails, every segment that nothing uses goes back. */
#include "engine-private.h"

/* In units of e->mib. */
#define SMALL_MOST 1
#define SMALL_SEGMENT 2
#define LARGE_SEGMENT 20
#define LARGE_FROM 10           /* a segment of its own */

/* ---- one place for both ------------------------------------------------------------------- */

static uint32_t
new_segment (CoopEngine *e, uint64_t block)
{
  const CoopAllocator *a = e->allocator;
  uint64_t bytes = a->supply (e, block);
  if (!coop_make_budget (e, bytes, a == &coop_alloc_caching && e->pool.held + bytes > e->budget))
    return 0;
  uint32_t p = coop_pool_fit (&e->pool, AREA_VOID, bytes, false);
  if (p == 0 && a->returns (e) && coop_make_budget (e, bytes, true))
    p = coop_pool_fit (&e->pool, AREA_VOID, bytes, false);
  if (p == 0)
    return 0;
  p = coop_back (e, p, e->pool.node[p].addr, bytes, a->area (e, block));
  if (e->backing.map != NULL)
    e->backing.map (e->backing.user, e->pool.node[p].addr, bytes);
  return p;
}

/* What is too small to be worth a piece of its own stays with the block. */
static uint64_t
cut_for (const CoopEngine *e, uint64_t block, uint64_t free_bytes)
{
  bool small = e->allocator->area (e, block) == AREA_SMALL;
  return free_bytes - block > (small ? 0 : SMALL_MOST * e->mib) ? block : free_bytes;
}

static uint32_t
place (CoopEngine *e, const CoopRequest *req)
{
  const CoopAllocator *a = e->allocator;
  uint64_t block = a->block (e, req->bytes);
  uint32_t p = coop_pool_fit (&e->pool, a->area (e, block), block, false);
  if (p != 0 && !a->fits (e, block, e->pool.node[p].bytes))
    p = 0;
  if (p == 0)
    p = new_segment (e, block);
  if (p == 0)
    return 0;
  return coop_pool_take (&e->pool, p, cut_for (e, block, e->pool.node[p].bytes), false, PIECE_USED);
}

static uint64_t
whole (const CoopEngine *e, CoopArea area)
{
  return 0;
}

static bool
returns (const CoopEngine *e)
{
  return e->policy.v[COOP_PARAM_GIVE_BACK].i != 0;
}

/* ---- class -------------------------------------------------------------------------------- */

/* The power of two at or below n. */
static uint64_t
power_below (uint64_t n)
{
  return UINT64_C (1) << (63 - __builtin_clzll (n));
}

static uint64_t
class_block (const CoopEngine *e, uint64_t bytes)
{
  uint64_t units = coop_round (bytes) / COOP_GRAIN;
  uint64_t step = power_below (units) / power_below ((uint64_t) e->policy.v[COOP_PARAM_STEPS].i);
  if (step == 0)
    step = 1;
  return (units + step - 1) / step * step * COOP_GRAIN;
}

static uint64_t
class_supply (const CoopEngine *e, uint64_t block)
{
  return block;
}

static CoopArea
class_area (const CoopEngine *e, uint64_t block)
{
  return AREA_GENERAL;
}

static bool
class_fits (const CoopEngine *e, uint64_t block, uint64_t free_bytes)
{
  return free_bytes == block;
}

const CoopAllocator coop_alloc_class
    = { .name = "class", .segmented = true, .block = class_block, .place = place, .area = class_area,
        .fits = class_fits, .supply = class_supply, .unit = whole, .returns = returns };

/* ---- caching ------------------------------------------------------------------------------ */

static uint64_t
caching_block (const CoopEngine *e, uint64_t bytes)
{
  return coop_round (bytes);
}

static uint64_t
caching_supply (const CoopEngine *e, uint64_t block)
{
  uint64_t round = SMALL_SEGMENT * e->mib;
  if (block <= SMALL_MOST * e->mib)
    return round;
  if (block < LARGE_FROM * e->mib)
    return LARGE_SEGMENT * e->mib;
  return (block + round - 1) / round * round;
}

static CoopArea
caching_area (const CoopEngine *e, uint64_t block)
{
  return block <= SMALL_MOST * e->mib ? AREA_SMALL : AREA_GENERAL;
}

static bool
caching_fits (const CoopEngine *e, uint64_t block, uint64_t free_bytes)
{
  return free_bytes >= block;
}

const CoopAllocator coop_alloc_caching
    = { .name = "caching", .segmented = true, .slides = true, .block = caching_block, .place = place,
        .area = caching_area, .fits = caching_fits, .supply = caching_supply, .unit = whole,
        .returns = returns };
