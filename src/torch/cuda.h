/* SPDX-License-Identifier: Apache-2.0 */
/* CUDA: the pool on a GPU. A process manages one device: its own memory, or that of one GPU
 * (`coop.cuda`); then the arena is a range of the GPU's addresses, and what the other files do with
 * bytes goes through here. PyTorch's pluggable allocator calls coop_cuda_hooks; its C++ side is
 * cuda-shim.cc, because what a C function cannot do is raise PyTorch's own error.
 *
 * The GPU's work is asynchronous, so an address may be handed on while kernels that use it are still
 * queued. Within a stream that is in order. Across streams the device waits, not the host
 * (cuda-streams.c).
 */
#ifndef COOP_TORCH_CUDA_H
#define COOP_TORCH_CUDA_H

#include "device/cuda.h"
#include "torch/host.h"

/* ---- cuda.c ---- */
/* Loads the driver. False with an exception that says what is missing. Once a process; before start. */
bool coop_cuda_setup (int ordinal, PyObject *current_stream);
/* The arena of a run that begins, with memory under the budget. *capacity out. NULL: *why says it. */
CoopArena *coop_cuda_arena (uint64_t budget, uint64_t *capacity, const char **why);
/* Called by the shim, from any thread, with the GIL or without it. NULL with *why: out of memory. */
void *coop_cuda_alloc (size_t bytes, int device, void *stream, const char **why);
void coop_cuda_free (void *p, size_t bytes, int device, void *stream);
void coop_cuda_record_stream (void *p, void *stream);
/* The stream that the calling thread's operators go to. GIL. */
void *coop_cuda_current_stream (void);

/* The GPU's own random generator, borrowed; NULL before CUDA is up. */
PyObject *coop_cuda_generator (void);

/* Copies inside the pool, on the current stream; the ranges may overlap. False: an error of the GPU. */
bool coop_cuda_move (void *to, const void *from, uint64_t bytes);
/* Hash of bytes of the pool, as coop_hash; waits for the stream. */
uint64_t coop_cuda_hash (const void *from, uint64_t bytes);
/* (free, total, committed) of the device, and what of it is ours. */
PyObject *coop_py_cuda_info (PyObject *self, PyObject *args);
/* cuda_start (ordinal, current_stream), cuda_hooks () -> (alloc, free, record), cuda_sample (...) */
PyObject *coop_py_cuda_setup (PyObject *self, PyObject *args);
PyObject *coop_py_cuda_hooks (PyObject *self, PyObject *args);
PyObject *coop_py_cuda_sample (PyObject *self, PyObject *args);

/* ---- cuda-streams.c ---- */
/* Work on `stream` is about to overwrite these bytes of the pool: it waits for all other streams that
 * may still use them. Nobody else is then known to use them. */
void coop_cuda_will_write (uint64_t addr, uint64_t bytes, void *stream);
/* ... about to read them: it waits for the others, whose use stays known. */
void coop_cuda_will_read (uint64_t addr, uint64_t bytes, void *stream);
/* `stream` uses them beside those that are known. */
void coop_cuda_uses (uint64_t addr, uint64_t bytes, void *stream);
/* More than one stream was ever seen. */
bool coop_cuda_streams_matter (void);
void coop_cuda_streams_begin (const CoopCudaDevice *device, uint64_t capacity);

/* The inputs of a call, or of a replay, are about to be read on the current stream. GIL. */
void coop_cuda_will_read_inputs (const CoopCall *call);
void coop_cuda_will_read_replay (const CoopReplay *step);

/* ---- cuda-cost.c ---- */
/* Around an operator. The host's clock sees only the launch, so kernels are timed by events, a few
 * times for each operator and size; until then the cost is estimated from the bytes. */
typedef struct CoopCudaTimer CoopCudaTimer;
CoopCudaTimer *coop_cuda_time_begin (const void *op, uint64_t bytes_in);
/* timer may be NULL. failed: forget it. */
void coop_cuda_time_end (CoopCudaTimer *timer, bool failed);
/* Cost in ns, as known by now. */
uint64_t coop_cuda_cost (const void *op, uint64_t bytes_in, uint64_t bytes_out, bool expensive);

/* CUDA is up: CUPTI, if it is asked for. GIL. */
void coop_cuda_cost_begin (void);
/* {cupti, kernels, kernel_ns, ...}: what CUPTI has seen. */
PyObject *coop_py_cuda_kernels (PyObject *self, PyObject *args);

extern CoopCuda coop_cuda_driver;
extern CoopCudaDevice coop_cuda_device;

#endif
