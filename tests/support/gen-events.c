/* SPDX-License-Identifier: Apache-2.0 */
/* Generated runs: see gen-events.h. */
#include <string.h>

#include "core/policy.h"
#include "gen-private.h"

#define N_NAMES 12
#define N_PARAMS 16
#define MAX_HELD 160

/* ---- tensors ---- */

static void
put_tensor (CoopGen *gen, CoopGenTensor *t)
{
  CoopGenItem *item = coop_gen_emit (gen, COOP_EVENT_TENSOR, sizeof (CoopTensorBody));
  CoopTensorBody *body = (CoopTensorBody *) item->body;
  item->ev.u.tensor.id = t->id;
  item->ev.u.tensor.storage = t->storage;
  item->ev.u.tensor.op = t->producer;
  item->ev.u.tensor.bytes = t->bytes;
  item->ev.u.tensor.block = t->block;
  body->kind = t->kind;
  body->pin = t->constant ? COOP_PIN_CONSTANT : COOP_PIN_NONE;
  body->dtype = 1;
  body->ndim = 2;
  body->dims[0] = t->bytes / 4;
  body->dims[1] = 1;
  coop_gen_find_block (gen, t->block)->tensor = t->id;
}

static CoopGenTensor *
new_tensor (CoopGen *gen, guint64 bytes, guint64 block, guint64 producer, guint kind, gboolean constant)
{
  CoopGenTensor *t = g_new0 (CoopGenTensor, 1);
  t->id = t->storage = ++gen->next_tensor;
  t->bytes = bytes;
  t->block = block;
  t->producer = producer;
  t->held = TRUE;
  t->constant = constant;
  t->kind = kind;
  g_hash_table_insert (gen->tensors, &t->id, t);
  g_ptr_array_add (constant ? gen->params : gen->held, t);
  return t;
}

static void
let_go (CoopGen *gen, CoopGenTensor *t)
{
  g_ptr_array_remove_fast (gen->held, t);
  t->held = FALSE;
  if (t->block != 0)
    {
      CoopGenItem *item = coop_gen_emit (gen, COOP_EVENT_RELEASE, 0);
      item->ev.u.release.tensor = t->id;
      item->ev.u.release.block = t->block;
      coop_gen_free_block (gen, t->block, 0);
      t->block = 0;
      return;
    }
  CoopGenItem *item = coop_gen_emit (gen, COOP_EVENT_RELEASE, 0);
  item->ev.u.release.tensor = t->id;
  gen->books.evicted -= (t->bytes + 511) / 512 * 512;
}

/* ---- operators ---- */

static void
begin (CoopGen *gen, guint64 id, const CoopGenOp *o, guint64 replay_of)
{
  CoopGenItem *item = coop_gen_emit (gen, COOP_EVENT_OP_BEGIN, 8 * o->n_inputs);
  item->ev.u.op_begin.id = id;
  item->ev.u.op_begin.name = o->name;
  item->ev.u.op_begin.replay_of = replay_of;
  item->ev.u.op_begin.stack = 1 + id % 2;
  item->ev.u.op_begin.phase = COOP_PHASE_FORWARD;
  item->ev.u.op_begin.n_inputs = o->n_inputs;
  item->ev.u.op_begin.step = gen->books.step;
  memcpy (item->body, o->inputs, 8 * o->n_inputs);
  for (guint i = 0; i < o->n_inputs; i++)
    g_ptr_array_add (gen->pinned, coop_gen_tensor (gen, o->inputs[i]));
}

static void
end (CoopGen *gen, guint64 id, const CoopGenOp *o, guint64 output, guint64 workspace)
{
  CoopGenItem *item = coop_gen_emit (gen, COOP_EVENT_OP_END, output != 0 ? 8 : 0);
  item->ev.u.op_end.id = id;
  item->ev.u.op_end.cost = item->ev.u.op_end.duration = g_rand_int_range (gen->rand, 1000, 500000);
  item->ev.u.op_end.workspace = workspace;
  item->ev.u.op_end.n_outputs = output != 0;
  item->ev.u.op_end.failed = output == 0;
  memcpy (item->body, &output, output != 0 ? 8 : 0);
  g_ptr_array_set_size (gen->pinned, gen->pinned->len - o->n_inputs); /* a stack */
}

