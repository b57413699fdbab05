/* SPDX-License-Identifier: Apache-2.0 */
/* The ring: one producer, one consumer, positions that only grow, whole events.
 *
 * Why this and not a queue of fixed slots: nine events in ten are one or two records, a few carry
 * hundreds of operator inputs; with the body mapped twice an event of any size is one memcpy, and
 * it becomes visible with one release store, so a producer killed in the middle leaves nothing half.
 *
 * Each side believes its own position (private memory) and only compares the other's with it: a
 * distance larger than the ring is nonsense. The producer then drops, the consumer ends the session.
 */
#include "wire-private.h"

#include <string.h>
#include <time.h>

/* A consumer whose heart stood still this long is taken for dead, and nobody waits for it. */
#define DEAD_NS 1000000000ull
/* Events between two publications of the tail: room comes back early, the line is not hammered. */
#define TAIL_EVERY 32

/* Bytes that fit by this tail; 0 as well when the tail cannot be. */
static size_t
room_by (const CoopWire *wire, uint64_t head, uint64_t tail)
{
  uint64_t used = head - tail;
  return used > wire->size ? 0 : wire->size - used;
}

size_t
coop_ring_room (const CoopWire *wire)
{
  return room_by (wire, atomic_load_explicit (&wire->head, memory_order_relaxed),
                  atomic_load_explicit (&wire->header->tail, memory_order_acquire));
}

static bool
fits (CoopWire *wire, uint64_t head, size_t bytes)
{
  if (room_by (wire, head, wire->tail_seen) >= bytes)
    return true;
  uint64_t tail = atomic_load_explicit (&wire->header->tail, memory_order_acquire);
  if (head - tail > wire->size)
    return false;
  wire->tail_seen = tail;
  return room_by (wire, head, tail) >= bytes;
}

static void
publish (CoopWire *wire, uint64_t head, size_t bytes)
{
  CoopWireHeader *h = wire->header;
  atomic_store_explicit (&wire->head, head + bytes, memory_order_relaxed);
  atomic_store_explicit (&h->head, head + bytes, memory_order_release);
  uint64_t pushed = atomic_load_explicit (&h->pushed, memory_order_relaxed);
  atomic_store_explicit (&h->pushed, pushed + 1, memory_order_relaxed);
}

void
coop_ring_tell_gap (CoopWire *wire, uint32_t thread)
{
  uint64_t head = atomic_load_explicit (&wire->head, memory_order_relaxed);
  if (wire->missing == 0 || !fits (wire, head, COOP_RECORD_BYTES))
    return;
  CoopEvent gap = { .seq = wire->seq, .ts = wire->last_ts, .kind = COOP_EVENT_GAP, .thread = thread };
  gap.u.gap.missing = wire->missing;
  gap.u.gap.first = wire->seq - wire->missing;
  memcpy (wire->body + (head & wire->mask), &gap, sizeof gap);
  wire->missing = 0;
  wire->seq++;
  publish (wire, head, sizeof gap);
}

bool
coop_ring_push (CoopWire *wire, CoopEvent *ev, const void *body)
{
  if (atomic_load_explicit (wire->own, memory_order_relaxed) == 0)
    return false;
  size_t bytes = COOP_RECORD_BYTES * ((size_t) 1 + ev->more);
  size_t gap = wire->missing != 0 ? COOP_RECORD_BYTES : 0;
  wire->last_ts = ev->ts;
  uint64_t head = atomic_load_explicit (&wire->head, memory_order_relaxed);
  if (!fits (wire, head, bytes + gap))
    {
      ev->seq = wire->seq++;
      wire->missing++;
      uint64_t dropped = atomic_load_explicit (&wire->header->dropped, memory_order_relaxed);
      atomic_store_explicit (&wire->header->dropped, dropped + 1, memory_order_relaxed);
      return false;
    }
  if (gap != 0)
    {
      coop_ring_tell_gap (wire, ev->thread);
      head += gap;
    }
  ev->seq = wire->seq++;
  uint8_t *at = wire->body + (head & wire->mask);
  memcpy (at, ev, sizeof *ev);
  if (ev->more != 0)
    memcpy (at + sizeof *ev, body, bytes - sizeof *ev);
  publish (wire, head, bytes);
  return true;
}

static bool
consumer_dead (const CoopWire *wire, uint64_t now)
{
  uint64_t heart = atomic_load_explicit (&wire->header->heart, memory_order_relaxed);
  return heart != 0 && now > heart && now - heart > DEAD_NS;
}

/* Sleeps a little longer each time, until there is room or `until` has come. */
static bool
sleep_for_room (const CoopWire *wire, size_t bytes, uint64_t until)
{
  for (long ns = 20000;; ns = ns < 320000 ? ns * 2 : ns)
    {
      struct timespec t = { 0, ns };
      nanosleep (&t, NULL);
      if (coop_ring_room (wire) >= bytes)
        return true;
      if (coop_wire_now () >= until)
        return false;
    }
}

