/* SPDX-License-Identifier: Apache-2.0 */
/* Gather: which tensors an operator reads, writes and makes.
 *
 * Bookkeeping is per storage: the address of its memory, in the arena or in the shadow, names the
 * tensor. What is met for the first time is adopted as constant: nobody saw how it was made. */
#include "torch/call.h"

#include <stdlib.h>
#include <string.h>

static struct {
  PyObject *parameter, *disabled;
  PyObject *dispatch_name;
} types;

bool
coop_gather_setup (PyObject *functions)
{
  types.parameter = PyDict_GetItemString (functions, "parameter");
  types.disabled = PyDict_GetItemString (functions, "disabled_dispatch");
  types.dispatch_name = PyUnicode_InternFromString ("__torch_dispatch__");
  Py_XINCREF (types.parameter);
  Py_XINCREF (types.disabled);
  return types.parameter != NULL && types.dispatch_name != NULL;
}

/* Room for one more in a growing array whose first part is in the frame. */
static void *
room (void *array, void *inline_array, unsigned n, unsigned *capacity, size_t size)
{
  if (n < *capacity)
    return array;
  unsigned more = *capacity ? 2 * *capacity : COOP_INLINE_SLOTS;
  void *grown = realloc (array == inline_array ? NULL : array, more * size);
  if (grown == NULL)
    {
      PyErr_NoMemory ();
      return NULL;
    }
  if (array == inline_array && array != NULL)
    memcpy (grown, array, n * size);
  *capacity = more;
  return grown;
}

/* A kind of tensor that handles operators itself, and lets us see what it does inside. */
static bool
has_own_dispatch (PyObject *tensor)
{
  PyObject *f = PyObject_GetAttr ((PyObject *) Py_TYPE (tensor), types.dispatch_name);
  bool own = f != NULL && f != types.disabled && f != Py_None;

  if (f == NULL)
    PyErr_Clear ();
  Py_XDECREF (f);
  return own;
}

static bool
add_slot (CoopDispatch *d, PyObject *tensor, int arg, PyObject *key, int item, unsigned use)
{
  CoopSlot *slots = room (d->slots, d->inline_slots, d->n_slots, &d->slot_room, sizeof *slots);

  if (slots == NULL)
    return false;
  d->slots = slots;
  CoopSlot *s = &slots[d->n_slots++];
  s->tensor = tensor;
  s->key = key;
  s->arg = arg;
  s->item = item;
  s->input = -1;
  s->use = use;
  if (!coop_view_read (tensor, &s->view) && !(s->view.flags & COOP_FLAG_ZERO))
    {
      d->unmanaged_in = true;
      d->subclass |= has_own_dispatch (tensor);
    }
  return true;
}

static bool
add_value (CoopDispatch *d, PyObject *value, int arg, PyObject *key, unsigned use)
{
  if (coop_is_tensor (value))
    return add_slot (d, value, arg, key, -1, use);
  bool list = PyList_Check (value);
  if (!list && !PyTuple_Check (value))
    return true;
  Py_ssize_t n = list ? PyList_Size (value) : PyTuple_Size (value);
  for (Py_ssize_t i = 0; i < n; i++)
    {
      PyObject *o = list ? PyList_GetItem (value, i) : PyTuple_GetItem (value, i);
      if (coop_is_tensor (o))
        {
          if (!add_slot (d, o, arg, key, (int) i, use))
            return false;
        }
      else if (PyLong_Check (o) || PyFloat_Check (o))
        return true; /* sizes and the like: no tensors further on */
      else if (PyList_Check (o) && (d->nested = true) && !add_value (d, o, arg, key, use))
        return false;
    }
  return true;
}

static bool
is_training (const CoopDispatch *d)
{
  PyObject *value = NULL;

  if (d->info->training < 0)
    return true;
  if (d->info->training < PyTuple_Size (d->args))
    value = PyTuple_GetItem (d->args, d->info->training);
  else if (d->kwargs != NULL)
    value = PyDict_GetItem (d->kwargs, d->info->arg_names[d->info->training]);
  return value == Py_True;
}

static unsigned
use_of (const CoopDispatch *d, unsigned arg)
{
  unsigned use = arg < d->info->n_args ? d->info->arg_use[arg] : 0;

  if (use == COOP_ARG_STATS)
    return is_training (d) ? COOP_USE_SCRATCH : COOP_USE_READ;
  return use == COOP_ARG_WRITE ? COOP_USE_WRITE : COOP_USE_READ;
}

