/* SPDX-License-Identifier: Apache-2.0 */
/* Pickle, part 2: the values. Eight bytes each; equal texts are kept once. */
#include "trace/pickle-private.h"

#include <string.h>

static guint
hash_text (gconstpointer key)
{
  const CoopPickleText *t = key;
  guint32 h = 2166136261u;
  for (gsize i = 0; i < t->bytes; i++)
    h = (h ^ (guint8) t->text[i]) * 16777619u;
  return h;
}

static gboolean
same_text (gconstpointer a, gconstpointer b)
{
  const CoopPickleText *x = a, *y = b;
  return x->bytes == y->bytes && memcmp (x->text, y->text, x->bytes) == 0;
}

CoopPickle *
coop_pickle_new (void)
{
  CoopPickle *pickle = g_new0 (CoopPickle, 1);
  pickle->sequences = g_array_new (FALSE, TRUE, sizeof (CoopPickleSequence));
  pickle->texts = g_array_new (FALSE, FALSE, sizeof (CoopPickleText));
  pickle->ints = g_array_new (FALSE, FALSE, sizeof (guint64));
  pickle->reals = g_array_new (FALSE, FALSE, sizeof (double));
  pickle->text_index = g_hash_table_new_full (hash_text, same_text, g_free, NULL);
  pickle->chunk = g_string_chunk_new (65536);
  return pickle;
}

void
coop_pickle_free (CoopPickle *pickle)
{
  if (pickle == NULL)
    return;
  for (guint i = 0; i < pickle->sequences->len; i++)
    {
      CoopPickleSequence *sequence = &g_array_index (pickle->sequences, CoopPickleSequence, i);
      if (sequence->room != COOP_PICKLE_SEALED_ROOM)
        g_free (sequence->items);
    }
  g_array_unref (pickle->sequences);
  g_array_unref (pickle->texts);
  g_array_unref (pickle->ints);
  g_array_unref (pickle->reals);
  g_hash_table_unref (pickle->text_index);
  g_string_chunk_free (pickle->chunk);
  g_free (pickle);
}

CoopPickleValue
coop_pickle_root (const CoopPickle *pickle)
{
  return pickle->root;
}

guint
coop_pickle_protocol (const CoopPickle *pickle)
{
  return pickle->protocol;
}

/* ---- making ---- */

CoopPickleValue
coop_pickle_new_sequence (CoopPickle *pickle, CoopPickleType type, guint64 offset)
{
  CoopPickleSequence empty = { .offset = offset };
  g_array_append_val (pickle->sequences, empty);
  return coop_pickle_value (type, pickle->sequences->len - 1);
}

CoopPickleSequence *
coop_pickle_sequence (const CoopPickle *pickle, CoopPickleValue value)
{
  switch (coop_pickle_type (value))
    {
    case COOP_PICKLE_LIST:
    case COOP_PICKLE_TUPLE:
    case COOP_PICKLE_DICT:
      return &g_array_index (pickle->sequences, CoopPickleSequence, value >> 4);
    default:
      return NULL;
    }
}

/* Exactly as much room as the first batch takes: most dicts and lists get no second one. */
void
coop_pickle_append (CoopPickleSequence *sequence, const CoopPickleValue *items, guint64 n)
{
  if (n == 0)
    return;
  if (sequence->n + n > sequence->room)
    {
      sequence->room = sequence->n == 0 ? n : MAX (2 * (guint64) sequence->room, sequence->n + n);
      sequence->items = g_renew (CoopPickleValue, sequence->items, sequence->room);
    }
  memcpy (sequence->items + sequence->n, items, n * sizeof *items);
  sequence->n += n;
}

CoopPickleValue
coop_pickle_new_int (CoopPickle *pickle, gint64 value)
{
  const gint64 limit = G_GINT64_CONSTANT (1) << (COOP_PICKLE_BITS - 1);
  if (value >= -limit && value < limit)
    return coop_pickle_value (COOP_PICKLE_INT, (guint64) value);
  return coop_pickle_new_unsigned (pickle, (guint64) value);
}

CoopPickleValue
coop_pickle_new_unsigned (CoopPickle *pickle, guint64 value)
{
  g_array_append_val (pickle->ints, value);
  return coop_pickle_value (COOP_PICKLE_WIDE, pickle->ints->len - 1);
}

CoopPickleValue
coop_pickle_new_real (CoopPickle *pickle, double value)
{
  g_array_append_val (pickle->reals, value);
  return coop_pickle_value (COOP_PICKLE_REAL, pickle->reals->len - 1);
}

