/* SPDX-License-Identifier: Apache-2.0 */
/* golden-trace FILE: a run of two operators, an eviction, an out of memory and a rematerialization, made by
 * hand from whole MiB and ms, so that what every view and every named query must say of it can be worked
 * out on paper: tests/fixtures/golden.txt. Under 8 MiB; the map, in MiB, at the moments that matter:
 *
 *     event 24, the peak   [1 parameter 0-2] [2 linear's output 2-4] [3 relu's workspace 4-7] [4 relu's output 7-8]
 *     event 35, no memory  [1 parameter 0-2] [5 gradient 2-6] hole 6-7 [4 relu's output 7-8]
 *     event 46, the end    [1 parameter 0-2] [8 linear's output, back and moved 2-4] [9 relu's 4-5] hole 5-7 [4 relu's output 7-8]
 */
#include "trace-support.h"

#define M(n) ((guint64) (n) << 20)
#define MS(n) ((guint64) (n) * 1000000)

typedef struct {
  CoopModel *model;
  CoopStore *store;
  guint64 seq, ts;
} Hand;

static void
put (Hand *hand, CoopEvent ev, const void *body, gsize bytes)
{
  guint8 records[256] = { 0 };
  if (bytes > 0)
    memcpy (records, body, bytes);
  ev.more = (guint16) ((bytes + 63) / 64);
  ev.seq = hand->seq++;
  ev.ts = hand->ts;
  g_autofree char *detail = NULL;
  coop_model_apply (hand->model, &ev, records, &detail);
  g_assert_cmpstr (detail, ==, NULL);
  coop_store_append (hand->store, hand->model, &ev, records);
}
#define PUT(hand, ...) put (hand, (CoopEvent) { __VA_ARGS__ }, NULL, 0)

static void
string (Hand *hand, guint64 id, const char *text)
{
  put (hand, (CoopEvent) { .kind = COOP_EVENT_STRING, .u.string = { id, strlen (text) } }, text, strlen (text));
}

static void
alloc (Hand *hand, guint64 block, guint64 addr, guint64 bytes, guint64 op)
{
  PUT (hand, .kind = COOP_EVENT_ALLOC, .u.alloc = { block, addr, bytes, bytes - 24, op });
}

static void
tensor (Hand *hand, guint64 id, guint64 op, guint64 block, guint64 bytes, guint kind, guint pin)
{
  CoopTensorBody body = { .kind = kind, .pin = pin, .dtype = 5, .ndim = 2, .dims = { (gint64) (bytes >> 12), 1024 } };
  put (hand, (CoopEvent) { .kind = COOP_EVENT_TENSOR, .u.tensor = { id, id, op, bytes, block } }, &body, sizeof body);
}

static void
begin (Hand *hand, guint64 op, guint64 name, guint64 replay_of, CoopPhase phase, guint32 step, guint64 input)
{
  put (hand, (CoopEvent) { .kind = COOP_EVENT_OP_BEGIN, .u.op_begin = { .id = op, .name = name, .replay_of = replay_of, .stack = name,
                                                                        .phase = phase, .n_inputs = 1, .step = step } },
       &input, sizeof input);
}

static void
finish (Hand *hand, guint64 op, guint64 ms, guint64 workspace, guint64 output)
{
  put (hand, (CoopEvent) { .kind = COOP_EVENT_OP_END, .u.op_end = { .id = op, .cost = MS (ms), .duration = MS (ms),
                                                                    .workspace = workspace, .n_outputs = 1 } },
       &output, sizeof output);
}

/* Events 0 to 14: what things are called. */
static void
names (Hand *hand)
{
  PUT (hand, .kind = COOP_EVENT_POOL, .u.pool = { 1, 0, M (16) });
  PUT (hand, .kind = COOP_EVENT_POLICY, .u.policy = { .param = COOP_PARAM_EVICTOR, .old_bits = COOP_EVICTOR_COOP,
                                                      .new_bits = COOP_EVICTOR_LRU, .source = COOP_SOURCE_FLAG, .generation = 1 });
  PUT (hand, .kind = COOP_EVENT_POLICY, .u.policy = { .param = COOP_PARAM_BUDGET, .old_bits = 0, .new_bits = (gint64) M (8),
                                                      .source = COOP_SOURCE_FLAG, .generation = 2 });
  string (hand, 1, "aten::linear");
  string (hand, 2, "aten::relu");
  string (hand, 3, "/home/u/train.py");
  string (hand, 4, "forward");
  string (hand, 5, "float32");
  string (hand, 6, "epoch 1");
  PUT (hand, .kind = COOP_EVENT_FRAME, .u.frame = { 1, 3, 4, 18 });
  PUT (hand, .kind = COOP_EVENT_FRAME, .u.frame = { 2, 3, 4, 19 });
  PUT (hand, .kind = COOP_EVENT_STACK, .u.stack = { 1, 0, 1 });
  PUT (hand, .kind = COOP_EVENT_STACK, .u.stack = { 2, 0, 2 });
  PUT (hand, .kind = COOP_EVENT_SEGMENT, .u.segment = { 1, 1, 0, M (16), 1 });
  PUT (hand, .kind = COOP_EVENT_ANNOTATION, .u.annotation = { 6 });
}

