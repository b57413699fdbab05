/* SPDX-License-Identifier: Apache-2.0 */
/* The part of the CUDA driver's binary interface that is used here, written down by ourselves: the
 * build needs no toolkit, the program no driver. Where cuda.h is there at build time a test compares
 * every size, offset, number and prototype below with it (tests/device/test-cuda-abi.c).
 */
#ifndef COOP_CUDA_ABI_H
#define COOP_CUDA_ABI_H

#include <stddef.h>
#include <stdint.h>

typedef int CoopCuResult;
typedef int CoopCuDevice;
typedef uint64_t CoopCuPtr;       /* an address on the device */
typedef uint64_t CoopCuHandle;    /* of physical memory */
typedef struct CUctx_st *CoopCuContext;
typedef struct CUstream_st *CoopCuStream;
typedef struct CUevent_st *CoopCuEvent;
typedef struct CUmemPoolHandle_st *CoopCuMemPool;

enum {
  COOP_CU_SUCCESS = 0,
  COOP_CU_INVALID_VALUE = 1,
  COOP_CU_OUT_OF_MEMORY = 2,
  COOP_CU_NOT_INITIALIZED = 3,
  COOP_CU_STUB_LIBRARY = 34,
  COOP_CU_NO_DEVICE = 100,
  COOP_CU_INVALID_DEVICE = 101,
  COOP_CU_INVALID_CONTEXT = 201,
  COOP_CU_INVALID_HANDLE = 400,
  COOP_CU_NOT_READY = 600,
  COOP_CU_ILLEGAL_ADDRESS = 700,
  COOP_CU_NOT_SUPPORTED = 801,
  COOP_CU_UNKNOWN = 999
};

enum {
  COOP_CU_ATTRIBUTE_MULTIPROCESSORS = 16,
  COOP_CU_ATTRIBUTE_COMPUTE_MAJOR = 75,
  COOP_CU_ATTRIBUTE_COMPUTE_MINOR = 76,
  COOP_CU_ATTRIBUTE_VIRTUAL_MEMORY = 102,
  COOP_CU_ATTRIBUTE_MEMORY_POOLS = 115
};

enum {
  COOP_CU_ALLOCATION_PINNED = 1,
  COOP_CU_LOCATION_DEVICE = 1,
  COOP_CU_ACCESS_NONE = 0,
  COOP_CU_ACCESS_READ = 1,
  COOP_CU_ACCESS_READWRITE = 3,
  COOP_CU_GRANULARITY_MINIMUM = 0,
  COOP_CU_GRANULARITY_RECOMMENDED = 1,
  COOP_CU_STREAM_NON_BLOCKING = 1,
  COOP_CU_EVENT_DEFAULT = 0,
  COOP_CU_EVENT_DISABLE_TIMING = 2,
  COOP_CU_CAPTURE_NONE = 0
};

typedef enum {
  COOP_CU_POOL_REUSE_FOLLOW_EVENT_DEPENDENCIES = 1,
  COOP_CU_POOL_REUSE_ALLOW_OPPORTUNISTIC,
  COOP_CU_POOL_REUSE_ALLOW_INTERNAL_DEPENDENCIES,
  COOP_CU_POOL_RELEASE_THRESHOLD,
  COOP_CU_POOL_RESERVED_CURRENT,
  COOP_CU_POOL_RESERVED_HIGH,
  COOP_CU_POOL_USED_CURRENT,
  COOP_CU_POOL_USED_HIGH
} CoopCuPoolAttribute;

typedef struct {
  int type, id;
} CoopCuLocation;

typedef struct {
  int type, handle_types;
  CoopCuLocation location;
  void *win32;
  struct {
    unsigned char compression, rdma;
    unsigned short usage;
    unsigned char reserved[4];
  } flags;
} CoopCuMemProp;

typedef struct {
  CoopCuLocation location;
  int flags;
} CoopCuAccess;

typedef struct {
  int type, handle_types;
  CoopCuLocation location;
  void *win32;
  size_t max_size;
  unsigned short usage;
  unsigned char reserved[54];
} CoopCuPoolProps;

