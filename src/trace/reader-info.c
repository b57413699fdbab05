/* SPDX-License-Identifier: Apache-2.0 */
/* Reader: what a run was, in numbers. Totals come from the last keyframe and what follows it; state
 * and floor are worked out from one step's events and from the operators.
 *
 * State: what is alive over the whole time between the last two steps, evicted or not, since it must
 * be there again. Floor: the most that one operator needs at once: state, its inputs, its outputs and
 * its workspace, each storage counted once. While parameters are updated, the gradients of all of them
 * are there as well: what was made with the old values cannot be made again. Nothing finishes below the
 * floor without offloading. Where no two steps were seen, it takes for state what is marked as such. */
#include "trace/reader-private.h"

#include <string.h>

#include "trace/model-private.h"
#include "trace/store-private.h"

static guint64
rounded (guint64 bytes)
{
  return (bytes + 511) / 512 * 512;
}

/* ---- what survives a step ---- */

typedef struct {
  GHashTable *tensors; /* number -> Alive */
  GHashTable *blocks;  /* unclaimed: number -> Alive */
  GHashTable *gradients; /* there when the step's update began: number -> Alive */
  gint64 first;        /* the step's event; -1: none */
  guint64 last;
} Survivors;

typedef struct {
  guint64 id, storage, bytes;
} Alive;

static void
put_alive (GHashTable *table, guint64 id, guint64 storage, guint64 bytes)
{
  Alive *alive = g_new (Alive, 1);
  *alive = (Alive) { id, storage, bytes };
  g_hash_table_replace (table, &alive->id, alive);
}

static gboolean
rename_alive (GHashTable *from, guint64 old_id, GHashTable *to, guint64 new_id, guint64 storage)
{
  const Alive *alive = g_hash_table_lookup (from, &old_id);
  if (alive == NULL)
    return FALSE;
  Alive copy = *alive;
  g_hash_table_remove (from, &old_id);
  put_alive (to, new_id, storage != 0 ? storage : copy.storage, copy.bytes);
  return TRUE;
}

static gboolean
survive_one (gpointer user, const CoopEvent *ev, const void *body)
{
  Survivors *s = user;
  guint64 id;
  if (ev->seq > s->last)
    return FALSE;
  switch (ev->kind)
    {
    case COOP_EVENT_RELEASE:
      id = ev->u.release.tensor;
      g_hash_table_remove (s->tensors, &id);
      break;
    case COOP_EVENT_WRITE:
      if (ev->u.write.old_tensor != ev->u.write.new_tensor)
        rename_alive (s->tensors, ev->u.write.old_tensor, s->tensors, ev->u.write.new_tensor, 0);
      break;
    case COOP_EVENT_TENSOR: /* adopted */
      rename_alive (s->blocks, ev->u.tensor.block, s->tensors, ev->u.tensor.id, ev->u.tensor.storage);
      break;
    case COOP_EVENT_FREE:
    case COOP_EVENT_EVICT:
      id = ev->u.free.block;
      g_hash_table_remove (s->blocks, &id);
      break;
    case COOP_EVENT_MOVE:
      rename_alive (s->blocks, ev->u.move.block, s->blocks, ev->u.move.new_block, 0);
      break;
    default:
      break;
    }
  return TRUE;
}

static void
start_alive (Survivors *s, const CoopModel *model, gboolean marked_only)
{
  gsize cursor = 0;
  for (const Tensor *t; (t = coop_id_map_next (&model->tensors, &cursor, NULL)) != NULL;)
    {
      guint64 bytes = t->block != NULL ? t->block->node.bytes : rounded (t->bytes);
      if (t->held && (!marked_only || t->kind == COOP_KIND_STATE))
        put_alive (s->tensors, t->id, t->storage, bytes);
      if (t->held && t->kind == COOP_KIND_GRADIENT)
        put_alive (s->gradients, t->id, t->storage, bytes);
    }
  cursor = 0;
  for (const Block *b; !marked_only && (b = coop_id_map_next (&model->blocks, &cursor, NULL)) != NULL;)
    if (b->tensor == NULL)
      put_alive (s->blocks, b->id, 0, b->node.bytes);
}

