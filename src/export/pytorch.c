/* SPDX-License-Identifier: Apache-2.0 */
/* PyTorch: a trace as torch.cuda.memory._dump_snapshot would have written it, for PyTorch's own memory
 * viewer and for tools built on its format.
 *
 * What it holds: where blocks begin and end, with the stack of the operator; requests that failed; steps
 * as annotations. An evicted block is a free; a block that moved is freed and made again. What it cannot
 * hold is lost: why a block was chosen, what was recomputed, pins, budgets. Addresses are those of the
 * pool's map, from BASE on. Times are Unix microseconds. */
#include "export/pytorch.h"

#include <string.h>

#define BASE G_GUINT64_CONSTANT (0x7f0000000000)
#define PAGE (G_GUINT64_CONSTANT (2) << 20) /* of the device, and the step of a segment's size */
#define MAX_STACK 256

static guint64
number (const char *text)
{
  return text != NULL ? g_ascii_strtoull (text, NULL, 10) : 0;
}

static void
key_uint (CoopSnapshotWriter *w, const char *key, guint64 value)
{
  coop_pickler_text (w->pickle, key);
  coop_pickler_uint (w->pickle, value);
}

static void
key_text (CoopSnapshotWriter *w, const char *key, const char *value)
{
  coop_pickler_text (w->pickle, key);
  coop_pickler_text (w->pickle, value);
}

/* A pool on the host claims far more of the address space than it ever uses: what is shown ends with the
 * last block. */
static guint64
segment_bytes (const CoopSnapshotSegment *s)
{
  if (s->real.address != 0)
    return s->bytes;
  guint64 used = s->end > s->base ? (s->end - s->base + PAGE - 1) / PAGE * PAGE : PAGE;
  return MIN (used, s->bytes);
}

/* ---- frames ---- */

static void
put_frame (CoopSnapshotWriter *w, const CoopSnapshotStack *stack)
{
  gpointer known = g_hash_table_lookup (w->dicts, &stack->frame);
  if (known != NULL)
    {
      coop_pickler_get (w->pickle, GPOINTER_TO_UINT (known) - 1);
      return;
    }
  coop_pickler_begin_dict (w->pickle);
  key_text (w, "name", stack->func);
  key_text (w, "filename", stack->file);
  coop_pickler_text (w->pickle, "line");
  coop_pickler_int (w->pickle, stack->line);
  coop_pickler_end_dict (w->pickle);
  g_hash_table_insert (w->dicts, g_memdup2 (&stack->frame, 8), GUINT_TO_POINTER (coop_pickler_keep (w->pickle) + 1));
}

/* "frames": a list, the innermost first; one list a stack. */
static void
put_frames (CoopSnapshotWriter *w, guint64 stack)
{
  gpointer known = g_hash_table_lookup (w->lists, &stack);
  coop_pickler_text (w->pickle, "frames");
  if (known != NULL)
    {
      coop_pickler_get (w->pickle, GPOINTER_TO_UINT (known) - 1);
      return;
    }
  coop_pickler_begin_list (w->pickle);
  guint64 at = stack;
  const CoopSnapshotStack *frame;
  for (guint depth = 0; depth < MAX_STACK && (frame = g_hash_table_lookup (w->stacks, &at)) != NULL; depth++)
    {
      put_frame (w, frame);
      at = frame->parent;
    }
  coop_pickler_end_list (w->pickle);
  g_hash_table_insert (w->lists, g_memdup2 (&stack, 8), GUINT_TO_POINTER (coop_pickler_keep (w->pickle) + 1));
}

static guint64
stack_of_op (CoopSnapshotWriter *w, guint64 op)
{
  const guint64 *stack = g_hash_table_lookup (w->running, &op);
  return stack != NULL ? *stack : 0;
}

/* ---- the history ---- */

/* Where something on the map is for the device. */
static guint64
address (const CoopSnapshotWriter *w, guint64 addr)
{
  for (guint i = w->segments->len; i-- > 0;)
    {
      const CoopSnapshotSegment *s = &g_array_index (w->segments, CoopSnapshotSegment, i);
      if (s->real.address != 0 && s->base <= addr && addr - s->base < s->bytes)
        return s->real.address + (addr - s->base);
    }
  return BASE + addr;
}

static void
entry (CoopSnapshotWriter *w, const char *action, guint64 ts, guint64 stream, guint64 stack)
{
  coop_pickler_begin_dict (w->pickle);
  key_text (w, "action", action);
  key_uint (w, "stream", stream);
  key_uint (w, "time_us", w->start_us + ts / 1000);
  put_frames (w, stack);
}

static void
whole_entry (CoopSnapshotWriter *w, const char *action, guint64 ts, guint64 addr, guint64 size, guint64 stream, guint64 stack)
{
  entry (w, action, ts, stream, stack);
  key_uint (w, "addr", address (w, addr));
  key_uint (w, "size", size);
  coop_pickler_end_dict (w->pickle);
}

