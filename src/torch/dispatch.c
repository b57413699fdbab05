/* SPDX-License-Identifier: Apache-2.0 */
/* Dispatch: every operator of a thread comes by here, below autograd, with concrete tensors: inputs
 * are pinned and brought back, the operator runs, what it made becomes the engine's. */
#include "torch/call.h"
#include "torch/cuda.h"
#include "torch/imports.h"
#include "torch/quiet.h"
#include "torch/site.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

static struct {
  PyObject *grad_enabled, *set_grad_enabled, *generator, *generator_key;
  /* the same without Python; NULL if libc10 does not export it */
  bool (*grad_mode) (void);
  void (*set_grad_mode) (bool on);
  uint64_t since_stress;
} api;

bool
coop_dispatch_setup (PyObject *functions)
{
  api.grad_enabled = PyDict_GetItemString (functions, "is_grad_enabled");
  api.generator = PyDict_GetItemString (functions, "default_generator");
  api.generator_key = PyUnicode_InternFromString ("generator");
  void *library = coop_imports_library ("libc10.so");
  if (library != NULL)
    {
      api.grad_mode = (bool (*) (void)) dlsym (library, "_ZN3c108GradMode10is_enabledEv");
      api.set_grad_mode = (void (*) (bool)) dlsym (library, "_ZN3c108GradMode11set_enabledEb");
    }
  api.set_grad_enabled = PyDict_GetItemString (functions, "set_grad_enabled");
  Py_XINCREF (api.grad_enabled);
  Py_XINCREF (api.set_grad_enabled);
  Py_XINCREF (api.generator);
  return coop_gather_setup (functions) && coop_view_setup (functions) && coop_site_setup (functions)
         && api.grad_enabled != NULL && api.set_grad_enabled != NULL
         && api.generator != NULL;
}

bool
coop_grad_enabled (void)
{
  if (api.grad_mode != NULL)
    return api.grad_mode ();
  PyObject *r = PyObject_CallFunctionObjArgs (api.grad_enabled, NULL);
  bool on = r == Py_True;

  Py_XDECREF (r);
  return on;
}

bool
coop_set_grad_enabled (bool on)
{
  if (api.set_grad_mode != NULL)
    {
      api.set_grad_mode (on);
      return true;
    }
  PyObject *r = PyObject_CallFunctionObjArgs (api.set_grad_enabled, on ? Py_True : Py_False, NULL);

  Py_XDECREF (r);
  return r != NULL;
}

/* What records gradients is forward, in the middle of a backward pass, too: a checkpoint's second one. */
static CoopPhase
phase_of (const CoopDispatch *d)
{
  if (d->grad)
    return COOP_PHASE_FORWARD;
  if (atomic_load_explicit (&coop.backward, memory_order_relaxed) > 0)
    return COOP_PHASE_BACKWARD;
  if (atomic_load_explicit (&coop.optimizer, memory_order_relaxed) > 0)
    return COOP_PHASE_OPTIMIZER;
  for (unsigned i = 0; i < d->n_inputs; i++) /* an optimizer written out by hand */
    if ((d->inputs[i].use & COOP_USE_WRITE) && d->inputs[i].tensor->kind == COOP_KIND_STATE)
      return COOP_PHASE_OPTIMIZER;
  return COOP_PHASE_OTHER;
}

/* The state of the generator that the operator is about to draw from. */
static bool
save_generator (CoopDispatch *d)
{
  PyObject *given = NULL;

  if (!(d->info->flags & COOP_OP_RANDOM) || !d->call.replayable)
    return true;
  if (d->kwargs != NULL)
    given = PyDict_GetItem (d->kwargs, api.generator_key);
  for (unsigned i = 0; given == NULL && i < d->info->n_args; i++)
    if (i < (unsigned) PyTuple_Size (d->args)
        && PyUnicode_Compare (d->info->arg_names[i], api.generator_key) == 0)
      given = PyTuple_GetItem (d->args, i);
  if (given != NULL && given != Py_None)
    d->generator = given;
  else
    d->generator = coop.cuda && coop_cuda_generator () ? coop_cuda_generator () : api.generator;
  Py_INCREF (d->generator);
  d->state = coop_generator_get (d->generator);
  return d->state != NULL;
}

