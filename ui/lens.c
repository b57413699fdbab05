/* SPDX-License-Identifier: Apache-2.0 */
/* Session and file behind one face. A file is read through its keyframes: the model at an event is
 * made anew for every event asked for, and kept for the questions about it.
 */
#include "config.h"

#include "lens.h"

#include <glib/gi18n.h>

#include "format.h"
#include "legend.h"
#include "trace-lacks.h"

struct CoopLens
{
  CoopSession *session; /* or: */
  char *path, *lacks;
  CoopReader *reader;
  CoopModel *model;     /* at `seq` */
  guint64 seq, last, end_ts, generation;
  CoopRunState state;
  int exit;
};

CoopLens *
coop_lens_new_for_session (CoopSession *session)
{
  CoopLens *lens = g_new0 (CoopLens, 1);
  lens->session = g_object_ref (session);
  return lens;
}

CoopLens *
coop_lens_new_for_file (const char *path)
{
  CoopLens *lens = g_new0 (CoopLens, 1);
  lens->path = g_strdup (path);
  return lens;
}

void
coop_lens_free (CoopLens *lens)
{
  g_clear_object (&lens->session);
  g_clear_pointer (&lens->model, coop_model_free);
  g_clear_pointer (&lens->reader, coop_reader_free);
  g_free (lens->path);
  g_free (lens->lacks);
  g_free (lens);
}

gboolean
coop_lens_is_live (const CoopLens *lens)
{
  return lens->session != NULL;
}

gboolean
coop_lens_is_moving (const CoopLens *lens)
{
  return lens->session && coop_session_get_state (lens->session) <= COOP_SESSION_RECORDING;
}

gboolean
coop_lens_open (CoopLens *lens, GError **error)
{
  CoopTraceInfo info = { 0 };
  if (lens->session)
    return TRUE;
  lens->reader = coop_reader_open (lens->path, error);
  if (!lens->reader || !coop_reader_info (lens->reader, &info, error))
    return FALSE;
  lens->last = coop_reader_last_seq (lens->reader);
  lens->end_ts = info.totals.ts;
  lens->state = info.state;
  lens->exit = info.exit_code;
  lens->lacks = coop_words_for_lacks (lens->reader, &info);
  coop_trace_info_clear (&info);
  return TRUE;
}

guint64
coop_lens_last_event (CoopLens *lens, CoopRunState *state, int *exit)
{
  *state = lens->state;
  *exit = lens->exit;
  return lens->last;
}

const char *
coop_lens_lacks (CoopLens *lens)
{
  return lens->lacks;
}

CoopFrame *
coop_lens_frame (CoopLens *lens, guint64 seq, GError **error)
{
  if (lens->session)
    return coop_session_frame (lens->session);
  seq = MIN (seq, lens->last);
  if (!lens->model || lens->seq != seq)
    {
      CoopModel *model = coop_reader_model_at (lens->reader, seq, error);
      if (!model)
        return NULL;
      g_clear_pointer (&lens->model, coop_model_free);
      lens->model = model;
      lens->seq = seq;
      lens->generation++;
    }
  return coop_frame_new (lens->model, lens->generation);
}

#define COPY_POINT(from, time)                                                                      \
  ((CoopChartPoint) { .ts = (time), .used_min = (from)->used_min, .used_max = (from)->used_max,      \
                      .pinned_max = (from)->pinned_max, .largest_min = (from)->largest_min,          \
                      .budget = (from)->budget, .evictions = (from)->evictions,                      \
                      .handovers = (from)->handovers })

GArray *
coop_lens_usage (CoopLens *lens, guint n)
{
  GArray *points = g_array_new (FALSE, FALSE, sizeof (CoopChartPoint));
  if (lens->session)
    {
      g_autoptr (GArray) samples = coop_session_usage (lens->session, n);
      for (guint i = 0; samples && i < samples->len; i++)
        {
          const CoopSample *sample = &g_array_index (samples, CoopSample, i);
          g_array_append_val (points, COPY_POINT (sample, sample->ts));
        }
      return points;
    }
  g_autoptr (GArray) buckets = coop_reader_usage (lens->reader, 0, lens->end_ts + 1, n, NULL);
  for (guint i = 0; buckets && i < buckets->len; i++)
    {
      const CoopUsage *bucket = &g_array_index (buckets, CoopUsage, i);
      g_array_append_val (points, COPY_POINT (bucket, bucket->bucket_ts));
    }
  return points;
}

