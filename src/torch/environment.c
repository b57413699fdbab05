/* SPDX-License-Identifier: Apache-2.0 */
/* Environment: the switches outside an operator's arguments that its result depends on: threads,
 * flush-denormal, mkldnn, determinism, precision, default dtype. Most change through setters that
 * _adapter.py wraps, which count up coop.environment; the first two are read each time. */
#include "torch/host.h"

#include <dlfcn.h>
#include <link.h>
#include <stdlib.h>
#include <string.h>

#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

struct CoopEnvironment {
  PyObject *switches;   /* what get() gave, compared by value */
  int threads;
  unsigned denormals;
  CoopEnvironment *next;
};

static struct {
  PyObject *get, *set;
  int (*threads) (void);
  CoopEnvironment *all, *last;
  uint64_t seen;
} env;

static unsigned
denormals (void)
{
#if defined(__x86_64__)
  return _mm_getcsr () & 0x8040;
#elif defined(__aarch64__)
  uint64_t fpcr;
  __asm__ volatile ("mrs %0, fpcr" : "=r"(fpcr));
  return (unsigned) (fpcr & (1u << 24));
#endif
}

static int
find_torch_cpu (struct dl_phdr_info *info, size_t size, void *user)
{
  const char *base = strrchr (info->dlpi_name, '/');

  if (base == NULL || strncmp (base, "/libtorch_cpu.so", 16) != 0)
    return 0;
  *(const char **) user = info->dlpi_name;
  return 1;
}

bool
coop_environment_setup (PyObject *get, PyObject *set)
{
  const char *path = NULL;

  if (get == NULL || set == NULL)
    return false;
  Py_INCREF (get);
  Py_INCREF (set);
  env.get = get;
  env.set = set;
  env.seen = UINT64_MAX;
  dl_iterate_phdr (find_torch_cpu, &path);
  void *library = path ? dlopen (path, RTLD_LAZY | RTLD_NOLOAD) : NULL;
  if (library != NULL) /* dlsym looks in the libraries that it needs, too: its own OpenMP */
    env.threads = (int (*) (void)) dlsym (library, "omp_get_max_threads");
  return true;
}

static const CoopEnvironment *
intern (PyObject *switches, int threads, unsigned flush)
{
  for (CoopEnvironment *e = env.all; e != NULL; e = e->next)
    if (e->threads == threads && e->denormals == flush
        && (switches == NULL ? e->switches == env.last->switches
                             : PyObject_RichCompareBool (e->switches, switches, Py_EQ) == 1))
      return e;
  CoopEnvironment *e = calloc (1, sizeof *e);
  if (e == NULL)
    {
      PyErr_NoMemory ();
      return NULL;
    }
  e->switches = switches ? switches : env.last->switches;
  Py_INCREF (e->switches);
  e->threads = threads;
  e->denormals = flush;
  e->next = env.all;
  env.all = e;
  return e;
}

const CoopEnvironment *
coop_environment_now (void)
{
  uint64_t generation = atomic_load_explicit (&coop.environment, memory_order_relaxed);
  int threads = env.threads ? env.threads () : 0;
  unsigned flush = denormals ();
  const CoopEnvironment *e;

  if (generation == env.seen)
    {
      if (env.last->threads == threads && env.last->denormals == flush)
        return env.last;
      e = intern (NULL, threads, flush);
    }
  else
    {
      PyObject *switches = PyObject_CallFunctionObjArgs (env.get, NULL);
      if (switches == NULL)
        return NULL;
      e = intern (switches, threads, flush);
      Py_DECREF (switches);
    }
  if (e != NULL)
    {
      env.last = (CoopEnvironment *) e;
      env.seen = generation;
    }
  return e;
}

bool
coop_environment_set (const CoopEnvironment *e)
{
  PyObject *r = PyObject_CallFunction (env.set, "OiO", e->switches, e->threads,
                                       e->denormals ? Py_True : Py_False);

  Py_XDECREF (r);
  return r != NULL;
}
