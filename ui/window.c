/* SPDX-License-Identifier: Apache-2.0 */
/* Window: owns the session; its actions are what menu, keys, buttons and tests call. */
#include "config.h"

#include "window.h"

#include <glib/gi18n.h>

#include "file-dialogs.h"
#include "format.h"
#include "run-page.h"
#include "save-trace.h"
#include "settings.h"
#include "start-form.h"
#include "state-words.h"

#define LOW_WINDOW 700 /* below this height the tables fold away */

struct _CoopWindow
{
  AdwApplicationWindow parent_instance;

  GtkWidget *title, *chip, *info_bar, *info_text, *toasts, *pages, *form, *page, *pause_button;
  CoopSession *session;
  char *trace;        /* of the run or the file */
  char *save_to;      /* asked for while the script runs */
  CoopRunOptions options; /* of the run; argv NULL: none */
  char *last_words;   /* last line on the script's stderr: of an exception, what it is */
  GSettings *settings;
  gboolean paused, low, told_missing;
  enum { THEN_NOTHING, THEN_FORM, THEN_CLOSE } then; /* once the script has ended */
};

G_DEFINE_FINAL_TYPE (CoopWindow, coop_window, ADW_TYPE_APPLICATION_WINDOW)

static guint done_signal;

static void
enable (CoopWindow *self, const char *action, gboolean on)
{
  GAction *found = g_action_map_lookup_action (G_ACTION_MAP (self), action);
  g_simple_action_set_enabled (G_SIMPLE_ACTION (found), on);
}

static gboolean
is_running (CoopWindow *self)
{
  return self->session && coop_session_get_state (self->session) <= COOP_SESSION_RECORDING;
}

static void
toast (CoopWindow *self, const char *text)
{
  adw_toast_overlay_add_toast (ADW_TOAST_OVERLAY (self->toasts), adw_toast_new (text));
}

void
coop_window_say (CoopWindow *self, GtkMessageType type, const char *text)
{
  gtk_info_bar_set_message_type (GTK_INFO_BAR (self->info_bar), type);
  gtk_label_set_text (GTK_LABEL (self->info_text), text);
  gtk_info_bar_set_revealed (GTK_INFO_BAR (self->info_bar), TRUE);
}

const char *
coop_window_get_said (CoopWindow *self)
{
  if (!gtk_info_bar_get_revealed (GTK_INFO_BAR (self->info_bar)))
    return NULL;
  return gtk_label_get_text (GTK_LABEL (self->info_text));
}

static void
info_bar_response (CoopWindow *self)
{
  gtk_info_bar_set_revealed (GTK_INFO_BAR (self->info_bar), FALSE);
}

/* ---- the state chip ---- */

static void
show_chip (CoopWindow *self)
{
  const char *class;
  g_autofree char *text = coop_words_for_state (self->session, self->trace != NULL,
                                                COOP_RUN_PAGE (self->page), &class);
  gtk_widget_set_visible (self->chip, *text != '\0');
  if (g_str_equal (text, gtk_label_get_text (GTK_LABEL (self->chip))))
    return;
  gtk_label_set_text (GTK_LABEL (self->chip), text);
  gtk_label_set_width_chars (GTK_LABEL (self->chip), is_running (self) ? 36 : -1);
  for (const char *const *known = coop_state_classes; *known; known++)
    gtk_widget_remove_css_class (self->chip, *known);
  gtk_widget_add_css_class (self->chip, class);
}

/* A map rebuilt from a record with gaps must say so. */
static void
tell_missing (CoopWindow *self)
{
  const CoopFrame *frame = coop_run_page_get_frame (COOP_RUN_PAGE (self->page));
  if (!frame || frame->totals.missing == 0 || self->told_missing)
    return;
  self->told_missing = TRUE;
  g_autofree char *n = coop_format_count (frame->totals.missing);
  g_autofree char *text = g_strdup_printf (
      /* Translators: a number */
      _("%s events are missing from the record: from there on the map may be wrong."), n);
  coop_window_say (self, GTK_MESSAGE_WARNING, text);
}

static void
refreshed (CoopWindow *self)
{
  show_chip (self);
  tell_missing (self);
}

static void
show_enabled (CoopWindow *self)
{
  gboolean busy = coop_window_is_busy (self);
  enable (self, "stop", is_running (self));
  enable (self, "pause", self->session != NULL);
  enable (self, "save", self->trace != NULL);
  enable (self, "panel", busy);
  enable (self, "tables", busy);
}

/* ---- the session ---- */

static void
save_now (CoopWindow *self, const char *to)
{
  coop_save_trace (GTK_WIDGET (self), self->trace, to, ADW_TOAST_OVERLAY (self->toasts));
}

static void show_form (CoopWindow *self);

