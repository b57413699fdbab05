/* SPDX-License-Identifier: Apache-2.0 */
/* The engine's decisions the slow way: plain lists, every window tried. */
#ifndef REF_ENGINE_H
#define REF_ENGINE_H

#include "core/engine.h"

typedef struct
{
  uint64_t addr, bytes;
  bool used, evictable;
  double h;
  double evict, move;   /* coop-plus: what it costs; infinite: it cannot */
} RefPiece;

typedef struct
{
  bool found;
  uint64_t lo, hi;
  double cost;
} RefWindow;

/* Where best fit puts `bytes` among free pieces between lo and hi: the smallest that is large enough,
 * among equals the lowest address (the highest with `high`), at its low or high edge. COOP_NO_ADDR:
 * nowhere. */
uint64_t ref_fit (const RefPiece *pieces, size_t n, uint64_t lo, uint64_t hi, uint64_t bytes,
                  bool high);
/* Where a block goes with 2 * regions groups, if its class was in region `from` last. */
uint64_t ref_fit_regions (const RefPiece *pieces, size_t n, uint64_t lo, uint64_t hi, uint64_t bytes,
                          unsigned regions, unsigned from, bool cheap);

/* The contiguous run of free or evictable pieces within [lo, hi) of at least `bytes` bytes whose sum
 * of h is smallest; infinite members are counted first. */
RefWindow ref_window (const RefPiece *pieces, size_t n, uint64_t lo, uint64_t hi, uint64_t bytes);

/* coop-plus: the least that it costs to vacate [lo, hi), each member evicted or moved into a free piece of
 * the pool outside (above `small`, below `limit`), all ways tried. -1: too many. */
double ref_vacate (const RefPiece *pieces, size_t n, uint64_t small, uint64_t limit, uint64_t lo,
                   uint64_t hi);

#endif
