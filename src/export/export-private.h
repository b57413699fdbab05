/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by the files of this folder alone: one writer a format. */
#ifndef COOP_EXPORT_PRIVATE_H
#define COOP_EXPORT_PRIVATE_H

#include "export/anonymise.h"
#include "export/export.h"
#include "export/out.h"

#define COOP_QUERY_SECONDS 3600.0 /* an export takes as long as it takes */

typedef struct {
  CoopReader *reader;
  CoopAnonymiser *anonymiser; /* NULL: nothing is hidden */
  const CoopExportOptions *options;
  const char *from, *to;
} CoopExportJob;

/* Each returns FALSE with an error where the trace cannot be read; errors of writing stay in `out`. */
gboolean coop_export_jsonl (const CoopExportJob *job, CoopOut *out, GError **error);
gboolean coop_export_perfetto (const CoopExportJob *job, CoopOut *out, GError **error);
gboolean coop_export_chrome (const CoopExportJob *job, CoopOut *out, GError **error);
gboolean coop_export_pytorch (const CoopExportJob *job, CoopOut *out, GError **error);
gboolean coop_export_picture (const CoopExportJob *job, CoopOut *out, GError **error);
/* Write their files themselves. */
gboolean coop_export_csv (const CoopExportJob *job, GError **error);
gboolean coop_export_copy (const CoopExportJob *job, GError **error);

/* Unix time of the run's time 0, ns; 0 if unknown. */
guint64 coop_export_start (CoopReader *reader);

#endif
