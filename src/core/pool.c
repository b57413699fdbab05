/* SPDX-License-Identifier: Apache-2.0 */
/* Pool: splitting, merging and finding pieces. See pool.h for what the structure is. */
#include "pool.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CACHE_LINE 64

/* The engine cannot go back in the middle of a decision; its lists are small beside what they are about. */
_Noreturn static void
no_memory (void)
{
  fputs ("coopscope: the system has no memory left for the engine's own lists\n", stderr);
  abort ();
}

void *
coop_make (size_t bytes)
{
  void *p = calloc (1, bytes);
  if (p == NULL)
    no_memory ();
  return p;
}

void *
coop_make_line (size_t bytes)
{
  bytes = (bytes + CACHE_LINE - 1) / CACHE_LINE * CACHE_LINE;
  void *p = aligned_alloc (CACHE_LINE, bytes);
  if (p == NULL)
    no_memory ();
  return memset (p, 0, bytes);
}

void *
coop_grow (void *array, uint32_t *room, uint32_t need, size_t item)
{
  if (need <= *room)
    return array;
  uint32_t more = *room < 8 ? 8 : *room * 2;
  if (more < need)
    more = need;
  array = realloc (array, more * item);
  if (array == NULL)
    no_memory ();
  memset ((char *) array + *room * item, 0, (more - *room) * item);
  *room = more;
  return array;
}

/* ---- used pieces by address --------------------------------------------------------------- */

static uint32_t
hash_of (uint64_t addr)
{
  return (uint32_t) ((addr / COOP_GRAIN * UINT64_C (0x9e3779b97f4a7c15)) >> 32);
}

uint32_t
coop_pool_at (const CoopPool *pool, uint64_t addr)
{
  uint32_t hash = hash_of (addr), mask = pool->n_slots - 1;
  for (uint32_t s = hash & mask; pool->slot[s].piece != 0; s = (s + 1) & mask)
    if (pool->slot[s].hash == hash && pool->node[pool->slot[s].piece].addr == addr)
      return pool->slot[s].piece;
  return 0;
}

static void
slot_put (CoopPool *pool, CoopSlot slot)
{
  uint32_t mask = pool->n_slots - 1, s = slot.hash & mask;
  while (pool->slot[s].piece != 0)
    s = (s + 1) & mask;
  pool->slot[s] = slot;
}

static void
slots_grow (CoopPool *pool)
{
  uint32_t old_n = pool->n_slots;
  CoopSlot *old = pool->slot;
  pool->n_slots = old_n ? old_n * 2 : 1024;
  pool->slot = coop_make (pool->n_slots * sizeof *pool->slot);
  for (uint32_t s = 0; s < old_n; s++)
    if (old[s].piece != 0)
      slot_put (pool, old[s]);
  free (old);
}

static void
used_add (CoopPool *pool, uint32_t p)
{
  if (++pool->n_used * 2 > pool->n_slots)
    slots_grow (pool);
  slot_put (pool, (CoopSlot) { p, hash_of (pool->node[p].addr) });
  pool->live += pool->node[p].bytes;
}

/* Linear probing without tombstones: what stood behind the hole moves up. */
static void
used_drop (CoopPool *pool, uint32_t p)
{
  uint32_t mask = pool->n_slots - 1, s = hash_of (pool->node[p].addr) & mask;
  while (pool->slot[s].piece != p)
    s = (s + 1) & mask;
  for (uint32_t next = (s + 1) & mask; pool->slot[next].piece != 0; next = (next + 1) & mask)
    {
      uint32_t home = pool->slot[next].hash & mask;
      if (((next - home) & mask) >= ((next - s) & mask))
        {
          pool->slot[s] = pool->slot[next];
          s = next;
        }
    }
  pool->slot[s].piece = 0;
  pool->n_used--;
  pool->live -= pool->node[p].bytes;
}

/* ---- pieces ------------------------------------------------------------------------------- */

static uint32_t
node_new (CoopPool *pool)
{
  uint32_t p = pool->spare;
  pool->n_pieces++;
  if (p != 0)
    {
      pool->spare = pool->node[p].next;
      memset (&pool->node[p], 0, sizeof pool->node[p]);
      return p;
    }
  pool->node = coop_grow (pool->node, &pool->room, pool->n_nodes + 1, sizeof *pool->node);
  pool->leaf = coop_grow (pool->leaf, &pool->leaf_room, pool->room, sizeof *pool->leaf);
  return pool->n_nodes++;
}

