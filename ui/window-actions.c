/* SPDX-License-Identifier: Apache-2.0 */
/* Window: its actions. */
#include "config.h"

#include "window-private.h"

#include <glib/gi18n.h>

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

static const GActionEntry entries[] = {
  { "new-run", new_run_action, NULL, NULL, NULL, { 0 } },
  { "open", open_action, NULL, NULL, NULL, { 0 } },
  { "save", save_action, NULL, NULL, NULL, { 0 } },
  { "pause", NULL, NULL, "false", pause_changed, { 0 } },
  { "stop", stop_action, NULL, NULL, NULL, { 0 } },
  { "look-back", look_back_action, NULL, NULL, NULL, { 0 } },
  { "panel", NULL, NULL, "true", panel_changed, { 0 } },
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
