/* SPDX-License-Identifier: Apache-2.0 */
/* Frames: an immutable copy of what the model shows, live or from history. */
#include "session.h"

#include <string.h>

static void
copy_last_eviction (CoopFrame *frame, CoopModel *model)
{
  const CoopLastEviction *last = coop_model_last_eviction (model);
  if (last == NULL)
    return;
  frame->search_seq = last->seq;
  frame->search_need = last->need;
  frame->search_lo = last->lo;
  frame->search_hi = last->hi;
  frame->search_cost = last->body.cost;
  frame->search_next_cost = last->body.next_cost;
  frame->search = last->body;
  frame->n_victims = last->n_victims;
  frame->victims = g_memdup2 (last->victims, sizeof (CoopVictim) * last->n_victims);
  frame->need = last->need;
}

CoopFrame *
coop_frame_new (CoopModel *model, guint64 generation)
{
  CoopFrame *frame = g_new0 (CoopFrame, 1);
  g_autoptr (GArray) pieces = g_array_new (FALSE, FALSE, sizeof (CoopMapPiece));
  frame->ref_count = 1;
  frame->generation = generation;
  coop_model_pieces (model, pieces);
  frame->totals = *coop_model_totals (model);
  frame->policy = *coop_model_policy (model);
  frame->n_pieces = pieces->len;
  frame->pieces = (CoopMapPiece *) (gpointer) g_array_free (g_steal_pointer (&pieces), FALSE);
  copy_last_eviction (frame, model);
  const CoopLastOom *oom = coop_model_last_oom (model);
  if (oom != NULL)
    {
      frame->has_oom = TRUE;
      frame->oom = *oom;
      if (frame->victims == NULL || oom->seq > frame->search_seq)
        frame->need = oom->asked;
    }
  return frame;
}

CoopFrame *
coop_frame_ref (CoopFrame *frame)
{
  g_atomic_int_inc (&frame->ref_count);
  return frame;
}

void
coop_frame_unref (CoopFrame *frame)
{
  if (frame == NULL || !g_atomic_int_dec_and_test (&frame->ref_count))
    return;
  g_free (frame->pieces);
  g_free (frame->victims);
  g_free (frame);
}
