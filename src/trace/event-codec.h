/* SPDX-License-Identifier: Apache-2.0 */
/* Event codec: an event <-> the columns of a row of table `event`, without loss. */
#ifndef COOP_EVENT_CODEC_H
#define COOP_EVENT_CODEC_H

#include <glib.h>

#include "core/event.h"

typedef enum {
  COOP_COLUMN_BLOCK, COOP_COLUMN_TENSOR, COOP_COLUMN_OP, COOP_COLUMN_ADDR, COOP_COLUMN_BYTES,
  COOP_N_COLUMNS
} CoopColumn;

typedef struct {
  guint64 value[COOP_N_COLUMNS];
  gboolean present[COOP_N_COLUMNS]; /* FALSE: NULL */
} CoopColumns;

/* Fills columns; the rest goes to `rest`, which is emptied first and stays empty for NULL. */
void coop_event_pack (const CoopEvent *ev, const void *body, CoopColumns *columns, GByteArray *rest);
/* The inverse: ev->seq, ts, kind and thread are the caller's; fills u, more and the body (a multiple
 * of 64 bytes; emptied first). FALSE if `rest` is damaged. */
gboolean coop_event_unpack (CoopEvent *ev, const CoopColumns *columns, const guint8 *rest,
                            gsize rest_bytes, GByteArray *body);

#endif
