/* SPDX-License-Identifier: Apache-2.0 */
/* Evictors coop and coop-class in pools made of segments, where neighbours in the address space need not
 * be neighbours in memory. The cheapest of
 *
 *   - a window inside one segment that is long enough for the block (of the right size, on class), and
 *   - lots that go back to the device, enough of them for a new segment: side by side in address order
 *     (coop on class and caching), or any (coop-class; coop on page, where pages need no neighbours).
 *
 * Lots that are empty already go back for nothing and are counted first. To choose any lots is the
 * knapsack problem the other way round: they are taken by cost per byte; one that would complete the
 * set is noted with it and passed over, and the cheapest so noted wins, less what turns out to be
 * superfluous. It costs at most twice the cheapest there is. */
#include "engine-private.h"

#include "weight.h"

#include <math.h>
#include <stdlib.h>

typedef struct
{
  Weight sum;
  uint32_t infinite;     /* UINT32_MAX: there is none */
} Price;

typedef struct
{
  Price price;
  uint64_t lo, hi;
} Window;

static const Price none = { 0, UINT32_MAX };

static bool
cheaper (Price a, Price b)
{
  return a.infinite != b.infinite ? a.infinite < b.infinite : a.sum < b.sum;
}

static double
value (Price p)
{
  if (p.infinite == UINT32_MAX)
    return NAN;
  return p.infinite > 0 ? INFINITY : (double) p.sum / WEIGHT_ONE;
}

static Price
add (Price p, const CoopLot *lot)
{
  return (Price) { p.sum + lot->sum, p.infinite + lot->infinite };
}

static Price
take_away (Price p, const CoopLot *lot)
{
  return (Price) { p.sum - lot->sum, p.infinite - lot->infinite };
}

static uint64_t
size (const CoopLot *lot)
{
  return lot->hi - lot->lo;
}

/* ---- a window inside a segment ------------------------------------------------------------ */

static Price
price_of (CoopEngine *e, const CoopNode *n, const CoopScale *scale)
{
  if (n->used == PIECE_FREE)
    return (Price) { 0, 0 };
  Weight w = weigh (coop_h (e, n->tensor, scale));
  return w == WEIGHT_INFINITE ? (Price) { 0, 1 } : (Price) { w, 0 };
}

static bool
may_be_in (const CoopEngine *e, const CoopNode *n)
{
  return (n->used == PIECE_FREE && n->claim == 0)
         || (n->used == PIECE_USED && n->tensor != NULL && coop_evictable (e, n->tensor));
}

/* From piece p on, to the first that must stay or the end of the segment. */
static uint32_t
scan_run (CoopEngine *e, uint32_t p, uint64_t block, const CoopScale *scale, Window *best)
{
  const CoopNode *node = e->pool.node;
  uint32_t segment = node[p].segment, first = p;
  uint64_t bytes = 0;
  Price price = { 0, 0 };
  for (; p != 0 && node[p].segment == segment && may_be_in (e, &node[p]); p = node[p].next)
    {
      Price own = price_of (e, &node[p], scale);
      bytes += node[p].bytes;
      price = (Price) { price.sum + own.sum, price.infinite + own.infinite };
      while (bytes - node[first].bytes >= block)
        {
          own = price_of (e, &node[first], scale);
          price = (Price) { price.sum - own.sum, price.infinite - own.infinite };
          bytes -= node[first].bytes;
          first = node[first].next;
        }
      if (e->allocator->fits (e, block, bytes) && cheaper (price, best->price))
        *best = (Window) { price, node[first].addr, node[p].addr + node[p].bytes };
    }
  return p;
}

static Window
best_window (CoopEngine *e, uint64_t block)
{
  const CoopNode *node = e->pool.node;
  const CoopScale scale = coop_scale (e);
  CoopArea area = e->allocator->area (e, block);
  Window best = { none, COOP_NO_ADDR, COOP_NO_ADDR };
  for (uint32_t p = node[0].next, next; p != 0; p = next)
    {
      next = node[p].next;
      if (node[p].segment != 0 && e->pool.segment[node[p].segment].area == area
          && may_be_in (e, &node[p]))
        next = scan_run (e, p, block, &scale, &best);
    }
  return best;
}

/* ---- lots --------------------------------------------------------------------------------- */

/* Bytes that must go back beside what is free; 0: none, or nothing goes back at all. */
static uint64_t
shortage (const CoopEngine *e, uint64_t block)
{
  uint64_t have = e->budget > e->pool.held ? e->budget - e->pool.held : 0;
  uint64_t over = e->pool.held > e->budget ? e->pool.held - e->budget : 0;
  uint64_t need = e->allocator->supply (e, block) + over;
  if (!e->allocator->returns (e))
    return 0;
  for (uint32_t i = 0; i < e->n_lots; i++)
    have += e->lot[i].empty ? size (&e->lot[i]) : 0;
  return need > have ? need - have : 0;
}

static bool
is_open (const CoopLot *lot)
{
  return !lot->blocked && !lot->empty;
}

/* Side by side: of those that end with a given lot the shortest is the cheapest. Empty lots are between
 * them or not; what is blocked ends the row. */
