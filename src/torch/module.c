/* SPDX-License-Identifier: Apache-2.0 */
/* Module: what Python sees of the adapter. */
#include "torch/call.h"
#include "torch/quiet.h"
#include "torch/site.h"
#include "torch/cuda.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define API __attribute__ ((visibility ("default")))

/* ---- start and stop -------------------------------------------------------------------------- */

static PyObject *
m_wire_create (PyObject *self, PyObject *args)
{
  unsigned long long bytes;
  PyObject *dict;
  CoopPolicy policy;
  CoopWire *wire;
  uint64_t mask;

  if (!PyArg_ParseTuple (args, "KO", &bytes, &dict))
    return NULL;
  coop_policy_init (&policy);
  if (!coop_policy_parse (dict, &policy, &mask))
    return NULL;
  CoopWireError error = coop_wire_create (bytes ? bytes : COOP_RING_BYTES, &policy, &wire);
  if (error != COOP_WIRE_OK)
    return PyErr_Format (PyExc_RuntimeError, "%s", coop_wire_strerror (error));
  if (mask != 0)
    coop_control_set_many (wire, &policy, mask, COOP_SOURCE_API);
  int fd = dup (coop_wire_fd (wire));
  coop_wire_free (wire);
  return fd < 0 ? PyErr_SetFromErrno (PyExc_OSError) : PyLong_FromLong (fd);
}

/* What the tool at the other end of a wire wants: (trace, {name: text}). */
static PyObject *
m_wire_read (PyObject *self, PyObject *args)
{
  int fd;
  char trace[1024] = "", text[128];
  CoopPolicy policy;
  CoopWire *wire;
  uint32_t source[COOP_N_PARAMS];

  if (!PyArg_ParseTuple (args, "i", &fd))
    return NULL;
  CoopWireError error = coop_wire_open (fd, &wire);
  if (error != COOP_WIRE_OK)
    return PyErr_Format (PyExc_RuntimeError, "%s", coop_wire_strerror (error));
  coop_policy_init (&policy);
  coop_control_read (wire, &policy, source);
  coop_wire_trace (wire, trace, sizeof trace);
  coop_wire_free (wire);
  PyObject *params = PyDict_New ();
  for (int p = 0; params != NULL && p < COOP_N_PARAMS; p++)
    {
      coop_param_format ((CoopParam) p, policy.v[p], text, sizeof text);
      PyObject *value = PyUnicode_FromString (text);
      if (value == NULL || PyDict_SetItemString (params, coop_param_info[p].name, value) < 0)
        Py_CLEAR (params);
      Py_XDECREF (value);
    }
  return params ? Py_BuildValue ("(NN)", PyUnicode_DecodeFSDefault (trace), params) : NULL;
}

static PyObject *
m_setup (PyObject *self, PyObject *args)
{
  PyObject *functions, *samples;
  const char *torch, *own;

  if (!PyArg_ParseTuple (args, "O!O!ss", &PyDict_Type, &functions, &PyDict_Type, &samples, &torch, &own))
    return NULL;
#define F(name) PyDict_GetItemString (functions, name)
  bool ok = coop_layout_find (samples) && coop_storage_setup (functions)
            && coop_optable_setup (F ("describe"))
            && coop_environment_setup (F ("environment_get"), F ("environment_set"))
            && coop_recipe_setup (functions) && coop_quiet_setup (functions)
            && coop_dispatch_setup (functions);
#undef F
  if (!ok)
    {
      if (!PyErr_Occurred ())
        PyErr_SetString (PyExc_RuntimeError, "a function of the adapter is missing");
      return NULL;
    }
  coop_intern_ignore (0, torch);
  coop_intern_ignore (1, own);
  for (unsigned i = 0; i < COOP_MAX_DTYPES; i++)
    if (coop_dtype ((uint16_t) i) != NULL)
      coop_dtype ((uint16_t) i)->string = coop_string (coop_dtype ((uint16_t) i)->name);
  Py_RETURN_NONE;
}

