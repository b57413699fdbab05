/* SPDX-License-Identifier: Apache-2.0 */
/* Export: finds the writer of a format and gives it a file. */
#include "config.h"

#include "export/export-private.h"

#include <glib/gstdio.h>
#include <sys/stat.h>

static const struct {
  const char *label, *suffix;
} formats[COOP_N_EXPORTS] = {
#define X(ID, label, suffix) [COOP_EXPORT_##ID] = { label, suffix },
  COOP_EXPORT_FORMATS (X)
#undef X
};

CoopExportFormat
coop_export_format (const char *label)
{
  guint i = 0;
  while (i < COOP_N_EXPORTS && !g_str_equal (formats[i].label, label))
    i++;
  return (CoopExportFormat) i;
}

const char *
coop_export_label (CoopExportFormat format)
{
  return formats[format].label;
}

const char *
coop_export_suffix (CoopExportFormat format)
{
  return formats[format].suffix;
}

gboolean
coop_export_available (CoopExportFormat format)
{
#ifdef COOP_HAVE_CAIRO
  return TRUE;
#else
  return format != COOP_EXPORT_PNG && format != COOP_EXPORT_SVG;
#endif
}

static gboolean
take_start (gpointer user, int n, const char *const *names, const char *const *values, const int *types)
{
  if (values[0] != NULL)
    *(guint64 *) user = g_ascii_strtoull (values[0], NULL, 10);
  return FALSE;
}

guint64
coop_export_start (CoopReader *reader)
{
  guint64 start = 0;
  coop_reader_query (reader, "SELECT start_ns FROM session LIMIT 1", COOP_QUERY_SECONDS, take_start, &start, NULL);
  return start;
}

static gboolean
same_file (const char *a, const char *b)
{
  GStatBuf x, y;
  return g_stat (a, &x) == 0 && g_stat (b, &y) == 0 && x.st_dev == y.st_dev && x.st_ino == y.st_ino;
}

static gboolean
write_file (const CoopExportJob *job, GError **error)
{
  gboolean done = FALSE;
  CoopOut *out = coop_out_open (job->to, job->options->replace, job->options->stop, error);
  if (out == NULL)
    return FALSE;
  switch (job->options->format)
    {
    case COOP_EXPORT_JSONL:
      done = coop_export_jsonl (job, out, error);
      break;
    case COOP_EXPORT_PERFETTO:
      done = coop_export_perfetto (job, out, error);
      break;
    case COOP_EXPORT_CHROME:
      done = coop_export_chrome (job, out, error);
      break;
    case COOP_EXPORT_PYTORCH:
      done = coop_export_pytorch (job, out, error);
      break;
    case COOP_EXPORT_PNG:
    case COOP_EXPORT_SVG:
#ifdef COOP_HAVE_CAIRO
      done = coop_export_picture (job, out, error);
#else
      g_set_error_literal (error, G_IO_ERROR, G_IO_ERROR_NOT_SUPPORTED, "this build cannot draw: it was made without cairo");
#endif
      break;
    case COOP_EXPORT_CSV:
    case COOP_EXPORT_COPY:
    case COOP_N_EXPORTS:
      break;
    }
  return coop_out_close (out, done, error) && done;
}

gboolean
coop_export (const char *from, const char *to, const CoopExportOptions *options, GError **error)
{
  CoopExportJob job = { .options = options, .from = from, .to = to };
  gboolean done = FALSE;
  if (same_file (from, to))
    {
      g_set_error (error, G_IO_ERROR, G_IO_ERROR_EXISTS, "%s is the trace itself", to);
      return FALSE;
    }
  job.reader = coop_reader_open (from, error);
  if (job.reader == NULL)
    return FALSE;
  if (options->format != COOP_EXPORT_COPY)
    coop_reader_hold (job.reader);
  if (options->anonymise)
    job.anonymiser = coop_anonymiser_new (job.reader, error);
  if (!options->anonymise || job.anonymiser != NULL)
    done = options->format == COOP_EXPORT_CSV    ? coop_export_csv (&job, error)
           : options->format == COOP_EXPORT_COPY ? coop_export_copy (&job, error)
                                                 : write_file (&job, error);
  coop_anonymiser_free (job.anonymiser);
  coop_reader_free (job.reader);
  return done;
}
