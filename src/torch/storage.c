/* SPDX-License-Identifier: Apache-2.0 */
/* Storage: evict, hand over, place, hold: all that is done to the user's storages.
 *
 * PyTorch knows storages as resizable memory. resize_(0) gives the memory back, resize_(n) asks for
 * some, and the hook is told beforehand what to answer: an address that cannot be touched and names
 * the tensor (evict), or a block whose bytes are there already (hand-over, move). Every alias sees
 * it, and version counters stay.
 */
#include "torch/cuda.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct {
  PyObject *of_tensor;      /* Tensor.untyped_storage, or _storage before 2.0 */
  PyObject *weak_ref, *open_weak, *free_weak, *resize, *cdata, *storage_type, *storage_new, *device, *zero;
} api;

static PyObject *
function (PyObject *functions, const char *name)
{
  PyObject *f = PyDict_GetItemString (functions, name);

  if (f == NULL)
    PyErr_Format (PyExc_KeyError, "adapter function %s", name);
  Py_XINCREF (f);
  return f;
}

bool
coop_storage_setup (PyObject *functions)
{
  api.of_tensor = function (functions, "storage_of");
  api.weak_ref = function (functions, "weak_ref");
  api.open_weak = function (functions, "open_weak");
  api.free_weak = function (functions, "free_weak");
  api.resize = function (functions, "resize");
  api.storage_type = function (functions, "storage_type");
  api.storage_new = function (functions, "storage_new");
  PyObject *device = function (functions, "device");
  api.device = device ? Py_BuildValue ("{sO}", "device", device) : NULL;
  api.cdata = PyUnicode_InternFromString ("_cdata");
  api.zero = PyLong_FromLong (0);
  return !PyErr_Occurred ();
}

static CoopHost *hosts;

CoopHost *
coop_host_new (CoopTensor *tensor)
{
  CoopHost *host = calloc (1, sizeof *host);

  if (host == NULL)
    return NULL;
  host->tensor = tensor;
  host->next = hosts;
  if (hosts != NULL)
    hosts->prev = host;
  hosts = host;
  return host;
}

CoopHost *
coop_host_first (void)
{
  return hosts;
}

static void
drop_weak (CoopHost *host)
{
  PyObject *r = host->weak ? PyObject_CallFunctionObjArgs (api.free_weak, host->weak, NULL) : NULL;

  Py_XDECREF (r);
  Py_CLEAR (host->weak);
}

void
coop_host_free (CoopHost *host)
{
  if (host == NULL)
    return;
  drop_weak (host);
  Py_CLEAR (host->held);
  Py_CLEAR (host->borrowed);
  if (host->copy_of != NULL)
    coop_foreign_forget (host);
  if (host->prev != NULL)
    host->prev->next = host->next;
  else
    hosts = host->next;
  if (host->next != NULL)
    host->next->prev = host->prev;
  free (host);
}

PyObject *
coop_storage_of (PyObject *tensor)
{
  return PyObject_CallFunctionObjArgs (api.of_tensor, tensor, NULL);
}

bool
coop_host_watch (CoopHost *host, PyObject *storage)
{
  host->weak = PyObject_CallFunctionObjArgs (api.weak_ref, storage, NULL);
  return host->weak != NULL;
}

PyObject *
coop_host_open (CoopHost *host)
{
  PyObject *storage = host->borrowed ? host->borrowed : host->held;

  if (storage != NULL)
    {
      Py_INCREF (storage);
      return storage;
    }
  if (host->weak == NULL)
    return NULL;
  storage = PyObject_CallFunctionObjArgs (api.open_weak, host->weak, NULL);
  if (storage == NULL)
    PyErr_Clear ();
  if (storage == Py_None)
    Py_CLEAR (storage);
  return storage;
}

void *
coop_storage_impl (PyObject *storage)
{
  PyObject *number = PyObject_GetAttr (storage, api.cdata);
  unsigned long long p = number ? PyLong_AsUnsignedLongLong (number) : 0;

  Py_XDECREF (number);
  if (PyErr_Occurred ())
    {
      PyErr_Clear ();
      return NULL;
    }
  return (void *) (uintptr_t) p;
}

PyObject *
coop_storage_new (uint64_t bytes)
{
  PyObject *args = Py_BuildValue ("(OK)", api.storage_type, (unsigned long long) bytes);
  PyObject *storage = args ? PyObject_Call (api.storage_new, args, api.device) : NULL;

  Py_XDECREF (args);
  return storage;
}

static bool
resize (PyObject *storage, uint64_t bytes)
{
  PyObject *n = bytes ? PyLong_FromUnsignedLongLong (bytes) : api.zero;
  PyObject *r = n ? PyObject_CallFunctionObjArgs (api.resize, storage, n, NULL) : NULL;

  if (bytes)
    Py_XDECREF (n);
  Py_XDECREF (r);
  if (r == NULL)
    PyErr_Clear ();
  return r != NULL;
}

