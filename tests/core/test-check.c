/* SPDX-License-Identifier: Apache-2.0 */
/* coop_engine_check against engines that are wrong: each invariant, broken by hand, is found by name. */
#include "core/engine-private.h"
#include "support/ref-host.h"

#include <string.h>

/* A pool with a constant, a chain of four of which one is evicted, a record that is read, and holes. */
typedef struct
{
  RefHost *host;
  CoopEngine *e;
  RefStorage *constant, *chain[4];
} Fix;

static Fix
fix_new (void)
{
  CoopPolicy policy;
  Fix f;
  coop_policy_init (&policy);
  policy.v[COOP_PARAM_BUDGET].i = 64 << 10;
  policy.v[COOP_PARAM_SMALL].i = 0;
  policy.v[COOP_PARAM_HOLD].i = 0;
  f.host = ref_host_new (128 << 10, &policy);
  f.e = f.host->engine;
  f.constant = ref_host_constant (f.host, 1000, COOP_KIND_STATE, 1);
  f.chain[0] = ref_make (f.host, 2000, 10, 1, f.constant);
  for (unsigned i = 1; i < 4; i++)
    f.chain[i] = ref_make (f.host, 2000, 10 * i, 1, f.chain[i - 1]);
  CoopRequest req = { 0 };
  coop_engine_choose_all (f.e, &req);
  CoopTensor *t = f.chain[1]->tensor;
  f.chain[1]->addr = COOP_NO_ADDR;
  coop_engine_evicted (f.e, t);
  coop_engine_cancel (f.e, &req);
  g_assert_null (coop_engine_check (f.e));
  return f;
}

static CoopVersion *
of (const RefStorage *s)
{
  return coop_version (s->tensor);
}

/* Breaks one thing; the check must say so in these words. What was broken is put back. */
#define FOUND(lvalue, wrong, words)                                                                \
  do                                                                                               \
    {                                                                                              \
      __typeof__ (lvalue) before_ = (lvalue);                                                      \
      (lvalue) = (wrong);                                                                          \
      g_assert_cmpstr (coop_engine_check (f.e), ==, words);                                        \
      (lvalue) = before_;                                                                          \
      g_assert_cmpstr (coop_engine_check (f.e), ==, NULL);                                         \
    }                                                                                              \
  while (0)

/* The same, in any words. */
#define NOTICED(lvalue, wrong)                                                                     \
  do                                                                                               \
    {                                                                                              \
      __typeof__ (lvalue) before_ = (lvalue);                                                      \
      (lvalue) = (wrong);                                                                          \
      g_assert_nonnull (coop_engine_check (f.e));                                                  \
      (lvalue) = before_;                                                                          \
      g_assert_cmpstr (coop_engine_check (f.e), ==, NULL);                                         \
    }                                                                                              \
  while (0)

/* As it stands: what was evicted by hand the toy host does not know. */
static void
fix_free (Fix *f)
{
  coop_engine_free_all (f->e);
  for (guint i = 0; i < f->host->storages->len; i++)
    {
      RefStorage *s = f->host->storages->pdata[i];
      g_free (s->shadow);
      g_free (s);
    }
  g_ptr_array_unref (f->host->storages);
  g_array_unref (f->host->events);
  g_array_unref (f->host->bodies);
  g_free (f->host->memory);
  g_free (f->host);
}

static void
test_tensors (void)
{
  Fix f = fix_new ();
  CoopVersion *live = of (f.chain[2]), *gone = of (f.chain[1]), *fixed = of (f.constant);
  FOUND (live->t.state, COOP_EVICTED, "a tensor's state does not agree with its bytes");
  FOUND (gone->t.addr, 512, "a tensor's state does not agree with its bytes");
  FOUND (gone->t.state, COOP_LIVE, "a tensor's state does not agree with its bytes");
  FOUND (live->held, false, "a tensor's state does not agree with its being held");
  FOUND (live->t.addr, live->t.addr + 512, "a tensor and its block do not know each other");
  FOUND (live->t.requested, 100000, "a block is smaller than its tensor");
  FOUND (live->chain, 1, "a tensor with bytes is in a chain class");
  FOUND (live->n_readers, live->n_readers + 1, "a count of readers is wrong");
  FOUND (live->n_keepers, 1, "a count of readers is wrong");
  FOUND (live->readers->tensor, gone, "a list of readers is broken");
  FOUND (live->t.pin, COOP_PIN_CONSTANT, "a constant has a producer");
  FOUND (gone->producer, NULL, "an evicted tensor cannot be made again");
  FOUND (live->output, 1, "a tensor and its producer do not know each other");
  FOUND (live->counted, false, "a tensor is not counted by its producer");
  FOUND (fixed->hold, !fixed->hold, "a hold is neither in force nor due");
  fix_free (&f);
}

static void
test_records (void)
{
  Fix f = fix_new ();
  CoopOp *op = of (f.chain[2])->producer;
  FOUND (op->alive, 2, "a record's count of needed outputs is wrong");
  FOUND (f.e->n_ops, f.e->n_ops + 1, "a count of tensors, records or borrowed tensors is wrong");
  FOUND (f.e->n_tensors, f.e->n_tensors - 1, "a count of tensors, records or borrowed tensors is wrong");
  FOUND (f.e->n_borrowed, 1, "a count of tensors, records or borrowed tensors is wrong");
  FOUND (f.e->evicted, 0, "the sum of evicted bytes is wrong");
  FOUND (of (f.chain[2])->t.pins, 1, "the count of pins is wrong");
  FOUND (of (f.chain[1])->chain_cost, 99, "chain costs do not add up");
  CoopVersion *v = of (f.chain[0]);
  CoopScale scale = coop_scale (f.e);
  f.e->clock += 1000;
  coop_h (f.e, v, &scale);
  FOUND (v->known_cost, v->known_cost + 1, "a cost that is known is no longer true");
  fix_free (&f);
}

static void
test_pool (void)
{
  Fix f = fix_new ();
  CoopNode *node = f.e->pool.node, *n = coop_node (f.e, of (f.chain[2]));
  CoopPool *pool = &f.e->pool;
  uint32_t hole = 0;
  for (uint32_t i = node[0].next; i != 0; i = node[i].next)
    if (node[i].used == PIECE_FREE && node[i].addr < pool->limit)
      hole = i;
  g_assert_cmpuint (hole, !=, 0);
  NOTICED (node[hole].bytes, node[hole].bytes + 512);
  NOTICED (node[hole].area, AREA_BEYOND);
  NOTICED (node[hole].claim, 7);
  NOTICED (n->addr, n->addr + 512);
  NOTICED (n->refs, 0);
  NOTICED (n->used, PIECE_FREE);
  NOTICED (node[n->next].prev, 0);
  FOUND (node[0].prev, 0, "pieces do not fill the pool");
  FOUND (pool->capacity, pool->capacity + 512, "pieces do not fill the pool");
  FOUND (pool->n_pieces, pool->n_pieces + 1, "the count of pieces is wrong");
  FOUND (pool->n_used, pool->n_used + 1, "the count of pieces is wrong");
  FOUND (pool->free, pool->free + 512, "the sum of live or free bytes is wrong");
  FOUND (pool->live, pool->live + 512, "the sum of live or free bytes is wrong");
  fix_free (&f);
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  g_test_add_func ("/check/tensors", test_tensors);
  g_test_add_func ("/check/records", test_records);
  g_test_add_func ("/check/pool", test_pool);
  return g_test_run ();
}
