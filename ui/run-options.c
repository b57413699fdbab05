/* SPDX-License-Identifier: Apache-2.0 */
/* Command line of the window. What follows `--` is the command and is never looked at. */
#include "config.h"

#include "run-options.h"

#include <glib/gi18n.h>
#include <string.h>

static gboolean
refuse (GError **error, const char *format, ...)
{
  va_list args;
  va_start (args, format);
  g_autofree char *text = g_strdup_vprintf (format, args);
  va_end (args);
  g_set_error_literal (error, G_OPTION_ERROR, G_OPTION_ERROR_BAD_VALUE, text);
  return FALSE;
}

gboolean
coop_policy_set_text (CoopPolicy *policy, const char *name, const char *text, GError **error)
{
  int param = coop_param_find (name);
  if (param < 0)
    {
      const char *near = coop_param_nearest (-1, name);
      if (near)
        return refuse (error, _("There is no parameter “%s”. Did you mean “%s”?"), name, near);
      return refuse (error, _("There is no parameter “%s”."), name);
    }
  CoopValue value;
  CoopParse parse = coop_param_parse ((CoopParam) param, text, &value);
  const char *near = NULL;
  if (parse == COOP_PARSE_SYNTAX && coop_param_info[param].type == COOP_TYPE_ENUM)
    near = coop_param_nearest (param, text);
  if (near)
    return refuse (error, _("“%s” is no %s. Did you mean “%s”?"), text, name, near);
  if (parse == COOP_PARSE_SYNTAX)
    return refuse (error, _("“%s” is not a value of %s."), text, name);
  if (parse == COOP_PARSE_RANGE)
    return refuse (error, _("“%s” is out of the range of %s."), text, name);
  if (param == COOP_PARAM_EVICTOR)
    coop_policy_preset (policy, (CoopEvictorName) value.i);
  else
    policy->v[param] = value;
  return TRUE;
}

static gboolean
set_pair (CoopPolicy *policy, const char *pair, GError **error)
{
  const char *equal = strchr (pair, '=');
  if (!equal)
    return refuse (error, _("“%s” is not KEY=VALUE."), pair);
  g_autofree char *name = g_strndup (pair, (gsize) (equal - pair));
  return coop_policy_set_text (policy, name, equal + 1, error);
}

/* A budget that was given must be one: 0 is the word for none and is not written. */
static gboolean
set_budget (CoopPolicy *policy, const char *text, GError **error)
{
  if (!coop_policy_set_text (policy, "budget", text, error))
    return FALSE;
  if (policy->v[COOP_PARAM_BUDGET].i == 0)
    return refuse (error, _("A budget of 0 cannot be. Leave the option away for no limit."));
  return TRUE;
}

typedef struct {
  char *budget, *evictor, *allocator, *out, **sets;
} Texts;

static void
texts_clear (Texts *texts)
{
  g_free (texts->budget);
  g_free (texts->evictor);
  g_free (texts->allocator);
  g_free (texts->out);
  g_strfreev (texts->sets);
}

/* The evictor first, since its preset names other parameters, which may be set one by one then. */
static gboolean
apply (CoopCommandLine *line, const Texts *texts, const char *cwd, GError **error)
{
  CoopPolicy *policy = &line->run.policy;
  if (texts->evictor && !coop_policy_set_text (policy, "evictor", texts->evictor, error))
    return FALSE;
  if (texts->allocator && !coop_policy_set_text (policy, "allocator", texts->allocator, error))
    return FALSE;
  if (texts->budget && !set_budget (policy, texts->budget, error))
    return FALSE;
  for (char **pair = texts->sets; pair && *pair; pair++)
    if (!set_pair (policy, *pair, error))
      return FALSE;
  if (texts->out)
    line->run.trace = g_canonicalize_filename (texts->out, cwd);
  return TRUE;
}

static gboolean
parse (CoopCommandLine *line, const char *const *argv, const char *cwd, char **for_help, GError **error)
{
  Texts texts = { 0 };
  const GOptionEntry entries[] = {
    { "help", 'h', 0, G_OPTION_ARG_NONE, &line->help, N_("Tell the options"), NULL },
    { "budget", 0, 0, G_OPTION_ARG_STRING, &texts.budget, N_("Bytes of tensor memory the script may use"),
      "SIZE" },
    { "evictor", 0, 0, G_OPTION_ARG_STRING, &texts.evictor, N_("How victims are chosen"), "NAME" },
    { "allocator", 0, 0, G_OPTION_ARG_STRING, &texts.allocator, N_("How blocks are laid out"), "NAME" },
    { "set", 0, 0, G_OPTION_ARG_STRING_ARRAY, &texts.sets, N_("Set any parameter"), "KEY=VALUE" },
    { "output", 'o', 0, G_OPTION_ARG_FILENAME, &texts.out, N_("Where the trace goes"), "FILE" },
    { "attach", 0, 0, G_OPTION_ARG_INT, &line->attach, N_("Watch a process that runs under Coopscope"),
      "PID" },
    { "quit-when-done", 0, 0, G_OPTION_ARG_NONE, &line->quit_when_done,
      N_("Close with the script, with its exit status"), NULL },
    { "version", 0, 0, G_OPTION_ARG_NONE, &line->version, N_("Tell the version"), NULL },
    { NULL }
  };
  *line = (CoopCommandLine) { 0 };
  coop_run_options_init (&line->run);
  guint n = 0;
  while (argv[n] && !g_str_equal (argv[n], "--"))
    n++;
  g_autoptr (GStrvBuilder) builder = g_strv_builder_new ();
  for (guint i = 0; i < n; i++)
    g_strv_builder_add (builder, argv[i]);
  g_auto (GStrv) ours = g_strv_builder_end (builder);

  g_autoptr (GOptionContext) context = g_option_context_new (_("[FILE…]  or  [-- COMMAND…]"));
  g_option_context_add_main_entries (context, entries, GETTEXT_PACKAGE);
  g_option_context_set_help_enabled (context, FALSE); /* it would end the process */
  if (for_help)
    *for_help = g_option_context_get_help (context, TRUE, NULL);
  gboolean ok = g_option_context_parse_strv (context, &ours, error) && apply (line, &texts, cwd, error);
  texts_clear (&texts);
  if (!ok)
    return FALSE;
  if (argv[n] && argv[n + 1])
    {
      line->run.argv = g_strdupv ((char **) argv + n + 1);
      line->run.cwd = g_strdup (cwd);
    }
  else if (argv[n])
    return refuse (error, _("There is no command after “--”."));
  line->files = g_strdupv (g_strv_length (ours) > 0 ? ours + 1 : ours);
  if (line->run.argv && line->files[0])
    return refuse (error, _("“%s” is before “--”: a trace and a command do not go together."),
                   line->files[0]);
  return TRUE;
}

gboolean
coop_command_line_parse (CoopCommandLine *line, const char *const *argv, const char *cwd, GError **error)
{
  return parse (line, argv, cwd, NULL, error);
}

char *
coop_command_line_help (void)
{
  const char *const argv[] = { "coopscope", NULL };
  CoopCommandLine line;
  char *text = NULL;
  parse (&line, argv, "/", &text, NULL);
  coop_command_line_clear (&line);
  return text;
}

void
coop_command_line_clear (CoopCommandLine *line)
{
  coop_run_options_clear (&line->run);
  g_clear_pointer (&line->files, g_strfreev);
}
