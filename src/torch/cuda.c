/* SPDX-License-Identifier: Apache-2.0 */
/* CUDA: the pool's memory on a GPU, the three functions behind PyTorch's pluggable allocator, and
 * copies inside the pool. See cuda.h. */
#include "torch/cuda.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SCRATCH ((uint64_t) 8 << 20)  /* for moves by less than their length; outside the budget */
#define SPARE ((uint64_t) 512 << 20)  /* left to cuBLAS, cuDNN and the context where there is no limit */

CoopCuda coop_cuda_driver;
CoopCudaDevice coop_cuda_device;

static struct {
  int ordinal;
  bool opened;
  PyObject *current_stream, *device_number, *generator;
  CoopCudaArena *arena;
  CoopCuPtr scratch;
  _Atomic bool told;
} state;

#define FN (&coop_cuda_driver.fn)

bool
coop_cuda_setup (int ordinal, PyObject *current_stream)
{
  if (state.current_stream != NULL)
    return true;
  if (!coop_cuda_load (&coop_cuda_driver))
    return PyErr_Format (PyExc_RuntimeError, "%s", coop_cuda_driver.why) != NULL;
  if (ordinal < 0 || ordinal >= coop_cuda_driver.n_devices)
    return PyErr_Format (PyExc_RuntimeError, "there is no device cuda:%d; the driver knows %d", ordinal,
                         coop_cuda_driver.n_devices) != NULL;
  state.ordinal = ordinal;
  state.device_number = PyLong_FromLong (ordinal);
  state.current_stream = current_stream;
  Py_INCREF (current_stream);
  return true;
}

CoopArena *
coop_cuda_arena (uint64_t budget, uint64_t *capacity, const char **why)
{
  uint64_t free = 0, total = 0;
  CoopCuResult rc = state.opened ? 0 : coop_cuda_device_open (&coop_cuda_device, &coop_cuda_driver,
                                                              state.ordinal);

  state.opened |= rc == 0;
  if (rc == 0)
    rc = coop_cuda_device_info (&coop_cuda_device, &free, &total);
  uint64_t bytes = budget ? budget : free > 2 * SPARE ? free - SPARE : free / 2;
  bytes = bytes / 512 * 512;
  *capacity = coop_cuda_device.has_pages && total > bytes ? total / 512 * 512 : bytes;
  if (!budget)
    *capacity = bytes; /* nothing could be added */
  if (rc == 0)
    rc = coop_cuda_arena_new (&coop_cuda_device, *capacity, bytes, &state.arena);
  *why = rc == COOP_CU_OUT_OF_MEMORY ? "the GPU has not so much free memory"
                                     : coop_cuda_error (&coop_cuda_driver, rc);
  if (rc != 0)
    return NULL;
  coop_cuda_streams_begin (&coop_cuda_device, *capacity);
  return coop_arena_over ((void *) (uintptr_t) coop_cuda_arena_base (state.arena), *capacity);
}

/* ---- what PyTorch calls ------------------------------------------------------------------------- */

/* Memory of other GPUs, and before and after a run: the driver's own, counted. */
static void *
alloc_outside (size_t bytes, int device, const char **why)
{
  CoopCudaDevice other = coop_cuda_device;
  CoopCuPtr at = 0;
  CoopCuResult rc = 0;

  if (device != state.ordinal || !state.opened)
    rc = coop_cuda_device_open (&other, &coop_cuda_driver, device);
  rc = rc ? rc : coop_cuda_device_enter (&other);
  rc = rc ? rc : FN->mem_alloc (&at, bytes);
  if (rc != 0)
    {
      *why = coop_cuda_error (&coop_cuda_driver, rc);
      return NULL;
    }
  atomic_fetch_add (&coop.unmanaged_allocs, 1);
  atomic_fetch_add (&coop.unmanaged_bytes, bytes);
  if (device != state.ordinal && !atomic_exchange (&state.told, true))
    fprintf (stderr, "coopscope: cuda:%d is not managed; one process manages one GPU (cuda:%d)\n",
             device, state.ordinal);
  return (void *) (uintptr_t) at;
}

/* The budget may have grown since; a graph that is being captured keeps addresses for ever. */
static const char *
settle (uint64_t addr, size_t bytes, void *stream)
{
  if (addr + bytes > coop_cuda_arena_committed (state.arena)
      && coop_cuda_arena_commit (state.arena, addr + bytes) != 0)
    return "the GPU has not as much free memory as the budget has grown to";
  coop_cuda_will_write (addr, bytes, stream);
  return NULL;
}

