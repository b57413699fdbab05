/* SPDX-License-Identifier: Apache-2.0 */
/* Rows: the thread that reads. Keys first, all of them in the order wanted; then pages by their keys. A
 * table without a key, and a query of a person's, is read once and kept.
 */
#include "config.h"

#include <string.h>

#include "rows-private.h"

#define KEYS_SECONDS 600.0
#define PAGE_SECONDS 20.0
#define TELL_US (G_USEC_PER_SEC / 10)

/* What the thread keeps between wishes. */
typedef struct {
  CoopRowsWork *work;
  guint serial;
  CoopRowsWish wish;
  GArray *keys;      /* guint32 */
  GPtrArray *whole;  /* char ** of n_columns, block and event */
  guint n_columns;
  gint64 told_at;
} Reading;

void
coop_rows_page_free (CoopRowsPage *page)
{
  for (guint i = 0; i < COOP_PAGE_ROWS * page->n_columns; i++)
    g_free (page->cells[i]);
  g_free (page->cells);
  g_free (page);
}

/* Under the mutex. */
static void
tell (CoopRowsWork *work)
{
  if (work->idle == 0 && !work->quit)
    work->idle = g_idle_add_full (G_PRIORITY_LOW, work->look, work->look_data, NULL);
}

static gboolean
is_stale (Reading *r)
{
  CoopRowsWork *work = r->work;
  g_mutex_lock (&work->mutex);
  gboolean stale = work->quit || work->stop || work->wish_serial != r->serial;
  g_mutex_unlock (&work->mutex);
  return stale;
}

static void
tell_grown (Reading *r, gboolean done)
{
  CoopRowsWork *work = r->work;
  gint64 now = g_get_monotonic_time ();
  if (!done && now - r->told_at < TELL_US)
    return;
  r->told_at = now;
  g_mutex_lock (&work->mutex);
  work->serial = r->serial;
  work->n = r->whole ? r->whole->len : r->keys->len;
  work->busy = !done;
  tell (work);
  g_mutex_unlock (&work->mutex);
}

/* ---- SQL ---- */

static void
add_columns (GString *sql, const CoopTableSpec *spec)
{
  g_string_append_printf (sql, "%s, %s", spec->block ? spec->block : "NULL", spec->event ? spec->event : "NULL");
  for (const CoopColumnSpec *column = spec->columns; column->id; column++)
    g_string_append_printf (sql, ", %s", column->sql);
}

static void
add_order (GString *sql, const CoopRowsWish *wish)
{
  const char *way = wish->falling ? "DESC" : "ASC";
  const char *tie = wish->spec->key ? wish->spec->key : wish->spec->group;
  if (wish->sort >= 0)
    g_string_append_printf (sql, " ORDER BY %s %s, %s", wish->spec->columns[wish->sort].sql, way, tie);
  else
    g_string_append_printf (sql, " ORDER BY %s %s", tie, way);
}

static char *
sql_for_keys (const CoopRowsWish *wish)
{
  GString *sql = g_string_new (NULL);
  g_string_append_printf (sql, "SELECT %s FROM %s", wish->spec->key, wish->spec->from);
  if (*wish->sql)
    g_string_append_printf (sql, " WHERE %s", wish->sql);
  add_order (sql, wish);
  return g_string_free (sql, FALSE);
}

static char *
sql_for_whole (const CoopRowsWish *wish)
{
  if (!wish->spec)
    return g_strdup (wish->sql);
  GString *sql = g_string_new ("SELECT ");
  add_columns (sql, wish->spec);
  g_string_append_printf (sql, " FROM %s GROUP BY %s", wish->spec->from, wish->spec->group);
  if (*wish->sql)
    g_string_append_printf (sql, " HAVING %s", wish->sql);
  add_order (sql, wish);
  return g_string_free (sql, FALSE);
}

