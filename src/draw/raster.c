/* SPDX-License-Identifier: Apache-2.0 */
/* Raster of the map, for a million pieces within a frame.
 *
 * First one pass over the pieces gives every pixel column of the ribbon a cell: class, age, edges. A
 * piece that covers whole columns fills them; pieces smaller than a column add up their bytes by
 * class in a small accumulator until the column is left. Then each row is painted from its cells: a
 * plain line and a hatched one are built once, the lines of the row's inside are copies, and only the
 * three uppermost and lowermost lines, where outlines and marks lie, are painted column by column.
 */
#include <stdlib.h>
#include <string.h>

#include "draw/map-private.h"

/* Class of a cell: what is drawn alike. 0 is nothing at all. */
#define CLASS_HOLE 1
#define CLASS_USED 2
#define CLASS_PINNED 4
#define CLASS_KIND_SHIFT 3
#define CLASS_MARK_SHIFT 6
#define N_CLASSES (1 << 10)

#define EDGE_FIRST 1
#define EDGE_LAST 2
#define EDGE_COLUMNS 4  /* pieces of more columns than this show their ends */

typedef struct {
  uint16_t class;
  uint8_t age, edge;
} Cell;

typedef struct {
  uint64_t bytes, age;
} Sum;

typedef struct {
  Sum sum[N_CLASSES];
  uint16_t touched[N_CLASSES];  /* in address order */
  int n_touched;
} Accumulator;

static uint16_t
class_of (const CoopDrawPiece *piece)
{
  unsigned mark = (piece->mark & 15) << CLASS_MARK_SHIFT;
  if (!piece->used)
    return (uint16_t) (CLASS_HOLE | mark);
  unsigned kind = piece->kind < COOP_N_KINDS ? piece->kind : COOP_KIND_UNKNOWN;
  return (uint16_t) (CLASS_USED | (piece->pin != COOP_PIN_NONE ? CLASS_PINNED : 0)
                     | kind << CLASS_KIND_SHIFT | mark);
}

static void
add (Accumulator *acc, uint16_t class, uint64_t bytes, uint8_t age)
{
  Sum *sum = &acc->sum[class];
  if (sum->bytes == 0)
    acc->touched[acc->n_touched++] = class;
  sum->bytes += bytes;
  sum->age += bytes * age;
}

/* The class with most bytes goes into the cell; the accumulator is empty afterwards. */
static void
flush (Accumulator *acc, Cell *cell)
{
  uint64_t most = 0;
  for (int i = 0; i < acc->n_touched; i++)
    {
      Sum *sum = &acc->sum[acc->touched[i]];
      if (sum->bytes > most)
        {
          most = sum->bytes;
          cell->class = acc->touched[i];
          cell->age = (uint8_t) (sum->age / sum->bytes);
        }
      *sum = (Sum) { 0, 0 };
    }
  acc->n_touched = 0;
}

static void
fill_cells (const CoopMapView *view, const CoopDrawPiece *pieces, size_t n, Cell *cells,
            Accumulator *acc)
{
  int shift = coop_map_shift (view);
  uint64_t size = (uint64_t) 1 << shift;
  uint64_t current = 0;

  for (size_t i = 0; i < n && pieces[i].addr < view->bytes; i++)
    {
      const CoopDrawPiece *piece = &pieces[i];
      uint64_t end = piece->addr + piece->bytes;
      if (end > view->bytes)
        end = view->bytes;
      if (end <= piece->addr)
        continue;
      uint64_t first = piece->addr >> shift, last = (end - 1) >> shift;
      uint16_t class = class_of (piece);

      if (first != current)
        {
          flush (acc, &cells[current]);
          current = first;
        }
      if (first == last)
        {
          add (acc, class, end - piece->addr, piece->age);
          continue;
        }
      add (acc, class, ((first + 1) << shift) - piece->addr, piece->age);
      flush (acc, &cells[first]);
      for (uint64_t column = first + 1; column < last; column++)
        {
          cells[column].class = class;
          cells[column].age = piece->age;
        }
      current = last;
      add (acc, class, end - last * size, piece->age);
      if (last - first >= EDGE_COLUMNS)
        {
          cells[first].edge |= EDGE_FIRST;
          cells[last].edge |= EDGE_LAST;
        }
    }
  flush (acc, &cells[current]);
}

