/* SPDX-License-Identifier: Apache-2.0 */
/* The driver, found at run time. */
#include "device/cuda.h"

#include <dlfcn.h>
#include <stdarg.h>
#include <string.h>

static const char *const symbols[] = {
#define X(member, symbol, arguments) #symbol,
  COOP_CUDA_FUNCTIONS (X)
#undef X
};

/* One line, whatever the loader or the driver had to say. */
__attribute__ ((format (printf, 2, 3))) static bool
refuse (CoopCuda *cuda, const char *format, ...)
{
  va_list ap;

  va_start (ap, format);
  vsnprintf (cuda->why, sizeof cuda->why, format, ap);
  va_end (ap);
  return false;
}

const char *
coop_cuda_error (const CoopCuda *cuda, CoopCuResult result)
{
  static _Thread_local char text[96];
  const char *name = NULL;

  if (cuda->fn.error_name == NULL || cuda->fn.error_name (result, &name) != 0 || name == NULL)
    name = "CUDA error";
  snprintf (text, sizeof text, "%s (%d)", name, result);
  return text;
}

bool
coop_cuda_begin (CoopCuda *cuda, const CoopCudaTable *table)
{
  CoopCuResult rc;

  memset (cuda, 0, sizeof *cuda);
  cuda->fn = *table;
  if ((rc = table->init (0)) == COOP_CU_STUB_LIBRARY)
    return refuse (cuda, "libcuda.so.1 is the toolkit's stub, not a driver");
  if (rc != 0)
    return refuse (cuda, "the driver does not start: %s", coop_cuda_error (cuda, rc));
  if ((rc = table->driver_version (&cuda->version)) != 0
      || (rc = table->device_count (&cuda->n_devices)) != 0)
    return refuse (cuda, "the driver gives no answer: %s", coop_cuda_error (cuda, rc));
  if (cuda->n_devices == 0)
    return refuse (cuda, "the driver knows no device");
  return true;
}

bool
coop_cuda_load (CoopCuda *cuda)
{
  CoopCudaTable table;
  void *library = dlopen ("libcuda.so.1", RTLD_NOW | RTLD_LOCAL), *f;
  const char *message = library ? NULL : dlerror ();

  memset (cuda, 0, sizeof *cuda);
  if (library == NULL)
    return refuse (cuda, "no CUDA driver: %s", message ? message : "libcuda.so.1 cannot be opened");
  _Static_assert (sizeof table == sizeof symbols, "one pointer a symbol");
  for (size_t i = 0; i < sizeof symbols / sizeof *symbols; i++)
    {
      if ((f = dlsym (library, symbols[i])) == NULL)
        return refuse (cuda, "the CUDA driver is too old: libcuda.so.1 has no %s", symbols[i]);
      memcpy ((char *) &table + i * sizeof f, &f, sizeof f);
    }
  return coop_cuda_begin (cuda, &table);
}
