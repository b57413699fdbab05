/* SPDX-License-Identifier: Apache-2.0 */
/* Host: what the files of the adapter share. One process has one pool, so its state is global here,
 * and nowhere else.
 *
 * Two locks. The *pool's lock* guards the engine and the shadow; it is held for decisions only, no
 * Python call is made under it, and nobody who holds it waits for the GIL. All other state is
 * guarded by the GIL. Allocation and free come from any thread, with the GIL or without it.
 */
#ifndef COOP_HOST_H
#define COOP_HOST_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <time.h>

#include "core/engine.h"
#include "device/device.h"
#include "torch/layout.h"
#include "torch/python.h"
#include "wire/wire.h"

typedef enum {
  COOP_RUN_OFF,       /* not installed, given up, or stopped: all goes to the real allocator */
  COOP_RUN_WAITING,   /* installed; begins with the first tensor */
  COOP_RUN_ON,
  COOP_RUN_CHILD      /* a forked child: memory stays as it is, nothing is tracked or freed */
} CoopRun;

typedef struct CoopOpInfo CoopOpInfo;
typedef struct CoopRecipe CoopRecipe;

/* What the adapter keeps of a tensor. One storage of the user's has one, which goes from version to
 * version; a dead version that was brought back has its own. Guarded by the GIL. */
typedef struct CoopHost {
  CoopTensor *tensor;       /* the newest version */
  PyObject *weak;           /* weak reference to the user's storage (a number), NULL if none */
  PyObject *held;           /* the storage, kept because a record needs it */
  PyObject *borrowed;       /* the storage of a temporary */
  void *shadow;             /* its address while evicted */
  const CoopOpInfo *op;     /* who made it, for messages */
  const char *where;        /* line of the script, for messages */
  uint64_t site;            /* stack of the forward operator that made it, or (state) last read it */
  const char *site_where;   /* its line */
  const void *copy_of;      /* memory that others can write, of which this is a private copy */
  uint64_t copy_sum;        /* checksum of it when it was copied */
  uint64_t stamp;           /* operator that saw it last, and as which input */
  uint32_t index;
  bool hashed;
  uint64_t hash;            /* of the bytes when evicted (verify) */
  struct CoopHost *next, *prev; /* all hosts */
} CoopHost;

typedef struct {
  _Atomic int run;               /* CoopRun */
  _Atomic bool may_evict;        /* false from the interpreter's end on */
  pthread_mutex_t lock;
  CoopEngine *engine;
  CoopArena *arena;
  CoopArena *old[8];             /* of runs that were stopped; their tensors may live on */
  CoopShadow *shadow;
  bool cuda;                     /* the pool is a GPU's memory: see cuda.h */
  CoopWire *wire;                /* NULL: nobody listens */
  bool wire_ended;
  uint64_t start_ns;
  CoopPolicy policy;             /* as the engine has it; written under the lock */
  _Atomic uint64_t generation;   /* of the control page or of local changes, as applied */
  _Atomic uint64_t wanted;       /* local changes, without a wire */
  CoopPolicy local;
  _Atomic uint64_t unmanaged_allocs, unmanaged_bytes, dropped;
  uint64_t unmanaged_tensors, moved_in, copies;
  _Atomic int backward, optimizer, aside; /* depth of the calls we are inside of */
  _Atomic uint64_t environment;  /* counts changes of the global switches */
  _Atomic long refuse;           /* tests: this many requests for memory from now, one is refused; 0: none */
} CoopProcess;
extern CoopProcess coop;

/* What a thread is doing. */
typedef struct {
  int bypass;                 /* allocations go to the real allocator */
  void *next;                 /* the next allocation of next_bytes bytes is this */
  size_t next_bytes;
  bool next_ref;              /* and gets one more owner in the engine */
  void *swallow;              /* a free of this is not told to anybody */
  uint64_t own_ns;            /* spent on our own work inside of an operator */
  CoopCall *call;             /* the operator under way */
  CoopCall *running;          /* the same while PyTorch itself runs it */
  void **deferred;            /* blocks of written inputs that the operator let go */
  unsigned n_deferred, deferred_capacity;
  unsigned number;            /* 1 + number of the thread, 0 = not yet known */
  bool quiet;                 /* running out of memory is no news */
  bool rescue, refused;       /* the operator can be run again if memory runs out; it did */
} CoopThread;
extern _Thread_local CoopThread coop_thread;

