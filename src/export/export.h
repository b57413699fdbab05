/* SPDX-License-Identifier: Apache-2.0 */
/* Export: a trace as files that other tools open, and as pictures. Needs no display.
 *
 *   csv       a folder with one file a view, and a few tables beside them
 *   jsonl     the same rows, one JSON object a line, the view's name in "view"
 *   perfetto  Perfetto's protobuf packets: operators as slices, with what was recomputed for them
 *             inside, memory as counters, evictions as instants
 *   chrome    the same as Chrome's JSON, for chrome://tracing and others
 *   pytorch   a memory snapshot as torch.cuda.memory._dump_snapshot writes it
 *   coop      the trace again, recorded from its events
 *   png, svg  the map at an instant, or memory over time
 */
#ifndef COOP_EXPORT_H
#define COOP_EXPORT_H

#include "trace/store.h"

/* X (ID, "label", "suffix of the file's name") */
#define COOP_EXPORT_FORMATS(X)                                                                      \
  X (CSV, "csv", "-csv")                                                                            \
  X (JSONL, "jsonl", ".jsonl")                                                                      \
  X (PERFETTO, "perfetto", ".pftrace")                                                              \
  X (CHROME, "chrome", ".trace.json")                                                               \
  X (PYTORCH, "pytorch", ".pickle")                                                                 \
  X (COPY, "coop", "-copy.coop")                                                                    \
  X (PNG, "png", ".png")                                                                            \
  X (SVG, "svg", ".svg")

typedef enum {
#define X(ID, label, suffix) COOP_EXPORT_##ID,
  COOP_EXPORT_FORMATS (X)
#undef X
  COOP_N_EXPORTS
} CoopExportFormat;

typedef struct {
  CoopExportFormat format;
  gboolean anonymise;      /* replaces paths, host, user and command line */
  gboolean replace;        /* what is there already */
  const int *stop;         /* not 0 at any time: gives up, with G_IO_ERROR_CANCELLED; may be NULL */
  /* pictures only */
  gboolean usage;          /* memory over time; else the map */
  const char *at;          /* instant of the map (trace/instant.h); NULL: "peak" */
  guint width, height;     /* layout pixels; 0: 1200 by what is usual */
  double scale;            /* pixels of a PNG to one of the layout; 0: 1 */
  gboolean dark, contrast;
} CoopExportOptions;

/* COOP_N_EXPORTS if there is none of that name. */
CoopExportFormat coop_export_format (const char *label);
const char *coop_export_label (CoopExportFormat format);
const char *coop_export_suffix (CoopExportFormat format);
/* Pictures need cairo, which a build may lack. */
gboolean coop_export_available (CoopExportFormat format);

/* Reads the trace, also one under way, and writes `to`: a folder for CSV, else a file that gets its name
 * when it is whole (gzipped if it ends in .gz; "-" is standard output). Any thread. */
gboolean coop_export (const char *from, const char *to, const CoopExportOptions *options, GError **error);

#endif
