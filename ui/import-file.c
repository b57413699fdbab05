/* SPDX-License-Identifier: Apache-2.0 */
/* Import file: see the header. Each file has a folder of its own in the cache, so that the trace can have
 * the file's name; the same file again takes the place of its older trace.
 */
#include "config.h"

#include "import-file.h"

#include <errno.h>
#include <glib/gi18n.h>
#include <glib/gstdio.h>
#include <string.h>

#include "replay/play-record.h"
#include "trace/snapshot.h"

static const char *const snapshots[] = { ".pickle", ".pkl", NULL };
static const char *const programs[] = { ".jsonl.gz", ".jsonl", NULL };

static const char *
ending_of (const char *path, const char *const *endings)
{
  for (; *endings; endings++)
    if (g_str_has_suffix (path, *endings))
      return *endings;
  return NULL;
}

gboolean
coop_import_is_foreign (const char *path)
{
  return ending_of (path, snapshots) || ending_of (path, programs) || coop_snapshot_is_pickle (path);
}

/* "unet.coop" for "unet.jsonl.gz" */
static char *
place_for (const char *path, GError **error)
{
  const char *ending = ending_of (path, snapshots);
  g_autofree char *name = g_path_get_basename (path), *key = g_compute_checksum_for_string (G_CHECKSUM_SHA1, path, -1);
  g_autofree char *folder = g_build_filename (g_get_user_cache_dir (), "coopscope", "imported", key, NULL);
  ending = ending ? ending : ending_of (path, programs);
  if (ending)
    name[strlen (name) - strlen (ending)] = '\0';
  g_autofree char *trace = g_strconcat (*name ? name : "trace", ".coop", NULL);
  if (g_mkdir_with_parents (folder, 0700) == 0)
    return g_build_filename (folder, trace, NULL);
  g_set_error (error, G_IO_ERROR, g_io_error_from_errno (errno), "%s: %s", folder, g_strerror (errno));
  return NULL;
}

static gboolean
go_on (gpointer cancellable, double part)
{
  return !g_cancellable_is_cancelled (cancellable);
}

static guint64
peak_of (const char *path)
{
  CoopTraceInfo info = { 0 };
  CoopReader *reader = coop_reader_open (path, NULL);
  guint64 peak = reader && coop_reader_info (reader, &info, NULL) ? info.peak : 0;
  coop_trace_info_clear (&info);
  g_clear_pointer (&reader, coop_reader_free);
  return peak;
}

static GPtrArray *
import_snapshot (const char *path, const char *out, GCancellable *cancellable, GError **error)
{
  CoopSnapshotJob job = { .path = path, .out = out, .replace = TRUE, .go_on = go_on, .user = cancellable };
  GPtrArray *traces = g_ptr_array_new_with_free_func (g_free);
  guint64 most = 0;
  if (!coop_snapshot_import (&job, error))
    g_clear_pointer (&traces, g_ptr_array_unref);
  for (guint i = 0; traces && i < job.traces->len; i++)
    {
      guint64 peak = peak_of (job.traces->pdata[i]);
      g_ptr_array_insert (traces, peak > most ? 0 : -1, g_strdup (job.traces->pdata[i]));
      most = MAX (most, peak);
    }
  coop_snapshot_clear (&job);
  return traces;
}

static GPtrArray *
import_program (const char *path, const char *out, GCancellable *cancellable, GError **error)
{
  g_autoptr (CoopProgram) program = coop_program_load (path, error);
  CoopPlayOptions options;
  CoopPlayOutcome outcome = { 0 };
  if (!program)
    return NULL;
  coop_play_options_init (&options);
  if (program->has_policy)
    options.policy = program->policy;
  else
    coop_play_copy_rate (program, &options.policy);
  options.as_recorded = program->has_policy;
  options.keep_on = go_on;
  options.user = cancellable;
  if (!coop_play_record (program, &options, out, &outcome, error))
    return NULL;
  GPtrArray *traces = g_ptr_array_new_with_free_func (g_free);
  g_ptr_array_add (traces, g_strdup (out));
  return traces;
}

static void
import_in_thread (GTask *task, gpointer source, gpointer path, GCancellable *cancellable)
{
  GError *error = NULL;
  g_autofree char *out = place_for (path, &error);
  gboolean program = !coop_snapshot_is_pickle (path) && ending_of (path, programs);
  GPtrArray *traces = NULL;
  if (out)
    traces = program ? import_program (path, out, cancellable, &error) : import_snapshot (path, out, cancellable, &error);
  if (traces)
    g_task_return_pointer (task, traces, (GDestroyNotify) g_ptr_array_unref);
  else
    g_task_return_error (task, error);
}

void
coop_import_file (const char *path, GCancellable *cancellable, GAsyncReadyCallback callback, gpointer user_data)
{
  g_autoptr (GTask) task = g_task_new (NULL, cancellable, callback, user_data);
  g_task_set_task_data (task, g_strdup (path), g_free);
  g_task_run_in_thread (task, import_in_thread);
}

GPtrArray *
coop_import_file_finish (GAsyncResult *result, GError **error)
{
  return g_task_propagate_pointer (G_TASK (result), error);
}