/* Columns that begin past the budget and hold nothing look like a hole that may not be used. */
static void
fill_beyond (const CoopMapView *view, Cell *cells)
{
  int shift = coop_map_shift (view);
  uint64_t size = (uint64_t) 1 << shift;
  if (view->budget == 0)
    return;
  for (uint64_t column = (view->budget + size - 1) >> shift; column << shift < view->bytes; column++)
    if (cells[column].class == 0)
      cells[column].class = CLASS_HOLE | COOP_MARK_BEYOND << CLASS_MARK_SHIFT;
}

typedef struct {
  uint32_t ink[COOP_N_INKS];
  uint32_t kind[COOP_N_KINDS];
  bool dark, contrast;
} Inks;

static void
inks_init (Inks *inks, bool dark, bool contrast)
{
  for (int i = 0; i < COOP_N_INKS; i++)
    inks->ink[i] = coop_map_ink ((CoopMapInk) i, dark, contrast);
  for (int i = 0; i < COOP_N_KINDS; i++)
    inks->kind[i] = coop_map_kind_color ((CoopKind) i, dark, contrast);
  inks->dark = dark;
  inks->contrast = contrast;
}

static unsigned
mark_of (const Cell *cell)
{
  return cell->class >> CLASS_MARK_SHIFT;
}

/* Layers 1 to 4 away from the row's top and bottom: the plain colour, and the one under a hatch. */
static void
inside (const Inks *inks, const Cell *cell, uint32_t *plain, uint32_t *hatched)
{
  unsigned mark = mark_of (cell);
  if (cell->class & CLASS_USED)
    {
      uint32_t color = coop_map_shade (inks->kind[cell->class >> CLASS_KIND_SHIFT & 7], cell->age,
                                       inks->dark, inks->contrast);
      *plain = *hatched = color;
      if (cell->class & CLASS_PINNED)
        *hatched = coop_map_hatch (color, inks->contrast);
      if (cell->edge & EDGE_FIRST)
        *plain = *hatched = coop_map_edge (color, inks->dark);
      return;
    }
  CoopMapInk ink = COOP_INK_PAGE;
  if (cell->class & CLASS_HOLE)
    {
      ink = mark & COOP_MARK_BEYOND ? COOP_INK_BEYOND
            : mark & COOP_MARK_LARGEST ? COOP_INK_LARGEST
                                       : COOP_INK_HOLE;
      if (cell->edge && !(mark & COOP_MARK_BEYOND))
        ink = mark & COOP_MARK_LARGEST ? COOP_INK_STRONG : COOP_INK_OUTLINE;
    }
  *plain = *hatched = inks->ink[ink];
}

/* Layers 4 to 6 near the row's top and bottom, over `color`. */
static uint32_t
rim (const Inks *inks, const Cell *cell, uint32_t color, int y, int height)
{
  unsigned mark = mark_of (cell);
  int from_edge = y < height - 1 - y ? y : height - 1 - y;
  if (cell->class & CLASS_HOLE && !(mark & COOP_MARK_BEYOND))
    {
      if (mark & COOP_MARK_LARGEST ? from_edge < 2 : from_edge < 1)
        color = inks->ink[mark & COOP_MARK_LARGEST ? COOP_INK_STRONG : COOP_INK_OUTLINE];
    }
  if (mark & COOP_MARK_VICTIM && y >= height - 3)
    color = inks->ink[COOP_INK_WARN];
  if (mark & COOP_MARK_BEYOND && cell->class & CLASS_USED && y < 3)
    color = inks->ink[COOP_INK_WARN];
  if (mark & COOP_MARK_SELECTED && from_edge < 2)
    color = inks->ink[COOP_INK_STRONG];
  return color;
}

static void
hatch_line (uint32_t *line, const uint32_t *hatched, int width, int y)
{
  int start = (COOP_HATCH_PERIOD - y % COOP_HATCH_PERIOD) % COOP_HATCH_PERIOD;
  for (int x = start - COOP_HATCH_PERIOD; x < width; x += COOP_HATCH_PERIOD)
    for (int i = x; i < x + COOP_HATCH_WIDTH; i++)
      if (i >= 0 && i < width)
        line[i] = hatched[i];
}