static bool
begin (CoopDispatch *d)
{
  CoopCall *call = &d->call;

  call->inputs = d->inputs;
  call->n_inputs = d->n_inputs;
  call->name = d->info->string;
  call->thread = &coop_thread;
  call->phase = phase_of (d);
  coop_line_settle (d);
  call->op_class = d->info->flags & COOP_OP_EXPENSIVE ? COOP_CLASS_EXPENSIVE : COOP_CLASS_CHEAP;
  coop_lock ();
  bool ok = coop_engine_begin (coop.engine, call);
  coop_unlock ();
  if (!ok)
    {
      PyErr_NoMemory ();
      return false;
    }
  if (!coop_replay_all (call))
    return false;
  if (coop.cuda)
    coop_cuda_will_read_inputs (call);
  return true;
}

/* Blocks of written inputs that the operator gave back while it ran. */
static void
free_deferred (CoopDispatch *d, unsigned from)
{
  CoopThread *t = &coop_thread;

  if (t->n_deferred == from)
    return;
  coop_lock ();
  while (t->n_deferred > from)
    coop_engine_free (coop.engine, coop_arena_offset (coop.arena, t->deferred[--t->n_deferred]));
  coop_unlock ();
}

static void
abort_call (CoopDispatch *d)
{
  coop_lock ();
  coop_engine_abort (coop.engine, &d->call);
  coop_unlock ();
  coop_gather_forget (d);
}

/* Whether a record is worth making: something new that is not constant from birth. */
static bool
wants_record (const CoopDispatch *d)
{
  if (!d->call.replayable || d->grew)
    return false;
  for (unsigned i = 0; i < d->n_inputs; i++)
    if ((d->inputs[i].use & COOP_USE_WRITE) && d->inputs[i].tensor->pin == COOP_PIN_NONE)
      return true;
  return d->n_made > 0;
}

/* Private copies pay only where they are smaller than what they make evictable. */
static bool
copies_pay (const CoopDispatch *d)
{
  uint64_t made = 0;

  for (unsigned i = 0; i < d->n_made; i++)
    made += d->made[i].view.nbytes;
  d->info->copy_wasted = d->foreign_read && d->copied >= made;
  return !d->info->copy_wasted;
}

static CoopRecipe *
make_recipe (CoopDispatch *d)
{
  int map[COOP_INLINE_SLOTS], *index = map, n = 0;

  if (d->n_inputs > COOP_INLINE_SLOTS && (index = malloc (d->n_inputs * sizeof *index)) == NULL)
    return NULL;
  for (unsigned i = 0; i < d->n_inputs; i++) /* the record does not know the unrecorded ones */
    index[i] = d->inputs[i].use & COOP_USE_UNRECORDED ? -1 : n++;
  for (unsigned i = 0; i < d->n_slots; i++)
    if (d->slots[i].input >= 0)
      d->slots[i].input = index[d->slots[i].input];
  if (index != map)
    free (index);
  return coop_recipe_new (d->info, d->args, d->kwargs, d->slots, d->n_slots, d->made, d->n_made, d->env,
                          d->grad, d->generator, d->state);
}

typedef struct {
  CoopOutput *outputs;
  CoopTensor **written;
  CoopHost **hosts;      /* of the inputs, before */
  unsigned *positions;
  void *block;
} Ending;

static bool
is_read_unseen (const CoopDispatch *d, const CoopView *v)
{
  const CoopDtype *dtype = coop_dtype (v->dtype);
  return coop_read_unseen (v) || (dtype != NULL && dtype->integer && d->info->flags & COOP_OP_LENGTHS);
}

