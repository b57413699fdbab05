/* SPDX-License-Identifier: Apache-2.0 */
/* Replay: what the engine asks for until an operator's inputs are there. The engine walks the chain,
 * iteratively; here one operator at a time is run again, below autograd and outside of every mode. */
#include "torch/cuda.h"
#include "torch/quiet.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* One replay: what it reads and what became of it. */
typedef struct {
  CoopReplay step;
  CoopRecipe *record;
  PyObject **inputs;     /* storages, one an input */
  PyObject **outputs;    /* storages, as the engine numbers outputs */
  uint64_t *addr;
  CoopWhat *what;
  CoopTensor **tensor;
  unsigned *written;     /* input of a written output; n_made and more */
  void *block;           /* holds all these arrays */
} Run;

static bool
run_init (Run *r)
{
  size_t in = r->step.n_inputs, out = r->step.n_outputs;

  r->record = r->step.op_host;
  if (r->record == NULL)
    {
      PyErr_SetString (PyExc_RuntimeError, "coopscope: an operator to be run again has no record");
      return false;
    }
  r->block = calloc (1, in * sizeof *r->inputs
                          + out * (sizeof *r->outputs + sizeof *r->addr + sizeof *r->tensor
                                   + sizeof *r->what) + 1);
  if (r->block == NULL)
    {
      PyErr_NoMemory ();
      return false;
    }
  r->inputs = r->block;
  r->outputs = r->inputs + in;
  r->addr = (uint64_t *) (void *) (r->outputs + out);
  r->tensor = (CoopTensor **) (void *) (r->addr + out);
  r->what = (CoopWhat *) (void *) (r->tensor + out);
  return true;
}

static void
run_clear (Run *r)
{
  for (unsigned i = 0; r->block && i < r->step.n_inputs; i++)
    Py_XDECREF (r->inputs[i]);
  for (unsigned i = 0; r->block && i < r->step.n_outputs; i++)
    Py_XDECREF (r->outputs[i]);
  free (r->block);
  r->block = NULL;
}

/* A storage with the bytes of input i: its own, or a copy where it must survive being written. */
static PyObject *
input_storage (const Run *r, unsigned i)
{
  CoopTensor *t = r->step.inputs[i];
  CoopHost *host = t->host;
  PyObject *own, *copy;

  if (r->step.copy[i])
    {
      own = host ? coop_host_open (host) : NULL;
      uint64_t bytes = own ? coop_storage_bytes (coop_storage_impl (own)) : t->requested;
      Py_XDECREF (own);
      copy = coop_storage_new (bytes);
      if (copy != NULL)
        coop_pool_copy (coop_storage_data (coop_storage_impl (copy)),
                        coop_arena_addr (coop.arena, t->addr), bytes);
      return copy;
    }
  own = host ? coop_host_open (host) : NULL;
  if (own != NULL && coop_storage_data (coop_storage_impl (own)) == coop_arena_addr (coop.arena, t->addr))
    return own;
  Py_XDECREF (own);
  PyErr_Format (PyExc_RuntimeError, "coopscope: input %u of %s is not where it should be", i,
                coop_recipe_op (r->record)->name);
  return NULL;
}

/* The temporaries of written inputs count as outputs from here on. */
static bool
gather_outputs (Run *r)
{
  unsigned n_made = coop_recipe_outputs (r->record), n_written;
  const unsigned *written = coop_recipe_written (r->record, &n_written);

  if (n_made + n_written != r->step.n_outputs)
    {
      PyErr_Format (PyExc_RuntimeError, "coopscope: %s has %u outputs, %u were recorded",
                    coop_recipe_op (r->record)->name, n_made + n_written, r->step.n_outputs);
      return false;
    }
  for (unsigned i = 0; i < n_written; i++)
    {
      unsigned input = written[i];
      CoopHost *host = r->step.inputs[input]->host;
      r->outputs[n_made + i] = r->inputs[input];
      Py_INCREF (r->inputs[input]);
      if (!r->step.copy[input] && host != NULL)
        Py_CLEAR (host->borrowed); /* the old version's bytes are no more */
    }
  for (unsigned i = 0; i < r->step.n_outputs; i++)
    r->addr[i] = coop_arena_offset (coop.arena,
                                    coop_storage_data (coop_storage_impl (r->outputs[i])));
  return true;
}

static uint64_t
hash_at (const CoopHost *host, uint64_t addr)
{
  return coop_pool_hash (coop_arena_addr (coop.arena, addr), host->tensor->requested);
}

static bool
same_bits (const CoopHost *host, uint64_t addr)
{
  return !host->hashed || hash_at (host, addr) == host->hash;
}

static bool
raise_difference (const CoopHost *host, uint64_t now)
{
  PyErr_Format (PyExc_RuntimeError,
                "coopscope: %s (%s) gave other bits when it was run again: hash %llx, was %llx",
                host->op ? host->op->name : "an operator", host->where ? host->where : "line unknown",
                (unsigned long long) now, (unsigned long long) host->hash);
  return false;
}

