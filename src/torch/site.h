/* SPDX-License-Identifier: Apache-2.0 */
/* Site: line and module of an operator's call. See site.c. GIL, not the lock. */
#ifndef COOP_SITE_H
#define COOP_SITE_H

#include "torch/host.h"

bool coop_site_setup (PyObject *functions);
/* Around a module's call, on each thread. */
void coop_site_enter (PyObject *module);
void coop_site_leave (void);
/* Stack of this call; info->where gets its line. every: walked anew, else as found at the site's first
 * call. forward: gradients are recorded. *exact: it is that of the forward of a backward operator. */
uint64_t coop_site_find (CoopOpInfo *info, bool every, bool forward, bool backward, bool *exact);

/* ---- intern.c ---- */
typedef enum { COOP_CODE_USER, COOP_CODE_LIBRARY, COOP_CODE_MODULE_CALL } CoopCode;
/* What a code object belongs to, asked once for each. */
CoopCode coop_code_kind (PyObject *code);
/* The stack with the module on top of it, as a frame of the file "module" and the function `path`. */
uint64_t coop_stack_in_module (uint64_t stack, const char *path);

#endif
