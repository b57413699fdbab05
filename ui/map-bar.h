/* SPDX-License-Identifier: Apache-2.0 */
/* Map bar: what the map shows and how large: colours, search, zoom, the last eviction explained.
 */
#pragma once

#include <gtk/gtk.h>

#include "scene.h"

G_BEGIN_DECLS

#define COOP_TYPE_MAP_BAR (coop_map_bar_get_type ())
G_DECLARE_FINAL_TYPE (CoopMapBar, coop_map_bar, COOP, MAP_BAR, GtkWidget)
/* Signals:
 *   "changed" ()          colours, strip or why: coop_map_bar_get_look
 *   "zoom" (int by)       a button: closer (1), back (-1), all (0)
 *   "sought" (char *)     another text to look for; empty: nothing
 *   "next" (int by)       the next thing found, or the one before
 */

GtkWidget *coop_map_bar_new (void);
/* Colouring, strip and why; leaves the rest. */
void coop_map_bar_get_look (CoopMapBar *self, CoopLook *look);
void coop_map_bar_set_why (CoopMapBar *self, gboolean why);
void coop_map_bar_set_coloring (CoopMapBar *self, CoopColoring coloring);
/* Level of zoom and what was found. */
void coop_map_bar_set_scene (CoopMapBar *self, const CoopScene *scene);
const char *coop_map_bar_get_text (CoopMapBar *self);
/* Puts the keyboard into the search; text may be NULL. */
void coop_map_bar_search (CoopMapBar *self, const char *text);

G_END_DECLS
