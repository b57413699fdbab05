/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of the snapshot reader share.
 *
 *   snapshot.c         the job: file in, traces out
 *   snapshot-fields.c  what a dict has under a key, or what is wrong with it
 *   snapshot-read.c    pickle -> arrays
 *   snapshot-stacks.c  strings, frames and stacks, each once
 *   snapshot-lives.c   who lived from when to when; what was there before
 *   snapshot-space.c   which addresses are memory, and where they are on the map
 *   snapshot-write.c   arrays -> events -> trace
 */
#ifndef COOP_SNAPSHOT_PRIVATE_H
#define COOP_SNAPSHOT_PRIVATE_H

#include "trace/id-map.h"
#include "trace/pickle.h"
#include "trace/snapshot.h"

#define COOP_SNAP_NONE G_MAXUINT32

/* X (ID, "as in the file") */
#define COOP_SNAP_ACTIONS(X)                                                                        \
  X (ALLOC, "alloc") X (FREE_REQUESTED, "free_requested") X (FREE_COMPLETED, "free_completed")      \
  X (SEGMENT_ALLOC, "segment_alloc") X (SEGMENT_FREE, "segment_free")                               \
  X (SEGMENT_MAP, "segment_map") X (SEGMENT_UNMAP, "segment_unmap") X (SNAPSHOT, "snapshot")        \
  X (OOM, "oom") X (USER, "user_defined") X (ANNOTATE, "annotate")
typedef enum {
#define X(ID, text) COOP_SNAP_##ID,
  COOP_SNAP_ACTIONS (X)
#undef X
  COOP_SNAP_N_ACTIONS
} CoopSnapAction;

/* An entry of the ring. */
typedef struct {
  guint64 addr, size, stream;
  guint64 time_us;
  guint64 device_free; /* oom */
  guint32 stack, text, pool; /* numbers; 0: none */
  guint8 action, kind;
} CoopSnapEvent;

typedef struct {
  guint64 addr, bytes, stream;
  guint64 dict; /* of the pickle, while it is read */
  guint32 stack, pool;
  guint8 expandable, small;
} CoopSnapSegment;

typedef enum { COOP_SNAP_INACTIVE, COOP_SNAP_ACTIVE, COOP_SNAP_PENDING } CoopSnapState;

typedef struct {
  guint64 addr, bytes, requested, stream;
  guint32 stack;
  guint8 state, kind;
} CoopSnapBlock;

typedef struct {
  guint64 time_us;
  guint32 text;
} CoopSnapMark;

typedef struct {
  int device;          /* -1: pinned memory of the host */
  GArray *events;      /* CoopSnapEvent */
  GArray *segments;    /* CoopSnapSegment */
  GArray *blocks;      /* CoopSnapBlock; none inactive */
  GArray *marks;       /* CoopSnapMark, by time */
  gboolean overflowed;
  guint64 max_entries; /* 0: unknown */
} CoopSnapDevice;

typedef struct {
  guint32 file, func; /* numbers of strings */
  gint64 line;
} CoopSnapFrame;

typedef struct {
  guint32 parent, frame;
} CoopSnapStack;

typedef struct {
  guint64 a, b;
} CoopSnapPool;

/* Numbers count from 1. */
typedef struct {
  GPtrArray *strings;  /* char * */
  GArray *frames, *stacks;
  GHashTable *string_index, *frame_index;
  CoopIdMap stack_index;   /* parent << 32 | frame -> number */
  CoopIdMap dicts;         /* of the pickle: dict -> frame */
} CoopSnapStacks;

typedef struct {
  CoopSnapStacks stacks;
  GArray *pools;           /* CoopSnapPool; number - 1 */
  GHashTable *pool_index;  /* CoopSnapPool -> number */
  GPtrArray *devices;      /* CoopSnapDevice */
  gboolean timed;
  char *alloc_conf;
  GHashTable *unknown_keys, *unknown_actions, *unknown_states; /* text -> count */
  guint64 marks_of_nothing; /* annotations of devices that have no memory */
} CoopSnap;

