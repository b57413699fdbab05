/* SPDX-License-Identifier: Apache-2.0 */
#include "replay/json-parse.h"

#include <errno.h>
#include <math.h>
#include <string.h>

#define MAX_DEPTH 16

struct CoopJson {
  GArray *values;    /* CoopJsonValue; text and key hold offsets + 1 into `texts` while parsing */
  GString *texts;
  const char *at, *end, *why;
};

CoopJson *
coop_json_new (void)
{
  CoopJson *json = g_new0 (CoopJson, 1);
  json->values = g_array_new (FALSE, TRUE, sizeof (CoopJsonValue));
  json->texts = g_string_new (NULL);
  return json;
}

void
coop_json_free (CoopJson *json)
{
  if (json == NULL)
    return;
  g_array_unref (json->values);
  g_string_free (json->texts, TRUE);
  g_free (json);
}

static gboolean
fail (CoopJson *json, const char *why)
{
  if (json->why == NULL)
    json->why = why;
  return FALSE;
}

static void
skip_space (CoopJson *json)
{
  while (json->at < json->end && strchr (" \t\r\n", *json->at) != NULL && *json->at != 0)
    json->at++;
}

static int
peek (CoopJson *json)
{
  skip_space (json);
  return json->at < json->end ? (guchar) *json->at : -1;
}

/* ---- strings ---- */

static gboolean
read_hex (CoopJson *json, gunichar *out)
{
  *out = 0;
  if (json->end - json->at < 4)
    return fail (json, "a \\u escape is cut short");
  for (int i = 0; i < 4; i++, json->at++)
    {
      int digit = g_ascii_xdigit_value (*json->at);
      if (digit < 0)
        return fail (json, "a \\u escape is not hexadecimal");
      *out = *out << 4 | (gunichar) digit;
    }
  return TRUE;
}

static gboolean
read_unicode (CoopJson *json)
{
  gunichar c, low;
  if (!read_hex (json, &c))
    return FALSE;
  if (c >= 0xd800 && c < 0xdc00 && json->end - json->at >= 6 && json->at[0] == '\\' && json->at[1] == 'u')
    {
      json->at += 2;
      if (!read_hex (json, &low))
        return FALSE;
      if (low < 0xdc00 || low > 0xdfff)
        return fail (json, "half of a surrogate pair");
      c = 0x10000 + ((c - 0xd800) << 10) + (low - 0xdc00);
    }
  if (c == 0 || (c >= 0xd800 && c <= 0xdfff))
    return fail (json, "a \\u escape that is no character");
  g_string_append_unichar (json->texts, c);
  return TRUE;
}

static gboolean
read_escape (CoopJson *json)
{
  static const char from[] = "\"\\/bfnrt", to[] = "\"\\/\b\f\n\r\t";
  if (json->at == json->end)
    return fail (json, "a string is cut short");
  char c = *json->at++;
  if (c == 'u')
    return read_unicode (json);
  const char *found = c != 0 ? strchr (from, c) : NULL;
  if (found == NULL)
    return fail (json, "an unknown escape in a string");
  g_string_append_c (json->texts, to[found - from]);
  return TRUE;
}

/* After the opening quote. Offset + 1 of the text, 0 on failure. */
static gsize
read_string (CoopJson *json)
{
  gsize offset = json->texts->len + 1;
  while (json->at < json->end && *json->at != '"')
    {
      char c = *json->at++;
      if ((guchar) c < 0x20)
        return fail (json, "a control character in a string");
      if (c != '\\')
        g_string_append_c (json->texts, c);
      else if (!read_escape (json))
        return 0;
    }
  if (json->at == json->end)
    return fail (json, "a string is cut short");
  json->at++;
  if (!g_utf8_validate (json->texts->str + offset - 1, (gssize) (json->texts->len + 1 - offset), NULL))
    return fail (json, "a string is not UTF-8");
  g_string_append_c (json->texts, 0);
  return offset;
}

/* ---- values ---- */

static gboolean
is_number (const char *p, gboolean *whole)
{
  *whole = *p != '-';
  p += *p == '-';
  gsize digits = strspn (p, "0123456789");
  if (digits == 0 || (digits > 1 && *p == '0'))
    return FALSE;
  p += digits;
  if (*p == '.')
    {
      *whole = FALSE;
      digits = strspn (++p, "0123456789");
      if (digits == 0)
        return FALSE;
      p += digits;
    }
  if (*p == 'e' || *p == 'E')
    {
      *whole = FALSE;
      p++;
      p += *p == '+' || *p == '-';
      digits = strspn (p, "0123456789");
      p += digits;
      if (digits == 0)
        return FALSE;
    }
  return *p == 0;
}

