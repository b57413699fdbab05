/* SPDX-License-Identifier: Apache-2.0 */
/* Program from a trace: what the run asked for is kept, what the policy made of it (searches,
 * evictions, recomputation, moves) is left out and decided again by the engine.
 *
 * How an operator used its inputs is not an event of its own and is read off what followed: a new
 * version is a write; a constant that was written although the operator can be run again is scratch
 * (running statistics); memory that others can write is read through private copies and is only
 * pinned. A tensor that was brought back for a short time, outside operators (torch.save, tolist),
 * is known only if it was evicted at that moment. */
#include "replay/program-private.h"

#include <string.h>

#include "trace/store.h"

typedef struct {
  guint32 slot;
  guint64 op, storage, bytes;
  guint32 output;
  guint8 kind, pin;
} Tensor;

/* A block of the run's own that is no tensor (yet). */
typedef struct {
  guint32 index;
  guint64 bytes, op;
  guint64 output_of;   /* tensor + 1 that claimed it at the end of `op` */
} Block;

typedef struct Open Open;
struct Open {
  guint64 id;
  CoopProgramOp *op;
  guint64 *inputs;       /* tensor ids */
  GArray *steps;         /* CoopProgramStep */
  GArray *blocks;        /* id of the block of each step, 0: none */
  GHashTable *written;   /* new tensor ids */
  gboolean recorded;
  gboolean refused;      /* memory, and perhaps tried again */
  guint8 *overwritten;   /* by input: a constant was */
};

typedef struct {
  CoopProgram *p;
  GHashTable *strings;   /* id -> char * */
  GHashTable *tensors;   /* id -> Tensor */
  GHashTable *storages;  /* id -> slot + 1, while held by the user */
  GHashTable *blocks;    /* id -> Block */
  GHashTable *lines;     /* operator -> line + 1 */
  GHashTable *replays;   /* operator number of a replay -> of what */
  GPtrArray *open;       /* Open, outermost first */
  guint64 last_op;
  guint32 pending;       /* slot brought back outside operators, COOP_NO_SLOT: none */
  gboolean begun, gap;
} Reader;

static gpointer
get (GHashTable *table, guint64 id)
{
  return g_hash_table_lookup (table, &id);
}

static void
put (GHashTable *table, guint64 id, gpointer value)
{
  g_hash_table_insert (table, g_memdup2 (&id, sizeof id), value);
}

static Open *
innermost (Reader *r)
{
  return r->open->len > 0 ? r->open->pdata[r->open->len - 1] : NULL;
}

static Open *
find_open (Reader *r, guint64 op)
{
  for (guint i = r->open->len; i-- > 0;)
    if (((Open *) r->open->pdata[i])->id == op)
      return r->open->pdata[i];
  return NULL;
}

static void
open_free (gpointer data)
{
  Open *open = data;
  coop_program_op_free (open->op);
  g_array_unref (open->steps);
  g_array_unref (open->blocks);
  g_hash_table_unref (open->written);
  g_free (open->inputs);
  g_free (open->overwritten);
  g_free (open);
}

static void
touch (Reader *r, guint32 slot, guint32 use)
{
  CoopProgramLine add = { .kind = COOP_DO_TOUCH, .slot = slot, .use = use };
  coop_program_add (r->p, &add);
}

/* A number of an operator that no operator began with: something was brought back or pinned. */
static void
count_op (Reader *r, guint64 id)
{
  guint32 slot = r->pending;
  r->pending = COOP_NO_SLOT;
  if (slot != COOP_NO_SLOT)
    touch (r, slot, 0);
  r->last_op += slot != COOP_NO_SLOT;
  for (; innermost (r) == NULL && r->last_op + 1 < id; r->last_op++)
    touch (r, COOP_NO_SLOT, 0);
  r->last_op = id;
}

static void
flush_pending (Reader *r)
{
  if (r->pending != COOP_NO_SLOT)
    touch (r, r->pending, 0);
  r->pending = COOP_NO_SLOT;
}

static void
add_step (Open *open, CoopStepKind kind, guint32 index, guint64 bytes, guint64 block)
{
  CoopProgramStep step = { kind, index, bytes };
  g_array_append_val (open->steps, step);
  g_array_append_val (open->blocks, block);
}

