/* SPDX-License-Identifier: Apache-2.0 */
/* Trace table: one table of a trace, or a query of a person's, with its filter, its sort by any column,
 * stop, and copy as CSV.
 */
#pragma once

#include <gtk/gtk.h>

#include "rows.h"

G_BEGIN_DECLS

#define COOP_TYPE_TRACE_TABLE (coop_trace_table_get_type ())
G_DECLARE_FINAL_TYPE (CoopTraceTable, coop_trace_table, COOP, TRACE_TABLE, GtkWidget)
/* Signals:
 *   "picked" (guint64 block, guint64 event)     a person chose a row: what it is on the map, and when
 *   "activated" (guint64 block, guint64 event)  and wants to go there (Enter, double click)
 */

/* spec NULL: a query. */
GtkWidget *coop_trace_table_new (const CoopTableSpec *spec);
/* The trace to read, NULL for none. Nothing is read before the table is seen. */
void coop_trace_table_set_path (CoopTraceTable *self, const char *path);
/* The block selected on the map, and whether no other is wanted. */
void coop_trace_table_set_block (CoopTraceTable *self, guint64 block);
void coop_trace_table_set_only (CoopTraceTable *self, gboolean only);
/* Reads again: the trace has grown. */
void coop_trace_table_refresh (CoopTraceTable *self);
/* As if typed: a filter, or a query. */
void coop_trace_table_set_text (CoopTraceTable *self, const char *text);
void coop_trace_table_sort (CoopTraceTable *self, int column, gboolean falling);
/* NULL while the table was not seen. */
CoopRows *coop_trace_table_get_rows (CoopTraceTable *self);

G_END_DECLS
