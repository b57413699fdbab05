/* SPDX-License-Identifier: Apache-2.0 */
/* Rematerialization: what the engine asks for until the inputs of a call are there, one operator at a
 * time. */
#include "api-private.h"

#include <stdlib.h>
#include <string.h>

int
api_call (Coop *coop, const ApiRecord *record, uint8_t *const *in, const size_t *in_bytes,
          uint8_t *const *out, void *workspace, bool again, uint64_t *ns)
{
  void *in_at[COOP_MOST], *out_at[COOP_MOST];
  size_t bytes[COOP_MOST];
  for (unsigned i = 0; i < record->n_slots; i++)
    {
      in_at[i] = in[record->slot[i]];
      bytes[i] = in_bytes[record->slot[i]];
    }
  for (unsigned i = 0; i < record->n_out; i++)
    out_at[i] = out[i];
  const CoopWork work = { .in = in_at, .in_bytes = bytes, .n_in = record->n_slots, .out = out_at,
                          .out_bytes = record->out_bytes, .n_out = record->n_out,
                          .workspace = workspace, .workspace_bytes = record->workspace,
                          .params = record->params_bytes > 0 ? record->params : NULL,
                          .params_bytes = record->params_bytes, .user = record->op->info.user,
                          .again = again };
  api_unlock (coop);
  uint64_t began = api_now ();
  int failed = record->op->info.run (&work);
  *ns = api_now () - began;
  api_lock (coop);
  return failed;
}

const void *
api_thread (void)
{
  return (const void *) (uintptr_t) pthread_self ();
}

/* An operator of another thread reads or writes what this one is about to: until something ends. */
static void
wait_for_others (Coop *coop)
{
  pthread_cond_broadcast (&coop->ended_one);
  pthread_cond_wait (&coop->ended_one, &coop->lock);
}

typedef struct
{
  const ApiRecord *record;
  uint64_t block[2 * COOP_MOST + 1]; /* copies of inputs, outputs, workspace */
  unsigned n_blocks, first_out;
  uint64_t in_addr[COOP_MOST];
  size_t in_bytes[COOP_MOST];
  uint64_t out_addr[2 * COOP_MOST];
  size_t out_bytes[2 * COOP_MOST];
  unsigned n_out;
} Replay;

/* All that the run will ask for, at once: until then nothing is read, so inputs may move. */
static bool
make_room (Coop *coop, const CoopCall *call, const CoopReplay *step, Replay *r)
{
  const ApiRecord *record = r->record;
  size_t bytes[2 * COOP_MOST + 1];
  unsigned n = 0;
  for (unsigned i = 0; i < step->n_inputs; i++)
    if (step->copy[i])
      bytes[n++] = step->inputs[i]->requested;
  r->first_out = n;
  for (unsigned i = 0; i < record->n_out; i++)
    bytes[n++] = record->out_bytes[i];
  if (record->workspace > 0)
    bytes[n++] = record->workspace;
  r->n_blocks = n;
  return api_take_all (coop, call, bytes, n, r->block);
}

static int
run (Coop *coop, const CoopReplay *step, Replay *r, uint64_t *ns)
{
  const ApiRecord *record = r->record;
  uint8_t *in[COOP_MOST], *out[COOP_MOST];
  unsigned copies = 0;
  for (unsigned i = 0; i < step->n_inputs; i++)
    {
      const CoopTensor *t = step->inputs[i];
      r->in_bytes[i] = t->requested;
      r->in_addr[i] = t->addr;
      if (step->copy[i])
        {
          r->in_addr[i] = r->block[copies++];
          memcpy (api_at (coop, r->in_addr[i]), api_at (coop, t->addr), t->requested);
        }
      in[i] = api_at (coop, r->in_addr[i]);
    }
  for (unsigned i = 0; i < record->n_out; i++)
    {
      r->out_addr[i] = r->block[r->first_out + i];
      out[i] = api_at (coop, r->out_addr[i]);
    }
  void *workspace = record->workspace > 0 ? api_at (coop, r->block[r->n_blocks - 1]) : NULL;
  return api_call (coop, record, in, r->in_bytes, out, workspace, true, ns);
}