/* Fills survivors; *steps_seen says whether two steps bound them. */
static gboolean
find_survivors (CoopReader *reader, Survivors *s, gboolean *two_steps, GError **error)
{
  gint64 end = coop_reader_int (reader, "SELECT event FROM step ORDER BY event DESC LIMIT 1", -1);
  gint64 begin = coop_reader_int (reader, "SELECT event FROM step ORDER BY event DESC LIMIT 1 OFFSET 1", -1);
  *two_steps = begin >= 0;
  s->first = begin >= 0 ? begin : end;
  if (begin < 0)
    begin = end = end >= 0 ? end : coop_reader_int (reader, "SELECT max (end_event) FROM op", -1);
  if (begin < 0)
    return TRUE;
  CoopModel *model = coop_reader_model_at (reader, begin, error);
  if (model == NULL)
    return FALSE;
  start_alive (s, model, !*two_steps);
  s->last = end;
  coop_model_free (model);
  return coop_reader_events (reader, begin + 1, survive_one, s, error) >= 0;
}

static guint64
sum_alive (GHashTable *table)
{
  GHashTableIter iter;
  gpointer value;
  guint64 sum = 0;
  g_hash_table_iter_init (&iter, table);
  while (g_hash_table_iter_next (&iter, NULL, &value))
    sum += ((Alive *) value)->bytes;
  return sum;
}

/* ---- what one operator needs ---- */

typedef struct {
  guint64 bytes;
  gint64 op; /* the operator that counted it last; -1: state, never counted */
} Storage;

typedef struct {
  CoopIdMap storages; /* number -> Storage */
  CoopIdMap tensors;  /* number -> Storage */
} Sizes;

static void
sizes_clear (Sizes *sizes)
{
  gsize cursor = 0;
  for (gpointer s; (s = coop_id_map_next (&sizes->storages, &cursor, NULL)) != NULL;)
    g_slice_free (Storage, s);
  coop_id_map_clear (&sizes->storages);
  coop_id_map_clear (&sizes->tensors);
}

static Storage *
storage_of (Sizes *sizes, guint64 number)
{
  Storage *storage = coop_id_map_get (&sizes->storages, number);
  if (storage != NULL || number == 0)
    return storage;
  storage = g_slice_new0 (Storage);
  coop_id_map_set (&sizes->storages, number, storage);
  return storage;
}

static gboolean
load_sizes (CoopReader *reader, Sizes *sizes, const Survivors *s, GError **error)
{
  g_autoptr (GError) local = NULL;
  GHashTableIter iter;
  gpointer value;
  sqlite3_stmt *row = coop_reader_prepare (reader, "SELECT id, storage, bytes FROM tensor WHERE storage IS NOT NULL", error);
  if (row == NULL)
    return FALSE;
  while (coop_reader_step (reader, row, &local))
    {
      Storage *storage = storage_of (sizes, sqlite3_column_int64 (row, 1));
      storage->bytes = MAX (storage->bytes, rounded (sqlite3_column_int64 (row, 2)));
      if (sqlite3_column_int64 (row, 0) != 0)
        coop_id_map_set (&sizes->tensors, sqlite3_column_int64 (row, 0), storage);
    }
  sqlite3_finalize (row);
  g_hash_table_iter_init (&iter, s->tensors);
  while (g_hash_table_iter_next (&iter, NULL, &value))
    if (((Alive *) value)->storage != 0)
      storage_of (sizes, ((Alive *) value)->storage)->op = -1;
  if (local == NULL)
    return TRUE;
  g_propagate_error (error, g_steal_pointer (&local));
  return FALSE;
}

/* Bytes of the listed tensors that this operator has not counted yet. */
static guint64
count_list (const Sizes *sizes, const char *list, gint64 op)
{
  guint64 sum = 0;
  while (list != NULL && *list != 0)
    {
      if (!g_ascii_isdigit (*list))
        {
          list++;
          continue;
        }
      char *end;
      Storage *storage = coop_id_map_get (&sizes->tensors, g_ascii_strtoull (list, &end, 10));
      list = end;
      if (storage == NULL || storage->op == op || storage->op == -1)
        continue;
      storage->op = op;
      sum += storage->bytes;
    }
  return sum;
}

/* From now on the gradients are taken for state. Returns their bytes. */
static guint64
count_gradients (Sizes *sizes, const Survivors *s)
{
  GHashTableIter iter;
  gpointer value;
  guint64 sum = 0;
  g_hash_table_iter_init (&iter, s->gradients);
  while (g_hash_table_iter_next (&iter, NULL, &value))
    {
      const Alive *alive = value;
      Storage *storage = storage_of (sizes, alive->storage);
      if (storage == NULL || storage->op == -1)
        continue;
      storage->op = -1;
      sum += alive->bytes;
    }
  return sum;
}

