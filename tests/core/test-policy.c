/* SPDX-License-Identifier: Apache-2.0 */
/* The parameter table, and reading and writing of values. */
#include "core/event.h"
#include "core/policy.h"

#include <glib.h>
#include <locale.h>
#include <math.h>
#include <string.h>

static void
test_table (void)
{
  CoopPolicy policy;
  char text[64];
  coop_policy_init (&policy);
  for (int i = 0; i < COOP_N_PARAMS; i++)
    {
      const CoopParamInfo *info = &coop_param_info[i];
      CoopValue back;
      g_assert_cmpint (info->id, ==, i);
      g_assert_cmpfloat (info->min, <=, info->def);
      g_assert_cmpfloat (info->def, <=, info->max);
      g_assert_true ((info->labels != NULL) == (info->type == COOP_TYPE_ENUM));
      if (info->labels != NULL)
        g_assert_cmpuint (g_strv_length ((char **) info->labels), ==, (guint) info->max + 1);
      g_assert_cmpint (coop_param_find (info->name), ==, i);
      g_assert_cmpint (coop_param_format ((CoopParam) i, policy.v[i], text, sizeof text), ==,
                       strlen (text));
      g_assert_cmpint (coop_param_parse ((CoopParam) i, text, &back), ==, COOP_PARSE_OK);
      g_assert_true (coop_value_equal ((CoopParam) i, back, policy.v[i]));
    }
  g_assert_cmpint (coop_param_find ("ring-wait"), ==, COOP_PARAM_RING_WAIT);
  g_assert_cmpint (coop_param_find ("ring"), ==, -1);
  g_assert_cmpint (coop_param_find (""), ==, -1);
}

static void
test_presets (void)
{
  static const struct { double a, b, c; int chain, beside, groups; } want[COOP_N_EVICTORS] = {
    [COOP_EVICTOR_COOP] = { 1, 1, 0, COOP_CHAIN_UNION, 0, 2 },
    [COOP_EVICTOR_DTR_EQ] = { 1, 1, 1, COOP_CHAIN_UNION, 0, 1 },
    [COOP_EVICTOR_LRU] = { 0, 1, 0, COOP_CHAIN_NONE, 0, 1 },
    [COOP_EVICTOR_NONE] = { 1, 1, 0, COOP_CHAIN_UNION, 0, 2 },
    [COOP_EVICTOR_DTR] = { 1, 1, 1, COOP_CHAIN_EXACT, 0, 1 },
    [COOP_EVICTOR_DTR_LOCAL] = { 1, 1, 1, COOP_CHAIN_NONE, 0, 1 },
    [COOP_EVICTOR_MSPS] = { 1, 0, 1, COOP_CHAIN_ANCESTORS, 0, 1 },
    [COOP_EVICTOR_DTE] = { 1, 1, 1, COOP_CHAIN_UNION, 1, 1 },
    [COOP_EVICTOR_SIZE] = { 0, 0, 1, COOP_CHAIN_NONE, 0, 1 },
    [COOP_EVICTOR_RANDOM] = { 0, 0, 0, COOP_CHAIN_NONE, 0, 1 },
    [COOP_EVICTOR_COOP_CLASS] = { 1, 1, 0, COOP_CHAIN_UNION, 0, 2 },
    [COOP_EVICTOR_COOP_PLUS] = { 1, 1, 1, COOP_CHAIN_UNION, 0, 1 },
  };
  for (int i = 0; i < COOP_N_EVICTORS; i++)
    {
      CoopPolicy policy;
      coop_policy_init (&policy);
      policy.v[COOP_PARAM_BUDGET].i = 12345;
      policy.v[COOP_PARAM_GROUPS].i = 7;
      coop_policy_preset (&policy, (CoopEvictorName) i);
      g_assert_cmpint (policy.v[COOP_PARAM_EVICTOR].i, ==, i);
      g_assert_cmpfloat (policy.v[COOP_PARAM_COST_EXPONENT].d, ==, want[i].a);
      g_assert_cmpfloat (policy.v[COOP_PARAM_STALENESS_EXPONENT].d, ==, want[i].b);
      g_assert_cmpfloat (policy.v[COOP_PARAM_SIZE_EXPONENT].d, ==, want[i].c);
      g_assert_cmpint (policy.v[COOP_PARAM_CHAIN].i, ==, want[i].chain);
      g_assert_cmpint (policy.v[COOP_PARAM_BESIDE].i, ==, want[i].beside);
      g_assert_cmpint (policy.v[COOP_PARAM_GROUPS].i, ==, want[i].groups);
      g_assert_cmpint (policy.v[COOP_PARAM_BUDGET].i, ==, 12345);
    }
}

