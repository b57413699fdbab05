/* SPDX-License-Identifier: Apache-2.0 */
/* Recipe: an operator that can be run again: its function, its arguments with the tensors taken out,
 * and of each tensor what rebuilds it from a storage: geometry, dtype, conj and neg (rule 11). */
#include "torch/host.h"

#include <stdlib.h>
#include <string.h>

typedef struct {
  PyObject *key;       /* keyword, or NULL */
  PyObject *kept;      /* the tensor itself, when it has no input */
  const int64_t *dims; /* sizes, then strides */
  int64_t offset;
  int arg, item, input;
  uint32_t ndim;
  uint16_t dtype;
  uint8_t flags;
} Slot;

typedef struct {
  const int64_t *dims;
  uint64_t nbytes;
  uint32_t flat, ndim;
  uint16_t dtype;
} Made;

struct CoopRecipe {
  CoopOpInfo *info;
  PyObject *args, *kwargs;      /* without tensors; kwargs may be NULL */
  PyObject *generator, *state;  /* random operators */
  const CoopEnvironment *env;
  bool grad;
  unsigned n_slots, n_made, n_written;
  uint64_t cost;                /* of the first run, ns */
  unsigned *written;
  Slot *slots;
  Made *made;
};

static struct {
  PyObject *empty, *set, *conj, *neg;
  PyObject *empty_args;                      /* (0,) */
  PyObject *empty_keywords[COOP_MAX_DTYPES]; /* {dtype, device} */
} api;

void
coop_recipe_set_cost (CoopRecipe *r, uint64_t ns)
{
  r->cost = ns;
}

uint64_t
coop_recipe_cost (const CoopRecipe *r)
{
  return r->cost;
}

static bool
make_keywords (PyObject *device)
{
  for (unsigned i = 0; i < COOP_MAX_DTYPES; i++)
    if (coop_dtype ((uint16_t) i) != NULL)
      {
        api.empty_keywords[i] = Py_BuildValue ("{sOsO}", "dtype", coop_dtype ((uint16_t) i)->object, "device", device);
        if (api.empty_keywords[i] == NULL)
          return false;
      }
  return true;
}

bool
coop_recipe_setup (PyObject *functions)
{
  PyObject *device = PyDict_GetItemString (functions, "device");

  api.empty = PyDict_GetItemString (functions, "empty");
  api.set = PyDict_GetItemString (functions, "set");
  api.conj = PyDict_GetItemString (functions, "conj");
  api.neg = PyDict_GetItemString (functions, "neg");
  if (api.empty == NULL || api.set == NULL || api.conj == NULL || api.neg == NULL || device == NULL)
    return false;
  Py_INCREF (api.empty);
  Py_INCREF (api.set);
  Py_INCREF (api.conj);
  Py_INCREF (api.neg);
  api.empty_args = Py_BuildValue ("(i)", 0);
  return api.empty_args != NULL && make_keywords (device);
}

/* The arguments without their tensors: lists that hold some are copied, all else is shared. */
static bool
strip_list (PyObject *owner, const CoopSlot *s)
{
  PyObject *list = s->key ? PyDict_GetItem (owner, s->key) : PyTuple_GetItem (owner, s->arg);

  Py_INCREF (Py_None);
  return list != NULL && PyList_SetItem (list, s->item, Py_None) == 0;
}

static PyObject *
list_copy (PyObject *sequence)
{
  return PySequence_List (sequence);
}

