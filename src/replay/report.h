/* SPDX-License-Identifier: Apache-2.0 */
/* Report: a sweep as pages for people: one self-contained HTML page, its charts as SVG files, and the
 * tables as CSV and Markdown. */
#ifndef COOP_REPORT_H
#define COOP_REPORT_H

#include "trace/sweep-store.h"

/* Writes index.html, *.svg, runs.csv, minimum.csv, matrix.csv and report.md into the folder, which is made if it is
 * not there. Files of these names are replaced. *n_runs (may be NULL): how many rows it rests on. */
gboolean coop_report_write (CoopSweepStore *store, const char *folder, guint *n_runs, GError **error);

#endif