static void
test_sizes (void)
{
  static const struct { const char *text; CoopParse parse; uint64_t bytes; } cases[] = {
    { "0", COOP_PARSE_OK, 0 },
    { "300MiB", COOP_PARSE_OK, 314572800 },
    { "300 MiB", COOP_PARSE_OK, 314572800 },
    { " 1.5 GB ", COOP_PARSE_OK, 1500000000 },
    { "1.5GiB", COOP_PARSE_OK, 1610612736 },
    { ".5KiB", COOP_PARSE_OK, 512 },
    { "2tb", COOP_PARSE_OK, 2000000000000 },
    { "10KB", COOP_PARSE_OK, 10000 },
    { "9007199254740993", COOP_PARSE_OK, 9007199254740993 },
    { "77 bytes", COOP_PARSE_OK, 77 },
    { "7B", COOP_PARSE_OK, 7 },
    { "1,5 GB", COOP_PARSE_SYNTAX, 0 },
    { "1,500", COOP_PARSE_SYNTAX, 0 },
    { "-1", COOP_PARSE_SYNTAX, 0 },
    { "-1 GB", COOP_PARSE_SYNTAX, 0 },
    { "+1", COOP_PARSE_SYNTAX, 0 },
    { "", COOP_PARSE_SYNTAX, 0 },
    { "GB", COOP_PARSE_SYNTAX, 0 },
    { ".", COOP_PARSE_SYNTAX, 0 },
    { "1 Gb/s", COOP_PARSE_SYNTAX, 0 },
    { "1 XB", COOP_PARSE_SYNTAX, 0 },
    { "1 MiB MiB", COOP_PARSE_SYNTAX, 0 },
    { "0x10", COOP_PARSE_SYNTAX, 0 },
    { "1e3", COOP_PARSE_SYNTAX, 0 },
    { "nan", COOP_PARSE_SYNTAX, 0 },
    { "inf", COOP_PARSE_SYNTAX, 0 },
    { "99999999999999999999999", COOP_PARSE_RANGE, 0 },
    { "9999999999 TiB", COOP_PARSE_RANGE, 0 },
  };
  for (size_t i = 0; i < G_N_ELEMENTS (cases); i++)
    {
      uint64_t bytes = 0;
      g_test_message ("`%s`", cases[i].text);
      g_assert_cmpint (coop_size_parse (cases[i].text, &bytes), ==, cases[i].parse);
      if (cases[i].parse == COOP_PARSE_OK)
        g_assert_cmpuint (bytes, ==, cases[i].bytes);
    }
}