static bool
read_meta (PyObject *dict, CoopMeta *meta, unsigned room, unsigned *n)
{
  PyObject *key, *value;
  Py_ssize_t at = 0;

  *n = 0;
  while (*n < room && PyDict_Next (dict, &at, &key, &value))
    {
      if (coop_utf8 (key, meta[*n].key, sizeof meta->key) == NULL
          || coop_utf8 (value, meta[*n].value, sizeof meta->value) == NULL)
        return false;
      ++*n;
    }
  return true;
}

static void
in_child (void)
{
  pthread_mutex_init (&coop.lock, NULL);
  if (atomic_load (&coop.run) == COOP_RUN_ON)
    atomic_store (&coop.run, COOP_RUN_CHILD);
  else
    atomic_store (&coop.run, COOP_RUN_OFF);
  atomic_store (&coop.may_evict, false);
  coop.wire = NULL;
}

/* A second run gets a pool of its own; what the first one left lies where it lies. */
static void
retire_old_pool (void)
{
  const unsigned n = sizeof coop.old / sizeof *coop.old;

  if (coop.arena == NULL)
    return;
  for (unsigned i = n - 1; i > 0; i--)
    coop.old[i] = coop.old[i - 1];
  coop.old[0] = coop.arena;
  coop.arena = NULL;
  coop.shadow = NULL;
  coop.engine = NULL;
  coop.wire = NULL;
  coop.wire_ended = false;
}

static PyObject *
m_start (PyObject *self, PyObject *args)
{
  CoopMeta meta[32];
  CoopPolicy policy;
  CoopWire *wire = NULL;
  PyObject *dict, *info;
  uint64_t mask;
  unsigned n;
  int fd;
  static bool watched;

  if (!PyArg_ParseTuple (args, "iOO!", &fd, &dict, &PyDict_Type, &info))
    return NULL;
  if (atomic_load (&coop.run) != COOP_RUN_OFF)
    return PyErr_Format (PyExc_RuntimeError, "coopscope runs here already");
  coop_policy_init (&policy);
  if (!coop_policy_parse (dict, &policy, &mask) || !read_meta (info, meta, 32, &n))
    return NULL;
  CoopWireError error = fd < 0 ? COOP_WIRE_OK : coop_wire_open (fd, &wire);
  if (error != COOP_WIRE_OK)
    return PyErr_Format (PyExc_RuntimeError, "%s", coop_wire_strerror (error));
  retire_old_pool ();
  if (!coop_pool_prepare (wire, &policy, meta, n))
    return NULL;
  if (!coop.cuda && !coop_hook_install ())
    return PyErr_Format (PyExc_RuntimeError, "PyTorch's allocator cannot be reached: %s",
                         errno == ENOENT ? "libc10.so has no slots for it" : strerror (errno));
  if (!watched)
    pthread_atfork (NULL, NULL, in_child);
  watched = true;
  coop_fault_install ();
  atomic_store (&coop.may_evict, true);
  atomic_store (&coop.run, COOP_RUN_WAITING);
  Py_RETURN_NONE;
}

/* At the interpreter's end: no more evictions, and the good-bye. */
static PyObject *
m_finish (PyObject *self, PyObject *args)
{
  coop_pool_end (0);
  Py_RETURN_NONE;
}

static PyObject *
m_stop (PyObject *self, PyObject *args)
{
  if (!coop_detach ())
    return NULL;
  Py_RETURN_NONE;
}

/* ---- looking and marking --------------------------------------------------------------------- */

static PyObject *
m_stats (PyObject *self, PyObject *args)
{
  CoopTotals t = { 0 };

  if (coop_on ())
    {
      coop_lock ();
      coop_engine_totals (coop.engine, &t);
      coop_unlock ();
    }
#define U(name) #name, (unsigned long long) t.name
  return Py_BuildValue (
      "{sKsKsKsKsKsKsKsKsKsKsKsKsKsKsKsKsKsKsKsKsKsdsKsKsKsKsKsKsKsKsKsKsK}", U (budget), U (capacity),
      U (live), U (peak), U (free), U (largest), U (pinned), U (constant), U (evicted), U (allocs),
      U (frees), U (evictions), U (evicted_bytes), U (searches), U (search_ns), U (ops), U (replays),
      U (ooms), U (moves), U (op_ns), U (replay_ns), "fragmentation", t.fragmentation, U (step),
      U (records), U (tensors), U (record_bytes), "unmanaged_bytes",
      (unsigned long long) atomic_load (&coop.unmanaged_bytes), "unmanaged_allocs",
      (unsigned long long) atomic_load (&coop.unmanaged_allocs), "unmanaged_tensors",
      (unsigned long long) coop.unmanaged_tensors, "moved_in", (unsigned long long) coop.moved_in,
      "private_copies", (unsigned long long) coop.copies, "dropped_events",
      (unsigned long long) atomic_load (&coop.dropped), "texts", (unsigned long long) coop_intern_texts ());
#undef U
}

