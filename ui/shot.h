/* SPDX-License-Identifier: Apache-2.0 */
/* Shot: all that the window shows at one instant, painted and in words.
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
  GPtrArray *legend;      /* CoopLegendSample, of the scene's colouring; may be NULL */
  GPtrArray *victims;     /* of the scene's last eviction, each in words (char *); may be NULL */
  CoopSessionHealth health;
  gboolean still;         /* the view was paused: all parts are of the scene's event */
  guint64 last_event;     /* of a file: number of its last event, and how its run ended */
  CoopRunState file_state;
  int file_exit;
  guint map_serial, chart_serial, events_serial, legend_serial; /* differ where the part does */
} CoopShot;
CoopShot *coop_shot_ref (CoopShot *shot);
void coop_shot_unref (CoopShot *shot);
G_DEFINE_AUTOPTR_CLEANUP_FUNC (CoopShot, coop_shot_unref)

/* A shot that shares the parts; and giving them up. The count of `parts` itself is unused. */
CoopShot *coop_shot_new (const CoopShot *parts);
void coop_shot_clear_parts (CoopShot *parts);
void coop_chart_shot_unref (CoopChartShot *chart);

G_END_DECLS
