/* SPDX-License-Identifier: Apache-2.0 */
/* The session object: its life, its signals, and what may be asked of it from any thread. */
#include "config.h"

#include "session-private.h"

#include <errno.h>
#include <signal.h>
#include <string.h>

G_DEFINE_FINAL_TYPE (CoopSession, coop_session, G_TYPE_OBJECT)
G_DEFINE_QUARK (coop-session-error-quark, coop_session_error)

enum { STATE_CHANGED, OUTPUT, MESSAGE, N_SIGNALS };
static guint signals[N_SIGNALS];

/* ---- life --------------------------------------------------------------------------------- */

static void
coop_session_dispose (GObject *object)
{
  CoopSession *self = COOP_SESSION (object);
  if (self->thread != NULL)
    {
      g_atomic_int_set (&self->quit, 1);
      g_thread_join (self->thread);
      self->thread = NULL;
    }
  G_OBJECT_CLASS (coop_session_parent_class)->dispose (object);
}

static void
coop_session_finalize (GObject *object)
{
  CoopSession *self = COOP_SESSION (object);
  coop_session_close_output (self);
  coop_rehearsing_free (self->rehearsing);
  if (self->store != NULL)   /* it never came to run */
    coop_store_close (self->store, COOP_RUN_INTERRUPTED, 0, NULL);
  g_clear_pointer (&self->reader, coop_reader_free);
  coop_model_free (self->model);
  coop_frame_unref (self->frame);
  coop_wire_free (self->wire);
  for (guint i = 0; i < COOP_RECENT_EVENTS; i++)
    g_free (self->recent[i]);
  g_free (self->usage);
  g_free (self->trace);
  g_strfreev (self->argv);
  g_clear_object (&self->child);
  g_main_context_unref (self->context);
  pthread_mutex_destroy (&self->lock);
  pthread_mutex_destroy (&self->frame_lock);
  G_OBJECT_CLASS (coop_session_parent_class)->finalize (object);
}

static void
coop_session_class_init (CoopSessionClass *class)
{
  GObjectClass *object_class = G_OBJECT_CLASS (class);
  object_class->dispose = coop_session_dispose;
  object_class->finalize = coop_session_finalize;
  signals[STATE_CHANGED] = g_signal_new ("state-changed", COOP_TYPE_SESSION, G_SIGNAL_RUN_LAST, 0,
                                         NULL, NULL, NULL, G_TYPE_NONE, 0);
  signals[OUTPUT] = g_signal_new ("output", COOP_TYPE_SESSION, G_SIGNAL_RUN_LAST, 0, NULL, NULL, NULL,
                                  G_TYPE_NONE, 2, G_TYPE_STRING, G_TYPE_BOOLEAN);
  signals[MESSAGE] = g_signal_new ("message", COOP_TYPE_SESSION, G_SIGNAL_RUN_LAST, 0, NULL, NULL,
                                   NULL, G_TYPE_NONE, 1, G_TYPE_STRING);
}

static void
coop_session_init (CoopSession *self)
{
  self->context = g_main_context_ref_thread_default ();
  pthread_mutex_init (&self->lock, NULL);
  pthread_mutex_init (&self->frame_lock, NULL);
  self->model = coop_model_new ();
  self->usage = g_new0 (CoopUsageLog, 1);
  coop_usage_log_init (self->usage);
  self->exit = -1;
  self->output[0].fd = self->output[1].fd = -1;
  self->started = g_get_monotonic_time ();
}

void
coop_run_options_init (CoopRunOptions *options)
{
  memset (options, 0, sizeof *options);
  coop_policy_init (&options->policy);
  options->trace_limit = COOP_TRACE_LIMIT;
}

void
coop_run_options_clear (CoopRunOptions *options)
{
  g_strfreev (options->argv);
  g_strfreev (options->envp);
  g_free (options->cwd);
  g_free (options->trace);
  memset (options, 0, sizeof *options);
}

CoopSession *
coop_session_start (const CoopRunOptions *options, GError **error)
{
  g_autoptr (CoopSession) self = g_object_new (COOP_TYPE_SESSION, NULL);
  self->argv = g_strdupv (options->argv);
  self->terminal = options->terminal;
  if (options->rehearse > 0)
    self->rehearsing = coop_rehearsing_new (options->rehearse);
  coop_python_line_parse (self->argv, &self->line);
  if (!coop_session_launch (self, options, error))
    return NULL;
  self->thread = g_thread_new ("coop-collector", coop_session_collector, self);
  return g_steal_pointer (&self);
}

CoopSession *
coop_session_collect (int fd, const char *trace, int pid, GError **error)
{
  g_autoptr (CoopSession) self = g_object_new (COOP_TYPE_SESSION, NULL);
  g_autofree char *command = coop_process_command (pid), *cwd = coop_process_cwd (pid);
  const char *meta[] = { "started_by", "coopscope.start", "tool_version", COOP_VERSION,
                         "command", command, "cwd", cwd, NULL };
  CoopWireError wire = coop_wire_open (fd, &self->wire);
  if (wire != COOP_WIRE_OK)
    {
      g_set_error (error, COOP_SESSION_ERROR, COOP_SESSION_ERROR_PROCESS, "descriptor %d: %s", fd,
                   coop_wire_strerror (wire));
      return NULL;
    }
  self->pid = pid;
  self->terminal = TRUE;
  self->trace = g_canonicalize_filename (trace, NULL);
  self->store = coop_store_create (self->trace, meta, error);
  if (self->store == NULL)
    return NULL;
  coop_store_set_limits (self->store, COOP_TRACE_LIMIT, COOP_DETAIL_FULL);
  coop_wire_set_trace (self->wire, self->trace);
  self->thread = g_thread_new ("coop-collector", coop_session_collector, self);
  return g_steal_pointer (&self);
}

