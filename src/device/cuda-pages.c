/* SPDX-License-Identifier: Apache-2.0 */
/* Pages on a device: one handle a page, any free pages make any block.
 *
 * A block has addresses of its own (they are plentiful) under which its pages are mapped one by one;
 * access is allowed once for the whole of it. Nothing is unmapped before the work that may touch it is
 * done: a released block leaves with a fence. What the driver refuses to undo stays in the list of
 * those that leave, page by page as far as it came, and is tried again at each collection. */
#include "device/cuda-private.h"

#include <stdlib.h>

typedef struct Block {
  struct Block *next;      /* of those that leave */
  CoopCuPtr at;            /* 0: no addresses */
  uint64_t asked;
  unsigned n_pages, n_mapped, n_held; /* the first n_mapped are mapped, the first n_held have handles */
  bool unfenced;           /* no fence could be recorded: wait for the device */
  bool stuck;
  CoopCudaFence fence;
  CoopCuHandle handle[];
} Block;

struct CoopCudaPages {
  CoopCudaDevice *d;
  uint64_t page;
  unsigned budget;         /* in pages, as all counts here */
  unsigned used, leaving, stuck;
  uint64_t asked;
  CoopCuHandle *spare;     /* created, not mapped; room for the whole budget */
  unsigned n_spare;
  CoopCudaIndex blocks;
  Block *gone;
  uint64_t maps, unmaps, accesses, reserves;
};

CoopCuResult
coop_cuda_pages_new (CoopCudaDevice *d, uint64_t budget, uint64_t page, CoopCudaPages **out)
{
  *out = NULL;
  if (!d->has_pages)
    return COOP_CU_NOT_SUPPORTED;
  page = page ? page : d->granule;
  if (page % d->granule != 0 || budget < page || budget / page > UINT32_MAX / 2)
    return COOP_CU_INVALID_VALUE;
  CoopCudaPages *p = calloc (1, sizeof *p);
  if (p != NULL)
    {
      p->d = d;
      p->page = page;
      p->budget = (unsigned) (budget / page);
      p->spare = malloc (p->budget * sizeof *p->spare);
    }
  if (p == NULL || p->spare == NULL)
    {
      free (p);
      return COOP_CU_OUT_OF_MEMORY;
    }
  *out = p;
  return 0;
}

/* ---- giving back ------------------------------------------------------------------------------ */

/* Undoes a block page by page, from its end. It is gone if this succeeds. */
static CoopCuResult
unwind (CoopCudaPages *p, Block *b)
{
  CoopCuResult rc;

  while (b->n_held > b->n_mapped)
    p->spare[p->n_spare++] = b->handle[--b->n_held];
  while (b->n_mapped > 0)
    {
      rc = FN (p->d)->mem_unmap (b->at + (b->n_mapped - 1) * p->page, p->page);
      if (rc != 0)
        return rc;
      b->n_mapped--;
      p->spare[p->n_spare++] = b->handle[--b->n_held];
      p->unmaps++;
    }
  if (b->at != 0)
    {
      if ((rc = FN (p->d)->address_free (b->at, b->n_pages * p->page)) != 0)
        return rc;
      b->at = 0;
    }
  free (b);
  return 0;
}

static void
leave (CoopCudaPages *p, Block *b)
{
  p->leaving += b->n_held;
  b->next = p->gone;
  p->gone = b;
}

/* Is the work that may touch it done? */
static CoopCuResult
settle (CoopCudaPages *p, Block *b, bool wait)
{
  CoopCuResult rc;

  if (b->unfenced)
    {
      if ((rc = FN (p->d)->ctx_synchronize ()) != 0)
        return rc;
      b->unfenced = false;
    }
  return wait ? coop_cuda_fence_wait (p->d, &b->fence) : coop_cuda_fence_query (p->d, &b->fence);
}

CoopCuResult
coop_cuda_pages_collect (CoopCudaPages *p, bool wait)
{
  CoopCuResult first = 0, rc = coop_cuda_device_enter (p->d);

  if (rc != 0)
    return rc;
  for (Block **link = &p->gone; *link != NULL;)
    {
      Block *b = *link, *next = b->next;
      unsigned held = b->n_held;
      if ((rc = settle (p, b, wait)) == COOP_CU_NOT_READY)
        {
          link = &b->next;
          continue;
        }
      p->stuck -= b->stuck ? held : 0;
      if (rc == 0 && (rc = unwind (p, b)) == 0)
        {
          p->leaving -= held;
          *link = next;
          continue;
        }
      p->leaving -= held - b->n_held; /* the handles may be back although its addresses are not */
      p->stuck += b->n_held;
      b->stuck = true;
      first = first ? first : rc;
      link = &b->next;
    }
  return first;
}

