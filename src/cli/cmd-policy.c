/* SPDX-License-Identifier: Apache-2.0 */
/* coop policy: every parameter, one parameter, or what a preset sets. All from core/policy.h. */
#include "cli.h"

#include <stdio.h>
#include <string.h>

#define NAME "policy"

static const char *
type_label (CoopParamType type)
{
  switch (type)
    {
    case COOP_TYPE_SIZE:
      return "size";
    case COOP_TYPE_INT:
      return "int";
    case COOP_TYPE_REAL:
      return "real";
    case COOP_TYPE_BOOL:
      return "bool";
    case COOP_TYPE_ENUM:
      break;
    }
  return "enum";
}

/* For people: sizes with units, labels of enumerations. */
static char *
show (CoopParam param, CoopValue value)
{
  char text[64];
  if (coop_param_info[param].type == COOP_TYPE_SIZE)
    return coop_cli_size ((guint64) value.i);
  coop_param_format (param, value, text, sizeof text);
  return g_strdup (text);
}

static CoopValue
value_of (CoopParam param, double number)
{
  CoopValue value = { .i = 0 };
  if (coop_param_info[param].type == COOP_TYPE_REAL)
    value.d = number;
  else
    value.i = (gint64) number;
  return value;
}

static char *
range_of (CoopParam param)
{
  const CoopParamInfo *info = &coop_param_info[param];
  if (info->type == COOP_TYPE_ENUM)
    return g_strjoinv (", ", (char **) info->labels);
  if (info->type == COOP_TYPE_BOOL)
    return g_strdup ("no, yes");
  g_autofree char *min = show (param, value_of (param, info->min));
  g_autofree char *max = show (param, value_of (param, info->max));
  return g_strdup_printf ("%s to %s", min, max);
}

static gboolean
unit_is_shown (const CoopParamInfo *info)
{
  return *info->unit != 0 && info->type != COOP_TYPE_SIZE;
}

/* ---- for people ---- */

static void
print_param (CoopParam param, CoopValue value)
{
  const CoopParamInfo *info = &coop_param_info[param];
  g_autofree char *range = range_of (param);
  g_autofree char *text = show (param, value);
  printf ("  %-19s %s%s%s  (%s)\n      %s\n", info->name, text, unit_is_shown (info) ? " " : "",
          unit_is_shown (info) ? info->unit : "", range, info->help);
}

static void
print_all (const CoopPolicy *policy)
{
  const char *group = "";
  for (int i = 0; i < COOP_N_PARAMS; i++)
    {
      if (!g_str_equal (group, coop_param_info[i].group))
        printf ("%s%s\n", *group != 0 ? "\n" : "", coop_param_info[i].group);
      group = coop_param_info[i].group;
      print_param ((CoopParam) i, policy->v[i]);
    }
  printf ("\nSet with --set NAME=VALUE; --budget, --evictor and --allocator have flags of their own.\n");
}

static void
print_preset (const CoopPolicy *preset, const CoopPolicy *defaults)
{
  printf ("preset %s\n", coop_param_info[COOP_PARAM_EVICTOR].labels[preset->v[COOP_PARAM_EVICTOR].i]);
  for (int i = 0; i < COOP_N_PARAMS; i++)
    {
      g_autofree char *text = show ((CoopParam) i, preset->v[i]);
      g_autofree char *normal = show ((CoopParam) i, defaults->v[i]);
      gboolean same = coop_value_equal ((CoopParam) i, preset->v[i], defaults->v[i]);
      printf ("  %-19s %s", coop_param_info[i].name, text);
      if (!same)
        printf ("  (default %s)", normal);
      printf ("\n");
    }
}

/* ---- for programs ---- */

static void
json_value (GString *out, const char *key, CoopParam param, CoopValue value)
{
  char text[64];
  switch (coop_param_info[param].type)
    {
    case COOP_TYPE_REAL:
      coop_json_real (out, key, value.d);
      break;
    case COOP_TYPE_BOOL:
      coop_json_bool (out, key, value.i != 0);
      break;
    case COOP_TYPE_ENUM:
      coop_param_format (param, value, text, sizeof text);
      coop_json_string (out, key, text);
      break;
    case COOP_TYPE_SIZE:
    case COOP_TYPE_INT:
      coop_json_int (out, key, value.i);
      break;
    }
}

