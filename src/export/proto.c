/* SPDX-License-Identifier: Apache-2.0 */
/* Proto: see the header. The length of a nested message is four bytes, whatever it is: a varint may
 * have more bytes than it needs, and so nothing has to be moved when it is known. */
#include "export/proto.h"

#include <string.h>

enum { WIRE_VARINT = 0, WIRE_FIXED64 = 1, WIRE_BYTES = 2 };

static void
put_varint (GByteArray *out, guint64 value)
{
  guint8 bytes[10];
  guint n = 0;
  do
    {
      bytes[n] = (guint8) (value & 0x7f);
      value >>= 7;
      if (value != 0)
        bytes[n] |= 0x80;
      n++;
    }
  while (value != 0);
  g_byte_array_append (out, bytes, n);
}

static void
put_key (GByteArray *out, guint field, guint wire)
{
  put_varint (out, (guint64) field << 3 | wire);
}

void
coop_proto_uint (GByteArray *out, guint field, guint64 value)
{
  put_key (out, field, WIRE_VARINT);
  put_varint (out, value);
}

void
coop_proto_sint64 (GByteArray *out, guint field, gint64 value)
{
  coop_proto_uint (out, field, (guint64) value);
}

void
coop_proto_fixed64 (GByteArray *out, guint field, guint64 value)
{
  value = GUINT64_TO_LE (value);
  put_key (out, field, WIRE_FIXED64);
  g_byte_array_append (out, (const guint8 *) &value, 8);
}

void
coop_proto_double (GByteArray *out, guint field, double value)
{
  guint64 bits;
  memcpy (&bits, &value, 8);
  coop_proto_fixed64 (out, field, bits);
}

void
coop_proto_text (GByteArray *out, guint field, const char *text)
{
  gsize n = strlen (text);
  put_key (out, field, WIRE_BYTES);
  put_varint (out, n);
  g_byte_array_append (out, (const guint8 *) text, (guint) n);
}

guint
coop_proto_begin (GByteArray *out, guint field)
{
  static const guint8 room[4];
  put_key (out, field, WIRE_BYTES);
  g_byte_array_append (out, room, sizeof room);
  return out->len;
}

void
coop_proto_end (GByteArray *out, guint begun)
{
  guint n = out->len - begun;
  for (guint i = 0; i < 4; i++)
    out->data[begun - 4 + i] = (guint8) ((n >> (7 * i) & 0x7f) | (i < 3 ? 0x80 : 0));
}
