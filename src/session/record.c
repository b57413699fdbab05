/* SPDX-License-Identifier: Apache-2.0 */
/* Record: what is done with an event, and between events, whichever way it came. */
#include "session-private.h"

#include <string.h>

#define FAULTS_TOLD 5
#define MESSAGES_MAX 200          /* of the target's own warnings */
#define RATE_US 500000

/* What a person would call an event: not the bookkeeping that names things. */
static gboolean
is_recent (guint kind)
{
  switch (kind)
    {
    case COOP_EVENT_META:
    case COOP_EVENT_STRING:
    case COOP_EVENT_FRAME:
    case COOP_EVENT_STACK:
    case COOP_EVENT_SEGMENT:
    case COOP_EVENT_TENSOR:
    case COOP_EVENT_RECLASSIFY:
    case COOP_EVENT_COST:
    case COOP_EVENT_STAT:
      return FALSE;
    default:
      return TRUE;
    }
}

void
coop_session_remember (CoopSession *self, const CoopEvent *ev, const void *body)
{
  if (!is_recent (ev->kind))
    return;
  CoopEvent **slot = &self->recent[self->n_recent++ % COOP_RECENT_EVENTS];
  gsize more = (gsize) ev->more * COOP_RECORD_BYTES;
  if (*slot == NULL || (*slot)->more != ev->more)
    *slot = g_realloc (*slot, sizeof *ev + more);
  memcpy (*slot, ev, sizeof *ev);
  if (more != 0)
    memcpy (*slot + 1, body, more);
}

static void
tell_warning (CoopSession *self, const CoopEvent *ev, const void *body)
{
  if (self->messages >= MESSAGES_MAX || (self->terminal && ev->u.warning.code == COOP_WARNING_TOLD))
    return;
  g_autofree char *text = coop_model_describe (self->model, ev, body);
  coop_session_post (self, COOP_SIGNAL_MESSAGE, text, FALSE);
  if (++self->messages == MESSAGES_MAX)
    coop_session_say (self, "further warnings are in the trace only");
}

static void
tell_fault (CoopSession *self, const CoopEvent *ev, const char *detail)
{
  self->faults++;
  if (self->faults <= FAULTS_TOLD)
    coop_session_say (self, "event %" G_GUINT64_FORMAT " does not fit what came before: %s", ev->seq,
                      detail != NULL ? detail : "no detail");
}

static void
say_hello (CoopSession *self)
{
  self->hello = TRUE;
  coop_session_put_state (self, COOP_SESSION_RECORDING, -1);
}

void
coop_session_apply (CoopSession *self, const CoopEvent *ev, const void *body)
{
  g_autofree char *detail = NULL;
  if (!self->hello)
    say_hello (self);
  pthread_mutex_lock (&self->lock);
  CoopFault fault = coop_model_apply (self->model, ev, body, &detail);
  coop_usage_log_add (self->usage, coop_model_totals (self->model));
  coop_session_remember (self, ev, body);
  pthread_mutex_unlock (&self->lock);
  if (fault != COOP_FAULT_NONE)
    tell_fault (self, ev, detail);
  if (ev->kind == COOP_EVENT_WARNING)
    tell_warning (self, ev, body);
  if (self->rehearsing != NULL)
    coop_rehearsing_apply (self, self->rehearsing, ev);
  self->end_seen |= ev->kind == COOP_EVENT_END;
  self->next_seq = coop_model_totals (self->model)->seq + 1;
  self->events++;
  self->rate_events++;
}

/* A frame, if somebody asked and something changed since the last; the first one unasked. */
void
coop_session_publish (CoopSession *self, gboolean always)
{
  gboolean wanted = g_atomic_int_get (&self->frame_wanted) || self->generation == 0 || always;
  if (!wanted || self->events == 0 || self->events == self->frame_seq)
    return;
  g_atomic_int_set (&self->frame_wanted, 0);
  self->frame_seq = self->events;
  CoopFrame *frame = coop_frame_new (self->model, ++self->generation);
  pthread_mutex_lock (&self->frame_lock);
  CoopFrame *old = self->frame;
  self->frame = frame;
  pthread_mutex_unlock (&self->frame_lock);
  coop_frame_unref (old);
}

void
coop_session_measure (CoopSession *self, gboolean empty)
{
  gint64 now = g_get_monotonic_time ();
  CoopRingStats stats = { 0 };
  const char *why = NULL;
  if (empty || self->ring_empty == 0)
    self->ring_empty = now;
  if (self->rate_since == 0)
    self->rate_since = now;
  coop_ring_stats (self->wire, &stats);
  pthread_mutex_lock (&self->frame_lock);
  self->health.lag_ms = (double) (now - self->ring_empty) / 1000;
  self->health.ring_fill = (double) stats.fill / (double) stats.size;
  self->health.dropped = stats.dropped;
  if (self->store != NULL)
    {
      self->health.lost = coop_store_lost (self->store, &why);
      self->health.trace_bytes = coop_store_bytes (self->store);
    }
  if (now - self->rate_since >= RATE_US)
    {
      self->health.events_per_s = (double) self->rate_events * 1e6 / (double) (now - self->rate_since);
      self->rate_events = 0;
      self->rate_since = now;
    }
  pthread_mutex_unlock (&self->frame_lock);
}
