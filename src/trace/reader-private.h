/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of the reader share.
 *
 *   reader.c        open, events, the model at any moment
 *   reader-usage.c  usage over time
 *   reader-info.c   totals, state and floor
 *   reader-query.c  the user's own SQL
 *   reader-words.c  what a trace does not tell, and why it cannot be read
 *   reader-params.c numbers of parameters that are not those of here
 */
#ifndef COOP_READER_PRIVATE_H
#define COOP_READER_PRIVATE_H

#include <sqlite3.h>

#include "trace/store.h"

/* reader-params.c: parameters and their values have numbers, in events and in layouts, which another
 * version of Coopscope may have given differently. Names stay. */
typedef struct CoopParamMap CoopParamMap;
CoopParamMap *coop_param_map_new (CoopReader *reader);
void coop_param_map_free (CoopParamMap *map);
/* Both from the numbers of the file to those of here. A parameter that is not known here: FALSE. */
gboolean coop_param_map_value (const CoopParamMap *map, guint *param, gint64 *bits);
void coop_param_map_event (const CoopParamMap *map, CoopEvent *ev);

struct CoopReader {
  char *path;
  sqlite3 *db;
  CoopParamMap *params; /* NULL: numbered as here */
};

/* Prepares a statement; NULL with an error. */
sqlite3_stmt *coop_reader_prepare (CoopReader *reader, const char *sql, GError **error);
/* TRUE while there are rows; on an error sets it. */
gboolean coop_reader_step (CoopReader *reader, sqlite3_stmt *statement, GError **error);
/* Columns seq, ts, kind, thread, block, tensor, op, addr, bytes, rest. FALSE if it is damaged. */
gboolean coop_reader_decode (sqlite3_stmt *row, CoopEvent *ev, GByteArray *body);
/* One number, or `otherwise`. */
gint64 coop_reader_int (CoopReader *reader, const char *sql, gint64 otherwise);
void coop_reader_error (CoopReader *reader, GError **error);
/* The last error of SQLite's, of that code, for people; g_free. */
char *coop_reader_failure (CoopReader *reader, int code);
/* reader-info.c: what survives a step, and what one operator needs at most. Goes through all operators. */
gboolean coop_reader_floor (CoopReader *reader, CoopTraceInfo *info, GError **error);
/* migrate.c: a trace of an older version looks like one of today, without being written. */
gboolean coop_migrate_view (sqlite3 *db, guint version, GError **error);
/* Brings what is in a database up to date, in the transaction that is open or one of its own. */
gboolean coop_migrate_in_place (sqlite3 *db, guint version, GError **error);
/* The first bytes of a file: ours? Sets FOREIGN, NEWER or IO. */
gboolean coop_trace_identify (const char *path, GError **error);

#endif
