/* SPDX-License-Identifier: Apache-2.0 */
/* Check: the naive map of memory. It shares no code with the model: an array of lives in address
 * order, every question answered by going through all of it. */
#include <string.h>

#include "trace/check-private.h"

static CheckLife *
life_at (Check *check, guint i)
{
  return &g_array_index (check->lives, CheckLife, i);
}

static CheckLife *
find (Check *check, guint64 id)
{
  for (guint i = 0; i < check->lives->len; i++)
    if (life_at (check, i)->id == id)
      return life_at (check, i);
  return NULL;
}

static void
drop (Check *check, const CheckLife *life)
{
  check->used -= life->bytes;
  g_array_remove_index (check->lives, (guint) (life - (CheckLife *) (gpointer) check->lives->data));
}

/* The largest run in [at, limit) without a life. */
static guint64
largest_in (Check *check, guint64 at, guint64 limit)
{
  guint64 largest = 0;
  for (guint i = 0; i < check->lives->len && at < limit; i++)
    {
      const CheckLife *life = life_at (check, i);
      guint64 end = life->addr + life->bytes;
      if (end <= at || life->addr >= limit)
        continue;
      if (life->addr > at)
        largest = MAX (largest, life->addr - at);
      at = end;
    }
  return limit > at ? MAX (largest, limit - at) : largest;
}

static void
measure_segments (Check *check)
{
  check->largest = 0;
  for (guint i = 0; i < check->segments->len; i++)
    {
      const CheckSegment *s = &g_array_index (check->segments, CheckSegment, i);
      check->largest = MAX (check->largest, largest_in (check, s->base, s->base + s->bytes));
    }
}

static void
segment (Check *check, const CoopEvent *ev)
{
  CheckSegment new_one = { ev->u.segment.id, ev->u.segment.base, ev->u.segment.bytes };
  gboolean born = ev->u.segment.born != 0;
  check->segmented |= !born || check->segments->len > 0 || new_one.base > 0 || new_one.bytes < check->capacity
                      || ev->more > 0;
  for (guint i = 0; i < check->segments->len; i++)
    {
      const CheckSegment *s = &g_array_index (check->segments, CheckSegment, i);
      if (born && s->base < new_one.base + new_one.bytes && new_one.base < s->base + s->bytes)
        {
          coop_check_say (check, ev->seq, COOP_FAULT_OVERLAP, "segment %" G_GUINT64_FORMAT " begins over segment %"
                          G_GUINT64_FORMAT, new_one.id, s->id);
          return;
        }
      if (born || s->id != new_one.id)
        continue;
      g_array_remove_index (check->segments, i);
      return;
    }
  if (born)
    g_array_append_val (check->segments, new_one);
  else if (!check->gap)
    coop_check_say (check, ev->seq, COOP_FAULT_FREE, "segment %" G_GUINT64_FORMAT " dies and is not there", new_one.id);
}

void
coop_check_measure (Check *check)
{
  if (check->segmented)
    {
      measure_segments (check);
      return;
    }
  guint64 at = 0, largest = 0, limit = check->budget;
  if (limit == 0 && check->lives->len > 0)
    limit = life_at (check, check->lives->len - 1)->addr + life_at (check, check->lives->len - 1)->bytes;
  for (guint i = 0; i < check->lives->len; i++)
    {
      const CheckLife *life = life_at (check, i);
      guint64 end = MIN (life->addr, limit);
      if (end > at)
        largest = MAX (largest, end - at);
      at = life->addr + life->bytes;
    }
  if (limit > at)
    largest = MAX (largest, limit - at);
  check->largest = largest;
}

static void
begin (Check *check, const CoopEvent *ev, const CheckLife *life)
{
  guint at = 0;
  if (life->bytes == 0 || life->addr + life->bytes < life->addr)
    {
      coop_check_say (check, ev->seq, COOP_FAULT_FORMAT, "block %" G_GUINT64_FORMAT " has no size", life->id);
      return;
    }
  for (guint i = 0; i < check->lives->len;)
    {
      CheckLife *other = life_at (check, i);
      gboolean clash = other->addr < life->addr + life->bytes && life->addr < other->addr + other->bytes;
      if (!clash && other->id != life->id)
        {
          i++;
          continue;
        }
      if (!check->gap)
        coop_check_say (check, ev->seq, COOP_FAULT_OVERLAP, "block %" G_GUINT64_FORMAT " begins over block %"
                        G_GUINT64_FORMAT, life->id, other->id);
      drop (check, other);
    }
  if (check->budget > 0 && !check->segmented && life->addr + life->bytes > check->budget)
    coop_check_say (check, ev->seq, COOP_FAULT_BUDGET, "block %" G_GUINT64_FORMAT " ends at %" G_GUINT64_FORMAT
                    ", past the budget of %" G_GUINT64_FORMAT, life->id, life->addr + life->bytes, check->budget);
  while (at < check->lives->len && life_at (check, at)->addr < life->addr)
    at++;
  g_array_insert_val (check->lives, at, *life);
  check->used += life->bytes;
  check->peak = MAX (check->peak, check->used);
}

