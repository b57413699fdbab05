/* SPDX-License-Identifier: Apache-2.0 */
/* Stands in for libcudart.so.13 under a real PyTorch, where there is no GPU: memory, streams, events
 * and copies are real (they go to the fake driver), kernels do nothing. So order, locks, streams, the
 * budget, eviction and errors can be tested, and of the numbers only what is made by copies.
 *
 * Built on the spot against the headers that came with that PyTorch (tests/gpu/standin.py) and put in
 * front with LD_PRELOAD. It holds nothing of NVIDIA's, and defeats no check: it is another library. */
#include <cuda_runtime_api.h>

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

#include "device/cuda-abi.h"
#include "fake-cuda.h"

#define X(member, symbol, arguments) CoopCuResult symbol arguments;
COOP_CUDA_FUNCTIONS (X)
#undef X
#undef cudaGetDeviceProperties

#define STREAM(s) ((CoopCuStream) (s))
#define AT(p) ((CoopCuPtr) (uintptr_t) (p))

static __thread int device;
static __thread cudaError_t last;

/* The runtime starts the driver and makes the device's context current by itself. */
static cudaError_t
enter (void)
{
  static CoopCuContext context[4];
  static int started;
  CoopCuContext now = NULL;
  CoopCuResult rc = __atomic_load_n (&started, __ATOMIC_ACQUIRE) ? 0 : cuInit (0);

  __atomic_store_n (&started, 1, __ATOMIC_RELEASE);
  if (rc == 0 && __atomic_load_n (&context[device], __ATOMIC_ACQUIRE) == NULL)
    {
      rc = cuDevicePrimaryCtxRetain (&now, device);
      __atomic_store_n (&context[device], now, __ATOMIC_RELEASE);
    }
  if (rc == 0 && (cuCtxGetCurrent (&now) != 0 || now != context[device]))
    rc = cuCtxSetCurrent (context[device]);
  return (cudaError_t) rc;
}

static cudaError_t
done (CoopCuResult rc)
{
  if (rc != 0 && rc != COOP_CU_NOT_READY)
    last = (cudaError_t) rc;
  return (cudaError_t) rc;
}

#define CALL(expression)                     \
  do                                         \
    {                                        \
      cudaError_t entered = enter ();        \
      return entered ? done ((CoopCuResult) entered) : done (expression); \
    }                                        \
  while (0)

/* ---- devices ------------------------------------------------------------------------------------ */

cudaError_t cudaGetDeviceCount (int *n) { CALL (cuDeviceGetCount (n)); }
cudaError_t cudaGetDevice (int *d) { *d = device; return 0; }
cudaError_t cudaSetDevice (int d) { device = d; CALL (0); }
cudaError_t cudaDriverGetVersion (int *v) { return (cudaError_t) cuDriverGetVersion (v); }
cudaError_t cudaRuntimeGetVersion (int *v) { *v = CUDART_VERSION; return 0; }
cudaError_t cudaDeviceSynchronize (void) { CALL (cuCtxSynchronize ()); }
cudaError_t cudaDeviceCanAccessPeer (int *can, int a, int b) { *can = 0; return 0; }
cudaError_t cudaDeviceGetStreamPriorityRange (int *least, int *most) { *least = 0; *most = -5; return 0; }
cudaError_t cudaThreadExchangeStreamCaptureMode (enum cudaStreamCaptureMode *mode) { return 0; }
cudaError_t cudaGetLastError (void) { cudaError_t e = last; last = 0; return e; }
cudaError_t cudaPeekAtLastError (void) { return last; }

const char *
cudaGetErrorName (cudaError_t e)
{
  const char *text = NULL;
  cuGetErrorName ((CoopCuResult) e, &text);
  return text ? text : "cudaErrorUnknown";
}

const char *
cudaGetErrorString (cudaError_t e)
{
  const char *text = NULL;
  cuGetErrorString ((CoopCuResult) e, &text);
  return text ? text : "unknown error";
}

