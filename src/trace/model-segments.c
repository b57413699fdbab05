/* SPDX-License-Identifier: Apache-2.0 */
/* Model: segments. Most pools are one piece of memory from beginning to end, and nothing of this
 * concerns them. Where the device backs parts of the address space only, and parts that come and go, a
 * hole is what is free inside of one of them. */
#include "trace/model-private.h"

#define MAX_ADDR (G_GUINT64_CONSTANT (1) << 60)

static gboolean
possible (const CoopModel *model, guint64 base, guint64 bytes)
{
  if (bytes == 0 || bytes > MAX_ADDR || base > MAX_ADDR)
    return FALSE;
  for (guint i = 0; i < model->segments->len; i++)
    {
      const Segment *other = &g_array_index (model->segments, Segment, i);
      if (other->base < base + bytes && base < other->base + other->bytes)
        return FALSE;
    }
  return TRUE;
}

static void
wall_in (CoopModel *model, Segment *segment)
{
  segment->walls = g_new0 (CoopNode, 2);
  coop_space_wall_in (&model->space, segment->walls, segment->base, segment->base + segment->bytes);
}

void
coop_model_segment_add (CoopModel *model, guint64 id, guint64 base, guint64 bytes)
{
  Segment segment = { id, base, bytes, NULL };
  if (!possible (model, base, bytes))
    return;
  g_array_append_val (model->segments, segment);
  if (!coop_model_flat (model))
    wall_in (model, &g_array_index (model->segments, Segment, model->segments->len - 1));
}

void
coop_model_segment_all (CoopModel *model)
{
  if (!coop_model_flat (model))
    return;
  coop_space_segmented (&model->space);
  for (guint i = 0; i < model->segments->len; i++)
    wall_in (model, &g_array_index (model->segments, Segment, i));
}

void
coop_model_segments_free (CoopModel *model)
{
  for (guint i = 0; i < model->segments->len; i++)
    g_free (g_array_index (model->segments, Segment, i).walls);
  g_array_unref (model->segments);
}

static CoopFault
segment_died (const CoopApply *c)
{
  CoopModel *model = c->model;
  for (guint i = 0; i < model->segments->len; i++)
    {
      Segment *segment = &g_array_index (model->segments, Segment, i);
      if (segment->id != c->ev->u.segment.id)
        continue;
      coop_model_segment_all (model);
      coop_space_wall_out (&model->space, segment->walls);
      g_free (segment->walls);
      g_array_remove_index (model->segments, i);
      return COOP_FAULT_NONE;
    }
  return coop_apply_fault (c, COOP_FAULT_UNKNOWN, "segment %" G_GUINT64_FORMAT " is not there", c->ev->u.segment.id);
}

CoopFault
coop_apply_segment (const CoopApply *c)
{
  CoopModel *model = c->model;
  const typeof (c->ev->u.segment) *e = &c->ev->u.segment;
  if (!e->born)
    return segment_died (c);
  if (!possible (model, e->base, e->bytes))
    return coop_apply_fault (c, COOP_FAULT_OVERLAP, "segment %" G_GUINT64_FORMAT " begins over another, or has no size", e->id);
  gboolean whole = model->segments->len == 0 && e->base == 0 && e->bytes >= model->totals.capacity
                   && c->ev->more == 0; /* else the device has its own mind about it */
  if (!whole)
    coop_model_segment_all (model);
  coop_model_segment_add (model, e->id, e->base, e->bytes);
  return COOP_FAULT_NONE;
}
