/* SPDX-License-Identifier: Apache-2.0 */
/* Instant: a moment of a run as people say it.
 *
 *   peak      the first event at which most bytes are in use
 *   end       the last event
 *   oom       the last request that could not be served
 *   1234      an event's number
 *   1.5s      a time since the run began (also ms, us, ns): the last event up to then
 *   step:3    the begin of a step
 */
#ifndef COOP_INSTANT_H
#define COOP_INSTANT_H

#include "trace/store.h"

#define COOP_INSTANTS "peak, end, oom, EVENT, TIME (1.5s, 20ms), step:N"

/* FALSE with QUERY where the text says nothing or there is no such moment. */
gboolean coop_reader_instant (CoopReader *reader, const char *text, guint64 *seq, GError **error);

#endif