static void
state_changed (CoopSession *session, CoopWindow *self)
{
  CoopSessionState state = coop_session_get_state (session);
  show_chip (self);
  show_enabled (self);
  if (state <= COOP_SESSION_RECORDING)
    return;
  g_free (self->trace);
  self->trace = g_strdup (coop_session_get_trace (session));
  if (self->save_to)
    save_now (self, self->save_to);
  g_clear_pointer (&self->save_to, g_free);
  int exit = coop_session_get_exit (session);
  if (state == COOP_SESSION_ENDED && exit != 0 && self->last_words)
    coop_window_say (self, GTK_MESSAGE_ERROR, self->last_words);
  g_signal_emit (self, done_signal, 0, state == COOP_SESSION_KILLED ? 128 + exit : MAX (exit, 0));
  if (self->then == THEN_FORM)
    show_form (self);
  else if (self->then == THEN_CLOSE)
    gtk_window_destroy (GTK_WINDOW (self));
}

static void
session_message (CoopSession *session, const char *text, CoopWindow *self)
{
  coop_window_say (self, GTK_MESSAGE_WARNING, text);
}

/* What the script prints goes on to our own output; its last words are kept. */
static void
session_output (CoopSession *session, const char *text, gboolean is_stderr, CoopWindow *self)
{
  g_autofree char *lines = g_strstrip (g_strdup (text));
  if (is_stderr && *lines)
    {
      const char *last = strrchr (lines, '\n');
      g_free (self->last_words);
      self->last_words = g_strdup (last ? last + 1 : lines);
    }
  if (is_stderr)
    g_printerr ("%s%s", text, g_str_has_suffix (text, "\n") ? "" : "\n");
  else
    g_print ("%s%s", text, g_str_has_suffix (text, "\n") ? "" : "\n");
}

static void
forget (CoopWindow *self)
{
  if (self->session)
    g_signal_handlers_disconnect_by_data (self->session, self);
  coop_run_page_clear (COOP_RUN_PAGE (self->page));
  g_clear_object (&self->session);
  g_clear_pointer (&self->trace, g_free);
  g_clear_pointer (&self->save_to, g_free);
  g_clear_pointer (&self->last_words, g_free);
  self->then = THEN_NOTHING;
  self->told_missing = FALSE;
  info_bar_response (self);
}

static void
watch (CoopWindow *self, CoopSession *session, const char *title, const CoopPolicy *initial)
{
  forget (self);
  self->session = session;
  self->trace = g_strdup (coop_session_get_trace (session));
  g_signal_connect (session, "state-changed", G_CALLBACK (state_changed), self);
  g_signal_connect (session, "message", G_CALLBACK (session_message), self);
  g_signal_connect (session, "output", G_CALLBACK (session_output), self);
  gtk_label_set_text (GTK_LABEL (self->title), title);
  gtk_stack_set_visible_child_name (GTK_STACK (self->pages), "run");
  coop_run_page_set_session (COOP_RUN_PAGE (self->page), session, initial);
  show_chip (self);
  show_enabled (self);
  gtk_widget_grab_focus (self->page);
}

/* "python3 -u train.py --lr 1" -> "train.py" */
static char *
title_for (char **argv)
{
  for (char **word = argv; *word; word++)
    if (g_str_has_suffix (*word, ".py"))
      return g_path_get_basename (*word);
  return g_path_get_basename (argv[0]);
}

static void
keep_options (CoopWindow *self, const CoopRunOptions *options)
{
  coop_run_options_clear (&self->options);
  self->options = *options;
  self->options.argv = g_strdupv (options->argv);
  self->options.envp = g_strdupv (options->envp);
  self->options.cwd = g_strdup (options->cwd);
  self->options.trace = g_strdup (options->trace);
}

gboolean
coop_window_run (CoopWindow *self, const CoopRunOptions *options)
{
  g_autoptr (GError) error = NULL;
  CoopSession *session = coop_session_start (options, &error);
  if (!session)
    {
      coop_window_say (self, GTK_MESSAGE_ERROR, error->message);
      return FALSE;
    }
  g_autofree char *title = title_for (options->argv);
  watch (self, session, title, &options->policy);
  keep_options (self, options);
  return TRUE;
}

/* The same script with another budget. */
static void
run_again (CoopRunPage *page, guint64 budget, CoopWindow *self)
{
  CoopRunOptions options = self->options;
  if (is_running (self) || !options.argv)
    return;
  self->options = (CoopRunOptions) { 0 };
  options.policy.v[COOP_PARAM_BUDGET].i = (gint64) budget;
  coop_window_run (self, &options);
  coop_run_options_clear (&options);
}

