/* SPDX-License-Identifier: Apache-2.0 */
/* Model, part 3: what is known of tensors and operators. */
#include "trace/model-private.h"

#include <string.h>

Tensor *
coop_apply_tensor_or_new (const CoopApply *c, guint64 id, CoopFault *result)
{
  Tensor *tensor = coop_id_map_get (&c->model->tensors, id);
  if (tensor != NULL || id == 0)
    return tensor;
  *result = coop_apply_fault (c, COOP_FAULT_UNKNOWN, "tensor %" G_GUINT64_FORMAT " was never introduced", id);
  return coop_model_tensor_new (c->model, id);
}

void
coop_apply_touch (const CoopApply *c, Tensor *tensor)
{
  tensor->used_seq = c->ev->seq;
  tensor->used_ts = c->ev->ts;
}

CoopFault
coop_apply_tensor (const CoopApply *c)
{
  CoopModel *model = c->model;
  const typeof (c->ev->u.tensor) *e = &c->ev->u.tensor;
  CoopFault result = COOP_FAULT_NONE;
  const CoopTensorBody *body = c->body;
  Tensor *tensor = coop_id_map_get (&model->tensors, e->id);
  if (e->id == 0 || c->ev->more < 1 || body->kind >= COOP_N_KINDS || body->pin >= COOP_N_PINS)
    return coop_apply_fault (c, COOP_FAULT_FORMAT, "tensor event of tensor %" G_GUINT64_FORMAT " cannot be", e->id);
  if (tensor == NULL)
    {
      tensor = coop_model_tensor_new (model, e->id);
      tensor->held = TRUE;
      coop_apply_touch (c, tensor);
    }
  tensor->storage = e->storage;
  tensor->bytes = e->bytes;
  tensor->kind = body->kind;
  tensor->dtype = body->dtype;
  tensor->output = body->output;
  tensor->ndim = MIN (body->ndim, 5 + 8 * (c->ev->more - 1u));
  /* Dimensions run on through the bodies that follow without a break. */
  memcpy (tensor->dims, body->dims, MIN (tensor->ndim, COOP_MAX_DIMS) * sizeof (gint64));
  coop_model_set_pin (model, tensor, body->pin);
  coop_model_set_producer (model, tensor, e->op);
  if (e->block != 0)
    {
      Block *block = coop_id_map_get (&model->blocks, e->block);
      if (block == NULL)
        result = coop_apply_fault (c, COOP_FAULT_UNKNOWN, "tensor %" G_GUINT64_FORMAT " claims block %"
                        G_GUINT64_FORMAT ", which is not there", e->id, e->block);
      else
        {
          coop_model_attach (model, tensor, block);
          coop_model_recount (model, block);
        }
    }
  return result;
}

CoopFault
coop_apply_write (const CoopApply *c)
{
  CoopModel *model = c->model;
  const typeof (c->ev->u.write) *e = &c->ev->u.write;
  CoopFault result = COOP_FAULT_NONE;
  Tensor *old = coop_apply_tensor_or_new (c, e->old_tensor, &result);
  Block *block = coop_id_map_get (&model->blocks, e->block);
  if (old == NULL || e->new_tensor == 0)
    return coop_apply_fault (c, COOP_FAULT_FORMAT, "a write of no tensor");
  if (e->new_tensor == e->old_tensor)
    {
      coop_model_set_producer (model, old, e->op);
      coop_apply_touch (c, old);
      return result;
    }
  Tensor *tensor = coop_id_map_get (&model->tensors, e->new_tensor);
  if (tensor == NULL) /* its own event, with its own kind and pin, may follow */
    {
      tensor = coop_model_tensor_new (model, e->new_tensor);
      tensor->storage = old->storage;
      tensor->bytes = old->bytes;
      tensor->dtype = old->dtype;
      tensor->ndim = old->ndim;
      memcpy (tensor->dims, old->dims, sizeof tensor->dims);
      tensor->kind = old->kind;
      tensor->pin = old->pin;
      tensor->held = old->held;
    }
  coop_model_set_producer (model, tensor, e->op);
  coop_apply_touch (c, tensor);
  if (block != NULL)
    coop_model_attach (model, tensor, block);
  else if (e->block != 0)
    result = coop_apply_fault (c, COOP_FAULT_UNKNOWN, "written block %" G_GUINT64_FORMAT " is not there", e->block);
  coop_model_set_held (model, old, FALSE);
  return result;
}

CoopFault
coop_apply_release (const CoopApply *c)
{
  CoopFault result = COOP_FAULT_NONE;
  Tensor *tensor = coop_id_map_get (&c->model->tensors, c->ev->u.release.tensor);
  if (tensor == NULL)
    return coop_apply_fault (c, COOP_FAULT_UNKNOWN, "released tensor %" G_GUINT64_FORMAT " is not known",
                  c->ev->u.release.tensor);
  coop_model_set_held (c->model, tensor, FALSE);
  return result;
}

