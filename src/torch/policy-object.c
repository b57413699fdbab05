/* SPDX-License-Identifier: Apache-2.0 */
/* Policy as Python objects: {name: text} in, {name: value} out, and the list of what can be turned. */
#include "torch/host.h"

static PyObject *
bad_name (int param, const char *what, const char *word)
{
  const char *near = coop_param_nearest (param, word);

  PyErr_Format (PyExc_ValueError, near ? "%s %s; did you mean %s?" : "%s %s", what, word, near);
  return NULL;
}

static bool
parse_one (CoopPolicy *policy, const char *name, const char *text, uint64_t *mask)
{
  int p = coop_param_find (name);

  if (p < 0)
    return bad_name (-1, "no parameter is called", name) != NULL;
  const CoopParamInfo *info = &coop_param_info[p];
  switch (coop_param_parse ((CoopParam) p, text, &policy->v[p]))
    {
    case COOP_PARSE_OK:
      *mask |= (uint64_t) 1 << p;
      return true;
    case COOP_PARSE_SYNTAX:
      if (info->type == COOP_TYPE_ENUM)
        return bad_name (p, name, text) != NULL;
      PyErr_Format (PyExc_ValueError, "%s: %s is not a value of it", name, text);
      return false;
    case COOP_PARSE_RANGE:
      break;
    }
  PyErr_Format (PyExc_ValueError, "%s: %s is out of range", name, text);
  return false;
}

/* {name: text}; an evictor brings the parameters that its preset names, others win over them. */
bool
coop_policy_parse (PyObject *dict, CoopPolicy *policy, uint64_t *mask)
{
  CoopPolicy was = *policy;
  PyObject *key, *value, *evictor;
  Py_ssize_t at = 0;
  char name[64], text[128];

  *mask = 0;
  if (dict == NULL || dict == Py_None)
    return true;
  evictor = PyDict_GetItemString (dict, "evictor");
  if (evictor != NULL)
    {
      if (coop_utf8 (evictor, text, sizeof text) == NULL || !parse_one (policy, "evictor", text, mask))
        return false;
      coop_policy_preset (policy, (CoopEvictorName) policy->v[COOP_PARAM_EVICTOR].i);
    }
  while (PyDict_Next (dict, &at, &key, &value))
    if (coop_utf8 (key, name, sizeof name) == NULL || coop_utf8 (value, text, sizeof text) == NULL
        || !parse_one (policy, name, text, mask))
      return false;
  for (int p = 0; p < COOP_N_PARAMS; p++)
    if (!coop_value_equal (p, was.v[p], policy->v[p]))
      *mask |= (uint64_t) 1 << p;
  return true;
}

static PyObject *
value_object (CoopParam p, CoopValue value)
{
  const CoopParamInfo *info = &coop_param_info[p];

  switch (info->type)
    {
    case COOP_TYPE_REAL: return PyFloat_FromDouble (value.d);
    case COOP_TYPE_BOOL: return PyBool_FromLong (value.i != 0);
    case COOP_TYPE_ENUM: return PyUnicode_FromString (info->labels[value.i]);
    case COOP_TYPE_SIZE:
    case COOP_TYPE_INT: break;
    }
  return PyLong_FromLongLong (value.i);
}

static bool
need_run (void)
{
  int run = atomic_load (&coop.run);

  if (run == COOP_RUN_WAITING || run == COOP_RUN_ON)
    return true;
  PyErr_SetString (PyExc_RuntimeError, "coopscope does not run here");
  return false;
}

CoopPolicy
coop_policy_now (void)
{
  CoopPolicy policy = coop.local;
  uint32_t source[COOP_N_PARAMS];

  if (coop.wire != NULL)
    coop_control_read (coop.wire, &policy, source);
  return policy;
}

PyObject *
coop_py_policy_get (PyObject *self, PyObject *args)
{
  if (!need_run ())
    return NULL;
  CoopPolicy policy = coop_policy_now ();
  PyObject *dict = PyDict_New ();
  for (int p = 0; dict != NULL && p < COOP_N_PARAMS; p++)
    {
      PyObject *value = value_object (p, policy.v[p]);
      if (value == NULL || PyDict_SetItemString (dict, coop_param_info[p].name, value) < 0)
        Py_CLEAR (dict);
      Py_XDECREF (value);
    }
  return dict;
}

void
coop_policy_change (const CoopPolicy *policy, uint64_t mask)
{
  if (coop.wire != NULL)
    {
      coop_control_set_many (coop.wire, policy, mask, COOP_SOURCE_API);
      return;
    }
  pthread_mutex_lock (&coop.lock);
  coop.local = *policy;
  pthread_mutex_unlock (&coop.lock);
  atomic_fetch_add (&coop.wanted, 1);
}

PyObject *
coop_py_policy_set (PyObject *self, PyObject *dict)
{
  uint64_t mask;

  if (!need_run ())
    return NULL;
  CoopPolicy policy = coop_policy_now ();
  if (!coop_policy_parse (dict, &policy, &mask))
    return NULL;
  coop_policy_change (&policy, mask);
  if (coop_on ())
    { /* takes effect, and is in the trace, before the call returns */
      coop_lock ();
      coop_unlock ();
    }
  Py_RETURN_NONE;
}

static PyObject *
labels_object (const char *const *labels)
{
  Py_ssize_t n = 0;

  if (labels == NULL)
    Py_RETURN_NONE;
  while (labels[n] != NULL)
    n++;
  PyObject *tuple = PyTuple_New (n);
  for (Py_ssize_t i = 0; tuple != NULL && i < n; i++)
    PyTuple_SetItem (tuple, i, PyUnicode_FromString (labels[i]));
  return tuple;
}

PyObject *
coop_py_params (PyObject *self, PyObject *args)
{
  static const char *const types[] = { "size", "int", "real", "bool", "enum" };
  PyObject *list = PyList_New (0);

  for (int p = 0; list != NULL && p < COOP_N_PARAMS; p++)
    {
      const CoopParamInfo *i = &coop_param_info[p];
      CoopValue def = { .i = (int64_t) i->def };
      if (i->type == COOP_TYPE_REAL)
        def.d = i->def;
      PyObject *row = Py_BuildValue ("ssddNsssN", i->name, types[i->type], i->min, i->max,
                                     value_object (p, def), i->unit, i->group, i->help,
                                     labels_object (i->labels));
      if (row == NULL || PyList_Append (list, row) < 0)
        Py_CLEAR (list);
      Py_XDECREF (row);
    }
  return list;
}
