/* SPDX-License-Identifier: Apache-2.0 */
/* Chrome: the timeline in the trace event format (JSON object form), for chrome://tracing, Perfetto,
 * Speedscope and others. Times are microseconds with three decimals, so nothing is rounded. */
#include "export/timeline.h"

#include <math.h>

typedef struct {
  CoopOut *out;
  GString *line;
  guint64 pid;
  gboolean any;
} Writer;

static guint64
tid_of (const Writer *w, int track)
{
  return track >= 0 ? w->pid + (guint64) track : w->pid + 1000000 + (guint64) -track;
}

static void
begin (Writer *w, const char *ph, const CoopItem *item)
{
  g_string_assign (w->line, w->any ? ",\n{\"ph\":\"" : "{\"ph\":\"");
  w->any = TRUE;
  g_string_append_printf (w->line, "%s\",\"pid\":%" G_GUINT64_FORMAT ",\"ts\":%" G_GUINT64_FORMAT ".%03u", ph, w->pid,
                          item->ts / 1000, (guint) (item->ts % 1000));
  if (item->type != COOP_ITEM_COUNTER)
    g_string_append_printf (w->line, ",\"tid\":%" G_GUINT64_FORMAT, tid_of (w, item->track));
}

static void
put_text (Writer *w, const char *key, const char *text)
{
  g_string_append_printf (w->line, ",\"%s\":", key);
  coop_json_quote (w->line, text);
}

static void
end (Writer *w)
{
  g_string_append_c (w->line, '}');
  coop_out_write (w->out, w->line->str, w->line->len);
}

static void
put_args (Writer *w, const CoopItem *item)
{
  gboolean any = FALSE;
  if (item->n_args == 0 && item->file == NULL)
    return;
  g_string_append (w->line, ",\"args\":{");
  for (guint i = 0; i < item->n_args; i++, any = TRUE)
    {
      const CoopArg *arg = &item->args[i];
      g_string_append_printf (w->line, "%s\"%s\":", any ? "," : "", arg->name);
      if (arg->type == COOP_ARG_UINT)
        g_string_append_printf (w->line, "%" G_GUINT64_FORMAT, arg->number);
      else if (arg->type == COOP_ARG_REAL)
        coop_json_double (w->line, arg->real);
      else
        coop_json_quote (w->line, arg->text);
    }
  if (item->file != NULL)
    {
      g_autofree char *at = g_strdup_printf ("%s:%" G_GINT64_FORMAT "%s%s", item->file, item->line,
                                             item->func != NULL ? " in " : "", item->func != NULL ? item->func : "");
      g_string_append (w->line, any ? ",\"at\":" : "\"at\":");
      coop_json_quote (w->line, at);
    }
  g_string_append_c (w->line, '}');
}

static void
put_name (Writer *w, const char *what, const CoopItem *item, const char *name)
{
  begin (w, "M", item);
  put_text (w, "name", what);
  g_string_append (w->line, ",\"args\":{\"name\":");
  coop_json_quote (w->line, name);
  g_string_append_c (w->line, '}');
  end (w);
}

static gboolean
take_item (gpointer user, const CoopItem *item)
{
  static const char *const ph[] = { [COOP_ITEM_BEGIN] = "B", [COOP_ITEM_END] = "E", [COOP_ITEM_INSTANT] = "i",
                                    [COOP_ITEM_COUNTER] = "C" };
  Writer *w = user;
  if (item->type == COOP_ITEM_TRACK)
    {
      put_name (w, "thread_name", item, item->name);
      return coop_out_ok (w->out);
    }
  begin (w, ph[item->type], item);
  if (item->type == COOP_ITEM_COUNTER)
    {
      put_text (w, "name", coop_counter_label (item->counter));
      g_string_append_printf (w->line, ",\"args\":{\"bytes\":%" G_GUINT64_FORMAT "}", item->value);
    }
  else
    {
      if (item->name != NULL)
        put_text (w, "name", item->name);
      if (item->category != NULL)
        put_text (w, "cat", item->category);
      if (item->type == COOP_ITEM_INSTANT)
        put_text (w, "s", "t");
      put_args (w, item);
    }
  end (w);
  return coop_out_ok (w->out);
}

gboolean
coop_export_chrome (const CoopExportJob *job, CoopOut *out, GError **error)
{
  Writer w = { .out = out, .line = g_string_new (NULL) };
  g_autofree char *process = coop_timeline_process (job, &w.pid);
  coop_out_printf (out, "{\"displayTimeUnit\":\"ms\",\"otherData\":{\"start_unix_ns\":\"%" G_GUINT64_FORMAT "\"},\"traceEvents\":[\n",
                   coop_export_start (job->reader));
  put_name (&w, "process_name", &(CoopItem) { .track = 0 }, process);
  gboolean done = coop_timeline_walk (job, take_item, &w, error);
  coop_out_text (out, "\n]}\n");
  g_string_free (w.line, TRUE);
  return done;
}
