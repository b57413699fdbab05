/* SPDX-License-Identifier: Apache-2.0 */
/* Colors: what the colour of a piece says, and which groups the few hues go to. */
#pragma once

#include "draw/map.h"
#include "session/session.h"

G_BEGIN_DECLS

typedef enum {
  COOP_COLOR_KIND, COOP_COLOR_PHASE, COOP_COLOR_OPERATOR, COOP_COLOR_AGE, COOP_COLOR_COST, COOP_COLOR_PIN,
  COOP_COLOR_LINE, COOP_N_COLORINGS
} CoopColoring;

/* What a person chose for the map to look like. */
typedef struct {
  CoopColoring coloring;
  int zoom;            /* 2^zoom times as large, from an address on */
  guint64 from;
  gboolean strip;      /* one row */
  gboolean why;        /* the last eviction explained on the map */
} CoopLook;

/* Operators or lines that have a hue of their own: index 1 and up, 0 is free. */
typedef struct {
  CoopColoring coloring;
  guint32 ids[COOP_N_GROUPS];
} CoopColors;

/* Gives what takes most memory in the frame a hue, and leaves those be that are still there, so that
 * colours rest while the map moves. TRUE if anything changed. */
gboolean coop_colors_follow (CoopColors *colors, CoopColoring coloring, const CoopFrame *frame);
CoopMapPalette coop_colors_palette (CoopColoring coloring);
/* Index into the palette. colors: for operators and lines. */
guint8 coop_colors_of (CoopColoring coloring, const CoopColors *colors, const CoopFrame *frame,
                       const CoopMapPiece *piece);

/* Milliseconds on a logarithm: now is 0, half a minute and more is 255. */
guint8 coop_colors_age (const CoopFrame *frame, const CoopMapPiece *piece);

/* One sample of the legend. */
typedef struct {
  guint32 argb;
  char *name;
} CoopLegendSample;

/* The legend of a colouring, elements CoopLegendSample. name_of answers for operators and lines, g_free; it may be
 * NULL for the others. For COOP_COLOR_KIND it is empty: its legend never changes. */
typedef char *(*CoopNameOf) (gpointer user, CoopNameKind kind, guint64 id);
GPtrArray *coop_colors_legend (CoopColoring coloring, const CoopColors *colors, gboolean dark, gboolean contrast,
                               CoopNameOf name_of, gpointer user);

/* "Kind", "Phase", ... translated. */
const char *coop_coloring_name (CoopColoring coloring);

G_END_DECLS
