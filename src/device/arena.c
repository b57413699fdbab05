/* SPDX-License-Identifier: Apache-2.0 */
/* The host arena: one private anonymous mapping without a reservation of swap.
 *
 * Private, so that fork keeps its meaning: a child's write never reaches the parent's tensors. Never
 * unmapped, because a tensor may outlive everybody who could know: there is no coop_arena_free. */
#include "device.h"

#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#define MINCORE_PAGES ((size_t) 1 << 16)

struct CoopArena {
  uint8_t *base;
  uint64_t capacity;
  uint64_t page;
};

static uint64_t
round_up (uint64_t n, uint64_t to)
{
  return (n + to - 1) & ~(to - 1);
}

CoopArena *
coop_arena_new (uint64_t capacity)
{
  CoopArena *arena = calloc (1, sizeof *arena);
  if (arena == NULL)
    return NULL;
  arena->page = (uint64_t) sysconf (_SC_PAGESIZE);
  arena->capacity = round_up (capacity, arena->page);
  void *base = mmap (NULL, arena->capacity, PROT_READ | PROT_WRITE,
                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (base == MAP_FAILED)
    {
      free (arena);   /* keeps errno */
      return NULL;
    }
  arena->base = base;
  return arena;
}

CoopArena *
coop_arena_over (void *base, uint64_t capacity)
{
  CoopArena *arena = calloc (1, sizeof *arena);

  if (arena != NULL)
    {
      arena->base = base;
      arena->capacity = capacity;
    }
  return arena;
}

void *
coop_arena_addr (const CoopArena *arena, uint64_t offset)
{
  return arena->base + offset;
}

uint64_t
coop_arena_offset (const CoopArena *arena, const void *pointer)
{
  uintptr_t at = (uintptr_t) pointer, base = (uintptr_t) arena->base;
  return at >= base && at - base < arena->capacity ? at - base : UINT64_MAX;
}

void
coop_arena_trim (CoopArena *arena, uint64_t offset, uint64_t bytes)
{
  if (offset >= arena->capacity || bytes == 0)
    return;
  if (bytes > arena->capacity - offset)
    bytes = arena->capacity - offset;
  uint64_t begin = round_up (offset, arena->page);
  uint64_t end = (offset + bytes) & ~(arena->page - 1);
  if (begin < end)
    madvise (arena->base + begin, end - begin, MADV_DONTNEED);
}

uint64_t
coop_arena_resident (const CoopArena *arena)
{
  unsigned char *seen = malloc (MINCORE_PAGES);
  if (seen == NULL)
    return 0;
  uint64_t pages = arena->capacity / arena->page, resident = 0;
  for (uint64_t first = 0; first < pages; first += MINCORE_PAGES)
    {
      uint64_t n = pages - first < MINCORE_PAGES ? pages - first : MINCORE_PAGES;
      if (mincore (arena->base + first * arena->page, n * arena->page, seen) != 0)
        break;
      for (uint64_t i = 0; i < n; i++)
        resident += seen[i] & 1;
    }
  free (seen);
  return resident * arena->page;
}