/* The storage's memory becomes `memory` without a copy; what it had is let go, unheard if swallow. */
static bool
repoint (PyObject *storage, void *memory, uint64_t bytes, bool ref, bool swallow)
{
  CoopThread *t = &coop_thread;
  void *impl = coop_storage_impl (storage);
  void *old = impl ? coop_storage_data (impl) : NULL;

  if (old == NULL || !coop_storage_owned (impl) || coop_storage_bytes (impl) != bytes)
    return false;
  if (swallow)
    t->swallow = old;
  bool emptied = resize (storage, 0);
  t->swallow = NULL;
  if (!emptied)
    return false;
  t->next = memory;
  t->next_bytes = bytes;
  t->next_ref = ref;
  bool filled = resize (storage, bytes);
  t->next = NULL;
  return filled && coop_storage_data (impl) == memory && coop_storage_owned (impl);
}

bool
coop_storage_place (PyObject *storage, uint64_t addr, uint64_t bytes, bool ref, bool swallow)
{
  return repoint (storage, coop_arena_addr (coop.arena, addr), bytes, ref, swallow);
}

uint64_t
coop_hash (const void *data, size_t bytes)
{
  const unsigned char *p = data;
  uint64_t h[4] = { 1, 2, 3, bytes }, w[4];

  for (; bytes >= sizeof w; bytes -= sizeof w, p += sizeof w)
    {
      memcpy (w, p, sizeof w);
      for (int i = 0; i < 4; i++)
        h[i] = (h[i] ^ w[i]) * 0x9e3779b97f4a7c15ull;
      for (int i = 0; i < 4; i++)
        h[i] ^= h[i] >> 29;
    }
  for (; bytes > 0; bytes--, p++)
    h[0] = (h[0] ^ *p) * 0x100000001b3ull;
  return h[0] ^ (h[1] << 1 | h[1] >> 63) ^ (h[2] << 2 | h[2] >> 62) ^ (h[3] << 3 | h[3] >> 61);
}

uint64_t
coop_pool_hash (const void *data, size_t bytes)
{
  return coop.cuda ? coop_cuda_hash (data, bytes) : coop_hash (data, bytes);
}

void
coop_pool_copy (void *to, const void *from, size_t bytes)
{
  if (!coop.cuda)
    memmove (to, from, bytes);
  else if (!coop_cuda_move (to, from, bytes)) /* the GPU's context is broken, and all in it is lost */
    fprintf (stderr, "coopscope: the GPU refuses to copy\n");
}

/* ---- evict --------------------------------------------------------------------------------- */

static void
evict_failed (CoopTensor *t, CoopPin why)
{
  coop_lock ();
  if (t->addr != COOP_NO_ADDR && (t->state == COOP_LIVE || t->state == COOP_BORROWED))
    coop_engine_evict_failed (coop.engine, t, why);
  coop_unlock ();
}

static bool
evict_borrowed (CoopTensor *t, CoopHost *host)
{
  void *impl = coop_storage_impl (host->borrowed);
  void *memory = coop_arena_addr (coop.arena, t->addr);

  if (impl == NULL || coop_storage_data (impl) != memory)
    return false;
  coop_thread.swallow = memory;
  Py_CLEAR (host->borrowed);
  bool gone = coop_thread.swallow == NULL;
  coop_thread.swallow = NULL;
  return gone;
}

static bool
evict_live (CoopTensor *t, CoopHost *host, PyObject *storage)
{
  void *memory = coop_arena_addr (coop.arena, t->addr);
  void *impl = coop_storage_impl (storage);

  if (impl == NULL || coop_storage_data (impl) != memory || !coop_storage_owned (impl))
    return false;
  coop_lock ();
  void *shadow = coop_shadow_take (coop.shadow, coop_storage_bytes (impl), host);
  coop_unlock ();
  if (shadow == NULL)
    return false;
  host->shadow = shadow;
  if (repoint (storage, shadow, coop_storage_bytes (impl), false, true))
    return true;
  coop_lock ();
  coop_shadow_give (coop.shadow, shadow);
  coop_unlock ();
  host->shadow = NULL;
  return false;
}

