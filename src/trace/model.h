/* SPDX-License-Identifier: Apache-2.0 */
/* Model: events -> layout. The only code that knows how an event changes the picture; the live
 * collector, the file's reader, the checker and the tests all apply events to it.
 *
 * What the model shows after event N is a function of events 0..N and of nothing else. Age is
 * measured from event N's clock. Not thread-safe.
 */
#ifndef COOP_MODEL_H
#define COOP_MODEL_H

#include <glib.h>

#include "core/event.h"
#include "core/policy.h"

/* A piece of the pool's map: used or a hole. 96 bytes or less, plain data, copied into frames. */
typedef struct {
  guint64 addr, bytes;
  guint64 block;       /* life number; 0 = hole */
  guint64 tensor;      /* 0 = unclaimed or hole */
  guint64 op;          /* operator that made the tensor, else the one that allocated the block */
  guint64 requested;
  guint64 born_ts;     /* ns */
  guint64 used_seq;    /* event of last use */
  guint64 used_ts;     /* ns of last use: age = now - used_ts */
  guint64 cost;        /* ns to run the producer, 0 unknown */
  guint8 kind;         /* CoopKind */
  guint8 pin;          /* CoopPin in force at this event: OPERATOR while an operator runs, ... */
  guint8 used;         /* 0 = hole */
  guint8 remats;       /* times this tensor came back in this step, saturating */
  guint8 phase;        /* CoopPhase of that operator */
  guint32 name, line;  /* its name (a string) and the line of the script that called it (a frame); 0
                          unknown, or forgotten: see coop_model_op */
} CoopMapPiece;

/* Not used, and no hole: where memory comes in segments, what none of them backs. */
static inline gboolean
coop_piece_is_void (const CoopMapPiece *piece)
{
  return !piece->used && piece->kind == COOP_KIND_UNMANAGED;
}

typedef struct {
  guint64 seq;             /* last event applied; G_MAXUINT64 before the first */
  guint64 ts;
  guint64 budget, capacity;
  guint64 used, peak;      /* 512-rounded bytes in blocks */
  guint64 pinned, evictable;
  guint64 free, largest;   /* below the budget */
  guint64 holes;           /* free pieces below the budget */
  guint64 evicted;         /* bytes of tensors held by the user and not here */
  guint64 by_kind[COOP_N_KINDS];
  guint64 allocs, frees, evictions, evicted_bytes, handovers, searches, ops, replays, ooms, moves;
  guint64 op_ns, replay_ns, search_ns;
  double fragmentation;    /* mean of free / budget over searches */
  guint64 step;
  guint32 phase;           /* CoopPhase */
  guint64 missing;         /* events lost in gaps: > 0 means the picture may be wrong, and says so */
  gboolean ended;          /* END seen */
  gint64 exit_code;
} CoopModelTotals;

typedef struct {
  guint64 id, addr, bytes, tensor, search;
  CoopEvictBody why;
} CoopVictim;

/* The last search that led to evictions, with its victims, for "why these". */
typedef struct {
  guint64 seq, id, need, lo, hi;
  CoopSearchBody body;
  const CoopVictim *victims;
  guint n_victims;
} CoopLastEviction;

typedef struct {
  guint64 seq, asked, free, largest, advice, op;
  CoopOomBody body;
} CoopLastOom;

typedef enum {
  COOP_FAULT_NONE,
  COOP_FAULT_SEQUENCE,   /* seq is not the successor and no gap says so; or it comes again */
  COOP_FAULT_OVERLAP,    /* alloc over a used block */
  COOP_FAULT_BUDGET,     /* used bytes or an address past the budget */
  COOP_FAULT_FREE,       /* free, evict or hand-over of a block that is not there, or differs */
  COOP_FAULT_UNKNOWN,    /* a number that no event introduced */
  COOP_FAULT_TIME,       /* ts goes backwards */
  COOP_FAULT_FORMAT      /* kind or body size that cannot be */
} CoopFault;

typedef struct CoopModel CoopModel;

CoopModel *coop_model_new (void);
void coop_model_free (CoopModel *model);
CoopModel *coop_model_copy (const CoopModel *model);

/* Applies one event with its body. On a fault the model stays usable: the event is applied as far as
 * it makes sense and the fault is returned; *detail (may be NULL) gets a sentence to g_free. An event
 * whose number is not past the last one's is left out: the file, which is read in order of numbers,
 * could not tell when it came. */
CoopFault coop_model_apply (CoopModel *model, const CoopEvent *ev, const void *body, char **detail);

const CoopModelTotals *coop_model_totals (const CoopModel *model);
const CoopPolicy *coop_model_policy (const CoopModel *model);

/* Pieces in address order, holes and voids included, that tile [0, max(budget, end of the last block)),
 * or, where memory comes in segments, all of the pool's addresses; these know no budget.
 * Appends to out (element CoopMapPiece). */
void coop_model_pieces (CoopModel *model, GArray *out);
/* NULL if none yet. Valid until the next apply. */
const CoopLastEviction *coop_model_last_eviction (const CoopModel *model);
const CoopLastOom *coop_model_last_oom (const CoopModel *model);

/* What is known by number; NULL / FALSE if unknown. Strings are valid for the model's life. */
const char *coop_model_string (const CoopModel *model, guint64 id);
typedef struct {
  guint64 id, storage, op, bytes, block;  /* block 0: no bytes now */
  const char *dtype;
  guint32 kind, pin, ndim;
  gint64 dims[8];
  gboolean evicted, held;
} CoopTensorInfo;
gboolean coop_model_tensor (const CoopModel *model, guint64 id, CoopTensorInfo *info);
typedef struct {
  guint64 id, replay_of, cost, start_ts, duration, step;
  const char *name;
  guint32 phase;
  guint64 stack;
} CoopOpInfo;
/* Operators are forgotten once no live or evicted tensor comes from them. */
gboolean coop_model_op (const CoopModel *model, guint64 id, CoopOpInfo *info);
/* "convolution" for "aten.convolution.default" or "aten::convolution"; NULL if unknown. g_free. */
char *coop_model_op_text (const CoopModel *model, guint64 op);
/* "train.py:18 in forward", innermost frame; NULL if unknown. Free with g_free. */
char *coop_model_stack_text (const CoopModel *model, guint64 stack);
/* What a number of a piece or a victim stands for, in words: a name as its bare word ("convolution"), a
 * line as above, a tensor by the operator and the line it came from. NULL if unknown. g_free. */
typedef enum { COOP_NAME_OPERATOR, COOP_NAME_LINE, COOP_NAME_TENSOR } CoopNameKind;
char *coop_model_name (const CoopModel *model, CoopNameKind kind, guint64 id);

/* One event in words, for lists: "evict conv2d output 36.0 MiB at 0x1a00000". g_free. */
char *coop_model_describe (const CoopModel *model, const CoopEvent *ev, const void *body);

/* Serialised layout (for keyframes): everything apply needs to go on from here. */
GBytes *coop_model_save (const CoopModel *model);
CoopModel *coop_model_load (GBytes *bytes, GError **error);

#endif
