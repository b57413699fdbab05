/* SPDX-License-Identifier: Apache-2.0 */
/* Reader: usage over time. Wide ranges come from the finest level of usage_lod that is no finer than
 * asked; narrow ones from the events themselves. Buckets are whole multiples of the level's, so
 * nothing is counted twice. A bucket without events has the values that were in force. */
#include "trace/model-private.h"
#include "trace/reader-private.h"
#include "trace/store-private.h"

#define MAX_BUCKETS 100000

typedef struct {
  guint64 used, largest, pinned, budget;
} Values;

typedef struct {
  GArray *out;
  guint64 start, width, end;
  Values now; /* in force before what comes next */
} Fill;

static void
open_bucket (Fill *fill)
{
  CoopUsage usage = {
    .bucket_ts = fill->start + fill->out->len * fill->width,
    .used_min = fill->now.used, .used_max = fill->now.used, .largest_min = fill->now.largest,
    .pinned_max = fill->now.pinned, .budget = fill->now.budget,
  };
  g_array_append_val (fill->out, usage);
}

/* The bucket of a time, with all before it filled in. */
static CoopUsage *
bucket_of (Fill *fill, guint64 ts)
{
  guint64 index = (MAX (ts, fill->start) - fill->start) / fill->width;
  while (fill->out->len <= index)
    open_bucket (fill);
  return &g_array_index (fill->out, CoopUsage, index);
}

static void
add (Fill *fill, guint64 ts, guint64 used_min, guint64 used_max, guint64 largest_min, guint64 pinned_max,
     const Values *last, guint evictions, guint handovers)
{
  CoopUsage *usage = bucket_of (fill, ts);
  usage->used_min = MIN (usage->used_min, used_min);
  usage->used_max = MAX (usage->used_max, used_max);
  usage->largest_min = MIN (usage->largest_min, largest_min);
  usage->pinned_max = MAX (usage->pinned_max, pinned_max);
  usage->budget = last->budget;
  usage->evictions += evictions;
  usage->handovers += handovers;
  fill->now = *last;
}

/* ---- from the levels ---- */

static gboolean
fill_from_level (CoopReader *reader, Fill *fill, guint level, GError **error)
{
  g_autoptr (GError) local = NULL;
  sqlite3_stmt *row = coop_reader_prepare (
    reader,
    "SELECT bucket, used_min, used_max, used_last, largest_min, largest_last, pinned_max, pinned_last,"
    " budget, evictions, handovers FROM usage_lod WHERE level = ?1 AND bucket <= ?3 AND bucket >="
    " coalesce ((SELECT max (bucket) FROM usage_lod WHERE level = ?1 AND bucket < ?2), ?2) ORDER BY bucket",
    error);
  if (row == NULL)
    return FALSE;
  sqlite3_bind_int64 (row, 1, level);
  sqlite3_bind_int64 (row, 2, fill->start >> COOP_LOD_SHIFT (level));
  sqlite3_bind_int64 (row, 3, fill->end >> COOP_LOD_SHIFT (level));
  while (coop_reader_step (reader, row, &local))
    {
      guint64 v[11];
      for (guint i = 0; i < G_N_ELEMENTS (v); i++)
        v[i] = sqlite3_column_int64 (row, i);
      Values last = { v[3], v[5], v[7], v[8] };
      guint64 ts = v[0] << COOP_LOD_SHIFT (level);
      if (ts < fill->start)
        fill->now = last;
      else
        add (fill, ts, v[1], v[2], v[4], v[6], &last, v[9], v[10]);
    }
  sqlite3_finalize (row);
  if (local == NULL)
    return TRUE;
  g_propagate_error (error, g_steal_pointer (&local));
  return FALSE;
}

/* ---- from events ---- */

/* The first event at or after a time: sequence numbers and times grow together. */
static guint64
seq_at (CoopReader *reader, guint64 ts, guint64 last)
{
  guint64 lo = 0, hi = last + 1;
  sqlite3_stmt *row = coop_reader_prepare (reader, "SELECT seq, ts FROM event WHERE seq >= ? ORDER BY seq LIMIT 1", NULL);
  while (row != NULL && lo < hi)
    {
      guint64 middle = lo + (hi - lo) / 2;
      sqlite3_bind_int64 (row, 1, middle);
      gboolean found = coop_reader_step (reader, row, NULL);
      if (!found || (guint64) sqlite3_column_int64 (row, 1) >= ts)
        hi = middle;
      else
        lo = sqlite3_column_int64 (row, 0) + 1;
      sqlite3_reset (row);
    }
  sqlite3_finalize (row);
  return lo;
}

typedef struct {
  Fill *fill;
  CoopModel *model;
} Replay;

static Values
values_of (const CoopModel *model)
{
  const CoopModelTotals *t = coop_model_totals (model);
  return (Values) { t->used, t->largest, t->pinned, t->budget };
}

static gboolean
replay_one (gpointer user, const CoopEvent *ev, const void *body)
{
  Replay *replay = user;
  if (ev->ts > replay->fill->end)
    return FALSE;
  coop_model_apply (replay->model, ev, body, NULL);
  Values v = values_of (replay->model);
  add (replay->fill, ev->ts, v.used, v.used, v.largest, v.pinned, &v, ev->kind == COOP_EVENT_EVICT,
       ev->kind == COOP_EVENT_HANDOVER);
  return TRUE;
}

static gboolean
fill_from_events (CoopReader *reader, Fill *fill, guint64 last, GError **error)
{
  guint64 from = seq_at (reader, fill->start, last);
  CoopModel *model = from > 0 ? coop_reader_model_at (reader, from - 1, error) : coop_model_new ();
  if (model == NULL)
    return FALSE;
  Replay replay = { fill, model };
  fill->now = values_of (model);
  gint64 n = coop_reader_events (reader, from, replay_one, &replay, error);
  coop_model_free (model);
  return n >= 0;
}

GArray *
coop_reader_usage (CoopReader *reader, guint64 from_ts, guint64 to_ts, guint n, GError **error)
{
  guint64 last = coop_reader_last_seq (reader), first = 0, first_ts = 0;
  if (coop_reader_trimmed (reader, &first, &first_ts))
    from_ts = MAX (from_ts, first_ts);
  guint64 last_ts = coop_reader_int (reader, "SELECT ts FROM event ORDER BY seq DESC LIMIT 1", 0);
  Fill fill = { .out = g_array_new (FALSE, TRUE, sizeof (CoopUsage)), .end = MIN (to_ts, last_ts) };
  if (last == G_MAXUINT64 || from_ts > fill.end || from_ts > to_ts)
    return fill.out;
  guint64 wanted = MAX (1, (to_ts - from_ts) / CLAMP (n, 1, MAX_BUCKETS));
  guint level = 0;
  while (level + 1 < COOP_LOD_LEVELS && G_GUINT64_CONSTANT (1) << COOP_LOD_SHIFT (level + 1) <= wanted)
    level++;
  guint64 unit = G_GUINT64_CONSTANT (1) << COOP_LOD_SHIFT (level);
  gboolean coarse = unit <= wanted;
  fill.width = coarse ? (wanted + unit / 2) / unit * unit : wanted;
  fill.start = from_ts / fill.width * fill.width;
  coarse |= coop_reader_detail (reader) == COOP_DETAIL_SUMMARY; /* there are no blocks to be finer with */
  if (coarse ? fill_from_level (reader, &fill, level, error) : fill_from_events (reader, &fill, last, error))
    {
      bucket_of (&fill, fill.end);
      return fill.out;
    }
  g_array_unref (fill.out);
  return NULL;
}
