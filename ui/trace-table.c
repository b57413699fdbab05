/* SPDX-License-Identifier: Apache-2.0 */
/* Trace table: see the header. Titles are clicked to sort, but it is SQL that sorts: the sorters of the
 * columns only tell which of them was clicked last, and which way.
 */
#include "config.h"

#include "trace-table.h"

#include <glib/gi18n.h>

#include "format.h"

#define COPY_ROWS 100000
#define FIRST_QUERY "SELECT operator, count(*) AS blocks, sum(bytes) AS bytes FROM v_block GROUP BY operator ORDER BY bytes DESC"

struct _CoopTraceTable
{
  GtkWidget parent_instance;

  const CoopTableSpec *spec;
  char *path;
  CoopRows *rows;
  GtkWidget *box, *entry, *status, *only, *stop, *view;
  guint64 block;      /* selected on the map */
  GtkSingleSelection *selection;
  int asked;          /* column whose sorter was asked first */
  int sort;
  gboolean falling, dirty;
  guint n_columns;
};

G_DEFINE_FINAL_TYPE (CoopTraceTable, coop_trace_table, GTK_TYPE_WIDGET)

enum { PICKED, ACTIVATED, N_SIGNALS };
static guint signals[N_SIGNALS];

/* ---- cells ---- */

typedef struct {
  guint column;
  gboolean numeric;
} CellPlace;

static void
show_cell (CoopListRow *row, GtkListItem *item)
{
  guint column = GPOINTER_TO_UINT (g_object_get_data (G_OBJECT (item), "coop-column"));
  const char *text = coop_list_row_get_cell (row, column);
  gtk_label_set_text (GTK_LABEL (gtk_list_item_get_child (item)), text ? text : "…");
}

static void
setup_cell (GtkSignalListItemFactory *factory, GtkListItem *item, CellPlace *place)
{
  GtkWidget *label = gtk_label_new (NULL);
  gtk_label_set_xalign (GTK_LABEL (label), place->numeric ? 1 : 0);
  gtk_label_set_single_line_mode (GTK_LABEL (label), TRUE);
  gtk_label_set_ellipsize (GTK_LABEL (label), PANGO_ELLIPSIZE_END);
  gtk_widget_add_css_class (label, "numeric");
  g_object_set_data (G_OBJECT (item), "coop-column", GUINT_TO_POINTER (place->column));
  gtk_list_item_set_child (item, label);
}

static void
bind_cell (GtkSignalListItemFactory *factory, GtkListItem *item, CellPlace *place)
{
  CoopListRow *row = gtk_list_item_get_item (item);
  show_cell (row, item);
  if (!coop_list_row_get_cell (row, place->column))
    g_signal_connect_object (row, "filled", G_CALLBACK (show_cell), item, 0);
}

static void
unbind_cell (GtkSignalListItemFactory *factory, GtkListItem *item, CellPlace *place)
{
  g_signal_handlers_disconnect_by_func (gtk_list_item_get_item (item), show_cell, item);
}

static void
place_free (gpointer data, GClosure *closure)
{
  g_free (data);
}

/* ---- sorting ---- */

typedef struct {
  CoopTraceTable *table;
  int column;
} SorterPlace;

static int
note_sorter (gconstpointer a, gconstpointer b, gpointer data)
{
  SorterPlace *place = data;
  if (place->table->asked < 0)
    place->table->asked = place->column;
  return GTK_ORDERING_SMALLER;
}

static void read_again (CoopTraceTable *self);

static void
sorter_changed (GtkSorter *sorter, GtkSorterChange change, CoopTraceTable *self)
{
  g_autoptr (GObject) one = g_object_new (COOP_TYPE_LIST_ROW, NULL), other = g_object_new (COOP_TYPE_LIST_ROW, NULL);
  self->asked = -1;
  gboolean falling = gtk_sorter_compare (sorter, one, other) == GTK_ORDERING_LARGER;
  if (self->asked == self->sort && (self->asked < 0 || falling == self->falling))
    return;
  self->sort = self->asked;
  self->falling = falling;
  read_again (self);
}

/* ---- columns ---- */

