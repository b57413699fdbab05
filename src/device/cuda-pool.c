/* SPDX-License-Identifier: Apache-2.0 */
/* The driver's own pool, with its attributes as parameters. What it does inside, whether it remaps,
 * is its business; the budget is kept by counting what was asked for, and its figures stand beside. */
#include "device/cuda-private.h"

#include <stdlib.h>

struct CoopCudaPool {
  CoopCudaDevice *d;
  CoopCuMemPool pool;
  uint64_t budget, asked;
  CoopCudaIndex blocks;     /* value: bytes */
};

static CoopCuResult
set_options (CoopCudaPool *p, const CoopCudaPoolOptions *o)
{
  const struct { int attribute; bool on; } switches[] = {
    { COOP_CU_POOL_REUSE_FOLLOW_EVENT_DEPENDENCIES, o->follow_events },
    { COOP_CU_POOL_REUSE_ALLOW_OPPORTUNISTIC, o->opportunistic },
    { COOP_CU_POOL_REUSE_ALLOW_INTERNAL_DEPENDENCIES, o->internal_dependencies },
  };
  uint64_t threshold = o->release_threshold;
  CoopCuResult rc = 0;

  for (unsigned i = 0; rc == 0 && i < sizeof switches / sizeof *switches; i++)
    {
      int value = switches[i].on;
      rc = FN (p->d)->pool_set (p->pool, switches[i].attribute, &value);
    }
  return rc ? rc : FN (p->d)->pool_set (p->pool, COOP_CU_POOL_RELEASE_THRESHOLD, &threshold);
}

CoopCuResult
coop_cuda_pool_new (CoopCudaDevice *d, uint64_t budget, const CoopCudaPoolOptions *options,
                    CoopCudaPool **out)
{
  CoopCuPoolProps props = { .type = COOP_CU_ALLOCATION_PINNED,
                            .location = { COOP_CU_LOCATION_DEVICE, d->device } };
  CoopCuResult rc = d->has_pools ? coop_cuda_device_enter (d) : COOP_CU_NOT_SUPPORTED;

  *out = NULL;
  if (rc != 0)
    return rc;
  CoopCudaPool *p = calloc (1, sizeof *p);
  if (p == NULL)
    return COOP_CU_OUT_OF_MEMORY;
  p->d = d;
  p->budget = budget;
  rc = FN (d)->pool_create (&p->pool, &props);
  if (rc == 0 && options != NULL)
    rc = set_options (p, options);
  if (rc == 0 || !coop_cuda_pool_free (p))
    *out = p;
  return rc;
}

bool
coop_cuda_pool_free (CoopCudaPool *p)
{
  CoopCuResult rc = coop_cuda_device_enter (p->d);

  if (rc == 0 && p->blocks.n > 0)
    rc = FN (p->d)->ctx_synchronize ();
  while (rc == 0 && p->blocks.n > 0)
    rc = coop_cuda_pool_release (p, p->blocks.entry[p->blocks.n - 1].at, NULL);
  if (rc == 0 && p->pool != NULL && (rc = FN (p->d)->pool_destroy (p->pool)) == 0)
    p->pool = NULL;
  if (rc != 0)
    return false;
  free (p->blocks.entry);
  free (p);
  return true;
}

CoopCuResult
coop_cuda_pool_alloc (CoopCudaPool *p, uint64_t bytes, CoopCuStream stream, CoopCuPtr *out)
{
  if (bytes == 0 || bytes > p->budget)
    return bytes == 0 ? COOP_CU_INVALID_VALUE : COOP_CU_OUT_OF_MEMORY;
  uint64_t rounded = coop_round_up (bytes, 512);
  if (rounded > p->budget - p->asked || !coop_cuda_index_room (&p->blocks))
    return COOP_CU_OUT_OF_MEMORY;
  CoopCuResult rc = coop_cuda_device_enter (p->d);
  if (rc == 0 && (rc = FN (p->d)->pool_alloc (out, bytes, p->pool, stream)) == 0)
    {
      p->asked += rounded;
      coop_cuda_index_add (&p->blocks, *out, (void *) (uintptr_t) rounded);
    }
  return rc;
}

CoopCuResult
coop_cuda_pool_release (CoopCudaPool *p, CoopCuPtr at, CoopCuStream stream)
{
  uintptr_t bytes = (uintptr_t) coop_cuda_index_get (&p->blocks, at, false);
  CoopCuResult rc = bytes ? coop_cuda_device_enter (p->d) : COOP_CU_INVALID_VALUE;

  if (rc == 0 && (rc = FN (p->d)->pool_free (at, stream)) == 0)
    {
      coop_cuda_index_get (&p->blocks, at, true);
      p->asked -= bytes;
    }
  return rc;
}

CoopCuResult
coop_cuda_pool_trim (CoopCudaPool *p, uint64_t keep)
{
  CoopCuResult rc = coop_cuda_device_enter (p->d);
  return rc ? rc : FN (p->d)->pool_trim (p->pool, keep);
}

CoopCuResult
coop_cuda_pool_figures (const CoopCudaPool *p, CoopCudaPoolFigures *out)
{
  CoopCudaPoolFigures f = { .budget = p->budget, .asked = p->asked, .blocks = p->blocks.n };
  const struct { int attribute; uint64_t *value; } of[] = {
    { COOP_CU_POOL_RESERVED_CURRENT, &f.reserved }, { COOP_CU_POOL_RESERVED_HIGH, &f.reserved_high },
    { COOP_CU_POOL_USED_CURRENT, &f.used }, { COOP_CU_POOL_USED_HIGH, &f.used_high },
  };
  CoopCuResult rc = coop_cuda_device_enter (p->d);

  for (unsigned i = 0; rc == 0 && i < sizeof of / sizeof *of; i++)
    rc = FN (p->d)->pool_get (p->pool, of[i].attribute, of[i].value);
  if (rc == 0)
    *out = f;
  return rc;
}
