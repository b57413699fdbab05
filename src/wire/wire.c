/* SPDX-License-Identifier: Apache-2.0 */
/* The memfd: made, mapped, checked, claimed.
 *
 * The creator seals the size, so that nobody can shrink the file under the other side's feet (a
 * SIGBUS in a training process), and open refuses a file without that seal. All sizes are read
 * once, checked, and kept in private memory. */
#include "wire-private.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define SIZE_MIN ((size_t) 64 << 10)
#define SIZE_MAX_RING ((size_t) 1 << 32)
#define LAST_WAIT_MS 1000   /* at the very end: nobody is held up any more */
#define SEALS (F_SEAL_SHRINK | F_SEAL_GROW)

uint64_t
coop_wire_now (void)
{
  struct timespec t;
  clock_gettime (CLOCK_MONOTONIC, &t);
  return (uint64_t) t.tv_sec * 1000000000u + (uint64_t) t.tv_nsec;
}

const char *
coop_wire_strerror (CoopWireError error)
{
  switch (error)
    {
    case COOP_WIRE_OK:
      return "no error";
    case COOP_WIRE_SYSTEM:
      return strerror (errno);
    case COOP_WIRE_FOREIGN:
      return "not a Coopscope wire";
    case COOP_WIRE_PROTOCOL:
      return "made by another version of Coopscope";
    case COOP_WIRE_CLAIMED:
      return "another process records into it already";
    }
  return "unknown error";
}

static size_t
page_bytes (void)
{
  return (size_t) sysconf (_SC_PAGESIZE);
}

static size_t
ring_size (size_t wanted)
{
  size_t size = SIZE_MIN;
  while (size < wanted && size < SIZE_MAX_RING)
    size <<= 1;
  return size;
}

static void *
map_private (size_t bytes)
{
  void *p = mmap (NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE,
                  -1, 0);
  return p == MAP_FAILED ? NULL : p;
}

/* Two pages and the body in a row, and the body once more behind it. */
static bool
map_shared (CoopWire *wire, int fd, size_t page)
{
  size_t front = 2 * page + wire->size;
  wire->map_bytes = front + wire->size;
  void *map = mmap (NULL, wire->map_bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE,
                    -1, 0);
  if (map == MAP_FAILED)
    return false;
  wire->map = map;
  uint8_t *base = map;
  int prot = PROT_READ | PROT_WRITE, flags = MAP_SHARED | MAP_FIXED;
  if (mmap (base, front, prot, flags, fd, 0) == MAP_FAILED
      || mmap (base + front, wire->size, prot, flags, fd, (off_t) (2 * page)) == MAP_FAILED)
    return false;
  wire->header = map;
  wire->control = (CoopControl *) (base + page);
  wire->body = base + 2 * page;
  return true;
}

/* Maps fd, whose ring is known to be `size` bytes. NULL with errno. */
static CoopWire *
wire_map (int fd, size_t size)
{
  size_t page = page_bytes ();
  CoopWire *wire = calloc (1, sizeof *wire);
  if (wire == NULL)
    return NULL;
  wire->fd = -1;
  wire->size = size;
  wire->mask = size - 1;
  atomic_init (&wire->stalled_at, UINT64_MAX);
  wire->own = map_private (page);
  wire->event = map_private (COOP_EVENT_MAX);
  if (wire->own == NULL || wire->event == NULL || !map_shared (wire, fd, page))
    {
      int saved = errno;
      coop_wire_free (wire);
      errno = saved;
      return NULL;
    }
  madvise ((void *) wire->own, page, MADV_WIPEONFORK);
  atomic_init (wire->own, 1);
  return wire;
}

CoopWireError
coop_wire_create (size_t ring_bytes, const CoopPolicy *policy, CoopWire **out)
{
  *out = NULL;
  size_t page = page_bytes ();
  size_t size = ring_size (ring_bytes == 0 ? COOP_RING_BYTES : ring_bytes);
  int fd = memfd_create ("coopscope", MFD_CLOEXEC | MFD_ALLOW_SEALING);
  if (fd < 0)
    return COOP_WIRE_SYSTEM;
  CoopWire *wire = NULL;
  if (ftruncate (fd, (off_t) (2 * page + size)) != 0 || fcntl (fd, F_ADD_SEALS, SEALS) != 0
      || (wire = wire_map (fd, size)) == NULL)
    {
      int saved = errno;
      close (fd);
      errno = saved;
      return COOP_WIRE_SYSTEM;
    }
  wire->fd = fd;
  CoopWireHeader *h = wire->header;
  h->protocol = COOP_PROTOCOL;
  h->record_bytes = COOP_RECORD_BYTES;
  h->page_bytes = page;
  h->ring_bytes = size;
  h->n_params = COOP_N_PARAMS;
  for (int i = 0; i < COOP_N_PARAMS; i++)
    {
      atomic_init (&wire->control->bits[i], policy->v[i].i);
      atomic_init (&wire->control->source[i], COOP_SOURCE_INITIAL);
    }
  atomic_init (&wire->control->generation, 1);
  h->magic = COOP_WIRE_MAGIC;
  *out = wire;
  return COOP_WIRE_OK;
}