static inline uint64_t
coop_now (void)
{
  struct timespec t;
  clock_gettime (CLOCK_MONOTONIC, &t);
  return (uint64_t) t.tv_sec * 1000000000u + (uint64_t) t.tv_nsec;
}

static inline bool
coop_on (void)
{
  return atomic_load_explicit (&coop.run, memory_order_relaxed) == COOP_RUN_ON;
}

/* ---- hook.c: the slots of libc10 ---- */
/* Repoints them, once. False with errno if libc10 is not there or has no such slots. */
bool coop_hook_install (void);
int coop_real_memalign (void **out, size_t align, size_t size);
/* What was prepared for this very allocation (see CoopThread.next). */
bool coop_hook_prepared (size_t size, void **out);
/* Gives back what is ours: a block, a shadow, memory of a run that was stopped. False: it is not. */
bool coop_hook_give (void *p);

/* ---- pool.c: lock, engine, events ---- */
typedef struct {
  char key[32], value[256];
} CoopMeta;
/* Makes arena and engine ready to begin. False with a Python exception. */
bool coop_pool_prepare (CoopWire *wire, const CoopPolicy *policy, const CoopMeta *meta, unsigned n);
/* Begins with the first tensor: claims the ring. Any thread. False: it is another's, or memory is
 * short; then nothing is ever managed. */
bool coop_pool_begin (void);
/* Waits for room in the ring, takes the lock, applies what was changed on the control page. */
void coop_lock (void);
void coop_unlock (void);
/* A block of bytes > 0; evicts if need be. COOP_EVICT is never returned. Any thread, no lock. */
CoopStatus coop_pool_alloc (uint64_t bytes, uint64_t *addr);
/* Under the lock. */
void coop_tell (CoopEvent *ev, const void *body);
void coop_tell_text (CoopEvent *ev, const char *text);
/* The good-bye. No lock. */
void coop_pool_end (int exit_code);

/* ---- oom.c: before PyTorch raises its error ---- */
/* Tells the script's callback, or the terminal. True: try again. GIL, not the lock. */
bool coop_oom (const CoopOom *oom);
/* on_oom(callback) -> the one before; called with asked, free, largest, budget, evictable, advice. */
PyObject *coop_py_on_oom (PyObject *self, PyObject *callback);

/* ---- rescue.c: before an operator is refused memory ---- */
#define COOP_RESCUES 2
bool coop_rescue_wanted (void);
/* What follows may be given up and run again: a request that cannot be served is no news yet. */
void coop_rescue_arm (bool on);
/* After it failed: true, and the exception is gone, if it was for want of memory and room was made.
 * `attempt` counts from 0. Disarms. */
bool coop_rescue (CoopCall *call, unsigned attempt);
void coop_evict_all (void);
void coop_move_all (void);

/* ---- intern.c: strings, frames and stacks of the trace; GIL, not the lock ---- */
uint64_t coop_string (const char *text);
/* Stack of the running script without PyTorch's own files. *where gets "file:line" for messages. */
uint64_t coop_stack (const char **where);
void coop_intern_ignore (unsigned which, const char *folder);  /* 0 PyTorch's, 1 our own: not in stacks */
void coop_warn (const char *text, uint64_t tensor, uint64_t op); /* event and a line on stderr */
uint64_t coop_intern_texts (void); /* how many strings and frames, each of which keeps a text */
void coop_intern_begin (void);  /* under the lock: what was interned before there was a ring */

/* ---- storage.c: storages and what is done to them; GIL, not the lock, unless said ---- */
bool coop_storage_setup (PyObject *functions);
CoopHost *coop_host_new (CoopTensor *tensor);
void coop_host_free (CoopHost *host);
CoopHost *coop_host_first (void);
/* Storage object of a tensor, new reference. */
PyObject *coop_storage_of (PyObject *tensor);
/* Remembers the storage weakly. */
bool coop_host_watch (CoopHost *host, PyObject *storage);
/* The storage object behind a tensor, new reference; NULL (no exception) if it is gone. */
PyObject *coop_host_open (CoopHost *host);
/* StorageImpl of a storage object. */
void *coop_storage_impl (PyObject *storage);
/* A new storage of n bytes, in the pool. */
PyObject *coop_storage_new (uint64_t bytes);
/* Drops the bytes of a victim and tells the engine how it went. */
void coop_evict (CoopTensor *t);
/* Makes `storage` live at block addr, whose bytes are there. ref: one more owner. Its memory until
 * now is given back (a shadow) or freed (the real allocator). */
