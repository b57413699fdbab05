/* SPDX-License-Identifier: Apache-2.0 */
/* The layout model against generated runs that keep their own books, and against hand-made cases. */
#include <string.h>

#include "../support/gen-events.h"
#include "trace/model-private.h"
#include "trace/store.h"

#define BUDGET (640u << 10)

static void
assert_ok (CoopModel *model, const CoopEvent *ev, const void *body)
{
  g_autofree char *detail = NULL;
  CoopFault fault = coop_model_apply (model, ev, body, &detail);
  if (fault != COOP_FAULT_NONE)
    g_error ("event %" G_GUINT64_FORMAT " (%s): fault %d: %s", ev->seq, coop_event_kind_label (ev->kind), fault, detail);
}

/* Pieces and sums as they follow from the books, by brute force. */
static void
compare (CoopModel *model, CoopGen *gen)
{
  const CoopModelTotals *t = coop_model_totals (model);
  const CoopGenBooks *books = coop_gen_books (gen);
  const GArray *blocks = coop_gen_blocks (gen);
  g_autoptr (GArray) pieces = g_array_new (FALSE, FALSE, sizeof (CoopMapPiece));
  guint64 at = 0, largest = 0, free_bytes = 0, holes = 0, by_kind = 0, pinned = 0;
  guint used = 0;
  coop_model_pieces (model, pieces);
  for (guint i = 0; i < pieces->len; i++)
    {
      const CoopMapPiece *p = &g_array_index (pieces, CoopMapPiece, i);
      g_assert_cmpuint (p->addr, ==, at);
      at += p->bytes;
      if (!p->used)
        {
          holes++;
          free_bytes += p->bytes;
          largest = MAX (largest, p->bytes);
          continue;
        }
      const CoopGenBlock *b = &g_array_index (blocks, CoopGenBlock, used++);
      g_assert_cmpuint (p->addr, ==, b->addr);
      g_assert_cmpuint (p->bytes, ==, b->bytes);
      g_assert_cmpuint (p->block, ==, b->id);
      g_assert_cmpuint (p->tensor, ==, b->tensor);
      pinned += p->pin != COOP_PIN_NONE ? p->bytes : 0;
    }
  for (guint i = 0; i < COOP_N_KINDS; i++)
    by_kind += t->by_kind[i];
  g_assert_cmpuint (used, ==, blocks->len);
  g_assert_cmpuint (at, ==, BUDGET);
  g_assert_cmpuint (t->used, ==, books->used);
  g_assert_cmpuint (t->peak, ==, books->peak);
  g_assert_cmpuint (t->free, ==, free_bytes);
  g_assert_cmpuint (t->largest, ==, largest);
  g_assert_cmpuint (t->holes, ==, holes);
  g_assert_cmpuint (by_kind, ==, t->used);
  g_assert_cmpuint (t->pinned, ==, pinned);
  g_assert_cmpuint (t->evictable, ==, t->used - pinned);
  g_assert_cmpuint (t->evicted, ==, books->evicted);
  g_assert_cmpuint (t->allocs, ==, books->allocs);
  g_assert_cmpuint (t->frees, ==, books->frees);
  g_assert_cmpuint (t->evictions, ==, books->evictions);
  g_assert_cmpuint (t->handovers, ==, books->handovers);
  g_assert_cmpuint (t->moves, ==, books->moves);
  g_assert_cmpuint (t->ops, ==, books->ops);
  g_assert_cmpuint (t->replays, ==, books->replays);
  g_assert_cmpuint (t->searches, ==, books->searches);
  g_assert_cmpuint (t->step, ==, books->step);
}

static void
test_books (void)
{
  for (guint32 seed = 1; seed <= 20; seed++)
    {
      CoopGen *gen = coop_gen_new (seed, BUDGET);
      CoopModel *model = coop_model_new ();
      const void *body;
      for (guint i = 0; i < 8000; i++)
        {
          const CoopEvent *ev = coop_gen_next (gen, &body);
          assert_ok (model, ev, body);
          if (coop_gen_settled (gen) && i % 7 == 0)
            compare (model, gen);
        }
      g_assert_cmpuint (coop_gen_books (gen)->evictions, >, 100);
      g_assert_cmpuint (coop_gen_books (gen)->handovers, >, 100);
      coop_gen_finish (gen, 3);
      while (!coop_gen_done (gen))
        {
          const CoopEvent *ev = coop_gen_next (gen, &body);
          assert_ok (model, ev, body);
        }
      g_assert_true (coop_model_totals (model)->ended);
      g_assert_cmpint (coop_model_totals (model)->exit_code, ==, 3);
      g_assert_cmpuint (coop_model_totals (model)->used, ==, 0);
      g_assert_cmpuint (coop_model_totals (model)->evicted, ==, 0);
      coop_model_free (model);
      coop_gen_free (gen);
    }
}