/* Brings a tensor back, through what it needs, at most `depth` deep. */
static gboolean
bring_back (CoopGen *gen, CoopGenTensor *t, guint depth)
{
  if (t->block != 0)
    return TRUE;
  CoopGenOp *o = t->producer != 0 && !t->constant ? g_hash_table_lookup (gen->ops, &t->producer) : NULL;
  if (o == NULL || depth == 0)
    return FALSE;
  guint pinned = gen->pinned->len;
  gboolean all = TRUE;
  for (guint i = 0; i < o->n_inputs && all; i++)
    {
      CoopGenTensor *in = coop_gen_tensor (gen, o->inputs[i]);
      all = bring_back (gen, in, depth - 1);
      g_ptr_array_add (gen->pinned, in);
    }
  guint64 id = 0, block = 0;
  if (all)
    {
      id = ++gen->next_op;
      begin (gen, id, o, o->id);
      block = coop_gen_alloc (gen, t->bytes, id);
      end (gen, id, o, block != 0 ? t->id : 0, 0);
      gen->books.replays++;
    }
  g_ptr_array_set_size (gen->pinned, pinned);
  if (block == 0)
    return FALSE;
  CoopGenBlock *b = coop_gen_find_block (gen, block);
  CoopGenItem *item = coop_gen_emit (gen, COOP_EVENT_HANDOVER, 0);
  item->ev.u.handover.block = ++gen->next_block;
  item->ev.u.handover.addr = b->addr;
  item->ev.u.handover.bytes = b->bytes;
  item->ev.u.handover.tensor = t->id;
  item->ev.u.handover.old_block = block;
  b->id = t->block = gen->next_block;
  b->tensor = t->id;
  gen->books.handovers++;
  if (t->held)
    gen->books.evicted -= b->bytes;
  return TRUE;
}

/* What was brought back and is held by nobody goes again. */
static void
return_borrowed (CoopGen *gen)
{
  guint64 ids[1024];
  guint n = 0;
  for (guint i = 0; i < gen->blocks->len && n < G_N_ELEMENTS (ids); i++)
    {
      CoopGenBlock *b = &g_array_index (gen->blocks, CoopGenBlock, i);
      CoopGenTensor *t = coop_gen_tensor (gen, b->tensor);
      if (t != NULL && !t->held && !t->constant)
        ids[n++] = b->id;
    }
  for (guint i = 0; i < n; i++)
    {
      coop_gen_tensor (gen, coop_gen_find_block (gen, ids[i])->tensor)->block = 0;
      coop_gen_free_block (gen, ids[i], 0);
    }
}

static void
add_input (CoopGenOp *o, guint64 id)
{
  for (guint i = 0; i < o->n_inputs; i++)
    if (o->inputs[i] == id)
      return;
  o->inputs[o->n_inputs++] = id;
}

/* In place: a new version of the last input takes its block over. */
static void
write_in_place (CoopGen *gen, CoopGenOp *o, CoopGenTensor *old)
{
  CoopGenTensor *t = new_tensor (gen, old->bytes, old->block, o->id, old->kind, FALSE);
  t->storage = old->storage;
  old->block = 0;
  old->held = FALSE;
  g_ptr_array_remove_fast (gen->held, old);
  put_tensor (gen, t);
  CoopGenItem *item = coop_gen_emit (gen, COOP_EVENT_WRITE, 0);
  item->ev.u.write.old_tensor = old->id;
  item->ev.u.write.new_tensor = t->id;
  item->ev.u.write.block = t->block;
  item->ev.u.write.op = o->id;
  end (gen, o->id, o, t->id, 0);
  gen->books.ops++;
}

