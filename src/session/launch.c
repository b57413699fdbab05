/* SPDX-License-Identifier: Apache-2.0 */
/* Launch: the trace file first (two runs to one file: the second must not start), then the wire,
 * then the child with the wire's descriptor, its path and our folders in its environment. */
#include "config.h"

#include "session-private.h"

#include <fcntl.h>
#include <glib/gstdio.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

#define CHILD_FD 61   /* out of the way of shells and of what scripts open by number */

/* train.py -> train-20260131-142501.coop; a folder is kept out of it. */
static char *
default_trace (const CoopSession *self, const char *cwd)
{
  const char *name = self->line.script != NULL ? self->line.script
                     : self->line.module != NULL ? self->line.module : self->argv[0];
  g_autofree char *base = g_path_get_basename (name);
  g_autoptr (GDateTime) now = g_date_time_new_now_local ();
  g_autofree char *time = g_date_time_format (now, "%Y%m%d-%H%M%S");
  if (g_str_has_suffix (base, ".py"))
    base[strlen (base) - 3] = 0;
  for (int i = 1;; i++)
    {
      g_autofree char *file = i == 1 ? g_strdup_printf ("%s-%s.coop", base, time)
                                     : g_strdup_printf ("%s-%s-%d.coop", base, time, i);
      g_autofree char *path = g_canonicalize_filename (file, cwd);
      if (!g_file_test (path, G_FILE_TEST_EXISTS))
        return g_steal_pointer (&path);
    }
}

/* FALSE only where the run must not start: the file is another run's, or not a trace at all. A file
 * that cannot be written is said, and the run goes on untraced. */
static gboolean
open_trace (CoopSession *self, const CoopRunOptions *options, GError **error)
{
  g_autoptr (GError) problem = NULL;
  g_autofree char *command = coop_command_text (self->argv);
  g_autofree char *here = g_get_current_dir ();
  const char *cwd = options->cwd != NULL ? options->cwd : here;
  const char *meta[] = { "command", command, "cwd", cwd, "tool_version", COOP_VERSION, NULL };
  self->trace = options->trace != NULL ? g_canonicalize_filename (options->trace, NULL)
                                       : default_trace (self, options->cwd);
  self->store = coop_store_create (self->trace, meta, &problem);
  if (self->store != NULL)
    {
      coop_store_set_limits (self->store, options->trace_limit, options->trace_detail);
      return TRUE;
    }
  if (g_error_matches (problem, COOP_TRACE_ERROR, COOP_TRACE_ERROR_IO))
    {
      coop_session_say (self, "no trace is written: %s", problem->message);
      g_clear_pointer (&self->trace, g_free);
      return TRUE;
    }
  g_propagate_error (error, g_steal_pointer (&problem));
  return FALSE;
}

/* What differs from the defaults was asked for: the trace is to say so. */
static void
mark_flags (CoopWire *wire, const CoopPolicy *policy)
{
  CoopPolicy plain;
  guint64 mask = 0;
  coop_policy_init (&plain);
  for (int i = 0; i < COOP_N_PARAMS; i++)
    if (!coop_value_equal ((CoopParam) i, plain.v[i], policy->v[i]))
      mask |= (guint64) 1 << i;
  if (mask != 0)
    coop_control_set_many (wire, policy, mask, COOP_SOURCE_FLAG);
}

static gboolean
make_wire (CoopSession *self, const CoopRunOptions *options, GError **error)
{
  CoopWireError wire = coop_wire_create (options->ring_bytes, &options->policy, &self->wire);
  if (wire != COOP_WIRE_OK)
    {
      g_set_error (error, COOP_SESSION_ERROR, COOP_SESSION_ERROR_SYSTEM, "cannot make the ring: %s",
                   coop_wire_strerror (wire));
      return FALSE;
    }
  if (self->trace != NULL)
    coop_wire_set_trace (self->wire, self->trace);
  mark_flags (self->wire, &options->policy);
  return TRUE;
}

/* In the child, before exec: the signals that the tool blocks or ignores are the tool's business. */
static void
unblock_signals (gpointer user)
{
  sigset_t none;
  sigemptyset (&none);
  signal (SIGXFSZ, SIG_DFL);
  sigprocmask (SIG_SETMASK, &none, NULL);
}

