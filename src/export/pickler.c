/* SPDX-License-Identifier: Apache-2.0 */
/* Pickler: see the header. Opcodes as in Python's Lib/pickletools.py. No frames: they are optional, and
 * without them nothing has to be held back to learn its length. */
#include "export/pickler.h"

#include <string.h>

enum {
  PROTO = 0x80, STOP = '.', MARK = '(', EMPTY_DICT = '}', SETITEMS = 'u', EMPTY_LIST = ']', APPENDS = 'e',
  BININT1 = 'K', BININT2 = 'M', BININT = 'J', LONG1 = 0x8a, NEWTRUE = 0x88, NEWFALSE = 0x89, TUPLE2 = 0x86,
  SHORT_BINUNICODE = 0x8c, BINUNICODE = 'X', MEMOIZE = 0x94, BINGET = 'h', LONG_BINGET = 'j'
};

struct CoopPickler {
  CoopOut *out;
  GHashTable *texts; /* text -> its number + 1 */
  guint32 kept;
};

static void
put (CoopPickler *pickle, guint8 byte)
{
  coop_out_write (pickle->out, &byte, 1);
}

static void
put_little (CoopPickler *pickle, guint64 value, guint bytes)
{
  guint8 out[8];
  for (guint i = 0; i < bytes; i++)
    out[i] = (guint8) (value >> (8 * i));
  coop_out_write (pickle->out, out, bytes);
}

CoopPickler *
coop_pickler_new (CoopOut *out)
{
  CoopPickler *pickle = g_new0 (CoopPickler, 1);
  pickle->out = out;
  pickle->texts = g_hash_table_new_full (g_str_hash, g_str_equal, g_free, NULL);
  put (pickle, PROTO);
  put (pickle, 4);
  return pickle;
}

void
coop_pickler_finish (CoopPickler *pickle)
{
  put (pickle, STOP);
  g_hash_table_unref (pickle->texts);
  g_free (pickle);
}

void
coop_pickler_begin_dict (CoopPickler *pickle)
{
  put (pickle, EMPTY_DICT);
  put (pickle, MARK);
}

void
coop_pickler_end_dict (CoopPickler *pickle)
{
  put (pickle, SETITEMS);
}

void
coop_pickler_begin_list (CoopPickler *pickle)
{
  put (pickle, EMPTY_LIST);
  put (pickle, MARK);
}

void
coop_pickler_end_list (CoopPickler *pickle)
{
  put (pickle, APPENDS);
}

guint32
coop_pickler_keep (CoopPickler *pickle)
{
  put (pickle, MEMOIZE);
  return pickle->kept++;
}

void
coop_pickler_get (CoopPickler *pickle, guint32 number)
{
  put (pickle, number < 256 ? BINGET : LONG_BINGET);
  put_little (pickle, number, number < 256 ? 1 : 4);
}

void
coop_pickler_text (CoopPickler *pickle, const char *text)
{
  gpointer known = g_hash_table_lookup (pickle->texts, text);
  if (known != NULL)
    {
      coop_pickler_get (pickle, GPOINTER_TO_UINT (known) - 1);
      return;
    }
  g_autofree char *valid = g_utf8_make_valid (text, -1);
  gsize n = strlen (valid);
  put (pickle, n < 256 ? SHORT_BINUNICODE : BINUNICODE);
  put_little (pickle, n, n < 256 ? 1 : 4);
  coop_out_write (pickle->out, valid, n);
  g_hash_table_insert (pickle->texts, g_strdup (text), GUINT_TO_POINTER (coop_pickler_keep (pickle) + 1));
}

void
coop_pickler_uint (CoopPickler *pickle, guint64 value)
{
  guint bytes = 1;
  if (value < 1u << 8 || value < 1u << 16)
    {
      put (pickle, value < 1u << 8 ? BININT1 : BININT2);
      put_little (pickle, value, value < 1u << 8 ? 1 : 2);
      return;
    }
  if (value <= G_MAXINT32)
    {
      put (pickle, BININT);
      put_little (pickle, value, 4);
      return;
    }
  /* two's complement, little end first: a zero byte where the highest bit is set */
  while (bytes < 8 && value >> (8 * bytes - 1) != 0)
    bytes++;
  gboolean ninth = bytes == 8 && value >> 63 != 0;
  put (pickle, LONG1);
  put (pickle, (guint8) (bytes + ninth));
  put_little (pickle, value, bytes);
  if (ninth)
    put (pickle, 0);
}

void
coop_pickler_int (CoopPickler *pickle, gint64 value)
{
  if (value >= 0)
    {
      coop_pickler_uint (pickle, (guint64) value);
      return;
    }
  put (pickle, value >= G_MININT32 ? BININT : LONG1);
  if (value < G_MININT32)
    put (pickle, 8);
  put_little (pickle, (guint64) value, value >= G_MININT32 ? 4 : 8);
}

void
coop_pickler_bool (CoopPickler *pickle, gboolean value)
{
  put (pickle, value ? NEWTRUE : NEWFALSE);
}

void
coop_pickler_pair (CoopPickler *pickle, guint64 a, guint64 b)
{
  coop_pickler_uint (pickle, a);
  coop_pickler_uint (pickle, b);
  put (pickle, TUPLE2);
}
