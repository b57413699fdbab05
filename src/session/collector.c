/* SPDX-License-Identifier: Apache-2.0 */
/* The collector thread: ring -> model -> store, frames on demand, until the target is gone and the
 * ring is empty.
 *
 * It polls: a sleeping producer costs 500 wake-ups a second here, a busy one none, and the producer
 * never has to wake anybody. */
#include "session-private.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

#define BATCH 1024               /* events between two looks at everything else */
#define IDLE_US 2000
#define OUTPUT_US 20000
#define HELLO_US 30000000        /* after which a missing hello is told */

static bool
take (void *user, const CoopEvent *ev, const void *body)
{
  CoopSession *self = user;
  coop_session_apply (self, ev, body);
  if (self->store != NULL)
    coop_store_append (self->store, self->model, ev, body);
  return true;
}

/* Nothing more will come: the child was reaped, or the process that is followed is gone. */
static gboolean
target_gone (CoopSession *self)
{
  pid_t pid = 0;
  if (g_atomic_int_get (&self->quit))
    return TRUE;
  if (self->child != NULL)
    return g_subprocess_get_identifier (self->child) == NULL;
  CoopTargetState state = coop_wire_target (self->wire, &pid);
  if (state == COOP_TARGET_ENDED)
    return TRUE;
  if (pid <= 0)
    pid = self->pid;
  return pid > 0 && !coop_process_alive (pid);
}

static void
tell_lost (CoopSession *self)
{
  const char *why = NULL;
  if (self->store == NULL || self->lost_told || coop_store_lost (self->store, &why) == 0)
    return;
  self->lost_told = TRUE;
  coop_session_say (self, "the trace is incomplete: %s; the script goes on",
                    why != NULL ? why : "it cannot be written");
}

static void
tell_trimmed (CoopSession *self)
{
  if (self->store == NULL || self->trim_told || coop_store_trimmed (self->store) == 0)
    return;
  self->trim_told = TRUE;
  coop_session_say (self, "the trace has reached its limit (--trace-limit): it keeps the latest events from now on, "
                    "and is no program any more");
}

static void
tell_dropped (CoopSession *self, gboolean last)
{
  CoopRingStats stats;
  coop_ring_stats (self->wire, &stats);
  if (stats.dropped == self->dropped_told || (self->dropped_told != 0 && !last))
    return;
  self->dropped_told = stats.dropped;
  coop_session_say (self, "%" G_GUINT64_FORMAT " events were dropped: the ring was full", stats.dropped);
}

/* At the first, and at the end how many there were. */
static void
tell_turned_away (CoopSession *self, gboolean last)
{
  guint n = coop_wire_turned_away (self->wire);
  if (n <= self->turned_away_told || (self->turned_away_told > 0 && !last))
    return;
  if (self->turned_away_told > 0)
    coop_session_say (self, "%u processes in all ran outside the budget", n);
  else
    coop_session_say (self, "another process of this script makes tensors; the budget and the trace are those of "
                      "process %d alone, the other runs as without Coopscope", coop_session_get_pid (self));
  self->turned_away_told = n;
}

/* What was dropped last, when the target had no room or time to tell it. */
static void
close_gap (CoopSession *self)
{
  CoopRingStats stats;
  const CoopModelTotals *totals = coop_model_totals (self->model);
  coop_ring_stats (self->wire, &stats);
  if (self->events == 0 || stats.dropped <= totals->missing)
    return;
  CoopEvent gap = { .kind = COOP_EVENT_GAP, .ts = totals->ts };
  gap.u.gap.first = self->next_seq;
  gap.u.gap.missing = stats.dropped - totals->missing;
  gap.seq = gap.u.gap.first + gap.u.gap.missing;
  take (self, &gap, NULL);
}

/* Why no tensor came, as far as the command line shows it. */
static void
tell_no_hello (CoopSession *self, gboolean ended)
{
  const char *what = ended ? "the script ended without a word from PyTorch"
                           : "no word from PyTorch yet";
  const CoopPythonLine *line = &self->line;
  self->hello_told = TRUE;
  if (line->python && line->blind[0] != 0)
    coop_session_say (self, "%s: python was started with -%s, which keeps Coopscope out of it", what,
                      line->blind);
  else if (line->python)
    coop_session_say (self, "%s: nothing in it made a tensor", what);
  else
    coop_session_say (self, "%s: no Python process that makes tensors inherited our environment", what);
}

/* What is done between two drains, some of it now and then. Returns when output is next due. */
static gint64
between (CoopSession *self, long n, gint64 output_due)
{
  gint64 now = g_get_monotonic_time ();
  if (self->store != NULL && n < BATCH)
    coop_store_tick (self->store);
  coop_session_publish (self, FALSE);
  coop_session_measure (self, n < BATCH);
  tell_lost (self);
  tell_trimmed (self);
  tell_dropped (self, FALSE);
  tell_turned_away (self, FALSE);
  if (!self->hello && !self->hello_told && now - self->started > HELLO_US && self->child != NULL)
    tell_no_hello (self, FALSE);
  if (now < output_due)
    return output_due;
  coop_session_read_output (self, FALSE);
  return now + OUTPUT_US;
}

