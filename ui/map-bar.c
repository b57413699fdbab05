/* SPDX-License-Identifier: Apache-2.0 */
/* Map bar: see the header. */
#include "config.h"

#include "map-bar.h"

#include <glib/gi18n.h>

#include "format.h"

struct _CoopMapBar
{
  GtkWidget parent_instance;

  GtkWidget *box, *coloring, *search, *found, *out, *level, *strip, *why;
};

G_DEFINE_FINAL_TYPE (CoopMapBar, coop_map_bar, GTK_TYPE_WIDGET)

enum { CHANGED, ZOOM, SOUGHT, NEXT, N_SIGNALS };
static guint signals[N_SIGNALS];

static void
changed (CoopMapBar *self)
{
  g_signal_emit (self, signals[CHANGED], 0);
}

static void
zoom_clicked (GtkButton *button, CoopMapBar *self)
{
  g_signal_emit (self, signals[ZOOM], 0, GPOINTER_TO_INT (g_object_get_data (G_OBJECT (button), "coop-by")));
}

static void
search_changed (CoopMapBar *self)
{
  g_signal_emit (self, signals[SOUGHT], 0, gtk_editable_get_text (GTK_EDITABLE (self->search)));
}

static void
search_next (CoopMapBar *self)
{
  g_signal_emit (self, signals[NEXT], 0, 1);
}

static void
search_previous (CoopMapBar *self)
{
  g_signal_emit (self, signals[NEXT], 0, -1);
}

static void
search_ended (CoopMapBar *self)
{
  gtk_editable_set_text (GTK_EDITABLE (self->search), "");
  gtk_widget_child_focus (gtk_widget_get_parent (GTK_WIDGET (self)), GTK_DIR_TAB_FORWARD);
}

static void
coop_map_bar_dispose (GObject *object)
{
  g_clear_pointer (&COOP_MAP_BAR (object)->box, gtk_widget_unparent);
  G_OBJECT_CLASS (coop_map_bar_parent_class)->dispose (object);
}

static void
coop_map_bar_class_init (CoopMapBarClass *class)
{
  GtkWidgetClass *widget_class = GTK_WIDGET_CLASS (class);
  GType type = G_TYPE_FROM_CLASS (class);
  G_OBJECT_CLASS (class)->dispose = coop_map_bar_dispose;
  gtk_widget_class_set_css_name (widget_class, "mapbar");
  gtk_widget_class_set_layout_manager_type (widget_class, GTK_TYPE_BIN_LAYOUT);
  gtk_widget_class_set_accessible_role (widget_class, GTK_ACCESSIBLE_ROLE_TOOLBAR);
  signals[CHANGED] = g_signal_new ("changed", type, G_SIGNAL_RUN_LAST, 0, NULL, NULL, NULL, G_TYPE_NONE, 0);
  signals[ZOOM] = g_signal_new ("zoom", type, G_SIGNAL_RUN_LAST, 0, NULL, NULL, NULL, G_TYPE_NONE, 1, G_TYPE_INT);
  signals[SOUGHT] = g_signal_new ("sought", type, G_SIGNAL_RUN_LAST, 0, NULL, NULL, NULL, G_TYPE_NONE, 1,
                                  G_TYPE_STRING);
  signals[NEXT] = g_signal_new ("next", type, G_SIGNAL_RUN_LAST, 0, NULL, NULL, NULL, G_TYPE_NONE, 1, G_TYPE_INT);
}

static void
name_it (GtkWidget *widget, const char *name)
{
  gtk_widget_set_tooltip_text (widget, name);
  gtk_accessible_update_property (GTK_ACCESSIBLE (widget), GTK_ACCESSIBLE_PROPERTY_LABEL, name, -1);
}

static GtkWidget *
zoom_button (CoopMapBar *self, const char *icon, const char *name, int by)
{
  GtkWidget *button = gtk_button_new_from_icon_name (icon);
  name_it (button, name);
  g_object_set_data (G_OBJECT (button), "coop-by", GINT_TO_POINTER (by));
  g_signal_connect (button, "clicked", G_CALLBACK (zoom_clicked), self);
  gtk_box_append (GTK_BOX (self->box), button);
  return button;
}

static GtkWidget *
toggle (CoopMapBar *self, const char *label, const char *help)
{
  GtkWidget *button = gtk_toggle_button_new_with_mnemonic (label);
  gtk_widget_set_tooltip_text (button, help);
  g_signal_connect_swapped (button, "toggled", G_CALLBACK (changed), self);
  gtk_box_append (GTK_BOX (self->box), button);
  return button;
}

static void
add_coloring (CoopMapBar *self)
{
  const char *names[COOP_N_COLORINGS + 1] = { NULL };
  GtkWidget *label = gtk_label_new_with_mnemonic (_("_Colour"));
  for (int i = 0; i < COOP_N_COLORINGS; i++)
    names[i] = coop_coloring_name ((CoopColoring) i);
  self->coloring = gtk_drop_down_new_from_strings (names);
  name_it (self->coloring, _("What the colours of the map say"));
  gtk_label_set_mnemonic_widget (GTK_LABEL (label), self->coloring);
  gtk_widget_add_css_class (label, "caption");
  g_signal_connect_swapped (self->coloring, "notify::selected", G_CALLBACK (changed), self);
  gtk_box_append (GTK_BOX (self->box), label);
  gtk_box_append (GTK_BOX (self->box), self->coloring);
}

