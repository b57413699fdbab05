/* SPDX-License-Identifier: Apache-2.0 */
/* Policy: the table that the one list in policy.h makes, and reading and writing of its values.
 *
 * Numbers are read and written with a point whatever the locale: flags, files and the trace must
 * mean the same everywhere. */
#include "policy.h"

#include <ctype.h>
#include <locale.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

static const char *const allocator_labels[]
    = { [COOP_ALLOCATOR_MERGE] = "merge", [COOP_ALLOCATOR_CLASS] = "class",
        [COOP_ALLOCATOR_CACHING] = "caching", [COOP_ALLOCATOR_PAGE] = "page", NULL };
static const char *const evictor_labels[] = {
  [COOP_EVICTOR_COOP] = "coop",     [COOP_EVICTOR_DTR_EQ] = "dtr-eq",
  [COOP_EVICTOR_LRU] = "lru",       [COOP_EVICTOR_NONE] = "none",
  [COOP_EVICTOR_DTR] = "dtr",       [COOP_EVICTOR_DTR_LOCAL] = "dtr-local",
  [COOP_EVICTOR_MSPS] = "msps",     [COOP_EVICTOR_DTE] = "dte",
  [COOP_EVICTOR_SIZE] = "size",     [COOP_EVICTOR_RANDOM] = "random",   [COOP_EVICTOR_COOP_CLASS] = "coop-class",
  [COOP_EVICTOR_COOP_PLUS] = "coop-plus",
  [COOP_N_EVICTORS] = NULL,
};
static const char *const chain_labels[]
    = { [COOP_CHAIN_NONE] = "none", [COOP_CHAIN_UNION] = "union", [COOP_CHAIN_EXACT] = "exact",
        [COOP_CHAIN_ANCESTORS] = "ancestors", NULL };
static const char *const cost_labels[]
    = { [COOP_COST_MEASURED] = "measured", [COOP_COST_MODEL] = "model", NULL };
static const char *const stacks_labels[] = { [COOP_STACKS_OFF] = "off",
                                             [COOP_STACKS_FIRST] = "first",
                                             [COOP_STACKS_EVERY] = "every", NULL };

const char *const coop_source_labels[COOP_N_SOURCES + 1] = {
  [COOP_SOURCE_INITIAL] = "initial", [COOP_SOURCE_FLAG] = "flag",
  [COOP_SOURCE_SLIDER] = "slider",   [COOP_SOURCE_API] = "api",
  [COOP_SOURCE_PRESET] = "preset",   [COOP_SOURCE_REHEARSAL] = "rehearsal",
  [COOP_N_SOURCES] = NULL,
};

/* Labels by parameter; only the rows of type ENUM have any. */
#define LABELS_ALLOCATOR allocator_labels
#define LABELS_EVICTOR evictor_labels
#define LABELS_CHAIN chain_labels
#define LABELS_COST cost_labels
#define LABELS_STACKS stacks_labels
#define LABELS_BUDGET NULL
#define LABELS_GROUPS NULL
#define LABELS_DENSITY NULL
#define LABELS_SMALL NULL
#define LABELS_COST_EXPONENT NULL
#define LABELS_STALENESS_EXPONENT NULL
#define LABELS_SIZE_EXPONENT NULL
#define LABELS_BESIDE NULL
#define LABELS_SEED NULL
#define LABELS_HOLD NULL
#define LABELS_COMPACT NULL
#define LABELS_COPY_RATE NULL
#define LABELS_DESCENT NULL
#define LABELS_STRESS NULL
#define LABELS_VERIFY NULL
#define LABELS_THRASH NULL
#define LABELS_RING_WAIT NULL
#define LABELS_BYTES_FIRST NULL
#define LABELS_MOVES NULL
#define LABELS_EVICT_PRICE NULL
#define LABELS_MOVE_COST NULL
#define LABELS_STEPS NULL
#define LABELS_EXPANDABLE NULL
#define LABELS_PAGE NULL
#define LABELS_PAGE_COST NULL
#define LABELS_GIVE_BACK NULL
#define LABELS_GIVE_BACK_COST NULL