static gboolean
read_number (CoopJson *json, CoopJsonValue *value)
{
  char text[64];
  gsize n = 0;
  while (json->at + n < json->end && strchr ("+-.0123456789eE", json->at[n]) != NULL && json->at[n] != 0)
    n++;
  if (n == 0 || n >= sizeof text)
    return fail (json, "neither a value nor a number");
  memcpy (text, json->at, n);
  text[n] = 0;
  if (!is_number (text, &value->whole))
    return fail (json, "a number that is none");
  errno = 0;
  value->u = value->whole ? g_ascii_strtoull (text, NULL, 10) : 0;
  value->whole = value->whole && errno == 0;
  value->d = g_ascii_strtod (text, NULL);
  if (!isfinite (value->d))
    return fail (json, "a number that is too large");
  json->at += n;
  return TRUE;
}

static gboolean
read_word (CoopJson *json, CoopJsonValue *value)
{
  static const char *const words[] = { "null", "false", "true" };
  for (guint i = 0; i < G_N_ELEMENTS (words); i++)
    {
      gsize n = strlen (words[i]);
      if ((gsize) (json->end - json->at) < n || memcmp (json->at, words[i], n) != 0)
        continue;
      value->type = i == 0 ? COOP_JSON_NULL : COOP_JSON_BOOL;
      value->u = i == 2;
      json->at += n;
      return TRUE;
    }
  value->type = COOP_JSON_NUMBER;
  return read_number (json, value);
}

static gboolean read_value (CoopJson *json, guint depth, gsize key);

static gboolean
read_members (CoopJson *json, guint depth, char close, guint *n)
{
  for (*n = 0; peek (json) != close; (*n)++)
    {
      gsize key = 0;
      if (*n > 0 && (peek (json) != ',' || json->at++ == NULL))
        return fail (json, json->at == json->end ? "the line is cut short" : "a comma is missing");
      if (close == '}')
        {
          if (peek (json) != '"')
            return fail (json, "a key is missing");
          json->at++;
          if ((key = read_string (json)) == 0)
            return FALSE;
          if (peek (json) != ':')
            return fail (json, "a colon is missing");
          json->at++;
        }
      if (!read_value (json, depth + 1, key))
        return FALSE;
    }
  json->at++;
  return TRUE;
}

static gboolean
read_value (CoopJson *json, guint depth, gsize key)
{
  CoopJsonValue value = { .key = GSIZE_TO_POINTER (key) };
  guint at = json->values->len;
  int c = peek (json);
  if (depth > MAX_DEPTH)
    return fail (json, "nested too deep");
  if (c < 0)
    return fail (json, "the line is cut short");
  g_array_append_val (json->values, value);
  if (c == '{' || c == '[')
    {
      json->at++;
      value.type = c == '{' ? COOP_JSON_OBJECT : COOP_JSON_ARRAY;
      if (!read_members (json, depth, c == '{' ? '}' : ']', &value.n))
        return FALSE;
    }
  else if (c == '"')
    {
      json->at++;
      value.type = COOP_JSON_STRING;
      gsize text = read_string (json);
      if (text == 0)
        return FALSE;
      value.text = GSIZE_TO_POINTER (text);
    }
  else if (!read_word (json, &value))
    return FALSE;
  value.span = json->values->len - at;
  g_array_index (json->values, CoopJsonValue, at) = value;
  return TRUE;
}

const CoopJsonValue *
coop_json_parse (CoopJson *json, const char *text, gsize length, const char **why)
{
  g_array_set_size (json->values, 0);
  g_string_truncate (json->texts, 0);
  json->at = text;
  json->end = text + length;
  json->why = NULL;
  if (read_value (json, 0, 0) && peek (json) != -1)
    fail (json, "something follows the value");
  *why = json->why;
  if (json->why != NULL)
    return NULL;
  for (guint i = 0; i < json->values->len; i++)
    {
      CoopJsonValue *v = &g_array_index (json->values, CoopJsonValue, i);
      v->key = v->key != NULL ? json->texts->str + GPOINTER_TO_SIZE (v->key) - 1 : NULL;
      v->text = v->text != NULL ? json->texts->str + GPOINTER_TO_SIZE (v->text) - 1 : NULL;
    }
  return &g_array_index (json->values, CoopJsonValue, 0);
}

const CoopJsonValue *
coop_json_member (const CoopJsonValue *object, const char *key)
{
  if (object == NULL || object->type != COOP_JSON_OBJECT)
    return NULL;
  const CoopJsonValue *member = coop_json_first (object);
  for (guint i = 0; i < object->n; i++, member = coop_json_next (member))
    if (g_str_equal (member->key, key))
      return member;
  return NULL;
}

const char *
coop_json_text (const CoopJsonValue *object, const char *key)
{
  const CoopJsonValue *value = coop_json_member (object, key);
  return value != NULL && value->type == COOP_JSON_STRING ? value->text : NULL;
}

gboolean
coop_json_whole (const CoopJsonValue *object, const char *key, guint64 *out)
{
  const CoopJsonValue *value = coop_json_member (object, key);
  if (value == NULL || value->type != COOP_JSON_NUMBER || !value->whole)
    return FALSE;
  *out = value->u;
  return TRUE;
}
