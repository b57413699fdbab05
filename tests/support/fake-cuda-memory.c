/* SPDX-License-Identifier: Apache-2.0 */
/* The fake driver: memory. One file is the device's physical memory, cut into granules; addresses
 * come from one large range, each only once, so that whoever uses one too long is found. */
#include "fake-cuda-private.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define SPACE ((uint64_t) 1 << 40)

#define X(member, symbol, arguments) API CoopCuResult symbol arguments;
COOP_CUDA_FUNCTIONS (X)
#undef X

static void
hide (CoopCuPtr at, uint64_t bytes)
{
  mmap ((void *) (uintptr_t) at, bytes, PROT_NONE,
        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
}

void
fake_memory_reset (void)
{
  while (fake.mappings != NULL)
    {
      Mapping *m = fake.mappings;
      fake.mappings = m->next;
      free (m);
    }
  while (fake.handles != NULL)
    {
      Handle *h = fake.handles;
      fake.handles = h->next;
      free (h->granule);
      free (h);
    }
  while (fake.ranges != NULL)
    {
      Range *r = fake.ranges;
      fake.ranges = r->next;
      free (r->granule);
      free (r);
    }
  if (fake.space != 0)
    munmap ((void *) (uintptr_t) fake.space, SPACE);
  if (fake.fd >= 0)
    close (fake.fd);
  free (fake.taken);
  fake.fd = memfd_create ("fake-cuda", MFD_CLOEXEC);
  fake.n_granules = (unsigned) (fake.bytes / fake.granule);
  fake.taken = calloc (fake.n_granules, 1);
  void *space = mmap (NULL, SPACE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (fake.fd < 0 || space == MAP_FAILED || ftruncate (fake.fd, (off_t) fake.bytes) != 0)
    abort ();
  fake.space = (CoopCuPtr) (uintptr_t) space;
  fake.fresh = (fake.space + fake.granule - 1) / fake.granule * fake.granule;
  fake.space_end = fake.space + SPACE;
  fake.used = 0;
  fake.next_handle = 0x1000;
}

/* ---- physical memory --------------------------------------------------------------------------- */

unsigned *
fake_take_granules (uint64_t bytes)
{
  uint64_t n = (bytes + fake.granule - 1) / fake.granule, found = 0;

  if (n > (fake.bytes - fake.used) / fake.granule)
    return NULL;
  unsigned *granule = calloc (n, sizeof *granule);
  for (unsigned i = 0; found < n; i++)
    if (!fake.taken[i])
      {
        fake.taken[i] = 1;
        granule[found++] = i;
      }
  fake.used += n * fake.granule;
  return granule;
}

void
fake_give_granules (unsigned *granule, uint64_t bytes)
{
  uint64_t n = (bytes + fake.granule - 1) / fake.granule;

  for (uint64_t i = 0; i < n; i++)
    fake.taken[granule[i]] = 0;
  fake.used -= n * fake.granule;
  free (granule);
}

static void
show (CoopCuPtr at, const unsigned *granule, uint64_t bytes, int protection)
{
  for (uint64_t i = 0, n; i * fake.granule < bytes; i += n)
    {
      for (n = 1; (i + n) * fake.granule < bytes && granule[i + n] == granule[i] + n;)
        n++;
      mmap ((void *) (uintptr_t) (at + i * fake.granule), n * fake.granule, protection,
            MAP_SHARED | MAP_FIXED, fake.fd, (off_t) (granule[i] * fake.granule));
    }
}

/* ---- addresses --------------------------------------------------------------------------------- */

Range *
fake_range_new (uint64_t bytes, bool reserved)
{
  uint64_t whole = (bytes + fake.granule - 1) / fake.granule * fake.granule;

  if (whole + fake.granule > fake.space_end - fake.fresh)
    return NULL;
  unsigned *granule = reserved ? NULL : fake_take_granules (whole);
  if (!reserved && granule == NULL)
    return NULL;
  Range *r = calloc (1, sizeof *r);
  r->at = fake.fresh;
  r->bytes = bytes;
  r->reserved = reserved;
  r->granule = granule;
  fake.fresh += whole + fake.granule; /* a hole between, so that running over an end is seen */
  if (!reserved)
    show (r->at, granule, whole, PROT_READ | PROT_WRITE);
  r->next = fake.ranges;
  fake.ranges = r;
  return r;
}

void
fake_range_free (Range *range)
{
  for (Range **link = &fake.ranges; *link != NULL; link = &(*link)->next)
    if (*link == range)
      {
        *link = range->next;
        break;
      }
  hide (range->at, (range->bytes + fake.granule - 1) / fake.granule * fake.granule);
  if (range->granule != NULL)
    fake_give_granules (range->granule, range->bytes);
  free (range);
}

static Range *
range_of (CoopCuPtr at, uint64_t bytes)
{
  for (Range *r = fake.ranges; r != NULL; r = r->next)
    if (at >= r->at && at - r->at < r->bytes && bytes <= r->bytes - (at - r->at))
      return r;
  return NULL;
}

static Mapping *
mapping_at (CoopCuPtr at)
{
  for (Mapping *m = fake.mappings; m != NULL; m = m->next)
    if (at >= m->at && at - m->at < m->bytes)
      return m;
  return NULL;
}

bool
fake_accessible (CoopCuPtr at, uint64_t bytes, bool write)
{
  const Range *r = range_of (at, bytes);

  if (r == NULL || bytes == 0)
    return bytes == 0;
  if (!r->reserved)
    return true;
  for (CoopCuPtr end = at + bytes; at < end;)
    {
      const Mapping *m = mapping_at (at);
      if (m == NULL || !(m->access & COOP_CU_ACCESS_READ) || (write && m->access != COOP_CU_ACCESS_READWRITE))
        return false;
      at = m->at + m->bytes;
    }
  return true;
}

/* ---- plain allocations ------------------------------------------------------------------------- */

CoopCuResult
cuMemGetInfo_v2 (size_t *free, size_t *total)
{
  ENTER (true);
  *free = fake.bytes - fake.used;
  *total = fake.bytes;
  LEAVE (0);
}

CoopCuResult
cuMemAlloc_v2 (CoopCuPtr *out, size_t bytes)
{
  ENTER (true);
  if (bytes == 0)
    LEAVE (COOP_CU_INVALID_VALUE);
  Range *r = fake_range_new (bytes, false);
  if (r == NULL)
    LEAVE (COOP_CU_OUT_OF_MEMORY);
  *out = r->at;
  LEAVE (0);
}

CoopCuResult
cuMemFree_v2 (CoopCuPtr at)
{
  ENTER (true);
  if (at == 0)
    LEAVE (0);
  Range *r = range_of (at, 1);
  if (r == NULL || r->at != at || r->reserved)
    LEAVE (COOP_CU_INVALID_VALUE);
  fake_run_all (); /* the real one waits for the device */
  fake_range_free (r);
  LEAVE (fake.broken);
}

CoopCuResult
cuMemcpyHtoDAsync_v2 (CoopCuPtr to, const void *from, size_t bytes, CoopCuStream stream)
{
  ENTER (true);
  void *copy = malloc (bytes + 1); /* pageable memory is read at the call */
  memcpy (copy, from, bytes);
  LEAVE (fake_queue (fake_stream (stream),
                     &(Work){ .kind = WORK_FROM_HOST, .to = to, .host = copy, .bytes = bytes }));
}

CoopCuResult
cuMemcpyDtoHAsync_v2 (void *to, CoopCuPtr from, size_t bytes, CoopCuStream stream)
{
  ENTER (true);
  LEAVE (fake_queue (fake_stream (stream),
                     &(Work){ .kind = WORK_TO_HOST, .from = from, .host = to, .bytes = bytes }));
}

CoopCuResult
cuMemcpyDtoDAsync_v2 (CoopCuPtr to, CoopCuPtr from, size_t bytes, CoopCuStream stream)
{
  ENTER (true);
  LEAVE (fake_queue (fake_stream (stream),
                     &(Work){ .kind = WORK_COPY, .to = to, .from = from, .bytes = bytes }));
}

CoopCuResult
cuMemsetD32Async (CoopCuPtr at, unsigned value, size_t n, CoopCuStream stream)
{
  ENTER (true);
  if (at % 4 != 0)
    LEAVE (COOP_CU_INVALID_VALUE);
  LEAVE (fake_queue (fake_stream (stream),
                     &(Work){ .kind = WORK_SET, .to = at, .value = value, .bytes = 4 * n }));
}

/* ---- virtual memory ---------------------------------------------------------------------------- */

#define WHOLE(n) ((n) != 0 && (n) % fake.granule == 0)

static bool
good_prop (const CoopCuMemProp *prop)
{
  return prop != NULL && prop->type == COOP_CU_ALLOCATION_PINNED && prop->handle_types == 0
         && prop->location.type == COOP_CU_LOCATION_DEVICE && prop->location.id >= 0
         && prop->location.id < fake.n_devices && prop->win32 == NULL;
}

CoopCuResult
cuMemGetAllocationGranularity (size_t *bytes, const CoopCuMemProp *prop, int option)
{
  ENTER (false);
  if (!good_prop (prop) || option < 0 || option > 1)
    LEAVE (COOP_CU_INVALID_VALUE);
  *bytes = fake.granule;
  LEAVE (0);
}

CoopCuResult
cuMemAddressReserve (CoopCuPtr *out, size_t bytes, size_t align, CoopCuPtr hint, unsigned long long flags)
{
  ENTER (true);
  if (!WHOLE (bytes) || flags != 0 || (align & (align - 1)) != 0 || align > fake.granule)
    LEAVE (COOP_CU_INVALID_VALUE);
  Range *r = fake_range_new (bytes, true);
  if (r == NULL)
    LEAVE (COOP_CU_OUT_OF_MEMORY);
  *out = r->at;
  LEAVE (0);
}

CoopCuResult
cuMemAddressFree (CoopCuPtr at, size_t bytes)
{
  ENTER (true);
  Range *r = range_of (at, bytes);
  if (r == NULL || !r->reserved || r->at != at || r->bytes != bytes)
    LEAVE (COOP_CU_INVALID_VALUE);
  for (const Mapping *m = fake.mappings; m != NULL; m = m->next)
    if (m->at >= at && m->at - at < bytes)
      LEAVE (COOP_CU_INVALID_VALUE);
  fake_range_free (r);
  LEAVE (0);
}

CoopCuResult
cuMemCreate (CoopCuHandle *out, size_t bytes, const CoopCuMemProp *prop, unsigned long long flags)
{
  ENTER (true);
  if (!WHOLE (bytes) || !good_prop (prop) || flags != 0)
    LEAVE (COOP_CU_INVALID_VALUE);
  unsigned *granule = fake_take_granules (bytes);
  if (granule == NULL)
    LEAVE (COOP_CU_OUT_OF_MEMORY);
  Handle *h = calloc (1, sizeof *h);
  *h = (Handle){ .next = fake.handles, .id = fake.next_handle++, .bytes = bytes, .granule = granule };
  fake.handles = h;
  *out = h->id;
  LEAVE (0);
}

static Handle *
handle_of (CoopCuHandle id)
{
  for (Handle *h = fake.handles; h != NULL; h = h->next)
    if (h->id == id && !h->released)
      return h;
  return NULL;
}

/* The memory goes when the handle and its mappings are gone. */
static void
handle_settle (Handle *handle)
{
  if (!handle->released || handle->maps > 0)
    return;
  for (Handle **link = &fake.handles; *link != NULL; link = &(*link)->next)
    if (*link == handle)
      {
        *link = handle->next;
        break;
      }
  fake_give_granules (handle->granule, handle->bytes);
  free (handle);
}

CoopCuResult
cuMemRelease (CoopCuHandle handle)
{
  ENTER (true);
  Handle *h = handle_of (handle);
  if (h == NULL)
    LEAVE (COOP_CU_INVALID_VALUE);
  h->released = true;
  handle_settle (h);
  LEAVE (0);
}

CoopCuResult
cuMemMap (CoopCuPtr at, size_t bytes, size_t offset, CoopCuHandle handle, unsigned long long flags)
{
  ENTER (true);
  Handle *h = handle_of (handle);
  const Range *r = range_of (at, bytes);
  if (h == NULL || r == NULL || !r->reserved || !WHOLE (bytes) || at % fake.granule != 0 || offset != 0
      || bytes > h->bytes || flags != 0)
    LEAVE (COOP_CU_INVALID_VALUE);
  for (uint64_t i = 0; i < bytes; i += fake.granule)
    if (mapping_at (at + i) != NULL)
      LEAVE (COOP_CU_INVALID_VALUE);
  Mapping *m = calloc (1, sizeof *m);
  *m = (Mapping){ .next = fake.mappings, .at = at, .bytes = bytes, .handle = h };
  fake.mappings = m;
  h->maps++;
  LEAVE (0);
}

/* Are these bytes whole mappings, without a gap? */
static bool
whole_mappings (CoopCuPtr at, uint64_t bytes)
{
  CoopCuPtr end = at + bytes;

  while (at < end)
    {
      const Mapping *m = mapping_at (at);
      if (m == NULL || m->at != at || m->bytes > end - at)
        return false;
      at += m->bytes;
    }
  return bytes > 0;
}

CoopCuResult
cuMemUnmap (CoopCuPtr at, size_t bytes)
{
  ENTER (true);
  if (!whole_mappings (at, bytes))
    LEAVE (COOP_CU_INVALID_VALUE);
  for (Mapping **link = &fake.mappings; *link != NULL;)
    {
      Mapping *m = *link;
      if (m->at < at || m->at - at >= bytes)
        {
          link = &m->next;
          continue;
        }
      *link = m->next;
      hide (m->at, m->bytes);
      m->handle->maps--;
      handle_settle (m->handle);
      free (m);
    }
  LEAVE (0); /* does not wait: work still queued for these bytes will break the context */
}

CoopCuResult
cuMemSetAccess (CoopCuPtr at, size_t bytes, const CoopCuAccess *access, size_t n)
{
  ENTER (true);
  if (n != 1 || access == NULL || access->location.type != COOP_CU_LOCATION_DEVICE
      || access->location.id >= fake.n_devices || !whole_mappings (at, bytes))
    LEAVE (COOP_CU_INVALID_VALUE);
  for (Mapping *m = fake.mappings; m != NULL; m = m->next)
    if (m->at >= at && m->at - at < bytes)
      {
        m->access = access->flags;
        show (m->at, m->handle->granule, m->bytes,
              access->flags == COOP_CU_ACCESS_READWRITE ? PROT_READ | PROT_WRITE
              : access->flags == COOP_CU_ACCESS_READ    ? PROT_READ
                                                        : PROT_NONE);
      }
  LEAVE (0);
}