/* ---- memory ---- */

/* An operator that was refused memory was run again from its beginning: what it did to memory before is
 * no part of what it asks for. */
static void
second_attempt (Open *open)
{
  guint n = 0;
  open->refused = FALSE;
  for (guint i = 0; i < open->steps->len; i++)
    if (g_array_index (open->steps, CoopProgramStep, i).kind == COOP_STEP_RELEASE)
      g_array_index (open->steps, CoopProgramStep, n++) = g_array_index (open->steps, CoopProgramStep, i);
  g_array_set_size (open->steps, n);
  g_array_set_size (open->blocks, 0);
  g_array_set_size (open->blocks, n);   /* zeros */
}

/* The host acted after an operator (state was moved, or all was evicted for `stress`): what was let go
 * between the operator's end and this went before. */
static void
host_acted (Reader *r)
{
  guint n = r->p->lines->len, first = n;
  if (innermost (r) != NULL)
    return;
  while (first > 0 && (g_array_index (r->p->lines, CoopProgramLine, first - 1).kind == COOP_DO_RELEASE
                       || g_array_index (r->p->lines, CoopProgramLine, first - 1).kind == COOP_DO_FREE))
    first--;
  if (first > 0 && g_array_index (r->p->lines, CoopProgramLine, first - 1).kind == COOP_DO_OP)
    for (guint i = first; i < n; i++)
      g_array_index (r->p->lines, CoopProgramLine, i).early = TRUE;
}

static void
on_search (Reader *r, const CoopEvent *ev, const CoopSearchBody *body)
{
  Open *open = find_open (r, body->op);
  /* a window may be made of moves alone */
  if (open != NULL && ev->u.search.victims == 0 && ev->u.search.lo == COOP_NO_ADDR)
    open->refused = TRUE;
  if (ev->u.search.need == 0)   /* all that may go: no request */
    host_acted (r);
}

static void
on_alloc (Reader *r, const CoopEvent *ev)
{
  if (get (r->replays, ev->u.alloc.op) != NULL)
    return;
  Open *open = find_open (r, ev->u.alloc.op);
  Block *block = g_new0 (Block, 1);
  *block = (Block) { .index = r->p->n_blocks++, .bytes = ev->u.alloc.requested, .op = ev->u.alloc.op };
  put (r->blocks, ev->u.alloc.block, block);
  if (open != NULL && open->refused)
    second_attempt (open);
  if (open != NULL)
    add_step (open, COOP_STEP_TMP, block->index, block->bytes, ev->u.alloc.block);
  else
    {
      CoopProgramLine add = { .kind = COOP_DO_TMP, .block = block->index, .bytes = block->bytes };
      flush_pending (r);
      coop_program_add (r->p, &add);
    }
}

/* Of a block that no tensor claimed; those of tensors end with their release. */
static void
on_free (Reader *r, const CoopEvent *ev)
{
  const Block *block = get (r->blocks, ev->u.free.block);
  Open *open = innermost (r);
  if (block == NULL)
    return;
  if (block->output_of == 0 && open != NULL)
    add_step (open, COOP_STEP_FREE, block->index, 0, 0);
  else if (block->output_of == 0)
    {
      CoopProgramLine add = { .kind = COOP_DO_FREE, .block = block->index };
      flush_pending (r);
      coop_program_add (r->p, &add);
    }
  g_hash_table_remove (r->blocks, &ev->u.free.block);
}

static void
on_release (Reader *r, const CoopEvent *ev)
{
  const Tensor *t = get (r->tensors, ev->u.release.tensor);
  guint64 storage = t != NULL ? t->storage : 0;
  if (t == NULL || get (r->storages, storage) == NULL)
    return;
  Open *open = innermost (r);
  g_hash_table_remove (r->storages, &storage);
  if (open != NULL)
    {
      add_step (open, COOP_STEP_RELEASE, t->slot, 0, 0);
      return;
    }
  CoopProgramLine add = { .kind = COOP_DO_RELEASE, .slot = t->slot };
  flush_pending (r);
  coop_program_add (r->p, &add);
}

/* ---- tensors ---- */