/* snapshot-stacks.c */
void coop_snap_stacks_init (CoopSnapStacks *stacks);
void coop_snap_stacks_clear (CoopSnapStacks *stacks);
guint32 coop_snap_string (CoopSnapStacks *stacks, const char *text);
/* For CoopPickleSource.seal: user is a CoopSnap. COOP_SNAP_NONE: one of them is no frame. */
guint64 coop_snap_seal (gpointer snap, CoopPickle *pickle, CoopPickleValue list);
/* The innermost frame's file and function, of what user_defined entries hold. */
const CoopSnapFrame *coop_snap_leaf (const CoopSnapStacks *stacks, guint32 stack);

/* snapshot-read.c */
CoopSnap *coop_snap_new (void);
void coop_snap_free (CoopSnap *snap);
void coop_snap_unknown (GHashTable *table, const char *text);
/* Fills the snapshot. FALSE: it is a pickle, but no snapshot, or one that is damaged: the byte is told. */
gboolean coop_snap_fill (CoopSnap *snap, const CoopPickle *pickle, GError **error);

/* snapshot-lives.c */
typedef struct {
  guint64 addr, bytes, requested, stream;
  guint32 born, asked, end; /* numbers of entries; COOP_SNAP_NONE: before the first, never */
  guint32 stack;
  guint8 kind;
  guint8 pending;   /* older than the history, and freed, but a stream may still use it */
  guint8 ends_lost; /* nothing says when it ended, but something else was there at `end` */
} CoopSnapLife;

typedef struct {
  GArray *lives;     /* CoopSnapLife, those of before first */
  GArray *of_event;  /* guint32: the life that an entry is about */
  guint64 n_older, n_older_alive; /* there before the first entry; of these: to the end */
  guint64 disagree;  /* where entries and segments tell different stories */
} CoopSnapLives;
void coop_snap_lives_find (CoopSnapLives *lives, const CoopSnapDevice *device);
void coop_snap_lives_clear (CoopSnapLives *lives);

/* snapshot-space.c */
typedef struct {
  guint64 lo, hi, map;
} CoopSnapIsland;

/* Addresses that were memory at any time, in order and without what lies between. */
typedef struct {
  GArray *islands; /* CoopSnapIsland */
  GArray *loose;   /* CoopSnapSegment: blocks where no segment is known */
  guint64 bytes;
} CoopSnapMap;
void coop_snap_map_make (CoopSnapMap *map, const CoopSnapDevice *device, const CoopSnapLives *lives);
void coop_snap_map_clear (CoopSnapMap *map);
guint64 coop_snap_map_at (const CoopSnapMap *map, guint64 addr);

/* A set of segments, by address. Calls back for each that goes or comes. */
typedef struct {
  CoopSnapSegment segment;
  guint64 id;
} CoopSnapPlace;
typedef struct {
  GArray *places; /* CoopSnapPlace */
  guint64 last_id;
  void (*changed) (gpointer user, const CoopSnapPlace *place, gboolean born); /* may be NULL */
  gpointer user;
} CoopSnapSpace;
void coop_snap_space_init (CoopSnapSpace *space);
void coop_snap_space_clear (CoopSnapSpace *space);
void coop_snap_space_add (CoopSnapSpace *space, const CoopSnapSegment *segment);
void coop_snap_space_remove (CoopSnapSpace *space, guint64 lo, guint64 hi);
/* Does a segment begin inside of (lo, hi)? */
gboolean coop_snap_space_begins_in (const CoopSnapSpace *space, guint64 lo, guint64 hi);
const CoopSnapPlace *coop_snap_space_at (const CoopSnapSpace *space, guint64 addr);
/* What it was before the first entry. */
void coop_snap_space_begin (CoopSnapSpace *space, const CoopSnapDevice *device, const CoopSnapMap *map);
/* The segment an entry is about; FALSE if it is about none. */
gboolean coop_snap_segment_of (const CoopSnapEvent *ev, CoopSnapSegment *segment, gboolean *born);

static inline guint64
coop_snap_rounded (guint64 bytes)
{
  return bytes > G_MAXUINT64 - 511 ? bytes : MAX (512, (bytes + 511) / 512 * 512);
}

/* snapshot-write.c */
gboolean coop_snap_write (CoopSnapshotJob *job, const CoopSnap *snap, const CoopSnapDevice *device,
                          const char *out, GError **error);

#endif
