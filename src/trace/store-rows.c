/* SPDX-License-Identifier: Apache-2.0 */
/* Store: one event -> its rows. The row of table event comes always; what it tells of blocks,
 * tensors, operators and decisions goes into their tables, so that nobody has to replay events to
 * ask about them. */
#include <string.h>

#include "trace/store-private.h"

typedef struct {
  guint64 id, addr, bytes, requested, tensor, op, born_event, born_ns, stack;
} Life;

typedef struct {
  CoopEvent ev;
  guint64 inputs[]; /* ev.u.op_begin.n_inputs */
} Running;

/* ---- text ---- */

static void
append_uint (GString *out, guint64 value)
{
  char digits[20];
  guint at = sizeof digits;
  do
    digits[--at] = '0' + value % 10;
  while ((value /= 10) != 0);
  g_string_append_len (out, digits + at, sizeof digits - at);
}

/* [1,2,3] */
static void
json_array (GString *out, const void *values, guint n)
{
  g_string_assign (out, "[");
  for (guint i = 0; i < n; i++)
    {
      gint64 value;
      memcpy (&value, (const guint8 *) values + 8 * i, 8);
      if (i > 0)
        g_string_append_c (out, ',');
      if (value < 0)
        g_string_append_c (out, '-');
      append_uint (out, value < 0 ? -(guint64) value : (guint64) value);
    }
  g_string_append_c (out, ']');
}

/* ---- blocks ---- */

static void
begin_life (CoopStore *store, const Life *life)
{
  if (life->id == 0)
    return;
  g_free (coop_id_map_get (&store->lives, life->id));
  coop_id_map_set (&store->lives, life->id, g_memdup2 (life, sizeof *life));
}

static void
put_life (CoopStore *store, const Life *life, const CoopEvent *end)
{
  CoopBind bind = coop_bind (store, COOP_STATEMENT_BLOCK);
  coop_bind_int (&bind, life->id);
  coop_bind_int (&bind, life->addr);
  coop_bind_int (&bind, life->bytes);
  coop_bind_id (&bind, life->requested);
  coop_bind_id (&bind, life->tensor);
  coop_bind_id (&bind, life->op);
  if (life->born_event == G_MAXUINT64)
    {
      coop_bind_null (&bind);
      coop_bind_null (&bind);
    }
  else
    {
      coop_bind_int (&bind, life->born_event);
      coop_bind_int (&bind, life->born_ns);
    }
  if (end != NULL)
    {
      coop_bind_int (&bind, end->seq);
      coop_bind_int (&bind, end->ts);
      coop_bind_int (&bind, end->kind);
    }
  else
    for (guint i = 0; i < 3; i++)
      coop_bind_null (&bind);
  coop_bind_id (&bind, life->stack);
  coop_store_step (store, COOP_STATEMENT_BLOCK);
}

/* Returns the life as it was; one that began in a gap is made up from the event. */
static Life
end_life (CoopStore *store, guint64 id, guint64 addr, guint64 bytes, guint64 tensor, const CoopEvent *ev)
{
  Life life = { id, addr, bytes, 0, tensor, 0, G_MAXUINT64, 0, 0 };
  g_autofree Life *known = coop_id_map_get (&store->lives, id);
  if (known != NULL)
    life = *known;
  if (tensor != 0)
    life.tensor = tensor;
  coop_id_map_remove (&store->lives, id);
  if (id != 0)
    put_life (store, &life, ev);
  return life;
}

static void
claim_life (CoopStore *store, guint64 block, guint64 tensor)
{
  Life *life = coop_id_map_get (&store->lives, block);
  if (life != NULL)
    life->tensor = tensor;
}

static void
row_evicted (CoopStore *store, const CoopEvent *ev, const void *body)
{
  CoopEvictBody why = { 0 };
  if (ev->more > 0)
    memcpy (&why, body, sizeof why);
  CoopBind bind = coop_bind (store, COOP_STATEMENT_EVICTED);
  coop_bind_int (&bind, ev->u.evict.block);
  coop_bind_id (&bind, ev->u.evict.search);
  coop_bind_int (&bind, ev->seq);
  coop_bind_id (&bind, ev->u.evict.tensor);
  coop_bind_int (&bind, ev->u.evict.addr);
  coop_bind_int (&bind, ev->u.evict.bytes);
  coop_bind_real (&bind, why.h);
  coop_bind_int (&bind, why.own_cost);
  coop_bind_int (&bind, why.chain_cost);
  coop_bind_int (&bind, why.staleness);
  coop_store_step (store, COOP_STATEMENT_EVICTED);
}