static void
make_output (CoopGen *gen, CoopGenOp *o)
{
  guint64 bytes = g_rand_int_range (gen->rand, 1, 100) == 1 ? 100000 : g_rand_int_range (gen->rand, 16, 40000);
  guint64 work = 0, workspace = 0;
  if (g_rand_int_range (gen->rand, 0, 5) == 0)
    {
      workspace = g_rand_int_range (gen->rand, 512, 20000);
      work = coop_gen_alloc (gen, workspace, o->id);
    }
  guint64 block = coop_gen_alloc (gen, bytes, o->id);
  if (work != 0)
    {
      coop_gen_free_block (gen, work, o->id);
      gen->books.workspace++;
    }
  CoopGenTensor *t = NULL;
  if (block != 0)
    {
      guint kind = g_rand_int_range (gen->rand, 0, 2) ? COOP_KIND_ACTIVATION : COOP_KIND_GRADIENT;
      t = new_tensor (gen, bytes, block, o->id, kind, FALSE);
      put_tensor (gen, t);
      gen->books.ops++;
    }
  end (gen, o->id, o, t != NULL ? t->id : 0, (workspace + 511) / 512 * 512);
}

static void
operator (CoopGen *gen)
{
  CoopGenOp *o = g_new0 (CoopGenOp, 1);
  o->id = ++gen->next_op;
  o->name = 2 + g_rand_int_range (gen->rand, 0, N_NAMES);
  add_input (o, ((CoopGenTensor *) gen->params->pdata[g_rand_int_range (gen->rand, 0, gen->params->len)])->id);
  CoopGenTensor *last = NULL;
  guint pinned = gen->pinned->len;
  for (guint i = 0; i < 2 && gen->held->len > 0; i++)
    {
      CoopGenTensor *t = gen->held->pdata[g_rand_int_range (gen->rand, 0, gen->held->len)];
      if (!bring_back (gen, t, 4))
        continue;
      g_ptr_array_add (gen->pinned, t);
      add_input (o, t->id);
      last = t;
    }
  g_hash_table_insert (gen->ops, &o->id, o);
  begin (gen, o->id, o, 0);
  g_ptr_array_set_size (gen->pinned, pinned);
  for (guint i = 0; i < o->n_inputs; i++)
    g_ptr_array_add (gen->pinned, coop_gen_tensor (gen, o->inputs[i]));
  if (last != NULL && last->producer != 0 && !last->constant && g_rand_int_range (gen->rand, 0, 6) == 0)
    write_in_place (gen, o, last);
  else
    make_output (gen, o);
  return_borrowed (gen);
}

static void
move_one (CoopGen *gen)
{
  CoopGenBlock b = g_array_index (gen->blocks, CoopGenBlock, g_rand_int_range (gen->rand, 0, gen->blocks->len));
  guint64 to = coop_gen_find_hole (gen, b.bytes);
  CoopGenTensor *t = coop_gen_tensor (gen, b.tensor);
  if (to == COOP_NO_ADDR || t == NULL)
    return;
  CoopGenItem *item = coop_gen_emit (gen, COOP_EVENT_MOVE, 0);
  item->ev.u.move.block = b.id;
  item->ev.u.move.from = b.addr;
  item->ev.u.move.to = to;
  item->ev.u.move.bytes = b.bytes;
  item->ev.u.move.new_block = t->block = ++gen->next_block;
  coop_gen_remove_block (gen, b.id);
  coop_gen_insert_block (gen, t->block, to, b.bytes);
  coop_gen_find_block (gen, t->block)->tensor = t->id;
  gen->books.moves++;
}

static void
change_policy (CoopGen *gen)
{
  CoopGenItem *item = coop_gen_emit (gen, COOP_EVENT_POLICY, 0);
  CoopValue value = { .d = g_rand_double (gen->rand) };
  item->ev.u.policy.param = COOP_PARAM_STALENESS_EXPONENT;
  item->ev.u.policy.source = COOP_SOURCE_SLIDER;
  item->ev.u.policy.new_bits = value.i;
}

