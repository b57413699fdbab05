/* SPDX-License-Identifier: Apache-2.0 */
/* Scene: one frame laid out and painted. The live map, the map of a file and `--map-of` all come
 * through here, so the same frame gives the same pixels. No display is needed.
 */
#pragma once

#include "colors.h"
#include "draw/map.h"
#include "find.h"
#include "session/session.h"

G_BEGIN_DECLS

#define COOP_SCENE_TOP 200

/* Immutable, reference counted, any thread. pieces[i] is frame->pieces[i]. */
typedef struct {
  CoopFrame *frame;
  CoopDrawPiece *pieces;
  guint n_pieces;
  long largest;        /* index of the largest hole, -1 if there is none */
  guint64 end;         /* of what there is: voids behind it are not shown */
  gboolean has_voids;  /* memory comes in segments: addresses know no budget */
  gboolean has_pending; /* some piece is pinned so */
  guint *top;          /* indices of the largest pieces, largest first */
  guint n_top;
  CoopMapView view;    /* in device pixels */
  double scale;        /* device pixels to one of the layout */
  guint32 *pixels;     /* view.width * view.height */
  CoopLook look;       /* as painted: zoom and address may be less than was wished */
  gboolean searched;   /* something was looked for: what was not found is marked DIM */
  guint n_found;
  guint64 found_bytes;
} CoopScene;

/* Everything that a picture depends on besides the frame. width, height: device pixels. */
typedef struct {
  int width, height;
  double scale;
  gboolean dark, contrast;
  guint64 selected;    /* block, 0: none */
  CoopLook look;
  const CoopColors *colors; /* hues of operators and lines; NULL: those of this frame */
  const CoopFind *find;     /* what is looked for, and has learnt this frame; NULL: nothing */
} CoopSceneOptions;

/* Takes its own reference to the frame. NULL if there is nothing to paint on. */
CoopScene *coop_scene_new (CoopFrame *frame, const CoopSceneOptions *options);
CoopScene *coop_scene_ref (CoopScene *scene);
void coop_scene_unref (CoopScene *scene);
/* A sentence on what is seen, for those who do not see it. g_free. */
char *coop_scene_describe (const CoopScene *scene);

G_DEFINE_AUTOPTR_CLEANUP_FUNC (CoopScene, coop_scene_unref)

G_END_DECLS
