/* SPDX-License-Identifier: Apache-2.0 */
/* A trace file for tests; see the header. */
#include "made-trace.h"

#include <glib/gstdio.h>

#include "../support/gen-events.h"
#include "trace/store.h"

MadeTrace *
made_trace_new (guint n, guint64 budget)
{
  const char *const meta[] = { "command", "test", NULL };
  g_autoptr (GError) error = NULL;
  MadeTrace *trace = g_new0 (MadeTrace, 1);
  trace->path = g_strdup_printf ("%s/made-%d.coop", g_get_tmp_dir (), g_random_int ());
  trace->n = n;
  trace->ts = g_new (guint64, n);
  trace->kind = g_new (guint16, n);
  CoopStore *store = coop_store_create (trace->path, meta, &error);
  g_assert_no_error (error);
  CoopModel *model = coop_model_new ();
  CoopGen *gen = coop_gen_new (7, budget);
  for (guint i = 0; i < n; i++)
    {
      const void *body;
      CoopEvent ev = *coop_gen_next (gen, &body);
      g_assert_cmpuint (ev.seq, ==, i);
      trace->ts[i] = ev.ts;
      trace->kind[i] = ev.kind;
      g_assert_cmpint (coop_model_apply (model, &ev, body, NULL), ==, COOP_FAULT_NONE);
      coop_store_append (store, model, &ev, body);
    }
  coop_store_close (store, COOP_RUN_ENDED, 0, &error);
  g_assert_no_error (error);
  coop_gen_free (gen);
  coop_model_free (model);
  return trace;
}

void
made_trace_free (MadeTrace *trace)
{
  g_unlink (trace->path);
  g_free (trace->path);
  g_free (trace->ts);
  g_free (trace->kind);
  g_free (trace);
}

guint64
made_trace_event_at (const MadeTrace *trace, guint64 ts)
{
  guint64 found = 0;
  for (guint i = 0; i < trace->n; i++)
    if (trace->ts[i] <= ts)
      found = i;
  return found;
}

guint64
made_trace_next_eviction (const MadeTrace *trace, guint64 seq, gboolean back)
{
  for (gint64 i = (gint64) seq + (back ? -1 : 1); i >= 0 && i < trace->n; i += back ? -1 : 1)
    if (trace->kind[i] == COOP_EVENT_EVICT)
      return (guint64) i;
  return seq;
}
