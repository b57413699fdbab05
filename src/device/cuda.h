/* SPDX-License-Identifier: Apache-2.0 */
/* CUDA: where bytes come from on a GPU. Everything goes through a table of the driver's functions
 * that is filled at run time: there is no link dependency, and without a driver coop_cuda_load says
 * what is missing.
 *
 * Nothing here locks; the caller serialises calls on one device and on what was made from it. Every
 * function makes the device's context current to the calling thread and leaves it so.
 *
 * Failure: a function that returns CoopCuResult has changed nothing when it fails, except where said;
 * a _new that fails may still set *out, where the driver refused to take something back: _free that.
 * A _close or _free that returns false could not give everything back, has lost nothing, and may be
 * called again. Memory that work in flight may still touch is never unmapped: it waits for a fence.
 */
#ifndef COOP_DEVICE_CUDA_H
#define COOP_DEVICE_CUDA_H

#include <stdbool.h>
#include <stdio.h>

#include "device/cuda-abi.h"

typedef struct {
  CoopCudaTable fn;
  int version;         /* of the driver: 13000 is 13.0 */
  int n_devices;
  char why[160];       /* why it could not be loaded, for people */
} CoopCuda;

/* Opens libcuda.so.1, finds every function and initialises the driver. The library stays loaded for
 * good: closing a driver is not safe. */
bool coop_cuda_load (CoopCuda *cuda);
/* The same over a table of other functions: for tests. */
bool coop_cuda_begin (CoopCuda *cuda, const CoopCudaTable *table);
/* "CUDA_ERROR_OUT_OF_MEMORY (2)". Static storage of the calling thread. */
const char *coop_cuda_error (const CoopCuda *cuda, CoopCuResult result);

/* ---- a device --------------------------------------------------------------------------------- */

typedef struct {
  const CoopCuda *cuda;
  int ordinal;
  CoopCuDevice device;
  CoopCuContext context;         /* the primary one, shared with PyTorch */
  bool retained;
  char name[96];
  int major, minor, processors;
  bool has_pages, has_pools;     /* virtual memory calls; memory pools */
  uint64_t granule, recommended; /* smallest and recommended size of a page; 0 without pages */
} CoopCudaDevice;

CoopCuResult coop_cuda_device_open (CoopCudaDevice *d, const CoopCuda *cuda, int ordinal);
bool coop_cuda_device_close (CoopCudaDevice *d);
CoopCuResult coop_cuda_device_enter (const CoopCudaDevice *d);
/* The device's own figures, whoever uses the memory. */
CoopCuResult coop_cuda_device_info (const CoopCudaDevice *d, uint64_t *free, uint64_t *total);

/* ---- a fence: work queued on some streams until now ------------------------------------------- */

#define COOP_CUDA_FENCE_STREAMS 8
typedef struct {
  CoopCuEvent event[COOP_CUDA_FENCE_STREAMS];
  unsigned n;
} CoopCudaFence;

/* f is zero-filled. On failure it may hold events, which the next query drops. More streams than there is room for, or none: the whole device is waited for
 * instead, here and now. */
CoopCuResult coop_cuda_fence_record (const CoopCudaDevice *d, CoopCudaFence *f,
                                     const CoopCuStream *streams, unsigned n);
/* SUCCESS: done, events given back. NOT_READY, or another error: nothing changed. */
CoopCuResult coop_cuda_fence_query (const CoopCudaDevice *d, CoopCudaFence *f);
CoopCuResult coop_cuda_fence_wait (const CoopCudaDevice *d, CoopCudaFence *f);
/* `stream` waits on the device for it; the host does not. */
CoopCuResult coop_cuda_fence_order (const CoopCudaDevice *d, const CoopCudaFence *f,
                                    CoopCuStream stream);

/* ---- arena: one range that a pool is laid over ------------------------------------------------ */

/* Address space of `capacity`, of which the first bytes, up to the budget, have memory: in whole
 * pages where the device has them, so that the budget may change, else all of it at once. */
typedef struct CoopCudaArena CoopCudaArena;
CoopCuResult coop_cuda_arena_new (CoopCudaDevice *d, uint64_t capacity, uint64_t budget,
                                  CoopCudaArena **out);
