/* SPDX-License-Identifier: Apache-2.0 */
/* Event: what the engine tells the world, one fixed record each.
 *
 * An event is one 64-byte header and `more` further 64-byte records that hold its body. Header and
 * body are written together, in the pool's order, and never torn apart. The same bytes travel
 * through the ring, are applied to the layout model and become rows of the trace.
 *
 * Numbers that name things (block, tensor, op, search, string, stack) count up from 1 and are never
 * used twice in a run; 0 means none or unknown. Addresses are offsets on the pool's map, never
 * pointers; COOP_NO_ADDR is unknown. Times are ns of the run's clock. Costs are ns.
 */
#ifndef COOP_EVENT_H
#define COOP_EVENT_H

#include <stdint.h>
#include <string.h>

#define COOP_RECORD_BYTES 64
#define COOP_PROTOCOL 1
#define COOP_NO_ADDR UINT64_MAX

/* X (ID, value, "label"). Values are part of the protocol and of the file: never renumbered. */
#define COOP_EVENT_KINDS(X)                                                                         \
  X (META, 1, "meta")               /* key and value of the run; body CoopTextBody x2, see below */  \
  X (STRING, 2, "string")           /* interned text */                                             \
  X (FRAME, 3, "frame")             /* file, line, function of a script */                          \
  X (STACK, 4, "stack")             /* a frame under a parent stack */                              \
  X (POOL, 5, "pool")               /* a pool of memory begins */                                   \
  X (SEGMENT, 6, "segment")         /* a range of the pool's map is backed by the device */         \
  X (POLICY, 7, "policy")           /* one parameter takes a value */                               \
  X (ALLOC, 10, "alloc")            /* a block's life begins */                                     \
  X (FREE, 11, "free")              /* a block's life ends: the program let go, or a temporary */   \
  X (EVICT, 12, "evict")            /* a block's life ends: its tensor was dropped */               \
  X (HANDOVER, 13, "handover")      /* a recomputed block becomes the user's: rematerialized */     \
  X (MOVE, 14, "move")              /* a block goes to another address */                           \
  X (OFFLOAD, 15, "offload")        /* reserved */                                                  \
  X (RESERVE, 16, "reserve")        /* room made ahead of an operator, or given back */             \
  X (SEARCH, 17, "search")          /* one search for victims, found or not */                      \
  X (RELEASE, 20, "release")        /* the user lets go of a tensor, live or evicted */             \
  X (PIN, 21, "pin")                /* held in place beyond an operator, with the reason */         \
  X (UNPIN, 22, "unpin")            /* */                                                           \
  X (ESCAPE, 23, "escape")          /* the pointer left our sight: pinned for life */               \
  X (TENSOR, 24, "tensor")          /* a storage version is known: owner, shape, dtype, kind */     \
  X (WRITE, 25, "write")            /* in-place update: a new version at the same address */        \
  X (RECLASSIFY, 26, "reclassify")  /* a tensor's kind or constancy changes */                      \
  X (COST, 27, "cost")              /* the cost of an operator becomes known or changes */          \
  X (OP_BEGIN, 30, "op-begin")      /* an operator starts; body: input tensors */                   \
  X (OP_END, 31, "op-end")          /* an operator ends; body: output tensors */                    \
  X (STEP, 32, "step")              /* a training step begins */                                    \
  X (PHASE, 33, "phase")            /* forward, backward, optimizer */                              \
  X (ANNOTATION, 34, "annotation")  /* the user's own mark */                                       \
  X (OOM, 40, "oom")                /* a request could not be served */                             \
  X (WARNING, 41, "warning")        /* text for people: thrashing, tensor unmanaged, ... */         \
  X (GAP, 42, "gap")                /* events are missing before this one */                        \
  X (STAT, 43, "stat")              /* a total of the training process */                           \
  X (END, 44, "end")                /* the training process says good-bye */

typedef enum {
#define X(ID, value, label) COOP_EVENT_##ID = value,
  COOP_EVENT_KINDS (X)
#undef X
  COOP_N_EVENT_KINDS = 64
} CoopEventKind;

/* What a tensor is. Shown as hue on the map. */
typedef enum {
  COOP_KIND_UNKNOWN,     /* a block not (yet) claimed by a tensor: workspace, temporary */
  COOP_KIND_STATE,       /* parameter, buffer, optimizer state */
  COOP_KIND_ACTIVATION,  /* made in forward */
  COOP_KIND_GRADIENT,    /* made in backward */
  COOP_KIND_OTHER,       /* made outside both: input batches, results */
  COOP_KIND_UNMANAGED,   /* in the pool, but never evictable for a reason outside the policy */
  COOP_N_KINDS
} CoopKind;

