/* SPDX-License-Identifier: Apache-2.0 */
/* Store: rows of decisions, texts and marks. */
#include <string.h>

#include "trace/model-private.h"
#include "trace/store-private.h"

static char *
text_of (const void *body, guint64 bytes, guint more)
{
  return body != NULL ? g_utf8_make_valid (body, MIN (bytes, 64u * more)) : g_strdup ("");
}

/* ---- decisions ---- */

void
coop_store_row_search (CoopStore *store, const CoopEvent *ev, const void *body)
{
  CoopSearchBody search = { 0 };
  if (ev->more > 0)
    memcpy (&search, body, sizeof search);
  CoopBind bind = coop_bind (store, COOP_STATEMENT_EVICTION);
  coop_bind_int (&bind, ev->u.search.id);
  coop_bind_int (&bind, ev->seq);
  coop_bind_int (&bind, ev->u.search.need);
  coop_bind_addr (&bind, ev->u.search.lo);
  coop_bind_addr (&bind, ev->u.search.hi);
  coop_bind_int (&bind, ev->u.search.victims);
  coop_bind_int (&bind, ev->u.search.visited);
  coop_bind_real (&bind, search.cost);
  coop_bind_real (&bind, search.next_cost);
  coop_bind_id (&bind, search.ns);   /* a replay does not time its searches */
  coop_bind_int (&bind, search.free_bytes);
  coop_bind_int (&bind, search.largest);
  coop_bind_id (&bind, store->totals.budget);
  coop_bind_id (&bind, search.op);
  coop_store_step (store, COOP_STATEMENT_EVICTION);
}

static void
bind_param (CoopBind *bind, CoopParam param, gint64 bits)
{
  const CoopParamInfo *info = &coop_param_info[param];
  CoopValue value = { .i = bits };
  guint n = 0;
  switch (info->type)
    {
    case COOP_TYPE_REAL:
      coop_bind_real (bind, value.d);
      return;
    case COOP_TYPE_ENUM:
      while (info->labels[n] != NULL)
        n++;
      if (bits >= 0 && bits < n)
        {
          coop_bind_text (bind, info->labels[bits], -1);
          return;
        }
      break;
    case COOP_TYPE_SIZE:
    case COOP_TYPE_INT:
    case COOP_TYPE_BOOL:
      break;
    }
  coop_bind_int (bind, bits);
}

void
coop_store_row_policy (CoopStore *store, const CoopEvent *ev)
{
  if (ev->u.policy.param >= COOP_N_PARAMS)
    return;
  CoopBind bind = coop_bind (store, COOP_STATEMENT_POLICY);
  coop_bind_int (&bind, ev->seq);
  coop_bind_text (&bind, coop_param_info[ev->u.policy.param].name, -1);
  bind_param (&bind, ev->u.policy.param, ev->u.policy.old_bits);
  bind_param (&bind, ev->u.policy.param, ev->u.policy.new_bits);
  coop_bind_int (&bind, ev->u.policy.source);
  coop_bind_int (&bind, ev->u.policy.generation);
  coop_store_step (store, COOP_STATEMENT_POLICY);
}

void
coop_store_row_oom (CoopStore *store, const CoopEvent *ev, const void *body)
{
  CoopOomBody oom = { 0 };
  if (ev->more > 0)
    memcpy (&oom, body, sizeof oom);
  CoopBind bind = coop_bind (store, COOP_STATEMENT_OOM);
  coop_bind_int (&bind, ev->seq);
  coop_bind_int (&bind, ev->u.oom.asked);
  coop_bind_int (&bind, ev->u.oom.free);
  coop_bind_int (&bind, ev->u.oom.largest);
  coop_bind_id (&bind, ev->u.oom.advice);
  coop_bind_id (&bind, ev->u.oom.op);
  coop_bind_int (&bind, oom.budget);
  coop_bind_int (&bind, oom.evictable);
  coop_bind_int (&bind, oom.unclaimed);
  for (guint i = 0; i < G_N_ELEMENTS (oom.pinned); i++)
    coop_bind_int (&bind, oom.pinned[i]);
  CoopSiteBody site = { 0 };
  if (ev->more > 1)
    memcpy (&site, (const guint8 *) body + sizeof oom, sizeof site);
  coop_bind_id (&bind, site.device_free);
  coop_bind_id (&bind, site.stack);
  coop_store_step (store, COOP_STATEMENT_OOM);
}

/* ---- texts and marks ---- */