/* Action PLACE: copies (the ranges may overlap), repoints, reports. */
void coop_place (const CoopAction *action, CoopHost *host);
bool coop_storage_place (PyObject *storage, uint64_t addr, uint64_t bytes, bool ref, bool swallow);
/* Hands the block of a temporary over to the evicted storage of host. False (no exception) if the user
 * let go. On a GPU the temporary is empty afterwards: PyTorch's allocator there knows each address once. */
bool coop_hand_over (CoopHost *host, uint64_t addr, PyObject *temporary);
/* Acts on all that is due. */
void coop_act (void);
uint64_t coop_hash (const void *data, size_t bytes);
/* The same of the pool's bytes, wherever the pool is; and a copy into it, or inside it (the ranges may
 * overlap). */
uint64_t coop_pool_hash (const void *data, size_t bytes);
void coop_pool_copy (void *to, const void *from, size_t bytes);

/* ---- optable.c: what is known of an operator ---- */
enum {
  COOP_OP_PASS = 1 << 0,        /* views and questions about shapes: touches no bytes */
  COOP_OP_RANDOM = 1 << 1,      /* replays with the generator's state */
  COOP_OP_NOREPLAY = 1 << 2,    /* side effects that nobody can see: outputs are constant */
  COOP_OP_UNINIT = 1 << 3,      /* its bytes mean nothing */
  COOP_OP_EXPENSIVE = 1 << 4,
  COOP_OP_BIRTH = 1 << 5,       /* lift_fresh: new data from outside */
  COOP_OP_NUMBER = 1 << 6,      /* a view whose input may come as a number */
  COOP_OP_LENGTHS = 1 << 7,     /* integer outputs are read where nobody sees it */
  COOP_OP_DETACH = 1 << 8,      /* in backward: a gradient has come to its leaf */
  COOP_OP_ASYNC = 1 << 9        /* others write its tensors after it has returned */
};
enum {
  COOP_ARG_WRITE = 1,           /* the schema says so */
  COOP_ARG_STATS = 2            /* running statistics: written when `training` is true */
};
struct CoopOpInfo {
  PyObject *func, *call;
  char *name;
  uint64_t string, stack;
  const char *where;
  unsigned flags, n_args;
  int training;                 /* position of the argument `training`, -1 if none */
  PyObject **arg_names;
  uint8_t *arg_use;
  bool copy_wasted;             /* a private copy was larger than the outputs last time */
};
bool coop_optable_setup (PyObject *describe);
CoopOpInfo *coop_op_lookup (PyObject *func);

/* ---- environment.c: the global switches a result depends on (rule 11) ---- */
typedef struct CoopEnvironment CoopEnvironment;
bool coop_environment_setup (PyObject *get, PyObject *set);
const CoopEnvironment *coop_environment_now (void);   /* interned; NULL with exception */
bool coop_environment_set (const CoopEnvironment *env);
/* Whether gradients are recorded, on this thread: some kernels make another output then (mkldnn's LSTM: what its
 * backward needs). dispatch.c. */
bool coop_grad_enabled (void);
bool coop_set_grad_enabled (bool on);   /* false with exception */

/* ---- generator.c ---- */
/* State of a generator as bytes, new reference. */
PyObject *coop_generator_get (PyObject *generator);
bool coop_generator_set (PyObject *generator, PyObject *bytes);
/* Around a look at the state and the draw that belongs to it. Recursive; lets go of the GIL to wait. */
void coop_generator_lock (void);
void coop_generator_unlock (void);

/* ---- recipe.c: an operator that can be run again ---- */
typedef struct {
  PyObject *tensor;             /* borrowed from the arguments */
  PyObject *key;                /* keyword, NULL if positional */
  int arg, item;                /* position; index in the list there, -1 if no list */
  int input;                    /* index in the record's inputs; -1: the tensor itself is kept */
  unsigned use;
  CoopView view;
} CoopSlot;
typedef struct {
  unsigned flat;                /* index among the tensors of the result */
  CoopView view;
} CoopMade;
bool coop_recipe_setup (PyObject *functions);
CoopRecipe *coop_recipe_new (CoopOpInfo *info, PyObject *args, PyObject *kwargs,
                             const CoopSlot *slots, unsigned n_slots, const CoopMade *made,
                             unsigned n_made, const CoopEnvironment *env, bool grad,
                             PyObject *generator, PyObject *state);
