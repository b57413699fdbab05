/* SPDX-License-Identifier: Apache-2.0 */
/* Generator: the state of a random generator, kept as bytes outside of every tensor; and the lock that
 * keeps one thread from drawing between another's look at the state and its draw, or while a replay
 * has turned the generator back. Operators let go of the GIL, so the GIL is no such lock. */
#include "torch/host.h"

#include <string.h>

static pthread_mutex_t lock = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP;
static PyObject *scratch;   /* a tensor of the size of a state, outside the pool */

static PyObject *
state_tensor (PyObject *generator)
{
  coop_thread.bypass++;
  PyObject *method = PyObject_GetAttrString (generator, "get_state");
  PyObject *tensor = method ? PyObject_CallFunctionObjArgs (method, NULL) : NULL;
  coop_thread.bypass--;
  Py_XDECREF (method);
  return tensor;
}

PyObject *
coop_generator_get (PyObject *generator)
{
  PyObject *tensor = state_tensor (generator), *bytes = NULL;
  CoopView v;

  if (tensor != NULL && coop_view_read_host (tensor, &v) && v.data != NULL)
    bytes = PyBytes_FromStringAndSize (v.data, (Py_ssize_t) v.nbytes);
  else if (tensor != NULL)
    PyErr_SetString (PyExc_RuntimeError, "coopscope: a generator whose state cannot be read");
  Py_XDECREF (tensor);
  return bytes;
}

static bool
scratch_for (PyObject *generator, Py_ssize_t n, CoopView *v)
{
  if (scratch != NULL && coop_view_read_host (scratch, v) && (Py_ssize_t) v->nbytes == n)
    return true;
  Py_XDECREF (scratch);
  scratch = state_tensor (generator);
  if (scratch == NULL)
    return false;
  if (coop_view_read_host (scratch, v) && (Py_ssize_t) v->nbytes == n)
    return true;
  PyErr_SetString (PyExc_RuntimeError, "coopscope: a generator changed the size of its state");
  return false;
}

bool
coop_generator_set (PyObject *generator, PyObject *bytes)
{
  Py_ssize_t n = PyBytes_Size (bytes);
  CoopView v;

  if (!scratch_for (generator, n, &v))
    return false;
  memcpy (v.data, PyBytes_AsString (bytes), (size_t) n);
  coop_thread.bypass++;
  PyObject *method = PyObject_GetAttrString (generator, "set_state");
  PyObject *done = method ? PyObject_CallFunctionObjArgs (method, scratch, NULL) : NULL;
  coop_thread.bypass--;
  Py_XDECREF (method);
  Py_XDECREF (done);
  return done != NULL;
}

void
coop_generator_lock (void)
{
  if (pthread_mutex_trylock (&lock) == 0)
    return;
  PyThreadState *state = PyEval_SaveThread ();
  pthread_mutex_lock (&lock);
  PyEval_RestoreThread (state);
}

void
coop_generator_unlock (void)
{
  pthread_mutex_unlock (&lock);
}
