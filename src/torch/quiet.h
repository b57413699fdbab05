/* SPDX-License-Identifier: Apache-2.0 */
/* Quiet: what holds while operators are run again: below autograd, outside of every mode and of autocast, unseen.
 *
 * No line of Python runs in there, for it could be a signal's handler or a finalizer that reads an evicted tensor
 * where nobody sees it. So all of it is done without Python functions, and the garbage collector waits.
 * All of it needs the GIL and is the calling thread's. */
#ifndef COOP_QUIET_H
#define COOP_QUIET_H

#include "torch/python.h"

#include <stdbool.h>
#include <stdint.h>

typedef struct {
  PyObject *no_functions;   /* torch's guard against function modes; NULL: quiet is off */
  uint64_t *keys, was;      /* the thread's excluded dispatch keys, now and before */
} CoopQuiet;

/* functions: "no_functions". quiet_on, quiet_off: keys that are excluded or are not. False with an exception. */
bool coop_quiet_setup (PyObject *functions);
/* Twice is once. False with an exception. */
bool coop_quiet_begin (CoopQuiet *q);
/* Keeps an exception that is set. */
void coop_quiet_end (CoopQuiet *q);

/* From here on the collector waits; nests, and threads share it. */
void coop_gc_hold (void);
void coop_gc_release (void);

/* keys() -> the calling thread's (included, excluded) keys as PyTorch writes them; quiet_keys(on, off). */
PyObject *coop_py_keys (PyObject *self, PyObject *args);
PyObject *coop_py_quiet_keys (PyObject *self, PyObject *args);

#endif
