/* SPDX-License-Identifier: Apache-2.0 */
/* Snapshot: pickle -> arrays. What a key means is looked up once; what nobody knows is counted. */
#include "trace/snapshot-fields.h"

#include <string.h>

#define MAX_ADDRESS (G_MAXUINT64 / 2)
#define MAX_BYTES (G_MAXINT64 / 4)
#define MAX_TIME_US (G_MAXINT64 / 1000)
#define MAX_DEVICE (G_MAXINT32 - 1)

typedef CoopSnapFill Fill;
#define get_text coop_snap_text

static guint
hash_pool (gconstpointer key)
{
  const CoopSnapPool *pool = key;
  return g_int64_hash (&pool->a) * 31 + g_int64_hash (&pool->b);
}

static gboolean
same_pool (gconstpointer a, gconstpointer b)
{
  return memcmp (a, b, sizeof (CoopSnapPool)) == 0;
}

CoopSnap *
coop_snap_new (void)
{
  CoopSnap *snap = g_new0 (CoopSnap, 1);
  coop_snap_stacks_init (&snap->stacks);
  snap->pools = g_array_new (FALSE, FALSE, sizeof (CoopSnapPool));
  snap->pool_index = g_hash_table_new_full (hash_pool, same_pool, g_free, NULL);
  snap->devices = g_ptr_array_new ();
  snap->unknown_keys = g_hash_table_new_full (g_str_hash, g_str_equal, g_free, NULL);
  snap->unknown_actions = g_hash_table_new_full (g_str_hash, g_str_equal, g_free, NULL);
  snap->unknown_states = g_hash_table_new_full (g_str_hash, g_str_equal, g_free, NULL);
  return snap;
}

void
coop_snap_free (CoopSnap *snap)
{
  if (snap == NULL)
    return;
  for (guint i = 0; i < snap->devices->len; i++)
    {
      CoopSnapDevice *device = snap->devices->pdata[i];
      g_array_unref (device->events);
      g_array_unref (device->segments);
      g_array_unref (device->blocks);
      g_array_unref (device->marks);
      g_free (device);
    }
  g_ptr_array_unref (snap->devices);
  coop_snap_stacks_clear (&snap->stacks);
  g_array_unref (snap->pools);
  g_hash_table_unref (snap->pool_index);
  g_hash_table_unref (snap->unknown_keys);
  g_hash_table_unref (snap->unknown_actions);
  g_hash_table_unref (snap->unknown_states);
  g_free (snap->alloc_conf);
  g_free (snap);
}

void
coop_snap_unknown (GHashTable *table, const char *text)
{
  text = text != NULL ? text : "?";
  gpointer n = g_hash_table_lookup (table, text);
  g_hash_table_replace (table, g_strdup (text), GUINT_TO_POINTER (GPOINTER_TO_UINT (n) + 1));
}

/* ---- fields ---- */

/* As the profiler of PyTorch sorts tensors. */
static guint8
kind_of (Fill *fill, CoopPickleValue dict, guint8 otherwise)
{
  static const struct { const char *text; CoopKind kind; } names[] = {
    { "PARAMETER", COOP_KIND_STATE }, { "OPTIMIZER_STATE", COOP_KIND_STATE }, { "GRADIENT", COOP_KIND_GRADIENT },
    { "ACTIVATION", COOP_KIND_ACTIVATION },
  };
  const char *text = get_text (fill, dict, COOP_KEY_CATEGORY);
  for (guint i = 0; text != NULL && i < G_N_ELEMENTS (names); i++)
    if (g_ascii_strcasecmp (text, names[i].text) == 0)
      return names[i].kind;
  return otherwise;
}

static CoopSnapDevice *
device_of (CoopSnap *snap, int number)
{
  for (guint i = 0; i < snap->devices->len; i++)
    if (((CoopSnapDevice *) snap->devices->pdata[i])->device == number)
      return snap->devices->pdata[i];
  CoopSnapDevice *device = g_new0 (CoopSnapDevice, 1);
  device->device = number;
  device->events = g_array_new (FALSE, FALSE, sizeof (CoopSnapEvent));
  device->segments = g_array_new (FALSE, FALSE, sizeof (CoopSnapSegment));
  device->blocks = g_array_new (FALSE, FALSE, sizeof (CoopSnapBlock));
  device->marks = g_array_new (FALSE, FALSE, sizeof (CoopSnapMark));
  g_ptr_array_add (snap->devices, device);
  return device;
}

