/* SPDX-License-Identifier: Apache-2.0 */
/* Snapshot: arrays -> events -> trace. First what names things, then what was there before, then the
 * entries in order. A free that is completed at once is one event; one that waits for a stream pins
 * its block until then. */
#include "trace/snapshot-private.h"

#include <string.h>

#include "core/policy.h"
#include "trace/space.h"

#define CLOCK_US 1   /* between two entries of a file without times */
#define GO_ON_EVERY 8192

typedef struct {
  CoopNode node; /* first */
  guint64 block;
  guint32 life;
} Live;

typedef struct {
  CoopSnapshotJob *job;
  const CoopSnap *snap;
  const CoopSnapDevice *device;
  CoopModel *model;
  CoopStore *store;
  CoopSnapLives lives;
  CoopSnapMap map;
  CoopSnapSpace space;
  CoopSpace live;       /* Live, by place on the map */
  Live **of_life;       /* by number of the life; NULL: not now */
  guint64 seq, ts, base_us, last_block, waiting, faults;
  guint next_mark;
  gboolean cancelled;
} Write;

static void
emit (Write *w, CoopEvent *ev, const void *body, guint records)
{
  ev->seq = w->seq++;
  ev->ts = w->ts;
  ev->more = (guint16) records;
  w->faults += coop_model_apply (w->model, ev, body, NULL) != COOP_FAULT_NONE;
  coop_store_append (w->store, w->model, ev, body);
  if (w->seq % GO_ON_EVERY == 0 && w->job->go_on != NULL)
    w->cancelled |= !w->job->go_on (w->job->user, 0.5 + 0.5 * (double) w->seq / (double) (w->seq + 2 * GO_ON_EVERY + w->device->events->len));
}

/* A text in as many records as it takes; what is longer than a body can be is cut. */
static guint
text_body (const char *text, gsize *bytes, void **body)
{
  *bytes = MIN (strlen (text), 64 * 1000);
  guint records = (guint) (*bytes + 63) / 64;
  *body = g_malloc0 (MAX (1, records) * 64);
  memcpy (*body, text, *bytes);
  return records;
}

/* ---- names ---- */

static void
write_names (Write *w)
{
  const CoopSnapStacks *stacks = &w->snap->stacks;
  for (guint i = 0; i < stacks->strings->len; i++)
    {
      g_autofree void *body = NULL;
      gsize bytes;
      guint records = text_body (stacks->strings->pdata[i], &bytes, &body);
      CoopEvent ev = { .kind = COOP_EVENT_STRING, .u.string = { i + 1, bytes } };
      emit (w, &ev, body, records);
    }
  for (guint i = 0; i < stacks->frames->len; i++)
    {
      const CoopSnapFrame *f = &g_array_index (stacks->frames, CoopSnapFrame, i);
      CoopEvent ev = { .kind = COOP_EVENT_FRAME, .u.frame = { i + 1, f->file, f->func, f->line } };
      emit (w, &ev, NULL, 0);
    }
  for (guint i = 0; i < stacks->stacks->len; i++)
    {
      const CoopSnapStack *s = &g_array_index (stacks->stacks, CoopSnapStack, i);
      CoopEvent ev = { .kind = COOP_EVENT_STACK, .u.stack = { i + 1, s->parent, s->frame } };
      emit (w, &ev, NULL, 0);
    }
}

static void
write_policy (Write *w, CoopParam param, gint64 value)
{
  CoopEvent ev = { .kind = COOP_EVENT_POLICY };
  ev.u.policy.param = param;
  ev.u.policy.old_bits = coop_model_policy (w->model)->v[param].i;
  ev.u.policy.new_bits = value;
  emit (w, &ev, NULL, 0);
}

static void
write_pool (Write *w)
{
  CoopEvent ev = { .kind = COOP_EVENT_POOL };
  ev.u.pool.id = 1;
  ev.u.pool.capacity = w->map.bytes;
  ev.u.pool.device = (guint32) (w->device->device + 1);
  ev.u.pool.allocator = COOP_ALLOCATOR_CACHING;
  emit (w, &ev, NULL, 0);
  write_policy (w, COOP_PARAM_EVICTOR, COOP_EVICTOR_NONE);
  write_policy (w, COOP_PARAM_ALLOCATOR, COOP_ALLOCATOR_CACHING);
  write_policy (w, COOP_PARAM_BUDGET, 0);
}