static void
test_values (void)
{
  static const struct { CoopParam param; const char *text; CoopParse parse; double value; } cases[] = {
    { COOP_PARAM_BUDGET, "257 TiB", COOP_PARSE_RANGE, 0 },
    { COOP_PARAM_BUDGET, "256 TiB", COOP_PARSE_OK, 256 * COOP_TIB },
    { COOP_PARAM_GROUPS, "2", COOP_PARSE_OK, 2 },
    { COOP_PARAM_GROUPS, "7", COOP_PARSE_RANGE, 0 },
    { COOP_PARAM_GROUPS, "-1", COOP_PARSE_RANGE, 0 },
    { COOP_PARAM_GROUPS, "1.5", COOP_PARSE_SYNTAX, 0 },
    { COOP_PARAM_GROUPS, "two", COOP_PARSE_SYNTAX, 0 },
    { COOP_PARAM_GROUPS, "99999999999999999999", COOP_PARSE_RANGE, 0 },
    { COOP_PARAM_DENSITY, "0.25", COOP_PARSE_OK, 0.25 },
    { COOP_PARAM_DENSITY, "1e2", COOP_PARSE_OK, 100 },
    { COOP_PARAM_DENSITY, "-0.5", COOP_PARSE_RANGE, 0 },
    { COOP_PARAM_DENSITY, "0,25", COOP_PARSE_SYNTAX, 0 },
    { COOP_PARAM_DENSITY, "1e", COOP_PARSE_SYNTAX, 0 },
    { COOP_PARAM_DENSITY, "nan", COOP_PARSE_SYNTAX, 0 },
    { COOP_PARAM_DENSITY, "1e999", COOP_PARSE_RANGE, 0 },
    { COOP_PARAM_VERIFY, "yes", COOP_PARSE_OK, 1 },
    { COOP_PARAM_VERIFY, "Off", COOP_PARSE_OK, 0 },
    { COOP_PARAM_VERIFY, "2", COOP_PARSE_SYNTAX, 0 },
    { COOP_PARAM_EVICTOR, "dtr-eq", COOP_PARSE_OK, COOP_EVICTOR_DTR_EQ },
    { COOP_PARAM_EVICTOR, "dtr_eq", COOP_PARSE_OK, COOP_EVICTOR_DTR_EQ },
    { COOP_PARAM_EVICTOR, "dtr-", COOP_PARSE_SYNTAX, 0 },
    { COOP_PARAM_EVICTOR, "0", COOP_PARSE_SYNTAX, 0 },
  };
  for (size_t i = 0; i < G_N_ELEMENTS (cases); i++)
    {
      CoopValue value = { .i = -77 };
      g_test_message ("%s = `%s`", coop_param_info[cases[i].param].name, cases[i].text);
      g_assert_cmpint (coop_param_parse (cases[i].param, cases[i].text, &value), ==, cases[i].parse);
      if (cases[i].parse != COOP_PARSE_OK)
        g_assert_cmpint (value.i, ==, -77);
      else if (coop_param_info[cases[i].param].type == COOP_TYPE_REAL)
        g_assert_cmpfloat (value.d, ==, cases[i].value);
      else
        g_assert_cmpfloat ((double) value.i, ==, cases[i].value);
    }
}

/* A comma for a point must neither be read nor written. (Where the locale is not installed the C
 * locale stays, under which the same must hold.) */
static void
test_locale (void)
{
  CoopValue value = { .d = 0.1 };
  char text[32];
  setlocale (LC_ALL, "de_DE.UTF-8");
  coop_param_format (COOP_PARAM_DENSITY, value, text, sizeof text);
  g_assert_cmpstr (text, ==, "0.1");
  g_assert_cmpint (coop_param_parse (COOP_PARAM_DENSITY, "0.30000000000000004", &value), ==,
                   COOP_PARSE_OK);
  g_assert_cmpfloat (value.d, ==, 0.30000000000000004);
  coop_param_format (COOP_PARAM_DENSITY, value, text, sizeof text);
  g_assert_cmpstr (text, ==, "0.30000000000000004");
  coop_size_format (39531315, text, sizeof text);
  g_assert_cmpstr (text, ==, "37.7 MiB");
  setlocale (LC_ALL, "C");
}