static bool
ending_init (Ending *e, const CoopDispatch *d, bool constant)
{
  e->block = calloc (1, d->n_made * sizeof *e->outputs
                          + d->n_inputs * (sizeof *e->written + sizeof *e->hosts + sizeof *e->positions)
                          + 1);
  if (e->block == NULL)
    return false;
  e->outputs = e->block;
  e->written = (CoopTensor **) (void *) (e->outputs + d->n_made);
  e->hosts = (CoopHost **) (void *) (e->written + d->n_inputs);
  e->positions = (unsigned *) (void *) (e->hosts + d->n_inputs);
  for (unsigned i = 0; i < d->n_inputs; i++)
    e->hosts[i] = d->inputs[i].tensor->host;
  for (unsigned i = 0; i < d->n_made; i++)
    {
      const CoopView *v = &d->made[i].view;
      const CoopDtype *dtype = coop_dtype (v->dtype);
      bool raw = constant || is_read_unseen (d, v);
      e->outputs[i] = (CoopOutput){ .addr = coop_arena_offset (coop.arena, v->data),
                                    .requested = v->nbytes, .dtype = dtype ? dtype->string : 0,
                                    .ndim = v->ndim, .dims = v->sizes, .constant = raw };
    }
  return true;
}

/* Ties hosts to the new versions. Under the lock. Returns how many inputs have one. */
static unsigned
tie_hosts (CoopDispatch *d, Ending *e)
{
  unsigned n = 0, recorded = 0;

  for (unsigned i = 0; i < d->n_made; i++)
    {
      d->made_host[i]->tensor = e->outputs[i].tensor;
      if (e->outputs[i].tensor == NULL)
        continue;
      e->outputs[i].tensor->host = d->made_host[i];
      if (is_read_unseen (d, &d->made[i].view)) /* nor may it move */
        coop_engine_pin (coop.engine, e->outputs[i].tensor, COOP_PIN_UNMANAGED);
    }
  for (unsigned i = 0; i < d->n_inputs; i++)
    {
      if (e->written[i] != NULL)
        {
          e->positions[n++] = recorded;
          e->written[i]->host = e->hosts[i];
          e->hosts[i]->tensor = e->written[i];
          e->hosts[i]->op = d->info;
          e->hosts[i]->where = d->info->where;
          if (d->grad)
            {
              e->hosts[i]->site = d->call.stack;
              e->hosts[i]->site_where = d->info->where;
            }
          e->hosts[i]->hashed = false;
        }
      recorded += !(d->inputs[i].use & COOP_USE_UNRECORDED);
    }
  return n;
}

static bool
end (CoopDispatch *d, uint64_t cost)
{
  Ending e;
  bool pays = copies_pay (d);
  CoopRecipe *recipe = pays && wants_record (d) ? make_recipe (d) : NULL;
  bool constant = recipe == NULL;

  if (recipe != NULL)
    coop_recipe_set_cost (recipe, cost);

  PyErr_Clear ();
  if (!ending_init (&e, d, constant))
    {
      coop_recipe_free (recipe);
      abort_call (d);
      return PyErr_NoMemory () != NULL;
    }
  if (constant)
    d->call.replayable = false;
  coop_lock ();
  CoopOp *op = coop_engine_end (coop.engine, &d->call, e.outputs, d->n_made, cost, e.written);
  unsigned n_written = tie_hosts (d, &e);
  if (op != NULL)
    {
      coop_recipe_set_written (recipe, e.positions, n_written);
      coop_op_set_host (op, recipe);
    }
  coop_unlock ();
  if (op == NULL)
    coop_recipe_free (recipe);
  for (unsigned i = 0; i < d->n_made; i++)
    if (d->made_host[i]->tensor == NULL)
      coop_host_free (d->made_host[i]);
  free (e.block);
  return true;
}

/* Evicts all that is not pinned, and moves what stays if anything ever moves, after every so many
 * operators: the hardest test there is. */
static void
stress (void)
{
  int64_t every = coop.policy.v[COOP_PARAM_STRESS].i;

  if (every <= 0 || ++api.since_stress < (uint64_t) every || !atomic_load (&coop.may_evict))
    return;
  api.since_stress = 0;
  coop_evict_all ();
  if (coop.policy.v[COOP_PARAM_COMPACT].i)
    coop_move_all ();
}

