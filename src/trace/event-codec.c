/* SPDX-License-Identifier: Apache-2.0 */
/* Event codec: see event-codec.h.
 *
 * An event has five words. A table says for each kind which of them is which column; the others go
 * to `rest`, a sequence of LEB128 numbers: the count of body records, the words without a column,
 * the words of the body. Trailing zeros are left out, and a rest of zeros alone is NULL. So a `free`
 * has no rest, and an evict with its 64-byte body about 25 bytes of it. */
#include "trace/event-codec.h"

#include <string.h>

enum { B = COOP_COLUMN_BLOCK, T = COOP_COLUMN_TENSOR, O = COOP_COLUMN_OP, A = COOP_COLUMN_ADDR,
       N = COOP_COLUMN_BYTES, R = COOP_N_COLUMNS };

/* Which column word i of `u` is. R: none. A kind that is not listed is R throughout. */
static const guint8 *
columns_of (guint kind)
{
  static const guint8 none[5] = { R, R, R, R, R };
  static const guint8 map[COOP_N_EVENT_KINDS][5] = {
    [COOP_EVENT_SEGMENT] = { R, R, A, N, R },  [COOP_EVENT_ALLOC] = { B, A, N, R, O },
    [COOP_EVENT_FREE] = { B, A, N, T, O },     [COOP_EVENT_EVICT] = { B, A, N, T, R },
    [COOP_EVENT_HANDOVER] = { B, A, N, T, R }, [COOP_EVENT_MOVE] = { B, A, R, N, R },
    [COOP_EVENT_SEARCH] = { R, N, A, R, R },   [COOP_EVENT_RELEASE] = { T, B, R, R, R },
    [COOP_EVENT_PIN] = { T, B, R, R, R },      [COOP_EVENT_UNPIN] = { T, B, R, R, R },
    [COOP_EVENT_ESCAPE] = { T, B, R, R, R },   [COOP_EVENT_TENSOR] = { T, R, O, N, B },
    [COOP_EVENT_WRITE] = { R, T, B, O, R },    [COOP_EVENT_RECLASSIFY] = { T, R, R, R, R },
    [COOP_EVENT_COST] = { O, R, R, R, R },     [COOP_EVENT_OP_BEGIN] = { O, R, R, R, R },
    [COOP_EVENT_OP_END] = { O, R, R, R, R },   [COOP_EVENT_OOM] = { N, R, R, R, O },
    [COOP_EVENT_WARNING] = { R, R, T, O, R },
  };
  if (kind >= COOP_N_EVENT_KINDS)
    return none;
  /* Rows that are not in the table are all zero, which would read as five blocks. */
  return memcmp (map[kind], (guint8[5]) { 0 }, 5) == 0 ? none : map[kind];
}

/* What NULL stands for. */
static guint64
null_of (guint column)
{
  return column == A ? COOP_NO_ADDR : 0;
}

static void
put (GByteArray *out, guint64 value)
{
  guint8 bytes[10];
  guint n = 0;
  do
    {
      bytes[n] = (value & 0x7f) | (value > 0x7f ? 0x80 : 0);
      value >>= 7;
    }
  while (bytes[n++] & 0x80);
  g_byte_array_append (out, bytes, n);
}

static void
put_trimmed (GByteArray *out, guint64 value, gsize *end)
{
  put (out, value);
  if (value != 0)
    *end = out->len;
}

void
coop_event_pack (const CoopEvent *ev, const void *body, CoopColumns *columns, GByteArray *rest)
{
  const guint8 *map = columns_of (ev->kind);
  gsize end = 0;
  memset (columns, 0, sizeof *columns);
  g_byte_array_set_size (rest, 0);
  put_trimmed (rest, ev->more, &end);
  for (guint i = 0; i < 5; i++)
    if (map[i] == R)
      put_trimmed (rest, ev->u.word[i], &end);
    else if (ev->u.word[i] != null_of (map[i]))
      {
        columns->value[map[i]] = ev->u.word[i];
        columns->present[map[i]] = TRUE;
      }
  for (guint i = 0; i < 8u * ev->more; i++)
    {
      guint64 word;
      memcpy (&word, (const guint8 *) body + 8 * i, 8);
      put_trimmed (rest, word, &end);
    }
  g_byte_array_set_size (rest, end);
}

static gboolean
get (const guint8 **at, const guint8 *end, guint64 *value)
{
  *value = 0;
  if (*at == end)
    return TRUE; /* trailing zeros are left out */
  for (guint shift = 0; shift < 64 && *at < end; shift += 7)
    {
      guint8 byte = *(*at)++;
      *value |= (guint64) (byte & 0x7f) << shift;
      if (!(byte & 0x80))
        return TRUE;
    }
  return FALSE;
}

gboolean
coop_event_unpack (CoopEvent *ev, const CoopColumns *columns, const guint8 *rest, gsize rest_bytes,
                   GByteArray *body)
{
  const guint8 *map = columns_of (ev->kind), *end;
  guint64 word;
  rest = rest_bytes > 0 ? rest : (const guint8 *) ""; /* may be NULL, to which not even 0 may be added */
  end = rest + rest_bytes;
  g_byte_array_set_size (body, 0);
  if (!get (&rest, end, &word) || word > G_MAXUINT16)
    return FALSE;
  ev->more = word;
  for (guint i = 0; i < 5; i++)
    if (map[i] != R)
      ev->u.word[i] = columns->present[map[i]] ? columns->value[map[i]] : null_of (map[i]);
    else if (get (&rest, end, &word))
      ev->u.word[i] = word;
    else
      return FALSE;
  g_byte_array_set_size (body, 64 * ev->more);
  for (guint i = 0; i < 8u * ev->more; i++)
    {
      if (!get (&rest, end, &word))
        return FALSE;
      memcpy (body->data + 8 * i, &word, 8);
    }
  return rest == end;
}
