/* SPDX-License-Identifier: Apache-2.0 */
/* View: operators that give another name to bytes and touch none. They pass, evicted or not. */
#include "torch/call.h"

static struct {
  PyObject *number;   /* a Python number as a 0-dimensional tensor */
} api;

bool
coop_view_setup (PyObject *functions)
{
  api.number = PyDict_GetItemString (functions, "number");
  Py_XINCREF (api.number);
  return api.number != NULL;
}

/* PyTorch gives a 0-dimensional number to the handler as a Python one, which a view cannot take. */
static PyObject *
view_of_number (CoopDispatch *d)
{
  Py_ssize_t n = PyTuple_Size (d->args);
  PyObject *tensor = PyObject_CallFunctionObjArgs (api.number, PyTuple_GetItem (d->args, 0), NULL);
  PyObject *args = tensor ? PyTuple_New (n) : NULL, *result = NULL;

  for (Py_ssize_t i = 0; args != NULL && i < n; i++)
    {
      PyObject *value = i == 0 ? tensor : PyTuple_GetItem (d->args, i);
      Py_INCREF (value);
      PyTuple_SetItem (args, i, value);
    }
  if (args != NULL)
    result = PyObject_Call (d->info->call, args, d->kwargs);
  Py_XDECREF (args);
  Py_XDECREF (tensor);
  return result;
}

/* A view: nothing is read, written or made. PyTorch 1.13 turns a view of a number into a number. */
static PyObject *
view_as_number (PyObject *result)
{
  PyObject *tensor = PyObject_CallFunctionObjArgs (api.number, result, NULL);

  Py_DECREF (result);
  return tensor;
}

/* A view of another kind (nested, sparse) keeps its input inside where nobody sees it. */
static PyObject *
view_unmanaged (CoopDispatch *d, PyObject *result)
{
  bool ok = coop_gather_slots (d) && coop_escape_inputs (d);

  coop_gather_clear (d);
  if (!ok)
    Py_CLEAR (result);
  return result;
}

static PyObject *
pass (CoopDispatch *d, PyObject *first)
{
  PyObject *result = PyObject_Call (d->info->call, d->args, d->kwargs);
  CoopView v;

  if (result == NULL || first == NULL)
    return result;
  if (!coop_is_tensor (result))
    {
      bool number = PyFloat_Check (result) || PyLong_Check (result) || PyComplex_Check (result);
      return number ? view_as_number (result) : result;
    }
  if (!coop_view_read (result, &v) && !(v.flags & COOP_FLAG_ZERO) && coop_view_read (first, &v))
    return view_unmanaged (d, result);
  return result;
}

/* Autograd detaches a gradient when it has come to its leaf. It is the worst victim there is: cheap to
 * make again while the activations it came from are there, the whole net's work once they are gone;
 * and before the first parameter is overwritten all of them are needed at once. So it stays.
 * What was made while gradients are recorded (a checkpoint's second forward) is no such thing. */
static void
keep_gradient (PyObject *tensor)
{
  CoopView view;

  if (atomic_load_explicit (&coop.backward, memory_order_relaxed) == 0
      || coop.policy.v[COOP_PARAM_BUDGET].i == 0 || !coop_is_tensor (tensor)
      || !coop_view_read (tensor, &view) || !view.plain || view.data == NULL)
    return;
  uint64_t addr = coop_arena_offset (coop.arena, view.data);
  coop_lock ();
  CoopTensor *t = addr != UINT64_MAX ? coop_engine_tensor_at (coop.engine, addr) : NULL;
  if (t != NULL && t->kind == COOP_KIND_GRADIENT && t->pin == COOP_PIN_NONE && t->state == COOP_LIVE)
    coop_engine_pin (coop.engine, t, COOP_PIN_CONSTANT);
  coop_unlock ();
  coop_act ();
}

PyObject *
coop_view_call (CoopDispatch *d)
{
  PyObject *first = NULL;

  if ((d->info->flags & COOP_OP_NUMBER) && PyTuple_Size (d->args) > 0)
    {
      first = PyTuple_GetItem (d->args, 0);
      if (!coop_is_tensor (first))
        return view_of_number (d);
    }
  if ((d->info->flags & COOP_OP_DETACH) && first != NULL)
    keep_gradient (first);
  return pass (d, first);
}
