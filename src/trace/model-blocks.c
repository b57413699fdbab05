/* SPDX-License-Identifier: Apache-2.0 */
/* Model, part 2: the lives of blocks. */
#include "trace/model-private.h"

#include <string.h>

#define MAX_ADDR (G_GUINT64_CONSTANT (1) << 60)

static void
end_block (CoopModel *model, Block *block)
{
  Tensor *tensor = block->tensor;
  if (tensor != NULL)
    coop_model_detach (model, tensor);
  coop_model_count (model, block, FALSE);
  model->totals.used -= block->node.bytes;
  coop_space_remove (&model->space, &block->node);
  coop_id_map_remove (&model->blocks, block->id);
  g_slice_free (Block, block);
}

static guint64
priority_of (guint64 id)
{
  id = (id + G_GUINT64_CONSTANT (0x9e3779b97f4a7c15)) * G_GUINT64_CONSTANT (0xbf58476d1ce4e5b9);
  id ^= id >> 29;
  return id * G_GUINT64_CONSTANT (0x94d049bb133111eb);
}

Block *
coop_model_block_new (CoopModel *model, guint64 id, guint64 addr, guint64 bytes)
{
  Block *block = g_slice_new0 (Block);
  block->id = id;
  block->node.addr = addr;
  block->node.bytes = bytes;
  block->pin = coop_model_block_pin (block);
  coop_id_map_set (&model->blocks, id, block);
  coop_space_insert (&model->space, &block->node, priority_of (id));
  model->totals.used += bytes;
  model->totals.peak = MAX (model->totals.peak, model->totals.used);
  coop_model_count (model, block, TRUE);
  return block;
}

/* A block begins. Whatever lies in the way ends first. *block is NULL if the range makes no sense. */
static CoopFault
begin_block (const CoopApply *c, guint64 id, guint64 addr, guint64 bytes, Block **out)
{
  CoopModel *model = c->model;
  CoopFault result = COOP_FAULT_NONE;
  CoopNode *node;
  *out = NULL;
  if (id == 0 || bytes == 0 || bytes > MAX_ADDR || addr > MAX_ADDR)
    return coop_apply_fault (c, COOP_FAULT_FORMAT, "block %" G_GUINT64_FORMAT " at %#" G_GINT64_MODIFIER "x of %"
                  G_GUINT64_FORMAT " bytes cannot be", id, addr, bytes);
  Block *block = coop_id_map_get (&model->blocks, id);
  if (block != NULL)
    {
      result = coop_apply_fault (c, COOP_FAULT_OVERLAP, "block %" G_GUINT64_FORMAT " begins twice", id);
      end_block (model, block);
    }
  while ((node = coop_space_overlap (&model->space, addr, bytes)) != NULL)
    {
      result = coop_apply_fault (c, COOP_FAULT_OVERLAP, "block %" G_GUINT64_FORMAT " at %#" G_GINT64_MODIFIER
                      "x begins over block %" G_GUINT64_FORMAT, id, addr, ((Block *) node)->id);
      end_block (model, (Block *) node);
    }
  block = coop_model_block_new (model, id, addr, bytes);
  block->born_ts = block->used_ts = c->ev->ts;
  block->used_seq = c->ev->seq;
  if (result == COOP_FAULT_NONE && model->totals.budget > 0 && coop_model_flat (model) && addr + bytes > model->totals.budget)
    result = coop_apply_fault (c, COOP_FAULT_BUDGET, "block %" G_GUINT64_FORMAT " ends at %" G_GUINT64_FORMAT
                    ", past the budget of %" G_GUINT64_FORMAT, id, addr + bytes, model->totals.budget);
  *out = block;
  return result;
}

/* The block that an event ends, if it is as the event says. */
static CoopFault
find_block (const CoopApply *c, guint64 id, guint64 addr, guint64 bytes, Block **out)
{
  Block *block = *out = coop_id_map_get (&c->model->blocks, id);
  if (block == NULL)
    return coop_apply_fault (c, COOP_FAULT_FREE, "block %" G_GUINT64_FORMAT " is not there", id);
  if (block->node.addr != addr || block->node.bytes != bytes)
    return coop_apply_fault (c, COOP_FAULT_FREE, "block %" G_GUINT64_FORMAT " is %" G_GUINT64_FORMAT
                  " bytes at %#" G_GINT64_MODIFIER "x, not %" G_GUINT64_FORMAT " at %#" G_GINT64_MODIFIER "x",
                  id, block->node.bytes, block->node.addr, bytes, addr);
  return COOP_FAULT_NONE;
}

CoopFault
coop_apply_alloc (const CoopApply *c)
{
  const typeof (c->ev->u.alloc) *e = &c->ev->u.alloc;
  Block *block;
  CoopFault result = begin_block (c, e->block, e->addr, e->bytes, &block);
  c->model->totals.allocs++;
  if (block == NULL)
    return result;
  block->requested = e->requested;
  block->op = e->op;
  if (c->ev->more > 0)
    {
      CoopSiteBody site;
      memcpy (&site, c->body, sizeof site);
      block->stack = site.stack;
      block->own_kind = (guint8) MIN (site.kind, COOP_N_KINDS - 1);
      coop_model_recount (c->model, block);
    }
  Op *op = coop_id_map_get (&c->model->ops, e->op);
  if (op != NULL && op->running)
    {
      coop_model_op_works (op, block);
      coop_model_recount (c->model, block);
    }
  return result;
}

