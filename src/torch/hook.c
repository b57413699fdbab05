/* SPDX-License-Identifier: Apache-2.0 */
/* Hook: PyTorch's CPU allocator calls posix_memalign and free through slots of libc10's own
 * relocation tables. Repointing those few slots brings every tensor's memory here, at any time, and
 * touches nobody else's malloc. */
#include "torch/host.h"

#include <dlfcn.h>
#include <elf.h>
#include <errno.h>
#include <link.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#if __SIZEOF_POINTER__ != 8
#error "64-bit ELF only"
#endif

#if defined(__x86_64__)
#define IS_SLOT(type) ((type) == R_X86_64_JUMP_SLOT || (type) == R_X86_64_GLOB_DAT || (type) == R_X86_64_64)
#elif defined(__aarch64__)
#define IS_SLOT(type) \
  ((type) == R_AARCH64_JUMP_SLOT || (type) == R_AARCH64_GLOB_DAT || (type) == R_AARCH64_ABS64)
#else
#error "this processor's relocation types are not known here"
#endif

static int (*real_memalign) (void **, size_t, size_t);
static void (*real_free) (void *);

int
coop_real_memalign (void **out, size_t align, size_t size)
{
  return real_memalign (out, align, size);
}

/* What was prepared for this very allocation (see CoopThread.next). */
static bool
take_prepared (size_t size, void **out)
{
  CoopThread *t = &coop_thread;

  if (t->next == NULL || t->next_bytes != size)
    return false;
  *out = t->next;
  t->next = NULL;
  if (t->next_ref)
    {
      coop_lock ();
      coop_engine_ref (coop.engine, coop_arena_offset (coop.arena, *out));
      coop_unlock ();
    }
  return true;
}

static int
hook_memalign (void **out, size_t align, size_t size)
{
  uint64_t addr;
  int run = atomic_load_explicit (&coop.run, memory_order_relaxed);

  if (run == COOP_RUN_OFF || run == COOP_RUN_CHILD || coop_thread.bypass > 0 || size == 0)
    return real_memalign (out, align, size);
  if (take_prepared (size, out))
    return 0;
  if (run == COOP_RUN_WAITING && !coop_pool_begin ())
    return real_memalign (out, align, size);
  if (align <= 512)
    {
      switch (coop_pool_alloc (size, &addr))
        {
        case COOP_OK:
          *out = coop_arena_addr (coop.arena, addr);
          return 0;
        case COOP_NO_MEMORY:
          return ENOMEM;
        case COOP_EVICT:
          break;
        }
    }
  atomic_fetch_add (&coop.unmanaged_allocs, 1);
  atomic_fetch_add (&coop.unmanaged_bytes, size);
  return real_memalign (out, align, size);
}

/* A block that the running operator writes is given back only when it has ended: its storage may be
 * growing (resize_, out=), and the engine still knows it as an input. */
static bool
defer_free (CoopThread *t, void *p, uint64_t addr)
{
  const CoopCall *call = t->running;

  for (unsigned i = 0; call != NULL && i < call->n_inputs; i++)
    if ((call->inputs[i].use & (COOP_USE_WRITE | COOP_USE_SCRATCH))
        && call->inputs[i].tensor->addr == addr)
      {
        if (t->n_deferred == t->deferred_capacity)
          {
            unsigned capacity = t->deferred_capacity ? 2 * t->deferred_capacity : 8;
            void **more = realloc (t->deferred, capacity * sizeof *more);
            if (more == NULL)
              return true; /* kept for ever rather than freed too early */
            t->deferred = more;
            t->deferred_capacity = capacity;
          }
        t->deferred[t->n_deferred++] = p;
        return true;
      }
  return false;
}

static void
free_in_pool (void *p, uint64_t addr)
{
  CoopThread *t = &coop_thread;

  if (t->swallow == p)
    {
      t->swallow = NULL;
      return;
    }
  if (addr == UINT64_MAX)
    { /* a shadow: the user lets go of an evicted storage */
      coop_lock ();
      CoopHost *host = coop_shadow_give (coop.shadow, p);
      if (host != NULL)
        {
          host->shadow = NULL;
          coop_engine_release (coop.engine, host->tensor);
        }
      coop_unlock ();
      return;
    }
  if (defer_free (t, p, addr))
    return;
  coop_lock ();
  coop_engine_free (coop.engine, addr);
  coop_unlock ();
}

/* Of a run that was stopped: its pool is nobody's any more. */
static bool
in_old_arena (const void *p)
{
  for (unsigned i = 0; i < sizeof coop.old / sizeof *coop.old && coop.old[i] != NULL; i++)
    if (coop_arena_offset (coop.old[i], p) != UINT64_MAX)
      return true;
  return false;
}

