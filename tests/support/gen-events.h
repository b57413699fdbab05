/* SPDX-License-Identifier: Apache-2.0 */
/* Generated runs: valid event streams from a seed, with the mix of a real one.
 *
 * A small program runs in a pool of `budget` bytes: operators with inputs and outputs, workspace,
 * in-place updates, frees, evictions in address order, rematerialization through evicted and dead
 * tensors, moves, pins, steps, policy changes. It keeps its own books, as plainly as possible, so
 * that what is read from the events can be compared with what happened.
 */
#ifndef COOP_GEN_EVENTS_H
#define COOP_GEN_EVENTS_H

#include <glib.h>

#include "core/event.h"

typedef struct {
  guint64 addr, bytes, id;
  guint64 tensor; /* 0: unclaimed */
} CoopGenBlock;

typedef struct {
  guint64 used, peak, evicted; /* evicted: bytes that the user holds and that are not here */
  guint64 allocs, frees, evictions, handovers, moves, ops, replays, searches, ooms, step;
  guint64 workspace; /* blocks that operators freed again before they ended */
} CoopGenBooks;

typedef struct CoopGen CoopGen;

CoopGen *coop_gen_new (guint32 seed, guint64 budget);
void coop_gen_free (CoopGen *gen);
/* The next event with its body, valid until the next call. Never ends. */
const CoopEvent *coop_gen_next (CoopGen *gen, const void **body);
/* Where the last event handed out is not the last of its operator, the books are ahead of it: true
 * if they are not. */
gboolean coop_gen_settled (const CoopGen *gen);
const CoopGenBooks *coop_gen_books (const CoopGen *gen);
/* Used blocks in address order (element CoopGenBlock). */
const GArray *coop_gen_blocks (const CoopGen *gen);
/* Lets go of everything and ends the run: the events that are still to come end with END. */
void coop_gen_finish (CoopGen *gen, gint64 exit_code);
gboolean coop_gen_done (const CoopGen *gen);

#endif
