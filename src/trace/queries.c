/* SPDX-License-Identifier: Apache-2.0 */
/* Queries: see the header. */
#include "trace/queries.h"

#include <string.h>

#include "trace/instant.h"

#include "queries-table.h" /* made of queries.sql */

const CoopNamedQuery *
coop_named_queries (guint *n)
{
  *n = G_N_ELEMENTS (queries);
  return queries;
}

const CoopNamedQuery *
coop_named_query (const char *name)
{
  for (guint i = 0; i < G_N_ELEMENTS (queries); i++)
    if (g_str_equal (queries[i].name, name))
      return &queries[i];
  return NULL;
}

/* The first of "A|B" that the trace has. */
static gboolean
first_instant (CoopReader *reader, const char *choices, guint64 *seq, GError **error)
{
  g_auto (GStrv) names = g_strsplit (choices, "|", -1);
  for (guint i = 0; names[i] != NULL; i++)
    if (coop_reader_instant (reader, names[i], seq, names[i + 1] == NULL ? error : NULL))
      return TRUE;
  return FALSE;
}

char *
coop_named_query_sql (CoopReader *reader, const CoopNamedQuery *query, const char *at, guint top, GError **error)
{
  GString *sql = g_string_new (query->sql);
  char number[24];
  if (query->at != NULL)
    {
      guint64 seq = 0;
      if (!(at != NULL ? coop_reader_instant (reader, at, &seq, error) : first_instant (reader, query->at, &seq, error)))
        {
          g_string_free (sql, TRUE);
          return NULL;
        }
      g_snprintf (number, sizeof number, "%" G_GUINT64_FORMAT, seq);
      g_string_replace (sql, ":at", number, 0);
    }
  g_snprintf (number, sizeof number, "%d", top > 0 ? (int) MIN (top, G_MAXINT) : -1);
  g_string_replace (sql, ":top", number, 0);
  return g_string_free (sql, FALSE);
}