static void
adopt (Reader *r, const Tensor *t, const Block *block)
{
  CoopProgramLine add = { .kind = COOP_DO_ADOPT, .slot = t->slot, .block = block->index, .bytes = t->bytes,
                          .tensor_kind = t->kind, .pin = t->pin };
  flush_pending (r);
  coop_program_add (r->p, &add);
}

static void
on_tensor (Reader *r, const CoopEvent *ev, const CoopTensorBody *body)
{
  if (get (r->tensors, ev->u.tensor.id) != NULL)
    return;   /* said again: borrowed */
  guint64 storage = ev->u.tensor.storage;
  gpointer known = get (r->storages, storage);
  Tensor *t = g_new0 (Tensor, 1);
  *t = (Tensor) { .op = ev->u.tensor.op, .storage = storage, .bytes = ev->u.tensor.bytes,
                  .output = body->output, .kind = (guint8) body->kind, .pin = (guint8) body->pin };
  t->slot = known != NULL ? GPOINTER_TO_UINT (known) - 1 : r->p->n_slots++;
  put (r->tensors, ev->u.tensor.id, t);
  put (r->storages, storage, GUINT_TO_POINTER (t->slot + 1));
  Block *block = get (r->blocks, ev->u.tensor.block);
  Open *open = find_open (r, t->op);
  if (open != NULL)
    open->recorded |= t->pin == COOP_PIN_NONE;
  if (block == NULL)
    return;
  block->output_of = ev->u.tensor.id + 1;
  if (t->op == 0)
    adopt (r, t, block);
}

static void
on_write (Reader *r, const CoopEvent *ev)
{
  Open *open = find_open (r, ev->u.write.op);
  for (guint i = 0; open != NULL && i < open->op->n_inputs; i++)
    if (open->inputs[i] == ev->u.write.old_tensor)
      {
        if (ev->u.write.new_tensor == ev->u.write.old_tensor)
          open->overwritten[i] = 1;
        else
          open->op->inputs[i].use |= COOP_USE_WRITE;
      }
  if (open != NULL && ev->u.write.new_tensor != ev->u.write.old_tensor)
    put (open->written, ev->u.write.new_tensor, open);
}

/* A parameter is seen for the first time. State that an operator writes is found by the engine itself,
 * by its first update in a later step, or is the optimizer's. */
static void
on_reclassify (Reader *r, const CoopEvent *ev)
{
  Tensor *t = get (r->tensors, ev->u.reclassify.tensor);
  Open *open = innermost (r);
  if (t == NULL)
    return;
  gboolean parameter = ev->u.reclassify.kind == COOP_KIND_STATE && t->kind != COOP_KIND_STATE;
  for (guint i = 0; open != NULL && parameter && i < open->op->n_inputs; i++)
    if (open->inputs[i] == ev->u.reclassify.tensor && open->op->phase != COOP_PHASE_OPTIMIZER)
      open->op->inputs[i].use |= COOP_USE_STATE;
  if (open == NULL && parameter)
    {
      r->pending = r->pending == t->slot ? COOP_NO_SLOT : r->pending;
      flush_pending (r);
      touch (r, t->slot, COOP_USE_STATE);
      r->last_op++;
    }
  t->kind = (guint8) ev->u.reclassify.kind;
  t->pin = (guint8) ev->u.reclassify.pin;
}

static void
on_pin (Reader *r, const CoopEvent *ev)
{
  Tensor *t = get (r->tensors, ev->u.pin.tensor);
  if (t == NULL || innermost (r) != NULL)
    return;
  if (ev->u.pin.reason != COOP_PIN_ESCAPED && ev->u.pin.reason != COOP_PIN_USER)
    {
      CoopProgramLine add = { .kind = COOP_DO_PIN, .slot = t->slot, .pin = (guint8) ev->u.pin.reason };
      flush_pending (r);
      coop_program_add (r->p, &add);
      return;
    }
  if (r->pending == t->slot)
    r->pending = COOP_NO_SLOT;
  flush_pending (r);
  t->pin = (guint8) ev->u.pin.reason;
  touch (r, t->slot, ev->u.pin.reason == COOP_PIN_ESCAPED ? COOP_USE_ESCAPE : COOP_USE_KEEP);
  r->last_op++;
}

