/* SPDX-License-Identifier: Apache-2.0 */
/* Snapshot: what torch.cuda.memory._dump_snapshot writes, as traces. Every era of the format, from the
 * bare list of segments of PyTorch 1.4 on; one trace a device.
 *
 * The file holds the segments as they are at its end, whole, and a ring of events, which may begin
 * late. Who is alive at the end is known from the segments, and what is not explained by an event was
 * there before the first of them. Where the two disagree (somebody cut the events), the events win.
 */
#ifndef COOP_SNAPSHOT_H
#define COOP_SNAPSHOT_H

#include <glib.h>

#include "trace/store.h"

typedef struct {
  const char *path;    /* in: the snapshot */
  const char *out;     /* in: the trace; with several devices "X-cuda1.coop" for "X.coop" */
  gboolean replace;    /* in: a trace of that name may go */
  /* FALSE cancels. part: 0 to 1. May be NULL. */
  gboolean (*go_on) (gpointer user, double part);
  gpointer user;
  /* out; coop_snapshot_clear */
  GPtrArray *traces;   /* char *: written, in order of devices */
  GPtrArray *notes;    /* char *: what is missing, left out or not known, a sentence each */
  guint64 entries;     /* of the rings */
} CoopSnapshotJob;

/* Nothing is left behind if it fails or is cancelled. */
gboolean coop_snapshot_import (CoopSnapshotJob *job, GError **error);
void coop_snapshot_clear (CoopSnapshotJob *job);
/* Does the file begin as a pickle does? */
gboolean coop_snapshot_is_pickle (const char *path);

#endif
