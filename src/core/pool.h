/* SPDX-License-Identifier: Apache-2.0 */
/* Pool: the address space [0, capacity), tiled by pieces, free or used.
 *
 * Load: some 10^2 to 10^5 pieces, an allocation or free every few microseconds, and scans in address
 * order. So pieces are an array of nodes linked by index in address order; free ones hang in small
 * search trees by (size, address), one a size class, with a bitmap over the classes; used ones are
 * found by their first address in a hash table. Free neighbours merge at once.
 *
 * Two lines cut the space: [0, small_end) is the area of small blocks, [small_end, limit) the general
 * one, and above the limit nothing is handed out. A free piece never crosses a line. A *claim* keeps
 * what gets free in a range for one request: such pieces are in no tree.
 */
#ifndef COOP_POOL_H
#define COOP_POOL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define COOP_GRAIN 512u
#define COOP_SIZE_CLASSES 448u

struct CoopVersion;

typedef enum { AREA_SMALL, AREA_GENERAL, AREA_BEYOND, N_AREAS } CoopArea;

typedef struct {
  uint64_t addr, bytes;
  uint64_t block;        /* number of the block's life; 0: free */
  struct CoopVersion *tensor; /* used: newest version here; NULL: unclaimed */
  uint64_t requested, op;
  uint32_t prev, next;   /* address order; 0: none */
  uint32_t left, right;  /* tree of free pieces */
  uint32_t refs;         /* owners of a used piece */
  uint32_t claim;        /* free: kept for this claim */
  uint8_t used;          /* Use of the piece */
  uint8_t area;          /* free: CoopArea */
} CoopNode;

enum { PIECE_FREE, PIECE_USED, PIECE_ARRIVAL /* destination of a move under way: neither */ };

typedef struct {
  uint64_t lo, hi;
  uint32_t id;
} CoopClaim;

typedef struct {
  uint32_t root[COOP_SIZE_CLASSES];
  uint64_t bits[COOP_SIZE_CLASSES / 64];
} CoopBins;

typedef struct {
  uint64_t capacity, small_end, limit;
  CoopNode *node;        /* [0] is a sentinel: prev = last, next = first */
  uint32_t n_nodes, room, spare; /* spare: list of unused nodes, through next */
  uint32_t n_pieces;
  CoopBins bins[2];      /* AREA_SMALL, AREA_GENERAL */
  uint64_t free;         /* bytes of free pieces below the limit */
  uint64_t live;         /* bytes of used pieces */
  uint32_t *slot;        /* hash of used pieces by address */
  uint32_t n_slots, n_used;
  CoopClaim *claim;
  uint32_t n_claims, claim_room;
} CoopPool;

void coop_pool_init (CoopPool *pool, uint64_t capacity);
void coop_pool_clear (CoopPool *pool);

/* Moves the lines. small_end <= limit <= capacity, multiples of the grain. */
void coop_pool_set_lines (CoopPool *pool, uint64_t small_end, uint64_t limit);

/* Best fit: the smallest free piece of the area that holds `bytes`; among equals the lowest address,
 * or the highest with `high`. 0: none. */
uint32_t coop_pool_fit (const CoopPool *pool, CoopArea area, uint64_t bytes, bool high);
/* The lowest free piece of the general area that holds `bytes` and begins below `below`. 0: none. */
uint32_t coop_pool_lowest (const CoopPool *pool, uint64_t bytes, uint64_t below);
/* Takes `bytes` out of free piece p, at its low or high edge. The node of the used piece, whose
 * block, tensor, requested, op are the caller's to set. */
uint32_t coop_pool_take (CoopPool *pool, uint32_t p, uint64_t bytes, bool high, uint8_t use);
/* Arrival p and the used piece right behind it change places: p takes the size of what moves, the
 * piece behind it the rest, which coop_pool_give then frees. */
void coop_pool_slide (CoopPool *pool, uint32_t p);
/* Used piece or arrival p is free again. */
void coop_pool_give (CoopPool *pool, uint32_t p);
/* An arrival becomes a used piece. */
void coop_pool_arrive (CoopPool *pool, uint32_t p);
/* Used piece that begins at addr; 0: none. */
uint32_t coop_pool_at (const CoopPool *pool, uint64_t addr);

/* Claims [lo, hi), which begins and ends with a piece, under a number not in use. */
void coop_pool_claim (CoopPool *pool, uint64_t lo, uint64_t hi, uint32_t id);
void coop_pool_unclaim (CoopPool *pool, uint32_t claim);

uint64_t coop_pool_largest (const CoopPool *pool);
const char *coop_pool_check (const CoopPool *pool);

/* free-tree.c */
void coop_bins_insert (CoopPool *pool, uint32_t p);
void coop_bins_remove (CoopPool *pool, uint32_t p);
uint32_t coop_bins_fit (const CoopPool *pool, CoopArea area, uint64_t bytes, bool high);
uint32_t coop_bins_last (const CoopPool *pool, CoopArea area);
bool coop_bins_has (const CoopPool *pool, uint32_t p);

/* Growing arrays; memory for the engine itself that is not there ends the process, as in GLib. */
void *coop_grow (void *array, uint32_t *room, uint32_t need, size_t item);
void *coop_make (size_t bytes);

static inline uint64_t
coop_round (uint64_t bytes)
{
  return (bytes + COOP_GRAIN - 1) / COOP_GRAIN * COOP_GRAIN;
}

#endif
