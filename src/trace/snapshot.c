/* SPDX-License-Identifier: Apache-2.0 */
/* Snapshot: the job. Each trace is written beside its place and gets its name when it is whole. */
#include "trace/snapshot-private.h"
#include "trace/reader-private.h"

#include <errno.h>
#include <fcntl.h>
#include <glib/gstdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "trace/store-private.h"

typedef struct {
  CoopSnapshotJob *job;
  int fd;
  guint64 bytes; /* of the file; 0: unknown */
} Source;

static gssize
read_file (gpointer user, void *buffer, gsize n)
{
  gssize got;
  do
    got = read (((Source *) user)->fd, buffer, n);
  while (got < 0 && errno == EINTR);
  return got;
}

static gboolean
go_on (gpointer user, guint64 offset)
{
  const Source *source = user;
  double part = source->bytes > 0 ? 0.5 * MIN (1.0, (double) offset / (double) source->bytes) : 0;
  return source->job->go_on == NULL || source->job->go_on (source->job->user, part);
}

gboolean
coop_snapshot_is_pickle (const char *path)
{
  guint8 head[2] = { 0, 0 };
  struct stat st;
  int fd = open (path, O_RDONLY | O_CLOEXEC | O_NONBLOCK); /* a pipe is not waited for */
  gssize n = fd >= 0 && fstat (fd, &st) == 0 && S_ISREG (st.st_mode) ? read (fd, head, sizeof head) : 0;
  if (fd >= 0)
    close (fd);
  return n == 2 && head[0] == 0x80 && head[1] <= 5;
}

static CoopSnap *
read_snapshot (CoopSnapshotJob *job, GError **error)
{
  struct stat st;
  Source from = { job, open (job->path, O_RDONLY | O_CLOEXEC), 0 };
  CoopSnap *snap = coop_snap_new ();
  CoopPickleSource source = { .read = read_file, .read_user = &from, .seal_key = "frames", .seal = coop_snap_seal,
                              .seal_user = snap, .go_on = go_on, .go_on_user = &from };
  CoopPickle *pickle = NULL;
  if (from.fd < 0)
    g_set_error (error, COOP_TRACE_ERROR, COOP_TRACE_ERROR_IO, "%s", g_strerror (errno));
  else
    {
      if (fstat (from.fd, &st) == 0 && S_ISREG (st.st_mode))
        from.bytes = (guint64) st.st_size;
      pickle = coop_pickle_read (&source, error);
      close (from.fd);
    }
  gboolean ok = pickle != NULL && coop_snap_fill (snap, pickle, error);
  coop_pickle_free (pickle);
  if (ok)
    return snap;
  coop_snap_free (snap);
  return NULL;
}

/* ---- names ---- */

static char *
name_for (const CoopSnapshotJob *job, const CoopSnap *snap, const CoopSnapDevice *device)
{
  if (snap->devices->len == 1)
    return g_strdup (job->out);
  g_autofree char *stem = g_str_has_suffix (job->out, ".coop") ? g_strndup (job->out, strlen (job->out) - 5)
                                                               : g_strdup (job->out);
  return device->device < 0 ? g_strconcat (stem, "-host.coop", NULL)
                            : g_strdup_printf ("%s-cuda%d.coop", stem, device->device);
}

/* A finished trace may go if that was asked for; nothing else ever. */
static gboolean
may_write (const CoopSnapshotJob *job, const char *name, GError **error)
{
  GStatBuf st;
  if (g_lstat (name, &st) != 0)
    return TRUE;
  if (!job->replace)
    {
      g_set_error (error, COOP_TRACE_ERROR, COOP_TRACE_ERROR_EXISTS, "%s is there already; --force replaces it", name);
      return FALSE;
    }
  if (st.st_size > 0 && !coop_trace_identify (name, NULL))
    {
      g_set_error (error, COOP_TRACE_ERROR, COOP_TRACE_ERROR_EXISTS, "%s is no trace, and is left alone", name);
      return FALSE;
    }
  if (coop_store_locked (name))
    {
      g_set_error (error, COOP_TRACE_ERROR, COOP_TRACE_ERROR_BUSY, "%s: another run writes it", name);
      return FALSE;
    }
  return TRUE;
}

