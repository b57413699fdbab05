/* SPDX-License-Identifier: Apache-2.0 */
/* Engine: one pool of memory, the storage versions ("tensors") that live in it, and the operators
 * that can make them again.
 *
 * The engine is pure: no I/O, no threads, no clock of its own, no callbacks but the sink. It never
 * touches the bytes it manages and knows offsets only. It decides; the *host* (the PyTorch adapter,
 * the replay, a C program, a test) acts and reports back. So the host can hold its lock around each
 * call and drop it while it acts. Unless stated otherwise no function may be called concurrently,
 * and pointers stay valid until the action TENSOR_GONE or OP_GONE that names them was taken.
 *
 * An operator, seen from the host:
 *
 *   coop_engine_begin (e, call)                      inputs are pinned, all at once
 *   while (coop_engine_next (e, call, &step) == COOP_STEP_REPLAY)
 *     { run step.op on its inputs; coop_engine_replayed (e, call, ...); hand over or keep or drop }
 *   run the operator itself                          its allocations call coop_engine_alloc
 *   coop_engine_end (e, call, ...)                   outputs become tensors, a record is kept
 *   while (coop_engine_action (e, &action)) act on it
 *
 * Terms. A *tensor* is a storage version: in-place writes end one version and begin the next at the
 * same address. *Held*: the user has it. *Needed*: held, or read by a live record. A *record*
 * (CoopOp) lives while one of its outputs is needed and not constant; records and tensors die by
 * reference count, whole chains at once and without recursion.
 *
 *   state      bytes?  held?
 *   LIVE       yes     yes     the user has it
 *   EVICTED    no      yes     dropped; the user still has the storage
 *   DEAD       no      no      the user let go; a record may need it again
 *   BORROWED   yes     no      dead, brought back by a rematerialization; itself evictable unpinned
 *
 * Constant tensors are never evicted and have no producer. What depends on a constant's old value
 * is brought back and becomes constant before the constant is overwritten.
 *
 * The clock of staleness is the sum of the costs of all operators run, replays included (as in the
 * authors' code), so equal costs give equal decisions; event times come from the sink.
 */
#ifndef COOP_ENGINE_H
#define COOP_ENGINE_H

#include "event.h"
#include "policy.h"

typedef struct CoopEngine CoopEngine;
typedef struct CoopOp CoopOp;

typedef enum { COOP_LIVE, COOP_EVICTED, COOP_DEAD, COOP_BORROWED } CoopState;

/* The head of a tensor that hosts may read; only `host` is theirs to write. */
typedef struct CoopTensor {
  uint64_t id;
  uint64_t storage;    /* number of the storage: equal for all versions of one storage */
  uint64_t addr;       /* offset in the pool, COOP_NO_ADDR without bytes */
  uint64_t requested;  /* bytes asked for; the block is this rounded up to 512 */
  void *host;
  uint8_t state;       /* CoopState */
  uint8_t kind;        /* CoopKind */
  uint8_t pin;         /* lasting CoopPin: NONE, CONSTANT, ESCAPED, USER, UNMANAGED */
  uint8_t chosen;      /* a victim of a request under way */
  uint32_t pins;       /* operators and rematerializations that need it right now */
} CoopTensor;

/* What the engine asks of the device while it decides, when the allocator holds memory in segments:
 * like the sink, called under the host's lock, in the order of the decisions; must not call the engine.
 * All may be NULL: addresses are then as good as memory (the replay, an arena that is never short). */
typedef struct {
  void (*map) (void *user, uint64_t addr, uint64_t bytes);    /* the range will be used */
  void (*unmap) (void *user, uint64_t addr, uint64_t bytes);  /* nothing in it will be read again */
  void (*remap) (void *user, uint64_t from, uint64_t to, uint64_t bytes); /* memory moves, its bytes need not */
  void *user;
} CoopBacking;

