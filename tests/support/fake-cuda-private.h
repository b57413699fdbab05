/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FAKE_CUDA_PRIVATE_H
#define FAKE_CUDA_PRIVATE_H

#include <pthread.h>

#include "fake-cuda.h"

#define MAX_DEVICES 4
#define API __attribute__ ((visibility ("default")))

typedef struct CUevent_st {
  struct CUevent_st *next;
  uint64_t asked, done;        /* records so far, and those that have run */
  struct CUstream_st *stream;  /* of the last record */
  uint64_t ns;
  bool timed;
} Event;

typedef enum { WORK_COPY, WORK_TO_HOST, WORK_FROM_HOST, WORK_SET, WORK_RECORD, WORK_WAIT, WORK_FREE,
               WORK_TOUCH } WorkKind;

typedef struct Work {
  struct Work *next;
  WorkKind kind;
  CoopCuPtr to, from;
  void *host;                  /* TO_HOST: theirs. FROM_HOST: our copy */
  uint64_t bytes, seq;
  unsigned value;
  bool write;
  Event *event;
  struct Chunk *chunk;
} Work;

typedef struct CUstream_st {
  struct CUstream_st *next;
  Work *first, **last;
} Stream;

/* Addresses that were given out: an allocation, or a reservation with mappings in it. */
typedef struct Range {
  struct Range *next;
  CoopCuPtr at;
  uint64_t bytes;
  bool reserved;
  unsigned *granule;           /* of an allocation: its physical memory */
} Range;

typedef struct Handle {
  struct Handle *next;
  uint64_t id, bytes;
  unsigned maps;
  bool released;
  unsigned *granule;
} Handle;

typedef struct Mapping {
  struct Mapping *next;
  CoopCuPtr at;
  uint64_t bytes;
  Handle *handle;
  int access;
} Mapping;

typedef struct Chunk {         /* of a pool */
  struct Chunk *next;
  Range *range;
  uint64_t bytes;              /* in use by the user, 0 if free */
  unsigned freeing;            /* freed by the host; the stream has not come to so many of these */
  Stream *stream;              /* that freed it */
} Chunk;

typedef struct CUmemPoolHandle_st {
  struct CUmemPoolHandle_st *next;
  Chunk *chunks;
  uint64_t threshold, reserved, reserved_high, used, used_high;
  int reuse[3];
} Pool;

typedef struct CUctx_st {
  unsigned retained;
} Context;

typedef struct {
  pthread_mutex_t lock;
  bool configured, started, lazy, capture, no_pages, no_pools;
  CoopCuResult broken;
  uint64_t bytes, granule;     /* of the device */
  int n_devices;
  Context context[MAX_DEVICES];
  int fd;                      /* its physical memory */
  unsigned char *taken;        /* one byte a granule */
  unsigned n_granules;
  uint64_t used;
  CoopCuPtr space, space_end, fresh; /* addresses are never given out twice */
  Range *ranges;
  Handle *handles;
  Mapping *mappings;
  Pool *pools;
  Stream *streams, null_stream;
  Event *events;
  uint64_t next_handle;
  unsigned long calls, fail_from, fail_to;
  CoopCuResult fail_code;
} Fake;
extern Fake fake;
extern _Thread_local Context *fake_current;

/* Takes the lock; what every call is refused with. Unlock with LEAVE. */
CoopCuResult fake_enter (bool needs_context);
CoopCuResult fake_leave (CoopCuResult rc);
#define ENTER(needs_context)                       \
  do                                               \
    {                                              \
      CoopCuResult refused = fake_enter (needs_context); \
      if (refused != 0)                            \
        return fake_leave (refused);               \
    }                                              \
  while (0)
#define LEAVE(rc) return fake_leave (rc)

/* fake-cuda-memory.c; all under the lock */
void fake_memory_reset (void);
unsigned *fake_take_granules (uint64_t bytes);
void fake_give_granules (unsigned *granule, uint64_t bytes);
bool fake_accessible (CoopCuPtr at, uint64_t bytes, bool write);
Range *fake_range_new (uint64_t bytes, bool reserved);
void fake_range_free (Range *range);
/* fake-cuda-pool.c */
void fake_chunk_freed (Chunk *chunk);
void fake_pools_synchronized (void);
void fake_pools_reset (void);
/* fake-cuda.c */
CoopCuResult fake_queue (Stream *stream, const Work *work);
void fake_run_all (void);
void fake_run_stream (Stream *stream);
Stream *fake_stream (CoopCuStream stream);

#endif