/* ---- segments ---- */

/* A state of a version to come is no life that could be drawn. */
static guint8
state_of (Fill *fill, CoopPickleValue dict)
{
  const char *text = get_text (fill, dict, COOP_KEY_STATE);
  if (g_strcmp0 (text, "active_allocated") == 0)
    return COOP_SNAP_ACTIVE;
  if (g_strcmp0 (text, "active_pending_free") == 0 || g_strcmp0 (text, "active_awaiting_free") == 0)
    return COOP_SNAP_PENDING;
  if (text == NULL)
    coop_snap_damaged (fill, dict, "'state' is missing");
  else if (strcmp (text, "inactive") != 0)
    coop_snap_unknown (fill->snap->unknown_states, text);
  return COOP_SNAP_INACTIVE;
}

/* Until 2.0 a block had a history instead: requests, the latest first. */
static void
add_history (Fill *fill, CoopPickleValue dict, CoopSnapBlock *block)
{
  CoopPickleValue history = coop_snap_list (fill, dict, COOP_KEY_HISTORY);
  if (coop_pickle_length (fill->pickle, history) == 0)
    return;
  CoopPickleValue latest = coop_snap_dict (fill, history, 0, "entry");
  coop_snap_check_keys (fill, latest, COOP_IN_HISTORY);
  block->requested = coop_snap_int (fill, latest, COOP_KEY_REAL_SIZE, block->requested, MAX_BYTES);
  if (block->stack == 0)
    block->stack = coop_snap_stack (fill, latest);
}

/* Returns the block's end. */
static guint64
add_block (Fill *fill, CoopSnapDevice *device, CoopPickleValue dict, guint64 addr, guint64 stream)
{
  CoopSnapBlock block = { .stream = stream };
  coop_snap_check_keys (fill, dict, COOP_IN_BLOCK);
  block.addr = coop_snap_int (fill, dict, COOP_KEY_ADDRESS, addr, MAX_ADDRESS);
  block.bytes = coop_snap_need (fill, dict, COOP_KEY_SIZE, MAX_BYTES);
  block.requested = coop_snap_int (fill, dict, COOP_KEY_REQUESTED_SIZE, block.bytes, MAX_BYTES);
  block.stack = coop_snap_stack (fill, dict);
  block.state = state_of (fill, dict);
  block.kind = kind_of (fill, dict, COOP_KIND_OTHER);
  add_history (fill, dict, &block);
  if (block.state != COOP_SNAP_INACTIVE && block.bytes == 0)
    coop_snap_damaged (fill, dict, "a block that lives and has no bytes");
  else if (block.state != COOP_SNAP_INACTIVE)
    g_array_append_val (device->blocks, block);
  return block.addr + block.bytes;
}

static void
add_blocks (Fill *fill, CoopSnapDevice *device, CoopPickleValue dict, const CoopSnapSegment *segment)
{
  CoopPickleValue blocks = coop_snap_list (fill, dict, COOP_KEY_BLOCKS);
  guint64 at = segment->addr;
  for (guint64 i = 0; i < coop_pickle_length (fill->pickle, blocks) && fill->error == NULL; i++)
    {
      CoopPickleValue block = coop_snap_dict (fill, blocks, i, "block");
      at = add_block (fill, device, block, at, segment->stream);
      if (at > segment->addr + segment->bytes)
        coop_snap_damaged (fill, block, "a block ends outside of its segment");
    }
}

static void
add_segment (Fill *fill, CoopPickleValue dict, gboolean host)
{
  CoopSnapSegment segment = { .dict = dict,
                              .addr = coop_snap_need (fill, dict, COOP_KEY_ADDRESS, MAX_ADDRESS),
                              .bytes = coop_snap_need (fill, dict, COOP_KEY_TOTAL_SIZE, MAX_BYTES),
                              .stream = coop_snap_int (fill, dict, COOP_KEY_STREAM, 0, G_MAXUINT64),
                              .stack = coop_snap_stack (fill, dict) };
  guint64 number = coop_snap_int (fill, dict, COOP_KEY_DEVICE, 0, MAX_DEVICE);
  coop_snap_check_keys (fill, dict, COOP_IN_SEGMENT);
  segment.expandable = coop_snap_int (fill, dict, COOP_KEY_IS_EXPANDABLE, 0, 1) != 0;
  segment.small = g_strcmp0 (get_text (fill, dict, COOP_KEY_SEGMENT_TYPE), "small") == 0;
  segment.pool = coop_snap_pool (fill, dict, COOP_KEY_SEGMENT_POOL_ID);
  if (fill->error != NULL)
    return;
  CoopSnapDevice *device = device_of (fill->snap, host ? -1 : (int) number);
  if (segment.bytes > 0) /* expandable, and nothing of it mapped */
    g_array_append_val (device->segments, segment);
  add_blocks (fill, device, dict, &segment);
}