static unsigned
use_of_key (const CoopDispatch *d, PyObject *key)
{
  for (unsigned i = 0; i < d->info->n_args; i++)
    if (d->info->arg_names[i] == key || PyUnicode_Compare (d->info->arg_names[i], key) == 0)
      return use_of (d, i);
  return COOP_USE_READ;
}

bool
coop_gather_slots (CoopDispatch *d)
{
  Py_ssize_t n = PyTuple_Size (d->args), at = 0;
  PyObject *key, *value;

  d->slots = d->inline_slots;
  d->slot_room = COOP_INLINE_SLOTS;
  d->inputs = d->inline_inputs;
  d->input_room = COOP_INLINE_SLOTS;
  for (Py_ssize_t i = 0; i < n; i++)
    {
      value = PyTuple_GetItem (d->args, i);
      if (value != Py_None && !add_value (d, value, (int) i, NULL, use_of (d, (unsigned) i)))
        return false;
    }
  while (d->kwargs != NULL && PyDict_Next (d->kwargs, &at, &key, &value))
    if (value != Py_None && !add_value (d, value, -1, key, use_of_key (d, key)))
      return false;
  return true;
}

static bool
is_parameter (PyObject *tensor)
{
  PyTypeObject *type = Py_TYPE (tensor);
  return (PyObject *) type == types.parameter
         || PyType_IsSubtype (type, (PyTypeObject *) types.parameter);
}

/* Lengths, offsets, the smallest index: PyTorch's composite operators read such small integers by
 * pointer, between two operators that come by here. So they stay where they are. */
bool
coop_read_unseen (const CoopView *view)
{
  const CoopDtype *dtype = coop_dtype (view->dtype);
  return dtype != NULL && dtype->integer && view->nbytes <= 512;
}

CoopTensor *
coop_find (const CoopView *view, bool parameter)
{
  const CoopDtype *dtype = coop_dtype (view->dtype);
  uint64_t addr = coop_arena_offset (coop.arena, view->data);
  void *base;

  if (addr == UINT64_MAX)
    {
      CoopHost *owner = coop_shadow_owner (coop.shadow, view->data, &base);
      return owner != NULL && base == view->data ? owner->tensor : NULL;
    }
  CoopTensor *t = coop_engine_tensor_at (coop.engine, addr);
  if (t != NULL)
    {
      if (t->host == NULL)
        t->host = coop_host_new (t);
      return t->host ? t : NULL;
    }
  CoopHost *host = coop_host_new (NULL);
  CoopAdopt adopt = { .addr = addr, .requested = view->nbytes,
                      .kind = parameter ? COOP_KIND_STATE : COOP_KIND_OTHER,
                      .pin = coop_read_unseen (view) ? COOP_PIN_UNMANAGED : COOP_PIN_CONSTANT,
                      .dtype = dtype ? dtype->string : 0, .ndim = view->ndim, .dims = view->sizes,
                      .host = host };
  if (host != NULL)
    host->tensor = coop_engine_adopt (coop.engine, &adopt);
  if (host != NULL && host->tensor != NULL)
    return host->tensor;
  coop_host_free (host);
  return NULL;
}

static bool
add_input (CoopDispatch *d, CoopSlot *s, CoopTensor *t, unsigned use)
{
  CoopHost *host = t->host;
  static uint64_t stamp;

  if (d->n_inputs == 0)
    stamp++;
  if (host->stamp == stamp)
    {
      s->input = (int) host->index;
      d->inputs[s->input].use |= use;
      return true;
    }
  CoopInput *inputs = room (d->inputs, d->inline_inputs, d->n_inputs, &d->input_room, sizeof *inputs);
  if (inputs == NULL)
    return false;
  d->inputs = inputs;
  host->stamp = stamp;
  host->index = d->n_inputs;
  s->input = (int) d->n_inputs;
  inputs[d->n_inputs++] = (CoopInput){ t, use };
  return true;
}

/* Outside the pool? What can be moved in is. */
static bool
is_foreign (CoopSlot *s)
{
  void *base;

  if (coop_arena_offset (coop.arena, s->view.data) != UINT64_MAX
      || coop_shadow_owner (coop.shadow, s->view.data, &base) != NULL)
    return false;
  return !coop_foreign_move_in (s->tensor, &s->view);
}