static void
write_warning (Write *w, const char *text)
{
  g_autofree void *body = NULL;
  gsize bytes;
  guint records = text_body (text, &bytes, &body);
  CoopEvent ev = { .kind = COOP_EVENT_WARNING };
  emit (w, &ev, body, records);
}

/* ---- segments ---- */

/* What entries do not say of a segment, its picture at the end may. */
static void
complete (const Write *w, CoopSnapSegment *segment)
{
  for (guint i = 0; i < w->device->segments->len; i++)
    {
      const CoopSnapSegment *known = &g_array_index (w->device->segments, CoopSnapSegment, i);
      if (segment->addr < known->addr || segment->addr - known->addr >= known->bytes)
        continue;
      segment->small = known->small;
      if (segment->pool == 0)
        segment->pool = known->pool;
      return;
    }
}

static void
end_life (Write *w, Live *live, guint32 stack, guint64 stream)
{
  CoopSiteBody site = { .stack = stack, .stream = stream };
  CoopEvent ev = { .kind = COOP_EVENT_FREE };
  ev.u.free.block = live->block;
  ev.u.free.addr = live->node.addr;
  ev.u.free.bytes = live->node.bytes;
  emit (w, &ev, &site, stack != 0 || stream != 0);
  coop_space_remove (&w->live, &live->node);
  w->of_life[live->life] = NULL;
  g_slice_free (Live, live);
}

/* A segment that begins in the middle of a block: they cannot both be, and the later one is shown. */
static void
end_under (Write *w, guint64 base)
{
  CoopNode *there = base > 0 ? coop_space_overlap (&w->live, base, 1) : NULL;
  if (there == NULL || there->addr == base)
    return;
  w->lives.disagree++;
  end_life (w, (Live *) there, 0, 0);
}

static void
segment_changed (gpointer user, const CoopSnapPlace *place, gboolean born)
{
  Write *w = user;
  const CoopSnapSegment *segment = &place->segment;
  CoopSegmentBody body = { .address = segment->addr, .stream = segment->stream, .stack = segment->stack };
  CoopEvent ev = { .kind = COOP_EVENT_SEGMENT };
  ev.u.segment.id = place->id;
  ev.u.segment.pool = 1;
  ev.u.segment.base = coop_snap_map_at (&w->map, segment->addr);
  ev.u.segment.bytes = segment->bytes;
  ev.u.segment.born = (guint64) born;
  if (born)
    end_under (w, ev.u.segment.base);
  if (segment->pool != 0)
    {
      const CoopSnapPool *pool = &g_array_index (w->snap->pools, CoopSnapPool, segment->pool - 1);
      body.private_a = pool->a;
      body.private_b = pool->b;
    }
  body.flags = (segment->small ? COOP_SEGMENT_SMALL : 0) | (segment->expandable ? COOP_SEGMENT_EXPANDABLE : 0);
  for (guint i = 0; i < w->map.loose->len; i++)
    if (g_array_index (w->map.loose, CoopSnapSegment, i).addr == segment->addr)
      body.flags |= COOP_SEGMENT_GUESSED;
  emit (w, &ev, born ? &body : NULL, born);
}

static void
write_space_begin (Write *w)
{
  CoopSnapSpace before;
  coop_snap_space_init (&before);
  coop_snap_space_begin (&before, w->device, &w->map);
  for (guint i = 0; i < before.places->len; i++)
    coop_snap_space_add (&w->space, &g_array_index (before.places, CoopSnapPlace, i).segment);
  coop_snap_space_clear (&before);
}

/* ---- blocks ---- */

/* Ends what lives where a block begins; FALSE: of two that were there before, the first stays. */
static gboolean
make_way (Write *w, const CoopSnapLife *life, guint64 addr)
{
  for (CoopNode *there; (there = coop_space_overlap (&w->live, addr, life->bytes)) != NULL;)
    {
      w->lives.disagree++;
      if (life->born == COOP_SNAP_NONE)
        return FALSE;
      end_life (w, (Live *) there, 0, 0);
    }
  if (coop_snap_space_begins_in (&w->space, life->addr, life->addr + life->bytes))
    {
      CoopSnapSegment own = { .addr = life->addr, .bytes = life->bytes, .stream = life->stream };
      w->lives.disagree++;
      coop_snap_space_add (&w->space, &own);
    }
  return TRUE;
}

