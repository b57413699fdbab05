// SPDX-License-Identifier: Apache-2.0
// The functions that PyTorch's CUDAPluggableAllocator calls. C++ for one reason: a null pointer would
// go into a tensor unnoticed, so running out of memory must be thrown, and as c10::OutOfMemoryError, which
// Python sees as torch.OutOfMemoryError.
//
// That class is PyTorch's and differs between versions, and this file is built against none. So the
// object is made by PyTorch's own constructor, found at run time in the libc10 that is loaded; where
// there is none, std::runtime_error with the same text has to do.
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <cxxabi.h>
#include <dlfcn.h>
#include <stdexcept>
#include <string>
#include <sys/types.h>
#include <typeinfo>

#define API extern "C" __attribute__ ((visibility ("default")))

namespace
{

// c10::SourceLocation
struct Location
{
  const char *function;
  const char *file;
  uint32_t line;
};

using Construct = void (*) (void *self, Location where, std::string text);
using Destroy = void (*) (void *self);

constexpr size_t error_room = 1024; // c10::Error has below 200 bytes

struct
{
  void *(*alloc) (size_t, int, void *, const char **);
  void (*release) (void *, size_t, int, void *);
} hooks;

const char construct_oom[] = "_ZN3c1016OutOfMemoryErrorC1ENS_14SourceLocationENSt7__cxx1112basic_stringIcSt11char_"
                             "traitsIcESaIcEEE";
const char construct_error[] = "_ZN3c105ErrorC1ENS_14SourceLocationENSt7__cxx1112basic_stringIcSt11char_"
                               "traitsIcESaIcEEE";

// Without a destructor of its own the object's strings are not freed: a few hundred bytes an error.
void
destroy_nothing (void *)
{
}

[[noreturn]] void
throw_out_of_memory (const std::string &text)
{
  void *c10 = dlopen ("libc10.so", RTLD_LAZY | RTLD_NOLOAD);
  void *type = c10 ? dlsym (c10, "_ZTIN3c1016OutOfMemoryErrorE") : nullptr;
  void *make = c10 ? dlsym (c10, construct_oom) : nullptr;
  void *table = c10 ? dlsym (c10, "_ZTVN3c1016OutOfMemoryErrorE") : nullptr;
  bool older = make == nullptr && table != nullptr; // the constructor was inline: c10::Error's, and its own table
  if (older)
    make = dlsym (c10, construct_error);
  if (type == nullptr || make == nullptr)
    throw std::runtime_error (text);
  void *destroy = dlsym (c10, "_ZN3c105ErrorD1Ev");
  void *error = abi::__cxa_allocate_exception (error_room);
  std::memset (error, 0, error_room);
  reinterpret_cast<Construct> (make) (error, Location{ "alloc", "coopscope", 0 }, text);
  if (older)
    *static_cast<void **> (error) = static_cast<char *> (table) + 2 * sizeof (void *);
  abi::__cxa_throw (error, static_cast<std::type_info *> (type),
                    destroy ? reinterpret_cast<Destroy> (destroy) : destroy_nothing);
}

std::string
size_text (size_t bytes)
{
  char text[64];
  std::snprintf (text, sizeof text, "%.2f MiB", static_cast<double> (bytes) / 1048576.0);
  return text;
}

} // namespace

API void
coop_shim_set (void *alloc, void *release)
{
  hooks.alloc = reinterpret_cast<void *(*) (size_t, int, void *, const char **)> (alloc);
  hooks.release = reinterpret_cast<void (*) (void *, size_t, int, void *)> (release);
}

API void *
coop_shim_alloc (ssize_t bytes, int device, void *stream)
{
  const char *why = nullptr;
  void *p = hooks.alloc (static_cast<size_t> (bytes), device, stream, &why);
  if (p == nullptr && why != nullptr)
    throw_out_of_memory ("CUDA out of memory. Tried to allocate " + size_text (static_cast<size_t> (bytes))
                         + " on device " + std::to_string (device) + " (coopscope): " + why);
  return p;
}

API void
coop_shim_free (void *p, ssize_t bytes, int device, void *stream)
{
  hooks.release (p, static_cast<size_t> (bytes), device, stream);
}