/* ---- blocks ---- */

static void
put_alloc (CoopSnapshotWriter *w, const CoopEvent *ev, const void *body)
{
  guint64 requested = ev->u.alloc.requested > 0 ? ev->u.alloc.requested : ev->u.alloc.bytes;
  CoopSiteBody site = coop_event_site (ev, body, 0);
  guint64 stack = stack_of_op (w, ev->u.alloc.op);
  CoopSnapshotBlock block = { ev->u.alloc.addr, ev->u.alloc.bytes, requested, stack != 0 ? stack : site.stack, site.stream, FALSE };
  if (!site.older) /* it was there before: its history is not known */
    whole_entry (w, "alloc", ev->ts, block.addr, block.requested, block.stream, block.stack);
  coop_snapshot_set (w->blocks, ev->u.alloc.block, &block, sizeof block);
}

/* Takes the block out; one that nobody saw begin is made up from what the event says. */
static CoopSnapshotBlock
take_block (CoopSnapshotWriter *w, guint64 id, guint64 addr, guint64 bytes)
{
  CoopSnapshotBlock block = { addr, bytes, bytes, 0, 0, FALSE };
  const CoopSnapshotBlock *known = g_hash_table_lookup (w->blocks, &id);
  if (known != NULL)
    block = *known;
  g_hash_table_remove (w->blocks, &id);
  return block;
}

static void
put_free (CoopSnapshotWriter *w, guint64 ts, const CoopSnapshotBlock *block, guint64 stack)
{
  if (!block->pending)
    whole_entry (w, "free_requested", ts, block->addr, block->requested, block->stream, stack);
  whole_entry (w, "free_completed", ts, block->addr, block->requested, block->stream, stack);
}

static void
put_pending (CoopSnapshotWriter *w, const CoopEvent *ev)
{
  CoopSnapshotBlock *block = g_hash_table_lookup (w->blocks, &ev->u.pin.block);
  if (ev->u.pin.reason != COOP_PIN_PENDING || block == NULL || block->pending)
    return;
  block->pending = TRUE;
  whole_entry (w, "free_requested", ev->ts, block->addr, block->requested, block->stream, 0);
}

static void
put_segment_event (CoopSnapshotWriter *w, const CoopEvent *ev, const void *body)
{
  for (guint i = 0; i < w->segments->len; i++)
    {
      CoopSnapshotSegment *s = &g_array_index (w->segments, CoopSnapshotSegment, i);
      if (s->born != ev->seq && s->died != ev->seq)
        continue;
      if (s->born == ev->seq && ev->more > 0)
        memcpy (&s->real, body, sizeof s->real);
      gboolean maps = (s->real.flags & COOP_SEGMENT_EXPANDABLE) != 0;
      whole_entry (w, s->born == ev->seq ? (maps ? "segment_map" : "segment_alloc") : maps ? "segment_unmap" : "segment_free", ev->ts,
                   s->base, segment_bytes (s), s->real.stream, s->real.stack);
      if (s->died == ev->seq)
        s->real.address = 0; /* what comes to its place on the map is another one */
    }
}

static void
put_oom (CoopSnapshotWriter *w, const CoopEvent *ev, const void *body)
{
  CoopSiteBody site = coop_event_site (ev, body, 1);
  guint64 stack = stack_of_op (w, ev->u.oom.op);
  entry (w, "oom", ev->ts, site.stream, stack != 0 ? stack : site.stack);
  key_uint (w, "size", ev->u.oom.asked);
  key_uint (w, "device_free", site.device_free > 0 ? site.device_free : ev->u.oom.free);
  coop_pickler_end_dict (w->pickle);
}

static void
put_block_event (CoopSnapshotWriter *w, const CoopEvent *ev, const void *body)
{
  CoopSnapshotBlock block;
  switch (ev->kind)
    {
    case COOP_EVENT_ALLOC:
      put_alloc (w, ev, body);
      break;
    case COOP_EVENT_FREE:
    case COOP_EVENT_EVICT:
      block = take_block (w, ev->u.free.block, ev->u.free.addr, ev->u.free.bytes);
      put_free (w, ev->ts, &block, ev->kind == COOP_EVENT_FREE ? coop_event_site (ev, body, 0).stack : 0);
      break;
    case COOP_EVENT_HANDOVER: /* the same bytes under another number */
      block = take_block (w, ev->u.handover.old_block, ev->u.handover.addr, ev->u.handover.bytes);
      coop_snapshot_set (w->blocks, ev->u.handover.block, &block, sizeof block);
      break;
    default: /* move */
      block = take_block (w, ev->u.move.block, ev->u.move.from, ev->u.move.bytes);
      put_free (w, ev->ts, &block, 0);
      block.addr = ev->u.move.to;
      whole_entry (w, "alloc", ev->ts, block.addr, block.requested, block.stream, block.stack);
      coop_snapshot_set (w->blocks, ev->u.move.new_block, &block, sizeof block);
    }
}

