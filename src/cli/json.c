/* SPDX-License-Identifier: Apache-2.0 */
/* JSON into a GString: enough for what `--json` prints. */
#include "cli.h"

#include <math.h>
#include <string.h>

#include "trace/store.h"

static void
put_text (GString *out, const char *text)
{
  g_autofree char *valid = g_utf8_make_valid (text, -1);
  g_string_append_c (out, '"');
  for (const char *p = valid; *p != 0; p++)
    if (*p == '"' || *p == '\\')
      g_string_append_printf (out, "\\%c", *p);
    else if ((guchar) *p < 0x20)
      g_string_append_printf (out, "\\u%04x", *p);
    else
      g_string_append_c (out, *p);
  g_string_append_c (out, '"');
}

static void
put_key (GString *out, const char *key)
{
  char last = out->len > 0 ? out->str[out->len - 1] : '\n';
  if (strchr ("{[\n", last) == NULL)
    g_string_append_c (out, ',');
  if (key == NULL)
    return;
  put_text (out, key);
  g_string_append_c (out, ':');
}

void
coop_json_open (GString *out, const char *key, char bracket)
{
  put_key (out, key);
  g_string_append_c (out, bracket);
}

void
coop_json_close (GString *out, char bracket)
{
  g_string_append_c (out, bracket);
}

void
coop_json_string (GString *out, const char *key, const char *value)
{
  put_key (out, key);
  if (value == NULL)
    g_string_append (out, "null");
  else
    put_text (out, value);
}

void
coop_json_int (GString *out, const char *key, gint64 value)
{
  put_key (out, key);
  g_string_append_printf (out, "%" G_GINT64_FORMAT, value);
}

void
coop_json_uint (GString *out, const char *key, guint64 value)
{
  put_key (out, key);
  g_string_append_printf (out, "%" G_GUINT64_FORMAT, value);
}

void
coop_json_real (GString *out, const char *key, double value)
{
  char text[G_ASCII_DTOSTR_BUF_SIZE];
  put_key (out, key);
  g_string_append (out, isfinite (value) ? coop_real_text (text, value) : "null");
}

void
coop_json_bool (GString *out, const char *key, gboolean value)
{
  put_key (out, key);
  g_string_append (out, value ? "true" : "false");
}
