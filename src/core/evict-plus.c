/* SPDX-License-Identifier: Apache-2.0 */
/* Evictor coop-plus: bytes first, then a window whose members may also move.
 *
 * First tensors go one at a time by their score (the preset takes dtr-eq's), wherever they lie, until
 * there are bytes enough. Then they are brought together: a window is chosen in which each member is
 * free, evicted or moved into a hole outside, whichever costs less. A move costs a launch and a copy; an
 * eviction `evict_price` of the time of a step, times its cost over its staleness, so that both are
 * times. Of the windows with the lowest bounds (holes for all that would rather move) the assignment
 * is worked out exactly, but for a limit on how much is tried. If no window can be had, all is moved
 * together between two attempts of the operator, its own inputs too; where that does not help either, one
 * more goes.
 *
 * With `bytes_first` or `moves` evictor coop does the same, in part. */
#include "engine-private.h"

#include "weight.h"

#include <math.h>
#include <stdlib.h>

#define WINDOWS 12       /* looked at closely */
#define MEMBERS 48       /* of such a window: with more it is left as it is */
#define HOLES 64         /* the largest outside */
#define TRIES 4000       /* steps of one assignment */

typedef struct
{
  Weight bound;
  uint32_t infinite, first, last; /* pieces */
  uint64_t lo, hi;
} Window;

typedef struct
{
  uint32_t piece;
  uint64_t bytes, to;    /* to: where it moves; COOP_NO_ADDR: it is evicted */
  double evict, move;
} Member;

typedef struct
{
  uint64_t addr, bytes;
} Hole;

typedef struct
{
  Member member[MEMBERS];
  uint64_t best_to[MEMBERS];
  double rest[MEMBERS + 1]; /* least that members from here on cost */
  Hole hole[HOLES];
  uint32_t n_members, n_holes, tries;
  double best;
} Assignment;

typedef struct
{
  double price, launch, rate; /* ns of a step at the price, ns, bytes per ns */
  bool moves;
} Terms;

/* ---- what a piece costs ------------------------------------------------------------------- */

static Terms
terms_of (const CoopEngine *e)
{
  const CoopValue *p = e->policy.v;
  uint64_t step = e->step_cost > 0 ? e->step_cost : e->clock;
  Terms t = { p[COOP_PARAM_EVICT_PRICE].d * (double) step, p[COOP_PARAM_MOVE_COST].d * 1000,
              p[COOP_PARAM_COPY_RATE].d, false };
  t.moves = e->may_move && !e->pool.segmented && p[COOP_PARAM_MOVES].i && t.rate > 0;
  return t;
}

static bool
may_move (const CoopVersion *v)
{
  return (v->t.state == COOP_LIVE || v->t.state == COOP_BORROWED) && v->t.pins == 0 && !v->t.chosen
         && (v->t.pin == COOP_PIN_NONE || v->t.pin == COOP_PIN_CONSTANT) && !v->moving && !v->handing
         && !v->fixed && v->t.kind != COOP_KIND_UNMANAGED;
}

static void
costs_of (CoopEngine *e, const CoopNode *n, const Terms *terms, double *evict, double *move)
{
  *evict = *move = INFINITY;
  if (n->used != PIECE_USED || n->tensor == NULL)
    return;
  if (coop_evictable (e, n->tensor))
    {
      CoopScore s = coop_score (e, n->tensor);
      if (s.staleness > 0)
        *evict = terms->price * (double) (s.own + s.chain) / (double) s.staleness;
    }
  if (terms->moves && may_move (n->tensor))
    *move = terms->launch + (double) n->bytes / terms->rate;
}

static bool
may_leave (const CoopEngine *e, const CoopNode *n, const Terms *terms)
{
  return n->used == PIECE_USED && n->tensor != NULL
         && (coop_evictable (e, n->tensor) || (terms->moves && may_move (n->tensor)));
}

static bool
is_hole (const CoopNode *n)
{
  return n->used == PIECE_FREE && n->claim == 0 && n->area == AREA_GENERAL;
}

/* ---- windows by their bounds -------------------------------------------------------------- */

static void
keep (Window *best, uint32_t *n, const Window *w)
{
  uint32_t at = *n;
  while (at > 0
         && (w->infinite != best[at - 1].infinite ? w->infinite < best[at - 1].infinite
                                                  : w->bound < best[at - 1].bound))
    at--;
  if (at == WINDOWS)
    return;
  *n += *n < WINDOWS;
  for (uint32_t i = *n - 1; i > at; i--)
    best[i] = best[i - 1];
  best[at] = *w;
}

