/* SPDX-License-Identifier: Apache-2.0 */
#include "ref-engine.h"
#include "core/pool.h"

#include <math.h>

uint64_t
ref_fit (const RefPiece *pieces, size_t n, uint64_t lo, uint64_t hi, uint64_t bytes, bool high)
{
  const RefPiece *best = NULL;
  for (size_t i = 0; i < n; i++)
    {
      const RefPiece *p = &pieces[i];
      if (p->used || p->addr < lo || p->addr + p->bytes > hi || p->bytes < bytes)
        continue;
      if (best == NULL || p->bytes < best->bytes || (high && p->bytes == best->bytes))
        best = p;
    }
  if (best == NULL)
    return COOP_NO_ADDR;
  return high ? best->addr + best->bytes - bytes : best->addr;
}

/* Every address is tried. At least half of the block is in the region. */
static bool
half_inside (uint64_t at, uint64_t bytes, uint64_t lo, uint64_t hi)
{
  uint64_t begin = at > lo ? at : lo, end = at + bytes < hi ? at + bytes : hi;
  return end > begin && 2 * (end - begin) >= bytes;
}

static uint64_t
fit_one_region (const RefPiece *pieces, size_t n, uint64_t lo, uint64_t hi, uint64_t bytes, bool high)
{
  uint64_t smallest = UINT64_MAX, found = COOP_NO_ADDR;
  for (size_t i = 0; i < n; i++)
    {
      const RefPiece *p = &pieces[i];
      uint64_t first = COOP_NO_ADDR, last = COOP_NO_ADDR, inner_first = COOP_NO_ADDR, inner_last = COOP_NO_ADDR;
      for (uint64_t at = p->addr; !p->used && at + bytes <= p->addr + p->bytes; at += COOP_GRAIN)
        if (half_inside (at, bytes, lo, hi))
          {
            first = first == COOP_NO_ADDR ? at : first;
            last = at;
            inner_first = inner_first == COOP_NO_ADDR && at >= lo ? at : inner_first;
            inner_last = at + bytes <= hi ? at : inner_last;
          }
      if (first == COOP_NO_ADDR || p->bytes > smallest || (!high && p->bytes == smallest))
        continue;
      smallest = p->bytes;
      found = high ? (inner_last != COOP_NO_ADDR ? inner_last : first)
                   : (inner_first != COOP_NO_ADDR ? inner_first : last);
    }
  return found;
}

uint64_t
ref_fit_regions (const RefPiece *pieces, size_t n, uint64_t lo, uint64_t hi, uint64_t bytes, unsigned regions,
                 unsigned from, bool cheap)
{
  uint64_t part = (hi - lo) / regions / COOP_GRAIN * COOP_GRAIN, at = COOP_NO_ADDR;
  for (unsigned i = 0; i < regions && at == COOP_NO_ADDR; i++)
    {
      unsigned r = (from + i) % regions;
      uint64_t end = r == regions - 1 ? hi : lo + (r + 1) * part;
      at = fit_one_region (pieces, n, lo + r * part, end, bytes, r % 2 == 0 ? cheap : !cheap);
    }
  return at != COOP_NO_ADDR ? at : ref_fit (pieces, n, lo, hi, bytes, cheap);
}

RefWindow
ref_window (const RefPiece *pieces, size_t n, uint64_t lo, uint64_t hi, uint64_t bytes)
{
  RefWindow best = { 0 };
  unsigned best_infinite = 0;
  for (size_t first = 0; first < n; first++)
    {
      uint64_t sum_bytes = 0;
      double cost = 0;
      unsigned infinite = 0;
      for (size_t last = first; last < n; last++)
        {
          const RefPiece *p = &pieces[last];
          if (p->addr < lo || p->addr >= hi || (p->used && !p->evictable))
            break;
          sum_bytes += (p->addr + p->bytes < hi ? p->addr + p->bytes : hi) - p->addr;
          if (p->used && isinf (p->h))
            infinite++;
          else if (p->used)
            cost += p->h;
          if (sum_bytes < bytes)
            continue;
          if (!best.found || infinite < best_infinite
              || (infinite == best_infinite && cost < best.cost))
            {
              best = (RefWindow) { true, pieces[first].addr, p->addr + p->bytes, cost };
              best_infinite = infinite;
            }
          break;
        }
    }
  if (best_infinite > 0)
    best.cost = INFINITY;
  return best;
}

typedef struct
{
  const RefPiece *member[8];
  uint64_t hole[8];
  unsigned members, holes;
} Vacate;

static double
vacate_from (Vacate *v, unsigned i)
{
  if (i == v->members)
    return 0;
  double best = v->member[i]->evict + vacate_from (v, i + 1);
  for (unsigned h = 0; h < v->holes; h++)
    if (v->hole[h] >= v->member[i]->bytes)
      {
        v->hole[h] -= v->member[i]->bytes;
        best = fmin (best, v->member[i]->move + vacate_from (v, i + 1));
        v->hole[h] += v->member[i]->bytes;
      }
  return best;
}

double
ref_vacate (const RefPiece *pieces, size_t n, uint64_t small, uint64_t limit, uint64_t lo, uint64_t hi)
{
  Vacate v = { .members = 0 };
  for (size_t i = 0; i < n; i++)
    {
      const RefPiece *p = &pieces[i];
      bool inside = p->addr >= lo && p->addr < hi;
      if ((inside && p->used && v.members == 6) || (!inside && !p->used && v.holes == 6))
        return -1;
      if (inside && p->used)
        v.member[v.members++] = p;
      else if (!inside && !p->used && p->addr >= small && p->addr + p->bytes <= limit)
        v.hole[v.holes++] = p->bytes;
    }
  return vacate_from (&v, 0);
}
