/* SPDX-License-Identifier: Apache-2.0 */
/* Window: its actions. */
#include "config.h"

#include "window-private.h"

#include <glib/gi18n.h>

#include "commands.h"
#include "export-picture.h"
#include "file-dialogs.h"
#include "run-page.h"

/* The trace is whole only if the script's end is waited for. Asked again, it is told more plainly. */
void
coop_window_stop_then (CoopWindow *self, CoopThen then)
{
  self->then = then;
  coop_session_stop (self->session);
  coop_window_toast (self, _("Waiting for the script to end"));
}

static void
stop_confirmed (AdwMessageDialog *dialog, const char *response, CoopWindow *self)
{
  CoopThen then = GPOINTER_TO_INT (g_object_get_data (G_OBJECT (dialog), "coop-then"));
  if (!g_str_equal (response, "stop"))
    return;
  if (coop_window_is_running (self))
    coop_window_stop_then (self, then);
  else if (then == THEN_FORM)
    coop_window_show_form (self);
  else
    gtk_window_destroy (GTK_WINDOW (self));
}

void
coop_window_ask_to_stop (CoopWindow *self, CoopThen then)
{
  GtkWidget *dialog = adw_message_dialog_new (GTK_WINDOW (self), _("Stop the Script?"),
                                              _("A script is running in this window."));
  adw_message_dialog_add_responses (ADW_MESSAGE_DIALOG (dialog), "cancel", _("_Cancel"), "stop",
                                    _("_Stop"), NULL);
  adw_message_dialog_set_response_appearance (ADW_MESSAGE_DIALOG (dialog), "stop",
                                              ADW_RESPONSE_DESTRUCTIVE);
  g_object_set_data (G_OBJECT (dialog), "coop-then", GINT_TO_POINTER (then));
  g_signal_connect_object (dialog, "response", G_CALLBACK (stop_confirmed), self, 0);
  gtk_window_present (GTK_WINDOW (dialog));
}

static void
new_run_action (GSimpleAction *action, GVariant *parameter, gpointer data)
{
  CoopWindow *self = data;
  if (coop_window_is_running (self))
    coop_window_ask_to_stop (self, THEN_FORM);
  else
    coop_window_show_form (self);
}

static void
trace_chosen (GtkWindow *window, const char *path)
{
  coop_window_open (COOP_WINDOW (window), path, G_MAXUINT64);
}

static void
open_action (GSimpleAction *action, GVariant *parameter, gpointer data)
{
  coop_choose_trace (GTK_WINDOW (data), trace_chosen);
}

static void
place_chosen (GtkWindow *window, const char *path)
{
  CoopWindow *self = COOP_WINDOW (window);
  if (!coop_window_is_running (self))
    {
      coop_window_save_now (self, path);
      return;
    }
  g_free (self->save_to);
  self->save_to = g_strdup (path);
  coop_window_toast (self, _("The trace is saved when the script ends"));
}

static void
save_action (GSimpleAction *action, GVariant *parameter, gpointer data)
{
  CoopWindow *self = data;
  g_autofree char *name = g_path_get_basename (self->trace);
  coop_choose_place (GTK_WINDOW (self), name, place_chosen);
}

static void
pause_changed (GSimpleAction *action, GVariant *state, gpointer data)
{
  CoopWindow *self = data;
  g_simple_action_set_state (action, state);
  g_object_set (self->page, "paused", g_variant_get_boolean (state), NULL);
  coop_window_show_chip (self);
}

static void
stop_action (GSimpleAction *action, GVariant *parameter, gpointer data)
{
  CoopWindow *self = data;
  if (coop_window_is_running (self))
    coop_session_stop (self->session);
}

static void
panel_changed (GSimpleAction *action, GVariant *state, gpointer data)
{
  g_simple_action_set_state (action, state);
  g_object_set (COOP_WINDOW (data)->page, "panel-shown", g_variant_get_boolean (state), NULL);
}

static void
tables_changed (GSimpleAction *action, GVariant *state, gpointer data)
{
  g_simple_action_set_state (action, state);
  g_object_set (COOP_WINDOW (data)->page, "drawer-shown", g_variant_get_boolean (state), NULL);
}

/* After the end the map is bare, since the script has let go of everything. */
static void
look_back_action (GSimpleAction *action, GVariant *parameter, gpointer data)
{
  CoopWindow *self = data;
  g_autofree char *path = g_strdup (self->trace);
  if (coop_window_is_running (self) || !path)
    return;
  coop_window_open (self, path, G_MAXUINT64);
  coop_run_page_step_eviction (COOP_RUN_PAGE (self->page), -1);
}

static void
picture_chosen (GtkWindow *window, const char *path)
{
  CoopWindow *self = COOP_WINDOW (window);
  g_autoptr (GError) error = NULL;
  if (coop_export_picture (self->page, path, &error))
    coop_window_toast (self, _("Picture saved"));
  else
    coop_window_say (self, GTK_MESSAGE_ERROR, error->message);
}

