/* SPDX-License-Identifier: Apache-2.0 */
/* Store: the oldest goes where the file may not grow. What is kept begins with a layout, from which all
 * that follows can be replayed; with each step the next layout becomes the beginning, and the events up
 * to it go with the rows that only they told of. Each batch takes as many steps as it needs, so that the
 * work is spread evenly and the ring does not fill. The pages that get free are used again. */
#include "trace/model-private.h"
#include "trace/reader-private.h"
#include "trace/store-private.h"

#define PAGE_BYTES 4096
#define PART 0.85        /* of the limit: indexes, made at the end, take the rest */
#define MOST_STEPS 8     /* in a batch */

static gint64
number (CoopStore *store, CoopStatement id)
{
  sqlite3_stmt *statement = store->statements[id];
  gint64 n = sqlite3_step (statement) == SQLITE_ROW ? sqlite3_column_int64 (statement, 0) : 0;
  sqlite3_reset (statement);
  return n;
}

static gboolean
is_over (CoopStore *store)
{
  gint64 pages = number (store, COOP_STATEMENT_PAGES) - number (store, COOP_STATEMENT_FREE_PAGES);
  return store->limit > 0 && (double) pages * PAGE_BYTES > PART * (double) store->limit;
}

static void
delete_row (CoopStore *store, CoopStatement id, guint64 key)
{
  if (key == 0)
    return;
  CoopBind bind = coop_bind (store, id);
  coop_bind_int (&bind, key);
  coop_store_step (store, id);
}

/* ---- what only the events up to the base told of ---- */

static void
keep_or_delete (CoopStore *store, const CoopIdMap *known, GArray *kept, CoopStatement id, guint64 number)
{
  if (number != 0 && coop_id_map_get (known, number) != NULL)
    g_array_append_val (kept, number);
  else
    delete_row (store, id, number);
}

/* Those of earlier steps, which were known at the base of then. */
static void
again (CoopStore *store, const CoopIdMap *known, GArray *kept, CoopStatement id)
{
  guint n = 0;
  for (guint i = 0; i < kept->len; i++)
    {
      guint64 number = g_array_index (kept, guint64, i);
      if (known != NULL && coop_id_map_get (known, number) != NULL)
        g_array_index (kept, guint64, n++) = number;
      else
        delete_row (store, id, number);
    }
  g_array_set_size (kept, n);
}

static void
forget (CoopStore *store, const CoopModel *base, const CoopEvent *ev)
{
  switch (ev->kind)
    {
    case COOP_EVENT_EVICT:
      delete_row (store, COOP_STATEMENT_DELETE_EVICTED, ev->u.evict.block);
      delete_row (store, COOP_STATEMENT_DELETE_BLOCK, ev->u.evict.block);
      break;
    case COOP_EVENT_FREE:
    case COOP_EVENT_MOVE: /* the block is the first word of these */
      delete_row (store, COOP_STATEMENT_DELETE_BLOCK, ev->u.free.block);
      break;
    case COOP_EVENT_HANDOVER:
      delete_row (store, COOP_STATEMENT_DELETE_BLOCK, ev->u.handover.old_block);
      break;
    case COOP_EVENT_SEARCH:
      g_array_append_val (store->kept_searches, ev->u.search.id);
      break;
    case COOP_EVENT_OP_END:
      keep_or_delete (store, &base->ops, store->kept_ops, COOP_STATEMENT_DELETE_OP, ev->u.op_end.id);
      break;
    case COOP_EVENT_TENSOR:
      keep_or_delete (store, &base->tensors, store->kept_tensors, COOP_STATEMENT_DELETE_TENSOR, ev->u.tensor.id);
      break;
    case COOP_EVENT_WRITE:
      keep_or_delete (store, &base->tensors, store->kept_tensors, COOP_STATEMENT_DELETE_TENSOR, ev->u.write.new_tensor);
      break;
    default:
      break;
    }
}

