/* SPDX-License-Identifier: Apache-2.0 */
/* A session without a script; see the header. */
#include "fake-session.h"

#include "../support/gen-events.h"

struct _CoopSession
{
  GObject parent_instance;

  GMutex mutex;
  CoopGen *gen;
  CoopModel *model;
  CoopFrame *frame;
  guint64 budget, generation, seq, blocks;
  gboolean stale;
  CoopSessionState state;
  int exit;
  GArray *changes;
  guint stops;
};

G_DEFINE_FINAL_TYPE (CoopSession, coop_session, G_TYPE_OBJECT)
G_DEFINE_QUARK (coop-session-error, coop_session_error)

static CoopSession *last_session;
static guint state_signal, output_signal, message_signal;

static void
coop_session_finalize (GObject *object)
{
  CoopSession *self = COOP_SESSION (object);
  g_clear_pointer (&self->gen, coop_gen_free);
  coop_model_free (self->model);
  g_clear_pointer (&self->frame, coop_frame_unref);
  g_array_unref (self->changes);
  g_mutex_clear (&self->mutex);
  G_OBJECT_CLASS (coop_session_parent_class)->finalize (object);
}

static void
coop_session_class_init (CoopSessionClass *class)
{
  GType type = G_TYPE_FROM_CLASS (class);
  G_OBJECT_CLASS (class)->finalize = coop_session_finalize;
  state_signal = g_signal_new ("state-changed", type, G_SIGNAL_RUN_LAST, 0, NULL, NULL, NULL, G_TYPE_NONE, 0);
  output_signal = g_signal_new ("output", type, G_SIGNAL_RUN_LAST, 0, NULL, NULL, NULL, G_TYPE_NONE, 2,
                                G_TYPE_STRING, G_TYPE_BOOLEAN);
  message_signal = g_signal_new ("message", type, G_SIGNAL_RUN_LAST, 0, NULL, NULL, NULL, G_TYPE_NONE, 1,
                                 G_TYPE_STRING);
}

static void
coop_session_init (CoopSession *self)
{
  g_mutex_init (&self->mutex);
  self->model = coop_model_new ();
  self->changes = g_array_new (FALSE, TRUE, sizeof (FakeChange));
  self->state = COOP_SESSION_RECORDING;
  self->exit = -1;
}

/* ---- what tests do ---- */

static void
apply (CoopSession *self, CoopEvent *ev, const void *body)
{
  g_autofree char *detail = NULL;
  g_mutex_lock (&self->mutex);
  CoopFault fault = coop_model_apply (self->model, ev, body, &detail);
  self->seq = ev->seq + 1;
  self->stale = TRUE;
  g_mutex_unlock (&self->mutex);
  if (fault != COOP_FAULT_NONE)
    g_error ("%s", detail);
}

CoopSession *
fake_session_new (guint64 budget)
{
  CoopSession *self = g_object_new (COOP_TYPE_SESSION, NULL);
  self->gen = coop_gen_new (7, budget);
  self->budget = budget;
  return self;
}

void
fake_session_play (CoopSession *self, guint n)
{
  for (guint i = 0; i < n; i++)
    {
      const void *body;
      CoopEvent ev = *coop_gen_next (self->gen, &body);
      apply (self, &ev, body);
    }
}

void
fake_session_fill (CoopSession *self, guint n, guint64 bytes)
{
  CoopEvent pool = { .seq = self->seq, .kind = COOP_EVENT_POOL };
  pool.u.pool.id = 1;
  pool.u.pool.budget = pool.u.pool.capacity = n * bytes;
  apply (self, &pool, NULL);
  for (guint i = 0; i < n; i++)
    {
      CoopEvent ev = { .seq = self->seq, .ts = self->seq, .kind = COOP_EVENT_ALLOC };
      ev.u.alloc.block = ++self->blocks;
      ev.u.alloc.addr = i * bytes;
      ev.u.alloc.bytes = ev.u.alloc.requested = bytes;
      apply (self, &ev, NULL);
    }
  for (guint i = 0; i < n; i += 2)
    {
      CoopEvent ev = { .seq = self->seq, .ts = self->seq, .kind = COOP_EVENT_FREE };
      ev.u.free.block = i + 1;
      ev.u.free.addr = i * bytes;
      ev.u.free.bytes = bytes;
      apply (self, &ev, NULL);
    }
}

void
fake_session_oom (CoopSession *self, guint64 asked, guint64 advice)
{
  const CoopModelTotals *totals = coop_model_totals (self->model);
  CoopOomBody body = { .budget = totals->budget, .pinned = { 0, 3 << 20, 0, 0, 0 } };
  CoopEvent ev = { .seq = self->seq, .ts = totals->ts, .kind = COOP_EVENT_OOM, .more = 1 };
  ev.u.oom.asked = asked;
  ev.u.oom.free = totals->free;
  ev.u.oom.largest = totals->largest;
  ev.u.oom.advice = advice;
  apply (self, &ev, &body);
}

void
fake_session_end (CoopSession *self, CoopSessionState state, int exit)
{
  self->state = state;
  self->exit = exit;
  g_signal_emit (self, state_signal, 0);
}

CoopSession *
fake_session_last (void)
{
  return last_session;
}

void
fake_session_touch (CoopSession *self)
{
  g_mutex_lock (&self->mutex);
  self->stale = TRUE;
  g_mutex_unlock (&self->mutex);
}

void
fake_session_say (CoopSession *self, const char *text)
{
  g_signal_emit (self, message_signal, 0, text);
}