static void
export_picture_action (GSimpleAction *action, GVariant *parameter, gpointer data)
{
  coop_choose_picture (GTK_WINDOW (data), "coopscope.png", picture_chosen);
}

static void
commands_action (GSimpleAction *action, GVariant *parameter, gpointer data)
{
  coop_commands_show (GTK_WINDOW (data));
}

/* "find", "zoom-in", ...: the page knows them by the name of the action. */
static void
page_action (GSimpleAction *action, GVariant *parameter, gpointer data)
{
  CoopWindow *self = data;
  coop_run_page_do (COOP_RUN_PAGE (self->page), g_action_get_name (G_ACTION (action)));
}

static void
open_recent_action (GSimpleAction *action, GVariant *parameter, gpointer data)
{
  coop_window_open (COOP_WINDOW (data), g_variant_get_string (parameter, NULL), G_MAXUINT64);
}

static const GActionEntry entries[] = {
  { "new-run", new_run_action, NULL, NULL, NULL, { 0 } },
  { "open", open_action, NULL, NULL, NULL, { 0 } },
  { "save", save_action, NULL, NULL, NULL, { 0 } },
  { "pause", NULL, NULL, "false", pause_changed, { 0 } },
  { "stop", stop_action, NULL, NULL, NULL, { 0 } },
  { "look-back", look_back_action, NULL, NULL, NULL, { 0 } },
  { "panel", NULL, NULL, "true", panel_changed, { 0 } },
  { "export-picture", export_picture_action, NULL, NULL, NULL, { 0 } },
  { "commands", commands_action, NULL, NULL, NULL, { 0 } },
  { "open-recent", open_recent_action, "s", NULL, NULL, { 0 } },
  { "find", page_action, NULL, NULL, NULL, { 0 } },
  { "zoom-in", page_action, NULL, NULL, NULL, { 0 } },
  { "zoom-out", page_action, NULL, NULL, NULL, { 0 } },
  { "zoom-all", page_action, NULL, NULL, NULL, { 0 } },
  { "why", page_action, NULL, NULL, NULL, { 0 } },
  { "tables", NULL, NULL, "true", tables_changed, { 0 } },
};

/* A narrow window folds the panel away by itself. */
static void
panel_shown (GObject *page, GParamSpec *pspec, CoopWindow *self)
{
  GAction *action = g_action_map_lookup_action (G_ACTION_MAP (self), "panel");
  gboolean shown;
  g_object_get (page, "panel-shown", &shown, NULL);
  g_simple_action_set_state (G_SIMPLE_ACTION (action), g_variant_new_boolean (shown));
}

void
coop_window_add_actions (CoopWindow *self)
{
  g_action_map_add_action_entries (G_ACTION_MAP (self), entries, G_N_ELEMENTS (entries), self);
}

void
coop_window_follow_page (CoopWindow *self)
{
  g_signal_connect_object (self->page, "notify::panel-shown", G_CALLBACK (panel_shown), self, 0);
}

#define N_RECENT 8

/* A schema of an older version may be installed: a key that is not in it would end the program. */
static gboolean
keeps_recent (CoopWindow *self)
{
  g_autoptr (GSettingsSchema) schema = NULL;
  if (!self->settings)
    return FALSE;
  g_object_get (self->settings, "settings-schema", &schema, NULL);
  return schema && g_settings_schema_has_key (schema, "recent");
}

/* The newest first; what is no more is left out. */
void
coop_window_show_recent (CoopWindow *self)
{
  g_auto (GStrv) recent = keeps_recent (self) ? g_settings_get_strv (self->settings, "recent") : NULL;
  g_menu_remove_all (self->recent);
  for (char **path = recent; path && *path; path++)
    {
      g_autofree char *name = g_path_get_basename (*path);
      g_auto (GStrv) parts = g_strsplit (name, "_", -1); /* no letter to press in a file's name */
      g_autofree char *label = g_strjoinv ("__", parts);
      g_autoptr (GMenuItem) item = g_menu_item_new (label, NULL);
      if (!g_file_test (*path, G_FILE_TEST_EXISTS))
        continue;
      g_menu_item_set_action_and_target (item, "win.open-recent", "s", *path);
      g_menu_append_item (self->recent, item);
    }
}

void
coop_window_note_recent (CoopWindow *self, const char *path)
{
  g_auto (GStrv) before = keeps_recent (self) ? g_settings_get_strv (self->settings, "recent") : NULL;
  const char *after[N_RECENT + 1] = { path, NULL };
  guint n = 1;
  if (!before)
    return;
  for (char **old = before; *old && n < N_RECENT; old++)
    if (!g_str_equal (*old, path))
      after[n++] = *old;
  after[n] = NULL;
  g_settings_set_strv (self->settings, "recent", after);
  coop_window_show_recent (self);
}
