/* SPDX-License-Identifier: Apache-2.0 */
/* A block of a frame in words. */
#include "session-private.h"

static const CoopMapPiece *
find_piece (const CoopFrame *frame, guint64 block)
{
  for (guint i = 0; i < frame->n_pieces; i++)
    if (frame->pieces[i].used && frame->pieces[i].block == block)
      return &frame->pieces[i];
  return NULL;
}

static void
add_size (GString *text, const char *label, guint64 bytes)
{
  char size[32];
  coop_size_format (bytes, size, sizeof size);
  g_string_append_printf (text, "%s%s", label, size);
}

static void
add_tensor (GString *text, const CoopModel *model, guint64 id)
{
  CoopTensorInfo info;
  if (!coop_model_tensor (model, id, &info))
    return;
  g_string_append_printf (text, "tensor %" G_GUINT64_FORMAT ": ", id);
  for (guint i = 0; i < MIN (info.ndim, 8); i++)
    g_string_append_printf (text, "%s%" G_GINT64_FORMAT, i > 0 ? " x " : "", info.dims[i]);
  g_string_append_printf (text, " %s\n", info.dtype != NULL ? info.dtype : "");
}

static void
add_op (GString *text, const CoopModel *model, guint64 id)
{
  CoopOpInfo op;
  if (id == 0 || !coop_model_op (model, id, &op))
    return;
  g_string_append_printf (text, "from %s (operator %" G_GUINT64_FORMAT ", %s)\n",
                          op.name != NULL ? op.name : "?", id, coop_phase_label (op.phase));
  g_autofree char *stack = coop_model_stack_text (model, op.stack);
  if (stack != NULL)
    g_string_append_printf (text, "at %s\n", stack);
}

/* The address and the age are of the frame, so that they agree with what is on the map. */
static char *
describe (CoopSession *self, const CoopFrame *frame, const CoopMapPiece *p)
{
  GString *text = g_string_new (NULL);
  add_size (text, "", p->bytes);
  g_string_append_printf (text, " at 0x%" G_GINT64_MODIFIER "x, %s", p->addr, coop_kind_label (p->kind));
  if (p->requested != 0 && p->requested != p->bytes)
    add_size (text, ", asked for ", p->requested);
  g_string_append_c (text, '\n');
  pthread_mutex_lock (&self->lock);
  add_tensor (text, self->model, p->tensor);
  add_op (text, self->model, p->op);
  pthread_mutex_unlock (&self->lock);
  if (p->cost != 0)
    g_string_append_printf (text, "%.3f ms to recompute\n", (double) p->cost / 1e6);
  g_string_append_printf (text, "last used %.3f s ago\n",
                          (double) (frame->totals.ts - MIN (p->used_ts, frame->totals.ts)) / 1e9);
  if (p->remats != 0)
    g_string_append_printf (text, "came back %u times in this step\n", p->remats);
  if (p->pin != COOP_PIN_NONE)
    g_string_append_printf (text, "not evictable: %s\n", coop_pin_label (p->pin));
  g_string_truncate (text, text->len - 1);
  return g_string_free (text, FALSE);
}

char *
coop_session_describe_in (CoopSession *self, const CoopFrame *frame, guint64 block)
{
  const CoopMapPiece *piece = block != 0 ? find_piece (frame, block) : NULL;
  return piece != NULL ? describe (self, frame, piece) : NULL;
}

char *
coop_session_describe_block (CoopSession *self, guint64 block)
{
  pthread_mutex_lock (&self->frame_lock);
  CoopFrame *frame = self->frame != NULL ? coop_frame_ref (self->frame) : NULL;
  pthread_mutex_unlock (&self->frame_lock);
  if (frame == NULL)
    return NULL;
  char *text = coop_session_describe_in (self, frame, block);
  coop_frame_unref (frame);
  return text;
}

char *
coop_session_name (CoopSession *self, CoopNameKind kind, guint64 id)
{
  pthread_mutex_lock (&self->lock);
  char *text = coop_model_name (self->model, kind, id);
  pthread_mutex_unlock (&self->lock);
  return text;
}
