/* SPDX-License-Identifier: Apache-2.0 */
/* Model, part 6: to bytes and back. Numbers are LEB128, since most are small; a block with its tensor
 * and operator takes about 60 bytes. Counts, pins and links are not stored: they follow from the
 * rest, and are worked out again. Entities are in order of their numbers, so equal models give equal
 * bytes, which the tests use. */
#include "trace/model-private.h"
#include "trace/store.h"

#include <string.h>

#define MAGIC "CoopMdl2"
#define OLD_MAGIC "CoopMdl1" /* blocks had no stack and no kind of their own; segments were not known */

/* ---- writing ---- */

static void
put (GByteArray *out, guint64 value)
{
  guint8 bytes[10];
  guint n = 0;
  do
    {
      bytes[n] = (value & 0x7f) | (value > 0x7f ? 0x80 : 0);
      value >>= 7;
    }
  while (bytes[n++] & 0x80);
  g_byte_array_append (out, bytes, n);
}

static void
put_raw (GByteArray *out, gconstpointer data, gsize bytes)
{
  put (out, bytes);
  if (bytes > 0)
    g_byte_array_append (out, data, bytes);
}

static void
put_block (GByteArray *out, const Block *block)
{
  const guint64 words[] = {
    block->id, block->node.addr, block->node.bytes, block->requested, block->op, block->born_ts,
    block->used_seq, block->used_ts, block->tensor != NULL ? block->tensor->id : 0, block->lasting,
    block->working, block->stack, block->own_kind,
  };
  for (guint i = 0; i < G_N_ELEMENTS (words); i++)
    put (out, words[i]);
}

static void
put_tensor (GByteArray *out, const Tensor *tensor)
{
  const guint64 words[] = {
    tensor->id, tensor->storage, tensor->bytes, tensor->dtype, tensor->op_id, tensor->op != NULL,
    tensor->evicted_bytes, tensor->used_seq, tensor->used_ts, tensor->remat_step, tensor->output,
    tensor->remats, tensor->kind, tensor->pin, tensor->held, tensor->ndim,
  };
  for (guint i = 0; i < G_N_ELEMENTS (words); i++)
    put (out, words[i]);
  for (guint i = 0; i < MIN (tensor->ndim, COOP_MAX_DIMS); i++)
    put (out, tensor->dims[i]);
}

static void
put_op (GByteArray *out, const Op *op)
{
  const guint64 words[] = {
    op->id, op->name, op->replay_of, op->stack, op->cost, op->start_ts, op->duration, op->step,
    op->phase, op->running, op->n_inputs,
  };
  for (guint i = 0; i < G_N_ELEMENTS (words); i++)
    put (out, words[i]);
  for (guint i = 0; i < op->n_inputs; i++)
    put (out, op->inputs[i]->id);
}

static void
put_all (GByteArray *out, const CoopIdMap *map, void (*each) (GByteArray *out, gconstpointer value))
{
  gsize n;
  g_autofree gpointer *values = coop_id_map_sorted (map, &n);
  put (out, n);
  for (gsize i = 0; i < n; i++)
    each (out, values[i]);
}

static void
put_text (GByteArray *out, const CoopModel *model)
{
  const CoopIdMap *maps[] = { &model->strings, &model->frames, &model->stacks };
  for (guint m = 0; m < 3; m++)
    {
      gsize cursor = 0;
      guint64 id;
      put (out, maps[m]->n);
      for (gconstpointer v; (v = coop_id_map_next (maps[m], &cursor, &id)) != NULL;)
        {
          put (out, id);
          put_raw (out, v, m == 0 ? strlen (v) : m == 1 ? sizeof (Frame) : sizeof (Stack));
        }
    }
}

