/* SPDX-License-Identifier: Apache-2.0 */
/* Program: the structure, and which reader a file is for. */
#include "replay/program-private.h"

#include <glib/gstdio.h>
#include <stdio.h>
#include <string.h>

G_DEFINE_QUARK (coop-program-error-quark, coop_program_error)

CoopProgram *
coop_program_new (const char *name)
{
  CoopProgram *p = g_new0 (CoopProgram, 1);
  p->name = g_strdup (name);
  p->lines = g_array_new (FALSE, FALSE, sizeof (CoopProgramLine));
  p->names = g_ptr_array_new_with_free_func (g_free);
  p->name_index = g_hash_table_new (g_str_hash, g_str_equal);
  coop_policy_init (&p->policy);
  return p;
}

void
coop_program_op_free (CoopProgramOp *op)
{
  if (op == NULL)
    return;
  g_free (op->inputs);
  g_free (op->outputs);
  g_free (op->steps);
  g_free (op->again);
  g_free (op);
}

void
coop_program_free (CoopProgram *p)
{
  if (p == NULL)
    return;
  for (guint i = 0; i < p->lines->len; i++)
    coop_program_op_free (g_array_index (p->lines, CoopProgramLine, i).op);
  g_array_unref (p->lines);
  g_hash_table_unref (p->name_index);
  g_ptr_array_unref (p->names);
  g_free (p->name);
  g_free (p);
}

guint32
coop_program_name (CoopProgram *p, const char *name)
{
  gpointer found = NULL;
  if (g_hash_table_lookup_extended (p->name_index, name, NULL, &found))
    return GPOINTER_TO_UINT (found);
  char *copy = g_strdup (name);
  g_ptr_array_add (p->names, copy);
  g_hash_table_insert (p->name_index, copy, GUINT_TO_POINTER (p->names->len - 1));
  return p->names->len - 1;
}

void
coop_program_add (CoopProgram *p, const CoopProgramLine *line)
{
  g_array_append_val (p->lines, *line);
  if (line->kind == COOP_DO_CONST && p->ops == 0)
    p->constant += (line->bytes + 511) & ~(guint64) 511;
  if (line->kind != COOP_DO_OP)
    return;
  p->ops += !line->op->failed;
  p->total_ns += line->op->failed ? 0 : line->op->cost;
}

char *
coop_program_bare_name (const char *name)
{
  if (g_str_has_prefix (name, "aten::") || g_str_has_prefix (name, "aten."))
    name += name[4] == ':' ? 6 : 5;
  return g_strndup (name, strcspn (name, "."));
}

CoopOpClass
coop_program_class (const char *name)
{
  static const char *const parts[] = { "conv", "mm", "matmul", "linear", "attention", "lstm", "gru",
                                       "rnn", "bilinear", "einsum", "cdist", "svd", "linalg", "fft", "sort",
                                       "topk", "embedding_bag" };
  for (guint i = 0; i < G_N_ELEMENTS (parts); i++)
    if (strstr (name, parts[i]) != NULL)
      return COOP_CLASS_EXPENSIVE;
  return COOP_CLASS_CHEAP;
}

/* ---- lines ---- */

static gboolean
is_gzip (GBufferedInputStream *stream, GError **error)
{
  gsize n;
  if (g_buffered_input_stream_fill (stream, 2, NULL, error) < 0)
    return FALSE;
  const guint8 *head = g_buffered_input_stream_peek_buffer (stream, &n);
  return n >= 2 && head[0] == 0x1f && head[1] == 0x8b;
}

gboolean
coop_lines_open (CoopLines *lines, const char *path, GError **error)
{
  g_autoptr (GFile) file = g_file_new_for_path (path);
  g_autoptr (GError) inner = NULL;
  g_autoptr (GFileInputStream) raw = g_file_read (file, NULL, &inner);
  if (raw == NULL)
    {
      g_set_error (error, COOP_PROGRAM_ERROR, COOP_PROGRAM_ERROR_IO, "%s", inner->message);
      return FALSE;
    }
  g_autoptr (GInputStream) plain = g_buffered_input_stream_new (G_INPUT_STREAM (raw));
  if (is_gzip (G_BUFFERED_INPUT_STREAM (plain), &inner))
    {
      g_autoptr (GZlibDecompressor) gunzip = g_zlib_decompressor_new (G_ZLIB_COMPRESSOR_FORMAT_GZIP);
      GInputStream *unpacked = g_converter_input_stream_new (plain, G_CONVERTER (gunzip));
      g_object_unref (plain);
      plain = unpacked;
    }
  if (inner != NULL)
    {
      g_set_error (error, COOP_PROGRAM_ERROR, COOP_PROGRAM_ERROR_IO, "%s: %s", path, inner->message);
      return FALSE;
    }
  *lines = (CoopLines) { .stream = g_data_input_stream_new (plain), .path = g_strdup (path) };
  return TRUE;
}

