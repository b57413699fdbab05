/* SPDX-License-Identifier: Apache-2.0 */
/* Layout: the search for the fields, and the loads. See layout.h. */
#include "torch/layout.h"

#include <string.h>

#define SCAN 40  /* words of a struct that are searched */
#define INLINE_DIMS 5
#define NO_KEYS UINT64_MAX  /* no tensor has every key */

static struct {
  PyTypeObject *tensor_type;
  unsigned impl;           /* PyObject -> TensorImpl, in bytes, as all offsets here */
  unsigned storage;        /* TensorImpl -> StorageImpl */
  unsigned sizes;          /* TensorImpl -> number of dimensions; sizes, strides, offset follow */
  unsigned dtype, keys;
  unsigned data, nbytes, resizable;  /* StorageImpl */
  void *deleter;           /* of PyTorch's own CPU allocator */
  uint64_t base_keys, free_keys; /* keys of a plain tensor that is managed; those that may differ */
  uint64_t host_keys;      /* of a plain one of the CPU */
  uint64_t conj, neg, zero;
  CoopDtype dtypes[COOP_MAX_DTYPES];
} layout;

static inline uint64_t
word_at (const void *p, size_t bytes)
{
  uint64_t w;
  memcpy (&w, (const char *) p + bytes, sizeof w);
  return w;
}

static inline void *
pointer_at (const void *p, size_t bytes)
{
  return (void *) (uintptr_t) word_at (p, bytes);
}

/* What Python says about a sample. */
typedef struct {
  PyObject *tensor;
  void *impl, *storage;
  uint64_t cdata, storage_cdata, data, nbytes;
  int64_t dims[INLINE_DIMS], strides[INLINE_DIMS], offset, dtype;
  Py_ssize_t ndim;
} Sample;

static bool
fail (const char *what)
{
  PyErr_Format (PyExc_RuntimeError,
                "this PyTorch keeps its tensors in a way that is not understood (%s)", what);
  return false;
}

/* (tensor, tensor._cdata, storage._cdata, data pointer, bytes, sizes, strides, offset, dtype) */
static bool
sample_read (PyObject *tuple, Sample *s)
{
  PyObject *sizes, *strides;
  unsigned long long cdata, storage, data, nbytes;
  long long offset, dtype;

  if (!PyArg_ParseTuple (tuple, "OKKKKO!O!LL", &s->tensor, &cdata, &storage, &data, &nbytes,
                         &PyTuple_Type, &sizes, &PyTuple_Type, &strides, &offset, &dtype))
    return false;
  s->cdata = cdata;
  s->storage_cdata = storage;
  s->data = data;
  s->nbytes = nbytes;
  s->offset = offset;
  s->dtype = dtype;
  s->impl = (void *) (uintptr_t) cdata;
  s->storage = (void *) (uintptr_t) storage;
  s->ndim = PyTuple_Size (sizes);
  for (Py_ssize_t i = 0; i < s->ndim && i < INLINE_DIMS; i++)
    {
      s->dims[i] = PyLong_AsLongLong (PyTuple_GetItem (sizes, i));
      s->strides[i] = PyLong_AsLongLong (PyTuple_GetItem (strides, i));
    }
  return !PyErr_Occurred ();
}

/* Byte offset in [from, SCAN words) of `value` in every sample's struct; 0 if there is none. */
static unsigned
find_word (void *const structs[], const uint64_t values[], unsigned n, unsigned from)
{
  for (unsigned at = from; at < SCAN * 8; at += 8)
    {
      unsigned hits = 0;
      for (unsigned i = 0; i < n; i++)
        hits += word_at (structs[i], at) == values[i];
      if (hits == n)
        return at;
    }
  return 0;
}

static bool
dims_match (const Sample *s, unsigned at)
{
  const char *p = (const char *) s->impl + at;
  return word_at (p, 0) == (uint64_t) s->ndim
         && memcmp (p + 8, s->dims, (size_t) s->ndim * 8) == 0
         && memcmp (p + 8 + 8 * INLINE_DIMS, s->strides, (size_t) s->ndim * 8) == 0
         && word_at (p, 8 + 16 * INLINE_DIMS) == (uint64_t) s->offset;
}

