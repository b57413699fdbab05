/* SPDX-License-Identifier: Apache-2.0 */
/* Table: see the header. Rows are of one height, since lists of mixed heights jump in GTK 4.8. */
#include "config.h"

#include "table.h"

struct _CoopTableRow
{
  GObject parent_instance;
  guint64 id;
  char *text[COOP_TABLE_COLUMNS];
};

G_DEFINE_FINAL_TYPE (CoopTableRow, coop_table_row, G_TYPE_OBJECT)

static void
coop_table_row_finalize (GObject *object)
{
  CoopTableRow *row = COOP_TABLE_ROW (object);
  for (int i = 0; i < COOP_TABLE_COLUMNS; i++)
    g_free (row->text[i]);
  G_OBJECT_CLASS (coop_table_row_parent_class)->finalize (object);
}

static void
coop_table_row_class_init (CoopTableRowClass *class)
{
  G_OBJECT_CLASS (class)->finalize = coop_table_row_finalize;
}

static void
coop_table_row_init (CoopTableRow *row)
{
}

CoopTableRow *
coop_table_row_new (guint64 id)
{
  CoopTableRow *row = g_object_new (COOP_TYPE_TABLE_ROW, NULL);
  row->id = id;
  return row;
}

void
coop_table_row_take (CoopTableRow *row, guint column, char *text)
{
  g_return_if_fail (column < COOP_TABLE_COLUMNS);
  g_free (row->text[column]);
  row->text[column] = text;
}

guint64
coop_table_row_get_id (CoopTableRow *row)
{
  return row->id;
}

struct _CoopTable
{
  GtkWidget parent_instance;

  GtkWidget *scroller;
  GListStore *store;
  GtkSingleSelection *selection;
  guint64 picked;
  gboolean setting;
};

G_DEFINE_FINAL_TYPE (CoopTable, coop_table, GTK_TYPE_WIDGET)

static guint picked_signal;

static void
setup (GtkSignalListItemFactory *factory, GtkListItem *item, gpointer numeric)
{
  GtkWidget *label = gtk_label_new (NULL);
  gtk_label_set_xalign (GTK_LABEL (label), numeric ? 1 : 0);
  gtk_label_set_single_line_mode (GTK_LABEL (label), TRUE);
  gtk_label_set_ellipsize (GTK_LABEL (label), PANGO_ELLIPSIZE_END);
  gtk_widget_add_css_class (label, "numeric");
  gtk_list_item_set_child (item, label);
}

static void
bind (GtkSignalListItemFactory *factory, GtkListItem *item, gpointer data)
{
  CoopTableRow *row = gtk_list_item_get_item (item);
  guint column = GPOINTER_TO_UINT (g_object_get_data (G_OBJECT (factory), "coop-column"));
  const char *text = row->text[column];
  gtk_label_set_text (GTK_LABEL (gtk_list_item_get_child (item)), text ? text : "");
}

static void
selection_changed (GtkSingleSelection *selection, GParamSpec *pspec, CoopTable *self)
{
  CoopTableRow *row = gtk_single_selection_get_selected_item (selection);
  if (self->setting)
    return;
  self->picked = row ? row->id : 0;
  g_signal_emit (self, picked_signal, 0, self->picked);
}

static void
coop_table_dispose (GObject *object)
{
  CoopTable *self = COOP_TABLE (object);
  if (self->selection)
    g_signal_handlers_disconnect_by_data (self->selection, self);
  g_clear_pointer (&self->scroller, gtk_widget_unparent);
  g_clear_object (&self->selection);
  g_clear_object (&self->store);
  G_OBJECT_CLASS (coop_table_parent_class)->dispose (object);
}

static void
coop_table_class_init (CoopTableClass *class)
{
  GtkWidgetClass *widget_class = GTK_WIDGET_CLASS (class);
  G_OBJECT_CLASS (class)->dispose = coop_table_dispose;
  gtk_widget_class_set_css_name (widget_class, "cooptable");
  gtk_widget_class_set_layout_manager_type (widget_class, GTK_TYPE_BIN_LAYOUT);
  picked_signal = g_signal_new ("picked", G_TYPE_FROM_CLASS (class), G_SIGNAL_RUN_LAST, 0, NULL, NULL,
                                NULL, G_TYPE_NONE, 1, G_TYPE_UINT64);
}