static gboolean
forget_events (CoopStore *store, const CoopModel *base, gint64 to)
{
  g_autoptr (GByteArray) body = g_byte_array_new ();
  sqlite3_stmt *row = NULL;
  CoopEvent ev;
  if (sqlite3_prepare_v2 (store->db, "SELECT seq, ts, kind, thread, block, tensor, op, addr, bytes, rest FROM event"
                          " WHERE seq <= ? ORDER BY seq", -1, &row, NULL) != SQLITE_OK)
    return FALSE;
  sqlite3_bind_int64 (row, 1, to);
  while (sqlite3_step (row) == SQLITE_ROW)
    {
      if (coop_reader_decode (row, &ev, body))
        forget (store, base, &ev);
      store->trimmed++;
    }
  sqlite3_finalize (row);
  return TRUE;
}

static void
forget_usage (CoopStore *store, guint64 ts)
{
  for (guint level = 0; level < COOP_LOD_LEVELS; level++)
    {
      CoopBind bind = coop_bind (store, COOP_STATEMENT_TRIM_LOD);
      coop_bind_int (&bind, level);
      coop_bind_int (&bind, ts >> COOP_LOD_SHIFT (level));
      coop_store_step (store, COOP_STATEMENT_TRIM_LOD);
    }
}

/* The layout after the base; NULL if there is none. */
static CoopModel *
next_layout (CoopStore *store, gint64 *at)
{
  CoopModel *model = NULL;
  CoopBind bind = coop_bind (store, COOP_STATEMENT_NEXT_KEYFRAME);
  coop_bind_int (&bind, (guint64) store->base);
  if (sqlite3_step (bind.statement) == SQLITE_ROW)
    {
      *at = sqlite3_column_int64 (bind.statement, 0);
      g_autoptr (GBytes) bytes = g_bytes_new (sqlite3_column_blob (bind.statement, 1),
                                              (gsize) sqlite3_column_bytes (bind.statement, 1));
      model = coop_model_load (bytes, NULL);
    }
  sqlite3_reset (bind.statement);
  return model;
}

static gboolean
step (CoopStore *store)
{
  gint64 to;
  CoopModel *base = next_layout (store, &to);
  if (base == NULL)
    return FALSE;
  again (store, &base->ops, store->kept_ops, COOP_STATEMENT_DELETE_OP);
  again (store, &base->tensors, store->kept_tensors, COOP_STATEMENT_DELETE_TENSOR);
  again (store, NULL, store->kept_searches, COOP_STATEMENT_DELETE_EVICTION);
  gboolean ok = forget_events (store, base, to);
  delete_row (store, COOP_STATEMENT_TRIM_EVENTS, (guint64) to);
  delete_row (store, COOP_STATEMENT_TRIM_KEYFRAMES, (guint64) to);
  forget_usage (store, coop_model_totals (base)->ts);
  store->base = to;
  store->trimmed_ns = coop_model_totals (base)->ts;
  coop_model_free (base);
  return ok && coop_store_ok (store);
}

void
coop_store_trim (CoopStore *store)
{
  if (store->limit == 0 || !coop_store_ok (store) || !is_over (store))
    return;
  if (store->kept_ops == NULL)
    {
      store->kept_ops = g_array_new (FALSE, FALSE, sizeof (guint64));
      store->kept_tensors = g_array_new (FALSE, FALSE, sizeof (guint64));
      store->kept_searches = g_array_new (FALSE, FALSE, sizeof (guint64));
    }
  for (guint i = 0; i < MOST_STEPS && is_over (store) && step (store); i++)
    ;
}

void
coop_store_trim_clear (CoopStore *store)
{
  g_clear_pointer (&store->kept_ops, g_array_unref);
  g_clear_pointer (&store->kept_tensors, g_array_unref);
  g_clear_pointer (&store->kept_searches, g_array_unref);
}

guint64
coop_store_trimmed (const CoopStore *store)
{
  return store->trimmed;
}