static bool
find_tensor_fields (const Sample *s, unsigned n)
{
  void *objects[8], *impls[8], *storages[8];
  uint64_t cdata[8], storage_cdata[8], data[8], nbytes[8];

  for (unsigned i = 0; i < n; i++)
    {
      objects[i] = s[i].tensor;
      impls[i] = s[i].impl;
      storages[i] = s[i].storage;
      cdata[i] = s[i].cdata;
      storage_cdata[i] = s[i].storage_cdata;
      data[i] = s[i].data;
      nbytes[i] = s[i].nbytes;
    }
  if (!(layout.impl = find_word (objects, cdata, n, 16)))
    return fail ("object");
  if (!(layout.storage = find_word (impls, storage_cdata, n, 8)))
    return fail ("storage");
  if (!(layout.data = find_word (storages, data, n, 8)))
    return fail ("data");
  if (!(layout.nbytes = find_word (storages, nbytes, n, layout.data)))
    return fail ("bytes");
  layout.deleter = pointer_at (storages[0], layout.data + 8);
  for (unsigned i = 0; i < n; i++)
    if (layout.deleter == NULL || pointer_at (storages[i], layout.data + 8) != layout.deleter)
      return fail ("deleter");
  for (unsigned at = 8; at < SCAN * 8; at += 8)
    {
      unsigned hits = 0;
      for (unsigned i = 0; i < n; i++)
        hits += dims_match (&s[i], at);
      if (hits == n)
        {
          layout.sizes = at;
          return true;
        }
    }
  return fail ("sizes");
}

/* dtypes: list of (empty tensor, dtype, name, itemsize, number or -1). */
static bool
find_dtypes (PyObject *list)
{
  Py_ssize_t n = PyList_Size (list);
  unsigned found = 0;

  for (unsigned at = layout.sizes; at < SCAN * 8 && !found; at += 2)
    {
      bool all = true;
      for (Py_ssize_t i = 0; i < n && all; i++)
        {
          PyObject *row = PyList_GetItem (list, i);
          PyObject *tensor = PyTuple_GetItem (row, 0);
          long number = PyLong_AsLong (PyTuple_GetItem (row, 4));
          uint16_t here;
          memcpy (&here, (char *) pointer_at (tensor, layout.impl) + at, sizeof here);
          all = here < COOP_MAX_DTYPES && (number < 0 || here == number);
        }
      found = all ? at : 0;
    }
  if (!found)
    return fail ("dtype");
  layout.dtype = found;
  for (Py_ssize_t i = 0; i < n; i++)
    {
      PyObject *row = PyList_GetItem (list, i);
      PyObject *dtype, *tensor;
      const char *name;
      unsigned itemsize;
      long number;
      uint16_t here;
      if (!PyArg_ParseTuple (row, "OOsIl", &tensor, &dtype, &name, &itemsize, &number))
        return false;
      memcpy (&here, (char *) pointer_at (tensor, layout.impl) + found, sizeof here);
      CoopDtype *d = &layout.dtypes[here];
      Py_INCREF (dtype);
      d->object = dtype;
      d->itemsize = itemsize;
      d->integer = strstr (name, "int") != NULL;
      strncpy (d->name, name, sizeof d->name - 1);
    }
  return true;
}

static uint64_t
keys_of (PyObject *samples, const char *name, unsigned at)
{
  PyObject *tensor = PyDict_GetItemString (samples, name);
  return tensor ? word_at (pointer_at (tensor, layout.impl), at) : 0;
}

/* The key set is the word in which a conj, a neg and a zero tensor each differ from a plain one by
 * one bit, and two plain ones do not. */
static bool
find_keys (PyObject *samples)
{
  for (unsigned at = layout.sizes + 8 + 16 * INLINE_DIMS; at < SCAN * 8; at += 8)
    {
      uint64_t plain = keys_of (samples, "plain", at), complex = keys_of (samples, "complex", at);
      uint64_t conj = keys_of (samples, "conj", at) ^ plain;
      uint64_t neg = keys_of (samples, "neg", at) ^ plain;
      uint64_t zero = keys_of (samples, "zero", at) ^ plain;
      if (plain == complex && __builtin_popcountll (conj) == 1 && __builtin_popcountll (neg) == 1
          && __builtin_popcountll (zero) == 1 && conj != neg && neg != zero && zero != conj)
        {
          layout.keys = at;
          layout.conj = conj;
          layout.neg = neg;
          layout.zero = zero;
          layout.free_keys = (plain ^ keys_of (samples, "inference", at)) | conj | neg;
          layout.host_keys = plain & ~layout.free_keys;
          if (layout.base_keys != NO_KEYS)
            layout.base_keys = layout.host_keys;
          return true;
        }
    }
  return fail ("keys");
}

