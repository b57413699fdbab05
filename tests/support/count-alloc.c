/* SPDX-License-Identifier: Apache-2.0 */
/* count-alloc: counts tensor memory from outside, to check what Coopscope says about itself.
 *
 *   LD_PRELOAD=libcount-alloc.so COUNT_ALLOC_FILE=out.jsonl python3 train.py
 *
 * PyTorch takes the bytes of every CPU tensor with posix_memalign, called from libc10.so. This
 * library stands in front of the C library, tells callers apart by their return address, and sums
 * what libc10 holds. Coopscope repoints libc10's calls to its own pool, so under it the sum is the
 * tensor memory *outside* the pool. Blocks that the adapter itself takes on PyTorch's behalf are
 * summed apart, as is what everybody else takes this way.
 *
 * c10::free_cpu ends in a jump to free, whose return address then names somebody else; so frees are
 * told by the pointer, from a hash table of live blocks (open addressing, in its own mapping, since
 * nothing here may allocate).
 *
 * One JSON line goes to COUNT_ALLOC_FILE whenever the process writes a text to standard output that
 * begins with COUNT_ALLOC_MARK ("step " if unset), and one at the end: so a script is measured at
 * points of its own without a change to it. glibc only.
 */
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#define EXPORT __attribute__ ((visibility ("default")))
#define SLOTS (1u << 20)
#define MAX_OBJECTS 64
#define ROUND 512

extern void *__libc_memalign (size_t alignment, size_t size);
extern void __libc_free (void *pointer);

enum { OWNER_TENSOR, OWNER_ADAPTER, OWNER_OTHER, N_OWNERS };

typedef struct {
  uintptr_t pointer;   /* 0 empty, 1 deleted */
  uint64_t bytes;
  int owner;
} Block;

typedef struct {
  uintptr_t lo, hi;
  int owner;
} Object;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static Block *blocks;
static uint64_t n_blocks, n_lost;
static Object objects[MAX_OBJECTS];
static unsigned n_objects;
static uint64_t live[N_OWNERS], peak[N_OWNERS], calls[N_OWNERS];

/* ---- who calls ---------------------------------------------------------------------------- */

static int
owner_of_name (const char *name)
{
  const char *base = strrchr (name, '/');

  base = base ? base + 1 : name;
  if (strncmp (base, "libc10.so", 9) == 0)
    return OWNER_TENSOR;
  if (strncmp (base, "_coopscope.", 11) == 0)
    return OWNER_ADAPTER;
  return OWNER_OTHER;
}

static int
find_object (struct dl_phdr_info *info, size_t size, void *user)
{
  Object *wanted = user;   /* in: lo = the address */

  for (int i = 0; i < info->dlpi_phnum; i++)
    {
      const ElfW (Phdr) *ph = &info->dlpi_phdr[i];
      uintptr_t lo = info->dlpi_addr + ph->p_vaddr;

      if (ph->p_type == PT_LOAD && (ph->p_flags & PF_X) && wanted->lo >= lo && wanted->lo < lo + ph->p_memsz)
        {
          *wanted = (Object) { lo, lo + ph->p_memsz, owner_of_name (info->dlpi_name) };
          return 1;
        }
    }
  return 0;
}

/* Code is never unloaded in the programs this is for, so ranges are remembered for good. */
static int
owner_of_caller (uintptr_t address)
{
  Object found = { address, 0, OWNER_OTHER };

  for (unsigned i = 0; i < __atomic_load_n (&n_objects, __ATOMIC_ACQUIRE); i++)
    if (address >= objects[i].lo && address < objects[i].hi)
      return objects[i].owner;

  if (!dl_iterate_phdr (find_object, &found))
    return OWNER_OTHER;
  pthread_mutex_lock (&lock);
  if (n_objects < MAX_OBJECTS)
    {
      objects[n_objects] = found;
      __atomic_store_n (&n_objects, n_objects + 1, __ATOMIC_RELEASE);
    }
  pthread_mutex_unlock (&lock);
  return found.owner;
}

/* ---- live blocks -------------------------------------------------------------------------- */

static unsigned
slot_of (uintptr_t pointer)
{
  return (unsigned) ((pointer >> 4) * UINT64_C (0x9e3779b97f4a7c15) >> 44) & (SLOTS - 1);
}

