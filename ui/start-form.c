/* SPDX-License-Identifier: Apache-2.0 */
/* Start form: see the header. What was last used is remembered where the settings are installed. */
#include "config.h"

#include "start-form.h"

#include <adwaita.h>
#include <glib/gi18n.h>

#include "run-options.h"
#include "settings.h"

struct _CoopStartForm
{
  GtkWidget parent_instance;

  GtkWidget *scroller, *script, *arguments, *interpreter, *folder, *environment, *budget, *evictor,
      *allocator, *start;
  GSettings *settings;
};

G_DEFINE_FINAL_TYPE (CoopStartForm, coop_start_form, GTK_TYPE_WIDGET)

static guint start_signal;

static const char *
text_in (GtkWidget *row)
{
  return gtk_editable_get_text (GTK_EDITABLE (row));
}

static void
budget_changed (CoopStartForm *self)
{
  const char *text = text_in (self->budget);
  CoopValue value;
  gboolean wrong = *text && coop_param_parse (COOP_PARAM_BUDGET, text, &value) != COOP_PARSE_OK;
  if (wrong)
    gtk_widget_add_css_class (self->budget, "error");
  else
    gtk_widget_remove_css_class (self->budget, "error");
}

static void
start_clicked (CoopStartForm *self)
{
  g_signal_emit (self, start_signal, 0);
}

static void
script_chosen (GtkNativeDialog *dialog, int response, CoopStartForm *self)
{
  if (response == GTK_RESPONSE_ACCEPT)
    {
      g_autoptr (GFile) file = gtk_file_chooser_get_file (GTK_FILE_CHOOSER (dialog));
      g_autofree char *path = g_file_get_path (file);
      if (path)
        coop_start_form_set_script (self, path);
    }
  g_object_unref (dialog);
}

static void
choose_script (CoopStartForm *self)
{
  GtkWindow *window = GTK_WINDOW (gtk_widget_get_root (GTK_WIDGET (self)));
  GtkFileChooserNative *dialog = gtk_file_chooser_native_new (
      _("Choose a Script"), window, GTK_FILE_CHOOSER_ACTION_OPEN, NULL, NULL);
  g_autoptr (GtkFileFilter) filter = gtk_file_filter_new ();
  gtk_file_filter_set_name (filter, _("Python scripts"));
  gtk_file_filter_add_suffix (filter, "py");
  gtk_file_chooser_add_filter (GTK_FILE_CHOOSER (dialog), filter);
  g_signal_connect_object (dialog, "response", G_CALLBACK (script_chosen), self, 0);
  gtk_native_dialog_show (GTK_NATIVE_DIALOG (dialog));
}

static gboolean
split (const char *text, char ***words, const char *what, GError **error)
{
  g_autoptr (GError) cause = NULL;
  *words = NULL;
  if (*text == '\0')
    {
      *words = g_new0 (char *, 1);
      return TRUE;
    }
  if (g_shell_parse_argv (text, NULL, words, &cause))
    return TRUE;
  g_set_error (error, COOP_SESSION_ERROR, COOP_SESSION_ERROR_COMMAND, "%s: %s", what, cause->message);
  return FALSE;
}

static gboolean
check_environment (char **words, GError **error)
{
  for (char **word = words; *word; word++)
    if (!strchr (*word, '=') || **word == '=')
      {
        g_set_error (error, COOP_SESSION_ERROR, COOP_SESSION_ERROR_COMMAND,
                     _("Environment: “%s” is not KEY=VALUE."), *word);
        return FALSE;
      }
  return TRUE;
}

static void
remember (CoopStartForm *self)
{
  if (!self->settings)
    return;
  g_settings_set_string (self->settings, "script", text_in (self->script));
  g_settings_set_string (self->settings, "interpreter", text_in (self->interpreter));
  g_settings_set_string (self->settings, "budget", text_in (self->budget));
}

static gboolean
get_command (CoopStartForm *self, CoopRunOptions *options, GError **error)
{
  g_auto (GStrv) arguments = NULL;
  g_auto (GStrv) environment = NULL;
  const char *script = text_in (self->script), *folder = text_in (self->folder);
  if (!*script)
    {
      g_set_error_literal (error, COOP_SESSION_ERROR, COOP_SESSION_ERROR_COMMAND, _("Which script?"));
      return FALSE;
    }
  if (!split (text_in (self->arguments), &arguments, _("Arguments"), error)
      || !split (text_in (self->environment), &environment, _("Environment"), error)
      || !check_environment (environment, error))
    return FALSE;

  g_autoptr (GStrvBuilder) builder = g_strv_builder_new ();
  g_autofree char *path = g_canonicalize_filename (script, NULL);
  g_strv_builder_add (builder, *text_in (self->interpreter) ? text_in (self->interpreter) : "python3");
  g_strv_builder_add (builder, path);
  g_strv_builder_addv (builder, (const char **) arguments);
  g_clear_pointer (&options->argv, g_strfreev);
  options->argv = g_strv_builder_end (builder);
  options->envp = environment[0] ? g_steal_pointer (&environment) : NULL;
  options->cwd = *folder ? g_strdup (folder) : g_path_get_dirname (path);
  return TRUE;
}

