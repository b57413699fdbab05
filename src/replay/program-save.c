/* SPDX-License-Identifier: Apache-2.0 */
/* Program in JSON lines: writing. Ids are slots; what the plain format's defaults say is left out. */
#include "replay/program-private.h"

#include <string.h>

static void
add_text (GString *out, const char *text)
{
  g_string_append_c (out, '"');
  for (; *text != 0; text++)
    if (*text == '"' || *text == '\\')
      g_string_append_printf (out, "\\%c", *text);
    else if ((guchar) *text < 0x20)
      g_string_append_printf (out, "\\u%04x", (guchar) *text);
    else
      g_string_append_c (out, *text);
  g_string_append_c (out, '"');
}

static void
add_policy (GString *out, const CoopPolicy *policy)
{
  g_string_append (out, ",\"policy\":{");
  for (int i = 0; i < COOP_N_PARAMS; i++)
    {
      char text[64];
      coop_param_format ((CoopParam) i, policy->v[i], text, sizeof text);
      g_string_append_printf (out, "%s\"%s\":\"%s\"", i > 0 ? "," : "", coop_param_info[i].name, text);
    }
  g_string_append_c (out, '}');
}

static void
add_meta (GString *out, const CoopProgram *p)
{
  g_string_append (out, "{\"meta\":{\"name\":");
  add_text (out, p->name);
  g_string_append_printf (out, ",\"ops\":%" G_GUINT64_FORMAT ",\"total_ns\":%" G_GUINT64_FORMAT
                          ",\"const\":%" G_GUINT64_FORMAT, p->ops, p->total_ns, p->constant);
  if (p->stated_peak != 0)
    g_string_append_printf (out, ",\"peak\":%" G_GUINT64_FORMAT, p->stated_peak);
  if (p->capacity != 0)
    g_string_append_printf (out, ",\"capacity\":%" G_GUINT64_FORMAT, p->capacity);
  if (p->copy_rate > 0)
    {
      char text[G_ASCII_DTOSTR_BUF_SIZE];
      g_string_append_printf (out, ",\"machine\":{\"bandwidth\":%s,\"launch_ns\":%" G_GUINT64_FORMAT "}",
                              g_ascii_formatd (text, sizeof text, "%.17g", p->copy_rate * 2e9), p->launch_ns);
    }
  if (p->has_policy)
    add_policy (out, &p->policy);
  g_string_append (out, "}}");
}

/* Inputs that are used in this way; nothing if there are none, unless `always`. */
static void
add_inputs (GString *out, const char *key, const CoopProgramOp *op, guint32 use, gboolean always)
{
  guint n = 0;
  gsize begin = out->len;
  g_string_append_printf (out, ",\"%s\":[", key);
  for (guint i = 0; i < op->n_inputs; i++)
    if (use == 0 || (op->inputs[i].use & use))
      g_string_append_printf (out, "%s%u", n++ > 0 ? "," : "", op->inputs[i].slot);
  g_string_append_c (out, ']');
  if (n == 0 && !always)
    g_string_truncate (out, begin);
}

static void
add_outputs (GString *out, const CoopProgramOp *op)
{
  guint n = 0;
  g_string_append (out, ",\"out\":[");
  for (guint i = 0; i < op->n_outputs; i++)
    {
      const CoopProgramOutput *o = &op->outputs[i];
      if (o->slot == COOP_NO_SLOT)
        g_string_append_printf (out, "%snull", i > 0 ? "," : "");
      else
        g_string_append_printf (out, "%s[%u,%" G_GUINT64_FORMAT "]", i > 0 ? "," : "", o->slot, o->bytes);
      n += o->fixed;
    }
  g_string_append_c (out, ']');
  if (n == 0)
    return;
  g_string_append (out, ",\"fixed\":[");
  for (guint i = 0, k = 0; i < op->n_outputs; i++)
    if (op->outputs[i].fixed)
      g_string_append_printf (out, "%s%u", k++ > 0 ? "," : "", i);
  g_string_append_c (out, ']');
}

static void
add_steps (GString *out, const CoopProgramOp *op)
{
  static const char *const words[] = { "out", "tmp", "free", "rel" };
  guint n = 0;
  if (op->steps == NULL)
    return;
  g_string_append (out, ",\"do\":[");
  for (guint i = 0; i < op->n_steps; i++)
    {
      const CoopProgramStep *s = &op->steps[i];
      if (s->kind == COOP_STEP_RELEASE && s->index == COOP_NO_SLOT)
        continue;
      g_string_append_printf (out, "%s[\"%s\",%u", n++ > 0 ? "," : "", words[s->kind], s->index);
      if (s->kind == COOP_STEP_TMP)
        g_string_append_printf (out, ",%" G_GUINT64_FORMAT, s->bytes);
      g_string_append_c (out, ']');
    }
  g_string_append_c (out, ']');
}

