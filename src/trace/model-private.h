/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of the model share: blocks, tensors and operators by number, blocks by address.
 *
 *   model.c          apply, totals, small events
 *   model-blocks.c   the lives of blocks
 *   model-tensors.c  what is known of tensors and operators
 *   model-graph.c    who holds whom, and what is forgotten when
 *   model-segments.c what is memory at all
 *   model-look.c     looking in
 *   model-save.c     to bytes and back
 *   model-text.c     to words
 */
#ifndef COOP_MODEL_PRIVATE_H
#define COOP_MODEL_PRIVATE_H

#include "trace/id-map.h"
#include "trace/model.h"
#include "trace/space.h"

typedef struct Block Block;
typedef struct Tensor Tensor;
typedef struct Op Op;

#define COOP_MAX_DIMS 8

/* One life of an address range. */
struct Block {
  CoopNode node; /* first: a node of the space is the block */
  guint64 id, requested, op, born_ts, used_seq, used_ts;
  Tensor *tensor;   /* NULL: unclaimed */
  guint64 stack;    /* of who asked for it, where that is known without an operator */
  guint8 own_kind;  /* CoopKind without a tensor */
  guint8 lasting;   /* CoopPin of the block itself, for blocks without a tensor */
  guint8 working;   /* allocated by an operator that is still running */
  guint8 pin, kind; /* as they are counted in the totals now */
};

/* A storage version. Known while it has bytes, the user holds it, a running operator uses it, or an
 * operator that may be run again reads it. */
struct Tensor {
  guint64 id, storage, bytes, dtype;
  guint64 op_id;
  Op *op;         /* producer; NULL if none or forgotten */
  Block *block;   /* NULL: no bytes now */
  guint64 evicted_bytes; /* counted in totals.evicted; 0 if not evicted or not held */
  guint64 used_seq, used_ts;
  guint64 remat_step;
  gint64 dims[COOP_MAX_DIMS];
  guint32 ndim, output;
  guint32 running; /* running operators that use it */
  guint32 readers; /* operators, not running, that may be run again and read it */
  guint32 remats;
  guint8 kind, pin; /* lasting pin */
  guint8 held;
  guint8 unsure; /* on model->unsure */
};

/* An operator that runs, or one that a known tensor comes from. It holds its inputs only as long as
 * one of these tensors could be made again by it: constants cannot, and end the chain. */
struct Op {
  guint64 id, name, replay_of, stack, cost, start_ts, duration, step;
  guint32 phase;
  guint32 outputs; /* known tensors that come from it */
  guint32 again;   /* of these, without a lasting pin */
  guint32 n_inputs;
  Tensor **inputs; /* held as readers, or running */
  GArray *blocks;  /* while it runs: numbers of blocks it allocated */
  guint8 running;
};

/* A range that the device backs. */
typedef struct {
  guint64 id, base, bytes;
  CoopNode *walls; /* two; NULL: while one segment is the whole pool there are none */
} Segment;

typedef struct {
  guint64 file, func;
  gint64 line;
} Frame;

typedef struct {
  guint64 parent, frame;
  guint64 shown;    /* the innermost frame of a script of the user's; else `frame` */
} Stack;

struct CoopModel {
  CoopModelTotals totals;
  CoopPolicy policy;
  CoopSpace space;
  GArray *segments; /* Segment, as they came */
  CoopIdMap blocks, tensors, ops;
  CoopIdMap strings, frames, stacks; /* char *, Frame *, Stack * */
  double free_part_sum;              /* over searches: free / budget */
  guint64 free_part_n;
  GPtrArray *unsure;    /* tensors that may have to be forgotten; empty between events */
  gboolean has_search;  /* `search` was seen */
  CoopLastEviction search; /* the latest search, victims or not */
  CoopLastEviction last;
  GArray *victims;      /* CoopVictim, of `last` */
  guint64 victim_seq;   /* event of the latest victim */
  gboolean has_oom;
  CoopLastOom oom;
};

/* An event being applied. */
typedef struct {
  CoopModel *model;
  const CoopEvent *ev;
  const void *body;
  char **detail;
} CoopApply;

/* model.c */
/* Returns `kind` and sets the detail; or NONE if a gap explains it. */
CoopFault coop_apply_fault (const CoopApply *c, CoopFault kind, const char *format, ...)
  G_GNUC_PRINTF (3, 4);