/* A copy made anywhere goes on exactly as the original does. */
static void
test_save (void)
{
  CoopGen *gen = coop_gen_new (7, BUDGET);
  CoopModel *model = coop_model_new (), *copy = coop_model_new ();
  const void *body;
  for (guint i = 0; i < 20000; i++)
    {
      const CoopEvent *ev = coop_gen_next (gen, &body);
      assert_ok (model, ev, body);
      assert_ok (copy, ev, body);
      if (i % 611 == 0)
        {
          g_autoptr (GBytes) a = coop_model_save_parts (model, FALSE);
          g_autoptr (GBytes) b = coop_model_save_parts (copy, FALSE);
          g_assert_true (g_bytes_equal (a, b));
          coop_model_free (copy);
          copy = coop_model_copy (model);
          g_autoptr (GBytes) c = coop_model_save_parts (copy, FALSE);
          g_assert_true (g_bytes_equal (a, c));
          g_assert_cmpmem (coop_model_totals (copy), sizeof (CoopModelTotals), coop_model_totals (model),
                           sizeof (CoopModelTotals));
        }
    }
  g_assert_cmpstr (coop_model_string (copy, 2), ==, "aten::conv2d");
  coop_model_free (model);
  coop_model_free (copy);
  coop_gen_free (gen);
}

/* Damaged bytes are refused or give a model; nothing else. */
static void
test_load_damaged (void)
{
  CoopGen *gen = coop_gen_new (9, BUDGET);
  CoopModel *model = coop_model_new ();
  g_autoptr (GRand) rand = g_rand_new_with_seed (4);
  const void *body;
  for (guint i = 0; i < 1000; i++)
    {
      const CoopEvent *ev = coop_gen_next (gen, &body);
      assert_ok (model, ev, body);
    }
  g_autoptr (GBytes) good = coop_model_save (model);
  gsize size;
  const guint8 *data = g_bytes_get_data (good, &size);
  for (guint round = 0; round < 3000; round++)
    {
      g_autofree guint8 *copy = g_memdup2 (data, size);
      gsize keep = round % 2 ? size : (gsize) g_rand_int_range (rand, 0, size);
      copy[g_rand_int_range (rand, 0, size)] ^= 1 << g_rand_int_range (rand, 0, 8);
      g_autoptr (GBytes) bytes = g_bytes_new (copy, keep);
      g_autoptr (GError) error = NULL;
      CoopModel *loaded = coop_model_load (bytes, &error);
      g_assert_true ((loaded == NULL) == (error != NULL));
      g_assert_true (keep == size || loaded == NULL);
      coop_model_free (loaded);
    }
  coop_model_free (model);
  coop_gen_free (gen);
}

/* What is known does not grow with the length of the run. */
static void
test_forgets (void)
{
  CoopGen *gen = coop_gen_new (3, BUDGET);
  CoopModel *model = coop_model_new ();
  const void *body;
  guint64 early = 0, late = 0;
  for (guint i = 0; i < 200000; i++)
    {
      const CoopEvent *ev = coop_gen_next (gen, &body);
      assert_ok (model, ev, body);
      guint64 n = coop_model_n_entities (model);
      early = i < 20000 ? MAX (early, n) : early;
      late = i >= 20000 ? MAX (late, n) : late;
    }
  g_assert_cmpuint (late, <, early * 2);
  coop_model_free (model);
  coop_gen_free (gen);
}