/* What outlives a step becomes constant, as in a real run: else chains would reach back for ever. */
static void
outlive_step (CoopGen *gen)
{
  while (gen->held->len > 8)
    let_go (gen, gen->held->pdata[g_rand_int_range (gen->rand, 0, gen->held->len)]);
  for (guint i = gen->held->len; i-- > 0;)
    {
      CoopGenTensor *t = gen->held->pdata[i];
      if (!bring_back (gen, t, 4))
        {
          let_go (gen, t);
          continue;
        }
      if (t->constant)
        continue;
      CoopGenItem *item = coop_gen_emit (gen, COOP_EVENT_RECLASSIFY, 0);
      item->ev.u.reclassify.tensor = t->id;
      item->ev.u.reclassify.kind = t->kind = COOP_KIND_STATE;
      item->ev.u.reclassify.pin = COOP_PIN_CONSTANT;
      t->constant = TRUE;
    }
  return_borrowed (gen);
}

static void
new_step (CoopGen *gen)
{
  outlive_step (gen);
  CoopGenItem *item = coop_gen_emit (gen, COOP_EVENT_STEP, 0);
  item->ev.u.step.step = ++gen->books.step;
  gen->since_step = 0;
  for (guint i = 0; i < gen->params->len; i += 4) /* constants overwritten */
    {
      CoopGenTensor *t = gen->params->pdata[i];
      item = coop_gen_emit (gen, COOP_EVENT_WRITE, 0);
      item->ev.u.write.old_tensor = item->ev.u.write.new_tensor = t->id;
      item->ev.u.write.block = t->block;
    }
  if (gen->books.step % 3 == 0)
    change_policy (gen);
}

/* ---- beginning ---- */

static void
put_string (CoopGen *gen, const char *text)
{
  CoopGenItem *item = coop_gen_emit (gen, COOP_EVENT_STRING, strlen (text));
  item->ev.u.string.id = ++gen->next_string;
  item->ev.u.string.bytes = strlen (text);
  memcpy (item->body, text, strlen (text));
}

static void
put_policy (CoopGen *gen)
{
  CoopPolicy policy;
  coop_policy_init (&policy);
  policy.v[COOP_PARAM_BUDGET].i = gen->budget;
  for (guint i = 0; i < COOP_N_PARAMS; i++)
    {
      CoopGenItem *item = coop_gen_emit (gen, COOP_EVENT_POLICY, 0);
      item->ev.u.policy.param = i;
      item->ev.u.policy.source = COOP_SOURCE_INITIAL;
      item->ev.u.policy.old_bits = item->ev.u.policy.new_bits = policy.v[i].i;
    }
}

static void
put_texts (CoopGen *gen)
{
  static const char *const names[N_NAMES] = {
    "aten::conv2d", "aten::relu_", "aten::add", "aten::mm", "aten::native_batch_norm", "aten::max_pool2d",
    "aten::convolution_backward", "aten::sum", "aten::gelu", "aten::native_dropout", "aten::addmm", "aten::mul",
  };
  put_string (gen, "float32");
  for (guint i = 0; i < N_NAMES; i++)
    put_string (gen, names[i]);
  put_string (gen, "/home/a person/train.py");
  put_string (gen, "forward");
  for (guint i = 1; i <= 2; i++)
    {
      CoopGenItem *item = coop_gen_emit (gen, COOP_EVENT_FRAME, 0);
      item->ev.u.frame.id = i;
      item->ev.u.frame.file = N_NAMES + 2;
      item->ev.u.frame.func = N_NAMES + 3;
      item->ev.u.frame.line = 17 + i;
      item = coop_gen_emit (gen, COOP_EVENT_STACK, 0);
      item->ev.u.stack.id = i;
      item->ev.u.stack.parent = i - 1;
      item->ev.u.stack.frame = i;
    }
}

