/* SPDX-License-Identifier: Apache-2.0 */
/* Check: is the file what it says? The events are replayed against a naive map; what the file keeps
 * beside them (columns, rows of blocks, keyframes, totals) must say the same. */
#include <string.h>

#include "trace/check-private.h"
#include "trace/model-private.h"

#define PROGRESS_EVERY 16384

void
coop_check_say (Check *check, guint64 seq, CoopFault fault, const char *format, ...)
{
  if (coop_check_full (check))
    return;
  CoopFinding finding = { seq, fault, NULL };
  va_list args;
  va_start (args, format);
  finding.text = g_strdup_vprintf (format, args);
  va_end (args);
  g_array_append_val (check->findings, finding);
}

static void
clear_finding (gpointer finding)
{
  g_free (((CoopFinding *) finding)->text);
}

/* ---- one event ---- */

static void
check_order (Check *check, const CoopEvent *ev)
{
  guint64 next = check->any ? check->seq + 1 : 0;
  if (ev->kind == COOP_EVENT_GAP)
    {
      coop_check_say (check, ev->seq, COOP_FAULT_SEQUENCE, "%" G_GUINT64_FORMAT " events are missing before this one"
                      " (a gap says so)", ev->u.gap.missing);
      check->gap = TRUE;
      if (ev->u.gap.first == next)
        next += ev->u.gap.missing;
    }
  if (ev->seq != next)
    coop_check_say (check, ev->seq, COOP_FAULT_SEQUENCE, "event %" G_GUINT64_FORMAT " follows where %" G_GUINT64_FORMAT
                    " was due, and no gap says so", ev->seq, next);
  if (check->any && ev->ts < check->ts)
    coop_check_say (check, ev->seq, COOP_FAULT_TIME, "time goes back from %" G_GUINT64_FORMAT " to %" G_GUINT64_FORMAT
                    " ns", check->ts, ev->ts);
  check->seq = ev->seq;
  check->ts = ev->ts;
  check->any = TRUE;
}

static void
introduce (GHashTable *set, guint64 id)
{
  g_hash_table_add (set, g_memdup2 (&id, sizeof id));
}

static void
refer (Check *check, const CoopEvent *ev, GHashTable *set, guint64 id, const char *what)
{
  if (id != 0 && !check->gap && !g_hash_table_contains (set, &id))
    coop_check_say (check, ev->seq, COOP_FAULT_UNKNOWN, "%s names %s %" G_GUINT64_FORMAT ", which no event introduced",
                    coop_event_kind_label (ev->kind), what, id);
}

static void
refer_all (Check *check, const CoopEvent *ev, const guint64 *ids, guint n)
{
  if (n > 8u * ev->more)
    coop_check_say (check, ev->seq, COOP_FAULT_FORMAT, "%u tensors in %u records", n, ev->more);
  for (guint i = 0; i < MIN (n, 8u * ev->more); i++)
    refer (check, ev, check->tensors, ids[i], "tensor");
}

static void
check_references (Check *check, const CoopEvent *ev, const void *body)
{
  guint64 id;
  switch (ev->kind)
    {
    case COOP_EVENT_TENSOR:
      introduce (check->tensors, ev->u.tensor.id);
      refer (check, ev, check->ops, ev->u.tensor.op, "operator");
      break;
    case COOP_EVENT_WRITE:
      refer (check, ev, check->tensors, ev->u.write.old_tensor, "tensor");
      refer (check, ev, check->ops, ev->u.write.op, "operator");
      introduce (check->tensors, ev->u.write.new_tensor);
      break;
    case COOP_EVENT_OP_BEGIN:
      introduce (check->ops, ev->u.op_begin.id);
      introduce (check->running, ev->u.op_begin.id);
      refer (check, ev, check->ops, ev->u.op_begin.replay_of, "operator");
      refer_all (check, ev, body, ev->u.op_begin.n_inputs);
      break;
    case COOP_EVENT_OP_END:
      refer (check, ev, check->ops, ev->u.op_end.id, "operator");
      refer_all (check, ev, body, ev->u.op_end.n_outputs);
      id = ev->u.op_end.id;
      g_hash_table_remove (check->running, &id);
      break;
    case COOP_EVENT_ALLOC:
      refer (check, ev, check->ops, ev->u.alloc.op, "operator");
      break;
    case COOP_EVENT_FREE:
    case COOP_EVENT_EVICT:
    case COOP_EVENT_HANDOVER:
      refer (check, ev, check->tensors, ev->u.free.tensor, "tensor");
      break;
    case COOP_EVENT_RELEASE:
    case COOP_EVENT_PIN:
    case COOP_EVENT_UNPIN:
    case COOP_EVENT_ESCAPE:
    case COOP_EVENT_RECLASSIFY: /* the tensor is the first word of all these */
      refer (check, ev, check->tensors, ev->u.word[0], "tensor");
      break;
    default:
      break;
    }
}

