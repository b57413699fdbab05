/* SPDX-License-Identifier: Apache-2.0 */
/* Oom: what is said, and whom it is said to, before PyTorch raises its out-of-memory error. */
#include "torch/host.h"

#include <stdio.h>

static struct {
  PyObject *callback;   /* the script's, NULL if none */
  bool asking;
  unsigned reports;
} oom_state;

static void
say (const char *label, uint64_t bytes, const char *after)
{
  char text[32];

  coop_size_format (bytes, text, sizeof text);
  fprintf (stderr, "%s%s%s", label, text, after);
}

/* What a person needs to know beside PyTorch's own error. */
static void
report_no_memory (const CoopOom *oom)
{
  if (coop_thread.quiet || oom_state.reports++ >= 3)
    return;
  say ("coopscope: out of memory: asked ", oom->asked, "");
  say (", free ", oom->free, "");
  say (", largest run ", oom->largest, "");
  say (", budget ", oom->budget, "\n");
  fprintf (stderr, "coopscope:   pinned:");
  for (int p = COOP_PIN_NONE + 1; p < COOP_N_PINS; p++)
    if (oom->pinned[p] > 0)
      {
        fprintf (stderr, " %s", coop_pin_label (p));
        say (" ", oom->pinned[p], ",");
      }
  say (" evictable ", oom->evictable, "");
  say ("; outside the pool ", atomic_load (&coop.unmanaged_bytes), "\n");
  if (oom->advice > 0)
    {
      say ("coopscope:   a budget of ", oom->advice, " would do");
      fprintf (stderr, " (--budget %llu)\n", (unsigned long long) oom->advice);
    }
}

PyObject *
coop_py_on_oom (PyObject *self, PyObject *callback)
{
  PyObject *was = oom_state.callback;

  Py_INCREF (callback);
  oom_state.callback = callback == Py_None ? NULL : callback;
  if (callback == Py_None)
    Py_DECREF (callback);
  if (was != NULL)
    return was;
  Py_RETURN_NONE;
}

/* Whether the script wants it tried again: it has let go of something, or given more budget. */
static bool
ask_script (const CoopOom *oom)
{
  if (oom_state.callback == NULL || oom_state.asking || coop_thread.quiet)
    return false;
  oom_state.asking = true;
  PyObject *answer = PyObject_CallFunction (
      oom_state.callback, "KKKKKK", (unsigned long long) oom->asked, (unsigned long long) oom->free,
      (unsigned long long) oom->largest, (unsigned long long) oom->budget, (unsigned long long) oom->evictable,
      (unsigned long long) oom->advice);
  bool again = answer != NULL && PyObject_IsTrue (answer) == 1;

  if (answer == NULL || PyErr_Occurred ())
    PyErr_WriteUnraisable (oom_state.callback);
  Py_XDECREF (answer);
  oom_state.asking = false;
  return again;
}

bool
coop_oom (const CoopOom *oom)
{
  if (ask_script (oom))
    return true;
  report_no_memory (oom);
  return false;
}