static gboolean
take_event (gpointer user, const CoopEvent *ev, const void *body)
{
  CoopSnapshotWriter *w = user;
  switch (ev->kind)
    {
    case COOP_EVENT_OP_BEGIN:
      coop_snapshot_set (w->running, ev->u.op_begin.id, &ev->u.op_begin.stack, 8);
      break;
    case COOP_EVENT_OP_END:
      g_hash_table_remove (w->running, &ev->u.op_end.id);
      break;
    case COOP_EVENT_ALLOC:
    case COOP_EVENT_FREE:
    case COOP_EVENT_EVICT:
    case COOP_EVENT_HANDOVER:
    case COOP_EVENT_MOVE:
      put_block_event (w, ev, body);
      break;
    case COOP_EVENT_PIN:
      put_pending (w, ev);
      break;
    case COOP_EVENT_OOM:
      put_oom (w, ev, body);
      break;
    case COOP_EVENT_SEGMENT:
      put_segment_event (w, ev, body);
      break;
    default:
      break;
    }
  return coop_out_ok (w->out);
}

/* ---- the state at the end ---- */

static int
by_addr (gconstpointer a, gconstpointer b)
{
  const CoopSnapshotBlock *x = a, *y = b;
  return x->addr < y->addr ? -1 : x->addr > y->addr;
}

static void
put_block (CoopSnapshotWriter *w, const CoopSnapshotSegment *s, const CoopSnapshotBlock *block, const char *state)
{
  coop_pickler_begin_dict (w->pickle);
  key_uint (w, "address", (s->real.address != 0 ? s->real.address : BASE + s->base) + (block->addr - s->base));
  key_uint (w, "size", block->bytes);
  key_uint (w, "requested_size", block->requested);
  key_text (w, "state", state);
  put_frames (w, block->stack);
  coop_pickler_end_dict (w->pickle);
}

static void
put_hole (CoopSnapshotWriter *w, const CoopSnapshotSegment *s, guint64 from, guint64 to)
{
  if (to > from)
    put_block (w, s, &(CoopSnapshotBlock) { .addr = from, .bytes = to - from }, "inactive");
}

static void
put_segment_head (CoopSnapshotWriter *w, const CoopSnapshotSegment *s, guint64 allocated, guint64 active, guint64 requested)
{
  key_uint (w, "device", 0);
  key_uint (w, "address", s->real.address != 0 ? s->real.address : BASE + s->base);
  key_uint (w, "total_size", segment_bytes (s));
  key_uint (w, "allocated_size", allocated);
  key_uint (w, "active_size", active);
  key_uint (w, "requested_size", requested);
  key_uint (w, "stream", s->real.stream);
  key_text (w, "segment_type", (s->real.flags & COOP_SEGMENT_SMALL) != 0 ? "small" : "large");
  coop_pickler_text (w->pickle, "segment_pool_id");
  coop_pickler_pair (w->pickle, s->real.private_a, s->real.private_b);
  coop_pickler_text (w->pickle, "is_expandable");
  coop_pickler_bool (w->pickle, (s->real.flags & COOP_SEGMENT_EXPANDABLE) != 0);
  put_frames (w, s->real.stack);
}

/* The blocks of `live` from *at on that lie in the segment, and the holes between them. */
static void
put_segment (CoopSnapshotWriter *w, const CoopSnapshotSegment *s, const GArray *live, guint *at)
{
  guint64 end = s->base + segment_bytes (s), allocated = 0, active = 0, requested = 0, next = s->base;
  while (*at < live->len && g_array_index (live, CoopSnapshotBlock, *at).addr < s->base)
    (*at)++;
  guint first = *at;
  for (; *at < live->len && g_array_index (live, CoopSnapshotBlock, *at).addr < end; (*at)++)
    {
      const CoopSnapshotBlock *block = &g_array_index (live, CoopSnapshotBlock, *at);
      allocated += block->pending ? 0 : block->bytes;
      active += block->bytes;
      requested += block->requested;
    }
  coop_pickler_begin_dict (w->pickle);
  put_segment_head (w, s, allocated, active, requested);
  coop_pickler_text (w->pickle, "blocks");
  coop_pickler_begin_list (w->pickle);
  for (guint i = first; i < *at; i++)
    {
      const CoopSnapshotBlock *block = &g_array_index (live, CoopSnapshotBlock, i);
      put_hole (w, s, next, block->addr);
      put_block (w, s, block, block->pending ? "active_pending_free" : "active_allocated");
      next = MAX (next, block->addr + block->bytes);
    }
  put_hole (w, s, next, end);
  coop_pickler_end_list (w->pickle);
  coop_pickler_end_dict (w->pickle);
}