bool
coop_cuda_pages_release (CoopCudaPages *p, CoopCuPtr at, const CoopCuStream *streams, unsigned n)
{
  Block *b = coop_cuda_index_get (&p->blocks, at, true);

  if (b == NULL)
    return false;
  p->used -= b->n_pages;
  p->asked -= b->asked;
  b->unfenced = coop_cuda_fence_record (p->d, &b->fence, streams, n) != 0;
  leave (p, b);
  coop_cuda_pages_collect (p, false);
  return true;
}

/* ---- taking ----------------------------------------------------------------------------------- */

static CoopCuResult
fill (CoopCudaPages *p, Block *b)
{
  CoopCuMemProp prop = coop_cuda_prop (p->d);
  CoopCuResult rc = 0;

  for (; b->n_held < b->n_pages; b->n_held++)
    if (p->n_spare > 0)
      b->handle[b->n_held] = p->spare[--p->n_spare];
    else if ((rc = FN (p->d)->mem_create (&b->handle[b->n_held], p->page, &prop, 0)) != 0)
      return rc;
  return rc;
}

static CoopCuResult
map (CoopCudaPages *p, Block *b)
{
  uint64_t bytes = b->n_pages * p->page;
  CoopCuResult rc = FN (p->d)->address_reserve (&b->at, bytes, p->page, 0, 0);

  if (rc != 0)
    {
      b->at = 0;
      return rc;
    }
  p->reserves++;
  for (; b->n_mapped < b->n_pages; b->n_mapped++, p->maps++)
    if ((rc = FN (p->d)->mem_map (b->at + b->n_mapped * p->page, p->page, 0, b->handle[b->n_mapped],
                                  0)) != 0)
      return rc;
  p->accesses++;
  return coop_cuda_allow (p->d, b->at, bytes);
}

/* Makes the budget hold for n more pages. */
static CoopCuResult
make_room (CoopCudaPages *p, uint64_t n)
{
  CoopCuResult rc = coop_cuda_device_enter (p->d);

  if (rc == 0 && p->used + p->leaving + n > p->budget)
    coop_cuda_pages_collect (p, false);
  if (rc == 0 && p->used + p->leaving + n > p->budget && p->used + p->stuck + n <= p->budget)
    rc = coop_cuda_pages_collect (p, true);
  if (rc == 0 && p->used + p->leaving + n > p->budget)
    rc = COOP_CU_OUT_OF_MEMORY;
  return rc;
}

CoopCuResult
coop_cuda_pages_alloc (CoopCudaPages *p, uint64_t bytes, CoopCuPtr *out)
{
  if (bytes == 0 || bytes > p->budget * p->page)
    return bytes == 0 ? COOP_CU_INVALID_VALUE : COOP_CU_OUT_OF_MEMORY;
  uint64_t n = (bytes + p->page - 1) / p->page;
  CoopCuResult rc = make_room (p, n);
  if (rc != 0)
    return rc;
  Block *b = calloc (1, sizeof *b + n * sizeof *b->handle);
  if (b == NULL || !coop_cuda_index_room (&p->blocks))
    {
      free (b);
      return COOP_CU_OUT_OF_MEMORY;
    }
  b->n_pages = (unsigned) n;
  b->asked = bytes;
  if ((rc = fill (p, b)) != 0 || (rc = map (p, b)) != 0)
    {
      if (unwind (p, b) != 0)
        leave (p, b);
      return rc;
    }
  p->used += b->n_pages;
  p->asked += bytes;
  coop_cuda_index_add (&p->blocks, b->at, b);
  *out = b->at;
  return 0;
}

/* ---- the end, and figures --------------------------------------------------------------------- */

bool
coop_cuda_pages_free (CoopCudaPages *p)
{
  while (p->blocks.n > 0)
    coop_cuda_pages_release (p, p->blocks.entry[p->blocks.n - 1].at, NULL, 0);
  if (coop_cuda_pages_collect (p, true) != 0)
    return false;
  for (; p->n_spare > 0; p->n_spare--)
    if (FN (p->d)->mem_release (p->spare[p->n_spare - 1]) != 0)
      return false;
  free (p->blocks.entry);
  free (p->spare);
  free (p);
  return true;
}

void
coop_cuda_pages_figures (const CoopCudaPages *p, CoopCudaPagesFigures *out)
{
  *out = (CoopCudaPagesFigures){
    .page = p->page, .budget = p->budget * p->page,
    .created = ((uint64_t) p->n_spare + p->used + p->leaving) * p->page,
    .used = p->used * p->page, .asked = p->asked, .leaving = p->leaving * p->page,
    .stuck = p->stuck * p->page, .blocks = p->blocks.n, .maps = p->maps, .unmaps = p->unmaps,
    .accesses = p->accesses, .reserves = p->reserves };
}
