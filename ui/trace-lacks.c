/* SPDX-License-Identifier: Apache-2.0 */
/* Trace lacks: see the header. */
#include "config.h"

#include "trace-lacks.h"

#include <glib/gi18n.h>

#include "format.h"

static void
add (GString *all, const char *sentence)
{
  if (all->len > 0)
    g_string_append_c (all, ' ');
  g_string_append (all, sentence);
}

static void
add_detail (GString *all, CoopTraceDetail detail)
{
  if (detail == COOP_DETAIL_BLOCKS)
    add (all, _("Recorded without tensors and operators: blocks have no names."));
  else if (detail == COOP_DETAIL_SUMMARY)
    add (all, _("Recorded as a summary, without blocks: the map is empty."));
}

char *
coop_words_for_lacks (CoopReader *reader, const CoopTraceInfo *info)
{
  GString *all = g_string_new (NULL);
  g_autofree char *incomplete = coop_reader_meta (reader, "incomplete");
  guint64 seq, ts = 0;
  if (coop_reader_trimmed (reader, &seq, &ts))
    {
      g_autofree char *clock
          = ts < G_GUINT64_CONSTANT (60000000000) ? coop_format_ns (ts) : coop_format_clock (ts);
      g_autofree char *text = g_strdup_printf (
          /* Translators: a time of the run, like "1:05" or "3.2 s" */
          _("The beginning is missing: all before %s was given up to keep the file small."), clock);
      add (all, text);
    }
  add_detail (all, info->detail);
  if (info->state == COOP_RUN_INTERRUPTED)
    add (all, _("The recording was interrupted: what came last may be missing."));
  if (incomplete && *incomplete)
    {
      g_auto (GStrv) lines = g_strsplit (incomplete, "\n", -1);
      g_autofree char *joined = g_strjoinv ("; ", lines);
      /* Translators: what is missing, in English */
      g_autofree char *text = g_strdup_printf (_("The snapshot does not tell all: %s."), joined);
      add (all, text);
    }
  return g_string_free (all, all->len == 0);
}
