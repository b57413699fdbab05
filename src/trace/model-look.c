/* SPDX-License-Identifier: Apache-2.0 */
/* Model, part 5: making, freeing and looking in. */
#include "trace/model-private.h"

#include <string.h>

CoopModel *
coop_model_new (void)
{
  CoopModel *model = g_new0 (CoopModel, 1);
  model->totals.seq = G_MAXUINT64;
  coop_policy_init (&model->policy);
  CoopIdMap *maps[] = { &model->blocks, &model->tensors, &model->ops,
                        &model->strings, &model->frames, &model->stacks };
  for (guint i = 0; i < G_N_ELEMENTS (maps); i++)
    coop_id_map_init (maps[i]);
  model->segments = g_array_new (FALSE, TRUE, sizeof (Segment));
  model->unsure = g_ptr_array_new ();
  model->victims = g_array_new (FALSE, TRUE, sizeof (CoopVictim));
  return model;
}

static void
clear_map (CoopIdMap *map, void (*release) (gpointer value))
{
  gsize cursor = 0;
  for (gpointer value; (value = coop_id_map_next (map, &cursor, NULL)) != NULL;)
    release (value);
  coop_id_map_clear (map);
}

static void
free_block (gpointer block)
{
  g_slice_free (Block, block);
}

static void
free_tensor (gpointer tensor)
{
  coop_model_tensor_free (tensor);
}

static void
free_op (gpointer op)
{
  coop_model_op_free (op);
}

void
coop_model_free (CoopModel *model)
{
  if (model == NULL)
    return;
  clear_map (&model->blocks, free_block);
  clear_map (&model->tensors, free_tensor);
  clear_map (&model->ops, free_op);
  clear_map (&model->strings, g_free);
  clear_map (&model->frames, g_free);
  clear_map (&model->stacks, g_free);
  coop_model_segments_free (model);
  g_ptr_array_unref (model->unsure);
  g_array_unref (model->victims);
  g_free (model);
}

CoopModel *
coop_model_copy (const CoopModel *model)
{
  g_autoptr (GBytes) bytes = coop_model_save (model);
  return coop_model_load (bytes, NULL);
}

const CoopModelTotals *
coop_model_totals (const CoopModel *model)
{
  return &model->totals;
}

const CoopPolicy *
coop_model_policy (const CoopModel *model)
{
  return &model->policy;
}

guint64
coop_model_n_blocks (const CoopModel *model)
{
  return model->blocks.n;
}

guint64
coop_model_n_entities (const CoopModel *model)
{
  return model->blocks.n + model->tensors.n + model->ops.n;
}

/* ---- pieces ---- */

/* What no segment backs looks like a hole and says that it is none. */
static void
add_hole (GArray *out, guint64 from, guint64 to, gboolean outside)
{
  CoopMapPiece hole = { .addr = from, .bytes = to - from, .kind = outside ? COOP_KIND_UNMANAGED : COOP_KIND_UNKNOWN };
  if (to > from)
    g_array_append_val (out, hole);
}

static void
add_block (const CoopModel *model, GArray *out, const Block *block)
{
  const Tensor *tensor = block->tensor;
  const Op *op = tensor != NULL ? tensor->op : block->op != 0 ? coop_id_map_get (&model->ops, block->op) : NULL;
  CoopMapPiece piece = {
    .addr = block->node.addr, .bytes = block->node.bytes, .block = block->id, .op = block->op,
    .requested = block->requested, .born_ts = block->born_ts, .used_seq = block->used_seq,
    .used_ts = block->used_ts, .kind = block->kind, .pin = block->pin, .used = TRUE,
  };
  if (tensor != NULL)
    {
      piece.tensor = tensor->id;
      piece.op = tensor->op_id;
      piece.used_seq = tensor->used_seq;
      piece.used_ts = tensor->used_ts;
      piece.cost = tensor->op != NULL ? tensor->op->cost : 0;
      if (tensor->remat_step == model->totals.step)
        piece.remats = MIN (tensor->remats, G_MAXUINT8);
    }
  if (op == NULL && block->stack != 0)
    {
      const Stack *stack = coop_id_map_get (&model->stacks, block->stack);
      piece.line = stack != NULL ? (guint32) stack->shown : 0;
    }
  if (op != NULL)
    {
      const Stack *stack = op->stack != 0 ? coop_id_map_get (&model->stacks, op->stack) : NULL;
      piece.phase = (guint8) op->phase;
      piece.name = (guint32) op->name;
      piece.line = stack != NULL ? (guint32) stack->shown : 0;
    }
  g_array_append_val (out, piece);
}

static guint64
walk (const CoopModel *model, GArray *out, const CoopNode *node, guint64 at)
{
  if (node == NULL)
    return at;
  at = walk (model, out, node->left, at);
  add_hole (out, at, node->addr, node->outside);
  if (node->wall == COOP_WALL_NONE)
    add_block (model, out, (const Block *) node);
  return walk (model, out, node->right, MAX (at, node->addr + node->bytes));
}

void
coop_model_pieces (CoopModel *model, GArray *out)
{
  guint64 end = walk (model, out, model->space.root, 0);
  add_hole (out, end, coop_model_flat (model) ? model->totals.budget : model->totals.capacity, !coop_model_flat (model));
}

/* ---- by number ---- */

const CoopLastEviction *
coop_model_last_eviction (const CoopModel *model)
{
  if (model->victims->len == 0)
    return NULL;
  CoopLastEviction *last = (CoopLastEviction *) &model->last;
  last->victims = (const CoopVictim *) model->victims->data;
  last->n_victims = model->victims->len;
  return last;
}

const CoopLastOom *
coop_model_last_oom (const CoopModel *model)
{
  return model->has_oom ? &model->oom : NULL;
}

const char *
coop_model_string (const CoopModel *model, guint64 id)
{
  return coop_id_map_get (&model->strings, id);
}

gboolean
coop_model_tensor (const CoopModel *model, guint64 id, CoopTensorInfo *info)
{
  const Tensor *tensor = coop_id_map_get (&model->tensors, id);
  if (tensor == NULL)
    return FALSE;
  *info = (CoopTensorInfo) {
    .id = id, .storage = tensor->storage, .op = tensor->op_id, .bytes = tensor->bytes,
    .block = tensor->block != NULL ? tensor->block->id : 0,
    .dtype = coop_model_string (model, tensor->dtype), .kind = tensor->kind, .pin = tensor->pin,
    .ndim = MIN (tensor->ndim, COOP_MAX_DIMS),
    .evicted = tensor->held && tensor->block == NULL, .held = tensor->held,
  };
  memcpy (info->dims, tensor->dims, sizeof info->dims);
  return TRUE;
}

gboolean
coop_model_op (const CoopModel *model, guint64 id, CoopOpInfo *info)
{
  const Op *op = coop_id_map_get (&model->ops, id);
  if (op == NULL)
    return FALSE;
  *info = (CoopOpInfo) {
    .id = id, .replay_of = op->replay_of, .cost = op->cost, .start_ts = op->start_ts,
    .duration = op->duration, .step = op->step, .name = coop_model_string (model, op->name),
    .phase = op->phase, .stack = op->stack,
  };
  return TRUE;
}