static void
show_moment (CoopRunPage *page, guint64 event, CoopWindow *self)
{
  g_autofree char *path = g_strdup (self->trace);
  if (!is_running (self) && path)
    coop_window_open (self, path, event);
}

gboolean
coop_window_attach (CoopWindow *self, int pid)
{
  g_autoptr (GError) error = NULL;
  CoopPolicy policy;
  CoopSession *session = coop_session_attach (pid, &error);
  if (!session)
    {
      coop_window_say (self, GTK_MESSAGE_ERROR, error->message);
      return FALSE;
    }
  /* Translators: a process number */
  g_autofree char *title = g_strdup_printf (_("Process %d"), pid);
  coop_policy_init (&policy);
  watch (self, session, title, &policy);
  return TRUE;
}

void
coop_window_open (CoopWindow *self, const char *path, guint64 event)
{
  g_autofree char *name = g_path_get_basename (path);
  forget (self);
  self->trace = g_strdup (path);
  gtk_label_set_text (GTK_LABEL (self->title), name);
  gtk_stack_set_visible_child_name (GTK_STACK (self->pages), "run");
  coop_run_page_set_file (COOP_RUN_PAGE (self->page), path, event);
  show_chip (self);
  show_enabled (self);
}

gboolean
coop_window_is_busy (CoopWindow *self)
{
  return self->session || self->trace;
}

static void
page_failed (CoopRunPage *page, const char *text, CoopWindow *self)
{
  g_autofree char *path = g_steal_pointer (&self->trace);
  g_autofree char *whole = g_strdup_printf ("%s: %s", path ? path : "", text);
  forget (self);
  gtk_stack_set_visible_child_name (GTK_STACK (self->pages), "start");
  gtk_label_set_text (GTK_LABEL (self->title), _("Coopscope"));
  show_chip (self);
  show_enabled (self);
  coop_window_say (self, GTK_MESSAGE_ERROR, path ? whole : text);
}

static void
form_start (CoopWindow *self)
{
  g_autoptr (GError) error = NULL;
  CoopRunOptions options;
  coop_run_options_init (&options);
  if (coop_start_form_get_options (COOP_START_FORM (self->form), &options, &error))
    coop_window_run (self, &options);
  else
    coop_window_say (self, GTK_MESSAGE_ERROR, error->message);
  coop_run_options_clear (&options);
}

/* ---- actions ---- */

static void
show_form (CoopWindow *self)
{
  forget (self);
  gtk_stack_set_visible_child_name (GTK_STACK (self->pages), "start");
  gtk_label_set_text (GTK_LABEL (self->title), _("Coopscope"));
  show_chip (self);
  show_enabled (self);
}

/* The trace is whole only if the script's end is waited for. Asked again, it is told more plainly. */
static void
stop_then (CoopWindow *self, int then)
{
  self->then = then;
  coop_session_stop (self->session);
  toast (self, _("Waiting for the script to end"));
}

static void
stop_confirmed (AdwMessageDialog *dialog, const char *response, CoopWindow *self)
{
  int then = GPOINTER_TO_INT (g_object_get_data (G_OBJECT (dialog), "coop-then"));
  if (!g_str_equal (response, "stop"))
    return;
  if (is_running (self))
    stop_then (self, then);
  else if (then == THEN_FORM)
    show_form (self);
  else
    gtk_window_destroy (GTK_WINDOW (self));
}

static void
ask_to_stop (CoopWindow *self, int then)
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
  if (is_running (self))
    ask_to_stop (self, THEN_FORM);
  else
    show_form (self);
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
  if (!is_running (self))
    {
      save_now (self, path);
      return;
    }
  g_free (self->save_to);
  self->save_to = g_strdup (path);
  toast (self, _("The trace is saved when the script ends"));
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
  self->paused = g_variant_get_boolean (state);
  g_simple_action_set_state (action, state);
  g_object_set (self->page, "paused", self->paused, NULL);
  show_chip (self);
}