static void
hook_free (void *p)
{
  void *base;

  if (p == NULL || coop.arena == NULL)
    {
      real_free (p);
      return;
    }
  uint64_t addr = coop_arena_offset (coop.arena, p);
  if (addr == UINT64_MAX && coop_shadow_owner (coop.shadow, p, &base) == NULL)
    {
      if (!in_old_arena (p))
        real_free (p);
    }
  else if (atomic_load_explicit (&coop.run, memory_order_relaxed) != COOP_RUN_CHILD)
    free_in_pool (p, addr);
}

/* ---- finding the slots ---- */

typedef struct {
  unsigned memalign, free, failed;
} Slots;

static bool
set_slot (void **slot, void *value)
{
  uintptr_t page = (uintptr_t) sysconf (_SC_PAGESIZE);
  void *begin = (void *) ((uintptr_t) slot & ~(page - 1));

  if (mprotect (begin, page, PROT_READ | PROT_WRITE) != 0)
    return false;
  __atomic_store_n (slot, value, __ATOMIC_RELEASE);
  return true; /* left writable: the page also holds slots that the lazy binder still fills */
}

static void
scan_table (const struct dl_phdr_info *info, const ElfW (Rela) *rela, size_t n,
            const ElfW (Sym) *symbols, const char *names, Slots *slots)
{
  for (size_t i = 0; i < n; i++)
    {
      if (!IS_SLOT (ELF64_R_TYPE (rela[i].r_info)) || ELF64_R_SYM (rela[i].r_info) == 0)
        continue;
      const char *name = names + symbols[ELF64_R_SYM (rela[i].r_info)].st_name;
      bool memalign = strcmp (name, "posix_memalign") == 0;
      if (!memalign && strcmp (name, "free") != 0)
        continue;
      void **slot = (void **) (info->dlpi_addr + rela[i].r_offset);
      if (!set_slot (slot, memalign ? (void *) hook_memalign : (void *) hook_free))
        slots->failed++;
      else if (memalign)
        slots->memalign++;
      else
        slots->free++;
    }
}

static int
scan_library (struct dl_phdr_info *info, size_t size, void *user)
{
  const char *base = strrchr (info->dlpi_name, '/');
  const ElfW (Dyn) *dyn = NULL;
  const ElfW (Rela) *rela = NULL, *plt = NULL;
  const ElfW (Sym) *symbols = NULL;
  const char *names = NULL;
  size_t rela_bytes = 0, plt_bytes = 0;

  if (strncmp (base ? base + 1 : info->dlpi_name, "libc10.so", 9) != 0)
    return 0;
  for (int i = 0; i < info->dlpi_phnum; i++)
    if (info->dlpi_phdr[i].p_type == PT_DYNAMIC)
      dyn = (const void *) (info->dlpi_addr + info->dlpi_phdr[i].p_vaddr);
  for (; dyn != NULL && dyn->d_tag != DT_NULL; dyn++)
    switch (dyn->d_tag)
      { /* glibc has relocated these to addresses */
      case DT_RELA: rela = (const void *) dyn->d_un.d_ptr; break;
      case DT_RELASZ: rela_bytes = dyn->d_un.d_val; break;
      case DT_JMPREL: plt = (const void *) dyn->d_un.d_ptr; break;
      case DT_PLTRELSZ: plt_bytes = dyn->d_un.d_val; break;
      case DT_SYMTAB: symbols = (const void *) dyn->d_un.d_ptr; break;
      case DT_STRTAB: names = (const void *) dyn->d_un.d_ptr; break;
      default: break;
      }
  if (symbols == NULL || names == NULL)
    return 0;
  scan_table (info, rela, rela ? rela_bytes / sizeof *rela : 0, symbols, names, user);
  scan_table (info, plt, plt ? plt_bytes / sizeof *plt : 0, symbols, names, user);
  return 0;
}

bool
coop_hook_install (void)
{
  Slots slots = { 0, 0, 0 };
  static bool installed;

  if (installed)
    return true;
  real_memalign = (int (*) (void **, size_t, size_t)) dlsym (RTLD_DEFAULT, "posix_memalign");
  real_free = (void (*) (void *)) dlsym (RTLD_DEFAULT, "free");
  if (real_memalign == NULL || real_free == NULL)
    {
      errno = ENOSYS;
      return false;
    }
  dl_iterate_phdr (scan_library, &slots);
  installed = slots.memalign > 0 && slots.free > 0 && slots.failed == 0;
  if (!installed)
    errno = slots.failed ? EACCES : ENOENT;
  return installed;
}