static void
check_columns (Check *check, const CoopEvent *ev)
{
  sqlite3_bind_int64 (check->columns, 1, (gint64) ev->seq);
  if (coop_reader_step (check->reader, check->columns, NULL))
    {
      guint64 used = sqlite3_column_int64 (check->columns, 0);
      guint64 largest = sqlite3_column_int64 (check->columns, 1);
      if (used != check->used)
        coop_check_say (check, ev->seq, COOP_FAULT_BUDGET, "column used says %" G_GUINT64_FORMAT ", the blocks add up to %"
                        G_GUINT64_FORMAT, used, check->used);
      if (largest != check->largest)
        coop_check_say (check, ev->seq, COOP_FAULT_BUDGET, "column largest says %" G_GUINT64_FORMAT ", it is %"
                        G_GUINT64_FORMAT, largest, check->largest);
    }
  sqlite3_reset (check->columns);
}

/* The blocks of a keyframe against the naive map. */
static void
check_keyframe (Check *check, guint64 seq)
{
  sqlite3_bind_int64 (check->keyframe, 1, (gint64) seq);
  if (coop_reader_step (check->reader, check->keyframe, NULL))
    {
      g_autoptr (GBytes) bytes = g_bytes_new (sqlite3_column_blob (check->keyframe, 0),
                                              sqlite3_column_bytes (check->keyframe, 0));
      g_autoptr (GArray) pieces = g_array_new (FALSE, FALSE, sizeof (CoopMapPiece));
      CoopModel *model = coop_model_load (bytes, NULL);
      gboolean same = model != NULL && coop_model_totals (model)->seq == seq;
      guint n = 0;
      if (same)
        coop_model_pieces (model, pieces);
      for (guint i = 0; same && i < pieces->len; i++)
        {
          const CoopMapPiece *p = &g_array_index (pieces, CoopMapPiece, i);
          if (!p->used)
            continue;
          const CheckLife *life = n < check->lives->len ? &g_array_index (check->lives, CheckLife, n) : NULL;
          same = life != NULL && life->id == p->block && life->addr == p->addr && life->bytes == p->bytes
                 && life->tensor == p->tensor;
          n++;
        }
      if (!same || n != check->lives->len)
        coop_check_say (check, seq, COOP_FAULT_FORMAT, "the layout kept for this event is not what the events make it");
      coop_model_free (model);
    }
  sqlite3_reset (check->keyframe);
}

static gboolean
check_one (gpointer user, const CoopEvent *ev, const void *body)
{
  Check *check = user;
  if (coop_event_kind_label (ev->kind) == NULL)
    coop_check_say (check, ev->seq, COOP_FAULT_FORMAT, "event kind %u is not defined", ev->kind);
  check_order (check, ev);
  coop_check_map (check, ev);
  check_references (check, ev, body);
  if (!check->no_blocks)
    {
      check_columns (check, ev);
      check_keyframe (check, ev->seq);
    }
  check->n++;
  if (check->progress != NULL && check->n % PROGRESS_EVERY == 0)
    check->progress (check->user, (double) check->n / (double) MAX (1, check->total));
  return !coop_check_full (check);
}

/* ---- all ---- */

static gboolean
prepare (Check *check, GError **error)
{
  check->columns = coop_reader_prepare (check->reader, "SELECT used, largest FROM event WHERE seq = ?", error);
  check->keyframe = check->columns ? coop_reader_prepare (check->reader, "SELECT model FROM layout_keyframe WHERE event = ?", error) : NULL;
  check->block = check->keyframe ? coop_reader_prepare (check->reader, "SELECT addr, bytes, requested, tensor, op,"
                                                        " born_event, born_ns, died_event, died_ns, ended"
                                                        " FROM block WHERE id = ?", error) : NULL;
  return check->block != NULL;
}