GBytes *
coop_model_save_parts (const CoopModel *model, gboolean with_text)
{
  GByteArray *out = g_byte_array_new ();
  g_byte_array_append (out, (const guint8 *) MAGIC, strlen (MAGIC));
  put_raw (out, &model->totals, sizeof model->totals);
  put_raw (out, &model->policy, sizeof model->policy);
  put_raw (out, &model->free_part_sum, sizeof model->free_part_sum);
  put (out, model->free_part_n);
  put (out, model->has_search);
  put_raw (out, &model->search, sizeof model->search);
  put_raw (out, &model->last, sizeof model->last);
  put_raw (out, model->victims->data, model->victims->len * sizeof (CoopVictim));
  put (out, model->victim_seq);
  put (out, model->has_oom);
  put_raw (out, &model->oom, sizeof model->oom);
  put_all (out, &model->tensors, (void (*) (GByteArray *, gconstpointer)) put_tensor);
  put_all (out, &model->ops, (void (*) (GByteArray *, gconstpointer)) put_op);
  put_all (out, &model->blocks, (void (*) (GByteArray *, gconstpointer)) put_block);
  put (out, model->space.segmented);
  put (out, model->segments->len);
  for (guint i = 0; i < model->segments->len; i++)
    {
      const Segment *segment = &g_array_index (model->segments, Segment, i);
      put (out, segment->id);
      put (out, segment->base);
      put (out, segment->bytes);
    }
  put (out, with_text);
  if (with_text)
    put_text (out, model);
  return g_byte_array_free_to_bytes (out);
}

GBytes *
coop_model_save (const CoopModel *model)
{
  return coop_model_save_parts (model, TRUE);
}

/* ---- reading ---- */

typedef struct {
  const guint8 *at, *end;
  gboolean old; /* OLD_MAGIC */
  gboolean bad; /* ran out, or a number that cannot be; everything reads as 0 from then on */
} In;

static guint64
get (In *in)
{
  guint64 value = 0;
  for (guint shift = 0; shift < 64 && in->at < in->end; shift += 7)
    {
      guint8 byte = *in->at++;
      value |= (guint64) (byte & 0x7f) << shift;
      if (!(byte & 0x80))
        return in->bad ? 0 : value;
    }
  in->bad = TRUE;
  return 0;
}

static void
get_raw (In *in, gpointer data, gsize bytes)
{
  gsize n = get (in);
  if (in->bad || n != bytes || (gsize) (in->end - in->at) < n)
    {
      in->bad = TRUE;
      return;
    }
  if (n > 0)
    memcpy (data, in->at, n);
  in->at += n;
}

/* A record that another version may have written, with fewer or more fields at its end. */
static void
get_record (In *in, gpointer data, gsize bytes)
{
  gsize n = get (in);
  if (in->bad || (gsize) (in->end - in->at) < n)
    {
      in->bad = TRUE;
      return;
    }
  memset (data, 0, bytes);
  memcpy (data, in->at, MIN (n, bytes));
  in->at += n;
}

static void
get_words (In *in, guint64 *words, guint n)
{
  for (guint i = 0; i < n; i++)
    words[i] = get (in);
}

static void
get_tensor (In *in, CoopModel *model)
{
  guint64 w[16];
  get_words (in, w, G_N_ELEMENTS (w));
  if (in->bad || w[0] == 0 || coop_id_map_get (&model->tensors, w[0]) != NULL)
    {
      in->bad = TRUE;
      return;
    }
  Tensor *tensor = coop_model_tensor_new (model, w[0]);
  tensor->storage = w[1];
  tensor->bytes = w[2];
  tensor->dtype = w[3];
  tensor->op_id = w[4];
  tensor->readers = w[5]; /* "has a producer", until link_producers() */
  tensor->evicted_bytes = w[6];
  tensor->used_seq = w[7];
  tensor->used_ts = w[8];
  tensor->remat_step = w[9];
  tensor->output = w[10];
  tensor->remats = w[11];
  tensor->kind = MIN (w[12], COOP_N_KINDS - 1);
  tensor->pin = MIN (w[13], COOP_N_PINS - 1);
  tensor->held = w[14] != 0;
  tensor->ndim = w[15];
  for (guint i = 0; i < MIN (tensor->ndim, COOP_MAX_DIMS); i++)
    tensor->dims[i] = (gint64) get (in);
}

