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
 *
 * A segmented pool has no lines. Its address space is void, but for *segments*: ranges that the device
 * backs with memory. Every piece lies in one segment, or is void; free pieces merge inside a segment.
 * The segment says which of the two trees its free pieces hang in; a third holds what is void.
 */
#ifndef COOP_POOL_H
#define COOP_POOL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define COOP_GRAIN 512u
#define COOP_SIZE_CLASSES 448u

struct CoopVersion;

typedef enum { AREA_SMALL, AREA_GENERAL, AREA_VOID, AREA_BEYOND, N_AREAS } CoopArea;

typedef struct {
  uint64_t addr, bytes;
  uint64_t block;        /* number of the block's life; 0: free */
  struct CoopVersion *tensor; /* used: newest version here; NULL: unclaimed */
  uint64_t requested, op;
  uint32_t prev, next;   /* address order; 0: none */
  uint32_t refs;         /* owners of a used piece */
  uint32_t claim;        /* free: kept for this claim */
  uint8_t used;          /* Use of the piece */
  uint8_t area;          /* free: CoopArea */
  uint32_t segment;      /* that it lies in; 0: void, or a pool without segments */
} CoopNode;

/* A range with memory of the device. */
typedef struct {
  uint64_t lo, hi;       /* hi 0: not in use */
  uint64_t id;
  uint64_t used;         /* bytes of pieces that are not free */
  uint32_t first;        /* its first piece */
  uint32_t spare;        /* list of entries not in use */
  uint8_t area;          /* AREA_SMALL or AREA_GENERAL */
} CoopSegment;

enum { PIECE_FREE, PIECE_USED, PIECE_ARRIVAL /* destination of a move under way: neither */ };

/* A free piece in its tree. Apart from the nodes, and with a copy of the key: a way down a tree of ten
 * thousand stays in the cache. */
typedef struct {
  uint64_t bytes, addr;
  uint32_t left, right;
} CoopLeaf;

/* A used piece in the hash: of others in its way the hash alone is read. */
typedef struct {
  uint32_t piece, hash;  /* piece 0: empty */
} CoopSlot;

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
  CoopBins bins[3];      /* AREA_SMALL, AREA_GENERAL, AREA_VOID */
  uint64_t free;         /* bytes of free pieces below the limit, and not void */
  uint64_t live;         /* bytes of used pieces */
  CoopLeaf *leaf;        /* parallel to node */
  uint32_t leaf_room;
  CoopSlot *slot;        /* hash of used pieces by address */
  uint32_t n_slots, n_used;
  CoopClaim *claim;
  uint32_t n_claims, claim_room;
  bool segmented;
  CoopSegment *segment;  /* [0] is none */
  uint32_t n_segments, segment_room, spare_segment;
  uint64_t held;         /* bytes of all segments */
  uint64_t last_segment; /* id */
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
/* The same at `addr`, anywhere in p. */
uint32_t coop_pool_take_at (CoopPool *pool, uint32_t p, uint64_t addr, uint64_t bytes, uint8_t use);
/* Arrival p and the used piece right behind it change places: p takes the size of what moves, the
 * piece behind it the rest, which coop_pool_give then frees. */
void coop_pool_slide (CoopPool *pool, uint32_t p);
/* Used piece or arrival p is free again. */
void coop_pool_give (CoopPool *pool, uint32_t p);
/* An arrival becomes a used piece. */
void coop_pool_arrive (CoopPool *pool, uint32_t p);
/* Used piece that begins at addr; 0: none. */
uint32_t coop_pool_at (const CoopPool *pool, uint64_t addr);

/* Claims [lo, hi), which begins and ends with a piece, under a number. Several ranges may share it. */
void coop_pool_claim (CoopPool *pool, uint64_t lo, uint64_t hi, uint32_t id);
void coop_pool_unclaim (CoopPool *pool, uint32_t claim);

uint64_t coop_pool_largest (const CoopPool *pool);

/* segment.c: for segmented pools. */
void coop_pool_segmented (CoopPool *pool);
/* [addr, addr + bytes) of void piece p becomes a segment: its one free piece. */
uint32_t coop_segment_new (CoopPool *pool, uint32_t p, uint64_t addr, uint64_t bytes, CoopArea area);
/* The free, unclaimed range [lo, hi) of piece p is void again. What is left of its segment, up to two
 * pieces, keeps the entry on the left and gets a new one on the right: `rest`, 0 if there is none. */
void coop_segment_cut (CoopPool *pool, uint32_t p, uint64_t lo, uint64_t hi, uint32_t *rest);
/* The segment right behind s, of the same area, becomes part of it. */
void coop_segment_join (CoopPool *pool, uint32_t s, uint32_t behind);
/* Nothing of it is used or claimed. */
bool coop_segment_idle (const CoopPool *pool, uint32_t s);
const char *coop_segment_check (const CoopPool *pool);
/* pool.c, for segment.c */
uint32_t coop_pool_cut (CoopPool *pool, uint32_t p, uint64_t bytes);
uint32_t coop_pool_settle (CoopPool *pool, uint32_t p);
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
void *coop_make_line (size_t bytes); /* begins with a cache line; free as ever */

static inline uint64_t
coop_round (uint64_t bytes)
{
  return (bytes + COOP_GRAIN - 1) / COOP_GRAIN * COOP_GRAIN;
}

#endif