static bool
strip_kwargs (CoopRecipe *r, PyObject *kwargs, const CoopSlot *slots, unsigned n)
{
  PyObject *last = NULL;

  r->kwargs = NULL;
  if (kwargs == NULL || kwargs == Py_None || PyDict_Size (kwargs) == 0)
    return true;
  r->kwargs = PyDict_Copy (kwargs);
  if (r->kwargs == NULL)
    return false;
  for (unsigned i = 0; i < n; i++)
    {
      if (slots[i].key == NULL)
        continue;
      if (slots[i].item < 0)
        {
          if (PyDict_SetItem (r->kwargs, slots[i].key, Py_None) < 0)
            return false;
          continue;
        }
      if (last != slots[i].key)
        {
          PyObject *copy = list_copy (PyDict_GetItem (kwargs, slots[i].key));
          int rc = copy ? PyDict_SetItem (r->kwargs, slots[i].key, copy) : -1;
          Py_XDECREF (copy);
          if (rc < 0)
            return false;
        }
      last = slots[i].key;
      if (!strip_list (r->kwargs, &slots[i]))
        return false;
    }
  return true;
}

static bool
strip_args (CoopRecipe *r, PyObject *args, const CoopSlot *slots, unsigned n)
{
  Py_ssize_t n_args = PyTuple_Size (args);
  unsigned i = 0;

  r->args = PyTuple_New (n_args);
  if (r->args == NULL)
    return false;
  for (Py_ssize_t a = 0; a < n_args; a++)
    {
      PyObject *value = PyTuple_GetItem (args, a);
      while (i < n && slots[i].key == NULL && slots[i].arg < a)
        i++;
      bool mine = i < n && slots[i].key == NULL && slots[i].arg == a;
      if (mine && slots[i].item < 0)
        value = Py_None;
      if (mine && slots[i].item >= 0)
        value = list_copy (value);
      else
        Py_INCREF (value);
      if (value == NULL || PyTuple_SetItem (r->args, a, value) < 0)
        return false;
      for (; mine && i < n && slots[i].key == NULL && slots[i].arg == a; i++)
        if (slots[i].item >= 0 && !strip_list (r->args, &slots[i]))
          return false;
    }
  return true;
}

static void
fill_slots (CoopRecipe *r, const CoopSlot *from, int64_t *dims)
{
  for (unsigned i = 0; i < r->n_slots; i++)
    {
      Slot *s = &r->slots[i];
      s->key = from[i].key;
      Py_XINCREF (s->key);
      s->arg = from[i].arg;
      s->item = from[i].item;
      s->input = from[i].input;
      s->kept = NULL;
      s->ndim = 0;
      if (s->input < 0)
        {
          Py_INCREF (from[i].tensor);
          s->kept = from[i].tensor;
          continue;
        }
      s->ndim = from[i].view.ndim;
      s->dtype = from[i].view.dtype;
      s->flags = from[i].view.flags;
      s->offset = from[i].view.offset;
      s->dims = dims;
      memcpy (dims, from[i].view.sizes, s->ndim * sizeof *dims);
      memcpy (dims + s->ndim, from[i].view.strides, s->ndim * sizeof *dims);
      dims += 2 * s->ndim;
    }
}

static void
fill_made (CoopRecipe *r, const CoopMade *from, int64_t *dims)
{
  for (unsigned i = 0; i < r->n_made; i++)
    {
      Made *m = &r->made[i];
      m->flat = from[i].flat;
      m->ndim = from[i].view.ndim;
      m->dtype = from[i].view.dtype;
      m->nbytes = from[i].view.nbytes;
      m->dims = dims;
      memcpy (dims, from[i].view.sizes, m->ndim * sizeof *dims);
      dims += m->ndim;
    }
}

