/* SPDX-License-Identifier: Apache-2.0 */
/* Proto: writes protobuf messages into a byte array: as much of the encoding as Perfetto's packets need.
 * https://protobuf.dev/programming-guides/encoding
 */
#ifndef COOP_EXPORT_PROTO_H
#define COOP_EXPORT_PROTO_H

#include <glib.h>

/* One byte array grows; a nested message is begun, filled and ended, its length put in afterwards. */
void coop_proto_uint (GByteArray *out, guint field, guint64 value);
void coop_proto_sint64 (GByteArray *out, guint field, gint64 value);     /* int64, not zigzag */
void coop_proto_double (GByteArray *out, guint field, double value);
void coop_proto_fixed64 (GByteArray *out, guint field, guint64 value);
void coop_proto_text (GByteArray *out, guint field, const char *text);
/* Returns what coop_proto_end wants. */
guint coop_proto_begin (GByteArray *out, guint field);
void coop_proto_end (GByteArray *out, guint begun);

#endif