/* Events that make no sense are faults, never crashes; what the model then shows still adds up. */
static void
test_nonsense (void)
{
  for (guint32 seed = 1; seed <= 30; seed++)
    {
      g_autoptr (GRand) rand = g_rand_new_with_seed (seed);
      g_autoptr (GArray) pieces = g_array_new (FALSE, FALSE, sizeof (CoopMapPiece));
      CoopGen *gen = coop_gen_new (seed, BUDGET);
      CoopModel *model = coop_model_new ();
      const void *body;
      for (guint i = 0; i < 6000; i++)
        {
          CoopEvent ev = *coop_gen_next (gen, &body);
          guint8 copy[1024] = { 0 };
          memcpy (copy, body != NULL ? body : "", body != NULL ? MIN (64 * ev.more, sizeof copy) : 0);
          if (i > 200 && g_rand_int_range (rand, 0, 4) == 0)
            {
              guint word = g_rand_int_range (rand, 0, 5);
              switch (g_rand_int_range (rand, 0, 6))
                {
                case 0:
                  ev.kind = g_rand_int_range (rand, 0, 70);
                  ev.more = g_rand_int_range (rand, 0, 17);
                  break;
                case 1:
                  ev.u.word[word] = g_rand_int_range (rand, 0, 400);
                  break;
                case 2:
                  ev.u.word[word] = (guint64) g_rand_int (rand) << 32 | g_rand_int (rand);
                  break;
                case 3:
                  ev.u.word[word] ^= 1;
                  break;
                case 4:
                  ((guint64 *) copy)[g_rand_int_range (rand, 0, 16)] = g_rand_int_range (rand, 0, 400);
                  break;
                default:
                  ev.seq = g_rand_int (rand);
                }
            }
          g_autofree char *detail = NULL;
          coop_model_apply (model, &ev, copy, &detail);
          g_autofree char *text = coop_model_describe (model, &ev, copy);
          g_assert_true (g_utf8_validate (text, -1, NULL));
        }
      const CoopModelTotals *t = coop_model_totals (model);
      guint64 used = 0, at = 0;
      coop_model_pieces (model, pieces);
      for (guint i = 0; i < pieces->len; i++)
        {
          const CoopMapPiece *p = &g_array_index (pieces, CoopMapPiece, i);
          g_assert_cmpuint (p->addr, ==, at);
          at += p->bytes;
          used += p->used ? p->bytes : 0;
        }
      g_assert_cmpuint (t->used, ==, used);
      g_assert_cmpuint (t->pinned + t->evictable, ==, used);
      CoopModel *copy = coop_model_copy (model);
      g_autoptr (GBytes) a = coop_model_save (model);
      g_autoptr (GBytes) b = coop_model_save (copy);
      g_assert_true (g_bytes_equal (a, b));
      coop_model_free (copy);
      coop_model_free (model);
      coop_gen_free (gen);
    }
}

/* ---- by hand ---- */

typedef struct {
  CoopModel *model;
  guint64 seq;
} Hand;

static CoopFault
put (Hand *hand, CoopEvent ev, const void *body, gsize bytes)
{
  guint8 records[256] = { 0 };
  if (bytes > 0)
    memcpy (records, body, bytes);
  ev.more = (bytes + 63) / 64;
  ev.seq = hand->seq++;
  ev.ts = MAX (ev.ts, 10 * ev.seq);
  return coop_model_apply (hand->model, &ev, records, NULL);
}
#define PUT(hand, ...) put (hand, (CoopEvent) { __VA_ARGS__ }, NULL, 0)

static void
put_tensor (Hand *hand, guint64 id, guint64 block, guint64 op, guint kind, guint pin)
{
  CoopTensorBody body = { .kind = kind, .pin = pin, .ndim = 1, .dims = { 128 } };
  g_assert_cmpint (put (hand, (CoopEvent) { .kind = COOP_EVENT_TENSOR, .u.tensor = { id, id, op, 512, block } },
                        &body, sizeof body), ==, COOP_FAULT_NONE);
}

static CoopMapPiece
piece (Hand *hand, guint64 block)
{
  g_autoptr (GArray) pieces = g_array_new (FALSE, FALSE, sizeof (CoopMapPiece));
  coop_model_pieces (hand->model, pieces);
  for (guint i = 0; i < pieces->len; i++)
    if (g_array_index (pieces, CoopMapPiece, i).block == block)
      return g_array_index (pieces, CoopMapPiece, i);
  g_error ("block %" G_GUINT64_FORMAT " is not on the map", block);
}