static void
get_op (In *in, CoopModel *model)
{
  guint64 w[11];
  get_words (in, w, G_N_ELEMENTS (w));
  if (in->bad || w[0] == 0 || w[10] > G_MAXUINT16 || coop_id_map_get (&model->ops, w[0]) != NULL)
    {
      in->bad = TRUE;
      return;
    }
  Op *op = coop_model_op_new (model, w[0]);
  op->name = w[1];
  op->replay_of = w[2];
  op->stack = w[3];
  op->cost = w[4];
  op->start_ts = w[5];
  op->duration = w[6];
  op->step = w[7];
  op->phase = w[8];
  op->running = w[9] != 0;
  op->inputs = g_new (Tensor *, MAX (w[10], 1));
  for (guint64 i = 0; i < w[10]; i++)
    {
      Tensor *tensor = coop_id_map_get (&model->tensors, get (in));
      if (tensor == NULL)
        {
          in->bad = TRUE;
          return;
        }
      op->inputs[op->n_inputs++] = tensor;
    }
}

static void
link_tensors (CoopModel *model)
{
  gsize cursor = 0;
  for (Tensor *tensor; (tensor = coop_id_map_next (&model->tensors, &cursor, NULL)) != NULL;)
    {
      gboolean produced = tensor->readers != 0;
      tensor->readers = 0;
      tensor->op = produced ? coop_id_map_get (&model->ops, tensor->op_id) : NULL;
      if (tensor->op == NULL)
        continue;
      tensor->op->outputs++;
      tensor->op->again += coop_model_again (tensor->pin);
    }
  cursor = 0;
  for (Op *op; (op = coop_id_map_next (&model->ops, &cursor, NULL)) != NULL;)
    for (guint32 i = 0; i < op->n_inputs; i++)
      *(op->running ? &op->inputs[i]->running : &op->inputs[i]->readers) += 1;
}

static void
get_block (In *in, CoopModel *model)
{
  guint64 w[13] = { 0 };
  get_words (in, w, in->old ? 11 : G_N_ELEMENTS (w));
  if (in->bad || w[0] == 0 || w[2] == 0 || w[1] + w[2] < w[1]
      || coop_id_map_get (&model->blocks, w[0]) != NULL
      || coop_space_overlap (&model->space, w[1], w[2]) != NULL)
    {
      in->bad = TRUE;
      return;
    }
  Block *block = coop_model_block_new (model, w[0], w[1], w[2]);
  block->requested = w[3];
  block->op = w[4];
  block->born_ts = w[5];
  block->used_seq = w[6];
  block->used_ts = w[7];
  block->lasting = MIN (w[9], COOP_N_PINS - 1);
  block->working = w[10] != 0;
  block->stack = w[11];
  block->own_kind = (guint8) MIN (w[12], COOP_N_KINDS - 1);
  Op *op = coop_id_map_get (&model->ops, block->op);
  if (block->working && op != NULL && op->running)
    coop_model_op_works (op, block);
  Tensor *tensor = coop_id_map_get (&model->tensors, w[8]);
  if (tensor != NULL && tensor->block == NULL)
    {
      tensor->block = block;
      block->tensor = tensor;
    }
  coop_model_recount (model, block);
}

static void
get_segments (In *in, CoopModel *model)
{
  gboolean segmented = get (in) != 0;
  for (guint64 n = get (in), i = 0; i < n && !in->bad; i++)
    {
      guint64 w[3];
      get_words (in, w, G_N_ELEMENTS (w));
      if (!in->bad)
        coop_model_segment_add (model, w[0], w[1], w[2]);
    }
  if (segmented && !in->bad)
    coop_model_segment_all (model);
}

static void
get_all (In *in, CoopModel *model, void (*each) (In *in, CoopModel *model))
{
  guint64 n = get (in);
  for (guint64 i = 0; i < n && !in->bad; i++)
    each (in, model);
}

