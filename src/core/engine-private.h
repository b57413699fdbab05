/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of the engine share: the objects behind the handles and the steps between them.
 * Nothing here is for hosts. */
#ifndef COOP_ENGINE_PRIVATE_H
#define COOP_ENGINE_PRIVATE_H

#include "engine.h"
#include "pool.h"

#include <stddef.h>
#include <string.h>

typedef struct CoopVersion CoopVersion;
typedef struct CoopUse CoopUse;

/* One recorded input: a link of the list of those that read the tensor. */
struct CoopUse
{
  CoopVersion *tensor;
  CoopOp *op;
  CoopUse *next, *prev;
  uint8_t use;           /* COOP_USE_WRITE, COOP_USE_SCRATCH */
};

/* Shape and type, shared by the versions of a storage. */
typedef struct
{
  uint64_t dtype;
  uint32_t refs, ndim;
  int64_t dims[];
} CoopShape;

/* A tensor. `t` is what hosts see. What a search reads comes first: two cache lines. */
struct CoopVersion
{
  CoopTensor t;
  CoopOp *producer;      /* NULL: cannot be made again */
  uint64_t last;         /* clock of the last use */
  uint64_t known_cost;   /* own and chain cost, while `known` and the stamps of the classes hold */
  uint64_t known;        /* generation of the costs; 0: not known */
  uint64_t known_stamp[2]; /* of classes known_root: as many as it has, at most two, else not kept */
  uint32_t known_root[2];
  uint64_t refused;      /* clock + 1 at which the host said `not now` */
  uint32_t piece;        /* 0: no bytes */
  bool handing;          /* replayed, the host has not yet referred to its block */
  bool held;             /* the user has it */
  bool counted;          /* among producer->alive */
  bool spoiled;          /* half overwritten by a replay that failed: bytes are not its own */
  CoopUse *readers;      /* uses in live records, scratch ones too */
  uint32_t n_readers;    /* without SCRATCH */
  uint32_t n_keepers;    /* SCRATCH */
  uint32_t output;       /* index in producer's outputs */
  uint32_t chain;        /* node of the union-find; 0: has bytes, or has no producer */
  uint32_t backs;        /* times brought back in step back_step */
  uint32_t own_pins;     /* counted by the walk of compaction */
  uint64_t back_step;
  uint64_t chain_cost;   /* what it added to its class */
  uint64_t descent;      /* made in backward: cost of the pass until then */
  uint64_t born_step;    /* of the storage */
  uint64_t search;       /* that chose it */
  uint64_t place_tried;  /* step + 1 in which no lower hole was found */
  uint64_t mark;         /* stamp of the last walk that came by */
  CoopShape *shape;
  CoopVersion *next, *prev;
  bool hold, hold_due;   /* the host holds the storage; a change is in the queue */
  bool return_due, place_due, moving, left_while_moving;
  bool fixed;            /* the host could not move it: not tried again */
  bool suspect, gone;    /* in the reaper's list; dead */
};

struct CoopOp
{
  uint64_t id, name, stack, cost;
  void *host;
  CoopOp *next, *prev;
  CoopVersion **outputs; /* NULL: gone or constant */
  uint32_t n_inputs, n_outputs, n_new;
  uint32_t alive;        /* outputs that are needed and not constant */
  uint32_t busy;         /* frames that replay it */
  uint64_t mark;         /* stamp of the last walk that came by */
  uint8_t op_class, phase;
  bool suspect;
  CoopUse inputs[];
};

typedef struct
{
  CoopOp *op;
  CoopVersion *target;
  uint32_t runs;
} CoopFrame;

/* What a call carries from begin to end. */
typedef struct
{
  CoopCall *call;
  CoopFrame *frame;      /* explicit stack of replays */
  uint32_t n_frames, frame_room;
  CoopVersion **todo;    /* pinned; to be brought back and made constant */
  uint32_t n_todo, todo_room;
  CoopTensor **inputs;   /* of the replay handed out */
  bool *copy;
  uint32_t input_room, copy_room;
  uint64_t running;      /* number of the replay handed out; 0: none */
  uint64_t bytes, top;   /* allocated on behalf of the operator: now, at most */
  uint64_t start_cost;
  uint64_t wanted;       /* bytes in one run that compaction is to make; 0: all there are */
  uint64_t slide_lo, slide_hi; /* where it moves tensors */
  bool gathering;        /* counted in e->gathering: rematerialization is under way */
  bool settled;
  uint32_t loose;        /* levels of what waits that are not pinned for now, from the bottom */
  uint32_t loosened;     /* requests for which that was: bounded */
  uint64_t compacted;    /* the operator or replay that was given up last to move tensors together */
} CoopCallState;

