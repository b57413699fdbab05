/* SPDX-License-Identifier: Apache-2.0 */
/* Out: one file being written. It gets its name only when it is whole; a name that ends in .gz is
 * gzipped; "-" is standard output. The first error sticks and is told at the end.
 */
#ifndef COOP_EXPORT_OUT_H
#define COOP_EXPORT_OUT_H

#include <gio/gio.h>

typedef struct CoopOut CoopOut;

/* Without `replace` a file that is there is an error (G_IO_ERROR_EXISTS). Once *stop is not 0 (it may be
 * NULL) writing fails with G_IO_ERROR_CANCELLED. */
CoopOut *coop_out_open (const char *path, gboolean replace, const int *stop, GError **error);
void coop_out_write (CoopOut *out, const void *data, gsize bytes);
void coop_out_text (CoopOut *out, const char *text);
void coop_out_printf (CoopOut *out, const char *format, ...) G_GNUC_PRINTF (2, 3);
/* FALSE once something went wrong: no use to go on. */
gboolean coop_out_ok (const CoopOut *out);
/* Frees. keep: gives the file its name; else, or after an error, nothing is left of it. FALSE with the
 * first error, if there was one. */
gboolean coop_out_close (CoopOut *out, gboolean keep, GError **error);

/* "text" in quotes, as JSON has it. NULL: null. */
void coop_json_quote (GString *out, const char *text);
/* A number that JSON can hold; not finite: null. */
void coop_json_double (GString *out, double value);

#endif
