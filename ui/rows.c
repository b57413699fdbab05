/* SPDX-License-Identifier: Apache-2.0 */
/* Rows: the list; see the header. */
#include "config.h"

#include "rows.h"

#include "rows-private.h"

#define KEEP_PAGES 64
/* A list makes widgets for so many rows at once, whether seen or not: they come a few at a turn. */
#define SLOW_ROWS 256
#define ROWS_A_TURN 12

/* ---- one row ---- */

struct _CoopListRow
{
  GObject parent_instance;
  guint n_columns;
  char **cells; /* NULL until filled */
  guint64 block, event;
};

G_DEFINE_FINAL_TYPE (CoopListRow, coop_list_row, G_TYPE_OBJECT)

static guint filled_signal;

static void
coop_list_row_finalize (GObject *object)
{
  g_strfreev (COOP_LIST_ROW (object)->cells);
  G_OBJECT_CLASS (coop_list_row_parent_class)->finalize (object);
}

static void
coop_list_row_class_init (CoopListRowClass *class)
{
  G_OBJECT_CLASS (class)->finalize = coop_list_row_finalize;
  filled_signal = g_signal_new ("filled", G_TYPE_FROM_CLASS (class), G_SIGNAL_RUN_LAST, 0, NULL, NULL, NULL,
                                G_TYPE_NONE, 0);
}

static void
coop_list_row_init (CoopListRow *row)
{
  row->event = G_MAXUINT64;
}

const char *
coop_list_row_get_cell (CoopListRow *row, guint column)
{
  return row->cells && column < row->n_columns ? row->cells[column] : NULL;
}

guint64
coop_list_row_get_block (CoopListRow *row)
{
  return row->block;
}

guint64
coop_list_row_get_event (CoopListRow *row)
{
  return row->event;
}

/* Takes the cells out of the page. */
static void
fill (CoopListRow *row, CoopRowsPage *page, guint at)
{
  if (row->cells)
    return;
  row->cells = g_new0 (char *, page->n_columns + 1);
  row->n_columns = page->n_columns;
  for (guint i = 0; i < page->n_columns; i++)
    {
      char *cell = g_steal_pointer (&page->cells[at * page->n_columns + i]);
      row->cells[i] = cell ? cell : g_strdup ("");
    }
  row->block = page->block[at];
  row->event = page->event[at];
  g_signal_emit (row, filled_signal, 0);
}

/* ---- the list ---- */

struct _CoopRows
{
  GObject parent_instance;

  CoopRowsWork work;
  guint serial;      /* of the wish that the list shows */
  guint n, known;    /* shown, and to be shown */
  guint growing;     /* source */
  gboolean busy, cut;
  char *error;
  char **columns;
  GHashTable *pages; /* number -> GPtrArray of CoopListRow */
  GQueue recent;     /* numbers of pages, the newest first */
};

static GType
item_type (GListModel *model)
{
  return COOP_TYPE_LIST_ROW;
}

static guint
n_items (GListModel *model)
{
  return COOP_ROWS (model)->n;
}

static void
want_page (CoopRows *self, guint number)
{
  g_mutex_lock (&self->work.mutex);
  g_array_append_val (self->work.pages, number);
  g_cond_signal (&self->work.cond);
  g_mutex_unlock (&self->work.mutex);
}

static GPtrArray *
get_page (CoopRows *self, guint number)
{
  GPtrArray *page = g_hash_table_lookup (self->pages, GUINT_TO_POINTER (number));
  if (page)
    return page;
  page = g_ptr_array_new_with_free_func (g_object_unref);
  for (guint i = 0; i < COOP_PAGE_ROWS; i++)
    g_ptr_array_add (page, g_object_new (COOP_TYPE_LIST_ROW, NULL));
  g_hash_table_insert (self->pages, GUINT_TO_POINTER (number), page);
  g_queue_push_head (&self->recent, GUINT_TO_POINTER (number));
  if (self->recent.length > KEEP_PAGES)
    g_hash_table_remove (self->pages, g_queue_pop_tail (&self->recent));
  want_page (self, number);
  return page;
}

static gpointer
get_item (GListModel *model, guint position)
{
  CoopRows *self = COOP_ROWS (model);
  if (position >= self->n)
    return NULL;
  GPtrArray *page = get_page (self, position / COOP_PAGE_ROWS);
  return g_object_ref (page->pdata[position % COOP_PAGE_ROWS]);
}

static void
list_init (GListModelInterface *iface)
{
  iface->get_item_type = item_type;
  iface->get_n_items = n_items;
  iface->get_item = get_item;
}

