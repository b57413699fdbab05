/* SPDX-License-Identifier: Apache-2.0 */
/* Snapshot: which addresses are memory, and where they are on the map.
 *
 * The map shows, in order of addresses, all that was memory at any time; what never was is left out.
 * An address has one place for the whole trace, so what comes back to it is seen to come back. */
#include "trace/snapshot-private.h"

#include <string.h>

gboolean
coop_snap_segment_of (const CoopSnapEvent *ev, CoopSnapSegment *segment, gboolean *born)
{
  if (ev->action < COOP_SNAP_SEGMENT_ALLOC || ev->action > COOP_SNAP_SEGMENT_UNMAP || ev->size == 0)
    return FALSE;
  *segment = (CoopSnapSegment) { .addr = ev->addr, .bytes = ev->size, .stream = ev->stream, .stack = ev->stack,
                                 .pool = ev->pool,
                                 .expandable = ev->action >= COOP_SNAP_SEGMENT_MAP };
  *born = ev->action == COOP_SNAP_SEGMENT_ALLOC || ev->action == COOP_SNAP_SEGMENT_MAP;
  return TRUE;
}

/* ---- places on the map ---- */

static int
by_address (gconstpointer a, gconstpointer b)
{
  const CoopSnapIsland *x = a, *y = b;
  return x->lo < y->lo ? -1 : x->lo > y->lo;
}

static void
add_range (GArray *islands, guint64 addr, guint64 bytes)
{
  CoopSnapIsland island = { addr, addr + bytes, 0 };
  if (bytes > 0 && island.hi > addr)
    g_array_append_val (islands, island);
}

/* Sorts, and joins what touches. */
static void
join (GArray *islands)
{
  guint n = 0;
  g_array_sort (islands, by_address);
  for (guint i = 0; i < islands->len; i++)
    {
      const CoopSnapIsland *next = &g_array_index (islands, CoopSnapIsland, i);
      CoopSnapIsland *last = n > 0 ? &g_array_index (islands, CoopSnapIsland, n - 1) : NULL;
      if (last != NULL && next->lo <= last->hi)
        last->hi = MAX (last->hi, next->hi);
      else
        g_array_index (islands, CoopSnapIsland, n++) = *next;
    }
  g_array_set_size (islands, n);
}

/* The last island that begins at or before an address; NULL if there is none. */
static const CoopSnapIsland *
island_at (const GArray *islands, guint64 addr)
{
  guint lo = 0, hi = islands->len;
  while (lo < hi)
    {
      guint middle = (lo + hi) / 2;
      if (g_array_index (islands, CoopSnapIsland, middle).lo <= addr)
        lo = middle + 1;
      else
        hi = middle;
    }
  return lo > 0 ? &g_array_index (islands, CoopSnapIsland, lo - 1) : NULL;
}

guint64
coop_snap_map_at (const CoopSnapMap *map, guint64 addr)
{
  const CoopSnapIsland *island = island_at (map->islands, addr);
  return island != NULL ? island->map + (addr - island->lo) : 0;
}

static void
add_segments (GArray *islands, const CoopSnapDevice *device)
{
  for (guint i = 0; i < device->segments->len; i++)
    {
      const CoopSnapSegment *segment = &g_array_index (device->segments, CoopSnapSegment, i);
      add_range (islands, segment->addr, segment->bytes);
    }
  for (guint i = 0; i < device->events->len; i++)
    {
      CoopSnapSegment segment;
      gboolean born;
      if (coop_snap_segment_of (&g_array_index (device->events, CoopSnapEvent, i), &segment, &born))
        add_range (islands, segment.addr, segment.bytes);
    }
  join (islands);
}

/* Blocks where no segment is known: what must have been one. */
static void
find_loose (CoopSnapMap *map, const CoopSnapLives *lives)
{
  g_autoptr (GArray) ranges = g_array_new (FALSE, FALSE, sizeof (CoopSnapIsland));
  for (guint i = 0; i < lives->lives->len; i++)
    {
      const CoopSnapLife *life = &g_array_index (lives->lives, CoopSnapLife, i);
      const CoopSnapIsland *island = island_at (map->islands, life->addr);
      if (island == NULL || life->addr + life->bytes > island->hi)
        add_range (ranges, life->addr, life->bytes);
    }
  join (ranges);
  for (guint i = 0; i < ranges->len; i++)
    {
      const CoopSnapIsland *range = &g_array_index (ranges, CoopSnapIsland, i);
      CoopSnapSegment segment = { .addr = range->lo, .bytes = range->hi - range->lo };
      g_array_append_val (map->loose, segment);
      g_array_append_val (map->islands, *range);
    }
  join (map->islands);
}

void
coop_snap_map_make (CoopSnapMap *map, const CoopSnapDevice *device, const CoopSnapLives *lives)
{
  *map = (CoopSnapMap) { g_array_new (FALSE, FALSE, sizeof (CoopSnapIsland)),
                         g_array_new (FALSE, FALSE, sizeof (CoopSnapSegment)), 0 };
  add_segments (map->islands, device);
  find_loose (map, lives);
  for (guint i = 0; i < map->islands->len; i++)
    {
      CoopSnapIsland *island = &g_array_index (map->islands, CoopSnapIsland, i);
      island->map = map->bytes;
      map->bytes += island->hi - island->lo;
    }
}

