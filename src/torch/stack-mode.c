/* SPDX-License-Identifier: Apache-2.0 */
/* Stack mode: in PyTorch 1.13 a class written in Python takes the innermost mode off a list, calls it, and puts it back.
 * An exception that a signal raises between two of its lines loses the mode for good; then nobody sees the script's
 * operators any more. This is the same without a line of Python between, and faster. */
#include "torch/host.h"

static struct {
  PyObject *length, *pop, *push, *set_mode, *name;
} api;

/* stack_mode(length, pop, push, set_mode): PyTorch's own functions. */
PyObject *
coop_py_stack_mode (PyObject *self, PyObject *args)
{
  if (!PyArg_ParseTuple (args, "OOOO", &api.length, &api.pop, &api.push, &api.set_mode))
    return NULL;
  Py_INCREF (api.length);
  Py_INCREF (api.pop);
  Py_INCREF (api.push);
  Py_INCREF (api.set_mode);
  api.name = PyUnicode_InternFromString ("__torch_dispatch__");
  Py_RETURN_NONE;
}

static bool
is_empty (bool *empty)
{
  PyObject *n = PyObject_CallFunctionObjArgs (api.length, NULL);

  *empty = n == NULL || PyLong_AsLong (n) == 0;
  Py_XDECREF (n);
  return n != NULL;
}

static PyObject *
call_mode (PyObject *mode, PyObject *args, PyObject *kwargs)
{
  PyObject *handler = PyObject_GetAttr (mode, api.name);
  PyObject *result = handler ? PyObject_Call (handler, args, kwargs) : NULL;

  Py_XDECREF (handler);
  return result;
}

/* The mode below it, if there is one, sees what the innermost does; PyTorch turns all off before it calls, and
 * afterwards on again. */
PyObject *
coop_stack_mode_dispatch (PyObject *self, PyObject *args, PyObject *kwargs)
{
  PyObject *type, *value, *traceback, *result = NULL;
  PyObject *mode = PyObject_CallFunctionObjArgs (api.pop, NULL);
  bool empty;

  if (mode == NULL)
    return NULL;
  bool ok = is_empty (&empty);
  if (ok && !empty)
    {
      PyObject *set = PyObject_CallFunctionObjArgs (api.set_mode, self, NULL);
      ok = set != NULL;
      Py_XDECREF (set);
    }
  if (ok)
    result = call_mode (mode, args, kwargs);
  PyErr_Fetch (&type, &value, &traceback);
  Py_XDECREF (PyObject_CallFunctionObjArgs (api.push, mode, NULL));
  PyErr_Restore (type, value, traceback);
  Py_DECREF (mode);
  return result;
}
