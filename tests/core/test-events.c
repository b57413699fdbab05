/* SPDX-License-Identifier: Apache-2.0 */
/* The events of random programs tell the whole story: the layout model, which sees nothing else, has
 * the same map and the same totals as the engine after every step. */
#include "support/ref-program.h"
#include "trace/model.h"

typedef struct
{
  CoopModel *model;
  uint64_t shift;        /* events put in front of the engine's */
  GRand *rand;
  uint64_t compared;
} Watcher;

static void
apply (Watcher *w, const CoopEvent *ev, const void *body)
{
  char *detail = NULL;
  CoopFault fault = coop_model_apply (w->model, ev, body, &detail);
  if (fault != COOP_FAULT_NONE)
    g_error ("event %" G_GUINT64_FORMAT " (%s): %s", ev->seq, coop_event_kind_label (ev->kind), detail);
  g_free (detail);
}

static void
on_event (void *user, CoopEvent *ev, const void *body)
{
  Watcher *w = user;
  CoopEvent shifted = *ev;
  shifted.seq += w->shift;
  apply (w, &shifted, body);
}

/* Names that the toy operators use. */
static void
give_names (Watcher *w)
{
  static const uint64_t names[] = { 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 9999 };
  for (gsize i = 0; i < G_N_ELEMENTS (names); i++)
    {
      char text[64] = { 0 };
      int n = g_snprintf (text, sizeof text, "operator %u", (unsigned) names[i]);
      CoopEvent ev = { .seq = w->shift++, .kind = COOP_EVENT_STRING, .more = 1 };
      ev.u.string.id = names[i];
      ev.u.string.bytes = (uint64_t) n;
      apply (w, &ev, text);
    }
}

static void
compare_maps (Watcher *w, const CoopEngine *e)
{
  size_t n = coop_engine_pieces (e, NULL, 0), used = 0;
  CoopPiece *pieces = g_new (CoopPiece, n);
  GArray *map = g_array_new (FALSE, FALSE, sizeof (CoopMapPiece));
  coop_engine_pieces (e, pieces, n);
  coop_model_pieces (w->model, map);
  for (guint i = 0; i < map->len; i++)
    {
      const CoopMapPiece *m = &g_array_index (map, CoopMapPiece, i);
      if (!m->used)
        continue;
      while (used < n && !pieces[used].used)
        used++;
      g_assert_cmpuint (used, <, n);
      g_assert_cmpuint (m->addr, ==, pieces[used].addr);
      g_assert_cmpuint (m->bytes, ==, pieces[used].bytes);
      g_assert_cmpuint (m->block, ==, pieces[used].block);
      if (pieces[used].tensor != NULL)
        {
          g_assert_cmpuint (m->tensor, ==, pieces[used].tensor->id);
          g_assert_cmpuint (m->kind, ==, pieces[used].tensor->kind);
        }
      used++;
    }
  while (used < n)
    g_assert_false (pieces[used++].used);
  g_array_unref (map);
  g_free (pieces);
}

static void
on_verify (void *user, RefHost *host)
{
  Watcher *w = user;
  CoopTotals ours;
  const CoopModelTotals *theirs = coop_model_totals (w->model);
  coop_engine_totals (host->engine, &ours);
  compare_maps (w, host->engine);
  g_assert_cmpuint (theirs->used, ==, ours.live);
  g_assert_cmpuint (theirs->peak, ==, ours.peak);
  g_assert_cmpuint (theirs->evicted, ==, ours.evicted);
  g_assert_cmpuint (theirs->allocs, ==, ours.allocs);
  g_assert_cmpuint (theirs->frees, ==, ours.frees);
  g_assert_cmpuint (theirs->evictions, ==, ours.evictions);
  g_assert_cmpuint (theirs->evicted_bytes, ==, ours.evicted_bytes);
  g_assert_cmpuint (theirs->replays, ==, ours.replays);
  g_assert_cmpuint (theirs->moves, ==, ours.moves);
  g_assert_cmpuint (theirs->ooms, ==, ours.ooms);
  g_assert_cmpuint (theirs->step, ==, ours.step);
  g_assert_cmpuint (theirs->phase, ==, ours.phase);
  w->compared++;
}

static bool
from_rand (void *user, uint8_t *byte)
{
  *byte = (uint8_t) g_rand_int_range (((Watcher *) user)->rand, 0, 256);
  return true;
}

static void
test_model (void)
{
  for (unsigned seed = 1; seed <= 60; seed++)
    {
      RefProgramStats stats = { 0 };
      Watcher w = { .model = coop_model_new (), .rand = g_rand_new_with_seed (seed) };
      RefBytes source = { from_rand, &w, { on_event, on_verify, &w } };
      g_test_message ("seed %u", seed);
      give_names (&w);
      ref_program_run (&source, 300, &stats);
      g_assert_cmpuint (w.compared, >=, 300);
      coop_model_free (w.model);
      g_rand_free (w.rand);
    }
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  g_test_add_func ("/core/events/model", test_model);
  return g_test_run ();
}
