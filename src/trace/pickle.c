/* SPDX-License-Identifier: Apache-2.0 */
/* Pickle, part 1: the machine. A stack of values, marks on it, and a memo. Everything that a file can
 * make us store is bounded by the bytes that were really there: sizes are believed only as they arrive. */
#include "trace/pickle-private.h"

#include <errno.h>
#include <string.h>

#define BUFFER_BYTES 65536
#define MAX_ITEMS (G_MAXINT32 / 2)
#define GO_ON_EVERY 65536  /* opcodes between two questions whether to go on */

typedef struct {
  const CoopPickleSource *source;
  CoopPickle *pickle;
  guint8 *buffer;
  gsize size, at, end;
  guint64 before;        /* bytes of the file before the buffer */
  guint64 opcode_at;     /* offset of the opcode under way */
  GArray *stack, *marks; /* CoopPickleValue; guint: depths */
  GArray *memo;          /* CoopPickleValue; 0: not there */
  CoopPickleValue seal_key;
  guint64 steps;
  gboolean stopped;
  GError **error;
} In;

static gboolean
fail (In *in, int code, const char *format, ...) G_GNUC_PRINTF (3, 4);

static gboolean
fail (In *in, int code, const char *format, ...)
{
  va_list args;
  va_start (args, format);
  g_autofree char *what = g_strdup_vprintf (format, args);
  va_end (args);
  g_set_error (in->error, COOP_TRACE_ERROR, code, "byte %" G_GUINT64_FORMAT ": %s", in->opcode_at, what);
  return FALSE;
}

#define FOREIGN COOP_TRACE_ERROR_FOREIGN

/* ---- bytes ---- */

static void
make_room (In *in, gsize n)
{
  if (in->at > 0)
    {
      memmove (in->buffer, in->buffer + in->at, in->end - in->at);
      in->before += in->at;
      in->end -= in->at;
      in->at = 0;
    }
  if (in->end == in->size && in->size < n)
    {
      in->size *= 2;
      in->buffer = g_realloc (in->buffer, in->size);
    }
}

/* n bytes in one piece; NULL with an error if the file ends before. Valid until the next call. */
static const guint8 *
take (In *in, gsize n)
{
  while (in->end - in->at < n)
    {
      make_room (in, n);
      gssize got = in->source->read (in->source->read_user, in->buffer + in->end, in->size - in->end);
      if (got < 0)
        fail (in, COOP_TRACE_ERROR_IO, "cannot be read on: %s", g_strerror (errno));
      else if (got == 0)
        {
          in->opcode_at = in->before + in->end;
          fail (in, FOREIGN, "the file ends in the middle");
        }
      if (got <= 0)
        return NULL;
      in->end += (gsize) got;
    }
  const guint8 *bytes = in->buffer + in->at;
  in->at += n;
  return bytes;
}

/* A little-endian number of n bytes. */
static gboolean
number (In *in, guint n, guint64 *out)
{
  const guint8 *bytes = take (in, n);
  *out = 0;
  for (guint i = 0; bytes != NULL && i < n; i++)
    *out |= (guint64) bytes[i] << 8 * i;
  return bytes != NULL;
}

/* A number of n bytes that says how many bytes follow, and these. */
static const guint8 *
counted (In *in, guint n, guint64 *length)
{
  if (!number (in, n, length))
    return NULL;
  if (*length > G_MAXINT32)
    {
      fail (in, FOREIGN, "%" G_GUINT64_FORMAT " bytes in one piece", *length);
      return NULL;
    }
  return take (in, *length);
}

/* ---- stack and memo ---- */

static gboolean
push (In *in, CoopPickleValue value)
{
  g_array_append_val (in->stack, value);
  return TRUE;
}

/* Values above the last mark, at least n; NULL with an error if there are fewer. */
static CoopPickleValue *
top (In *in, guint n)
{
  guint base = in->marks->len > 0 ? g_array_index (in->marks, guint, in->marks->len - 1) : 0;
  if (in->stack->len < base + n)
    {
      fail (in, FOREIGN, "too few values for what is to be done with them");
      return NULL;
    }
  return &g_array_index (in->stack, CoopPickleValue, in->stack->len - n);
}

