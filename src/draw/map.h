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
  uint8_t used;     /* 0 = hole, or with the kind UNMANAGED a void: no memory is there at all */
  uint8_t kind;     /* CoopKind; in another palette than COOP_PALETTE_KIND an index into it, below 16 */
  uint8_t pin;      /* CoopPin */
  uint8_t age;      /* 0 just used .. 255 oldest */
  uint32_t mark;    /* COOP_MARK_*: victim, selected, ... */
} CoopDrawPiece;

static inline bool
coop_draw_is_void (const CoopDrawPiece *piece)
{
  return !piece->used && piece->kind == COOP_KIND_UNMANAGED;
}

static inline bool
coop_draw_is_hole (const CoopDrawPiece *piece)
{
  return !piece->used && !coop_draw_is_void (piece);
}

enum {
  COOP_MARK_VICTIM = 1 << 0, COOP_MARK_SELECTED = 1 << 1, COOP_MARK_LARGEST = 1 << 2,
  COOP_MARK_BEYOND = 1 << 3, /* past the budget */
  COOP_MARK_DIM = 1 << 4     /* not what is looked for: fades into the page */
};

/* What the colours of used pieces say. GROUP: coop_map_group_color, RAMP: coop_map_ramp_color. */
typedef enum { COOP_PALETTE_KIND, COOP_PALETTE_GROUP, COOP_PALETTE_RAMP } CoopMapPalette;
#define COOP_N_GROUPS 9   /* group 0: all the others */
#define COOP_N_RAMP 16

typedef struct {
  uint64_t bytes;       /* extent shown: budget, or more if blocks lie beyond; of it a part if zoomed */
  uint64_t budget;
  int width, height;    /* pixels */
  int row_height, gap;  /* pixels; rows of cells and the space between. In: the least height wanted
                           (0: 20); out of coop_map_layout: the height that fills the area */
  double bytes_per_pixel; /* out of coop_map_layout */
  int rows;               /* out */
  bool dark, contrast;
  CoopMapPalette palette;
  /* Zoom, out of coop_map_zoom: all 0 unless zoomed. */
  int zoom;             /* 2^zoom times as large */
  uint64_t from;        /* first address shown, a multiple of bytes_per_pixel */
  uint64_t whole;       /* extent of all there is; 0: `bytes` */
} CoopMapView;

/* The extent to show for a budget (0 = none) and the end of the last block: rounded up to one of
 * eight steps an octave, so that the scale rests while blocks come and go and the budget moves. */
uint64_t coop_map_extent (uint64_t budget, uint64_t end);
/* Chooses rows and scale so that `bytes` fill the area. Sets bytes_per_pixel (a nice number: 2^k),
 * rows and row_height. */
void coop_map_layout (CoopMapView *view);
/* Shows, in the rows laid out, 2^level times as large what lies from an address on. Level and address
 * are brought into what is possible: no pixel below a byte, no end past the extent. May be repeated. */
void coop_map_zoom (CoopMapView *view, int level, uint64_t from);
/* Where to begin so that the address under a pixel stays there when the level is `level`. */
uint64_t coop_map_zoom_from (const CoopMapView *view, int level, double x, double y);
/* Where to begin after moving the picture by so many pixels: what was at x is at x + dx. */
uint64_t coop_map_pan_from (const CoopMapView *view, double dx, double dy);
/* Address under a pixel; false outside the map (gap between rows, past the end). */
bool coop_map_addr_at (const CoopMapView *view, double x, double y, uint64_t *addr);
/* Rectangles (at most n, one a row) that [addr, addr + bytes) covers; returns how many it needs. */
typedef struct { int x, y, width, height; } CoopRect;
size_t coop_map_rects (const CoopMapView *view, uint64_t addr, uint64_t bytes, CoopRect *rects, size_t n);
/* Index of the piece that holds addr, by binary search; -1 if none. Pieces in address order, disjoint. */
long coop_map_piece_at (const CoopDrawPiece *pieces, size_t n, uint64_t addr);
/* Index of the piece with most bytes under the pixel at x, y (the first of equals); -1 if none. */
long coop_map_piece_under (const CoopMapView *view, const CoopDrawPiece *pieces, size_t n, double x,
                           double y);

/* Colour of a kind as 0xAARRGGBB (premultiplied, opaque). Okabe-Ito hues, distinct in grey. */
uint32_t coop_map_kind_color (CoopKind kind, bool dark, bool contrast);
/* Groups are told apart by hue, 0 is grey; a ramp goes from 0 to COOP_N_RAMP - 1, from what is near the
 * page to what stands out. Neither says what texture or outline say. */
uint32_t coop_map_group_color (int group, bool dark, bool contrast);
uint32_t coop_map_ramp_color (int step, bool dark);
/* The other colours of the map. PAGE: gaps and what is past the end; HOLE: the ground of a hole;
 * LARGEST: of the largest one; OUTLINE: around holes; STRONG: around the largest and the selected;
 * BEYOND: space past the budget; WARN: budget line, victims, blocks past the budget. */
typedef enum {
  COOP_INK_PAGE, COOP_INK_HOLE, COOP_INK_LARGEST, COOP_INK_OUTLINE, COOP_INK_STRONG, COOP_INK_BEYOND,
  COOP_INK_WARN, COOP_N_INKS
} CoopMapInk;
uint32_t coop_map_ink (CoopMapInk ink, bool dark, bool contrast);
/* A used colour at an age (old fades towards the page, not in high contrast), under the hatch of a
 * pin, and on the border between two blocks. */
uint32_t coop_map_shade (uint32_t color, uint8_t age, bool dark, bool contrast);
uint32_t coop_map_hatch (uint32_t color, bool contrast);
uint32_t coop_map_edge (uint32_t color, bool dark);

/* How a pixel column of a row is painted. It belongs to the class (used, kind, pinned or not, mark)
 * with most bytes in it, the first in address order of equals, at the mean age of that class; voids are
 * one class, which is nothing. Pinned are two: PENDING, and all the others. Layers,
 * the last wins, y counted from the row's top, h = row_height:
 *   1  used: shade (kind, age), DIM: mostly page; hole: HOLE, or LARGEST, or BEYOND; nothing: PAGE, or BEYOND where the
 *      column begins past the budget (if there is one) and within the extent
 *   2  used and pinned: hatch where (column + line of the picture) mod 6 < 2; PENDING: the other way,
 *      where (column - line) mod 6 < 2
 *   3  used: edge, where a piece of more than 4 columns begins
 *   4  hole but BEYOND: OUTLINE (STRONG if LARGEST, then 2 lines) at its top, bottom, and where a piece
 *      of more than 4 columns begins or ends
 *   5  VICTIM: WARN at y >= h - 3;  used and BEYOND: WARN at y < 3
 *   6  SELECTED: STRONG at y < 2 and y >= h - 2
 *   7  the column of the first byte past the budget, if that is inside: WARN
 */
/* Paints into BGRA (native-endian 0xAARRGGBB) of view->width x height, stride in bytes. Pinned: hatched;
 * hole: the background with an outline; pieces under one pixel: the kind that covers most of it. */
void coop_map_raster (const CoopMapView *view, const CoopDrawPiece *pieces, size_t n, uint32_t *pixels,
                      size_t stride);
/* The texture sample of a legend entry: pinned hatch, victim, hole, ... */
void coop_map_swatch (CoopKind kind, bool used, CoopPin pin, bool victim, bool dark, bool contrast,
                      uint32_t *pixels, int width, int height, size_t stride);

#endif
