/* SPDX-License-Identifier: Apache-2.0 */
/* The fake driver: start, devices, and what tests ask. */
#include "fake-cuda-private.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

Fake fake = { .lock = PTHREAD_MUTEX_INITIALIZER, .fd = -1 };
_Thread_local Context *fake_current;

#define X(member, symbol, arguments) API CoopCuResult symbol arguments;
COOP_CUDA_FUNCTIONS (X)
#undef X

void
fake_cuda_table (CoopCudaTable *table)
{
#define X(member, symbol, arguments) table->member = symbol;
  COOP_CUDA_FUNCTIONS (X)
#undef X
}

static uint64_t
from_environment (const char *name, uint64_t otherwise)
{
  const char *text = getenv (name);
  return text != NULL && *text != '\0' ? strtoull (text, NULL, 0) : otherwise;
}

static void
configure (void)
{
  const char *fail = getenv ("FAKE_CUDA_FAIL"), *code = fail ? strchr (fail, ':') : NULL;

  fake_cuda_reset (from_environment ("FAKE_CUDA_BYTES", 0), from_environment ("FAKE_CUDA_GRANULE", 0));
  fake.n_devices = (int) from_environment ("FAKE_CUDA_DEVICES", 1);
  if (fake.n_devices > MAX_DEVICES)
    fake.n_devices = MAX_DEVICES;
  fake.lazy = from_environment ("FAKE_CUDA_LAZY", 0) != 0;
  if (fail != NULL)
    fake_cuda_fail (strtoul (fail, NULL, 0), 1, code ? atoi (code + 1) : COOP_CU_OUT_OF_MEMORY);
}

CoopCuResult
fake_enter (bool needs_context)
{
  pthread_mutex_lock (&fake.lock);
  fake.calls++;
  if (fake.calls >= fake.fail_from && fake.calls < fake.fail_to)
    return fake.fail_code;
  if (!fake.started)
    return COOP_CU_NOT_INITIALIZED;
  if (fake.broken != 0)
    return fake.broken;
  if (needs_context && (fake_current == NULL || fake_current->retained == 0))
    return COOP_CU_INVALID_CONTEXT;
  return 0;
}

CoopCuResult
fake_leave (CoopCuResult rc)
{
  pthread_mutex_unlock (&fake.lock);
  return rc;
}

/* ---- what tests ask ---------------------------------------------------------------------------- */

static void
drop_work (Stream *s)
{
  while (s->first != NULL)
    {
      Work *w = s->first;
      s->first = w->next;
      if (w->kind == WORK_FROM_HOST)
        free (w->host);
      free (w);
    }
  s->last = &s->first;
}

void
fake_cuda_reset (uint64_t bytes, uint64_t granule)
{
  drop_work (&fake.null_stream);
  while (fake.streams != NULL)
    {
      Stream *s = fake.streams;
      fake.streams = s->next;
      drop_work (s);
      free (s);
    }
  while (fake.events != NULL)
    {
      Event *e = fake.events;
      fake.events = e->next;
      free (e);
    }
  fake.granule = granule ? granule : 2u << 20;
  fake.bytes = bytes ? bytes / fake.granule * fake.granule : (uint64_t) 1 << 30;
  fake_pools_reset ();
  fake_memory_reset ();
  memset (fake.context, 0, sizeof fake.context);
  fake_current = NULL;
  fake.configured = true;
  fake.started = fake.lazy = fake.capture = fake.no_pages = fake.no_pools = false;
  fake.broken = 0;
  fake.n_devices = 1;
  fake_cuda_fail (0, 0, 0);
}

void
fake_cuda_lazy (bool lazy)
{
  fake.lazy = lazy;
}

void
fake_cuda_run (void)
{
  pthread_mutex_lock (&fake.lock);
  fake_run_all ();
  pthread_mutex_unlock (&fake.lock);
}

void
fake_cuda_fail (unsigned long k, unsigned long n, CoopCuResult code)
{
  fake.calls = 0;
  fake.fail_from = k ? k : 1;
  fake.fail_to = k ? k + n : 0;
  fake.fail_code = code;
}

