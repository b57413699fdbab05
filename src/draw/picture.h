/* SPDX-License-Identifier: Apache-2.0 */
/* Picture: the raster of the map with the sizes of holes written in. The window shows exactly these
 * pixels, and so does a picture drawn from a file: one function for both.
 */
#ifndef COOP_PICTURE_H
#define COOP_PICTURE_H

#include "draw/map.h"

/* Bytes to underline: where victims of the last eviction lay, whatever lies there now. */
typedef struct { uint64_t addr, bytes; } CoopDrawRange;

/* Paints view->width x height pixels, 0xAARRGGBB in native order, stride in bytes (a multiple of 4).
 * scale: pixels of the screen to one of the layout, for the size of text. The size of a hole is
 * written only where it fits whole. Any thread. */
void coop_picture_map (const CoopMapView *view, double scale, const CoopDrawPiece *pieces, size_t n,
                       const CoopDrawRange *victims, size_t n_victims, uint32_t *pixels, size_t stride);

/* Why these: the window of the last eviction and the runner-up outlined, each victim with a word. */
typedef struct { uint64_t addr, bytes; const char *text; } CoopDrawVictim;
typedef struct {
  uint64_t lo, hi;            /* hi <= lo: there was no window */
  uint64_t next_lo, next_hi;  /* dashed */
  const CoopDrawVictim *victims;
  size_t n_victims;
} CoopDrawWhy;
void coop_picture_why (const CoopMapView *view, double scale, const CoopDrawWhy *why, uint32_t *pixels,
                       size_t stride);

#endif
