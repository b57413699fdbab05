/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of the checker share.
 *
 *   check.c         the file as a whole, the events one after the other
 *   check-map.c     a naive map of memory: a sorted array, searched from end to end
 *   check-tables.c  the other tables, by SQL
 */
#ifndef COOP_CHECK_PRIVATE_H
#define COOP_CHECK_PRIVATE_H

#include "trace/reader-private.h"

/* One life, as the events tell it. */
typedef struct {
  guint64 id, addr, bytes, requested, tensor, op, born_event, born_ns;
  gboolean born_unknown;
} CheckLife;

typedef struct {
  guint64 id, base, bytes;
} CheckSegment;

typedef struct {
  CoopReader *reader;
  GArray *findings; /* CoopFinding */
  guint max;
  guint64 seq, ts;      /* of the event before */
  gboolean any;         /* there was one */
  gboolean gap;         /* events are missing: much may be unknown from here on */
  guint64 budget, used, peak;
  guint64 largest;
  GArray *lives;        /* CheckLife by address */
  GArray *segments;     /* CheckSegment; all of memory if not segmented */
  gboolean segmented;
  guint64 capacity;
  guint64 trimmed;      /* events that were given up before the first */
  gboolean no_blocks;   /* a summary: columns are all that tells of memory */
  GHashTable *tensors, *ops; /* numbers introduced */
  GHashTable *running;       /* operators that began and did not end */
  sqlite3_stmt *columns, *block, *keyframe;
  guint64 n, total, n_lives;
  void (*progress) (gpointer user, double part);
  gpointer user;
} Check;

void coop_check_say (Check *check, guint64 seq, CoopFault fault, const char *format, ...) G_GNUC_PRINTF (4, 5);
static inline gboolean
coop_check_full (const Check *check)
{
  return check->findings->len >= check->max;
}

/* check-map.c */
void coop_check_map (Check *check, const CoopEvent *ev);
/* Used bytes and largest hole below the budget, from end to end. */
void coop_check_measure (Check *check);
/* The row of table block against the life; end: the event that ended it, NULL if it goes on. */
void coop_check_life (Check *check, const CheckLife *life, const CoopEvent *end);

/* check-tables.c */
gboolean coop_check_integrity (Check *check);
gboolean coop_check_schema (Check *check);
void coop_check_tables (Check *check);

#endif