static void
rows_block (CoopStore *store, const CoopEvent *ev, const void *body)
{
  Life life;
  switch (ev->kind)
    {
    case COOP_EVENT_ALLOC:
      life = (Life) { ev->u.alloc.block, ev->u.alloc.addr, ev->u.alloc.bytes, ev->u.alloc.requested, 0,
                      ev->u.alloc.op, ev->seq, ev->ts, coop_event_site (ev, body, 0).stack };
      begin_life (store, &life);
      break;
    case COOP_EVENT_FREE:
      end_life (store, ev->u.free.block, ev->u.free.addr, ev->u.free.bytes, ev->u.free.tensor, ev);
      break;
    case COOP_EVENT_EVICT:
      end_life (store, ev->u.evict.block, ev->u.evict.addr, ev->u.evict.bytes, ev->u.evict.tensor, ev);
      row_evicted (store, ev, body);
      break;
    case COOP_EVENT_HANDOVER:
      life = end_life (store, ev->u.handover.old_block, ev->u.handover.addr, ev->u.handover.bytes, 0, ev);
      life.id = ev->u.handover.block;
      life.tensor = ev->u.handover.tensor;
      life.born_event = ev->seq;
      life.born_ns = ev->ts;
      begin_life (store, &life);
      break;
    default: /* move */
      life = end_life (store, ev->u.move.block, ev->u.move.from, ev->u.move.bytes, 0, ev);
      life.id = ev->u.move.new_block;
      life.addr = ev->u.move.to;
      life.born_event = ev->seq;
      life.born_ns = ev->ts;
      begin_life (store, &life);
    }
}

/* ---- tensors ---- */

static void
row_tensor (CoopStore *store, const CoopEvent *ev, const void *body)
{
  CoopTensorBody head;
  if (ev->more < 1 || ev->u.tensor.id == 0)
    return;
  memcpy (&head, body, sizeof head);
  /* Dimensions run on into the records that follow. */
  json_array (store->text, (const guint8 *) body + G_STRUCT_OFFSET (CoopTensorBody, dims),
              MIN (head.ndim, 5 + 8 * (ev->more - 1u)));
  CoopBind bind = coop_bind (store, COOP_STATEMENT_TENSOR);
  coop_bind_int (&bind, ev->u.tensor.id);
  coop_bind_int (&bind, ev->seq);
  coop_bind_id (&bind, ev->u.tensor.storage);
  coop_bind_id (&bind, ev->u.tensor.op);
  coop_bind_int (&bind, head.output);
  coop_bind_id (&bind, head.dtype);
  coop_bind_text (&bind, store->text->str, store->text->len);
  coop_bind_int (&bind, ev->u.tensor.bytes);
  coop_bind_int (&bind, head.kind);
  coop_bind_int (&bind, head.pin);
  coop_store_step (store, COOP_STATEMENT_TENSOR);
  claim_life (store, ev->u.tensor.block, ev->u.tensor.id);
}