gboolean
fake_session_get_change (CoopSession *self, guint n, FakeChange *change)
{
  if (n >= self->changes->len)
    return FALSE;
  *change = g_array_index (self->changes, FakeChange, n);
  return TRUE;
}

guint64
fake_session_get_budget (CoopSession *self)
{
  return self->budget;
}

guint
fake_session_get_stops (CoopSession *self)
{
  return self->stops;
}

/* ---- session.h ---- */

void
coop_run_options_init (CoopRunOptions *options)
{
  *options = (CoopRunOptions) { 0 };
  coop_policy_init (&options->policy);
}

void
coop_run_options_clear (CoopRunOptions *options)
{
  g_strfreev (options->argv);
  g_strfreev (options->envp);
  g_free (options->cwd);
  g_free (options->trace);
  *options = (CoopRunOptions) { 0 };
}

/* `missing` is not there; `slow` takes its time. */
gboolean
coop_session_check (const CoopRunOptions *options, GError **error)
{
  if (g_str_equal (options->argv[0], "slow"))
    g_usleep (G_USEC_PER_SEC);
  if (!g_str_equal (options->argv[0], "missing"))
    return TRUE;
  g_set_error_literal (error, COOP_SESSION_ERROR, COOP_SESSION_ERROR_COMMAND, "no such program: missing");
  return FALSE;
}

CoopSession *
coop_session_start (const CoopRunOptions *options, GError **error)
{
  if (!options->checked && !coop_session_check (options, error))
    return NULL;
  last_session = fake_session_new ((guint64) options->policy.v[COOP_PARAM_BUDGET].i);
  return last_session;
}

CoopSession *
coop_session_attach (int pid, GError **error)
{
  g_set_error (error, COOP_SESSION_ERROR, COOP_SESSION_ERROR_PROCESS, "no such process: %d", pid);
  return NULL;
}

CoopSessionState
coop_session_get_state (CoopSession *self)
{
  return self->state;
}

int
coop_session_get_exit (CoopSession *self)
{
  return self->exit;
}

int
coop_session_get_pid (CoopSession *self)
{
  return 1;
}

const char *
coop_session_get_trace (CoopSession *self)
{
  return "/nowhere/fake.coop";
}

CoopFrame *
coop_session_frame (CoopSession *self)
{
  CoopFrame *frame = NULL;
  g_mutex_lock (&self->mutex);
  if (self->stale)
    {
      g_clear_pointer (&self->frame, coop_frame_unref);
      self->frame = coop_frame_new (self->model, ++self->generation);
      self->stale = FALSE;
    }
  if (self->frame)
    frame = coop_frame_ref (self->frame);
  g_mutex_unlock (&self->mutex);
  return frame;
}

GArray *
coop_session_usage (CoopSession *self, guint n)
{
  GArray *samples = g_array_new (FALSE, TRUE, sizeof (CoopSample));
  g_mutex_lock (&self->mutex);
  const CoopModelTotals *totals = coop_model_totals (self->model);
  for (guint i = 0; i < n && totals->ts > 0; i++)
    {
      CoopSample sample = { .ts = totals->ts / n * i, .used_max = totals->used / 2 + totals->used / n / 2 * i,
                            .pinned_max = totals->pinned, .largest_min = totals->largest,
                            .budget = totals->budget, .evictions = i % 7 == 0 };
      g_array_append_val (samples, sample);
    }
  g_mutex_unlock (&self->mutex);
  return samples;
}

static void
line_free (gpointer data)
{
  CoopEventLine *line = data;
  g_free (line->text);
  g_free (line);
}

/* One line for each of the last events, as many as the real one keeps. */
GPtrArray *
coop_session_events (CoopSession *self, guint n)
{
  GPtrArray *lines = g_ptr_array_new_with_free_func (line_free);
  g_mutex_lock (&self->mutex);
  guint64 seq = self->seq - MIN (self->seq, MIN (n, 1024));
  for (; seq < self->seq; seq++)
    {
      CoopEventLine *line = g_new0 (CoopEventLine, 1);
      line->seq = seq;
      line->kind = COOP_EVENT_ALLOC;
      line->text = g_strdup_printf ("event %" G_GUINT64_FORMAT, seq);
      g_ptr_array_add (lines, line);
    }
  g_mutex_unlock (&self->mutex);
  return lines;
}

char *
coop_session_describe_in (CoopSession *self, const CoopFrame *frame, guint64 block)
{
  return g_strdup_printf ("block %" G_GUINT64_FORMAT " at event %" G_GUINT64_FORMAT, block, frame->totals.seq);
}

void
coop_session_set_param (CoopSession *self, CoopParam param, CoopValue value, CoopSource source)
{
  FakeChange change = { param, value, source };
  g_array_append_val (self->changes, change);
}

void
coop_session_set_policy (CoopSession *self, const CoopPolicy *policy, guint64 mask, CoopSource source)
{
  for (int i = 0; i < COOP_N_PARAMS; i++)
    if (mask >> i & 1)
      coop_session_set_param (self, (CoopParam) i, policy->v[i], source);
}

void
coop_session_stop (CoopSession *self)
{
  self->stops++;
}

void
coop_session_signal (CoopSession *self, int signum)
{
}

void
coop_session_health (CoopSession *self, CoopSessionHealth *health)
{
  *health = (CoopSessionHealth) { .events_per_s = 1000, .lag_ms = 3 };
}

char *
coop_session_name (CoopSession *self, CoopNameKind kind, guint64 id)
{
  return coop_model_name (self->model, kind, id);
}
