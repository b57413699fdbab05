/* SPDX-License-Identifier: Apache-2.0 */
/* The whole sweep in one table: evictors down, allocators (and settings, where they differ) across. A cell
 * is the geometric mean of the overhead over all programs and the ratios from 0.4 to below 1; what fails or
 * takes longer counts as 3. Beside it the mean of the smallest ratios that finish. And, if page sizes were
 * swept, overhead against page size. */
#include "replay/report-private.h"

#include <math.h>
#include <string.h>

#define FAILED 3.0
#define LEAST 400000
#define MOST 1000000

typedef struct {
  double log_sum, minimum_sum;
  guint n, finished, programs, with_minimum;
} Cell;

struct CoopReportMatrix {
  GPtrArray *rows, *columns;   /* names, in order of appearance */
  Cell *cells;                 /* row major */
};

static guint
index_of (GPtrArray *names, const char *name)
{
  for (guint i = 0; i < names->len; i++)
    if (g_str_equal (names->pdata[i], name))
      return i;
  g_ptr_array_add (names, g_strdup (name));
  return names->len - 1;
}

static char *
column_of (const CoopReportSeries *s)
{
  return g_strconcat (s->allocator, s->settings[0] != 0 ? ", " : "", s->settings, NULL);
}

static void
add_series (Cell *cell, const CoopReportSeries *s)
{
  gint64 minimum = coop_report_minimum (s);
  for (guint i = 0; i < s->points->len; i++)
    {
      const CoopReportPoint *p = &g_array_index (s->points, CoopReportPoint, i);
      if (p->ratio_ppm < LEAST || p->ratio_ppm >= MOST)
        continue;
      cell->log_sum += log (p->ok ? fmin (p->overhead, FAILED) : FAILED);
      cell->n++;
      cell->finished += p->ok;
    }
  cell->programs++;
  cell->with_minimum += minimum > 0;
  cell->minimum_sum += (double) minimum / 1e6;
}

typedef void (*EachSeries) (CoopReportMatrix *m, const CoopReportSeries *s, const char *column);

static void
each (CoopReportMatrix *m, const CoopReport *report, EachSeries take)
{
  for (guint i = 0; i < report->programs->len; i++)
    {
      const CoopReportProgram *p = report->programs->pdata[i];
      for (guint k = 0; k < p->series->len; k++)
        {
          g_autofree char *column = column_of (p->series->pdata[k]);
          take (m, p->series->pdata[k], column);
        }
    }
}

static void
take_names (CoopReportMatrix *m, const CoopReportSeries *s, const char *column)
{
  index_of (m->rows, s->evictor);
  index_of (m->columns, column);
}

static void
take_values (CoopReportMatrix *m, const CoopReportSeries *s, const char *column)
{
  add_series (&m->cells[index_of (m->rows, s->evictor) * m->columns->len + index_of (m->columns, column)], s);
}

CoopReportMatrix *
coop_report_matrix_new (const CoopReport *report)
{
  CoopReportMatrix *m = g_new0 (CoopReportMatrix, 1);
  m->rows = g_ptr_array_new_with_free_func (g_free);
  m->columns = g_ptr_array_new_with_free_func (g_free);
  each (m, report, take_names);
  m->cells = g_new0 (Cell, MAX (1, m->rows->len * m->columns->len));
  each (m, report, take_values);
  return m;
}

void
coop_report_matrix_free (CoopReportMatrix *m)
{
  g_ptr_array_unref (m->rows);
  g_ptr_array_unref (m->columns);
  g_free (m->cells);
  g_free (m);
}

static char *
cell_text (const Cell *c)
{
  if (c->n == 0)
    return g_strdup ("");
  double mean = exp (c->log_sum / c->n);
  g_autoptr (GString) text = g_string_new (NULL);
  g_string_append_printf (text, "%.3f", mean);
  if (c->finished < c->n)
    g_string_append_printf (text, " (%.0f %%)", 100.0 * c->finished / c->n);
  if (c->with_minimum == c->programs)
    g_string_append_printf (text, ", from %.3f", c->minimum_sum / c->programs);
  return g_string_free (g_steal_pointer (&text), FALSE);
}

static void
each_row (GString *out, const CoopReportMatrix *m, guint r, CoopReportRow row)
{
  g_autoptr (GPtrArray) cells = g_ptr_array_new_with_free_func (g_free);
  g_ptr_array_add (cells, g_strdup (m->rows->pdata[r]));
  for (guint c = 0; c < m->columns->len; c++)
    g_ptr_array_add (cells, cell_text (&m->cells[r * m->columns->len + c]));
  row (out, cells->len, (const char *const *) cells->pdata);
}

void
coop_report_matrix (GString *out, const CoopReportMatrix *m, CoopReportRow head, CoopReportRow row)
{
  g_autoptr (GPtrArray) names = g_ptr_array_new ();
  g_ptr_array_add (names, (gpointer) "evictor");
  for (guint c = 0; c < m->columns->len; c++)
    g_ptr_array_add (names, m->columns->pdata[c]);
  head (out, names->len, (const char *const *) names->pdata);
  for (guint r = 0; row != NULL && r < m->rows->len; r++)
    each_row (out, m, r, row);
}