CoopRecipe *
coop_recipe_new (CoopOpInfo *info, PyObject *args, PyObject *kwargs, const CoopSlot *slots,
                 unsigned n_slots, const CoopMade *made, unsigned n_made, const CoopEnvironment *env,
                 bool grad, PyObject *generator, PyObject *state)
{
  size_t n_dims = 0, made_dims = 0;

  for (unsigned i = 0; i < n_slots; i++)
    n_dims += slots[i].input < 0 ? 0 : 2 * slots[i].view.ndim;
  for (unsigned i = 0; i < n_made; i++)
    made_dims += made[i].view.ndim;
  CoopRecipe *r = calloc (1, sizeof *r + n_slots * sizeof (Slot) + n_made * sizeof (Made)
                                 + (n_dims + made_dims) * sizeof (int64_t) + n_slots * sizeof *r->written);
  if (r == NULL)
    {
      PyErr_NoMemory ();
      return NULL;
    }
  r->info = info;
  r->env = env;
  r->grad = grad;
  r->slots = (Slot *) (void *) (r + 1);
  r->made = (Made *) (void *) (r->slots + n_slots);
  int64_t *dims = (int64_t *) (void *) (r->made + n_made);
  r->written = (unsigned *) (void *) (dims + n_dims + made_dims);
  r->n_slots = n_slots;
  r->n_made = n_made;
  fill_slots (r, slots, dims);
  fill_made (r, made, dims + n_dims);
  r->generator = generator;
  r->state = state;
  Py_XINCREF (generator);
  Py_XINCREF (state);
  if (strip_args (r, args, slots, n_slots) && strip_kwargs (r, kwargs, slots, n_slots))
    return r;
  coop_recipe_free (r);
  return NULL;
}

void
coop_recipe_free (CoopRecipe *r)
{
  if (r == NULL)
    return;
  for (unsigned i = 0; i < r->n_slots; i++)
    {
      Py_XDECREF (r->slots[i].key);
      Py_XDECREF (r->slots[i].kept);
    }
  Py_XDECREF (r->args);
  Py_XDECREF (r->kwargs);
  Py_XDECREF (r->generator);
  Py_XDECREF (r->state);
  free (r);
}

void
coop_recipe_set_written (CoopRecipe *r, const unsigned *inputs, unsigned n)
{
  if (n > 0)
    memcpy (r->written, inputs, n * sizeof *inputs);
  r->n_written = n;
}

const unsigned *
coop_recipe_written (const CoopRecipe *r, unsigned *n)
{
  *n = r->n_written;
  return r->written;
}

const CoopOpInfo *
coop_recipe_op (const CoopRecipe *r)
{
  return r->info;
}

unsigned
coop_recipe_outputs (const CoopRecipe *r)
{
  return r->n_made;
}

/* ---- running again --------------------------------------------------------------------------- */

static PyObject *
ints (const int64_t *values, uint32_t n)
{
  PyObject *tuple = PyTuple_New (n);

  for (uint32_t i = 0; tuple != NULL && i < n; i++)
    {
      PyObject *number = PyLong_FromLongLong (values[i]);
      if (number == NULL || PyTuple_SetItem (tuple, i, number) < 0)
        Py_CLEAR (tuple);
    }
  return tuple;
}

/* function (tensor), or NULL; takes tensor over. */
static PyObject *
apply (PyObject *function, PyObject *tensor)
{
  PyObject *result = tensor ? PyObject_CallFunctionObjArgs (function, tensor, NULL) : NULL;

  Py_XDECREF (tensor);
  return result;
}

static PyObject *
slot_tensor (const Slot *s, PyObject *const *storages)
{
  if (s->input < 0)
    {
      Py_INCREF (s->kept);
      return s->kept;
    }
  PyObject *sizes = ints (s->dims, s->ndim), *strides = ints (s->dims + s->ndim, s->ndim);
  PyObject *offset = PyLong_FromLongLong (s->offset), *tensor = NULL, *done = NULL;
  if (sizes != NULL && strides != NULL && offset != NULL)
    tensor = PyObject_Call (api.empty, api.empty_args, api.empty_keywords[s->dtype]);
  if (tensor != NULL)
    done = PyObject_CallFunctionObjArgs (api.set, tensor, storages[s->input], offset, sizes, strides, NULL);
  if (done == NULL)
    Py_CLEAR (tensor);
  Py_XDECREF (done);
  Py_XDECREF (offset);
  Py_XDECREF (sizes);
  Py_XDECREF (strides);
  if (s->flags & COOP_FLAG_CONJ)
    tensor = apply (api.conj, tensor);
  return s->flags & COOP_FLAG_NEG ? apply (api.neg, tensor) : tensor;
}