static void
add_column (CoopTraceTable *self, guint n, const char *title, gboolean numeric, gboolean wide)
{
  GtkListItemFactory *factory = gtk_signal_list_item_factory_new ();
  CellPlace *place = g_new (CellPlace, 1);
  *place = (CellPlace) { n, numeric };
  g_signal_connect_data (factory, "setup", G_CALLBACK (setup_cell), place, place_free, 0);
  g_signal_connect (factory, "bind", G_CALLBACK (bind_cell), place);
  g_signal_connect (factory, "unbind", G_CALLBACK (unbind_cell), place);
  g_autoptr (GtkColumnViewColumn) column = gtk_column_view_column_new (title, factory);
  gtk_column_view_column_set_expand (column, wide);
  gtk_column_view_column_set_resizable (column, TRUE);
  gtk_column_view_column_set_fixed_width (column, wide ? -1 : 104);
  if (self->spec)
    {
      SorterPlace *sorter_place = g_new (SorterPlace, 1);
      *sorter_place = (SorterPlace) { self, (int) n };
      g_autoptr (GtkSorter) sorter = GTK_SORTER (gtk_custom_sorter_new (note_sorter, sorter_place, g_free));
      gtk_column_view_column_set_sorter (column, sorter);
    }
  gtk_column_view_append_column (GTK_COLUMN_VIEW (self->view), column);
  self->n_columns++;
}

static void
remove_columns (CoopTraceTable *self)
{
  GListModel *columns = gtk_column_view_get_columns (GTK_COLUMN_VIEW (self->view));
  while (g_list_model_get_n_items (columns) > 0)
    {
      g_autoptr (GtkColumnViewColumn) column = g_list_model_get_item (columns, 0);
      gtk_column_view_remove_column (GTK_COLUMN_VIEW (self->view), column);
    }
  self->n_columns = 0;
}

static void
query_columns (CoopRows *rows, CoopTraceTable *self)
{
  const char *const *names = coop_rows_get_columns (rows);
  remove_columns (self);
  for (guint i = 0; names && names[i]; i++)
    add_column (self, i, names[i], FALSE, i == 0);
}

/* ---- reading ---- */

static void
show_state (CoopRows *rows, CoopTraceTable *self)
{
  const char *error = coop_rows_get_error (rows);
  g_autofree char *n = coop_format_count (g_list_model_get_n_items (G_LIST_MODEL (rows)));
  gboolean busy = coop_rows_is_busy (rows);
  g_autofree char *text = NULL;
  if (error)
    text = g_strdup (error);
  else if (busy)
    /* Translators: a number; there will be more */
    text = g_strdup_printf (_("%s rows so far…"), n);
  else if (coop_rows_is_cut (rows))
    text = g_strdup_printf (_("the first %s rows"), n);
  else
    text = g_strdup_printf (_("%s rows"), n);
  gtk_label_set_text (GTK_LABEL (self->status), text);
  gtk_widget_set_tooltip_text (self->status, error);
  gtk_widget_set_visible (self->stop, busy);
  if (error)
    gtk_widget_add_css_class (self->status, "error");
  else
    gtk_widget_remove_css_class (self->status, "error");
}

static void
copied (CoopRows *rows, const char *csv, CoopTraceTable *self)
{
  gdk_clipboard_set_text (gtk_widget_get_clipboard (GTK_WIDGET (self)), csv);
  gtk_label_set_text (GTK_LABEL (self->status), _("copied as CSV"));
}

static void
make_rows (CoopTraceTable *self)
{
  self->rows = coop_rows_new (self->path);
  g_signal_connect_object (self->rows, "state", G_CALLBACK (show_state), self, 0);
  g_signal_connect_object (self->rows, "columns", G_CALLBACK (query_columns), self, 0);
  g_signal_connect_object (self->rows, "copied", G_CALLBACK (copied), self, 0);
  gtk_single_selection_set_model (self->selection, G_LIST_MODEL (self->rows));
}

static char *
with_block (CoopTraceTable *self, const char *where)
{
  if (!self->only || self->block == 0 || !gtk_toggle_button_get_active (GTK_TOGGLE_BUTTON (self->only)))
    return g_strdup (where);
  return g_strdup_printf ("%s%s%s = %" G_GUINT64_FORMAT, where, *where ? " AND " : "", self->spec->block, self->block);
}

