/* SPDX-License-Identifier: Apache-2.0 */
/* Memory: blocks, evictions, moves, and what is tried before a request is refused. */
#include "api-private.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define RESCUES 2 /* attempts after the first */

void *
api_at (const Coop *coop, uint64_t addr)
{
  return coop->memory + addr;
}

uint64_t
api_hash (const void *data, size_t bytes)
{
  const unsigned char *p = data;
  uint64_t h[4] = { 1, 2, 3, bytes }, w[4];
  for (; bytes >= sizeof w; bytes -= sizeof w, p += sizeof w)
    {
      memcpy (w, p, sizeof w);
      for (int i = 0; i < 4; i++)
        h[i] = (h[i] ^ w[i]) * UINT64_C (0x9e3779b97f4a7c15);
      for (int i = 0; i < 4; i++)
        h[i] ^= h[i] >> 29;
    }
  for (; bytes > 0; bytes--, p++)
    h[0] = (h[0] ^ *p) * UINT64_C (0x100000001b3);
  return h[0] ^ (h[1] << 1 | h[1] >> 63) ^ (h[2] << 2 | h[2] >> 62) ^ (h[3] << 3 | h[3] >> 61);
}

/* ---- evicting ----------------------------------------------------------------------------- */

static void
evict (Coop *coop, CoopTensor *t)
{
  CoopStorage *s = t->host;
  if (s == NULL) /* chosen under this very lock: all else is still so */
    {
      coop_engine_evict_failed (coop->engine, t, COOP_PIN_NONE);
      return;
    }
  if (s->temporary)
    {
      t->host = NULL;
      free (s);
    }
  else
    {
      s->hashed = coop_engine_policy (coop->engine)->v[COOP_PARAM_VERIFY].i != 0;
      if (s->hashed)
        s->hash = api_hash (api_at (coop, s->addr), s->bytes);
      s->addr = COOP_NO_ADDR;
    }
  coop_engine_evicted (coop->engine, t);
}

static void
evict_victims (Coop *coop, CoopRequest *req)
{
  for (unsigned i = 0; i < req->n_victims; i++)
    evict (coop, req->victims[i]);
}

void
api_evict_all (Coop *coop)
{
  CoopRequest req = { 0 };
  coop_engine_choose_all (coop->engine, &req);
  evict_victims (coop, &req);
  coop_engine_cancel (coop->engine, &req);
  api_act (coop);
}

void
api_return_pages (Coop *coop, uint64_t lo, uint64_t hi)
{
  uintptr_t page = (uintptr_t) sysconf (_SC_PAGESIZE);
  uintptr_t begin = ((uintptr_t) coop->memory + lo + page - 1) & ~(page - 1);
  uintptr_t end = ((uintptr_t) coop->memory + hi) & ~(page - 1);
  if (begin < end)
    madvise ((void *) begin, end - begin, MADV_DONTNEED);
}

/* Free memory above the budget goes back to the system. */
static void
trim (Coop *coop, uint64_t from)
{
  size_t n = coop_engine_pieces (coop->engine, NULL, 0);
  CoopPiece *pieces = malloc (n * sizeof *pieces);
  if (pieces != NULL)
    coop_engine_pieces (coop->engine, pieces, n);
  for (size_t i = 0; pieces != NULL && i < n; i++)
    {
      uint64_t hi = pieces[i].addr + pieces[i].bytes;
      if (!pieces[i].used && hi > from)
        api_return_pages (coop, pieces[i].addr > from ? pieces[i].addr : from, hi);
    }
  free (pieces);
}

void
api_evict_down (Coop *coop)
{
  CoopTotals totals;
  uint64_t addr;
  api_act (coop);
  coop_engine_totals (coop->engine, &totals);
  if (totals.budget == 0 || totals.live == 0)
    return;
  /* any request clears what lies above the budget first */
  if (api_take (coop, NULL, 1, true, &addr))
    api_give (coop, addr);
  api_act (coop);
  if (coop->own_memory)
    trim (coop, totals.budget);
}

/* ---- taking and giving -------------------------------------------------------------------- */

static void
tell_no_memory (Coop *coop, const CoopOom *oom)
{
  char asked[32], free[32], largest[32], budget[32], advice[32];
  coop_size_format (oom->asked, asked, sizeof asked);
  coop_size_format (oom->free, free, sizeof free);
  coop_size_format (oom->largest, largest, sizeof largest);
  coop_size_format (oom->budget, budget, sizeof budget);
  coop_size_format (oom->advice, advice, sizeof advice);
  api_fail (coop, COOP_FAILED_MEMORY, "out of memory: asked %s, free %s, largest run %s, budget %s%s%s%s",
            asked, free, largest, budget, oom->advice > 0 ? "; a budget of " : "",
            oom->advice > 0 ? advice : "", oom->advice > 0 ? " would do" : "");
}