static void
event_line_free (gpointer data)
{
  CoopEventLine *line = data;
  g_free (line->text);
  g_free (line);
}

typedef struct {
  CoopLens *lens;
  GPtrArray *lines;
} Taking;

/* As in the list of a session: not the bookkeeping that names things. */
static gboolean
is_told (guint kind)
{
  static const guint kinds[] = { COOP_EVENT_META, COOP_EVENT_STRING, COOP_EVENT_FRAME, COOP_EVENT_STACK,
                                 COOP_EVENT_SEGMENT, COOP_EVENT_TENSOR, COOP_EVENT_RECLASSIFY,
                                 COOP_EVENT_COST, COOP_EVENT_STAT };
  for (gsize i = 0; i < G_N_ELEMENTS (kinds); i++)
    if (kinds[i] == kind)
      return FALSE;
  return TRUE;
}

static gboolean
take_event (gpointer user, const CoopEvent *ev, const void *body)
{
  Taking *taking = user;
  if (ev->seq > taking->lens->seq)
    return FALSE;
  if (!is_told (ev->kind))
    return TRUE;
  CoopEventLine *line = g_new0 (CoopEventLine, 1);
  line->seq = ev->seq;
  line->ts = ev->ts;
  line->kind = ev->kind;
  line->text = coop_model_describe (taking->lens->model, ev, body);
  g_ptr_array_add (taking->lines, line);
  return TRUE;
}

static GPtrArray *
events_of_session (CoopLens *lens, guint64 seq, guint n)
{
  GPtrArray *lines = coop_session_events (lens->session, seq == G_MAXUINT64 ? n : G_MAXUINT);
  guint end = lines->len;
  while (end > 0 && ((CoopEventLine *) lines->pdata[end - 1])->seq > seq)
    end--;
  g_ptr_array_set_size (lines, (int) end);
  return lines;
}

/* Enough events to find n among them that are told. */
static GPtrArray *
events_of_file (CoopLens *lens, guint n)
{
  Taking taking = { lens, g_ptr_array_new_with_free_func (event_line_free) };
  guint64 span = (guint64) n * 4;
  if (lens->model)
    coop_reader_events (lens->reader, lens->seq >= span ? lens->seq - span + 1 : 0, take_event, &taking, NULL);
  return taking.lines;
}

GPtrArray *
coop_lens_events (CoopLens *lens, guint64 seq, guint n)
{
  GPtrArray *lines = lens->session ? events_of_session (lens, seq, n) : events_of_file (lens, n);
  if (lines->len > n)
    g_ptr_array_remove_range (lines, 0, lines->len - n);
  return lines;
}

static gboolean
take_number (gpointer user, int n, const char *const *names, const char *const *values, const int *types)
{
  if (values[0])
    *(guint64 *) user = g_ascii_strtoull (values[0], NULL, 10);
  return FALSE;
}

/* The number that a query finds, else `otherwise`. */
static guint64
look_up (CoopLens *lens, guint64 otherwise, const char *format, guint64 value, guint64 kind)
{
  g_autofree char *sql = g_strdup_printf (format, value, kind);
  guint64 found = otherwise;
  if (lens->reader)
    coop_reader_query (lens->reader, sql, 5, take_number, &found, NULL);
  return found;
}

/* By halving: events are numbered in the order of time, but only numbers are indexed. */
guint64
coop_lens_event_at (CoopLens *lens, guint64 ts)
{
  guint64 low = 0, high = lens->last;
  while (low < high)
    {
      guint64 middle = high - (high - low) / 2;
      guint64 then = look_up (lens, 0, "SELECT ts FROM event WHERE seq <= %" G_GUINT64_FORMAT
                                       " ORDER BY seq DESC LIMIT 1", middle, 0);
      if (then <= ts)
        low = middle;
      else
        high = middle - 1;
    }
  return low;
}

