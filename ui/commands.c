/* SPDX-License-Identifier: Apache-2.0 */
/* Command palette: see the header. */
#include "config.h"

#include "commands.h"

#include <glib/gi18n.h>
#include <string.h>

static const struct
{
  const char *action, *title;
} commands[] = {
  { "win.new-run", N_("New Run") },
  { "win.open", N_("Open a Trace") },
  { "win.save", N_("Save the Trace") },
  { "win.export-picture", N_("Save a Picture of the Page") },
  { "app.lessons", N_("Lessons") },
  { "app.manual", N_("Manual") },
  { "win.pause", N_("Pause the View") },
  { "win.stop", N_("Stop the Script") },
  { "win.look-back", N_("Look Back at the Last Eviction") },
  { "win.find", N_("Find on the map") },
  { "win.zoom-in", N_("Zoom In") },
  { "win.zoom-out", N_("Zoom Out") },
  { "win.zoom-all", N_("Show All of the Map") },
  { "win.why", N_("Why These: Explain the Last Eviction") },
  { "win.panel", N_("Show or Hide the Policy") },
  { "win.tables", N_("Show or Hide the Tables") },
  { "app.dark", N_("Dark or Light") },
  { "win.show-help-overlay", N_("Keyboard Shortcuts") },
  { "app.about", N_("About Coopscope") },
  { "window.close", N_("Close the Window") },
  { "app.quit", N_("Quit") },
};

typedef struct {
  GtkWindow *window; /* acts on it; goes before it only with it */
  GtkWidget *search, *list;
} Palette;

static gboolean
is_enabled (GtkWindow *window, const char *action)
{
  GtkApplication *application = gtk_window_get_application (window);
  if (g_str_has_prefix (action, "win."))
    return g_action_group_get_action_enabled (G_ACTION_GROUP (window), action + 4);
  if (g_str_has_prefix (action, "app."))
    return application && g_action_group_get_action_enabled (G_ACTION_GROUP (application), action + 4);
  return TRUE;
}

static GtkWidget *
key_of (GtkWindow *window, const char *action)
{
  GtkApplication *application = gtk_window_get_application (window);
  g_auto (GStrv) keys = application ? gtk_application_get_accels_for_action (application, action) : NULL;
  return keys && keys[0] ? gtk_shortcut_label_new (keys[0]) : NULL;
}

static gboolean
fits (const char *title, const char *text)
{
  g_autofree char *folded = g_utf8_casefold (title, -1), *wanted = g_utf8_casefold (text, -1);
  g_auto (GStrv) words = g_strsplit (wanted, " ", -1);
  for (char **word = words; *word; word++)
    if (!strstr (folded, *word))
      return FALSE;
  return TRUE;
}

static guint
fill (Palette *palette)
{
  const char *text = gtk_editable_get_text (GTK_EDITABLE (palette->search));
  GtkListBox *list = GTK_LIST_BOX (palette->list);
  GtkWidget *child;
  guint n = 0;
  while ((child = gtk_widget_get_first_child (palette->list)))
    gtk_list_box_remove (list, child);
  for (gsize i = 0; i < G_N_ELEMENTS (commands); i++)
    {
      if (!fits (_(commands[i].title), text) || !is_enabled (palette->window, commands[i].action))
        continue;
      GtkWidget *row = adw_action_row_new (), *key = key_of (palette->window, commands[i].action);
      adw_preferences_row_set_title (ADW_PREFERENCES_ROW (row), _(commands[i].title));
      gtk_list_box_row_set_activatable (GTK_LIST_BOX_ROW (row), TRUE);
      g_object_set_data (G_OBJECT (row), "coop-action", (gpointer) commands[i].action);
      if (key)
        adw_action_row_add_suffix (ADW_ACTION_ROW (row), key);
      gtk_list_box_append (list, row);
      n++;
    }
  gtk_list_box_select_row (list, gtk_list_box_get_row_at_index (list, 0));
  return n;
}