static Price
choose_row (CoopEngine *e, uint64_t bytes)
{
  CoopLot *lot = e->lot;
  Price price = { 0, 0 }, best = none;
  uint64_t sum = 0;
  uint32_t first = 0, best_first = 0, best_last = 0;
  for (uint32_t i = 0; i < e->n_lots; i++)
    {
      if (lot[i].blocked)
        {
          first = i + 1;
          sum = 0;
          price = (Price) { 0, 0 };
        }
      if (!is_open (&lot[i]))
        continue;
      sum += size (&lot[i]);
      price = add (price, &lot[i]);
      for (; !is_open (&lot[first]) || sum - size (&lot[first]) >= bytes; first++)
        if (is_open (&lot[first]))
          {
            sum -= size (&lot[first]);
            price = take_away (price, &lot[first]);
          }
      if (sum >= bytes && cheaper (price, best))
        {
          best = price;
          best_first = first;
          best_last = i;
        }
    }
  for (uint32_t i = best_first; i <= best_last && best.infinite != UINT32_MAX; i++)
    lot[i].chosen = is_open (&lot[i]);
  return best;
}

/* By cost per byte, the infinite ones last; of equals the lower address. */
static int
by_density (const void *a, const void *b)
{
  const CoopLot *x = a, *y = b;
  if (is_open (x) != is_open (y))
    return is_open (x) ? -1 : 1;
  if (x->infinite != y->infinite)
    return x->infinite < y->infinite ? -1 : 1;
  double p = (double) x->sum / (double) size (x), q = (double) y->sum / (double) size (y);
  if (p != q)
    return p < q ? -1 : 1;
  return x->lo < y->lo ? -1 : x->lo > y->lo;
}

/* Drops the dearest that are not needed. */
static Price
prune (CoopLot *lot, uint32_t n, uint64_t surplus, Price price)
{
  for (;;)
    {
      uint32_t dear = n;
      for (uint32_t i = 0; i < n; i++)
        if (lot[i].chosen && size (&lot[i]) <= surplus
            && (dear == n
                || cheaper ((Price) { lot[dear].sum, lot[dear].infinite },
                            (Price) { lot[i].sum, lot[i].infinite })))
          dear = i;
      if (dear == n)
        return price;
      lot[dear].chosen = false;
      surplus -= size (&lot[dear]);
      price = take_away (price, &lot[dear]);
    }
}

static Price
choose_set (CoopEngine *e, uint64_t bytes)
{
  CoopLot *lot = e->lot;
  uint32_t n = 0, last = 0;
  uint64_t sum = 0, best_sum = 0;
  Price price = { 0, 0 }, best = none;
  qsort (lot, e->n_lots, sizeof *lot, by_density);
  for (; n < e->n_lots && is_open (&lot[n]); n++)
    {
      lot[n].chosen = sum + size (&lot[n]) < bytes;
      if (lot[n].chosen)
        {
          sum += size (&lot[n]);
          price = add (price, &lot[n]);
        }
      else if (cheaper (add (price, &lot[n]), best))
        {
          best = add (price, &lot[n]);
          best_sum = sum + size (&lot[n]);
          last = n;
        }
    }
  if (best.infinite == UINT32_MAX)
    return none;
  lot[last].chosen = true;
  for (uint32_t i = last + 1; i < n; i++)
    lot[i].chosen = false;
  return prune (lot, n, best_sum - bytes, best);
}

/* ---- the choice --------------------------------------------------------------------------- */

static void
say_window (CoopChoice *choice, const Window *w)
{
  choice->lo = w->lo;
  choice->hi = w->hi;
  choice->cost = value (w->price);
}

static void
say_lots (const CoopEngine *e, CoopChoice *choice, Price price)
{
  choice->lots = true;
  choice->cost = value (price);
  choice->hi = 0;
  for (uint32_t i = 0; i < e->n_lots; i++)
    if (e->lot[i].chosen)
      {
        choice->lo = e->lot[i].lo < choice->lo ? e->lot[i].lo : choice->lo;
        choice->hi = e->lot[i].hi > choice->hi ? e->lot[i].hi : choice->hi;
      }
}

static void
choose (CoopEngine *e, uint64_t block, CoopChoice *choice, Price (*lots) (CoopEngine *, uint64_t))
{
  Window window = best_window (e, block);
  coop_lots (e, true);
  uint64_t bytes = shortage (e, block);
  Price price = bytes > 0 ? lots (e, bytes) : none;
  choice->visited = e->pool.n_pieces;
  choice->found = window.price.infinite != UINT32_MAX || price.infinite != UINT32_MAX;
  choice->claim = choice->found;
  if (!choice->found)
    return;
  if (cheaper (price, window.price))
    {
      say_lots (e, choice, price);
      choice->next_cost = value (window.price);
      choice->next_lo = window.lo;
      choice->next_hi = window.hi;
    }
  else
    {
      say_window (choice, &window);
      choice->next_cost = value (price);
    }
}

static void
choose_in_row (CoopEngine *e, uint64_t need, CoopChoice *choice)
{
  choose (e, need, choice, choose_row);
}

static void
choose_any (CoopEngine *e, uint64_t need, CoopChoice *choice)
{
  choose (e, need, choice, choose_set);
}

const CoopEvictor coop_evict_row = { "row", choose_in_row };
const CoopEvictor coop_evict_set = { "set", choose_any };
