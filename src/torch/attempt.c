/* SPDX-License-Identifier: Apache-2.0 */
/* Attempt: runs an operator, and runs it again if memory ran out and an attempt leaves no mark. */
#include "torch/call.h"
#include "torch/cuda.h"
#include "torch/quiet.h"

#include <stdlib.h>
#include <string.h>

#define SCRATCH_BYTES (1u << 20)

/* An attempt that fails half way leaves no mark if nothing is written but running statistics, which
 * are put back, and if what it draws can be drawn again. False: it has one attempt only. */
static bool
save_scratch (const CoopDispatch *d, char **saved)
{
  uint64_t bytes = 0;

  *saved = NULL;
  if (!coop_rescue_wanted () || !d->call.replayable || d->foreign_write)
    return false;
  for (unsigned i = 0; i < d->n_inputs; i++)
    if (d->inputs[i].use & COOP_USE_SCRATCH)
      bytes += d->inputs[i].tensor->requested;
    else if (d->inputs[i].use & COOP_USE_WRITE)
      return false;
  if (bytes == 0)
    return true;
  if (coop.cuda || bytes > SCRATCH_BYTES || (*saved = malloc (bytes)) == NULL)
    return false;
  char *at = *saved;
  for (unsigned i = 0; i < d->n_inputs; i++)
    if (d->inputs[i].use & COOP_USE_SCRATCH)
      {
        const CoopTensor *t = d->inputs[i].tensor;
        memcpy (at, coop_arena_addr (coop.arena, t->addr), t->requested);
        at += t->requested;
      }
  return true;
}

static bool
put_back (const CoopDispatch *d, const char *saved)
{
  for (unsigned i = 0; saved != NULL && i < d->n_inputs; i++)
    if (d->inputs[i].use & COOP_USE_SCRATCH)
      {
        const CoopTensor *t = d->inputs[i].tensor;
        memcpy (coop_arena_addr (coop.arena, t->addr), saved, t->requested);
        saved += t->requested;
      }
  if (d->state == NULL)
    return true;
  return coop_generator_set (d->generator, d->state);
}

static uint64_t
input_bytes (const CoopDispatch *d)
{
  uint64_t bytes = 0;

  for (unsigned i = 0; i < d->n_inputs; i++)
    bytes += d->inputs[i].tensor->requested;
  return bytes;
}

uint64_t
coop_attempt_cost (const CoopDispatch *d)
{
  uint64_t made = 0;

  for (unsigned i = 0; i < d->n_made; i++)
    made += d->made[i].view.nbytes;
  return coop_cuda_cost (d->info, input_bytes (d), made, (d->info->flags & COOP_OP_EXPENSIVE) != 0);
}

PyObject *
coop_attempt (CoopDispatch *d, uint64_t *cost)
{
  CoopThread *t = &coop_thread;
  CoopCall *outer = t->running;
  CoopCudaTimer *timer = coop.cuda ? coop_cuda_time_begin (d->info, input_bytes (d)) : NULL;
  char *saved;
  bool repeatable = save_scratch (d, &saved), armed = t->rescue, refused = t->refused;
  PyObject *result;

  for (unsigned n = 0;; n++)
    {
      coop_rescue_arm (repeatable && n < COOP_RESCUES);
      uint64_t own = t->own_ns, begin = coop_now ();
      t->running = &d->call;
      coop_gc_release (); /* a kernel takes its time, and several threads' would leave the collector none */
      result = PyObject_Call (d->info->call, d->args, d->kwargs);
      coop_gc_hold ();
      t->running = outer;
      *cost = coop_now () - begin;
      own = t->own_ns - own;
      *cost -= own < *cost ? own : *cost;
      if (result != NULL || !coop_rescue (&d->call, n) || !put_back (d, saved))
        break;
    }
  t->rescue = armed; /* a finalizer's operator runs inside of another */
  t->refused = refused;
  coop_cuda_time_end (timer, result == NULL);
  free (saved);
  return result;
}