/* Memory that others can write: the record gets a private copy, or nothing is recorded. */
static bool
read_shared (CoopDispatch *d, CoopSlot *s, CoopHost **copy)
{
  PyObject *storage;

  *copy = NULL;
  if (s->use & (COOP_USE_WRITE | COOP_USE_SCRATCH))
    d->foreign_write = true;
  if (d->foreign_write || !d->call.replayable || d->info->copy_wasted)
    {
      d->call.replayable = false;
      return true;
    }
  *copy = coop_foreign_copy (&s->view, &storage);
  if (*copy == NULL)
    {
      d->call.replayable = false;
      return true;
    }
  d->foreign_read = true;
  d->copied += s->view.nbytes;
  if (d->keep == NULL)
    d->keep = PyList_New (0);
  int rc = d->keep ? PyList_Append (d->keep, storage) : -1;
  Py_DECREF (storage);
  return rc == 0;
}

/* Where the tensor is now. What runs Python may have run a signal's handler, a finalizer, another thread, and
 * what asks for memory may have evicted or moved it. */
static void
look_again (CoopSlot *s)
{
  if (s->view.data != NULL && coop_storage_data (s->view.storage) != s->view.data)
    coop_view_read (s->tensor, &s->view);
}

/* Everything that needs Python, before the lock is taken for the inputs as a whole. */
static bool
settle_foreign (CoopDispatch *d, CoopHost **copies)
{
  for (unsigned i = 0; i < d->n_slots; i++)
    {
      CoopSlot *s = &d->slots[i];
      copies[i] = NULL;
      look_again (s);
      if (s->view.data == NULL && (s->use & COOP_USE_WRITE))
        d->call.replayable = false; /* it may be given memory: resize_, out= */
      if (s->view.data == NULL || !is_foreign (s))
        continue;
      if (!read_shared (d, s, &copies[i]))
        return false;
      if (copies[i] == NULL)
        s->view.data = NULL; /* no memory of the pool */
    }
  return true;
}

static bool
settle_escaped (CoopDispatch *d, CoopTensor **found, CoopHost **copies)
{
  for (unsigned i = 0; i < d->n_slots; i++)
    if (found[i] != NULL && found[i]->pin == COOP_PIN_ESCAPED && copies[i] == NULL
        && !read_shared (d, &d->slots[i], &copies[i]))
      return false;
  return true;
}

static bool
watch_new (CoopTensor *t, PyObject *tensor)
{
  CoopHost *host = t->host;
  PyObject *storage;

  if (host->weak != NULL || host->borrowed != NULL)
    return true;
  storage = coop_storage_of (tensor);
  bool ok = storage != NULL && coop_host_watch (host, storage);
  Py_XDECREF (storage);
  return ok;
}

static bool
find_all (CoopDispatch *d, CoopTensor **found, CoopHost *const *copies)
{
  bool escaped = false, new = false;

  coop_lock ();
  for (unsigned i = 0; i < d->n_slots; i++)
    {
      CoopSlot *s = &d->slots[i];
      found[i] = NULL;
      look_again (s);
      if (s->view.data == NULL || copies[i] != NULL)
        continue;
      bool parameter = is_parameter (s->tensor);
      found[i] = coop_find (&s->view, parameter);
      if (found[i] == NULL)
        {
          d->call.replayable = false; /* nobody would know when it is written */
          continue;
        }
      if (parameter && found[i]->kind != COOP_KIND_STATE)
        s->use |= COOP_USE_STATE;
      escaped |= found[i]->pin == COOP_PIN_ESCAPED;
      new |= ((CoopHost *) found[i]->host)->weak == NULL;
    }
  coop_unlock ();
  for (unsigned i = 0; new && i < d->n_slots; i++)
    if (found[i] != NULL && !watch_new (found[i], d->slots[i].tensor))
      return false;
  return !escaped || settle_escaped (d, found, (CoopHost **) copies);
}