static void
get_text (In *in, CoopModel *model)
{
  for (guint m = 0; m < 3; m++)
    for (guint64 n = get (in), i = 0; i < n && !in->bad; i++)
      {
        guint64 id = get (in), bytes = get (in);
        Frame frame;
        Stack stack;
        if (in->bad || id == 0 || (guint64) (in->end - in->at) < bytes
            || (m == 1 && bytes != sizeof frame) || (m == 2 && bytes != sizeof stack))
          {
            in->bad = TRUE;
            return;
          }
        memcpy (&frame, in->at, MIN (bytes, sizeof frame));
        memcpy (&stack, in->at, MIN (bytes, sizeof stack));
        if (m == 0)
          coop_model_add_string (model, id, (const char *) in->at, bytes);
        else if (m == 1)
          coop_model_add_frame (model, id, frame.file, frame.func, frame.line);
        else
          {
            coop_model_add_stack (model, id, stack.parent, stack.frame);
            ((Stack *) coop_id_map_get (&model->stacks, id))->shown = stack.shown; /* callers may come later */
          }
        in->at += bytes;
      }
}

static void
get_decisions (In *in, CoopModel *model)
{
  get_raw (in, &model->free_part_sum, sizeof model->free_part_sum);
  model->free_part_n = get (in);
  model->has_search = get (in) != 0;
  get_record (in, &model->search, sizeof model->search);
  get_record (in, &model->last, sizeof model->last);
  const guint8 *start = in->at;
  guint64 bytes = get (in);
  if (in->bad || bytes % sizeof (CoopVictim) != 0 || bytes > (guint64) (in->end - in->at))
    {
      in->bad = TRUE;
      return;
    }
  g_array_set_size (model->victims, bytes / sizeof (CoopVictim));
  in->at = start;
  get_raw (in, model->victims->data, bytes);
  model->victim_seq = get (in);
  model->has_oom = get (in) != 0;
  get_record (in, &model->oom, sizeof model->oom);
}

static void
get_policy (In *in, CoopModel *model, CoopTakePolicy take, gpointer user)
{
  guint64 values[256];
  const guint8 *start = in->at;
  gsize n = get (in);
  if (in->bad || n % sizeof (guint64) != 0 || n > sizeof values)
    {
      in->bad = TRUE;
      return;
    }
  in->at = start;
  get_record (in, values, sizeof values);
  if (take != NULL)
    take (user, &model->policy, values, n / sizeof (guint64));
  else
    memcpy (&model->policy, values, MIN (n, sizeof model->policy));
}

CoopModel *
coop_model_load (GBytes *bytes, GError **error)
{
  return coop_model_load_from (bytes, NULL, NULL, error);
}

CoopModel *
coop_model_load_from (GBytes *bytes, CoopTakePolicy take, gpointer user, GError **error)
{
  gsize size;
  const guint8 *data = g_bytes_get_data (bytes, &size);
  In in = { data, data + size, FALSE, FALSE };
  CoopModelTotals saved = { 0 };
  CoopModel *model = coop_model_new ();
  in.old = size >= strlen (MAGIC) && memcmp (data, OLD_MAGIC, strlen (MAGIC)) == 0;
  if (size < strlen (MAGIC) || (!in.old && memcmp (data, MAGIC, strlen (MAGIC)) != 0))
    in.bad = TRUE;
  else
    in.at += strlen (MAGIC);
  get_record (&in, &saved, sizeof saved);
  get_policy (&in, model, take, user);
  if (!in.bad)
    get_decisions (&in, model);
  get_all (&in, model, get_tensor);
  get_all (&in, model, get_op);
  if (!in.bad)
    link_tensors (model);
  get_all (&in, model, get_block);
  if (!in.bad && !in.old)
    get_segments (&in, model);
  if (get (&in) != 0)
    get_text (&in, model);
  if (in.bad || in.at != in.end)
    {
      g_set_error (error, COOP_TRACE_ERROR, COOP_TRACE_ERROR_IO, "a saved layout is damaged");
      coop_model_free (model);
      return NULL;
    }
  saved.used = model->totals.used;
  saved.pinned = model->totals.pinned;
  saved.evictable = model->totals.evictable;
  memcpy (saved.by_kind, model->totals.by_kind, sizeof saved.by_kind);
  model->totals = saved;
  coop_model_measure (model);
  return model;
}
