/* SPDX-License-Identifier: Apache-2.0 */
/* Operators of the toy machine: what they compute, and a call from begin to end. */
#include "ref-host-private.h"

#include <string.h>

/* What a record remembers: enough to run the operator again. */
typedef struct
{
  RefOp op; /* input pointers are not used */
} RefRecord;

/* ---- the toy operator --------------------------------------------------------------------- */

static uint64_t
mix (uint64_t h, const uint8_t *data, uint64_t bytes)
{
  uint64_t word = 0;
  for (uint64_t i = 0; i < bytes; i += 8)
    {
      memcpy (&word, data + i, MIN (8, bytes - i));
      h = (h ^ word) * UINT64_C (0x100000001b3);
      h ^= h >> 29;
    }
  return h;
}

static bool
is_written (unsigned use)
{
  return (use & COOP_USE_WRITE) && !(use & COOP_USE_SCRATCH);
}

/* Inputs are read, then outputs and written inputs are filled from the hash of what was read;
 * scratch inputs are written, but nothing depends on what they held. Unrecorded inputs are not read. */
static void
compute (const RefOp *op, uint8_t *const *in, const uint64_t *in_bytes, const unsigned *use,
         unsigned n_in, uint8_t *const *out)
{
  uint64_t h = UINT64_C (0xcbf29ce484222325) ^ op->name ^ op->cost << 20;
  unsigned k = 0; /* place among the recorded inputs */
  for (unsigned i = 0; i < n_in; i++)
    if (!(use[i] & (COOP_USE_SCRATCH | COOP_USE_UNRECORDED)))
      h = mix (h, in[i], in_bytes[i]);
  for (unsigned i = 0; i < op->n_outputs; i++)
    ref_fill (out[i], op->out_bytes[i], h, i);
  for (unsigned i = 0; i < n_in; i++)
    {
      if (is_written (use[i]))
        ref_fill (in[i], in_bytes[i], h, 100 + k);
      else if (use[i] & COOP_USE_SCRATCH)
        ref_fill (in[i], in_bytes[i], mix (h, in[i], in_bytes[i]), 200 + k);
      k += !(use[i] & COOP_USE_UNRECORDED);
    }
}

/* ---- replay ------------------------------------------------------------------------------- */

typedef struct
{
  uint8_t *in[REF_MAX], *out[REF_MAX];
  uint64_t in_bytes[REF_MAX], in_addr[REF_MAX];
  unsigned use[REF_MAX];
  uint64_t out_addr[2 * REF_MAX];
  uint64_t workspace;
} Replay;

static void
drop_replay_blocks (RefHost *host, const CoopReplay *step, const RefOp *op, const Replay *r,
                    unsigned n_copied, unsigned n_made)
{
  for (unsigned i = 0; i < n_copied; i++)
    if (step->copy[i])
      {
        ref_host_poison (host, r->in_addr[i], r->in_bytes[i]);
        ref_host_free_block (host, r->in_addr[i]);
      }
  for (unsigned i = 0; i < n_made; i++)
    {
      ref_host_poison (host, r->out_addr[i], op->out_bytes[i]);
      ref_host_free_block (host, r->out_addr[i]);
    }
}

/* Room for copies, outputs and workspace; what was had is given back on failure. */
static bool
prepare_replay (RefHost *host, const CoopCall *call, const CoopReplay *step, const RefOp *op,
                Replay *r)
{
  for (unsigned i = 0; i < step->n_inputs; i++)
    {
      CoopTensor *t = step->inputs[i];
      g_assert_cmpuint (t->addr, !=, COOP_NO_ADDR);
      g_assert_cmpuint (t->pins, >, 0);
      r->use[i] = op->use[i];
      r->in_bytes[i] = t->requested;
      r->in_addr[i] = t->addr;
      if (step->copy[i])
        {
          if (!ref_host_alloc (host, call, t->requested, &r->in_addr[i]))
            {
              drop_replay_blocks (host, step, op, r, i, 0);
              return false;
            }
          memcpy (host->memory + r->in_addr[i], host->memory + t->addr, t->requested);
        }
      r->in[i] = host->memory + r->in_addr[i];
    }
  for (unsigned i = 0; i < op->n_outputs; i++)
    {
      if (!ref_host_alloc (host, call, op->out_bytes[i], &r->out_addr[i]))
        {
          drop_replay_blocks (host, step, op, r, step->n_inputs, i);
          return false;
        }
      r->out[i] = host->memory + r->out_addr[i];
    }
  return true;
}

