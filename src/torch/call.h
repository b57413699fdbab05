/* SPDX-License-Identifier: Apache-2.0 */
/* Call: one operator on its way through the dispatch handler. */
#ifndef COOP_CALL_H
#define COOP_CALL_H

#include "torch/host.h"

#define COOP_INLINE_SLOTS 16

typedef struct {
  CoopOpInfo *info;
  PyObject *args, *kwargs;
  CoopSlot *slots;
  unsigned n_slots, slot_room;
  CoopInput *inputs;
  unsigned n_inputs, input_room;
  CoopMade *made;
  CoopHost **made_host;
  unsigned n_made, made_room;
  PyObject *keep;            /* storages of private copies, until the record holds them */
  PyObject *generator, *state;
  const CoopEnvironment *env;
  bool nested;               /* lists of lists of tensors */
  bool unmanaged_in, unmanaged_out, foreign_write, foreign_read, subclass, grew;
  bool grad;                 /* gradients are recorded */
  bool sited;                /* its stack is what it should be: see guess_line */
  uint64_t copied;           /* bytes of private copies */
  CoopCall call;
  CoopSlot inline_slots[COOP_INLINE_SLOTS];
  CoopInput inline_inputs[COOP_INLINE_SLOTS];
} CoopDispatch;

/* ---- gather.c: from arguments to the engine's inputs ---- */
bool coop_gather_setup (PyObject *functions);
/* Tensors of the arguments. False with an exception. */
bool coop_gather_slots (CoopDispatch *d);
/* Tensors -> inputs: moves in, copies what others can write, finds and adopts. */
bool coop_gather_inputs (CoopDispatch *d);
/* New storages among the tensors of the result. */
bool coop_gather_outputs (CoopDispatch *d, PyObject *result);
/* After an attempt that failed: what it made has no owner. Keeps an exception that is set. */
void coop_gather_forget (CoopDispatch *d);
void coop_gather_clear (CoopDispatch *d);

/* ---- view.c ---- */
bool coop_view_setup (PyObject *functions);
PyObject *coop_view_call (CoopDispatch *d);

/* ---- attempt.c ---- */
/* Runs the operator, up to COOP_RESCUES times more if memory runs out. *cost: ns of the last. */
PyObject *coop_attempt (CoopDispatch *d, uint64_t *cost);
/* ns on a GPU, where the host's clock saw only the launch of the kernels. */
uint64_t coop_attempt_cost (const CoopDispatch *d);

/* ---- line.c ---- */
/* Before its inputs are known: whether gradients are recorded, and its stack if PyTorch says it. */
void coop_line_find (CoopDispatch *d);
/* Once its phase is known: what the stack is otherwise, see guess_line. */
void coop_line_settle (CoopDispatch *d);

/* ---- dispatch.c ---- */
/* Tensors that something keeps where nobody sees them: they stay for life. */
bool coop_escape_inputs (const CoopDispatch *d);

#endif
