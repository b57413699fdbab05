/* SPDX-License-Identifier: Apache-2.0 */
/* Window: owns the session and says how it is with it. */
#include "config.h"

#include "window-private.h"

#include <glib/gi18n.h>

#include "format.h"
#include "import-file.h"
#include "lesson-window.h"
#include "run-page.h"
#include "save-trace.h"
#include "settings.h"
#include "start-form.h"
#include "start-run.h"
#include "state-words.h"

#define LOW_WINDOW 700 /* below this height the tables fold away */

G_DEFINE_FINAL_TYPE (CoopWindow, coop_window, ADW_TYPE_APPLICATION_WINDOW)

static guint done_signal, started_signal;

static void
enable (CoopWindow *self, const char *action, gboolean on)
{
  GAction *found = g_action_map_lookup_action (G_ACTION_MAP (self), action);
  g_simple_action_set_enabled (G_SIMPLE_ACTION (found), on);
}

gboolean
coop_window_is_running (CoopWindow *self)
{
  return self->session && coop_session_get_state (self->session) <= COOP_SESSION_RECORDING;
}

void
coop_window_toast (CoopWindow *self, const char *text)
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

void
coop_window_show_chip (CoopWindow *self)
{
  const char *class = "quiet";
  gboolean recording = coop_window_is_running (self)
                       && coop_session_get_state (self->session) == COOP_SESSION_RECORDING;
  g_autofree char *text = self->starting ? g_strdup (_("starting"))
                                         : coop_words_for_state (self->session, self->trace != NULL,
                                                                 COOP_RUN_PAGE (self->page), &class);
  gtk_widget_set_visible (self->chip, *text != '\0');
  if (g_str_equal (text, gtk_label_get_text (GTK_LABEL (self->chip))))
    return;
  gtk_label_set_text (GTK_LABEL (self->chip), text);
  gtk_label_set_width_chars (GTK_LABEL (self->chip), recording ? 36 : -1); /* numbers must not move it */
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

/* Once a file, with its first picture. What is worse takes the banner over. */
static void
tell_lacks (CoopWindow *self)
{
  if (self->told_lacks)
    return;
  self->told_lacks = TRUE;
  g_autofree char *lacks = coop_run_page_get_lacks (COOP_RUN_PAGE (self->page));
  if (lacks)
    coop_window_say (self, GTK_MESSAGE_INFO, lacks);
}

static void
refreshed (CoopWindow *self)
{
  tell_lacks (self);
  coop_window_show_chip (self);
  tell_missing (self);
}

static gboolean
is_paused (CoopWindow *self)
{
  gboolean paused;
  g_object_get (self->page, "paused", &paused, NULL);
  return paused;
}

static void
show_enabled (CoopWindow *self)
{
  gboolean busy = coop_window_is_busy (self);
  enable (self, "stop", coop_window_is_running (self));
  enable (self, "pause", coop_window_is_running (self) || is_paused (self));
  enable (self, "look-back", self->session && self->trace && !coop_window_is_running (self));
  enable (self, "save", self->trace != NULL);
  enable (self, "panel", busy);
  const char *const on_page[] = { "export-picture", "find", "zoom-in", "zoom-out", "zoom-all", "why" };
  for (gsize i = 0; i < G_N_ELEMENTS (on_page); i++)
    enable (self, on_page[i], busy);
  enable (self, "tables", busy);
}

/* ---- the session ---- */

void
coop_window_save_now (CoopWindow *self, const char *to)
{
  coop_save_trace (GTK_WIDGET (self), self->trace, to, ADW_TOAST_OVERLAY (self->toasts));
}

static void
offer_look_back (CoopWindow *self)
{
  AdwToast *toast = adw_toast_new (_("The script has ended"));
  adw_toast_set_button_label (toast, _("_Look Back"));
  adw_toast_set_action_name (toast, "win.look-back");
  adw_toast_overlay_add_toast (ADW_TOAST_OVERLAY (self->toasts), toast);
}

static void
state_changed (CoopSession *session, CoopWindow *self)
{
  CoopSessionState state = coop_session_get_state (session);
  coop_window_show_chip (self);
  show_enabled (self);
  if (state <= COOP_SESSION_RECORDING)
    return;
  g_free (self->trace);
  self->trace = g_strdup (coop_session_get_trace (session));
  if (self->save_to)
    coop_window_save_now (self, self->save_to);
  g_clear_pointer (&self->save_to, g_free);
  int exit = coop_session_get_exit (session);
  if (state == COOP_SESSION_ENDED && exit != 0 && self->last_words)
    coop_window_say (self, GTK_MESSAGE_ERROR, self->last_words);
  if (self->then == THEN_NOTHING && self->trace)
    offer_look_back (self);
  g_signal_emit (self, done_signal, 0, state == COOP_SESSION_KILLED ? 128 + exit : MAX (exit, 0));
  if (self->then == THEN_FORM)
    coop_window_show_form (self);
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
  if (self->starting)
    g_cancellable_cancel (self->starting);
  g_clear_object (&self->starting);
  if (self->importing)
    g_cancellable_cancel (self->importing);
  g_clear_object (&self->importing);
  coop_start_form_set_busy (COOP_START_FORM (self->form), FALSE);
  coop_run_page_clear (COOP_RUN_PAGE (self->page));
  g_clear_object (&self->session);
  g_clear_pointer (&self->trace, g_free);
  g_clear_pointer (&self->save_to, g_free);
  g_clear_pointer (&self->last_words, g_free);
  self->then = THEN_NOTHING;
  self->told_missing = self->told_lacks = FALSE;
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
  coop_window_show_chip (self);
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
started (CoopWindow *self, gboolean ok)
{
  coop_start_form_set_busy (COOP_START_FORM (self->form), FALSE);
  g_signal_emit (self, started_signal, 0, ok);
}

static void
run_started (GObject *source, GAsyncResult *result, gpointer data)
{
  g_autoptr (CoopWindow) self = data;
  g_autoptr (GError) error = NULL;
  if (g_cancellable_is_cancelled (g_task_get_cancellable (G_TASK (result))))
    return;
  CoopRunOptions options = self->options;
  self->options = (CoopRunOptions) { 0 };
  CoopSession *session = coop_start_run_finish (result, &error);
  if (session)
    {
      g_autofree char *title = title_for (options.argv);
      watch (self, session, title, &options.policy);
    }
  else
    {
      coop_window_show_form (self);
      coop_window_say (self, GTK_MESSAGE_ERROR, error->message);
    }
  self->options = options;
  started (self, session != NULL);
}

void
coop_window_run (CoopWindow *self, const CoopRunOptions *options)
{
  g_autofree char *title = title_for (options->argv);
  forget (self);
  coop_run_options_clear (&self->options);
  coop_run_options_copy (&self->options, options);
  self->starting = g_cancellable_new ();
  gtk_label_set_text (GTK_LABEL (self->title), title);
  gtk_stack_set_visible_child_name (GTK_STACK (self->pages), "run");
  coop_run_page_set_starting (COOP_RUN_PAGE (self->page), &options->policy);
  coop_start_form_set_busy (COOP_START_FORM (self->form), TRUE);
  coop_window_show_chip (self);
  show_enabled (self);
  coop_start_run (options, self->starting, run_started, g_object_ref (self));
}

gboolean
coop_window_is_starting (CoopWindow *self)
{
  return self->starting != NULL;
}

/* The same script with another budget. */
static void
run_again (CoopRunPage *page, guint64 budget, CoopWindow *self)
{
  CoopRunOptions options = self->options;
  if (coop_window_is_running (self) || !options.argv)
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
  if (!coop_window_is_running (self) && path)
    coop_window_open (self, path, event);
}

static void
show_time (CoopRunPage *page, guint64 ts, CoopWindow *self)
{
  g_autofree char *path = g_strdup (self->trace);
  if (coop_window_is_running (self) || !path)
    return;
  coop_window_open (self, path, G_MAXUINT64);
  coop_run_page_seek (page, ts);
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

/* One trace a device: the others are a click away. */
static void
imported (GObject *source, GAsyncResult *result, gpointer data)
{
  g_autoptr (CoopWindow) self = data;
  g_autoptr (GError) error = NULL;
  g_autoptr (GPtrArray) traces = coop_import_file_finish (result, &error);
  if (g_cancellable_is_cancelled (g_task_get_cancellable (G_TASK (result))))
    return;
  if (!traces)
    {
      const char *name = gtk_label_get_text (GTK_LABEL (self->title));
      gboolean named = strstr (error->message, name) != NULL;
      g_autofree char *text = g_strdup_printf ("%s%s%s", named ? "" : name, named ? "" : ": ", error->message);
      coop_window_show_form (self);
      coop_window_say (self, GTK_MESSAGE_ERROR, text);
      return;
    }
  for (guint i = traces->len; i-- > 1;)
    coop_window_note_recent (self, traces->pdata[i]);
  coop_window_open (self, traces->pdata[0], G_MAXUINT64);
  if (traces->len > 1)
    coop_window_toast (self, _("The other devices of the snapshot are under Open Recent"));
}

static void
import (CoopWindow *self, const char *path, const char *name)
{
  forget (self);
  self->importing = g_cancellable_new ();
  gtk_label_set_text (GTK_LABEL (self->title), name);
  gtk_stack_set_visible_child_name (GTK_STACK (self->pages), "run");
  coop_run_page_set_reading (COOP_RUN_PAGE (self->page));
  coop_window_show_chip (self);
  show_enabled (self);
  coop_import_file (path, self->importing, imported, g_object_ref (self));
}

void
coop_window_open (CoopWindow *self, const char *path, guint64 event)
{
  g_autofree char *name = g_path_get_basename (path);
  if (coop_import_is_foreign (path))
    {
      import (self, path, name);
      return;
    }
  forget (self);
  self->trace = g_strdup (path);
  gtk_label_set_text (GTK_LABEL (self->title), name);
  gtk_stack_set_visible_child_name (GTK_STACK (self->pages), "run");
  coop_run_page_set_file (COOP_RUN_PAGE (self->page), path, event);
  coop_window_note_recent (self, path);
  gtk_widget_grab_focus (self->page);
  coop_window_show_chip (self);
  show_enabled (self);
}

gboolean
coop_window_is_busy (CoopWindow *self)
{
  return self->session || self->trace || self->starting || self->importing;
}

/* The window forgets its default widget when that goes out of sight. */
void
coop_window_show_form (CoopWindow *self)
{
  forget (self);
  gtk_stack_set_visible_child_name (GTK_STACK (self->pages), "start");
  gtk_label_set_text (GTK_LABEL (self->title), _("Coopscope"));
  gtk_window_set_default_widget (GTK_WINDOW (self), coop_start_form_get_default (COOP_START_FORM (self->form)));
  coop_window_show_chip (self);
  show_enabled (self);
}

static void
page_failed (CoopRunPage *page, const char *text, CoopWindow *self)
{
  g_autofree char *path = g_steal_pointer (&self->trace);
  g_autofree char *whole = g_strdup_printf ("%s: %s", path ? path : "", text);
  coop_window_show_form (self);
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
  if (g_str_has_suffix (path, ".lesson"))
    {
      GtkWidget *lessons = coop_lesson_window_new (gtk_window_get_application (GTK_WINDOW (self)));
      coop_lesson_window_open (COOP_LESSON_WINDOW (lessons), path);
      gtk_window_present (GTK_WINDOW (lessons));
    }
  else if (!g_str_has_suffix (path, ".py"))
    coop_window_open (self, path, G_MAXUINT64);
  else if (!coop_window_is_running (self))
    {
      coop_window_show_form (self);
      coop_start_form_set_script (COOP_START_FORM (self->form), path);
    }
  return TRUE;
}

/* A window with a script asks first, and goes when the script has ended. */
static gboolean
coop_window_close_request (GtkWindow *window)
{
  CoopWindow *self = COOP_WINDOW (window);
  if (coop_window_is_running (self) && self->then == THEN_CLOSE)
    coop_window_stop_then (self, THEN_CLOSE);
  else if (coop_window_is_running (self))
    coop_window_ask_to_stop (self, THEN_CLOSE);
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
  started_signal = g_signal_new ("started", G_TYPE_FROM_CLASS (class), G_SIGNAL_RUN_LAST, 0, NULL, NULL, NULL,
                                 G_TYPE_NONE, 1, G_TYPE_BOOLEAN);
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
  BIND (recent);
  gtk_widget_class_bind_template_callback (widget_class, info_bar_response);
  gtk_widget_class_bind_template_callback (widget_class, form_start);
  gtk_widget_class_bind_template_callback (widget_class, refreshed);
  gtk_widget_class_bind_template_callback (widget_class, page_failed);
  gtk_widget_class_bind_template_callback (widget_class, run_again);
  gtk_widget_class_bind_template_callback (widget_class, show_moment);
  gtk_widget_class_bind_template_callback (widget_class, show_time);
}

static void
coop_window_init (CoopWindow *self)
{
  GtkDropTarget *target = gtk_drop_target_new (G_TYPE_FILE, GDK_ACTION_COPY);
  coop_window_add_actions (self);
  gtk_widget_init_template (GTK_WIDGET (self));
  coop_window_follow_page (self);
  gtk_window_set_default_widget (GTK_WINDOW (self), coop_start_form_get_default (COOP_START_FORM (self->form)));
  g_signal_connect (target, "drop", G_CALLBACK (dropped), self);
  gtk_widget_add_controller (GTK_WIDGET (self), GTK_EVENT_CONTROLLER (target));
  self->settings = coop_settings_new ();
  if (self->settings)
    {
      g_settings_bind (self->settings, "width", self, "default-width", G_SETTINGS_BIND_DEFAULT);
      g_settings_bind (self->settings, "height", self, "default-height", G_SETTINGS_BIND_DEFAULT);
    }
  coop_window_show_recent (self);
  show_enabled (self);
}

GtkWidget *
coop_window_new (GtkApplication *application)
{
  return g_object_new (COOP_TYPE_WINDOW, "application", application, NULL);
}
