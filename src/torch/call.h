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
void coop_gather_clear (CoopDispatch *d);

/* ---- view.c ---- */
bool coop_view_setup (PyObject *functions);
PyObject *coop_view_call (CoopDispatch *d);

/* ---- dispatch.c ---- */
/* Tensors that something keeps where nobody sees them: they stay for life. */
bool coop_escape_inputs (const CoopDispatch *d);

#endif
