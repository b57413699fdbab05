/* SPDX-License-Identifier: Apache-2.0 */
/* Camera: a thread that takes shots of a running session, or of a trace file at an event. Everything
 * that may take time is done on it: frames, pictures, usage, words. The window takes the newest shot
 * by a pointer swap and never waits for it.
 */
#pragma once

#include "shot.h"

G_BEGIN_DECLS

typedef struct CoopCamera CoopCamera;

CoopCamera *coop_camera_new (CoopSession *session);
/* The file is opened by the thread; whether that went well is told by coop_camera_error. */
CoopCamera *coop_camera_new_for_file (const char *path);
/* Ends the thread and waits for the shot under way, at most. */
void coop_camera_free (CoopCamera *camera);

/* A new reference to the newest shot, or NULL if it was taken already. */
CoopShot *coop_camera_take (CoopCamera *camera);
/* Why there will be no shots; NULL while all is well. A copy. */
GError *coop_camera_error (CoopCamera *camera);
/* What the file does not tell, in a line; NULL: nothing, or not known yet. g_free. */
char *coop_camera_lacks (CoopCamera *camera);

/* Wishes; each is followed by a new shot. Sizes in device pixels. */
void coop_camera_set_map (CoopCamera *camera, int width, int height, double scale);
void coop_camera_set_chart (CoopCamera *camera, int width, int height, double scale);
void coop_camera_set_theme (CoopCamera *camera, gboolean dark, gboolean contrast);
/* Where on the map something is to be described, in device pixels; negative: nowhere. */
void coop_camera_point (CoopCamera *camera, double x, double y);
/* Block to mark, and to describe while nothing is pointed at; 0: none. */
void coop_camera_select (CoopCamera *camera, guint64 block);
/* Colours, zoom and what else a person chose; and what is looked for, as in find.h (NULL: nothing). */
void coop_camera_set_look (CoopCamera *camera, const CoopLook *look);
void coop_camera_find (CoopCamera *camera, const char *text);
/* Keeps the frame it has, and brings events and words to it; pictures still follow size and theme. */
void coop_camera_set_paused (CoopCamera *camera, gboolean paused);
/* Of a file: the event after which it is shown; past the end means the end. */
void coop_camera_set_event (CoopCamera *camera, guint64 seq);
/* The same by its time, and by counting evictions on from what is shown: n < 0 goes back. */
void coop_camera_set_time (CoopCamera *camera, guint64 ts);
void coop_camera_step_eviction (CoopCamera *camera, int n);

G_DEFINE_AUTOPTR_CLEANUP_FUNC (CoopCamera, coop_camera_free)

G_END_DECLS