static void
add_segments (Fill *fill, CoopPickleValue list, gboolean host)
{
  for (guint64 i = 0; i < coop_pickle_length (fill->pickle, list) && fill->error == NULL; i++)
    {
      CoopPickleValue segment = coop_snap_dict (fill, list, i, "segment");
      if (segment != 0)
        add_segment (fill, segment, host);
    }
}

/* ---- entries ---- */

#define HOST G_MAXUINT64 /* instead of a device's number */

static guint
action_of (Fill *fill, CoopPickleValue value)
{
  for (guint i = 0; value != 0 && i < COOP_SNAP_N_ACTIONS; i++)
    if (fill->actions[i] == value)
      return i;
  return COOP_SNAP_N_ACTIONS;
}

/* "START forward": for a time marks were entries with a frame that said so. */
static guint32
mark_text (Fill *fill, const CoopSnapEvent *ev)
{
  const CoopSnapFrame *frame = coop_snap_leaf (&fill->snap->stacks, ev->stack);
  const GPtrArray *strings = fill->snap->stacks.strings;
  if (frame == NULL)
    return 0;
  g_autofree char *text = g_strdup_printf ("%s %s", frame->func != 0 ? (char *) strings->pdata[frame->func - 1] : "",
                                           frame->file != 0 ? (char *) strings->pdata[frame->file - 1] : "");
  return coop_snap_string (&fill->snap->stacks, g_strstrip (text));
}

static guint32
text_of (Fill *fill, CoopPickleValue dict, const CoopSnapEvent *ev)
{
  switch (ev->action)
    {
    case COOP_SNAP_USER:
      return mark_text (fill, ev);
    case COOP_SNAP_SNAPSHOT:
      return coop_snap_string (&fill->snap->stacks, "snapshot");
    case COOP_SNAP_ANNOTATE: /* a text; later versions may have more to say */
      return coop_snap_string (&fill->snap->stacks,
                               coop_pickle_text (fill->pickle, coop_snap_get (fill, dict, COOP_KEY_USER_METADATA), NULL));
    default:
      return 0;
    }
}

static void
add_event (Fill *fill, CoopSnapDevice *device, CoopPickleValue dict)
{
  CoopSnapEvent ev = { 0 };
  CoopPickleValue action = coop_snap_get (fill, dict, COOP_KEY_ACTION);
  guint known = action_of (fill, action);
  if (coop_pickle_type (action) != COOP_PICKLE_TEXT)
    coop_snap_damaged (fill, dict, "'action' is missing or no text");
  if (known == COOP_SNAP_N_ACTIONS)
    {
      coop_snap_unknown (fill->snap->unknown_actions, coop_pickle_text (fill->pickle, action, NULL));
      return;
    }
  gboolean placed = known <= COOP_SNAP_SEGMENT_UNMAP;
  ev.action = (guint8) known;
  coop_snap_check_keys (fill, dict, COOP_IN_ENTRY);
  ev.addr = placed ? coop_snap_need (fill, dict, COOP_KEY_ADDR, MAX_ADDRESS) : 0;
  ev.size = placed || known == COOP_SNAP_OOM ? coop_snap_need (fill, dict, COOP_KEY_SIZE, MAX_BYTES) : 0;
  ev.stack = coop_snap_stack (fill, dict);
  ev.stream = coop_snap_int (fill, dict, COOP_KEY_STREAM, 0, G_MAXUINT64);
  fill->untimed |= !coop_snap_has (fill, dict, COOP_KEY_TIME_US);
  ev.time_us = coop_snap_int (fill, dict, COOP_KEY_TIME_US, 0, MAX_TIME_US);
  ev.device_free = coop_snap_int (fill, dict, COOP_KEY_DEVICE_FREE, 0, G_MAXINT64);
  ev.pool = coop_snap_pool (fill, dict, COOP_KEY_POOL_ID);
  ev.kind = kind_of (fill, dict, COOP_KIND_OTHER);
  ev.text = text_of (fill, dict, &ev);
  g_array_append_val (device->events, ev);
}