CoopFault
coop_apply_pin (const CoopApply *c)
{
  const typeof (c->ev->u.pin) *e = &c->ev->u.pin;
  guint8 pin = e->reason;
  if (c->ev->kind == COOP_EVENT_UNPIN)
    pin = e->count > 0 ? e->reason : COOP_PIN_NONE;
  else if (c->ev->kind == COOP_EVENT_ESCAPE && pin == COOP_PIN_NONE)
    pin = COOP_PIN_ESCAPED;
  if (e->reason >= COOP_N_PINS)
    return coop_apply_fault (c, COOP_FAULT_FORMAT, "pin reason %u is not defined", e->reason);
  Tensor *tensor = coop_id_map_get (&c->model->tensors, e->tensor);
  Block *block = coop_id_map_get (&c->model->blocks, e->block);
  if (tensor != NULL)
    coop_model_set_pin (c->model, tensor, pin);
  else if (e->tensor == 0 && block != NULL)
    {
      block->lasting = pin;
      coop_model_recount (c->model, block);
    }
  else
    return coop_apply_fault (c, COOP_FAULT_UNKNOWN, "pinned tensor %" G_GUINT64_FORMAT " is not known", e->tensor);
  return COOP_FAULT_NONE;
}

CoopFault
coop_apply_reclassify (const CoopApply *c)
{
  const typeof (c->ev->u.reclassify) *e = &c->ev->u.reclassify;
  Tensor *tensor = coop_id_map_get (&c->model->tensors, e->tensor);
  if (e->kind >= COOP_N_KINDS || e->pin >= COOP_N_PINS)
    return coop_apply_fault (c, COOP_FAULT_FORMAT, "kind %u or pin %u is not defined", e->kind, e->pin);
  if (tensor == NULL)
    return coop_apply_fault (c, COOP_FAULT_UNKNOWN, "tensor %" G_GUINT64_FORMAT " is not known", e->tensor);
  tensor->kind = e->kind;
  coop_model_set_pin (c->model, tensor, e->pin);
  return COOP_FAULT_NONE;
}

/* ---- operators ---- */

CoopFault
coop_apply_op_begin (const CoopApply *c)
{
  CoopModel *model = c->model;
  const typeof (c->ev->u.op_begin) *e = &c->ev->u.op_begin;
  const guint64 *ids = c->body;
  CoopFault result = COOP_FAULT_NONE;
  if (e->id == 0 || e->n_inputs > 8u * c->ev->more)
    return coop_apply_fault (c, COOP_FAULT_FORMAT, "operator %" G_GUINT64_FORMAT " with %u inputs in %u records",
                  e->id, e->n_inputs, c->ev->more);
  if (coop_id_map_get (&model->ops, e->id) != NULL)
    return coop_apply_fault (c, COOP_FAULT_FORMAT, "operator %" G_GUINT64_FORMAT " begins twice", e->id);
  Op *op = coop_model_op_new (model, e->id);
  op->name = e->name;
  op->replay_of = e->replay_of;
  op->stack = e->stack;
  op->phase = e->phase;
  op->step = e->step;
  op->start_ts = c->ev->ts;
  op->running = TRUE;
  op->inputs = g_new (Tensor *, MAX (e->n_inputs, 1));
  for (guint i = 0; i < e->n_inputs; i++)
    {
      Tensor *tensor = coop_apply_tensor_or_new (c, ids[i], &result);
      if (tensor == NULL)
        continue;
      op->inputs[op->n_inputs++] = tensor;
      tensor->running++;
      coop_apply_touch (c, tensor);
      if (tensor->block != NULL)
        coop_model_recount (model, tensor->block);
    }
  return result;
}

static void
work_done (const CoopApply *c, Op *op)
{
  for (guint i = 0; op->blocks != NULL && i < op->blocks->len; i++)
    {
      Block *block = coop_id_map_get (&c->model->blocks, g_array_index (op->blocks, guint64, i));
      if (block != NULL)
        {
          block->working = FALSE;
          coop_model_recount (c->model, block);
        }
    }
}

CoopFault
coop_apply_op_end (const CoopApply *c)
{
  CoopModel *model = c->model;
  const typeof (c->ev->u.op_end) *e = &c->ev->u.op_end;
  const guint64 *ids = c->body;
  Op *op = coop_id_map_get (&model->ops, e->id);
  if (e->n_outputs > 8u * c->ev->more)
    return coop_apply_fault (c, COOP_FAULT_FORMAT, "operator %" G_GUINT64_FORMAT " with %u outputs in %u records",
                  e->id, e->n_outputs, c->ev->more);
  if (op == NULL || !op->running)
    return coop_apply_fault (c, COOP_FAULT_UNKNOWN, "operator %" G_GUINT64_FORMAT " ends and did not begin", e->id);
  op->cost = e->cost;
  op->duration = e->duration;
  if (op->replay_of != 0)
    {
      model->totals.replays++;
      model->totals.replay_ns += e->duration;
    }
  else if (!e->failed)
    {
      model->totals.ops++;
      model->totals.op_ns += e->duration;
    }
  for (guint i = 0; i < op->n_inputs; i++)
    coop_apply_touch (c, op->inputs[i]);
  for (guint i = 0; i < e->n_outputs; i++)
    {
      Tensor *tensor = coop_id_map_get (&model->tensors, ids[i]);
      if (tensor != NULL)
        coop_apply_touch (c, tensor);
    }
  Op *original = coop_id_map_get (&model->ops, op->replay_of);
  if (original != NULL && e->cost > 0)
    original->cost = e->cost;
  work_done (c, op);
  coop_model_op_done (model, op, e->failed || op->replay_of != 0);
  return COOP_FAULT_NONE;
}
