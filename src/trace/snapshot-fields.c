/* SPDX-License-Identifier: Apache-2.0 */
/* Snapshot fields: looking up, and saying what is wrong where. */
#include "trace/snapshot-fields.h"

#include <string.h>

static const struct { const char *text; guint where; } keys[] = {
#define X(ID, text, where) { text, where },
  COOP_SNAP_KEYS (X, COOP_IN_TOP, COOP_IN_ENTRY, COOP_IN_SEGMENT, COOP_IN_BLOCK, COOP_IN_HISTORY, COOP_IN_MARK)
#undef X
};

void
coop_snap_fill_init (CoopSnapFill *fill, CoopSnap *snap, const CoopPickle *pickle)
{
  static const char *const actions[] = {
#define X(ID, text) text,
    COOP_SNAP_ACTIONS (X)
#undef X
  };
  *fill = (CoopSnapFill) { .snap = snap, .pickle = pickle, .where = g_hash_table_new (g_direct_hash, g_direct_equal) };
  for (guint i = 0; i < COOP_N_KEYS; i++)
    {
      fill->keys[i] = coop_pickle_text_value (pickle, keys[i].text);
      if (fill->keys[i] != 0)
        g_hash_table_insert (fill->where, GSIZE_TO_POINTER (fill->keys[i]), GUINT_TO_POINTER (keys[i].where));
    }
  for (guint i = 0; i < COOP_SNAP_N_ACTIONS; i++)
    fill->actions[i] = coop_pickle_text_value (pickle, actions[i]);
}

void
coop_snap_fill_clear (CoopSnapFill *fill)
{
  g_hash_table_unref (fill->where);
  g_clear_error (&fill->error);
}

void
coop_snap_damaged (CoopSnapFill *fill, CoopPickleValue at, const char *format, ...)
{
  if (fill->error != NULL)
    return;
  va_list args;
  va_start (args, format);
  g_autofree char *what = g_strdup_vprintf (format, args);
  va_end (args);
  g_set_error (&fill->error, COOP_TRACE_ERROR, COOP_TRACE_ERROR_FOREIGN, "byte %" G_GUINT64_FORMAT ": %s",
               coop_pickle_offset (fill->pickle, at), what);
}

/* ---- values ---- */

static gboolean
is_there (CoopPickleValue value)
{
  return coop_pickle_type (value) != COOP_PICKLE_NOTHING && coop_pickle_type (value) != COOP_PICKLE_NONE;
}

CoopPickleValue
coop_snap_get (const CoopSnapFill *fill, CoopPickleValue dict, CoopSnapKey key)
{
  return coop_pickle_find (fill->pickle, dict, fill->keys[key]);
}

gboolean
coop_snap_has (const CoopSnapFill *fill, CoopPickleValue dict, CoopSnapKey key)
{
  return is_there (coop_snap_get (fill, dict, key));
}

guint64
coop_snap_int (CoopSnapFill *fill, CoopPickleValue dict, CoopSnapKey key, guint64 otherwise, guint64 max)
{
  CoopPickleValue value = coop_snap_get (fill, dict, key);
  guint64 number = otherwise;
  if (!is_there (value))
    return otherwise;
  if (!coop_pickle_int (fill->pickle, value, &number))
    coop_snap_damaged (fill, dict, "'%s' is no integer of 64 bits", keys[key].text);
  else if (number > max)
    coop_snap_damaged (fill, dict, "'%s' is %" G_GINT64_FORMAT ", which cannot be", keys[key].text, (gint64) number);
  return MIN (number, max);
}

guint64
coop_snap_need (CoopSnapFill *fill, CoopPickleValue dict, CoopSnapKey key, guint64 max)
{
  if (!coop_snap_has (fill, dict, key))
    coop_snap_damaged (fill, dict, "'%s' is missing", keys[key].text);
  return coop_snap_int (fill, dict, key, 0, max);
}