static void
read_again (CoopTraceTable *self)
{
  const char *text = gtk_editable_get_text (GTK_EDITABLE (self->entry));
  g_autoptr (GError) error = NULL;
  if (!self->path || !gtk_widget_get_mapped (GTK_WIDGET (self)))
    {
      self->dirty = TRUE;
      return;
    }
  self->dirty = FALSE;
  if (!self->rows)
    make_rows (self);
  if (!self->spec)
    {
      coop_rows_query (self->rows, text);
      return;
    }
  g_autofree char *where = coop_filter_to_sql (self->spec, text, &error);
  if (where)
    {
      gboolean own = self->sort < 0;
      g_autofree char *both = with_block (self, where);
      coop_rows_show (self->rows, self->spec, both, own ? self->spec->sort : self->sort,
                      own ? self->spec->falling : self->falling);
      gtk_widget_remove_css_class (self->entry, "error");
      return;
    }
  gtk_widget_add_css_class (self->entry, "error");
  gtk_label_set_text (GTK_LABEL (self->status), error->message);
  gtk_widget_set_tooltip_text (self->status, error->message);
}

static void
coop_trace_table_map (GtkWidget *widget)
{
  CoopTraceTable *self = COOP_TRACE_TABLE (widget);
  GTK_WIDGET_CLASS (coop_trace_table_parent_class)->map (widget);
  if (self->dirty)
    read_again (self);
}

/* ---- what a person does ---- */

static void
row_told (CoopTraceTable *self, CoopListRow *row, guint signal)
{
  if (row && coop_list_row_get_cell (row, 0))
    g_signal_emit (self, signals[signal], 0, coop_list_row_get_block (row), coop_list_row_get_event (row));
}

static void
row_selected (GtkSingleSelection *selection, GParamSpec *pspec, CoopTraceTable *self)
{
  row_told (self, gtk_single_selection_get_selected_item (selection), PICKED);
}

static void
row_activated (GtkColumnView *view, guint position, CoopTraceTable *self)
{
  g_autoptr (CoopListRow) row = g_list_model_get_item (G_LIST_MODEL (self->selection), position);
  row_told (self, row, ACTIVATED);
}

static void
stop_clicked (CoopTraceTable *self)
{
  if (self->rows)
    coop_rows_stop (self->rows);
}

static void
copy_clicked (CoopTraceTable *self)
{
  if (self->rows)
    coop_rows_copy (self->rows, COPY_ROWS);
}

static gboolean
copy_by_key (GtkWidget *widget, GVariant *args, gpointer data)
{
  copy_clicked (COOP_TRACE_TABLE (widget));
  return TRUE;
}

/* ---- the widget ---- */

static void
coop_trace_table_dispose (GObject *object)
{
  CoopTraceTable *self = COOP_TRACE_TABLE (object);
  if (self->selection)
    {
      g_signal_handlers_disconnect_by_data (self->selection, self);
      gtk_single_selection_set_model (self->selection, NULL);
    }
  if (self->view)
    g_signal_handlers_disconnect_by_data (gtk_column_view_get_sorter (GTK_COLUMN_VIEW (self->view)), self);
  self->view = NULL;
  g_clear_object (&self->rows);
  g_clear_pointer (&self->box, gtk_widget_unparent);
  g_clear_object (&self->selection);
  g_clear_pointer (&self->path, g_free);
  G_OBJECT_CLASS (coop_trace_table_parent_class)->dispose (object);
}

static void
coop_trace_table_class_init (CoopTraceTableClass *class)
{
  GtkWidgetClass *widget_class = GTK_WIDGET_CLASS (class);
  static const char *const names[N_SIGNALS] = { "picked", "activated" };
  G_OBJECT_CLASS (class)->dispose = coop_trace_table_dispose;
  widget_class->map = coop_trace_table_map;
  gtk_widget_class_set_css_name (widget_class, "cooptable");
  gtk_widget_class_set_layout_manager_type (widget_class, GTK_TYPE_BIN_LAYOUT);
  gtk_widget_class_add_binding (widget_class, GDK_KEY_c, GDK_CONTROL_MASK | GDK_SHIFT_MASK, copy_by_key, NULL);
  for (int i = 0; i < N_SIGNALS; i++)
    signals[i] = g_signal_new (names[i], G_TYPE_FROM_CLASS (class), G_SIGNAL_RUN_LAST, 0, NULL, NULL, NULL,
                               G_TYPE_NONE, 2, G_TYPE_UINT64, G_TYPE_UINT64);
}

static void
coop_trace_table_init (CoopTraceTable *self)
{
  self->sort = -1;
  self->dirty = TRUE;
}

