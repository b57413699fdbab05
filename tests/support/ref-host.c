/* SPDX-License-Identifier: Apache-2.0 */
#include "ref-engine.h"
#include "ref-host-private.h"
#include "ref-pools.h"

#include "core/engine-private.h" /* scores and limits, for the brute-force checks alone */

#include <math.h>
#include <string.h>

#define POISON 0xdd

/* ---- events and clock --------------------------------------------------------------------- */

static void
on_event (void *user, CoopEvent *ev, const void *body)
{
  RefHost *host = user;
  CoopSearchBody copy = { 0 };
  ev->seq = host->n_events++;
  ev->ts = host->n_events;
  if (host->watch.event != NULL)
    host->watch.event (host->watch.user, ev, body);
  if (!host->record_events)
    return;
  if (ev->more > 0)
    memcpy (&copy, body, sizeof copy);
  g_array_append_val (host->events, *ev);
  g_array_append_val (host->bodies, copy);
}

static uint64_t
on_now (void *user)
{
  RefHost *host = user;
  return ++host->ticks;
}

/* ---- a device that keeps count ------------------------------------------------------------ */

static void
set_mapped (RefHost *host, uint64_t addr, uint64_t bytes, uint8_t now)
{
  for (uint64_t g = addr / 512; g < (addr + bytes) / 512; g++)
    {
      g_assert_cmpuint (host->mapped[g], ==, !now);
      host->mapped[g] = now;
      for (unsigned i = 0; i < 512; i += 61)
        g_assert_cmpuint (host->memory[g * 512 + i], ==, POISON); /* nobody's bytes */
    }
  host->n_mapped += now ? bytes : -bytes;
}

static void
on_map (void *user, uint64_t addr, uint64_t bytes)
{
  set_mapped (user, addr, bytes, 1);
}

static void
on_unmap (void *user, uint64_t addr, uint64_t bytes)
{
  set_mapped (user, addr, bytes, 0);
}

static void
on_remap (void *user, uint64_t from, uint64_t to, uint64_t bytes)
{
  set_mapped (user, from, bytes, 0);
  set_mapped (user, to, bytes, 1);
}

static void
check_mapped (RefHost *host)
{
  const CoopEngine *e = host->engine;
  if (!e->pool.segmented)
    return;
  g_assert_cmpuint (host->n_mapped, ==, e->pool.held);
  for (guint i = 0; i < host->storages->len; i++)
    {
      const RefStorage *s = host->storages->pdata[i];
      for (uint64_t b = s->addr; s->addr != COOP_NO_ADDR && b < s->addr + s->bytes; b += 512)
        g_assert_true (host->mapped[b / 512]);
    }
}

RefHost *
ref_host_new (uint64_t capacity, const CoopPolicy *policy)
{
  const RefWatch nobody = { 0 };
  return ref_host_new_watched (capacity, policy, &nobody);
}

RefHost *
ref_host_new_watched (uint64_t capacity, const CoopPolicy *policy, const RefWatch *watch)
{
  RefHost *host = g_new0 (RefHost, 1);
  host->watch = *watch;
  CoopEngineOptions options = { .capacity = capacity, .policy = *policy,
                                .sink = { on_event, host }, .now = on_now, .now_user = host,
                                .backing = { on_map, on_unmap, on_remap, host } };
  host->capacity = capacity;
  host->memory = g_malloc (capacity);
  memset (host->memory, POISON, capacity);
  host->mapped = g_new0 (uint8_t, capacity / 512 + 1);
  host->storages = g_ptr_array_new ();
  host->events = g_array_new (FALSE, FALSE, sizeof (CoopEvent));
  host->bodies = g_array_new (FALSE, FALSE, sizeof (CoopSearchBody));
  host->engine = coop_engine_new (&options);
  g_assert_nonnull (host->engine);
  host->engine->mib = 2048; /* segments of caching as small as the machine */
  return host;
}

void
ref_host_verify (RefHost *host)
{
  g_assert_cmpstr (coop_engine_check (host->engine), ==, NULL);
  for (guint i = 0; i < host->storages->len; i++)
    {
      RefStorage *s = host->storages->pdata[i];
      if (s->addr != COOP_NO_ADDR)
        g_assert_true (memcmp (host->memory + s->addr, s->shadow, s->bytes) == 0);
      if (s->tensor != NULL)
        g_assert_cmpuint (s->tensor->addr, ==, s->addr);
    }
  check_mapped (host);
  if (host->watch.verify != NULL)
    host->watch.verify (host->watch.user, host);
}