G_DEFINE_FINAL_TYPE_WITH_CODE (CoopRows, coop_rows, G_TYPE_OBJECT, G_IMPLEMENT_INTERFACE (G_TYPE_LIST_MODEL, list_init))

enum { STATE, COLUMNS, COPIED, N_SIGNALS };
static guint signals[N_SIGNALS];

static void
forget_pages (CoopRows *self)
{
  g_hash_table_remove_all (self->pages);
  g_queue_clear (&self->recent);
}

/* The last page was asked for when it had fewer rows. */
static void
forget_last_page (CoopRows *self)
{
  guint number = self->n / COOP_PAGE_ROWS;
  if (self->n % COOP_PAGE_ROWS == 0)
    return;
  GPtrArray *page = g_hash_table_lookup (self->pages, GUINT_TO_POINTER (number));
  if (page)
    want_page (self, number);
}

static void
take_pages (CoopRows *self, GPtrArray *read)
{
  for (guint i = 0; i < read->len; i++)
    {
      CoopRowsPage *page = read->pdata[i];
      GPtrArray *rows = g_hash_table_lookup (self->pages, GUINT_TO_POINTER (page->page));
      for (guint at = 0; rows && at < COOP_PAGE_ROWS && page->page * COOP_PAGE_ROWS + at < self->n; at++)
        fill (rows->pdata[at], page, at);
    }
}

static gboolean
grow (gpointer data)
{
  CoopRows *self = data;
  guint before = self->n, n = self->known;
  if (before < SLOW_ROWS)
    n = MIN (n, before + ROWS_A_TURN);
  forget_last_page (self);
  self->n = n;
  if (n > before)
    g_list_model_items_changed (G_LIST_MODEL (self), before, 0, n - before);
  if (self->n < self->known)
    return G_SOURCE_CONTINUE;
  self->growing = 0;
  g_signal_emit (self, signals[STATE], 0);
  return G_SOURCE_REMOVE;
}

/* From the thread to the list: a turn of the main loop. */
static gboolean
look (gpointer data)
{
  CoopRows *self = data;
  CoopRowsWork *work = &self->work;
  g_mutex_lock (&work->mutex);
  work->idle = 0;
  g_autoptr (GPtrArray) read = work->read;
  work->read = g_ptr_array_new_with_free_func ((GDestroyNotify) coop_rows_page_free);
  g_autofree char *csv = g_steal_pointer (&work->csv);
  gboolean current = work->serial == self->serial;
  guint n = current ? work->n : 0;
  gboolean busy = current ? work->busy : work->reader || !work->error, cut = work->cut;
  g_autofree char *error = g_strdup (work->error);
  g_auto (GStrv) columns = current && work->columns ? g_strdupv (work->columns) : NULL;
  g_mutex_unlock (&work->mutex);

  gboolean told = busy != self->busy || g_strcmp0 (error, self->error) != 0 || n != self->known;
  self->busy = busy;
  self->cut = cut;
  g_free (self->error);
  self->error = g_steal_pointer (&error);
  if (columns && (!self->columns || !g_strv_equal ((const char *const *) columns, (const char *const *) self->columns)))
    {
      g_strfreev (self->columns);
      self->columns = g_steal_pointer (&columns);
      g_signal_emit (self, signals[COLUMNS], 0);
    }
  self->known = MAX (n, self->known);
  if (self->n < self->known && self->growing == 0)
    self->growing = g_idle_add_full (G_PRIORITY_LOW, grow, self, NULL);
  take_pages (self, read);
  if (csv)
    g_signal_emit (self, signals[COPIED], 0, csv);
  if (told)
    g_signal_emit (self, signals[STATE], 0);
  return G_SOURCE_REMOVE;
}

static void
coop_rows_finalize (GObject *object)
{
  CoopRows *self = COOP_ROWS (object);
  CoopRowsWork *work = &self->work;
  g_mutex_lock (&work->mutex);
  work->quit = TRUE;
  if (work->reader)
    coop_reader_interrupt (work->reader);
  g_cond_signal (&work->cond);
  g_mutex_unlock (&work->mutex);
  g_thread_join (work->thread);
  g_clear_handle_id (&work->idle, g_source_remove);
  g_clear_handle_id (&self->growing, g_source_remove);
  g_array_unref (work->pages);
  g_ptr_array_unref (work->read);
  g_free (work->path);
  g_free (work->wish.sql);
  g_free (work->error);
  g_free (work->csv);
  g_strfreev (work->columns);
  g_mutex_clear (&work->mutex);
  g_cond_clear (&work->cond);
  g_hash_table_unref (self->pages);
  g_queue_clear (&self->recent);
  g_free (self->error);
  g_strfreev (self->columns);
  G_OBJECT_CLASS (coop_rows_parent_class)->finalize (object);
}