static void
add_op (GString *out, const CoopProgram *p, const CoopProgramOp *op)
{
  const char *name = p->names->pdata[op->name];
  g_string_append (out, "{\"op\":");
  add_text (out, name);
  add_inputs (out, "in", op, 0, TRUE);
  add_outputs (out, op);
  add_inputs (out, "mut", op, COOP_USE_WRITE, TRUE);
  add_inputs (out, "scratch", op, COOP_USE_SCRATCH, FALSE);
  add_inputs (out, "state", op, COOP_USE_STATE, FALSE);
  add_inputs (out, "aside", op, COOP_USE_UNRECORDED, FALSE);
  g_string_append_printf (out, ",\"cost\":%" G_GUINT64_FORMAT, op->cost);
  g_string_append_printf (out, ",\"phase\":\"%s\"", coop_phase_label (op->phase));
  if (op->op_class != coop_program_class (name))
    g_string_append_printf (out, ",\"expensive\":%s", op->op_class == COOP_CLASS_EXPENSIVE ? "true" : "false");
  if (!op->replayable)
    g_string_append (out, ",\"noreplay\":true");
  if (op->failed)
    g_string_append (out, ",\"failed\":true");
  if (op->n_again > 0)
    g_string_append (out, ",\"again\":[");
  for (guint i = 0; i < op->n_again; i++)
    g_string_append_printf (out, "%" G_GUINT64_FORMAT "%s", op->again[i], i + 1 < op->n_again ? "," : "]");
  add_steps (out, op);
  g_string_append_c (out, '}');
}

static const char *
touch_word (guint32 use)
{
  if (use & COOP_USE_ESCAPE)
    return "escape";
  if (use & COOP_USE_KEEP)
    return "keep";
  return use & COOP_USE_STATE ? "state" : "brief";
}

/* FALSE: the line says nothing in a file. */
static gboolean
add_line (GString *out, const CoopProgram *p, const CoopProgramLine *line)
{
  char text[64];
  switch (line->kind)
    {
    case COOP_DO_CONST:
      g_string_append_printf (out, "{\"const\":[%u,%" G_GUINT64_FORMAT "]}", line->slot, line->bytes);
      return TRUE;
    case COOP_DO_OP:
      add_op (out, p, line->op);
      return TRUE;
    case COOP_DO_RELEASE:
      g_string_append_printf (out, "{\"rel\":%u%s}", line->slot, line->early ? ",\"early\":true" : "");
      return TRUE;
    case COOP_DO_TOUCH:
      if (line->slot == COOP_NO_SLOT)
        return FALSE;
      g_string_append_printf (out, "{\"touch\":[%u,\"%s\"]}", line->slot, touch_word (line->use));
      return TRUE;
    case COOP_DO_PIN:
      g_string_append_printf (out, "{\"pin\":[%u,\"%s\"]}", line->slot, coop_pin_label (line->pin));
      return TRUE;
    case COOP_DO_TMP:
      g_string_append_printf (out, "{\"tmp\":[%u,%" G_GUINT64_FORMAT "]}", line->block, line->bytes);
      return TRUE;
    case COOP_DO_FREE:
      g_string_append_printf (out, "{\"free\":%u%s}", line->block, line->early ? ",\"early\":true" : "");
      return TRUE;
    case COOP_DO_ADOPT:
      g_string_append_printf (out, "{\"adopt\":[%u,%u,%" G_GUINT64_FORMAT ",\"%s\",\"%s\"]}", line->slot,
                              line->block, line->bytes, coop_kind_label (line->tensor_kind),
                              coop_pin_label (line->pin));
      return TRUE;
    case COOP_DO_SET:
      coop_param_format ((CoopParam) line->param, line->value, text, sizeof text);
      g_string_append_printf (out, "{\"set\":[\"%s\",\"%s\",\"%s\"]}", coop_param_info[line->param].name,
                              text, coop_source_labels[line->source]);
      return TRUE;
    }
  return FALSE;
}

static gboolean
write_lines (const CoopProgram *p, GOutputStream *stream, GError **error)
{
  g_autoptr (GString) out = g_string_new (NULL);
  add_meta (out, p);
  g_string_append_c (out, '\n');
  for (guint i = 0; i < p->lines->len; i++)
    {
      if (add_line (out, p, &g_array_index (p->lines, CoopProgramLine, i)))
        g_string_append_c (out, '\n');
      if (out->len > 1 << 16 && !g_output_stream_write_all (stream, out->str, out->len, NULL, NULL, error))
        return FALSE;
      if (out->len > 1 << 16)
        g_string_truncate (out, 0);
    }
  return g_output_stream_write_all (stream, out->str, out->len, NULL, NULL, error)
         && g_output_stream_close (stream, NULL, error);
}

gboolean
coop_program_save (const CoopProgram *p, const char *path, GError **error)
{
  g_autoptr (GFile) file = g_file_new_for_path (path);
  g_autoptr (GError) inner = NULL;
  g_autoptr (GCancellable) give_up = g_cancellable_new ();
  g_autoptr (GOutputStream) stream = G_OUTPUT_STREAM (g_file_replace (file, NULL, FALSE, 0, NULL, &inner));
  gboolean ok = stream != NULL;
  if (ok && g_str_has_suffix (path, ".gz"))
    {
      g_autoptr (GZlibCompressor) gzip = g_zlib_compressor_new (G_ZLIB_COMPRESSOR_FORMAT_GZIP, -1);
      GOutputStream *packed = g_converter_output_stream_new (stream, G_CONVERTER (gzip));
      g_object_unref (stream);
      stream = packed;
    }
  ok = ok && write_lines (p, stream, &inner);
  if (!ok && stream != NULL)
    { /* a cancelled close leaves what was there before */
      g_cancellable_cancel (give_up);
      g_output_stream_close (stream, give_up, NULL);
    }
  if (!ok)
    g_set_error (error, COOP_PROGRAM_ERROR, COOP_PROGRAM_ERROR_IO, "%s: %s", path,
                 inner != NULL ? inner->message : "cannot be written");
  return ok;
}
