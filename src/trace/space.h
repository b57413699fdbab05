/* SPDX-License-Identifier: Apache-2.0 */
/* Space: the used ranges of the address space, disjoint, in address order.
 *
 * A treap keyed by address. Each node knows the hole right before it, and each subtree the largest,
 * the sum and the number of its holes, so "largest hole below the budget" is one walk down, also
 * when the budget moved below blocks that are still there. Insert, remove and query are O(log n);
 * with 10,000 blocks an event costs well under a microsecond. Nodes are the caller's, embedded.
 *
 * Segments: where the device backs parts of the address space only, *walls* of no size stand at both
 * ends of each. A hole is then what is free inside of a segment, and ends at its walls.
 */
#ifndef COOP_SPACE_H
#define COOP_SPACE_H

#include <glib.h>

typedef struct CoopNode {
  guint64 addr, bytes;
  struct CoopNode *left, *right;
  guint64 priority; /* random, largest on top */
  guint64 gap;      /* free bytes between the node before and this one */
  guint64 max_gap, sum_gap, n_gaps; /* over the subtree, of gaps that count */
  guint8 wall;      /* CoopWall; bytes is 0 if it is one */
  guint8 outside;   /* the gap before lies in no segment, and does not count */
} CoopNode;

/* In this order where several begin at one address. */
typedef enum { COOP_WALL_END = 1, COOP_WALL_BEGIN = 2, COOP_WALL_NONE = 0 } CoopWall;

typedef struct {
  CoopNode *root;
  gboolean segmented;
} CoopSpace;

typedef struct {
  guint64 free, largest, holes;
} CoopHoles;

/* node->addr and ->bytes are set; it must overlap none (coop_space_overlap). */
void coop_space_insert (CoopSpace *space, CoopNode *node, guint64 priority);
void coop_space_remove (CoopSpace *space, CoopNode *node);
/* The first node, by address, that shares a byte with [addr, addr + bytes); NULL if none. */
CoopNode *coop_space_overlap (const CoopSpace *space, guint64 addr, guint64 bytes);
/* The first node at or after addr; NULL if none. */
CoopNode *coop_space_at_or_after (const CoopSpace *space, guint64 addr);
/* From now on only segments are memory; there is none yet. */
void coop_space_segmented (CoopSpace *space);
/* [lo, hi) becomes a segment, and is none any more. It overlaps no other; walls are two nodes. */
void coop_space_wall_in (CoopSpace *space, CoopNode walls[2], guint64 lo, guint64 hi);
void coop_space_wall_out (CoopSpace *space, CoopNode walls[2]);
/* End of the last node; 0 if there is none. */
guint64 coop_space_end (const CoopSpace *space);
/* The holes of [0, limit). */
CoopHoles coop_space_holes (const CoopSpace *space, guint64 limit);

#endif