static void
on_handover (Reader *r, const CoopEvent *ev)
{
  const Tensor *t = get (r->tensors, ev->u.handover.tensor);
  if (t != NULL && innermost (r) == NULL)
    r->pending = t->slot;
}

/* ---- operators ---- */

static void
on_op_begin (Reader *r, const CoopEvent *ev, const guint64 *ids)
{
  if (ev->u.op_begin.replay_of != 0)
    {
      put (r->replays, ev->u.op_begin.id, g_memdup2 (&ev->u.op_begin.replay_of, 8));
      if (innermost (r) != NULL)
        r->last_op = ev->u.op_begin.id;
      else if (r->pending == COOP_NO_SLOT)
        r->last_op = ev->u.op_begin.id;   /* the call that needs it has the number before */
      else
        r->last_op++;
      return;
    }
  count_op (r, ev->u.op_begin.id);
  const char *name = get (r->strings, ev->u.op_begin.name);
  g_autofree char *bare = coop_program_bare_name (name != NULL ? name : "unknown");
  Open *open = g_new0 (Open, 1);
  open->id = ev->u.op_begin.id;
  open->op = g_new0 (CoopProgramOp, 1);
  open->op->name = coop_program_name (r->p, name != NULL ? name : "unknown");
  open->op->op_class = (guint8) coop_program_class (bare);
  open->op->phase = (guint8) ev->u.op_begin.phase;
  open->steps = g_array_new (FALSE, FALSE, sizeof (CoopProgramStep));
  open->written = g_hash_table_new_full (g_int64_hash, g_int64_equal, g_free, NULL);
  open->op->n_inputs = MIN (ev->u.op_begin.n_inputs, 8u * ev->more);
  open->op->inputs = g_new0 (CoopProgramInput, open->op->n_inputs + 1);
  open->blocks = g_array_new (FALSE, TRUE, sizeof (guint64));
  open->inputs = g_memdup2 (ids, open->op->n_inputs * sizeof *ids);
  open->overwritten = g_new0 (guint8, open->op->n_inputs + 1);
  for (guint i = 0; i < open->op->n_inputs; i++)
    {
      const Tensor *t = get (r->tensors, ids[i]);
      open->op->inputs[i].slot = t != NULL ? t->slot : COOP_NO_SLOT;
    }
  g_ptr_array_add (r->open, open);
}

/* Memory that others can write is read through a private copy if the operator can be run again. */
static void
settle_uses (Reader *r, Open *open)
{
  guint n = 0;
  for (guint i = 0; i < open->op->n_inputs; i++)
    {
      CoopProgramInput in = open->op->inputs[i];
      const Tensor *t = get (r->tensors, open->inputs[i]);
      if (in.slot == COOP_NO_SLOT)
        continue;
      if (open->overwritten[i])
        in.use |= open->recorded ? COOP_USE_SCRATCH : COOP_USE_WRITE;
      else if (open->recorded && t != NULL && (t->pin == COOP_PIN_ESCAPED || t->pin == COOP_PIN_UNMANAGED))
        in.use |= COOP_USE_UNRECORDED;
      open->op->inputs[n++] = in;
    }
  open->op->n_inputs = n;
}

static void
settle_outputs (Reader *r, Open *open, guint n, const guint64 *ids)
{
  CoopProgramOp *op = open->op;
  op->outputs = g_new0 (CoopProgramOutput, n + 1);
  for (guint i = 0; i < n; i++)
    {
      if (ids[i] != 0 && get (open->written, ids[i]) != NULL)
        continue;
      const Tensor *t = ids[i] != 0 ? get (r->tensors, ids[i]) : NULL;
      CoopProgramOutput *o = &op->outputs[op->n_outputs++];
      *o = (CoopProgramOutput) { .slot = COOP_NO_SLOT };
      if (t != NULL)
        *o = (CoopProgramOutput) { .slot = t->slot, .bytes = t->bytes, .fixed = t->pin != COOP_PIN_NONE };
    }
}