static void
take_output (RefHost *host, CoopWhat what, CoopTensor *t, uint64_t addr, uint64_t bytes)
{
  RefStorage *s;
  switch (what)
    {
    case COOP_DROP:
      ref_host_poison (host, addr, bytes);
      ref_host_free_block (host, addr);
      break;
    case COOP_HANDOVER:
      s = t->host;
      g_assert_true (s != NULL && !s->temporary && s->addr == COOP_NO_ADDR);
      coop_engine_ref (host->engine, addr);
      s->addr = addr;
      ref_host_free_block (host, addr); /* the temporary's share */
      break;
    case COOP_BORROW:
      g_assert_null (t->host);
      s = g_new0 (RefStorage, 1);
      *s = (RefStorage) { .tensor = t, .bytes = bytes, .addr = addr, .temporary = true };
      t->host = s;
      break;
    }
}

static bool
replay (RefHost *host, CoopCall *call, const CoopReplay *step)
{
  const RefOp *op = &((RefRecord *) step->op_host)->op;
  CoopWhat what[2 * REF_MAX];
  CoopTensor *tensor[2 * REF_MAX];
  uint64_t bytes[2 * REF_MAX];
  Replay r = { 0 };
  unsigned n = op->n_outputs;
  if (!prepare_replay (host, call, step, op, &r))
    return false;
  compute (op, r.in, r.in_bytes, r.use, step->n_inputs, r.out);
  if (host->fail_replays > 0)
    {
      host->fail_replays--;
      drop_replay_blocks (host, step, op, &r, step->n_inputs, op->n_outputs);
      return false;
    }
  for (unsigned i = 0; i < op->n_outputs; i++)
    bytes[i] = op->out_bytes[i];
  for (unsigned i = 0; i < step->n_inputs; i++)
    {
      CoopTensor *t = step->inputs[i];
      if (is_written (r.use[i]))
        {
          r.out_addr[n] = r.in_addr[i];
          bytes[n++] = r.in_bytes[i];
        }
      else if (step->copy[i])
        {
          ref_host_poison (host, r.in_addr[i], r.in_bytes[i]);
          ref_host_free_block (host, r.in_addr[i]);
        }
      if (is_written (r.use[i]) && !step->copy[i])
        {
          /* the borrowed temporary holds the new version now */
          g_assert_true (((RefStorage *) t->host)->temporary);
          g_clear_pointer (&t->host, g_free);
        }
    }
  g_assert_cmpuint (n, ==, step->n_outputs);
  coop_engine_replayed (host->engine, call, r.out_addr, op->cost, what, tensor);
  host->replayed++;
  for (unsigned i = 0; i < n; i++)
    take_output (host, what[i], tensor[i], r.out_addr[i], bytes[i]);
  return true;
}

/* ---- calls -------------------------------------------------------------------------------- */

void
ref_host_begin (RefHost *host, RefCall *call, const RefOp *op)
{
  memset (call, 0, sizeof *call);
  call->op = *op;
  for (unsigned i = 0; i < op->n_inputs; i++)
    call->inputs[i] = (CoopInput) { op->input[i]->tensor, op->use[i] };
  call->call = (CoopCall) { .inputs = call->inputs, .n_inputs = op->n_inputs, .name = op->name,
                            .phase = op->phase, .op_class = op->op_class,
                            .replayable = !op->once };
  g_assert_true (coop_engine_begin (host->engine, &call->call));
  ref_host_actions (host);
}

void
ref_host_abort (RefHost *host, RefCall *call)
{
  coop_engine_abort (host->engine, &call->call);
  ref_host_actions (host);
  ref_host_checkpoint (host);
}

CoopNext
ref_host_advance (RefHost *host, RefCall *call, unsigned replays)
{
  CoopReplay step;
  for (unsigned i = 0; i < replays; i++)
    {
      CoopNext next = coop_engine_next (host->engine, &call->call, &step);
      g_assert_cmpint (next, !=, COOP_STEP_LOST);
      if (next == COOP_STEP_REPLAY && !replay (host, &call->call, &step))
        {
          ref_host_abort (host, call);
          return COOP_STEP_LOST;
        }
      ref_host_actions (host);
      ref_host_checkpoint (host);
      if (next == COOP_STEP_READY || next == COOP_STEP_WAIT)
        return next;
    }
  return COOP_STEP_REPLAY;
}

bool
ref_host_prepare (RefHost *host, RefCall *call)
{
  return ref_host_advance (host, call, UINT_MAX) == COOP_STEP_READY;
}

static void
run_shadow (RefCall *call, RefStorage **outputs)
{
  uint8_t *in[REF_MAX], *out[REF_MAX];
  uint64_t bytes[REF_MAX];
  for (unsigned i = 0; i < call->op.n_inputs; i++)
    {
      in[i] = call->op.input[i]->shadow;
      bytes[i] = call->op.input[i]->bytes;
    }
  for (unsigned i = 0; i < call->op.n_outputs; i++)
    out[i] = outputs[i]->shadow;
  compute (&call->op, in, bytes, call->op.use, call->op.n_inputs, out);
}