static const char *
refusal (void)
{
  static _Thread_local char text[160];
  char asked[32];

  coop_size_format ((uint64_t) coop.policy.v[COOP_PARAM_BUDGET].i, asked, sizeof asked);
  snprintf (text, sizeof text, "the budget of %s is used up and nothing more can be evicted", asked);
  return text;
}

void *
coop_cuda_alloc (size_t bytes, int device, void *stream, const char **why)
{
  int run = atomic_load_explicit (&coop.run, memory_order_relaxed);
  uint64_t addr;
  void *p;

  *why = NULL;
  if (bytes == 0)
    return NULL;
  if (device != state.ordinal || run == COOP_RUN_OFF || run == COOP_RUN_CHILD)
    return alloc_outside (bytes, device, why);
  if (coop_hook_prepared (bytes, &p))
    return p;
  if (run == COOP_RUN_WAITING && !coop_pool_begin ())
    return alloc_outside (bytes, device, why);
  CoopStatus status = coop_pool_alloc (bytes, &addr);
  if (status == COOP_EVICT)
    return alloc_outside (bytes, device, why);
  *why = status == COOP_NO_MEMORY ? refusal () : settle (addr, bytes, stream);
  if (*why == NULL)
    return coop_arena_addr (coop.arena, addr);
  if (status == COOP_OK)
    {
      coop_lock ();
      coop_engine_free (coop.engine, addr);
      coop_unlock ();
    }
  return NULL;
}

void
coop_cuda_free (void *p, size_t bytes, int device, void *stream)
{
  CoopCudaDevice other = coop_cuda_device;

  if (p == NULL || coop_hook_give (p) || atomic_load (&coop.run) == COOP_RUN_CHILD)
    return;
  if (device == state.ordinal && state.opened)
    coop_cuda_device_enter (&coop_cuda_device);
  else if (coop_cuda_device_open (&other, &coop_cuda_driver, device) != 0)
    return;
  FN->mem_free ((CoopCuPtr) (uintptr_t) p);
}

void
coop_cuda_record_stream (void *p, void *stream)
{
  uint64_t addr = coop.arena ? coop_arena_offset (coop.arena, p) : UINT64_MAX;

  if (addr == UINT64_MAX || !coop_on ())
    return; /* evicted: nobody uses its bytes */
  coop_lock ();
  const CoopTensor *t = coop_engine_tensor_at (coop.engine, addr);
  uint64_t bytes = t ? (t->requested + 511) / 512 * 512 : 512;
  coop_unlock ();
  coop_cuda_uses (addr, bytes, stream);
}

void *
coop_cuda_current_stream (void)
{
  PyObject *number = PyObject_CallFunctionObjArgs (state.current_stream, state.device_number, NULL);
  unsigned long long stream = number ? PyLong_AsUnsignedLongLong (number) : 0;

  Py_XDECREF (number);
  if (PyErr_Occurred ())
    PyErr_Clear ();
  return (void *) (uintptr_t) stream;
}

/* ---- bytes -------------------------------------------------------------------------------------- */

/* By less than its length, through a buffer: each part has left before the next comes over it. */
static CoopCuResult
slide (CoopCuPtr to, CoopCuPtr from, uint64_t bytes, CoopCuStream stream)
{
  CoopCuResult rc = state.scratch ? 0 : FN->mem_alloc (&state.scratch, SCRATCH);

  for (uint64_t done = 0, n; rc == 0 && done < bytes; done += n)
    {
      n = bytes - done < SCRATCH ? bytes - done : SCRATCH;
      uint64_t at = to < from ? done : bytes - done - n;
      rc = FN->copy_dtod (state.scratch, from + at, n, stream);
      rc = rc ? rc : FN->copy_dtod (to + at, state.scratch, n, stream);
    }
  return rc;
}

