/* SPDX-License-Identifier: Apache-2.0 */
/* Model, part 2: tensors and operators. They hold each other as the engine's records do, by count:
 * a tensor holds its producer, a producer that may run again holds its inputs. Whatever drops to
 * nothing is forgotten at once, so the model stays small however long the run is. */
#include "trace/model-private.h"

Tensor *
coop_model_tensor_new (CoopModel *model, guint64 id)
{
  Tensor *tensor = g_slice_new0 (Tensor);
  tensor->id = id;
  coop_id_map_set (&model->tensors, id, tensor);
  return tensor;
}

void
coop_model_tensor_free (Tensor *tensor)
{
  g_slice_free (Tensor, tensor);
}

Op *
coop_model_op_new (CoopModel *model, guint64 id)
{
  Op *op = g_slice_new0 (Op);
  op->id = id;
  coop_id_map_set (&model->ops, id, op);
  return op;
}

void
coop_model_op_free (Op *op)
{
  g_free (op->inputs);
  g_clear_pointer (&op->blocks, g_array_unref);
  g_slice_free (Op, op);
}

void
coop_model_op_works (Op *op, Block *block)
{
  block->working = TRUE;
  if (op->blocks == NULL)
    op->blocks = g_array_new (FALSE, FALSE, sizeof (guint64));
  g_array_append_val (op->blocks, block->id);
}

static gboolean
wanted (const Tensor *tensor)
{
  return tensor->block != NULL || tensor->held || tensor->running > 0 || tensor->readers > 0;
}

static void
doubt (CoopModel *model, Tensor *tensor)
{
  if (tensor->unsure || wanted (tensor))
    return;
  tensor->unsure = TRUE;
  g_ptr_array_add (model->unsure, tensor);
}

/* It will not run again: its inputs are no longer held by it. */
static void
release_inputs (CoopModel *model, Op *op)
{
  for (guint32 i = 0; i < op->n_inputs; i++)
    {
      op->inputs[i]->readers--;
      doubt (model, op->inputs[i]);
    }
  op->n_inputs = 0;
  g_clear_pointer (&op->inputs, g_free);
}

static void
op_lost_output (CoopModel *model, Op *op)
{
  if (op->running)
    return;
  if (op->again == 0)
    release_inputs (model, op);
  if (op->outputs == 0)
    {
      coop_id_map_remove (&model->ops, op->id);
      coop_model_op_free (op);
    }
}

static void
drop_producer (CoopModel *model, Tensor *tensor)
{
  Op *op = tensor->op;
  if (op == NULL)
    return;
  tensor->op = NULL;
  op->outputs--;
  if (coop_model_again (tensor->pin))
    op->again--;
  op_lost_output (model, op);
}

void
coop_model_set_producer (CoopModel *model, Tensor *tensor, guint64 op_id)
{
  Op *op = coop_id_map_get (&model->ops, op_id);
  if (op == NULL || op != tensor->op)
    {
      drop_producer (model, tensor);
      if (op != NULL)
        {
          op->outputs++;
          if (coop_model_again (tensor->pin))
            op->again++;
        }
    }
  tensor->op = op;
  tensor->op_id = op_id;
}

void
coop_model_set_pin (CoopModel *model, Tensor *tensor, guint8 pin)
{
  gboolean before = coop_model_again (tensor->pin), after = coop_model_again (pin);
  Op *op = tensor->op;
  tensor->pin = pin;
  if (op != NULL && before != after)
    {
      op->again += after ? 1 : -1;
      op_lost_output (model, op);
    }
  if (tensor->block != NULL)
    coop_model_recount (model, tensor->block);
}

void
coop_model_detach (CoopModel *model, Tensor *tensor)
{
  Block *block = tensor->block;
  if (block == NULL)
    return;
  tensor->block = NULL;
  block->tensor = NULL;
  coop_model_recount (model, block);
  doubt (model, tensor);
}

void
coop_model_attach (CoopModel *model, Tensor *tensor, Block *block)
{
  if (tensor->block == block)
    return;
  if (block->tensor != NULL)
    {
      coop_model_set_held (model, block->tensor, FALSE);
      coop_model_detach (model, block->tensor);
    }
  coop_model_detach (model, tensor);
  coop_model_set_evicted (model, tensor, 0);
  tensor->block = block;
  block->tensor = tensor;
  coop_model_recount (model, block);
}

void
coop_model_set_evicted (CoopModel *model, Tensor *tensor, guint64 bytes)
{
  model->totals.evicted += bytes - tensor->evicted_bytes;
  tensor->evicted_bytes = bytes;
}

void
coop_model_set_held (CoopModel *model, Tensor *tensor, gboolean held)
{
  tensor->held = held;
  if (!held)
    {
      coop_model_set_evicted (model, tensor, 0);
      doubt (model, tensor);
    }
}

void
coop_model_op_done (CoopModel *model, Op *op, gboolean failed)
{
  gboolean keep = !failed && op->again > 0;
  op->running = FALSE;
  g_clear_pointer (&op->blocks, g_array_unref);
  for (guint32 i = 0; i < op->n_inputs; i++)
    {
      op->inputs[i]->running--;
      op->inputs[i]->readers++;
      if (op->inputs[i]->block != NULL)
        coop_model_recount (model, op->inputs[i]->block);
    }
  if (!keep)
    release_inputs (model, op);
  op_lost_output (model, op);
}

void
coop_model_sweep (CoopModel *model)
{
  while (model->unsure->len > 0)
    {
      Tensor *tensor = g_ptr_array_steal_index_fast (model->unsure, model->unsure->len - 1);
      tensor->unsure = FALSE;
      if (wanted (tensor))
        continue;
      coop_id_map_remove (&model->tensors, tensor->id);
      drop_producer (model, tensor);
      coop_model_tensor_free (tensor);
    }
}
