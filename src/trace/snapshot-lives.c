/* SPDX-License-Identifier: Apache-2.0 */
/* Snapshot: who lived from when to when. Each address has a story of its own: entries that begin and
 * end a life, and what the segments say of it at the end. What ends without a beginning was there
 * before the first entry; so was what is there at the end and in no entry at all. */
#include "trace/snapshot-private.h"

typedef struct {
  const CoopSnapDevice *device;
  GArray *lives;    /* in order of discovery; those of before are moved to the front at last */
  CoopIdMap open;   /* address + 1 -> number of the life + 1 */
  CoopIdMap told;   /* address + 1 -> 1: some entry was about it */
  CoopSnapLives *out;
} Find;

static CoopSnapLife *
life_at (const Find *find, guint32 number)
{
  return &g_array_index (find->lives, CoopSnapLife, number);
}

static guint32
open_at (const Find *find, guint64 addr)
{
  return GPOINTER_TO_UINT (coop_id_map_get (&find->open, addr + 1)) - 1;
}

static guint32
begin (Find *find, const CoopSnapEvent *ev, guint32 born)
{
  CoopSnapLife life = { .addr = ev->addr, .bytes = coop_snap_rounded (ev->size), .requested = ev->size, .born = born,
                        .stream = ev->stream, .asked = COOP_SNAP_NONE, .end = COOP_SNAP_NONE };
  if (born != COOP_SNAP_NONE)
    {
      life.stack = ev->stack;
      life.kind = ev->kind;
    }
  g_array_append_val (find->lives, life);
  coop_id_map_set (&find->open, ev->addr + 1, GUINT_TO_POINTER (find->lives->len));
  coop_id_map_set (&find->told, ev->addr + 1, GUINT_TO_POINTER (1));
  return find->lives->len - 1;
}

static void
end (Find *find, guint32 number, guint32 at)
{
  CoopSnapLife *life = life_at (find, number);
  life->end = at;
  coop_id_map_remove (&find->open, life->addr + 1);
}

static guint32
one_event (Find *find, guint32 i)
{
  const CoopSnapEvent *ev = &g_array_index (find->device->events, CoopSnapEvent, i);
  guint32 number = open_at (find, ev->addr);
  switch (ev->action)
    {
    case COOP_SNAP_ALLOC:
      if (number != COOP_SNAP_NONE)
        {
          /* Freed when it was asked for, in files that leave the second word out. */
          gboolean asked = life_at (find, number)->asked != COOP_SNAP_NONE;
          life_at (find, number)->ends_lost = !asked;
          find->out->disagree += !asked;
          end (find, number, asked ? life_at (find, number)->asked : i);
        }
      return begin (find, ev, i);
    case COOP_SNAP_FREE_REQUESTED:
      if (number == COOP_SNAP_NONE)
        number = begin (find, ev, COOP_SNAP_NONE);
      life_at (find, number)->asked = i;
      return number;
    case COOP_SNAP_FREE_COMPLETED:
      if (number == COOP_SNAP_NONE)
        number = begin (find, ev, COOP_SNAP_NONE);
      end (find, number, i);
      return number;
    default:
      return COOP_SNAP_NONE;
    }
}

/* A block that the segments show. */
static void
one_block (Find *find, const CoopSnapBlock *block)
{
  guint32 number = open_at (find, block->addr);
  if (number == COOP_SNAP_NONE && coop_id_map_get (&find->told, block->addr + 1) != NULL)
    {
      find->out->disagree++; /* the entries say that it is gone */
      return;
    }
  if (number == COOP_SNAP_NONE)
    {
      CoopSnapLife life = { .addr = block->addr, .bytes = block->bytes, .requested = block->requested,
                            .stream = block->stream, .born = COOP_SNAP_NONE, .asked = COOP_SNAP_NONE,
                            .end = COOP_SNAP_NONE, .stack = block->stack, .kind = COOP_KIND_UNKNOWN,
                            .pending = block->state == COOP_SNAP_PENDING };
      g_array_append_val (find->lives, life);
      return;
    }
  CoopSnapLife *life = life_at (find, number);
  if (block->bytes >= life->requested)
    life->bytes = block->bytes;
  else
    find->out->disagree++;
  if (life->stack == 0)
    life->stack = block->stack;
  coop_id_map_remove (&find->open, block->addr + 1);
}

/* Alive by the entries, and not by the segments. */
static void
settle_open (Find *find)
{
  gsize cursor = 0;
  for (gpointer value; (value = coop_id_map_next (&find->open, &cursor, NULL)) != NULL;)
    {
      CoopSnapLife *life = life_at (find, GPOINTER_TO_UINT (value) - 1);
      if (life->asked != COOP_SNAP_NONE)
        life->end = life->asked; /* files may leave the second word out */
      else
        find->out->disagree++;
    }
}

/* Lives of before the first entry come first, the others in order of their births. */
static void
sort_lives (Find *find)
{
  g_autofree guint32 *new_number = g_new (guint32, find->lives->len + 1);
  GArray *out = g_array_sized_new (FALSE, FALSE, sizeof (CoopSnapLife), find->lives->len);
  for (int older = 1; older >= 0; older--)
    for (guint i = 0; i < find->lives->len; i++)
      {
        const CoopSnapLife *life = life_at (find, i);
        if ((life->born == COOP_SNAP_NONE) != older)
          continue;
        new_number[i] = out->len;
        g_array_append_val (out, *life);
        find->out->n_older += (guint64) older;
        find->out->n_older_alive += older && life->end == COOP_SNAP_NONE;
      }
  for (guint i = 0; i < find->out->of_event->len; i++)
    {
      guint32 *number = &g_array_index (find->out->of_event, guint32, i);
      if (*number != COOP_SNAP_NONE)
        *number = new_number[*number];
    }
  g_array_unref (find->lives);
  find->out->lives = out;
}

void
coop_snap_lives_find (CoopSnapLives *lives, const CoopSnapDevice *device)
{
  Find find = { device, g_array_new (FALSE, FALSE, sizeof (CoopSnapLife)), { 0 }, { 0 }, lives };
  *lives = (CoopSnapLives) { .of_event = g_array_sized_new (FALSE, FALSE, sizeof (guint32), device->events->len) };
  coop_id_map_init (&find.open);
  coop_id_map_init (&find.told);
  for (guint32 i = 0; i < device->events->len; i++)
    {
      guint32 number = one_event (&find, i);
      g_array_append_val (lives->of_event, number);
    }
  for (guint i = 0; i < device->blocks->len; i++)
    one_block (&find, &g_array_index (device->blocks, CoopSnapBlock, i));
  settle_open (&find);
  coop_id_map_clear (&find.open);
  coop_id_map_clear (&find.told);
  sort_lives (&find);
}

void
coop_snap_lives_clear (CoopSnapLives *lives)
{
  g_array_unref (lives->lives);
  g_array_unref (lives->of_event);
}