void
ref_host_checkpoint (RefHost *host)
{
  if (host->check)
    ref_host_verify (host);
}

/* ---- blocks ------------------------------------------------------------------------------- */

void
ref_host_poison (RefHost *host, uint64_t addr, uint64_t bytes)
{
  memset (host->memory + addr, POISON, bytes);
}

void
ref_host_free_block (RefHost *host, uint64_t addr)
{
  g_assert_true (coop_engine_free (host->engine, addr));
}

static void
evict_one (RefHost *host, CoopTensor *t)
{
  RefStorage *s = t->host;
  if (!t->chosen || t->pins > 0 || t->addr == COOP_NO_ADDR || host->refuse > 0)
    {
      if (host->refuse > 0)
        host->refuse--;
      coop_engine_evict_failed (host->engine, t, COOP_PIN_NONE);
      return;
    }
  g_assert_nonnull (s);
  g_assert_cmpuint (s->addr, ==, t->addr);
  ref_host_poison (host, s->addr, s->bytes);
  s->addr = COOP_NO_ADDR;
  if (s->temporary)
    {
      t->host = NULL;
      g_free (s);
    }
  coop_engine_evicted (host->engine, t);
}

/* Evicting costs a share of the step, moving a launch and a copy. */
static void
set_prices (CoopEngine *e, CoopVersion *v, RefPiece *p)
{
  const CoopValue *policy = e->policy.v;
  double step = (double) (e->step_cost > 0 ? e->step_cost : e->clock);
  CoopScore s = coop_score (e, v);
  if (p->evictable && s.staleness > 0)
    p->evict = policy[COOP_PARAM_EVICT_PRICE].d * step * (double) (s.own + s.chain) / (double) s.staleness;
  bool stays = (v->t.pin != COOP_PIN_NONE && v->t.pin != COOP_PIN_CONSTANT) || v->t.pins > 0
               || v->t.chosen || v->moving || v->handing || v->fixed
               || v->t.kind == COOP_KIND_UNMANAGED;
  if (!stays && policy[COOP_PARAM_MOVES].i && policy[COOP_PARAM_COPY_RATE].d > 0)
    p->move = policy[COOP_PARAM_MOVE_COST].d * 1000 + (double) p->bytes / policy[COOP_PARAM_COPY_RATE].d;
}

static GArray *
snapshot (RefHost *host)
{
  CoopEngine *e = host->engine;
  size_t n = coop_engine_pieces (e, NULL, 0);
  CoopPiece *pieces = g_new (CoopPiece, n);
  GArray *out = g_array_sized_new (FALSE, TRUE, sizeof (RefPiece), n);
  g_assert_cmpuint (coop_engine_pieces (e, pieces, n), ==, n);
  for (size_t i = 0; i < n; i++)
    {
      CoopVersion *v = coop_version ((CoopTensor *) pieces[i].tensor);
      RefPiece p = { pieces[i].addr, pieces[i].bytes, pieces[i].used, false, 0, INFINITY, INFINITY };
      if (v != NULL && coop_evictable (e, v))
        {
          p.evictable = true;
          p.h = coop_score (e, v).h;
        }
      if (v != NULL)
        set_prices (e, v, &p);
      g_array_append_val (out, p);
    }
  g_free (pieces);
  return out;
}

/* One victim in the general area, which may go and has the lowest score; evictor random: any score. */
static void
check_single (RefHost *host, GArray *before, const CoopRequest *req)
{
  const CoopPolicy *policy = coop_engine_policy (host->engine);
  const RefPiece *victim = NULL;
  double least = INFINITY;
  g_assert_cmpuint (req->n_victims, ==, 1);
  for (guint i = 0; i < before->len; i++)
    {
      const RefPiece *p = &g_array_index (before, RefPiece, i);
      if (p->addr == req->victims[0]->addr)
        victim = p;
      if (p->evictable && p->addr >= host->engine->pool.small_end)
        least = MIN (least, p->h);
    }
  g_assert_true (victim != NULL && victim->evictable);
  if (policy->v[COOP_PARAM_EVICTOR].i != COOP_EVICTOR_RANDOM)
    g_assert_true (victim->h == least);
  host->brute_singles++;
}