static char *
sql_for_rows (Reading *r, guint from, guint n)
{
  GString *sql = g_string_new (NULL);
  g_string_append_printf (sql, "SELECT %s, ", r->wish.spec->key);
  add_columns (sql, r->wish.spec);
  g_string_append_printf (sql, " FROM %s WHERE %s IN (", r->wish.spec->from, r->wish.spec->key);
  for (guint i = 0; i < n; i++)
    g_string_append_printf (sql, "%s%u", i > 0 ? "," : "", g_array_index (r->keys, guint32, from + i));
  g_string_append_c (sql, ')');
  return g_string_free (sql, FALSE);
}

/* ---- keys, and what is kept whole ---- */

static gboolean
take_key (gpointer user, int n, const char *const *names, const char *const *values, const int *types)
{
  Reading *r = user;
  guint32 key = values[0] ? (guint32) g_ascii_strtoull (values[0], NULL, 10) : 0;
  g_array_append_val (r->keys, key);
  if (r->keys->len % 4096 != 0)
    return TRUE;
  tell_grown (r, FALSE);
  return !is_stale (r);
}

static void
tell_columns (Reading *r, int n, const char *const *names)
{
  CoopRowsWork *work = r->work;
  g_mutex_lock (&work->mutex);
  g_strfreev (work->columns);
  work->columns = g_new0 (char *, n + 1);
  for (int i = 0; i < n; i++)
    work->columns[i] = g_strdup (names[i]);
  g_mutex_unlock (&work->mutex);
}

/* Of a query nothing is known of block and event but by the names of its columns. */
static gboolean
take_whole (gpointer user, int n, const char *const *names, const char *const *values, const int *types)
{
  Reading *r = user;
  gboolean query = r->wish.spec == NULL;
  if (query && r->whole->len == 0)
    {
      n = MIN (n, COOP_SPEC_COLUMNS);
      r->n_columns = (guint) n;
      tell_columns (r, n, names);
    }
  if (r->whole->len >= COOP_WHOLE_ROWS)
    {
      g_mutex_lock (&r->work->mutex);
      r->work->cut = TRUE;
      g_mutex_unlock (&r->work->mutex);
      return FALSE;
    }
  char **row = g_new0 (char *, r->n_columns + 3);
  for (guint i = 0; i < r->n_columns; i++)
    row[i] = g_strdup (values[query ? i : i + 2] ? values[query ? i : i + 2] : "");
  row[r->n_columns] = g_strdup (query || !values[0] ? "" : values[0]);
  row[r->n_columns + 1] = g_strdup (query || !values[1] ? "" : values[1]);
  for (guint i = 0; query && i < r->n_columns; i++)
    if (g_str_equal (names[i], "block") || g_str_equal (names[i], "event") || g_str_equal (names[i], "seq"))
      {
        char **place = &row[r->n_columns + (*names[i] == 'b' ? 0 : 1)];
        g_free (*place);
        *place = g_strdup (row[i]);
      }
  g_ptr_array_add (r->whole, row);
  if (r->whole->len % 256 != 0)
    return TRUE;
  tell_grown (r, FALSE);
  return !is_stale (r);
}

static void
forget (Reading *r)
{
  g_clear_pointer (&r->keys, g_array_unref);
  g_clear_pointer (&r->whole, g_ptr_array_unref);
}

static void
find_rows (Reading *r)
{
  CoopRowsWork *work = r->work;
  g_autoptr (GError) error = NULL;
  gboolean whole = !r->wish.spec || !r->wish.spec->key;
  forget (r);
  r->keys = g_array_new (FALSE, FALSE, sizeof (guint32));
  r->whole = whole ? g_ptr_array_new_with_free_func ((GDestroyNotify) g_strfreev) : NULL;
  r->n_columns = 0;
  for (const CoopColumnSpec *column = r->wish.spec ? r->wish.spec->columns : NULL; column && column->id; column++)
    r->n_columns++;
  g_autofree char *sql = whole ? sql_for_whole (&r->wish) : sql_for_keys (&r->wish);
  r->told_at = g_get_monotonic_time ();
  if (work->reader)
    coop_reader_query (work->reader, sql, KEYS_SECONDS, whole ? take_whole : take_key, r, &error);
  gboolean stale = is_stale (r);
  g_mutex_lock (&work->mutex);
  g_clear_pointer (&work->error, g_free);
  if (error && !stale)
    work->error = g_strdup (error->message);
  work->stop = FALSE;
  g_mutex_unlock (&work->mutex);
  tell_grown (r, TRUE);
}

