/* SPDX-License-Identifier: Apache-2.0 */
/* Rows, inside: rows-read.c is the thread that reads, rows.c the list in the main loop. They share
 * CoopRowsWork; all below its mutex is guarded by it.
 */
#pragma once

#include "rows.h"
#include "trace/store.h"

#define COOP_PAGE_ROWS 64
#define COOP_WHOLE_ROWS 100000

typedef struct {
  const CoopTableSpec *spec; /* NULL: `sql` is a query of a person's */
  char *sql;                 /* WHERE, or the query */
  int sort;
  gboolean falling;
} CoopRowsWish;

/* Row-major cells of one page, NULL where there is no row. */
typedef struct {
  guint page, n_columns;
  char **cells;              /* COOP_PAGE_ROWS * n_columns */
  guint64 block[COOP_PAGE_ROWS], event[COOP_PAGE_ROWS];
} CoopRowsPage;
void coop_rows_page_free (CoopRowsPage *page);

typedef struct {
  char *path;
  GThread *thread;

  GMutex mutex;
  GCond cond;
  gboolean quit;
  CoopReader *reader;        /* made and freed by the thread; others may interrupt it */
  /* wishes */
  guint wish_serial;
  CoopRowsWish wish;
  gboolean stop;
  GArray *pages;             /* guint, wanted; the last is the newest */
  guint copy;                /* rows wanted as CSV; 0: none */
  /* results of wish `serial` */
  guint serial;
  guint n;                   /* rows known */
  gboolean busy, cut;
  char *error;
  char **columns;
  GPtrArray *read;           /* CoopRowsPage */
  char *csv;
  guint idle;                /* source that will look at the results */
  GSourceFunc look;
  gpointer look_data;
} CoopRowsWork;

gpointer coop_rows_thread (gpointer work);
