/* SPDX-License-Identifier: Apache-2.0 */
/* Foreign: memory outside the pool, and memory that others can write.
 *
 * What PyTorch's allocator gave out before we came is moved in when first seen. All else outside
 * (numpy, buffers, mmap, shared memory, dlpack), and every storage whose pointer has escaped, can be
 * written by others at any time: an operator that reads it records a private copy instead. */
#include "torch/host.h"

#include <stdlib.h>
#include <string.h>

#define MAX_COPY ((uint64_t) 256 << 20)

typedef struct {
  const void *data;
  CoopHost *copy;
} Copy;

static struct {
  Copy *copies;
  unsigned n, room;
} table;

bool
coop_foreign_move_in (PyObject *tensor, CoopView *view)
{
  uint64_t addr;

  if (!coop_storage_owned (view->storage)
      || coop_pool_alloc (view->nbytes, &addr) != COOP_OK)
    return false;
  PyObject *storage = coop_storage_of (tensor);
  bool done = storage != NULL;
  if (done)
    {
      coop_pool_copy (coop_arena_addr (coop.arena, addr), view->data, view->nbytes);
      done = coop_storage_place (storage, addr, view->nbytes, false, false);
    }
  Py_XDECREF (storage);
  PyErr_Clear ();
  if (!done)
    {
      coop_lock ();
      coop_engine_free (coop.engine, addr);
      coop_unlock ();
      return false;
    }
  coop.moved_in++;
  return coop_view_read (tensor, view);
}

void
coop_foreign_forget (CoopHost *copy)
{
  for (unsigned i = 0; i < table.n; i++)
    if (table.copies[i].copy == copy)
      {
        table.copies[i] = table.copies[--table.n];
        break;
      }
  copy->copy_of = NULL;
}

static CoopHost *
find_copy (const CoopView *view, uint64_t sum, PyObject **storage)
{
  for (unsigned i = 0; i < table.n; i++)
    {
      CoopHost *copy = table.copies[i].copy;
      if (table.copies[i].data != view->data)
        continue;
      *storage = copy->copy_sum == sum ? coop_host_open (copy) : NULL;
      if (*storage != NULL && coop_storage_bytes (coop_storage_impl (*storage)) == view->nbytes)
        return copy;
      Py_CLEAR (*storage);
      coop_foreign_forget (copy); /* changed: those who need the old one keep it */
      return NULL;
    }
  return NULL;
}

static bool
remember (CoopHost *copy, const void *data, uint64_t sum)
{
  if (table.n == table.room)
    {
      unsigned room = table.room ? 2 * table.room : 16;
      Copy *more = realloc (table.copies, room * sizeof *more);
      if (more == NULL)
        return false;
      table.copies = more;
      table.room = room;
    }
  copy->copy_of = data;
  copy->copy_sum = sum;
  table.copies[table.n++] = (Copy){ data, copy };
  return true;
}

static CoopHost *
adopt_copy (const CoopView *view, PyObject *storage)
{
  const CoopDtype *dtype = coop_dtype (view->dtype);
  void *data = coop_storage_data (coop_storage_impl (storage));
  int64_t length = (int64_t) view->nbytes / (dtype ? dtype->itemsize : 1);
  CoopAdopt adopt = { .addr = coop_arena_offset (coop.arena, data), .requested = view->nbytes,
                      .kind = COOP_KIND_OTHER, .pin = COOP_PIN_CONSTANT,
                      .dtype = dtype ? dtype->string : 0, .ndim = 1, .dims = &length };
  CoopHost *host = coop_host_new (NULL);

  if (host == NULL || !coop_host_watch (host, storage))
    {
      coop_host_free (host);
      return NULL;
    }
  adopt.host = host;
  coop_lock ();
  host->tensor = adopt.addr == UINT64_MAX ? NULL : coop_engine_adopt (coop.engine, &adopt);
  coop_unlock ();
  if (host->tensor == NULL)
    {
      coop_host_free (host);
      return NULL;
    }
  return host;
}

CoopHost *
coop_foreign_copy (const CoopView *view, PyObject **storage)
{
  uint64_t sum;

  *storage = NULL;
  if (view->nbytes > MAX_COPY || coop.cuda) /* a GPU's bytes are not looked at for each operator */
    return NULL;
  sum = coop_hash (view->data, view->nbytes);
  CoopHost *host = find_copy (view, sum, storage);
  if (host != NULL)
    return host;
  *storage = coop_storage_new (view->nbytes);
  if (*storage != NULL)
    {
      memcpy (coop_storage_data (coop_storage_impl (*storage)), view->data, view->nbytes);
      host = adopt_copy (view, *storage);
      coop.copies++;
    }
  if (host == NULL)
    {
      PyErr_Clear ();
      Py_CLEAR (*storage);
      return NULL;
    }
  remember (host, view->data, sum);
  return host;
}
