/* SPDX-License-Identifier: Apache-2.0 */
/* Space: see space.h. Recursion is as deep as the treap: about 2 log2 n, whatever the input, since
 * priorities are hashes of numbers that are never used twice, and of the places of walls. */
#include "trace/space.h"

static void
pull (CoopNode *node)
{
  guint64 gap = node->outside ? 0 : node->gap;
  node->max_gap = gap;
  node->sum_gap = gap;
  node->n_gaps = gap > 0;
  for (int side = 0; side < 2; side++)
    {
      const CoopNode *child = side ? node->right : node->left;
      if (child == NULL)
        continue;
      node->max_gap = MAX (node->max_gap, child->max_gap);
      node->sum_gap += child->sum_gap;
      node->n_gaps += child->n_gaps;
    }
}

/* Place among those of one address: the end of a segment, the beginning of the next, a block. */
static guint
rank_of (const CoopNode *node)
{
  return node->wall == COOP_WALL_NONE ? 3 : node->wall;
}

static gboolean
precedes (const CoopNode *node, guint64 addr, guint rank)
{
  return node->addr < addr || (node->addr == addr && rank_of (node) < rank);
}

/* The neighbours of a place: the last node before it, the first at or after it. */
static void
neighbours (const CoopSpace *space, guint64 addr, guint rank, CoopNode **before, CoopNode **after)
{
  *before = *after = NULL;
  for (CoopNode *node = space->root; node != NULL;)
    if (precedes (node, addr, rank))
      {
        *before = node;
        node = node->right;
      }
    else
      {
        *after = node;
        node = node->left;
      }
}

static CoopNode *
rotate_right (CoopNode *node)
{
  CoopNode *top = node->left;
  node->left = top->right;
  top->right = node;
  pull (node);
  pull (top);
  return top;
}

static CoopNode *
rotate_left (CoopNode *node)
{
  CoopNode *top = node->right;
  node->right = top->left;
  top->left = node;
  pull (node);
  pull (top);
  return top;
}

static CoopNode *
insert (CoopNode *root, CoopNode *node)
{
  if (root == NULL)
    {
      pull (node);
      return node;
    }
  if (precedes (node, root->addr, rank_of (root)))
    {
      root->left = insert (root->left, node);
      if (root->left->priority > root->priority)
        return rotate_right (root);
    }
  else
    {
      root->right = insert (root->right, node);
      if (root->right->priority > root->priority)
        return rotate_left (root);
    }
  pull (root);
  return root;
}

static guint64
end_of (const CoopNode *node)
{
  return node != NULL ? node->addr + node->bytes : 0;
}

/* A wall in the middle of a block leaves nothing. */
static guint64
between (const CoopNode *before, const CoopNode *node)
{
  return node->addr > end_of (before) ? node->addr - end_of (before) : 0;
}

void
coop_space_insert (CoopSpace *space, CoopNode *node, guint64 priority)
{
  CoopNode *before, *after;
  neighbours (space, node->addr, rank_of (node), &before, &after);
  node->left = node->right = NULL;
  node->priority = priority;
  node->outside = space->segmented && (after == NULL || after->outside);
  node->gap = between (before, node);
  if (after != NULL) /* lies on the way down, so insert() sums it up again */
    after->gap = between (node, after);
  space->root = insert (space->root, node);
}

static CoopNode *
merge (CoopNode *low, CoopNode *high)
{
  if (low == NULL || high == NULL)
    return low != NULL ? low : high;
  if (low->priority > high->priority)
    {
      low->right = merge (low->right, high);
      pull (low);
      return low;
    }
  high->left = merge (low, high->left);
  pull (high);
  return high;
}

static CoopNode *
without (CoopNode *root, CoopNode *node)
{
  if (root == NULL)
    return NULL;
  if (root == node)
    return merge (node->left, node->right);
  if (precedes (node, root->addr, rank_of (root)))
    root->left = without (root->left, node);
  else
    root->right = without (root->right, node);
  pull (root);
  return root;
}

static void
sum_up_to (CoopNode *root, const CoopNode *node)
{
  if (root != node)
    sum_up_to (precedes (node, root->addr, rank_of (root)) ? root->left : root->right, node);
  pull (root);
}

