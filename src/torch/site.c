/* SPDX-License-Identifier: Apache-2.0 */
/* Site: where in the user's script an operator was called, and in which module.
 *
 * A whole stack costs microseconds, so each call site's is walked once (stacks = first) and found again by
 * the operator, the innermost module that is running, and the code and instruction of the first frame that
 * is not PyTorch's. Inside of a module PyTorch's own frames are the same for every call of it, so the walk
 * ends there.
 *
 * A backward operator is shown where its forward was: autograd numbers the nodes of its graph, the operator
 * that runs when a node was just made gets the node's number, and in backward the node says it. Where this
 * PyTorch does not tell the node (before 2.1), the parameter or the activation that is read stands for it.
 * GIL. */
#include "torch/site.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

#define DEPTH 64
#define NODES (1u << 16)
#define SITES (1u << 16)     /* more call sites than that get the first one's of their operator */
#define MAX_WALK 12

typedef struct {
  uint64_t key[4];           /* operator, module, code, instruction */
  uint64_t stack;
  const char *where;
} Site;

typedef struct {
  uint64_t number, stack;
  const char *where;
} Node;

static struct {
  PyObject *module_name;     /* (root, module) -> text */
  PyObject *current_node, *sequence_nr, *f_code, *f_lasti, *f_back;
  uint64_t (*peek) (void);   /* number that the next node of the graph will get */
  Site *sites;
  size_t size, used;
  Node *nodes;
} site;

static _Thread_local struct {
  PyObject *module[DEPTH];   /* borrowed: their calls are under way */
  unsigned n;
} running;

bool
coop_site_setup (PyObject *functions)
{
  site.module_name = PyDict_GetItemString (functions, "module_name");
  site.current_node = PyDict_GetItemString (functions, "current_node");
  Py_XINCREF (site.module_name);
  Py_XINCREF (site.current_node);
  site.sequence_nr = PyUnicode_InternFromString ("_sequence_nr");
  site.f_code = PyUnicode_InternFromString ("f_code");
  site.f_lasti = PyUnicode_InternFromString ("f_lasti");
  site.f_back = PyUnicode_InternFromString ("f_back");
  void *library = dlopen ("libtorch_cpu.so", RTLD_LAZY | RTLD_NOLOAD);
  if (library != NULL)
    site.peek = (uint64_t (*) (void)) dlsym (library, "_ZN2at15sequence_number4peekEv");
  return site.module_name != NULL && site.f_back != NULL;
}

void
coop_site_enter (PyObject *module)
{
  if (running.n < DEPTH)
    running.module[running.n] = module;
  running.n++;
}

void
coop_site_leave (void)
{
  if (running.n > 0)
    running.n--;
}

static PyObject *
module_now (void)
{
  return running.n == 0 ? NULL : running.module[running.n < DEPTH ? running.n - 1 : DEPTH - 1];
}

/* ---- call sites ---- */

static size_t
place_of (const uint64_t key[4])
{
  uint64_t h = 0;

  for (int i = 0; i < 4; i++)
    h = (h ^ key[i]) * 0x9e3779b97f4a7c15ull, h ^= h >> 29;
  size_t i = h & (site.size - 1);
  while (site.sites[i].key[0] != 0 && memcmp (site.sites[i].key, key, sizeof site.sites[i].key) != 0)
    i = (i + 1) & (site.size - 1);
  return i;
}

static bool
grow (void)
{
  Site *old = site.sites;
  size_t n = site.size, size = n ? 2 * n : 1024;

  site.sites = calloc (size, sizeof *old);
  if (site.sites == NULL)
    {
      site.sites = old;
      return false;
    }
  site.size = size;
  for (size_t i = 0; i < n; i++)
    if (old[i].key[0] != 0)
      site.sites[place_of (old[i].key)] = old[i];
  free (old);
  return true;
}

