/* SPDX-License-Identifier: Apache-2.0 */
/* Id map: see id-map.h. */
#include "trace/id-map.h"

#define FIRST_SLOTS 64

/* Finaliser of splitmix64: consecutive numbers land far apart. */
static gsize
slot_of (const CoopIdMap *map, guint64 key)
{
  key ^= key >> 30;
  key *= G_GUINT64_CONSTANT (0xbf58476d1ce4e5b9);
  key ^= key >> 27;
  key *= G_GUINT64_CONSTANT (0x94d049bb133111eb);
  return (gsize) (key ^ (key >> 31)) & map->mask;
}

static void
allocate (CoopIdMap *map, gsize slots)
{
  map->keys = g_new0 (guint64, slots);
  map->values = g_new0 (gpointer, slots);
  map->mask = slots - 1;
  map->n = 0;
}

void
coop_id_map_init (CoopIdMap *map)
{
  allocate (map, FIRST_SLOTS);
}

void
coop_id_map_clear (CoopIdMap *map)
{
  g_clear_pointer (&map->keys, g_free);
  g_clear_pointer (&map->values, g_free);
  map->n = 0;
}

static gsize
find (const CoopIdMap *map, guint64 key)
{
  gsize i = slot_of (map, key);
  while (map->keys[i] != 0 && map->keys[i] != key)
    i = (i + 1) & map->mask;
  return i;
}

gpointer
coop_id_map_get (const CoopIdMap *map, guint64 key)
{
  if (key == 0)
    return NULL;
  return map->values[find (map, key)]; /* an empty slot holds NULL */
}

static void
grow (CoopIdMap *map)
{
  CoopIdMap old = *map;
  allocate (map, (old.mask + 1) * 2);
  for (gsize i = 0; i <= old.mask; i++)
    if (old.keys[i] != 0)
      {
        gsize to = find (map, old.keys[i]);
        map->keys[to] = old.keys[i];
        map->values[to] = old.values[i];
        map->n++;
      }
  coop_id_map_clear (&old);
}

void
coop_id_map_set (CoopIdMap *map, guint64 key, gpointer value)
{
  g_return_if_fail (key != 0);
  if ((map->n + 1) * 3 > (map->mask + 1) * 2)
    grow (map);
  gsize i = find (map, key);
  if (map->keys[i] == 0)
    map->n++;
  map->keys[i] = key;
  map->values[i] = value;
}

gboolean
coop_id_map_remove (CoopIdMap *map, guint64 key)
{
  if (key == 0)
    return FALSE;
  gsize hole = find (map, key);
  if (map->keys[hole] == 0)
    return FALSE;
  map->n--;
  /* Whatever follows without a break and would rather be at the hole, or before it, moves there. */
  for (gsize i = (hole + 1) & map->mask; map->keys[i] != 0; i = (i + 1) & map->mask)
    {
      gsize home = slot_of (map, map->keys[i]);
      if (((i - home) & map->mask) >= ((i - hole) & map->mask))
        {
          map->keys[hole] = map->keys[i];
          map->values[hole] = map->values[i];
          hole = i;
        }
    }
  map->keys[hole] = 0;
  map->values[hole] = NULL;
  return TRUE;
}

gpointer
coop_id_map_next (const CoopIdMap *map, gsize *cursor, guint64 *key)
{
  while (*cursor <= map->mask)
    {
      gsize i = (*cursor)++;
      if (map->keys[i] != 0)
        {
          if (key != NULL)
            *key = map->keys[i];
          return map->values[i];
        }
    }
  return NULL;
}

typedef struct {
  guint64 key;
  gpointer value;
} Pair;

static int
compare_pairs (const void *a, const void *b)
{
  const Pair *x = a, *y = b;
  return x->key < y->key ? -1 : x->key > y->key;
}

gpointer *
coop_id_map_sorted (const CoopIdMap *map, gsize *n)
{
  g_autofree Pair *pairs = g_new (Pair, map->n + 1);
  gpointer *out = g_new (gpointer, map->n + 1);
  gsize cursor = 0, count = 0;
  for (gpointer value; (value = coop_id_map_next (map, &cursor, &pairs[count].key)) != NULL; count++)
    pairs[count].value = value;
  qsort (pairs, count, sizeof (Pair), compare_pairs);
  for (gsize i = 0; i < count; i++)
    out[i] = pairs[i].value;
  out[count] = NULL;
  if (n != NULL)
    *n = count;
  return out;
}
