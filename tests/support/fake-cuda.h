/* SPDX-License-Identifier: Apache-2.0 */
/* A strict fake of the CUDA driver: the functions of COOP_CUDA_FUNCTIONS under their own names, with
 * real bytes behind every address, so that what is remapped can be read. Linked into a test it fills
 * the table; as libcuda.so.1 it stands in for a driver.
 *
 * It refuses what the real one refuses (an offset, part of a mapping, sizes and addresses that are no
 * multiple of the granularity, a range that is not mapped, a handle twice, no context), keeps a
 * budget, and runs a stream's work late if asked to: work that reaches memory which is no longer
 * mapped breaks the context for good, as on a GPU.
 *
 * As libcuda.so.1: FAKE_CUDA_BYTES, FAKE_CUDA_GRANULE, FAKE_CUDA_DEVICES, FAKE_CUDA_LAZY=1,
 * FAKE_CUDA_FAIL=K[:CODE] in the environment.
 */
#ifndef FAKE_CUDA_H
#define FAKE_CUDA_H

#include <stdbool.h>

#include "device/cuda-abi.h"

#pragma GCC visibility push(default)

/* Everything anew. bytes and granule of each device; 0 for 1 GiB and 2 MiB. */
void fake_cuda_reset (uint64_t bytes, uint64_t granule);
void fake_cuda_table (CoopCudaTable *table);
/* Work waits until it is waited for. */
void fake_cuda_lazy (bool lazy);
/* Runs all work that is queued. */
void fake_cuda_run (void);
/* The k-th call from now on (1: the next) and the n - 1 after it fail with `code`; k 0: none. */
void fake_cuda_fail (unsigned long k, unsigned long n, CoopCuResult code);
/* Calls since fake_cuda_fail was called last. */
unsigned long fake_cuda_calls (void);
void fake_cuda_capture (bool on);
void fake_cuda_features (bool pages, bool pools);
/* Work that reads a range, or fills it with 0xa5. */
CoopCuResult fake_cuda_touch (CoopCuPtr at, uint64_t bytes, bool write, CoopCuStream stream);
/* NULL, or what somebody has not given back. Static storage. */
const char *fake_cuda_leaks (void);
uint64_t fake_cuda_used (void);
/* Is this an address of the device? */
bool fake_cuda_owns (CoopCuPtr at);
CoopCuResult fake_cuda_broken (void);

#pragma GCC visibility pop

#endif