static void
json_param (GString *out, CoopParam param, const CoopPolicy *policy)
{
  const CoopParamInfo *info = &coop_param_info[param];
  coop_json_open (out, NULL, '{');
  coop_json_string (out, "name", info->name);
  coop_json_string (out, "type", type_label (info->type));
  coop_json_string (out, "group", info->group);
  json_value (out, "value", param, policy->v[param]);
  json_value (out, "default", param, value_of (param, info->def));
  if (info->type == COOP_TYPE_ENUM)
    {
      coop_json_open (out, "labels", '[');
      for (const char *const *label = info->labels; *label != NULL; label++)
        coop_json_string (out, NULL, *label);
      coop_json_close (out, ']');
    }
  else
    {
      json_value (out, "min", param, value_of (param, info->min));
      json_value (out, "max", param, value_of (param, info->max));
    }
  coop_json_string (out, "unit", info->unit);
  coop_json_string (out, "help", info->help);
  coop_json_close (out, '}');
}

/* All of a policy, or one parameter of it. */
static void
print_json (const CoopPolicy *policy, int param)
{
  g_autoptr (GString) out = g_string_new (NULL);
  if (param < 0)
    coop_json_open (out, NULL, '[');
  for (int i = 0; i < COOP_N_PARAMS; i++)
    if (param < 0 || i == param)
      json_param (out, (CoopParam) i, policy);
  if (param < 0)
    coop_json_close (out, ']');
  printf ("%s\n", out->str);
}

static int
unknown (const char *name)
{
  g_autoptr (GPtrArray) names = g_ptr_array_new ();
  for (int i = 0; i < COOP_N_PARAMS; i++)
    g_ptr_array_add (names, (char *) coop_param_info[i].name);
  for (int i = 0; i < COOP_N_EVICTORS; i++)
    g_ptr_array_add (names, (char *) coop_param_info[COOP_PARAM_EVICTOR].labels[i]);
  g_ptr_array_add (names, NULL);
  const char *near = coop_cli_nearest (name, (const char *const *) names->pdata);
  if (near != NULL)
    return coop_cli_usage (NAME, "no parameter or preset is called \"%s\"; did you mean %s?", name, near);
  return coop_cli_usage (NAME, "no parameter or preset is called \"%s\"; `coop policy` lists them", name);
}

static int
print_one (const char *name, gboolean json, const CoopPolicy *defaults)
{
  CoopPolicy policy = *defaults;
  CoopValue evictor;
  int param = coop_param_find (name);
  if (param >= 0 && json)
    print_json (defaults, param);
  else if (param >= 0)
    print_param ((CoopParam) param, defaults->v[param]);
  else if (coop_param_parse (COOP_PARAM_EVICTOR, name, &evictor) == COOP_PARSE_OK)
    {
      coop_policy_preset (&policy, (CoopEvictorName) evictor.i);
      if (json)
        print_json (&policy, -1);
      else
        print_preset (&policy, defaults);
    }
  else
    return unknown (name);
  return COOP_EXIT_DONE;
}

int
coop_cmd_policy (int argc, char **argv)
{
  gboolean json = FALSE;
  const GOptionEntry entries[] = {
    { "json", 0, 0, G_OPTION_ARG_NONE, &json, "Print JSON; sizes in bytes", NULL },
    G_OPTION_ENTRY_NULL
  };
  if (!coop_cli_parse ("[NAME]", "Lists every parameter with its default, range and meaning; explains one;\n"
                       "or shows what a preset (an evictor's name) sets.", entries, &argc, &argv))
    return COOP_EXIT_USAGE;
  if (argc > 2)
    return coop_cli_usage (NAME, "give at most one name: coop policy [NAME]");
  CoopPolicy defaults;
  coop_policy_init (&defaults);
  if (argc == 2)
    return print_one (argv[1], json, &defaults);
  if (json)
    print_json (&defaults, -1);
  else
    print_all (&defaults);
  return COOP_EXIT_DONE;
}