static void
begin_life (Write *w, guint32 number)
{
  const CoopSnapLife *life = &g_array_index (w->lives.lives, CoopSnapLife, number);
  gboolean older = life->born == COOP_SNAP_NONE;
  guint64 addr = coop_snap_map_at (&w->map, life->addr);
  if (!make_way (w, life, addr))
    return;
  const CoopSnapPlace *place = coop_snap_space_at (&w->space, life->addr);
  CoopSiteBody site = { .stack = life->stack, .stream = life->stream, .segment = place != NULL ? place->id : 0,
                        .kind = older ? COOP_KIND_UNKNOWN : life->kind, .older = (guint32) older };
  Live *live = g_slice_new0 (Live);
  live->block = ++w->last_block;
  live->life = number;
  live->node.addr = addr;
  live->node.bytes = life->bytes;
  coop_space_insert (&w->live, &live->node, live->block * G_GUINT64_CONSTANT (0x9e3779b97f4a7c15));
  w->of_life[number] = live;
  CoopEvent ev = { .kind = COOP_EVENT_ALLOC };
  ev.u.alloc.block = live->block;
  ev.u.alloc.addr = addr;
  ev.u.alloc.bytes = life->bytes;
  ev.u.alloc.requested = life->requested;
  emit (w, &ev, &site, 1);
}

static void
pin (Write *w, const Live *live, guint32 stack)
{
  CoopEvent ev = { .kind = COOP_EVENT_PIN };
  ev.u.pin.block = live->block;
  ev.u.pin.reason = COOP_PIN_PENDING;
  ev.u.pin.count = 1;
  emit (w, &ev, NULL, 0);
  w->waiting += live->node.bytes;
}

static void
write_older (Write *w)
{
  for (guint32 i = 0; i < w->lives.lives->len && g_array_index (w->lives.lives, CoopSnapLife, i).born == COOP_SNAP_NONE; i++)
    {
      begin_life (w, i);
      if (w->of_life[i] != NULL && g_array_index (w->lives.lives, CoopSnapLife, i).pending)
        pin (w, w->of_life[i], 0);
    }
}

/* ---- entries ---- */

static void
write_mark (Write *w, guint32 text)
{
  CoopEvent ev = { .kind = COOP_EVENT_ANNOTATION, .u.annotation = { text } };
  emit (w, &ev, NULL, 0);
}

static void
write_oom (Write *w, const CoopSnapEvent *entry)
{
  const CoopModelTotals *t = coop_model_totals (w->model);
  struct {
    CoopOomBody oom;
    CoopSiteBody site;
  } body = { .oom = { .unclaimed = t->used - w->waiting },
             .site = { .stack = entry->stack, .stream = entry->stream, .device_free = entry->device_free } };
  CoopEvent ev = { .kind = COOP_EVENT_OOM };
  ev.u.oom.asked = entry->size;
  ev.u.oom.free = t->free;
  ev.u.oom.largest = t->largest;
  emit (w, &ev, &body, 2);
  if (w->waiting == 0)
    return;
  char asked[32], waiting[32];
  coop_size_format (entry->size, asked, sizeof asked);
  coop_size_format (w->waiting, waiting, sizeof waiting);
  g_autofree char *text = g_strdup_printf ("out of memory: %s asked while %s are freed and wait for a stream", asked, waiting);
  write_warning (w, text);
}

/* Is the block that somebody lets go free at once? */
static gboolean
completed_at_once (const Write *w, guint32 i)
{
  const CoopSnapLife *life = &g_array_index (w->lives.lives, CoopSnapLife, g_array_index (w->lives.of_event, guint32, i));
  return life->end == i + 1 || life->end == i;
}

static void
write_free (Write *w, guint32 i, const CoopSnapEvent *entry)
{
  guint32 number = g_array_index (w->lives.of_event, guint32, i);
  Live *live = w->of_life[number];
  const CoopSnapLife *life = &g_array_index (w->lives.lives, CoopSnapLife, number);
  if (live == NULL)
    return;
  if (entry->action == COOP_SNAP_FREE_REQUESTED && life->end != i)
    {
      if (!completed_at_once (w, i))
        pin (w, live, entry->stack);
      return;
    }
  if (entry->action == COOP_SNAP_FREE_COMPLETED && life->asked != COOP_SNAP_NONE && life->asked + 1 < i)
    w->waiting -= live->node.bytes;
  end_life (w, live, entry->stack, 0);
}