/* Takes the last mark off; the values above it are *n. NULL with an error if there is none. */
static CoopPickleValue *
top_to_mark (In *in, guint *n)
{
  if (in->marks->len == 0)
    {
      fail (in, FOREIGN, "a mark is missing");
      return NULL;
    }
  guint depth = g_array_index (in->marks, guint, in->marks->len - 1);
  g_array_set_size (in->marks, in->marks->len - 1);
  *n = in->stack->len - depth;
  /* of no values: a place all the same */
  return (CoopPickleValue *) (gpointer) in->stack->data + depth;
}

static void
drop (In *in, guint n)
{
  in->stack->len -= n; /* g_array_set_size clears what goes, if GLib is told to be gc-friendly */
}

/* A number costs a byte at least, so the memo cannot be larger than the file. */
static gboolean
put_memo (In *in, guint64 index)
{
  CoopPickleValue *value = top (in, 1);
  if (value == NULL)
    return FALSE;
  if (index > in->before + in->at || index >= G_MAXINT32)
    return fail (in, FOREIGN, "memo number %" G_GUINT64_FORMAT " cannot be", index);
  if (index >= in->memo->len)
    g_array_set_size (in->memo, index + 1);
  g_array_index (in->memo, CoopPickleValue, index) = *value;
  return TRUE;
}

static gboolean
get_memo (In *in, guint64 index)
{
  if (index >= in->memo->len || g_array_index (in->memo, CoopPickleValue, index) == 0)
    return fail (in, FOREIGN, "memo number %" G_GUINT64_FORMAT " was never given", index);
  return push (in, g_array_index (in->memo, CoopPickleValue, index));
}

/* ---- containers ---- */

static gboolean
tuple (In *in, const CoopPickleValue *items, guint n)
{
  if (items == NULL)
    return FALSE;
  CoopPickleValue value = coop_pickle_new_sequence (in->pickle, COOP_PICKLE_TUPLE, in->opcode_at);
  coop_pickle_append (coop_pickle_sequence (in->pickle, value), items, n);
  drop (in, n);
  return push (in, value);
}

static CoopPickleSequence *
open_container (In *in, CoopPickleType type, guint more)
{
  CoopPickleValue *value = top (in, 1);
  if (value == NULL)
    return NULL;
  CoopPickleSequence *sequence = coop_pickle_type (*value) == type ? coop_pickle_sequence (in->pickle, *value) : NULL;
  if (sequence == NULL)
    fail (in, FOREIGN, "items for what is no %s", type == COOP_PICKLE_DICT ? "dict" : "list");
  else if (sequence->room == COOP_PICKLE_SEALED_ROOM)
    fail (in, FOREIGN, "a list grows after its use");
  else if (sequence->n + (guint64) more <= MAX_ITEMS)
    return sequence;
  else
    fail (in, FOREIGN, "too many items");
  return NULL;
}

/* The n values on the top go into the list below them. */
static gboolean
append (In *in, const CoopPickleValue *items, guint n)
{
  if (items == NULL)
    return FALSE;
  drop (in, n); /* stay where they are until something is pushed */
  CoopPickleSequence *list = open_container (in, COOP_PICKLE_LIST, n);
  if (list != NULL)
    coop_pickle_append (list, items, n);
  return list != NULL;
}

static CoopPickleValue
sealed (In *in, CoopPickleValue list)
{
  CoopPickleSequence *sequence = coop_pickle_sequence (in->pickle, list);
  if (sequence->room != COOP_PICKLE_SEALED_ROOM)
    {
      guint64 number = in->source->seal (in->source->seal_user, in->pickle, list);
      sequence = coop_pickle_sequence (in->pickle, list);
      g_free (sequence->items);
      sequence->sealed = number;
      sequence->n = 0;
      sequence->room = COOP_PICKLE_SEALED_ROOM;
    }
  return coop_pickle_value (COOP_PICKLE_SEALED, sequence->sealed);
}

static gboolean
set_items (In *in, CoopPickleValue *items, guint n)
{
  if (items == NULL)
    return FALSE;
  if (n % 2 != 0)
    return fail (in, FOREIGN, "a key without a value");
  drop (in, n);
  CoopPickleSequence *dict = open_container (in, COOP_PICKLE_DICT, n);
  if (dict == NULL)
    return FALSE;
  for (guint i = 0; i < n; i += 2)
    {
      CoopPickleType type = coop_pickle_type (items[i]);
      if (type == COOP_PICKLE_LIST || type == COOP_PICKLE_DICT)
        return fail (in, FOREIGN, "a key that cannot be one");
      if (items[i] == in->seal_key && in->seal_key != 0 && coop_pickle_type (items[i + 1]) == COOP_PICKLE_LIST)
        items[i + 1] = sealed (in, items[i + 1]);
    }
  coop_pickle_append (dict, items, n);
  return TRUE;
}