/* coop-plus: who is evicted and who moves out of the window is the cheapest way to vacate it. */
static void
check_plan (RefHost *host, GArray *before, const CoopRequest *req)
{
  const CoopEngine *e = host->engine;
  double cost = 0;
  if (!req->reserved || !(req->window_hi <= e->pool.limit) || req->n_moves == 0)
    return;
  double best = ref_vacate ((const RefPiece *) before->data, before->len, e->pool.small_end, e->pool.limit,
                            req->window_lo, req->window_hi);
  if (best < 0)
    return;
  for (guint i = 0; i < before->len; i++)
    {
      const RefPiece *p = &g_array_index (before, RefPiece, i);
      for (unsigned k = 0; k < req->n_victims; k++)
        cost += req->victims[k]->addr == p->addr ? p->evict : 0;
      for (unsigned k = 0; k < req->n_moves; k++)
        cost += req->moves[k].from == p->addr ? p->move : 0;
    }
  g_assert_cmpfloat (fabs (cost - best), <=, 1e-9 * best);
  host->brute_plans++;
}

/* Whether the address is right for an expensive or for a cheap tensor. */
static bool
in_a_region (const RefHost *host, GArray *before, const CoopRequest *req, uint64_t lo, uint64_t hi,
             unsigned regions)
{
  for (int cheap = 0; cheap < 2; cheap++)
    if (req->addr == ref_fit_regions ((const RefPiece *) before->data, before->len, lo, hi,
                                      coop_round (req->bytes), regions, host->region[cheap], cheap))
      return true;
  return false;
}

/* The engine's answer to a first request against the slow one. */
static void
check_answer (RefHost *host, GArray *before, const CoopRequest *req, CoopStatus status)
{
  CoopEngine *e = host->engine;
  const RefPiece *pieces = (const RefPiece *) before->data;
  const CoopPolicy *policy = coop_engine_policy (e);
  uint64_t lo = e->pool.small_end, hi = e->pool.limit, need = coop_round (req->bytes);
  bool small = req->bytes <= (uint64_t) policy->v[COOP_PARAM_SMALL].i;
  uint64_t low = COOP_NO_ADDR, high = COOP_NO_ADDR;
  unsigned regions = (unsigned) policy->v[COOP_PARAM_GROUPS].i / 2;
  if (small)
    low = high = ref_fit (pieces, before->len, 0, lo, need, false);
  if (low == COOP_NO_ADDR)
    {
      low = ref_fit (pieces, before->len, lo, hi, need, false);
      high = ref_fit (pieces, before->len, lo, hi, need, true);
    }
  host->brute_fits++;
  if (status == COOP_OK)
    {
      if (e->limited && regions > 1 && req->addr >= lo)
        g_assert_true (in_a_region (host, before, req, lo, hi, regions));
      else
        g_assert_true (req->addr == low || (req->addr == high && e->limited && regions == 1));
      return;
    }
  if (status == COOP_EVICT && e->pool.node[e->pool.node[0].prev].used == PIECE_USED)
    return;
  if (req->victims != NULL && req->n_victims > 0 && req->victims[0]->addr >= hi)
    return; /* clearing what lies above a budget that shrank */
  g_assert_cmpuint (low, ==, COOP_NO_ADDR);
  if (coop_evictor (e) == &coop_evict_plus)
    {
      if (status == COOP_EVICT && !req->loosened)
        check_plan (host, before, req);
      return;
    }
  if (coop_evictor (e) != &coop_evict_window)
    {
      if (status == COOP_EVICT && !req->loosened)
        check_single (host, before, req);
      return;
    }
  RefWindow window = ref_window (pieces, before->len, lo, hi, need);
  if (req->loosened)
    {
      g_assert_false (window.found); /* what waits goes only then */
      return;
    }
  g_assert_cmpint (window.found, ==, status == COOP_EVICT);
  if (!window.found)
    return;
  host->brute_windows++;
  double cost = 0;
  unsigned members = 0, victims = 0;
  for (guint i = 0; i < before->len; i++)
    if (pieces[i].addr >= req->window_lo && pieces[i].addr < req->window_hi)
      {
        g_assert_true (!pieces[i].used || pieces[i].evictable);
        cost += pieces[i].h;
        members++;
        victims += pieces[i].used;
      }
  g_assert_cmpuint (members, >, 0);
  g_assert_cmpuint (victims, ==, req->n_victims);
  g_assert_cmpuint (req->window_hi - req->window_lo, >=, need);
  if (isinf (window.cost))
    g_assert_true (isinf (cost));
  else
    g_assert_cmpfloat (fabs (cost - window.cost), <=, 1e-9 * window.cost);
}