/* Number of the output that has this block from its birth in this operator on; -1: none. */
static int
output_in (Reader *r, const Open *open, guint64 id)
{
  const Block *block = id != 0 ? get (r->blocks, id) : NULL;
  const Tensor *t = block != NULL && block->output_of != 0 ? get (r->tensors, block->output_of - 1) : NULL;
  for (guint k = 0; t != NULL && t->op == open->id && k < open->op->n_outputs; k++)
    if (open->op->outputs[k].slot == t->slot)
      return (int) k;
  return -1;
}

/* The blocks that became outputs are made as such; an output in a block of an earlier time is made last. */
static void
settle_steps (Reader *r, Open *open)
{
  CoopProgramOp *op = open->op;
  g_autofree guint8 *made = g_new0 (guint8, op->n_outputs + 1);
  for (guint i = 0; i < open->steps->len; i++)
    {
      int k = output_in (r, open, g_array_index (open->blocks, guint64, i));
      if (k < 0)
        continue;
      g_array_index (open->steps, CoopProgramStep, i) = (CoopProgramStep) { COOP_STEP_OUT, (guint32) k, 0 };
      made[k] = 1;
    }
  for (guint k = 0; k < op->n_outputs; k++)
    if (op->outputs[k].slot != COOP_NO_SLOT && !made[k])
      add_step (open, COOP_STEP_OUT, k, 0, 0);
  op->n_steps = open->steps->len;
  op->steps = g_memdup2 (open->steps->data, op->n_steps * sizeof *op->steps);
  if (op->steps == NULL)
    op->steps = g_new0 (CoopProgramStep, 1);
}

static void
add_again (Reader *r, guint64 of, guint64 cost)
{
  guint line = GPOINTER_TO_UINT (get (r->lines, of));
  if (line == 0)
    return;
  CoopProgramOp *op = g_array_index (r->p->lines, CoopProgramLine, line - 1).op;
  op->again = g_renew (guint64, op->again, op->n_again + 1);
  op->again[op->n_again++] = cost;
}

static void
on_op_end (Reader *r, const CoopEvent *ev, const guint64 *ids)
{
  const guint64 *of = get (r->replays, ev->u.op_end.id);
  if (of != NULL)
    {
      if (!ev->u.op_end.failed)
        add_again (r, *of, ev->u.op_end.duration);
      return;
    }
  Open *open = find_open (r, ev->u.op_end.id);
  if (open == NULL)
    return;
  CoopProgramLine add = { .kind = COOP_DO_OP };
  open->op->cost = ev->u.op_end.duration;
  open->op->failed = ev->u.op_end.failed != 0;
  open->op->replayable = open->recorded || ev->u.op_end.n_outputs == 0;
  settle_uses (r, open);
  settle_outputs (r, open, MIN (ev->u.op_end.n_outputs, 8u * ev->more), ids);
  settle_steps (r, open);
  add.op = g_steal_pointer (&open->op);
  coop_program_add (r->p, &add);
  put (r->lines, ev->u.op_end.id, GUINT_TO_POINTER (r->p->lines->len));
  g_ptr_array_remove (r->open, open);
}

/* ---- the rest ---- */

static void
on_string (Reader *r, const CoopEvent *ev, const char *body)
{
  gsize n = MIN (ev->u.string.bytes, (gsize) ev->more * COOP_RECORD_BYTES);
  put (r->strings, ev->u.string.id, g_strndup (body, n));
}

static void
on_policy (Reader *r, const CoopEvent *ev)
{
  if (ev->u.policy.param >= COOP_N_PARAMS)
    return;
  CoopValue value = { .i = ev->u.policy.new_bits };
  if (!r->begun)
    {
      r->p->policy.v[ev->u.policy.param] = value;
      r->p->has_policy = TRUE;
      return;
    }
  CoopProgramLine add = { .kind = COOP_DO_SET, .param = ev->u.policy.param, .value = value,
                          .source = MIN (ev->u.policy.source, COOP_N_SOURCES - 1) };
  coop_program_add (r->p, &add);
}

