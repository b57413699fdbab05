/* SPDX-License-Identifier: Apache-2.0 */
/* Device: where bytes come from. For now the host: one arena of private anonymous memory that the
 * pool is laid over, and one reservation whose addresses name evicted storages and cannot be touched.
 *
 * fork keeps its meaning (private mappings), the arena is never unmapped once tensors lived in it.
 * No function here locks; calls on one object are serialised by the caller, except coop_arena_addr,
 * coop_arena_offset and coop_shadow_owner's range check, which are pure.
 */
#ifndef COOP_DEVICE_H
#define COOP_DEVICE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct CoopArena CoopArena;

/* Reserves capacity bytes of address space (no memory is used until it is touched).
 * NULL with errno set if the kernel refuses. */
CoopArena *coop_arena_new (uint64_t capacity);
/* The same arithmetic over addresses that are somebody else's, such as a GPU's: nothing is reserved,
 * and neither trim nor resident may be called. */
CoopArena *coop_arena_over (void *base, uint64_t capacity);
void *coop_arena_addr (const CoopArena *arena, uint64_t offset);
/* Offset of a pointer into the arena, or UINT64_MAX. */
uint64_t coop_arena_offset (const CoopArena *arena, const void *pointer);
/* Gives the whole pages inside [offset, offset + bytes) back to the system; they read as zero
 * afterwards. Pages at the ends that are shared with neighbours stay as they are. */
void coop_arena_trim (CoopArena *arena, uint64_t offset, uint64_t bytes);
/* Memory of an arena that changes its address, for allocator page. */
typedef struct CoopPages CoopPages;
typedef struct {
  uint64_t moves, bytes, ns;   /* done, and the time of them */
  uint64_t refused;            /* not done: the process had too many mappings */
} CoopPagesCount;
/* page: ranges are multiples of it. */
CoopPages *coop_pages_new (CoopArena *arena, uint64_t page);
void coop_pages_free (CoopPages *pages);
/* The memory of [from, from + bytes) goes to [to, to + bytes), which may have none; bytes are kept.
 * False: what had not moved yet was given back, and is empty at both ends. */
bool coop_pages_move (CoopPages *pages, uint64_t from, uint64_t to, uint64_t bytes);
void coop_pages_count (const CoopPages *pages, CoopPagesCount *count);
/* Moves may lead to so many mappings of the process; half the kernel's limit if nothing is said. */
void coop_pages_limit (CoopPages *pages, uint64_t mappings);

/* Resident bytes of the arena (mincore), for tests and reports. */
uint64_t coop_arena_resident (const CoopArena *arena);

/* The shadow: a PROT_NONE reservation out of which each evicted storage gets a range of its own size.
 * One mapping whatever the number of ranges. */
typedef struct CoopShadow CoopShadow;
CoopShadow *coop_shadow_new (void);
/* A range of at least `bytes` bytes that nobody has, for `owner` (not NULL, an even address). Begins
 * at a multiple of 128. NULL if exhausted. */
void *coop_shadow_take (CoopShadow *shadow, uint64_t bytes, void *owner);
/* The range that begins at pointer is given back; returns its owner, NULL if it is not one. */
void *coop_shadow_give (CoopShadow *shadow, void *pointer);
/* Owner of the range that holds pointer, NULL if none. Async-signal-safe: also called by the fault
 * handler. *base gets the begin of the range. */
void *coop_shadow_owner (const CoopShadow *shadow, const void *pointer, void **base);

#endif
