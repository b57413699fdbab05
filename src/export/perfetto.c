/* SPDX-License-Identifier: Apache-2.0 */
/* Perfetto: the timeline as TracePackets. Numbers of fields are those of perfetto's own .proto files
 * (protos/perfetto/trace, public and stable). Names, categories and source lines are interned: the
 * packet that uses one first brings it. One packet sequence, so nothing is lost or out of order. */
#include "export/proto.h"
#include "export/timeline.h"

#include <math.h>

enum { TRACE_PACKET = 1 };
enum {
  PACKET_CLOCK_SNAPSHOT = 6, PACKET_TIMESTAMP = 8, PACKET_SEQUENCE_ID = 10, PACKET_TRACK_EVENT = 11,
  PACKET_INTERNED_DATA = 12, PACKET_SEQUENCE_FLAGS = 13, PACKET_FIRST_ON_SEQUENCE = 87,
  PACKET_TRACK_DESCRIPTOR = 60
};
enum { SEQ_INCREMENTAL_STATE_CLEARED = 1, SEQ_NEEDS_INCREMENTAL_STATE = 2 };
enum {
  EVENT_CATEGORY_IIDS = 3, EVENT_DEBUG_ANNOTATIONS = 4, EVENT_TYPE = 9, EVENT_NAME_IID = 10, EVENT_TRACK_UUID = 11,
  EVENT_COUNTER_VALUE = 30, EVENT_SOURCE_LOCATION_IID = 34
};
enum { TYPE_SLICE_BEGIN = 1, TYPE_SLICE_END = 2, TYPE_INSTANT = 3, TYPE_COUNTER = 4 };
enum { INTERNED_CATEGORIES = 1, INTERNED_EVENT_NAMES = 2, INTERNED_ANNOTATION_NAMES = 3, INTERNED_SOURCE_LOCATIONS = 4 };
enum { ANNOTATION_NAME_IID = 1, ANNOTATION_UINT = 3, ANNOTATION_DOUBLE = 5, ANNOTATION_STRING = 6 };
enum {
  TRACK_UUID = 1, TRACK_NAME = 2, TRACK_PROCESS = 3, TRACK_THREAD = 4, TRACK_PARENT = 5, TRACK_COUNTER = 8
};
enum { PROCESS_PID = 1, PROCESS_NAME = 6, THREAD_PID = 1, THREAD_TID = 2, THREAD_NAME = 5 };
enum { COUNTER_UNIT = 3, UNIT_SIZE_BYTES = 3 };
enum { CLOCKS = 1, CLOCK_FIELD_ID = 1, CLOCK_FIELD_TIMESTAMP = 2, REALTIME = 1, BOOTTIME = 6 };

/* Tracks have numbers that are one for the whole file. */
enum { UUID_PROCESS = 1, UUID_COUNTERS = 16, UUID_RIBBONS = 64, UUID_THREADS = 1024 };

typedef struct {
  CoopOut *out;
  GByteArray *packet, *interned;  /* interned: entries that the packet under way brings */
  GHashTable *iids[INTERNED_SOURCE_LOCATIONS + 1];
  guint64 pid;
  gboolean begun;
} Writer;

static guint64
uuid_of (int track)
{
  return track >= 0 ? (guint64) UUID_THREADS + (guint64) track : (guint64) UUID_RIBBONS + (guint64) -track;
}

/* ---- packets ---- */

static guint
begin_packet (Writer *w)
{
  g_byte_array_set_size (w->packet, 0);
  g_byte_array_set_size (w->interned, 0);
  guint begun = coop_proto_begin (w->packet, TRACE_PACKET);
  coop_proto_uint (w->packet, PACKET_SEQUENCE_ID, 1);
  coop_proto_uint (w->packet, PACKET_SEQUENCE_FLAGS, w->begun ? SEQ_NEEDS_INCREMENTAL_STATE : SEQ_INCREMENTAL_STATE_CLEARED);
  if (!w->begun)
    coop_proto_uint (w->packet, PACKET_FIRST_ON_SEQUENCE, 1);
  w->begun = TRUE;
  return begun;
}

static void
end_packet (Writer *w, guint begun)
{
  if (w->interned->len > 0)
    {
      guint data = coop_proto_begin (w->packet, PACKET_INTERNED_DATA);
      g_byte_array_append (w->packet, w->interned->data, w->interned->len);
      coop_proto_end (w->packet, data);
    }
  coop_proto_end (w->packet, begun);
  coop_out_write (w->out, w->packet->data, w->packet->len);
}