unsigned long
fake_cuda_calls (void)
{
  return fake.calls;
}

void
fake_cuda_capture (bool on)
{
  fake.capture = on;
}

void
fake_cuda_features (bool pages, bool pools)
{
  fake.no_pages = !pages;
  fake.no_pools = !pools;
}

uint64_t
fake_cuda_used (void)
{
  return fake.used;
}

bool
fake_cuda_owns (CoopCuPtr at)
{
  return fake.space != 0 && at >= fake.space && at < fake.space_end;
}

CoopCuResult
fake_cuda_broken (void)
{
  return fake.broken;
}

CoopCuResult
fake_cuda_touch (CoopCuPtr at, uint64_t bytes, bool write, CoopCuStream stream)
{
  ENTER (true);
  LEAVE (fake_queue (fake_stream (stream), &(Work){ .kind = WORK_TOUCH, .to = at, .bytes = bytes,
                                                    .write = write }));
}

#define COUNT(type, list, n)                     \
  for (const type *p = (list); p != NULL; p = p->next) \
    (n)++

const char *
fake_cuda_leaks (void)
{
  static char text[160];
  unsigned contexts = 0, allocations = 0, reservations = 0, mappings = 0, handles = 0, pools = 0,
           events = 0, streams = 0;

  for (int i = 0; i < MAX_DEVICES; i++)
    contexts += fake.context[i].retained;
  for (const Range *r = fake.ranges; r != NULL; r = r->next)
    *(r->reserved ? &reservations : &allocations) += 1;
  COUNT (Mapping, fake.mappings, mappings);
  COUNT (Handle, fake.handles, handles);
  COUNT (Pool, fake.pools, pools);
  COUNT (Event, fake.events, events);
  COUNT (Stream, fake.streams, streams);
  if (contexts + allocations + reservations + mappings + handles + pools + events + streams == 0)
    return NULL;
  snprintf (text, sizeof text, "%u contexts, %u allocations, %u reservations, %u mappings, "
            "%u handles, %u pools, %u events, %u streams", contexts, allocations, reservations,
            mappings, handles, pools, events, streams);
  return text;
}

/* ---- start and devices ------------------------------------------------------------------------- */

CoopCuResult
cuInit (unsigned flags)
{
  if (!fake.configured)
    configure ();
  bool was = fake.started;
  fake.started = true;
  CoopCuResult rc = fake_enter (false);
  if (rc == 0 && flags != 0)
    rc = COOP_CU_INVALID_VALUE;
  if (rc != 0)
    fake.started = was;
  return fake_leave (rc);
}

CoopCuResult
cuDriverGetVersion (int *version)
{
  *version = 13000;
  return 0;
}

static const struct { CoopCuResult code; const char *name, *text; } errors[] = {
  { 0, "CUDA_SUCCESS", "no error" },
  { COOP_CU_INVALID_VALUE, "CUDA_ERROR_INVALID_VALUE", "invalid argument" },
  { COOP_CU_OUT_OF_MEMORY, "CUDA_ERROR_OUT_OF_MEMORY", "out of memory" },
  { COOP_CU_NOT_INITIALIZED, "CUDA_ERROR_NOT_INITIALIZED", "initialization error" },
  { COOP_CU_INVALID_DEVICE, "CUDA_ERROR_INVALID_DEVICE", "invalid device ordinal" },
  { COOP_CU_INVALID_CONTEXT, "CUDA_ERROR_INVALID_CONTEXT", "invalid device context" },
  { COOP_CU_INVALID_HANDLE, "CUDA_ERROR_INVALID_HANDLE", "invalid resource handle" },
  { COOP_CU_NOT_READY, "CUDA_ERROR_NOT_READY", "device not ready" },
  { COOP_CU_ILLEGAL_ADDRESS, "CUDA_ERROR_ILLEGAL_ADDRESS", "an illegal memory access was encountered" },
  { COOP_CU_NOT_SUPPORTED, "CUDA_ERROR_NOT_SUPPORTED", "operation not supported" },
  { COOP_CU_UNKNOWN, "CUDA_ERROR_UNKNOWN", "unknown error" },
};

