/* SPDX-License-Identifier: Apache-2.0 */
/* Generated runs: the pool, its holes and evictions, and the events they leave. */
#include "gen-private.h"

CoopGenItem *
coop_gen_emit (CoopGen *gen, guint kind, gsize body_bytes)
{
  guint more = (body_bytes + 63) / 64;
  CoopGenItem *item = g_malloc0 (sizeof (CoopGenItem) + 64 * more);
  gen->ts += g_rand_int_range (gen->rand, 0, 3000);
  item->ev.seq = gen->seq++;
  item->ev.ts = gen->ts;
  item->ev.kind = kind;
  item->ev.more = more;
  item->ev.thread = g_rand_int_range (gen->rand, 0, 2);
  g_queue_push_tail (&gen->queue, item);
  return item;
}

/* ---- blocks ---- */

CoopGenBlock *
coop_gen_find_block (CoopGen *gen, guint64 id)
{
  for (guint i = 0; i < gen->blocks->len; i++)
    {
      CoopGenBlock *b = &g_array_index (gen->blocks, CoopGenBlock, i);
      if (b->id == id)
        return b;
    }
  g_assert_not_reached ();
}

void
coop_gen_remove_block (CoopGen *gen, guint64 id)
{
  CoopGenBlock *b = coop_gen_find_block (gen, id);
  gen->books.used -= b->bytes;
  g_array_remove_index (gen->blocks, b - (CoopGenBlock *) gen->blocks->data);
}

void
coop_gen_insert_block (CoopGen *gen, guint64 id, guint64 addr, guint64 bytes)
{
  CoopGenBlock b = { addr, bytes, id, 0 };
  guint i = 0;
  while (i < gen->blocks->len && g_array_index (gen->blocks, CoopGenBlock, i).addr < addr)
    i++;
  g_array_insert_val (gen->blocks, i, b);
  gen->books.used += bytes;
  gen->books.peak = MAX (gen->books.peak, gen->books.used);
}

/* First hole from a random start that fits, so that holes of all sizes arise. */
guint64
coop_gen_find_hole (CoopGen *gen, guint64 bytes)
{
  guint64 best = COOP_NO_ADDR, from = 0;
  guint skip = g_rand_int_range (gen->rand, 0, 3);
  for (guint i = 0; i <= gen->blocks->len; i++)
    {
      CoopGenBlock *b = i < gen->blocks->len ? &g_array_index (gen->blocks, CoopGenBlock, i) : NULL;
      guint64 to = b != NULL ? b->addr : gen->budget;
      if (to >= from + bytes)
        {
          best = from;
          if (skip-- == 0)
            break;
        }
      from = b != NULL ? b->addr + b->bytes : from;
    }
  return best;
}

CoopGenTensor *
coop_gen_tensor (CoopGen *gen, guint64 id)
{
  return g_hash_table_lookup (gen->tensors, &id);
}

static gboolean
evictable (CoopGen *gen, const CoopGenBlock *b)
{
  CoopGenTensor *t = coop_gen_tensor (gen, b->tensor);
  return t != NULL && !t->constant && t->producer != 0 && !g_ptr_array_find (gen->pinned, t, NULL);
}

static void
evict (CoopGen *gen, guint64 block, guint64 search)
{
  CoopGenBlock b = *coop_gen_find_block (gen, block);
  CoopGenTensor *t = coop_gen_tensor (gen, b.tensor);
  CoopGenItem *item = coop_gen_emit (gen, COOP_EVENT_EVICT, sizeof (CoopEvictBody));
  item->ev.u.evict.block = b.id;
  item->ev.u.evict.addr = b.addr;
  item->ev.u.evict.bytes = b.bytes;
  item->ev.u.evict.tensor = t->id;
  item->ev.u.evict.search = search;
  CoopEvictBody *body = (CoopEvictBody *) item->body;
  body->h = g_rand_double (gen->rand);
  body->own_cost = g_rand_int_range (gen->rand, 1000, 1000000);
  body->requested = t->bytes;
  coop_gen_remove_block (gen, block);
  t->block = 0;
  gen->books.evictions++;
  if (t->held)
    gen->books.evicted += b.bytes;
}