static void
write_entry (Write *w, guint32 i)
{
  const CoopSnapEvent *entry = &g_array_index (w->device->events, CoopSnapEvent, i);
  CoopSnapSegment segment;
  gboolean born;
  guint64 ts = w->snap->timed ? (entry->time_us - MIN (entry->time_us, w->base_us)) * 1000 : (i + 1) * CLOCK_US * 1000;
  for (; w->next_mark < w->device->marks->len; w->next_mark++)
    {
      const CoopSnapMark *mark = &g_array_index (w->device->marks, CoopSnapMark, w->next_mark);
      if (w->snap->timed && mark->time_us > entry->time_us)
        break;
      if (w->snap->timed)
        w->ts = MAX (w->ts, (mark->time_us - MIN (mark->time_us, w->base_us)) * 1000);
      write_mark (w, mark->text);
    }
  w->ts = MAX (w->ts, ts);
  switch (entry->action)
    {
    case COOP_SNAP_ALLOC:
      begin_life (w, g_array_index (w->lives.of_event, guint32, i));
      break;
    case COOP_SNAP_FREE_REQUESTED:
    case COOP_SNAP_FREE_COMPLETED:
      write_free (w, i, entry);
      break;
    case COOP_SNAP_OOM:
      write_oom (w, entry);
      break;
    case COOP_SNAP_SNAPSHOT:
    case COOP_SNAP_USER:
    case COOP_SNAP_ANNOTATE:
      write_mark (w, entry->text);
      break;
    default:
      if (!coop_snap_segment_of (entry, &segment, &born))
        break;
      complete (w, &segment);
      if (born)
        coop_snap_space_add (&w->space, &segment);
      else
        coop_snap_space_remove (&w->space, segment.addr, segment.addr + segment.bytes);
    }
}

static void
write_entries (Write *w)
{
  for (guint32 i = 0; i < w->device->events->len && !w->cancelled; i++)
    write_entry (w, i);
  for (; w->next_mark < w->device->marks->len; w->next_mark++)
    {
      const CoopSnapMark *mark = &g_array_index (w->device->marks, CoopSnapMark, w->next_mark);
      if (w->snap->timed && mark->time_us > w->base_us)
        w->ts = MAX (w->ts, (mark->time_us - w->base_us) * 1000);
      write_mark (w, mark->text);
    }
}

/* ---- what is missing ---- */

static void
note (Write *w, GPtrArray *notes, const char *format, ...) G_GNUC_PRINTF (3, 4);

static void
note (Write *w, GPtrArray *notes, const char *format, ...)
{
  va_list args;
  va_start (args, format);
  g_autofree char *text = g_strdup_vprintf (format, args);
  va_end (args);
  gboolean many = w->snap->devices->len > 1;
  g_ptr_array_add (notes, many && w->device->device >= 0 ? g_strdup_printf ("cuda:%d: %s", w->device->device, text)
                          : many ? g_strdup_printf ("pinned memory: %s", text) : g_strdup (text));
}

static void
find_notes (Write *w, GPtrArray *notes)
{
  const CoopSnapLives *lives = &w->lives;
  if (w->device->events->len == 0)
    note (w, notes, "no history was recorded: this is how memory looked at the end, and no more");
  else if (w->device->overflowed && w->device->max_entries > 0)
    note (w, notes, "the history overflowed: only the latest %" G_GUINT64_FORMAT " entries are there", w->device->max_entries);
  else if (w->device->overflowed)
    note (w, notes, "the history overflowed: only the latest %u entries are there", w->device->events->len);
  if (w->device->events->len > 0 && lives->n_older > 0)
    note (w, notes, "the history starts late: %" G_GUINT64_FORMAT " %s older than it, of which %" G_GUINT64_FORMAT
          " %s to the end; who made them is not known", lives->n_older, lives->n_older == 1 ? "block is" : "blocks are",
          lives->n_older_alive, lives->n_older_alive == 1 ? "lives" : "live");
  if (lives->disagree > 0)
    note (w, notes, "history and final state disagree about %" G_GUINT64_FORMAT " %s; the history is shown", lives->disagree,
          lives->disagree == 1 ? "block" : "blocks");
  if (w->map.loose->len > 0 && w->device->events->len > 0)
    note (w, notes, "%u %s to no segment that is known", w->map.loose->len,
          w->map.loose->len == 1 ? "range belongs" : "ranges belong");
  if (!w->snap->timed && w->device->events->len > 0)
    note (w, notes, "the history has no times: one microsecond an entry is made up");
}