static char **
child_environ (const CoopRunOptions *options, const char *python_dir)
{
  char **env = g_get_environ ();
  for (char **e = options->envp; e != NULL && *e != NULL; e++)
    {
      g_auto (GStrv) pair = g_strsplit (*e, "=", 2);
      if (pair[0] != NULL && pair[1] != NULL)
        env = g_environ_setenv (env, pair[0], pair[1], TRUE);
    }
  if (python_dir != NULL)
    env = coop_python_environ (env, python_dir);
  if (!options->terminal && g_environ_getenv (env, "PYTHONUNBUFFERED") == NULL)
    env = g_environ_setenv (env, "PYTHONUNBUFFERED", "1", TRUE);
  return env;
}

/* Without the package the script would run without a budget: worse than not at all. */
static gboolean
check_package (const CoopPythonLine *line, const char *python_dir, GError **error)
{
  if (python_dir != NULL || !line->python)
    return TRUE;
  g_set_error (error, COOP_SESSION_ERROR, COOP_SESSION_ERROR_SYSTEM,
               "Coopscope's Python package is not installed (looked beside this program and in %s)",
               COOP_PYTHON_DIR);
  return FALSE;
}

static char **
add_wire (CoopSession *self, char **env)
{
  g_autofree char *fd = g_strdup_printf ("%d", CHILD_FD);
  g_autofree char *path = g_strdup_printf ("/proc/%d/fd/%d", (int) getpid (),
                                           coop_wire_fd (self->wire));
  env = g_environ_setenv (env, COOP_ENV_FD, fd, TRUE);
  return g_environ_setenv (env, COOP_ENV_PATH, path, TRUE);
}

static gboolean
spawn (CoopSession *self, const CoopRunOptions *options, char **env, GError **error)
{
  GSubprocessFlags flags = options->terminal ? G_SUBPROCESS_FLAGS_STDIN_INHERIT
                                             : G_SUBPROCESS_FLAGS_NONE;
  g_autoptr (GSubprocessLauncher) launcher = g_subprocess_launcher_new (flags);
  int fd = fcntl (coop_wire_fd (self->wire), F_DUPFD_CLOEXEC, 0);
  if (fd < 0)
    {
      g_set_error_literal (error, COOP_SESSION_ERROR, COOP_SESSION_ERROR_SYSTEM,
                           "cannot duplicate the ring's descriptor");
      return FALSE;
    }
  g_subprocess_launcher_take_fd (launcher, fd, CHILD_FD);
  g_subprocess_launcher_set_environ (launcher, env);
  g_subprocess_launcher_set_child_setup (launcher, unblock_signals, NULL, NULL);
  if (options->cwd != NULL)
    g_subprocess_launcher_set_cwd (launcher, options->cwd);
  if (!options->terminal && !coop_session_capture (self, launcher, error))
    return FALSE;
  self->child = g_subprocess_launcher_spawnv (launcher, (const char *const *) options->argv, error);
  return self->child != NULL;
}

/* Said, not refused: the machine may have swap, and a budget is a limit, not a wish. */
static void
check_budget (CoopSession *self, const CoopPolicy *policy)
{
  guint64 budget = (guint64) policy->v[COOP_PARAM_BUDGET].i, memory = coop_host_memory ();
  if (memory == 0 || budget <= memory)
    return;
  char want[32], have[32];
  coop_size_format (budget, want, sizeof want);
  coop_size_format (memory, have, sizeof have);
  coop_session_say (self, "the budget of %s is more than the memory there is (%s)", want, have);
}

/* Nothing ran: no file is left of it. */
static void
drop_trace (CoopSession *self)
{
  if (self->store == NULL)
    return;
  coop_store_close (g_steal_pointer (&self->store), COOP_RUN_INTERRUPTED, 0, NULL);
  g_unlink (self->trace);
}

gboolean
coop_session_check (const CoopRunOptions *options, GError **error)
{
  g_autofree char *python_dir = coop_python_dir ();
  g_auto (GStrv) env = child_environ (options, python_dir);
  CoopPythonLine line;
  coop_python_line_parse (options->argv, &line);
  return coop_preflight (options, env, error) && check_package (&line, python_dir, error);
}

gboolean
coop_session_launch (CoopSession *self, const CoopRunOptions *options, GError **error)
{
  g_autofree char *python_dir = coop_python_dir ();
  g_auto (GStrv) env = child_environ (options, python_dir);
  if ((!options->checked && !coop_session_check (options, error)) || !open_trace (self, options, error))
    return FALSE;
  check_budget (self, &options->policy);
  if (make_wire (self, options, error))
    {
      env = add_wire (self, env);
      if (spawn (self, options, env, error))
        return TRUE;
    }
  drop_trace (self);
  return FALSE;
}
