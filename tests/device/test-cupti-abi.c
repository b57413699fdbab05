/* SPDX-License-Identifier: Apache-2.0 */
/* Where src/device/cuda-cupti.c reads the fields of records, against NVIDIA's headers. Compiling is
 * the test. */
#include <cuda.h>
#include <cupti.h>

#include "device/cuda-cupti.c"

#define SAME(a, b) _Static_assert ((long long) (a) == (long long) (b), #a " is " #b)
#define FIELD(at, type, field) SAME (at, offsetof (type, field))

FIELD (KERNEL_START, CUpti_ActivityKernel10, start);
FIELD (KERNEL_END, CUpti_ActivityKernel10, end);
FIELD (KERNEL_CORRELATION, CUpti_ActivityKernel10, correlationId);
FIELD (COPY_BYTES, CUpti_ActivityMemcpy6, bytes);
FIELD (COPY_START, CUpti_ActivityMemcpy6, start);
FIELD (COPY_END, CUpti_ActivityMemcpy6, end);
FIELD (COPY_CORRELATION, CUpti_ActivityMemcpy6, correlationId);
FIELD (COPY_START, CUpti_ActivityMemset4, start);
FIELD (COPY_END, CUpti_ActivityMemset4, end);
FIELD (EXTERNAL_KIND, CUpti_ActivityExternalCorrelation, externalKind);
FIELD (EXTERNAL_ID, CUpti_ActivityExternalCorrelation, externalId);
FIELD (EXTERNAL_CORRELATION, CUpti_ActivityExternalCorrelation, correlationId);
FIELD (MEMORY_OPERATION, CUpti_ActivityMemory4, memoryOperationType);
FIELD (MEMORY_BYTES, CUpti_ActivityMemory4, bytes);
FIELD (OVERHEAD_START, CUpti_ActivityOverhead3, start);
FIELD (OVERHEAD_END, CUpti_ActivityOverhead3, end);
FIELD (OVERHEAD_DATA, CUpti_ActivityOverhead3, overheadData);
SAME (COOP_CUPTI_KERNEL, CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL);
SAME (COOP_CUPTI_EXTERNAL, CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION);
SAME (COOP_CUPTI_MEMCPY, CUPTI_ACTIVITY_KIND_MEMCPY);
SAME (COOP_CUPTI_MEMSET, CUPTI_ACTIVITY_KIND_MEMSET);
SAME (COOP_CUPTI_DRIVER, CUPTI_ACTIVITY_KIND_DRIVER);
SAME (COOP_CUPTI_RUNTIME, CUPTI_ACTIVITY_KIND_RUNTIME);
SAME (COOP_CUPTI_OVERHEAD, CUPTI_ACTIVITY_KIND_OVERHEAD);
SAME (COOP_CUPTI_MEMORY, CUPTI_ACTIVITY_KIND_MEMORY2);
SAME (COOP_CUPTI_CUSTOM, CUPTI_EXTERNAL_CORRELATION_KIND_CUSTOM2);
SAME (COOP_CUPTI_NO_MORE, CUPTI_ERROR_MAX_LIMIT_REACHED);
SAME (COOP_CUPTI_TAKEN, CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED);
SAME (COOP_CUPTI_PRIVILEGES, CUPTI_ERROR_INSUFFICIENT_PRIVILEGES);
SAME (COOP_CUPTI_UNKNOWN, CUPTI_ERROR_UNKNOWN);
