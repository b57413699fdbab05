/* SPDX-License-Identifier: Apache-2.0 */
/* Camera: a thread that takes shots of a running session, or of a trace file at an event. Everything
 * that may take time is done on it: frames, pictures, usage, words. The window takes the newest shot
 * by a pointer swap and never waits for it.
 */
#pragma once

#include <gdk/gdk.h>

#include "draw/chart.h"
#include "scene.h"

G_BEGIN_DECLS

/* The chart, painted. */
typedef struct {
  GdkTexture *texture;
  CoopChartView view; /* in device pixels */
  double scale;
  CoopChartPoint *points;
  guint n_points;
} CoopChartShot;

/* Immutable, reference counted. Parts that did not change are shared between shots. */
typedef struct {
  CoopScene *scene;       /* NULL before the first frame */
  GdkTexture *map;        /* of the scene */
  CoopChartShot *chart;   /* NULL before the first sample */
  GPtrArray *events;      /* CoopEventLine, newest last; may be NULL */
  char *answer;           /* about what is pointed at, else about the selected block; NULL: neither */
  CoopSessionHealth health;
  gboolean still;         /* the view was paused: all parts are of the scene's event */
  guint64 last_event;     /* of a file: number of its last event, and how its run ended */
  CoopRunState file_state;
  int file_exit;
  guint map_serial, chart_serial, events_serial; /* differ where the part does */
} CoopShot;
CoopShot *coop_shot_ref (CoopShot *shot);
void coop_shot_unref (CoopShot *shot);
G_DEFINE_AUTOPTR_CLEANUP_FUNC (CoopShot, coop_shot_unref)

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

/* Wishes; each is followed by a new shot. Sizes in device pixels. */
void coop_camera_set_map (CoopCamera *camera, int width, int height, double scale);
void coop_camera_set_chart (CoopCamera *camera, int width, int height, double scale);
void coop_camera_set_theme (CoopCamera *camera, gboolean dark, gboolean contrast);
/* Where on the map something is to be described, in device pixels; negative: nowhere. */
void coop_camera_point (CoopCamera *camera, double x, double y);
/* Block to mark, and to describe while nothing is pointed at; 0: none. */
void coop_camera_select (CoopCamera *camera, guint64 block);
/* Keeps the frame it has, and brings events and words to it; pictures still follow size and theme. */
void coop_camera_set_paused (CoopCamera *camera, gboolean paused);
/* Of a file: the event after which it is shown; past the end means the end. */
void coop_camera_set_event (CoopCamera *camera, guint64 seq);
/* The same by its time, and by counting evictions on from what is shown: n < 0 goes back. */
void coop_camera_set_time (CoopCamera *camera, guint64 ts);
void coop_camera_step_eviction (CoopCamera *camera, int n);

G_DEFINE_AUTOPTR_CLEANUP_FUNC (CoopCamera, coop_camera_free)

G_END_DECLS
