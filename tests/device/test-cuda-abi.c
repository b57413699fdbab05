/* SPDX-License-Identifier: Apache-2.0 */
/* Our declarations of the driver against NVIDIA's, where cuda.h is there to compare with. Compiling
 * is the test. */
#include <cuda.h>

#include "device/cuda-abi.h"

#define SAME(a, b) _Static_assert ((long long) (a) == (long long) (b), #a " is " #b)
#define SIZE(ours, theirs) SAME (sizeof (ours), sizeof (theirs))
#define FIELD(ours, a, theirs, b) SAME (offsetof (ours, a), offsetof (theirs, b))

SIZE (CoopCuResult, CUresult);
SIZE (CoopCuDevice, CUdevice);
SIZE (CoopCuPtr, CUdeviceptr);
SIZE (CoopCuHandle, CUmemGenericAllocationHandle);
SIZE (CoopCuLocation, CUmemLocation);
FIELD (CoopCuLocation, id, CUmemLocation, id);
SIZE (CoopCuMemProp, CUmemAllocationProp);
FIELD (CoopCuMemProp, handle_types, CUmemAllocationProp, requestedHandleTypes);
FIELD (CoopCuMemProp, location, CUmemAllocationProp, location);
FIELD (CoopCuMemProp, win32, CUmemAllocationProp, win32HandleMetaData);
FIELD (CoopCuMemProp, flags, CUmemAllocationProp, allocFlags);
FIELD (CoopCuMemProp, flags.usage, CUmemAllocationProp, allocFlags.usage);
SIZE (CoopCuAccess, CUmemAccessDesc);
FIELD (CoopCuAccess, flags, CUmemAccessDesc, flags);
SIZE (CoopCuPoolProps, CUmemPoolProps);
FIELD (CoopCuPoolProps, location, CUmemPoolProps, location);
FIELD (CoopCuPoolProps, win32, CUmemPoolProps, win32SecurityAttributes);
FIELD (CoopCuPoolProps, max_size, CUmemPoolProps, maxSize);
FIELD (CoopCuPoolProps, usage, CUmemPoolProps, usage);
FIELD (CoopCuPoolProps, reserved, CUmemPoolProps, reserved);

SAME (COOP_CU_SUCCESS, CUDA_SUCCESS);
SAME (COOP_CU_INVALID_VALUE, CUDA_ERROR_INVALID_VALUE);
SAME (COOP_CU_OUT_OF_MEMORY, CUDA_ERROR_OUT_OF_MEMORY);
SAME (COOP_CU_NOT_INITIALIZED, CUDA_ERROR_NOT_INITIALIZED);
SAME (COOP_CU_STUB_LIBRARY, CUDA_ERROR_STUB_LIBRARY);
SAME (COOP_CU_NO_DEVICE, CUDA_ERROR_NO_DEVICE);
SAME (COOP_CU_INVALID_DEVICE, CUDA_ERROR_INVALID_DEVICE);
SAME (COOP_CU_INVALID_CONTEXT, CUDA_ERROR_INVALID_CONTEXT);
SAME (COOP_CU_INVALID_HANDLE, CUDA_ERROR_INVALID_HANDLE);
SAME (COOP_CU_NOT_READY, CUDA_ERROR_NOT_READY);
SAME (COOP_CU_ILLEGAL_ADDRESS, CUDA_ERROR_ILLEGAL_ADDRESS);
SAME (COOP_CU_NOT_SUPPORTED, CUDA_ERROR_NOT_SUPPORTED);
SAME (COOP_CU_UNKNOWN, CUDA_ERROR_UNKNOWN);
SAME (COOP_CU_ATTRIBUTE_MULTIPROCESSORS, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT);
SAME (COOP_CU_ATTRIBUTE_COMPUTE_MAJOR, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR);
SAME (COOP_CU_ATTRIBUTE_COMPUTE_MINOR, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR);
SAME (COOP_CU_ATTRIBUTE_VIRTUAL_MEMORY, CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED);
SAME (COOP_CU_ATTRIBUTE_MEMORY_POOLS, CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED);
SAME (COOP_CU_ALLOCATION_PINNED, CU_MEM_ALLOCATION_TYPE_PINNED);
SAME (COOP_CU_LOCATION_DEVICE, CU_MEM_LOCATION_TYPE_DEVICE);
SAME (COOP_CU_ACCESS_NONE, CU_MEM_ACCESS_FLAGS_PROT_NONE);
SAME (COOP_CU_ACCESS_READ, CU_MEM_ACCESS_FLAGS_PROT_READ);
SAME (COOP_CU_ACCESS_READWRITE, CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
SAME (COOP_CU_GRANULARITY_MINIMUM, CU_MEM_ALLOC_GRANULARITY_MINIMUM);
SAME (COOP_CU_GRANULARITY_RECOMMENDED, CU_MEM_ALLOC_GRANULARITY_RECOMMENDED);
SAME (COOP_CU_STREAM_NON_BLOCKING, CU_STREAM_NON_BLOCKING);
SAME (COOP_CU_EVENT_DEFAULT, CU_EVENT_DEFAULT);
SAME (COOP_CU_EVENT_DISABLE_TIMING, CU_EVENT_DISABLE_TIMING);
SAME (COOP_CU_CAPTURE_NONE, CU_STREAM_CAPTURE_STATUS_NONE);
SAME (COOP_CU_POOL_REUSE_FOLLOW_EVENT_DEPENDENCIES, CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES);
SAME (COOP_CU_POOL_REUSE_ALLOW_OPPORTUNISTIC, CU_MEMPOOL_ATTR_REUSE_ALLOW_OPPORTUNISTIC);
SAME (COOP_CU_POOL_REUSE_ALLOW_INTERNAL_DEPENDENCIES,
      CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES);
SAME (COOP_CU_POOL_RELEASE_THRESHOLD, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD);
SAME (COOP_CU_POOL_RESERVED_CURRENT, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT);
SAME (COOP_CU_POOL_RESERVED_HIGH, CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH);
SAME (COOP_CU_POOL_USED_CURRENT, CU_MEMPOOL_ATTR_USED_MEM_CURRENT);
SAME (COOP_CU_POOL_USED_HIGH, CU_MEMPOOL_ATTR_USED_MEM_HIGH);

/* A call with our types, spelt with theirs: the number of arguments and what each is. */
#define P(type, value) ((type) (value))
void coop_test_prototypes (const CoopCudaTable *t);
void
coop_test_prototypes (const CoopCudaTable *t)
{
  CUdeviceptr at = 0;
  size_t n = 0;

  cuMemAddressReserve (&at, n, n, at, 0);
  cuMemCreate (P (CUmemGenericAllocationHandle *, NULL), n, NULL, 0);
  cuMemMap (at, n, n, P (CUmemGenericAllocationHandle, 0), 0);
  cuMemSetAccess (at, n, NULL, n);
  cuMemAllocFromPoolAsync (&at, n, NULL, NULL);
  cuMemcpyHtoDAsync (at, NULL, n, NULL);
  cuMemcpyDtoHAsync (NULL, at, n, NULL);
  cuMemcpyDtoDAsync (at, at, n, NULL);
  cuMemsetD32Async (at, 0u, n, NULL);
  cuStreamWaitEvent (NULL, NULL, 0u);
}