void
coop_space_remove (CoopSpace *space, CoopNode *node)
{
  CoopNode *before, *after, *ignored;
  neighbours (space, node->addr, rank_of (node), &before, &ignored);
  neighbours (space, node->addr, rank_of (node) + 1, &ignored, &after);
  space->root = without (space->root, node);
  if (after != NULL)
    {
      after->gap = between (before, after);
      sum_up_to (space->root, after);
    }
}

CoopNode *
coop_space_overlap (const CoopSpace *space, guint64 addr, guint64 bytes)
{
  CoopNode *before, *after, *ignored;
  neighbours (space, addr, 3, &before, &after);
  /* A block may lie over a wall, where a segment went before its blocks did. */
  while (before != NULL && before->wall != COOP_WALL_NONE)
    neighbours (space, before->addr, rank_of (before), &before, &ignored);
  if (end_of (before) > addr)
    return before;
  while (after != NULL && after->wall != COOP_WALL_NONE && after->addr < addr + bytes)
    neighbours (space, after->addr, rank_of (after) + 1, &ignored, &after);
  return after != NULL && after->wall == COOP_WALL_NONE && after->addr < addr + bytes ? after : NULL;
}

CoopNode *
coop_space_at_or_after (const CoopSpace *space, guint64 addr)
{
  CoopNode *before, *after;
  neighbours (space, addr, 0, &before, &after);
  return after;
}

guint64
coop_space_end (const CoopSpace *space)
{
  const CoopNode *node = space->root;
  while (node != NULL && node->right != NULL)
    node = node->right;
  return end_of (node);
}

CoopHoles
coop_space_holes (const CoopSpace *space, guint64 limit)
{
  CoopHoles holes = { 0, 0, 0 };
  guint64 end = 0;
  gboolean outside = space->segmented;
  for (const CoopNode *node = space->root; node != NULL;)
    {
      if (node->addr > limit)
        {
          outside = node->outside;
          node = node->left;
          continue;
        }
      if (node->left != NULL)
        {
          holes.free += node->left->sum_gap;
          holes.largest = MAX (holes.largest, node->left->max_gap);
          holes.holes += node->left->n_gaps;
        }
      guint64 gap = node->outside ? 0 : node->gap;
      holes.free += gap;
      holes.largest = MAX (holes.largest, gap);
      holes.holes += gap > 0;
      end = end_of (node);
      node = node->right;
    }
  if (limit > end && !outside)
    {
      holes.free += limit - end;
      holes.largest = MAX (holes.largest, limit - end);
      holes.holes++;
    }
  return holes;
}

/* ---- segments ---- */

/* Nodes of [from, to], by place. */
static void
mark (CoopNode *root, const CoopNode *from, const CoopNode *to, gboolean outside)
{
  if (root == NULL)
    return;
  gboolean below = from != NULL && precedes (root, from->addr, rank_of (from));
  gboolean above = to != NULL && root != to && !precedes (root, to->addr, rank_of (to));
  if (!below)
    mark (root->left, from, to, outside);
  if (!above)
    mark (root->right, from, to, outside);
  if (!below && !above)
    root->outside = (guint8) outside;
  pull (root);
}

void
coop_space_segmented (CoopSpace *space)
{
  space->segmented = TRUE;
  mark (space->root, NULL, NULL, TRUE);
}

static guint64
wall_priority (guint64 addr, guint64 salt)
{
  addr = (addr + salt) * G_GUINT64_CONSTANT (0xbf58476d1ce4e5b9);
  addr ^= addr >> 31;
  return addr * G_GUINT64_CONSTANT (0x94d049bb133111eb);
}

void
coop_space_wall_in (CoopSpace *space, CoopNode walls[2], guint64 lo, guint64 hi)
{
  walls[0] = (CoopNode) { .addr = lo, .wall = COOP_WALL_BEGIN };
  walls[1] = (CoopNode) { .addr = hi, .wall = COOP_WALL_END };
  coop_space_insert (space, &walls[0], wall_priority (lo, 1));
  coop_space_insert (space, &walls[1], wall_priority (hi, 2));
  mark (space->root, &walls[0], &walls[1], FALSE);
  walls[0].outside = TRUE;
  sum_up_to (space->root, &walls[0]);
}

void
coop_space_wall_out (CoopSpace *space, CoopNode walls[2])
{
  mark (space->root, &walls[0], &walls[1], TRUE);
  coop_space_remove (space, &walls[0]);
  coop_space_remove (space, &walls[1]);
}
