/* SPDX-License-Identifier: Apache-2.0 */
/* Hook: PyTorch's CPU allocator calls posix_memalign and free through libc10's own imports. Repointing
 * those few brings every tensor's memory here, at any time, and touches nobody else's malloc. */
#include "torch/host.h"
#include "torch/imports.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdlib.h>

static int (*real_memalign) (void **, size_t, size_t);
static void (*real_free) (void *);

int
coop_real_memalign (void **out, size_t align, size_t size)
{
  return real_memalign (out, align, size);
}

bool
coop_hook_prepared (size_t size, void **out)
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
  if (coop_hook_prepared (size, out))
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

bool
coop_hook_give (void *p)
{
  void *base;

  if (p == NULL || coop.arena == NULL)
    return false;
  uint64_t addr = coop_arena_offset (coop.arena, p);
  if (addr == UINT64_MAX && coop_shadow_owner (coop.shadow, p, &base) == NULL)
    return in_old_arena (p);
  if (atomic_load_explicit (&coop.run, memory_order_relaxed) != COOP_RUN_CHILD)
    free_in_pool (p, addr);
  return true;
}

static void
hook_free (void *p)
{
  if (!coop_hook_give (p))
    real_free (p);
}

bool
coop_hook_install (void)
{
  CoopImport imports[] = { { "posix_memalign", (void *) hook_memalign, 0 }, { "free", (void *) hook_free, 0 } };
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
  int error = coop_imports_set ("libc10.so", imports, 2);
  installed = error == 0 && imports[0].found > 0 && imports[1].found > 0;
  if (!installed)
    errno = error ? error : ENOENT;
  return installed;
}
