/* SPDX-License-Identifier: Apache-2.0 */
/* Generated runs: see gen-events.h. */
#include "gen-events.h"

#include <string.h>

#include "core/policy.h"

#define N_NAMES 12
#define N_PARAMS 16
#define MAX_HELD 160

typedef struct {
  guint64 id, storage, bytes, block, producer;
  gboolean held, constant;
  guint readers; /* operators that may run again and read it */
  guint kind;
} T;

typedef struct {
  guint64 id, name;
  guint64 inputs[3];
  guint n_inputs;
} O;

struct CoopGen {
  GRand *rand;
  guint64 budget;
  CoopGenBooks books;
  GArray *blocks;      /* CoopGenBlock by address */
  GHashTable *tensors; /* id -> T, never dropped */
  GHashTable *ops;     /* id -> O */
  GPtrArray *held;     /* T that the user holds, constants apart */
  GPtrArray *params;
  GPtrArray *pinned;   /* T of running operators, with repetition */
  GQueue queue;        /* Item */
  gpointer current;
  guint64 seq, ts, next_block, next_tensor, next_op, next_search, next_string;
  guint since_step;
  gboolean finished;
};

typedef struct {
  CoopEvent ev;
  guint8 body[];
} Item;

static Item *
emit (CoopGen *gen, guint kind, gsize body_bytes)
{
  guint more = (body_bytes + 63) / 64;
  Item *item = g_malloc0 (sizeof (Item) + 64 * more);
  gen->ts += g_rand_int_range (gen->rand, 0, 3000);
  item->ev.seq = gen->seq++;
  item->ev.ts = gen->ts;
  item->ev.kind = kind;
  item->ev.more = more;
  item->ev.thread = g_rand_int_range (gen->rand, 0, 2);
  g_queue_push_tail (&gen->queue, item);
  return item;
}

/* ---- blocks ---- */

static CoopGenBlock *
find_block (CoopGen *gen, guint64 id)
{
  for (guint i = 0; i < gen->blocks->len; i++)
    {
      CoopGenBlock *b = &g_array_index (gen->blocks, CoopGenBlock, i);
      if (b->id == id)
        return b;
    }
  g_assert_not_reached ();
}

static void
remove_block (CoopGen *gen, guint64 id)
{
  CoopGenBlock *b = find_block (gen, id);
  gen->books.used -= b->bytes;
  g_array_remove_index (gen->blocks, b - (CoopGenBlock *) gen->blocks->data);
}

static void
insert_block (CoopGen *gen, guint64 id, guint64 addr, guint64 bytes)
{
  CoopGenBlock b = { addr, bytes, id, 0 };
  guint i = 0;
  while (i < gen->blocks->len && g_array_index (gen->blocks, CoopGenBlock, i).addr < addr)
    i++;
  g_array_insert_val (gen->blocks, i, b);
  gen->books.used += bytes;
  gen->books.peak = MAX (gen->books.peak, gen->books.used);
}

/* First hole from a random start that fits, so that holes of all sizes arise. */
static guint64
find_hole (CoopGen *gen, guint64 bytes)
{
  guint64 best = COOP_NO_ADDR, from = 0;
  guint skip = g_rand_int_range (gen->rand, 0, 3);
  for (guint i = 0; i <= gen->blocks->len; i++)
    {
      CoopGenBlock *b = i < gen->blocks->len ? &g_array_index (gen->blocks, CoopGenBlock, i) : NULL;
      guint64 to = b != NULL ? b->addr : gen->budget;
      if (to >= from + bytes)
        {
          best = from;
          if (skip-- == 0)
            break;
        }
      from = b != NULL ? b->addr + b->bytes : from;
    }
  return best;
}

static T *
tensor (CoopGen *gen, guint64 id)
{
  return g_hash_table_lookup (gen->tensors, &id);
}

static gboolean
evictable (CoopGen *gen, const CoopGenBlock *b)
{
  T *t = tensor (gen, b->tensor);
  return t != NULL && !t->constant && t->producer != 0 && !g_ptr_array_find (gen->pinned, t, NULL);
}

