/* SPDX-License-Identifier: Apache-2.0 */
#include "ref-host.h"
#include "ref-engine.h"

#include "core/engine-private.h" /* scores and limits, for the brute-force checks alone */

#include <math.h>
#include <string.h>

#define POISON 0xdd

/* What a record remembers: enough to run the operator again. */
typedef struct
{
  RefOp op; /* input pointers are not used */
} RefRecord;

/* ---- events and clock --------------------------------------------------------------------- */

static void
on_event (void *user, CoopEvent *ev, const void *body)
{
  RefHost *host = user;
  CoopSearchBody copy = { 0 };
  ev->seq = host->n_events++;
  if (!host->record_events)
    return;
  if (ev->more > 0)
    memcpy (&copy, body, sizeof copy);
  g_array_append_val (host->events, *ev);
  g_array_append_val (host->bodies, copy);
}

static uint64_t
on_now (void *user)
{
  RefHost *host = user;
  return ++host->ticks;
}

RefHost *
ref_host_new (uint64_t capacity, const CoopPolicy *policy)
{
  RefHost *host = g_new0 (RefHost, 1);
  CoopEngineOptions options = { .capacity = capacity, .policy = *policy,
                                .sink = { on_event, host }, .now = on_now, .now_user = host };
  host->capacity = capacity;
  host->memory = g_malloc (capacity);
  memset (host->memory, POISON, capacity);
  host->storages = g_ptr_array_new ();
  host->events = g_array_new (FALSE, FALSE, sizeof (CoopEvent));
  host->bodies = g_array_new (FALSE, FALSE, sizeof (CoopSearchBody));
  host->engine = coop_engine_new (&options);
  g_assert_nonnull (host->engine);
  return host;
}

void
ref_host_verify (RefHost *host)
{
  g_assert_cmpstr (coop_engine_check (host->engine), ==, NULL);
  for (guint i = 0; i < host->storages->len; i++)
    {
      RefStorage *s = host->storages->pdata[i];
      if (s->addr != COOP_NO_ADDR)
        g_assert_true (memcmp (host->memory + s->addr, s->shadow, s->bytes) == 0);
      if (s->tensor != NULL)
        g_assert_cmpuint (s->tensor->addr, ==, s->addr);
    }
}

static void
checkpoint (RefHost *host)
{
  if (host->check)
    ref_host_verify (host);
}

/* ---- blocks ------------------------------------------------------------------------------- */

static void
poison (RefHost *host, uint64_t addr, uint64_t bytes)
{
  memset (host->memory + addr, POISON, bytes);
}

static void
free_block (RefHost *host, uint64_t addr)
{
  g_assert_true (coop_engine_free (host->engine, addr));
}

static void
evict_one (RefHost *host, CoopTensor *t)
{
  RefStorage *s = t->host;
  if (!t->chosen || t->pins > 0 || t->addr == COOP_NO_ADDR || host->refuse > 0)
    {
      if (host->refuse > 0)
        host->refuse--;
      coop_engine_evict_failed (host->engine, t, COOP_PIN_NONE);
      return;
    }
  g_assert_nonnull (s);
  g_assert_cmpuint (s->addr, ==, t->addr);
  poison (host, s->addr, s->bytes);
  s->addr = COOP_NO_ADDR;
  if (s->temporary)
    {
      t->host = NULL;
      g_free (s);
    }
  coop_engine_evicted (host->engine, t);
}

static GArray *
snapshot (RefHost *host)
{
  CoopEngine *e = host->engine;
  size_t n = coop_engine_pieces (e, NULL, 0);
  CoopPiece *pieces = g_new (CoopPiece, n);
  GArray *out = g_array_sized_new (FALSE, TRUE, sizeof (RefPiece), n);
  g_assert_cmpuint (coop_engine_pieces (e, pieces, n), ==, n);
  for (size_t i = 0; i < n; i++)
    {
      CoopVersion *v = coop_version ((CoopTensor *) pieces[i].tensor);
      RefPiece p = { pieces[i].addr, pieces[i].bytes, pieces[i].used, false, 0 };
      if (v != NULL && coop_evictable (e, v))
        {
          p.evictable = true;
          p.h = coop_score (e, v).h;
        }
      g_array_append_val (out, p);
    }
  g_free (pieces);
  return out;
}

