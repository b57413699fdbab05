/* SPDX-License-Identifier: Apache-2.0 */
/* Table: rows of text under headings, one line a row and all of one height, for what the map and the
 * chart show by picture. Contents are set as a whole; the selection stays with its row's number.
 */
#pragma once

#include <gtk/gtk.h>

G_BEGIN_DECLS

#define COOP_TABLE_COLUMNS 8

#define COOP_TYPE_TABLE_ROW (coop_table_row_get_type ())
G_DECLARE_FINAL_TYPE (CoopTableRow, coop_table_row, COOP, TABLE_ROW, GObject)
CoopTableRow *coop_table_row_new (guint64 id);
/* Takes the text. */
void coop_table_row_take (CoopTableRow *row, guint column, char *text);
guint64 coop_table_row_get_id (CoopTableRow *row);

typedef struct {
  const char *title; /* NULL ends the list; translated by the caller */
  gboolean numeric;  /* set to the right */
  gboolean wide;     /* takes what is left */
} CoopTableColumn;

#define COOP_TYPE_TABLE (coop_table_get_type ())
G_DECLARE_FINAL_TYPE (CoopTable, coop_table, COOP, TABLE, GtkWidget)
/* Signal "picked" (guint64 id): a person chose a row. */

GtkWidget *coop_table_new (const CoopTableColumn *columns, const char *name);
/* The first n rows (element CoopTableRow) replace those there are. */
void coop_table_set_rows (CoopTable *self, GPtrArray *rows, guint n);
/* Adds some of them at the end: rows are made one by one, so many of them are better given in turns. */
void coop_table_add_rows (CoopTable *self, GPtrArray *rows, guint from, guint n);
guint coop_table_get_n_rows (CoopTable *self);

G_END_DECLS
