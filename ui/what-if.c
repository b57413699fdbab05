/* SPDX-License-Identifier: Apache-2.0 */
/* What if: see the header. */
#include "config.h"

#include "what-if.h"

#include <glib/gstdio.h>
#include <unistd.h>

#include "replay/play-record.h"
#include "trace/store.h"

#define MOST 20.0 /* gives up at so many times the cost */

struct _CoopWhatIf
{
  GObject parent_instance;
  char *path;
  GThread *thread;

  GMutex mutex; /* guards all below, up to the main loop's own */
  GCond cond;
  gboolean quit;
  guint wish_serial, done_serial;
  CoopPolicy wish;
  gboolean with_trace;
  CoopWhatIfSide before, after;
  char *error, *trace;
  GArray *steps, *trace_steps; /* guint64: events at which operators of the program begin */
  guint idle;

  /* what the main loop shows, taken over in `look` */
  CoopWhatIfSide shown_before, shown_after;
  char *shown_error, *shown_trace;
  GArray *shown_steps, *shown_trace_steps;
};

G_DEFINE_FINAL_TYPE (CoopWhatIf, coop_what_if, G_TYPE_OBJECT)

static guint changed_signal;

/* ---- the thread ---- */

typedef struct {
  CoopWhatIf *self;
  guint serial;
} Run;

static gboolean
keep_on (gpointer user, double part)
{
  Run *run = user;
  g_mutex_lock (&run->self->mutex);
  gboolean on = !run->self->quit && run->self->wish_serial == run->serial;
  g_mutex_unlock (&run->self->mutex);
  return on;
}

static gboolean
take_step (gpointer user, int n, const char *const *names, const char *const *values, const int *types)
{
  guint64 event = values[0] ? g_ascii_strtoull (values[0], NULL, 10) : 0;
  g_array_append_val ((GArray *) user, event);
  return TRUE;
}

static GArray *
read_steps (const char *path)
{
  GArray *steps = g_array_new (FALSE, FALSE, sizeof (guint64));
  CoopReader *reader = coop_reader_open (path, NULL);
  if (reader)
    coop_reader_query (reader, "SELECT begin_event FROM op WHERE replay_of IS NULL ORDER BY begin_event", 60, take_step,
                       steps, NULL);
  g_clear_pointer (&reader, coop_reader_free);
  return steps;
}

static gboolean look (gpointer data);

/* Under the mutex. */
static void
tell (CoopWhatIf *self)
{
  if (self->idle == 0 && !self->quit)
    self->idle = g_idle_add (look, self);
}

static void
init_options (CoopPlayOptions *options, const CoopProgram *program, Run *run)
{
  coop_play_options_init (options);
  if (program->has_policy)
    options->policy = program->policy;
  else
    coop_play_copy_rate (program, &options->policy);
  options->most = MOST;
  options->keep_on = keep_on;
  options->user = run;
}

static CoopProgram *
load (CoopWhatIf *self)
{
  g_autoptr (GError) error = NULL;
  CoopProgram *program = coop_program_load (self->path, &error);
  CoopPlayOptions options;
  CoopPlayOutcome outcome = { 0 };
  Run run = { self, 0 };
  if (program)
    {
      init_options (&options, program, &run);
      options.keep_on = NULL;
      options.as_recorded = TRUE;
      coop_play (program, &options, &outcome);
    }
  GArray *steps = program ? read_steps (self->path) : NULL;
  g_mutex_lock (&self->mutex);
  self->error = error ? g_strdup (error->message) : NULL;
  self->steps = steps;
  if (program)
    self->before = (CoopWhatIfSide) { TRUE, options.policy, outcome };
  tell (self);
  g_mutex_unlock (&self->mutex);
  return program;
}

/* Numbers first, then the same once more into a file. */
static void
play (CoopWhatIf *self, const CoopProgram *program, const CoopPolicy *policy, gboolean with_trace, guint serial)
{
  CoopPlayOptions options;
  CoopPlayOutcome outcome = { 0 };
  Run run = { self, serial };
  init_options (&options, program, &run);
  options.policy = *policy;
  options.as_recorded = FALSE;
  coop_play (program, &options, &outcome);
  if (outcome.result == COOP_PLAY_STOPPED)
    return;
  g_mutex_lock (&self->mutex);
  self->after = (CoopWhatIfSide) { TRUE, *policy, outcome };
  if (!with_trace)
    self->done_serial = serial;
  tell (self);
  g_mutex_unlock (&self->mutex);
  if (!with_trace || !keep_on (&run, 0))
    return;
  char *path = g_strdup_printf ("%s/coopscope-what-if-%d-%u-%u.coop", g_get_tmp_dir (), (int) getpid (),
                                GPOINTER_TO_UINT (self) & 0xffff, serial);
  gboolean ok = coop_play_record (program, &options, path, &outcome, NULL) && outcome.result != COOP_PLAY_STOPPED;
  GArray *steps = ok ? read_steps (path) : NULL;
  g_mutex_lock (&self->mutex);
  if (ok)
    {
      g_free (self->trace);
      self->trace = g_steal_pointer (&path);
      g_clear_pointer (&self->trace_steps, g_array_unref);
      self->trace_steps = steps;
    }
  self->done_serial = serial;
  tell (self);
  g_mutex_unlock (&self->mutex);
  if (path)
    g_unlink (path);
  g_free (path);
}