/* The engine's answer to a first request against the slow one. */
static void
check_answer (RefHost *host, GArray *before, const CoopRequest *req, CoopStatus status)
{
  CoopEngine *e = host->engine;
  const RefPiece *pieces = (const RefPiece *) before->data;
  const CoopPolicy *policy = coop_engine_policy (e);
  uint64_t lo = e->pool.small_end, hi = e->pool.limit, need = coop_round (req->bytes);
  bool small = req->bytes <= (uint64_t) policy->v[COOP_PARAM_SMALL].i;
  uint64_t low = COOP_NO_ADDR, high = COOP_NO_ADDR;
  if (small)
    low = high = ref_fit (pieces, before->len, 0, lo, need, false);
  if (low == COOP_NO_ADDR)
    {
      low = ref_fit (pieces, before->len, lo, hi, need, false);
      high = ref_fit (pieces, before->len, lo, hi, need, true);
    }
  host->brute_fits++;
  if (status == COOP_OK)
    {
      g_assert_true (req->addr == low || (req->addr == high && e->limited
                                          && policy->v[COOP_PARAM_GROUPS].i == 2));
      return;
    }
  if (status == COOP_EVICT && e->pool.node[e->pool.node[0].prev].used == PIECE_USED)
    return;
  if (req->victims != NULL && req->n_victims > 0 && req->victims[0]->addr >= hi)
    return; /* clearing what lies above a budget that shrank */
  g_assert_cmpuint (low, ==, COOP_NO_ADDR);
  if (policy->v[COOP_PARAM_EVICTOR].i != COOP_EVICTOR_COOP)
    return;
  RefWindow window = ref_window (pieces, before->len, lo, hi, need);
  g_assert_cmpint (window.found, ==, status == COOP_EVICT);
  if (!window.found)
    return;
  host->brute_windows++;
  double cost = 0;
  unsigned members = 0, victims = 0;
  for (guint i = 0; i < before->len; i++)
    if (pieces[i].addr >= req->window_lo && pieces[i].addr < req->window_hi)
      {
        g_assert_true (!pieces[i].used || pieces[i].evictable);
        cost += pieces[i].h;
        members++;
        victims += pieces[i].used;
      }
  g_assert_cmpuint (members, >, 0);
  g_assert_cmpuint (victims, ==, req->n_victims);
  g_assert_cmpuint (req->window_hi - req->window_lo, >=, need);
  if (isinf (window.cost))
    g_assert_true (isinf (cost));
  else
    g_assert_cmpfloat (fabs (cost - window.cost), <=, 1e-9 * window.cost);
}

static bool
is_shrunk (RefHost *host)
{
  const CoopEngine *e = host->engine;
  for (uint32_t p = e->pool.node[0].prev; p != 0; p = e->pool.node[p].prev)
    if (e->pool.node[p].used == PIECE_USED)
      return e->pool.node[p].addr + e->pool.node[p].bytes > e->pool.limit;
  return false;
}

static bool
alloc_block (RefHost *host, const CoopCall *call, uint64_t bytes, uint64_t *addr)
{
  CoopRequest req = { .bytes = bytes, .call = call };
  for (unsigned round = 0;; round++)
    {
      bool compare = host->check && round == 0 && !is_shrunk (host);
      GArray *before = compare ? snapshot (host) : NULL;
      CoopStatus status = coop_engine_alloc (host->engine, &req);
      if (compare)
        {
          check_answer (host, before, &req, status);
          g_array_unref (before);
        }
      if (status == COOP_OK)
        break;
      if (status == COOP_NO_MEMORY)
        {
          host->oom = req.oom;
          return false;
        }
      g_assert_cmpuint (round, <, 100000);
      for (unsigned i = 0; i < req.n_victims; i++)
        evict_one (host, req.victims[i]);
    }
  *addr = req.addr;
  for (uint64_t i = 0; i < bytes; i += 61)
    g_assert_cmpuint (host->memory[*addr + i], ==, POISON);
  return true;
}

void
ref_host_stress (RefHost *host)
{
  CoopRequest req = { 0 };
  coop_engine_choose_all (host->engine, &req);
  for (unsigned i = 0; i < req.n_victims; i++)
    evict_one (host, req.victims[i]);
  coop_engine_cancel (host->engine, &req);
  ref_host_actions (host);
  checkpoint (host);
}

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