/* The number of a text in one of the tables; a new one goes into this packet's interned data. */
static guint64
intern (Writer *w, guint table, const char *text)
{
  gpointer known = g_hash_table_lookup (w->iids[table], text);
  if (known != NULL)
    return GPOINTER_TO_UINT (known);
  guint iid = g_hash_table_size (w->iids[table]) + 1;
  g_hash_table_insert (w->iids[table], g_strdup (text), GUINT_TO_POINTER (iid));
  guint entry = coop_proto_begin (w->interned, table);
  coop_proto_uint (w->interned, 1, iid);
  coop_proto_text (w->interned, 2, text);
  coop_proto_end (w->interned, entry);
  return iid;
}

static guint64
intern_source (Writer *w, const CoopItem *item)
{
  g_autofree char *key = g_strdup_printf ("%s\n%s\n%" G_GINT64_FORMAT, item->file, item->func != NULL ? item->func : "", item->line);
  gpointer known = g_hash_table_lookup (w->iids[INTERNED_SOURCE_LOCATIONS], key);
  if (known != NULL)
    return GPOINTER_TO_UINT (known);
  guint iid = g_hash_table_size (w->iids[INTERNED_SOURCE_LOCATIONS]) + 1;
  g_hash_table_insert (w->iids[INTERNED_SOURCE_LOCATIONS], g_steal_pointer (&key), GUINT_TO_POINTER (iid));
  guint entry = coop_proto_begin (w->interned, INTERNED_SOURCE_LOCATIONS);
  coop_proto_uint (w->interned, 1, iid);
  coop_proto_text (w->interned, 2, item->file);
  if (item->func != NULL)
    coop_proto_text (w->interned, 3, item->func);
  if (item->line > 0)
    coop_proto_uint (w->interned, 4, (guint64) item->line);
  coop_proto_end (w->interned, entry);
  return iid;
}

/* ---- tracks ---- */

static void
put_process (Writer *w, const char *name)
{
  guint packet = begin_packet (w), track = coop_proto_begin (w->packet, PACKET_TRACK_DESCRIPTOR);
  coop_proto_uint (w->packet, TRACK_UUID, UUID_PROCESS);
  guint process = coop_proto_begin (w->packet, TRACK_PROCESS);
  coop_proto_sint64 (w->packet, PROCESS_PID, (gint64) w->pid);
  coop_proto_text (w->packet, PROCESS_NAME, name);
  coop_proto_end (w->packet, process);
  coop_proto_end (w->packet, track);
  end_packet (w, packet);
}

static void
put_counter_track (Writer *w, CoopCounter counter)
{
  guint packet = begin_packet (w), track = coop_proto_begin (w->packet, PACKET_TRACK_DESCRIPTOR);
  coop_proto_uint (w->packet, TRACK_UUID, UUID_COUNTERS + counter);
  coop_proto_uint (w->packet, TRACK_PARENT, UUID_PROCESS);
  coop_proto_text (w->packet, TRACK_NAME, coop_counter_label (counter));
  guint body = coop_proto_begin (w->packet, TRACK_COUNTER);
  coop_proto_uint (w->packet, COUNTER_UNIT, UNIT_SIZE_BYTES);
  coop_proto_end (w->packet, body);
  coop_proto_end (w->packet, track);
  end_packet (w, packet);
}

/* Thread 0 is the main one, whose number is the process's; others have numbers made up beside it. */
static void
put_track (Writer *w, const CoopItem *item)
{
  guint packet = begin_packet (w), track = coop_proto_begin (w->packet, PACKET_TRACK_DESCRIPTOR);
  coop_proto_uint (w->packet, TRACK_UUID, uuid_of (item->track));
  coop_proto_uint (w->packet, TRACK_PARENT, UUID_PROCESS);
  if (item->track < 0)
    coop_proto_text (w->packet, TRACK_NAME, item->name);
  else
    {
      guint thread = coop_proto_begin (w->packet, TRACK_THREAD);
      coop_proto_sint64 (w->packet, THREAD_PID, (gint64) w->pid);
      coop_proto_sint64 (w->packet, THREAD_TID, (gint64) w->pid + item->track);
      coop_proto_text (w->packet, THREAD_NAME, item->name);
      coop_proto_end (w->packet, thread);
    }
  coop_proto_end (w->packet, track);
  end_packet (w, packet);
}

