/* SPDX-License-Identifier: Apache-2.0 */
/* The fake driver: pools. Chunks are reused whole, never remapped: a caller must not rely on more. */
#include "fake-cuda-private.h"

#include <stdlib.h>

#define X(member, symbol, arguments) API CoopCuResult symbol arguments;
COOP_CUDA_FUNCTIONS (X)
#undef X

static bool
known (const Pool *pool)
{
  for (const Pool *p = fake.pools; p != NULL; p = p->next)
    if (p == pool)
      return true;
  return false;
}

/* Gives unused chunks back to the device until at most `keep` bytes are reserved. */
static void
shrink (Pool *pool, uint64_t keep)
{
  for (Chunk **link = &pool->chunks; *link != NULL && pool->reserved > keep;)
    {
      Chunk *c = *link;
      if (c->bytes > 0 || c->freeing > 0)
        {
          link = &c->next;
          continue;
        }
      *link = c->next;
      pool->reserved -= c->range->bytes;
      fake_range_free (c->range);
      free (c);
    }
}

void
fake_pools_synchronized (void)
{
  for (Pool *p = fake.pools; p != NULL; p = p->next)
    shrink (p, p->threshold);
}

void
fake_pools_reset (void)
{
  while (fake.pools != NULL)
    {
      Pool *p = fake.pools;
      fake.pools = p->next;
      while (p->chunks != NULL)
        {
          Chunk *c = p->chunks;
          p->chunks = c->next;
          free (c);
        }
      free (p);
    }
}

void
fake_chunk_freed (Chunk *chunk)
{
  chunk->freeing--;
}

CoopCuResult
cuMemPoolCreate (CoopCuMemPool *out, const CoopCuPoolProps *props)
{
  ENTER (false);
  if (props == NULL || props->type != COOP_CU_ALLOCATION_PINNED
      || props->location.type != COOP_CU_LOCATION_DEVICE || props->location.id >= fake.n_devices)
    LEAVE (COOP_CU_INVALID_VALUE);
  Pool *p = calloc (1, sizeof *p);
  p->reuse[0] = p->reuse[1] = p->reuse[2] = 1;
  p->next = fake.pools;
  fake.pools = p;
  *out = p;
  LEAVE (0);
}

CoopCuResult
cuMemPoolDestroy (CoopCuMemPool pool)
{
  ENTER (false);
  for (Pool **link = &fake.pools; *link != NULL; link = &(*link)->next)
    if (*link == pool)
      {
        fake_run_all ();
        shrink (pool, 0);
        if (pool->chunks != NULL)
          LEAVE (COOP_CU_INVALID_VALUE); /* the real one waits for the last free; here it is a leak */
        *link = pool->next;
        free (pool);
        LEAVE (0);
      }
  LEAVE (COOP_CU_INVALID_VALUE);
}

CoopCuResult
cuMemPoolSetAttribute (CoopCuMemPool pool, int attribute, void *value)
{
  ENTER (false);
  if (!known (pool))
    LEAVE (COOP_CU_INVALID_VALUE);
  switch (attribute)
    {
    case COOP_CU_POOL_REUSE_FOLLOW_EVENT_DEPENDENCIES:
    case COOP_CU_POOL_REUSE_ALLOW_OPPORTUNISTIC:
    case COOP_CU_POOL_REUSE_ALLOW_INTERNAL_DEPENDENCIES:
      pool->reuse[attribute - 1] = *(int *) value;
      LEAVE (0);
    case COOP_CU_POOL_RELEASE_THRESHOLD:
      pool->threshold = *(uint64_t *) value;
      LEAVE (0);
    case COOP_CU_POOL_RESERVED_HIGH:
    case COOP_CU_POOL_USED_HIGH:
      if (*(uint64_t *) value != 0)
        LEAVE (COOP_CU_INVALID_VALUE);
      *(attribute == COOP_CU_POOL_RESERVED_HIGH ? &pool->reserved_high : &pool->used_high) = 0;
      LEAVE (0);
    default:
      LEAVE (COOP_CU_INVALID_VALUE);
    }
}

