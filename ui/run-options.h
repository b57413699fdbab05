/* SPDX-License-Identifier: Apache-2.0 */
/* Command line of the window: `coopscope [OPTIONS] [FILE]` and `coopscope [OPTIONS] -- COMMAND...` */
#pragma once

#include "session/session.h"

G_BEGIN_DECLS

typedef struct {
  CoopRunOptions run;       /* argv NULL: nothing to start */
  char **files;             /* traces to open; NULL or none */
  int attach;               /* process id, 0: none */
  gboolean quit_when_done, version, help;
} CoopCommandLine;

/* argv: the command itself first. FALSE with a sentence for the terminal (exit status 2). */
gboolean coop_command_line_parse (CoopCommandLine *line, const char *const *argv, const char *cwd,
                                  GError **error);
/* What `--help` says. g_free. */
char *coop_command_line_help (void);
void coop_command_line_clear (CoopCommandLine *line);

/* Sets one parameter from text; a sentence with the nearest name if that cannot be. */
gboolean coop_policy_set_text (CoopPolicy *policy, const char *name, const char *text, GError **error);

G_END_DECLS