static gboolean
take (gpointer user, const CoopEvent *ev, const void *body)
{
  Reader *r = user;
  static const guint64 none[8] = { 0 };
  r->begun |= ev->kind == COOP_EVENT_ALLOC;
  switch (ev->kind)
    {
    case COOP_EVENT_STRING:
      on_string (r, ev, body);
      break;
    case COOP_EVENT_POOL:
      r->p->capacity = ev->u.pool.capacity;
      break;
    case COOP_EVENT_POLICY:
      on_policy (r, ev);
      break;
    case COOP_EVENT_ALLOC:
      on_alloc (r, ev);
      break;
    case COOP_EVENT_FREE:
      on_free (r, ev);
      break;
    case COOP_EVENT_SEARCH:
      on_search (r, ev, body);
      break;
    case COOP_EVENT_RELEASE:
      on_release (r, ev);
      break;
    case COOP_EVENT_MOVE:
      host_acted (r);
      break;
    case COOP_EVENT_TENSOR:
      on_tensor (r, ev, body);
      break;
    case COOP_EVENT_WRITE:
      on_write (r, ev);
      break;
    case COOP_EVENT_RECLASSIFY:
      on_reclassify (r, ev);
      break;
    case COOP_EVENT_PIN:
    case COOP_EVENT_ESCAPE:
      on_pin (r, ev);
      break;
    case COOP_EVENT_HANDOVER:
      on_handover (r, ev);
      break;
    case COOP_EVENT_OP_BEGIN:
      on_op_begin (r, ev, ev->more > 0 ? body : none);
      break;
    case COOP_EVENT_OP_END:
      on_op_end (r, ev, ev->more > 0 ? body : none);
      break;
    case COOP_EVENT_GAP:
      r->gap = TRUE;
      break;
    default:   /* texts, and what the policy made of it */
      break;
    }
  return !r->gap;
}

static GHashTable *
table (GDestroyNotify free_value)
{
  return g_hash_table_new_full (g_int64_hash, g_int64_equal, g_free, free_value);
}

static gboolean
read_events (Reader *r, CoopReader *reader, const char *path, GError **error)
{
  if (coop_reader_events (reader, 0, take, r, error) < 0)
    return FALSE;
  if (r->gap)
    g_set_error (error, COOP_PROGRAM_ERROR, COOP_PROGRAM_ERROR_GAPS,
                 "%s has a gap: events are missing, so what the run asked for is not known", path);
  else if (r->p->ops == 0 && r->p->n_blocks == 0)
    g_set_error (error, COOP_PROGRAM_ERROR, COOP_PROGRAM_ERROR_DAMAGED, "%s: there is no operator in it",
                 path);
  /* Blocks without operators, of somebody else's recorder, can be laid out again, if not recomputed. */
  return !r->gap && (r->p->ops > 0 || r->p->n_blocks > 0);
}

CoopProgram *
coop_program_from_trace (const char *path, GError **error)
{
  CoopReader *reader = coop_reader_open (path, error);
  if (reader == NULL)
    return NULL;
  coop_reader_hold (reader);
  guint64 first;
  if (coop_reader_trimmed (reader, &first, NULL) || coop_reader_detail (reader) != COOP_DETAIL_FULL)
    {
      g_set_error (error, COOP_PROGRAM_ERROR, COOP_PROGRAM_ERROR_GAPS, "%s: %s, so it is no program", path,
                   coop_reader_detail (reader) != COOP_DETAIL_FULL ? "operators were not recorded (--trace-detail)"
                                                                   : "its beginning was given up (--trace-limit)");
      coop_reader_free (reader);
      return NULL;
    }
  g_autofree char *name = g_path_get_basename (path);
  if (g_str_has_suffix (name, ".coop"))
    name[strlen (name) - 5] = 0;
  Reader r = { .p = coop_program_new (name), .pending = COOP_NO_SLOT };
  r.strings = table (g_free);
  r.tensors = table (g_free);
  r.storages = table (NULL);
  r.blocks = table (g_free);
  r.lines = table (NULL);
  r.replays = table (g_free);
  r.open = g_ptr_array_new_with_free_func (open_free);
  gboolean ok = read_events (&r, reader, path, error);
  g_hash_table_unref (r.strings);
  g_hash_table_unref (r.tensors);
  g_hash_table_unref (r.storages);
  g_hash_table_unref (r.blocks);
  g_hash_table_unref (r.lines);
  g_hash_table_unref (r.replays);
  g_ptr_array_unref (r.open);
  coop_reader_free (reader);
  if (!ok)
    g_clear_pointer (&r.p, coop_program_free);
  return r.p;
}
