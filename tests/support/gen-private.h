/* SPDX-License-Identifier: Apache-2.0 */
/* Generated runs: what gen-events.c (the program) and gen-memory.c (the pool) share. */
#ifndef COOP_GEN_PRIVATE_H
#define COOP_GEN_PRIVATE_H

#include "gen-events.h"

typedef struct {
  guint64 id, storage, bytes, block, producer;
  gboolean held, constant;
  guint readers; /* operators that may run again and read it */
  guint kind;
} CoopGenTensor;

typedef struct {
  guint64 id, name;
  guint64 inputs[3];
  guint n_inputs;
} CoopGenOp;

struct CoopGen {
  GRand *rand;
  guint64 budget;
  CoopGenBooks books;
  GArray *blocks;      /* CoopGenBlock by address */
  GHashTable *tensors; /* id -> CoopGenTensor, never dropped */
  GHashTable *ops;     /* id -> CoopGenOp */
  GPtrArray *held;     /* tensors that the user holds, constants apart */
  GPtrArray *params;
  GPtrArray *pinned;   /* tensors of running operators, with repetition */
  GQueue queue;        /* CoopGenItem */
  gpointer current;
  guint64 seq, ts, next_block, next_tensor, next_op, next_search, next_string;
  guint since_step;
  gboolean finished;
};

typedef struct {
  CoopEvent ev;
  guint8 body[];
} CoopGenItem;

/* Appends an event to the queue; the caller fills in `u` and the body. */
CoopGenItem *coop_gen_emit (CoopGen *gen, guint kind, gsize body_bytes);
CoopGenBlock *coop_gen_find_block (CoopGen *gen, guint64 id);
void coop_gen_remove_block (CoopGen *gen, guint64 id);
void coop_gen_insert_block (CoopGen *gen, guint64 id, guint64 addr, guint64 bytes);
/* Address of a hole of at least so many bytes; COOP_NO_ADDR if there is none. */
guint64 coop_gen_find_hole (CoopGen *gen, guint64 bytes);
CoopGenTensor *coop_gen_tensor (CoopGen *gen, guint64 id);
/* Number of the new block, after evictions if need be; 0 and an out-of-memory event if none fits. */
guint64 coop_gen_alloc (CoopGen *gen, guint64 requested, guint64 op);
void coop_gen_free_block (CoopGen *gen, guint64 block, guint64 op);

#endif