static Hand
hand_new (guint64 budget)
{
  Hand hand = { coop_model_new (), 0 };
  PUT (&hand, .kind = COOP_EVENT_POOL, .u.pool = { 1, budget, 1 << 20 });
  PUT (&hand, .kind = COOP_EVENT_POLICY, .u.policy = { .param = COOP_PARAM_BUDGET, .new_bits = budget });
  return hand;
}

/* Tensor 1 is a parameter in block 1, tensor 2 is made of it by operator 1 in block 2. */
static Hand
hand_with_op (void)
{
  Hand hand = hand_new (4096);
  guint64 in = 1, out = 2;
  PUT (&hand, .kind = COOP_EVENT_ALLOC, .u.alloc = { 1, 0, 512, 500, 0 });
  put_tensor (&hand, 1, 1, 0, COOP_KIND_STATE, COOP_PIN_CONSTANT);
  put (&hand, (CoopEvent) { .kind = COOP_EVENT_OP_BEGIN, .u.op_begin = { .id = 1, .n_inputs = 1 } }, &in, 8);
  PUT (&hand, .kind = COOP_EVENT_ALLOC, .u.alloc = { 2, 512, 512, 512, 1 });
  put_tensor (&hand, 2, 2, 1, COOP_KIND_ACTIVATION, COOP_PIN_NONE);
  g_assert_cmpint (piece (&hand, 2).pin, ==, COOP_PIN_OPERATOR);
  put (&hand, (CoopEvent) { .kind = COOP_EVENT_OP_END, .u.op_end = { .id = 1, .cost = 70, .duration = 80, .n_outputs = 1 } },
       &out, 8);
  return hand;
}

static void
test_pins (void)
{
  Hand hand = hand_with_op ();
  guint64 in = 2;
  CoopTensorInfo info;
  CoopMapPiece p = piece (&hand, 2);
  g_assert_cmpint (p.pin, ==, COOP_PIN_NONE);
  g_assert_cmpint (p.kind, ==, COOP_KIND_ACTIVATION);
  g_assert_cmpuint (p.cost, ==, 70);
  g_assert_cmpint (piece (&hand, 1).pin, ==, COOP_PIN_CONSTANT);
  g_assert_cmpuint (coop_model_totals (hand.model)->evictable, ==, 512);
  put (&hand, (CoopEvent) { .kind = COOP_EVENT_OP_BEGIN, .u.op_begin = { .id = 2, .n_inputs = 1 } }, &in, 8);
  p = piece (&hand, 2);
  g_assert_cmpint (p.pin, ==, COOP_PIN_OPERATOR);
  g_assert_cmpuint (p.used_seq, ==, hand.seq - 1);
  PUT (&hand, .kind = COOP_EVENT_ALLOC, .u.alloc = { 3, 1024, 512, 1, 2 });
  g_assert_cmpint (piece (&hand, 3).pin, ==, COOP_PIN_OPERATOR);
  PUT (&hand, .kind = COOP_EVENT_OP_END, .u.op_end = { .id = 2, .failed = 1 });
  g_assert_cmpint (piece (&hand, 3).pin, ==, COOP_PIN_UNCLAIMED);
  g_assert_cmpint (piece (&hand, 2).pin, ==, COOP_PIN_NONE);
  PUT (&hand, .kind = COOP_EVENT_ESCAPE, .u.pin = { 2, 2, COOP_PIN_ESCAPED, 1 });
  g_assert_cmpint (piece (&hand, 2).pin, ==, COOP_PIN_ESCAPED);
  PUT (&hand, .kind = COOP_EVENT_RECLASSIFY, .u.reclassify = { 2, COOP_KIND_OTHER, COOP_PIN_NONE });
  g_assert_cmpint (piece (&hand, 2).pin, ==, COOP_PIN_NONE);
  g_assert_cmpint (piece (&hand, 2).kind, ==, COOP_KIND_OTHER);
  g_assert_true (coop_model_tensor (hand.model, 2, &info));
  g_assert_cmpint (info.dims[0], ==, 128);
  coop_model_free (hand.model);
}