typedef struct
{
  uint32_t parent;       /* itself: root */
  uint32_t refs;         /* tensors and nodes that point here */
  uint32_t size;
  int64_t cost;          /* of a root: sum of the class */
  uint64_t mark;
  uint64_t stamp;        /* changes with the cost of the class */
} CoopChainNode;

typedef struct
{
  uint64_t name;
  uint64_t cost, bytes;  /* sums over calls */
} CoopNameCost;

typedef struct
{
  CoopActionKind kind;
  CoopVersion *tensor;
  CoopOp *op;
} CoopDue;

typedef struct
{
  unsigned __int128 weight;
  uint64_t addr, bytes;
} CoopMember;

/* A member of a window: evicted, or moved to `to`. */
typedef struct
{
  uint32_t piece;
  uint64_t to;           /* COOP_NO_ADDR: evicted */
} CoopPlan;

/* A lot: the least range of a segmented pool that can go back to the device as a whole. No block
 * crosses its ends. */
typedef struct
{
  uint64_t lo, hi;
  unsigned __int128 sum; /* of the scores of what may go */
  uint32_t infinite;     /* how many of them are infinite */
  uint32_t first;        /* its first piece */
  uint32_t segment;
  bool empty;            /* nothing is used, nothing claimed */
  bool blocked;          /* something must stay, or is claimed */
  bool chosen;
} CoopLot;

/* How blocks are laid out. The evictors see the pool through it: what a block takes, what the device
 * must give for one, and in which units memory of the device comes free. */
typedef struct
{
  const char *name;
  bool segmented;
  bool slides;           /* tensors may move to lower addresses */
  /* Bytes of the block for a request. */
  uint64_t (*block) (const CoopEngine *e, uint64_t bytes);
  /* A used piece for the request; 0: there is no room, and nothing was changed. */
  uint32_t (*place) (CoopEngine *e, const CoopRequest *req);
  /* For segmented pools, of a block: where it lies, whether free piece p will do as it is, what the
   * device must give for it where none does. */
  CoopArea (*area) (const CoopEngine *e, uint64_t block);
  bool (*fits) (const CoopEngine *e, uint64_t block, uint64_t free_bytes);
  uint64_t (*supply) (const CoopEngine *e, uint64_t block);
  /* Memory of a segment of this area goes back in ranges of so many bytes; 0: as a whole. */
  uint64_t (*unit) (const CoopEngine *e, CoopArea area);
  /* Whether it goes back at all. */
  bool (*returns) (const CoopEngine *e);
} CoopAllocator;
extern const CoopAllocator coop_alloc_merge, coop_alloc_class, coop_alloc_caching,
    coop_alloc_expandable, coop_alloc_page;

struct CoopEngine
{
  CoopPolicy policy;
  CoopSink sink;
  uint64_t (*now) (void *);
  void *now_user;
  const CoopAllocator *allocator;
  CoopBacking backing;
  uint64_t mib;          /* 2^20; smaller in tests of allocator caching */
  CoopPool pool;
  uint64_t budget;       /* the limit in force, in bytes */
  bool limited;          /* the policy names a budget */

  CoopVersion *tensors;
  CoopOp *ops;
  uint64_t n_tensors, n_ops, op_bytes;
  unsigned region[2];      /* with 4 and 6 groups: where the expensive and the cheap are now */
  uint64_t last_block, last_tensor, last_storage, last_op, last_search;
  uint64_t clock, stamp;

  CoopCallState **calls; /* open, oldest first */
  uint32_t n_calls, call_room;
  uint32_t gathering;
  uint32_t loosened;     /* requests that made what waits evictable; nobody dies meanwhile */
  CoopVersion **borrowed;
  uint32_t n_borrowed, borrowed_room;
  CoopVersion **place;   /* state that may go lower */
  uint32_t n_place, place_room;

  CoopVersion **suspects; /* may be gone */
  uint32_t n_suspects, suspect_room;
  CoopOp **dead_ops;
  uint32_t n_dead_ops, dead_op_room;
  CoopDue *due;          /* queue of actions: ring from due_first */
  uint32_t due_first, n_due, due_room;
  CoopVersion *taken_tensor; /* memory to give back at the next call of coop_engine_action */
  CoopOp *taken_op;