guint
coop_report_matrix_columns (const CoopReportMatrix *m)
{
  return m->columns->len + 1;
}

/* ---- overhead against page size ---- */

#define WIDTH 560
#define HEIGHT 300
#define LEFT 60
#define RIGHT 130
#define TOP 34
#define PLOT (HEIGHT - TOP - 44)

static const char *const colours[] = { "#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9" };

/* Bytes of a column "page, .. page=N ..", or 0. */
static guint64
page_of (const char *column)
{
  const char *at = g_str_has_prefix (column, "page,") ? strstr (column, " page=") : NULL;
  return at != NULL ? g_ascii_strtoull (at + 6, NULL, 10) : 0;
}

static int
by_page (gconstpointer a, gconstpointer b, gpointer user)
{
  GPtrArray *columns = user;
  guint64 x = page_of (columns->pdata[*(const guint *) a]), y = page_of (columns->pdata[*(const guint *) b]);
  return x < y ? -1 : x > y;
}

static double
place (double value, double most)
{
  return TOP + PLOT * (1 - (fmin (value, most) - 1) / (most - 1));
}

static void
page_line (GString *out, const CoopReportMatrix *m, const GArray *pages, guint r, double most)
{
  const char *colour = colours[r % G_N_ELEMENTS (colours)];
  double step = (double) (WIDTH - LEFT - RIGHT) / MAX (1, pages->len - 1);
  g_autofree char *name = g_markup_escape_text (m->rows->pdata[r], -1);
  g_string_append (out, "<polyline points='");
  for (guint i = 0; i < pages->len; i++)
    {
      const Cell *c = &m->cells[r * m->columns->len + g_array_index (pages, guint, i)];
      if (c->n > 0)
        g_string_append_printf (out, "%.1f,%.1f ", LEFT + step * i, place (exp (c->log_sum / c->n), most));
    }
  g_string_append_printf (out, "' fill='none' stroke='%s' stroke-width='1.5'/>\n<rect x='%d' y='%u' width='10' height='3' "
                          "fill='%s'/><text x='%d' y='%u'>%s</text>\n", colour, WIDTH - RIGHT + 16, TOP + 20 * r + 5,
                          colour, WIDTH - RIGHT + 32, TOP + 20 * r + 10, name);
}

static GArray *
pages_of (const CoopReportMatrix *m, double *most)
{
  GArray *pages = g_array_new (FALSE, FALSE, sizeof (guint));
  *most = 1.05;
  for (guint c = 0; c < m->columns->len; c++)
    if (page_of (m->columns->pdata[c]) > 0)
      {
        g_array_append_val (pages, c);
        for (guint r = 0; r < m->rows->len; r++)
          {
            const Cell *cell = &m->cells[r * m->columns->len + c];
            *most = cell->n > 0 ? fmax (*most, exp (cell->log_sum / cell->n)) : *most;
          }
      }
  g_array_sort_with_data (pages, by_page, m->columns);
  return pages;
}

gboolean
coop_report_pages_svg (GString *out, const CoopReportMatrix *m)
{
  double most;
  g_autoptr (GArray) pages = pages_of (m, &most);
  if (pages->len < 2)
    return FALSE;
  g_string_append_printf (out, "<svg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 %d %d' width='%d' height='%d' role='img' "
                          "font-family='sans-serif' font-size='12' fill='currentColor'>\n<title>Page size</title>\n"
                          "<text x='%d' y='18' font-size='14'>Overhead against page size <tspan opacity='.7'>(mean, ratios "
                          "0.4 to 1)</tspan></text>\n", WIDTH, HEIGHT, WIDTH, HEIGHT, LEFT);
  for (guint i = 0; i <= 4; i++)
    {
      double value = 1 + (most - 1) * i / 4;
      g_string_append_printf (out, "<line x1='%d' y1='%.1f' x2='%d' y2='%.1f' stroke='currentColor' opacity='.15'/>"
                              "<text x='%d' y='%.1f' text-anchor='end'>%.3g</text>\n", LEFT, place (value, most),
                              WIDTH - RIGHT, place (value, most), LEFT - 6, place (value, most) + 4, value);
    }
  for (guint i = 0; i < pages->len; i++)
    {
      char text[32];
      coop_size_format (page_of (m->columns->pdata[g_array_index (pages, guint, i)]), text, sizeof text);
      g_string_append_printf (out, "<text x='%.1f' y='%d' text-anchor='middle'>%s</text>\n",
                              LEFT + (double) (WIDTH - LEFT - RIGHT) / (pages->len - 1) * i, HEIGHT - 20, text);
    }
  for (guint r = 0; r < m->rows->len; r++)
    page_line (out, m, pages, r, most);
  g_string_append (out, "</svg>\n");
  return TRUE;
}