static void
node_drop (CoopPool *pool, uint32_t p)
{
  CoopNode *node = pool->node;
  node[node[p].prev].next = node[p].next;
  node[node[p].next].prev = node[p].prev;
  node[p].bytes = 0;
  node[p].next = pool->spare;
  pool->spare = p;
  pool->n_pieces--;
}

/* A new node for the upper part of p, which keeps the lower `bytes`. */
static uint32_t
cut (CoopPool *pool, uint32_t p, uint64_t bytes)
{
  uint32_t q = node_new (pool);
  CoopNode *node = pool->node;
  node[q] = node[p];
  node[q].addr += bytes;
  node[q].bytes -= bytes;
  node[p].bytes = bytes;
  node[q].prev = p;
  node[q].next = node[p].next;
  node[node[q].next].prev = q;
  node[p].next = q;
  return q;
}

static bool
in_tree (const CoopNode *n)
{
  return n->used == PIECE_FREE && n->claim == 0 && n->area != AREA_BEYOND;
}

static uint8_t
area_at (const CoopPool *pool, uint64_t addr)
{
  return addr < pool->small_end ? AREA_SMALL : addr < pool->limit ? AREA_GENERAL : AREA_BEYOND;
}

static bool
may_merge (const CoopNode *a, const CoopNode *b)
{
  return a->used == PIECE_FREE && b->used == PIECE_FREE && a->area == b->area
         && a->claim == b->claim && a->segment == b->segment;
}

/* Puts a free piece that lies in one area where it belongs, merged with its neighbours: the piece. */
static uint32_t
settle (CoopPool *pool, uint32_t p)
{
  CoopNode *node = pool->node;
  uint32_t next = node[p].next, prev = node[p].prev;
  if (next != 0 && may_merge (&node[p], &node[next]))
    {
      if (in_tree (&node[next]))
        coop_bins_remove (pool, next);
      node[p].bytes += node[next].bytes;
      node_drop (pool, next);
    }
  if (prev != 0 && may_merge (&node[prev], &node[p]))
    {
      if (in_tree (&node[prev]))
        coop_bins_remove (pool, prev);
      node[prev].bytes += node[p].bytes;
      node_drop (pool, p);
      p = prev;
    }
  if (in_tree (&node[p]))
    coop_bins_insert (pool, p);
  return p;
}

static uint32_t
claim_at (const CoopPool *pool, uint64_t addr)
{
  for (uint32_t i = 0; i < pool->n_claims; i++)
    if (addr >= pool->claim[i].lo && addr < pool->claim[i].hi)
      return pool->claim[i].id;
  return 0;
}

/* A new node for the upper part of p, which keeps the lower `bytes`. */
uint32_t
coop_pool_cut (CoopPool *pool, uint32_t p, uint64_t bytes)
{
  return cut (pool, p, bytes);
}

uint32_t
coop_pool_settle (CoopPool *pool, uint32_t p)
{
  return settle (pool, p);
}

static void
place_in_segment (CoopPool *pool, uint32_t p)
{
  CoopNode *n = &pool->node[p];
  n->area = n->segment != 0 ? pool->segment[n->segment].area : AREA_VOID;
  n->claim = claim_at (pool, n->addr);
  if (n->segment != 0)
    pool->free += n->bytes;
  settle (pool, p);
}

/* Free piece p, in no tree, may cross lines: each part goes where it belongs. */
static void
place_free (CoopPool *pool, uint32_t p)
{
  if (pool->segmented)
    {
      place_in_segment (pool, p);
      return;
    }
  const uint64_t lines[2] = { pool->small_end, pool->limit };
  for (int i = 0; i <= 2; i++)
    {
      CoopNode *n = &pool->node[p];
      uint32_t rest = 0;
      if (i < 2 && !(n->addr < lines[i]))
        continue;
      if (i < 2 && n->addr + n->bytes > lines[i])
        rest = cut (pool, p, lines[i] - n->addr);
      n = &pool->node[p];
      n->area = area_at (pool, n->addr);
      n->claim = claim_at (pool, n->addr);
      if (n->area != AREA_BEYOND)
        pool->free += n->bytes;
      if (rest != 0)
        pool->node[rest].area = N_AREAS; /* not yet settled: merges with nothing */
      settle (pool, p);
      if (rest == 0)
        return;
      p = rest;
    }
}