static void
run_real (RefHost *host, RefCall *call, RefStorage **outputs)
{
  uint8_t *in[REF_MAX], *out[REF_MAX];
  uint64_t bytes[REF_MAX];
  for (unsigned i = 0; i < call->op.n_inputs; i++)
    {
      RefStorage *s = call->op.input[i];
      g_assert_cmpuint (s->addr, !=, COOP_NO_ADDR);
      g_assert_true (memcmp (host->memory + s->addr, s->shadow, s->bytes) == 0);
      in[i] = host->memory + s->addr;
      bytes[i] = s->bytes;
    }
  for (unsigned i = 0; i < call->op.n_outputs; i++)
    out[i] = host->memory + outputs[i]->addr;
  compute (&call->op, in, bytes, call->op.use, call->op.n_inputs, out);
}

static RefRecord *
record_new (const RefOp *op)
{
  RefRecord *record = g_new0 (RefRecord, 1);
  record->op = *op;
  unsigned n = 0;
  for (unsigned i = 0; i < op->n_inputs; i++)
    if (!(op->use[i] & COOP_USE_UNRECORDED))
      record->op.use[n++] = op->use[i];
  return record;
}

static void
end_call (RefHost *host, RefCall *call, RefStorage **outputs)
{
  CoopTensor *written[REF_MAX];
  CoopOutput out[REF_MAX];
  const RefOp *op = &call->op;
  int64_t dims[7] = { 1, 2, 3, 4, 5, 6, 7 };
  memset (out, 0, sizeof out);
  for (unsigned i = 0; i < op->n_outputs; i++)
    out[i] = (CoopOutput) { .addr = outputs[i]->addr, .requested = op->out_bytes[i], .ndim = 7,
                            .dims = dims, .constant = op->out_constant[i] };
  CoopOp *record = coop_engine_end (host->engine, &call->call, out, op->n_outputs, op->cost,
                                    written);
  if (record != NULL)
    coop_op_set_host (record, record_new (op));
  for (unsigned i = 0; i < op->n_outputs; i++)
    {
      g_assert_nonnull (out[i].tensor);
      outputs[i]->tensor = out[i].tensor;
      out[i].tensor->host = outputs[i];
    }
  for (unsigned i = 0; i < op->n_inputs; i++)
    if (written[i] != NULL)
      {
        op->input[i]->tensor = written[i];
        g_assert_true (written[i]->host == op->input[i]);
      }
}

bool
ref_host_finish (RefHost *host, RefCall *call, RefStorage **outputs)
{
  const RefOp *op = &call->op;
  unsigned made = 0;
  uint64_t workspace = 0;
  bool works = op->workspace > 0 && ref_host_alloc (host, &call->call, op->workspace, &workspace);
  bool room = op->workspace == 0 || works;
  for (; room && made < op->n_outputs; made++)
    {
      uint64_t addr;
      room = ref_host_alloc (host, &call->call, op->out_bytes[made], &addr);
      if (!room)
        break;
      outputs[made] = ref_storage_new (host, addr, op->out_bytes[made]);
    }
  if (room)
    {
      run_real (host, call, outputs);
      run_shadow (call, outputs);
    }
  if (works)
    {
      ref_host_poison (host, workspace, op->workspace);
      ref_host_free_block (host, workspace);
    }
  if (room)
    end_call (host, call, outputs);
  else
    {
      while (made-- > 0)
        {
          ref_host_poison (host, outputs[made]->addr, outputs[made]->bytes);
          ref_host_free_block (host, outputs[made]->addr);
          ref_storage_free (host, outputs[made]);
        }
      coop_engine_abort (host->engine, &call->call);
    }
  ref_host_actions (host);
  ref_host_checkpoint (host);
  return room;
}

bool
ref_host_run (RefHost *host, const RefOp *op, RefStorage **outputs)
{
  RefCall call;
  ref_host_begin (host, &call, op);
  return ref_host_prepare (host, &call) && ref_host_finish (host, &call, outputs);
}

/* ---- by hand ------------------------------------------------------------------------------ */

RefStorage *
ref_make (RefHost *host, uint64_t bytes, uint64_t cost, unsigned n, ...)
{
  RefOp op = { .out_bytes = { bytes }, .n_outputs = 1, .name = 1, .cost = cost,
               .phase = COOP_PHASE_FORWARD, .n_inputs = n };
  RefStorage *out = NULL;
  va_list args;
  va_start (args, n);
  for (unsigned i = 0; i < n; i++)
    op.input[i] = va_arg (args, RefStorage *);
  va_end (args);
  g_assert_true (ref_host_run (host, &op, &out));
  return out;
}

void
ref_write (RefHost *host, RefStorage *target, unsigned use, uint64_t cost)
{
  RefOp op = { .input = { target }, .use = { use }, .n_inputs = 1, .name = 2, .cost = cost,
               .phase = COOP_PHASE_FORWARD };
  g_assert_true (ref_host_run (host, &op, NULL));
}