CoopCuResult
cuMemPoolGetAttribute (CoopCuMemPool pool, int attribute, void *value)
{
  ENTER (false);
  if (!known (pool))
    LEAVE (COOP_CU_INVALID_VALUE);
  switch (attribute)
    {
    case COOP_CU_POOL_REUSE_FOLLOW_EVENT_DEPENDENCIES:
    case COOP_CU_POOL_REUSE_ALLOW_OPPORTUNISTIC:
    case COOP_CU_POOL_REUSE_ALLOW_INTERNAL_DEPENDENCIES:
      *(int *) value = pool->reuse[attribute - 1];
      LEAVE (0);
    case COOP_CU_POOL_RELEASE_THRESHOLD: *(uint64_t *) value = pool->threshold; LEAVE (0);
    case COOP_CU_POOL_RESERVED_CURRENT: *(uint64_t *) value = pool->reserved; LEAVE (0);
    case COOP_CU_POOL_RESERVED_HIGH: *(uint64_t *) value = pool->reserved_high; LEAVE (0);
    case COOP_CU_POOL_USED_CURRENT: *(uint64_t *) value = pool->used; LEAVE (0);
    case COOP_CU_POOL_USED_HIGH: *(uint64_t *) value = pool->used_high; LEAVE (0);
    default: LEAVE (COOP_CU_INVALID_VALUE);
    }
}

CoopCuResult
cuMemPoolTrimTo (CoopCuMemPool pool, size_t keep)
{
  ENTER (false);
  if (!known (pool))
    LEAVE (COOP_CU_INVALID_VALUE);
  shrink (pool, keep);
  LEAVE (0);
}

/* A free chunk that holds `bytes`: freed on this stream, or done. */
static Chunk *
reusable (Pool *pool, uint64_t bytes, const Stream *stream)
{
  Chunk *best = NULL;

  for (Chunk *c = pool->chunks; c != NULL; c = c->next)
    if (c->bytes == 0 && c->range->bytes >= bytes && (c->freeing == 0 || c->stream == stream)
        && (best == NULL || c->range->bytes < best->range->bytes))
      best = c;
  return best;
}

static Chunk *
fresh_chunk (Pool *pool, uint64_t bytes)
{
  uint64_t whole = (bytes + fake.granule - 1) / fake.granule * fake.granule;
  Range *r = fake_range_new (whole, false);

  if (r == NULL)
    {
      shrink (pool, 0);
      r = fake_range_new (whole, false);
    }
  if (r == NULL)
    return NULL;
  Chunk *c = calloc (1, sizeof *c);
  c->range = r;
  c->next = pool->chunks;
  pool->chunks = c;
  pool->reserved += whole;
  if (pool->reserved > pool->reserved_high)
    pool->reserved_high = pool->reserved;
  return c;
}

CoopCuResult
cuMemAllocFromPoolAsync (CoopCuPtr *out, size_t bytes, CoopCuMemPool pool, CoopCuStream stream)
{
  ENTER (true);
  if (bytes == 0 || !known (pool) || fake_stream (stream) == NULL)
    LEAVE (COOP_CU_INVALID_VALUE);
  Chunk *c = reusable (pool, bytes, fake_stream (stream));
  if (c == NULL)
    c = fresh_chunk (pool, bytes);
  if (c == NULL)
    LEAVE (COOP_CU_OUT_OF_MEMORY);
  c->bytes = bytes;
  pool->used += bytes;
  if (pool->used > pool->used_high)
    pool->used_high = pool->used;
  *out = c->range->at;
  LEAVE (0);
}

CoopCuResult
cuMemFreeAsync (CoopCuPtr at, CoopCuStream stream)
{
  ENTER (true);
  for (Pool *p = fake.pools; p != NULL; p = p->next)
    for (Chunk *c = p->chunks; c != NULL; c = c->next)
      if (c->range->at == at && c->bytes > 0)
        {
          p->used -= c->bytes;
          c->bytes = 0;
          c->freeing++;
          c->stream = fake_stream (stream);
          LEAVE (fake_queue (c->stream, &(Work){ .kind = WORK_FREE, .chunk = c }));
        }
  LEAVE (COOP_CU_INVALID_VALUE);
}