static gpointer
what_if_thread (gpointer data)
{
  CoopWhatIf *self = data;
  CoopProgram *program = load (self);
  guint serial = 0;
  g_mutex_lock (&self->mutex);
  while (!self->quit)
    if (!program || self->wish_serial == serial)
      g_cond_wait (&self->cond, &self->mutex);
    else
      {
        CoopPolicy policy = self->wish;
        gboolean with_trace = self->with_trace;
        serial = self->wish_serial;
        g_mutex_unlock (&self->mutex);
        play (self, program, &policy, with_trace, serial);
        g_mutex_lock (&self->mutex);
      }
  g_mutex_unlock (&self->mutex);
  g_clear_pointer (&program, coop_program_free);
  return NULL;
}

/* ---- the main loop ---- */

static void
take_over (GArray **shown, GArray *array)
{
  if (*shown == array)
    return;
  g_clear_pointer (shown, g_array_unref);
  *shown = array ? g_array_ref (array) : NULL;
}

static gboolean
look (gpointer data)
{
  CoopWhatIf *self = data;
  g_mutex_lock (&self->mutex);
  self->idle = 0;
  self->shown_before = self->before;
  self->shown_after = self->after;
  g_free (self->shown_error);
  self->shown_error = g_strdup (self->error);
  if (g_strcmp0 (self->shown_trace, self->trace) != 0)
    {
      if (self->shown_trace)
        g_unlink (self->shown_trace);
      g_free (self->shown_trace);
      self->shown_trace = g_strdup (self->trace);
    }
  take_over (&self->shown_steps, self->steps);
  take_over (&self->shown_trace_steps, self->trace_steps);
  g_mutex_unlock (&self->mutex);
  g_signal_emit (self, changed_signal, 0);
  return G_SOURCE_REMOVE;
}

static void
coop_what_if_finalize (GObject *object)
{
  CoopWhatIf *self = COOP_WHAT_IF (object);
  g_mutex_lock (&self->mutex);
  self->quit = TRUE;
  g_cond_signal (&self->cond);
  g_mutex_unlock (&self->mutex);
  g_thread_join (self->thread);
  g_clear_handle_id (&self->idle, g_source_remove);
  if (self->trace)
    g_unlink (self->trace);
  if (self->shown_trace)
    g_unlink (self->shown_trace);
  g_clear_pointer (&self->steps, g_array_unref);
  g_clear_pointer (&self->trace_steps, g_array_unref);
  g_clear_pointer (&self->shown_steps, g_array_unref);
  g_clear_pointer (&self->shown_trace_steps, g_array_unref);
  g_free (self->trace);
  g_free (self->shown_trace);
  g_free (self->error);
  g_free (self->shown_error);
  g_free (self->path);
  g_mutex_clear (&self->mutex);
  g_cond_clear (&self->cond);
  G_OBJECT_CLASS (coop_what_if_parent_class)->finalize (object);
}

static void
coop_what_if_class_init (CoopWhatIfClass *class)
{
  G_OBJECT_CLASS (class)->finalize = coop_what_if_finalize;
  changed_signal = g_signal_new ("changed", G_TYPE_FROM_CLASS (class), G_SIGNAL_RUN_LAST, 0, NULL, NULL, NULL,
                                 G_TYPE_NONE, 0);
}

static void
coop_what_if_init (CoopWhatIf *self)
{
  g_mutex_init (&self->mutex);
  g_cond_init (&self->cond);
}

CoopWhatIf *
coop_what_if_new (const char *path)
{
  CoopWhatIf *self = g_object_new (COOP_TYPE_WHAT_IF, NULL);
  self->path = g_strdup (path);
  self->thread = g_thread_new ("coop-what-if", what_if_thread, self);
  return self;
}

void
coop_what_if_ask (CoopWhatIf *self, const CoopPolicy *policy, gboolean with_trace)
{
  g_mutex_lock (&self->mutex);
  self->wish = *policy;
  self->with_trace = with_trace;
  self->wish_serial++;
  g_cond_signal (&self->cond);
  g_mutex_unlock (&self->mutex);
}

gboolean
coop_what_if_is_busy (CoopWhatIf *self)
{
  g_mutex_lock (&self->mutex);
  gboolean busy = !self->error && (!self->before.known || self->wish_serial != self->done_serial);
  g_mutex_unlock (&self->mutex);
  return busy;
}

const CoopWhatIfSide *
coop_what_if_get_before (CoopWhatIf *self)
{
  return &self->shown_before;
}

const CoopWhatIfSide *
coop_what_if_get_after (CoopWhatIf *self)
{
  return &self->shown_after;
}

const char *
coop_what_if_get_error (CoopWhatIf *self)
{
  return self->shown_error;
}

const char *
coop_what_if_get_trace (CoopWhatIf *self)
{
  return self->shown_trace;
}

/* Index of the last step at or before an event; -1: none. */
static long
step_at (const GArray *steps, guint64 event)
{
  guint low = 0, high = steps->len;
  while (low < high)
    {
      guint middle = low + (high - low) / 2;
      if (g_array_index (steps, guint64, middle) <= event)
        low = middle + 1;
      else
        high = middle;
    }
  return (long) low - 1;
}

guint64
coop_what_if_match (CoopWhatIf *self, guint64 event)
{
  const GArray *from = self->shown_steps, *to = self->shown_trace_steps;
  if (!from || !to || to->len == 0)
    return event;
  long step = step_at (from, event);
  if (step < 0)
    return 0;
  guint64 past = event - g_array_index (from, guint64, step);
  if (step + 1 >= (long) to->len)
    return step + 1 >= (long) from->len ? g_array_index (to, guint64, to->len - 1) + past : G_MAXUINT64;
  guint64 begin = g_array_index (to, guint64, step), next = g_array_index (to, guint64, step + 1);
  return MIN (begin + past, MAX (begin, next - 1));
}