cudaError_t
cudaGetDeviceProperties (struct cudaDeviceProp *prop, int d)
{
  size_t free = 0, total = 0;

  memset (prop, 0, sizeof *prop);
  if (enter () == 0)
    cuMemGetInfo_v2 (&free, &total);
  strcpy (prop->name, "fake device");
  prop->totalGlobalMem = total;
  prop->major = 9;
  prop->multiProcessorCount = 16;
  prop->warpSize = 32;
  prop->maxThreadsPerBlock = 1024;
  prop->maxThreadsPerMultiProcessor = 2048;
  prop->maxThreadsDim[0] = prop->maxThreadsDim[1] = 1024;
  prop->maxThreadsDim[2] = 64;
  prop->maxGridSize[0] = 0x7fffffff;
  prop->maxGridSize[1] = prop->maxGridSize[2] = 65535;
  prop->sharedMemPerBlock = 49152;
  prop->sharedMemPerBlockOptin = prop->sharedMemPerMultiprocessor = 233472;
  prop->regsPerBlock = prop->regsPerMultiprocessor = 65536;
  prop->unifiedAddressing = 1;
  return 0;
}

cudaError_t
cudaDeviceGetAttribute (int *value, enum cudaDeviceAttr attribute, int d)
{
  *value = attribute == cudaDevAttrMaxThreadsPerBlock ? 1024
           : attribute == cudaDevAttrMultiProcessorCount ? 16 : attribute == cudaDevAttrWarpSize ? 32 : 0;
  return 0;
}

static int nothing (void) { return 801; }

cudaError_t
cudaGetDriverEntryPointByVersion (const char *symbol, void **function, unsigned version,
                                  unsigned long long flags, enum cudaDriverEntryPointQueryResult *status)
{
  if ((*function = dlsym (RTLD_DEFAULT, symbol)) == NULL)
    *function = (void *) nothing;
  if (status != NULL)
    *status = cudaDriverEntryPointSuccess;
  return 0;
}

/* ---- memory ------------------------------------------------------------------------------------- */

static cudaError_t
take (void **out, size_t bytes)
{
  CoopCuPtr at = 0;
  cudaError_t rc = enter ();

  rc = rc ? rc : (cudaError_t) cuMemAlloc_v2 (&at, bytes);
  *out = (void *) (uintptr_t) at;
  return done ((CoopCuResult) rc);
}

cudaError_t cudaMalloc (void **out, size_t bytes) { return take (out, bytes); }
cudaError_t cudaFree (void *p) { CALL (cuMemFree_v2 (AT (p))); }
cudaError_t cudaMemGetInfo (size_t *free, size_t *total) { CALL (cuMemGetInfo_v2 (free, total)); }
cudaError_t cudaMallocHost (void **out, size_t n) { *out = malloc (n); return 0; }
cudaError_t cudaHostAlloc (void **out, size_t n, unsigned flags) { *out = malloc (n); return 0; }
cudaError_t cudaFreeHost (void *p) { free (p); return 0; }
cudaError_t cudaHostRegister (void *p, size_t n, unsigned flags) { return 0; }
cudaError_t cudaHostUnregister (void *p) { return 0; }

static int
on_device (const void *p)
{
  return fake_cuda_owns (AT (p));
}

static cudaError_t
copy (void *to, const void *from, size_t n, cudaStream_t stream)
{
  if (n == 0)
    return 0;
  if (on_device (to) && on_device (from))
    CALL (cuMemcpyDtoDAsync_v2 (AT (to), AT (from), n, STREAM (stream)));
  if (on_device (to))
    CALL (cuMemcpyHtoDAsync_v2 (AT (to), from, n, STREAM (stream)));
  if (on_device (from))
    CALL (cuMemcpyDtoHAsync_v2 (to, AT (from), n, STREAM (stream)));
  memmove (to, from, n);
  return 0;
}

cudaError_t
cudaMemcpyAsync (void *to, const void *from, size_t n, enum cudaMemcpyKind kind, cudaStream_t stream)
{
  return copy (to, from, n, stream);
}