static Weight
bound_of (CoopEngine *e, const CoopNode *n, const Terms *terms)
{
  double evict, move;
  if (n->used == PIECE_FREE)
    return 0;
  costs_of (e, n, terms, &evict, &move);
  return weigh (move < evict ? move : evict);
}

static void
add (Window *w, uint64_t *bytes, const CoopMember *m, int sign)
{
  *bytes += sign > 0 ? m->bytes : -m->bytes;
  if (m->weight == WEIGHT_INFINITE)
    w->infinite += (uint32_t) sign;
  else
    w->bound += sign > 0 ? m->weight : -m->weight;
}

/* The shortest window for each right end; of these the best by their bounds. */
static uint32_t
scan (CoopEngine *e, uint64_t need, const Terms *terms, Window *best, uint32_t *visited)
{
  const CoopNode *node = e->pool.node;
  uint32_t n = 0, first = 0, end = 0, from = 0;
  uint64_t bytes = 0;
  Window w = { 0 };
  e->member = coop_grow (e->member, &e->member_room, e->pool.n_pieces, sizeof *e->member);
  for (uint32_t p = node[0].next; p != 0 && node[p].addr < e->pool.limit; p = node[p].next)
    {
      if (node[p].addr < e->pool.small_end)
        continue;
      ++*visited;
      if (!is_hole (&node[p]) && !may_leave (e, &node[p], terms))
        {
          first = end = 0;
          bytes = 0;
          w = (Window) { 0 };
          continue;
        }
      if (end == 0)
        from = p;
      e->member[end] = (CoopMember) { bound_of (e, &node[p], terms), node[p].addr, node[p].bytes };
      add (&w, &bytes, &e->member[end++], 1);
      while (bytes - e->member[first].bytes >= need)
        {
          add (&w, &bytes, &e->member[first++], -1);
          from = node[from].next;
        }
      w.lo = e->member[first].addr;
      w.hi = node[p].addr + node[p].bytes;
      w.first = from;
      w.last = p;
      if (bytes >= need && w.hi <= e->pool.limit)
        keep (best, &n, &w);
    }
  return n;
}

/* ---- one window exactly ------------------------------------------------------------------- */

static int
larger_member (const void *a, const void *b)
{
  const Member *x = a, *y = b;
  return (x->bytes < y->bytes) - (x->bytes > y->bytes);
}

static int
larger_hole (const void *a, const void *b)
{
  const Hole *x = a, *y = b;
  return (x->bytes < y->bytes) - (x->bytes > y->bytes);
}

static bool
list_members (CoopEngine *e, const Window *w, const Terms *terms, Assignment *a)
{
  const CoopNode *node = e->pool.node;
  a->n_members = 0;
  for (uint32_t p = w->first; p != 0 && node[p].addr < w->hi; p = node[p].next)
    if (node[p].used == PIECE_USED)
      {
        if (a->n_members == MEMBERS)
          return false;
        Member *m = &a->member[a->n_members++];
        *m = (Member) { .piece = p, .bytes = node[p].bytes, .to = COOP_NO_ADDR };
        costs_of (e, &node[p], terms, &m->evict, &m->move);
      }
  qsort (a->member, a->n_members, sizeof *a->member, larger_member);
  a->rest[a->n_members] = 0;
  for (uint32_t i = a->n_members; i-- > 0;)
    a->rest[i] = a->rest[i + 1] + fmin (a->member[i].evict, a->member[i].move);
  return true;
}

static void
list_holes (const CoopEngine *e, const Window *w, Assignment *a)
{
  const CoopNode *node = e->pool.node;
  uint64_t least = a->n_members > 0 ? a->member[a->n_members - 1].bytes : UINT64_MAX;
  a->n_holes = 0;
  for (uint32_t p = node[0].next; p != 0 && node[p].addr < e->pool.limit; p = node[p].next)
    if (is_hole (&node[p]) && node[p].bytes >= least
        && (node[p].addr + node[p].bytes <= w->lo || node[p].addr >= w->hi))
      {
        Hole hole = { node[p].addr, node[p].bytes };
        if (a->n_holes < HOLES)
          a->hole[a->n_holes++] = hole;
        else
          {
            uint32_t small = 0;
            for (uint32_t i = 1; i < HOLES; i++)
              small = a->hole[i].bytes < a->hole[small].bytes ? i : small;
            if (hole.bytes > a->hole[small].bytes)
              a->hole[small] = hole;
          }
      }
  qsort (a->hole, a->n_holes, sizeof *a->hole, larger_hole);
}