bool
api_take (Coop *coop, const CoopCall *call, size_t bytes, bool retry, uint64_t *addr)
{
  CoopRequest req = { .bytes = bytes, .call = call, .retry = retry };
  for (;;)
    switch (coop_engine_alloc (coop->engine, &req))
      {
      case COOP_OK:
        *addr = req.addr;
        return true;
      case COOP_NO_MEMORY:
        if (!retry)
          tell_no_memory (coop, &req.oom);
        return false;
      case COOP_EVICT:
        evict_victims (coop, &req);
        break;
      }
}

void
api_give (Coop *coop, uint64_t addr)
{
  coop_engine_free (coop->engine, addr);
}

static bool
try_all (Coop *coop, const CoopCall *call, const size_t *bytes, unsigned n, bool retry, uint64_t *addr)
{
  for (unsigned i = 0; i < n; i++)
    if (!api_take (coop, call, bytes[i], retry, &addr[i]))
      {
        while (i-- > 0)
          api_give (coop, addr[i]);
        return false;
      }
  return true;
}

static void
move (Coop *coop, const CoopAction *action, CoopStorage *s)
{
  bool can = s != NULL && s->addr == action->from;
  if (can)
    {
      memmove (api_at (coop, action->to), api_at (coop, action->from), s->bytes);
      s->addr = action->to;
    }
  coop_engine_placed (coop->engine, action->tensor, action->to, can);
}

/* Nothing of the call runs yet: its own inputs may move, too. */
static void
compact (Coop *coop, const CoopCall *call)
{
  CoopAction action;
  while (coop_engine_compact (coop->engine, call, &action))
    move (coop, &action, action.tensor->host);
}

bool
api_take_all (Coop *coop, const CoopCall *call, const size_t *bytes, unsigned n, uint64_t *addr)
{
  const CoopValue *policy = coop_engine_policy (coop->engine)->v;
  bool rescue = policy[COOP_PARAM_COMPACT].i && policy[COOP_PARAM_BUDGET].i > 0;
  for (unsigned attempt = 0; rescue && attempt < RESCUES; attempt++)
    {
      if (try_all (coop, call, bytes, n, true, addr))
        return true;
      api_act (coop);
      if (attempt > 0)
        api_evict_all (coop);
      compact (coop, call);
    }
  return try_all (coop, call, bytes, n, false, addr);
}

/* ---- actions ------------------------------------------------------------------------------ */

/* Of a tensor whose host is s. */
static void
act (Coop *coop, const CoopAction *action, CoopStorage *s)
{
  switch (action->kind)
    {
    case COOP_ACTION_HOLD:
      s->users++;
      break;
    case COOP_ACTION_UNHOLD:
      api_storage_unuse (s);
      break;
    case COOP_ACTION_RETURN:
      s->tensor->host = NULL;
      api_give (coop, s->addr);
      free (s);
      break;
    case COOP_ACTION_PLACE:
      move (coop, action, s);
      break;
    case COOP_ACTION_THRASH:
      coop->thrashed++;
      break;
    case COOP_ACTION_OP_GONE:
    case COOP_ACTION_TENSOR_GONE:
      break;
    }
}

void
api_act (Coop *coop)
{
  CoopAction action;
  while (coop_engine_action (coop->engine, &action))
    if (action.kind == COOP_ACTION_OP_GONE)
      free (action.host);
    else if (action.tensor != NULL && action.tensor->host != NULL)
      act (coop, &action, action.tensor->host);
    else if (action.kind == COOP_ACTION_PLACE)
      coop_engine_placed (coop->engine, action.tensor, action.to, false);
}

/* ---- plain memory ------------------------------------------------------------------------- */

void *
coop_alloc (Coop *coop, size_t bytes)
{
  uint64_t addr;
  if (bytes == 0)
    bytes = 1;
  api_lock (coop);
  bool had = bytes <= coop->capacity && api_take (coop, NULL, bytes, false, &addr);
  if (bytes > coop->capacity)
    api_fail (coop, COOP_FAILED_MEMORY, "out of memory: asked more than the pool's address space");
  api_act (coop);
  void *block = had ? api_at (coop, addr) : NULL;
  api_unlock (coop);
  return block;
}

void
coop_free (Coop *coop, void *block)
{
  if (block == NULL)
    return;
  api_lock (coop);
  api_give (coop, (uint64_t) ((uint8_t *) block - coop->memory));
  api_act (coop);
  api_unlock (coop);
}
