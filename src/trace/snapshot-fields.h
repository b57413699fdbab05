/* SPDX-License-Identifier: Apache-2.0 */
/* Snapshot fields: what a dict of a snapshot has under a key. What is not there is not known, and so is
 * None; what nobody knows is counted; what is there and cannot be is damage, and the first damage ends
 * the reading, with the byte where the dict begins. */
#ifndef COOP_SNAPSHOT_FIELDS_H
#define COOP_SNAPSHOT_FIELDS_H

#include "trace/snapshot-private.h"

/* X (ID, "key", where it is known): T top, E entry, S segment, B block, H history, A annotation */
enum { COOP_IN_TOP = 1, COOP_IN_ENTRY = 2, COOP_IN_SEGMENT = 4, COOP_IN_BLOCK = 8, COOP_IN_HISTORY = 16, COOP_IN_MARK = 32 };
#define COOP_SNAP_KEYS(X, T, E, S, B, H, A)                                                         \
  X (SEGMENTS, "segments", T) X (DEVICE_TRACES, "device_traces", T)                                 \
  X (ALLOCATOR_SETTINGS, "allocator_settings", T) X (EXTERNAL_ANNOTATIONS, "external_annotations", T) \
  X (OVERFLOWED, "trace_alloc_overflowed", T) X (MAX_ENTRIES, "trace_alloc_max_entries", T)         \
  X (HOST_SEGMENTS, "host_segments", T) X (HOST_TRACES, "host_traces", T) X (CATEGORIES, "categories", T) \
  X (ACTION, "action", E) X (ADDR, "addr", E | H) X (SIZE, "size", E | B) X (STREAM, "stream", E | S) \
  X (TIME_US, "time_us", E | A) X (FRAMES, "frames", E | S | B | H) X (DEVICE_FREE, "device_free", E) \
  X (COMPILE_CONTEXT, "compile_context", E) X (USER_METADATA, "user_metadata", E | S | B)           \
  X (POOL_ID, "pool_id", E) X (CATEGORY, "category", E | B) X (FORWARD_FRAMES, "forward_frames", E) \
  X (DEVICE, "device", E | S | A) X (ADDRESS, "address", S | B) X (TOTAL_SIZE, "total_size", S)     \
  X (ALLOCATED_SIZE, "allocated_size", S) X (ACTIVE_SIZE, "active_size", S)                         \
  X (REQUESTED_SIZE, "requested_size", S | B) X (SEGMENT_TYPE, "segment_type", S)                   \
  X (SEGMENT_POOL_ID, "segment_pool_id", S) X (IS_EXPANDABLE, "is_expandable", S) X (BLOCKS, "blocks", S) \
  X (STATE, "state", B) X (HISTORY, "history", B) X (REAL_SIZE, "real_size", H)                     \
  X (STAGE, "stage", A) X (NAME, "name", A)

typedef enum {
#define X(ID, text, where) COOP_KEY_##ID,
  COOP_SNAP_KEYS (X, 0, 0, 0, 0, 0, 0)
#undef X
  COOP_N_KEYS
} CoopSnapKey;

typedef struct {
  CoopSnap *snap;
  const CoopPickle *pickle;
  CoopPickleValue keys[COOP_N_KEYS], actions[COOP_SNAP_N_ACTIONS];
  GHashTable *where;  /* key value -> bits */
  gboolean untimed;
  GError *error;      /* the first damage; who loops looks at it */
} CoopSnapFill;

void coop_snap_fill_init (CoopSnapFill *fill, CoopSnap *snap, const CoopPickle *pickle);
void coop_snap_fill_clear (CoopSnapFill *fill);

/* Damage in what begins at a value. */
void coop_snap_damaged (CoopSnapFill *fill, CoopPickleValue at, const char *format, ...) G_GNUC_PRINTF (3, 4);

CoopPickleValue coop_snap_get (const CoopSnapFill *fill, CoopPickleValue dict, CoopSnapKey key);
gboolean coop_snap_has (const CoopSnapFill *fill, CoopPickleValue dict, CoopSnapKey key);
/* An integer of 0 to max; what is not there is `otherwise`. */
guint64 coop_snap_int (CoopSnapFill *fill, CoopPickleValue dict, CoopSnapKey key, guint64 otherwise, guint64 max);
/* An integer that must be there. */
guint64 coop_snap_need (CoopSnapFill *fill, CoopPickleValue dict, CoopSnapKey key, guint64 max);
/* NULL: not there */
const char *coop_snap_text (CoopSnapFill *fill, CoopPickleValue dict, CoopSnapKey key);
/* A list, or nothing. */
CoopPickleValue coop_snap_list (CoopSnapFill *fill, CoopPickleValue dict, CoopSnapKey key);
/* An item, which must be a dict; nothing if it is none. */
CoopPickleValue coop_snap_dict (CoopSnapFill *fill, CoopPickleValue list, guint64 i, const char *what);
guint32 coop_snap_stack (CoopSnapFill *fill, CoopPickleValue dict);
/* Numbers of private pools; 0: the default pool. */
guint32 coop_snap_pool (CoopSnapFill *fill, CoopPickleValue dict, CoopSnapKey key);
/* Counts the keys that nobody knows at such a place. */
void coop_snap_check_keys (CoopSnapFill *fill, CoopPickleValue dict, guint bit);

#endif
