/* SPDX-License-Identifier: Apache-2.0 */
#include "ref-pools.h"

#include "core/engine-private.h" /* scores and what may go, for the comparison alone */

#include <math.h>

typedef struct
{
  uint64_t lo, hi, segment_lo, segment_hi; /* segment_hi 0: void */
  bool used, stays, small;
  double h;
} Piece;

typedef struct
{
  uint64_t lo, hi;
  bool blocked, empty, small;
  double h;
} Lot;

struct RefPools
{
  GArray *pieces, *lots;
  uint64_t budget, held, mib, page;
  int allocator;
  bool expandable, gives;
  unsigned steps;
};

static Piece *
piece (const RefPools *r, guint i)
{
  return &g_array_index (r->pieces, Piece, i);
}

static Lot *
lot (const RefPools *r, guint i)
{
  return &g_array_index (r->lots, Lot, i);
}

/* ---- the rules, as they are told --------------------------------------------------------- */

static uint64_t
up (uint64_t x, uint64_t unit)
{
  return (x + unit - 1) / unit * unit;
}

static uint64_t
block_of (const RefPools *r, uint64_t bytes)
{
  uint64_t b = up (bytes, 512);
  if (r->allocator == COOP_ALLOCATOR_PAGE)
    return b < r->page ? b : up (b, r->page);
  if (r->allocator != COOP_ALLOCATOR_CLASS)
    return b;
  for (uint64_t base = 512;; base *= 2) /* all classes, the smallest first */
    for (unsigned i = 0; i < r->steps; i++)
      {
        uint64_t class = base + base * i / r->steps;
        if (class % 512 == 0 && class >= b)
          return class;
      }
}

static bool
is_small (const RefPools *r, uint64_t block)
{
  return r->allocator == COOP_ALLOCATOR_PAGE      ? block < r->page
         : r->allocator == COOP_ALLOCATOR_CACHING ? block <= r->mib
                                                  : false;
}

static uint64_t
unit_of (const RefPools *r, bool small)
{
  if (r->allocator == COOP_ALLOCATOR_PAGE)
    return r->page;
  return r->expandable ? (small ? 2 : 20) * r->mib : 0;
}

static uint64_t
supply_of (const RefPools *r, uint64_t block)
{
  if (r->allocator == COOP_ALLOCATOR_CLASS)
    return block;
  if (r->allocator == COOP_ALLOCATOR_PAGE || r->expandable)
    return up (block, unit_of (r, is_small (r, block)));
  return block <= r->mib ? 2 * r->mib : block < 10 * r->mib ? 20 * r->mib : up (block, 2 * r->mib);
}

static bool
does (const RefPools *r, uint64_t block, uint64_t bytes)
{
  return r->allocator == COOP_ALLOCATOR_CLASS ? bytes == block : bytes >= block;
}

/* ---- the pool as it is -------------------------------------------------------------------- */

/* The least range of whole units around [lo, hi) that no block crosses the ends of. */
static Lot
lot_around (const RefPools *r, const Piece *p, uint64_t lo, uint64_t hi)
{
  uint64_t unit = unit_of (r, p->small);
  Lot l = { p->segment_lo, p->segment_hi, false, true, p->small, 0 };
  if (unit != 0)
    {
      l.lo = lo / unit * unit;
      l.hi = up (hi, unit);
    }
  for (guint i = 0; i < r->pieces->len && unit != 0; i++)
    {
      const Piece *q = piece (r, i);
      if ((!q->used && !q->stays) || q->hi <= l.lo || q->lo >= l.hi
          || (q->lo >= l.lo && q->hi <= l.hi))
        continue;
      l.lo = MIN (l.lo, q->lo / unit * unit);
      l.hi = MAX (l.hi, up (q->hi, unit));
      i = (guint) -1;
    }
  for (guint i = 0; i < r->pieces->len; i++)
    {
      const Piece *q = piece (r, i);
      if (q->hi <= l.lo || q->lo >= l.hi || q->segment_hi == 0)
        continue;
      l.blocked |= q->stays;
      l.empty &= !q->used && !q->stays;
      l.h += q->used && !q->stays ? q->h : 0;
    }
  return l;
}

static void
find_lots (RefPools *r)
{
  for (guint i = 0; i < r->pieces->len; i++)
    {
      const Piece *p = piece (r, i);
      uint64_t unit = unit_of (r, p->small);
      for (uint64_t at = p->lo; p->segment_hi != 0 && at < p->hi;)
        {
          Lot l = lot_around (r, p, at, at + 1);
          if (r->lots->len == 0 || lot (r, r->lots->len - 1)->lo < l.lo)
            g_array_append_val (r->lots, l);
          at = unit == 0 ? p->hi : MAX (l.hi, at / unit * unit + unit);
        }
    }
}

