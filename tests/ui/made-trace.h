/* SPDX-License-Identifier: Apache-2.0 */
/* A trace file of generated events, and what a look at all of them says. */
#pragma once

#include <glib.h>

typedef struct {
  char *path;
  guint n;
  guint64 *ts;
  guint16 *kind;
} MadeTrace;

MadeTrace *made_trace_new (guint n, guint64 budget);
/* Removes the file. */
void made_trace_free (MadeTrace *trace);
/* The last event at or before a time; the next eviction after (before) an event, else that event. */
guint64 made_trace_event_at (const MadeTrace *trace, guint64 ts);
guint64 made_trace_next_eviction (const MadeTrace *trace, guint64 seq, gboolean back);

G_DEFINE_AUTOPTR_CLEANUP_FUNC (MadeTrace, made_trace_free)