static void
coop_table_init (CoopTable *self)
{
  self->store = g_list_store_new (COOP_TYPE_TABLE_ROW);
  self->selection = gtk_single_selection_new (g_object_ref (G_LIST_MODEL (self->store)));
  gtk_single_selection_set_autoselect (self->selection, FALSE);
  gtk_single_selection_set_can_unselect (self->selection, TRUE);
  g_signal_connect (self->selection, "notify::selected-item", G_CALLBACK (selection_changed), self);
}

/* Titles stand over what they name; GTK has no property for it. */
static void
align_titles (GtkWidget *view, const CoopTableColumn *columns)
{
  GtkWidget *header = gtk_widget_get_first_child (view);
  GtkWidget *title = header ? gtk_widget_get_first_child (header) : NULL;
  for (; title && columns->title; title = gtk_widget_get_next_sibling (title), columns++)
    {
      GtkWidget *box = gtk_widget_get_first_child (title);
      GtkWidget *label = box ? gtk_widget_get_first_child (box) : NULL;
      if (!columns->numeric || !GTK_IS_LABEL (label))
        continue;
      gtk_widget_set_hexpand (label, TRUE);
      gtk_label_set_xalign (GTK_LABEL (label), 1);
    }
}

GtkWidget *
coop_table_new (const CoopTableColumn *columns, const char *name)
{
  CoopTable *self = g_object_new (COOP_TYPE_TABLE, NULL);
  GtkWidget *view = gtk_column_view_new (g_object_ref (GTK_SELECTION_MODEL (self->selection)));
  gtk_widget_add_css_class (view, "data-table");
  for (guint i = 0; columns[i].title; i++)
    {
      GtkListItemFactory *factory = gtk_signal_list_item_factory_new ();
      g_object_set_data (G_OBJECT (factory), "coop-column", GUINT_TO_POINTER (i));
      g_signal_connect (factory, "setup", G_CALLBACK (setup), GINT_TO_POINTER (columns[i].numeric));
      g_signal_connect (factory, "bind", G_CALLBACK (bind), NULL);
      g_autoptr (GtkColumnViewColumn) column = gtk_column_view_column_new (columns[i].title, factory);
      gtk_column_view_column_set_expand (column, columns[i].wide);
      gtk_column_view_column_set_fixed_width (column, columns[i].wide ? -1 : 112);
      gtk_column_view_append_column (GTK_COLUMN_VIEW (view), column);
    }
  align_titles (view, columns);
  gtk_accessible_update_property (GTK_ACCESSIBLE (view), GTK_ACCESSIBLE_PROPERTY_LABEL, name, -1);
  self->scroller = gtk_scrolled_window_new ();
  gtk_scrolled_window_set_child (GTK_SCROLLED_WINDOW (self->scroller), view);
  gtk_widget_set_parent (self->scroller, GTK_WIDGET (self));
  return GTK_WIDGET (self);
}

/* Replaces the rows from `keep` on; the selection goes with its number. */
static void
splice (CoopTable *self, guint keep, GPtrArray *rows, guint from, guint n)
{
  guint there = g_list_model_get_n_items (G_LIST_MODEL (self->store));
  guint selected = gtk_single_selection_get_selected (self->selection);
  n = from < rows->len ? MIN (n, rows->len - from) : 0;
  if (selected >= keep)
    selected = GTK_INVALID_LIST_POSITION;
  for (guint i = 0; i < n && self->picked != 0; i++)
    if (((CoopTableRow *) rows->pdata[from + i])->id == self->picked)
      selected = keep + i;
  self->setting = TRUE;
  g_list_store_splice (self->store, keep, there - keep, rows->pdata + from, n);
  gtk_single_selection_set_selected (self->selection, selected);
  self->setting = FALSE;
}

void
coop_table_set_rows (CoopTable *self, GPtrArray *rows, guint n)
{
  splice (self, 0, rows, 0, n);
}

void
coop_table_add_rows (CoopTable *self, GPtrArray *rows, guint from, guint n)
{
  splice (self, g_list_model_get_n_items (G_LIST_MODEL (self->store)), rows, from, n);
}

guint
coop_table_get_n_rows (CoopTable *self)
{
  return g_list_model_get_n_items (G_LIST_MODEL (self->store));
}