/* Under the lock, as all below. */
static void
remember (void *pointer, uint64_t bytes, int owner)
{
  unsigned i = slot_of ((uintptr_t) pointer);

  if (!blocks)
    {
      void *map = mmap (NULL, SLOTS * sizeof (Block), PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
      if (map == MAP_FAILED)
        {
          n_lost++;
          return;
        }
      blocks = map;
    }
  if (n_blocks >= SLOTS / 2)
    {
      n_lost++;
      return;
    }
  while (blocks[i].pointer > 1)
    i = (i + 1) & (SLOTS - 1);
  blocks[i] = (Block) { (uintptr_t) pointer, bytes, owner };
  n_blocks++;
  calls[owner]++;
  live[owner] += bytes;
  if (live[owner] > peak[owner])
    peak[owner] = live[owner];
}

static void
forget (void *pointer)
{
  unsigned i = slot_of ((uintptr_t) pointer);

  for (unsigned n = 0; blocks && n < SLOTS && blocks[i].pointer; n++, i = (i + 1) & (SLOTS - 1))
    if (blocks[i].pointer == (uintptr_t) pointer)
      {
        live[blocks[i].owner] -= blocks[i].bytes;
        n_blocks--;
        /* A deleted mark is needed only in the middle of a run. */
        blocks[i].pointer = blocks[(i + 1) & (SLOTS - 1)].pointer ? 1 : 0;
        return;
      }
}

EXPORT int
posix_memalign (void **out, size_t alignment, size_t size)
{
  int owner = owner_of_caller ((uintptr_t) __builtin_return_address (0));
  int saved = errno;
  void *pointer;

  if (alignment < sizeof (void *) || (alignment & (alignment - 1)))
    return EINVAL;
  pointer = __libc_memalign (alignment, size);
  errno = saved;
  if (!pointer)
    return ENOMEM;
  pthread_mutex_lock (&lock);
  remember (pointer, (size + ROUND - 1) / ROUND * ROUND, owner);
  pthread_mutex_unlock (&lock);
  *out = pointer;
  return 0;
}

EXPORT void
free (void *pointer)
{
  int saved = errno;

  /* Blocks asked for with posix_memalign lie on 32 bytes or more, most others do not. */
  if (pointer && ((uintptr_t) pointer & 31) == 0 && __atomic_load_n (&n_blocks, __ATOMIC_RELAXED))
    {
      pthread_mutex_lock (&lock);
      forget (pointer);
      pthread_mutex_unlock (&lock);
    }
  __libc_free (pointer);
  errno = saved;
}

/* ---- marks -------------------------------------------------------------------------------- */

static uint64_t
resident_anonymous (void)
{
  char text[4096];
  int fd = open ("/proc/self/status", O_RDONLY | O_CLOEXEC);
  ssize_t n = fd >= 0 ? read (fd, text, sizeof text - 1) : -1;
  const char *line;

  if (fd >= 0)
    close (fd);
  if (n <= 0)
    return 0;
  text[n] = 0;
  line = strstr (text, "RssAnon:");
  return line ? strtoull (line + 8, NULL, 10) * 1024 : 0;
}

static void
mark (const char *text, int length)
{
  const char *path = getenv ("COUNT_ALLOC_FILE");
  uint64_t rss = resident_anonymous ();
  char line[1024], name[64];
  int fd, n;

  if (!path)
    return;
  for (n = 0; n < length && n < (int) sizeof name - 1 && text[n] >= ' ' && text[n] != '"' && text[n] != '\\'; n++)
    name[n] = text[n];
  name[n] = 0;
  pthread_mutex_lock (&lock);
  n = snprintf (line, sizeof line,
                "{\"pid\": %d, \"mark\": \"%s\", \"tensor\": %llu, \"tensor_peak\": %llu, \"tensor_calls\": %llu,"
                " \"adapter\": %llu, \"adapter_peak\": %llu, \"other\": %llu, \"lost\": %llu, \"rss_anon\": %llu}\n",
                (int) getpid (), name, (unsigned long long) live[OWNER_TENSOR],
                (unsigned long long) peak[OWNER_TENSOR], (unsigned long long) calls[OWNER_TENSOR],
                (unsigned long long) live[OWNER_ADAPTER], (unsigned long long) peak[OWNER_ADAPTER],
                (unsigned long long) live[OWNER_OTHER], (unsigned long long) n_lost, (unsigned long long) rss);
  pthread_mutex_unlock (&lock);
  fd = open (path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
  if (fd < 0)
    return;
  if (syscall (SYS_write, fd, line, (size_t) n) < 0)
    n = 0;
  close (fd);
}

EXPORT ssize_t
write (int fd, const void *text, size_t bytes)
{
  const char *prefix = getenv ("COUNT_ALLOC_MARK");

  prefix = prefix ? prefix : "step ";
  if (fd == STDOUT_FILENO && bytes >= strlen (prefix) && memcmp (text, prefix, strlen (prefix)) == 0)
    {
      int saved = errno;
      mark (text, bytes > 63 ? 63 : (int) bytes);
      errno = saved;
    }
  return syscall (SYS_write, fd, text, bytes);
}

__attribute__ ((destructor)) static void
at_end (void)
{
  if (calls[OWNER_TENSOR] || calls[OWNER_ADAPTER])
    mark ("exit", 4);
}