void
coop_pool_init (CoopPool *pool, uint64_t capacity)
{
  memset (pool, 0, sizeof *pool);
  pool->capacity = pool->limit = capacity;
  pool->node = coop_grow (NULL, &pool->room, 2, sizeof *pool->node);
  pool->n_nodes = 1;
  slots_grow (pool);
  uint32_t p = node_new (pool);
  pool->node[p].bytes = capacity;
  pool->node[0].next = pool->node[0].prev = p;
  place_free (pool, p);
}

void
coop_pool_clear (CoopPool *pool)
{
  free (pool->node);
  free (pool->leaf);
  free (pool->slot);
  free (pool->claim);
  free (pool->segment);
}

/* Every free piece is taken out and put back: rare (a budget changes), and simple. */
void
coop_pool_set_lines (CoopPool *pool, uint64_t small_end, uint64_t limit)
{
  memset (pool->bins, 0, sizeof pool->bins);
  pool->small_end = small_end;
  pool->limit = limit;
  pool->free = 0;
  for (uint32_t p = pool->node[0].next; p != 0; p = pool->node[p].next)
    if (pool->node[p].used == PIECE_FREE)
      pool->node[p].area = N_AREAS;
  for (uint32_t p = pool->node[0].next, next; p != 0; p = next)
    {
      next = pool->node[p].next;
      if (pool->node[p].used != PIECE_FREE)
        continue;
      place_free (pool, p);
    }
}

uint32_t
coop_pool_fit (const CoopPool *pool, CoopArea area, uint64_t bytes, bool high)
{
  return coop_bins_fit (pool, area, bytes, high);
}

uint32_t
coop_pool_lowest (const CoopPool *pool, uint64_t bytes, uint64_t below)
{
  const CoopNode *node = pool->node;
  for (uint32_t p = node[0].next; p != 0 && node[p].addr < below; p = node[p].next)
    if (in_tree (&node[p]) && node[p].area == AREA_GENERAL && node[p].bytes >= bytes)
      return p;
  return 0;
}

uint32_t
coop_pool_take (CoopPool *pool, uint32_t p, uint64_t bytes, bool high, uint8_t use)
{
  coop_bins_remove (pool, p);
  uint64_t all = pool->node[p].bytes;
  uint32_t rest = 0;
  if (all > bytes && high)
    {
      rest = p;
      p = cut (pool, p, all - bytes);
    }
  else if (all > bytes)
    rest = cut (pool, p, bytes);
  if (rest != 0)
    coop_bins_insert (pool, rest);
  CoopNode *n = &pool->node[p];
  n->used = use;
  n->refs = 1;
  n->tensor = NULL;
  pool->free -= bytes;
  if (pool->segmented)
    pool->segment[n->segment].used += bytes;
  if (use == PIECE_USED)
    used_add (pool, p);
  return p;
}

uint32_t
coop_pool_take_at (CoopPool *pool, uint32_t p, uint64_t addr, uint64_t bytes, uint8_t use)
{
  uint64_t before = addr - pool->node[p].addr;
  if (before > 0)
    {
      coop_bins_remove (pool, p);
      uint32_t rest = cut (pool, p, before);
      coop_bins_insert (pool, p);
      coop_bins_insert (pool, rest);
      p = rest;
    }
  return coop_pool_take (pool, p, bytes, false, use);
}

void
coop_pool_arrive (CoopPool *pool, uint32_t p)
{
  pool->node[p].used = PIECE_USED;
  used_add (pool, p);
}

void
coop_pool_slide (CoopPool *pool, uint32_t p)
{
  CoopNode *to = &pool->node[p], *from = &pool->node[to->next];
  uint64_t hole = to->bytes;
  used_drop (pool, to->next);
  to->bytes = from->bytes;
  from->addr = to->addr + to->bytes;
  from->bytes = hole;
  from->used = PIECE_ARRIVAL;
}

void
coop_pool_give (CoopPool *pool, uint32_t p)
{
  if (pool->node[p].used == PIECE_USED)
    used_drop (pool, p);
  CoopNode *n = &pool->node[p];
  if (pool->segmented)
    pool->segment[n->segment].used -= n->bytes;
  n->used = PIECE_FREE;
  n->block = 0;
  n->tensor = NULL;
  n->refs = 0;
  n->requested = n->op = 0;
  place_free (pool, p);
}