typedef struct {
  uint64_t capacity;   /* bytes of address space the budget may grow to, multiple of 512 */
  CoopPolicy policy;
  const uint32_t *source; /* CoopSource of each parameter's first value; NULL: all INITIAL */
  CoopSink sink;       /* emit may be NULL */
  uint64_t (*now) (void *user);  /* ns, for the time of searches alone; may be NULL */
  void *now_user;
  CoopBacking backing;
} CoopEngineOptions;

/* NULL if memory for the engine itself is short. Emits POOL, SEGMENT and one POLICY a parameter.
 * Internal memory: mmap or malloc, never from the pool. */
CoopEngine *coop_engine_new (const CoopEngineOptions *options);
void coop_engine_free_all (CoopEngine *e);

/* Takes over what differs and emits a POLICY event for each. Growing the budget is immediate;
 * shrinking keeps new blocks below the new limit at once, and what lies above is evicted or waits
 * for its free. */
void coop_engine_set_policy (CoopEngine *e, const CoopPolicy *policy, CoopSource source,
                             uint64_t generation);
const CoopPolicy *coop_engine_policy (const CoopEngine *e);

/* ---- memory ------------------------------------------------------------------------------- */

typedef enum {
  COOP_OK,
  COOP_EVICT,      /* evict req->victims, each with coop_engine_evicted or _evict_failed, then call again */
  COOP_NO_MEMORY   /* nothing more can go: req->oom says why. The OOM event is emitted. */
} CoopStatus;

typedef struct {
  uint64_t asked, free, largest, evictable, unclaimed, budget;
  uint64_t pinned[COOP_N_PINS]; /* bytes by reason */
  uint64_t advice;              /* a budget that would do, by all that is known now */
  uint64_t op;                  /* running operator, 0 if none */
} CoopOom;

/* Zero-fill before the first call and keep it until OK, NO_MEMORY or coop_engine_cancel. The range
 * that the victims free is reserved for this request. */
typedef struct {
  uint64_t bytes;        /* in */
  const struct CoopCall *call; /* in: the operator on whose behalf, or NULL */
  bool retry;            /* in: NO_MEMORY is not final, the host has a last resort: no OOM event */
  bool may_move;         /* in: the host can move tensors while an operator runs (not its inputs) */
  uint64_t addr;         /* out */
  CoopTensor **victims;  /* out, owned by the request */
  unsigned n_victims;
  struct CoopAction *moves; /* out: with EVICT, after the victims, in order: each a PLACE, to be reported
                               with coop_engine_placed; only with may_move */
  unsigned n_moves;
  CoopOom oom;
  /* the engine's own */
  unsigned capacity, rounds, move_room;
  uint64_t search, window_lo, window_hi;
  bool reserved, loosened;
} CoopRequest;

/* Emits ALLOC on success; SEARCH for every search made. bytes > 0. */
CoopStatus coop_engine_alloc (CoopEngine *e, CoopRequest *req);

/* What takes no search: places the request (true: as OK above), or returns false and has changed and
 * emitted nothing, but that segments nothing uses may have gone back to the device; coop_engine_alloc
 * then goes on with the same request. For hosts that need more (Python's lock) to evict than to
 * allocate. Never runs out of memory. */
bool coop_engine_try (CoopEngine *e, CoopRequest *req);

/* All tensors that may be evicted now, as victims, for `stress`. Ends like an alloc without one:
 * coop_engine_cancel. */
unsigned coop_engine_choose_all (CoopEngine *e, CoopRequest *req);

/* Ends a request early (or after choose_all): reservation and `chosen` marks are given back. */
void coop_engine_cancel (CoopEngine *e, CoopRequest *req);

/* The bytes of a chosen victim are gone: LIVE becomes EVICTED, BORROWED becomes DEAD. Emits EVICT.
 * Ends the block itself: no coop_engine_free for it. Nothing happens if t has no bytes any more. A
 * host that lets others run between choice and eviction looks again, right before it drops the
 * bytes: a victim with `chosen` 0 or pins > 0 is left alone, with _evict_failed (NONE). */