/* The most that one of the rows (id, inputs, outputs, workspace) needs beside what is there anyway. */
static gboolean
most_needed (CoopReader *reader, const Sizes *sizes, sqlite3_stmt *row, guint64 there, guint64 *floor, GError **error)
{
  g_autoptr (GError) local = NULL;
  while (coop_reader_step (reader, row, &local))
    {
      gint64 op = sqlite3_column_int64 (row, 0);
      guint64 need = there + sqlite3_column_int64 (row, 3);
      need += count_list (sizes, (const char *) sqlite3_column_text (row, 1), op);
      need += count_list (sizes, (const char *) sqlite3_column_text (row, 2), op);
      *floor = MAX (*floor, need);
    }
  if (local == NULL)
    return TRUE;
  g_propagate_error (error, g_steal_pointer (&local));
  return FALSE;
}

#define OPS "SELECT id, inputs, outputs, workspace FROM op WHERE replay_of IS NULL AND failed = 0"
#define UPDATE " AND phase = ?1 AND begin_event > ?2 AND step = (SELECT step FROM step WHERE event = ?2)"

static gboolean
find_floor (CoopReader *reader, const Survivors *s, guint64 state, guint64 *floor, GError **error)
{
  Sizes sizes;
  coop_id_map_init (&sizes.storages);
  coop_id_map_init (&sizes.tensors);
  *floor = state;
  gboolean ok = load_sizes (reader, &sizes, s, error);
  sqlite3_stmt *all = ok ? coop_reader_prepare (reader, OPS, error) : NULL;
  ok = all != NULL && most_needed (reader, &sizes, all, state, floor, error);
  sqlite3_stmt *update = ok && s->first >= 0 ? coop_reader_prepare (reader, OPS UPDATE, error) : NULL;
  if (update != NULL)
    {
      guint64 gradients = count_gradients (&sizes, s);
      sqlite3_bind_int (update, 1, COOP_PHASE_OPTIMIZER);
      sqlite3_bind_int64 (update, 2, s->first);
      ok = most_needed (reader, &sizes, update, state + gradients, floor, error);
    }
  sqlite3_finalize (all);
  sqlite3_finalize (update);
  sizes_clear (&sizes);
  return ok;
}

gboolean
coop_reader_floor (CoopReader *reader, CoopTraceInfo *info, GError **error)
{
  gboolean two_steps = FALSE;
  Survivors s = {
    g_hash_table_new_full (g_int64_hash, g_int64_equal, NULL, g_free),
    g_hash_table_new_full (g_int64_hash, g_int64_equal, NULL, g_free),
    g_hash_table_new_full (g_int64_hash, g_int64_equal, NULL, g_free), -1, 0,
  };
  gboolean ok = find_survivors (reader, &s, &two_steps, error);
  guint64 state = sum_alive (s.tensors) + sum_alive (s.blocks);
  info->state_bytes = two_steps ? state : 0;
  ok = ok && find_floor (reader, &s, state, &info->floor_bytes, error);
  g_hash_table_unref (s.tensors);
  g_hash_table_unref (s.blocks);
  g_hash_table_unref (s.gradients);
  return ok;
}

/* ---- all ---- */

static gboolean
read_session (CoopReader *reader, CoopTraceInfo *info, GError **error)
{
  sqlite3_stmt *row = coop_reader_prepare (reader, "SELECT state, exit_code, start_ns, end_ns FROM session", error);
  if (row == NULL)
    return FALSE;
  gboolean found = coop_reader_step (reader, row, error);
  if (found)
    {
      info->state = sqlite3_column_int (row, 0);
      info->exit_code = sqlite3_column_int (row, 1);
      info->start_ns = sqlite3_column_int64 (row, 2);
      info->end_ns = sqlite3_column_int64 (row, 3);
    }
  else if (error == NULL || *error == NULL)
    g_set_error (error, COOP_TRACE_ERROR, COOP_TRACE_ERROR_IO, "%s: it does not say of which run it is: table session is empty",
                 reader->path);
  sqlite3_finalize (row);
  if (found && info->state == COOP_RUN_RUNNING && !coop_store_locked (reader->path))
    info->state = COOP_RUN_INTERRUPTED;
  return found;
}