/* X (member, symbol, arguments). Every function that is called; each must be there. */
#define COOP_CUDA_FUNCTIONS(X)                                                                      \
  X (init, cuInit, (unsigned flags))                                                                \
  X (driver_version, cuDriverGetVersion, (int *version))                                            \
  X (error_name, cuGetErrorName, (CoopCuResult error, const char **text))                           \
  X (error_string, cuGetErrorString, (CoopCuResult error, const char **text))                       \
  X (device_count, cuDeviceGetCount, (int *n))                                                      \
  X (device_get, cuDeviceGet, (CoopCuDevice *device, int ordinal))                                  \
  X (device_name, cuDeviceGetName, (char *name, int bytes, CoopCuDevice device))                    \
  X (device_attribute, cuDeviceGetAttribute, (int *value, int attribute, CoopCuDevice device))      \
  X (primary_retain, cuDevicePrimaryCtxRetain, (CoopCuContext *context, CoopCuDevice device))       \
  X (primary_release, cuDevicePrimaryCtxRelease_v2, (CoopCuDevice device))                          \
  X (ctx_set, cuCtxSetCurrent, (CoopCuContext context))                                             \
  X (ctx_get, cuCtxGetCurrent, (CoopCuContext *context))                                            \
  X (ctx_synchronize, cuCtxSynchronize, (void))                                                     \
  X (mem_info, cuMemGetInfo_v2, (size_t *free, size_t *total))                                      \
  X (mem_alloc, cuMemAlloc_v2, (CoopCuPtr *out, size_t bytes))                                      \
  X (mem_free, cuMemFree_v2, (CoopCuPtr at))                                                        \
  X (copy_htod, cuMemcpyHtoDAsync_v2,                                                               \
     (CoopCuPtr to, const void *from, size_t bytes, CoopCuStream stream))                           \
  X (copy_dtoh, cuMemcpyDtoHAsync_v2,                                                               \
     (void *to, CoopCuPtr from, size_t bytes, CoopCuStream stream))                                 \
  X (copy_dtod, cuMemcpyDtoDAsync_v2,                                                               \
     (CoopCuPtr to, CoopCuPtr from, size_t bytes, CoopCuStream stream))                             \
  X (set_d32, cuMemsetD32Async, (CoopCuPtr at, unsigned value, size_t n, CoopCuStream stream))      \
  X (stream_create, cuStreamCreate, (CoopCuStream *out, unsigned flags))                            \
  X (stream_destroy, cuStreamDestroy_v2, (CoopCuStream stream))                                     \
  X (stream_synchronize, cuStreamSynchronize, (CoopCuStream stream))                                \
  X (stream_wait, cuStreamWaitEvent, (CoopCuStream stream, CoopCuEvent event, unsigned flags))      \
  X (stream_capturing, cuStreamIsCapturing, (CoopCuStream stream, int *status))                     \
  X (event_create, cuEventCreate, (CoopCuEvent *out, unsigned flags))                               \
  X (event_destroy, cuEventDestroy_v2, (CoopCuEvent event))                                         \
  X (event_record, cuEventRecord, (CoopCuEvent event, CoopCuStream stream))                         \
  X (event_query, cuEventQuery, (CoopCuEvent event))                                                \
  X (event_synchronize, cuEventSynchronize, (CoopCuEvent event))                                    \
  X (event_elapsed, cuEventElapsedTime, (float *ms, CoopCuEvent begin, CoopCuEvent end))            \
  X (address_reserve, cuMemAddressReserve,                                                          \
     (CoopCuPtr *out, size_t bytes, size_t align, CoopCuPtr hint, unsigned long long flags))        \
  X (address_free, cuMemAddressFree, (CoopCuPtr at, size_t bytes))                                  \
  X (mem_create, cuMemCreate,                                                                       \
     (CoopCuHandle *out, size_t bytes, const CoopCuMemProp *prop, unsigned long long flags))        \
  X (mem_release, cuMemRelease, (CoopCuHandle handle))                                              \
  X (mem_map, cuMemMap,                                                                             \
     (CoopCuPtr at, size_t bytes, size_t offset, CoopCuHandle handle, unsigned long long flags))    \
  X (mem_unmap, cuMemUnmap, (CoopCuPtr at, size_t bytes))                                           \
  X (mem_access, cuMemSetAccess,                                                                    \
     (CoopCuPtr at, size_t bytes, const CoopCuAccess *access, size_t n))                            \
  X (mem_granularity, cuMemGetAllocationGranularity,                                                \
     (size_t *bytes, const CoopCuMemProp *prop, int option))                                        \
  X (pool_create, cuMemPoolCreate, (CoopCuMemPool *out, const CoopCuPoolProps *props))              \
  X (pool_destroy, cuMemPoolDestroy, (CoopCuMemPool pool))                                          \
  X (pool_set, cuMemPoolSetAttribute, (CoopCuMemPool pool, int attribute, void *value))             \
  X (pool_get, cuMemPoolGetAttribute, (CoopCuMemPool pool, int attribute, void *value))             \
  X (pool_trim, cuMemPoolTrimTo, (CoopCuMemPool pool, size_t keep))                                 \
  X (pool_alloc, cuMemAllocFromPoolAsync,                                                           \
     (CoopCuPtr *out, size_t bytes, CoopCuMemPool pool, CoopCuStream stream))                       \
  X (pool_free, cuMemFreeAsync, (CoopCuPtr at, CoopCuStream stream))

typedef struct {
#define X(member, symbol, arguments) CoopCuResult (*member) arguments;
  COOP_CUDA_FUNCTIONS (X)
#undef X
} CoopCudaTable;

#endif