static PyObject *
m_managing (PyObject *self, PyObject *args)
{
  return PyBool_FromLong (coop_on ());
}

static PyObject *
m_check (PyObject *self, PyObject *args)
{
  const char *wrong = NULL;

  if (coop_on ())
    {
      coop_lock ();
      wrong = coop_engine_check (coop.engine);
      coop_unlock ();
    }
  if (wrong == NULL)
    Py_RETURN_NONE;
  return PyUnicode_FromString (wrong);
}

/* One piece of the pool: (address, bytes, what), what = None for a hole, else (tensor, kind, lasting
 * pin, pins now, operator), tensor 0 for a block that nobody has claimed. */
static PyObject *
piece_object (const CoopPiece *p)
{
  const CoopTensor *t = p->tensor;
  const CoopHost *host = t ? t->host : NULL;
  PyObject *what;

  if (p->used)
    what = Py_BuildValue ("(KssIs)", (unsigned long long) (t ? t->id : 0),
                          coop_kind_label (t ? t->kind : COOP_KIND_UNKNOWN),
                          coop_pin_label (t ? t->pin : COOP_PIN_UNCLAIMED), t ? t->pins : 0,
                          host && host->op ? host->op->name : "");
  else
    what = Py_BuildValue ("");
  return Py_BuildValue ("(KKN)", (unsigned long long) p->addr, (unsigned long long) p->bytes, what);
}

static PyObject *
m_pieces (PyObject *self, PyObject *args)
{
  size_t n = 0, room = 0;
  CoopPiece *pieces = NULL;
  PyObject *list = PyList_New (0);

  if (!coop_on () || list == NULL)
    return list;
  do
    {
      room = n + 64;
      free (pieces);
      pieces = calloc (room, sizeof *pieces);
      coop_lock ();
      n = pieces ? coop_engine_pieces (coop.engine, pieces, room) : 0;
      coop_unlock ();
    }
  while (n > room);
  for (size_t i = 0; list != NULL && i < n; i++)
    {
      PyObject *row = piece_object (&pieces[i]);
      if (row == NULL || PyList_Append (list, row) < 0)
        Py_CLEAR (list);
      Py_XDECREF (row);
    }
  free (pieces);
  return list;
}

static PyObject *
m_annotate (PyObject *self, PyObject *text)
{
  char utf8[1024];
  CoopEvent ev = { .kind = COOP_EVENT_ANNOTATION };

  if (coop_utf8 (text, utf8, sizeof utf8) == NULL)
    return NULL;
  ev.u.annotation.string = coop_string (utf8);
  if (coop_on ())
    {
      coop_lock ();
      coop_tell (&ev, NULL);
      coop_unlock ();
    }
  Py_RETURN_NONE;
}

static PyObject *
m_warn (PyObject *self, PyObject *text)
{
  char utf8[1024];

  if (coop_utf8 (text, utf8, sizeof utf8) == NULL)
    return NULL;
  coop_warn (utf8, 0, 0);
  Py_RETURN_NONE;
}

static PyObject *
m_escape (PyObject *self, PyObject *tensor)
{
  return coop_touch (tensor, COOP_USE_ESCAPE, NULL) ? Py_BuildValue ("") : NULL;
}

static PyObject *
m_keep (PyObject *self, PyObject *tensor)
{
  return coop_touch (tensor, COOP_USE_KEEP, NULL) ? Py_BuildValue ("") : NULL;
}

static PyObject *
m_state (PyObject *self, PyObject *tensor)
{
  return coop_touch (tensor, COOP_USE_STATE, NULL) ? Py_BuildValue ("") : NULL;
}