void
coop_evict (CoopTensor *t)
{
  CoopHost *host = t->host;
  bool gone;

  coop_lock ();
  bool there = t->addr != COOP_NO_ADDR && t->pins == 0
               && (t->state == COOP_LIVE || t->state == COOP_BORROWED);
  coop_unlock ();
  if (!there)
    return;
  if (host == NULL)
    {
      evict_failed (t, COOP_PIN_UNMANAGED);
      return;
    }
  if (coop.policy.v[COOP_PARAM_VERIFY].i && host->op && !(host->op->flags & COOP_OP_UNINIT))
    {
      host->hash = coop_pool_hash (coop_arena_addr (coop.arena, t->addr), t->requested);
      host->hashed = true;
    }
  if (host->borrowed != NULL)
    gone = evict_borrowed (t, host);
  else
    {
      PyObject *storage = coop_host_open (host);
      if (storage == NULL)
        return; /* the user's last reference is going; its free is on the way */
      gone = evict_live (t, host, storage);
      Py_DECREF (storage);
    }
  if (!gone)
    {
      evict_failed (t, COOP_PIN_UNMANAGED);
      return;
    }
  coop_lock ();
  coop_engine_evicted (coop.engine, t);
  coop_unlock ();
}

/* The temporary lets go of the block first, which another owner keeps alive meanwhile. */
static bool
take_over (PyObject *storage, uint64_t addr, uint64_t bytes, PyObject *temporary)
{
  coop_lock ();
  coop_engine_ref (coop.engine, addr);
  coop_unlock ();
  bool done = resize (temporary, 0) && coop_storage_place (storage, addr, bytes, false, true);
  if (!done)
    {
      coop_lock ();
      coop_engine_free (coop.engine, addr);
      coop_unlock ();
    }
  return done;
}

bool
coop_hand_over (CoopHost *host, uint64_t addr, PyObject *temporary)
{
  PyObject *storage = host->shadow ? coop_host_open (host) : NULL;
  void *shadow = host->shadow;

  if (storage == NULL)
    return false;
  bool done;
  if (coop.cuda)
    done = take_over (storage, addr, host->tensor->requested, temporary);
  else
    done = coop_storage_place (storage, addr, host->tensor->requested, true, true);
  if (done)
    {
      coop_lock ();
      coop_shadow_give (coop.shadow, shadow);
      host->shadow = NULL;
      coop_unlock ();
    }
  Py_DECREF (storage);
  return done;
}

/* ---- what the engine wants done -------------------------------------------------------------- */

void
coop_place (const CoopAction *action, CoopHost *host)
{
  PyObject *storage = host ? coop_host_open (host) : NULL;
  void *from = coop_arena_addr (coop.arena, action->from);
  void *impl = storage ? coop_storage_impl (storage) : NULL;
  bool done = impl != NULL && coop_storage_data (impl) == from && coop_storage_owned (impl);

  if (done)
    {
      coop_pool_copy (coop_arena_addr (coop.arena, action->to), from, coop_storage_bytes (impl));
      done = coop_storage_place (storage, action->to, coop_storage_bytes (impl), false, true);
    }
  Py_XDECREF (storage);
  coop_lock ();
  coop_engine_placed (coop.engine, action->tensor, action->to, done);
  coop_unlock ();
}

static void
act (const CoopAction *action, CoopHost *host)
{
  switch (action->kind)
    {
    case COOP_ACTION_HOLD:
      if (host != NULL && host->held == NULL && host->borrowed == NULL)
        host->held = coop_host_open (host);
      break;
    case COOP_ACTION_UNHOLD:
      if (host != NULL)
        Py_CLEAR (host->held);
      break;
    case COOP_ACTION_RETURN:
      if (host != NULL)
        Py_CLEAR (host->borrowed);
      break;
    case COOP_ACTION_PLACE:
      coop_place (action, host);
      break;
    case COOP_ACTION_OP_GONE:
      coop_recipe_free (action->host);
      break;
    case COOP_ACTION_TENSOR_GONE:
      coop_host_free (action->host);
      break;
    case COOP_ACTION_THRASH:
      coop_thrash (host, action->id);
      break;
    }
}

#define BATCH 16

void
coop_act (void)
{
  CoopAction actions[BATCH];
  CoopHost *of[BATCH];
  PyObject *type, *value, *traceback;
  unsigned n;

  PyErr_Fetch (&type, &value, &traceback);
  do
    {
      coop_lock ();
      for (n = 0; n < BATCH && coop_engine_action (coop.engine, &actions[n]); n++)
        { /* a tensor is readable only until its TENSOR_GONE is taken */
          of[n] = actions[n].tensor ? actions[n].tensor->host : NULL;
          if (actions[n].kind == COOP_ACTION_PLACE)
            {
              n++;
              break;
            }
        }
      coop_unlock ();
      for (unsigned i = 0; i < n; i++)
        act (&actions[i], of[i]);
    }
  while (n == BATCH || (n > 0 && actions[n - 1].kind == COOP_ACTION_PLACE));
  PyErr_Restore (type, value, traceback);
}