static bool
is_written (unsigned use)
{
  return (use & COOP_USE_WRITE) && !(use & COOP_USE_SCRATCH);
}

/* Written inputs count as outputs from here on; other copies go. */
static void
gather_outputs (Coop *coop, const CoopReplay *step, Replay *r)
{
  const ApiRecord *record = r->record;
  unsigned n = record->n_out;
  memcpy (r->out_bytes, record->out_bytes, n * sizeof *r->out_bytes);
  for (unsigned i = 0; i < step->n_inputs; i++)
    {
      CoopTensor *t = step->inputs[i];
      if (is_written (record->use[i]))
        {
          r->out_addr[n] = r->in_addr[i];
          r->out_bytes[n++] = r->in_bytes[i];
          if (!step->copy[i])
            {
              free (t->host); /* a temporary, which holds the new version now */
              t->host = NULL;
            }
        }
      else if (step->copy[i])
        api_give (coop, r->in_addr[i]);
    }
  r->n_out = n;
  if (record->workspace > 0)
    api_give (coop, r->block[r->n_blocks - 1]);
}

/* Does with an output what the engine said. False: other bits than before. */
static bool
take_output (Coop *coop, CoopWhat what, CoopTensor *t, uint64_t addr, size_t bytes)
{
  CoopStorage *s = t != NULL ? t->host : NULL;
  if (what == COOP_HANDOVER && s != NULL)
    {
      bool same = !s->hashed || api_hash (api_at (coop, addr), bytes) == s->hash;
      coop_engine_ref (coop->engine, addr);
      s->addr = addr;
      s->hashed = false;
      api_give (coop, addr); /* the temporary's share */
      return same;
    }
  if (t != NULL && what == COOP_BORROW && (s = calloc (1, sizeof *s)) != NULL)
    {
      *s = (CoopStorage) { .coop = coop, .tensor = t, .addr = addr, .bytes = bytes, .temporary = true };
      t->host = s;
      return true;
    }
  api_give (coop, addr);
  return true;
}

static CoopResult
replay (Coop *coop, CoopCall *call, const CoopReplay *step)
{
  Replay r = { .record = step->op_host };
  CoopWhat what[2 * COOP_MOST];
  CoopTensor *tensor[2 * COOP_MOST];
  uint64_t ns;
  if (!make_room (coop, call, step, &r))
    return COOP_FAILED_MEMORY;
  if (run (coop, step, &r, &ns) != 0)
    {
      for (unsigned i = 0; i < r.n_blocks; i++)
        api_give (coop, r.block[i]);
      return api_fail (coop, COOP_FAILED_OPERATOR, "operator \"%s\" failed when it was run again",
                       r.record->op->name);
    }
  gather_outputs (coop, step, &r);
  coop_engine_replayed (coop->engine, call, r.out_addr, ns, what, tensor);
  bool same = true;
  for (unsigned i = 0; i < r.n_out; i++)
    same &= take_output (coop, what[i], tensor[i], r.out_addr[i], r.out_bytes[i]);
  if (same)
    return COOP_DONE;
  return api_fail (coop, COOP_FAILED_BITS, "operator \"%s\" gave other bits when it was run again",
                   r.record->op->name);
}

CoopResult
api_prepare (Coop *coop, CoopCall *call)
{
  CoopReplay step;
  CoopResult result = COOP_DONE;
  CoopNext next;
  while (result == COOP_DONE && (next = coop_engine_next (coop->engine, call, &step)) != COOP_STEP_READY)
    switch (next)
      {
      case COOP_STEP_REPLAY:
        result = replay (coop, call, &step);
        api_act (coop);
        break;
      case COOP_STEP_WAIT:
        wait_for_others (coop);
        break;
      case COOP_STEP_LOST:
      case COOP_STEP_READY:
        result = api_fail (coop, COOP_FAILED_MEMORY, "the bytes of a storage are lost");
        break;
      }
  api_act (coop); /* what was borrowed goes back before the operator asks for memory */
  if (result != COOP_DONE)
    coop_engine_abort (coop->engine, call);
  return result;
}
