/* SPDX-License-Identifier: Apache-2.0 */
/* A device and its primary context, and fences. */
#include "device/cuda-private.h"

#include <string.h>

CoopCuMemProp
coop_cuda_prop (const CoopCudaDevice *d)
{
  return (CoopCuMemProp){ .type = COOP_CU_ALLOCATION_PINNED,
                          .location = { COOP_CU_LOCATION_DEVICE, d->device } };
}

CoopCuResult
coop_cuda_device_enter (const CoopCudaDevice *d)
{
  CoopCuContext now = NULL;
  CoopCuResult rc = FN (d)->ctx_get (&now);

  return rc == 0 && now == d->context ? rc : FN (d)->ctx_set (d->context);
}

static CoopCuResult
attribute (const CoopCudaDevice *d, int which, int *value)
{
  CoopCuResult rc = FN (d)->device_attribute (value, which, d->device);

  if (rc != COOP_CU_INVALID_VALUE)
    return rc;
  *value = 0; /* a driver that has not heard of it */
  return 0;
}

static CoopCuResult
read_attributes (CoopCudaDevice *d)
{
  int pages = 0, pools = 0;
  CoopCuResult rc;

  if ((rc = FN (d)->device_name (d->name, sizeof d->name, d->device)) != 0
      || (rc = attribute (d, COOP_CU_ATTRIBUTE_COMPUTE_MAJOR, &d->major)) != 0
      || (rc = attribute (d, COOP_CU_ATTRIBUTE_COMPUTE_MINOR, &d->minor)) != 0
      || (rc = attribute (d, COOP_CU_ATTRIBUTE_MULTIPROCESSORS, &d->processors)) != 0
      || (rc = attribute (d, COOP_CU_ATTRIBUTE_VIRTUAL_MEMORY, &pages)) != 0
      || (rc = attribute (d, COOP_CU_ATTRIBUTE_MEMORY_POOLS, &pools)) != 0)
    return rc;
  d->has_pages = pages != 0;
  d->has_pools = pools != 0;
  return 0;
}

static CoopCuResult
read_granularity (CoopCudaDevice *d)
{
  CoopCuMemProp prop = coop_cuda_prop (d);
  size_t least = 0, best = 0;
  CoopCuResult rc;

  if (!d->has_pages)
    return 0;
  if ((rc = FN (d)->mem_granularity (&least, &prop, COOP_CU_GRANULARITY_MINIMUM)) != 0
      || (rc = FN (d)->mem_granularity (&best, &prop, COOP_CU_GRANULARITY_RECOMMENDED)) != 0)
    return rc;
  d->granule = least;
  d->recommended = best;
  return least == 0 || best % least != 0 ? COOP_CU_UNKNOWN : 0;
}

CoopCuResult
coop_cuda_device_open (CoopCudaDevice *d, const CoopCuda *cuda, int ordinal)
{
  CoopCuResult rc;

  *d = (CoopCudaDevice){ .cuda = cuda, .ordinal = ordinal };
  if ((rc = FN (d)->device_get (&d->device, ordinal)) != 0 || (rc = read_attributes (d)) != 0
      || (rc = read_granularity (d)) != 0)
    return rc;
  if ((rc = FN (d)->primary_retain (&d->context, d->device)) != 0)
    return rc;
  d->retained = true;
  rc = coop_cuda_device_enter (d);
  if (rc != 0)
    coop_cuda_device_close (d); /* false: it may be closed once more */
  return rc;
}

bool
coop_cuda_device_close (CoopCudaDevice *d)
{
  if (d->retained && FN (d)->primary_release (d->device) == 0)
    d->retained = false;
  return !d->retained;
}

CoopCuResult
coop_cuda_device_info (const CoopCudaDevice *d, uint64_t *free, uint64_t *total)
{
  size_t f = 0, t = 0;
  CoopCuResult rc = coop_cuda_device_enter (d);

  if (rc == 0 && (rc = FN (d)->mem_info (&f, &t)) == 0)
    {
      *free = f;
      *total = t;
    }
  return rc;
}

/* ---- fences ----------------------------------------------------------------------------------- */

/* Events that the driver will not destroy now stay in the fence for the next attempt. */
static CoopCuResult
drop_events (const CoopCudaDevice *d, CoopCudaFence *f)
{
  CoopCuResult rc = 0;

  while (rc == 0 && f->n > 0)
    if ((rc = FN (d)->event_destroy (f->event[f->n - 1])) == 0)
      f->n--;
  return rc;
}

CoopCuResult
coop_cuda_fence_record (const CoopCudaDevice *d, CoopCudaFence *f, const CoopCuStream *streams,
                        unsigned n)
{
  CoopCuResult rc = coop_cuda_device_enter (d);

  if (rc != 0)
    return rc;
  if (n == 0 || n > COOP_CUDA_FENCE_STREAMS)
    return FN (d)->ctx_synchronize ();
  for (unsigned i = 0; rc == 0 && i < n; i++)
    {
      if ((rc = FN (d)->event_create (&f->event[f->n], COOP_CU_EVENT_DISABLE_TIMING)) != 0)
        break;
      f->n++;
      rc = FN (d)->event_record (f->event[f->n - 1], streams[i]);
    }
  if (rc != 0)
    drop_events (d, f);
  return rc;
}

CoopCuResult
coop_cuda_fence_query (const CoopCudaDevice *d, CoopCudaFence *f)
{
  CoopCuResult rc = f->n > 0 ? coop_cuda_device_enter (d) : 0;

  for (unsigned i = 0; rc == 0 && i < f->n; i++)
    rc = FN (d)->event_query (f->event[i]);
  return rc == 0 ? drop_events (d, f) : rc;
}

CoopCuResult
coop_cuda_fence_wait (const CoopCudaDevice *d, CoopCudaFence *f)
{
  CoopCuResult rc = f->n > 0 ? coop_cuda_device_enter (d) : 0;

  for (unsigned i = 0; rc == 0 && i < f->n; i++)
    rc = FN (d)->event_synchronize (f->event[i]);
  return rc == 0 ? drop_events (d, f) : rc;
}

CoopCuResult
coop_cuda_fence_order (const CoopCudaDevice *d, const CoopCudaFence *f, CoopCuStream stream)
{
  CoopCuResult rc = coop_cuda_device_enter (d);

  for (unsigned i = 0; rc == 0 && i < f->n; i++)
    rc = FN (d)->stream_wait (stream, f->event[i], 0);
  return rc;
}