static CoopCuResult
find_error (CoopCuResult error, const char **name, const char **text)
{
  for (size_t i = 0; i < sizeof errors / sizeof *errors; i++)
    if (errors[i].code == error)
      {
        *name = errors[i].name;
        *text = errors[i].text;
        return 0;
      }
  *name = *text = NULL;
  return COOP_CU_INVALID_VALUE;
}

CoopCuResult
cuGetErrorName (CoopCuResult error, const char **text)
{
  const char *other;
  return find_error (error, text, &other);
}

CoopCuResult
cuGetErrorString (CoopCuResult error, const char **text)
{
  const char *other;
  return find_error (error, &other, text);
}

CoopCuResult
cuDeviceGetCount (int *n)
{
  ENTER (false);
  *n = fake.n_devices;
  LEAVE (0);
}

CoopCuResult
cuDeviceGet (CoopCuDevice *device, int ordinal)
{
  ENTER (false);
  if (ordinal < 0 || ordinal >= fake.n_devices)
    LEAVE (COOP_CU_INVALID_DEVICE);
  *device = ordinal;
  LEAVE (0);
}

CoopCuResult
cuDeviceGetName (char *name, int bytes, CoopCuDevice device)
{
  ENTER (false);
  snprintf (name, (size_t) bytes, "fake device %d", device);
  LEAVE (0);
}

CoopCuResult
cuDeviceGetAttribute (int *value, int attribute, CoopCuDevice device)
{
  ENTER (false);
  switch (attribute)
    {
    case COOP_CU_ATTRIBUTE_COMPUTE_MAJOR: *value = 9; LEAVE (0);
    case COOP_CU_ATTRIBUTE_COMPUTE_MINOR: *value = 0; LEAVE (0);
    case COOP_CU_ATTRIBUTE_MULTIPROCESSORS: *value = 1; LEAVE (0);
    case COOP_CU_ATTRIBUTE_VIRTUAL_MEMORY: *value = !fake.no_pages; LEAVE (0);
    case COOP_CU_ATTRIBUTE_MEMORY_POOLS: *value = !fake.no_pools; LEAVE (0);
    default: LEAVE (COOP_CU_INVALID_VALUE);
    }
}

CoopCuResult
cuDevicePrimaryCtxRetain (CoopCuContext *context, CoopCuDevice device)
{
  ENTER (false);
  if (device < 0 || device >= fake.n_devices)
    LEAVE (COOP_CU_INVALID_DEVICE);
  fake.context[device].retained++;
  *context = &fake.context[device];
  LEAVE (0);
}

CoopCuResult
cuDevicePrimaryCtxRelease_v2 (CoopCuDevice device)
{
  ENTER (false);
  if (device < 0 || device >= fake.n_devices || fake.context[device].retained == 0)
    LEAVE (COOP_CU_INVALID_CONTEXT);
  fake.context[device].retained--;
  LEAVE (0);
}

/* Not called by us; PyTorch asks whether a device is in use. */
API CoopCuResult cuDevicePrimaryCtxGetState (CoopCuDevice device, unsigned *flags, int *active);
CoopCuResult
cuDevicePrimaryCtxGetState (CoopCuDevice device, unsigned *flags, int *active)
{
  ENTER (false);
  if (device < 0 || device >= fake.n_devices)
    LEAVE (COOP_CU_INVALID_DEVICE);
  *flags = 0;
  *active = fake.context[device].retained > 0;
  LEAVE (0);
}

CoopCuResult
cuCtxSetCurrent (CoopCuContext context)
{
  ENTER (false);
  fake_current = context;
  LEAVE (0);
}

CoopCuResult
cuCtxGetCurrent (CoopCuContext *context)
{
  ENTER (false);
  *context = fake_current;
  LEAVE (0);
}

CoopCuResult
cuCtxSynchronize (void)
{
  ENTER (true);
  fake_run_all ();
  fake_pools_synchronized ();
  LEAVE (fake.broken);
}