static void
put_segments (CoopSnapshotWriter *w)
{
  g_autoptr (GArray) live = g_array_new (FALSE, FALSE, sizeof (CoopSnapshotBlock));
  GHashTableIter iter;
  gpointer value;
  guint at = 0;
  g_hash_table_iter_init (&iter, w->blocks);
  while (g_hash_table_iter_next (&iter, NULL, &value))
    g_array_append_vals (live, value, 1);
  g_array_sort (live, by_addr);
  coop_pickler_text (w->pickle, "segments");
  coop_pickler_begin_list (w->pickle);
  for (guint i = 0; i < w->segments->len; i++)
    {
      const CoopSnapshotSegment *s = &g_array_index (w->segments, CoopSnapshotSegment, i);
      if (s->died == G_MAXUINT64)
        put_segment (w, s, live, &at);
    }
  coop_pickler_end_list (w->pickle);
}

/* ---- steps, as annotations ---- */

static void
put_annotation (CoopSnapshotWriter *w, const char *stage, const char *name, const char *ts)
{
  coop_pickler_begin_dict (w->pickle);
  key_text (w, "stage", stage);
  key_text (w, "name", name);
  key_uint (w, "device", 0);
  key_uint (w, "time_us", w->start_us + number (ts) / 1000);
  coop_pickler_end_dict (w->pickle);
}

static gboolean
take_step (gpointer user, int n, const char *const *names, const char *const *values, const int *types)
{
  g_autofree char *name = g_strconcat ("step ", values[0], NULL);
  put_annotation (user, "START", name, values[1]);
  put_annotation (user, "END", name, values[2]);
  return TRUE;
}

static gboolean
write_all (CoopSnapshotWriter *w, GError **error)
{
  CoopReader *reader = w->job->reader;
  coop_pickler_begin_dict (w->pickle);
  coop_pickler_text (w->pickle, "device_traces");
  coop_pickler_begin_list (w->pickle);
  coop_pickler_begin_list (w->pickle);
  if (w->segments->len == 1 && g_array_index (w->segments, CoopSnapshotSegment, 0).bytes == G_MAXUINT64)
    whole_entry (w, "segment_alloc", 0, 0, segment_bytes (&g_array_index (w->segments, CoopSnapshotSegment, 0)), 0, 0);
  if (coop_reader_events (reader, 0, take_event, w, error) < 0)
    return FALSE;
  coop_pickler_end_list (w->pickle);
  coop_pickler_end_list (w->pickle);
  put_segments (w);
  coop_pickler_text (w->pickle, "external_annotations");
  coop_pickler_begin_list (w->pickle);
  if (!coop_reader_query (reader, "SELECT step, ts, coalesce (lead (ts) OVER (ORDER BY event), (SELECT ts FROM event ORDER BY seq DESC"
                          " LIMIT 1)) FROM step ORDER BY event", COOP_QUERY_SECONDS, take_step, w, error))
    return FALSE;
  coop_pickler_end_list (w->pickle);
  coop_pickler_text (w->pickle, "allocator_settings");
  coop_pickler_begin_dict (w->pickle);
  key_text (w, "PYTORCH_CUDA_ALLOC_CONF", "");
  coop_pickler_text (w->pickle, "expandable_segments");
  coop_pickler_bool (w->pickle, FALSE);
  coop_pickler_end_dict (w->pickle);
  coop_pickler_end_dict (w->pickle);
  return TRUE;
}

gboolean
coop_export_pytorch (const CoopExportJob *job, CoopOut *out, GError **error)
{
  CoopSnapshotWriter w = { .job = job, .out = out, .pickle = coop_pickler_new (out), .texts = g_string_chunk_new (4096) };
  GHashTable **tables[] = { &w.stacks, &w.running, &w.blocks, &w.lists, &w.dicts };
  for (guint i = 0; i < G_N_ELEMENTS (tables); i++) /* those of numbers in the pickle hold no memory */
    *tables[i] = g_hash_table_new_full (g_int64_hash, g_int64_equal, g_free, i < 3 ? g_free : NULL);
  w.segments = g_array_new (FALSE, FALSE, sizeof (CoopSnapshotSegment));
  w.start_us = coop_export_start (job->reader) / 1000;
  gboolean done = coop_export_pytorch_gather (&w, error) && write_all (&w, error);
  coop_pickler_finish (w.pickle);
  for (guint i = 0; i < G_N_ELEMENTS (tables); i++)
    g_hash_table_unref (*tables[i]);
  g_array_unref (w.segments);
  g_string_chunk_free (w.texts);
  return done;
}