  CoopChainNode *chain;
  uint32_t n_chain, chain_room, chain_spare;
  uint64_t chain_stamp;  /* last one given out */
  CoopVersion **walk;    /* stack of chain-exact.c */
  uint32_t walk_room;
  uint64_t draws;        /* of evictor random */
  uint64_t costs;        /* generation of CoopVersion.known, from 1 */
  CoopNameCost *names;   /* open addressing by name */
  uint32_t n_names, name_slots;

  CoopMember *member;    /* pieces of the window search, as scanned */
  uint32_t member_room;
  CoopLot *lot;          /* of the last search in a segmented pool */
  uint32_t n_lots, lot_room;
  CoopPlan *plan;        /* of evict-plus.c */
  uint32_t n_plan, plan_room;
  bool may_move, may_compact; /* of the request for which a search is made */
  uint64_t step_clock, step_cost; /* when the step began; cost of the one before, 0: not known */
  uint8_t *useful;       /* by piece: its going can make room for the request */
  uint32_t useful_room;

  uint64_t step;
  CoopPhase phase;
  uint64_t pass_clock;   /* when the backward pass began */
  bool backward_seen;    /* since the step began */
  bool ever_backward;
  uint64_t first_state;  /* bytes of state when the first step began */
  uint64_t asked;        /* bytes of live blocks as asked for, rounded to 512 */
  uint64_t peak, evicted, largest_set;
  uint64_t held_most;    /* largest sum of segments */
  uint64_t returned, remaps, device_ns; /* segments given back, pages moved, the time of both */
  uint64_t held_peak;    /* largest sum of live bytes and evicted ones */
  uint64_t allocs, frees, evictions, evicted_bytes, searches, search_ns;
  uint64_t ops_run, replays, ooms, moves, op_ns, replay_ns;
  double fragmentation;  /* sum over searches */
};

static inline CoopVersion *
coop_version (CoopTensor *t)
{
  return (CoopVersion *) t;
}

static inline CoopNode *
coop_node (const CoopEngine *e, const CoopVersion *v)
{
  return &e->pool.node[v->piece];
}

/* Asks for what a scan will look at two pieces later: a walk over many tensors waits for memory. */
static inline void
coop_look_ahead (const CoopNode *node, uint32_t p)
{
  uintptr_t ahead = (uintptr_t) node[node[node[p].next].next].tensor;
  __builtin_prefetch ((const void *) ahead);
  __builtin_prefetch ((const void *) (ahead + 64));
}

/* ---- tensor.c: versions, records, their life and death ---- */
CoopVersion *coop_version_new (CoopEngine *e, uint32_t piece, CoopShape *shape, uint64_t requested);
CoopShape *coop_shape_new (uint64_t dtype, uint32_t ndim, const int64_t *dims);
CoopOp *coop_record_new (CoopEngine *e, CoopCall *call, uint32_t n_new, uint32_t n_written);
void coop_record_add_output (CoopOp *op, uint32_t i, CoopVersion *v);
bool coop_hold_wanted (const CoopEngine *e, const CoopVersion *v);
static inline bool
coop_evictable (const CoopEngine *e, const CoopVersion *v)
{
  /* searches ask this of every piece: state, pin, chosen and pins in one look, whatever the kind */
  _Static_assert (offsetof (CoopTensor, pins) == offsetof (CoopTensor, state) + 4
                  && offsetof (CoopTensor, kind) == offsetof (CoopTensor, state) + 1
                  && __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "eight bytes, the second is the kind");
  uint64_t word;
  memcpy (&word, &v->t.state, sizeof word);
  word &= ~UINT64_C (0xff00);
  return (word == COOP_LIVE || word == COOP_BORROWED) && v->producer != NULL && !v->handing
         && v->refused != e->clock + 1;
}
/* Counts, holds and life of v anew after anything about it changed. */
void coop_version_update (CoopEngine *e, CoopVersion *v);
/* The bytes of v are gone; its piece is the caller's. */
void coop_version_lose (CoopEngine *e, CoopVersion *v, CoopState state);
/* v has bytes again, in `piece`. */
void coop_version_back (CoopEngine *e, CoopVersion *v, uint32_t piece, CoopState state);
void coop_version_make_constant (CoopEngine *e, CoopVersion *v, CoopKind kind, CoopPin pin);
void coop_pin (CoopVersion *v);
void coop_unpin (CoopEngine *e, CoopVersion *v);
void coop_op_release_busy (CoopEngine *e, CoopOp *op);
/* Disposes of all that died. At the end of each public function that lets go of something. */
void coop_reap (CoopEngine *e);
void coop_borrowed_remove (CoopEngine *e, CoopVersion *v);

