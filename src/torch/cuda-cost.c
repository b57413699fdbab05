/* SPDX-License-Identifier: Apache-2.0 */
/* Cost of an operator on a GPU. The host's clock sees the launch alone. A pair of events around an
 * operator's kernels, read when they have passed, gives its time without a wait; the gaps between
 * launches are in it. Each operator at each size is timed a few times and the least is kept, so that
 * a training loop pays for it in its first steps. Until the first time is known the cost is estimated
 * from the bytes that go in and out. GIL.
 *
 * With COOPSCOPE_CUPTI=1 the kernels' own times, which CUPTI has, take the place of the events'. They
 * come in late: a call's are counted when CALLS more calls have been made. */
#include "torch/cuda.h"

#include "device/cuda-cupti.h"

#include <stdio.h>
#include <stdlib.h>

#define TABLE 4096u            /* power of two; one entry replaces another where they collide */
#define TIMES 4u
#define PENDING 64u
#define CALLS 2048u
#define FLUSH_CALLS 512u
#define LAUNCH_NS 4000u
#define BYTES_PER_NS 1000u     /* about what a current GPU's memory gives: only ratios matter */
#define EXPENSIVE 8u           /* arithmetic beside the traffic of convolutions and products */

typedef struct {
  uint64_t key;
  uint64_t ns;
  unsigned n;                  /* times begun */
} Entry;

/* A call under CUPTI. Its kernels are added from CUPTI's thread. */
typedef struct {
  _Atomic uint64_t id, ns;
  uint64_t key;
} Call;

struct CoopCudaTimer {
  uint64_t key;
  bool cupti;
  CoopCuEvent begin, end;
  bool busy;
};

static struct {
  Entry entry[TABLE];
  CoopCudaTimer timer[PENDING];
  unsigned next;
  CoopCuptiBook *book;         /* NULL: events */
  Call call[CALLS];
  uint64_t n_calls;
} cost;

static CoopCudaTimer under_cupti = { .cupti = true };

static uint64_t
key_of (const void *op, uint64_t bytes)
{
  uint64_t k = ((uint64_t) (uintptr_t) op ^ bytes * 0x9e3779b97f4a7c15ull) * 0xff51afd7ed558ccdull;
  return (k ^ k >> 33) | 1;
}

static Entry *
entry_of (uint64_t key)
{
  return &cost.entry[(key >> 8) & (TABLE - 1)];
}

/* ---- CUPTI --------------------------------------------------------------------------------------- */

static void
on_kernel (void *user, uint64_t external, uint64_t ns)
{
  Call *c = &cost.call[external % CALLS];

  if (atomic_load (&c->id) == external)
    atomic_fetch_add (&c->ns, ns);
}

void
coop_cuda_cost_begin (void)
{
  const char *wanted = getenv ("COOPSCOPE_CUPTI");
  char why[160], text[256];

  if (wanted == NULL || *wanted != '1' || cost.book != NULL)
    return;
  cost.book = coop_cupti_book_new (on_kernel, NULL);
  if (cost.book != NULL && coop_cupti_start (cost.book, why))
    return;
  coop_cupti_book_free (cost.book);
  cost.book = NULL;
  snprintf (text, sizeof text, "kernels are timed by events: %s", why);
  coop_warn (text, 0, 0);
}

PyObject *
coop_py_cuda_kernels (PyObject *self, PyObject *args)
{
  static const CoopCuptiTotals none;
  coop_cupti_flush ();
  const CoopCuptiTotals *t = cost.book ? coop_cupti_book_totals (cost.book) : &none;
#define U(name) #name, (unsigned long long) t->name
  return Py_BuildValue ("{sisKsKsKsKsKsKsK}", "cupti", cost.book != NULL, U (kernels), U (kernel_ns),
                        U (copies), U (copy_ns), U (overhead_ns), U (dropped), U (lost));
#undef U
}

/* Opens a call; what the one before in its slot took is known by now. */
static CoopCudaTimer *
begin_call (uint64_t key)
{
  uint64_t id = ++cost.n_calls;
  Call *c = &cost.call[id % CALLS];
  uint64_t ns = atomic_load (&c->ns);
  Entry *e = entry_of (c->key);

  if (ns > 0 && e->key == c->key)
    e->ns = ns;
  atomic_store (&c->id, 0);
  atomic_store (&c->ns, 0);
  c->key = key;
  atomic_store (&c->id, id);
  coop_cupti_push (id);
  if (id % FLUSH_CALLS == 0)
    coop_cupti_flush ();
  return &under_cupti;
}

/* ---- events -------------------------------------------------------------------------------------- */

/* Takes in the times that have passed. */
static void
harvest (void)
{
  const CoopCudaTable *fn = &coop_cuda_driver.fn;

  for (unsigned i = 0; i < PENDING; i++)
    {
      CoopCudaTimer *t = &cost.timer[i];
      float ms = 0;
      if (!t->busy || fn->event_query (t->end) != 0)
        continue;
      t->busy = false;
      Entry *e = entry_of (t->key);
      if (e->key != t->key || fn->event_elapsed (&ms, t->begin, t->end) != 0)
        continue;
      uint64_t ns = (uint64_t) ((double) ms * 1e6);
      if (e->ns == 0 || ns < e->ns)
        e->ns = ns > 0 ? ns : 1;
    }
}

CoopCudaTimer *
coop_cuda_time_begin (const void *op, uint64_t bytes_in)
{
  const CoopCudaTable *fn = &coop_cuda_driver.fn;
  uint64_t key = key_of (op, bytes_in);
  Entry *e = entry_of (key);

  if (e->key != key)
    *e = (Entry){ .key = key };
  if (cost.book != NULL)
    return begin_call (key);
  CoopCudaTimer *t = &cost.timer[cost.next++ % PENDING];
  if (e->n >= TIMES || coop_cuda_device_enter (&coop_cuda_device) != 0)
    return NULL;
  harvest ();
  if (t->busy)
    return NULL;
  if ((t->begin == NULL && fn->event_create (&t->begin, COOP_CU_EVENT_DEFAULT) != 0)
      || (t->end == NULL && fn->event_create (&t->end, COOP_CU_EVENT_DEFAULT) != 0)
      || fn->event_record (t->begin, coop_cuda_current_stream ()) != 0)
    return NULL;
  e->n++;
  t->key = key;
  t->busy = true;
  return t;
}

void
coop_cuda_time_end (CoopCudaTimer *timer, bool failed)
{
  if (timer != NULL && timer->cupti)
    coop_cupti_pop ();
  else if (timer != NULL
      && (failed || coop_cuda_driver.fn.event_record (timer->end, coop_cuda_current_stream ()) != 0))
    timer->busy = false;
}

uint64_t
coop_cuda_cost (const void *op, uint64_t bytes_in, uint64_t bytes_out, bool expensive)
{
  uint64_t key = key_of (op, bytes_in);
  const Entry *e = entry_of (key);

  if (e->key == key && e->ns > 0)
    return e->ns;
  return LAUNCH_NS + (bytes_in + bytes_out) / BYTES_PER_NS * (expensive ? EXPENSIVE : 1);
}