bool
coop_cuda_move (void *to, const void *from, uint64_t bytes)
{
  CoopCuPtr a = (CoopCuPtr) (uintptr_t) to, b = (CoopCuPtr) (uintptr_t) from;
  void *stream = coop_cuda_current_stream ();
  uint64_t at = coop_arena_offset (coop.arena, to), of = coop_arena_offset (coop.arena, from);

  if (coop_cuda_device_enter (&coop_cuda_device) != 0)
    return false;
  if (of != UINT64_MAX)
    coop_cuda_will_read (of, bytes, stream);
  if (at != UINT64_MAX)
    coop_cuda_will_write (at, bytes, stream);
  if (a < b + bytes && b < a + bytes)
    return slide (a, b, bytes, stream) == 0;
  return FN->copy_dtod (a, b, bytes, stream) == 0;
}

uint64_t
coop_cuda_hash (const void *from, uint64_t bytes)
{
  void *copy = malloc (bytes + 1), *stream = coop_cuda_current_stream ();
  CoopCuResult rc = copy ? coop_cuda_device_enter (&coop_cuda_device) : COOP_CU_OUT_OF_MEMORY;
  uint64_t hash = 0;

  if (coop_arena_offset (coop.arena, from) != UINT64_MAX)
    coop_cuda_will_read (coop_arena_offset (coop.arena, from), bytes, stream);
  if (rc == 0)
    rc = FN->copy_dtoh (copy, (CoopCuPtr) (uintptr_t) from, bytes, stream);
  if (rc == 0 && FN->stream_synchronize (stream) == 0)
    hash = coop_hash (copy, bytes);
  free (copy);
  return hash;
}

void
coop_cuda_will_read_inputs (const CoopCall *call)
{
  if (!coop_cuda_streams_matter ())
    return;
  void *stream = coop_cuda_current_stream ();
  for (unsigned i = 0; i < call->n_inputs; i++)
    if (call->inputs[i].tensor->addr != COOP_NO_ADDR)
      coop_cuda_will_read (call->inputs[i].tensor->addr, call->inputs[i].tensor->requested, stream);
}

void
coop_cuda_will_read_replay (const CoopReplay *step)
{
  if (!coop_cuda_streams_matter ())
    return;
  void *stream = coop_cuda_current_stream ();
  for (unsigned i = 0; i < step->n_inputs; i++)
    if (step->inputs[i]->addr != COOP_NO_ADDR)
      coop_cuda_will_read (step->inputs[i]->addr, step->inputs[i]->requested, stream);
}

/* ---- for Python --------------------------------------------------------------------------------- */

PyObject *
coop_py_cuda_setup (PyObject *self, PyObject *args)
{
  PyObject *current_stream;
  int ordinal;

  if (!PyArg_ParseTuple (args, "iO", &ordinal, &current_stream) || !coop_cuda_setup (ordinal, current_stream))
    return NULL;
  coop_layout_manage_none (); /* until CUDA is up: another thread may run operators meanwhile */
  coop.cuda = true;
  Py_RETURN_NONE;
}

PyObject *
coop_py_cuda_hooks (PyObject *self, PyObject *args)
{
  return Py_BuildValue ("(KKK)", (unsigned long long) (uintptr_t) coop_cuda_alloc,
                        (unsigned long long) (uintptr_t) coop_cuda_free,
                        (unsigned long long) (uintptr_t) coop_cuda_record_stream);
}

PyObject *
coop_cuda_generator (void)
{
  return state.generator;
}

/* (tensor, storage._cdata, data pointer, generator): from now on tensors of the GPU are the managed ones. */
PyObject *
coop_py_cuda_sample (PyObject *self, PyObject *args)
{
  unsigned long long storage, data;
  PyObject *tensor, *generator;

  if (!PyArg_ParseTuple (args, "OKKO", &tensor, &storage, &data, &generator))
    return NULL;
  if (!coop_layout_manage (tensor, (void *) (uintptr_t) storage, (void *) (uintptr_t) data))
    return NULL;
  Py_INCREF (generator);
  state.generator = generator;
  coop_cuda_cost_begin ();
  Py_RETURN_NONE;
}

PyObject *
coop_py_cuda_info (PyObject *self, PyObject *args)
{
  uint64_t free = 0, total = 0, committed = state.arena ? coop_cuda_arena_committed (state.arena) : 0;

  if (state.opened)
    coop_cuda_device_info (&coop_cuda_device, &free, &total);
  return Py_BuildValue ("{sKsKsKsKss}", "free", (unsigned long long) free, "total",
                        (unsigned long long) total, "committed", (unsigned long long) committed,
                        "outside", (unsigned long long) (total - free - committed), "name",
                        state.opened ? coop_cuda_device.name : "");
}