CoopPickleValue
coop_pickle_new_text (CoopPickle *pickle, const char *text, gsize bytes)
{
  CoopPickleText key = { text, bytes };
  guint index = GPOINTER_TO_UINT (g_hash_table_lookup (pickle->text_index, &key));
  if (index == 0)
    {
      key.text = g_string_chunk_insert_len (pickle->chunk, text, (gssize) bytes);
      g_array_append_val (pickle->texts, key);
      index = pickle->texts->len;
      g_hash_table_insert (pickle->text_index, g_memdup2 (&key, sizeof key), GUINT_TO_POINTER (index));
    }
  return coop_pickle_value (COOP_PICKLE_TEXT, index - 1);
}

/* ---- looking in ---- */

guint64
coop_pickle_length (const CoopPickle *pickle, CoopPickleValue sequence)
{
  CoopPickleType type = coop_pickle_type (sequence);
  return type == COOP_PICKLE_LIST || type == COOP_PICKLE_TUPLE ? coop_pickle_sequence (pickle, sequence)->n : 0;
}

CoopPickleValue
coop_pickle_item (const CoopPickle *pickle, CoopPickleValue sequence, guint64 i)
{
  return i < coop_pickle_length (pickle, sequence) ? coop_pickle_sequence (pickle, sequence)->items[i] : 0;
}

guint64
coop_pickle_pairs (const CoopPickle *pickle, CoopPickleValue dict)
{
  return coop_pickle_type (dict) == COOP_PICKLE_DICT ? coop_pickle_sequence (pickle, dict)->n / 2 : 0;
}

void
coop_pickle_pair (const CoopPickle *pickle, CoopPickleValue dict, guint64 i, CoopPickleValue *key,
                  CoopPickleValue *value)
{
  const CoopPickleSequence *pairs = coop_pickle_sequence (pickle, dict);
  *key = pairs->items[2 * i];
  *value = pairs->items[2 * i + 1];
}

guint64
coop_pickle_offset (const CoopPickle *pickle, CoopPickleValue value)
{
  const CoopPickleSequence *sequence = coop_pickle_sequence (pickle, value);
  return sequence != NULL ? sequence->offset : 0;
}

CoopPickleValue
coop_pickle_text_value (const CoopPickle *pickle, const char *text)
{
  CoopPickleText key = { text, strlen (text) };
  guint index = GPOINTER_TO_UINT (g_hash_table_lookup (pickle->text_index, &key));
  return index > 0 ? coop_pickle_value (COOP_PICKLE_TEXT, index - 1) : 0;
}

CoopPickleValue
coop_pickle_find (const CoopPickle *pickle, CoopPickleValue dict, CoopPickleValue key)
{
  if (coop_pickle_type (dict) != COOP_PICKLE_DICT || key == 0)
    return 0;
  const CoopPickleSequence *pairs = coop_pickle_sequence (pickle, dict);
  for (guint32 i = pairs->n; i >= 2; i -= 2)
    if (pairs->items[i - 2] == key)
      return pairs->items[i - 1];
  return 0;
}

CoopPickleValue
coop_pickle_get (const CoopPickle *pickle, CoopPickleValue dict, const char *key)
{
  return coop_pickle_find (pickle, dict, coop_pickle_text_value (pickle, key));
}

const char *
coop_pickle_text (const CoopPickle *pickle, CoopPickleValue value, gsize *bytes)
{
  if (coop_pickle_type (value) != COOP_PICKLE_TEXT)
    return NULL;
  const CoopPickleText *text = &g_array_index (pickle->texts, CoopPickleText, value >> 4);
  if (bytes != NULL)
    *bytes = text->bytes;
  return text->text;
}

gboolean
coop_pickle_int (const CoopPickle *pickle, CoopPickleValue value, guint64 *out)
{
  switch (coop_pickle_type (value))
    {
    case COOP_PICKLE_INT:
      *out = (guint64) ((gint64) value >> 4); /* the sign comes along */
      return TRUE;
    case COOP_PICKLE_WIDE:
      *out = g_array_index (pickle->ints, guint64, value >> 4);
      return TRUE;
    case COOP_PICKLE_BOOL:
      *out = value >> 4;
      return TRUE;
    default:
      return FALSE;
    }
}

gboolean
coop_pickle_real (const CoopPickle *pickle, CoopPickleValue value, double *out)
{
  guint64 number;
  if (coop_pickle_type (value) == COOP_PICKLE_REAL)
    *out = g_array_index (pickle->reals, double, value >> 4);
  else if (coop_pickle_int (pickle, value, &number))
    *out = (double) (gint64) number;
  else
    return FALSE;
  return TRUE;
}

guint64
coop_pickle_sealed (CoopPickleValue value)
{
  return coop_pickle_type (value) == COOP_PICKLE_SEALED ? value >> 4 : 0;
}
