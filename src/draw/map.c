/* SPDX-License-Identifier: Apache-2.0 */
/* Geometry of the map: address <-> pixel. A view is a ribbon of `rows * width` pixel columns cut into
 * rows like text; column p holds the bytes [p << k, (p + 1) << k), where bytes_per_pixel is 2^k. All
 * arithmetic is in integers, so every function agrees with every other to the byte.
 */
#include "draw/map.h"

#include <math.h>

#include "draw/map-private.h"

#define DEFAULT_ROW_HEIGHT 20
#define MAX_ROW_HEIGHT 96

int
coop_map_shift (const CoopMapView *view)
{
  int exponent;
  frexp (view->bytes_per_pixel >= 1 ? view->bytes_per_pixel : 1, &exponent);
  return exponent - 1;
}

uint64_t
coop_map_extent (uint64_t budget, uint64_t end)
{
  uint64_t bytes = budget > end ? budget : end;
  uint64_t step = 64;
  while (step < UINT64_MAX / 32 && step * 16 < bytes)
    step *= 2;
  return bytes == 0 ? step : (bytes + step - 1) / step * step;
}

static uint64_t
rows_at (const CoopMapView *view, int shift)
{
  uint64_t columns = (view->bytes + ((uint64_t) 1 << shift) - 1) >> shift;
  return columns == 0 ? 1 : (columns + (uint64_t) view->width - 1) / (uint64_t) view->width;
}

void
coop_map_layout (CoopMapView *view)
{
  int least = view->row_height > 0 ? view->row_height : DEFAULT_ROW_HEIGHT;
  int gap = view->gap;
  view->rows = 0;
  view->bytes_per_pixel = 1;
  if (view->whole > 0)
    view->bytes = view->whole;
  view->zoom = 0;
  view->from = 0;
  if (view->width <= 0 || view->height <= 0)
    return;

  int most = (view->height + gap) / (least + gap);
  if (most < 1)
    most = 1;
  int shift = 0;
  while (shift < 62 && rows_at (view, shift) > (uint64_t) most)
    shift++;

  view->bytes_per_pixel = ldexp (1, shift);
  view->rows = (int) rows_at (view, shift);
  view->row_height = (view->height + gap) / view->rows - gap;
  if (view->row_height > MAX_ROW_HEIGHT && MAX_ROW_HEIGHT > least)
    view->row_height = MAX_ROW_HEIGHT;
  if (view->row_height < 1)
    view->row_height = 1;
}

void
coop_map_zoom (CoopMapView *view, int level, uint64_t from)
{
  int full = coop_map_shift (view) + view->zoom;
  uint64_t columns = (uint64_t) view->rows * (uint64_t) (view->width > 0 ? view->width : 0);
  if (view->whole == 0)
    view->whole = view->bytes;
  if (columns == 0)
    return;
  level = level < 0 ? 0 : level > full ? full : level;
  int shift = full - level;
  uint64_t unit = (uint64_t) 1 << shift;
  uint64_t all = (view->whole + unit - 1) >> shift, most = all > columns ? all - columns : 0;
  uint64_t first = from >> shift;
  if (first > most)
    first = most;
  view->zoom = level;
  view->bytes_per_pixel = ldexp (1, shift);
  view->from = first << shift;
  view->bytes = view->whole - view->from;
  if (all - first > columns)
    view->bytes = columns << shift;
}

uint64_t
coop_map_zoom_from (const CoopMapView *view, int level, double x, double y)
{
  int shift = coop_map_shift (view), next = shift + view->zoom - level;
  int pitch = view->row_height + view->gap;
  if (view->rows <= 0 || pitch <= 0)
    return 0;
  if (next < 0)
    next = 0;
  int row = y < 0 ? 0 : (int) (y / pitch);
  if (row >= view->rows)
    row = view->rows - 1;
  int at = x < 0 ? 0 : x >= view->width ? view->width - 1 : (int) x;
  uint64_t column = (uint64_t) row * (uint64_t) view->width + (uint64_t) at;
  uint64_t addr = view->from + (column << shift), before = column << next;
  return addr > before ? addr - before : 0;
}