/* `exported` is (address of the storage, its bytes before .numpy()); one byte turned from 1 to 0. */
static bool
find_resizable (PyObject *samples)
{
  unsigned long long storage;
  const char *before;
  Py_ssize_t n;
  PyObject *tuple = PyDict_GetItemString (samples, "exported");

  if (tuple == NULL || !PyArg_ParseTuple (tuple, "Ky#", &storage, &before, &n))
    return false;
  const char *now = (const char *) (uintptr_t) storage;
  for (Py_ssize_t i = (Py_ssize_t) layout.nbytes + 8; i < n; i++)
    if (before[i] == 1 && now[i] == 0)
      {
        layout.resizable = (unsigned) i;
        return true;
      }
  return fail ("resizable");
}

bool
coop_layout_find (PyObject *samples)
{
  Sample s[8];
  PyObject *tensors = PyDict_GetItemString (samples, "tensors");
  PyObject *dtypes = PyDict_GetItemString (samples, "dtypes");
  PyObject *type = PyDict_GetItemString (samples, "type");
  unsigned n;

  if (tensors == NULL || dtypes == NULL || type == NULL || PyList_Size (tensors) > 8)
    return fail ("samples");
  layout.tensor_type = (PyTypeObject *) type;
  n = (unsigned) PyList_Size (tensors);
  for (unsigned i = 0; i < n; i++)
    if (!sample_read (PyList_GetItem (tensors, i), &s[i]))
      return false;
  return find_tensor_fields (s, n) && find_dtypes (dtypes) && find_keys (samples)
         && find_resizable (samples);
}

void
coop_layout_manage_none (void)
{
  layout.base_keys = NO_KEYS;
}

bool
coop_layout_manage (PyObject *tensor, const void *storage, const void *data)
{
  const void *impl = pointer_at (tensor, layout.impl);
  uint64_t keys = impl ? word_at (impl, layout.keys) & ~layout.free_keys : layout.host_keys;

  if (keys == layout.host_keys || pointer_at (impl, layout.storage) != storage
      || pointer_at (storage, layout.data) != data || pointer_at (storage, layout.data + 8) == NULL)
    return fail ("device");
  layout.base_keys = keys;
  layout.deleter = pointer_at (storage, layout.data + 8);
  return true;
}

bool
coop_is_tensor (PyObject *o)
{
  PyTypeObject *type = Py_TYPE (o);
  return type == layout.tensor_type || PyType_IsSubtype (type, layout.tensor_type);
}

static bool
read_view (PyObject *tensor, CoopView *view, uint64_t plain)
{
  const char *impl = pointer_at (tensor, layout.impl);
  uint64_t keys = impl ? word_at (impl, layout.keys) : 0;

  view->plain = false;
  view->data = NULL;
  view->storage = NULL;
  view->flags = 0;
  if (keys & layout.zero)
    {
      view->flags = COOP_FLAG_ZERO;
      return false;
    }
  if ((keys & ~layout.free_keys) != plain)
    return false;
  view->storage = pointer_at (impl, layout.storage);
  if (view->storage == NULL)
    return false;
  view->plain = true;
  view->data = pointer_at (view->storage, layout.data);
  view->nbytes = word_at (view->storage, layout.nbytes);
  if (view->nbytes == 0)
    view->data = NULL;
  view->flags = (keys & layout.conj ? COOP_FLAG_CONJ : 0) | (keys & layout.neg ? COOP_FLAG_NEG : 0);
  const char *dims = impl + layout.sizes;
  view->ndim = (uint32_t) word_at (dims, 0);
  if (view->ndim <= INLINE_DIMS)
    {
      view->sizes = (const int64_t *) (const void *) (dims + 8);
      view->strides = view->sizes + INLINE_DIMS;
    }
  else
    {
      view->sizes = pointer_at (dims, 8);
      view->strides = view->sizes + view->ndim;
    }
  view->offset = (int64_t) word_at (dims, 8 + 16 * INLINE_DIMS);
  memcpy (&view->dtype, impl + layout.dtype, sizeof view->dtype);
  return true;
}

bool
coop_view_read (PyObject *tensor, CoopView *view)
{
  return read_view (tensor, view, layout.base_keys);
}

bool
coop_view_read_host (PyObject *tensor, CoopView *view)
{
  return read_view (tensor, view, layout.host_keys);
}

void *
coop_storage_data (const void *storage)
{
  return pointer_at (storage, layout.data);
}

uint64_t
coop_storage_bytes (const void *storage)
{
  return word_at (storage, layout.nbytes);
}

bool
coop_storage_owned (const void *storage)
{
  return pointer_at (storage, layout.data + 8) == layout.deleter
         && ((const char *) storage)[layout.resizable] == 1;
}

CoopDtype *
coop_dtype (uint16_t index)
{
  return index < COOP_MAX_DTYPES && layout.dtypes[index].object ? &layout.dtypes[index] : NULL;
}