/* Sets item `at` of a tuple, list or dictionary copy to value (taken over). */
static bool
put (const Slot *s, PyObject *args, PyObject *kwargs, PyObject *value)
{
  PyObject *list;
  int rc;

  if (s->item >= 0)
    {
      list = s->key ? PyDict_GetItem (kwargs, s->key) : PyTuple_GetItem (args, s->arg);
      return list != NULL && PyList_SetItem (list, s->item, value) == 0;
    }
  if (s->key == NULL)
    return PyTuple_SetItem (args, s->arg, value) == 0;
  rc = PyDict_SetItem (kwargs, s->key, value);
  Py_DECREF (value);
  return rc == 0;
}

/* A tuple with the items of args; lists into which tensors go are copied. */
static PyObject *
args_copy (const CoopRecipe *r)
{
  Py_ssize_t n = PyTuple_Size (r->args);
  PyObject *args = PyTuple_New (n);

  for (Py_ssize_t a = 0; args != NULL && a < n; a++)
    {
      PyObject *value = PyTuple_GetItem (r->args, a);
      bool list = false;
      for (unsigned i = 0; i < r->n_slots; i++)
        list |= r->slots[i].key == NULL && r->slots[i].arg == a && r->slots[i].item >= 0;
      if (list)
        value = list_copy (value);
      else
        Py_INCREF (value);
      if (value == NULL || PyTuple_SetItem (args, a, value) < 0)
        Py_CLEAR (args);
    }
  return args;
}

static PyObject *
kwargs_copy (const CoopRecipe *r)
{
  PyObject *kwargs = r->kwargs ? PyDict_Copy (r->kwargs) : NULL;

  for (unsigned i = 0; kwargs != NULL && i < r->n_slots; i++)
    if (r->slots[i].key != NULL && r->slots[i].item == 0)
      {
        PyObject *list = list_copy (PyDict_GetItem (r->kwargs, r->slots[i].key));
        if (list == NULL || PyDict_SetItem (kwargs, r->slots[i].key, list) < 0)
          Py_CLEAR (kwargs);
        Py_XDECREF (list);
      }
  return kwargs;
}

/* The tensor at flat index `flat` of a result, borrowed. */
static PyObject *
result_tensor (PyObject *result, unsigned flat)
{
  unsigned at = 0;

  if (coop_is_tensor (result))
    return flat == 0 ? result : NULL;
  if (!PyTuple_Check (result) && !PyList_Check (result))
    return NULL;
  bool tuple = PyTuple_Check (result);
  Py_ssize_t n = tuple ? PyTuple_Size (result) : PyList_Size (result);
  for (Py_ssize_t i = 0; i < n; i++)
    {
      PyObject *o = tuple ? PyTuple_GetItem (result, i) : PyList_GetItem (result, i);
      bool inner_tuple = PyTuple_Check (o);
      if (coop_is_tensor (o))
        {
          if (at++ == flat)
            return o;
        }
      else if (inner_tuple || PyList_Check (o))
        {
          Py_ssize_t m = inner_tuple ? PyTuple_Size (o) : PyList_Size (o);
          for (Py_ssize_t j = 0; j < m; j++)
            {
              PyObject *t = inner_tuple ? PyTuple_GetItem (o, j) : PyList_GetItem (o, j);
              if (coop_is_tensor (t) && at++ == flat)
                return t;
            }
        }
    }
  return NULL;
}

