/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of the reader share.
 *
 *   reader.c        open, events, the model at any moment
 *   reader-usage.c  usage over time
 *   reader-info.c   totals, state and floor
 *   reader-query.c  the user's own SQL
 */
#ifndef COOP_READER_PRIVATE_H
#define COOP_READER_PRIVATE_H

#include <sqlite3.h>

#include "trace/store.h"

struct CoopReader {
  char *path;
  sqlite3 *db;
};

/* Prepares a statement; NULL with an error. */
sqlite3_stmt *coop_reader_prepare (CoopReader *reader, const char *sql, GError **error);
/* TRUE while there are rows; on an error sets it. */
gboolean coop_reader_step (CoopReader *reader, sqlite3_stmt *statement, GError **error);
/* One number, or `otherwise`. */
gint64 coop_reader_int (CoopReader *reader, const char *sql, gint64 otherwise);
void coop_reader_error (CoopReader *reader, GError **error);
/* The first bytes of a file: ours? Sets FOREIGN, NEWER or IO. */
gboolean coop_trace_identify (const char *path, GError **error);

#endif