/* ---- replay.c ---- */
/* The call has all it needs: it no longer keeps what others brought back. */
void coop_gather_stop (CoopEngine *e, CoopCall *call);
/* Lets go of all frames; what a failed replay may have spoiled goes back. */
void coop_replay_abort (CoopEngine *e, CoopCall *call);

/* The input is written in place; a scratch input is not. `use`: of a call's input or of a record's. */
static inline bool
coop_use_writes (unsigned use)
{
  return (use & COOP_USE_WRITE) && !(use & COOP_USE_SCRATCH);
}

/* ---- turns.c: kernels of other threads ---- */
/* The frame on top reads what another thread's kernel may be overwriting. */
bool coop_replay_waits (const CoopEngine *e, const CoopCallState *cs);
/* The operator overwrites what another thread's rematerialization may be reading. */
bool coop_operator_waits (const CoopEngine *e, const CoopCallState *cs);

/* ---- compact.c ---- */
/* The request is better given up: to move tensors together takes less than `cost` ns, would make room for
 * it, and has not been done for this operator. */
/* The request failed and its attempt will be given up: what compaction is to make room for. */
void coop_compact_want (CoopEngine *e, const CoopRequest *req);
bool coop_compact_cheaper (CoopEngine *e, const CoopRequest *req, uint64_t cost);

/* ---- loosen.c: the last resort before memory runs out ---- */
/* Takes the pins of what has waited longest for missing inputs to be brought back, more of them with each
 * call. False: nothing else waits, or it was done too often for the calls under way. A request says whether
 * this is its `first`; if that succeeded, it ends with one coop_tighten_all. */
bool coop_loosen (CoopEngine *e, bool first);
void coop_tighten_all (CoopEngine *e);
/* This call goes on: all that it waits with is pinned. */
void coop_tighten (CoopCallState *cs);

/* ---- chain.c: cost classes of what has no bytes ---- */
void coop_chain_lose (CoopEngine *e, CoopVersion *v);
void coop_chain_back (CoopEngine *e, CoopVersion *v);
uint64_t coop_chain_cost (CoopEngine *e, const CoopVersion *v);
/* The distinct classes beside v with their stamps: at most two, else false and nothing is kept. */
bool coop_chain_keep (CoopEngine *e, CoopVersion *v);

/* ---- chain-exact.c ---- */
uint64_t coop_chain_exact (CoopEngine *e, const CoopVersion *v);
uint64_t coop_chain_ancestors (CoopEngine *e, const CoopVersion *v);

/* ---- score.c ---- */
typedef struct
{
  double h;
  uint64_t own, chain, staleness;
} CoopScore;
CoopScore coop_score (CoopEngine *e, const CoopVersion *v);
/* The policy's part of it, read once for a search. */
typedef struct
{
  double cost, staleness, size; /* exponents */
  bool beside;                  /* free bytes on both sides count as size */
  bool simple, sized;           /* 1, 1, and 0 or 1 */
} CoopScale;
CoopScale coop_scale (const CoopEngine *e);
/* Looks up what v costs. */
void coop_know (CoopEngine *e, CoopVersion *v);
/* coop_h (e, v, scale): coop_score (e, v).h, from what is known of v where it still holds. */
#include "score.h"

/* ---- cost.c: what operators cost, and which are expensive ---- */
uint64_t coop_cost (const CoopEngine *e, CoopOpClass op_class, uint64_t bytes, uint64_t measured);
void coop_cost_learn (CoopEngine *e, uint64_t name, uint64_t cost, uint64_t bytes);
bool coop_cost_expensive (const CoopEngine *e, uint64_t name, CoopOpClass op_class);

/* ---- evict-*.c ---- */
typedef struct
{
  bool found, claim;      /* claim: keep the range for the request */
  bool lots;              /* the victims are those in e->lot that are chosen */
  bool plan;              /* e->plan tells who goes and who moves */
  uint64_t lo, hi;
  double cost, next_cost;
  uint64_t next_lo, next_hi;
  uint32_t visited;
} CoopChoice;

typedef struct
{
  const char *name;
  /* Finds victims for `need` contiguous bytes: everything used in [lo, hi). */
  void (*choose) (CoopEngine *e, uint64_t need, CoopChoice *choice);
} CoopEvictor;
extern const CoopEvictor coop_evict_window, coop_evict_single, coop_evict_random,
    coop_evict_none;
/* For segmented pools. row: in a segment, or in segments side by side. set: in a segment, or any. */
extern const CoopEvictor coop_evict_row, coop_evict_set, coop_evict_plus;
/* Of allocator and evictor. */
const CoopEvictor *coop_evictor (const CoopEngine *e);

