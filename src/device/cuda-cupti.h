/* SPDX-License-Identifier: Apache-2.0 */
/* CUPTI: what the GPU itself says it did, kernel by kernel. Loaded at run time, and only the copy that
 * PyTorch has brought with it.
 *
 * An operator's kernels are tied to it by an external correlation id, pushed before and popped after it on
 * its thread. What comes back, in buffers and in any order, is entered into a *book*: times of copies
 * and memory calls in sum, and for each operator the time of its kernels, without the gaps between
 * launches that events count.
 */
#ifndef COOP_CUDA_CUPTI_H
#define COOP_CUDA_CUPTI_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
  COOP_CUPTI_OK = 0,
  COOP_CUPTI_NO_MORE = 12,
  COOP_CUPTI_PRIVILEGES = 35,
  COOP_CUPTI_TAKEN = 39,           /* another subscriber: a profiler */
  COOP_CUPTI_UNKNOWN = 999
};

enum {
  COOP_CUPTI_MEMCPY = 1, COOP_CUPTI_MEMSET = 2, COOP_CUPTI_DRIVER = 4, COOP_CUPTI_RUNTIME = 5,
  COOP_CUPTI_KERNEL = 10, COOP_CUPTI_OVERHEAD = 17, COOP_CUPTI_EXTERNAL = 39, COOP_CUPTI_MEMORY = 49
};

#define COOP_CUPTI_CUSTOM 5        /* the kind of our external ids; PyTorch's profiler has 3 and 4 */

typedef void (*CoopCuptiRequest) (uint8_t **buffer, size_t *bytes, size_t *most);
typedef void (*CoopCuptiComplete) (void *context, uint32_t stream, uint8_t *buffer, size_t bytes,
                                   size_t valid);

/* X (member, symbol, arguments) */
#define COOP_CUPTI_FUNCTIONS(X)                                                                \
  X (version, cuptiGetVersion, (uint32_t *version))                                            \
  X (subscribe, cuptiSubscribe, (void **subscriber, void *callback, void *user))               \
  X (unsubscribe, cuptiUnsubscribe, (void *subscriber))                                        \
  X (register_callbacks, cuptiActivityRegisterCallbacks,                                       \
     (CoopCuptiRequest request, CoopCuptiComplete complete))                                   \
  X (enable, cuptiActivityEnable, (int kind))                                                  \
  X (disable, cuptiActivityDisable, (int kind))                                                \
  X (flush, cuptiActivityFlushAll, (uint32_t forced))                                          \
  X (next, cuptiActivityGetNextRecord, (uint8_t *buffer, size_t valid, void **record))         \
  X (dropped, cuptiActivityGetNumDroppedRecords, (void *context, uint32_t stream, size_t *n))  \
  X (push, cuptiActivityPushExternalCorrelationId, (int kind, uint64_t id))                    \
  X (pop, cuptiActivityPopExternalCorrelationId, (int kind, uint64_t *last))

typedef struct {
#define X(member, symbol, arguments) int (*member) arguments;
  COOP_CUPTI_FUNCTIONS (X)
#undef X
} CoopCuptiTable;

/* ---- the book --------------------------------------------------------------------------------- */

typedef struct {
  uint64_t kernels, kernel_ns;
  uint64_t copies, copy_ns, copy_bytes;
  uint64_t sets, set_ns;
  uint64_t allocs, frees, alloc_bytes;
  uint64_t overhead_ns;            /* CUPTI's own */
  uint64_t dropped;                /* records that CUPTI had no buffer for */
  uint64_t unknown;                /* of kinds that are not read here */
  uint64_t lost;                   /* kernels whose operator could not be told */
} CoopCuptiTotals;

/* One kernel of operator `external`. */
typedef void (*CoopCuptiSink) (void *user, uint64_t external, uint64_t ns);

typedef struct CoopCuptiBook CoopCuptiBook;
CoopCuptiBook *coop_cupti_book_new (CoopCuptiSink sink, void *user);
void coop_cupti_book_free (CoopCuptiBook *book);
const CoopCuptiTotals *coop_cupti_book_totals (const CoopCuptiBook *book);
/* Every record of a completed buffer. */
void coop_cupti_book_buffer (CoopCuptiBook *book, const CoopCuptiTable *table, uint8_t *buffer,
                             size_t valid);

/* ---- a session: one a process, because CUPTI's callbacks know of no user ------------------------ */

/* To be called only where a driver has answered: CUPTI 13.2 does not return without one.
 * Claims CUPTI and switches the records on; what completes is entered into book, from CUPTI's own
 * thread, one buffer at a time. False: *why says it (a profiler has it, no driver, too old), nothing is
 * switched on, and the caller times by events. */
bool coop_cupti_start (CoopCuptiBook *book, char why[160]);
bool coop_cupti_start_with (const CoopCuptiTable *table, CoopCuptiBook *book, char why[160]);
void coop_cupti_stop (void);
/* Around an operator, on its thread. Nothing happens without a session. */
void coop_cupti_push (uint64_t external);
void coop_cupti_pop (void);
/* Hands over what has completed; the caller has synchronised what it wants to see. */
void coop_cupti_flush (void);

#endif