static void
add_trace (Fill *fill, CoopPickleValue list, guint64 number)
{
  guint64 n = coop_pickle_length (fill->pickle, list);
  if (n == 0)
    return;
  CoopSnapDevice *device = device_of (fill->snap, number == HOST ? -1 : (int) MIN (number, MAX_DEVICE));
  for (guint64 i = 0; i < n && fill->error == NULL; i++)
    {
      CoopPickleValue entry = coop_snap_dict (fill, list, i, "entry");
      if (entry != 0)
        add_event (fill, device, entry);
    }
}

/* A list of lists of entries, one a device; of the host also the list of entries itself. */
static void
add_traces (Fill *fill, CoopPickleValue lists, gboolean host)
{
  guint64 n = coop_pickle_length (fill->pickle, lists);
  if (host && n > 0 && coop_pickle_type (coop_pickle_item (fill->pickle, lists, 0)) == COOP_PICKLE_DICT)
    {
      add_trace (fill, lists, HOST);
      return;
    }
  for (guint64 i = 0; i < n && fill->error == NULL; i++)
    {
      CoopPickleValue list = coop_pickle_item (fill->pickle, lists, i);
      if (coop_pickle_type (list) == COOP_PICKLE_LIST || coop_pickle_type (list) == COOP_PICKLE_TUPLE)
        add_trace (fill, list, host ? HOST : i);
      else if (coop_pickle_type (list) != COOP_PICKLE_NONE)
        coop_snap_damaged (fill, lists, "the history of device %" G_GUINT64_FORMAT " is no list", i);
    }
}

static int
by_time (gconstpointer a, gconstpointer b)
{
  const CoopSnapMark *x = a, *y = b;
  return x->time_us < y->time_us ? -1 : x->time_us > y->time_us;
}

static void
add_annotation (Fill *fill, CoopPickleValue dict)
{
  guint64 time = coop_snap_need (fill, dict, COOP_KEY_TIME_US, MAX_TIME_US);
  guint64 number = coop_snap_int (fill, dict, COOP_KEY_DEVICE, 0, MAX_DEVICE);
  const char *stage = get_text (fill, dict, COOP_KEY_STAGE), *name = get_text (fill, dict, COOP_KEY_NAME);
  coop_snap_check_keys (fill, dict, COOP_IN_MARK);
  if (stage == NULL && name == NULL)
    coop_snap_damaged (fill, dict, "an annotation without 'stage' and 'name'");
  if (fill->error != NULL)
    return;
  g_autofree char *text = g_strdup_printf ("%s %s", stage != NULL ? stage : "", name != NULL ? name : "");
  CoopSnapMark mark = { time, coop_snap_string (&fill->snap->stacks, g_strstrip (text)) };
  for (guint d = 0; d < fill->snap->devices->len; d++)
    {
      CoopSnapDevice *device = fill->snap->devices->pdata[d];
      if (device->device == (int) number)
        {
          g_array_append_val (device->marks, mark);
          return;
        }
    }
  fill->snap->marks_of_nothing++;
}

static void
add_annotations (Fill *fill, CoopPickleValue list)
{
  for (guint64 i = 0; i < coop_pickle_length (fill->pickle, list) && fill->error == NULL; i++)
    {
      CoopPickleValue item = coop_snap_dict (fill, list, i, "annotation");
      if (item != 0)
        add_annotation (fill, item);
    }
  for (guint d = 0; d < fill->snap->devices->len; d++)
    g_array_sort (((CoopSnapDevice *) fill->snap->devices->pdata[d])->marks, by_time);
}

/* ---- all ---- */

/* A number for all devices, or a list of one each; at the top or among the settings. */
static guint64
per_device (const Fill *fill, CoopPickleValue top, CoopSnapKey key, int number)
{
  CoopPickleValue value = coop_snap_get (fill, top, key);
  guint64 out = 0;
  if (value == 0)
    value = coop_snap_get (fill, coop_snap_get (fill, top, COOP_KEY_ALLOCATOR_SETTINGS), key);
  if (coop_pickle_type (value) == COOP_PICKLE_LIST || coop_pickle_type (value) == COOP_PICKLE_TUPLE)
    value = coop_pickle_item (fill->pickle, value, (guint64) MAX (number, 0));
  return coop_pickle_int (fill->pickle, value, &out) ? out : 0;
}

