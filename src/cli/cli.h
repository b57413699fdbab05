/* SPDX-License-Identifier: Apache-2.0 */
/* Cli: the table of commands and what they share. One file a command, cmd-NAME.c, each with one
 * public function. Exit status: 0 done, 1 failed, 2 wrong use.
 */
#ifndef COOP_CLI_H
#define COOP_CLI_H

#include <glib.h>

#include "core/policy.h"

enum { COOP_EXIT_DONE = 0, COOP_EXIT_FAILED = 1, COOP_EXIT_USAGE = 2 };

typedef struct {
  const char *name;
  const char *help;                      /* one line */
  int (*main) (int argc, char **argv);   /* argv[0] is the command's name */
} CoopCommand;

int coop_cmd_run (int argc, char **argv);
int coop_cmd_collect (int argc, char **argv);
int coop_cmd_attach (int argc, char **argv);
int coop_cmd_info (int argc, char **argv);
int coop_cmd_query (int argc, char **argv);
int coop_cmd_check (int argc, char **argv);
int coop_cmd_policy (int argc, char **argv);
int coop_cmd_replay (int argc, char **argv);
int coop_cmd_rehearse (int argc, char **argv);
int coop_cmd_sweep (int argc, char **argv);
int coop_cmd_tune (int argc, char **argv);
int coop_cmd_merge (int argc, char **argv);
int coop_cmd_report (int argc, char **argv);
int coop_cmd_probe (int argc, char **argv);
int coop_cmd_import (int argc, char **argv);
int coop_cmd_export (int argc, char **argv);
int coop_cmd_diff (int argc, char **argv);

/* "coop NAME: text" on stderr; return 2 and 1, so that a command can `return` them. */
int coop_cli_usage (const char *command, const char *format, ...) G_GNUC_PRINTF (2, 3);
int coop_cli_fail (const char *command, const char *format, ...) G_GNUC_PRINTF (2, 3);
/* The same without an exit status. */
void coop_cli_warn (const char *command, const char *format, ...) G_GNUC_PRINTF (2, 3);

/* Parses options with GOption; what is left stays in argv (argv[0] included, `--` removed).
 * Where `args` begins with "--" ("-- COMMAND..."), options end at the first argument.
 * --help prints `args` ("FILE SQL"), `summary` and the entries, and exits 0 by itself. FALSE: a
 * message was printed (with the nearest option where one is near); return 2. */
gboolean coop_cli_parse (const char *args, const char *summary, const GOptionEntry *entries,
                         int *argc, char ***argv);

/* The nearest of NULL-terminated names by edit distance, NULL where nothing is near. */
const char *coop_cli_nearest (const char *word, const char *const *names);

/* "37.7 MiB" in a fresh string. */
/* "1 step", "2 steps" */
char *coop_cli_count (guint64 n, const char *one, const char *many);
char *coop_cli_size (guint64 bytes);
/* "1.24 s", "310 ms", "12 us" in a fresh string. */
char *coop_cli_duration (double ns);

/* ---- policy options, shared by every command that runs an engine: --budget, --evictor,
 * --allocator, --set KEY=VALUE, --verify. `mask` collects the bits of what was named. FALSE: a
 * message with the nearest name was printed; return 2. */
gboolean coop_cli_policy_set (const char *command, const char *key, const char *value,
                              CoopPolicy *policy, guint64 *mask);
gboolean coop_cli_policy_assign (const char *command, const char *key_value, CoopPolicy *policy,
                                 guint64 *mask);
/* The lines KEY=VALUE of a file, in order; empty ones and those that begin with # are passed over. */
gboolean coop_cli_policy_file (const char *command, const char *path, CoopPolicy *policy, guint64 *mask);

/* ---- JSON, written into a GString. Commas come by themselves; key NULL inside an array. ---- */
void coop_json_open (GString *out, const char *key, char bracket);   /* '{' or '[' */
void coop_json_close (GString *out, char bracket);                   /* '}' or ']' */
void coop_json_string (GString *out, const char *key, const char *value);   /* NULL: null */
void coop_json_int (GString *out, const char *key, gint64 value);
void coop_json_uint (GString *out, const char *key, guint64 value);
void coop_json_real (GString *out, const char *key, double value);          /* not finite: null */
void coop_json_bool (GString *out, const char *key, gboolean value);

/* schema.c: what a view, and a column of it, means; NULL if there is no such. */
const char *coop_schema_view (const char *view);
const char *coop_schema_column (const char *view, const char *column);

#endif
