/* SPDX-License-Identifier: Apache-2.0 */
/* Application: see the header. A second `coopscope` hands its command line to the first, with its
 * folder and its environment, and gets a window there.
 */
#include "config.h"

#include "application.h"

#include <glib/gi18n.h>

#include "lesson-window.h"
#include "manual.h"
#include "run-options.h"
#include "window.h"

#define APP_ID "io.github.coopscope.Coopscope"

struct _CoopApplication
{
  AdwApplication parent_instance;

  GApplicationCommandLine *waiting; /* ends with the script: --quit-when-done */
  int status;                       /* of that script, if it is ours */
};

G_DEFINE_FINAL_TYPE (CoopApplication, coop_application, ADW_TYPE_APPLICATION)

/* ---- actions ---- */

static void
quit_action (GSimpleAction *action, GVariant *parameter, gpointer data)
{
  GList *windows = g_list_copy (gtk_application_get_windows (GTK_APPLICATION (data)));
  for (GList *l = windows; l; l = l->next)
    gtk_window_close (l->data);
  g_list_free (windows);
}

static void
about_action (GSimpleAction *action, GVariant *parameter, gpointer data)
{
  adw_show_about_window (gtk_application_get_active_window (GTK_APPLICATION (data)), "application-name",
                         "Coopscope", "application-icon", APP_ID, "version", COOP_VERSION, "license-type",
                         GTK_LICENSE_APACHE_2_0, "comments",
                         _("Train inside a hard memory budget, and watch the holes."), "developer-name",
                         _("The Coopscope authors"), NULL);
}

static void
dark_changed (GSimpleAction *action, GVariant *state, gpointer data)
{
  g_simple_action_set_state (action, state);
  adw_style_manager_set_color_scheme (
      adw_style_manager_get_default (),
      g_variant_get_boolean (state) ? ADW_COLOR_SCHEME_FORCE_DARK : ADW_COLOR_SCHEME_DEFAULT);
}

static CoopLessonWindow *
lessons (gpointer application)
{
  for (GList *l = gtk_application_get_windows (application); l; l = l->next)
    if (COOP_IS_LESSON_WINDOW (l->data))
      return l->data;
  return COOP_LESSON_WINDOW (coop_lesson_window_new (application));
}

static void
lessons_action (GSimpleAction *action, GVariant *parameter, gpointer data)
{
  gtk_window_present (GTK_WINDOW (lessons (data)));
}

static void
manual_action (GSimpleAction *action, GVariant *parameter, gpointer data)
{
  coop_manual_show (gtk_application_get_active_window (GTK_APPLICATION (data)));
}

static const GActionEntry entries[] = {
  { "lessons", lessons_action, NULL, NULL, NULL, { 0 } },
  { "manual", manual_action, NULL, NULL, NULL, { 0 } },
  { "quit", quit_action, NULL, NULL, NULL, { 0 } },
  { "about", about_action, NULL, NULL, NULL, { 0 } },
  { "dark", NULL, NULL, "false", dark_changed, { 0 } },
};

static const struct
{
  const char *action;
  const char *keys[3];
} keys[] = {
  { "win.new-run", { "<Control>n" } },
  { "win.open", { "<Control>o" } },
  { "win.save", { "<Control>s" } },
  { "win.stop", { "<Control>e" } },
  { "win.panel", { "F9" } },
  { "win.tables", { "F8" } },
  { "win.show-help-overlay", { "<Control>question" } },
  { "window.close", { "<Control>w" } },
  { "app.dark", { "<Control>d" } },
  { "app.lessons", { "<Control>l" } },
  { "app.manual", { "F1" } },
  { "win.find", { "<Control>f" } },
  { "win.zoom-in", { "<Control>plus", "<Control>equal" } },
  { "win.zoom-out", { "<Control>minus" } },
  { "win.zoom-all", { "<Control>0" } },
  { "win.why", { "<Control>y" } },
  { "win.commands", { "<Control><Shift>p" } },
  { "win.export-picture", { "<Control><Shift>e" } },
  { "app.quit", { "<Control>q" } },
};

/* ---- command line ---- */

static void
done (CoopWindow *window, int status, CoopApplication *self)
{
  if (self->waiting && g_application_command_line_get_is_remote (self->waiting))
    g_application_command_line_set_exit_status (self->waiting, status);
  else
    self->status = status; /* our own command line has returned long since */
  g_clear_object (&self->waiting);
  gtk_window_destroy (GTK_WINDOW (window));
}

static CoopWindow *
window_for_next (CoopApplication *self)
{
  GtkWindow *active = gtk_application_get_active_window (GTK_APPLICATION (self));
  if (COOP_IS_WINDOW (active) && !coop_window_is_busy (COOP_WINDOW (active)))
    return COOP_WINDOW (active);
  return COOP_WINDOW (coop_window_new (GTK_APPLICATION (self)));
}

/* A run asked for on a command line, until it is known whether it starts. */
typedef struct {
  CoopApplication *self;
  GApplicationCommandLine *from;
} Asked;