static void
test_evict_and_back (void)
{
  Hand hand = hand_with_op ();
  guint64 in = 1, out = 2;
  CoopTensorInfo info;
  CoopSearchBody search = { .cost = 2.5, .ns = 1500, .free_bytes = 3072, .next_cost = 3.5 };
  CoopEvictBody why = { .h = 2.5, .own_cost = 70 };
  put (&hand, (CoopEvent) { .kind = COOP_EVENT_SEARCH, .u.search = { 1, 3584, 512, 4096, 1, 2 } }, &search, sizeof search);
  put (&hand, (CoopEvent) { .kind = COOP_EVENT_EVICT, .u.evict = { 2, 512, 512, 2, 1 } }, &why, sizeof why);
  const CoopModelTotals *t = coop_model_totals (hand.model);
  g_assert_cmpuint (t->used, ==, 512);
  g_assert_cmpuint (t->largest, ==, 3584);
  g_assert_cmpuint (t->evicted, ==, 512);
  g_assert_cmpfloat (t->fragmentation, ==, 0.75);
  g_assert_true (coop_model_tensor (hand.model, 2, &info) && info.evicted && info.block == 0);
  const CoopLastEviction *last = coop_model_last_eviction (hand.model);
  g_assert_cmpuint (last->need, ==, 3584);
  g_assert_cmpfloat (last->body.next_cost, ==, 3.5);
  g_assert_cmpuint (last->n_victims, ==, 1);
  g_assert_cmpfloat (last->victims[0].why.h, ==, 2.5);
  put (&hand, (CoopEvent) { .kind = COOP_EVENT_OP_BEGIN, .u.op_begin = { .id = 2, .replay_of = 1, .n_inputs = 1 } }, &in, 8);
  PUT (&hand, .kind = COOP_EVENT_ALLOC, .u.alloc = { 3, 1024, 512, 512, 2 });
  put (&hand, (CoopEvent) { .kind = COOP_EVENT_OP_END, .u.op_end = { .id = 2, .cost = 90, .duration = 95, .n_outputs = 1 } },
       &out, 8);
  PUT (&hand, .kind = COOP_EVENT_HANDOVER, .u.handover = { 4, 1024, 512, 2, 3 });
  CoopMapPiece p = piece (&hand, 4);
  g_assert_cmpuint (p.tensor, ==, 2);
  g_assert_cmpuint (p.op, ==, 1);
  g_assert_cmpuint (p.cost, ==, 90);
  g_assert_cmpint (p.remats, ==, 1);
  g_assert_cmpint (p.pin, ==, COOP_PIN_NONE);
  g_assert_cmpuint (t->evicted, ==, 0);
  g_assert_cmpuint (t->replays, ==, 1);
  g_assert_cmpuint (t->replay_ns, ==, 95);
  g_assert_cmpuint (t->op_ns, ==, 80);
  CoopOpInfo op;
  g_assert_true (coop_model_op (hand.model, 1, &op));
  g_assert_cmpuint (op.start_ts, ==, 10 * 4); /* its begin is the fifth event */
  g_assert_cmpuint (op.duration, ==, 80);
  g_assert_cmpuint (op.cost, ==, 90);
  g_assert_false (coop_model_op (hand.model, 2, &op)); /* a repetition leaves nothing */
  PUT (&hand, .kind = COOP_EVENT_STEP, .u.step = { 1 });
  g_assert_cmpint (piece (&hand, 4).remats, ==, 0);
  PUT (&hand, .kind = COOP_EVENT_FREE, .u.free = { 4, 1024, 512, 2, 0 }); /* the hand-over failed */
  g_assert_cmpuint (t->evicted, ==, 512);
  g_assert_true (coop_model_tensor (hand.model, 2, &info) && info.held && info.evicted);
  PUT (&hand, .kind = COOP_EVENT_RELEASE, .u.release = { 2, 0 });
  g_assert_cmpuint (t->evicted, ==, 0);
  g_assert_false (coop_model_tensor (hand.model, 2, &info));
  g_assert_false (coop_model_op (hand.model, 1, &op));
  g_assert_true (coop_model_tensor (hand.model, 1, &info));
  coop_model_free (hand.model);
}

