/* SPDX-License-Identifier: Apache-2.0 */
/* A host for the engine, as small as one can be: its tensors are byte arrays in a block of memory as
 * large as the pool, its operators fill their outputs with a hash of their inputs. Every operator is
 * also run on plain memory that is never evicted (the shadow), so each tensor in the pool can be
 * compared with what it should hold. Freed bytes are poisoned: whoever reads them shows.
 *
 * It drives the engine exactly as engine.h asks and is meant to be read as an example of that. */
#ifndef REF_HOST_H
#define REF_HOST_H

#include "core/engine.h"

#include <glib.h>

#define REF_MAX 16

/* What a user of the toy machine holds: a storage. */
typedef struct
{
  CoopTensor *tensor;   /* newest version */
  uint64_t bytes;
  uint64_t addr;        /* COOP_NO_ADDR: evicted */
  uint8_t *shadow;      /* the bytes it should hold */
  unsigned users, holds;
  bool temporary;       /* a borrowed tensor's: tensor, bytes and addr alone are set */
} RefStorage;

typedef struct
{
  RefStorage *input[REF_MAX];
  unsigned use[REF_MAX];
  unsigned n_inputs;
  uint64_t out_bytes[REF_MAX];
  bool out_constant[REF_MAX];
  unsigned n_outputs;
  uint64_t name, cost, workspace;
  CoopPhase phase;
  CoopOpClass op_class;
  bool once;            /* cannot be run again */
} RefOp;

typedef struct RefHost RefHost;

/* Somebody who looks on: at every event, and at the engine whenever values are verified. */
typedef struct
{
  void (*event) (void *user, CoopEvent *ev, const void *body);
  void (*verify) (void *user, RefHost *host);
  void *user;
} RefWatch;

struct RefHost
{
  CoopEngine *engine;
  RefWatch watch;
  uint8_t *memory;
  uint64_t capacity;
  GPtrArray *storages;  /* that have users or holds */
  GArray *events;       /* CoopEvent, if record_events */
  GArray *bodies;       /* CoopSearchBody or CoopEvictBody, parallel to events (zero for others) */
  bool record_events;
  bool check;           /* invariants after every step, windows and fits by brute force */
  unsigned fail_replays; /* the next so many replays raise */
  unsigned refuse;      /* the next so many victims cannot be dropped now */
  CoopOom oom;          /* of the last request that failed */
  unsigned region[2];       /* of the engine, before the last request */
  uint64_t n_events, thrashed, placed, replayed, brute_windows, brute_singles, brute_fits;
  uint64_t brute_plans; /* windows with moves against all ways to vacate them */
  uint64_t brute_sets, brute_optima; /* sets of lots tried, and how many of them were the cheapest */
  uint64_t asides;      /* moves out of a window */
  uint8_t *mapped;      /* by 512 bytes: backed by the device */
  uint64_t n_mapped;
  uint64_t ticks;
};

typedef struct
{
  RefOp op;
  CoopCall call;
  CoopInput inputs[REF_MAX];
} RefCall;

RefHost *ref_host_new (uint64_t capacity, const CoopPolicy *policy);
RefHost *ref_host_new_watched (uint64_t capacity, const CoopPolicy *policy, const RefWatch *watch);
/* Lets go of everything, checks that nothing is left in the pool, frees. */
void ref_host_free (RefHost *host);

/* An operator in one go. Outputs have one user each. False: out of memory or a failed replay, with
 * nothing changed. */
bool ref_host_run (RefHost *host, const RefOp *op, RefStorage **outputs);

/* The same in three: several calls may be open at once. */
void ref_host_begin (RefHost *host, RefCall *call, const RefOp *op);
bool ref_host_prepare (RefHost *host, RefCall *call);            /* false: aborted */
/* At most so many replays of prepare: READY, REPLAY if there is more, LOST if one raised (aborted). */
CoopNext ref_host_advance (RefHost *host, RefCall *call, unsigned replays);
bool ref_host_finish (RefHost *host, RefCall *call, RefStorage **outputs);
void ref_host_abort (RefHost *host, RefCall *call);

/* A storage that exists before any operator: constant. NULL: out of memory. */
RefStorage *ref_host_constant (RefHost *host, uint64_t bytes, CoopKind kind, unsigned seed);
void ref_host_drop (RefHost *host, RefStorage *storage);         /* one user less */

/* Evicts all that can go. */
void ref_host_stress (RefHost *host);
void ref_host_actions (RefHost *host);

/* Every storage with bytes holds what it should; invariants of the engine hold. */
void ref_host_verify (RefHost *host);
/* Brings a storage back and compares. False: out of memory. */
bool ref_host_read (RefHost *host, RefStorage *storage);

/* Events of a kind since record_events was set; the n-th of them. */
unsigned ref_host_count (RefHost *host, CoopEventKind kind);
const CoopEvent *ref_host_event (RefHost *host, CoopEventKind kind, unsigned n, const void **body);

/* Small helpers for tests written by hand: one output, inputs that are read. */
RefStorage *ref_make (RefHost *host, uint64_t bytes, uint64_t cost, unsigned n, ...);
void ref_write (RefHost *host, RefStorage *target, unsigned use, uint64_t cost);

#endif