static void
coop_rows_class_init (CoopRowsClass *class)
{
  GType type = G_TYPE_FROM_CLASS (class);
  G_OBJECT_CLASS (class)->finalize = coop_rows_finalize;
  signals[STATE] = g_signal_new ("state", type, G_SIGNAL_RUN_LAST, 0, NULL, NULL, NULL, G_TYPE_NONE, 0);
  signals[COLUMNS] = g_signal_new ("columns", type, G_SIGNAL_RUN_LAST, 0, NULL, NULL, NULL, G_TYPE_NONE, 0);
  signals[COPIED] = g_signal_new ("copied", type, G_SIGNAL_RUN_LAST, 0, NULL, NULL, NULL, G_TYPE_NONE, 1,
                                  G_TYPE_STRING);
}

static void
coop_rows_init (CoopRows *self)
{
  CoopRowsWork *work = &self->work;
  self->pages = g_hash_table_new_full (NULL, NULL, NULL, (GDestroyNotify) g_ptr_array_unref);
  g_mutex_init (&work->mutex);
  g_cond_init (&work->cond);
  work->pages = g_array_new (FALSE, FALSE, sizeof (guint));
  work->read = g_ptr_array_new_with_free_func ((GDestroyNotify) coop_rows_page_free);
  work->look = look;
  work->look_data = self;
}

CoopRows *
coop_rows_new (const char *path)
{
  CoopRows *self = g_object_new (COOP_TYPE_ROWS, NULL);
  self->work.path = g_strdup (path);
  self->work.thread = g_thread_new ("coop-rows", coop_rows_thread, &self->work);
  return self;
}

static void
wish (CoopRows *self, const CoopTableSpec *spec, const char *sql, int sort, gboolean falling)
{
  CoopRowsWork *work = &self->work;
  guint before = self->n;
  g_mutex_lock (&work->mutex);
  work->wish_serial++;
  g_free (work->wish.sql);
  work->wish = (CoopRowsWish) { spec, g_strdup (sql ? sql : ""), sort, falling };
  work->stop = work->cut = FALSE;
  work->copy = 0;
  g_array_set_size (work->pages, 0);
  g_ptr_array_set_size (work->read, 0);
  g_clear_pointer (&work->columns, g_strfreev);
  if (work->reader)
    coop_reader_interrupt (work->reader); /* what runs is for the wish before */
  g_cond_signal (&work->cond);
  self->serial = work->wish_serial;
  g_mutex_unlock (&work->mutex);
  forget_pages (self);
  self->n = self->known = 0;
  g_clear_handle_id (&self->growing, g_source_remove);
  self->busy = TRUE;
  g_clear_pointer (&self->columns, g_strfreev);
  if (before > 0)
    g_list_model_items_changed (G_LIST_MODEL (self), 0, before, 0);
  g_signal_emit (self, signals[STATE], 0);
}

void
coop_rows_show (CoopRows *self, const CoopTableSpec *spec, const char *where, int sort, gboolean falling)
{
  wish (self, spec, where, sort, falling);
}

void
coop_rows_query (CoopRows *self, const char *sql)
{
  wish (self, NULL, sql, -1, FALSE);
}

void
coop_rows_stop (CoopRows *self)
{
  if (!self->busy)
    return;
  g_mutex_lock (&self->work.mutex);
  self->work.stop = TRUE;
  if (self->work.reader)
    coop_reader_interrupt (self->work.reader);
  g_mutex_unlock (&self->work.mutex);
}

void
coop_rows_copy (CoopRows *self, guint n)
{
  g_mutex_lock (&self->work.mutex);
  self->work.copy = n;
  g_cond_signal (&self->work.cond);
  g_mutex_unlock (&self->work.mutex);
}

gboolean
coop_rows_is_busy (CoopRows *self)
{
  return self->busy || self->n < self->known;
}

gboolean
coop_rows_is_cut (CoopRows *self)
{
  return self->cut;
}

const char *
coop_rows_get_error (CoopRows *self)
{
  return self->error;
}

const char *const *
coop_rows_get_columns (CoopRows *self)
{
  return (const char *const *) self->columns;
}
