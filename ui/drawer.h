/* SPDX-License-Identifier: Apache-2.0 */
/* Drawer: the tables below the map: latest events, largest blocks, counters.
 */
#pragma once

#include <gtk/gtk.h>

#include "camera.h"

G_BEGIN_DECLS

#define COOP_TYPE_DRAWER (coop_drawer_get_type ())
G_DECLARE_FINAL_TYPE (CoopDrawer, coop_drawer, COOP, DRAWER, GtkWidget)
/* Signals:
 *   "picked" (guint64 block)  a person chose a row with a block
 *   "victim" (guint n)        a person chose the n-th victim of the last eviction
 *   "row" (guint64 block, guint64 event, gboolean go)  a person chose a row of the trace: what it is on
 *                             the map (0: nothing), when (G_MAXUINT64: never), and whether to go there
 *   "turned" ()               another table is shown
 */

GtkWidget *coop_drawer_new (void);
/* Fills the table that is seen. moving: another shot comes soon. */
void coop_drawer_set_shot (CoopDrawer *self, CoopShot *shot, gboolean moving);
/* The trace that the tables of all events, blocks, ... read; NULL: none. */
void coop_drawer_set_path (CoopDrawer *self, const char *path);
/* What is selected on the map; 0: nothing. */
void coop_drawer_set_block (CoopDrawer *self, guint64 block);
/* "events", "blocks", "why", "counters", "query", or a table of table-spec.h. */
void coop_drawer_turn_to (CoopDrawer *self, const char *name);
gboolean coop_drawer_shows (CoopDrawer *self, const char *name);
/* A few more rows of what stands still; to be called again and again. */
void coop_drawer_grow (CoopDrawer *self);
/* What is filled in belongs to nothing any more. */
void coop_drawer_reset (CoopDrawer *self);

G_END_DECLS
