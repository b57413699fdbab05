/* SPDX-License-Identifier: Apache-2.0 */
#include "device/cuda-private.h"

#include <stdlib.h>
#include <string.h>

bool
coop_cuda_index_room (CoopCudaIndex *index)
{
  if (index->n < index->room)
    return true;
  size_t room = index->room ? 2 * index->room : 64;
  CoopCudaEntry *more = realloc (index->entry, room * sizeof *more);
  if (more == NULL)
    return false;
  index->entry = more;
  index->room = room;
  return true;
}

/* The first entry that does not lie before `at`. */
static size_t
lower_bound (const CoopCudaIndex *index, CoopCuPtr at)
{
  size_t low = 0, high = index->n;

  while (low < high)
    {
      size_t middle = low + (high - low) / 2;
      if (index->entry[middle].at < at)
        low = middle + 1;
      else
        high = middle;
    }
  return low;
}

void
coop_cuda_index_add (CoopCudaIndex *index, CoopCuPtr at, void *value)
{
  size_t i = lower_bound (index, at);

  memmove (index->entry + i + 1, index->entry + i, (index->n - i) * sizeof *index->entry);
  index->entry[i] = (CoopCudaEntry){ at, value };
  index->n++;
}

void *
coop_cuda_index_get (CoopCudaIndex *index, CoopCuPtr at, bool take)
{
  size_t i = lower_bound (index, at);

  if (i == index->n || index->entry[i].at != at)
    return NULL;
  void *value = index->entry[i].value;
  if (take)
    {
      index->n--;
      memmove (index->entry + i, index->entry + i + 1, (index->n - i) * sizeof *index->entry);
    }
  return value;
}
