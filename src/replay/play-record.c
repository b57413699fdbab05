/* SPDX-License-Identifier: Apache-2.0 */
/* Play into a trace: each event into the model, then into the store, as a collector does. */
#include "replay/play-record.h"

#include <stdio.h>

#include "trace/store.h"

typedef struct {
  CoopModel *model;
  CoopStore *store;
  guint64 faults;
  char *fault;      /* the first */
  CoopSink also;
} Recorder;

static void
apply (Recorder *r, const CoopEvent *ev, const void *body)
{
  g_autofree char *detail = NULL;
  CoopFault fault = coop_model_apply (r->model, ev, body, &detail);
  if (fault != COOP_FAULT_NONE && r->faults++ == 0)
    r->fault = g_steal_pointer (&detail);
  coop_store_append (r->store, r->model, ev, body);
}

static void
sink (void *user, CoopEvent *ev, const void *body)
{
  Recorder *r = user;
  apply (r, ev, body);
  if (r->also.emit != NULL)
    r->also.emit (r->also.user, ev, body);
}

static void
say_end (Recorder *r, const CoopPlayOutcome *out)
{
  CoopEvent ev = { .seq = out->events, .ts = out->cost_ns, .kind = COOP_EVENT_END };
  ev.u.end.exit_code = out->result == COOP_PLAY_OK ? 0 : 1;
  apply (r, &ev, NULL);
  coop_store_set_meta (r->store, "replay_result", coop_play_label (out->result));
  coop_store_set_stat (r->store, "replay_plain_ns", (gint64) out->plain_ns);
  coop_store_set_stat (r->store, "replay_cost_ns", (gint64) out->cost_ns);
}

static gboolean
close_store (Recorder *r, const CoopPlayOutcome *out, GError **error)
{
  const char *why = NULL;
  guint64 lost = coop_store_lost (r->store, &why);
  g_autofree char *reason = g_strdup (why);
  gboolean ok = coop_store_close (r->store, COOP_RUN_ENDED, out->result == COOP_PLAY_OK ? 0 : 1,
                                  lost == 0 ? error : NULL);
  if (lost > 0)
    g_set_error (error, COOP_TRACE_ERROR, COOP_TRACE_ERROR_IO, "%" G_GUINT64_FORMAT " events were not written: %s",
                 lost, reason != NULL ? reason : "unknown");
  else if (ok && r->faults > 0)
    g_set_error (error, COOP_TRACE_ERROR, COOP_TRACE_ERROR_IO,
                 "%" G_GUINT64_FORMAT " events do not fit what came before; the first: %s", r->faults,
                 r->fault != NULL ? r->fault : "no detail");
  return ok && lost == 0 && r->faults == 0;
}

gboolean
coop_play_record (const CoopProgram *program, const CoopPlayOptions *options, const char *path,
                  CoopPlayOutcome *out, GError **error)
{
  g_autofree char *command = g_strdup_printf ("coop replay %s", program->name);
  const char *meta[] = { "clock", "virtual", "command", command, "program", program->name, NULL };
  Recorder r = { .store = coop_store_create (path, meta, error) };
  if (r.store == NULL)
    return FALSE;
  CoopPlayOptions with = *options;
  coop_store_set_wall (r.store, 0, 0);   /* when it was played is no part of it: traces are identical */
  r.model = coop_model_new ();
  r.also = options->sink;
  with.sink = (CoopSink) { sink, &r };
  coop_play (program, &with, out);
  say_end (&r, out);
  gboolean ok = close_store (&r, out, error);
  coop_model_free (r.model);
  g_free (r.fault);
  return ok;
}