const char *
coop_snap_text (CoopSnapFill *fill, CoopPickleValue dict, CoopSnapKey key)
{
  CoopPickleValue value = coop_snap_get (fill, dict, key);
  const char *text = coop_pickle_text (fill->pickle, value, NULL);
  if (text == NULL && is_there (value))
    coop_snap_damaged (fill, dict, "'%s' is no text", keys[key].text);
  return text;
}

CoopPickleValue
coop_snap_list (CoopSnapFill *fill, CoopPickleValue dict, CoopSnapKey key)
{
  CoopPickleValue value = coop_snap_get (fill, dict, key);
  if (coop_pickle_type (value) == COOP_PICKLE_LIST || coop_pickle_type (value) == COOP_PICKLE_TUPLE)
    return value;
  if (is_there (value))
    coop_snap_damaged (fill, dict, "'%s' is no list", keys[key].text);
  return 0;
}

CoopPickleValue
coop_snap_dict (CoopSnapFill *fill, CoopPickleValue list, guint64 i, const char *what)
{
  CoopPickleValue item = coop_pickle_item (fill->pickle, list, i);
  if (coop_pickle_type (item) == COOP_PICKLE_DICT)
    return item;
  coop_snap_damaged (fill, list, "%s %" G_GUINT64_FORMAT " of this list is no dict", what, i);
  return 0;
}

guint32
coop_snap_stack (CoopSnapFill *fill, CoopPickleValue dict)
{
  CoopPickleValue value = coop_snap_get (fill, dict, COOP_KEY_FRAMES);
  guint64 stack = coop_pickle_sealed (value);
  if (is_there (value) && coop_pickle_type (value) != COOP_PICKLE_SEALED)
    coop_snap_damaged (fill, dict, "'frames' is no list");
  else if (stack == COOP_SNAP_NONE)
    coop_snap_damaged (fill, dict, "'frames' has what is no frame");
  return (guint32) stack;
}

static guint64
pool_half (CoopSnapFill *fill, CoopPickleValue dict, CoopSnapKey key, CoopPickleValue pair, guint i)
{
  guint64 number = 0;
  if (!coop_pickle_int (fill->pickle, coop_pickle_item (fill->pickle, pair, i), &number)
      || coop_pickle_length (fill->pickle, pair) != 2)
    coop_snap_damaged (fill, dict, "'%s' is no pair of integers", keys[key].text);
  return number;
}

guint32
coop_snap_pool (CoopSnapFill *fill, CoopPickleValue dict, CoopSnapKey key)
{
  CoopPickleValue pair = coop_snap_get (fill, dict, key);
  if (!is_there (pair))
    return 0;
  CoopSnapPool pool = { pool_half (fill, dict, key, pair, 0), pool_half (fill, dict, key, pair, 1) };
  if (pool.a == 0 && pool.b == 0)
    return 0;
  guint32 number = GPOINTER_TO_UINT (g_hash_table_lookup (fill->snap->pool_index, &pool));
  if (number != 0)
    return number;
  g_array_append_val (fill->snap->pools, pool);
  number = fill->snap->pools->len;
  g_hash_table_insert (fill->snap->pool_index, g_memdup2 (&pool, sizeof pool), GUINT_TO_POINTER (number));
  return number;
}

void
coop_snap_check_keys (CoopSnapFill *fill, CoopPickleValue dict, guint bit)
{
  for (guint64 i = 0; i < coop_pickle_pairs (fill->pickle, dict); i++)
    {
      CoopPickleValue key, value;
      coop_pickle_pair (fill->pickle, dict, i, &key, &value);
      guint known = GPOINTER_TO_UINT (g_hash_table_lookup (fill->where, GSIZE_TO_POINTER (key)));
      const char *text = (known & bit) == 0 ? coop_pickle_text (fill->pickle, key, NULL) : NULL;
      if ((known & bit) == 0)
        coop_snap_unknown (fill->snap->unknown_keys, text);
    }
}