static void
take_lives (Check *check, CoopModel *model)
{
  g_autoptr (GArray) pieces = g_array_new (FALSE, FALSE, sizeof (CoopMapPiece));
  coop_model_pieces (model, pieces);
  for (guint i = 0; i < pieces->len; i++)
    {
      const CoopMapPiece *p = &g_array_index (pieces, CoopMapPiece, i);
      CheckLife life = { .id = p->block, .addr = p->addr, .bytes = p->bytes, .requested = p->requested,
                         .tensor = p->tensor, .born_unknown = TRUE };
      if (!p->used)
        continue;
      g_array_append_val (check->lives, life);
      check->used += life.bytes;
    }
}

/* A trace whose beginning was given up is checked from the layout that it begins with. */
static gboolean
begin_trimmed (Check *check, guint64 base, GError **error)
{
  CoopModel *model = coop_reader_model_at (check->reader, base, error);
  gsize cursor = 0;
  guint64 id;
  if (model == NULL)
    return FALSE;
  const CoopModelTotals *t = coop_model_totals (model);
  if (t->seq != base)
    coop_check_say (check, base, COOP_FAULT_FORMAT, "the layout that the trace begins with cannot be read");
  take_lives (check, model);
  check->any = TRUE;
  check->seq = base;
  check->ts = t->ts;
  check->budget = t->budget;
  check->capacity = t->capacity;
  check->peak = t->peak;
  check->segmented = !coop_model_flat (model);
  for (guint i = 0; i < model->segments->len; i++)
    {
      const Segment *s = &g_array_index (model->segments, Segment, i);
      CheckSegment segment = { s->id, s->base, s->bytes };
      g_array_append_val (check->segments, segment);
    }
  while (coop_id_map_next (&model->tensors, &cursor, &id) != NULL)
    introduce (check->tensors, id);
  cursor = 0;
  while (coop_id_map_next (&model->ops, &cursor, &id) != NULL)
    introduce (check->ops, id);
  coop_check_measure (check);
  coop_model_free (model);
  return TRUE;
}

static void
check_all (Check *check)
{
  g_autoptr (GError) error = NULL;
  guint64 base;
  if (!coop_check_integrity (check) || !coop_check_schema (check))
    return;
  check->total = coop_reader_last_seq (check->reader) + 1;
  check->trimmed = (guint64) coop_reader_int (check->reader, "SELECT value FROM stat WHERE name = 'trimmed_events'", 0);
  check->no_blocks = coop_reader_detail (check->reader) == COOP_DETAIL_SUMMARY;
  if ((coop_reader_trimmed (check->reader, &base, NULL) && !begin_trimmed (check, base, &error)) || !prepare (check, &error)
      || coop_reader_events (check->reader, 0, check_one, check, &error) < 0)
    coop_check_say (check, check->seq, COOP_FAULT_FORMAT, "%s", error->message);
  else if (!coop_check_full (check))
    coop_check_tables (check);
  sqlite3_finalize (check->columns);
  sqlite3_finalize (check->block);
  sqlite3_finalize (check->keyframe);
}

GArray *
coop_check (const char *path, guint max, void (*progress) (gpointer user, double part), gpointer user,
            GError **error)
{
  g_autoptr (GError) local = NULL;
  if (!coop_trace_identify (path, error))
    return NULL;
  Check check = {
    .reader = coop_reader_open (path, &local), .max = MAX (max, 1), .progress = progress, .user = user,
    .findings = g_array_new (FALSE, TRUE, sizeof (CoopFinding)),
    .lives = g_array_new (FALSE, TRUE, sizeof (CheckLife)),
    .segments = g_array_new (FALSE, TRUE, sizeof (CheckSegment)),
    .tensors = g_hash_table_new_full (g_int64_hash, g_int64_equal, g_free, NULL),
    .ops = g_hash_table_new_full (g_int64_hash, g_int64_equal, g_free, NULL),
    .running = g_hash_table_new_full (g_int64_hash, g_int64_equal, g_free, NULL),
  };
  g_array_set_clear_func (check.findings, clear_finding);
  if (check.reader != NULL)
    {
      coop_reader_hold (check.reader);
      check_all (&check);
    }
  else /* it is a trace by its first bytes, but cannot be read */
    coop_check_say (&check, 0, COOP_FAULT_FORMAT, "%s", local->message);
  coop_reader_free (check.reader);
  g_array_unref (check.lives);
  g_array_unref (check.segments);
  g_hash_table_unref (check.tensors);
  g_hash_table_unref (check.ops);
  g_hash_table_unref (check.running);
  return check.findings;
}
