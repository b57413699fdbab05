/* SPDX-License-Identifier: Apache-2.0 */
/* Policy on the command line: names and values checked, and the nearest name offered. */
#include "cli.h"

#include <string.h>

static const char *const units[]
    = { "B", "KB", "MB", "GB", "TB", "KiB", "MiB", "GiB", "TiB", NULL };

/* Why a size could not be read, as helpful as the text allows. */
static void
explain_size (const char *command, const char *key, const char *value)
{
  const char *rest = value + strspn (value, "0123456789. ");
  if (strchr (value, ',') != NULL)
    coop_cli_warn (command, "%s: \"%s\" has a comma; write decimals with a point", key, value);
  else if (value[0] == '-')
    coop_cli_warn (command, "%s: \"%s\" is negative", key, value);
  else if (rest == value || rest[0] == 0)
    coop_cli_warn (command, "%s: \"%s\" is not a size; write for example 300MiB or 1.5GB", key, value);
  else
    {
      const char *near = coop_cli_nearest (rest, units);
      coop_cli_warn (command, "%s: unknown unit \"%s\" in \"%s\"; did you mean %s?", key, rest, value,
                     near != NULL ? near : "MiB");
    }
}

static void
explain_syntax (const char *command, int param, const char *value)
{
  const CoopParamInfo *info = &coop_param_info[param];
  if (info->type == COOP_TYPE_SIZE)
    {
      explain_size (command, info->name, value);
      return;
    }
  if (info->type != COOP_TYPE_ENUM)
    {
      coop_cli_warn (command, "%s: \"%s\" is not a %s", info->name, value,
                     info->type == COOP_TYPE_BOOL ? "yes or no" : "number");
      return;
    }
  const char *near = coop_param_nearest (param, value);
  g_autofree char *all = g_strjoinv (", ", (char **) info->labels);
  if (near != NULL)
    coop_cli_warn (command, "unknown %s \"%s\"; did you mean %s? (there are: %s)", info->name, value,
                   near, all);
  else
    coop_cli_warn (command, "unknown %s \"%s\"; there are: %s", info->name, value, all);
}

static void
explain_range (const char *command, int param)
{
  const CoopParamInfo *info = &coop_param_info[param];
  char low[32], high[32];
  CoopValue min = { .i = (gint64) info->min }, max = { .i = (gint64) info->max };
  if (info->type == COOP_TYPE_REAL)
    {
      min.d = info->min;
      max.d = info->max;
    }
  coop_param_format ((CoopParam) param, min, low, sizeof low);
  coop_param_format ((CoopParam) param, max, high, sizeof high);
  coop_cli_warn (command, "%s must be between %s and %s", info->name, low, high);
}

gboolean
coop_cli_policy_set (const char *command, const char *key, const char *value, CoopPolicy *policy,
                     guint64 *mask)
{
  int param = coop_param_find (key);
  CoopValue parsed = { 0 };
  if (param < 0)
    {
      const char *near = coop_param_nearest (-1, key);
      if (near != NULL)
        coop_cli_warn (command, "unknown parameter \"%s\"; did you mean %s?", key, near);
      else
        coop_cli_warn (command, "unknown parameter \"%s\"; `coop policy` lists them", key);
      return FALSE;
    }
  switch (coop_param_parse ((CoopParam) param, value, &parsed))
    {
    case COOP_PARSE_SYNTAX:
      explain_syntax (command, param, value);
      return FALSE;
    case COOP_PARSE_RANGE:
      explain_range (command, param);
      return FALSE;
    case COOP_PARSE_OK:
      break;
    }
  if (param == COOP_PARAM_BUDGET && parsed.i == 0)
    {
      coop_cli_warn (command, "a budget of 0 leaves no memory; without --budget there is no limit");
      return FALSE;
    }
  if (param == COOP_PARAM_EVICTOR)
    {
      CoopPolicy before = *policy;
      coop_policy_preset (policy, (CoopEvictorName) parsed.i);
      for (int i = 0; i < COOP_N_PARAMS; i++)
        if (!coop_value_equal ((CoopParam) i, before.v[i], policy->v[i]))
          *mask |= (guint64) 1 << i;
    }
  policy->v[param] = parsed;
  *mask |= (guint64) 1 << param;
  return TRUE;
}

gboolean
coop_cli_policy_assign (const char *command, const char *key_value, CoopPolicy *policy, guint64 *mask)
{
  const char *equals = strchr (key_value, '=');
  if (equals == NULL || equals == key_value)
    {
      coop_cli_warn (command, "--set wants KEY=VALUE, not \"%s\"", key_value);
      return FALSE;
    }
  g_autofree char *key = g_strndup (key_value, (gsize) (equals - key_value));
  return coop_cli_policy_set (command, key, equals + 1, policy, mask);
}

gboolean
coop_cli_policy_file (const char *command, const char *path, CoopPolicy *policy, guint64 *mask)
{
  g_autoptr (GError) error = NULL;
  g_autofree char *text = NULL;
  if (!g_file_get_contents (path, &text, NULL, &error))
    {
      coop_cli_warn (command, "--policy: %s", error->message);
      return FALSE;
    }
  if (!g_utf8_validate (text, -1, NULL))
    {
      coop_cli_warn (command, "--policy: %s is no policy file: lines KEY=VALUE, as coop rehearse writes it", path);
      return FALSE;
    }
  g_auto (GStrv) lines = g_strsplit (text, "\n", -1);
  for (guint i = 0; lines[i] != NULL; i++)
    {
      char *line = g_strstrip (lines[i]);
      if (*line == 0 || *line == '#')
        continue;
      if (strchr (line, '=') == NULL || !coop_cli_policy_assign (command, line, policy, mask))
        {
          coop_cli_warn (command, "%s:%u: not KEY=VALUE of a parameter: \"%s\"", path, i + 1, line);
          return FALSE;
        }
    }
  return TRUE;
}