/* ---- all ---- */

static void
find_base (Write *w)
{
  if (!w->snap->timed)
    return;
  w->base_us = w->device->events->len > 0 ? g_array_index (w->device->events, CoopSnapEvent, 0).time_us : 0;
  for (guint i = 0; i < w->device->events->len; i++) /* they come in order, but who knows */
    w->base_us = MIN (w->base_us, g_array_index (w->device->events, CoopSnapEvent, i).time_us);
  if (w->device->marks->len > 0 && w->device->events->len > 0)
    w->base_us = MIN (w->base_us, g_array_index (w->device->marks, CoopSnapMark, 0).time_us);
}

static void
write_meta (Write *w, GPtrArray *notes)
{
  g_autofree char *source = g_path_get_basename (w->job->path);
  g_autofree char *device = w->device->device < 0 ? g_strdup ("pinned memory of the host")
                                                  : g_strdup_printf ("cuda:%d", w->device->device);
  g_autoptr (GString) all = g_string_new (NULL);
  coop_store_set_meta (w->store, "source", "pytorch memory snapshot");
  coop_store_set_meta (w->store, "source_file", source);
  coop_store_set_meta (w->store, "device", device);
  coop_store_set_meta (w->store, "clock", w->snap->timed && w->device->events->len > 0 ? "recorded" : "virtual");
  if (w->snap->alloc_conf != NULL && *w->snap->alloc_conf != 0)
    coop_store_set_meta (w->store, "pytorch_cuda_alloc_conf", w->snap->alloc_conf);
  for (guint i = 0; i < notes->len; i++)
    g_string_append_printf (all, "%s%s", i > 0 ? "\n" : "", (char *) notes->pdata[i]);
  if (all->len > 0)
    coop_store_set_meta (w->store, "incomplete", all->str);
}

static void
write_all (Write *w)
{
  g_autoptr (GPtrArray) notes = g_ptr_array_new_with_free_func (g_free);
  find_base (w);
  coop_store_set_wall (w->store, (gint64) w->base_us * 1000, 0);
  write_names (w);
  write_pool (w);
  write_space_begin (w);
  /* Blocks of before that contradict each other show up only now. */
  write_older (w);
  find_notes (w, notes);
  for (guint i = 0; i < notes->len; i++)
    write_warning (w, notes->pdata[i]);
  write_entries (w);
  g_ptr_array_set_size (notes, 0);
  find_notes (w, notes);
  write_meta (w, notes);
  for (guint i = 0; i < notes->len; i++)
    g_ptr_array_add (w->job->notes, g_strdup (notes->pdata[i]));
  CoopEvent end = { .kind = COOP_EVENT_END };
  emit (w, &end, NULL, 0);
  coop_store_set_wall (w->store, (gint64) w->base_us * 1000, (gint64) (w->base_us * 1000 + w->ts));
  coop_store_set_stat (w->store, "model_faults", (gint64) w->faults);
}

static void
clear (Write *w)
{
  for (guint i = 0; i < w->lives.lives->len; i++)
    if (w->of_life[i] != NULL)
      g_slice_free (Live, w->of_life[i]);
  g_free (w->of_life);
  coop_snap_lives_clear (&w->lives);
  coop_snap_map_clear (&w->map);
  coop_snap_space_clear (&w->space);
  coop_model_free (w->model);
}

gboolean
coop_snap_write (CoopSnapshotJob *job, const CoopSnap *snap, const CoopSnapDevice *device, const char *out,
                 GError **error)
{
  Write w = { .job = job, .snap = snap, .device = device };
  w.store = coop_store_create (out, NULL, error);
  if (w.store == NULL)
    return FALSE;
  w.model = coop_model_new ();
  coop_snap_lives_find (&w.lives, device);
  coop_snap_map_make (&w.map, device, &w.lives);
  coop_snap_space_init (&w.space);
  w.space.changed = segment_changed;
  w.space.user = &w;
  w.of_life = g_new0 (Live *, w.lives.lives->len + 1);
  write_all (&w);
  gboolean cancelled = w.cancelled;
  clear (&w);
  gboolean ok = coop_store_close (w.store, COOP_RUN_ENDED, 0, error);
  if (ok && cancelled)
    g_set_error (error, COOP_TRACE_ERROR, COOP_TRACE_ERROR_CANCELLED, "cancelled");
  return ok && !cancelled;
}
