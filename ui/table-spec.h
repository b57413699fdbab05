/* SPDX-License-Identifier: Apache-2.0 */
/* Table specs: the tables of a trace as SQL: where rows come from, their key, and what each column is.
 * Nothing else knows them; the list, the filter and the copy as CSV are the same for all.
 */
#pragma once

#include <glib.h>

G_BEGIN_DECLS

#define COOP_SPEC_COLUMNS 12

typedef enum {
  COOP_CELL_TEXT, COOP_CELL_COUNT, COOP_CELL_BYTES, COOP_CELL_NS, COOP_CELL_SECONDS, COOP_CELL_ADDR, COOP_CELL_REAL
} CoopCellKind;

typedef struct {
  const char *id;     /* what a filter calls it: "size"; NULL ends the list */
  const char *title;  /* for N_() */
  const char *sql;    /* of `from` */
  CoopCellKind kind;
  gboolean wide;
} CoopColumnSpec;

typedef struct {
  const char *id, *title;
  const char *from;   /* tables and joins, and WHERE if it must */
  const char *group;  /* GROUP BY; NULL: a row is one of `from` */
  const char *key;    /* integer, unique, what pages are found by; NULL: rows are few and kept whole */
  const char *block, *event; /* what the row is on the map and in time; NULL: nothing */
  int sort;           /* column that it is sorted by at first, -1: by its key */
  gboolean falling;
  CoopColumnSpec columns[COOP_SPEC_COLUMNS];
} CoopTableSpec;

extern const CoopTableSpec coop_table_specs[];
extern const guint coop_n_table_specs;

/* The text of a value as SQLite gives it; "" for NULL. g_free. */
char *coop_cell_format (CoopCellKind kind, const char *value);
/* "size>10MiB kind=evict conv" as a condition, g_free; "" for no words. NULL with error: no such column, or
 * not a value of it. All words must hold; one without a sign is looked for in all columns of text. */
char *coop_filter_to_sql (const CoopTableSpec *spec, const char *text, GError **error);

G_END_DECLS