void coop_engine_evicted (CoopEngine *e, CoopTensor *t);
/* The host could not drop it: it gets the lasting pin `why`; NONE: not now, ask again later. */
void coop_engine_evict_failed (CoopEngine *e, CoopTensor *t, CoopPin why);

/* One more owner of the block at addr (hand-over: the user's storage beside the temporary one). */
void coop_engine_ref (CoopEngine *e, uint64_t addr);

/* One owner of the block at addr lets go. With the last one the block is free: a LIVE tensor there
 * is released by the user and becomes DEAD or goes; a BORROWED one becomes DEAD. Returns false if
 * there is no such block (nothing is done). */
bool coop_engine_free (CoopEngine *e, uint64_t addr);

/* The user lets go of an EVICTED tensor. */
void coop_engine_release (CoopEngine *e, CoopTensor *t);

/* The newest version in the block that begins at addr; NULL if unclaimed or no block. O(1). */
CoopTensor *coop_engine_tensor_at (const CoopEngine *e, uint64_t addr);

/* Claims an unclaimed block for a tensor without a producer: constant from birth. */
typedef struct {
  uint64_t addr, requested;
  CoopKind kind;
  CoopPin pin;           /* CONSTANT or UNMANAGED */
  uint64_t dtype;        /* string id */
  uint32_t ndim;
  const int64_t *dims;
  void *host;
} CoopAdopt;
CoopTensor *coop_engine_adopt (CoopEngine *e, const CoopAdopt *adopt);

/* ---- operators ---------------------------------------------------------------------------- */

enum {
  COOP_USE_READ = 0,
  COOP_USE_WRITE = 1 << 0,      /* written in place */
  COOP_USE_SCRATCH = 1 << 1,    /* written, but no output depends on the old value (running statistics);
                                   becomes constant; records keep it, but not as a reader */
  COOP_USE_STATE = 1 << 2,      /* a parameter or buffer: becomes constant state */
  COOP_USE_ESCAPE = 1 << 3,     /* its pointer leaves: becomes constant, pin ESCAPED, dependents too */
  COOP_USE_KEEP = 1 << 4,       /* becomes constant, pin USER; dependents are left alone */
  COOP_USE_UNRECORDED = 1 << 5  /* pinned while the operator runs, not part of its record */
};

typedef struct {
  CoopTensor *tensor;
  unsigned use;
} CoopInput;

/* How the model prices an operator when cost = model, and where it is placed before measured. */
typedef enum { COOP_CLASS_CHEAP, COOP_CLASS_EXPENSIVE, COOP_N_CLASSES } CoopOpClass;

typedef struct CoopCall {
  /* in */
  const CoopInput *inputs;   /* each tensor once; valid until coop_engine_end */
  unsigned n_inputs;
  uint64_t name;             /* string id of the operator; 0: not an operator (escape, keep) */
  uint64_t stack;            /* stack id */
  CoopPhase phase;
  CoopOpClass op_class;
  bool replayable;           /* false: outputs are constant */
  const void *thread;        /* tells threads apart; NULL where there is one. Calls of one thread nest */
  /* out */
  uint64_t id;               /* operator number */
  /* the engine's own */
  void *frames;
  unsigned n_frames, capacity;
  uint64_t workspace, base_live;
  struct CoopCall *outer;
} CoopCall;

/* Pins all inputs and emits OP_BEGIN (name != 0). Recognises phases and steps: the first write to
 * a STATE input after a backward operator begins a step. Never fails but for memory (false). */
bool coop_engine_begin (CoopEngine *e, CoopCall *call);

typedef enum {
  COOP_STEP_READY,   /* all inputs are there (and dependents of what is overwritten are constant) */
  COOP_STEP_REPLAY,  /* run step.op, then coop_engine_replayed */
  COOP_STEP_WAIT,    /* another thread's kernel overwrites what is wanted, or reads what the operator is about to
                        overwrite: ask again when it has ended; never with one thread */
  COOP_STEP_LOST     /* step.tensor is gone and has no record: a defect of host or engine */
} CoopNext;

