/* SPDX-License-Identifier: Apache-2.0 */
/* Attach: a run that another tool records is followed through its trace; policy goes to the control
 * page of its wire. The wire is found by the process's environment or by its open descriptors. */
#include "session-private.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#define POLL_US 50000
#define PAST_SAMPLES 1024
#define GRACE 20          /* polls of a file whose writer is gone */

static int
open_wire_path (const char *path)
{
  return open (path, O_RDWR | O_CLOEXEC);
}

/* Value of a variable in /proc/<pid>/environ. */
static char *
process_environ (int pid, const char *name)
{
  g_autofree char *path = g_strdup_printf ("/proc/%d/environ", pid), *text = NULL;
  gsize n = 0, key = strlen (name);
  if (!g_file_get_contents (path, &text, &n, NULL))
    return NULL;
  for (const char *p = text; p < text + n; p += strlen (p) + 1)
    if (strncmp (p, name, key) == 0 && p[key] == '=')
      return g_strdup (p + key + 1);
  return NULL;
}

static int
wire_by_descriptor (int pid)
{
  g_autofree char *folder = g_strdup_printf ("/proc/%d/fd", pid);
  g_autoptr (GDir) dir = g_dir_open (folder, 0, NULL);
  const char *name = NULL;
  while (dir != NULL && (name = g_dir_read_name (dir)) != NULL)
    {
      g_autofree char *path = g_build_filename (folder, name, NULL);
      g_autofree char *link = g_file_read_link (path, NULL);
      if (link == NULL || !g_str_has_prefix (link, "/memfd:coopscope "))
        continue;
      int fd = open_wire_path (path);
      if (fd >= 0)
        return fd;
    }
  return -1;
}

int
coop_find_wire (int pid, GError **error)
{
  g_autofree char *proc = g_strdup_printf ("/proc/%d", pid);
  if (pid <= 0 || !g_file_test (proc, G_FILE_TEST_IS_DIR))
    {
      g_set_error (error, COOP_SESSION_ERROR, COOP_SESSION_ERROR_PROCESS, "no such process: %d", pid);
      return -1;
    }
  g_autofree char *fds = g_strdup_printf ("/proc/%d/fd", pid);
  if (access (fds, R_OK | X_OK) != 0)
    {
      g_set_error (error, COOP_SESSION_ERROR, COOP_SESSION_ERROR_PROCESS,
                   "process %d belongs to another user", pid);
      return -1;
    }
  int fd = wire_by_descriptor (pid);
  g_autofree char *path = fd < 0 ? process_environ (pid, COOP_ENV_PATH) : NULL;
  if (path != NULL)
    fd = open_wire_path (path);
  if (fd < 0)
    g_set_error (error, COOP_SESSION_ERROR, COOP_SESSION_ERROR_PROCESS,
                 "process %d does not run under Coopscope", pid);
  return fd;
}

CoopSession *
coop_session_attach (int pid, GError **error)
{
  g_autoptr (CoopSession) self = g_object_new (COOP_TYPE_SESSION, NULL);
  char trace[1024];
  pid_t target = 0;
  int fd = coop_find_wire (pid, error);
  if (fd < 0)
    return NULL;
  CoopWireError wire = coop_wire_open (fd, &self->wire);
  close (fd);
  if (wire != COOP_WIRE_OK)
    {
      g_set_error (error, COOP_SESSION_ERROR, COOP_SESSION_ERROR_PROCESS, "process %d: %s", pid,
                   coop_wire_strerror (wire));
      return NULL;
    }
  coop_wire_trace (self->wire, trace, sizeof trace);
  if (trace[0] == 0)
    {
      g_set_error (error, COOP_SESSION_ERROR, COOP_SESSION_ERROR_PROCESS,
                   "process %d runs without a trace, so it cannot be followed", pid);
      return NULL;
    }
  coop_wire_target (self->wire, &target);
  self->pid = target > 0 ? target : pid;
  self->attached = TRUE;
  self->trace = g_strdup (trace);
  self->reader = coop_reader_open (trace, error);
  if (self->reader == NULL)
    return NULL;
  self->thread = g_thread_new ("coop-follower", coop_session_follower, self);
  return g_steal_pointer (&self);
}

static gboolean
take (gpointer user, const CoopEvent *ev, const void *body)
{
  CoopSession *self = user;
  coop_session_apply (self, ev, body);
  return !g_atomic_int_get (&self->quit);
}