char *
coop_lines_next (CoopLines *lines, gsize *length, GError **error)
{
  g_autoptr (GError) inner = NULL;
  char *text = g_data_input_stream_read_line (lines->stream, length, NULL, &inner);
  if (inner != NULL)
    coop_lines_damaged (lines, error, "cannot be read on: %s", inner->message);
  lines->number += text != NULL;
  return text;
}

void
coop_lines_close (CoopLines *lines)
{
  g_clear_object (&lines->stream);
  g_clear_pointer (&lines->path, g_free);
}

gboolean
coop_lines_damaged (const CoopLines *lines, GError **error, const char *format, ...)
{
  va_list args;
  va_start (args, format);
  g_autofree char *text = g_strdup_vprintf (format, args);
  va_end (args);
  g_set_error (error, COOP_PROGRAM_ERROR, COOP_PROGRAM_ERROR_DAMAGED, "%s:%" G_GUINT64_FORMAT ": %s",
               lines->path, lines->number, text);
  return FALSE;
}

/* ---- which reader ---- */

static gboolean
is_database (const char *path)
{
  char head[16] = "";
  FILE *file = fopen (path, "rb");
  gsize n = file != NULL ? fread (head, 1, sizeof head, file) : 0;
  if (file != NULL)
    fclose (file);
  return n == sizeof head && memcmp (head, "SQLite format 3", 16) == 0;
}

/* "unet" for ".../unet.jsonl.gz" */
static char *
name_of (const char *path)
{
  static const char *const ends[] = { ".gz", ".jsonl", ".json", ".log", ".coop" };
  char *name = g_path_get_basename (path);
  for (guint i = 0; i < G_N_ELEMENTS (ends); i++)
    if (g_str_has_suffix (name, ends[i]) && strlen (name) > strlen (ends[i]))
      name[strlen (name) - strlen (ends[i])] = 0;
  return name;
}

static gboolean
read_lines (CoopProgram *p, CoopLines *lines, CoopJson *json, GError **error)
{
  const char *why = NULL;
  gsize length = 0;
  g_autofree char *text = coop_lines_next (lines, &length, error);
  if (text == NULL)
    return error == NULL || *error != NULL ? FALSE : coop_lines_damaged (lines, error, "the file is empty");
  const CoopJsonValue *first = coop_json_parse (json, text, length, &why);
  if (first != NULL && coop_json_member (first, "INSTRUCTION") != NULL)
    return coop_program_read_dtr (p, lines, json, first, error);
  static const char *const keys[] = { "meta", "const", "op", "tmp" };
  for (guint i = 0; first != NULL && i < G_N_ELEMENTS (keys); i++)
    if (coop_json_member (first, keys[i]) != NULL)
      return coop_program_read_plain (p, lines, json, first, error);
  g_set_error (error, COOP_PROGRAM_ERROR, COOP_PROGRAM_ERROR_FOREIGN,
               "%s is neither a trace, nor a program in JSON lines, nor a log of DTR's simulator",
               lines->path);
  return FALSE;
}

CoopProgram *
coop_program_load (const char *path, GError **error)
{
  CoopLines lines = { 0 };
  g_autoptr (GError) inner = NULL;
  GStatBuf st;
  if (g_stat (path, &st) == 0 && !S_ISREG (st.st_mode) && !S_ISDIR (st.st_mode))
    { /* it is looked at twice */
      g_set_error (error, COOP_PROGRAM_ERROR, COOP_PROGRAM_ERROR_IO,
                   "%s is no regular file: what comes out of a pipe or a device has to be written to one first", path);
      return NULL;
    }
  if (is_database (path))
    return coop_program_from_trace (path, error);
  if (!coop_lines_open (&lines, path, error))
    return NULL;
  g_autofree char *name = name_of (path);
  CoopProgram *p = coop_program_new (name);
  CoopJson *json = coop_json_new ();
  gboolean ok = read_lines (p, &lines, json, &inner);
  if (ok && p->ops == 0)
    ok = coop_lines_damaged (&lines, &inner, "there is no operator in it");
  coop_json_free (json);
  coop_lines_close (&lines);
  if (!ok)
    {
      g_propagate_error (error, g_steal_pointer (&inner));
      g_clear_pointer (&p, coop_program_free);
    }
  return p;
}
