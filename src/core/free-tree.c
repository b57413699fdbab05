/* SPDX-License-Identifier: Apache-2.0 */
/* Free pieces by size: eight size classes to a power of two, a bitmap of those that are not empty,
 * and in each class a treap by (size, address). A class is narrow, so trees are shallow and most
 * hold one size; exact best fit needs the tree of the class and at most one step up the bitmap.
 * Priorities are a hash of the node's index: no generator, the same run gives the same tree. */
#include "pool.h"

static unsigned
class_of (uint64_t bytes)
{
  uint64_t units = bytes / COOP_GRAIN;
  if (units < 8)
    return (unsigned) units;
  unsigned log = 63 - (unsigned) __builtin_clzll (units);
  return (log - 2) * 8 + (unsigned) ((units >> (log - 3)) & 7);
}

static uint32_t
priority (uint32_t p)
{
  uint32_t x = p * 0x9e3779b1u;
  return x ^ (x >> 15);
}

/* Order of the tree: size, then address. */
static bool
before (const CoopLeaf *a, const CoopLeaf *b)
{
  return a->bytes != b->bytes ? a->bytes < b->bytes : a->addr < b->addr;
}

static CoopBins *
bins_of (CoopPool *pool, uint32_t p)
{
  return &pool->bins[pool->node[p].area];
}

/* Splits tree t into what comes before p and what comes after it. */
static void
split (CoopLeaf *leaf, uint32_t t, uint32_t p, uint32_t *low, uint32_t *high)
{
  while (t != 0)
    {
      if (before (&leaf[t], &leaf[p]))
        {
          *low = t;
          low = &leaf[t].right;
          t = leaf[t].right;
        }
      else
        {
          *high = t;
          high = &leaf[t].left;
          t = leaf[t].left;
        }
    }
  *low = *high = 0;
}

void
coop_bins_insert (CoopPool *pool, uint32_t p)
{
  CoopLeaf *leaf = pool->leaf;
  CoopBins *bins = bins_of (pool, p);
  leaf[p].addr = pool->node[p].addr;
  leaf[p].bytes = pool->node[p].bytes;
  unsigned c = class_of (leaf[p].bytes);
  uint32_t *link = &bins->root[c];
  uint32_t own = priority (p);
  while (*link != 0 && priority (*link) >= own)
    link = before (&leaf[p], &leaf[*link]) ? &leaf[*link].left : &leaf[*link].right;
  uint32_t low, high;
  split (leaf, *link, p, &low, &high);
  leaf[p].left = low;
  leaf[p].right = high;
  *link = p;
  bins->bits[c / 64] |= UINT64_C (1) << (c % 64);
}

void
coop_bins_remove (CoopPool *pool, uint32_t p)
{
  CoopLeaf *leaf = pool->leaf;
  CoopBins *bins = bins_of (pool, p);
  unsigned c = class_of (leaf[p].bytes);
  uint32_t *link = &bins->root[c];
  while (*link != p)
    link = before (&leaf[p], &leaf[*link]) ? &leaf[*link].left : &leaf[*link].right;
  uint32_t a = leaf[p].left, b = leaf[p].right;
  while (a != 0 && b != 0)
    {
      if (priority (a) >= priority (b))
        {
          *link = a;
          link = &leaf[a].right;
          a = leaf[a].right;
        }
      else
        {
          *link = b;
          link = &leaf[b].left;
          b = leaf[b].left;
        }
    }
  *link = a != 0 ? a : b;
  leaf[p].left = leaf[p].right = 0;
  if (bins->root[c] == 0)
    bins->bits[c / 64] &= ~(UINT64_C (1) << (c % 64));
}

bool
coop_bins_has (const CoopPool *pool, uint32_t p)
{
  const CoopNode *n = &pool->node[p];
  const CoopLeaf *leaf = pool->leaf, own = { .bytes = n->bytes, .addr = n->addr };
  uint32_t t = pool->bins[n->area].root[class_of (n->bytes)];
  while (t != 0 && t != p)
    t = before (&own, &leaf[t]) ? leaf[t].left : leaf[t].right;
  return t == p;
}

/* First of the tree with at least `bytes`; 0: none. */
static uint32_t
lower_bound (const CoopLeaf *leaf, uint32_t t, uint64_t bytes)
{
  uint32_t found = 0;
  while (t != 0)
    {
      if (leaf[t].bytes >= bytes)
        {
          found = t;
          t = leaf[t].left;
        }
      else
        t = leaf[t].right;
    }
  return found;
}

/* The one of exactly `bytes` with the highest address. */
static uint32_t
highest_of (const CoopLeaf *leaf, uint32_t t, uint64_t bytes)
{
  uint32_t found = 0;
  while (t != 0)
    {
      if (leaf[t].bytes <= bytes)
        {
          found = t;
          t = leaf[t].right;
        }
      else
        t = leaf[t].left;
    }
  return found;
}

static unsigned
next_class (const CoopBins *bins, unsigned from)
{
  for (unsigned w = from / 64; w < COOP_SIZE_CLASSES / 64; w++)
    {
      uint64_t bits = bins->bits[w];
      if (w == from / 64)
        bits &= ~UINT64_C (0) << (from % 64);
      if (bits != 0)
        return w * 64 + (unsigned) __builtin_ctzll (bits);
    }
  return COOP_SIZE_CLASSES;
}

uint32_t
coop_bins_fit (const CoopPool *pool, CoopArea area, uint64_t bytes, bool high)
{
  const CoopBins *bins = &pool->bins[area];
  unsigned c = class_of (bytes);
  uint32_t p = lower_bound (pool->leaf, bins->root[c], bytes);
  if (p == 0)
    {
      c = next_class (bins, c + 1);
      if (c == COOP_SIZE_CLASSES)
        return 0;
      p = lower_bound (pool->leaf, bins->root[c], 0);
    }
  return high ? highest_of (pool->leaf, bins->root[c], pool->leaf[p].bytes) : p;
}

/* The largest free piece of the area; 0: none. */
uint32_t
coop_bins_last (const CoopPool *pool, CoopArea area)
{
  const CoopBins *bins = &pool->bins[area];
  for (unsigned w = COOP_SIZE_CLASSES / 64; w-- > 0;)
    if (bins->bits[w] != 0)
      {
        uint32_t t = bins->root[w * 64 + 63 - (unsigned) __builtin_clzll (bins->bits[w])];
        while (pool->leaf[t].right != 0)
          t = pool->leaf[t].right;
        return t;
      }
  return 0;
}
