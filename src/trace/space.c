/* SPDX-License-Identifier: Apache-2.0 */
/* Space: see space.h. Recursion is as deep as the treap: about 2 log2 n, whatever the input, since
 * priorities are hashes of numbers that are never used twice. */
#include "trace/space.h"

static void
pull (CoopNode *node)
{
  node->max_gap = node->gap;
  node->sum_gap = node->gap;
  node->n_gaps = node->gap > 0;
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

/* The neighbours of addr: the last node before it, the first at or after it. */
static void
neighbours (const CoopSpace *space, guint64 addr, CoopNode **before, CoopNode **after)
{
  *before = *after = NULL;
  for (CoopNode *node = space->root; node != NULL;)
    if (node->addr < addr)
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
  if (node->addr < root->addr)
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

void
coop_space_insert (CoopSpace *space, CoopNode *node, guint64 priority)
{
  CoopNode *before, *after;
  neighbours (space, node->addr, &before, &after);
  node->left = node->right = NULL;
  node->priority = priority;
  node->gap = node->addr - end_of (before);
  if (after != NULL) /* lies on the way down, so insert() sums it up again */
    after->gap = after->addr - end_of (node);
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
  if (node->addr < root->addr)
    root->left = without (root->left, node);
  else
    root->right = without (root->right, node);
  pull (root);
  return root;
}

static void
sum_up_to (CoopNode *root, guint64 addr)
{
  if (root->addr != addr)
    sum_up_to (addr < root->addr ? root->left : root->right, addr);
  pull (root);
}

void
coop_space_remove (CoopSpace *space, CoopNode *node)
{
  CoopNode *before, *after, *ignored;
  neighbours (space, node->addr, &before, &ignored);
  neighbours (space, node->addr + 1, &ignored, &after);
  space->root = without (space->root, node);
  if (after != NULL)
    {
      after->gap = after->addr - end_of (before);
      sum_up_to (space->root, after->addr);
    }
}

CoopNode *
coop_space_overlap (const CoopSpace *space, guint64 addr, guint64 bytes)
{
  CoopNode *before, *after;
  neighbours (space, addr, &before, &after);
  if (end_of (before) > addr)
    return before;
  return after != NULL && after->addr < addr + bytes ? after : NULL;
}

CoopNode *
coop_space_at_or_after (const CoopSpace *space, guint64 addr)
{
  CoopNode *before, *after;
  neighbours (space, addr, &before, &after);
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
  for (const CoopNode *node = space->root; node != NULL;)
    {
      if (node->addr > limit)
        {
          node = node->left;
          continue;
        }
      if (node->left != NULL)
        {
          holes.free += node->left->sum_gap;
          holes.largest = MAX (holes.largest, node->left->max_gap);
          holes.holes += node->left->n_gaps;
        }
      holes.free += node->gap;
      holes.largest = MAX (holes.largest, node->gap);
      holes.holes += node->gap > 0;
      end = end_of (node);
      node = node->right;
    }
  if (limit > end)
    {
      holes.free += limit - end;
      holes.largest = MAX (holes.largest, limit - end);
      holes.holes++;
    }
  return holes;
}
