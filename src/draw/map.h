/* SPDX-License-Identifier: Apache-2.0 */
/* Map: geometry and raster of the address space. Pure functions of pieces and view: no GTK, no GLib,
 * no state. Rows wrap like text: addresses grow to the right and down. One pixel is `scale` bytes.
 */
#ifndef COOP_MAP_H
#define COOP_MAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/event.h"

/* The part of a piece that is drawn. */
typedef struct {
  uint64_t addr, bytes;
  uint8_t used;     /* 0 = hole */
  uint8_t kind;     /* CoopKind */
  uint8_t pin;      /* CoopPin */
  uint8_t age;      /* 0 just used .. 255 oldest */
  uint32_t mark;    /* COOP_MARK_*: victim, selected, ... */
} CoopDrawPiece;

enum {
  COOP_MARK_VICTIM = 1 << 0, COOP_MARK_SELECTED = 1 << 1, COOP_MARK_LARGEST = 1 << 2,
  COOP_MARK_BEYOND = 1 << 3  /* past the budget */
};

typedef struct {
  uint64_t bytes;       /* extent shown: budget, or more if blocks lie beyond */
  uint64_t budget;
  int width, height;    /* pixels */
  int row_height, gap;  /* pixels; rows of cells and the space between */
  double bytes_per_pixel; /* out of coop_map_layout */
  int rows;               /* out */
  bool dark, contrast;
} CoopMapView;

/* Chooses rows and scale so that `bytes` fill the area. Sets bytes_per_pixel (a nice number: 2^k) and
 * rows. */
void coop_map_layout (CoopMapView *view);
/* Address under a pixel; false outside the map (gap between rows, past the end). */
bool coop_map_addr_at (const CoopMapView *view, double x, double y, uint64_t *addr);
/* Rectangles (at most n, one a row) that [addr, addr + bytes) covers; returns how many it needs. */
typedef struct { int x, y, width, height; } CoopRect;
size_t coop_map_rects (const CoopMapView *view, uint64_t addr, uint64_t bytes, CoopRect *rects, size_t n);
/* Index of the piece that holds addr, by binary search; -1 if none. */
long coop_map_piece_at (const CoopDrawPiece *pieces, size_t n, uint64_t addr);

/* Colour of a kind as 0xAARRGGBB (premultiplied, opaque). Okabe-Ito hues, distinct in grey. */
uint32_t coop_map_kind_color (CoopKind kind, bool dark, bool contrast);
/* Paints into BGRA (native-endian 0xAARRGGBB) of view->width x height, stride in bytes. Pinned: hatched;
 * hole: the background with an outline; pieces under one pixel: the kind that covers most of it. */
void coop_map_raster (const CoopMapView *view, const CoopDrawPiece *pieces, size_t n, uint32_t *pixels,
                      size_t stride);
/* The texture sample of a legend entry: pinned hatch, victim, hole, ... */
void coop_map_swatch (CoopKind kind, bool used, bool pinned, bool victim, bool dark, bool contrast,
                      uint32_t *pixels, int width, int height, size_t stride);

#endif
