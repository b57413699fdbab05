/* SPDX-License-Identifier: Apache-2.0 */
/** libcoop: a memory pool with a hard budget for programs written in C.
 *
 * A program makes a pool, puts its arrays into it as *storages*, and computes with *operators*: named
 * functions that fill new storages, or overwrite old ones, from what they read. When an operator needs
 * memory that is not there, the pool drops ("evicts") storages that it knows how to make again, and
 * runs their operators once more ("rematerialization") when somebody wants the bytes. Results have the
 * same bits as without a budget, as long as the same bytes in give the same bytes out: an operator
 * must be a function of its inputs and parameters alone.
 *
 *     Coop *coop;
 *     const char *policy[] = { "budget", "40 MiB", NULL };
 *     coop_new (&(CoopOptions) { .policy = policy }, &coop);
 *     const CoopOperator *relu = coop_operator (coop, &(CoopOperatorInfo) { "relu", run_relu });
 *     coop_storage_new (coop, bytes, data, 0, &x);
 *     coop_run (coop, relu, &(CoopArgs) { .in = (CoopIn[]) { { x } }, .n_in = 1,
 *                                         .out_bytes = &bytes, .n_out = 1 }, &y);
 *     coop_get (y, COOP_READ, &pointer);
 *     ...
 *     coop_release (y);
 *
 * Bytes of a storage have an address only between coop_get and coop_release, and inside an operator;
 * in between they may be dropped or moved. Blocks begin at multiples of 512 from the pool's first byte.
 *
 * Threads: all functions may be called from any thread. A pool's lock is held for decisions, not while
 * an operator runs. As with plain memory, nobody may write a storage while somebody else uses it. An
 * operator must not call functions of its own pool. After fork only the parent may go on.
 *
 * Compile and link: `cc program.c $(pkg-config --cflags --libs coop)`. Run it as
 * `coop run -o FILE -- ./program` (or from the window) and its events are recorded and its policy can be
 * turned while it runs, as for a PyTorch script. */
#ifndef COOP_H
#define COOP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/** A pool and all that lives in it. */
typedef struct Coop Coop;
/** Bytes that may be dropped and made again. Belongs to one pool. */
typedef struct CoopStorage CoopStorage;
/** A function that the pool may run again. Lives as long as its pool. */
typedef struct CoopOperator CoopOperator;

/** What became of a call. Everything but COOP_DONE leaves things as they were, unless said otherwise. */
typedef enum {
  COOP_DONE,
  COOP_FAILED_MEMORY,    /**< the budget does not do, or the system has no memory; see coop_message */
  COOP_FAILED_OPERATOR,  /**< an operator returned other than 0 */
  COOP_FAILED_BITS,      /**< with policy verify: an operator gave other bits when it was run again */
  COOP_FAILED_VALUE,     /**< an argument that cannot be: unknown key, bad value, misuse */
  COOP_FAILED_SYSTEM     /**< the system refused; errno says */
} CoopResult;

/** A result in words; static storage. */
const char *coop_result_text (CoopResult result);

/* ---- pool ---- */

/** How a pool begins. Zero is a sensible value for every member. */
typedef struct {
  void *memory;      /**< the caller's, used until coop_destroy; NULL: the pool's own, pages are
                          taken from the system as they are used */
  size_t capacity;   /**< bytes at `memory`; or address space the budget may grow to (0: four times RAM) */
  const char *const *policy; /**< key, value, key, value, ..., NULL; as coop_set. NULL: the defaults.
                                  Without a budget the pool is as large as `capacity` */
  bool alone;        /**< do not join the tool that started the process: no events, no sliders */
  char *why;         /**< where coop_new says why it failed, at most why_size bytes; may be NULL */
  size_t why_size;
} CoopOptions;

/** Makes a pool. options may be NULL. COOP_FAILED_VALUE for an unknown key or value, COOP_FAILED_SYSTEM
 * where there is no address space. */
CoopResult coop_new (const CoopOptions *options, Coop **coop);

/** Ends a pool: all its storages, blocks and operators are gone, got or not. NULL is nothing. */
void coop_destroy (Coop *coop);

/** Why the last call on this pool that failed did so, in a sentence; "" if none did. Valid until the next
 * call on the pool. */
const char *coop_message (const Coop *coop);

/** Sets one parameter of the policy, by name, while the pool is in use: `coop policy` lists names, ranges
 * and meaning. Sizes may have a unit ("37.5 MiB"). "preset" stands for an evictor and all that
 * its name implies. A smaller budget is met at once as far as pins allow, and otherwise as soon as they
 * do: compare `live` and `budget` of coop_stats. */
CoopResult coop_set (Coop *coop, const char *key, const char *value);

/** Writes the value of a parameter in the form that coop_set reads. Returns the length as snprintf does;
 * -1 for an unknown name. */
int coop_value (Coop *coop, const char *key, char *out, size_t size);

/* ---- plain memory ---- */

/** A block that stays where it is until coop_free: never dropped, never moved. Storages are evicted to
 * make room. NULL where that does not do. */
void *coop_alloc (Coop *coop, size_t bytes);
/** Gives a block of coop_alloc back. NULL is nothing. */
void coop_free (Coop *coop, void *block);

/* ---- storages ---- */

/** Flags of coop_storage_new. */
enum {
  COOP_STATE = 1 << 0   /**< parameters and the like, which outlive a step: kept out of the way of others */
};