static PyObject *
m_bring_back (PyObject *self, PyObject *args)
{
  if (coop_on () && !coop_touch_all (true))
    return NULL;
  Py_RETURN_NONE;
}

static void
scope_free (PyObject *capsule)
{
  CoopScope **scope = PyCapsule_GetPointer (capsule, "coopscope.scope");

  coop_touch_end (*scope);
  PyMem_Free (scope);
}

/* While the object that this returns lives, what `touch (scope, tensor)` brought back stays. */
static PyObject *
m_scope (PyObject *self, PyObject *args)
{
  CoopScope **scope = PyMem_Malloc (sizeof *scope);

  if (scope == NULL)
    return PyErr_NoMemory ();
  *scope = NULL;
  return PyCapsule_New (scope, "coopscope.scope", scope_free);
}

static PyObject *
m_touch (PyObject *self, PyObject *args)
{
  PyObject *capsule, *tensor;

  if (!PyArg_ParseTuple (args, "OO", &capsule, &tensor))
    return NULL;
  CoopScope **scope = PyCapsule_GetPointer (capsule, "coopscope.scope");
  return scope && coop_touch (tensor, 0, scope) ? Py_BuildValue ("") : NULL;
}

static PyObject *
count (PyObject *number, _Atomic int *counter)
{
  long by = PyLong_AsLong (number);

  if (by == -1 && PyErr_Occurred ())
    return NULL;
  atomic_fetch_add (counter, (int) by);
  Py_RETURN_NONE;
}

static PyObject *
m_backward (PyObject *self, PyObject *by)
{
  return count (by, &coop.backward);
}

static PyObject *
m_optimizer (PyObject *self, PyObject *by)
{
  return count (by, &coop.optimizer);
}

static PyObject *
m_aside (PyObject *self, PyObject *by)
{
  return count (by, &coop.aside);
}

/* Returns how many requests were still to go. */
static PyObject *
m_refuse (PyObject *self, PyObject *number)
{
  long k = PyLong_AsLong (number);

  if (k == -1 && PyErr_Occurred ())
    return NULL;
  long left = atomic_exchange (&coop.refuse, k);
  return PyLong_FromLong (left > 0 ? left : 0);
}

static PyObject *
m_enter (PyObject *self, PyObject *module)
{
  coop_site_enter (module);
  Py_RETURN_NONE;
}

static PyObject *
m_leave (PyObject *self, PyObject *args)
{
  coop_site_leave ();
  Py_RETURN_NONE;
}

static PyObject *
m_environment_changed (PyObject *self, PyObject *args)
{
  atomic_fetch_add (&coop.environment, 1);
  Py_RETURN_NONE;
}

