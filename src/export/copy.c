/* SPDX-License-Identifier: Apache-2.0 */
/* Copy: the trace as a trace, recorded anew from its events: the way to give one to strangers, with
 * --anonymise, and to finish one that was interrupted. The rows of the tables follow from the events. */
#include "export/export-private.h"

#include <errno.h>
#include <glib/gstdio.h>
#include <string.h>

typedef struct {
  const CoopExportJob *job;
  CoopStore *store;
  CoopModel *model;
  GByteArray *body;
  gboolean stopped;
} Copy;

/* The body becomes these texts, one behind the other, in whole records. */
static void
set_body (Copy *c, CoopEvent *ev, const char *a, const char *b)
{
  static const guint8 zeros[COOP_RECORD_BYTES];
  g_byte_array_set_size (c->body, 0);
  g_byte_array_append (c->body, (const guint8 *) a, (guint) strlen (a));
  if (b != NULL)
    g_byte_array_append (c->body, (const guint8 *) b, (guint) strlen (b));
  guint over = c->body->len % COOP_RECORD_BYTES;
  if (over > 0)
    g_byte_array_append (c->body, zeros, COOP_RECORD_BYTES - over);
  ev->more = (guint16) MIN (c->body->len / COOP_RECORD_BYTES, G_MAXUINT16);
}

/* Texts are where paths and names are; all other events have none. */
static const void *
hide (Copy *c, CoopEvent *ev, const void *body)
{
  CoopAnonymiser *a = c->job->anonymiser;
  gsize room = (gsize) ev->more * COOP_RECORD_BYTES;
  g_autofree char *first = NULL, *second = NULL;
  const char *text;
  switch (ev->kind)
    {
    case COOP_EVENT_STRING:
    case COOP_EVENT_WARNING:
      first = g_strndup (body, ev->kind == COOP_EVENT_STRING ? MIN (ev->u.string.bytes, room) : room);
      text = coop_anonymise_text (a, first);
      set_body (c, ev, text, NULL);
      if (ev->kind == COOP_EVENT_STRING)
        ev->u.string.bytes = strlen (text);
      return c->body->data;
    case COOP_EVENT_META:
      if (ev->u.meta.key_bytes > room || ev->u.meta.value_bytes > room - ev->u.meta.key_bytes)
        return body;
      first = g_strndup (body, ev->u.meta.key_bytes);
      second = g_strndup ((const char *) body + ev->u.meta.key_bytes, ev->u.meta.value_bytes);
      text = coop_anonymise_meta (a, first, second);
      set_body (c, ev, first, text);
      ev->u.meta.key_bytes = strlen (first);
      ev->u.meta.value_bytes = strlen (text);
      return c->body->data;
    default:
      return body;
    }
}

static gboolean
take_event (gpointer user, const CoopEvent *ev, const void *body)
{
  Copy *c = user;
  CoopEvent own = *ev;
  const int *stop = c->job->options->stop;
  if (c->job->anonymiser != NULL && ev->more > 0)
    body = hide (c, &own, body);
  coop_model_apply (c->model, &own, body, NULL);
  coop_store_append (c->store, c->model, &own, body);
  c->stopped = stop != NULL && g_atomic_int_get (stop) != 0;
  return !c->stopped && coop_store_lost (c->store, NULL) == 0;
}

static gboolean
take_meta (gpointer user, int n, const char *const *names, const char *const *values, const int *types)
{
  Copy *c = user;
  coop_store_set_meta (c->store, values[0], coop_anonymise_meta (c->job->anonymiser, values[0], values[1]));
  return TRUE;
}

static gboolean
take_stat (gpointer user, int n, const char *const *names, const char *const *values, const int *types)
{
  coop_store_set_stat (((Copy *) user)->store, values[0], g_ascii_strtoll (values[1], NULL, 10));
  return TRUE;
}

static gboolean
copy_all (Copy *c, GError **error)
{
  CoopReader *reader = c->job->reader;
  CoopTraceInfo info;
  const char *why = NULL;
  if (!coop_reader_info (reader, &info, error))
    return FALSE;
  gboolean done = coop_reader_events (reader, 0, take_event, c, error) >= 0
                  && coop_reader_query (reader, "SELECT key, value FROM meta", COOP_QUERY_SECONDS, take_meta, c, error)
                  && coop_reader_query (reader, "SELECT name, value FROM stat WHERE typeof (value) = 'integer'", COOP_QUERY_SECONDS,
                                        take_stat, c, error);
  coop_store_set_wall (c->store, (gint64) info.start_ns, (gint64) info.end_ns);
  CoopRunState state = info.state == COOP_RUN_RUNNING ? COOP_RUN_INTERRUPTED : info.state;
  if (done && c->stopped)
    g_set_error_literal (error, G_IO_ERROR, G_IO_ERROR_CANCELLED, "given up");
  else if (done && coop_store_lost (c->store, &why) > 0)
    g_set_error (error, G_IO_ERROR, G_IO_ERROR_FAILED, "%s: %s", c->job->to, why);
  done = coop_store_close (c->store, state, info.exit_code, done && (error == NULL || *error == NULL) ? error : NULL) && done
         && (error == NULL || *error == NULL);
  coop_trace_info_clear (&info);
  return done;
}

gboolean
coop_export_copy (const CoopExportJob *job, GError **error)
{
  guint64 base;
  CoopTraceDetail detail = coop_reader_detail (job->reader);
  if (coop_reader_trimmed (job->reader, &base, NULL) || detail != COOP_DETAIL_FULL)
    {
      g_set_error (error, G_IO_ERROR, G_IO_ERROR_NOT_SUPPORTED, "%s has not all of its events, and cannot be recorded again", job->from);
      return FALSE;
    }
  g_autofree char *part = g_strdup_printf ("%s.part-%u.coop", job->to, g_random_int ());
  Copy c = { .job = job };
  if (!job->options->replace && g_file_test (job->to, G_FILE_TEST_EXISTS))
    {
      g_set_error (error, G_IO_ERROR, G_IO_ERROR_EXISTS, "%s is there already", job->to);
      return FALSE;
    }
  c.store = coop_store_create (part, NULL, error);
  if (c.store == NULL)
    return FALSE;
  c.model = coop_model_new ();
  c.body = g_byte_array_new ();
  gboolean done = copy_all (&c, error);
  if (done && g_rename (part, job->to) != 0)
    {
      g_set_error (error, G_IO_ERROR, g_io_error_from_errno (errno), "%s: %s", job->to, g_strerror (errno));
      done = FALSE;
    }
  if (!done)
    g_unlink (part);
  g_byte_array_unref (c.body);
  coop_model_free (c.model);
  return done;
}
