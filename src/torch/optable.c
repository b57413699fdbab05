/* SPDX-License-Identifier: Apache-2.0 */
/* Optable: what is known of each operator, asked of _adapter.py once and found again by the address
 * of its OpOverload, which lives as long as the process. */
#include "torch/host.h"

#include <stdlib.h>
#include <string.h>

static struct {
  PyObject *describe;
  CoopOpInfo **entries;
  size_t size, used;
} table;

bool
coop_optable_setup (PyObject *describe)
{
  Py_XINCREF (describe);
  table.describe = describe;
  return describe != NULL;
}

static size_t
place_of (const PyObject *func)
{
  size_t i = ((uintptr_t) func >> 4) * 0x9e3779b97f4a7c15ull >> 20;

  for (i &= table.size - 1; table.entries[i] != NULL && table.entries[i]->func != func;)
    i = (i + 1) & (table.size - 1);
  return i;
}

static bool
grow (void)
{
  CoopOpInfo **old = table.entries;
  size_t n = table.size, size = n ? 2 * n : 1024;

  table.entries = calloc (size, sizeof *table.entries);
  if (table.entries == NULL)
    {
      table.entries = old;
      PyErr_NoMemory ();
      return false;
    }
  table.size = size;
  for (size_t i = 0; i < n; i++)
    if (old[i] != NULL)
      table.entries[place_of (old[i]->func)] = old[i];
  free (old);
  return true;
}

static void
info_free (CoopOpInfo *info)
{
  Py_XDECREF (info->func);
  Py_XDECREF (info->call);
  for (unsigned i = 0; info->arg_names && i < info->n_args; i++)
    Py_XDECREF (info->arg_names[i]);
  free (info->arg_names);
  free (info->arg_use);
  free (info->name);
  free (info);
}

/* (name, call, flags, position of `training`, argument names, one byte of use an argument) */
static bool
info_fill (CoopOpInfo *info, PyObject *tuple)
{
  const char *name, *uses;
  PyObject *names;
  Py_ssize_t n_uses;

  if (!PyArg_ParseTuple (tuple, "sOIiO!y#", &name, &info->call, &info->flags, &info->training,
                         &PyTuple_Type, &names, &uses, &n_uses))
    {
      info->call = NULL;
      return false;
    }
  Py_INCREF (info->call);
  info->n_args = (unsigned) n_uses;
  info->name = strdup (name);
  info->arg_names = calloc (info->n_args + 1, sizeof *info->arg_names);
  info->arg_use = malloc (info->n_args + 1);
  if (info->name == NULL || info->arg_names == NULL || info->arg_use == NULL)
    {
      PyErr_NoMemory ();
      return false;
    }
  memcpy (info->arg_use, uses, info->n_args);
  for (unsigned i = 0; i < info->n_args; i++)
    {
      info->arg_names[i] = PyTuple_GetItem (names, i);
      Py_XINCREF (info->arg_names[i]);
    }
  info->string = coop_string (name);
  return true;
}

CoopOpInfo *
coop_op_lookup (PyObject *func)
{
  if (table.size != 0)
    {
      CoopOpInfo *found = table.entries[place_of (func)];
      if (found != NULL)
        return found;
    }
  if (table.used * 2 >= table.size && !grow ())
    return NULL;
  CoopOpInfo *info = calloc (1, sizeof *info);
  PyObject *tuple = info ? PyObject_CallFunctionObjArgs (table.describe, func, NULL) : PyErr_NoMemory ();
  if (tuple == NULL || !info_fill (info, tuple))
    {
      Py_XDECREF (tuple);
      if (info != NULL)
        info_free (info);
      return NULL;
    }
  Py_DECREF (tuple);
  Py_INCREF (func);
  info->func = func;
  table.entries[place_of (func)] = info;
  table.used++;
  return info;
}