static void
add_search (CoopMapBar *self)
{
  self->search = gtk_search_entry_new ();
  gtk_widget_set_hexpand (self->search, TRUE);
  g_object_set (self->search, "placeholder-text", _("Find on the map: conv, train.py:18, >10MiB, 0x1a00, t17"), NULL);
  gtk_accessible_update_property (GTK_ACCESSIBLE (self->search), GTK_ACCESSIBLE_PROPERTY_LABEL, _("Find on the map"),
                                  -1);
  g_signal_connect_swapped (self->search, "search-changed", G_CALLBACK (search_changed), self);
  g_signal_connect_swapped (self->search, "activate", G_CALLBACK (search_next), self);
  g_signal_connect_swapped (self->search, "next-match", G_CALLBACK (search_next), self);
  g_signal_connect_swapped (self->search, "previous-match", G_CALLBACK (search_previous), self);
  g_signal_connect_swapped (self->search, "stop-search", G_CALLBACK (search_ended), self);
  self->found = gtk_label_new (NULL);
  gtk_widget_add_css_class (self->found, "caption");
  gtk_widget_add_css_class (self->found, "numeric");
  gtk_widget_set_visible (self->found, FALSE);
  gtk_box_append (GTK_BOX (self->box), self->search);
  gtk_box_append (GTK_BOX (self->box), self->found);
}

static void
coop_map_bar_init (CoopMapBar *self)
{
  self->box = gtk_box_new (GTK_ORIENTATION_HORIZONTAL, 6);
  add_coloring (self);
  add_search (self);
  self->out = zoom_button (self, "zoom-out-symbolic", _("Zoom Out (-)"), -1);
  self->level = gtk_label_new ("1×");
  gtk_label_set_width_chars (GTK_LABEL (self->level), 6);
  gtk_widget_add_css_class (self->level, "numeric");
  gtk_widget_add_css_class (self->level, "caption");
  gtk_accessible_update_property (GTK_ACCESSIBLE (self->level), GTK_ACCESSIBLE_PROPERTY_DESCRIPTION, _("Zoom"), -1);
  gtk_box_append (GTK_BOX (self->box), self->level);
  zoom_button (self, "zoom-in-symbolic", _("Zoom In (+)"), 1);
  zoom_button (self, "zoom-fit-best-symbolic", _("Show All (0)"), 0);
  self->strip = toggle (self, _("S_trip"), _("All addresses in one row, instead of rows like text"));
  self->why = toggle (self, _("W_hy These"), _("The last eviction: its window, the runner-up, and what each victim cost"));
  gtk_widget_set_parent (self->box, GTK_WIDGET (self));
  gtk_accessible_update_property (GTK_ACCESSIBLE (self), GTK_ACCESSIBLE_PROPERTY_LABEL, _("What the map shows"), -1);
}

GtkWidget *
coop_map_bar_new (void)
{
  return g_object_new (COOP_TYPE_MAP_BAR, NULL);
}

void
coop_map_bar_get_look (CoopMapBar *self, CoopLook *look)
{
  look->coloring = (CoopColoring) gtk_drop_down_get_selected (GTK_DROP_DOWN (self->coloring));
  look->strip = gtk_toggle_button_get_active (GTK_TOGGLE_BUTTON (self->strip));
  look->why = gtk_toggle_button_get_active (GTK_TOGGLE_BUTTON (self->why));
}

void
coop_map_bar_set_why (CoopMapBar *self, gboolean why)
{
  gtk_toggle_button_set_active (GTK_TOGGLE_BUTTON (self->why), why);
}

void
coop_map_bar_set_coloring (CoopMapBar *self, CoopColoring coloring)
{
  gtk_drop_down_set_selected (GTK_DROP_DOWN (self->coloring), coloring);
}

static void
set_text (GtkWidget *label, const char *text)
{
  if (!g_str_equal (gtk_label_get_text (GTK_LABEL (label)), text))
    gtk_label_set_text (GTK_LABEL (label), text);
}

void
coop_map_bar_set_scene (CoopMapBar *self, const CoopScene *scene)
{
  g_autofree char *level = g_strdup_printf ("%" G_GUINT64_FORMAT "×", G_GUINT64_CONSTANT (1) << MIN (scene->view.zoom, 62));
  set_text (self->level, level);
  gtk_widget_set_sensitive (self->out, scene->view.zoom > 0);
  gtk_widget_set_visible (self->found, scene->searched);
  if (!scene->searched)
    return;
  g_autofree char *n = coop_format_count (scene->n_found), *bytes = coop_format_bytes (scene->found_bytes);
  /* Translators: number of pieces of the map and their size */
  g_autofree char *text = scene->n_found > 0 ? g_strdup_printf (_("%s found, %s"), n, bytes)
                                              : g_strdup (_("nothing found"));
  set_text (self->found, text);
}

void
coop_map_bar_search (CoopMapBar *self, const char *text)
{
  gtk_widget_grab_focus (self->search);
  if (text)
    gtk_editable_set_text (GTK_EDITABLE (self->search), text);
}

const char *
coop_map_bar_get_text (CoopMapBar *self)
{
  return gtk_editable_get_text (GTK_EDITABLE (self->search));
}
