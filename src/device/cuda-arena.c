/* SPDX-License-Identifier: Apache-2.0 */
/* The arena on a device: one range of addresses, with memory under its first bytes.
 *
 * Memory comes in a few large pieces, because the driver's time goes by the number of pieces and not by
 * their bytes. A piece cannot be split: after the budget has shrunk, up to one piece less a page more
 * than the budget stays until it shrinks further. The blocks themselves keep to the budget anyhow. */
#include "device/cuda-private.h"

#include <stdlib.h>

#define PIECE_BYTES ((uint64_t) 64 << 20)

typedef struct {
  CoopCuHandle handle;
  uint64_t bytes;
  bool mapped;
} Piece;

struct CoopCudaArena {
  CoopCudaDevice *d;
  CoopCuPtr base;
  uint64_t capacity;     /* of address space */
  uint64_t committed;    /* readable and writable: the sum of the first pieces */
  Piece *piece;
  unsigned n, room;      /* a last one beyond `committed` is one that could not be given back */
  bool pages, reserved;
};

static uint64_t
mapped_end (const CoopCudaArena *a)
{
  uint64_t end = 0;

  for (unsigned i = 0; i < a->n; i++)
    end += a->piece[i].bytes;
  return end;
}

/* Gives the last piece back. */
static CoopCuResult
drop_last (CoopCudaArena *a)
{
  Piece *p = &a->piece[a->n - 1];
  uint64_t at = mapped_end (a) - p->bytes;
  CoopCuResult rc;

  if (p->mapped)
    {
      if ((rc = FN (a->d)->mem_unmap (a->base + at, p->bytes)) != 0)
        return rc;
      p->mapped = false;
      if (a->committed > at)
        a->committed = at;
    }
  if ((rc = FN (a->d)->mem_release (p->handle)) == 0)
    a->n--;
  return rc;
}

static CoopCuResult
add_piece (CoopCudaArena *a, uint64_t bytes)
{
  CoopCuMemProp prop = coop_cuda_prop (a->d);
  Piece *p = &a->piece[a->n];
  CoopCuResult rc;

  *p = (Piece){ .bytes = bytes };
  if ((rc = FN (a->d)->mem_create (&p->handle, bytes, &prop, 0)) != 0)
    return rc;
  a->n++;
  if ((rc = FN (a->d)->mem_map (a->base + a->committed, bytes, 0, p->handle, 0)) == 0)
    {
      p->mapped = true;
      rc = coop_cuda_allow (a->d, a->base + a->committed, bytes);
    }
  if (rc == 0)
    a->committed += bytes;
  else
    drop_last (a); /* refused: it stays behind `committed`, and is dropped before the next */
  return rc;
}

static bool
room_for_piece (CoopCudaArena *a)
{
  if (a->n < a->room)
    return true;
  unsigned room = a->room ? 2 * a->room : 64;
  Piece *more = realloc (a->piece, room * sizeof *more);
  if (more == NULL)
    return false;
  a->piece = more;
  a->room = room;
  return true;
}

CoopCuResult
coop_cuda_arena_commit (CoopCudaArena *a, uint64_t budget)
{
  CoopCuResult rc = coop_cuda_device_enter (a->d);

  if (budget > a->capacity)
    return COOP_CU_INVALID_VALUE;
  if (!a->pages)
    return rc; /* all of it is there already */
  uint64_t wanted = coop_round_up (budget, a->d->granule);
  while (rc == 0 && a->n > 0 && mapped_end (a) > a->committed)
    rc = drop_last (a);
  while (rc == 0 && a->n > 0 && a->committed - a->piece[a->n - 1].bytes >= wanted)
    rc = drop_last (a);
  while (rc == 0 && a->committed < wanted)
    {
      uint64_t most = coop_round_up (PIECE_BYTES, a->d->granule), left = wanted - a->committed;
      rc = room_for_piece (a) ? add_piece (a, left < most ? left : most) : COOP_CU_OUT_OF_MEMORY;
    }
  return rc;
}

static CoopCuResult
take_range (CoopCudaArena *a, uint64_t budget)
{
  CoopCuResult rc;

  if (!a->pages)
    {
      rc = FN (a->d)->mem_alloc (&a->base, a->capacity);
      a->reserved = rc == 0;
      a->committed = a->reserved ? a->capacity : 0;
      return rc;
    }
  rc = FN (a->d)->address_reserve (&a->base, a->capacity, a->d->granule, 0, 0);
  a->reserved = rc == 0;
  return rc == 0 ? coop_cuda_arena_commit (a, budget) : rc;
}

CoopCuResult
coop_cuda_arena_new (CoopCudaDevice *d, uint64_t capacity, uint64_t budget, CoopCudaArena **out)
{
  CoopCuResult rc = coop_cuda_device_enter (d);

  *out = NULL;
  if (rc != 0)
    return rc;
  if (capacity < budget || budget == 0)
    return COOP_CU_INVALID_VALUE;
  CoopCudaArena *a = calloc (1, sizeof *a);
  if (a == NULL)
    return COOP_CU_OUT_OF_MEMORY;
  a->d = d;
  a->pages = d->has_pages;
  a->capacity = a->pages ? coop_round_up (capacity, d->granule) : budget;
  rc = take_range (a, budget);
  if (rc == 0 || !coop_cuda_arena_free (a))
    *out = a;
  return rc;
}

bool
coop_cuda_arena_free (CoopCudaArena *a)
{
  CoopCuResult rc = coop_cuda_device_enter (a->d);

  while (rc == 0 && a->n > 0)
    rc = drop_last (a);
  if (rc == 0 && a->reserved)
    {
      rc = a->pages ? FN (a->d)->address_free (a->base, a->capacity) : FN (a->d)->mem_free (a->base);
      a->reserved = rc != 0;
    }
  if (rc != 0)
    return false;
  free (a->piece);
  free (a);
  return true;
}

CoopCuPtr
coop_cuda_arena_base (const CoopCudaArena *a)
{
  return a->base;
}

uint64_t
coop_cuda_arena_committed (const CoopCudaArena *a)
{
  return a->committed;
}