static void
add_settings (Fill *fill, CoopPickleValue top)
{
  CoopPickleValue settings = coop_snap_get (fill, top, COOP_KEY_ALLOCATOR_SETTINGS);
  fill->snap->alloc_conf = g_strdup (coop_pickle_text (fill->pickle, coop_pickle_get (fill->pickle, settings, "PYTORCH_CUDA_ALLOC_CONF"), NULL));
  for (guint d = 0; d < fill->snap->devices->len; d++)
    {
      CoopSnapDevice *device = fill->snap->devices->pdata[d];
      device->overflowed = per_device (fill, top, COOP_KEY_OVERFLOWED, device->device) != 0;
      device->max_entries = per_device (fill, top, COOP_KEY_MAX_ENTRIES, device->device);
    }
}

static int
by_address (gconstpointer a, gconstpointer b)
{
  const CoopSnapSegment *x = a, *y = b;
  return x->addr < y->addr ? -1 : x->addr > y->addr;
}

static int
by_device (gconstpointer a, gconstpointer b)
{
  const CoopSnapDevice *x = *(gpointer *) a, *y = *(gpointer *) b;
  return x->device < y->device ? -1 : x->device > y->device;
}

/* Segments of one device lie side by side; what overlaps is not both true. */
static void
check_overlaps (Fill *fill, CoopSnapDevice *device)
{
  g_autoptr (GArray) sorted = g_array_copy (device->segments);
  g_array_sort (sorted, by_address);
  for (guint i = 1; i < sorted->len; i++)
    {
      const CoopSnapSegment *a = &g_array_index (sorted, CoopSnapSegment, i - 1), *b = a + 1;
      if (a->addr + a->bytes > b->addr)
        coop_snap_damaged (fill, MAX (a->dict, b->dict), "a segment overlaps another one");
    }
}

static void
fill_all (Fill *fill, CoopPickleValue root, CoopPickleValue segments)
{
  if (segments != root)
    coop_snap_check_keys (fill, root, COOP_IN_TOP);
  add_segments (fill, segments, FALSE);
  add_segments (fill, coop_snap_list (fill, root, COOP_KEY_HOST_SEGMENTS), TRUE);
  add_traces (fill, coop_snap_list (fill, root, COOP_KEY_DEVICE_TRACES), FALSE);
  add_traces (fill, coop_snap_list (fill, root, COOP_KEY_HOST_TRACES), TRUE);
  add_annotations (fill, coop_snap_list (fill, root, COOP_KEY_EXTERNAL_ANNOTATIONS));
  add_settings (fill, root);
  for (guint i = 0; i < fill->snap->devices->len; i++)
    check_overlaps (fill, fill->snap->devices->pdata[i]);
}

/* The list of segments, however empty; nothing if this is no snapshot. */
static CoopPickleValue
find_segments (const Fill *fill, CoopPickleValue root)
{
  if (coop_pickle_type (root) != COOP_PICKLE_LIST)
    {
      CoopPickleValue list = coop_snap_get (fill, root, COOP_KEY_SEGMENTS);
      return coop_pickle_type (list) == COOP_PICKLE_LIST ? list : 0;
    }
  /* until 1.13: the segments alone */
  return coop_pickle_length (fill->pickle, root) == 0
         || coop_snap_get (fill, coop_pickle_item (fill->pickle, root, 0), COOP_KEY_TOTAL_SIZE) != 0 ? root : 0;
}

gboolean
coop_snap_fill (CoopSnap *snap, const CoopPickle *pickle, GError **error)
{
  CoopSnapFill fill;
  CoopPickleValue root = coop_pickle_root (pickle);
  coop_snap_fill_init (&fill, snap, pickle);
  CoopPickleValue segments = find_segments (&fill, root);
  if (segments == 0)
    g_set_error (&fill.error, COOP_TRACE_ERROR, COOP_TRACE_ERROR_FOREIGN, "a pickle, but no memory snapshot: it has no list of segments");
  else
    fill_all (&fill, root, segments);
  snap->timed = !fill.untimed;
  g_ptr_array_sort (snap->devices, by_device);
  gboolean ok = fill.error == NULL;
  if (!ok)
    g_propagate_error (error, g_steal_pointer (&fill.error));
  coop_snap_fill_clear (&fill);
  return ok;
}