static void
evict (CoopGen *gen, guint64 block, guint64 search)
{
  CoopGenBlock b = *find_block (gen, block);
  T *t = tensor (gen, b.tensor);
  Item *item = emit (gen, COOP_EVENT_EVICT, sizeof (CoopEvictBody));
  item->ev.u.evict.block = b.id;
  item->ev.u.evict.addr = b.addr;
  item->ev.u.evict.bytes = b.bytes;
  item->ev.u.evict.tensor = t->id;
  item->ev.u.evict.search = search;
  CoopEvictBody *body = (CoopEvictBody *) item->body;
  body->h = g_rand_double (gen->rand);
  body->own_cost = g_rand_int_range (gen->rand, 1000, 1000000);
  body->requested = t->bytes;
  remove_block (gen, block);
  t->block = 0;
  gen->books.evictions++;
  if (t->held)
    gen->books.evicted += b.bytes;
}

/* The shortest run of evictable and free pieces, in address order, that is large enough. */
static gboolean
make_room (CoopGen *gen, guint64 bytes)
{
  GArray *blocks = gen->blocks;
  guint best_lo = 0, best_hi = 0;
  for (guint lo = 0; lo < blocks->len; lo++)
    {
      CoopGenBlock *first = &g_array_index (blocks, CoopGenBlock, lo);
      guint64 from = lo > 0 ? (first - 1)->addr + (first - 1)->bytes : 0;
      for (guint hi = lo; hi < blocks->len && evictable (gen, &g_array_index (blocks, CoopGenBlock, hi)); hi++)
        {
          guint64 to = hi + 1 < blocks->len ? g_array_index (blocks, CoopGenBlock, hi + 1).addr : gen->budget;
          if (to - from < bytes)
            continue;
          if (best_hi == 0 || hi + 1 - lo < best_hi - best_lo)
            {
              best_lo = lo;
              best_hi = hi + 1;
            }
          break;
        }
    }
  Item *item = emit (gen, COOP_EVENT_SEARCH, sizeof (CoopSearchBody));
  CoopSearchBody *body = (CoopSearchBody *) item->body;
  item->ev.u.search.id = ++gen->next_search;
  item->ev.u.search.need = bytes;
  item->ev.u.search.victims = best_hi - best_lo;
  item->ev.u.search.visited = blocks->len;
  body->ns = g_rand_int_range (gen->rand, 300, 9000);
  body->free_bytes = gen->budget - gen->books.used;
  body->cost = best_hi > best_lo ? 0.5 : G_MAXDOUBLE;
  gen->books.searches++;
  guint n = best_hi - best_lo;
  guint64 ids[1024];
  for (guint i = 0; i < n; i++)
    ids[i] = g_array_index (blocks, CoopGenBlock, best_lo + i).id;
  for (guint i = 0; i < n; i++)
    evict (gen, ids[i], gen->next_search);
  return n > 0;
}

static guint64
alloc (CoopGen *gen, guint64 requested, guint64 op)
{
  guint64 bytes = (requested + 511) / 512 * 512, addr;
  while ((addr = find_hole (gen, bytes)) == COOP_NO_ADDR)
    if (!make_room (gen, bytes))
      {
        Item *item = emit (gen, COOP_EVENT_OOM, sizeof (CoopOomBody));
        item->ev.u.oom.asked = bytes;
        item->ev.u.oom.free = gen->budget - gen->books.used;
        item->ev.u.oom.advice = gen->budget + bytes;
        item->ev.u.oom.op = op;
        ((CoopOomBody *) item->body)->budget = gen->budget;
        gen->books.ooms++;
        return 0;
      }
  Item *item = emit (gen, COOP_EVENT_ALLOC, 0);
  item->ev.u.alloc.block = ++gen->next_block;
  item->ev.u.alloc.addr = addr;
  item->ev.u.alloc.bytes = bytes;
  item->ev.u.alloc.requested = requested;
  item->ev.u.alloc.op = op;
  insert_block (gen, gen->next_block, addr, bytes);
  gen->books.allocs++;
  return gen->next_block;
}

static void
free_block (CoopGen *gen, guint64 block, guint64 op)
{
  CoopGenBlock b = *find_block (gen, block);
  Item *item = emit (gen, COOP_EVENT_FREE, 0);
  item->ev.u.free.block = b.id;
  item->ev.u.free.addr = b.addr;
  item->ev.u.free.bytes = b.bytes;
  item->ev.u.free.tensor = b.tensor;
  item->ev.u.free.op = op;
  remove_block (gen, block);
  gen->books.frees++;
}

/* ---- tensors ---- */

static void
put_tensor (CoopGen *gen, T *t)
{
  Item *item = emit (gen, COOP_EVENT_TENSOR, sizeof (CoopTensorBody));
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
  find_block (gen, t->block)->tensor = t->id;
}