static bool
is_shrunk (RefHost *host)
{
  const CoopEngine *e = host->engine;
  for (uint32_t p = e->pool.node[0].prev; p != 0; p = e->pool.node[p].prev)
    if (e->pool.node[p].used == PIECE_USED)
      return e->pool.node[p].addr + e->pool.node[p].bytes > e->pool.limit;
  return false;
}

/* One in eight cannot be moved now. */
static void
move_aside (RefHost *host, const CoopAction *action)
{
  RefStorage *s = action->tensor->host;
  bool done = s != NULL && ++host->asides % 8 != 0;
  if (done)
    {
      g_assert_cmpuint (s->addr, ==, action->from);
      memcpy (host->memory + action->to, host->memory + action->from, s->bytes);
      ref_host_poison (host, action->from, s->bytes);
      s->addr = action->to;
    }
  coop_engine_placed (host->engine, action->tensor, action->to, done);
}

bool
ref_host_alloc (RefHost *host, const CoopCall *call, uint64_t bytes, uint64_t *addr)
{
  CoopRequest req = { .bytes = bytes, .call = call, .may_move = true };
  for (unsigned round = 0;; round++)
    {
      bool segmented = host->check && round == 0 && host->engine->pool.segmented;
      bool compare = host->check && round == 0 && !segmented && !is_shrunk (host);
      GArray *before = compare ? snapshot (host) : NULL;
      memcpy (host->region, host->engine->region, sizeof host->region);
      RefPools *pools = segmented ? ref_pools_look (host) : NULL;
      CoopStatus status = coop_engine_alloc (host->engine, &req);
      if (segmented)
        {
          ref_pools_check (host, pools, &req, status);
          ref_pools_free (pools);
        }
      if (compare)
        {
          check_answer (host, before, &req, status);
          g_array_unref (before);
        }
      if (status == COOP_OK)
        break;
      if (status == COOP_NO_MEMORY)
        {
          host->oom = req.oom;
          return false;
        }
      g_assert_cmpuint (round, <, 100000);
      for (unsigned i = 0; i < req.n_victims; i++)
        evict_one (host, req.victims[i]);
      for (unsigned i = 0; i < req.n_moves; i++)
        move_aside (host, &req.moves[i]);
    }
  *addr = req.addr;
  for (uint64_t i = 0; i < bytes; i += 61)
    g_assert_cmpuint (host->memory[*addr + i], ==, POISON);
  return true;
}

void
ref_host_stress (RefHost *host)
{
  CoopRequest req = { 0 };
  coop_engine_choose_all (host->engine, &req);
  for (unsigned i = 0; i < req.n_victims; i++)
    evict_one (host, req.victims[i]);
  coop_engine_cancel (host->engine, &req);
  ref_host_actions (host);
  ref_host_checkpoint (host);
}

/* ---- storages ----------------------------------------------------------------------------- */

void
ref_fill (uint8_t *out, uint64_t bytes, uint64_t h, unsigned index)
{
  h ^= (index + 1) * UINT64_C (0x9e3779b97f4a7c15);
  for (uint64_t i = 0; i < bytes; i += 8)
    {
      h ^= h << 13;
      h ^= h >> 7;
      h ^= h << 17;
      memcpy (out + i, &h, MIN (8, bytes - i));
    }
}

RefStorage *
ref_storage_new (RefHost *host, uint64_t addr, uint64_t bytes)
{
  RefStorage *s = g_new0 (RefStorage, 1);
  s->addr = addr;
  s->bytes = bytes;
  s->shadow = g_malloc0 (bytes);
  s->users = 1;
  g_ptr_array_add (host->storages, s);
  return s;
}

void
ref_storage_free (RefHost *host, RefStorage *s)
{
  g_ptr_array_remove_fast (host->storages, s);
  g_free (s->shadow);
  g_free (s);
}

RefStorage *
ref_host_constant (RefHost *host, uint64_t bytes, CoopKind kind, unsigned seed)
{
  uint64_t addr;
  if (!ref_host_alloc (host, NULL, bytes, &addr))
    return NULL;
  RefStorage *s = ref_storage_new (host, addr, bytes);
  ref_fill (s->shadow, bytes, seed + 1, 0);
  memcpy (host->memory + addr, s->shadow, bytes);
  CoopAdopt adopt = { .addr = addr, .requested = bytes, .kind = kind, .pin = COOP_PIN_CONSTANT,
                      .host = s };
  s->tensor = coop_engine_adopt (host->engine, &adopt);
  ref_host_actions (host);
  ref_host_checkpoint (host);
  return s;
}

