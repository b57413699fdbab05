/* SPDX-License-Identifier: Apache-2.0 */
/* Reader: in words, what a trace does not tell, and why it cannot be read. */
#include "trace/reader-private.h"

#include <stdio.h>
#include <string.h>

/* ---- damage ---- */

/* By its first page, how long the file should be; 0: it does not say. */
static guint64
length_of (const char *path, guint64 *there)
{
  guint8 head[32] = { 0 };
  FILE *file = fopen (path, "rb");
  gsize n = file != NULL ? fread (head, 1, sizeof head, file) : 0;
  if (file != NULL && fseek (file, 0, SEEK_END) == 0)
    *there = (guint64) ftell (file);
  if (file != NULL)
    fclose (file);
  guint64 page = (guint64) head[16] << 8 | head[17];
  return n == sizeof head ? (page == 1 ? 65536 : page) * ((guint64) head[28] << 24 | head[29] << 16 | head[30] << 8 | head[31]) : 0;
}

char *
coop_reader_failure (CoopReader *reader, int code)
{
  const char *said = sqlite3_errmsg (reader->db);
  guint64 there = 0, wanted;
  if ((code & 0xff) != SQLITE_CORRUPT && (code & 0xff) != SQLITE_NOTADB)
    return g_strdup (said);
  wanted = length_of (reader->path, &there);
  if (there < wanted)
    return g_strdup_printf ("the file is cut short: %" G_GUINT64_FORMAT " of %" G_GUINT64_FORMAT " bytes are there (%s)",
                            there, wanted, said);
  return g_strdup_printf ("the file is damaged (%s); `coop check` says where", said);
}

/* ---- what is missing ---- */

static void
caveat_clear (gpointer caveat)
{
  g_free (((CoopCaveat *) caveat)->text);
}

static void
add (GArray *out, const char *label, const char *format, ...) G_GNUC_PRINTF (3, 4);

static void
add (GArray *out, const char *label, const char *format, ...)
{
  va_list args;
  va_start (args, format);
  CoopCaveat caveat = { label, g_strdup_vprintf (format, args) };
  va_end (args);
  g_array_append_val (out, caveat);
}

static guint64
stat_of (CoopReader *reader, const char *name)
{
  g_autofree char *sql = g_strdup_printf ("SELECT value FROM stat WHERE name = '%s'", name);
  return (guint64) MAX (0, coop_reader_int (reader, sql, 0));
}

GArray *
coop_reader_caveats (CoopReader *reader)
{
  GArray *out = g_array_new (FALSE, FALSE, sizeof (CoopCaveat));
  guint64 lost = stat_of (reader, "lost_events"), trimmed = stat_of (reader, "trimmed_events");
  guint64 missing = stat_of (reader, "missing_events");
  CoopTraceDetail detail = coop_reader_detail (reader);
  g_autofree char *why = coop_reader_meta (reader, "trace_error"), *incomplete = coop_reader_meta (reader, "incomplete");
  g_array_set_clear_func (out, caveat_clear);
  if (lost > 0)
    add (out, "LOST", "%" G_GUINT64_FORMAT " %s could not be written: %s", lost, lost == 1 ? "event" : "events",
         why != NULL ? why : "unknown why");
  if (trimmed > 0)
    add (out, "TRIMMED", "the first %" G_GUINT64_FORMAT " events were given up to keep to --trace-limit; no program any more", trimmed);
  if (detail != COOP_DETAIL_FULL)
    add (out, "detail", "%s: %s", coop_detail_label (detail),
         detail == COOP_DETAIL_BLOCKS ? "no tensors, no operators" : "no blocks, no tensors, no operators");
  if (incomplete != NULL)
    add (out, "INCOMPLETE", "%s", g_strdelimit (incomplete, "\n", ';'));
  if (missing > 0)
    add (out, "MISSING", "%" G_GUINT64_FORMAT " %s dropped; figures may be wrong", missing, missing == 1 ? "event was" : "events were");
  return out;
}