static void
stop_action (GSimpleAction *action, GVariant *parameter, gpointer data)
{
  CoopWindow *self = data;
  if (is_running (self))
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

static const GActionEntry entries[] = {
  { "new-run", new_run_action, NULL, NULL, NULL, { 0 } },
  { "open", open_action, NULL, NULL, NULL, { 0 } },
  { "save", save_action, NULL, NULL, NULL, { 0 } },
  { "pause", NULL, NULL, "false", pause_changed, { 0 } },
  { "stop", stop_action, NULL, NULL, NULL, { 0 } },
  { "panel", NULL, NULL, "true", panel_changed, { 0 } },
  { "tables", NULL, NULL, "true", tables_changed, { 0 } },
};

/* ---- the window itself ---- */

/* A low window keeps its height for the map; a high one shows the tables again. */
static void
laid_out (GdkSurface *surface, int width, int height, CoopWindow *self)
{
  gboolean low = height < LOW_WINDOW;
  if (low == self->low)
    return;
  self->low = low;
  g_action_group_change_action_state (G_ACTION_GROUP (self), "tables", g_variant_new_boolean (!low));
}

static void
coop_window_realize (GtkWidget *widget)
{
  GTK_WIDGET_CLASS (coop_window_parent_class)->realize (widget);
  g_signal_connect_object (gtk_native_get_surface (GTK_NATIVE (widget)), "layout", G_CALLBACK (laid_out),
                           widget, 0);
}

static gboolean
dropped (GtkDropTarget *target, const GValue *value, double x, double y, CoopWindow *self)
{
  g_autofree char *path = g_file_get_path (g_value_get_object (value));
  if (!path)
    return FALSE;
  if (!g_str_has_suffix (path, ".py"))
    coop_window_open (self, path, G_MAXUINT64);
  else if (!is_running (self))
    {
      show_form (self);
      coop_start_form_set_script (COOP_START_FORM (self->form), path);
    }
  return TRUE;
}

/* A window with a script asks first, and goes when the script has ended. */
static gboolean
coop_window_close_request (GtkWindow *window)
{
  CoopWindow *self = COOP_WINDOW (window);
  if (is_running (self) && self->then == THEN_CLOSE)
    stop_then (self, THEN_CLOSE);
  else if (is_running (self))
    ask_to_stop (self, THEN_CLOSE);
  else
    return GTK_WINDOW_CLASS (coop_window_parent_class)->close_request (window);
  return TRUE;
}

static void
coop_window_dispose (GObject *object)
{
  CoopWindow *self = COOP_WINDOW (object);
  if (self->page)
    forget (self);
  g_clear_object (&self->settings);
  coop_run_options_clear (&self->options);
  gtk_widget_dispose_template (GTK_WIDGET (self), COOP_TYPE_WINDOW);
  G_OBJECT_CLASS (coop_window_parent_class)->dispose (object);
}

#define BIND(member) gtk_widget_class_bind_template_child (widget_class, CoopWindow, member)

static void
coop_window_class_init (CoopWindowClass *class)
{
  GtkWidgetClass *widget_class = GTK_WIDGET_CLASS (class);
  G_OBJECT_CLASS (class)->dispose = coop_window_dispose;
  GTK_WINDOW_CLASS (class)->close_request = coop_window_close_request;
  widget_class->realize = coop_window_realize;
  done_signal = g_signal_new ("done", G_TYPE_FROM_CLASS (class), G_SIGNAL_RUN_LAST, 0, NULL, NULL, NULL,
                              G_TYPE_NONE, 1, G_TYPE_INT);
  g_type_ensure (COOP_TYPE_START_FORM);
  g_type_ensure (COOP_TYPE_RUN_PAGE);
  gtk_widget_class_set_template_from_resource (widget_class, "/io/github/coopscope/Coopscope/window.ui");
  BIND (title);
  BIND (chip);
  BIND (info_bar);
  BIND (info_text);
  BIND (toasts);
  BIND (pages);
  BIND (form);
  BIND (page);
  BIND (pause_button);
  gtk_widget_class_bind_template_callback (widget_class, info_bar_response);
  gtk_widget_class_bind_template_callback (widget_class, form_start);
  gtk_widget_class_bind_template_callback (widget_class, refreshed);
  gtk_widget_class_bind_template_callback (widget_class, page_failed);
  gtk_widget_class_bind_template_callback (widget_class, run_again);
  gtk_widget_class_bind_template_callback (widget_class, show_moment);
}

static void
coop_window_init (CoopWindow *self)
{
  GtkDropTarget *target = gtk_drop_target_new (G_TYPE_FILE, GDK_ACTION_COPY);
  g_action_map_add_action_entries (G_ACTION_MAP (self), entries, G_N_ELEMENTS (entries), self);
  gtk_widget_init_template (GTK_WIDGET (self));
  gtk_window_set_default_widget (GTK_WINDOW (self), coop_start_form_get_default (COOP_START_FORM (self->form)));
  g_signal_connect (target, "drop", G_CALLBACK (dropped), self);
  gtk_widget_add_controller (GTK_WIDGET (self), GTK_EVENT_CONTROLLER (target));
  self->settings = coop_settings_new ();
  if (self->settings)
    {
      g_settings_bind (self->settings, "width", self, "default-width", G_SETTINGS_BIND_DEFAULT);
      g_settings_bind (self->settings, "height", self, "default-height", G_SETTINGS_BIND_DEFAULT);
    }
  show_enabled (self);
}

GtkWidget *
coop_window_new (GtkApplication *application)
{
  return g_object_new (COOP_TYPE_WINDOW, "application", application, NULL);
}
