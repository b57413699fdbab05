/* SPDX-License-Identifier: Apache-2.0 */
/* Pages of the host: memory that changes its address.
 *
 * mremap moves private anonymous pages without a copy, about 10 us a piece whatever its size, and the
 * old range stays mapped and empty (MREMAP_DONTUNMAP), so nobody else can get it. Private, so that fork
 * keeps its meaning; a memfd that two ranges show would be shared with the child.
 *
 * Each move may cut a mapping in two, and a process may have 65,530 of them by default, all libraries
 * included. Where moves have used up half of that, pages are given back instead of moved, and the other
 * range gets fresh ones when it is touched: slower, and right, since nobody reads what was in them. */
#include "device.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>

#ifndef MREMAP_DONTUNMAP
#define MREMAP_DONTUNMAP 4
#endif

#define USUAL_LIMIT 65530
#define CUTS 4           /* mappings that one move may add */
#define WAIT 1024        /* moves between two counts */

struct CoopPages {
  CoopArena *arena;
  uint64_t page;
  uint64_t most;         /* mappings of the process that moves may lead to */
  uint64_t at_most;      /* how many there are at most now */
  uint64_t wait;
  CoopPagesCount count;
};

static uint64_t
now (void)
{
  struct timespec t;
  clock_gettime (CLOCK_MONOTONIC, &t);
  return (uint64_t) t.tv_sec * 1000000000u + (uint64_t) t.tv_nsec;
}

static uint64_t
limit_of_mappings (void)
{
  unsigned long long n = USUAL_LIMIT;
  FILE *file = fopen ("/proc/sys/vm/max_map_count", "re");
  if (file == NULL)
    return n;
  if (fscanf (file, "%llu", &n) != 1)
    n = USUAL_LIMIT;
  fclose (file);
  return n;
}

/* UINT64_MAX if nobody tells. */
static uint64_t
count_mappings (void)
{
  uint64_t n = 0;
  int c;
  FILE *file = fopen ("/proc/self/maps", "re");
  if (file == NULL)
    return UINT64_MAX;
  while ((c = getc (file)) != EOF)
    n += c == '\n';
  fclose (file);
  return n;
}

CoopPages *
coop_pages_new (CoopArena *arena, uint64_t page)
{
  CoopPages *pages = calloc (1, sizeof *pages);
  if (pages == NULL)
    return NULL;
  pages->arena = arena;
  pages->page = page;
  pages->most = limit_of_mappings () / 2;
  pages->at_most = count_mappings ();
  return pages;
}

void
coop_pages_free (CoopPages *pages)
{
  free (pages);
}

void
coop_pages_limit (CoopPages *pages, uint64_t mappings)
{
  pages->most = mappings;
}

/* Counting reads a long file: only when what is known for sure has run out, and after a count that was
 * in vain not before many more moves were asked for. */
static bool
may_cut (CoopPages *pages)
{
  if (pages->at_most + CUTS <= pages->most)
    return true;
  if (pages->wait > 0)
    {
      pages->wait--;
      return false;
    }
  pages->at_most = count_mappings ();
  bool may = pages->at_most + CUTS <= pages->most / 8 * 7;
  pages->wait = may ? 0 : WAIT;
  return may;
}

static bool
move (CoopPages *pages, uint64_t from, uint64_t to, uint64_t bytes)
{
  void *old = coop_arena_addr (pages->arena, from), *new = coop_arena_addr (pages->arena, to);
  if (!may_cut (pages)
      || mremap (old, bytes, bytes, MREMAP_MAYMOVE | MREMAP_FIXED | MREMAP_DONTUNMAP, new) != new)
    return false;
  pages->at_most += CUTS;
  pages->count.moves++;
  pages->count.bytes += bytes;
  return true;
}

bool
coop_pages_move (CoopPages *pages, uint64_t from, uint64_t to, uint64_t bytes)
{
  uint64_t began = now ();
  bool moved = move (pages, from, to, bytes);
  /* memory that came together from several places is several mappings, each of whole pages */
  if (!moved && bytes > pages->page)
    {
      moved = true;
      for (uint64_t at = 0; at < bytes && moved; at += pages->page)
        moved = move (pages, from + at, to + at, pages->page);
    }
  if (!moved)
    {
      coop_arena_trim (pages->arena, from, bytes);
      pages->count.refused++;
    }
  pages->count.ns += now () - began;
  return moved;
}

void
coop_pages_count (const CoopPages *pages, CoopPagesCount *count)
{
  *count = pages->count;
}