static void
rows_tensor (CoopStore *store, const CoopEvent *ev, const void *body)
{
  CoopBind bind;
  switch (ev->kind)
    {
    case COOP_EVENT_TENSOR:
      row_tensor (store, ev, body);
      break;
    case COOP_EVENT_WRITE:
      claim_life (store, ev->u.write.block, ev->u.write.new_tensor);
      if (ev->u.write.new_tensor == ev->u.write.old_tensor || ev->u.write.new_tensor == 0)
        break;
      bind = coop_bind (store, COOP_STATEMENT_TENSOR_WRITE);
      coop_bind_int (&bind, ev->u.write.new_tensor);
      coop_bind_int (&bind, ev->u.write.old_tensor);
      coop_bind_int (&bind, ev->seq);
      coop_bind_id (&bind, ev->u.write.op);
      coop_store_step (store, COOP_STATEMENT_TENSOR_WRITE);
      break;
    case COOP_EVENT_RECLASSIFY:
      bind = coop_bind (store, COOP_STATEMENT_TENSOR_KIND);
      coop_bind_int (&bind, ev->u.reclassify.tensor);
      coop_bind_int (&bind, ev->u.reclassify.kind);
      coop_bind_int (&bind, ev->u.reclassify.pin);
      coop_store_step (store, COOP_STATEMENT_TENSOR_KIND);
      break;
    default: /* pin, unpin, escape */
      if (ev->u.pin.tensor == 0)
        break;
      bind = coop_bind (store, COOP_STATEMENT_TENSOR_PIN);
      coop_bind_int (&bind, ev->u.pin.tensor);
      coop_bind_int (&bind, ev->kind == COOP_EVENT_UNPIN && ev->u.pin.count == 0 ? COOP_PIN_NONE
                                                                                 : ev->u.pin.reason);
      coop_store_step (store, COOP_STATEMENT_TENSOR_PIN);
    }
}

/* ---- operators ---- */

static void
put_op (CoopStore *store, const Running *begin, const CoopEvent *end, const void *body)
{
  const CoopEvent *ev = &begin->ev;
  CoopBind bind = coop_bind (store, COOP_STATEMENT_OP);
  json_array (store->text, begin->inputs, ev->u.op_begin.n_inputs);
  gsize split = store->text->len;
  coop_bind_int (&bind, ev->u.op_begin.id);
  coop_bind_id (&bind, ev->u.op_begin.name);
  coop_bind_id (&bind, ev->u.op_begin.replay_of);
  coop_bind_int (&bind, ev->seq);
  if (end != NULL)
    {
      coop_bind_int (&bind, end->seq);
      coop_bind_int (&bind, ev->ts);
      coop_bind_int (&bind, end->u.op_end.duration);
      coop_bind_int (&bind, end->u.op_end.cost);
      coop_bind_int (&bind, end->u.op_end.workspace);
    }
  else
    {
      coop_bind_null (&bind);
      coop_bind_int (&bind, ev->ts);
      for (guint i = 0; i < 3; i++)
        coop_bind_null (&bind);
    }
  coop_bind_id (&bind, ev->u.op_begin.stack);
  coop_bind_int (&bind, ev->u.op_begin.phase);
  coop_bind_int (&bind, ev->u.op_begin.step);
  if (end != NULL)
    coop_bind_int (&bind, end->u.op_end.failed);
  else
    coop_bind_null (&bind);
  g_autofree char *inputs = g_strndup (store->text->str, split);
  coop_bind_text (&bind, inputs, split);
  if (end != NULL)
    json_array (store->text, body, MIN (end->u.op_end.n_outputs, 8u * end->more));
  coop_bind_text (&bind, end != NULL ? store->text->str : NULL, store->text->len);
  coop_store_step (store, COOP_STATEMENT_OP);
}

static void
rows_op (CoopStore *store, const CoopEvent *ev, const void *body)
{
  if (ev->kind == COOP_EVENT_OP_BEGIN)
    {
      guint n = MIN (ev->u.op_begin.n_inputs, 8u * ev->more);
      Running *running = g_malloc (sizeof (Running) + 8 * n);
      running->ev = *ev;
      running->ev.u.op_begin.n_inputs = n;
      if (n > 0)
        memcpy (running->inputs, body, 8 * n);
      g_free (coop_id_map_get (&store->running, ev->u.op_begin.id));
      if (ev->u.op_begin.id != 0)
        coop_id_map_set (&store->running, ev->u.op_begin.id, running);
      else
        g_free (running);
      return;
    }
  if (ev->kind == COOP_EVENT_COST)
    {
      CoopBind bind = coop_bind (store, COOP_STATEMENT_OP_COST);
      coop_bind_int (&bind, ev->u.cost.op);
      coop_bind_int (&bind, ev->u.cost.cost);
      coop_store_step (store, COOP_STATEMENT_OP_COST);
      return;
    }
  g_autofree Running *running = coop_id_map_get (&store->running, ev->u.op_end.id);
  if (running == NULL)
    return;
  coop_id_map_remove (&store->running, ev->u.op_end.id);
  put_op (store, running, ev, body);
}