void coop_model_count (CoopModel *model, const Block *block, gboolean in);
/* Brings the totals up to date with a block's pin and kind. To be called after either may change. */
void coop_model_recount (CoopModel *model, Block *block);
guint8 coop_model_block_pin (const Block *block);
void coop_model_measure (CoopModel *model);

/* Into the map and the totals. The range is free. */
Block *coop_model_block_new (CoopModel *model, guint64 id, guint64 addr, guint64 bytes);
/* model-blocks.c, model-tensors.c: one function an event kind */
CoopFault coop_apply_alloc (const CoopApply *c);
CoopFault coop_apply_free (const CoopApply *c);
CoopFault coop_apply_evict (const CoopApply *c);
CoopFault coop_apply_handover (const CoopApply *c);
CoopFault coop_apply_move (const CoopApply *c);
CoopFault coop_apply_tensor (const CoopApply *c);
CoopFault coop_apply_write (const CoopApply *c);
CoopFault coop_apply_release (const CoopApply *c);
CoopFault coop_apply_pin (const CoopApply *c);
CoopFault coop_apply_reclassify (const CoopApply *c);
CoopFault coop_apply_op_begin (const CoopApply *c);
CoopFault coop_apply_op_end (const CoopApply *c);
/* The tensor, made up with a fault if it is not known; NULL only for number 0. */
Tensor *coop_apply_tensor_or_new (const CoopApply *c, guint64 id, CoopFault *result);
void coop_apply_touch (const CoopApply *c, Tensor *tensor);

/* model-segments.c */
CoopFault coop_apply_segment (const CoopApply *c);
/* No segment was ever there but one as large as the pool, from its beginning: the usual case. */
static inline gboolean
coop_model_flat (const CoopModel *model)
{
  return !model->space.segmented;
}
void coop_model_segment_add (CoopModel *model, guint64 id, guint64 base, guint64 bytes);
/* Each is walled from now on. */
void coop_model_segment_all (CoopModel *model);
void coop_model_segments_free (CoopModel *model);

/* model-graph.c */
static inline gboolean
coop_model_again (guint8 pin)
{
  return pin == COOP_PIN_NONE;
}
Tensor *coop_model_tensor_new (CoopModel *model, guint64 id);
void coop_model_set_producer (CoopModel *model, Tensor *tensor, guint64 op_id);
void coop_model_set_pin (CoopModel *model, Tensor *tensor, guint8 pin);
void coop_model_attach (CoopModel *model, Tensor *tensor, Block *block);
void coop_model_detach (CoopModel *model, Tensor *tensor);
/* The user holds it or not; keeps totals.evicted right. */
void coop_model_set_held (CoopModel *model, Tensor *tensor, gboolean held);
void coop_model_set_evicted (CoopModel *model, Tensor *tensor, guint64 bytes);
Op *coop_model_op_new (CoopModel *model, guint64 id);
/* The block was allocated by the running operator, which pins it. */
void coop_model_op_works (Op *op, Block *block);
/* The operator stops running: inputs are released, or held if it may be run again. */
void coop_model_op_done (CoopModel *model, Op *op, gboolean failed);
/* Forgets what is on `unsure` and no longer wanted, whole chains, without recursion. */
void coop_model_sweep (CoopModel *model);
void coop_model_tensor_free (Tensor *tensor);
void coop_model_op_free (Op *op);

/* model-save.c */
/* with_text: strings, frames and stacks too. Keyframes leave them out; the file has them as rows. */
GBytes *coop_model_save_parts (const CoopModel *model, gboolean with_text);
/* Of a file whose parameters have other numbers: policy is then handed on, value by value. */
typedef void (*CoopTakePolicy) (gpointer user, CoopPolicy *policy, const guint64 *values, guint n);
CoopModel *coop_model_load_from (GBytes *bytes, CoopTakePolicy take, gpointer user, GError **error);
void coop_model_add_string (CoopModel *model, guint64 id, const char *text, gsize bytes);
void coop_model_add_frame (CoopModel *model, guint64 id, guint64 file, guint64 func, gint64 line);
void coop_model_add_stack (CoopModel *model, guint64 id, guint64 parent, guint64 frame);

/* For the store, right after an event was applied. */
guint64 coop_model_shown (const CoopModel *model, guint64 stack);
guint64 coop_model_n_blocks (const CoopModel *model);
/* Blocks, tensors and operators known: what a keyframe costs. */
guint64 coop_model_n_entities (const CoopModel *model);

#endif