/* One row at `pixels`, whose first line is line `top` of the picture. lines: 2 * width of scratch. */
static void
paint_row (const Inks *inks, const Cell *cells, int width, int height, int top, int budget_column,
           uint32_t *lines, char *pixels, size_t stride)
{
  uint32_t *plain = lines, *hatched = lines + width;
  bool any_hatch = false;
  for (int x = 0; x < width; x++)
    {
      inside (inks, &cells[x], &plain[x], &hatched[x]);
      any_hatch |= plain[x] != hatched[x];
    }
  for (int y = 0; y < height; y++)
    {
      uint32_t *line = (uint32_t *) (pixels + (size_t) y * stride);
      memcpy (line, plain, (size_t) width * sizeof *line);
      if (any_hatch)
        hatch_line (line, hatched, width, top + y);
      if (y < 3 || y >= height - 3)
        for (int x = 0; x < width; x++)
          line[x] = rim (inks, &cells[x], line[x], y, height);
      if (budget_column >= 0)
        line[budget_column] = inks->ink[COOP_INK_WARN];
    }
}

static void
clear (uint32_t color, int width, int height, char *pixels, size_t stride)
{
  for (int y = 0; y < height; y++)
    {
      uint32_t *line = (uint32_t *) (pixels + (size_t) y * stride);
      for (int x = 0; x < width; x++)
        line[x] = color;
    }
}

void
coop_map_raster (const CoopMapView *view, const CoopDrawPiece *pieces, size_t n, uint32_t *pixels,
                 size_t stride)
{
  Inks inks;
  inks_init (&inks, view->dark, view->contrast);
  clear (inks.ink[COOP_INK_PAGE], view->width, view->height, (char *) pixels, stride);
  if (view->rows <= 0)
    return;

  size_t n_cells = (size_t) view->rows * (size_t) view->width;
  Cell *cells = calloc (n_cells, sizeof *cells);
  Accumulator *acc = calloc (1, sizeof *acc);
  uint32_t *lines = calloc ((size_t) view->width * 2, sizeof *lines);
  if (cells && acc && lines)
    {
      fill_cells (view, pieces, n, cells, acc);
      fill_beyond (view, cells);
      bool limited = view->budget > 0 && view->budget < view->bytes;
      uint64_t mark = limited ? view->budget >> coop_map_shift (view) : UINT64_MAX;
      int pitch = view->row_height + view->gap;
      for (int row = 0; row < view->rows; row++)
        {
          int top = row * pitch;
          int height = top + view->row_height <= view->height ? view->row_height : view->height - top;
          if (height <= 0)
            break;
          bool here = mark / (uint64_t) view->width == (uint64_t) row;
          paint_row (&inks, cells + (size_t) row * (size_t) view->width, view->width, height, top,
                     here ? (int) (mark % (uint64_t) view->width) : -1, lines,
                     (char *) pixels + (size_t) top * stride, stride);
        }
    }
  free (lines);
  free (acc);
  free (cells);
}

void
coop_map_swatch (CoopKind kind, bool used, bool pinned, bool victim, bool dark, bool contrast,
                 uint32_t *pixels, int width, int height, size_t stride)
{
  /* A used sample is of narrow pieces, which show no border: it has no neighbour to be set off from.
   * A hole is one piece, outlined all around. */
  CoopDrawPiece pieces[64];
  int step = used ? EDGE_COLUMNS : width;
  int n = 0;
  for (int x = 0; x < width && n < 64; x += step, n++)
    pieces[n] = (CoopDrawPiece) { (uint64_t) x, (uint64_t) (x + step <= width ? step : width - x), used,
                                  (uint8_t) kind, pinned ? COOP_PIN_CONSTANT : COOP_PIN_NONE, 0,
                                  victim ? COOP_MARK_VICTIM : 0 };
  CoopMapView view = { .bytes = (uint64_t) width, .width = width, .height = height,
                       .row_height = height, .bytes_per_pixel = 1, .rows = 1,
                       .dark = dark, .contrast = contrast };
  coop_map_raster (&view, pieces, (size_t) n, pixels, stride);
}