static GtkWidget *
add_button (CoopTraceTable *self, GtkWidget *bar, const char *icon, const char *name, GCallback clicked)
{
  GtkWidget *button = gtk_button_new_from_icon_name (icon);
  gtk_widget_set_tooltip_text (button, name);
  gtk_accessible_update_property (GTK_ACCESSIBLE (button), GTK_ACCESSIBLE_PROPERTY_LABEL, name, -1);
  g_signal_connect_swapped (button, "clicked", clicked, self);
  gtk_box_append (GTK_BOX (bar), button);
  return button;
}

/* "Filter: conv, size>10MiB, ..." with the first columns of this table. */
static void
add_entry (CoopTraceTable *self, GtkWidget *bar)
{
  const char *name = self->spec ? _("Filter") : _("Query");
  self->entry = self->spec ? gtk_search_entry_new () : gtk_entry_new ();
  gtk_widget_set_hexpand (self->entry, TRUE);
  gtk_accessible_update_property (GTK_ACCESSIBLE (self->entry), GTK_ACCESSIBLE_PROPERTY_LABEL, name, -1);
  gtk_box_append (GTK_BOX (bar), self->entry);
  if (!self->spec)
    {
      gtk_editable_set_text (GTK_EDITABLE (self->entry), FIRST_QUERY);
      gtk_widget_set_tooltip_text (self->entry, _("One SELECT over the views v_event, v_block, v_tensor, v_operator, "
                                                  "v_eviction, v_evicted, v_usage, v_policy, v_oom. Enter runs it. "
                                                  "Columns called block or event lead to the map."));
      g_signal_connect_swapped (self->entry, "activate", G_CALLBACK (read_again), self);
      return;
    }
  GString *hint = g_string_new (NULL);
  for (const CoopColumnSpec *column = self->spec->columns; column->id; column++)
    g_string_append_printf (hint, "%s%s", hint->len > 0 ? ", " : "", column->id);
  /* Translators: a list of words, English in every language */
  g_autofree char *help = g_strdup_printf (_("Words, or a column with < > = != or ~ and a value, as size>10MiB. "
                                             "Columns: %s"), hint->str);
  g_string_free (hint, TRUE);
  g_object_set (self->entry, "placeholder-text", help, NULL);
  gtk_widget_set_tooltip_text (self->entry, help);
  g_signal_connect_swapped (self->entry, "search-changed", G_CALLBACK (read_again), self);
}

/* Titles stand over what they name; GTK has no property for it. */
static void
align_titles (CoopTraceTable *self)
{
  GtkWidget *header = gtk_widget_get_first_child (self->view);
  GtkWidget *title = header ? gtk_widget_get_first_child (header) : NULL;
  for (guint i = 0; title && self->spec && self->spec->columns[i].id; i++, title = gtk_widget_get_next_sibling (title))
    {
      GtkWidget *box = gtk_widget_get_first_child (title);
      GtkWidget *label = box ? gtk_widget_get_first_child (box) : NULL;
      if (self->spec->columns[i].kind == COOP_CELL_TEXT || !GTK_IS_LABEL (label))
        continue;
      gtk_widget_set_hexpand (label, TRUE);
      gtk_label_set_xalign (GTK_LABEL (label), 1);
    }
}