/* The storage has no owner left. */
static void
storage_gone (RefHost *host, RefStorage *s)
{
  CoopTensor *t = s->tensor;
  uint64_t addr = s->addr;
  t->host = NULL;
  if (addr != COOP_NO_ADDR)
    ref_host_poison (host, addr, s->bytes);
  ref_storage_free (host, s);
  if (addr == COOP_NO_ADDR)
    coop_engine_release (host->engine, t);
  else
    ref_host_free_block (host, addr);
}

void
ref_host_drop (RefHost *host, RefStorage *s)
{
  g_assert_cmpuint (s->users, >, 0);
  s->users--;
  if (s->users + s->holds == 0)
    storage_gone (host, s);
  ref_host_actions (host);
  ref_host_checkpoint (host);
}

bool
ref_host_read (RefHost *host, RefStorage *s)
{
  RefOp op = { .input = { s }, .use = { COOP_USE_READ }, .n_inputs = 1, .name = 9999 };
  return ref_host_run (host, &op, NULL);
}

/* ---- actions ------------------------------------------------------------------------------ */

static void
move (RefHost *host, const CoopAction *action)
{
  RefStorage *s = action->tensor->host;
  g_assert_cmpuint (action->to, <, action->from);
  g_assert_cmpuint (s->addr, ==, action->from);
  memcpy (host->memory + action->to, host->memory + action->from, s->bytes);
  ref_host_poison (host, action->from, s->bytes);
  s->addr = action->to;
  coop_engine_placed (host->engine, action->tensor, action->to, true);
  host->placed++;
}

static void
act (RefHost *host, const CoopAction *action)
{
  RefStorage *s = action->tensor != NULL ? action->tensor->host : NULL;
  switch (action->kind)
    {
    case COOP_ACTION_HOLD:
      g_assert_nonnull (s);
      s->holds++;
      break;
    case COOP_ACTION_UNHOLD:
      g_assert_true (s != NULL && s->holds > 0);
      if (--s->holds + s->users == 0)
        storage_gone (host, s);
      break;
    case COOP_ACTION_RETURN:
      g_assert_true (s != NULL && s->temporary);
      ref_host_poison (host, s->addr, s->bytes);
      ref_host_free_block (host, s->addr);
      action->tensor->host = NULL;
      g_free (s);
      break;
    case COOP_ACTION_PLACE:
      move (host, action);
      break;
    case COOP_ACTION_OP_GONE:
      g_free (action->host);
      break;
    case COOP_ACTION_TENSOR_GONE:
      g_assert_null (action->host);
      break;
    case COOP_ACTION_THRASH:
      host->thrashed++;
      break;
    }
}

void
ref_host_actions (RefHost *host)
{
  CoopAction action;
  while (coop_engine_action (host->engine, &action))
    act (host, &action);
}

void
ref_host_free (RefHost *host)
{
  CoopTotals totals;
  for (bool any = true; any;)
    {
      any = false;
      for (guint i = 0; i < host->storages->len && !any; i++)
        {
          RefStorage *s = host->storages->pdata[i];
          if (s->users == 0)
            continue;
          ref_host_drop (host, s);
          any = true;
        }
    }
  ref_host_actions (host);
  coop_engine_totals (host->engine, &totals);
  g_assert_cmpuint (totals.live, ==, 0);
  g_assert_cmpuint (totals.records, ==, 0);
  g_assert_cmpuint (totals.tensors, ==, 0);
  g_assert_cmpuint (totals.evicted, ==, 0);
  g_assert_cmpstr (coop_engine_check (host->engine), ==, NULL);
  coop_engine_free_all (host->engine);
  g_ptr_array_unref (host->storages);
  g_array_unref (host->events);
  g_array_unref (host->bodies);
  g_free (host->memory);
  g_free (host->mapped);
  g_free (host);
}

/* ---- events ------------------------------------------------------------------------------- */

unsigned
ref_host_count (RefHost *host, CoopEventKind kind)
{
  unsigned n = 0;
  for (guint i = 0; i < host->events->len; i++)
    n += g_array_index (host->events, CoopEvent, i).kind == kind;
  return n;
}

const CoopEvent *
ref_host_event (RefHost *host, CoopEventKind kind, unsigned n, const void **body)
{
  for (guint i = 0; i < host->events->len; i++)
    if (g_array_index (host->events, CoopEvent, i).kind == kind && n-- == 0)
      {
        if (body != NULL)
          *body = &g_array_index (host->bodies, CoopSearchBody, i);
        return &g_array_index (host->events, CoopEvent, i);
      }
  return NULL;
}
