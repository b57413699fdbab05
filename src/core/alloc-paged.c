/* SPDX-License-Identifier: Apache-2.0 */
/* Allocators whose memory comes and goes in pages: page, and caching with `expandable`.
 *
 * page: any free pages make any block. A block of a page or more takes whole pages of its own; smaller
 * ones share pages among themselves. What fits into free pages side by side lies there; else the block
 * gets addresses that nobody has, and pages are moved to them, from the device while the budget lasts,
 * then from wherever they are free. Each page that changes its address costs `page_cost`.
 *
 * expandable: PyTorch's. Two ranges of addresses, one for blocks up to 1 MiB in pages of 2 MiB, one for
 * larger blocks in pages of 20 MiB, that grow page by page where a block does not fit. Before it
 * fails, pages that nothing uses go back; so memory moves between the two, but is not moved within one
 * to make free pages neighbours. */
#include "engine-private.h"

#define SMALL_MOST 1     /* in units of e->mib: blocks */
#define SMALL_PAGE 2
#define LARGE_PAGE 20
#define SMALL_SHARE 16   /* of the addresses, for small blocks */

static uint64_t
up (uint64_t x, uint64_t unit)
{
  return (x + unit - 1) / unit * unit;
}

static bool
at_least (const CoopEngine *e, uint64_t block, uint64_t free_bytes)
{
  return free_bytes >= block;
}

/* ---- page --------------------------------------------------------------------------------- */

static uint64_t
page_of (const CoopEngine *e)
{
  return coop_round ((uint64_t) e->policy.v[COOP_PARAM_PAGE].i);
}

static uint64_t
page_block (const CoopEngine *e, uint64_t bytes)
{
  uint64_t block = coop_round (bytes), page = page_of (e);
  return block < page ? block : up (block, page);
}

static uint64_t
page_supply (const CoopEngine *e, uint64_t block)
{
  return up (block, page_of (e));
}

static CoopArea
page_area (const CoopEngine *e, uint64_t block)
{
  return block < page_of (e) ? AREA_SMALL : AREA_GENERAL;
}

static uint64_t
page_unit (const CoopEngine *e, CoopArea area)
{
  return page_of (e);
}

static bool
always (const CoopEngine *e)
{
  return true;
}

/* The free piece to take pages from: a page that small blocks have left, the smallest piece that has all
 * `bytes`, else the largest. */
static uint32_t
source (const CoopEngine *e, uint64_t bytes)
{
  uint32_t p = coop_bins_last (&e->pool, AREA_SMALL);
  if (p != 0 && e->pool.node[p].bytes == page_of (e))
    return p;
  p = coop_pool_fit (&e->pool, AREA_GENERAL, bytes, false);
  return p != 0 ? p : coop_bins_last (&e->pool, AREA_GENERAL);
}

static void
steal (CoopEngine *e, uint64_t to, uint64_t bytes)
{
  while (bytes > 0)
    {
      uint32_t p = source (e, bytes);
      uint64_t hi = e->pool.node[p].addr + e->pool.node[p].bytes;
      uint64_t n = e->pool.node[p].bytes < bytes ? e->pool.node[p].bytes : bytes;
      coop_unback (e, p, hi - n, hi);
      if (e->backing.remap != NULL)
        e->backing.remap (e->backing.user, hi - n, to, n);
      uint64_t pages = n / page_of (e);
      e->remaps += pages;
      e->device_ns += (uint64_t) (e->policy.v[COOP_PARAM_PAGE_COST].d * 1000 * (double) pages);
      to += n;
      bytes -= n;
    }
}

static uint32_t
gather (CoopEngine *e, uint64_t block)
{
  uint64_t bytes = page_supply (e, block);
  uint64_t rest = e->budget > e->pool.held ? e->budget - e->pool.held : 0;
  uint64_t fresh = rest < bytes ? rest : bytes;
  uint32_t hole = coop_pool_fit (&e->pool, AREA_VOID, bytes, false);
  if (hole == 0 || (fresh < bytes && coop_idle_bytes (e) < bytes - fresh))
    return 0;
  uint64_t addr = e->pool.node[hole].addr;
  /* the addresses first, so that no page is moved onto itself */
  uint32_t p = coop_segment_new (&e->pool, hole, addr, bytes, page_area (e, block));
  p = coop_pool_take (&e->pool, p, block, false, PIECE_USED);
  if (fresh > 0 && e->backing.map != NULL)
    e->backing.map (e->backing.user, addr, fresh);
  steal (e, addr + fresh, bytes - fresh);
  coop_backed (e, e->pool.node[p].segment);
  return p;
}

static uint32_t
page_place (CoopEngine *e, const CoopRequest *req)
{
  uint64_t block = page_block (e, req->bytes);
  uint32_t p = coop_pool_fit (&e->pool, page_area (e, block), block, false);
  return p != 0 ? coop_pool_take (&e->pool, p, block, false, PIECE_USED) : gather (e, block);
}

const CoopAllocator coop_alloc_page
    = { .name = "page", .segmented = true, .slides = true, .block = page_block, .place = page_place,
        .area = page_area, .fits = at_least, .supply = page_supply, .unit = page_unit,
        .returns = always };

/* ---- expandable --------------------------------------------------------------------------- */

static uint64_t
expandable_block (const CoopEngine *e, uint64_t bytes)
{
  return coop_round (bytes);
}

static CoopArea
expandable_area (const CoopEngine *e, uint64_t block)
{
  return block <= SMALL_MOST * e->mib ? AREA_SMALL : AREA_GENERAL;
}

static uint64_t
expandable_unit (const CoopEngine *e, CoopArea area)
{
  return (area == AREA_SMALL ? SMALL_PAGE : LARGE_PAGE) * e->mib;
}