/* The frame that tells two calls apart: the first that is not PyTorch's, or the last one looked at. */
static void
find_frame (uint64_t key[4], bool in_module)
{
  PyObject *frame = (PyObject *) PyEval_GetFrame ();

  Py_XINCREF (frame);
  for (unsigned n = 0; frame != NULL && frame != Py_None && n < MAX_WALK; n++)
    {
      PyObject *code = PyObject_GetAttr (frame, site.f_code);
      CoopCode what = code ? coop_code_kind (code) : COOP_CODE_USER;
      if (what == COOP_CODE_USER || (in_module && what == COOP_CODE_MODULE_CALL))
        {
          PyObject *at = what == COOP_CODE_USER ? PyObject_GetAttr (frame, site.f_lasti) : NULL;
          key[2] = (uint64_t) (uintptr_t) code;
          key[3] = at ? (uint64_t) PyLong_AsLong (at) : 0;
          Py_XDECREF (at);
          Py_XDECREF (code);
          break;
        }
      Py_XDECREF (code);
      PyObject *back = PyObject_GetAttr (frame, site.f_back);
      Py_DECREF (frame);
      frame = back;
    }
  Py_XDECREF (frame);
  PyErr_Clear ();
}

static uint64_t
whole_stack (PyObject *module, const char **where)
{
  char path[512];
  uint64_t stack = coop_stack (where);

  if (module == NULL)
    return stack;
  PyObject *type, *value, *traceback;
  PyErr_Fetch (&type, &value, &traceback);
  PyObject *name = PyObject_CallFunctionObjArgs (site.module_name, running.module[0], module, NULL);
  if (name != NULL && coop_utf8 (name, path, sizeof path) != NULL)
    stack = coop_stack_in_module (stack, path);
  Py_XDECREF (name);
  PyErr_Clear ();
  PyErr_Restore (type, value, traceback);
  return stack;
}

static uint64_t
stack_of_site (const CoopOpInfo *info, const char **where)
{
  PyObject *module = module_now ();
  uint64_t key[4] = { (uint64_t) (uintptr_t) info, (uint64_t) (uintptr_t) module, 0, 0 };

  find_frame (key, module != NULL);
  if (site.used * 2 >= site.size && (site.used >= SITES || !grow ()))
    {
      *where = info->where;
      return info->stack;
    }
  Site *s = &site.sites[place_of (key)];
  if (s->key[0] == 0)
    {
      uint64_t stack = whole_stack (module, where);
      s = &site.sites[place_of (key)]; /* Python ran, and may have called operators */
      if (s->key[0] == 0)
        site.used++;
      memcpy (s->key, key, sizeof key);
      s->stack = stack;
      s->where = *where;
    }
  *where = s->where;
  return s->stack;
}

/* ---- nodes of autograd's graph ---- */

/* The node just made is this operator's, unless another operator had it already. */
static void
remember_node (uint64_t stack, const char *where)
{
  if (site.nodes == NULL && (site.nodes = calloc (NODES, sizeof *site.nodes)) == NULL)
    return;
  uint64_t number = site.peek (); /* one more than the node's, so that 0 is none */
  Node *node = &site.nodes[number % NODES];
  if (node->number != number)
    *node = (Node){ number, stack, where };
}

static const Node *
node_now (void)
{
  if (site.current_node == NULL || site.current_node == Py_None || site.nodes == NULL)
    return NULL;
  PyObject *object = PyObject_CallFunctionObjArgs (site.current_node, NULL);
  PyObject *number = object && object != Py_None ? PyObject_CallMethodObjArgs (object, site.sequence_nr, NULL) : NULL;
  uint64_t n = number ? PyLong_AsUnsignedLongLong (number) + 1 : 0;
  Py_XDECREF (number);
  Py_XDECREF (object);
  if (PyErr_Occurred () || n == 0)
    {
      PyErr_Clear ();
      return NULL;
    }
  const Node *node = &site.nodes[n % NODES];
  return node->number == n ? node : NULL;
}

uint64_t
coop_site_find (CoopOpInfo *info, bool every, bool forward, bool backward, bool *exact)
{
  const Node *node = backward && !forward ? node_now () : NULL;
  const char *where = NULL;
  uint64_t stack;

  *exact = node != NULL;
  if (node != NULL)
    {
      info->where = node->where;
      return node->stack;
    }
  stack = every ? whole_stack (module_now (), &where) : stack_of_site (info, &where);
  info->where = where;
  info->stack = stack;
  if (forward && site.peek != NULL)
    remember_node (stack, where);
  return stack;
}
