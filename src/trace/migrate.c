/* SPDX-License-Identifier: Apache-2.0 */
/* Migrate: traces of older versions.
 *
 * Reading one needs no write: temporary views stand before its tables and look as those of today do.
 * Writing (coop check --repair) takes one step after the other, from N to N + 1, all in one go. The
 * views v_* are made anew either way, so that nobody ever sees those of an older version.
 *
 * To change the schema: raise COOP_SCHEMA_VERSION, write migrate-N.sql, and bring each read-N.sql up to
 * date, since it leads from version N to today's at once. */
#include "trace/reader-private.h"

#include <string.h>

#include "migrations.h"

static const struct {
  const char *migrate, *read;
} versions[COOP_SCHEMA_VERSION] = {
  [1] = { coop_sql_migrate_1, coop_sql_read_1 },
};

static gboolean
fail (sqlite3 *db, guint version, GError **error)
{
  g_set_error (error, COOP_TRACE_ERROR, COOP_TRACE_ERROR_IO, "a trace of version %u does not look like one: %s",
               version, sqlite3_errmsg (db));
  return FALSE;
}

static gboolean
exec (sqlite3 *db, guint version, const char *sql, GError **error)
{
  return sqlite3_exec (db, sql, NULL, NULL, NULL) == SQLITE_OK || fail (db, version, error);
}

/* The views of today, as they are in the schema; temporary or not. */
static char *
make_views (gboolean temporary)
{
  GString *sql = g_string_new (NULL);
  for (const char *at = coop_sql_schema_now; (at = strstr (at, "CREATE VIEW ")) != NULL;)
    {
      const char *end = strchr (at, ';');
      const char *name = at + strlen ("CREATE VIEW ");
      if (!temporary)
        g_string_append_printf (sql, "DROP VIEW IF EXISTS %.*s;", (int) strcspn (name, " "), name);
      g_string_append (sql, temporary ? "CREATE TEMP VIEW " : "CREATE VIEW ");
      g_string_append_len (sql, name, end + 1 - name);
      at = end;
    }
  return g_string_free (sql, FALSE);
}

gboolean
coop_migrate_view (sqlite3 *db, guint version, GError **error)
{
  if (version == 0 || version >= COOP_SCHEMA_VERSION || versions[version].read == NULL)
    return fail (db, version, error);
  g_autofree char *views = make_views (TRUE);
  return exec (db, version, "PRAGMA temp_store = MEMORY", error) && exec (db, version, versions[version].read, error)
         && exec (db, version, views, error);
}

gboolean
coop_migrate_in_place (sqlite3 *db, guint version, GError **error)
{
  g_autofree char *views = make_views (FALSE);
  g_autofree char *stamp = g_strdup_printf ("PRAGMA user_version = %d", COOP_SCHEMA_VERSION);
  gboolean own = sqlite3_get_autocommit (db) != 0;
  gboolean ok = version > 0 && (!own || exec (db, version, "BEGIN IMMEDIATE", error));
  for (guint v = version; ok && v < COOP_SCHEMA_VERSION; v++)
    ok = exec (db, version, versions[v].migrate, error);
  ok = ok && exec (db, version, views, error) && exec (db, version, stamp, error);
  if (own && ok)
    ok = exec (db, version, "COMMIT", error);
  if (own && !ok)
    sqlite3_exec (db, "ROLLBACK", NULL, NULL, NULL);
  return ok;
}