static void try_member (Assignment *a, uint32_t i, double cost);

/* Into each hole that is large enough, the tightest first; holes of one size are one. */
static void
try_holes (Assignment *a, uint32_t i, double cost)
{
  Member *m = &a->member[i];
  uint64_t last = 0;
  for (;;)
    {
      uint32_t k = a->n_holes;
      for (uint32_t h = 0; h < a->n_holes; h++)
        if (a->hole[h].bytes >= m->bytes && a->hole[h].bytes > last
            && (k == a->n_holes || a->hole[h].bytes < a->hole[k].bytes))
          k = h;
      if (k == a->n_holes)
        return;
      Hole whole = a->hole[k];
      last = whole.bytes;
      m->to = whole.addr;
      a->hole[k] = (Hole) { whole.addr + m->bytes, whole.bytes - m->bytes };
      try_member (a, i + 1, cost + m->move);
      a->hole[k] = whole;
      m->to = COOP_NO_ADDR;
    }
}

/* Members from i on. As deep as there are members. */
static void
try_member (Assignment *a, uint32_t i, double cost)
{
  if (!(cost + a->rest[i] < a->best) || a->tries++ > TRIES)
    return;
  if (i == a->n_members)
    {
      a->best = cost;
      for (uint32_t k = 0; k < i; k++)
        a->best_to[k] = a->member[k].to;
      return;
    }
  if (a->member[i].move < a->member[i].evict)
    try_holes (a, i, cost);
  if (a->member[i].evict < INFINITY)
    try_member (a, i + 1, cost + a->member[i].evict);
}

static void
plan (CoopEngine *e, const Assignment *a)
{
  e->n_plan = 0;
  for (uint32_t i = 0; i < a->n_members; i++)
    {
      e->plan = coop_grow (e->plan, &e->plan_room, e->n_plan + 1, sizeof *e->plan);
      e->plan[e->n_plan++] = (CoopPlan) { a->member[i].piece, a->best_to[i] };
    }
}

/* ---- the choice --------------------------------------------------------------------------- */

static bool
choose_window (CoopEngine *e, uint64_t need, CoopChoice *choice)
{
  const Terms terms = terms_of (e);
  Window window[WINDOWS];
  Assignment a = { .best = INFINITY };
  uint32_t n = scan (e, need, &terms, window, &choice->visited);
  choice->cost = INFINITY;
  for (uint32_t i = 0; i < n; i++)
    {
      if (window[i].infinite > 0 || !((double) window[i].bound / WEIGHT_ONE < choice->cost)
          || !list_members (e, &window[i], &terms, &a))
        continue;
      list_holes (e, &window[i], &a);
      a.best = choice->cost;
      a.tries = 0;
      try_member (&a, 0, 0);
      if (!(a.best < choice->cost))
        continue;
      plan (e, &a);
      choice->found = choice->claim = choice->plan = true;
      choice->cost = a.best;
      choice->lo = window[i].lo;
      choice->hi = window[i].hi;
    }
  return choice->found;
}

static uint64_t
bytes_free (const CoopEngine *e)
{
  const CoopNode *node = e->pool.node;
  uint64_t bytes = 0;
  for (uint32_t p = node[0].next; p != 0; p = node[p].next)
    bytes += is_hole (&node[p]) ? node[p].bytes : 0;
  return bytes;
}

static void
choose (CoopEngine *e, uint64_t need, CoopChoice *choice)
{
  const CoopChoice empty = *choice;
  bool first = e->policy.v[COOP_PARAM_BYTES_FIRST].i != 0;
  if (first && bytes_free (e) < need)
    coop_evict_single.choose (e, need, choice);
  else if (!choose_window (e, need, choice))
    {
      *choice = empty;
      if (e->may_compact)
        return;
      coop_evict_window.choose (e, need, choice);
      if (!choice->found)
        coop_evict_single.choose (e, need, choice);
    }
}

const CoopEvictor coop_evict_plus = { "plus", choose };