/* Rule 9. */
static bool
compare (const CoopRecipe *r, const Made *m, PyObject *tensor)
{
  CoopView v;

  if (tensor == NULL || !coop_view_read (tensor, &v))
    {
      PyErr_Format (PyExc_RuntimeError, "coopscope: %s, run again, gave no such output (%u)",
                    r->info->name, m->flat);
      return false;
    }
  if (v.dtype == m->dtype && v.ndim == m->ndim && v.nbytes == m->nbytes
      && memcmp (v.sizes, m->dims, m->ndim * sizeof *m->dims) == 0)
    return true;
  PyObject *was = ints (m->dims, m->ndim), *is = ints (v.sizes, v.ndim);
  const CoopDtype *old = coop_dtype (m->dtype), *new = coop_dtype (v.dtype);
  PyErr_Format (PyExc_RuntimeError,
                "coopscope: %s gave %s %S (%llu bytes), and run again %s %S (%llu bytes)",
                r->info->name, old ? old->name : "?", was, (unsigned long long) m->nbytes,
                new ? new->name : "?", is, (unsigned long long) v.nbytes);
  Py_XDECREF (was);
  Py_XDECREF (is);
  return false;
}

/* The generator goes back to where it was before the operator's first run; *was gets where it is. */
static bool
rewind_generator (const CoopRecipe *r, PyObject **was)
{
  *was = NULL;
  if (r->state == NULL)
    return true;
  *was = coop_generator_get (r->generator);
  return *was != NULL && coop_generator_set (r->generator, r->state);
}

static void
forward_generator (const CoopRecipe *r, PyObject *was)
{
  PyObject *type, *value, *traceback;

  if (was == NULL)
    return;
  PyErr_Fetch (&type, &value, &traceback);
  coop_generator_set (r->generator, was);
  Py_DECREF (was);
  PyErr_Restore (type, value, traceback);
}

static PyObject *
call (const CoopRecipe *r, PyObject *args, PyObject *kwargs, uint64_t *ns)
{
  const CoopEnvironment *now = coop_environment_now ();
  PyObject *was = NULL, *result = NULL;
  bool other = now != NULL && now != r->env, grad = coop_grad_enabled ();
  uint64_t own = coop_thread.own_ns;

  if (now == NULL)
    return NULL;
  bool same = (!other || coop_environment_set (r->env)) && (grad == r->grad || coop_set_grad_enabled (r->grad));
  if (r->state != NULL)
    coop_generator_lock ();
  if (same && rewind_generator (r, &was))
    {
      uint64_t begin = coop_now ();
      result = PyObject_Call (r->info->call, args, kwargs);
      *ns = coop_now () - begin;
      own = coop_thread.own_ns - own;
      *ns -= own < *ns ? own : *ns;
    }
  forward_generator (r, was);
  if (r->state != NULL)
    coop_generator_unlock ();
  if (other || grad != r->grad)
    {
      PyObject *type, *value, *traceback;
      PyErr_Fetch (&type, &value, &traceback);
      coop_set_grad_enabled (grad);
      if (other)
        coop_environment_set (now);
      PyErr_Restore (type, value, traceback);
    }
  return result;
}

bool
coop_recipe_run (CoopRecipe *r, PyObject *const *storages, unsigned n, PyObject **made, uint64_t *ns)
{
  PyObject *args = args_copy (r), *kwargs = kwargs_copy (r), *result = NULL;
  bool ok = args != NULL && (kwargs != NULL || r->kwargs == NULL);
  unsigned got = 0;

  for (unsigned i = 0; ok && i < r->n_slots; i++)
    {
      PyObject *tensor = slot_tensor (&r->slots[i], storages);
      ok = tensor != NULL && put (&r->slots[i], args, kwargs, tensor);
    }
  if (ok)
    result = call (r, args, kwargs, ns);
  ok = result != NULL;
  for (; ok && got < r->n_made; got++)
    {
      PyObject *tensor = result_tensor (result, r->made[got].flat);
      ok = compare (r, &r->made[got], tensor);
      made[got] = ok ? coop_storage_of (tensor) : NULL;
      ok = made[got] != NULL;
    }
  if (!ok)
    while (got > 0)
      Py_XDECREF (made[--got]);
  Py_XDECREF (result);
  Py_XDECREF (args);
  Py_XDECREF (kwargs);
  return ok;
}
