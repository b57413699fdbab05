/* SPDX-License-Identifier: Apache-2.0 */
/* Rows: a table of a trace as a list that is read as it is looked at. A thread with a reader of its own
 * does all SQL: first it finds the keys in the order wanted (the list grows meanwhile, and another wish
 * or coop_rows_stop ends it), then a page of rows whenever one of them is seen. Four bytes a row are
 * kept, and the pages seen last.
 */
#pragma once

#include <gtk/gtk.h>

#include "table-spec.h"

G_BEGIN_DECLS

/* One row; cells are NULL until "filled". */
#define COOP_TYPE_LIST_ROW (coop_list_row_get_type ())
G_DECLARE_FINAL_TYPE (CoopListRow, coop_list_row, COOP, LIST_ROW, GObject)
const char *coop_list_row_get_cell (CoopListRow *row, guint column);
/* What it is on the map and in time: 0 and G_MAXUINT64 for nothing. */
guint64 coop_list_row_get_block (CoopListRow *row);
guint64 coop_list_row_get_event (CoopListRow *row);

#define COOP_TYPE_ROWS (coop_rows_get_type ())
G_DECLARE_FINAL_TYPE (CoopRows, coop_rows, COOP, ROWS, GObject)
/* Signals:
 *   "state" ()           busy or not, an error or none
 *   "columns" ()         of a query: its columns are known
 *   "copied" (char *)    as CSV, for coop_rows_copy
 */

CoopRows *coop_rows_new (const char *path);
/* The rows of a table for which `where` (SQL, may be empty) holds, by a column (-1: its key). */
void coop_rows_show (CoopRows *self, const CoopTableSpec *spec, const char *where, int sort, gboolean falling);
/* The rows of one SELECT, at most 100,000. */
void coop_rows_query (CoopRows *self, const char *sql);
void coop_rows_stop (CoopRows *self);
/* Makes a CSV of the first n rows (all have titles of their own; raw values, so that sizes are bytes). */
void coop_rows_copy (CoopRows *self, guint n);

gboolean coop_rows_is_busy (CoopRows *self);
/* Whether there are more rows than are kept. */
gboolean coop_rows_is_cut (CoopRows *self);
/* NULL: none. */
const char *coop_rows_get_error (CoopRows *self);
/* NULL-terminated; of a query, once "columns" was signalled. */
const char *const *coop_rows_get_columns (CoopRows *self);

G_END_DECLS
