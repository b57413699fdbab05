/* SPDX-License-Identifier: Apache-2.0 */
/* Out: see the header. The file grows under a temporary name beside its place, so that a reader never
 * meets half of it and an old one stays until the new one is whole. */
#include "export/out.h"

#include <gio/gunixoutputstream.h>
#include <glib/gstdio.h>

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <string.h>

#include "trace/store.h"
#include <unistd.h>

#define BUFFER (256 * 1024)

struct CoopOut {
  char *path, *part; /* part NULL: standard output */
  GOutputStream *stream;
  const int *stop;
  GError *error;
};

static void
set_error (GError **error, const char *path, int code)
{
  g_set_error (error, G_IO_ERROR, g_io_error_from_errno (code), "%s: %s", path, g_strerror (code));
}

static int
open_part (CoopOut *out, const char *path, gboolean replace, GError **error)
{
  if (g_file_test (path, G_FILE_TEST_IS_DIR))
    {
      set_error (error, path, EISDIR);
      return -1;
    }
  if (!replace && g_file_test (path, G_FILE_TEST_EXISTS))
    {
      g_set_error (error, G_IO_ERROR, G_IO_ERROR_EXISTS, "%s is there already", path);
      return -1;
    }
  out->part = g_strconcat (path, ".part-XXXXXX", NULL);
  int fd = g_mkstemp_full (out->part, O_WRONLY | O_CLOEXEC, 0666);
  if (fd < 0)
    {
      set_error (error, path, errno);
      g_clear_pointer (&out->part, g_free);
    }
  return fd;
}

CoopOut *
coop_out_open (const char *path, gboolean replace, const int *stop, GError **error)
{
  CoopOut *out = g_new0 (CoopOut, 1);
  out->stop = stop;
  gboolean standard = g_str_equal (path, "-");
  int fd = standard ? STDOUT_FILENO : open_part (out, path, replace, error);
  if (fd < 0)
    {
      g_free (out);
      return NULL;
    }
  out->path = g_strdup (path);
  g_autoptr (GOutputStream) file = g_unix_output_stream_new (fd, !standard);
  if (g_str_has_suffix (path, ".gz"))
    {
      g_autoptr (GConverter) gzip = G_CONVERTER (g_zlib_compressor_new (G_ZLIB_COMPRESSOR_FORMAT_GZIP, -1));
      GOutputStream *zipped = g_converter_output_stream_new (file, gzip);
      g_object_unref (file);
      file = zipped;
    }
  out->stream = g_buffered_output_stream_new_sized (file, BUFFER);
  return out;
}

void
coop_out_write (CoopOut *out, const void *data, gsize bytes)
{
  if (out->error == NULL && out->stop != NULL && g_atomic_int_get (out->stop) != 0)
    g_set_error_literal (&out->error, G_IO_ERROR, G_IO_ERROR_CANCELLED, "given up");
  if (out->error == NULL)
    g_output_stream_write_all (out->stream, data, bytes, NULL, NULL, &out->error);
}

void
coop_out_text (CoopOut *out, const char *text)
{
  coop_out_write (out, text, strlen (text));
}

void
coop_out_printf (CoopOut *out, const char *format, ...)
{
  va_list args;
  va_start (args, format);
  g_autofree char *text = g_strdup_vprintf (format, args);
  va_end (args);
  coop_out_text (out, text);
}

gboolean
coop_out_ok (const CoopOut *out)
{
  return out->error == NULL;
}

gboolean
coop_out_close (CoopOut *out, gboolean keep, GError **error)
{
  if (out == NULL)
    return FALSE;
  g_output_stream_close (out->stream, NULL, out->error == NULL ? &out->error : NULL);
  gboolean done = out->error == NULL;
  if (done && keep && out->part != NULL && g_rename (out->part, out->path) != 0)
    {
      set_error (&out->error, out->path, errno);
      done = FALSE;
    }
  if ((!done || !keep) && out->part != NULL)
    g_unlink (out->part);
  if (out->error != NULL && error != NULL && *error == NULL)
    g_propagate_prefixed_error (error, g_steal_pointer (&out->error), "%s: ", out->path);
  g_clear_error (&out->error);
  g_object_unref (out->stream);
  g_free (out->path);
  g_free (out->part);
  g_free (out);
  return done;
}

/* ---- JSON ---- */

void
coop_json_quote (GString *out, const char *text)
{
  if (text == NULL)
    {
      g_string_append (out, "null");
      return;
    }
  g_autofree char *valid = g_utf8_validate (text, -1, NULL) ? NULL : g_utf8_make_valid (text, -1);
  g_string_append_c (out, '"');
  for (const char *c = valid != NULL ? valid : text; *c != 0; c++)
    if (*c == '"' || *c == '\\')
      g_string_append_printf (out, "\\%c", *c);
    else if ((guchar) *c < 0x20 || *c == 0x7f)
      g_string_append_printf (out, "\\u%04x", (guchar) *c);
    else
      g_string_append_c (out, *c);
  g_string_append_c (out, '"');
}

void
coop_json_double (GString *out, double value)
{
  char text[G_ASCII_DTOSTR_BUF_SIZE];
  g_string_append (out, isfinite (value) ? coop_real_text (text, value) : "null");
}
