/* SPDX-License-Identifier: Apache-2.0 */
/* The driver's memory calls on a real GPU: versions, the probe, what each call costs, and whether
 * remapped bytes are where they should be. JSON lines on stdout; 1 with a reason on stderr where there
 * is no GPU. Built by check.sh; runs on the fake driver as well. */
#include "device/cuda.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#define MIB ((uint64_t) 1 << 20)
#define TIMES 100

static CoopCuda cuda;
static CoopCudaDevice device;
#define FN (&cuda.fn)

#define CHECK(call)                                                                         \
  do                                                                                        \
    {                                                                                       \
      CoopCuResult rc_ = (call);                                                            \
      if (rc_ != 0)                                                                         \
        {                                                                                   \
          fprintf (stderr, "line %d: %s: %s\n", __LINE__, #call, coop_cuda_error (&cuda, rc_)); \
          exit (1);                                                                         \
        }                                                                                   \
    }                                                                                       \
  while (0)

static double
now_us (void)
{
  struct timespec t;
  clock_gettime (CLOCK_MONOTONIC, &t);
  return (double) t.tv_sec * 1e6 + (double) t.tv_nsec / 1e3;
}

static int
by_value (const void *a, const void *b)
{
  double x = *(const double *) a, y = *(const double *) b;
  return (x > y) - (x < y);
}

static double
median (double *v, int n)
{
  qsort (v, (size_t) n, sizeof *v, by_value);
  return v[n / 2];
}

static CoopCuMemProp
prop (void)
{
  return (CoopCuMemProp){ .type = COOP_CU_ALLOCATION_PINNED,
                          .location = { COOP_CU_LOCATION_DEVICE, device.device } };
}

static const CoopCuAccess *
access_all (void)
{
  static CoopCuAccess a;
  a = (CoopCuAccess){ { COOP_CU_LOCATION_DEVICE, device.device }, COOP_CU_ACCESS_READWRITE };
  return &a;
}

static int
versions (void)
{
  uint64_t free = 0, total = 0;

  CHECK (coop_cuda_device_info (&device, &free, &total));
  printf ("{\"what\":\"device\",\"name\":\"%s\",\"compute\":\"%d.%d\",\"processors\":%d,\"driver\":%d,"
          "\"devices\":%d,\"pages\":%s,\"pools\":%s,\"granule\":%llu,\"recommended\":%llu,\"free\":%llu,"
          "\"total\":%llu}\n", device.name, device.major, device.minor, device.processors, cuda.version,
          cuda.n_devices, device.has_pages ? "true" : "false", device.has_pools ? "true" : "false",
          (unsigned long long) device.granule, (unsigned long long) device.recommended,
          (unsigned long long) free, (unsigned long long) total);
  return 0;
}

/* ---- what the calls cost ------------------------------------------------------------------------ */

enum { RESERVE, CREATE, MAP, ACCESS, UNMAP, RELEASE, FREE, N_CALLS };
static const char *const call_names[N_CALLS] = { "reserve", "create", "map", "access", "unmap",
                                                 "release", "free" };

/* n handles of `bytes` each under one range; access once (`together`) or once a handle. */
static void
one_round (uint64_t bytes, unsigned n, bool together, double took[N_CALLS])
{
  CoopCuHandle *h = calloc (n, sizeof *h);
  CoopCuMemProp p = prop ();
  CoopCuPtr at;
  double t[N_CALLS + 1];

  t[RESERVE] = now_us ();
  CHECK (FN->address_reserve (&at, bytes * n, 0, 0, 0));
  t[CREATE] = now_us ();
  for (unsigned i = 0; i < n; i++)
    CHECK (FN->mem_create (&h[i], bytes, &p, 0));
  t[MAP] = now_us ();
  for (unsigned i = 0; i < n; i++)
    CHECK (FN->mem_map (at + i * bytes, bytes, 0, h[i], 0));
  t[ACCESS] = now_us ();
  for (unsigned i = 0; i < (together ? 1 : n); i++)
    CHECK (FN->mem_access (at + i * bytes, together ? bytes * n : bytes, access_all (), 1));
  t[UNMAP] = now_us ();
  for (unsigned i = 0; i < n; i++)
    CHECK (FN->mem_unmap (at + i * bytes, bytes));
  t[RELEASE] = now_us ();
  for (unsigned i = 0; i < n; i++)
    CHECK (FN->mem_release (h[i]));
  t[FREE] = now_us ();
  CHECK (FN->address_free (at, bytes * n));
  t[N_CALLS] = now_us ();
  for (int c = 0; c < N_CALLS; c++)
    took[c] = t[c + 1] - t[c];
  free (h);
}

static void
time_calls (uint64_t bytes, unsigned n, bool together, const char *load)
{
  static double took[N_CALLS][TIMES];
  double round[N_CALLS];
  int times = bytes * n > 256 * MIB ? TIMES / 5 : TIMES;

  for (int i = 0; i < times; i++)
    {
      one_round (bytes, n, together, round);
      for (int c = 0; c < N_CALLS; c++)
        took[c][i] = round[c];
    }
  printf ("{\"what\":\"vmm\",\"load\":\"%s\",\"handle\":%llu,\"handles\":%u,\"access\":\"%s\"", load,
          (unsigned long long) bytes, n, together ? "once" : "each");
  for (int c = 0; c < N_CALLS; c++)
    printf (",\"%s_us\":%.2f", call_names[c], median (took[c], times));
  printf ("}\n");
}

/* Work for some time on another stream: does a call wait for it? */
static CoopCuStream
busy (CoopCuPtr *at, uint64_t bytes, int times)
{
  CoopCuStream stream;

  CHECK (FN->stream_create (&stream, COOP_CU_STREAM_NON_BLOCKING));
  CHECK (FN->mem_alloc (at, bytes));
  for (int i = 0; i < times; i++)
    CHECK (FN->set_d32 (*at, (unsigned) i, bytes / 4, stream));
  return stream;
}

static void
under_load (void)
{
  double round[N_CALLS], begin, queued, done;
  CoopCuPtr at;
  CoopCuStream stream = busy (&at, 512 * MIB, 200);

  begin = now_us ();
  one_round (device.granule, 16, true, round);
  queued = now_us () - begin;
  CHECK (FN->stream_synchronize (stream));
  done = now_us () - begin;
  printf ("{\"what\":\"vmm under load\",\"handles\":16,\"map_us\":%.1f,\"access_us\":%.1f,\"unmap_us\":%.1f,"
          "\"all_us\":%.1f,\"load_us\":%.1f,\"waited\":%s}\n", round[MAP], round[ACCESS], round[UNMAP],
          queued, done, queued > done * 0.8 ? "true" : "false");
  CHECK (FN->mem_free (at));
  CHECK (FN->stream_destroy (stream));
}

static int
vmm (void)
{
  const uint64_t sizes[] = { 2 * MIB, 20 * MIB, 64 * MIB, 512 * MIB };
  uint64_t free, total;

  if (!device.has_pages)
    {
      fprintf (stderr, "the device has no virtual memory calls\n");
      return 77;
    }
  CHECK (coop_cuda_device_info (&device, &free, &total));
  for (unsigned i = 0; i < sizeof sizes / sizeof *sizes; i++)
    if (sizes[i] < free / 2)
      time_calls (sizes[i], 1, true, "idle");
  time_calls (device.granule, 32, true, "idle");
  time_calls (device.granule, 32, false, "idle");
  if (free > 2048 * MIB)
    under_load ();
  return 0;
}

/* ---- are the bytes there ------------------------------------------------------------------------ */

static unsigned
word_at (CoopCuPtr at)
{
  unsigned word = 0;

  CHECK (FN->copy_dtoh (&word, at, sizeof word, NULL));
  CHECK (FN->stream_synchronize (NULL));
  return word;
}

/* Two pages under two ranges; then both under a third one, the first still mapped where it was. */
static int
remap (void)
{
  CoopCuMemProp p = prop ();
  uint64_t g = device.granule;
  CoopCuHandle h[2];
  CoopCuPtr a, b, both;

  if (!device.has_pages)
    return 77;
  for (int i = 0; i < 2; i++)
    CHECK (FN->mem_create (&h[i], g, &p, 0));
  CHECK (FN->address_reserve (&a, g, 0, 0, 0));
  CHECK (FN->address_reserve (&b, g, 0, 0, 0));
  CHECK (FN->address_reserve (&both, 2 * g, 0, 0, 0));
  CHECK (FN->mem_map (a, g, 0, h[0], 0));
  CHECK (FN->mem_map (b, g, 0, h[1], 0));
  CHECK (FN->mem_access (a, g, access_all (), 1));
  CHECK (FN->mem_access (b, g, access_all (), 1));
  CHECK (FN->set_d32 (a, 11, g / 4, NULL));
  CHECK (FN->set_d32 (b, 22, g / 4, NULL));
  CHECK (FN->stream_synchronize (NULL));
  CHECK (FN->mem_unmap (b, g));
  CHECK (FN->mem_map (both + g, g, 0, h[1], 0));
  CHECK (FN->mem_map (both, g, 0, h[0], 0)); /* an alias: a is still mapped */
  CHECK (FN->mem_access (both, 2 * g, access_all (), 1));
  bool kept = word_at (both) == 11 && word_at (both + 2 * g - 4) == 22;
  CHECK (FN->set_d32 (both, 33, g / 4, NULL));
  bool alias = word_at (a + g - 4) == 33;
  CHECK (FN->mem_unmap (a, g));
  bool late = word_at (both + g / 2) == 33;
  CHECK (FN->mem_unmap (both, g));
  CHECK (FN->mem_unmap (both + g, g));
  CHECK (FN->address_free (both, 2 * g));
  CHECK (FN->address_free (a, g));
  CHECK (FN->address_free (b, g));
  CHECK (FN->mem_release (h[0]));
  CHECK (FN->mem_release (h[1]));
  printf ("{\"what\":\"remap\",\"kept\":%s,\"alias\":%s,\"late_unmap\":%s}\n", kept ? "true" : "false",
          alias ? "true" : "false", late ? "true" : "false");
  if (!kept || !alias || !late)
    fprintf (stderr, "remapped bytes are not where they should be\n");
  return !(kept && alias && late);
}

int
main (int argc, char **argv)
{
  const char *step = argc > 1 ? argv[1] : "versions";
  CoopCuResult rc;

  if (!coop_cuda_load (&cuda))
    {
      fprintf (stderr, "%s\n", cuda.why);
      return 1;
    }
  if ((rc = coop_cuda_device_open (&device, &cuda, 0)) != 0)
    {
      fprintf (stderr, "device 0: %s\n", coop_cuda_error (&cuda, rc));
      return 1;
    }
  if (strcmp (step, "probe") == 0)
    return coop_cuda_probe (&cuda, 0, argc > 2 ? strtoull (argv[2], NULL, 0) : 0, NULL, true, stdout, stderr);
  if (strcmp (step, "vmm") == 0)
    return vmm ();
  if (strcmp (step, "remap") == 0)
    return remap ();
  return versions ();
}