/* ---- pages ---- */

typedef struct {
  Reading *r;
  GHashTable *place; /* key -> row of the page + 1 */
  CoopRowsPage *page;
  gboolean raw;
} Filling;

static gboolean
take_row (gpointer user, int n, const char *const *names, const char *const *values, const int *types)
{
  Filling *f = user;
  guint at = GPOINTER_TO_UINT (
      g_hash_table_lookup (f->place, GUINT_TO_POINTER (g_ascii_strtoull (values[0] ? values[0] : "", NULL, 10))));
  if (at-- == 0)
    return TRUE;
  f->page->block[at] = values[1] ? g_ascii_strtoull (values[1], NULL, 10) : 0;
  f->page->event[at] = values[2] ? g_ascii_strtoull (values[2], NULL, 10) : G_MAXUINT64;
  for (guint i = 0; i < f->page->n_columns; i++)
    {
      char **cell = &f->page->cells[at * f->page->n_columns + i];
      g_free (*cell);
      *cell = f->raw ? g_strdup (values[i + 3] ? values[i + 3] : "")
                     : coop_cell_format (f->r->wish.spec->columns[i].kind, values[i + 3]);
    }
  return TRUE;
}

static void
fill_from_whole (Reading *r, CoopRowsPage *page, guint from, guint n, gboolean raw)
{
  for (guint at = 0; at < n; at++)
    {
      char **row = r->whole->pdata[from + at];
      const char *block = row[r->n_columns], *event = row[r->n_columns + 1];
      page->block[at] = *block ? g_ascii_strtoull (block, NULL, 10) : 0;
      page->event[at] = *event ? g_ascii_strtoull (event, NULL, 10) : G_MAXUINT64;
      for (guint i = 0; i < r->n_columns; i++)
        page->cells[at * r->n_columns + i]
            = raw || !r->wish.spec ? g_strdup (row[i])
                                   : coop_cell_format (r->wish.spec->columns[i].kind, *row[i] ? row[i] : NULL);
    }
}

static CoopRowsPage *
read_page (Reading *r, guint number, gboolean raw)
{
  guint all = r->whole ? r->whole->len : r->keys->len, from = number * COOP_PAGE_ROWS;
  guint n = from < all ? MIN (COOP_PAGE_ROWS, all - from) : 0;
  CoopRowsPage *page = g_new0 (CoopRowsPage, 1);
  page->page = number;
  page->n_columns = r->n_columns;
  page->cells = g_new0 (char *, COOP_PAGE_ROWS * r->n_columns);
  if (r->whole)
    {
      fill_from_whole (r, page, from, n, raw);
      return page;
    }
  g_autoptr (GHashTable) place = g_hash_table_new (NULL, NULL);
  for (guint i = 0; i < n; i++)
    g_hash_table_insert (place, GUINT_TO_POINTER (g_array_index (r->keys, guint32, from + i)), GUINT_TO_POINTER (i + 1));
  g_autofree char *sql = sql_for_rows (r, from, n);
  Filling filling = { r, place, page, raw };
  if (n > 0)
    coop_reader_query (r->work->reader, sql, PAGE_SECONDS, take_row, &filling, NULL);
  return page;
}

/* ---- copy ---- */

