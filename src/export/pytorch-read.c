/* SPDX-License-Identifier: Apache-2.0 */
/* PyTorch's snapshot, part 1: what has to be known before the first event is written. */
#include "export/pytorch.h"

static guint64
number (const char *text, guint64 otherwise)
{
  return text != NULL ? g_ascii_strtoull (text, NULL, 10) : otherwise;
}

static gboolean
take_stack (gpointer user, int n, const char *const *names, const char *const *values, const int *types)
{
  CoopSnapshotWriter *w = user;
  CoopAnonymiser *a = w->job->anonymiser;
  CoopSnapshotStack stack = { number (values[1], 0), number (values[2], 0), NULL, NULL, 0 };
  stack.file = g_string_chunk_insert_const (w->texts, values[3] != NULL ? coop_anonymise_text (a, values[3]) : "");
  stack.func = g_string_chunk_insert_const (w->texts, values[4] != NULL ? coop_anonymise_text (a, values[4]) : "");
  stack.line = values[5] != NULL ? g_ascii_strtoll (values[5], NULL, 10) : 0;
  coop_snapshot_set (w->stacks, number (values[0], 0), &stack, sizeof stack);
  return TRUE;
}

static gboolean
take_segment (gpointer user, int n, const char *const *names, const char *const *values, const int *types)
{
  CoopSnapshotWriter *w = user;
  CoopSnapshotSegment segment = { number (values[0], 0), number (values[1], 0), number (values[2], 0), number (values[3], 0),
                      number (values[4], G_MAXUINT64), 0, { 0 } };
  g_array_append_val (w->segments, segment);
  return TRUE;
}

static gboolean
take_extent (gpointer user, int n, const char *const *names, const char *const *values, const int *types)
{
  CoopSnapshotWriter *w = user;
  guint64 addr = number (values[0], 0), end = number (values[1], 0);
  for (guint i = w->segments->len; i-- > 0;)
    {
      CoopSnapshotSegment *s = &g_array_index (w->segments, CoopSnapshotSegment, i);
      if (s->base <= addr && addr - s->base < s->bytes)
        {
          s->end = MAX (s->end, end);
          return TRUE;
        }
    }
  if (w->segments->len == 0) /* a pool without segments is one */
    g_array_append_val (w->segments, ((CoopSnapshotSegment) { 0, 0, G_MAXUINT64, 0, G_MAXUINT64, end, { 0 } }));
  return TRUE;
}

/* Of a trace that was trimmed, what was there where it begins: alive, without a history. */
static gboolean
gather_older (CoopSnapshotWriter *w, GError **error)
{
  guint64 base;
  if (!coop_reader_trimmed (w->job->reader, &base, NULL))
    return TRUE;
  CoopModel *model = coop_reader_model_at (w->job->reader, base, error);
  if (model == NULL)
    return FALSE;
  g_autoptr (GArray) pieces = g_array_new (FALSE, FALSE, sizeof (CoopMapPiece));
  coop_model_pieces (model, pieces);
  for (guint i = 0; i < pieces->len; i++)
    {
      const CoopMapPiece *p = &g_array_index (pieces, CoopMapPiece, i);
      CoopSnapshotBlock block = { p->addr, p->bytes, p->requested > 0 ? p->requested : p->bytes, 0, 0, FALSE };
      if (p->used)
        coop_snapshot_set (w->blocks, p->block, &block, sizeof block);
    }
  coop_model_free (model);
  return TRUE;
}

gboolean
coop_export_pytorch_gather (CoopSnapshotWriter *w, GError **error)
{
  CoopReader *reader = w->job->reader;
  return gather_older (w, error)
         && coop_reader_query (reader, "SELECT s.id, s.parent, f.id, a.text, b.text, f.line FROM stack s"
                            " JOIN frame f ON f.id = s.frame LEFT JOIN string a ON a.id = f.file"
                            " LEFT JOIN string b ON b.id = f.func", COOP_QUERY_SECONDS, take_stack, w, error)
         && coop_reader_query (reader, "SELECT id, base, bytes, born_event, died_event FROM segment ORDER BY base, id", COOP_QUERY_SECONDS,
                               take_segment, w, error)
         && coop_reader_query (reader, "SELECT addr, max (addr + bytes) FROM event WHERE kind = 10 GROUP BY addr"
                               " UNION ALL SELECT addr, max (addr + bytes) FROM block GROUP BY addr", COOP_QUERY_SECONDS,
                               take_extent, w, error);
}
