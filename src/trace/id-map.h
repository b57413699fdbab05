/* SPDX-License-Identifier: Apache-2.0 */
/* Id map: number -> pointer, for the numbers of blocks, tensors, operators, strings and stacks.
 *
 * Open addressing with linear probing and deletion by shifting back, so a map that sees a hundred
 * million births and deaths never fills with tombstones. A GHashTable costs about four times as much
 * here, and apply() makes several look-ups an event. Key 0 is "none" and cannot be stored.
 */
#ifndef COOP_ID_MAP_H
#define COOP_ID_MAP_H

#include <glib.h>

typedef struct {
  guint64 *keys; /* 0 = empty */
  gpointer *values;
  gsize mask; /* slots - 1; slots is a power of two */
  gsize n;
} CoopIdMap;

void coop_id_map_init (CoopIdMap *map);
/* Frees the table, not the values. */
void coop_id_map_clear (CoopIdMap *map);
gpointer coop_id_map_get (const CoopIdMap *map, guint64 key);
/* Replaces what was there. key must not be 0. */
void coop_id_map_set (CoopIdMap *map, guint64 key, gpointer value);
gboolean coop_id_map_remove (CoopIdMap *map, guint64 key);
/* Slot order: cursor from 0; NULL at the end. The map must not change meanwhile. */
gpointer coop_id_map_next (const CoopIdMap *map, gsize *cursor, guint64 *key);
/* Values in order of their keys, to g_free; n may be NULL. What must not depend on the table's size
 * or history walks this one. */
gpointer *coop_id_map_sorted (const CoopIdMap *map, gsize *n);

#endif