/* Reads the identity and decides whether the file can be mapped as a wire. */
static CoopWireError
check_identity (int fd, size_t *size)
{
  CoopWireHeader h;
  struct stat st;
  size_t page = page_bytes ();
  if (fstat (fd, &st) != 0)
    return COOP_WIRE_SYSTEM;
  int seals = fcntl (fd, F_GET_SEALS);
  if (seals < 0 || (seals & SEALS) != SEALS)
    return COOP_WIRE_FOREIGN;
  if (pread (fd, &h, sizeof h, 0) != (ssize_t) sizeof h || h.magic != COOP_WIRE_MAGIC)
    return COOP_WIRE_FOREIGN;
  if (h.protocol != COOP_PROTOCOL || h.n_params != COOP_N_PARAMS
      || h.record_bytes != COOP_RECORD_BYTES)
    return COOP_WIRE_PROTOCOL;
  if (h.page_bytes != page || h.ring_bytes < SIZE_MIN || h.ring_bytes > SIZE_MAX_RING
      || (h.ring_bytes & (h.ring_bytes - 1)) != 0
      || (uint64_t) st.st_size != 2 * page + h.ring_bytes)
    return COOP_WIRE_FOREIGN;
  *size = h.ring_bytes;
  return COOP_WIRE_OK;
}

CoopWireError
coop_wire_open (int fd, CoopWire **out)
{
  *out = NULL;
  size_t size = 0;
  CoopWireError error = check_identity (fd, &size);
  if (error != COOP_WIRE_OK)
    return error;
  CoopWire *wire = wire_map (fd, size);
  if (wire == NULL)
    return COOP_WIRE_SYSTEM;
  /* Positions go on from where they are; push and drain check them against each other. */
  atomic_init (&wire->head, atomic_load (&wire->header->head));
  atomic_init (&wire->tail, atomic_load (&wire->header->tail));
  wire->tail_seen = atomic_load (&wire->tail);
  *out = wire;
  return COOP_WIRE_OK;
}

void
coop_wire_free (CoopWire *wire)
{
  if (wire == NULL)
    return;
  if (wire->map != NULL)
    munmap (wire->map, wire->map_bytes);
  if (wire->own != NULL)
    munmap ((void *) wire->own, page_bytes ());
  if (wire->event != NULL)
    munmap (wire->event, COOP_EVENT_MAX);
  if (wire->fd >= 0)
    close (wire->fd);
  free (wire);
}

int
coop_wire_fd (const CoopWire *wire)
{
  return wire->fd;
}

CoopWireError
coop_wire_claim (CoopWire *wire)
{
  int32_t nobody = 0;
  if (!atomic_compare_exchange_strong (&wire->header->target_pid, &nobody, (int32_t) getpid ()))
    {
      if (nobody != (int32_t) getpid ())
        atomic_fetch_add (&wire->header->turned_away, 1);
      return COOP_WIRE_CLAIMED;
    }
  atomic_store (&wire->header->target_state, COOP_TARGET_RUNNING);
  return COOP_WIRE_OK;
}

unsigned
coop_wire_turned_away (const CoopWire *wire)
{
  return atomic_load (&wire->header->turned_away);
}

void
coop_wire_end (CoopWire *wire)
{
  if (atomic_load (wire->own) == 0)
    return;
  if (wire->missing != 0)
    {
      coop_ring_wait (wire, 0, LAST_WAIT_MS);
      coop_ring_tell_gap (wire, 0);
    }
  atomic_store (&wire->header->target_state, COOP_TARGET_ENDED);
}

CoopTargetState
coop_wire_target (const CoopWire *wire, pid_t *pid)
{
  uint32_t state = atomic_load (&wire->header->target_state);
  if (pid != NULL)
    *pid = atomic_load (&wire->header->target_pid);
  return state <= COOP_TARGET_ENDED ? (CoopTargetState) state : COOP_TARGET_NONE;
}

void
coop_wire_set_trace (CoopWire *wire, const char *path)
{
  char *to = wire->header->trace;
  size_t n = strnlen (path, COOP_TRACE_PATH_BYTES - 1);
  memcpy (to, path, n);
  memset (to + n, 0, COOP_TRACE_PATH_BYTES - n);
}

void
coop_wire_trace (const CoopWire *wire, char *path, size_t size)
{
  if (size == 0)
    return;
  size_t n = size - 1 < COOP_TRACE_PATH_BYTES ? size - 1 : COOP_TRACE_PATH_BYTES;
  memcpy (path, wire->header->trace, n);
  path[n] = 0;
}