const CoopParamInfo coop_param_info[COOP_N_PARAMS] = {
#define X(ID, name, type, min, max, def, unit, group, help)                                        \
  { COOP_PARAM_##ID, name, COOP_TYPE_##type, min, max, def, unit, group, help, LABELS_##ID },
  COOP_PARAMS (X)
#undef X
};

void
coop_policy_init (CoopPolicy *policy)
{
  for (int i = 0; i < COOP_N_PARAMS; i++)
    {
      if (coop_param_info[i].type == COOP_TYPE_REAL)
        policy->v[i].d = coop_param_info[i].def;
      else
        policy->v[i].i = (int64_t) coop_param_info[i].def;
    }
}

void
coop_policy_preset (CoopPolicy *policy, CoopEvictorName evictor)
{
  static const struct
  {
    double a, b, c;
    CoopChain chain;
    int beside, groups;
  } presets[COOP_N_EVICTORS] = {
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
  policy->v[COOP_PARAM_EVICTOR].i = evictor;
  policy->v[COOP_PARAM_COST_EXPONENT].d = presets[evictor].a;
  policy->v[COOP_PARAM_STALENESS_EXPONENT].d = presets[evictor].b;
  policy->v[COOP_PARAM_SIZE_EXPONENT].d = presets[evictor].c;
  policy->v[COOP_PARAM_CHAIN].i = presets[evictor].chain;
  policy->v[COOP_PARAM_BESIDE].i = presets[evictor].beside;
  policy->v[COOP_PARAM_GROUPS].i = presets[evictor].groups;
  policy->v[COOP_PARAM_BYTES_FIRST].i = evictor == COOP_EVICTOR_COOP_PLUS;
  policy->v[COOP_PARAM_MOVES].i = evictor == COOP_EVICTOR_COOP_PLUS;
}

/* ---- names -------------------------------------------------------------------------------- */

static char
fold (char c)
{
  return c == '-' ? '_' : (char) tolower ((unsigned char) c);
}

static bool
name_equal (const char *a, const char *b)
{
  for (; *a && *b; a++, b++)
    if (fold (*a) != fold (*b))
      return false;
  return *a == *b;
}

int
coop_param_find (const char *name)
{
  for (int i = 0; i < COOP_N_PARAMS; i++)
    if (name_equal (coop_param_info[i].name, name))
      return i;
  return -1;
}

#define MAX_WORD 64

/* Levenshtein distance, case and -_ folded; one row. Words are shorter than MAX_WORD. */
static unsigned
edit_distance (const char *a, const char *b)
{
  unsigned row[MAX_WORD + 1];
  size_t nb = strlen (b);
  for (size_t j = 0; j <= nb; j++)
    row[j] = (unsigned) j;
  for (size_t i = 0; a[i]; i++)
    {
      unsigned diagonal = row[0];
      row[0] = (unsigned) i + 1;
      for (size_t j = 0; j < nb; j++)
        {
          unsigned best = diagonal + (fold (a[i]) != fold (b[j]));
          if (row[j] + 1 < best)
            best = row[j] + 1;
          if (row[j + 1] + 1 < best)
            best = row[j + 1] + 1;
          diagonal = row[j + 1];
          row[j + 1] = best;
        }
    }
  return row[nb];
}

const char *
coop_param_nearest (int param, const char *word)
{
  const char *nearest = NULL;
  size_t length = strlen (word);
  if (length == 0 || length >= MAX_WORD || param >= COOP_N_PARAMS)
    return NULL;
  unsigned limit = length < 3 ? 1 : length < 9 ? 2 : (unsigned) length / 3;
  const char *const *labels = param >= 0 ? coop_param_info[param].labels : NULL;
  if (param >= 0 && labels == NULL)
    return NULL;
  for (int i = 0; labels != NULL ? labels[i] != NULL : i < COOP_N_PARAMS; i++)
    {
      const char *name = labels != NULL ? labels[i] : coop_param_info[i].name;
      unsigned distance = edit_distance (word, name);
      if (distance <= limit)
        {
          if (distance == 0)
            return name;
          nearest = name;
          limit = distance - 1;
        }
    }
  return nearest;
}

/* ---- values ------------------------------------------------------------------------------- */

/* Length of a plain decimal number at `s`: [sign] digits [. digits] [e [sign] digits]; 0 if none. */
static size_t
number_length (const char *s, bool sign, bool exponent)
{
  const char *p = s;
  size_t digits = 0;
  if (sign && (*p == '-' || *p == '+'))
    p++;
  for (; isdigit ((unsigned char) *p); p++)
    digits++;
  if (*p == '.')
    for (p++; isdigit ((unsigned char) *p); p++)
      digits++;
  if (digits == 0)
    return 0;
  if (exponent && (*p == 'e' || *p == 'E'))
    {
      const char *q = p + 1 + (p[1] == '-' || p[1] == '+');
      if (!isdigit ((unsigned char) *q))
        return 0;
      while (isdigit ((unsigned char) *q))
        q++;
      p = q;
    }
  return (size_t) (p - s);
}

/* strtod with a point whatever the locale. */
static double
read_number (const char *text)
{
  locale_t c = newlocale (LC_ALL_MASK, "C", (locale_t) 0);
  if (c == (locale_t) 0)
    return strtod (text, NULL);
  double value = strtod_l (text, NULL, c);
  freelocale (c);
  return value;
}

static const char *
skip_space (const char *s)
{
  while (isspace ((unsigned char) *s))
    s++;
  return s;
}

/* Unit at the end of a size, spaces around it allowed; 0 if there is no such unit. */
static double
unit_factor (const char *s)
{
  static const struct
  {
    const char *name;
    double factor;
  } units[] = {
    { "KiB", COOP_KIB }, { "MiB", COOP_MIB }, { "GiB", COOP_KIB * COOP_MIB }, { "TiB", COOP_TIB },
    { "KB", 1e3 },       { "MB", 1e6 },       { "GB", 1e9 },                  { "TB", 1e12 },
    { "bytes", 1 },      { "B", 1 },
  };
  s = skip_space (s);
  if (*s == '\0')
    return 1;
  for (size_t i = 0; i < sizeof units / sizeof *units; i++)
    {
      size_t n = strlen (units[i].name);
      if (strncasecmp (s, units[i].name, n) == 0 && *skip_space (s + n) == '\0')
        return units[i].factor;
    }
  return 0;
}

CoopParse
coop_size_parse (const char *text, uint64_t *bytes)
{
  text = skip_space (text);
  size_t n = number_length (text, false, false);
  double factor = n > 0 ? unit_factor (text + n) : 0;
  if (factor == 0)
    return COOP_PARSE_SYNTAX;
  double value = read_number (text) * factor;
  if (!(value < 9.2e18))
    return COOP_PARSE_RANGE;
  /* whole numbers exactly, past what a double holds */
  if (factor == 1 && memchr (text, '.', n) == NULL)
    *bytes = strtoull (text, NULL, 10);
  else
    *bytes = (uint64_t) (value + 0.5);
  return COOP_PARSE_OK;
}

static CoopParse
parse_label (const char *const *labels, const char *text, CoopValue *value)
{
  for (int i = 0; labels[i] != NULL; i++)
    if (name_equal (labels[i], text))
      {
        value->i = i;
        return COOP_PARSE_OK;
      }
  return COOP_PARSE_SYNTAX;
}

static CoopParse
parse_bool (const char *text, CoopValue *value)
{
  static const char *const words[] = { "0", "1", "false", "true", "off", "on", "no", "yes", NULL };
  CoopParse parse = parse_label (words, text, value);
  if (parse == COOP_PARSE_OK)
    value->i &= 1;
  return parse;
}

static CoopParse
parse_number (bool real, const char *text, CoopValue *value, double *number)
{
  text = skip_space (text);
  size_t n = number_length (text, true, real);
  if (n == 0 || *skip_space (text + n) != '\0' || (!real && memchr (text, '.', n) != NULL))
    return COOP_PARSE_SYNTAX;
  *number = read_number (text);
  if (real)
    value->d = *number;
  else
    value->i = strtoll (text, NULL, 10);
  return COOP_PARSE_OK;
}

CoopParse
coop_param_parse (CoopParam param, const char *text, CoopValue *value)
{
  const CoopParamInfo *info = &coop_param_info[param];
  CoopParse parse = COOP_PARSE_SYNTAX;
  CoopValue v = { .i = 0 };
  uint64_t bytes = 0;
  double number = 0;
  switch (info->type)
    {
    case COOP_TYPE_SIZE:
      parse = coop_size_parse (text, &bytes);
      v.i = (int64_t) bytes;
      number = (double) bytes;
      break;
    case COOP_TYPE_INT:
      parse = parse_number (false, text, &v, &number);
      break;
    case COOP_TYPE_REAL:
      parse = parse_number (true, text, &v, &number);
      break;
    case COOP_TYPE_BOOL:
      parse = parse_bool (text, &v);
      number = (double) v.i;
      break;
    case COOP_TYPE_ENUM:
      parse = parse_label (info->labels, text, &v);
      number = (double) v.i;
      break;
    }
  if (parse == COOP_PARSE_OK && !(number >= info->min && number <= info->max))
    parse = COOP_PARSE_RANGE;
  if (parse == COOP_PARSE_OK)
    *value = v;
  return parse;
}

/* Shortest decimal that reads back as the same double. */
static int
format_real (double d, char *out, size_t size)
{
  locale_t c = newlocale (LC_ALL_MASK, "C", (locale_t) 0);
  locale_t old = c != (locale_t) 0 ? uselocale (c) : (locale_t) 0;
  char text[40];
  bool plain = d == 0 || (fabs (d) >= 1e-4 && fabs (d) < 1e15);
  for (int digits = plain ? 0 : 1; digits <= 20; digits++)
    {
      snprintf (text, sizeof text, plain ? "%.*f" : "%.*g", digits, d);
      if (strtod (text, NULL) == d)
        break;
    }
  if (c != (locale_t) 0)
    {
      uselocale (old);
      freelocale (c);
    }
  return snprintf (out, size, "%s", text);
}

int
coop_param_format (CoopParam param, CoopValue value, char *out, size_t size)
{
  const CoopParamInfo *info = &coop_param_info[param];
  switch (info->type)
    {
    case COOP_TYPE_REAL:
      return format_real (value.d, out, size);
    case COOP_TYPE_BOOL:
      return snprintf (out, size, "%s", value.i ? "true" : "false");
    case COOP_TYPE_ENUM:
      if (value.i >= 0 && (double) value.i <= info->max)
        return snprintf (out, size, "%s", info->labels[value.i]);
      break;
    case COOP_TYPE_SIZE:
    case COOP_TYPE_INT:
      break;
    }
  return snprintf (out, size, "%lld", (long long) value.i);
}

int
coop_size_format (uint64_t bytes, char *out, size_t size)
{
  static const char *const units[] = { "KiB", "MiB", "GiB", "TiB", "PiB", "EiB" };
  if (bytes < 1024)
    return snprintf (out, size, "%u B", (unsigned) bytes);
  double value = (double) bytes / 1024;
  int unit = 0;
  /* 1023.95 would print as 1024.0 */
  for (; value >= 1023.95 && unit < 5; unit++)
    value /= 1024;
  unsigned tenths = (unsigned) floor (value * 10 + 0.5);   /* no "%f": a locale may have a comma */
  return snprintf (out, size, "%u.%u %s", tenths / 10, tenths % 10, units[unit]);
}

CoopValue
coop_param_clamp (CoopParam param, CoopValue value)
{
  const CoopParamInfo *info = &coop_param_info[param];
  if (info->type == COOP_TYPE_REAL)
    {
      if (isnan (value.d))
        value.d = info->def;
      value.d = value.d < info->min ? info->min : value.d > info->max ? info->max : value.d;
      return value;
    }
  if ((double) value.i < info->min)
    value.i = (int64_t) info->min;
  if ((double) value.i > info->max)
    value.i = (int64_t) info->max;
  return value;
}

bool
coop_value_equal (CoopParam param, CoopValue a, CoopValue b)
{
  return coop_param_info[param].type == COOP_TYPE_REAL ? a.d == b.d : a.i == b.i;
}