static void
fill (uint8_t *out, uint64_t bytes, uint64_t h, unsigned index)
{
  h ^= (index + 1) * UINT64_C (0x9e3779b97f4a7c15);
  for (uint64_t i = 0; i < bytes; i += 8)
    {
      h ^= h << 13;
      h ^= h >> 7;
      h ^= h << 17;
      memcpy (out + i, &h, MIN (8, bytes - i));
    }
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
    fill (out[i], op->out_bytes[i], h, i);
  for (unsigned i = 0; i < n_in; i++)
    {
      if (is_written (use[i]))
        fill (in[i], in_bytes[i], h, 100 + k);
      else if (use[i] & COOP_USE_SCRATCH)
        fill (in[i], in_bytes[i], mix (h, in[i], in_bytes[i]), 200 + k);
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
        poison (host, r->in_addr[i], r->in_bytes[i]);
        free_block (host, r->in_addr[i]);
      }
  for (unsigned i = 0; i < n_made; i++)
    {
      poison (host, r->out_addr[i], op->out_bytes[i]);
      free_block (host, r->out_addr[i]);
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
          if (!alloc_block (host, call, t->requested, &r->in_addr[i]))
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
      if (!alloc_block (host, call, op->out_bytes[i], &r->out_addr[i]))
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
      poison (host, addr, bytes);
      free_block (host, addr);
      break;
    case COOP_HANDOVER:
      s = t->host;
      g_assert_true (s != NULL && !s->temporary && s->addr == COOP_NO_ADDR);
      coop_engine_ref (host->engine, addr);
      s->addr = addr;
      free_block (host, addr); /* the temporary's share */
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
          poison (host, r.in_addr[i], r.in_bytes[i]);
          free_block (host, r.in_addr[i]);
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
  checkpoint (host);
}

bool
ref_host_prepare (RefHost *host, RefCall *call)
{
  CoopReplay step;
  CoopNext next;
  while ((next = coop_engine_next (host->engine, &call->call, &step)) == COOP_STEP_REPLAY)
    {
      if (!replay (host, &call->call, &step))
        {
          ref_host_abort (host, call);
          return false;
        }
      ref_host_actions (host);
      checkpoint (host);
    }
  g_assert_cmpint (next, ==, COOP_STEP_READY);
  ref_host_actions (host);
  checkpoint (host);
  return true;
}

static RefStorage *
storage_new (RefHost *host, uint64_t addr, uint64_t bytes)
{
  RefStorage *s = g_new0 (RefStorage, 1);
  s->addr = addr;
  s->bytes = bytes;
  s->shadow = g_malloc0 (bytes);
  s->users = 1;
  g_ptr_array_add (host->storages, s);
  return s;
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

static void
storage_free (RefHost *host, RefStorage *s)
{
  g_ptr_array_remove_fast (host->storages, s);
  g_free (s->shadow);
  g_free (s);
}

bool
ref_host_finish (RefHost *host, RefCall *call, RefStorage **outputs)
{
  const RefOp *op = &call->op;
  unsigned made = 0;
  uint64_t workspace = 0;
  bool works = op->workspace > 0 && alloc_block (host, &call->call, op->workspace, &workspace);
  bool room = op->workspace == 0 || works;
  for (; room && made < op->n_outputs; made++)
    {
      uint64_t addr;
      room = alloc_block (host, &call->call, op->out_bytes[made], &addr);
      if (!room)
        break;
      outputs[made] = storage_new (host, addr, op->out_bytes[made]);
    }
  if (room)
    {
      run_real (host, call, outputs);
      run_shadow (call, outputs);
    }
  if (works)
    {
      poison (host, workspace, op->workspace);
      free_block (host, workspace);
    }
  if (room)
    end_call (host, call, outputs);
  else
    {
      while (made-- > 0)
        {
          poison (host, outputs[made]->addr, outputs[made]->bytes);
          free_block (host, outputs[made]->addr);
          storage_free (host, outputs[made]);
        }
      coop_engine_abort (host->engine, &call->call);
    }
  ref_host_actions (host);
  checkpoint (host);
  return room;
}

bool
ref_host_run (RefHost *host, const RefOp *op, RefStorage **outputs)
{
  RefCall call;
  ref_host_begin (host, &call, op);
  return ref_host_prepare (host, &call) && ref_host_finish (host, &call, outputs);
}

/* ---- storages ----------------------------------------------------------------------------- */

RefStorage *
ref_host_constant (RefHost *host, uint64_t bytes, CoopKind kind, unsigned seed)
{
  uint64_t addr;
  if (!alloc_block (host, NULL, bytes, &addr))
    return NULL;
  RefStorage *s = storage_new (host, addr, bytes);
  fill (s->shadow, bytes, seed + 1, 0);
  memcpy (host->memory + addr, s->shadow, bytes);
  CoopAdopt adopt = { .addr = addr, .requested = bytes, .kind = kind, .pin = COOP_PIN_CONSTANT,
                      .host = s };
  s->tensor = coop_engine_adopt (host->engine, &adopt);
  ref_host_actions (host);
  checkpoint (host);
  return s;
}

/* The storage has no owner left. */
static void
storage_gone (RefHost *host, RefStorage *s)
{
  CoopTensor *t = s->tensor;
  uint64_t addr = s->addr;
  t->host = NULL;
  if (addr != COOP_NO_ADDR)
    poison (host, addr, s->bytes);
  storage_free (host, s);
  if (addr == COOP_NO_ADDR)
    coop_engine_release (host->engine, t);
  else
    free_block (host, addr);
}

void
ref_host_drop (RefHost *host, RefStorage *s)
{
  g_assert_cmpuint (s->users, >, 0);
  s->users--;
  if (s->users + s->holds == 0)
    storage_gone (host, s);
  ref_host_actions (host);
  checkpoint (host);
}

bool
ref_host_read (RefHost *host, RefStorage *s)
{
  RefOp op = { .input = { s }, .use = { COOP_USE_READ }, .n_inputs = 1, .name = 9999 };
  return ref_host_run (host, &op, NULL);
}

/* ---- actions ------------------------------------------------------------------------------ */

static void
move (RefHost *host, const CoopAction *action)
{
  RefStorage *s = action->tensor->host;
  g_assert_cmpuint (action->to, <, action->from);
  g_assert_cmpuint (s->addr, ==, action->from);
  memcpy (host->memory + action->to, host->memory + action->from, s->bytes);
  poison (host, action->from, s->bytes);
  s->addr = action->to;
  coop_engine_placed (host->engine, action->tensor, action->to, true);
  host->placed++;
}

static void
act (RefHost *host, const CoopAction *action)
{
  RefStorage *s = action->tensor != NULL ? action->tensor->host : NULL;
  switch (action->kind)
    {
    case COOP_ACTION_HOLD:
      g_assert_nonnull (s);
      s->holds++;
      break;
    case COOP_ACTION_UNHOLD:
      g_assert_true (s != NULL && s->holds > 0);
      if (--s->holds + s->users == 0)
        storage_gone (host, s);
      break;
    case COOP_ACTION_RETURN:
      g_assert_true (s != NULL && s->temporary);
      poison (host, s->addr, s->bytes);
      free_block (host, s->addr);
      action->tensor->host = NULL;
      g_free (s);
      break;
    case COOP_ACTION_PLACE:
      move (host, action);
      break;
    case COOP_ACTION_OP_GONE:
      g_free (action->host);
      break;
    case COOP_ACTION_TENSOR_GONE:
      g_assert_null (action->host);
      break;
    case COOP_ACTION_THRASH:
      host->thrashed++;
      break;
    }
}

void
ref_host_actions (RefHost *host)
{
  CoopAction action;
  while (coop_engine_action (host->engine, &action))
    act (host, &action);
}

void
ref_host_free (RefHost *host)
{
  CoopTotals totals;
  for (bool any = true; any;)
    {
      any = false;
      for (guint i = 0; i < host->storages->len && !any; i++)
        {
          RefStorage *s = host->storages->pdata[i];
          if (s->users == 0)
            continue;
          ref_host_drop (host, s);
          any = true;
        }
    }
  ref_host_actions (host);
  coop_engine_totals (host->engine, &totals);
  g_assert_cmpuint (totals.live, ==, 0);
  g_assert_cmpuint (totals.records, ==, 0);
  g_assert_cmpuint (totals.tensors, ==, 0);
  g_assert_cmpuint (totals.evicted, ==, 0);
  g_assert_cmpstr (coop_engine_check (host->engine), ==, NULL);
  coop_engine_free_all (host->engine);
  g_ptr_array_unref (host->storages);
  g_array_unref (host->events);
  g_array_unref (host->bodies);
  g_free (host->memory);
  g_free (host);
}

/* ---- events ------------------------------------------------------------------------------- */

unsigned
ref_host_count (RefHost *host, CoopEventKind kind)
{
  unsigned n = 0;
  for (guint i = 0; i < host->events->len; i++)
    n += g_array_index (host->events, CoopEvent, i).kind == kind;
  return n;
}

const CoopEvent *
ref_host_event (RefHost *host, CoopEventKind kind, unsigned n, const void **body)
{
  for (guint i = 0; i < host->events->len; i++)
    if (g_array_index (host->events, CoopEvent, i).kind == kind && n-- == 0)
      {
        if (body != NULL)
          *body = &g_array_index (host->bodies, CoopSearchBody, i);
        return &g_array_index (host->events, CoopEvent, i);
      }
  return NULL;
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