static uint64_t
expandable_supply (const CoopEngine *e, uint64_t block)
{
  return up (block, expandable_unit (e, expandable_area (e, block)));
}

/* Where the range of an area begins and ends. */
static void
range_of (const CoopEngine *e, CoopArea area, uint64_t *lo, uint64_t *hi)
{
  uint64_t page = LARGE_PAGE * e->mib, line = up (e->pool.capacity / SMALL_SHARE, page);
  *lo = area == AREA_SMALL ? 0 : line;
  *hi = area == AREA_SMALL ? line : e->pool.capacity / page * page;
}

typedef struct
{
  uint64_t lo, hi;       /* addresses of the block */
  uint64_t map;          /* bytes that the device must give for them */
} Spot;

/* Bytes of pages in [lo, hi) that have no memory; with `trimmed`, as if every page that nothing uses had
 * gone back. [lo, hi) lies in free pieces and void from p on. */
static uint64_t
to_map (const CoopEngine *e, uint32_t p, uint64_t lo, uint64_t hi, uint64_t unit, bool trimmed)
{
  const CoopNode *node = e->pool.node;
  uint64_t bytes = 0;
  for (; p != 0 && node[p].addr < hi; p = node[p].next)
    {
      uint64_t from = node[p].addr / unit * unit, to = up (node[p].addr + node[p].bytes, unit);
      if (node[p].segment != 0 && !trimmed)
        continue;
      if (node[p].segment != 0)
        {
          from = up (node[p].addr, unit);
          to = (node[p].addr + node[p].bytes) / unit * unit;
        }
      if (from < lo / unit * unit)
        from = lo / unit * unit;
      if (to > up (hi, unit))
        to = up (hi, unit);
      bytes += to > from ? to - from : 0;
    }
  return bytes;
}

static bool
is_open (const CoopEngine *e, uint32_t p, CoopArea area)
{
  const CoopNode *n = &e->pool.node[p];
  return n->used == PIECE_FREE && n->claim == 0 && (n->segment == 0 || n->area == area);
}

/* The place in the area's range that takes the fewest bytes from the device, the lowest of equals. */
static bool
best_spot (const CoopEngine *e, uint64_t block, bool trimmed, Spot *best)
{
  const CoopNode *node = e->pool.node;
  CoopArea area = expandable_area (e, block);
  uint64_t unit = expandable_unit (e, area), lo, hi;
  bool found = false;
  range_of (e, area, &lo, &hi);
  for (uint32_t p = node[0].next, last; p != 0; p = node[last].next)
    {
      uint64_t from = node[p].addr, to;
      last = p;
      if (!is_open (e, p, area))
        continue;
      while (node[last].next != 0 && is_open (e, node[last].next, area))
        last = node[last].next;
      to = node[last].addr + node[last].bytes;
      from = from < lo ? lo : from;
      to = to > hi ? hi : to;
      if (from >= to || to - from < block)
        continue;
      uint64_t map = to_map (e, p, from, from + block, unit, trimmed);
      if (found && map >= best->map)
        continue;
      *best = (Spot) { from, from + block, map };
      found = true;
    }
  return found;
}

/* Every page that nothing uses goes back. */
static void
trim (CoopEngine *e)
{
  coop_lots (e, false);
  for (uint32_t i = 0; i < e->n_lots; i++)
    if (e->lot[i].empty)
      coop_give_back (e, e->lot[i].first, e->lot[i].lo, e->lot[i].hi);
}

/* Backs what is void in the pages of [lo, hi); what touches becomes one segment. */
static void
map (CoopEngine *e, uint64_t lo, uint64_t hi, CoopArea area)
{
  uint64_t unit = expandable_unit (e, area);
  lo = lo / unit * unit;
  hi = up (hi, unit);
  for (uint32_t p = e->pool.node[0].next; p != 0; p = e->pool.node[p].next)
    {
      uint64_t from = e->pool.node[p].addr, to = from + e->pool.node[p].bytes;
      if (e->pool.node[p].segment != 0 || to <= lo || from >= hi)
        continue;
      from = from < lo ? lo : from;
      to = to > hi ? hi : to;
      p = coop_back (e, p, from, to - from, area);
      if (e->backing.map != NULL)
        e->backing.map (e->backing.user, from, to - from);
      coop_back_join (e, e->pool.node[p].segment);
      p = 0; /* pieces have merged: from the start */
    }
}

static bool
grow (CoopEngine *e, uint64_t block)
{
  Spot spot;
  if (!best_spot (e, block, false, &spot))
    return false;
  if (e->pool.held + spot.map > e->budget)
    {
      if (!e->allocator->returns (e) || !best_spot (e, block, true, &spot)
          || e->pool.held - coop_idle_bytes (e) + spot.map > e->budget)
        return false;
      trim (e);
    }
  map (e, spot.lo, spot.hi, expandable_area (e, block));
  return true;
}

static uint32_t
expandable_place (CoopEngine *e, const CoopRequest *req)
{
  uint64_t block = expandable_block (e, req->bytes);
  CoopArea area = expandable_area (e, block);
  uint32_t p = coop_pool_fit (&e->pool, area, block, false);
  if (p == 0 && grow (e, block))
    p = coop_pool_fit (&e->pool, area, block, false);
  return p != 0 ? coop_pool_take (&e->pool, p, block, false, PIECE_USED) : 0;
}

static bool
expandable_returns (const CoopEngine *e)
{
  return e->policy.v[COOP_PARAM_GIVE_BACK].i != 0;
}

const CoopAllocator coop_alloc_expandable
    = { .name = "caching", .segmented = true, .slides = true, .block = expandable_block,
        .place = expandable_place, .area = expandable_area, .fits = at_least,
        .supply = expandable_supply, .unit = expandable_unit, .returns = expandable_returns };