bool
coop_gather_inputs (CoopDispatch *d)
{
  CoopHost *inline_copies[COOP_INLINE_SLOTS], **copies = inline_copies;
  CoopTensor *inline_found[COOP_INLINE_SLOTS], **found = inline_found;
  void *block = NULL;

  if (d->n_slots > COOP_INLINE_SLOTS)
    {
      block = calloc (2 * d->n_slots, sizeof (void *));
      if (block == NULL)
        return PyErr_NoMemory () != NULL;
      copies = block;
      found = (CoopTensor **) block + d->n_slots;
    }
  bool ok = settle_foreign (d, copies) && find_all (d, found, copies);
  for (unsigned i = 0; ok && i < d->n_slots; i++)
    {
      CoopSlot *s = &d->slots[i];
      if (copies[i] != NULL)
        {
          if (found[i] != NULL) /* escaped: there while it runs, but recorded is the copy */
            ok = add_input (d, s, found[i], COOP_USE_UNRECORDED);
          ok = ok && add_input (d, s, copies[i]->tensor, COOP_USE_READ);
        }
      else if (found[i] != NULL)
        ok = add_input (d, s, found[i], s->use);
    }
  free (block);
  return ok;
}

/* ---- outputs --------------------------------------------------------------------------------- */

static bool
is_input (const CoopDispatch *d, uint64_t addr)
{
  for (unsigned i = 0; i < d->n_inputs; i++)
    if (d->inputs[i].tensor->addr == addr)
      return true;
  for (unsigned i = 0; i < d->n_made; i++)
    if (coop_arena_offset (coop.arena, d->made[i].view.data) == addr)
      return true;
  return false;
}

static bool
add_made (CoopDispatch *d, PyObject *tensor, const CoopView *view, unsigned flat)
{
  if (d->n_made == d->made_room)
    {
      unsigned n = d->made_room ? 2 * d->made_room : 4;
      CoopMade *made = realloc (d->made, n * sizeof *made);
      d->made = made ? made : d->made;
      CoopHost **hosts = realloc (d->made_host, n * sizeof *hosts);
      d->made_host = hosts ? hosts : d->made_host;
      if (made == NULL || hosts == NULL)
        return PyErr_NoMemory () != NULL;
      d->made_room = n;
    }
  PyObject *storage = coop_storage_of (tensor);
  CoopHost *host = storage ? coop_host_new (NULL) : NULL;
  if (storage != NULL && host == NULL)
    PyErr_NoMemory ();
  bool ok = host != NULL && coop_host_watch (host, storage);
  Py_XDECREF (storage);
  if (!ok)
    {
      coop_host_free (host);
      return false;
    }
  host->op = d->info;
  host->where = d->info->where;
  host->site = d->grad ? d->call.stack : 0;
  host->site_where = d->info->where;
  d->made[d->n_made] = (CoopMade){ flat, *view };
  d->made_host[d->n_made++] = host;
  return true;
}

static bool
add_result (CoopDispatch *d, PyObject *o, unsigned *flat)
{
  CoopView view;

  if (coop_is_tensor (o))
    {
      unsigned at = (*flat)++;
      if (!coop_view_read (o, &view))
        {
          if (coop.cuda && coop_view_read_host (o, &view))
            return true; /* a copy on the CPU keeps nothing of the GPU's */
          d->unmanaged_out |= !(view.flags & COOP_FLAG_ZERO);
          return true;
        }
      uint64_t addr = view.data ? coop_arena_offset (coop.arena, view.data) : UINT64_MAX;
      return addr == UINT64_MAX || is_input (d, addr) || add_made (d, o, &view, at);
    }
  bool list = PyList_Check (o);
  if (!list && !PyTuple_Check (o))
    return true;
  Py_ssize_t n = list ? PyList_Size (o) : PyTuple_Size (o);
  for (Py_ssize_t i = 0; i < n; i++)
    if (!add_result (d, list ? PyList_GetItem (o, i) : PyTuple_GetItem (o, i), flat))
      return false;
  return true;
}

bool
coop_gather_outputs (CoopDispatch *d, PyObject *result)
{
  unsigned flat = 0;
  return add_result (d, result, &flat);
}

void
coop_gather_forget (CoopDispatch *d)
{
  PyObject *type, *value, *traceback;

  PyErr_Fetch (&type, &value, &traceback);
  while (d->n_made > 0)
    coop_host_free (d->made_host[--d->n_made]);
  PyErr_Restore (type, value, traceback);
}

void
coop_gather_clear (CoopDispatch *d)
{
  if (d->slots != d->inline_slots)
    free (d->slots);
  if (d->inputs != d->inline_inputs)
    free (d->inputs);
  free (d->made);
  free (d->made_host);
  Py_XDECREF (d->keep);
  Py_XDECREF (d->generator);
  Py_XDECREF (d->state);
}
