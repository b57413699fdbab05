/* SPDX-License-Identifier: Apache-2.0 */
/* Store: values into statements, in order. */
#include "trace/store-private.h"

CoopBind
coop_bind (CoopStore *store, CoopStatement id)
{
  return (CoopBind) { store->statements[id], 0 };
}

void
coop_bind_int (CoopBind *bind, guint64 value)
{
  sqlite3_bind_int64 (bind->statement, ++bind->n, (gint64) value);
}

void
coop_bind_null (CoopBind *bind)
{
  sqlite3_bind_null (bind->statement, ++bind->n);
}

void
coop_bind_id (CoopBind *bind, guint64 value)
{
  if (value == 0)
    coop_bind_null (bind);
  else
    coop_bind_int (bind, value);
}

void
coop_bind_addr (CoopBind *bind, guint64 value)
{
  if (value == COOP_NO_ADDR)
    coop_bind_null (bind);
  else
    coop_bind_int (bind, value);
}

void
coop_bind_real (CoopBind *bind, double value)
{
  sqlite3_bind_double (bind->statement, ++bind->n, value); /* SQLite makes NULL of NaN */
}

void
coop_bind_text (CoopBind *bind, const char *text, gssize bytes)
{
  sqlite3_bind_text (bind->statement, ++bind->n, text, (int) bytes, SQLITE_STATIC);
}