CoopFault
coop_apply_free (const CoopApply *c)
{
  const typeof (c->ev->u.free) *e = &c->ev->u.free;
  Block *block;
  CoopFault result = find_block (c, e->block, e->addr, e->bytes, &block);
  c->model->totals.frees++;
  if (block == NULL)
    return result;
  Tensor *tensor = block->tensor;
  end_block (c->model, block);
  /* Who lets go says so first. Else a hand-over came to nothing, and it is evicted as before. */
  if (tensor != NULL && tensor->held)
    coop_model_set_evicted (c->model, tensor, e->bytes);
  return result;
}

CoopFault
coop_apply_evict (const CoopApply *c)
{
  CoopModel *model = c->model;
  const typeof (c->ev->u.evict) *e = &c->ev->u.evict;
  CoopVictim victim = { e->block, e->addr, e->bytes, e->tensor, e->search, { 0 } };
  Block *block;
  CoopFault result = find_block (c, e->block, e->addr, e->bytes, &block);
  model->totals.evictions++;
  model->totals.evicted_bytes += e->bytes;
  if (c->ev->more > 0)
    memcpy (&victim.why, c->body, sizeof victim.why);
  /* Evictions without a search (0) belong together while nothing comes between them. */
  if (model->last.id != e->search || model->victims->len == 0
      || (e->search == 0 && c->ev->seq != model->victim_seq + 1))
    {
      g_array_set_size (model->victims, 0);
      model->last = (CoopLastEviction) { .seq = c->ev->seq, .id = e->search };
      if (model->has_search && model->search.id == e->search)
        model->last = model->search;
    }
  g_array_append_val (model->victims, victim);
  model->victim_seq = c->ev->seq;
  if (block == NULL)
    return result;
  Tensor *tensor = block->tensor;
  if ((tensor != NULL ? tensor->id : 0) != e->tensor)
    result = coop_apply_fault (c, COOP_FAULT_FREE, "block %" G_GUINT64_FORMAT " does not hold tensor %" G_GUINT64_FORMAT,
                    e->block, e->tensor);
  end_block (model, block);
  if (tensor != NULL && tensor->held)
    coop_model_set_evicted (model, tensor, e->bytes);
  return result;
}

CoopFault
coop_apply_handover (const CoopApply *c)
{
  CoopModel *model = c->model;
  const typeof (c->ev->u.handover) *e = &c->ev->u.handover;
  Block *old, *block;
  CoopFault result = find_block (c, e->old_block, e->addr, e->bytes, &old);
  guint64 op_id = 0, requested = 0;
  guint8 working = FALSE;
  model->totals.handovers++;
  if (old != NULL)
    {
      op_id = old->op;
      requested = old->requested;
      working = old->working;
      if (old->tensor != NULL && old->tensor->id != e->tensor)
        coop_model_set_held (model, old->tensor, FALSE);
      end_block (model, old);
    }
  CoopFault begun = begin_block (c, e->block, e->addr, e->bytes, &block);
  result = result != COOP_FAULT_NONE ? result : begun;
  if (block == NULL)
    return result;
  block->op = op_id;
  block->requested = requested;
  Op *op = coop_id_map_get (&model->ops, op_id);
  if (working && op != NULL && op->running) /* else it would stay marked for ever */
    coop_model_op_works (op, block);
  Tensor *tensor = coop_apply_tensor_or_new (c, e->tensor, &result);
  if (tensor == NULL)
    return result;
  coop_model_attach (model, tensor, block);
  tensor->remats = tensor->remat_step == model->totals.step ? tensor->remats + 1 : 1;
  tensor->remat_step = model->totals.step;
  coop_apply_touch (c, tensor);
  return result;
}

CoopFault
coop_apply_move (const CoopApply *c)
{
  CoopModel *model = c->model;
  const typeof (c->ev->u.move) *e = &c->ev->u.move;
  Block *old, *block;
  CoopFault result = find_block (c, e->block, e->from, e->bytes, &old);
  Tensor *tensor = NULL;
  Block was = { .requested = 0 };
  model->totals.moves++;
  if (old != NULL)
    {
      was = *old;
      tensor = old->tensor;
      end_block (model, old);
    }
  CoopFault begun = begin_block (c, e->new_block, e->to, e->bytes, &block);
  if (block != NULL)
    {
      block->requested = was.requested;
      block->op = was.op;
      block->lasting = was.lasting;
      block->stack = was.stack;
      block->own_kind = was.own_kind;
      coop_model_recount (model, block);
      if (tensor != NULL)
        coop_model_attach (model, tensor, block);
    }
  return result != COOP_FAULT_NONE ? result : begun;
}