static void
asked_free (gpointer data, GClosure *closure)
{
  Asked *asked = data;
  g_object_unref (asked->from);
  g_free (asked);
}

static void
answer (CoopWindow *answering, gboolean ok, Asked *asked)
{
  g_autoptr (CoopWindow) window = g_object_ref (answering); /* it may go */
  CoopApplication *self = asked->self;
  const char *said = coop_window_get_said (window);
  if (!ok)
    {
      g_application_command_line_printerr (asked->from, "coopscope: %s\n", said ? said : "");
      if (self->waiting == asked->from)
        done (window, 2, self);
      else if (g_application_command_line_get_is_remote (asked->from))
        g_application_command_line_set_exit_status (asked->from, 2);
      else
        self->status = 2;
    }
  g_signal_handlers_disconnect_by_data (window, asked);
}

static void
start_run (CoopApplication *self, GApplicationCommandLine *from, CoopCommandLine *line)
{
  CoopWindow *window = window_for_next (self);
  Asked *asked = g_new (Asked, 1);
  *asked = (Asked) { self, g_object_ref (from) };
  g_signal_connect_data (window, "started", G_CALLBACK (answer), asked, asked_free, 0);
  if (g_application_command_line_get_is_remote (from))
    line->run.envp = g_strdupv ((char **) g_application_command_line_get_environ (from));
  if (line->quit_when_done)
    {
      g_set_object (&self->waiting, from);
      g_signal_connect (window, "done", G_CALLBACK (done), self);
    }
  gtk_window_present (GTK_WINDOW (window));
  if (line->run.argv)
    coop_window_run (window, &line->run);
  else
    answer (window, coop_window_attach (window, line->attach), asked);
}

static void
open_files (CoopApplication *self, const char *cwd, char **files)
{
  for (char **file = files; *file; file++)
    {
      g_autofree char *path = g_canonicalize_filename (*file, cwd);
      if (g_str_has_suffix (path, ".lesson"))
        {
          CoopLessonWindow *teaching = lessons (self);
          coop_lesson_window_open (teaching, path);
          gtk_window_present (GTK_WINDOW (teaching));
          continue;
        }
      CoopWindow *window = window_for_next (self);
      gtk_window_present (GTK_WINDOW (window));
      coop_window_open (window, path, G_MAXUINT64);
    }
}

static int
coop_application_command_line (GApplication *application, GApplicationCommandLine *from)
{
  CoopApplication *self = COOP_APPLICATION (application);
  g_auto (GStrv) argv = g_application_command_line_get_arguments (from, NULL);
  const char *cwd = g_application_command_line_get_cwd (from);
  g_autofree char *here = cwd ? g_strdup (cwd) : g_get_current_dir ();
  g_autoptr (GError) error = NULL;
  CoopCommandLine line;
  int status = 0;

  if (!coop_command_line_parse (&line, (const char *const *) argv, here, &error))
    {
      g_application_command_line_printerr (from, "coopscope: %s\n", error->message);
      status = 2;
    }
  else if (line.run.argv || line.attach > 0)
    start_run (self, from, &line);
  else if (line.files && line.files[0])
    open_files (self, here, line.files);
  else
    gtk_window_present (GTK_WINDOW (window_for_next (self)));
  coop_command_line_clear (&line);
  return status;
}

static void
coop_application_activate (GApplication *application)
{
  gtk_window_present (GTK_WINDOW (window_for_next (COOP_APPLICATION (application))));
}

static void
coop_application_startup (GApplication *application)
{
  G_APPLICATION_CLASS (coop_application_parent_class)->startup (application);
  g_action_map_add_action_entries (G_ACTION_MAP (application), entries, G_N_ELEMENTS (entries), application);
  for (gsize i = 0; i < G_N_ELEMENTS (keys); i++)
    gtk_application_set_accels_for_action (GTK_APPLICATION (application), keys[i].action, keys[i].keys);
  gtk_window_set_default_icon_name (APP_ID);
}

static void
coop_application_finalize (GObject *object)
{
  g_clear_object (&COOP_APPLICATION (object)->waiting);
  G_OBJECT_CLASS (coop_application_parent_class)->finalize (object);
}

static void
coop_application_class_init (CoopApplicationClass *class)
{
  G_OBJECT_CLASS (class)->finalize = coop_application_finalize;
  G_APPLICATION_CLASS (class)->startup = coop_application_startup;
  G_APPLICATION_CLASS (class)->activate = coop_application_activate;
  G_APPLICATION_CLASS (class)->command_line = coop_application_command_line;
}

static void
coop_application_init (CoopApplication *self)
{
}

CoopApplication *
coop_application_new (void)
{
  return g_object_new (COOP_TYPE_APPLICATION, "application-id", APP_ID, "flags",
                       G_APPLICATION_HANDLES_COMMAND_LINE | G_APPLICATION_SEND_ENVIRONMENT,
                       "resource-base-path", "/io/github/coopscope/Coopscope", NULL);
}

int
coop_application_get_status (CoopApplication *self)
{
  return self->status;
}