/* ---- signals, from any thread to the session's context ------------------------------------ */

typedef struct {
  GWeakRef session;
  CoopSessionSignal signal;
  char *text;
  gboolean flag;
} Post;

static gboolean
emit_post (gpointer user)
{
  Post *post = user;
  g_autoptr (CoopSession) self = g_weak_ref_get (&post->session);
  if (self == NULL)
    return G_SOURCE_REMOVE;
  switch (post->signal)
    {
    case COOP_SIGNAL_STATE:
      g_signal_emit (self, signals[STATE_CHANGED], 0);
      break;
    case COOP_SIGNAL_OUTPUT:
      g_signal_emit (self, signals[OUTPUT], 0, post->text, post->flag);
      break;
    case COOP_SIGNAL_MESSAGE:
      g_signal_emit (self, signals[MESSAGE], 0, post->text);
      break;
    }
  return G_SOURCE_REMOVE;
}

static void
free_post (gpointer user)
{
  Post *post = user;
  g_weak_ref_clear (&post->session);
  g_free (post->text);
  g_free (post);
}

void
coop_session_post (CoopSession *self, CoopSessionSignal signal, const char *text, gboolean flag)
{
  Post *post = g_new0 (Post, 1);
  g_weak_ref_init (&post->session, self);
  post->signal = signal;
  post->text = g_strdup (text);
  post->flag = flag;
  g_autoptr (GSource) source = g_idle_source_new ();
  g_source_set_priority (source, G_PRIORITY_DEFAULT);
  g_source_set_callback (source, emit_post, post, free_post);
  g_source_attach (source, self->context);
}

void
coop_session_say (CoopSession *self, const char *format, ...)
{
  va_list args;
  va_start (args, format);
  g_autofree char *text = g_strdup_vprintf (format, args);
  va_end (args);
  coop_session_post (self, COOP_SIGNAL_MESSAGE, text, FALSE);
}

void
coop_session_put_state (CoopSession *self, CoopSessionState state, int code)
{
  g_atomic_int_set (&self->exit, code);
  g_atomic_int_set (&self->state, (gint) state);
  coop_session_post (self, COOP_SIGNAL_STATE, NULL, FALSE);
}

/* ---- asked from any thread ---------------------------------------------------------------- */

CoopSessionState
coop_session_get_state (CoopSession *self)
{
  return (CoopSessionState) g_atomic_int_get (&self->state);
}

int
coop_session_get_exit (CoopSession *self)
{
  return g_atomic_int_get (&self->exit);
}

int
coop_session_get_pid (CoopSession *self)
{
  pid_t pid = 0;
  const char *id = self->child != NULL ? g_subprocess_get_identifier (self->child) : NULL;
  coop_wire_target (self->wire, &pid);
  return pid > 0 ? pid : id != NULL ? atoi (id) : self->pid;
}

const char *
coop_session_get_trace (CoopSession *self)
{
  return self->trace;
}

CoopFrame *
coop_session_frame (CoopSession *self)
{
  g_atomic_int_set (&self->frame_wanted, 1);
  pthread_mutex_lock (&self->frame_lock);
  CoopFrame *frame = self->frame != NULL ? coop_frame_ref (self->frame) : NULL;
  pthread_mutex_unlock (&self->frame_lock);
  return frame;
}

GArray *
coop_session_usage (CoopSession *self, guint n)
{
  pthread_mutex_lock (&self->lock);
  GArray *samples = coop_usage_log_get (self->usage, n);
  pthread_mutex_unlock (&self->lock);
  return samples;
}

static void
free_line (gpointer user)
{
  CoopEventLine *line = user;
  g_free (line->text);
  g_free (line);
}

GPtrArray *
coop_session_events (CoopSession *self, guint n)
{
  GPtrArray *lines = g_ptr_array_new_with_free_func (free_line);
  pthread_mutex_lock (&self->lock);
  guint64 there = MIN (self->n_recent, COOP_RECENT_EVENTS);
  for (guint64 i = self->n_recent - MIN (n, there); i < self->n_recent; i++)
    {
      const CoopEvent *ev = self->recent[i % COOP_RECENT_EVENTS];
      CoopEventLine *line = g_new0 (CoopEventLine, 1);
      line->seq = ev->seq;
      line->ts = ev->ts;
      line->kind = ev->kind;
      line->text = coop_model_describe (self->model, ev, ev->more != 0 ? ev + 1 : NULL);
      g_ptr_array_add (lines, line);
    }
  pthread_mutex_unlock (&self->lock);
  return lines;
}

void
coop_session_health (CoopSession *self, CoopSessionHealth *health)
{
  pthread_mutex_lock (&self->frame_lock);
  *health = self->health;
  pthread_mutex_unlock (&self->frame_lock);
}

void
coop_session_set_param (CoopSession *self, CoopParam param, CoopValue value, CoopSource source)
{
  coop_control_set (self->wire, param, value, source);
}

void
coop_session_set_policy (CoopSession *self, const CoopPolicy *policy, guint64 mask, CoopSource source)
{
  coop_control_set_many (self->wire, policy, mask, source);
}

void
coop_session_signal (CoopSession *self, int signum)
{
  if (self->child != NULL)
    {
      g_subprocess_send_signal (self->child, signum);   /* nothing once it has ended */
      return;
    }
  int pid = coop_session_get_pid (self);
  if (pid > 0 && coop_session_get_state (self) <= COOP_SESSION_RECORDING)
    kill (pid, signum);
}

void
coop_session_stop (CoopSession *self)
{
  static const int order[] = { SIGINT, SIGTERM, SIGKILL };
  coop_session_signal (self, order[MIN (self->stops, 2)]);
  self->stops++;
}