bool
coop_ring_wait (CoopWire *wire, size_t bytes, double ms)
{
  if (atomic_load_explicit (wire->own, memory_order_relaxed) == 0)
    return false;
  bytes += COOP_RECORD_BYTES;
  if (coop_ring_room (wire) >= bytes)
    return true;
  uint64_t tail = atomic_load_explicit (&wire->header->tail, memory_order_acquire);
  uint64_t head = atomic_load_explicit (&wire->head, memory_order_relaxed);
  uint64_t start = coop_wire_now ();
  if (bytes > wire->size || head - tail > wire->size || !(ms > 0)
      || tail == atomic_load_explicit (&wire->stalled_at, memory_order_relaxed)
      || consumer_dead (wire, start))
    return false;
  bool room = sleep_for_room (wire, bytes, start + (uint64_t) (ms * 1e6));
  bool moved = atomic_load_explicit (&wire->header->tail, memory_order_acquire) != tail;
  atomic_store_explicit (&wire->stalled_at, room || moved ? UINT64_MAX : tail,
                         memory_order_relaxed);
  atomic_fetch_add_explicit (&wire->header->waits, 1, memory_order_relaxed);
  atomic_fetch_add_explicit (&wire->header->wait_ns, coop_wire_now () - start,
                             memory_order_relaxed);
  return room;
}

void
coop_ring_beat (CoopWire *wire)
{
  atomic_store_explicit (&wire->header->heart, coop_wire_now (), memory_order_relaxed);
}

/* Copies the event at tail, of which `there` bytes are published, out of the other side's reach.
 * Returns its size, 0 when it cannot be. */
static size_t
copy_out (CoopWire *wire, uint64_t tail, uint64_t there)
{
  const uint8_t *at = wire->body + (tail & wire->mask);
  CoopEvent ev;
  memcpy (&ev, at, sizeof ev);
  size_t bytes = COOP_RECORD_BYTES * ((size_t) 1 + ev.more);
  if (bytes > there || ev.kind == 0 || ev.kind >= COOP_N_EVENT_KINDS)
    return 0;
  memcpy (wire->event, &ev, sizeof ev);
  memcpy (wire->event + sizeof ev, at + sizeof ev, bytes - sizeof ev);
  return bytes;
}

static void
put_tail (CoopWire *wire, uint64_t tail, uint64_t taken)
{
  CoopWireHeader *h = wire->header;
  atomic_store_explicit (&wire->tail, tail, memory_order_relaxed);
  atomic_store_explicit (&h->tail, tail, memory_order_release);
  uint64_t before = atomic_load_explicit (&h->taken, memory_order_relaxed);
  atomic_store_explicit (&h->taken, before + taken, memory_order_relaxed);
}

static void
note_fill (CoopWire *wire, uint64_t fill)
{
  if (fill > atomic_load_explicit (&wire->header->fill_peak, memory_order_relaxed))
    atomic_store_explicit (&wire->header->fill_peak, fill, memory_order_relaxed);
}

/* Bytes that are published behind tail; -1 when the positions cannot be. */
static int64_t
published (CoopWire *wire, uint64_t tail)
{
  uint64_t there = atomic_load_explicit (&wire->header->head, memory_order_acquire) - tail;
  if (there > wire->size || there % COOP_RECORD_BYTES != 0)
    return -1;
  note_fill (wire, there);
  return (int64_t) there;
}

long
coop_ring_drain (CoopWire *wire, size_t max, CoopTake take, void *user)
{
  uint64_t tail = atomic_load_explicit (&wire->tail, memory_order_relaxed), unpublished = 0;
  int64_t there = 0;
  size_t n = 0, bytes = 1;
  bool more = true;
  coop_ring_beat (wire);
  while (more && n < max)
    {
      if (there == 0 && (there = published (wire, tail)) <= 0)
        break;
      bytes = copy_out (wire, tail, (uint64_t) there);
      if (bytes == 0)
        break;
      const CoopEvent *ev = (const CoopEvent *) wire->event;
      more = take (user, ev, ev->more != 0 ? wire->event + sizeof *ev : NULL);
      tail += bytes;
      there -= (int64_t) bytes;
      n++;
      if (++unpublished == TAIL_EVERY)
        {
          put_tail (wire, tail, unpublished);
          unpublished = 0;
          coop_ring_beat (wire);
        }
    }
  put_tail (wire, tail, unpublished);
  return there < 0 || bytes == 0 ? -1 : (long) n;
}

void
coop_ring_stats (const CoopWire *wire, CoopRingStats *stats)
{
  const CoopWireHeader *h = wire->header;
  uint64_t tail = atomic_load_explicit (&h->tail, memory_order_acquire);
  uint64_t fill = atomic_load_explicit (&h->head, memory_order_acquire) - tail;
  stats->pushed = atomic_load_explicit (&h->pushed, memory_order_relaxed);
  stats->dropped = atomic_load_explicit (&h->dropped, memory_order_relaxed);
  stats->taken = atomic_load_explicit (&h->taken, memory_order_relaxed);
  stats->waits = atomic_load_explicit (&h->waits, memory_order_relaxed);
  stats->wait_ns = atomic_load_explicit (&h->wait_ns, memory_order_relaxed);
  stats->fill_peak = atomic_load_explicit (&h->fill_peak, memory_order_relaxed);
  stats->size = wire->size;
  stats->fill = fill > wire->size ? wire->size : fill;
  if (stats->fill > stats->fill_peak)
    stats->fill_peak = stats->fill;
}
