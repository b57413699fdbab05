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
 *   "turned" ()               another table is shown
 */

GtkWidget *coop_drawer_new (void);
/* Fills the table that is seen. moving: another shot comes soon. */
void coop_drawer_set_shot (CoopDrawer *self, CoopShot *shot, gboolean moving);
/* A few more rows of what stands still; to be called again and again. */
void coop_drawer_grow (CoopDrawer *self);
/* What is filled in belongs to nothing any more. */
void coop_drawer_reset (CoopDrawer *self);

G_END_DECLS
