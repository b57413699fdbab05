/* SPDX-License-Identifier: Apache-2.0 */
/* Model, part 1: apply, the totals, and the events that concern neither blocks nor tensors. Each
 * event's function returns what is wrong with it and does as much of it as makes sense. After a gap,
 * what an unknown number or a block in the way may be owed to is not a fault. */
#include "trace/model-private.h"

#include <string.h>

CoopFault
coop_apply_fault (const CoopApply *c, CoopFault kind, const char *format, ...)
{
  if (c->model->totals.missing > 0 && kind != COOP_FAULT_FORMAT && kind != COOP_FAULT_TIME
      && kind != COOP_FAULT_SEQUENCE && kind != COOP_FAULT_BUDGET)
    return COOP_FAULT_NONE;
  if (c->detail != NULL && *c->detail == NULL)
    {
      va_list args;
      va_start (args, format);
      *c->detail = g_strdup_vprintf (format, args);
      va_end (args);
    }
  return kind;
}

/* ---- totals ---- */

guint8
coop_model_block_pin (const Block *block)
{
  const Tensor *tensor = block->tensor;
  if (tensor != NULL && tensor->pin != COOP_PIN_NONE)
    return tensor->pin;
  if (block->working || (tensor != NULL && tensor->running > 0))
    return COOP_PIN_OPERATOR;
  if (tensor != NULL)
    return COOP_PIN_NONE;
  return block->lasting != COOP_PIN_NONE ? block->lasting : COOP_PIN_UNCLAIMED;
}

void
coop_model_count (CoopModel *model, const Block *block, gboolean in)
{
  guint64 bytes = in ? block->node.bytes : -block->node.bytes;
  *(block->pin == COOP_PIN_NONE ? &model->totals.evictable : &model->totals.pinned) += bytes;
  model->totals.by_kind[block->kind] += bytes;
}

void
coop_model_recount (CoopModel *model, Block *block)
{
  guint8 pin = coop_model_block_pin (block);
  guint8 kind = block->tensor != NULL ? block->tensor->kind : block->own_kind;
  if (pin == block->pin && kind == block->kind)
    return;
  coop_model_count (model, block, FALSE);
  block->pin = pin;
  block->kind = kind;
  coop_model_count (model, block, TRUE);
}

void
coop_model_measure (CoopModel *model)
{
  CoopModelTotals *t = &model->totals;
  /* Where memory comes in segments, what is not backed is no hole, and addresses know no budget. */
  guint64 limit = t->budget > 0 && coop_model_flat (model) ? t->budget : coop_space_end (&model->space);
  CoopHoles holes = coop_space_holes (&model->space, limit);
  t->free = holes.free;
  t->largest = holes.largest;
  t->holes = holes.holes;
}

/* ---- the rest ---- */

static CoopFault
apply_text (const CoopApply *c)
{
  const CoopEvent *ev = c->ev;
  switch (ev->kind)
    {
    case COOP_EVENT_STRING:
      if (ev->u.string.bytes > 64u * ev->more || ev->u.string.id == 0)
        return coop_apply_fault (c, COOP_FAULT_FORMAT, "string %" G_GUINT64_FORMAT " cannot be", ev->u.string.id);
      coop_model_add_string (c->model, ev->u.string.id, c->body, ev->u.string.bytes);
      break;
    case COOP_EVENT_FRAME:
      coop_model_add_frame (c->model, ev->u.frame.id, ev->u.frame.file, ev->u.frame.func, ev->u.frame.line);
      break;
    default:
      coop_model_add_stack (c->model, ev->u.stack.id, ev->u.stack.parent, ev->u.stack.frame);
    }
  return COOP_FAULT_NONE;
}

static CoopFault
apply_policy (const CoopApply *c)
{
  const typeof (c->ev->u.policy) *e = &c->ev->u.policy;
  if (e->param >= COOP_N_PARAMS)
    return coop_apply_fault (c, COOP_FAULT_FORMAT, "parameter %u is not defined", e->param);
  c->model->policy.v[e->param].i = e->new_bits;
  if (e->param == COOP_PARAM_BUDGET)
    c->model->totals.budget = e->new_bits;
  return COOP_FAULT_NONE;
}

static CoopFault
apply_search (const CoopApply *c)
{
  CoopModel *model = c->model;
  const typeof (c->ev->u.search) *e = &c->ev->u.search;
  if (c->ev->more < 1)
    return coop_apply_fault (c, COOP_FAULT_FORMAT, "search %" G_GUINT64_FORMAT " without a body", e->id);
  model->search = (CoopLastEviction) { .seq = c->ev->seq, .id = e->id, .need = e->need, .lo = e->lo, .hi = e->hi };
  memcpy (&model->search.body, c->body, sizeof model->search.body);
  model->has_search = TRUE;
  model->totals.searches++;
  model->totals.search_ns += model->search.body.ns;
  if (model->totals.budget > 0)
    {
      model->free_part_sum += (double) model->search.body.free_bytes / (double) model->totals.budget;
      model->free_part_n++;
      model->totals.fragmentation = model->free_part_sum / (double) model->free_part_n;
    }
  return COOP_FAULT_NONE;
}