static void
test_size_format (void)
{
  static const struct { uint64_t bytes; const char *text; } cases[] = {
    { 0, "0 B" }, { 1023, "1023 B" }, { 1024, "1.0 KiB" }, { 1536, "1.5 KiB" },
    { 1048575, "1.0 MiB" }, { 314572800, "300.0 MiB" }, { UINT64_C (1) << 40, "1.0 TiB" },
  };
  char text[32], tiny[4];
  for (size_t i = 0; i < G_N_ELEMENTS (cases); i++)
    {
      coop_size_format (cases[i].bytes, text, sizeof text);
      g_assert_cmpstr (text, ==, cases[i].text);
    }
  g_assert_cmpint (coop_size_format (1536, tiny, sizeof tiny), ==, 7);
  g_assert_cmpstr (tiny, ==, "1.5");
}

static void
test_nearest (void)
{
  g_assert_cmpstr (coop_param_nearest (-1, "budgt"), ==, "budget");
  g_assert_cmpstr (coop_param_nearest (-1, "size-exponnt"), ==, "size_exponent");
  g_assert_cmpstr (coop_param_nearest (COOP_PARAM_EVICTOR, "cop"), ==, "coop");
  g_assert_cmpstr (coop_param_nearest (COOP_PARAM_EVICTOR, "dtreq"), ==, "dtr-eq");
  g_assert_cmpstr (coop_param_nearest (COOP_PARAM_ALLOCATOR, "marge"), ==, "merge");
  g_assert_cmpstr (coop_param_nearest (-1, "quite_something_else"), ==, NULL);
  g_assert_cmpstr (coop_param_nearest (COOP_PARAM_BUDGET, "coop"), ==, NULL);
  g_assert_cmpstr (coop_param_nearest (-1, ""), ==, NULL);
  char *endless = g_strnfill (10000, 'x');
  g_assert_cmpstr (coop_param_nearest (-1, endless), ==, NULL);
  g_free (endless);
}

static void
test_clamp (void)
{
  CoopValue v = coop_param_clamp (COOP_PARAM_GROUPS, (CoopValue) { .i = 99 });
  g_assert_cmpint (v.i, ==, 6);
  v = coop_param_clamp (COOP_PARAM_GROUPS, (CoopValue) { .i = -99 });
  g_assert_cmpint (v.i, ==, 1);
  v = coop_param_clamp (COOP_PARAM_DENSITY, (CoopValue) { .d = NAN });
  g_assert_cmpfloat (v.d, ==, 0.25);
  v = coop_param_clamp (COOP_PARAM_DENSITY, (CoopValue) { .d = -1 });
  g_assert_cmpfloat (v.d, ==, 0);
}

static void
test_labels (void)
{
  g_assert_cmpstr (coop_event_kind_label (COOP_EVENT_OOM), ==, "oom");
  g_assert_cmpstr (coop_event_kind_label (0), ==, NULL);
  g_assert_cmpstr (coop_event_kind_label (63), ==, NULL);
  for (unsigned i = 0; i < COOP_N_KINDS; i++)
    g_assert_nonnull (coop_kind_label (i));
  for (unsigned i = 0; i < COOP_N_PINS; i++)
    g_assert_nonnull (coop_pin_label (i));
  for (unsigned i = 0; i < COOP_N_PHASES; i++)
    g_assert_nonnull (coop_phase_label (i));
  g_assert_null (coop_kind_label (COOP_N_KINDS));
  g_assert_null (coop_pin_label (COOP_N_PINS));
  g_assert_null (coop_phase_label (COOP_N_PHASES));
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  g_test_add_func ("/core/policy/table", test_table);
  g_test_add_func ("/core/policy/presets", test_presets);
  g_test_add_func ("/core/policy/sizes", test_sizes);
  g_test_add_func ("/core/policy/values", test_values);
  g_test_add_func ("/core/policy/locale", test_locale);
  g_test_add_func ("/core/policy/size-format", test_size_format);
  g_test_add_func ("/core/policy/nearest", test_nearest);
  g_test_add_func ("/core/policy/clamp", test_clamp);
  g_test_add_func ("/core/event/labels", test_labels);
  return g_test_run ();
}