void
coop_pool_claim (CoopPool *pool, uint64_t lo, uint64_t hi, uint32_t id)
{
  pool->claim = coop_grow (pool->claim, &pool->claim_room, pool->n_claims + 1, sizeof *pool->claim);
  pool->claim[pool->n_claims++] = (CoopClaim) { lo, hi, id };
  CoopNode *node = pool->node;
  for (uint32_t p = node[0].next; p != 0 && node[p].addr < hi; p = node[p].next)
    if (node[p].addr >= lo && in_tree (&node[p]))
      {
        coop_bins_remove (pool, p);
        node[p].claim = id;
      }
}

void
coop_pool_unclaim (CoopPool *pool, uint32_t claim)
{
  uint64_t hi = 0;
  for (uint32_t i = 0; i < pool->n_claims;)
    if (pool->claim[i].id != claim)
      i++;
    else
      {
        hi = pool->claim[i].hi > hi ? pool->claim[i].hi : hi;
        pool->claim[i] = pool->claim[--pool->n_claims];
      }
  for (uint32_t p = pool->node[0].next, next; p != 0 && pool->node[p].addr < hi; p = next)
    {
      next = pool->node[p].next;
      if (pool->node[p].used != PIECE_FREE || pool->node[p].claim != claim)
        continue;
      pool->node[p].claim = 0;
      next = pool->node[settle (pool, p)].next;
    }
}

uint64_t
coop_pool_largest (const CoopPool *pool)
{
  uint64_t largest = 0;
  for (int area = AREA_SMALL; area <= AREA_GENERAL; area++)
    {
      uint32_t p = coop_bins_last (pool, (CoopArea) area);
      if (p != 0 && pool->node[p].bytes > largest)
        largest = pool->node[p].bytes;
    }
  return largest;
}

static const char *
check_node (const CoopPool *pool, uint32_t p, uint64_t at)
{
  const CoopNode *n = &pool->node[p];
  if (n->addr != at || n->bytes == 0 || n->bytes % COOP_GRAIN != 0)
    return "pieces do not tile the pool";
  if (n->used == PIECE_USED)
    return coop_pool_at (pool, n->addr) == p && n->block != 0 && n->refs > 0
               ? NULL
               : "a used piece is not found by its address or has no owner";
  if (n->used == PIECE_ARRIVAL)
    return NULL;
  if (n->block != 0 || n->tensor != NULL)
    return "a free piece has a block";
  if (!pool->segmented
      && (n->area != area_at (pool, n->addr) || area_at (pool, n->addr + n->bytes - 1) != n->area))
    return "a free piece crosses a line";
  if (n->claim != claim_at (pool, n->addr))
    return "a free piece ignores a claim";
  if (in_tree (n) && !coop_bins_has (pool, p))
    return "a free piece is not in its tree";
  if (n->next != 0 && may_merge (n, &pool->node[n->next]))
    return "free neighbours are not merged";
  return NULL;
}

const char *
coop_pool_check (const CoopPool *pool)
{
  uint64_t at = 0, live = 0, free_bytes = 0;
  uint32_t n = 0, used = 0, last = 0;
  for (uint32_t p = pool->node[0].next; p != 0; p = pool->node[p].next)
    {
      const char *fault = check_node (pool, p, at);
      if (fault != NULL)
        return fault;
      if (pool->node[p].prev != last)
        return "the list of pieces is broken";
      at += pool->node[p].bytes;
      last = p;
      n++;
      used += pool->node[p].used == PIECE_USED;
      live += pool->node[p].used == PIECE_USED ? pool->node[p].bytes : 0;
      if (pool->node[p].used == PIECE_FREE && pool->node[p].area < AREA_VOID)
        free_bytes += pool->node[p].bytes;
    }
  if (at != pool->capacity || pool->node[0].prev != last)
    return "pieces do not fill the pool";
  if (n != pool->n_pieces || used != pool->n_used)
    return "the count of pieces is wrong";
  if (live != pool->live || free_bytes != pool->free)
    return "the sum of live or free bytes is wrong";
  return pool->segmented ? coop_segment_check (pool) : NULL;
}