typedef enum {
  COOP_PHASE_OTHER, COOP_PHASE_FORWARD, COOP_PHASE_BACKWARD, COOP_PHASE_OPTIMIZER, COOP_N_PHASES
} CoopPhase;

/* Why something may not be evicted now. */
typedef enum {
  COOP_PIN_NONE,
  COOP_PIN_OPERATOR,     /* input or output of a running operator */
  COOP_PIN_CONSTANT,     /* state, batch, result of an operator that cannot be repeated */
  COOP_PIN_ESCAPED,      /* its pointer left our sight */
  COOP_PIN_USER,         /* coopscope.keep */
  COOP_PIN_UNCLAIMED,    /* a block no tensor has claimed: workspace or a library's own */
  COOP_PIN_UNMANAGED,    /* sparse, quantised, subclass, shared memory, ... */
  COOP_PIN_PENDING,      /* freed, but a stream of the device may still use it */
  COOP_N_PINS
} CoopPin;

/* 64 bytes. `u` is read by kind. */
typedef struct {
  uint64_t seq;     /* 0, 1, 2, ... without a hole over the run; the rowid of its row */
  uint64_t ts;      /* ns since the run began */
  uint16_t kind;    /* CoopEventKind */
  uint16_t more;    /* body records that follow, 64 bytes each */
  uint32_t thread;  /* small number of the thread, 0 = main */
  union {
    uint64_t word[5];
    struct { uint64_t id, bytes; } string;                     /* body: text, zero padded */
    struct { uint64_t key_bytes, value_bytes; } meta;          /* body: key then value, no NUL */
    struct { uint64_t id, file, func; int64_t line; } frame;   /* file, func: string ids */
    struct { uint64_t id, parent, frame; } stack;
    struct { uint64_t id, budget, capacity; uint32_t device, allocator; } pool; /* device 0 = host */
    struct { uint64_t id, pool, base, bytes; uint64_t born; } segment; /* born 1 = mapped, 0 = unmapped */
                                                               /* may have a body: CoopSegmentBody */
    struct { uint32_t param, source; int64_t old_bits, new_bits; uint64_t generation; } policy;
    /* alloc and free may have a body: CoopSiteBody; oom may have one behind its own */
    struct { uint64_t block, addr, bytes, requested; uint64_t op; } alloc;
    struct { uint64_t block, addr, bytes, tensor; uint64_t op; } free;
    struct { uint64_t block, addr, bytes, tensor; uint64_t search; } evict;    /* body: CoopEvictBody */
    struct { uint64_t block, addr, bytes, tensor; uint64_t old_block; } handover;
    struct { uint64_t block, from, to, bytes; uint64_t new_block; } move;
    struct { uint64_t id, need, lo, hi; uint32_t victims, visited; } search;   /* body: CoopSearchBody */
    struct { uint64_t tensor, block; } release;                /* block 0: it was evicted */
    struct { uint64_t tensor, block; uint32_t reason, count; } pin;            /* also unpin, escape */
    struct { uint64_t id, storage, op, bytes; uint64_t block; } tensor;        /* body: CoopTensorBody */
    struct { uint64_t old_tensor, new_tensor, block, op; } write; /* equal: a constant overwritten */
    struct { uint64_t tensor; uint32_t kind, pin; } reclassify;  /* pin: CONSTANT, UNMANAGED or NONE */
    struct { uint64_t op, cost; } cost;
    struct { uint64_t id, name, replay_of, stack; uint16_t phase, n_inputs; uint32_t step; } op_begin;
                                                               /* body: input tensor ids, uint64_t each */
    struct { uint64_t id, cost, duration, workspace; uint16_t n_outputs, failed; uint32_t flags; } op_end;
                                                               /* body: output tensor ids */
    struct { uint64_t step; } step;
    struct { uint64_t phase; } phase;
    struct { uint64_t string; } annotation;
    struct { uint64_t asked, free, largest, advice; uint64_t op; } oom;        /* body: CoopOomBody */
    struct { uint64_t code, string; uint64_t tensor, op; } warning;            /* body: text, zero padded */
    struct { uint64_t missing, first; } gap;                   /* first missing sequence number */
    struct { uint64_t name; int64_t value; } stat;             /* name: string id */
    struct { int64_t exit_code; } end;
  } u;
} CoopEvent;