/* ---- scalars ---- */

static gboolean
text (In *in, guint length_bytes)
{
  guint64 n;
  const guint8 *bytes = counted (in, length_bytes, &n);
  if (bytes == NULL)
    return FALSE;
  CoopPickleValue value = coop_pickle_new_text (in->pickle, (const char *) bytes, n);
  if (in->seal_key == 0 && in->source->seal_key != NULL && n == strlen (in->source->seal_key)
      && memcmp (bytes, in->source->seal_key, n) == 0)
    in->seal_key = value;
  return push (in, value);
}

static gboolean
bytes (In *in, guint length_bytes)
{
  guint64 n;
  return counted (in, length_bytes, &n) != NULL && push (in, coop_pickle_value (COOP_PICKLE_BYTES, n));
}

/* Two's complement, little-endian. What needs more than 64 bits is kept as something, but no number. */
static gboolean
long_int (In *in, guint length_bytes)
{
  guint64 n, value = 0;
  const guint8 *at = counted (in, length_bytes, &n);
  if (at == NULL)
    return FALSE;
  gboolean negative = n > 0 && (at[n - 1] & 0x80) != 0;
  if (n > 9 || (n == 9 && at[8] != 0))
    return push (in, coop_pickle_value (COOP_PICKLE_BYTES, n));
  for (guint i = 0; i < 8; i++)
    value |= (guint64) (i < n ? at[i] : negative ? 0xff : 0) << 8 * i;
  if (n == 9 && value > G_MAXINT64)
    return push (in, coop_pickle_new_unsigned (in->pickle, value));
  return push (in, coop_pickle_new_int (in->pickle, (gint64) value));
}

static gboolean
short_int (In *in, guint n)
{
  guint64 value;
  if (!number (in, n, &value))
    return FALSE;
  return push (in, coop_pickle_new_int (in->pickle, n == 4 ? (gint32) (guint32) value : (gint64) value));
}

static gboolean
real (In *in)
{
  const guint8 *at = take (in, 8);
  guint64 bits = 0;
  double value;
  if (at == NULL)
    return FALSE;
  for (guint i = 0; i < 8; i++)
    bits = bits << 8 | at[i];
  memcpy (&value, &bits, sizeof value);
  return push (in, coop_pickle_new_real (in->pickle, value));
}

/* ---- opcodes ---- */

static const char *
refusal (guint8 opcode)
{
  switch (opcode)
    {
    case 'c':
    case 0x93:
    case 'i':
      return "it imports something (GLOBAL)";
    case 'R':
    case 'o':
    case 0x81:
    case 0x92:
      return "it calls something (REDUCE)";
    case 'b':
      return "it builds an object (BUILD)";
    case 'P':
    case 'Q':
    case 0x82:
    case 0x83:
    case 0x84:
      return "it refers to something outside of itself";
    default:
      return NULL;
    }
}

static gboolean
refuse (In *in, guint8 opcode)
{
  const char *why = refusal (opcode);
  if (why != NULL)
    return fail (in, FOREIGN, "%s; only plain data is read, nothing is executed", why);
  return fail (in, FOREIGN, "opcode 0x%02x is none of those of plain data", opcode);
}

static gboolean
protocol (In *in)
{
  guint64 version;
  if (!number (in, 1, &version))
    return FALSE;
  if (version < 2 || version > 5)
    return fail (in, FOREIGN, "pickle protocol %u is not supported, 2 to 5 are", (guint) version);
  in->pickle->protocol = (guint) version;
  return TRUE;
}

static gboolean
with_number (In *in, guint n, gboolean (*then) (In *in, guint64 index))
{
  guint64 index;
  return number (in, n, &index) && then (in, index);
}

static gboolean
frame (In *in)
{
  guint64 length;
  return number (in, 8, &length); /* of use to who reads ahead */
}

static gboolean
mark (In *in)
{
  g_array_append_val (in->marks, in->stack->len);
  return TRUE;
}

static gboolean
stop (In *in)
{
  if (in->marks->len != 0 || in->stack->len != 1)
    return fail (in, FOREIGN, "the end comes too early or too late");
  in->pickle->root = g_array_index (in->stack, CoopPickleValue, 0);
  in->stopped = TRUE;
  return TRUE;
}