static void
row_activated (GtkListBox *list, GtkListBoxRow *row, GtkWidget *dialog)
{
  Palette *palette = g_object_get_data (G_OBJECT (dialog), "coop-palette");
  const char *action = g_object_get_data (G_OBJECT (row), "coop-action");
  g_autoptr (GtkWindow) window = g_object_ref (palette->window);
  gtk_window_destroy (GTK_WINDOW (dialog));
  gtk_widget_activate_action (GTK_WIDGET (window), action, NULL);
}

static void
search_activated (GtkSearchEntry *entry, GtkWidget *dialog)
{
  coop_commands_do_first (dialog);
}

static void
search_changed (GtkSearchEntry *entry, GtkWidget *dialog)
{
  fill (g_object_get_data (G_OBJECT (dialog), "coop-palette"));
}

GtkWidget *
coop_commands_show (GtkWindow *window)
{
  GtkWidget *dialog = adw_window_new (), *box = gtk_box_new (GTK_ORIENTATION_VERTICAL, 8);
  GtkWidget *scroller = gtk_scrolled_window_new ();
  Palette *palette = g_new0 (Palette, 1);
  palette->window = window;
  palette->search = gtk_search_entry_new ();
  palette->list = gtk_list_box_new ();
  g_object_set_data_full (G_OBJECT (dialog), "coop-palette", palette, g_free);
  gtk_search_entry_set_key_capture_widget (GTK_SEARCH_ENTRY (palette->search), dialog);
  gtk_accessible_update_property (GTK_ACCESSIBLE (palette->search), GTK_ACCESSIBLE_PROPERTY_LABEL, _("Command"), -1);
  gtk_accessible_update_property (GTK_ACCESSIBLE (palette->list), GTK_ACCESSIBLE_PROPERTY_LABEL, _("Commands"), -1);
  g_signal_connect (palette->search, "search-changed", G_CALLBACK (search_changed), dialog);
  g_signal_connect (palette->search, "activate", G_CALLBACK (search_activated), dialog);
  g_signal_connect_swapped (palette->search, "stop-search", G_CALLBACK (gtk_window_destroy), dialog);
  g_signal_connect (palette->list, "row-activated", G_CALLBACK (row_activated), dialog);
  gtk_scrolled_window_set_child (GTK_SCROLLED_WINDOW (scroller), palette->list);
  gtk_widget_set_vexpand (scroller, TRUE);
  gtk_widget_add_css_class (box, "page");
  gtk_box_append (GTK_BOX (box), palette->search);
  gtk_box_append (GTK_BOX (box), scroller);
  adw_window_set_content (ADW_WINDOW (dialog), box);
  gtk_window_set_title (GTK_WINDOW (dialog), _("Commands"));
  gtk_window_set_transient_for (GTK_WINDOW (dialog), window);
  gtk_window_set_destroy_with_parent (GTK_WINDOW (dialog), TRUE);
  gtk_window_set_modal (GTK_WINDOW (dialog), TRUE);
  gtk_window_set_default_size (GTK_WINDOW (dialog), 520, 480);
  fill (palette);
  gtk_window_present (GTK_WINDOW (dialog));
  gtk_widget_grab_focus (palette->search);
  return dialog;
}

guint
coop_commands_find (GtkWidget *dialog, const char *text)
{
  Palette *palette = g_object_get_data (G_OBJECT (dialog), "coop-palette");
  gtk_editable_set_text (GTK_EDITABLE (palette->search), text);
  return fill (palette);
}

gboolean
coop_commands_do_first (GtkWidget *dialog)
{
  Palette *palette = g_object_get_data (G_OBJECT (dialog), "coop-palette");
  GtkListBoxRow *row = gtk_list_box_get_selected_row (GTK_LIST_BOX (palette->list));
  if (!row)
    return FALSE;
  row_activated (GTK_LIST_BOX (palette->list), row, dialog);
  return TRUE;
}
