/* SPDX-License-Identifier: Apache-2.0 */
/* What the readers of programs share. */
#ifndef COOP_PROGRAM_PRIVATE_H
#define COOP_PROGRAM_PRIVATE_H

#include <gio/gio.h>

#include "replay/json-parse.h"
#include "replay/program.h"

#define COOP_MAX_BYTES (G_GUINT64_CONSTANT (1) << 48)  /* of one tensor */
#define COOP_MAX_COST (G_GUINT64_CONSTANT (1) << 50)   /* ns of one operator: 13 days */

CoopProgram *coop_program_from_trace (const char *path, GError **error);

/* Lines of a text file, gunzipped if it is gzipped. Each text is NUL-terminated and without its newline. */
typedef struct {
  GDataInputStream *stream;
  char *path;
  guint64 number;   /* of the line read last, from 1 */
} CoopLines;
gboolean coop_lines_open (CoopLines *lines, const char *path, GError **error);
/* NULL without error at the end. g_free. */
char *coop_lines_next (CoopLines *lines, gsize *length, GError **error);
void coop_lines_close (CoopLines *lines);

/* Reads the lines that are left, `first` (a parsed line) among them. */
gboolean coop_program_read_plain (CoopProgram *program, CoopLines *lines, CoopJson *json,
                                  const CoopJsonValue *first, GError **error);
gboolean coop_program_read_dtr (CoopProgram *program, CoopLines *lines, CoopJson *json,
                                const CoopJsonValue *first, GError **error);

/* DAMAGED, with the path and the line. FALSE. */
gboolean coop_lines_damaged (const CoopLines *lines, GError **error, const char *format, ...)
    G_GNUC_PRINTF (3, 4);

#endif
