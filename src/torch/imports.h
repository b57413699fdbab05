/* SPDX-License-Identifier: Apache-2.0 */
/* Imports: the functions that one shared library calls in others go through slots of its own relocation
 * tables. Repointing those slots reaches that library's calls, at any time, and nobody else's. */
#ifndef COOP_IMPORTS_H
#define COOP_IMPORTS_H

typedef struct {
  const char *name;   /* as in the symbol table */
  void *function;     /* what is called from now on */
  unsigned found;     /* out: slots that were repointed */
} CoopImport;

/* In each loaded library whose file name begins with `library`. Any thread; not undone. 0, or errno: EACCES if
 * a slot cannot be written, and then some may be. */
int coop_imports_set (const char *library, CoopImport *imports, unsigned n);

/* Handle for dlsym of the first loaded library whose file name begins so, whatever its soname; NULL if none is. */
void *coop_imports_library (const char *library);

#endif