static void
add_csv (GString *csv, const char *cell)
{
  if (!strpbrk (cell, ",\"\r\n"))
    {
      g_string_append (csv, cell);
      return;
    }
  g_string_append_c (csv, '"');
  for (const char *c = cell; *c; c++)
    {
      if (*c == '"')
        g_string_append_c (csv, '"');
      g_string_append_c (csv, *c);
    }
  g_string_append_c (csv, '"');
}

static char *
make_csv (Reading *r, guint wanted)
{
  GString *csv = g_string_new (NULL);
  guint all = r->whole ? r->whole->len : r->keys ? r->keys->len : 0, n = MIN (wanted, all);
  for (guint i = 0; i < r->n_columns; i++)
    {
      g_string_append (csv, i > 0 ? "," : "");
      add_csv (csv, r->wish.spec ? r->wish.spec->columns[i].id : r->work->columns[i]);
    }
  g_string_append (csv, "\n");
  for (guint number = 0; number * COOP_PAGE_ROWS < n && !is_stale (r); number++)
    {
      CoopRowsPage *page = read_page (r, number, TRUE);
      for (guint at = 0; at < COOP_PAGE_ROWS && number * COOP_PAGE_ROWS + at < n; at++)
        {
          for (guint i = 0; i < r->n_columns; i++)
            {
              const char *cell = page->cells[at * r->n_columns + i];
              g_string_append (csv, i > 0 ? "," : "");
              add_csv (csv, cell ? cell : "");
            }
          g_string_append (csv, "\n");
        }
      coop_rows_page_free (page);
    }
  return g_string_free (csv, FALSE);
}

/* ---- the thread ---- */

static void
open_reader (CoopRowsWork *work)
{
  g_autoptr (GError) error = NULL;
  CoopReader *reader = coop_reader_open (work->path, &error);
  g_mutex_lock (&work->mutex);
  work->reader = reader;
  if (error)
    work->error = g_strdup (error->message);
  tell (work);
  g_mutex_unlock (&work->mutex);
}

/* Takes the next thing to do; the mutex is held. FALSE: to wait. */
static gboolean
do_next (Reading *r)
{
  CoopRowsWork *work = r->work;
  if (work->wish_serial != r->serial)
    {
      r->serial = work->wish_serial;
      g_free (r->wish.sql);
      r->wish = work->wish;
      r->wish.sql = g_strdup (work->wish.sql);
      g_mutex_unlock (&work->mutex);
      find_rows (r);
      g_mutex_lock (&work->mutex);
      return TRUE;
    }
  if (work->pages->len > 0 && r->keys)
    {
      guint number = g_array_index (work->pages, guint, work->pages->len - 1);
      g_array_set_size (work->pages, work->pages->len - 1);
      g_mutex_unlock (&work->mutex);
      CoopRowsPage *page = read_page (r, number, FALSE);
      g_mutex_lock (&work->mutex);
      if (work->wish_serial == r->serial)
        g_ptr_array_add (work->read, page);
      else
        coop_rows_page_free (page);
      tell (work);
      return TRUE;
    }
  if (work->copy > 0 && r->keys)
    {
      guint n = work->copy;
      work->copy = 0;
      g_mutex_unlock (&work->mutex);
      char *csv = make_csv (r, n);
      g_mutex_lock (&work->mutex);
      g_free (work->csv);
      work->csv = csv;
      tell (work);
      return TRUE;
    }
  return FALSE;
}

gpointer
coop_rows_thread (gpointer data)
{
  CoopRowsWork *work = data;
  Reading r = { .work = work };
  open_reader (work);
  g_mutex_lock (&work->mutex);
  while (!work->quit)
    if (!work->reader || !do_next (&r))
      g_cond_wait (&work->cond, &work->mutex);
  CoopReader *reader = g_steal_pointer (&work->reader);
  g_mutex_unlock (&work->mutex);
  g_clear_pointer (&reader, coop_reader_free);
  forget (&r);
  g_free (r.wish.sql);
  return NULL;
}