/* ---- lots.c: a segmented pool as the evictors see it ---- */
/* Lists all lots in e->lot, with scores if `scores`. */
void coop_lots (CoopEngine *e, bool scores);
/* Marks in e->useful the pieces whose going can make room for a block: those in a run that will be
 * long enough, and if the device can give enough in the end, those in lots that can go back. */
void coop_lots_useful (CoopEngine *e, uint64_t block);

/* ---- segments.c: memory of the device ---- */
/* [addr, addr + bytes) of void piece p is backed: its free piece. */
uint32_t coop_back (CoopEngine *e, uint32_t p, uint64_t addr, uint64_t bytes, CoopArea area);
/* The second half of it: segment s is there. */
void coop_backed (CoopEngine *e, uint32_t s);
/* The free range [lo, hi) of piece p is void again: its memory went elsewhere, or back (give_back). */
void coop_unback (CoopEngine *e, uint32_t p, uint64_t lo, uint64_t hi);
void coop_give_back (CoopEngine *e, uint32_t p, uint64_t lo, uint64_t hi);
/* A segment's neighbours of the same area join it. */
void coop_back_join (CoopEngine *e, uint32_t s);
/* Bytes of the device that nothing uses or claims: whole segments, or pages. */
uint64_t coop_idle_bytes (const CoopEngine *e);
/* Gives back idle segments, the largest first, until `bytes` more fit the budget, or all of them.
 * False: not even then, and nothing was changed. */
bool coop_make_budget (CoopEngine *e, uint64_t bytes, bool all);
/* Bytes that could be used without evicting, and the largest block that could be. */
uint64_t coop_free_bytes (const CoopEngine *e);
uint64_t coop_largest (const CoopEngine *e);
/* Victims for a budget that shrank below what is held; false: nothing can go, or nothing must. */
bool coop_clear_excess (CoopEngine *e, CoopRequest *req);
void coop_emit_segment (CoopEngine *e, const CoopSegment *s, bool born);

/* ---- alloc.c ---- */
void coop_add_victim (CoopRequest *req, CoopVersion *v);
/* All that is used in [lo, hi). From piece `from` on, or from the first. */
void coop_take_range (CoopEngine *e, CoopRequest *req, uint64_t lo, uint64_t hi, uint32_t from);
CoopCallState *coop_call_state (const CoopEngine *e, uint64_t op);

/* ---- action.c ---- */
void coop_due (CoopEngine *e, CoopActionKind kind, CoopVersion *v, CoopOp *op);
void coop_place_later (CoopEngine *e, CoopVersion *v);
void coop_place_forget (CoopEngine *e, CoopVersion *v);
/* Everything borrowed goes back once no rematerialization is under way. */
void coop_return_borrowed (CoopEngine *e);

/* ---- report.c ---- */
void coop_report_oom (CoopEngine *e, CoopRequest *req);
uint64_t coop_state_bytes (const CoopEngine *e);

/* ---- emit.c ---- */
void coop_emit_pool (CoopEngine *e);
void coop_emit_policy (CoopEngine *e, CoopParam param, CoopSource source, CoopValue from,
                       uint64_t generation);
void coop_emit_alloc (CoopEngine *e, const CoopNode *n);
void coop_emit_free (CoopEngine *e, const CoopNode *n);
void coop_emit_evict (CoopEngine *e, CoopVersion *v);
void coop_emit_search (CoopEngine *e, const CoopRequest *req, const CoopChoice *choice,
                       uint32_t victims, uint64_t ns);
void coop_emit_tensor (CoopEngine *e, const CoopVersion *v, uint64_t op);
void coop_emit_reclassify (CoopEngine *e, const CoopVersion *v);
void coop_emit_pin (CoopEngine *e, const CoopVersion *v, CoopEventKind kind);
void coop_emit_op_begin (CoopEngine *e, uint64_t id, uint64_t name, uint64_t replay_of,
                         uint64_t stack, CoopPhase phase, uint32_t n, const uint64_t *inputs);
void coop_emit_op_end (CoopEngine *e, uint64_t id, uint64_t cost, uint64_t duration,
                       uint64_t workspace, bool failed, uint32_t n, const uint64_t *outputs);
void coop_emit_words (CoopEngine *e, CoopEventKind kind, uint64_t a, uint64_t b, uint64_t c,
                      uint64_t d, uint64_t f);
void coop_emit_oom (CoopEngine *e, const CoopOom *oom);

#endif