static gboolean
take_past (gpointer user, const CoopEvent *ev, const void *body)
{
  coop_session_remember (user, ev, body);
  return TRUE;
}

/* The chart and the list of events begin with what was before. */
static void
look_back (CoopSession *self, const CoopModelTotals *totals)
{
  g_autoptr (GArray) past = coop_reader_usage (self->reader, 0, totals->ts, PAST_SAMPLES, NULL);
  for (guint i = 0; past != NULL && i < past->len; i++)
    {
      const CoopUsage *u = &g_array_index (past, CoopUsage, i);
      CoopSample s = { .ts = u->bucket_ts, .used_min = u->used_min, .used_max = u->used_max,
                       .pinned_max = u->pinned_max, .largest_min = u->largest_min, .budget = u->budget,
                       .evictions = u->evictions, .handovers = u->handovers };
      coop_usage_log_seed (self->usage, &s, 1);
    }
  self->usage->evictions = totals->evictions;
  self->usage->handovers = totals->handovers;
  guint64 from = totals->seq > COOP_RECENT_EVENTS ? totals->seq - COOP_RECENT_EVENTS : 0;
  coop_reader_events (self->reader, from, take_past, self, NULL);
}

/* Begins with the layout as it is now, not with the events since the start. */
static void
catch_up (CoopSession *self)
{
  CoopModel *model = coop_reader_model_at (self->reader, G_MAXUINT64, NULL);
  if (model == NULL || coop_model_totals (model)->seq == G_MAXUINT64)
    {
      coop_model_free (model);
      return;
    }
  pthread_mutex_lock (&self->lock);
  coop_model_free (self->model);
  self->model = model;
  self->next_seq = coop_model_totals (model)->seq + 1;
  self->events = self->next_seq;
  look_back (self, coop_model_totals (model));
  pthread_mutex_unlock (&self->lock);
}

/* What the file says of its run. A writer that still closes it (indexes of a long run take a while)
 * counts as RUNNING; one that is gone without a word as LOST. */
static CoopSessionState
look_at_end (CoopSession *self, int *code)
{
  CoopTraceInfo info = { 0 };
  CoopSessionState state = COOP_SESSION_LOST;
  if (!coop_reader_info (self->reader, &info, NULL))
    return COOP_SESSION_LOST;
  switch (info.state)
    {
    case COOP_RUN_RUNNING:
      state = COOP_SESSION_RECORDING;
      break;
    case COOP_RUN_ENDED:
      state = COOP_SESSION_ENDED;
      break;
    case COOP_RUN_KILLED:
      state = COOP_SESSION_KILLED;
      break;
    case COOP_RUN_INTERRUPTED:
      break;
    }
  *code = state == COOP_SESSION_LOST ? -1 : info.exit_code;
  coop_trace_info_clear (&info);
  return state;
}

/* TRUE when there is nothing more to follow. */
static gboolean
at_end (CoopSession *self, int *polls_lost, CoopSessionState *state, int *code)
{
  *state = look_at_end (self, code);
  if (*state == COOP_SESSION_LOST)
    return ++*polls_lost > GRACE;
  *polls_lost = 0;
  return *state != COOP_SESSION_RECORDING;
}

gpointer
coop_session_follower (gpointer session)
{
  CoopSession *self = session;
  CoopSessionState state = COOP_SESSION_LOST;
  int code = -1, polls_lost = 0;
  catch_up (self);
  if (self->events > 0)
    coop_session_put_state (self, COOP_SESSION_RECORDING, -1);
  self->hello = self->events > 0;
  coop_session_publish (self, TRUE);
  while (!g_atomic_int_get (&self->quit))
    {
      g_autoptr (GError) error = NULL;
      gboolean gone = !coop_process_alive (self->pid)
                      || coop_wire_target (self->wire, NULL) == COOP_TARGET_ENDED;
      gint64 n = coop_reader_events (self->reader, self->next_seq, take, self, &error);
      coop_session_publish (self, FALSE);
      coop_session_measure (self, TRUE);
      if (n <= 0 && gone && at_end (self, &polls_lost, &state, &code))
        break;
      g_usleep (POLL_US);
    }
  coop_reader_events (self->reader, self->next_seq, take, self, NULL);   /* written since we looked */
  if (state == COOP_SESSION_RECORDING)
    state = COOP_SESSION_LOST;   /* we let go of it */
  coop_session_publish (self, TRUE);
  coop_session_put_state (self, state, code);
  return NULL;
}