static gboolean
step (In *in, guint8 opcode)
{
  guint n = 0;
  CoopPickleValue *items;
  switch (opcode)
    {
    case 0x80: return protocol (in);
    case 0x95: return frame (in);
    case '.':  return stop (in);
    case '(':  return mark (in);
    case 'N':  return push (in, COOP_PICKLE_NONE);
    case 0x88: return push (in, coop_pickle_value (COOP_PICKLE_BOOL, 1));
    case 0x89: return push (in, coop_pickle_value (COOP_PICKLE_BOOL, 0));
    case 'K':  return short_int (in, 1);
    case 'M':  return short_int (in, 2);
    case 'J':  return short_int (in, 4);
    case 0x8a: return long_int (in, 1);
    case 0x8b: return long_int (in, 4);
    case 'G':  return real (in);
    case 0x8c: return text (in, 1);
    case 'X':  return text (in, 4);
    case 0x8d: return text (in, 8);
    case 'C':
    case 'U':  return bytes (in, 1);
    case 'B':
    case 'T':  return bytes (in, 4);
    case 0x8e: return bytes (in, 8);
    case ']':  return push (in, coop_pickle_new_sequence (in->pickle, COOP_PICKLE_LIST, in->opcode_at));
    case '}':  return push (in, coop_pickle_new_sequence (in->pickle, COOP_PICKLE_DICT, in->opcode_at));
    case ')':  return push (in, coop_pickle_new_sequence (in->pickle, COOP_PICKLE_TUPLE, in->opcode_at));
    case 0x85:
    case 0x86:
    case 0x87: return tuple (in, top (in, opcode - 0x84u), opcode - 0x84u);
    case 't':  items = top_to_mark (in, &n); return tuple (in, items, n);
    case 'a':  return append (in, top (in, 1), 1);
    case 'e':  items = top_to_mark (in, &n); return append (in, items, n);
    case 's':  return set_items (in, top (in, 2), 2);
    case 'u':  items = top_to_mark (in, &n); return set_items (in, items, n);
    case 0x94: return put_memo (in, in->memo->len);
    case 'q':  return with_number (in, 1, put_memo);
    case 'r':  return with_number (in, 4, put_memo);
    case 'h':  return with_number (in, 1, get_memo);
    case 'j':  return with_number (in, 4, get_memo);
    default:   return refuse (in, opcode);
    }
}

static gboolean
go_on (In *in)
{
  const CoopPickleSource *source = in->source;
  if (++in->steps % GO_ON_EVERY != 0 || source->go_on == NULL
      || source->go_on (source->go_on_user, in->before + in->at))
    return TRUE;
  return fail (in, COOP_TRACE_ERROR_CANCELLED, "cancelled");
}

static gboolean
run (In *in)
{
  const guint8 *first = take (in, 1);
  if (first != NULL && *first != 0x80)
    {
      in->opcode_at = 0;
      return fail (in, FOREIGN, "no pickle of protocol 2 or later begins like this");
    }
  for (const guint8 *opcode = first; opcode != NULL; opcode = take (in, 1))
    {
      in->opcode_at = in->before + in->at - 1;
      if (!step (in, *opcode) || !go_on (in))
        return FALSE;
      if (in->stopped)
        return TRUE;
      in->opcode_at = in->before + in->at;
    }
  return FALSE;
}

CoopPickle *
coop_pickle_read (const CoopPickleSource *source, GError **error)
{
  g_autoptr (GError) local = NULL;
  In in = {
    .source = source, .pickle = coop_pickle_new (), .buffer = g_malloc (BUFFER_BYTES), .size = BUFFER_BYTES,
    .stack = g_array_sized_new (FALSE, FALSE, sizeof (CoopPickleValue), 64), .marks = g_array_new (FALSE, FALSE, sizeof (guint)),
    .memo = g_array_new (FALSE, TRUE, sizeof (CoopPickleValue)), .error = &local,
  };
  gboolean ok = run (&in);
  g_array_unref (in.stack);
  g_array_unref (in.marks);
  g_array_unref (in.memo);
  g_free (in.buffer);
  if (ok)
    return in.pickle;
  coop_pickle_free (in.pickle);
  g_propagate_error (error, g_steal_pointer (&local));
  return NULL;
}