void
coop_snap_map_clear (CoopSnapMap *map)
{
  g_array_unref (map->islands);
  g_array_unref (map->loose);
}

/* ---- what is memory now ---- */

void
coop_snap_space_init (CoopSnapSpace *space)
{
  *space = (CoopSnapSpace) { .places = g_array_new (FALSE, FALSE, sizeof (CoopSnapPlace)) };
}

void
coop_snap_space_clear (CoopSnapSpace *space)
{
  g_array_unref (space->places);
}

static CoopSnapPlace *
place (const CoopSnapSpace *space, guint i)
{
  return &g_array_index (space->places, CoopSnapPlace, i);
}

/* The first place that ends after an address. */
static guint
first_after (const CoopSnapSpace *space, guint64 addr)
{
  guint lo = 0, hi = space->places->len;
  while (lo < hi)
    {
      guint middle = (lo + hi) / 2;
      if (place (space, middle)->segment.addr + place (space, middle)->segment.bytes <= addr)
        lo = middle + 1;
      else
        hi = middle;
    }
  return lo;
}

const CoopSnapPlace *
coop_snap_space_at (const CoopSnapSpace *space, guint64 addr)
{
  guint i = first_after (space, addr);
  return i < space->places->len && place (space, i)->segment.addr <= addr ? place (space, i) : NULL;
}

gboolean
coop_snap_space_begins_in (const CoopSnapSpace *space, guint64 lo, guint64 hi)
{
  guint i = first_after (space, lo);
  if (i < space->places->len && place (space, i)->segment.addr <= lo)
    i++;
  return i < space->places->len && place (space, i)->segment.addr < hi;
}

static void
insert (CoopSnapSpace *space, const CoopSnapSegment *segment)
{
  CoopSnapPlace new_place = { *segment, ++space->last_id };
  g_array_insert_val (space->places, first_after (space, segment->addr), new_place);
  if (space->changed != NULL)
    space->changed (space->user, &new_place, TRUE);
}

static void
take_out (CoopSnapSpace *space, guint i)
{
  CoopSnapPlace gone = *place (space, i);
  g_array_remove_index (space->places, i);
  if (space->changed != NULL)
    space->changed (space->user, &gone, FALSE);
}

void
coop_snap_space_remove (CoopSnapSpace *space, guint64 lo, guint64 hi)
{
  for (guint i = first_after (space, lo); i < space->places->len && place (space, i)->segment.addr < hi;)
    {
      CoopSnapSegment left = place (space, i)->segment, right = left;
      guint64 end = left.addr + left.bytes;
      take_out (space, i);
      if (left.addr < lo)
        {
          left.bytes = lo - left.addr;
          insert (space, &left);
          i++;
        }
      if (end > hi)
        {
          right.addr = hi;
          right.bytes = end - hi;
          insert (space, &right);
          i++;
        }
    }
}

static gboolean
grows (const CoopSnapSegment *a, const CoopSnapSegment *b)
{
  return a->expandable && b->expandable && a->stream == b->stream
         && (a->pool == b->pool || a->pool == 0 || b->pool == 0);
}

/* Expandable segments grow: what is mapped beside one of the same stream becomes part of it. */
void
coop_snap_space_add (CoopSnapSpace *space, const CoopSnapSegment *segment)
{
  CoopSnapSegment whole = *segment;
  coop_snap_space_remove (space, whole.addr, whole.addr + whole.bytes);
  guint i = first_after (space, whole.addr);
  if (i < space->places->len && place (space, i)->segment.addr == whole.addr + whole.bytes
      && grows (&place (space, i)->segment, &whole))
    {
      whole.bytes += place (space, i)->segment.bytes;
      whole.pool = MAX (whole.pool, place (space, i)->segment.pool);
      take_out (space, i);
    }
  if (i > 0 && place (space, i - 1)->segment.addr + place (space, i - 1)->segment.bytes == whole.addr
      && grows (&place (space, i - 1)->segment, &whole))
    {
      whole.bytes += place (space, i - 1)->segment.bytes;
      whole.addr = place (space, i - 1)->segment.addr;
      whole.pool = MAX (whole.pool, place (space, i - 1)->segment.pool);
      take_out (space, i - 1);
    }
  insert (space, &whole);
}

/* From the end backwards. */
void
coop_snap_space_begin (CoopSnapSpace *space, const CoopSnapDevice *device, const CoopSnapMap *map)
{
  for (guint i = 0; i < device->segments->len; i++)
    coop_snap_space_add (space, &g_array_index (device->segments, CoopSnapSegment, i));
  for (guint i = device->events->len; i-- > 0;)
    {
      CoopSnapSegment segment;
      gboolean born;
      if (!coop_snap_segment_of (&g_array_index (device->events, CoopSnapEvent, i), &segment, &born))
        continue;
      if (born)
        coop_snap_space_remove (space, segment.addr, segment.addr + segment.bytes);
      else
        coop_snap_space_add (space, &segment);
    }
  /* Where no segment is known, there was one all along, as far as nothing says more. */
  for (guint i = 0; i < map->loose->len; i++)
    {
      CoopSnapSegment segment = g_array_index (map->loose, CoopSnapSegment, i);
      coop_snap_space_add (space, &segment);
    }
}
