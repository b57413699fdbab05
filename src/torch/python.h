/* SPDX-License-Identifier: Apache-2.0 */
/* CPython through its stable ABI of 3.9: one binary for every later Python. */
#ifndef COOP_PYTHON_H
#define COOP_PYTHON_H

#define PY_SSIZE_T_CLEAN
#define Py_LIMITED_API 0x03090000
#include <Python.h>

#include <stdio.h>

PyMODINIT_FUNC PyInit__coopscope (void);

/* Text of a str as UTF-8, cut to what fits; NULL with an exception. */
static inline const char *
coop_utf8 (PyObject *text, char *out, size_t size)
{
  PyObject *bytes = PyUnicode_AsUTF8String (text);
  const char *p = bytes ? PyBytes_AsString (bytes) : NULL;

  if (p != NULL)
    snprintf (out, size, "%s", p);
  Py_XDECREF (bytes);
  return p ? out : NULL;
}

#endif
