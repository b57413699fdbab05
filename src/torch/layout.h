/* SPDX-License-Identifier: Apache-2.0 */
/* Layout: reads what a tensor is straight from PyTorch's own structs, in a few loads.
 *
 * Asking through Python costs 30 to 120 ns a property and an operator needs a dozen. Where the
 * fields lie differs between versions, so nothing is assumed: at start sample tensors whose
 * properties are known are searched for those values, and checked with others.
 * All of it needs the GIL.
 */
#ifndef COOP_LAYOUT_H
#define COOP_LAYOUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "torch/python.h"

enum {
  COOP_FLAG_CONJ = 1 << 0,
  COOP_FLAG_NEG = 1 << 1,
  COOP_FLAG_ZERO = 1 << 2    /* no memory: all elements are zero */
};

#define COOP_MAX_DTYPES 64

/* A tensor at this moment. Pointers are PyTorch's and valid while the tensor is unchanged. */
typedef struct {
  void *storage;             /* StorageImpl */
  void *data;                /* begin of the storage's memory; NULL: no memory */
  uint64_t nbytes;           /* of the storage */
  const int64_t *sizes, *strides;
  int64_t offset;            /* in elements */
  uint32_t ndim;
  uint16_t dtype;            /* index for coop_dtype */
  uint8_t flags;
  bool plain;                /* dense, on the CPU, no kind of its own: what Coopscope manages */
} CoopView;

/* Finds the layout by samples = the dictionary that _adapter.py's _samples makes. False with an
 * exception set: this PyTorch is laid out in a way that is not understood. */
bool coop_layout_find (PyObject *samples);
/* Whether o is a tensor. */
bool coop_is_tensor (PyObject *o);
/* False if it has no storage or is of a kind that is not managed; then only `plain` is set. */
bool coop_view_read (PyObject *tensor, CoopView *view);

/* From now on no tensor is managed, until coop_layout_manage says which. */
void coop_layout_manage_none (void);

/* From now on tensors like this one, on another device, are what is managed, and those of the CPU are
 * not. False with an exception. */
bool coop_layout_manage (PyObject *tensor, const void *storage, const void *data);
/* Reads a plain tensor of the CPU, whatever is managed. */
bool coop_view_read_host (PyObject *tensor, CoopView *view);

/* Of a storage's Python object's `_cdata` or of view.storage: its memory, whether PyTorch's own CPU
 * allocator owns it, and whether it may be resized. */
void *coop_storage_data (const void *storage);
uint64_t coop_storage_bytes (const void *storage);
bool coop_storage_owned (const void *storage);

typedef struct {
  PyObject *object;          /* torch.float32, ... */
  char name[16];
  uint32_t itemsize;
  bool integer;
  uint64_t string;           /* string id */
} CoopDtype;
CoopDtype *coop_dtype (uint16_t index);   /* NULL if unknown */

#endif
