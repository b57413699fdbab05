/* SPDX-License-Identifier: Apache-2.0 */
/* Store: what is left out of a slim file. Events that are kept refer to nothing that is left out, and
 * are numbered anew, so that the file is whole in itself. */
#include "trace/store-private.h"

const char *
coop_detail_label (guint detail)
{
  static const char *const labels[COOP_N_DETAILS] = { "full", "blocks", "summary" };
  return detail < COOP_N_DETAILS ? labels[detail] : NULL;
}

void
coop_store_set_limits (CoopStore *store, guint64 limit, CoopTraceDetail detail)
{
  store->limit = limit;
  store->detail = detail;
  if (detail == COOP_DETAIL_FULL)
    return;
  store->slim = coop_model_new ();
  coop_store_set_meta (store, "trace_detail", coop_detail_label (detail));
}

static gboolean
is_kept (CoopTraceDetail detail, guint kind)
{
  switch (kind)
    {
    case COOP_EVENT_META:
    case COOP_EVENT_STRING:
    case COOP_EVENT_POOL:
    case COOP_EVENT_SEGMENT:
    case COOP_EVENT_POLICY:
    case COOP_EVENT_SEARCH:
    case COOP_EVENT_STEP:
    case COOP_EVENT_PHASE:
    case COOP_EVENT_ANNOTATION:
    case COOP_EVENT_OOM:
    case COOP_EVENT_WARNING:
    case COOP_EVENT_GAP:
    case COOP_EVENT_STAT:
    case COOP_EVENT_END:
      return TRUE;
    case COOP_EVENT_FRAME:
    case COOP_EVENT_STACK:
    case COOP_EVENT_ALLOC:
    case COOP_EVENT_FREE:
    case COOP_EVENT_EVICT:
    case COOP_EVENT_HANDOVER:
    case COOP_EVENT_MOVE:
      return detail == COOP_DETAIL_BLOCKS;
    default: /* of tensors and operators */
      return FALSE;
    }
}

gboolean
coop_store_slim (CoopStore *store, CoopEvent *ev)
{
  if (!is_kept (store->detail, ev->kind))
    return FALSE;
  switch (ev->kind)
    {
    case COOP_EVENT_ALLOC:
      ev->u.alloc.op = 0;
      break;
    case COOP_EVENT_FREE:
      ev->u.free.tensor = ev->u.free.op = 0;
      break;
    case COOP_EVENT_EVICT:
      ev->u.evict.tensor = 0;
      break;
    case COOP_EVENT_HANDOVER:
      ev->u.handover.tensor = 0;
      break;
    case COOP_EVENT_OOM:
      ev->u.oom.op = 0;
      break;
    case COOP_EVENT_WARNING:
      ev->u.warning.tensor = ev->u.warning.op = 0;
      break;
    case COOP_EVENT_GAP:
      ev->u.gap.first = store->own_seq;
      store->own_seq += ev->u.gap.missing;
      break;
    default:
      break;
    }
  ev->seq = store->own_seq++;
  return TRUE;
}
