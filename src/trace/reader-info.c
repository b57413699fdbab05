/* SPDX-License-Identifier: Apache-2.0 */
/* Reader: what a run was, in numbers. Totals come from the last keyframe and what follows it; state
 * and floor are worked out from one step's events and from the operators.
 *
 * State: what is alive over the whole time between the last two steps, evicted or not, since it must
 * be there again. Floor: the most that one operator needs at once: state, its inputs, its outputs and
 * its workspace, each storage counted once. Nothing finishes below it without offloading. Where no
 * two steps were seen, the floor takes for state what is marked as such. */
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
    if (t->held && (!marked_only || t->kind == COOP_KIND_STATE))
      put_alive (s->tensors, t->id, t->storage, t->block != NULL ? t->block->node.bytes : rounded (t->bytes));
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

static gboolean
find_floor (CoopReader *reader, const Survivors *s, guint64 state, guint64 *floor, GError **error)
{
  g_autoptr (GError) local = NULL;
  Sizes sizes;
  coop_id_map_init (&sizes.storages);
  coop_id_map_init (&sizes.tensors);
  sqlite3_stmt *row = coop_reader_prepare (
    reader, "SELECT id, inputs, outputs, workspace FROM op WHERE replay_of IS NULL AND failed = 0", error);
  *floor = state;
  gboolean ok = row != NULL && load_sizes (reader, &sizes, s, error);
  while (ok && coop_reader_step (reader, row, &local))
    {
      gint64 op = sqlite3_column_int64 (row, 0);
      guint64 need = state + sqlite3_column_int64 (row, 3);
      need += count_list (&sizes, (const char *) sqlite3_column_text (row, 1), op);
      need += count_list (&sizes, (const char *) sqlite3_column_text (row, 2), op);
      *floor = MAX (*floor, need);
    }
  sqlite3_finalize (row);
  sizes_clear (&sizes);
  if (local == NULL)
    return ok;
  g_propagate_error (error, g_steal_pointer (&local));
  return FALSE;
}

static gboolean
find_state_and_floor (CoopReader *reader, CoopTraceInfo *info, GError **error)
{
  gboolean two_steps = FALSE;
  Survivors s = {
    g_hash_table_new_full (g_int64_hash, g_int64_equal, NULL, g_free),
    g_hash_table_new_full (g_int64_hash, g_int64_equal, NULL, g_free), 0,
  };
  gboolean ok = find_survivors (reader, &s, &two_steps, error);
  guint64 state = sum_alive (s.tensors) + sum_alive (s.blocks);
  info->state_bytes = two_steps ? state : 0;
  ok = ok && find_floor (reader, &s, state, &info->floor_bytes, error);
  g_hash_table_unref (s.tensors);
  g_hash_table_unref (s.blocks);
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
  info->evictor = label_of (coop_model_policy (model), COOP_PARAM_EVICTOR);
  info->allocator = label_of (coop_model_policy (model), COOP_PARAM_ALLOCATOR);
  coop_model_free (model);
  info->command = coop_reader_meta (reader, "command");
  info->events = coop_reader_int (reader, "SELECT value FROM stat WHERE name = 'events'", 0);
  info->peak = info->totals.peak;
  info->budget = coop_reader_int (reader, BUDGET_AT_LAST_OPERATOR, info->totals.budget);
  if (info->end_ns == 0)
    info->end_ns = info->start_ns + info->totals.ts;
  if (find_state_and_floor (reader, info, error))
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