/* Does with each output what the engine said. */
static bool
distribute (Run *r)
{
  const CoopHost *other = NULL;
  uint64_t found = 0;

  for (unsigned i = 0; i < r->step.n_outputs; i++)
    {
      CoopTensor *t = r->tensor[i];
      CoopHost *host = t ? t->host : NULL;
      if (r->what[i] == COOP_DROP)
        continue;
      if (host == NULL)
        {
          if ((host = coop_host_new (t)) == NULL)
            return PyErr_NoMemory () != NULL;
          host->op = coop_recipe_op (r->record);
          t->host = host;
        }
      if (other == NULL && !same_bits (host, r->addr[i]))
        {
          other = host;
          found = hash_at (host, r->addr[i]);
        }
      if (r->what[i] == COOP_HANDOVER)
        coop_hand_over (host, r->addr[i], r->outputs[i]);
      else
        {
          Py_INCREF (r->outputs[i]);
          Py_XDECREF (host->borrowed);
          host->borrowed = r->outputs[i];
        }
    }
  return other == NULL || raise_difference (other, found);
}

/* Whether a run that failed half way can be followed by another: nothing but copies was written. */
static bool
repeatable (const CoopReplay *step)
{
  unsigned n = 0;
  const unsigned *written = step->op_host ? coop_recipe_written (step->op_host, &n) : NULL;

  for (unsigned i = 0; i < n; i++)
    if (!step->copy[written[i]])
      return false;
  return coop_rescue_wanted ();
}

static bool
run_once (Run *r, const CoopReplay *step, uint64_t *ns)
{
  *r = (Run){ .step = *step };
  if (!run_init (r))
    return false;
  for (unsigned i = 0; i < step->n_inputs; i++)
    if ((r->inputs[i] = input_storage (r, i)) == NULL)
      return false;
  if (coop.cuda)
    coop_cuda_will_read_replay (step);
  return coop_recipe_run (r->record, r->inputs, step->n_inputs, r->outputs, ns);
}

static bool
replay (CoopCall *call, const CoopReplay *step)
{
  Run r;
  uint64_t ns = 0;
  bool again = repeatable (step), ok;

  for (unsigned n = 0;; n++)
    {
      coop_rescue_arm (again && n < COOP_RESCUES);
      ok = run_once (&r, step, &ns);
      if (ok || !coop_thread.refused)
        break;
      run_clear (&r);
      if (!coop_rescue (call, n))
        break;
    }
  coop_rescue_arm (false);
  ok = ok && gather_outputs (&r);
  if (ok)
    {
      if (coop.cuda)
        ns = coop_recipe_cost (step->op_host);
      coop_lock ();
      coop_engine_replayed (coop.engine, call, r.addr, ns, r.what, r.tensor);
      coop_unlock ();
      ok = distribute (&r);
    }
  run_clear (&r);
  coop_act ();
  return ok;
}

static bool
lost (const CoopReplay *step)
{
  const CoopHost *host = step->tensor ? step->tensor->host : NULL;

  PyErr_Format (PyExc_RuntimeError, "coopscope: the bytes of a tensor of %s (%s) are lost",
                host && host->op ? host->op->name : "an unknown operator",
                host && host->where ? host->where : "line unknown");
  return false;
}

#define WAIT_US 50

/* Another thread's kernel is on what is wanted. It needs the GIL to end. */
static void
let_others_end (void)
{
  Py_BEGIN_ALLOW_THREADS
  usleep (WAIT_US);
  Py_END_ALLOW_THREADS
}

bool
coop_replay_all (CoopCall *call)
{
  CoopQuiet quiet = { 0 };
  CoopCall *outer = coop_thread.call, *running = coop_thread.running;
  CoopReplay step;
  bool ok = true;

  coop_thread.call = call;
  coop_thread.running = NULL;
  for (;;)
    {
      coop_lock ();
      CoopNext next = coop_engine_next (coop.engine, call, &step);
      coop_unlock ();
      if (next == COOP_STEP_READY)
        break;
      if (next == COOP_STEP_WAIT)
        {
          let_others_end ();
          continue;
        }
      ok = coop_quiet_begin (&quiet) && (next == COOP_STEP_LOST ? lost (&step) : replay (call, &step));
      if (!ok)
        break;
    }
  bool replayed = quiet.no_functions != NULL;
  coop_quiet_end (&quiet);
  coop_thread.call = outer;
  coop_thread.running = running;
  if (ok && replayed)
    coop_act (); /* what was borrowed goes back before the operator asks for memory */
  if (!ok)
    {
      coop_lock ();
      coop_engine_abort (coop.engine, call);
      coop_unlock ();
    }
  return ok;
}
