/* SPDX-License-Identifier: Apache-2.0 */
/* Fail-alloc: lets one library run out of memory at a chosen call, and counts what it holds.
 *
 * fail_install (LIBRARY) stands between that library and malloc, from then on. What it had before is not counted,
 * and its free of such a block is an ordinary one. Loaded with ctypes by tests/torch/rules_faults.py. */
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "torch/imports.h"

#define API __attribute__ ((visibility ("default")))

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static long calls, fail_call;        /* fail_call: of these, the one that gets NULL; 0: none */
static uintptr_t spared_from, spared_to; /* callers that never fail, in the library's own addresses */
static void **held;                  /* open addressing, NULL = empty */
static size_t held_size, n_held;

static size_t
place_of (const void *p)
{
  size_t i = ((uintptr_t) p >> 4) * 0x9e3779b97f4a7c15ull & (held_size - 1);

  while (held[i] != NULL && held[i] != p)
    i = (i + 1) & (held_size - 1);
  return i;
}

static void
add (void *p)
{
  if (p == NULL)
    return;
  if (2 * n_held >= held_size)
    {
      void **old = held;
      size_t n = held_size;
      held_size = n ? 2 * n : 1 << 16;
      held = calloc (held_size, sizeof *held);
      if (held == NULL)
        abort ();
      for (size_t i = 0; i < n; i++)
        if (old[i] != NULL)
          held[place_of (old[i])] = old[i];
      free (old);
    }
  held[place_of (p)] = p;
  n_held++;
}

/* Those behind it in its run move up. */
static void
drop (const void *p)
{
  size_t hole, i;

  if (p == NULL || held_size == 0 || held[hole = place_of (p)] == NULL)
    return;
  n_held--;
  held[hole] = NULL;
  for (i = (hole + 1) & (held_size - 1); held[i] != NULL; i = (i + 1) & (held_size - 1))
    {
      void *q = held[i];
      held[i] = NULL;
      held[place_of (q)] = q;
    }
}

static bool
is_spared (void *caller)
{
  Dl_info info;

  return spared_to > 0 && dladdr (caller, &info) != 0
         && (uintptr_t) caller - (uintptr_t) info.dli_fbase >= spared_from
         && (uintptr_t) caller - (uintptr_t) info.dli_fbase < spared_to;
}

/* Under the lock. */
static bool
fails (void *caller)
{
  bool now = !is_spared (caller) && ++calls == fail_call;

  if (now)
    errno = ENOMEM;
  return now;
}

static void *
my_malloc (size_t n)
{
  pthread_mutex_lock (&lock);
  void *p = fails (__builtin_return_address (0)) ? NULL : malloc (n);
  add (p);
  pthread_mutex_unlock (&lock);
  return p;
}

static void *
my_calloc (size_t n, size_t size)
{
  pthread_mutex_lock (&lock);
  void *p = fails (__builtin_return_address (0)) ? NULL : calloc (n, size);
  add (p);
  pthread_mutex_unlock (&lock);
  return p;
}

static void *
my_aligned_alloc (size_t align, size_t n)
{
  pthread_mutex_lock (&lock);
  void *p = fails (__builtin_return_address (0)) ? NULL : aligned_alloc (align, n);
  add (p);
  pthread_mutex_unlock (&lock);
  return p;
}

static void *
my_realloc (void *was, size_t n)
{
  pthread_mutex_lock (&lock);
  void *p = NULL;
  if (!fails (__builtin_return_address (0)))
    {
      drop (was);
      p = realloc (was, n);
      if (p == NULL)
        abort ();
      add (p);
    }
  pthread_mutex_unlock (&lock);
  return p;
}

static char *
my_strdup (const char *text)
{
  pthread_mutex_lock (&lock);
  char *p = fails (__builtin_return_address (0)) ? NULL : strdup (text);
  add (p);
  pthread_mutex_unlock (&lock);
  return p;
}

static void
my_free (void *p)
{
  pthread_mutex_lock (&lock);
  drop (p);
  pthread_mutex_unlock (&lock);
  free (p);
}

/* Calls from these addresses of the library are counted as held, but never fail. */
API void fail_spare (unsigned long from, unsigned long to);
void
fail_spare (unsigned long from, unsigned long to)
{
  spared_from = from;
  spared_to = to;
}

/* How many of its calls came to be ours. */
API int fail_install (const char *library);
int
fail_install (const char *library)
{
  CoopImport imports[] = { { "malloc", (void *) my_malloc, 0 }, { "calloc", (void *) my_calloc, 0 },
                           { "realloc", (void *) my_realloc, 0 }, { "strdup", (void *) my_strdup, 0 },
                           { "aligned_alloc", (void *) my_aligned_alloc, 0 },
                           { "free", (void *) my_free, 0 } };
  unsigned found = 0;

  if (coop_imports_set (library, imports, 6) != 0)
    return 0;
  for (unsigned i = 0; i < 6; i++)
    found += imports[i].found;
  return (int) found;
}

/* The k-th call from now on fails; 0: none. Returns how many calls there have been since the last time. */
API long fail_at (long k);
long
fail_at (long k)
{
  pthread_mutex_lock (&lock);
  long n = calls;
  calls = 0;
  fail_call = k;
  pthread_mutex_unlock (&lock);
  return n;
}

/* Blocks that the library holds. */
API long fail_held (void);
long
fail_held (void)
{
  pthread_mutex_lock (&lock);
  long n = (long) n_held;
  pthread_mutex_unlock (&lock);
  return n;
}