guint64
coop_lens_next_eviction (CoopLens *lens, guint64 seq, gboolean back)
{
  return look_up (lens, seq,
                  back ? "SELECT max(seq) FROM event WHERE seq < %" G_GUINT64_FORMAT
                         " AND kind = %" G_GUINT64_FORMAT
                       : "SELECT min(seq) FROM event WHERE seq > %" G_GUINT64_FORMAT
                         " AND kind = %" G_GUINT64_FORMAT,
                  seq, COOP_EVENT_EVICT);
}

/* The piece of a block in the file's frame. */
static gboolean
find_piece (CoopLens *lens, guint64 block, CoopMapPiece *found)
{
  g_autoptr (GArray) pieces = g_array_new (FALSE, FALSE, sizeof (CoopMapPiece));
  coop_model_pieces (lens->model, pieces);
  for (guint i = 0; i < pieces->len; i++)
    {
      *found = g_array_index (pieces, CoopMapPiece, i);
      if (found->used && found->block == block)
        return TRUE;
    }
  return FALSE;
}

static void
add_shape (GString *text, const CoopTensorInfo *tensor)
{
  g_string_append_printf (text, " %s [", tensor->dtype ? tensor->dtype : "?");
  for (guint32 i = 0; i < tensor->ndim && i < G_N_ELEMENTS (tensor->dims); i++)
    g_string_append_printf (text, "%s%" G_GINT64_FORMAT, i ? ", " : "", tensor->dims[i]);
  g_string_append_c (text, ']');
}

char *
coop_lens_describe (CoopLens *lens, const CoopFrame *frame, guint64 block)
{
  CoopMapPiece piece;
  CoopTensorInfo tensor;
  CoopOpInfo op;
  if (lens->session)
    return coop_session_describe_in (lens->session, frame, block);
  if (!lens->model || !find_piece (lens, block, &piece))
    return NULL;

  guint64 now = coop_model_totals (lens->model)->ts;
  g_autofree char *size = coop_format_bytes (piece.bytes), *addr = coop_format_addr (piece.addr);
  g_autofree char *age = coop_format_ns (now > piece.used_ts ? now - piece.used_ts : 0);
  GString *text = g_string_new (NULL);
  g_string_append (text, coop_legend_kind_name (piece.kind));
  if (piece.tensor && coop_model_tensor (lens->model, piece.tensor, &tensor))
    add_shape (text, &tensor);
  /* Translators: size and address of a block */
  g_string_append_printf (text, _("\n%s at %s"), size, addr);
  if (piece.op && coop_model_op (lens->model, piece.op, &op))
    {
      g_autofree char *line = coop_model_stack_text (lens->model, op.stack);
      g_autofree char *cost = coop_format_ns (op.cost);
      /* Translators: operator and the time that it takes */
      g_string_append_printf (text, _("\nmade by %s in %s"), op.name ? op.name : "?", cost);
      if (line)
        g_string_append_printf (text, "\n%s", line);
    }
  g_string_append_printf (text, _("\nlast used %s ago"), age);
  if (piece.pin == COOP_PIN_PENDING)
    g_string_append_printf (text, "\n%s", coop_legend_pin_name (piece.pin));
  else if (piece.pin)
    g_string_append_printf (text, _("\npinned: %s"), coop_legend_pin_name (piece.pin));
  else
    g_string_append (text, _("\nevictable"));
  return g_string_free (text, FALSE);
}

char *
coop_lens_name (gpointer data, CoopNameKind kind, guint64 id)
{
  CoopLens *lens = data;
  if (lens->session)
    return coop_session_name (lens->session, kind, id);
  return lens->model ? coop_model_name (lens->model, kind, id) : NULL;
}

void
coop_lens_health (CoopLens *lens, CoopSessionHealth *health)
{
  *health = (CoopSessionHealth) { 0 };
  if (lens->session)
    coop_session_health (lens->session, health);
}
