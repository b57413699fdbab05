/* SPDX-License-Identifier: Apache-2.0 */
/* Queries: the questions that people ask of a trace, as SQL with a name. queries.sql has them.
 */
#ifndef COOP_QUERIES_H
#define COOP_QUERIES_H

#include "trace/store.h"

typedef struct {
  const char *name, *help;
  const char *at;   /* "oom|peak": the first instant that there is (instant.h); NULL: it is not about one */
  const char *sql;  /* with :at and :top in it */
} CoopNamedQuery;

const CoopNamedQuery *coop_named_queries (guint *n);
/* NULL if there is none of that name. */
const CoopNamedQuery *coop_named_query (const char *name);
/* The statement for an instant (NULL: the query's own) and a number of rows (0: all); g_free. NULL with an
 * error where there is no such instant. */
char *coop_named_query_sql (CoopReader *reader, const CoopNamedQuery *query, const char *at, guint top, GError **error);

#endif