/* Holes are those below the budget, also when it moves under blocks that are still there. */
static void
test_budget (void)
{
  Hand hand = hand_with_op ();
  const CoopModelTotals *t = coop_model_totals (hand.model);
  PUT (&hand, .kind = COOP_EVENT_ALLOC, .u.alloc = { 3, 2048, 512, 512, 0 });
  g_assert_cmpuint (t->free, ==, 4096 - 1536);
  g_assert_cmpuint (t->largest, ==, 1536);
  PUT (&hand, .kind = COOP_EVENT_POLICY, .u.policy = { .param = COOP_PARAM_BUDGET, .new_bits = 1536 });
  g_assert_cmpuint (t->free, ==, 512);
  g_assert_cmpuint (t->largest, ==, 512);
  g_assert_cmpint (PUT (&hand, .kind = COOP_EVENT_ALLOC, .u.alloc = { 4, 1536, 512, 512, 0 }), ==, COOP_FAULT_BUDGET);
  PUT (&hand, .kind = COOP_EVENT_POLICY, .u.policy = { .param = COOP_PARAM_BUDGET, .new_bits = 0 });
  g_assert_cmpuint (t->free, ==, 512);
  g_assert_cmpuint (t->holes, ==, 1);
  coop_model_free (hand.model);
}

static void
test_faults (void)
{
  Hand hand = hand_with_op ();
  g_assert_cmpint (PUT (&hand, .kind = COOP_EVENT_ALLOC, .u.alloc = { 3, 256, 512, 1, 0 }), ==, COOP_FAULT_OVERLAP);
  g_assert_cmpint (PUT (&hand, .kind = COOP_EVENT_FREE, .u.free = { 77, 0, 512, 0, 0 }), ==, COOP_FAULT_FREE);
  g_assert_cmpint (PUT (&hand, .kind = COOP_EVENT_FREE, .u.free = { 3, 0, 512, 0, 0 }), ==, COOP_FAULT_FREE);
  g_assert_cmpint (PUT (&hand, .kind = COOP_EVENT_ALLOC, .u.alloc = { 4, 3840, 512, 1, 0 }), ==, COOP_FAULT_BUDGET);
  g_assert_cmpint (PUT (&hand, .kind = COOP_EVENT_ALLOC, .u.alloc = { 5, 0, 0, 1, 0 }), ==, COOP_FAULT_FORMAT);
  g_assert_cmpint (PUT (&hand, .kind = COOP_EVENT_RELEASE, .u.release = { 99, 0 }), ==, COOP_FAULT_UNKNOWN);
  g_assert_cmpint (PUT (&hand, .kind = COOP_EVENT_OP_END, .u.op_end = { .id = 5 }), ==, COOP_FAULT_UNKNOWN);
  g_assert_cmpint (PUT (&hand, .kind = 55), ==, COOP_FAULT_FORMAT);
  hand.seq += 5;
  g_assert_cmpint (PUT (&hand, .kind = COOP_EVENT_STEP, .u.step = { 1 }), ==, COOP_FAULT_SEQUENCE);
  hand.seq += 5;
  g_assert_cmpint (PUT (&hand, .kind = COOP_EVENT_GAP, .u.gap = { 5, hand.seq - 5 }), ==, COOP_FAULT_NONE);
  g_assert_cmpuint (coop_model_totals (hand.model)->missing, ==, 5);
  /* After a gap an unknown block may have begun in it. */
  g_assert_cmpint (PUT (&hand, .kind = COOP_EVENT_FREE, .u.free = { 88, 0, 512, 0, 0 }), ==, COOP_FAULT_NONE);
  coop_model_free (hand.model);
  CoopModel *model = coop_model_new ();
  CoopEvent ev = { .seq = 0, .ts = 100, .kind = COOP_EVENT_STEP };
  coop_model_apply (model, &ev, NULL, NULL);
  ev.u.step.step = 7; /* the same number again: left out */
  g_autofree char *again = NULL;
  g_assert_cmpint (coop_model_apply (model, &ev, NULL, &again), ==, COOP_FAULT_SEQUENCE);
  g_assert_cmpstr (again, ==, "number 0 comes again, or too late, where 1 was due; the event is left out");
  g_assert_cmpuint (coop_model_totals (model)->step, ==, 0);
  ev.seq = 1;
  ev.ts = 99;
  g_autofree char *detail = NULL;
  g_assert_cmpint (coop_model_apply (model, &ev, NULL, &detail), ==, COOP_FAULT_TIME);
  g_assert_cmpstr (detail, ==, "time goes back from 100 to 99 ns");
  coop_model_free (model);
}