cudaError_t
cudaMemcpy (void *to, const void *from, size_t n, enum cudaMemcpyKind kind)
{
  cudaError_t rc = copy (to, from, n, NULL);
  return rc ? rc : cudaStreamSynchronize (NULL);
}

cudaError_t
cudaMemcpyPeerAsync (void *to, int a, const void *from, int b, size_t n, cudaStream_t stream)
{
  return copy (to, from, n, stream);
}

cudaError_t
cudaMemcpy2DAsync (void *to, size_t to_pitch, const void *from, size_t from_pitch, size_t width,
                   size_t height, enum cudaMemcpyKind kind, cudaStream_t stream)
{
  cudaError_t rc = 0;

  for (size_t i = 0; rc == 0 && i < height; i++)
    rc = copy ((char *) to + i * to_pitch, (const char *) from + i * from_pitch, width, stream);
  return rc;
}

cudaError_t
cudaMemsetAsync (void *p, int value, size_t n, cudaStream_t stream)
{
  unsigned word = (unsigned char) value * 0x01010101u;

  if (n < 4 || AT (p) % 4 != 0)
    { /* words alone are enough for what PyTorch asks for */
      unsigned char bytes[64];
      memset (bytes, value, sizeof bytes);
      return n <= sizeof bytes ? copy (p, bytes, n, stream) : done (COOP_CU_NOT_SUPPORTED);
    }
  cudaError_t rc = enter ();
  rc = rc ? rc : (cudaError_t) cuMemsetD32Async (AT (p), word, n / 4, STREAM (stream));
  return n % 4 && rc == 0 ? copy ((char *) p + n / 4 * 4, &word, n % 4, stream) : done ((CoopCuResult) rc);
}

cudaError_t cudaMemset (void *p, int v, size_t n) { return cudaMemsetAsync (p, v, n, NULL); }

cudaError_t
cudaPointerGetAttributes (struct cudaPointerAttributes *a, const void *p)
{
  memset (a, 0, sizeof *a);
  a->type = on_device (p) ? cudaMemoryTypeDevice : cudaMemoryTypeUnregistered;
  a->device = device;
  a->devicePointer = on_device (p) ? (void *) (uintptr_t) AT (p) : NULL;
  return 0;
}

/* ---- streams and events ------------------------------------------------------------------------- */

cudaError_t cudaStreamCreate (cudaStream_t *s) { CALL (cuStreamCreate ((CoopCuStream *) s, 0)); }
cudaError_t cudaStreamCreateWithFlags (cudaStream_t *s, unsigned f) { CALL (cuStreamCreate ((CoopCuStream *) s, f)); }
cudaError_t cudaStreamCreateWithPriority (cudaStream_t *s, unsigned f, int p) { CALL (cuStreamCreate ((CoopCuStream *) s, f)); }
cudaError_t cudaStreamDestroy (cudaStream_t s) { CALL (cuStreamDestroy_v2 (STREAM (s))); }
cudaError_t cudaStreamSynchronize (cudaStream_t s) { CALL (cuStreamSynchronize (STREAM (s))); }
cudaError_t cudaStreamQuery (cudaStream_t s) { CALL (cuStreamSynchronize (STREAM (s))); }
cudaError_t cudaStreamGetPriority (cudaStream_t s, int *p) { *p = 0; return 0; }
cudaError_t cudaStreamWaitEvent (cudaStream_t s, cudaEvent_t e, unsigned f) { CALL (cuStreamWaitEvent (STREAM (s), (CoopCuEvent) e, 0)); }
cudaError_t cudaStreamIsCapturing (cudaStream_t s, enum cudaStreamCaptureStatus *c) { int status = 0; cudaError_t rc = enter (); rc = rc ? rc : (cudaError_t) cuStreamIsCapturing (STREAM (s), &status); *c = (enum cudaStreamCaptureStatus) status; return rc; }
cudaError_t
cudaStreamGetCaptureInfo (cudaStream_t s, enum cudaStreamCaptureStatus *c, unsigned long long *id,
                          cudaGraph_t *graph, const cudaGraphNode_t **nodes,
                          const cudaGraphEdgeData **edges, size_t *n)
{
  if (id != NULL)
    *id = 0;
  return cudaStreamIsCapturing (s, c);
}

