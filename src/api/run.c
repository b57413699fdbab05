/* SPDX-License-Identifier: Apache-2.0 */
/* Run: an operator of the caller's, from its arguments to its new storages. */
#include "api-private.h"

#include <stdlib.h>
#include <string.h>

typedef struct
{
  CoopCall call;
  CoopInput input[COOP_MOST];
  CoopStorage *storage[COOP_MOST]; /* of inputs */
  bool reads[COOP_MOST];           /* its old bytes matter */
  ApiRecord *record;
  uint64_t block[COOP_MOST + 1];   /* outputs, then workspace */
  uint64_t ns;
} Run;

static unsigned
use_of (CoopAccess access)
{
  switch (access)
    {
    case COOP_WRITE:
      return COOP_USE_WRITE;
    case COOP_SCRATCH:
      return COOP_USE_SCRATCH;
    case COOP_READ:
      break;
    }
  return COOP_USE_READ;
}

static CoopResult
check (Coop *coop, const CoopOperator *op, const CoopArgs *args)
{
  if (op == NULL)
    return api_fail (coop, COOP_FAILED_VALUE, "no operator");
  if (args->n_in > COOP_MOST || args->n_out > COOP_MOST)
    return api_fail (coop, COOP_FAILED_VALUE, "\"%s\": more than %d inputs or outputs", op->name,
                     COOP_MOST);
  for (unsigned i = 0; i < args->n_in; i++)
    {
      const CoopStorage *s = args->in[i].storage;
      if (s == NULL || s->coop != coop || s->dropped)
        return api_fail (coop, COOP_FAILED_VALUE, "\"%s\": input %u is no storage of this pool", op->name, i);
      if (s->gets != NULL && (args->in[i].access != COOP_READ || s->gets->writing))
        return api_fail (coop, COOP_FAILED_VALUE, "\"%s\": input %u is got, and one of both writes",
                         op->name, i);
    }
  for (unsigned i = 0; i < args->n_out; i++)
    if (args->out_bytes[i] == 0 || args->out_bytes[i] > coop->capacity)
      return api_fail (coop, COOP_FAILED_VALUE, "\"%s\": output %u of %zu bytes", op->name, i,
                       args->out_bytes[i]);
  if (args->workspace > coop->capacity)
    return api_fail (coop, COOP_FAILED_VALUE, "\"%s\": a workspace of %zu bytes", op->name,
                     args->workspace);
  return COOP_DONE;
}

/* The engine wants each input once. */
static void
add_input (Run *run, ApiRecord *record, const CoopIn *in)
{
  unsigned i = 0;
  while (i < record->n_in && run->storage[i] != in->storage)
    i++;
  record->slot[record->n_slots++] = (uint8_t) i;
  if (i == record->n_in)
    {
      run->storage[i] = in->storage;
      run->input[i] = (CoopInput) { in->storage->tensor, 0 };
      in->storage->users++;
      record->n_in++;
    }
  run->input[i].use |= use_of (in->access);
  run->reads[i] |= in->access != COOP_SCRATCH;
}

/* Read here and scratch there: then outputs do depend on the old bytes. */
static void
settle_uses (Run *run, ApiRecord *record)
{
  for (unsigned i = 0; i < record->n_in; i++)
    {
      if ((run->input[i].use & COOP_USE_SCRATCH) && run->reads[i])
        run->input[i].use = COOP_USE_WRITE;
      record->use[i] = (uint8_t) run->input[i].use;
    }
}

static bool
make_record (Run *run, const CoopOperator *op, const CoopArgs *args)
{
  ApiRecord *record = calloc (1, sizeof *record + args->params_bytes);
  if (record == NULL)
    return false;
  record->op = op;
  record->n_out = args->n_out;
  record->workspace = args->workspace;
  record->params_bytes = args->params_bytes;
  if (args->n_out > 0)
    memcpy (record->out_bytes, args->out_bytes, args->n_out * sizeof *record->out_bytes);
  if (args->params_bytes > 0)
    memcpy (record->params, args->params, args->params_bytes);
  for (unsigned i = 0; i < args->n_in; i++)
    add_input (run, record, &args->in[i]);
  settle_uses (run, record);
  run->record = record;
  return true;
}

static void
unuse (Run *run)
{
  for (unsigned i = 0; i < run->call.n_inputs; i++)
    api_storage_unuse (run->storage[i]);
}