CoopGen *
coop_gen_new (guint32 seed, guint64 budget)
{
  CoopGen *gen = g_new0 (CoopGen, 1);
  gen->rand = g_rand_new_with_seed (seed);
  gen->budget = budget;
  gen->blocks = g_array_new (FALSE, FALSE, sizeof (CoopGenBlock));
  gen->tensors = g_hash_table_new_full (g_int64_hash, g_int64_equal, NULL, g_free);
  gen->ops = g_hash_table_new_full (g_int64_hash, g_int64_equal, NULL, g_free);
  gen->held = g_ptr_array_new ();
  gen->params = g_ptr_array_new ();
  gen->pinned = g_ptr_array_new ();
  CoopGenItem *item = coop_gen_emit (gen, COOP_EVENT_POOL, 0);
  item->ev.u.pool.id = 1;
  item->ev.u.pool.budget = item->ev.u.pool.capacity = budget;
  item = coop_gen_emit (gen, COOP_EVENT_SEGMENT, 0);
  item->ev.u.segment.id = item->ev.u.segment.pool = item->ev.u.segment.born = 1;
  item->ev.u.segment.bytes = budget;
  put_policy (gen);
  put_texts (gen);
  for (guint i = 0; i < N_PARAMS; i++)
    {
      guint64 bytes = 4 * g_rand_int_range (gen->rand, 16, 8000);
      put_tensor (gen, new_tensor (gen, bytes, coop_gen_alloc (gen, bytes, 0), 0, COOP_KIND_STATE, TRUE));
    }
  return gen;
}

void
coop_gen_free (CoopGen *gen)
{
  g_queue_clear_full (&gen->queue, g_free);
  g_free (gen->current);
  g_rand_free (gen->rand);
  g_array_unref (gen->blocks);
  g_hash_table_unref (gen->tensors);
  g_hash_table_unref (gen->ops);
  g_ptr_array_unref (gen->held);
  g_ptr_array_unref (gen->params);
  g_ptr_array_unref (gen->pinned);
  g_free (gen);
}

static void
produce (CoopGen *gen)
{
  if (gen->since_step++ >= 60)
    {
      new_step (gen);
      return;
    }
  operator (gen);
  while (gen->held->len > MAX_HELD || (gen->held->len > 20 && g_rand_int_range (gen->rand, 0, 2) == 0))
    let_go (gen, gen->held->pdata[g_rand_int_range (gen->rand, 0, gen->held->len)]);
  if (g_rand_int_range (gen->rand, 0, 50) == 0)
    move_one (gen);
}

const CoopEvent *
coop_gen_next (CoopGen *gen, const void **body)
{
  if (g_queue_is_empty (&gen->queue) && !gen->finished)
    produce (gen);
  g_free (gen->current);
  CoopGenItem *item = gen->current = g_queue_pop_head (&gen->queue);
  g_assert_nonnull (item);
  *body = item->ev.more > 0 ? item->body : NULL;
  return &item->ev;
}

gboolean
coop_gen_settled (const CoopGen *gen)
{
  return g_queue_is_empty ((GQueue *) &gen->queue);
}

const CoopGenBooks *
coop_gen_books (const CoopGen *gen)
{
  return &gen->books;
}

const GArray *
coop_gen_blocks (const CoopGen *gen)
{
  return gen->blocks;
}

void
coop_gen_finish (CoopGen *gen, gint64 exit_code)
{
  while (gen->held->len > 0)
    let_go (gen, gen->held->pdata[gen->held->len - 1]);
  while (gen->blocks->len > 0)
    {
      CoopGenBlock b = g_array_index (gen->blocks, CoopGenBlock, 0);
      CoopGenItem *item = coop_gen_emit (gen, COOP_EVENT_RELEASE, 0);
      item->ev.u.release.tensor = b.tensor;
      item->ev.u.release.block = b.id;
      coop_gen_free_block (gen, b.id, 0);
    }
  coop_gen_emit (gen, COOP_EVENT_END, 0)->ev.u.end.exit_code = exit_code;
  gen->finished = TRUE;
}

gboolean
coop_gen_done (const CoopGen *gen)
{
  return gen->finished && g_queue_is_empty ((GQueue *) &gen->queue);
}