/* ---- all ---- */

static void
row_event (CoopStore *store, const CoopEvent *ev, const void *body)
{
  CoopColumns columns;
  coop_event_pack (ev, body, &columns, store->rest);
  CoopBind bind = coop_bind (store, COOP_STATEMENT_EVENT);
  coop_bind_int (&bind, ev->seq);
  coop_bind_int (&bind, ev->ts);
  coop_bind_int (&bind, ev->kind);
  coop_bind_int (&bind, ev->thread);
  for (guint i = 0; i < COOP_N_COLUMNS; i++)
    if (columns.present[i])
      coop_bind_int (&bind, columns.value[i]);
    else
      coop_bind_null (&bind);
  coop_bind_int (&bind, store->totals.used);
  coop_bind_int (&bind, store->totals.largest);
  if (store->rest->len > 0)
    sqlite3_bind_blob (bind.statement, ++bind.n, store->rest->data, store->rest->len, SQLITE_STATIC);
  else
    coop_bind_null (&bind);
  coop_store_step (store, COOP_STATEMENT_EVENT);
}

void
coop_store_rows (CoopStore *store, const CoopModel *model, const CoopEvent *ev, const void *body)
{
  row_event (store, ev, body);
  switch (ev->kind)
    {
    case COOP_EVENT_META:
    case COOP_EVENT_STRING:
    case COOP_EVENT_FRAME:
    case COOP_EVENT_STACK:
      coop_store_rows_text (store, model, ev, body);
      break;
    case COOP_EVENT_POOL:
    case COOP_EVENT_SEGMENT:
      coop_store_rows_pool (store, ev, body);
      break;
    case COOP_EVENT_POLICY:
      coop_store_row_policy (store, ev);
      break;
    case COOP_EVENT_ALLOC:
    case COOP_EVENT_FREE:
    case COOP_EVENT_EVICT:
    case COOP_EVENT_HANDOVER:
    case COOP_EVENT_MOVE:
      rows_block (store, ev, body);
      break;
    case COOP_EVENT_SEARCH:
      coop_store_row_search (store, ev, body);
      break;
    case COOP_EVENT_TENSOR:
    case COOP_EVENT_WRITE:
    case COOP_EVENT_RECLASSIFY:
    case COOP_EVENT_PIN:
    case COOP_EVENT_UNPIN:
    case COOP_EVENT_ESCAPE:
      rows_tensor (store, ev, body);
      break;
    case COOP_EVENT_OP_BEGIN:
    case COOP_EVENT_OP_END:
    case COOP_EVENT_COST:
      rows_op (store, ev, body);
      break;
    case COOP_EVENT_OOM:
      coop_store_row_oom (store, ev, body);
      break;
    case COOP_EVENT_WARNING:
      coop_store_row_warning (store, ev, body);
      break;
    case COOP_EVENT_STEP:
    case COOP_EVENT_ANNOTATION:
    case COOP_EVENT_GAP:
    case COOP_EVENT_STAT:
      coop_store_rows_mark (store, model, ev);
      break;
    default:
      break;
    }
}

void
coop_store_open_rows (CoopStore *store)
{
  gsize cursor = 0;
  for (Life *life; (life = coop_id_map_next (&store->lives, &cursor, NULL)) != NULL;)
    put_life (store, life, NULL);
  cursor = 0;
  for (Running *running; (running = coop_id_map_next (&store->running, &cursor, NULL)) != NULL;)
    put_op (store, running, NULL, NULL);
}

void
coop_store_rows_clear (CoopStore *store)
{
  CoopIdMap *maps[] = { &store->lives, &store->running };
  for (guint i = 0; i < G_N_ELEMENTS (maps); i++)
    {
      gsize cursor = 0;
      for (gpointer value; (value = coop_id_map_next (maps[i], &cursor, NULL)) != NULL;)
        g_free (value);
      coop_id_map_clear (maps[i]);
    }
}
