/* SPDX-License-Identifier: Apache-2.0 */
/* Snapshot: strings, frames and stacks. A file of a million entries has some thousand frames, shared by
 * hundred thousands of lists; each list is taken apart once and becomes a node of a tree of callers. */
#include "trace/snapshot-private.h"

#include <string.h>

static guint
hash_frame (gconstpointer key)
{
  const CoopSnapFrame *f = key;
  return (f->file * 31 + f->func) * 1009 + (guint) f->line;
}

static gboolean
same_frame (gconstpointer a, gconstpointer b)
{
  const CoopSnapFrame *x = a, *y = b;
  return x->file == y->file && x->func == y->func && x->line == y->line;
}

void
coop_snap_stacks_init (CoopSnapStacks *stacks)
{
  stacks->strings = g_ptr_array_new_with_free_func (g_free);
  stacks->frames = g_array_new (FALSE, FALSE, sizeof (CoopSnapFrame));
  stacks->stacks = g_array_new (FALSE, FALSE, sizeof (CoopSnapStack));
  stacks->string_index = g_hash_table_new (g_str_hash, g_str_equal);
  stacks->frame_index = g_hash_table_new_full (hash_frame, same_frame, g_free, NULL);
  coop_id_map_init (&stacks->stack_index);
  coop_id_map_init (&stacks->dicts);
}

void
coop_snap_stacks_clear (CoopSnapStacks *stacks)
{
  g_hash_table_unref (stacks->string_index);
  g_hash_table_unref (stacks->frame_index);
  g_ptr_array_unref (stacks->strings);
  g_array_unref (stacks->frames);
  g_array_unref (stacks->stacks);
  coop_id_map_clear (&stacks->stack_index);
  coop_id_map_clear (&stacks->dicts);
}

guint32
coop_snap_string (CoopSnapStacks *stacks, const char *text)
{
  if (text == NULL || *text == 0)
    return 0;
  guint32 number = GPOINTER_TO_UINT (g_hash_table_lookup (stacks->string_index, text));
  if (number != 0)
    return number;
  char *copy = g_strdup (text);
  g_ptr_array_add (stacks->strings, copy);
  g_hash_table_insert (stacks->string_index, copy, GUINT_TO_POINTER (stacks->strings->len));
  return stacks->strings->len;
}

/* FALSE: what is there is no text. */
static gboolean
frame_text (CoopSnapStacks *stacks, const CoopPickle *pickle, CoopPickleValue dict, const char *key, guint32 *number)
{
  CoopPickleValue value = coop_pickle_get (pickle, dict, key);
  const char *text = coop_pickle_text (pickle, value, NULL);
  *number = coop_snap_string (stacks, text);
  return text != NULL || coop_pickle_type (value) == COOP_PICKLE_NOTHING || coop_pickle_type (value) == COOP_PICKLE_NONE;
}

static gboolean
read_frame (CoopSnapStacks *stacks, const CoopPickle *pickle, CoopPickleValue dict, CoopSnapFrame *frame)
{
  CoopPickleValue value = coop_pickle_get (pickle, dict, "line");
  guint64 line = 0;
  if (coop_pickle_type (dict) != COOP_PICKLE_DICT || !frame_text (stacks, pickle, dict, "filename", &frame->file)
      || !frame_text (stacks, pickle, dict, "name", &frame->func)
      || (!coop_pickle_int (pickle, value, &line) && value != 0 && coop_pickle_type (value) != COOP_PICKLE_NONE))
    return FALSE;
  frame->line = (gint64) line > 0 ? (gint64) line : 0; /* 2^64 - 1 is unknown, too */
  return TRUE;
}

/* 0: it is none. */
static guint32
frame_number (CoopSnap *snap, const CoopPickle *pickle, CoopPickleValue dict)
{
  CoopSnapStacks *stacks = &snap->stacks;
  guint32 number = GPOINTER_TO_UINT (coop_id_map_get (&stacks->dicts, dict));
  static const char *const known[] = { "name", "filename", "line", "fx_node_op", "fx_node_name", "fx_node_target",
                                       "fx_original_trace", NULL };
  CoopSnapFrame frame = { 0 };
  if (number != 0 || !read_frame (stacks, pickle, dict, &frame))
    return number;
  for (guint64 i = 0; i < coop_pickle_pairs (pickle, dict); i++)
    {
      CoopPickleValue key, value;
      coop_pickle_pair (pickle, dict, i, &key, &value);
      const char *name = coop_pickle_text (pickle, key, NULL);
      if (name == NULL || !g_strv_contains (known, name))
        coop_snap_unknown (snap->unknown_keys, name);
    }
  number = GPOINTER_TO_UINT (g_hash_table_lookup (stacks->frame_index, &frame));
  if (number == 0)
    {
      g_array_append_val (stacks->frames, frame);
      number = stacks->frames->len;
      g_hash_table_insert (stacks->frame_index, g_memdup2 (&frame, sizeof frame), GUINT_TO_POINTER (number));
    }
  coop_id_map_set (&stacks->dicts, dict, GUINT_TO_POINTER (number));
  return number;
}

guint64
coop_snap_seal (gpointer user, CoopPickle *pickle, CoopPickleValue list)
{
  CoopSnap *snap = user;
  CoopSnapStacks *stacks = &snap->stacks;
  guint32 stack = 0;
  for (guint64 i = coop_pickle_length (pickle, list); i-- > 0;)
    {
      guint32 frame = frame_number (snap, pickle, coop_pickle_item (pickle, list, i));
      if (frame == 0)
        return COOP_SNAP_NONE;
      guint64 key = (guint64) stack << 32 | frame;
      CoopSnapStack node = { stack, frame };
      stack = GPOINTER_TO_UINT (coop_id_map_get (&stacks->stack_index, key));
      if (stack != 0)
        continue;
      g_array_append_val (stacks->stacks, node);
      stack = stacks->stacks->len;
      coop_id_map_set (&stacks->stack_index, key, GUINT_TO_POINTER (stack));
    }
  return stack;
}

const CoopSnapFrame *
coop_snap_leaf (const CoopSnapStacks *stacks, guint32 stack)
{
  if (stack == 0 || stack > stacks->stacks->len)
    return NULL;
  const CoopSnapStack *node = &g_array_index (stacks->stacks, CoopSnapStack, stack - 1);
  return &g_array_index (stacks->frames, CoopSnapFrame, node->frame - 1);
}
