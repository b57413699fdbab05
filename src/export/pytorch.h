/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by the two halves of the writer of PyTorch's memory snapshots: what is read before the events
 * (pytorch-read.c), and the events and the state at the end (pytorch.c).
 */
#ifndef COOP_EXPORT_PYTORCH_H
#define COOP_EXPORT_PYTORCH_H

#include "export/export-private.h"
#include "export/pickler.h"

typedef struct {
  guint64 id, base, bytes, born, died; /* events; died G_MAXUINT64: never */
  guint64 end;                         /* of the last block ever in it */
  CoopSegmentBody real;                /* what the device said; address 0: nothing */
} CoopSnapshotSegment;

typedef struct {
  guint64 parent, frame;
  const char *file, *func; /* of its innermost frame */
  gint64 line;
} CoopSnapshotStack;

typedef struct {
  guint64 addr, bytes, requested, stack, stream;
  gboolean pending; /* let go, and waiting for its stream */
} CoopSnapshotBlock;

typedef struct {
  const CoopExportJob *job;
  CoopPickler *pickle;
  CoopOut *out;
  GStringChunk *texts;
  GArray *segments;      /* CoopSnapshotSegment, in order of base */
  GHashTable *stacks;    /* stack -> CoopSnapshotStack */
  GHashTable *lists;     /* stack -> number of its list of frames in the pickle, + 1 */
  GHashTable *dicts;     /* frame -> number of its dict, + 1 */
  GHashTable *running;   /* operator -> its stack */
  GHashTable *blocks;    /* block -> CoopSnapshotBlock, those that live */
  guint64 start_us;
} CoopSnapshotWriter;

/* Stacks, segments and how far they were used, and what a trimmed trace begins with. */
gboolean coop_export_pytorch_gather (CoopSnapshotWriter *w, GError **error);

static inline void
coop_snapshot_set (GHashTable *table, guint64 key, gconstpointer value, gsize bytes)
{
  g_hash_table_replace (table, g_memdup2 (&key, sizeof key), g_memdup2 (value, bytes));
}

#endif