/* A life ends. Returns it as it was; made up from the event if it is not there. */
static CheckLife
end (Check *check, const CoopEvent *ev, guint64 id, guint64 addr, guint64 bytes, guint64 tensor)
{
  CheckLife copy = { .id = id, .addr = addr, .bytes = bytes, .tensor = tensor, .born_unknown = TRUE };
  CheckLife *life = find (check, id);
  if (life == NULL)
    {
      if (!check->gap)
        coop_check_say (check, ev->seq, COOP_FAULT_FREE, "%s of block %" G_GUINT64_FORMAT ", which is not there",
                        coop_event_kind_label (ev->kind), id);
      return copy;
    }
  if (life->addr != addr || life->bytes != bytes || (tensor != 0 && life->tensor != tensor && !check->gap))
    coop_check_say (check, ev->seq, COOP_FAULT_FREE, "%s of block %" G_GUINT64_FORMAT " names another place, size or tensor",
                    coop_event_kind_label (ev->kind), id);
  copy = *life;
  if (tensor != 0)
    copy.tensor = tensor;
  drop (check, life);
  if (!check->gap)
    coop_check_life (check, &copy, ev);
  check->n_lives++;
  return copy;
}

static void
claim (Check *check, guint64 block, guint64 tensor)
{
  CheckLife *life = find (check, block);
  if (life != NULL)
    life->tensor = tensor;
}

void
coop_check_map (Check *check, const CoopEvent *ev)
{
  CheckLife life;
  switch (ev->kind)
    {
    case COOP_EVENT_POOL:
      check->budget = ev->u.pool.budget;
      check->capacity = ev->u.pool.capacity;
      break;
    case COOP_EVENT_SEGMENT:
      segment (check, ev);
      break;
    case COOP_EVENT_POLICY:
      if (ev->u.policy.param == COOP_PARAM_BUDGET)
        check->budget = (guint64) ev->u.policy.new_bits;
      break;
    case COOP_EVENT_ALLOC:
      life = (CheckLife) { ev->u.alloc.block, ev->u.alloc.addr, ev->u.alloc.bytes, ev->u.alloc.requested, 0,
                           ev->u.alloc.op, ev->seq, ev->ts, FALSE };
      begin (check, ev, &life);
      break;
    case COOP_EVENT_FREE:
    case COOP_EVENT_EVICT: /* the same fields */
      end (check, ev, ev->u.free.block, ev->u.free.addr, ev->u.free.bytes, ev->u.free.tensor);
      break;
    case COOP_EVENT_HANDOVER:
      life = end (check, ev, ev->u.handover.old_block, ev->u.handover.addr, ev->u.handover.bytes, 0);
      life.id = ev->u.handover.block;
      life.tensor = ev->u.handover.tensor;
      life.born_event = ev->seq;
      life.born_ns = ev->ts;
      life.born_unknown = FALSE;
      begin (check, ev, &life);
      break;
    case COOP_EVENT_MOVE:
      life = end (check, ev, ev->u.move.block, ev->u.move.from, ev->u.move.bytes, 0);
      life.id = ev->u.move.new_block;
      life.addr = ev->u.move.to;
      life.born_event = ev->seq;
      life.born_ns = ev->ts;
      life.born_unknown = FALSE;
      begin (check, ev, &life);
      break;
    case COOP_EVENT_TENSOR:
      claim (check, ev->u.tensor.block, ev->u.tensor.id);
      break;
    case COOP_EVENT_WRITE:
      claim (check, ev->u.write.block, ev->u.write.new_tensor);
      break;
    default:
      return;
    }
  coop_check_measure (check);
}
