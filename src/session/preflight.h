/* SPDX-License-Identifier: Apache-2.0 */
/* Preflight: what can be known about a command before it runs. */
#ifndef COOP_PREFLIGHT_H
#define COOP_PREFLIGHT_H

#include "session.h"

/* How a Python command line is read. Not one: `python` is FALSE and the rest is empty. */
typedef struct {
  gboolean python;
  const char *script;    /* argument of argv, NULL for -c, -m, -, none */
  const char *module;    /* of -m */
  char blind[4];         /* those of I, E, S that are set: they keep Coopscope out */
} CoopPythonLine;
void coop_python_line_parse (char *const *argv, CoopPythonLine *line);

/* FALSE: the program, the folder or the script is not there, or the interpreter has no PyTorch or one
 * that is too old; error is one line that says which. Runs the interpreter for some ms, without
 * importing torch. env as for the child. */
gboolean coop_preflight (const CoopRunOptions *options, char **env, GError **error);

/* The folder that holds the Python package `coopscope`, NULL if there is none. */
char *coop_python_dir (void);
/* env with our folders in front of PYTHONPATH; takes env. */
char **coop_python_environ (char **env, const char *dir);

#endif
