/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of the report share.
 *
 *   report.c       rows -> programs and series; writes the files
 *   report-svg.c   one chart
 *   report-text.c  tables: CSV, Markdown, HTML
 *   report-matrix.c  evictors x allocators, and page sizes
 */
#ifndef COOP_REPORT_PRIVATE_H
#define COOP_REPORT_PRIVATE_H

#include "replay/report.h"

typedef struct {
  gint64 ratio_ppm;
  gboolean ok;
  char *result, *reason;
  double overhead;          /* NaN: did not finish */
  double fragmentation;     /* NaN: no search */
  double search_us;         /* each; NaN: not measured or none */
  guint64 evictions, recomputed, moves, budget;
} CoopReportPoint;

/* One policy on one program. */
typedef struct {
  char *name;               /* "coop", "coop, groups=1", ... : what differs within the sweep */
  char *evictor, *allocator, *settings;
  GArray *points;           /* CoopReportPoint, ratio falling */
} CoopReportSeries;

typedef struct {
  char *name, *digest;
  char *file;               /* name, fit for a file; unique */
  guint64 peak;
  GPtrArray *series;        /* CoopReportSeries */
} CoopReportProgram;

typedef struct {
  GPtrArray *programs;      /* CoopReportProgram */
  guint n_runs, n_failed;
} CoopReport;

/* The smallest ratio that finished, and the smallest down to which all did; 0: none. */
gint64 coop_report_minimum (const CoopReportSeries *series);
gint64 coop_report_all_down_to (const CoopReportSeries *series);
/* NULL: not in the sweep. */
const CoopReportPoint *coop_report_at (const CoopReportSeries *series, gint64 ratio_ppm);

typedef enum { COOP_CHART_OVERHEAD, COOP_CHART_FRAGMENTATION, COOP_CHART_EVICTIONS, COOP_CHART_RECOMPUTED,
               COOP_CHART_SEARCH, COOP_N_CHARTS } CoopReportChart;
const char *coop_report_chart_name (CoopReportChart chart);   /* "overhead" */
/* FALSE: nothing to draw. */
gboolean coop_report_svg (GString *out, const CoopReportProgram *program, CoopReportChart chart);

/* One row of a table. */
typedef void (*CoopReportRow) (GString *out, guint n, const char *const *cells);

typedef struct CoopReportMatrix CoopReportMatrix;
CoopReportMatrix *coop_report_matrix_new (const CoopReport *report);
void coop_report_matrix_free (CoopReportMatrix *matrix);
guint coop_report_matrix_columns (const CoopReportMatrix *matrix);
/* row NULL: the head alone */
void coop_report_matrix (GString *out, const CoopReportMatrix *matrix, CoopReportRow head, CoopReportRow row);
/* FALSE: fewer than two page sizes. */
gboolean coop_report_pages_svg (GString *out, const CoopReportMatrix *matrix);
void coop_report_matrix_csv (GString *out, const CoopReport *report);

void coop_report_runs_csv (GString *out, const CoopReport *report);
void coop_report_minimum_csv (GString *out, const CoopReport *report);
void coop_report_markdown (GString *out, const CoopReport *report);
void coop_report_html (GString *out, const CoopReport *report);

#endif