static CoopFault
apply_oom (const CoopApply *c)
{
  const typeof (c->ev->u.oom) *e = &c->ev->u.oom;
  CoopModel *model = c->model;
  model->totals.ooms++;
  model->has_oom = TRUE;
  model->oom = (CoopLastOom) { .seq = c->ev->seq, .asked = e->asked, .free = e->free,
                               .largest = e->largest, .advice = e->advice, .op = e->op };
  if (c->ev->more < 1)
    return coop_apply_fault (c, COOP_FAULT_FORMAT, "out of memory without a body");
  memcpy (&model->oom.body, c->body, sizeof model->oom.body);
  return COOP_FAULT_NONE;
}

static CoopFault
dispatch (const CoopApply *c)
{
  CoopModelTotals *t = &c->model->totals;
  Op *op;
  switch (c->ev->kind)
    {
    case COOP_EVENT_STRING:
    case COOP_EVENT_FRAME:
    case COOP_EVENT_STACK:
      return apply_text (c);
    case COOP_EVENT_POOL:
      t->budget = c->ev->u.pool.budget;
      t->capacity = c->ev->u.pool.capacity;
      return COOP_FAULT_NONE;
    case COOP_EVENT_SEGMENT:
      return coop_apply_segment (c);
    case COOP_EVENT_POLICY:
      return apply_policy (c);
    case COOP_EVENT_ALLOC:
      return coop_apply_alloc (c);
    case COOP_EVENT_FREE:
      return coop_apply_free (c);
    case COOP_EVENT_EVICT:
      return coop_apply_evict (c);
    case COOP_EVENT_HANDOVER:
      return coop_apply_handover (c);
    case COOP_EVENT_MOVE:
      return coop_apply_move (c);
    case COOP_EVENT_SEARCH:
      return apply_search (c);
    case COOP_EVENT_RELEASE:
      return coop_apply_release (c);
    case COOP_EVENT_PIN:
    case COOP_EVENT_UNPIN:
    case COOP_EVENT_ESCAPE:
      return coop_apply_pin (c);
    case COOP_EVENT_TENSOR:
      return coop_apply_tensor (c);
    case COOP_EVENT_WRITE:
      return coop_apply_write (c);
    case COOP_EVENT_RECLASSIFY:
      return coop_apply_reclassify (c);
    case COOP_EVENT_COST:
      op = coop_id_map_get (&c->model->ops, c->ev->u.cost.op);
      if (op != NULL)
        op->cost = c->ev->u.cost.cost;
      return COOP_FAULT_NONE;
    case COOP_EVENT_OP_BEGIN:
      return coop_apply_op_begin (c);
    case COOP_EVENT_OP_END:
      return coop_apply_op_end (c);
    case COOP_EVENT_STEP:
      t->step = c->ev->u.step.step;
      return COOP_FAULT_NONE;
    case COOP_EVENT_PHASE:
      t->phase = c->ev->u.phase.phase;
      return COOP_FAULT_NONE;
    case COOP_EVENT_OOM:
      return apply_oom (c);
    case COOP_EVENT_GAP:
      t->missing += c->ev->u.gap.missing;
      return COOP_FAULT_NONE;
    case COOP_EVENT_END:
      t->ended = TRUE;
      t->exit_code = c->ev->u.end.exit_code;
      return COOP_FAULT_NONE;
    default:
      if (coop_event_kind_label (c->ev->kind) == NULL)
        return coop_apply_fault (c, COOP_FAULT_FORMAT, "event kind %u is not defined", c->ev->kind);
      return COOP_FAULT_NONE;
    }
}

static gboolean
changes_layout (guint kind)
{
  return (kind >= COOP_EVENT_ALLOC && kind <= COOP_EVENT_MOVE) || kind == COOP_EVENT_POOL
         || kind == COOP_EVENT_SEGMENT || kind == COOP_EVENT_POLICY;
}

CoopFault
coop_model_apply (CoopModel *model, const CoopEvent *ev, const void *body, char **detail)
{
  CoopModelTotals *t = &model->totals;
  CoopApply c = { model, ev, body, detail };
  CoopFault result = COOP_FAULT_NONE;
  guint64 next = t->seq + 1;
  if (detail != NULL)
    *detail = NULL;
  if (t->seq != G_MAXUINT64 && ev->seq < next)
    return coop_apply_fault (&c, COOP_FAULT_SEQUENCE, "number %" G_GUINT64_FORMAT " comes again, or too late, where %"
                             G_GUINT64_FORMAT " was due; the event is left out", ev->seq, next);
  if (ev->kind == COOP_EVENT_GAP && ev->u.gap.first == next)
    next += ev->u.gap.missing;
  if (ev->seq != next)
    result = coop_apply_fault (&c, COOP_FAULT_SEQUENCE, "event %" G_GUINT64_FORMAT " where %" G_GUINT64_FORMAT
                    " was due", ev->seq, next);
  else if (ev->ts < t->ts)
    result = coop_apply_fault (&c, COOP_FAULT_TIME, "time goes back from %" G_GUINT64_FORMAT " to %" G_GUINT64_FORMAT " ns",
                    t->ts, ev->ts);
  t->seq = ev->seq;
  t->ts = MAX (t->ts, ev->ts);
  CoopFault own = dispatch (&c);
  coop_model_sweep (model);
  if (changes_layout (ev->kind))
    coop_model_measure (model);
  return result != COOP_FAULT_NONE ? result : own;
}