/* Events 15 to 27. */
static void
forward (Hand *hand)
{
  hand->ts = MS (1);
  alloc (hand, 1, 0, M (2), 0);
  tensor (hand, 1, 0, 1, M (2), COOP_KIND_STATE, COOP_PIN_CONSTANT);
  hand->ts = MS (2);
  PUT (hand, .kind = COOP_EVENT_PHASE, .u.phase = { COOP_PHASE_FORWARD });
  begin (hand, 1, 1, 0, COOP_PHASE_FORWARD, 0, 1);
  alloc (hand, 2, M (2), M (2), 1);
  tensor (hand, 2, 1, 2, M (2), COOP_KIND_ACTIVATION, COOP_PIN_NONE);
  hand->ts = MS (5);
  finish (hand, 1, 3, 0, 2);
  hand->ts = MS (6);
  begin (hand, 2, 2, 0, COOP_PHASE_FORWARD, 0, 2);
  alloc (hand, 3, M (4), M (3), 2);
  alloc (hand, 4, M (7), M (1), 2);
  tensor (hand, 3, 2, 4, M (1), COOP_KIND_ACTIVATION, COOP_PIN_NONE);
  hand->ts = MS (7);
  PUT (hand, .kind = COOP_EVENT_FREE, .u.free = { 3, M (4), M (3), 0, 2 });
  finish (hand, 2, 1, M (3), 3);
}

/* Events 28 to 37: 4 MiB are asked for, linear's output goes; then 6 more, for which there is no room. */
static void
backward (Hand *hand)
{
  CoopSearchBody search = { .cost = 2, .ns = 5000, .free_bytes = M (3), .largest = M (3), .next_cost = 7, .op = 3 };
  CoopEvictBody why = { .h = 2, .own_cost = MS (3), .staleness = MS (1), .requested = M (2) - 24 };
  CoopOomBody oom = { .budget = M (8), .evictable = M (1), .pinned = { [0] = M (4), [1] = M (2) } };
  hand->ts = MS (8);
  PUT (hand, .kind = COOP_EVENT_STEP, .u.step = { 1 });
  begin (hand, 3, 1, 0, COOP_PHASE_BACKWARD, 1, 3);
  put (hand, (CoopEvent) { .kind = COOP_EVENT_SEARCH, .u.search = { 1, M (4), M (2), M (7), 1, 3 } }, &search, sizeof search);
  put (hand, (CoopEvent) { .kind = COOP_EVENT_EVICT, .u.evict = { 2, M (2), M (2), 2, 1 } }, &why, sizeof why);
  hand->ts = MS (9);
  alloc (hand, 5, M (2), M (4), 3);
  tensor (hand, 4, 3, 5, M (4), COOP_KIND_GRADIENT, COOP_PIN_NONE);
  hand->ts = MS (10);
  finish (hand, 3, 2, 0, 4);
  put (hand, (CoopEvent) { .kind = COOP_EVENT_OOM, .u.oom = { M (6), M (1), M (1), M (12), 3 } }, &oom, sizeof oom);
  hand->ts = MS (12);
  PUT (hand, .kind = COOP_EVENT_RELEASE, .u.release = { 4, 5 });
  PUT (hand, .kind = COOP_EVENT_FREE, .u.free = { 5, M (2), M (4), 4, 0 });
}

/* Events 38 to 51: relu needs linear's output once more. It comes back, 9 ms after it went, and moves down. */
static void
again (Hand *hand)
{
  static const char text[] = "mind the step";
  hand->ts = MS (13);
  PUT (hand, .kind = COOP_EVENT_STEP, .u.step = { 2 });
  begin (hand, 4, 2, 0, COOP_PHASE_FORWARD, 2, 2);
  begin (hand, 5, 1, 1, COOP_PHASE_FORWARD, 2, 1);
  alloc (hand, 6, M (4), M (2), 5);
  hand->ts = MS (17);
  finish (hand, 5, 4, 0, 2);
  PUT (hand, .kind = COOP_EVENT_HANDOVER, .u.handover = { 7, M (4), M (2), 2, 6 });
  hand->ts = MS (18);
  PUT (hand, .kind = COOP_EVENT_MOVE, .u.move = { 7, M (4), M (2), M (2), 8 });
  alloc (hand, 9, M (4), M (1), 4);
  tensor (hand, 5, 4, 9, M (1), COOP_KIND_ACTIVATION, COOP_PIN_NONE);
  put (hand, (CoopEvent) { .kind = COOP_EVENT_WARNING, .u.warning = { 0, 0, 2, 4 } }, text, strlen (text));
  hand->ts = MS (20);
  finish (hand, 4, 1, 0, 5);
  PUT (hand, .kind = COOP_EVENT_END, .u.end = { 0 });
}

int
main (int argc, char **argv)
{
  GError *error = NULL;
  const char *meta[] = { "command", "python3 train.py", NULL };
  if (argc != 2)
    return 2;
  Hand hand = { coop_model_new (), coop_store_create (argv[1], meta, &error), 0, 0 };
  g_assert_no_error (error);
  names (&hand);
  forward (&hand);
  backward (&hand);
  again (&hand);
  coop_store_close (hand.store, COOP_RUN_ENDED, 0, &error);
  g_assert_no_error (error);
  coop_model_free (hand.model);
  return 0;
}