/* Returns FALSE if the ring's content made no sense. */
static gboolean
run (CoopSession *self)
{
  gint64 output_due = 0;
  for (;;)
    {
      gboolean gone = target_gone (self);   /* asked before: what it wrote last is then there */
      long n = coop_ring_drain (self->wire, BATCH, take, self);
      if (n < 0)
        return FALSE;
      output_due = between (self, n, output_due);
      if (n == 0 && gone)
        return TRUE;
      if (n < BATCH && !gone)
        g_usleep (IDLE_US);
    }
}

/* The ring can no longer be read: nothing is left to do but to wait for the child. */
static void
wait_unwatched (CoopSession *self)
{
  coop_session_say (self, "what the script recorded makes no sense from event %" G_GUINT64_FORMAT
                    " on; the script goes on unwatched", self->next_seq);
  while (!target_gone (self))
    {
      coop_session_read_output (self, FALSE);
      g_usleep (OUTPUT_US);
    }
}

static int
child_code (CoopSession *self)
{
  return g_subprocess_get_if_signaled (self->child)
             ? 128 + g_subprocess_get_term_sig (self->child)
             : g_subprocess_get_exit_status (self->child);
}

/* How the run ended, for the file and for who asks. */
static CoopSessionState
verdict (CoopSession *self, gboolean sane, CoopRunState *run_state, int *code)
{
  pid_t pid = 0;
  gboolean open = coop_wire_target (self->wire, &pid) == COOP_TARGET_RUNNING && !self->end_seen;
  *run_state = COOP_RUN_INTERRUPTED;
  *code = -1;
  if (self->child != NULL && g_subprocess_get_identifier (self->child) != NULL)
    return COOP_SESSION_LOST;   /* we let go of it */
  if (!sane)
    {
      *code = self->child != NULL ? child_code (self) : -1;
      return COOP_SESSION_LOST;
    }
  if (self->child != NULL && g_subprocess_get_if_signaled (self->child))
    {
      *run_state = COOP_RUN_KILLED;
      *code = g_subprocess_get_term_sig (self->child);
      return COOP_SESSION_KILLED;
    }
  if (self->child != NULL)
    {
      *code = g_subprocess_get_exit_status (self->child);
      *run_state = open && *code != 0 ? COOP_RUN_INTERRUPTED : COOP_RUN_ENDED;
      return COOP_SESSION_ENDED;
    }
  if (open || !self->end_seen)
    return COOP_SESSION_LOST;
  *run_state = COOP_RUN_ENDED;
  *code = (int) coop_model_totals (self->model)->exit_code;
  return COOP_SESSION_ENDED;
}

static void
write_stats (CoopSession *self)
{
  CoopRingStats stats;
  coop_ring_stats (self->wire, &stats);
  coop_store_set_stat (self->store, "ring_events", (gint64) stats.pushed);
  coop_store_set_stat (self->store, "ring_dropped", (gint64) stats.dropped);
  coop_store_set_stat (self->store, "ring_peak_bytes", (gint64) stats.fill_peak);
  coop_store_set_stat (self->store, "ring_bytes", (gint64) stats.size);
  coop_store_set_stat (self->store, "ring_waits", (gint64) stats.waits);
  coop_store_set_stat (self->store, "ring_wait_ns", (gint64) stats.wait_ns);
  coop_store_set_stat (self->store, "model_faults", (gint64) self->faults);
}

static void
on_closing (gpointer user, double part)
{
  CoopSession *self = user;
  pthread_mutex_lock (&self->frame_lock);
  self->health.closing = MAX (part, 1e-3);
  pthread_mutex_unlock (&self->frame_lock);
}

static void
close_store (CoopSession *self, CoopRunState state, int code)
{
  g_autoptr (GError) error = NULL;
  if (self->store == NULL)
    return;
  write_stats (self);
  tell_trimmed (self);
  gboolean said = self->lost_told;
  tell_lost (self);
  coop_store_set_closing (self->store, on_closing, self);
  if (!coop_store_close (g_steal_pointer (&self->store), state, code, &error) && !said
      && !self->lost_told)
    coop_session_say (self, "the trace is incomplete: %s", error->message);
}

gpointer
coop_session_collector (gpointer session)
{
  CoopSession *self = session;
  CoopRunState run_state = COOP_RUN_INTERRUPTED;
  int code = -1;
  gboolean sane = run (self);
  if (!sane)
    wait_unwatched (self);
  coop_session_read_output (self, TRUE);
  CoopSessionState state = verdict (self, sane, &run_state, &code);
  if (sane)
    close_gap (self);
  tell_dropped (self, TRUE);
  tell_turned_away (self, TRUE);
  if (!self->hello && !self->hello_told && self->child != NULL && !g_atomic_int_get (&self->quit))
    tell_no_hello (self, TRUE);
  coop_session_publish (self, TRUE);
  coop_session_measure (self, TRUE);
  close_store (self, run_state, code);
  coop_session_put_state (self, state, code);
  return NULL;
}
