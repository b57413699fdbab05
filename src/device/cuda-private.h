/* SPDX-License-Identifier: Apache-2.0 */
/* What the CUDA files share. */
#ifndef COOP_CUDA_PRIVATE_H
#define COOP_CUDA_PRIVATE_H

#include "device/cuda.h"

#define FN(d) (&(d)->cuda->fn)

CoopCuMemProp coop_cuda_prop (const CoopCudaDevice *d);

/* n rounded up to a multiple of `to`, which need not be a power of two. */
static inline uint64_t
coop_round_up (uint64_t n, uint64_t to)
{
  return (n + to - 1) / to * to;
}

/* Gives a range that only we use access to its device: once a range, not once a page. */
static inline CoopCuResult
coop_cuda_allow (const CoopCudaDevice *d, CoopCuPtr at, uint64_t bytes)
{
  CoopCuAccess access = { { COOP_CU_LOCATION_DEVICE, d->device }, COOP_CU_ACCESS_READWRITE };
  return FN (d)->mem_access (at, bytes, &access, 1);
}

/* Blocks by their address: sorted, so that a block is found by where it begins. */
typedef struct {
  CoopCuPtr at;
  void *value;
} CoopCudaEntry;
typedef struct {
  CoopCudaEntry *entry;
  size_t n, room;
} CoopCudaIndex;

/* Room for one more, so that the insertion after it cannot fail. */
bool coop_cuda_index_room (CoopCudaIndex *index);
void coop_cuda_index_add (CoopCudaIndex *index, CoopCuPtr at, void *value);
/* The value at `at`, which leaves the index if `take`; NULL if there is none. */
void *coop_cuda_index_get (CoopCudaIndex *index, CoopCuPtr at, bool take);

#endif