typedef enum {
  COOP_DROP,      /* there already, or not needed: let the temporary go */
  COOP_HANDOVER,  /* hand its block to the user's storage (coop_engine_ref, then free the temporary) */
  COOP_BORROW     /* keep the temporary: host->TENSOR is borrowed until action RETURN or eviction */
} CoopWhat;

typedef struct {
  CoopOp *op;
  void *op_host;
  uint64_t replay;             /* operator number of this replay */
  unsigned n_inputs;
  CoopTensor *const *inputs;   /* as recorded, all with bytes and pinned */
  const bool *copy;            /* inputs[i] is written by the operator but must survive: run on a copy */
  unsigned n_outputs;          /* as recorded: new storages in order, then written inputs */
  CoopTensor *tensor;          /* LOST */
} CoopReplay;

/* Next thing to do before the operator may run. Emits OP_BEGIN of the replay. Iterative: an explicit
 * stack in the call. May be called with nothing left any number of times. */
CoopNext coop_engine_next (CoopEngine *e, CoopCall *call, CoopReplay *step);

/* The replay has run. addr[i]: block of output i (for a written input the block that now holds the
 * new version: the input's own, or the copy's). An input that was written without a copy was borrowed;
 * it has no bytes from here on, and its temporary is that of output i. what[i] and tensor[i] tell the
 * host what to do with output i, in order (tensor NULL: nobody needs it, DROP); HANDOVER is final when the host calls coop_engine_ref on that block. cost in ns as
 * measured. Emits OP_END and HANDOVER. */
void coop_engine_replayed (CoopEngine *e, CoopCall *call, const uint64_t *addr, uint64_t cost,
                           CoopWhat *what, CoopTensor **tensor);

/* A replay or the operator itself raised: every pin of the call is released, nothing is recorded.
 * Emits OP_END with failed = 1 for what had begun. */
void coop_engine_abort (CoopEngine *e, CoopCall *call);

typedef struct {
  /* in */
  uint64_t addr;         /* block of a new storage, unclaimed until now */
  uint64_t requested;
  uint64_t dtype;
  uint32_t ndim;
  const int64_t *dims;
  bool constant;         /* this output alone is constant */
  /* out */
  CoopTensor *tensor;    /* set host on it */
} CoopOutput;

/* The operator has run. `outputs` are its new storages; each non-constant WRITE input gets a new
 * version, returned in written[i] (index = input; NULL elsewhere), which takes over the storage: the
 * old version goes on without host and bytes if a record needs it. Returns the record (set its host
 * with coop_op_set_host) or NULL if none is kept. Emits TENSOR, WRITE, OP_END; unpins. host goes over
 * from the old version to the new one. An output whose block is unknown or claimed gets tensor NULL. */
CoopOp *coop_engine_end (CoopEngine *e, CoopCall *call, CoopOutput *outputs, unsigned n_outputs,
                         uint64_t cost, CoopTensor **written);
void coop_op_set_host (CoopOp *op, void *host);
void *coop_op_host (const CoopOp *op);

/* A lasting pin outside an operator (t has bytes). `why`: CONSTANT, ESCAPED, USER or UNMANAGED.
 * Dependents are not visited: use a call with COOP_USE_ESCAPE for that. */
void coop_engine_pin (CoopEngine *e, CoopTensor *t, CoopPin why);

/* ---- what the host must do ---------------------------------------------------------------- */

