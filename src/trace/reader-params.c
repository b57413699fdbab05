/* SPDX-License-Identifier: Apache-2.0 */
/* Reader: the numbers of parameters, and of what they may be, as the file has them. */
#include "trace/reader-private.h"

#include <string.h>

#define MOST_PARAMS 256
#define MOST_VALUES 64

struct CoopParamMap {
  gint16 param[MOST_PARAMS];              /* -1: not known here */
  gint16 value[MOST_PARAMS][MOST_VALUES]; /* of an enumeration; -1: not known here */
  gboolean same;
};

static int
find_label (const char *const *labels, const char *text)
{
  for (int i = 0; labels != NULL && labels[i] != NULL; i++)
    if (strcmp (labels[i], text) == 0)
      return i;
  return -1;
}

static void
set_param (CoopParamMap *map, gint64 number, const char *name)
{
  if (number < 0 || number >= MOST_PARAMS || name == NULL)
    return;
  int here = coop_param_find (name);
  map->param[number] = (gint16) here;
  map->same &= here == number;
}

/* From what the file says; else from its policy events, whose rows have the names beside the numbers. */
static void
read_params (CoopParamMap *map, CoopReader *reader)
{
  g_autoptr (GByteArray) body = g_byte_array_new ();
  gboolean labelled = coop_reader_int (reader, "SELECT count(*) FROM enum_label WHERE enum = 'param'", 0) > 0;
  sqlite3_stmt *row = coop_reader_prepare (
    reader, labelled ? "SELECT value, label FROM enum_label WHERE enum = 'param'"
                     : "SELECT e.seq, e.ts, e.kind, e.thread, e.block, e.tensor, e.op, e.addr, e.bytes, e.rest, p.param"
                       " FROM policy_change p JOIN event e ON e.seq = p.event ORDER BY p.event LIMIT 256", NULL);
  while (row != NULL && coop_reader_step (reader, row, NULL))
    {
      CoopEvent ev;
      if (labelled)
        set_param (map, sqlite3_column_int64 (row, 0), (const char *) sqlite3_column_text (row, 1));
      else if (coop_reader_decode (row, &ev, body))
        set_param (map, ev.u.policy.param, (const char *) sqlite3_column_text (row, 10));
    }
  sqlite3_finalize (row);
}

static void
read_values (CoopParamMap *map, CoopReader *reader)
{
  sqlite3_stmt *row = coop_reader_prepare (reader, "SELECT value, label FROM enum_label WHERE enum = ?", NULL);
  for (guint number = 0; row != NULL && number < MOST_PARAMS; number++)
    {
      const CoopParamInfo *info = map->param[number] >= 0 ? &coop_param_info[map->param[number]] : NULL;
      if (info == NULL || info->type != COOP_TYPE_ENUM)
        continue;
      sqlite3_bind_text (row, 1, info->name, -1, SQLITE_STATIC);
      while (coop_reader_step (reader, row, NULL))
        {
          gint64 value = sqlite3_column_int64 (row, 0);
          const char *text = (const char *) sqlite3_column_text (row, 1);
          if (value < 0 || value >= MOST_VALUES || text == NULL)
            continue;
          map->value[number][value] = (gint16) find_label (info->labels, text);
          map->same &= map->value[number][value] == value;
        }
      sqlite3_reset (row);
    }
  sqlite3_finalize (row);
}

CoopParamMap *
coop_param_map_new (CoopReader *reader)
{
  CoopParamMap *map = g_new (CoopParamMap, 1);
  memset (map, 0xff, sizeof *map); /* all -1 */
  map->same = TRUE;
  read_params (map, reader);
  read_values (map, reader);
  if (!map->same)
    return map;
  g_free (map);
  return NULL;
}

void
coop_param_map_free (CoopParamMap *map)
{
  g_free (map);
}

gboolean
coop_param_map_value (const CoopParamMap *map, guint *param, gint64 *bits)
{
  int here = *param < MOST_PARAMS ? map->param[*param] : -1;
  if (here < 0)
    return FALSE;
  if (coop_param_info[here].type == COOP_TYPE_ENUM)
    *bits = *bits >= 0 && *bits < MOST_VALUES ? map->value[*param][*bits] : -1;
  *param = (guint) here;
  return TRUE;
}

void
coop_param_map_event (const CoopParamMap *map, CoopEvent *ev)
{
  guint param = ev->u.policy.param, again = param;
  gint64 old_bits = ev->u.policy.old_bits, new_bits = ev->u.policy.new_bits;
  if (!coop_param_map_value (map, &param, &new_bits))
    {
      /* Changes nothing that is known here. */
      ev->kind = COOP_EVENT_RESERVE;
      memset (&ev->u, 0, sizeof ev->u);
      return;
    }
  coop_param_map_value (map, &again, &old_bits);
  ev->u.policy.param = param;
  ev->u.policy.old_bits = old_bits;
  ev->u.policy.new_bits = new_bits;
}