static char *
label_of (const CoopPolicy *policy, CoopParam param)
{
  const char *const *labels = coop_param_info[param].labels;
  guint n = g_strv_length ((char **) labels);
  gint64 value = policy->v[param].i;
  return g_strdup (value >= 0 && value < n ? labels[value] : "?");
}

/* Later than the last operator of the program's own nothing but the end is to be seen, where the limit
 * may have been lifted to bring all back. */
#define BUDGET_AT_LAST_OPERATOR                                                                     \
  "SELECT new FROM policy_change WHERE param = 'budget' AND event <="                               \
  " (SELECT begin_event FROM op WHERE replay_of IS NULL ORDER BY id DESC LIMIT 1)"                  \
  " ORDER BY event DESC LIMIT 1"

/* A slim trace knows its totals, though not from its events. */
static void
take_totals (CoopReader *reader, CoopModelTotals *t)
{
  const struct { const char *name; guint64 *value; } stats[] = {
    { "used", &t->used }, { "peak", &t->peak }, { "pinned", &t->pinned }, { "evictable", &t->evictable },
    { "evicted", &t->evicted }, { "free", &t->free }, { "largest", &t->largest }, { "holes", &t->holes },
    { "allocs", &t->allocs }, { "frees", &t->frees }, { "evictions", &t->evictions },
    { "evicted_bytes", &t->evicted_bytes }, { "handovers", &t->handovers }, { "moves", &t->moves },
    { "searches", &t->searches }, { "search_ns", &t->search_ns }, { "ops", &t->ops }, { "op_ns", &t->op_ns },
    { "replays", &t->replays }, { "replay_ns", &t->replay_ns }, { "ooms", &t->ooms }, { "last_ns", &t->ts },
  };
  for (guint i = 0; i < G_N_ELEMENTS (stats); i++)
    {
      g_autofree char *sql = g_strdup_printf ("SELECT value FROM stat WHERE name = '%s'", stats[i].name);
      *stats[i].value = (guint64) coop_reader_int (reader, sql, (gint64) *stats[i].value);
    }
}

gboolean
coop_reader_info (CoopReader *reader, CoopTraceInfo *info, GError **error)
{
  memset (info, 0, sizeof *info);
  if (!read_session (reader, info, error))
    return FALSE;
  CoopModel *model = coop_reader_model_at (reader, G_MAXINT64, error);
  if (model == NULL)
    return FALSE;
  info->totals = *coop_model_totals (model);
  if (coop_reader_detail (reader) != COOP_DETAIL_FULL)
    take_totals (reader, &info->totals);
  info->evictor = label_of (coop_model_policy (model), COOP_PARAM_EVICTOR);
  info->allocator = label_of (coop_model_policy (model), COOP_PARAM_ALLOCATOR);
  coop_model_free (model);
  info->command = coop_reader_meta (reader, "command");
  info->events = coop_reader_int (reader, "SELECT value FROM stat WHERE name = 'events'", 0);
  info->peak = info->totals.peak;
  info->budget = coop_reader_int (reader, BUDGET_AT_LAST_OPERATOR, info->totals.budget);
  if (info->end_ns == 0)
    info->end_ns = info->start_ns + info->totals.ts;
  info->peak_seq = (guint64) coop_reader_int (reader, "SELECT value FROM stat WHERE name = 'peak_event'", -1);
  info->trimmed = (guint64) coop_reader_int (reader, "SELECT value FROM stat WHERE name = 'trimmed_events'", 0);
  info->detail = coop_reader_detail (reader);
  /* Worked out when it was closed; not while it is written, or by an older version. */
  gint64 floor = info->state != COOP_RUN_RUNNING && info->state != COOP_RUN_INTERRUPTED
                   ? coop_reader_int (reader, "SELECT value FROM stat WHERE name = 'floor_bytes'", -1) : -1;
  if (floor >= 0)
    {
      info->floor_bytes = (guint64) floor;
      info->state_bytes = (guint64) coop_reader_int (reader, "SELECT value FROM stat WHERE name = 'state_bytes'", 0);
      return TRUE;
    }
  if (coop_reader_floor (reader, info, error))
    return TRUE;
  coop_trace_info_clear (info);
  return FALSE;
}

void
coop_trace_info_clear (CoopTraceInfo *info)
{
  g_clear_pointer (&info->command, g_free);
  g_clear_pointer (&info->evictor, g_free);
  g_clear_pointer (&info->allocator, g_free);
}