/* Ties the run's time 0 to the wall clock. */
static void
put_clock (Writer *w, guint64 start_ns)
{
  const struct { guint64 id, ts; } clocks[] = { { BOOTTIME, 0 }, { REALTIME, start_ns } };
  guint packet = begin_packet (w), snapshot = coop_proto_begin (w->packet, PACKET_CLOCK_SNAPSHOT);
  for (guint i = 0; i < G_N_ELEMENTS (clocks); i++)
    {
      guint clock = coop_proto_begin (w->packet, CLOCKS);
      coop_proto_uint (w->packet, CLOCK_FIELD_ID, clocks[i].id);
      coop_proto_uint (w->packet, CLOCK_FIELD_TIMESTAMP, clocks[i].ts);
      coop_proto_end (w->packet, clock);
    }
  coop_proto_end (w->packet, snapshot);
  end_packet (w, packet);
}

/* ---- events ---- */

static void
put_arg (Writer *w, const CoopArg *arg)
{
  guint annotation = coop_proto_begin (w->packet, EVENT_DEBUG_ANNOTATIONS);
  coop_proto_uint (w->packet, ANNOTATION_NAME_IID, intern (w, INTERNED_ANNOTATION_NAMES, arg->name));
  if (arg->type == COOP_ARG_UINT)
    coop_proto_uint (w->packet, ANNOTATION_UINT, arg->number);
  else if (arg->type == COOP_ARG_REAL)
    coop_proto_double (w->packet, ANNOTATION_DOUBLE, arg->real);
  else
    coop_proto_text (w->packet, ANNOTATION_STRING, arg->text);
  coop_proto_end (w->packet, annotation);
}

static void
put_event (Writer *w, const CoopItem *item, guint type)
{
  guint packet = begin_packet (w);
  coop_proto_uint (w->packet, PACKET_TIMESTAMP, item->ts);
  guint event = coop_proto_begin (w->packet, PACKET_TRACK_EVENT);
  coop_proto_uint (w->packet, EVENT_TYPE, type);
  coop_proto_uint (w->packet, EVENT_TRACK_UUID,
                   type == TYPE_COUNTER ? (guint64) UUID_COUNTERS + item->counter : uuid_of (item->track));
  if (item->category != NULL)
    coop_proto_uint (w->packet, EVENT_CATEGORY_IIDS, intern (w, INTERNED_CATEGORIES, item->category));
  if (item->name != NULL)
    coop_proto_uint (w->packet, EVENT_NAME_IID, intern (w, INTERNED_EVENT_NAMES, item->name));
  if (type == TYPE_COUNTER)
    coop_proto_uint (w->packet, EVENT_COUNTER_VALUE, item->value);
  if (item->file != NULL)
    coop_proto_uint (w->packet, EVENT_SOURCE_LOCATION_IID, intern_source (w, item));
  for (guint i = 0; i < item->n_args; i++)
    put_arg (w, &item->args[i]);
  coop_proto_end (w->packet, event);
  end_packet (w, packet);
}

static gboolean
take_item (gpointer user, const CoopItem *item)
{
  Writer *w = user;
  switch (item->type)
    {
    case COOP_ITEM_TRACK:
      put_track (w, item);
      break;
    case COOP_ITEM_BEGIN:
      put_event (w, item, TYPE_SLICE_BEGIN);
      break;
    case COOP_ITEM_END:
      put_event (w, item, TYPE_SLICE_END);
      break;
    case COOP_ITEM_INSTANT:
      put_event (w, item, TYPE_INSTANT);
      break;
    case COOP_ITEM_COUNTER:
      put_event (w, item, TYPE_COUNTER);
      break;
    }
  return coop_out_ok (w->out);
}

gboolean
coop_export_perfetto (const CoopExportJob *job, CoopOut *out, GError **error)
{
  Writer w = { .out = out, .packet = g_byte_array_new (), .interned = g_byte_array_new () };
  for (guint i = INTERNED_CATEGORIES; i <= INTERNED_SOURCE_LOCATIONS; i++)
    w.iids[i] = g_hash_table_new_full (g_str_hash, g_str_equal, g_free, NULL);
  g_autofree char *process = coop_timeline_process (job, &w.pid);
  guint64 start = coop_export_start (job->reader);
  if (start > 0)
    put_clock (&w, start);
  put_process (&w, process);
  for (guint i = 0; i < COOP_N_COUNTERS; i++)
    put_counter_track (&w, (CoopCounter) i);
  gboolean done = coop_timeline_walk (job, take_item, &w, error);
  for (guint i = INTERNED_CATEGORIES; i <= INTERNED_SOURCE_LOCATIONS; i++)
    g_hash_table_unref (w.iids[i]);
  g_byte_array_unref (w.packet);
  g_byte_array_unref (w.interned);
  return done;
}