bool coop_cuda_arena_free (CoopCudaArena *a);
CoopCuPtr coop_cuda_arena_base (const CoopCudaArena *a);
/* Bytes that have memory: the budget rounded up to a page. */
uint64_t coop_cuda_arena_committed (const CoopCudaArena *a);
/* More or less memory at the end. Less: the caller has no block there and waited for its work. On
 * failure what could be done stays done; committed tells. */
CoopCuResult coop_cuda_arena_commit (CoopCudaArena *a, uint64_t budget);

/* ---- pages: any free pages make any block ----------------------------------------------------- */

typedef struct CoopCudaPages CoopCudaPages;
/* At most `budget` bytes in pages of `page` bytes (0: the smallest). No memory is taken yet. */
CoopCuResult coop_cuda_pages_new (CoopCudaDevice *d, uint64_t budget, uint64_t page,
                                  CoopCudaPages **out);
/* Blocks still out are given back too: the caller has waited for their work. */
bool coop_cuda_pages_free (CoopCudaPages *p);
/* OUT_OF_MEMORY also when only the budget is short. *out: whole pages, readable and writable. */
CoopCuResult coop_cuda_pages_alloc (CoopCudaPages *p, uint64_t bytes, CoopCuPtr *out);
/* The block is given back once the work queued until now on these streams is done (none: on the
 * device). Never fails for the caller: what the driver refuses is tried again later. False: no such
 * block. */
bool coop_cuda_pages_release (CoopCudaPages *p, CoopCuPtr at, const CoopCuStream *streams, unsigned n);
/* Takes back what is done (wait: waits for all). */
CoopCuResult coop_cuda_pages_collect (CoopCudaPages *p, bool wait);

typedef struct {
  uint64_t page, budget;
  uint64_t created;    /* bytes of physical memory held */
  uint64_t used;       /* pages of blocks that are out */
  uint64_t asked;      /* bytes of these blocks as asked for; used - asked is lost to rounding */
  uint64_t leaving;    /* released, waiting for work in flight */
  uint64_t stuck;      /* released, and the driver refused to unmap: tried again at each collect */
  uint64_t blocks, maps, unmaps, accesses, reserves;
} CoopCudaPagesFigures;
void coop_cuda_pages_figures (const CoopCudaPages *p, CoopCudaPagesFigures *out);

/* ---- pool: the driver's own stream-ordered allocator ------------------------------------------ */

typedef struct {
  bool follow_events, opportunistic, internal_dependencies;
  uint64_t release_threshold;  /* bytes kept at a synchronisation; 0 is the driver's default */
} CoopCudaPoolOptions;

typedef struct CoopCudaPool CoopCudaPool;
/* options NULL: the driver's defaults. The budget counts bytes asked for, rounded up to 512. */
CoopCuResult coop_cuda_pool_new (CoopCudaDevice *d, uint64_t budget,
                                 const CoopCudaPoolOptions *options, CoopCudaPool **out);
bool coop_cuda_pool_free (CoopCudaPool *p);
CoopCuResult coop_cuda_pool_alloc (CoopCudaPool *p, uint64_t bytes, CoopCuStream stream,
                                   CoopCuPtr *out);
CoopCuResult coop_cuda_pool_release (CoopCudaPool *p, CoopCuPtr at, CoopCuStream stream);
CoopCuResult coop_cuda_pool_trim (CoopCudaPool *p, uint64_t keep);

typedef struct {
  uint64_t budget, asked, blocks;                                /* ours */
  uint64_t reserved, reserved_high, used, used_high;             /* the driver's */
} CoopCudaPoolFigures;
CoopCuResult coop_cuda_pool_figures (const CoopCudaPool *p, CoopCudaPoolFigures *out);

/* ---- probe ------------------------------------------------------------------------------------ */

/* The reviewer's program and its variants on device `ordinal`; prints what happened and asserts
 * nothing. unit 0: a sixth of what is free, at most 7 GiB. `only` NULL or a variant's name. 0: it
 * ran; 1: no driver or device, or it broke; 2: no such variant. */
int coop_cuda_probe (const CoopCuda *cuda, int ordinal, uint64_t unit, const char *only, bool json,
                     FILE *out, FILE *err);

#endif