static gboolean
write_one (CoopSnapshotJob *job, const CoopSnap *snap, const CoopSnapDevice *device, const char *name, GError **error)
{
  static const char *const leftovers[] = { "-wal", "-shm", "-journal", "" };
  g_autofree char *part = g_strconcat (name, ".part", NULL);
  g_remove (part);
  if (coop_snap_write (job, snap, device, part, error))
    {
      if (g_rename (part, name) == 0)
        return TRUE;
      g_set_error (error, COOP_TRACE_ERROR, COOP_TRACE_ERROR_IO, "%s: %s", name, g_strerror (errno));
    }
  for (guint i = 0; i < G_N_ELEMENTS (leftovers); i++)
    {
      g_autofree char *file = g_strconcat (part, leftovers[i], NULL);
      g_remove (file);
    }
  return FALSE;
}

/* ---- what is not known ---- */

static void
note_unknown (CoopSnapshotJob *job, GHashTable *table, const char *what)
{
  guint n = g_hash_table_size (table), named = 0;
  if (n == 0)
    return;
  g_autoptr (GList) keys = g_list_sort (g_hash_table_get_keys (table), (GCompareFunc) strcmp);
  GString *text = g_string_new (NULL);
  g_string_printf (text, "%u unknown %s%s left out:", n, what, n == 1 ? "" : "s");
  for (GList *key = keys; key != NULL && named < 8; key = key->next, named++)
    {
      guint times = GPOINTER_TO_UINT (g_hash_table_lookup (table, key->data));
      g_string_append_printf (text, "%s %s (%u %s)", named > 0 ? "," : "", (char *) key->data, times, times == 1 ? "time" : "times");
    }
  if (n > named)
    g_string_append (text, ", ...");
  g_ptr_array_add (job->notes, g_string_free (text, FALSE));
}

static void
note_all (CoopSnapshotJob *job, const CoopSnap *snap)
{
  note_unknown (job, snap->unknown_keys, "key");
  note_unknown (job, snap->unknown_actions, "action");
  note_unknown (job, snap->unknown_states, "state");
  if (snap->marks_of_nothing > 0)
    g_ptr_array_add (job->notes, g_strdup_printf ("%" G_GUINT64_FORMAT " %s left out: nothing of %s device is known",
                                                  snap->marks_of_nothing, snap->marks_of_nothing == 1 ? "annotation" : "annotations",
                                                  snap->marks_of_nothing == 1 ? "its" : "their"));
}

static gboolean
write_traces (CoopSnapshotJob *job, const CoopSnap *snap, GError **error)
{
  for (guint i = 0; i < snap->devices->len; i++)
    {
      g_autofree char *name = name_for (job, snap, snap->devices->pdata[i]);
      if (!may_write (job, name, error))
        return FALSE;
    }
  for (guint i = 0; i < snap->devices->len; i++)
    {
      const CoopSnapDevice *device = snap->devices->pdata[i];
      g_autofree char *name = name_for (job, snap, device);
      if (!write_one (job, snap, device, name, error))
        return FALSE;
      job->entries += device->events->len;
      g_ptr_array_add (job->traces, g_steal_pointer (&name));
    }
  return TRUE;
}

gboolean
coop_snapshot_import (CoopSnapshotJob *job, GError **error)
{
  job->traces = g_ptr_array_new_with_free_func (g_free);
  job->notes = g_ptr_array_new_with_free_func (g_free);
  job->entries = 0;
  CoopSnap *snap = read_snapshot (job, error);
  if (snap == NULL)
    {
      g_prefix_error (error, "%s: ", job->path);
      return FALSE;
    }
  gboolean ok = snap->devices->len > 0;
  if (!ok)
    g_set_error (error, COOP_TRACE_ERROR, COOP_TRACE_ERROR_FOREIGN, "%s: the snapshot is empty: no segment, no entry", job->path);
  else
    ok = write_traces (job, snap, error);
  if (ok)
    note_all (job, snap);
  /* All or nothing. */
  for (guint i = 0; !ok && i < job->traces->len; i++)
    g_remove (job->traces->pdata[i]);
  coop_snap_free (snap);
  return ok;
}

void
coop_snapshot_clear (CoopSnapshotJob *job)
{
  g_clear_pointer (&job->traces, g_ptr_array_unref);
  g_clear_pointer (&job->notes, g_ptr_array_unref);
}