RefPools *
ref_pools_look (RefHost *host)
{
  CoopEngine *e = host->engine;
  RefPools *r = g_new0 (RefPools, 1);
  r->pieces = g_array_new (FALSE, FALSE, sizeof (Piece));
  r->lots = g_array_new (FALSE, FALSE, sizeof (Lot));
  r->allocator = (int) e->policy.v[COOP_PARAM_ALLOCATOR].i;
  r->expandable = r->allocator == COOP_ALLOCATOR_CACHING && e->policy.v[COOP_PARAM_EXPANDABLE].i;
  r->gives = r->allocator == COOP_ALLOCATOR_PAGE || e->policy.v[COOP_PARAM_GIVE_BACK].i;
  r->steps = 1;
  while (r->steps * 2 <= e->policy.v[COOP_PARAM_STEPS].i)
    r->steps *= 2;
  r->page = up ((uint64_t) e->policy.v[COOP_PARAM_PAGE].i, 512);
  r->mib = e->mib;
  r->budget = e->budget;
  for (uint32_t p = e->pool.node[0].next; p != 0; p = e->pool.node[p].next)
    {
      const CoopNode *n = &e->pool.node[p];
      const CoopSegment *s = &e->pool.segment[n->segment];
      Piece q = { n->addr, n->addr + n->bytes, s->lo, s->hi, n->used != PIECE_FREE, false,
                  s->area == AREA_SMALL, 0 };
      bool may_go = n->used == PIECE_USED && n->tensor != NULL && coop_evictable (e, n->tensor);
      q.stays = q.used ? !may_go : n->claim != 0;
      if (may_go)
        q.h = coop_score (e, n->tensor).h;
      r->held += n->segment != 0 ? n->bytes : 0;
      g_array_append_val (r->pieces, q);
    }
  find_lots (r);
  return r;
}

void
ref_pools_free (RefPools *r)
{
  g_array_unref (r->pieces);
  g_array_unref (r->lots);
  g_free (r);
}

/* ---- what can be had without eviction ----------------------------------------------------- */

static uint64_t
sum_lots (const RefPools *r, bool blocked)
{
  uint64_t sum = 0;
  for (guint i = 0; i < r->lots->len; i++)
    if (blocked ? lot (r, i)->blocked : lot (r, i)->empty)
      sum += lot (r, i)->hi - lot (r, i)->lo;
  return sum;
}

/* Best fit among free pieces of the right kind; NULL: none. */
static const Piece *
best_fit (const RefPools *r, uint64_t block)
{
  const Piece *best = NULL;
  for (guint i = 0; i < r->pieces->len; i++)
    {
      const Piece *p = piece (r, i);
      if (p->used || p->stays || p->segment_hi == 0 || p->small != is_small (r, block)
          || !does (r, block, p->hi - p->lo))
        continue;
      if (best == NULL || p->hi - p->lo < best->hi - best->lo)
        best = p;
    }
  return best;
}

/* ---- victims ------------------------------------------------------------------------------ */

static bool
in_window (const RefPools *r, uint64_t block, guint i)
{
  guint lo = i, hi = i;
  const Piece *p = piece (r, i);
  if (p->stays || p->segment_hi == 0 || p->small != is_small (r, block))
    return false;
  while (lo > 0 && piece (r, lo - 1)->segment_lo == p->segment_lo
         && piece (r, lo - 1)->segment_hi == p->segment_hi && !piece (r, lo - 1)->stays)
    lo--;
  while (hi + 1 < r->pieces->len && piece (r, hi + 1)->segment_hi == p->segment_hi
         && !piece (r, hi + 1)->stays)
    hi++;
  return does (r, block, piece (r, hi)->hi - piece (r, lo)->lo);
}

static bool
lots_can_do (const RefPools *r, uint64_t block)
{
  return r->gives && sum_lots (r, true) + supply_of (r, block) <= r->budget;
}

static bool
is_useful (const RefPools *r, uint64_t block, guint i)
{
  const Piece *p = piece (r, i);
  if (!p->used || p->stays)
    return false;
  return in_window (r, block, i)
         || (lots_can_do (r, block) && !lot_around (r, p, p->lo, p->hi).blocked);
}

static double
cheapest_window (const RefPools *r, uint64_t block)
{
  double best = NAN;
  for (guint i = 0; i < r->pieces->len; i++)
    {
      double sum = 0;
      for (guint k = i; k < r->pieces->len; k++)
        {
          const Piece *p = piece (r, k);
          if (p->segment_hi == 0 || p->segment_hi != piece (r, i)->segment_hi || p->stays
              || p->small != is_small (r, block))
            break;
          sum += p->used ? p->h : 0;
          if (does (r, block, p->hi - piece (r, i)->lo) && !(sum >= best))
            best = sum;
        }
    }
  return best;
}

/* Bytes of lots that must go, with empty ones gone. */
static uint64_t
short_of (const RefPools *r, uint64_t block)
{
  uint64_t have = r->budget - r->held + sum_lots (r, false), need = supply_of (r, block);
  return r->gives && need > have ? need - have : 0;
}

static double
cheapest_row (const RefPools *r, uint64_t bytes)
{
  double best = NAN;
  for (guint i = 0; i < r->lots->len && bytes > 0; i++)
    {
      double sum = 0;
      uint64_t n = 0;
      for (guint k = i; k < r->lots->len && !lot (r, k)->blocked; k++)
        {
          n += lot (r, k)->empty ? 0 : lot (r, k)->hi - lot (r, k)->lo;
          sum += lot (r, k)->h;
          if (n >= bytes && !(sum >= best))
            best = sum;
        }
    }
  return best;
}