/* The shortest run of evictable and free pieces, in address order, that is large enough. */
static gboolean
make_room (CoopGen *gen, guint64 bytes)
{
  GArray *blocks = gen->blocks;
  guint best_lo = 0, best_hi = 0;
  for (guint lo = 0; lo < blocks->len; lo++)
    {
      CoopGenBlock *first = &g_array_index (blocks, CoopGenBlock, lo);
      guint64 from = lo > 0 ? (first - 1)->addr + (first - 1)->bytes : 0;
      for (guint hi = lo; hi < blocks->len && evictable (gen, &g_array_index (blocks, CoopGenBlock, hi)); hi++)
        {
          guint64 to = hi + 1 < blocks->len ? g_array_index (blocks, CoopGenBlock, hi + 1).addr : gen->budget;
          if (to - from < bytes)
            continue;
          if (best_hi == 0 || hi + 1 - lo < best_hi - best_lo)
            {
              best_lo = lo;
              best_hi = hi + 1;
            }
          break;
        }
    }
  CoopGenItem *item = coop_gen_emit (gen, COOP_EVENT_SEARCH, sizeof (CoopSearchBody));
  CoopSearchBody *body = (CoopSearchBody *) item->body;
  item->ev.u.search.id = ++gen->next_search;
  item->ev.u.search.need = bytes;
  item->ev.u.search.victims = best_hi - best_lo;
  item->ev.u.search.visited = blocks->len;
  body->ns = g_rand_int_range (gen->rand, 300, 9000);
  body->free_bytes = gen->budget - gen->books.used;
  body->cost = best_hi > best_lo ? 0.5 : G_MAXDOUBLE;
  gen->books.searches++;
  guint n = best_hi - best_lo;
  guint64 ids[1024];
  for (guint i = 0; i < n; i++)
    ids[i] = g_array_index (blocks, CoopGenBlock, best_lo + i).id;
  for (guint i = 0; i < n; i++)
    evict (gen, ids[i], gen->next_search);
  return n > 0;
}

guint64
coop_gen_alloc (CoopGen *gen, guint64 requested, guint64 op)
{
  guint64 bytes = (requested + 511) / 512 * 512, addr;
  while ((addr = coop_gen_find_hole (gen, bytes)) == COOP_NO_ADDR)
    if (!make_room (gen, bytes))
      {
        CoopGenItem *item = coop_gen_emit (gen, COOP_EVENT_OOM, sizeof (CoopOomBody));
        item->ev.u.oom.asked = bytes;
        item->ev.u.oom.free = gen->budget - gen->books.used;
        item->ev.u.oom.advice = gen->budget + bytes;
        item->ev.u.oom.op = op;
        ((CoopOomBody *) item->body)->budget = gen->budget;
        gen->books.ooms++;
        return 0;
      }
  CoopGenItem *item = coop_gen_emit (gen, COOP_EVENT_ALLOC, 0);
  item->ev.u.alloc.block = ++gen->next_block;
  item->ev.u.alloc.addr = addr;
  item->ev.u.alloc.bytes = bytes;
  item->ev.u.alloc.requested = requested;
  item->ev.u.alloc.op = op;
  coop_gen_insert_block (gen, gen->next_block, addr, bytes);
  gen->books.allocs++;
  return gen->next_block;
}

void
coop_gen_free_block (CoopGen *gen, guint64 block, guint64 op)
{
  CoopGenBlock b = *coop_gen_find_block (gen, block);
  CoopGenItem *item = coop_gen_emit (gen, COOP_EVENT_FREE, 0);
  item->ev.u.free.block = b.id;
  item->ev.u.free.addr = b.addr;
  item->ev.u.free.bytes = b.bytes;
  item->ev.u.free.tensor = b.tensor;
  item->ev.u.free.op = op;
  coop_gen_remove_block (gen, block);
  gen->books.frees++;
}