void coop_recipe_free (CoopRecipe *record);
const CoopOpInfo *coop_recipe_op (const CoopRecipe *record);
/* Runs it on these storages (one an input, new references stay the caller's) and compares what comes
 * with what came. made[i]: storage of new output i, new reference. *ns: time it took. */
bool coop_recipe_run (CoopRecipe *record, PyObject *const *storages, unsigned n, PyObject **made,
                      uint64_t *ns);
/* What the first run took: on a GPU the host's clock sees nothing of a replay. */
void coop_recipe_set_cost (CoopRecipe *record, uint64_t ns);
uint64_t coop_recipe_cost (const CoopRecipe *record);
unsigned coop_recipe_outputs (const CoopRecipe *record);
/* The inputs whose new versions are outputs as well, in order; at most one a slot. */
void coop_recipe_set_written (CoopRecipe *record, const unsigned *inputs, unsigned n);
const unsigned *coop_recipe_written (const CoopRecipe *record, unsigned *n);

/* ---- replay.c ---- */
/* Does what coop_engine_next asks for until the call's inputs are ready. False with an exception;
 * the call is then aborted. */
bool coop_replay_all (CoopCall *call);

/* ---- foreign.c: memory that others can write (rule 8) ---- */
/* Takes memory that PyTorch's allocator gave out before we came into the pool. */
bool coop_foreign_move_in (PyObject *tensor, CoopView *view);
/* A private copy of what the storage holds, as a tensor of the pool; the one made before while a
 * checksum says that nothing changed. *storage (new reference) keeps it alive until the caller has
 * made a record of it. NULL (no exception) where none can be made. */
CoopHost *coop_foreign_copy (const CoopView *view, PyObject **storage);
void coop_foreign_forget (CoopHost *copy);

/* ---- dispatch.c, escape.c ---- */
PyObject *coop_dispatch (PyObject *self, PyObject *args, PyObject *kwargs);
bool coop_dispatch_setup (PyObject *functions);
/* Brings the bytes of a tensor back. use: COOP_USE_ESCAPE, _KEEP or _STATE, for life; or 0: until
 * coop_touch_end, for which *scope is needed. False with an exception. */
typedef struct CoopScope CoopScope;
bool coop_touch (PyObject *tensor, unsigned use, CoopScope **scope);
void coop_touch_end (CoopScope *scope);
/* Brings back what is evicted; as far as it fits beside what is there already, or all. */
bool coop_touch_all (bool as_fits);
/* Brings all back, says good-bye and manages nothing from here on. False with an exception. */
bool coop_detach (void);
/* Finds or adopts the tensor of a view in the arena or the shadow; NULL if it is neither, or lies
 * inside of a block. Under the lock; the host of an adopted one has no weak reference yet. */
CoopTensor *coop_find (const CoopView *view, bool parameter);
/* Whether its bytes may be read by pointer between two operators: it is neither evicted nor moved. */
bool coop_read_unseen (const CoopView *view);

/* ---- thrash.c ---- */
/* COOP_ACTION_THRASH. GIL, not the lock. host may be NULL. */
void coop_thrash (const CoopHost *host, uint64_t tensor);

/* ---- stack-mode.c: of PyTorch 1.13 ---- */
PyObject *coop_py_stack_mode (PyObject *self, PyObject *args);
PyObject *coop_stack_mode_dispatch (PyObject *self, PyObject *args, PyObject *kwargs);

/* ---- policy-object.c ---- */
/* {name: text} into policy; an evictor brings the parameters that its preset names, others win over
 * them. *mask: what changed. False with ValueError. dict may be NULL or None. */
bool coop_policy_parse (PyObject *dict, CoopPolicy *policy, uint64_t *mask);
/* As wanted now: by the control page, or by this process alone. */
CoopPolicy coop_policy_now (void);
void coop_policy_change (const CoopPolicy *policy, uint64_t mask);
PyObject *coop_py_policy_get (PyObject *self, PyObject *args);
PyObject *coop_py_policy_set (PyObject *self, PyObject *dict);
PyObject *coop_py_params (PyObject *self, PyObject *args);

/* ---- fault.c ---- */
void coop_fault_install (void);

#endif