static void
test_describe (void)
{
  Hand hand = hand_new (1u << 30);
  CoopEvictBody why = { 0 };
  put (&hand, (CoopEvent) { .kind = COOP_EVENT_STRING, .u.string = { 1, 12 } }, "aten::conv2d", 12);
  PUT (&hand, .kind = COOP_EVENT_OP_BEGIN, .u.op_begin = { .id = 1, .name = 1 });
  PUT (&hand, .kind = COOP_EVENT_ALLOC, .u.alloc = { 1, 0x1a00000, 36 << 20, 36 << 20, 1 });
  put_tensor (&hand, 3, 1, 1, COOP_KIND_ACTIVATION, COOP_PIN_NONE);
  CoopEvent ev = { .kind = COOP_EVENT_EVICT, .more = 1, .u.evict = { 1, 0x1a00000, 36 << 20, 3, 1 } };
  g_autofree char *text = coop_model_describe (hand.model, &ev, &why);
  g_assert_cmpstr (text, ==, "evict conv2d output 3 36.0 MiB at 0x1a00000");
  put (&hand, (CoopEvent) { .kind = COOP_EVENT_STRING, .u.string = { 2, 11 } }, "/a/train.py", 11);
  put (&hand, (CoopEvent) { .kind = COOP_EVENT_STRING, .u.string = { 4, 24 } }, "aten.convolution.default", 24);
  PUT (&hand, .kind = COOP_EVENT_OP_BEGIN, .u.op_begin = { .id = 2, .name = 4 });
  g_autofree char *op = coop_model_op_text (hand.model, 2);
  g_assert_cmpstr (op, ==, "convolution");
  put (&hand, (CoopEvent) { .kind = COOP_EVENT_STRING, .u.string = { 3, 7 } }, "forward", 7);
  PUT (&hand, .kind = COOP_EVENT_FRAME, .u.frame = { 1, 2, 3, 18 });
  PUT (&hand, .kind = COOP_EVENT_STACK, .u.stack = { 1, 0, 1 });
  g_autofree char *line = coop_model_stack_text (hand.model, 1);
  g_assert_cmpstr (line, ==, "train.py:18 in forward");
  g_assert_null (coop_model_stack_text (hand.model, 2));
  /* a module under a line, and one that nothing is known of but its name */
  put (&hand, (CoopEvent) { .kind = COOP_EVENT_STRING, .u.string = { 5, 6 } }, "module", 6);
  put (&hand, (CoopEvent) { .kind = COOP_EVENT_STRING, .u.string = { 6, 5 } }, "net.0", 5);
  PUT (&hand, .kind = COOP_EVENT_FRAME, .u.frame = { 2, 5, 6, 0 });
  PUT (&hand, .kind = COOP_EVENT_STACK, .u.stack = { 2, 1, 2 });
  PUT (&hand, .kind = COOP_EVENT_STACK, .u.stack = { 3, 0, 2 });
  g_autofree char *in_module = coop_model_stack_text (hand.model, 2), *module = coop_model_stack_text (hand.model, 3);
  g_assert_cmpstr (in_module, ==, "train.py:18 in forward, net.0");
  g_assert_cmpuint (coop_model_shown (hand.model, 2), ==, 1);
  g_assert_cmpstr (module, ==, "net.0");
  g_assert_cmpuint (coop_model_shown (hand.model, 3), ==, 0);
  coop_model_free (hand.model);
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  g_test_add_func ("/model/books", test_books);
  g_test_add_func ("/model/save", test_save);
  g_test_add_func ("/model/load-damaged", test_load_damaged);
  g_test_add_func ("/model/forgets", test_forgets);
  g_test_add_func ("/model/nonsense", test_nonsense);
  g_test_add_func ("/model/pins", test_pins);
  g_test_add_func ("/model/evict-and-back", test_evict_and_back);
  g_test_add_func ("/model/budget", test_budget);
  g_test_add_func ("/model/faults", test_faults);
  g_test_add_func ("/model/describe", test_describe);
  return g_test_run ();
}