/* Sparse, nested and the like keep tensors inside where nobody sees them. */
bool
coop_escape_inputs (const CoopDispatch *d)
{
  coop.unmanaged_tensors++;
  for (unsigned i = 0; i < d->n_slots; i++)
    if (d->slots[i].view.plain && !coop_touch (d->slots[i].tensor, COOP_USE_ESCAPE, NULL))
      return false;
  return true;
}

static PyObject *
run (CoopDispatch *d)
{
  CoopThread *t = &coop_thread;
  CoopCall *outer = t->call;
  unsigned deferred = t->n_deferred;
  uint64_t cost;

  t->call = &d->call;
  PyObject *result = coop_attempt (d, &cost);
  t->call = outer;
  d->grew = t->n_deferred > deferred;
  if (result == NULL || !coop_gather_outputs (d, result))
    {
      abort_call (d);
      Py_CLEAR (result);
    }
  else if (!end (d, coop.cuda ? coop_attempt_cost (d) : cost))
    Py_CLEAR (result);
  free_deferred (d, deferred);
  return result;
}

static PyObject *
manage (CoopDispatch *d)
{
  PyObject *result = NULL;

  d->call.replayable = !(d->info->flags & COOP_OP_NOREPLAY) && !d->unmanaged_in && !d->nested
                       && atomic_load_explicit (&coop.aside, memory_order_relaxed) == 0;
  coop_line_find (d);
  if (coop_gather_inputs (d) && begin (d))
    {
      bool random = (d->info->flags & COOP_OP_RANDOM) != 0;
      if (random)
        coop_generator_lock ();
      if (save_generator (d) && (d->env = coop_environment_now ()) != NULL)
        result = run (d);
      else
        abort_call (d);
      if (random)
        coop_generator_unlock ();
    }
  coop_act ();
  d->unmanaged_out |= (d->info->flags & COOP_OP_ASYNC) != 0;
  if (result != NULL && d->unmanaged_out && !coop_escape_inputs (d))
    Py_CLEAR (result);
  if (result != NULL)
    stress ();
  if (result != NULL && coop.wire != NULL && coop_control_stop (coop.wire) && !coop_detach ())
    Py_CLEAR (result);
  return result;
}

/* __torch_dispatch__ (self, func, types, args, kwargs) */
PyObject *
coop_dispatch (PyObject *self, PyObject *arguments, PyObject *keywords)
{
  CoopDispatch d;
  PyObject *func = PyTuple_GetItem (arguments, 0), *result;

  if (func == NULL)
    return NULL;
  d.args = PyTuple_GetItem (arguments, 2);
  if (d.args == NULL)
    return NULL;
  d.kwargs = PyTuple_Size (arguments) > 3 ? PyTuple_GetItem (arguments, 3) : NULL;
  if (d.kwargs != NULL && (d.kwargs == Py_None || PyDict_Size (d.kwargs) == 0))
    d.kwargs = NULL;
  int state = atomic_load_explicit (&coop.run, memory_order_relaxed);
  if (state == COOP_RUN_WAITING && !coop.cuda)
    coop_pool_begin ();
  if (!coop_on ())
    return PyObject_Call (func, d.args, d.kwargs);
  d.info = coop_op_lookup (func);
  if (d.info == NULL)
    return NULL;
  if (d.info->flags & COOP_OP_PASS)
    return coop_view_call (&d);
  memset ((char *) &d + offsetof (CoopDispatch, slots), 0,
          offsetof (CoopDispatch, inline_slots) - offsetof (CoopDispatch, slots));
  if (!coop_gather_slots (&d))
    result = NULL;
  else if (d.subclass)
    { /* it will take itself apart, and its parts come by here */
      result = Py_NotImplemented;
      Py_INCREF (result);
    }
  else
    {
      coop_gc_hold ();
      result = manage (&d);
      coop_gc_release ();
    }
  coop_gather_clear (&d);
  return result;
}