/* All sets; NAN too if there are too many to try. */
static double
cheapest_set (const RefPools *r, uint64_t bytes, bool *tried)
{
  const Lot *open[14];
  guint n = 0;
  double best = NAN;
  *tried = false;
  for (guint i = 0; i < r->lots->len; i++)
    if (!lot (r, i)->blocked && !lot (r, i)->empty)
      {
        if (n == G_N_ELEMENTS (open))
          return NAN;
        open[n++] = lot (r, i);
      }
  *tried = true;
  for (guint set = 0; bytes > 0 && set < 1u << n; set++)
    {
      double sum = 0;
      uint64_t have = 0;
      for (guint i = 0; i < n; i++)
        if (set & 1u << i)
          {
            sum += open[i]->h;
            have += open[i]->hi - open[i]->lo;
          }
      if (have >= bytes && !(sum >= best))
        best = sum;
    }
  return best;
}

static double
sum_of_victims (const RefPools *r, const CoopRequest *req)
{
  double sum = 0;
  for (unsigned v = 0; v < req->n_victims; v++)
    for (guint i = 0; i < r->pieces->len; i++)
      if (piece (r, i)->lo == req->victims[v]->addr)
        {
          g_assert_true (piece (r, i)->used && !piece (r, i)->stays);
          sum += piece (r, i)->h;
        }
  return sum;
}

static void
check_single (RefHost *host, const RefPools *r, uint64_t block, const CoopRequest *req)
{
  double least = INFINITY;
  bool any = false, found = false;
  g_assert_cmpuint (req->n_victims, ==, 1);
  for (guint i = 0; i < r->pieces->len; i++)
    if (is_useful (r, block, i))
      {
        any = true;
        least = MIN (least, piece (r, i)->h);
        found |= piece (r, i)->lo == req->victims[0]->addr;
      }
  g_assert_true (any && found);
  if (coop_engine_policy (host->engine)->v[COOP_PARAM_EVICTOR].i != COOP_EVICTOR_RANDOM)
    g_assert_true (sum_of_victims (r, req) == least);
  host->brute_singles++;
}

static void
check_lots (RefHost *host, const RefPools *r, uint64_t block, const CoopRequest *req)
{
  bool any = coop_evictor (host->engine) == &coop_evict_set, tried = true;
  double window = cheapest_window (r, block), sum = sum_of_victims (r, req);
  double lots = any ? cheapest_set (r, short_of (r, block), &tried)
                    : cheapest_row (r, short_of (r, block));
  host->brute_windows++;
  if (!tried)
    return;
  double best = isnan (lots) || window < lots ? window : lots;
  g_assert_false (isnan (best));
  if (isinf (best))
    return;
  g_assert_cmpfloat (sum, >=, best * (1 - 1e-9));
  g_assert_cmpfloat (sum, <=, best * (any ? 2 : 1) * (1 + 1e-9));
  host->brute_sets += any;
  host->brute_optima += any && sum <= best * (1 + 1e-9);
}

static void
check_victims (RefHost *host, const RefPools *r, uint64_t block, const CoopRequest *req, CoopStatus status)
{
  int64_t evictor = coop_engine_policy (host->engine)->v[COOP_PARAM_EVICTOR].i;
  bool possible = lots_can_do (r, block) && short_of (r, block) > 0, window = false;
  for (guint i = 0; i < r->pieces->len; i++)
    window |= is_useful (r, block, i);
  if (evictor == COOP_EVICTOR_NONE)
    {
      g_assert_cmpint (status, ==, COOP_NO_MEMORY);
      return;
    }
  if (req->loosened)
    return;
  if (status == COOP_NO_MEMORY)
    {
      /* nothing that could help; a row may be cut where a set is not */
      if (coop_evictor (host->engine) != &coop_evict_row)
        g_assert_false (window);
      return;
    }
  g_assert_true (window || possible);
  if (coop_evictor (host->engine) == &coop_evict_row || coop_evictor (host->engine) == &coop_evict_set)
    check_lots (host, r, block, req);
  else
    check_single (host, r, block, req);
}

void
ref_pools_check (RefHost *host, const RefPools *r, const CoopRequest *req, CoopStatus status)
{
  uint64_t block = block_of (r, req->bytes);
  const Piece *fit = best_fit (r, block);
  bool new = r->held + supply_of (r, block) <= r->budget
             || (r->gives && r->held - sum_lots (r, false) + supply_of (r, block) <= r->budget);
  if (r->held > r->budget)
    return; /* the budget shrank */
  host->brute_fits++;
  if (fit != NULL)
    {
      g_assert_cmpint (status, ==, COOP_OK);
      g_assert_cmpuint (req->addr, ==, fit->lo);
    }
  else if (new)
    g_assert_cmpint (status, ==, COOP_OK);
  else if (!r->expandable) /* where a free tail can be grown, less will do */
    g_assert_cmpint (status, !=, COOP_OK);
  if (status != COOP_OK)
    check_victims (host, r, block, req, status);
}