void
coop_store_rows_text (CoopStore *store, const CoopModel *model, const CoopEvent *ev, const void *body)
{
  g_autofree char *text = NULL, *value = NULL;
  CoopBind bind;
  switch (ev->kind)
    {
    case COOP_EVENT_META:
      if (body == NULL || ev->u.meta.key_bytes > 64u * ev->more || ev->u.meta.value_bytes > 64u * ev->more - ev->u.meta.key_bytes)
        return;
      text = text_of (body, ev->u.meta.key_bytes, ev->more);
      value = text_of ((const char *) body + ev->u.meta.key_bytes, ev->u.meta.value_bytes, ev->more);
      coop_store_set_meta (store, text, value);
      return;
    case COOP_EVENT_STRING:
      text = text_of (body, ev->u.string.bytes, ev->more);
      bind = coop_bind (store, COOP_STATEMENT_STRING);
      coop_bind_int (&bind, ev->u.string.id);
      coop_bind_int (&bind, ev->seq);
      coop_bind_text (&bind, text, -1);
      coop_store_step (store, COOP_STATEMENT_STRING);
      return;
    case COOP_EVENT_FRAME:
      bind = coop_bind (store, COOP_STATEMENT_FRAME);
      coop_bind_int (&bind, ev->u.frame.id);
      coop_bind_int (&bind, ev->seq);
      coop_bind_id (&bind, ev->u.frame.file);
      coop_bind_id (&bind, ev->u.frame.func);
      coop_bind_int (&bind, ev->u.frame.line);
      coop_store_step (store, COOP_STATEMENT_FRAME);
      return;
    default: /* stack */
      bind = coop_bind (store, COOP_STATEMENT_STACK);
      coop_bind_int (&bind, ev->u.stack.id);
      coop_bind_int (&bind, ev->seq);
      coop_bind_id (&bind, ev->u.stack.parent);
      coop_bind_id (&bind, ev->u.stack.frame);
      coop_bind_id (&bind, coop_model_shown (model, ev->u.stack.id));
      coop_store_step (store, COOP_STATEMENT_STACK);
    }
}

static void
bind_segment (CoopBind *bind, const CoopEvent *ev, const void *body)
{
  CoopSegmentBody segment;
  if (ev->more == 0)
    {
      for (guint i = 0; i < 6; i++)
        coop_bind_null (bind);
      return;
    }
  memcpy (&segment, body, sizeof segment);
  g_autofree char *private_pool = segment.private_a != 0 || segment.private_b != 0
    ? g_strdup_printf ("%" G_GUINT64_FORMAT ".%" G_GUINT64_FORMAT, segment.private_a, segment.private_b) : NULL;
  coop_bind_int (bind, segment.address);
  coop_bind_int (bind, segment.stream);
  sqlite3_bind_text (bind->statement, ++bind->n, private_pool, -1, SQLITE_TRANSIENT);
  coop_bind_int (bind, (segment.flags & COOP_SEGMENT_SMALL) != 0);
  coop_bind_int (bind, (segment.flags & COOP_SEGMENT_EXPANDABLE) != 0);
  coop_bind_id (bind, segment.stack);
}

void
coop_store_rows_pool (CoopStore *store, const CoopEvent *ev, const void *body)
{
  CoopBind bind;
  if (ev->kind == COOP_EVENT_POOL)
    {
      bind = coop_bind (store, COOP_STATEMENT_POOL);
      coop_bind_int (&bind, ev->u.pool.id);
      coop_bind_int (&bind, ev->seq);
      coop_bind_int (&bind, ev->u.pool.device);
      coop_bind_int (&bind, ev->u.pool.allocator);
      coop_bind_id (&bind, ev->u.pool.budget);
      coop_bind_int (&bind, ev->u.pool.capacity);
      coop_store_step (store, COOP_STATEMENT_POOL);
      return;
    }
  CoopStatement id = ev->u.segment.born ? COOP_STATEMENT_SEGMENT : COOP_STATEMENT_SEGMENT_END;
  bind = coop_bind (store, id);
  coop_bind_int (&bind, ev->u.segment.id);
  if (ev->u.segment.born)
    {
      coop_bind_int (&bind, ev->u.segment.pool);
      coop_bind_int (&bind, ev->u.segment.base);
      coop_bind_int (&bind, ev->u.segment.bytes);
    }
  coop_bind_int (&bind, ev->seq);
  if (ev->u.segment.born)
    bind_segment (&bind, ev, body);
  coop_store_step (store, id);
}

void
coop_store_row_warning (CoopStore *store, const CoopEvent *ev, const void *body)
{
  gsize bytes = body != NULL ? strnlen (body, 64u * ev->more) : 0;
  g_autofree char *text = text_of (body, bytes, ev->more);
  CoopBind bind = coop_bind (store, COOP_STATEMENT_WARNING);
  coop_bind_int (&bind, ev->seq);
  coop_bind_int (&bind, ev->u.warning.code);
  coop_bind_text (&bind, text, -1);
  coop_bind_id (&bind, ev->u.warning.tensor);
  coop_bind_id (&bind, ev->u.warning.op);
  coop_store_step (store, COOP_STATEMENT_WARNING);
}

void
coop_store_rows_mark (CoopStore *store, const CoopModel *model, const CoopEvent *ev)
{
  CoopBind bind;
  CoopStatement id = ev->kind == COOP_EVENT_STEP ? COOP_STATEMENT_STEP
                     : ev->kind == COOP_EVENT_GAP ? COOP_STATEMENT_GAP : COOP_STATEMENT_ANNOTATION;
  if (ev->kind == COOP_EVENT_STAT)
    {
      const char *name = coop_model_string (model, ev->u.stat.name);
      if (name != NULL)
        coop_store_set_stat (store, name, ev->u.stat.value);
      return;
    }
  bind = coop_bind (store, id);
  coop_bind_int (&bind, ev->seq);
  if (ev->kind == COOP_EVENT_STEP)
    coop_bind_int (&bind, ev->u.step.step);
  if (ev->kind == COOP_EVENT_GAP)
    coop_bind_int (&bind, ev->u.gap.first);
  else
    coop_bind_int (&bind, ev->ts);
  if (ev->kind == COOP_EVENT_GAP)
    coop_bind_int (&bind, ev->u.gap.missing);
  else if (ev->kind == COOP_EVENT_ANNOTATION)
    coop_bind_id (&bind, ev->u.annotation.string);
  coop_store_step (store, id);
}
