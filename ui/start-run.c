/* SPDX-License-Identifier: Apache-2.0 */
/* Start run: see the header. */
#include "config.h"

#include "start-run.h"

void
coop_run_options_copy (CoopRunOptions *to, const CoopRunOptions *from)
{
  *to = *from;
  to->argv = g_strdupv (from->argv);
  to->envp = g_strdupv (from->envp);
  to->cwd = g_strdup (from->cwd);
  to->trace = g_strdup (from->trace);
}

static void
options_free (gpointer data)
{
  coop_run_options_clear (data);
  g_free (data);
}

static void
check (GTask *task, gpointer source, gpointer data, GCancellable *cancellable)
{
  GError *error = NULL;
  if (coop_session_check (data, &error))
    g_task_return_boolean (task, TRUE);
  else
    g_task_return_error (task, error);
}

void
coop_start_run (const CoopRunOptions *options, GCancellable *cancellable, GAsyncReadyCallback callback,
                gpointer user_data)
{
  g_autoptr (GTask) task = g_task_new (NULL, cancellable, callback, user_data);
  CoopRunOptions *copy = g_new (CoopRunOptions, 1);
  coop_run_options_copy (copy, options);
  g_task_set_task_data (task, copy, options_free);
  g_task_run_in_thread (task, check);
}

CoopSession *
coop_start_run_finish (GAsyncResult *result, GError **error)
{
  CoopRunOptions *options = g_task_get_task_data (G_TASK (result));
  if (!g_task_propagate_boolean (G_TASK (result), error))
    return NULL;
  options->checked = TRUE;
  return coop_session_start (options, error);
}