static void
build (CoopTraceTable *self)
{
  GtkWidget *bar = gtk_box_new (GTK_ORIENTATION_HORIZONTAL, 6), *scroller = gtk_scrolled_window_new ();
  const char *title = self->spec ? _(self->spec->title) : _("Query");
  add_entry (self, bar);
  self->status = gtk_label_new (NULL);
  gtk_label_set_ellipsize (GTK_LABEL (self->status), PANGO_ELLIPSIZE_END);
  gtk_label_set_max_width_chars (GTK_LABEL (self->status), 40);
  gtk_widget_add_css_class (self->status, "caption");
  gtk_widget_add_css_class (self->status, "numeric");
  gtk_box_append (GTK_BOX (bar), self->status);
  if (self->spec && self->spec->block)
    {
      self->only = gtk_toggle_button_new ();
      gtk_button_set_icon_name (GTK_BUTTON (self->only), "find-location-symbolic");
      gtk_widget_set_tooltip_text (self->only, _("Only the block selected on the map"));
      gtk_accessible_update_property (GTK_ACCESSIBLE (self->only), GTK_ACCESSIBLE_PROPERTY_LABEL,
                                      _("Only the block selected on the map"), -1);
      g_signal_connect_swapped (self->only, "toggled", G_CALLBACK (read_again), self);
      gtk_box_append (GTK_BOX (bar), self->only);
    }
  self->stop = add_button (self, bar, "process-stop-symbolic", _("Stop"), G_CALLBACK (stop_clicked));
  gtk_widget_set_visible (self->stop, FALSE);
  add_button (self, bar, "view-refresh-symbolic", self->spec ? _("Read Again") : _("Run the Query"), G_CALLBACK (read_again));
  add_button (self, bar, "edit-copy-symbolic", _("Copy as CSV (Ctrl+Shift+C)"), G_CALLBACK (copy_clicked));
  self->selection = gtk_single_selection_new (NULL);
  gtk_single_selection_set_autoselect (self->selection, FALSE);
  gtk_single_selection_set_can_unselect (self->selection, TRUE);
  self->view = gtk_column_view_new (g_object_ref (GTK_SELECTION_MODEL (self->selection)));
  gtk_widget_add_css_class (self->view, "data-table");
  gtk_accessible_update_property (GTK_ACCESSIBLE (self->view), GTK_ACCESSIBLE_PROPERTY_LABEL, title, -1);
  for (guint i = 0; self->spec && self->spec->columns[i].id; i++)
    add_column (self, i, _(self->spec->columns[i].title), self->spec->columns[i].kind != COOP_CELL_TEXT,
                self->spec->columns[i].wide);
  align_titles (self);
  g_signal_connect (self->selection, "notify::selected-item", G_CALLBACK (row_selected), self);
  g_signal_connect (self->view, "activate", G_CALLBACK (row_activated), self);
  g_signal_connect (gtk_column_view_get_sorter (GTK_COLUMN_VIEW (self->view)), "changed", G_CALLBACK (sorter_changed), self);
  gtk_scrolled_window_set_child (GTK_SCROLLED_WINDOW (scroller), self->view);
  gtk_widget_set_vexpand (scroller, TRUE);
  self->box = gtk_box_new (GTK_ORIENTATION_VERTICAL, 4);
  gtk_box_append (GTK_BOX (self->box), bar);
  gtk_box_append (GTK_BOX (self->box), scroller);
  gtk_widget_set_parent (self->box, GTK_WIDGET (self));
}

GtkWidget *
coop_trace_table_new (const CoopTableSpec *spec)
{
  CoopTraceTable *self = g_object_new (COOP_TYPE_TRACE_TABLE, NULL);
  self->spec = spec;
  build (self);
  return GTK_WIDGET (self);
}

void
coop_trace_table_set_path (CoopTraceTable *self, const char *path)
{
  if (g_strcmp0 (self->path, path) == 0)
    return;
  g_free (self->path);
  self->path = g_strdup (path);
  gtk_single_selection_set_model (self->selection, NULL);
  g_clear_object (&self->rows);
  gtk_label_set_text (GTK_LABEL (self->status), "");
  read_again (self);
}

void
coop_trace_table_set_block (CoopTraceTable *self, guint64 block)
{
  if (self->block == block)
    return;
  self->block = block;
  if (self->only && gtk_toggle_button_get_active (GTK_TOGGLE_BUTTON (self->only)))
    read_again (self);
}

void
coop_trace_table_set_only (CoopTraceTable *self, gboolean only)
{
  if (self->only)
    gtk_toggle_button_set_active (GTK_TOGGLE_BUTTON (self->only), only);
}

void
coop_trace_table_refresh (CoopTraceTable *self)
{
  read_again (self);
}

void
coop_trace_table_set_text (CoopTraceTable *self, const char *text)
{
  gtk_editable_set_text (GTK_EDITABLE (self->entry), text);
  read_again (self);
}

void
coop_trace_table_sort (CoopTraceTable *self, int column, gboolean falling)
{
  GListModel *columns = gtk_column_view_get_columns (GTK_COLUMN_VIEW (self->view));
  g_autoptr (GtkColumnViewColumn) found = column >= 0 ? g_list_model_get_item (columns, (guint) column) : NULL;
  gtk_column_view_sort_by_column (GTK_COLUMN_VIEW (self->view), found,
                                  falling ? GTK_SORT_DESCENDING : GTK_SORT_ASCENDING);
}

CoopRows *
coop_trace_table_get_rows (CoopTraceTable *self)
{
  return self->rows;
}