/* Bodies, 64 bytes each. Doubles are native. */
typedef struct {
  double h;             /* the score it was chosen by; infinite if never used since it was made */
  uint64_t own_cost;    /* ns to run its producer */
  uint64_t chain_cost;  /* ns of evicted neighbours counted with it */
  uint64_t staleness;   /* clock - last use */
  uint64_t requested;
  uint64_t reserved[3];
} CoopEvictBody;

typedef struct {
  double cost;          /* summed h of the window chosen; NaN if none was found */
  uint64_t ns;          /* time of the search */
  uint64_t free_bytes;  /* in the pool, before the block is handed out */
  uint64_t largest;     /* largest free run before */
  double next_cost;     /* runner-up window, NaN if none */
  uint64_t next_lo, next_hi;
  uint64_t op;
} CoopSearchBody;

/* More bodies of the same tensor may follow when ndim > 5: dims go on at 8 a record. */
typedef struct {
  uint32_t kind;        /* CoopKind */
  uint32_t pin;         /* CoopPin: NONE if evictable in principle */
  uint64_t dtype;       /* string id */
  uint32_t ndim;
  uint32_t output;      /* which output of its operator */
  int64_t dims[5];
} CoopTensorBody;

typedef struct {
  uint64_t budget, evictable, unclaimed;
  uint64_t pinned[5];   /* bytes by CoopPin OPERATOR, CONSTANT, ESCAPED, USER, UNMANAGED */
} CoopOomBody;

/* Where memory was asked for or let go outside of operators: what is known where a run was not recorded
 * but read from somebody else's file. 0: unknown. */
typedef struct {
  uint64_t stack;
  uint64_t stream;      /* as the device names it */
  uint64_t segment;     /* number */
  uint64_t device_free; /* oom: bytes free on the device, pool or not */
  uint32_t kind;        /* alloc: CoopKind of what has no tensor */
  uint32_t older;       /* alloc: 1 = it was there before the first event */
  uint64_t reserved[3];
} CoopSiteBody;

/* A segment as the device knows it. */
typedef struct {
  uint64_t address, stream;
  uint64_t private_a, private_b; /* number of a private pool; 0, 0 = the default one */
  uint32_t flags;                /* COOP_SEGMENT_* */
  uint32_t kind;                 /* reserved */
  uint64_t stack, reserved[2];
} CoopSegmentBody;
/* code of a warning that the process tells its user on its own standard error. */
#define COOP_WARNING_TOLD 1
enum { COOP_SEGMENT_SMALL = 1, COOP_SEGMENT_EXPANDABLE = 2, COOP_SEGMENT_GUESSED = 4 };

_Static_assert (sizeof (CoopSiteBody) == COOP_RECORD_BYTES, "body is one record");
_Static_assert (sizeof (CoopSegmentBody) == COOP_RECORD_BYTES, "body is one record");
_Static_assert (sizeof (CoopEvent) == COOP_RECORD_BYTES, "header is one record");
_Static_assert (sizeof (CoopEvictBody) == COOP_RECORD_BYTES, "body is one record");
_Static_assert (sizeof (CoopSearchBody) == COOP_RECORD_BYTES, "body is one record");

/* The site behind the first `before` records of an event's body; all 0 where there is none. */
static inline CoopSiteBody
coop_event_site (const CoopEvent *ev, const void *body, unsigned before)
{
  CoopSiteBody site = { 0 };
  if (ev->more > before)
    memcpy (&site, (const uint8_t *) body + before * COOP_RECORD_BYTES, sizeof site);
  return site;
}
_Static_assert (sizeof (CoopTensorBody) == COOP_RECORD_BYTES, "body is one record");
_Static_assert (sizeof (CoopOomBody) == COOP_RECORD_BYTES, "body is one record");

/* Labels for people, files and flags. NULL for a value that is not defined. */
const char *coop_event_kind_label (unsigned kind);
const char *coop_kind_label (unsigned kind);
const char *coop_phase_label (unsigned phase);
const char *coop_pin_label (unsigned pin);

/* The sink: where an engine puts its events. `body` holds ev->more records. The sink fills in seq
 * and ts. Called under the engine's lock, must not block on it, must not call the engine. */
typedef struct {
  void (*emit) (void *user, CoopEvent *ev, const void *body);
  void *user;
} CoopSink;

#endif