gboolean
coop_start_form_get_options (CoopStartForm *self, CoopRunOptions *options, GError **error)
{
  CoopPolicy *policy = &options->policy;
  coop_policy_preset (policy, (CoopEvictorName) adw_combo_row_get_selected (ADW_COMBO_ROW (self->evictor)));
  policy->v[COOP_PARAM_ALLOCATOR].i = adw_combo_row_get_selected (ADW_COMBO_ROW (self->allocator));
  if (*text_in (self->budget)
      && !coop_policy_set_text (policy, "budget", text_in (self->budget), error))
    return FALSE;
  if (!get_command (self, options, error))
    return FALSE;
  remember (self);
  return TRUE;
}

void
coop_start_form_set_script (CoopStartForm *self, const char *path)
{
  gtk_editable_set_text (GTK_EDITABLE (self->script), path);
}

void
coop_start_form_set_busy (CoopStartForm *self, gboolean busy)
{
  gtk_widget_set_sensitive (self->start, !busy);
}

GtkWidget *
coop_start_form_get_default (CoopStartForm *self)
{
  return self->start;
}

static void
coop_start_form_dispose (GObject *object)
{
  CoopStartForm *self = COOP_START_FORM (object);
  gtk_widget_dispose_template (GTK_WIDGET (self), COOP_TYPE_START_FORM);
  g_clear_object (&self->settings);
  G_OBJECT_CLASS (coop_start_form_parent_class)->dispose (object);
}

#define BIND(member) gtk_widget_class_bind_template_child (widget_class, CoopStartForm, member)

static void
coop_start_form_class_init (CoopStartFormClass *class)
{
  GtkWidgetClass *widget_class = GTK_WIDGET_CLASS (class);
  G_OBJECT_CLASS (class)->dispose = coop_start_form_dispose;
  start_signal = g_signal_new ("start", G_TYPE_FROM_CLASS (class), G_SIGNAL_RUN_LAST, 0, NULL, NULL, NULL,
                               G_TYPE_NONE, 0);
  gtk_widget_class_set_template_from_resource (widget_class,
                                               "/io/github/coopscope/Coopscope/start-form.ui");
  BIND (scroller);
  BIND (script);
  BIND (arguments);
  BIND (interpreter);
  BIND (folder);
  BIND (environment);
  BIND (budget);
  BIND (evictor);
  BIND (allocator);
  BIND (start);
  gtk_widget_class_bind_template_callback (widget_class, choose_script);
  gtk_widget_class_bind_template_callback (widget_class, start_clicked);
  gtk_widget_class_bind_template_callback (widget_class, budget_changed);
}

static void
fill_list (GtkWidget *row, CoopParam param)
{
  CoopPolicy policy;
  g_autoptr (GtkStringList) labels = gtk_string_list_new (coop_param_info[param].labels);
  coop_policy_init (&policy);
  adw_combo_row_set_model (ADW_COMBO_ROW (row), G_LIST_MODEL (labels));
  adw_combo_row_set_selected (ADW_COMBO_ROW (row), (guint) policy.v[param].i);
  adw_action_row_set_subtitle (ADW_ACTION_ROW (row), _(coop_param_info[param].help));
}

static void
recall (CoopStartForm *self, GtkWidget *row, const char *key)
{
  g_autofree char *text = g_settings_get_string (self->settings, key);
  if (*text)
    gtk_editable_set_text (GTK_EDITABLE (row), text);
}

static void
coop_start_form_init (CoopStartForm *self)
{
  gtk_widget_init_template (GTK_WIDGET (self));
  fill_list (self->evictor, COOP_PARAM_EVICTOR);
  fill_list (self->allocator, COOP_PARAM_ALLOCATOR);
  gtk_editable_set_text (GTK_EDITABLE (self->interpreter), "python3");
  self->settings = coop_settings_new ();
  if (!self->settings)
    return;
  recall (self, self->script, "script");
  recall (self, self->interpreter, "interpreter");
  recall (self, self->budget, "budget");
}

GtkWidget *
coop_start_form_new (void)
{
  return g_object_new (COOP_TYPE_START_FORM, NULL);
}
