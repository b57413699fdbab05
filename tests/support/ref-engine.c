/* SPDX-License-Identifier: Apache-2.0 */
#include "ref-engine.h"

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
