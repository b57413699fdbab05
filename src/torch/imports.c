/* SPDX-License-Identifier: Apache-2.0 */
#include "torch/imports.h"

#include <dlfcn.h>
#include <elf.h>
#include <errno.h>
#include <link.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#if __SIZEOF_POINTER__ != 8
#error "64-bit ELF only"
#endif

#if defined(__x86_64__)
#define IS_SLOT(type) ((type) == R_X86_64_JUMP_SLOT || (type) == R_X86_64_GLOB_DAT || (type) == R_X86_64_64)
#elif defined(__aarch64__)
#define IS_SLOT(type) \
  ((type) == R_AARCH64_JUMP_SLOT || (type) == R_AARCH64_GLOB_DAT || (type) == R_AARCH64_ABS64)
#else
#error "this processor's relocation types are not known here"
#endif

typedef struct {
  const char *library;
  CoopImport *imports;
  unsigned n;
  bool failed;
} Search;

static bool
set_slot (void **slot, void *value)
{
  uintptr_t page = (uintptr_t) sysconf (_SC_PAGESIZE);
  void *begin = (void *) ((uintptr_t) slot & ~(page - 1));

  if (mprotect (begin, page, PROT_READ | PROT_WRITE) != 0)
    return false;
  __atomic_store_n (slot, value, __ATOMIC_RELEASE);
  return true; /* left writable: the page also holds slots that the lazy binder still fills */
}

static void
scan_table (const struct dl_phdr_info *info, const ElfW (Rela) *rela, size_t n,
            const ElfW (Sym) *symbols, const char *names, Search *search)
{
  for (size_t i = 0; i < n; i++)
    {
      if (!IS_SLOT (ELF64_R_TYPE (rela[i].r_info)) || ELF64_R_SYM (rela[i].r_info) == 0)
        continue;
      const char *name = names + symbols[ELF64_R_SYM (rela[i].r_info)].st_name;
      for (unsigned k = 0; k < search->n; k++)
        {
          CoopImport *import = &search->imports[k];
          if (strcmp (name, import->name) != 0)
            continue;
          if (set_slot ((void **) (info->dlpi_addr + rela[i].r_offset), import->function))
            import->found++;
          else
            search->failed = true;
        }
    }
}

static bool
is_called (const struct dl_phdr_info *info, const char *library)
{
  const char *base = strrchr (info->dlpi_name, '/');

  return strncmp (base ? base + 1 : info->dlpi_name, library, strlen (library)) == 0;
}

static int
scan_library (struct dl_phdr_info *info, size_t size, void *user)
{
  Search *search = user;
  const ElfW (Dyn) *dyn = NULL;
  const ElfW (Rela) *rela = NULL, *plt = NULL;
  const ElfW (Sym) *symbols = NULL;
  const char *names = NULL;
  size_t rela_bytes = 0, plt_bytes = 0;

  if (!is_called (info, search->library))
    return 0;
  for (int i = 0; i < info->dlpi_phnum; i++)
    if (info->dlpi_phdr[i].p_type == PT_DYNAMIC)
      dyn = (const void *) (info->dlpi_addr + info->dlpi_phdr[i].p_vaddr);
  for (; dyn != NULL && dyn->d_tag != DT_NULL; dyn++)
    switch (dyn->d_tag)
      { /* glibc has relocated these to addresses */
      case DT_RELA: rela = (const void *) dyn->d_un.d_ptr; break;
      case DT_RELASZ: rela_bytes = dyn->d_un.d_val; break;
      case DT_JMPREL: plt = (const void *) dyn->d_un.d_ptr; break;
      case DT_PLTRELSZ: plt_bytes = dyn->d_un.d_val; break;
      case DT_SYMTAB: symbols = (const void *) dyn->d_un.d_ptr; break;
      case DT_STRTAB: names = (const void *) dyn->d_un.d_ptr; break;
      default: break;
      }
  if (symbols == NULL || names == NULL)
    return 0;
  scan_table (info, rela, rela ? rela_bytes / sizeof *rela : 0, symbols, names, search);
  scan_table (info, plt, plt ? plt_bytes / sizeof *plt : 0, symbols, names, search);
  return 0;
}

int
coop_imports_set (const char *library, CoopImport *imports, unsigned n)
{
  Search search = { library, imports, n, false };

  dl_iterate_phdr (scan_library, &search);
  return search.failed ? EACCES : 0;
}

typedef struct {
  const char *library;
  void *handle;
} Loaded;

static int
open_library (struct dl_phdr_info *info, size_t size, void *user)
{
  Loaded *loaded = user;

  if (is_called (info, loaded->library))
    loaded->handle = dlopen (info->dlpi_name, RTLD_LAZY | RTLD_NOLOAD);
  return loaded->handle != NULL;
}

void *
coop_imports_library (const char *library)
{
  Loaded loaded = { library, NULL };

  dl_iterate_phdr (open_library, &loaded);
  return loaded.handle;
}