static PyMethodDef methods[] = {
  { "setup", m_setup, METH_VARARGS, "setup(functions, samples, folder): once, before start" },
  { "start", m_start, METH_VARARGS, "start(fd, params, meta): fd -1 for no trace" },
  { "stop", m_stop, METH_NOARGS, "Brings back what is evicted and lets go of the memory." },
  { "finish", m_finish, METH_NOARGS, "At the interpreter's end: the good-bye." },
  { "wire_create", m_wire_create, METH_VARARGS, "wire_create(ring_bytes, params) -> fd" },
  { "wire_read", m_wire_read, METH_VARARGS, "wire_read(fd) -> (trace, {name: text}) that the tool wants" },
  { "params", coop_py_params, METH_NOARGS,
    "Rows: name, type, min, max, default, unit, group, help, labels." },
  { "policy_get", coop_py_policy_get, METH_NOARGS, "{name: value} of the run." },
  { "policy_set", coop_py_policy_set, METH_O, "Takes {name: text}; all or none." },
  { "stats", m_stats, METH_NOARGS, "Totals of the run." },
  { "managing", m_managing, METH_NOARGS, "Whether memory is managed now." },
  { "check", m_check, METH_NOARGS, "None, or the invariant of the engine that does not hold." },
  { "pieces", m_pieces, METH_NOARGS, "The pool in address order." },
  { "annotate", m_annotate, METH_O, "A mark in the trace." },
  { "warn", m_warn, METH_O, "A line on stderr and in the trace." },
  { "escape", m_escape, METH_O, "The pointer of a tensor leaves: it stays for life." },
  { "keep", m_keep, METH_O, "A tensor that is never evicted." },
  { "state", m_state, METH_O, "A parameter or buffer." },
  { "bring_back", m_bring_back, METH_NOARGS, "Brings back what is evicted, as far as it fits." },
  { "scope", m_scope, METH_NOARGS, "Keeps what touch() brings back while it lives." },
  { "touch", m_touch, METH_VARARGS, "touch(scope, tensor)" },
  { "backward", m_backward, METH_O, "+1 on the way into backward, -1 out of it." },
  { "optimizer", m_optimizer, METH_O, "+1 on the way into an optimizer's step, -1 out of it." },
  { "on_oom", coop_py_on_oom, METH_O, "on_oom(callback or None) -> the one before" },
  { "keys", coop_py_keys, METH_NOARGS, "This thread's dispatch keys, (included, excluded), as PyTorch writes them." },
  { "stack_mode", coop_py_stack_mode, METH_VARARGS, "stack_mode(length, pop, push, set_mode): what StackMode needs" },
  { "quiet_keys", coop_py_quiet_keys, METH_VARARGS, "quiet_keys(on, off): while operators run again" },
  { "refuse", m_refuse, METH_O, "Tests: the k-th request for memory from now is refused; 0: none." },
  { "enter", m_enter, METH_O, "A module's call begins." },
  { "leave", m_leave, METH_NOARGS, "And ends." },
  { "aside", m_aside, METH_O, "+1 where nothing is to be recorded, -1 after it." },
  { "cuda_setup", coop_py_cuda_setup, METH_VARARGS, "cuda_setup(ordinal, current_stream): before start" },
  { "cuda_hooks", coop_py_cuda_hooks, METH_NOARGS, "Addresses for the shim: alloc, free, record_stream." },
  { "cuda_sample", coop_py_cuda_sample, METH_VARARGS, "cuda_sample(tensor, storage, data): once CUDA is up" },
  { "cuda_kernels", coop_py_cuda_kernels, METH_NOARGS, "What CUPTI has seen, if it was asked for." },
  { "cuda_info", coop_py_cuda_info, METH_NOARGS, "The GPU's own figures." },
  { "environment_changed", m_environment_changed, METH_NOARGS, "A global switch was turned." },
  { NULL, NULL, 0, NULL }
};

#define HANDLER(function, doc) \
  { "__torch_dispatch__", (PyCFunction) (void (*) (void)) function, METH_VARARGS | METH_KEYWORDS, doc }
static PyMethodDef mode_methods[] = { HANDLER (coop_dispatch, "Every operator comes by here."), { NULL, NULL, 0, NULL } };
static PyMethodDef stack_methods[] = { HANDLER (coop_stack_mode_dispatch, "To the innermost mode."),
                                       { NULL, NULL, 0, NULL } };

static PyType_Slot mode_slots[] = { { Py_tp_methods, mode_methods }, { 0, NULL } };
static PyType_Slot stack_slots[] = { { Py_tp_methods, stack_methods }, { 0, NULL } };

static PyType_Spec mode_spec = { .name = "coopscope._coopscope.DispatchBase",
                                 .basicsize = sizeof (PyObject),
                                 .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE,
                                 .slots = mode_slots };
static PyType_Spec stack_spec = { .name = "coopscope._coopscope.StackMode",
                                  .basicsize = sizeof (PyObject),
                                  .flags = Py_TPFLAGS_DEFAULT,
                                  .slots = stack_slots };

static struct PyModuleDef module = { PyModuleDef_HEAD_INIT, .m_name = "_coopscope", .m_size = -1,
                                     .m_methods = methods };

static bool
add_type (PyObject *m, const char *name, PyType_Spec *spec)
{
  PyObject *type = PyType_FromSpec (spec);

  if (type != NULL && PyModule_AddObject (m, name, type) == 0)
    return true;
  Py_XDECREF (type);
  return false;
}

API PyMODINIT_FUNC
PyInit__coopscope (void)
{
  PyObject *m = PyModule_Create (&module);

  if (m == NULL || !add_type (m, "DispatchBase", &mode_spec) || !add_type (m, "StackMode", &stack_spec))
    {
      Py_XDECREF (m);
      return NULL;
    }
  return m;
}