/* Outputs and workspace; the operator's function. What was taken is given back if it fails. */
static CoopResult
execute (Coop *coop, Run *run, const ApiRecord *record)
{
  size_t bytes[COOP_MOST + 1];
  uint8_t *in[COOP_MOST], *out[COOP_MOST];
  size_t in_bytes[COOP_MOST];
  unsigned n = record->n_out;
  memcpy (bytes, record->out_bytes, n * sizeof *bytes);
  if (record->workspace > 0)
    bytes[n++] = record->workspace;
  if (!api_take_all (coop, &run->call, bytes, n, run->block))
    return COOP_FAILED_MEMORY;
  for (unsigned i = 0; i < record->n_in; i++)
    {
      in[i] = api_at (coop, run->storage[i]->addr);
      in_bytes[i] = run->storage[i]->bytes;
    }
  for (unsigned i = 0; i < record->n_out; i++)
    out[i] = api_at (coop, run->block[i]);
  void *workspace = record->workspace > 0 ? api_at (coop, run->block[n - 1]) : NULL;
  int failed = api_call (coop, record, in, in_bytes, out, workspace, false, &run->ns);
  if (record->workspace > 0)
    api_give (coop, run->block[--n]);
  if (failed == 0)
    return COOP_DONE;
  while (n-- > 0)
    api_give (coop, run->block[n]);
  return api_fail (coop, COOP_FAILED_OPERATOR, "operator \"%s\" failed with %d", record->op->name, failed);
}

/* Storages for the outputs; false: none, and their blocks are given back. */
static bool
make_storages (Coop *coop, const Run *run, CoopStorage **out)
{
  const ApiRecord *record = run->record;
  for (unsigned i = 0; i < record->n_out; i++)
    if ((out[i] = api_storage_make (coop, run->block[i], record->out_bytes[i])) == NULL)
      {
        for (unsigned k = 0; k < record->n_out; k++)
          if (k >= i)
            api_give (coop, run->block[k]);
          else
            api_storage_unmake (out[k]);
        return false;
      }
  return true;
}

static void
finish (Coop *coop, Run *run, CoopStorage **out)
{
  const ApiRecord *record = run->record;
  unsigned n_out = record->n_out;
  CoopOutput output[COOP_MOST];
  CoopTensor *written[COOP_MOST];
  int64_t dim[COOP_MOST];
  for (unsigned i = 0; i < n_out; i++)
    {
      dim[i] = (int64_t) record->out_bytes[i];
      output[i] = (CoopOutput) { .addr = run->block[i], .requested = record->out_bytes[i], .ndim = 1,
                                 .dims = &dim[i], .dtype = coop->dtype };
    }
  CoopOp *op = coop_engine_end (coop->engine, &run->call, output, n_out, run->ns, written);
  if (op != NULL)
    coop_op_set_host (op, run->record);
  else
    free (run->record);
  run->record = NULL;
  for (unsigned i = 0; i < run->call.n_inputs; i++)
    if (written[i] != NULL)
      run->storage[i]->tensor = written[i];
  for (unsigned i = 0; i < n_out; i++)
    {
      out[i]->tensor = output[i].tensor;
      output[i].tensor->host = out[i];
    }
}

static CoopResult
begin (Coop *coop, Run *run, const CoopOperator *op, const CoopArgs *args)
{
  if (!make_record (run, op, args))
    return api_fail (coop, COOP_FAILED_MEMORY, "no memory for the pool's own books");
  run->call = (CoopCall) { .inputs = run->input, .n_inputs = run->record->n_in, .name = op->string,
                           .phase = coop->phase, .replayable = !op->info.once, .thread = api_thread (),
                           .op_class = op->info.expensive ? COOP_CLASS_EXPENSIVE : COOP_CLASS_CHEAP };
  if (!coop_engine_begin (coop->engine, &run->call))
    return api_fail (coop, COOP_FAILED_MEMORY, "no memory for the pool's own books");
  api_act (coop);
  return api_prepare (coop, &run->call);
}

/* With policy stress: the hardest test of a program's operators. */
static void
stress (Coop *coop)
{
  int64_t every = coop_engine_policy (coop->engine)->v[COOP_PARAM_STRESS].i;
  if (every <= 0 || ++coop->since_stress < (uint64_t) every)
    return;
  coop->since_stress = 0;
  api_evict_all (coop);
}

static CoopResult
run_locked (Coop *coop, Run *run, const CoopOperator *op, const CoopArgs *args, CoopStorage **out)
{
  CoopResult result = begin (coop, run, op, args);
  if (result != COOP_DONE || run->record == NULL)
    return result;
  result = execute (coop, run, run->record);
  if (result == COOP_DONE && !make_storages (coop, run, out))
    result = api_fail (coop, COOP_FAILED_MEMORY, "no memory for the pool's own books");
  if (result == COOP_DONE)
    finish (coop, run, out);
  else
    coop_engine_abort (coop->engine, &run->call);
  return result;
}

CoopResult
coop_run (Coop *coop, const CoopOperator *op, const CoopArgs *args, CoopStorage **out)
{
  Run run = { .record = NULL };
  for (unsigned i = 0; i < args->n_out && i < COOP_MOST; i++)
    out[i] = NULL;
  api_lock (coop);
  CoopResult result = check (coop, op, args);
  if (result == COOP_DONE)
    {
      result = run_locked (coop, &run, op, args, out);
      unuse (&run);
      free (run.record);
      api_act (coop);
      if (result == COOP_DONE)
        stress (coop);
    }
  api_unlock (coop);
  return result;
}