/** What happens to the bytes. */
typedef enum {
  COOP_READ,
  COOP_WRITE,    /**< overwritten in place, wholly or in part */
  COOP_SCRATCH   /**< in an operator: overwritten, but nothing that it makes depends on the old bytes
                      (running statistics) */
} CoopAccess;

/** A storage of `bytes` > 0 bytes that no operator made: data is copied, NULL gives zeros. As nothing can
 * make it again it is never dropped. */
CoopResult coop_storage_new (Coop *coop, size_t bytes, const void *data, unsigned flags,
                             CoopStorage **storage);

/** The caller needs the storage no more; NULL is nothing. Its memory is free at once, but for what a record needs:
 * parameters and small inputs of operators that may have to run again. */
void coop_drop (CoopStorage *storage);

/** Size as asked for. */
size_t coop_storage_bytes (const CoopStorage *storage);
/** Whether its bytes are in memory now. */
bool coop_storage_present (CoopStorage *storage);

/** Brings the bytes back if they are not there and pins them at *bytes until coop_release. May be
 * nested for COOP_READ; COOP_WRITE must be the only one. What is made by writing cannot be made again:
 * from then on the storage is never dropped. What depends on the old bytes of a storage like that is
 * brought back and kept first. COOP_FAILED_OPERATOR or _BITS if an operator failed meanwhile. */
CoopResult coop_get (CoopStorage *storage, CoopAccess access, void **bytes);
/** Ends the last coop_get of the storage. */
void coop_release (CoopStorage *storage);

/** The storage is brought back and never dropped again. It may still move. */
CoopResult coop_keep (CoopStorage *storage);

/* ---- operators ---- */

/** Most inputs, and most outputs, of an operator. */
#define COOP_MOST 64

/** One run of an operator, as its function sees it. */
typedef struct {
  void *const *in;           /**< as in CoopArgs; only those with COOP_WRITE or COOP_SCRATCH may be written */
  const size_t *in_bytes;
  unsigned n_in;
  void *const *out;          /**< to be filled; hold anything before */
  const size_t *out_bytes;
  unsigned n_out;
  void *workspace;           /**< holds anything; NULL if none was asked for */
  size_t workspace_bytes;
  const void *params;        /**< the pool's copy of the caller's */
  size_t params_bytes;
  void *user;                /**< of the operator */
  bool again;                /**< a rematerialization */
} CoopWork;

/** What an operator is. */
typedef struct {
  const char *name;                  /**< for traces; copied */
  int (*run) (const CoopWork *work); /**< 0: done. Runs without the pool's lock, perhaps on another thread
                                          than coop_run */
  void *user;                        /**< handed to run; must outlive the pool */
  bool once;                         /**< not to be run again: what it makes is never dropped */
  bool expensive;                    /**< takes long for its bytes (products of matrices): its outputs are
                                          placed away from cheap ones, before it was ever measured */
} CoopOperatorInfo;

/** Makes an operator known. NULL if memory for it is short, or name or run is NULL. */
const CoopOperator *coop_operator (Coop *coop, const CoopOperatorInfo *info);

/** One input: { storage } is read. */
typedef struct {
  CoopStorage *storage;
  CoopAccess access;
} CoopIn;

/** Arguments of one run. All is copied that a later run needs. */
typedef struct {
  const CoopIn *in;          /**< a storage may stand here more than once */
  unsigned n_in;
  const size_t *out_bytes;   /**< each > 0 */
  unsigned n_out;
  size_t workspace;          /**< bytes needed while it runs; 0: none */
  const void *params;        /**< numbers it depends on: shapes, rates, seeds. Must hold no pointers to
                                  what may change */
  size_t params_bytes;
} CoopArgs;

/** Runs an operator: its inputs are brought back and pinned, room is made for all it asks for, then its
 * function is called. out[i] gets a new storage for each of out_bytes. If it fails there are none; a
 * storage that it was overwriting may then hold anything. */
CoopResult coop_run (Coop *coop, const CoopOperator *op, const CoopArgs *args, CoopStorage **out);

/** Where in training the program is; 0 if it does not train. Used to tell steps, activations and gradients
 * apart, and for the cost of gradients. */
typedef enum { COOP_OTHER, COOP_FORWARD, COOP_BACKWARD, COOP_OPTIMIZER } CoopPart;

/** Of all operators that are run from here on. */
void coop_part (Coop *coop, CoopPart part);

/* ---- looking in ---- */

/** All in bytes, counts and ns. */
typedef struct {
  uint64_t budget, capacity; /**< budget 0: none */
  uint64_t live, peak;       /**< used now, and at most so far; blocks are multiples of 512 */
  uint64_t free, largest;    /**< below the budget: all, and in one piece */
  uint64_t pinned;           /**< of live: may not be dropped now */
  uint64_t evicted;          /**< of storages that are not in memory */
  uint64_t storages;         /**< not dropped yet */
  uint64_t operators_run, rematerializations, evictions, evicted_bytes, searches, moves, failures;
  uint64_t run_ns, rematerialize_ns, search_ns;
  uint64_t events_lost;      /**< the tool did not keep up */
} CoopStats;

/** Numbers of now. */
void coop_stats (Coop *coop, CoopStats *stats);

/** Checks the pool's own books. NULL if all is well, else what is wrong. Slow: for tests. */
const char *coop_check (Coop *coop);

#ifdef __cplusplus
}
#endif

#endif