static T *
new_tensor (CoopGen *gen, guint64 bytes, guint64 block, guint64 producer, guint kind, gboolean constant)
{
  T *t = g_new0 (T, 1);
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
let_go (CoopGen *gen, T *t)
{
  g_ptr_array_remove_fast (gen->held, t);
  t->held = FALSE;
  if (t->block != 0)
    {
      Item *item = emit (gen, COOP_EVENT_RELEASE, 0);
      item->ev.u.release.tensor = t->id;
      item->ev.u.release.block = t->block;
      free_block (gen, t->block, 0);
      t->block = 0;
      return;
    }
  Item *item = emit (gen, COOP_EVENT_RELEASE, 0);
  item->ev.u.release.tensor = t->id;
  gen->books.evicted -= (t->bytes + 511) / 512 * 512;
}

/* ---- operators ---- */

static void
begin (CoopGen *gen, guint64 id, const O *o, guint64 replay_of)
{
  Item *item = emit (gen, COOP_EVENT_OP_BEGIN, 8 * o->n_inputs);
  item->ev.u.op_begin.id = id;
  item->ev.u.op_begin.name = o->name;
  item->ev.u.op_begin.replay_of = replay_of;
  item->ev.u.op_begin.stack = 1 + id % 2;
  item->ev.u.op_begin.phase = COOP_PHASE_FORWARD;
  item->ev.u.op_begin.n_inputs = o->n_inputs;
  item->ev.u.op_begin.step = gen->books.step;
  memcpy (item->body, o->inputs, 8 * o->n_inputs);
  for (guint i = 0; i < o->n_inputs; i++)
    g_ptr_array_add (gen->pinned, tensor (gen, o->inputs[i]));
}

static void
end (CoopGen *gen, guint64 id, const O *o, guint64 output, guint64 workspace)
{
  Item *item = emit (gen, COOP_EVENT_OP_END, output != 0 ? 8 : 0);
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
bring_back (CoopGen *gen, T *t, guint depth)
{
  if (t->block != 0)
    return TRUE;
  O *o = t->producer != 0 && !t->constant ? g_hash_table_lookup (gen->ops, &t->producer) : NULL;
  if (o == NULL || depth == 0)
    return FALSE;
  guint pinned = gen->pinned->len;
  gboolean all = TRUE;
  for (guint i = 0; i < o->n_inputs && all; i++)
    {
      T *in = tensor (gen, o->inputs[i]);
      all = bring_back (gen, in, depth - 1);
      g_ptr_array_add (gen->pinned, in);
    }
  guint64 id = 0, block = 0;
  if (all)
    {
      id = ++gen->next_op;
      begin (gen, id, o, o->id);
      block = alloc (gen, t->bytes, id);
      end (gen, id, o, block != 0 ? t->id : 0, 0);
      gen->books.replays++;
    }
  g_ptr_array_set_size (gen->pinned, pinned);
  if (block == 0)
    return FALSE;
  CoopGenBlock *b = find_block (gen, block);
  Item *item = emit (gen, COOP_EVENT_HANDOVER, 0);
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
      T *t = tensor (gen, b->tensor);
      if (t != NULL && !t->held && !t->constant)
        ids[n++] = b->id;
    }
  for (guint i = 0; i < n; i++)
    {
      tensor (gen, find_block (gen, ids[i])->tensor)->block = 0;
      free_block (gen, ids[i], 0);
    }
}

static void
add_input (O *o, guint64 id)
{
  for (guint i = 0; i < o->n_inputs; i++)
    if (o->inputs[i] == id)
      return;
  o->inputs[o->n_inputs++] = id;
}

/* In place: a new version of the last input takes its block over. */
static void
write_in_place (CoopGen *gen, O *o, T *old)
{
  T *t = new_tensor (gen, old->bytes, old->block, o->id, old->kind, FALSE);
  t->storage = old->storage;
  old->block = 0;
  old->held = FALSE;
  g_ptr_array_remove_fast (gen->held, old);
  put_tensor (gen, t);
  Item *item = emit (gen, COOP_EVENT_WRITE, 0);
  item->ev.u.write.old_tensor = old->id;
  item->ev.u.write.new_tensor = t->id;
  item->ev.u.write.block = t->block;
  item->ev.u.write.op = o->id;
  end (gen, o->id, o, t->id, 0);
  gen->books.ops++;
}

static void
make_output (CoopGen *gen, O *o)
{
  guint64 bytes = g_rand_int_range (gen->rand, 1, 100) == 1 ? 100000 : g_rand_int_range (gen->rand, 16, 40000);
  guint64 work = 0, workspace = 0;
  if (g_rand_int_range (gen->rand, 0, 5) == 0)
    {
      workspace = g_rand_int_range (gen->rand, 512, 20000);
      work = alloc (gen, workspace, o->id);
    }
  guint64 block = alloc (gen, bytes, o->id);
  if (work != 0)
    {
      free_block (gen, work, o->id);
      gen->books.workspace++;
    }
  T *t = NULL;
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
  O *o = g_new0 (O, 1);
  o->id = ++gen->next_op;
  o->name = 2 + g_rand_int_range (gen->rand, 0, N_NAMES);
  add_input (o, ((T *) gen->params->pdata[g_rand_int_range (gen->rand, 0, gen->params->len)])->id);
  T *last = NULL;
  guint pinned = gen->pinned->len;
  for (guint i = 0; i < 2 && gen->held->len > 0; i++)
    {
      T *t = gen->held->pdata[g_rand_int_range (gen->rand, 0, gen->held->len)];
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
    g_ptr_array_add (gen->pinned, tensor (gen, o->inputs[i]));
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
  guint64 to = find_hole (gen, b.bytes);
  T *t = tensor (gen, b.tensor);
  if (to == COOP_NO_ADDR || t == NULL)
    return;
  Item *item = emit (gen, COOP_EVENT_MOVE, 0);
  item->ev.u.move.block = b.id;
  item->ev.u.move.from = b.addr;
  item->ev.u.move.to = to;
  item->ev.u.move.bytes = b.bytes;
  item->ev.u.move.new_block = t->block = ++gen->next_block;
  remove_block (gen, b.id);
  insert_block (gen, t->block, to, b.bytes);
  find_block (gen, t->block)->tensor = t->id;
  gen->books.moves++;
}

static void
change_policy (CoopGen *gen)
{
  Item *item = emit (gen, COOP_EVENT_POLICY, 0);
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
      T *t = gen->held->pdata[i];
      if (!bring_back (gen, t, 4))
        {
          let_go (gen, t);
          continue;
        }
      if (t->constant)
        continue;
      Item *item = emit (gen, COOP_EVENT_RECLASSIFY, 0);
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
  Item *item = emit (gen, COOP_EVENT_STEP, 0);
  item->ev.u.step.step = ++gen->books.step;
  gen->since_step = 0;
  for (guint i = 0; i < gen->params->len; i += 4) /* constants overwritten */
    {
      T *t = gen->params->pdata[i];
      item = emit (gen, COOP_EVENT_WRITE, 0);
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
  Item *item = emit (gen, COOP_EVENT_STRING, strlen (text));
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
      Item *item = emit (gen, COOP_EVENT_POLICY, 0);
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
      Item *item = emit (gen, COOP_EVENT_FRAME, 0);
      item->ev.u.frame.id = i;
      item->ev.u.frame.file = N_NAMES + 2;
      item->ev.u.frame.func = N_NAMES + 3;
      item->ev.u.frame.line = 17 + i;
      item = emit (gen, COOP_EVENT_STACK, 0);
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
  Item *item = emit (gen, COOP_EVENT_POOL, 0);
  item->ev.u.pool.id = 1;
  item->ev.u.pool.budget = item->ev.u.pool.capacity = budget;
  item = emit (gen, COOP_EVENT_SEGMENT, 0);
  item->ev.u.segment.id = item->ev.u.segment.pool = item->ev.u.segment.born = 1;
  item->ev.u.segment.bytes = budget;
  put_policy (gen);
  put_texts (gen);
  for (guint i = 0; i < N_PARAMS; i++)
    {
      guint64 bytes = 4 * g_rand_int_range (gen->rand, 16, 8000);
      put_tensor (gen, new_tensor (gen, bytes, alloc (gen, bytes, 0), 0, COOP_KIND_STATE, TRUE));
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
  Item *item = gen->current = g_queue_pop_head (&gen->queue);
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
      Item *item = emit (gen, COOP_EVENT_RELEASE, 0);
      item->ev.u.release.tensor = b.tensor;
      item->ev.u.release.block = b.id;
      free_block (gen, b.id, 0);
    }
  emit (gen, COOP_EVENT_END, 0)->ev.u.end.exit_code = exit_code;
  gen->finished = TRUE;
}

gboolean
coop_gen_done (const CoopGen *gen)
{
  return gen->finished && g_queue_is_empty ((GQueue *) &gen->queue);
}
