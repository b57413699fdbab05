/* SPDX-License-Identifier: Apache-2.0 */
/* Map widget: shows the map of a shot, with row addresses beside it and outlines on top. It paints
 * nothing itself: the picture comes as a texture, made for the size that this widget asks for.
 */
#pragma once

#include <gtk/gtk.h>

#include "camera.h"

G_BEGIN_DECLS

#define COOP_TYPE_MAP_WIDGET (coop_map_widget_get_type ())
G_DECLARE_FINAL_TYPE (CoopMapWidget, coop_map_widget, COOP, MAP_WIDGET, GtkWidget)
/* Signals:
 *   "resized" ()      the picture wanted has another size
 *   "pointed" ()      another piece, or none, is under the pointer or the cursor
 *   "chosen" ()       that piece was clicked, or Enter pressed on it
 *   "looked" ()       a person zoomed or moved to another part: coop_map_widget_get_zoom
 *
 * The wheel zooms at the pointer, Shift and the wheel or a drag moves; + - 0 and Shift with the arrows
 * do so by keys, F shows the selected block as large as it can be.
 */

GtkWidget *coop_map_widget_new (void);
/* A new picture; NULL: none. */
void coop_map_widget_set_shot (CoopMapWidget *self, CoopShot *shot);
/* Size of the picture wanted, in device pixels. */
void coop_map_widget_get_wanted (CoopMapWidget *self, int *width, int *height, double *scale);
/* The piece pointed at, as an index into the scene's; -1: none. */
long coop_map_widget_get_pointed (CoopMapWidget *self);
/* Where that is on the picture, in device pixels; FALSE: nowhere. */
gboolean coop_map_widget_get_point (CoopMapWidget *self, double *x, double *y);
/* Where the picture lies in the widget, in layout pixels. */
void coop_map_widget_get_area (CoopMapWidget *self, graphene_rect_t *area);
/* Bytes of a request that found no room: drawn as a ghost over the largest hole. 0: none. */
void coop_map_widget_set_ghost (CoopMapWidget *self, guint64 bytes);
/* The part wanted, as in CoopLook. */
void coop_map_widget_get_zoom (CoopMapWidget *self, int *zoom, guint64 *from);
/* One level closer (by 1) or back (-1), about the cursor or the pointer; 0: shows all. */
void coop_map_widget_zoom (CoopMapWidget *self, int by);
/* Moves so that a range is seen; closer: as large as it can be, with some space around. */
void coop_map_widget_show_range (CoopMapWidget *self, guint64 addr, guint64 bytes, gboolean closer);
/* Without anything on top of the picture, so that the screen can be compared with a file. */
void coop_map_widget_set_bare (CoopMapWidget *self, gboolean bare);

G_END_DECLS