typedef enum {
  COOP_ACTION_HOLD,         /* keep tensor's storage alive: a record needs it, it cannot be made again */
  COOP_ACTION_UNHOLD,       /* no longer */
  COOP_ACTION_RETURN,       /* drop the temporary of a tensor that was borrowed and is no longer */
  COOP_ACTION_PLACE,        /* copy tensor's bytes to `to`, repoint the storage, then coop_engine_placed */
  COOP_ACTION_OP_GONE,      /* free op_host */
  COOP_ACTION_TENSOR_GONE,  /* free tensor_host */
  COOP_ACTION_THRASH        /* tensor came back more often than `thrash` allows in this step */
} CoopActionKind;

typedef struct CoopAction {
  CoopActionKind kind;
  CoopTensor *tensor;  /* HOLD, UNHOLD, RETURN, PLACE, THRASH */
  void *host;          /* OP_GONE, TENSOR_GONE */
  uint64_t id;         /* number of tensor or op */
  uint64_t from, to;   /* PLACE */
} CoopAction;

/* Takes the oldest action that is still due; false if none. To be drained after every begin/next/
 * replayed/end/abort, and whenever convenient after a free. */
bool coop_engine_action (CoopEngine *e, CoopAction *action);
/* Last resort, between two attempts of an operator that failed for memory (or of a replay of the
 * call): the next move that brings free memory together, as an action PLACE whose two ranges may
 * overlap; to be done and reported with coop_engine_placed before the next is asked for. False: no
 * more moves. Inputs of the call move too: nothing of this call may be running. call NULL: for no operator's
 * sake. */
bool coop_engine_compact (CoopEngine *e, const CoopCall *call, CoopAction *action);
/* done: old block freed, tensor at `to`, MOVE emitted. Not done: `to` is given back. Between the
 * action and this call coop_engine_free of the old block is put off: it comes to nothing if done. */
void coop_engine_placed (CoopEngine *e, CoopTensor *t, uint64_t to, bool done);

/* ---- looking in --------------------------------------------------------------------------- */

typedef struct {
  uint64_t budget, capacity;
  uint64_t live;            /* bytes of used pieces, 512-rounded */
  uint64_t peak;            /* largest live so far */
  uint64_t free, largest;   /* below the budget */
  uint64_t pinned;          /* bytes that may not be evicted now */
  uint64_t constant;        /* of these: lasting */
  uint64_t evicted;         /* bytes held by the user and not here */
  uint64_t allocs, frees, evictions, evicted_bytes, searches, search_ns;
  uint64_t ops, replays, ooms, moves;
  uint64_t op_ns, replay_ns;
  double fragmentation;     /* mean over eviction searches of free bytes / budget (the paper's rate) */
  uint64_t step;
  CoopPhase phase;
  uint64_t records, tensors, record_bytes;
  /* of segmented pools: bytes of segments, at most, how many; segments given back, pages moved, and
   * the time that `give_back_cost` and `page_cost` put on them */
  uint64_t held, held_most, segments, returned, remaps, device_ns;
} CoopTotals;

void coop_engine_totals (const CoopEngine *e, CoopTotals *totals);

/* Pieces in address order, free and used, that tile [0, capacity). For tests and for embedding. */
typedef struct {
  uint64_t addr, bytes;
  bool used;
  uint64_t block;            /* number of the block's life, 0 if free */
  const CoopTensor *tensor;  /* NULL: free or unclaimed */
} CoopPiece;
/* Writes at most n; returns how many there are. In a segmented pool free pieces without memory are
 * among them: see coop_engine_segments. */
size_t coop_engine_pieces (const CoopEngine *e, CoopPiece *out, size_t n);

/* Ranges backed by the device, in no order; `small`: for small blocks. None for allocator merge. */
typedef struct {
  uint64_t addr, bytes, id;
  bool small;
} CoopSegmentInfo;
size_t coop_engine_segments (const CoopEngine *e, CoopSegmentInfo *out, size_t n);

/* Checks every invariant (pieces tile, sums, lists, counts of pins, readers and holds). NULL if all
 * hold, else a sentence in static storage. Slow: for tests and debug builds. */
const char *coop_engine_check (const CoopEngine *e);

#endif