cudaError_t cudaEventCreate (cudaEvent_t *e) { CALL (cuEventCreate ((CoopCuEvent *) e, 0)); }
cudaError_t cudaEventCreateWithFlags (cudaEvent_t *e, unsigned f) { CALL (cuEventCreate ((CoopCuEvent *) e, f & 2)); }
cudaError_t cudaEventDestroy (cudaEvent_t e) { CALL (cuEventDestroy_v2 ((CoopCuEvent) e)); }
cudaError_t cudaEventRecord (cudaEvent_t e, cudaStream_t s) { CALL (cuEventRecord ((CoopCuEvent) e, STREAM (s))); }
cudaError_t cudaEventRecordWithFlags (cudaEvent_t e, cudaStream_t s, unsigned f) { CALL (cuEventRecord ((CoopCuEvent) e, STREAM (s))); }
cudaError_t cudaEventQuery (cudaEvent_t e) { CALL (cuEventQuery ((CoopCuEvent) e)); }
cudaError_t cudaEventSynchronize (cudaEvent_t e) { CALL (cuEventSynchronize ((CoopCuEvent) e)); }
cudaError_t cudaEventElapsedTime (float *ms, cudaEvent_t a, cudaEvent_t b) { CALL (cuEventElapsedTime (ms, (CoopCuEvent) a, (CoopCuEvent) b)); }

/* ---- kernels: there are none -------------------------------------------------------------------- */

static void *registered[1];
void **__cudaRegisterFatBinary (void *binary) { return registered; }
void __cudaRegisterFatBinaryEnd (void **handle) { }
void __cudaUnregisterFatBinary (void **handle) { }
void __cudaRegisterFunction (void **h, const char *f, char *n, const char *dn, int l, void *a, void *b, void *c, void *d, int *e) { }
void __cudaRegisterVar (void **h, char *v, char *n, const char *dn, int e, size_t s, int c, int g) { }

static __thread struct { struct { unsigned v[3]; } grid, block; size_t shared; void *stream; } configuration;

unsigned
__cudaPushCallConfiguration (dim3 grid, dim3 block, size_t shared, void *stream)
{
  memcpy (&configuration.grid, &grid, sizeof grid);
  memcpy (&configuration.block, &block, sizeof block);
  configuration.shared = shared;
  configuration.stream = stream;
  return 0;
}

cudaError_t
__cudaPopCallConfiguration (dim3 *grid, dim3 *block, size_t *shared, void *stream)
{
  memcpy (grid, &configuration.grid, sizeof *grid);
  memcpy (block, &configuration.block, sizeof *block);
  *shared = configuration.shared;
  *(void **) stream = configuration.stream;
  return 0;
}

cudaError_t __cudaGetKernel (cudaKernel_t *kernel, const void *f) { *kernel = (cudaKernel_t) f; return 0; }
cudaError_t __cudaLaunchKernel (cudaKernel_t f, dim3 g, dim3 b, void **a, size_t n, cudaStream_t s) { CALL (0); }
cudaError_t cudaLaunchKernel (const void *f, dim3 g, dim3 b, void **a, size_t n, cudaStream_t s) { CALL (0); }
cudaError_t cudaLaunchKernelExC (const cudaLaunchConfig_t *c, const void *f, void **a) { CALL (0); }
cudaError_t cudaFuncSetAttribute (const void *f, enum cudaFuncAttribute a, int v) { return 0; }

cudaError_t
cudaFuncGetAttributes (struct cudaFuncAttributes *a, const void *f)
{
  memset (a, 0, sizeof *a);
  a->maxThreadsPerBlock = 1024;
  a->numRegs = 32;
  return 0;
}

cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessor (int *n, const void *f, int b, size_t s) { *n = 1; return 0; }
cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags (int *n, const void *f, int b, size_t s, unsigned fl) { *n = 1; return 0; }