uint64_t
coop_map_pan_from (const CoopMapView *view, double dx, double dy)
{
  int pitch = view->row_height + view->gap;
  if (pitch <= 0)
    return view->from;
  double columns = round (dx) + round (dy / pitch) * view->width;
  double from = (double) view->from - columns * view->bytes_per_pixel;
  return from <= 0 ? 0 : (uint64_t) from;
}

/* Column of the ribbon under a pixel, -1 outside. */
static int64_t
column_at (const CoopMapView *view, double x, double y)
{
  if (!(x >= 0) || !(y >= 0) || x >= view->width || view->rows <= 0)
    return -1;
  int pitch = view->row_height + view->gap;
  int row = (int) (y / pitch);
  if (row >= view->rows || y - (double) row * pitch >= view->row_height)
    return -1;
  int64_t column = (int64_t) row * view->width + (int64_t) x;
  return ((uint64_t) column << coop_map_shift (view)) < view->bytes ? column : -1;
}

bool
coop_map_addr_at (const CoopMapView *view, double x, double y, uint64_t *addr)
{
  int64_t column = column_at (view, x, y);
  if (column < 0)
    return false;
  *addr = view->from + ((uint64_t) column << coop_map_shift (view));
  return true;
}

size_t
coop_map_rects (const CoopMapView *view, uint64_t addr, uint64_t bytes, CoopRect *rects, size_t n)
{
  if (view->rows <= 0 || bytes == 0)
    return 0;
  if (addr < view->from)
    {
      uint64_t hidden = view->from - addr;
      if (bytes <= hidden)
        return 0;
      bytes -= hidden;
      addr = 0;
    }
  else
    addr -= view->from;
  if (addr >= view->bytes)
    return 0;
  int shift = coop_map_shift (view);
  uint64_t width = (uint64_t) view->width;
  uint64_t last_byte = bytes > view->bytes - addr ? view->bytes - 1 : addr + bytes - 1;
  uint64_t first = addr >> shift, last = last_byte >> shift;
  size_t needed = 0;

  for (uint64_t row = first / width; row <= last / width; row++, needed++)
    {
      if (needed >= n)
        continue;
      uint64_t from = row == first / width ? first % width : 0;
      uint64_t to = row == last / width ? last % width : width - 1;
      rects[needed] = (CoopRect) { (int) from, (int) row * (view->row_height + view->gap),
                                   (int) (to - from + 1), view->row_height };
    }
  return needed;
}

long
coop_map_piece_at (const CoopDrawPiece *pieces, size_t n, uint64_t addr)
{
  size_t low = 0, high = n;
  while (low < high)
    {
      size_t middle = low + (high - low) / 2;
      if (pieces[middle].addr <= addr)
        low = middle + 1;
      else
        high = middle;
    }
  if (low == 0 || addr - pieces[low - 1].addr >= pieces[low - 1].bytes)
    return -1;
  return (long) low - 1;
}

/* Index of the first piece that ends after addr. */
static size_t
first_after (const CoopDrawPiece *pieces, size_t n, uint64_t addr)
{
  size_t low = 0, high = n;
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

long
coop_map_piece_under (const CoopMapView *view, const CoopDrawPiece *pieces, size_t n, double x,
                      double y)
{
  int64_t column = column_at (view, x, y);
  if (column < 0)
    return -1;
  int shift = coop_map_shift (view);
  uint64_t from = view->from + ((uint64_t) column << shift), to = from + ((uint64_t) 1 << shift);
  uint64_t most = 0;
  long found = -1;

  for (size_t i = first_after (pieces, n, from); i < n && pieces[i].addr < to; i++)
    {
      uint64_t a = pieces[i].addr > from ? pieces[i].addr : from;
      uint64_t end = pieces[i].addr + pieces[i].bytes;
      uint64_t covered = (end < to ? end : to) - a;
      if (covered > most)
        {
          most = covered;
          found = (long) i;
        }
    }
  return found;
}
