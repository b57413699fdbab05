/* SPDX-License-Identifier: Apache-2.0 */
/* PyTorch keeps in each thread which dispatch keys are included and which excluded, each written as its difference
 * from the usual, in a variable that every library of PyTorch reads inline. Its guards for Python set bits there; what
 * bits those are _adapter.py finds out once by entering them. */
#include "torch/quiet.h"
#include "torch/imports.h"

#include <dlfcn.h>
#include <stdatomic.h>

static struct {
  void *library;
  PyObject *no_functions;
  uint64_t on, off;
  int (*gc_disable) (void);
  int (*gc_enable) (void);
  _Atomic int gc_depth;
  bool gc_was_on;
} quiet;

bool
coop_quiet_setup (PyObject *functions)
{
  quiet.no_functions = PyDict_GetItemString (functions, "no_functions");
  Py_XINCREF (quiet.no_functions);
  /* since Python 3.10; before it there are no functions for it but Python's own module */
  quiet.gc_disable = (int (*) (void)) dlsym (RTLD_DEFAULT, "PyGC_Disable");
  quiet.gc_enable = (int (*) (void)) dlsym (RTLD_DEFAULT, "PyGC_Enable");
  return quiet.no_functions != NULL;
}

/* [0] included, [1] excluded */
static uint64_t *
keys_of_thread (void)
{
  static _Thread_local uint64_t *keys;

  if (keys == NULL)
    {
      if (quiet.library == NULL)
        quiet.library = coop_imports_library ("libc10.so");
      if (quiet.library != NULL)
        keys = dlsym (quiet.library, "_ZN3c104impl26raw_local_dispatch_key_setE");
      if (keys == NULL)
        PyErr_SetString (PyExc_RuntimeError, "the dispatch keys of this PyTorch cannot be reached");
    }
  return keys;
}

PyObject *
coop_py_keys (PyObject *self, PyObject *args)
{
  const uint64_t *keys = keys_of_thread ();

  return keys ? Py_BuildValue ("(KK)", (unsigned long long) keys[0], (unsigned long long) keys[1]) : NULL;
}

PyObject *
coop_py_quiet_keys (PyObject *self, PyObject *args)
{
  unsigned long long on, off;

  if (!PyArg_ParseTuple (args, "KK", &on, &off))
    return NULL;
  quiet.on = on;
  quiet.off = off;
  Py_RETURN_NONE;
}

void
coop_gc_hold (void)
{
  if (quiet.gc_disable != NULL && quiet.gc_enable != NULL && atomic_fetch_add (&quiet.gc_depth, 1) == 0)
    quiet.gc_was_on = quiet.gc_disable () != 0;
}

void
coop_gc_release (void)
{
  if (quiet.gc_disable != NULL && quiet.gc_enable != NULL && atomic_fetch_sub (&quiet.gc_depth, 1) == 1
      && quiet.gc_was_on)
    quiet.gc_enable ();
}

bool
coop_quiet_begin (CoopQuiet *q)
{
  if (q->no_functions != NULL)
    return true;
  q->keys = keys_of_thread ();
  if (q->keys == NULL)
    return false;
  q->no_functions = PyObject_CallFunctionObjArgs (quiet.no_functions, NULL);
  PyObject *entered = q->no_functions ? PyObject_CallMethod (q->no_functions, "__enter__", NULL) : NULL;
  if (entered == NULL)
    {
      Py_CLEAR (q->no_functions);
      return false;
    }
  Py_DECREF (entered);
  q->was = q->keys[1];
  q->keys[1] = (q->was | quiet.on) & ~quiet.off;
  return true;
}

void
coop_quiet_end (CoopQuiet *q)
{
  PyObject *type, *value, *traceback;

  if (q->no_functions == NULL)
    return;
  q->keys[1] = q->was;
  PyErr_Fetch (&type, &value, &traceback);
  Py_XDECREF (PyObject_CallMethod (q->no_functions, "__exit__", "OOO", Py_None, Py_None, Py_None));
  Py_CLEAR (q->no_functions);
  PyErr_Clear ();
  PyErr_Restore (type, value, traceback);
}
