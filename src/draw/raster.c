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
#define CLASS_KIND_MASK 15
#define CLASS_MARK_SHIFT 7
#define CLASS_MARK_MASK 31
#define CLASS_PENDING (1 << 12) /* with PINNED: hatched the other way */
#define N_CLASSES (1 << 13)

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

static unsigned
n_colors_of (CoopMapPalette palette)
{
  return palette == COOP_PALETTE_GROUP  ? COOP_N_GROUPS
         : palette == COOP_PALETTE_RAMP ? COOP_N_RAMP
                                        : COOP_N_KINDS;
}

typedef struct {
  Sum sum[N_CLASSES];
  uint16_t touched[N_CLASSES];  /* in address order */
  int n_touched;
} Accumulator;

/* n_colors: of the palette; what is not in it gets its first, which stands for unknown in each. */
static uint16_t
class_of (const CoopDrawPiece *piece, unsigned n_colors)
{
  unsigned mark = (piece->mark & CLASS_MARK_MASK) << CLASS_MARK_SHIFT;
  if (coop_draw_is_void (piece))
    return 0;
  if (!piece->used)
    return (uint16_t) (CLASS_HOLE | mark);
  unsigned kind = piece->kind < n_colors ? piece->kind : 0;
  return (uint16_t) (CLASS_USED | (piece->pin != COOP_PIN_NONE ? CLASS_PINNED : 0)
                     | (piece->pin == COOP_PIN_PENDING ? CLASS_PENDING : 0)
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

/* Index of the first piece that ends after an address. */
static size_t
first_piece (const CoopDrawPiece *pieces, size_t n, uint64_t addr)
{
  size_t low = 0, high = addr > 0 ? n : 0;
  while (low < high)
    {
      size_t middle = low + (high - low) / 2;
      if (pieces[middle].addr + pieces[middle].bytes <= addr)
        low = middle + 1;
      else
        high = middle;
    }
  return low;
}

static void
fill_cells (const CoopMapView *view, const CoopDrawPiece *pieces, size_t n, Cell *cells,
            Accumulator *acc)
{
  int shift = coop_map_shift (view);
  uint64_t size = (uint64_t) 1 << shift;
  uint64_t current = 0, from = view->from;
  unsigned n_colors = n_colors_of (view->palette);

  for (size_t i = first_piece (pieces, n, from); i < n && pieces[i].addr < from + view->bytes; i++)
    {
      const CoopDrawPiece *piece = &pieces[i];
      bool cut = piece->addr < from; /* its begin is not seen */
      uint64_t addr = cut ? 0 : piece->addr - from, end = piece->addr + piece->bytes - from;
      if (end > view->bytes)
        end = view->bytes;
      if (end <= addr)
        continue;
      uint64_t first = addr >> shift, last = (end - 1) >> shift;
      uint16_t class = class_of (piece, n_colors);
      if (class != 0 && ((piece->addr + piece->bytes - 1) >> shift) - (piece->addr >> shift) >= EDGE_COLUMNS)
        {
          if (!cut)
            cells[first].edge |= EDGE_FIRST;
          if (piece->addr + piece->bytes - from <= view->bytes)
            cells[last].edge |= EDGE_LAST;
        }

      if (first != current)
        {
          flush (acc, &cells[current]);
          current = first;
        }
      if (first == last)
        {
          add (acc, class, end - addr, piece->age);
          continue;
        }
      add (acc, class, ((first + 1) << shift) - addr, piece->age);
      flush (acc, &cells[first]);
      for (uint64_t column = first + 1; column < last; column++)
        {
          cells[column].class = class;
          cells[column].age = piece->age;
        }
      current = last;
      add (acc, class, end - last * size, piece->age);
    }
  flush (acc, &cells[current]);
}

/* Columns that begin past the budget and hold nothing, or a void, look like a hole that may not be used. */
static void
fill_beyond (const CoopMapView *view, Cell *cells)
{
  int shift = coop_map_shift (view);
  uint64_t size = (uint64_t) 1 << shift;
  if (view->budget == 0)
    return;
  uint64_t budget = view->budget > view->from ? view->budget - view->from : 0;
  for (uint64_t column = (budget + size - 1) >> shift; column << shift < view->bytes; column++)
    if (cells[column].class == 0)
      cells[column].class = CLASS_HOLE | COOP_MARK_BEYOND << CLASS_MARK_SHIFT;
}

typedef struct {
  uint32_t ink[COOP_N_INKS];
  uint32_t kind[CLASS_KIND_MASK + 1]; /* the palette */
  bool dark, contrast;
} Inks;

static void
inks_init (Inks *inks, CoopMapPalette palette, bool dark, bool contrast)
{
  for (int i = 0; i < COOP_N_INKS; i++)
    inks->ink[i] = coop_map_ink ((CoopMapInk) i, dark, contrast);
  for (int i = 0; i <= CLASS_KIND_MASK; i++)
    inks->kind[i] = palette == COOP_PALETTE_GROUP  ? coop_map_group_color (i, dark, contrast)
                    : palette == COOP_PALETTE_RAMP ? coop_map_ramp_color (i, dark)
                                                   : coop_map_kind_color ((CoopKind) i, dark, contrast);
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
      uint32_t color = coop_map_shade (inks->kind[cell->class >> CLASS_KIND_SHIFT & CLASS_KIND_MASK], cell->age,
                                       inks->dark, inks->contrast);
      if (mark & COOP_MARK_DIM)
        color = coop_map_mix (color, inks->ink[COOP_INK_PAGE], 200);
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

/* `pending`: which of the two hatches. */
static void
hatch_line (uint32_t *line, const uint32_t *hatched, const Cell *cells, bool pending, int width, int y)
{
  int phase = y % COOP_HATCH_PERIOD, start = pending ? phase : (COOP_HATCH_PERIOD - phase) % COOP_HATCH_PERIOD;
  for (int x = start - COOP_HATCH_PERIOD; x < width; x += COOP_HATCH_PERIOD)
    for (int i = x; i < x + COOP_HATCH_WIDTH; i++)
      if (i >= 0 && i < width && !(cells[i].class & CLASS_PENDING) == !pending)
        line[i] = hatched[i];
}

/* One row at `pixels`, whose first line is line `top` of the picture. lines: 2 * width of scratch. */
static void
paint_row (const Inks *inks, const Cell *cells, int width, int height, int top, int budget_column,
           uint32_t *lines, char *pixels, size_t stride)
{
  uint32_t *plain = lines, *hatched = lines + width;
  bool any_hatch = false, any_pending = false;
  for (int x = 0; x < width; x++)
    {
      inside (inks, &cells[x], &plain[x], &hatched[x]);
      any_hatch |= plain[x] != hatched[x];
      any_pending |= (cells[x].class & CLASS_PENDING) != 0;
    }
  for (int y = 0; y < height; y++)
    {
      uint32_t *line = (uint32_t *) (pixels + (size_t) y * stride);
      memcpy (line, plain, (size_t) width * sizeof *line);
      if (any_hatch)
        hatch_line (line, hatched, cells, false, width, top + y);
      if (any_pending)
        hatch_line (line, hatched, cells, true, width, top + y);
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
  inks_init (&inks, view->palette, view->dark, view->contrast);
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
      bool limited = view->budget > 0 && view->budget >= view->from && view->budget < view->from + view->bytes;
      uint64_t mark = limited ? (view->budget - view->from) >> coop_map_shift (view) : UINT64_MAX;
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
coop_map_swatch (CoopKind kind, bool used, CoopPin pin, bool victim, bool dark, bool contrast,
                 uint32_t *pixels, int width, int height, size_t stride)
{
  /* A used sample is of narrow pieces, which show no border: it has no neighbour to be set off from.
   * A hole is one piece, outlined all around. Nothing is seen between two things only. */
  bool nothing = !used && kind == COOP_KIND_UNMANAGED;
  CoopDrawPiece pieces[64];
  int step = used || nothing ? EDGE_COLUMNS : width;
  int n = 0;
  for (int x = 0; x < width && n < 64; x += step, n++)
    {
      bool side = nothing && (x < width / 4 || x + step > width - width / 4);
      pieces[n] = (CoopDrawPiece) { (uint64_t) x, (uint64_t) (x + step <= width ? step : width - x), used || side,
                                    (uint8_t) (side ? COOP_KIND_OTHER : kind), (uint8_t) pin, 0,
                                    victim ? COOP_MARK_VICTIM : 0 };
    }
  CoopMapView view = { .bytes = (uint64_t) width, .width = width, .height = height,
                       .row_height = height, .bytes_per_pixel = 1, .rows = 1,
                       .dark = dark, .contrast = contrast };
  coop_map_raster (&view, pieces, (size_t) n, pixels, stride);
}
