/* SPDX-License-Identifier: Apache-2.0 */
/* Toy: see the header. */
#include "config.h"

#include "toy.h"

#include <gio/gio.h>
#include <glib/gi18n.h>
#include <string.h>

#define MAX_INPUTS 16
#define MAX_BYTES (G_GUINT64_CONSTANT (1) << 40)
#define MAX_LINES 10000

CoopProgram *
coop_toy_new (void)
{
  return coop_program_new ("toy");
}

static gboolean
wrong (GError **error, const char *line)
{
  /* Translators: a line typed by hand */
  g_set_error (error, G_IO_ERROR, G_IO_ERROR_INVALID_ARGUMENT, _("“%s” is not understood."), line);
  return FALSE;
}

/* Tensor numbers begin at 1, slots at 0. */
static gboolean
read_slot (const CoopProgram *program, const char *word, guint32 *slot)
{
  char *end;
  guint64 n = g_ascii_strtoull (word, &end, 10);
  if (end == word || *end != '\0' || n == 0 || n > program->n_slots)
    return FALSE;
  *slot = (guint32) n - 1;
  return TRUE;
}

static gboolean
read_cost (const char *word, guint64 *ns)
{
  static const struct { const char *unit; double ns; } units[] = { { "us", 1e3 }, { "ms", 1e6 }, { "s", 1e9 } };
  char *end;
  double value = g_ascii_strtod (word, &end);
  for (gsize i = 0; i < G_N_ELEMENTS (units) && end != word; i++)
    if (g_str_equal (end, units[i].unit) && value >= 0 && value < 1e6)
      {
        *ns = (guint64) (value * units[i].ns);
        return TRUE;
      }
  return FALSE;
}

static gboolean
read_inputs (const CoopProgram *program, const char *list, CoopProgramOp *op)
{
  g_auto (GStrv) words = g_strsplit (list, ",", MAX_INPUTS + 1);
  guint n = g_strv_length (words);
  if (n == 0 || n > MAX_INPUTS)
    return FALSE;
  op->inputs = g_new0 (CoopProgramInput, n);
  op->n_inputs = n;
  for (guint i = 0; i < n; i++)
    if (!read_slot (program, words[i], &op->inputs[i].slot))
      return FALSE;
  return TRUE;
}

static void
add_line (CoopProgram *program, CoopProgramLine line)
{
  coop_program_add (program, &line);
}

static gboolean
add_tensor (CoopProgram *program, char **words, guint n, const char *text, GError **error)
{
  guint64 bytes, cost = 1000000;
  guint at = 2;
  gboolean right = n >= 2 && coop_size_parse (words[1], &bytes) == COOP_PARSE_OK && bytes > 0 && bytes <= MAX_BYTES;
  if (!right)
    return wrong (error, text);
  if (*words[0] == 'c')
    {
      if (n != 2)
        return wrong (error, text);
      add_line (program, (CoopProgramLine) { .kind = COOP_DO_CONST, .slot = program->n_slots++, .bytes = bytes,
                                             .tensor_kind = COOP_KIND_STATE });
      return TRUE;
    }
  CoopProgramOp *op = g_new0 (CoopProgramOp, 1);
  op->replayable = TRUE;
  op->phase = COOP_PHASE_FORWARD;
  op->op_class = *words[0] == 'A' ? COOP_CLASS_EXPENSIVE : COOP_CLASS_CHEAP;
  if (at < n && read_cost (words[at], &cost))
    at++;
  if (at + 2 == n && g_str_equal (words[at], "from") && read_inputs (program, words[at + 1], op))
    at += 2;
  if (at != n)
    {
      coop_program_op_free (op);
      return wrong (error, text);
    }
  op->name = coop_program_name (program, *words[0] == 'A' ? "expensive" : "cheap");
  op->cost = cost;
  op->n_outputs = 1;
  op->outputs = g_new0 (CoopProgramOutput, 1);
  op->outputs[0] = (CoopProgramOutput) { program->n_slots++, FALSE, bytes };
  add_line (program, (CoopProgramLine) { .kind = COOP_DO_OP, .op = op });
  return TRUE;
}

/* In place: a new version of the tensor at the address of the old one. */
static gboolean
add_write (CoopProgram *program, guint32 slot)
{
  CoopProgramOp *op = g_new0 (CoopProgramOp, 1);
  op->replayable = TRUE;
  op->phase = COOP_PHASE_FORWARD;
  op->op_class = COOP_CLASS_CHEAP;
  op->name = coop_program_name (program, "in place");
  op->cost = 1000000;
  op->n_inputs = 1;
  op->inputs = g_new0 (CoopProgramInput, 1);
  op->inputs[0] = (CoopProgramInput) { slot, COOP_USE_READ | COOP_USE_WRITE };
  add_line (program, (CoopProgramLine) { .kind = COOP_DO_OP, .op = op });
  return TRUE;
}

static gboolean
is_gone (const CoopProgram *program, guint32 slot)
{
  for (guint i = 0; i < program->lines->len; i++)
    {
      const CoopProgramLine *line = &g_array_index (program->lines, CoopProgramLine, i);
      if (line->kind == COOP_DO_RELEASE && line->slot == slot)
        return TRUE;
    }
  return FALSE;
}

static gboolean
add_command (CoopProgram *program, const char *text, GError **error)
{
  g_auto (GStrv) words = g_strsplit (text, " ", -1);
  guint n = 0;
  guint32 slot;
  for (char **word = words; *word; word++)
    if (**word)
      words[n++] = *word;
    else
      g_free (*word);
  words[n] = NULL;
  if (n == 0 || *words[0] == '#')
    return TRUE;
  if (strlen (words[0]) != 1 || program->lines->len >= MAX_LINES)
    return wrong (error, text);
  if (strchr ("aAc", *words[0]))
    return add_tensor (program, words, n, text, error);
  if (n != 2 || !strchr ("ufw", *words[0]) || !read_slot (program, words[1], &slot) || is_gone (program, slot))
    return wrong (error, text);
  if (*words[0] == 'w')
    return add_write (program, slot);
  add_line (program, (CoopProgramLine) { .kind = *words[0] == 'f' ? COOP_DO_RELEASE : COOP_DO_TOUCH, .slot = slot,
                                         .use = COOP_USE_READ });
  return TRUE;
}

gboolean
coop_toy_add (CoopProgram *program, const char *commands, GError **error)
{
  g_auto (GStrv) lines = g_strsplit_set (commands, "\n;", -1);
  for (char **line = lines; *line; line++)
    if (!add_command (program, g_strstrip (*line), error))
      return FALSE;
  return TRUE;
}

/* ---- playing ---- */

static void
apply (void *user, CoopEvent *ev, const void *body)
{
  coop_model_apply (user, ev, body, NULL);
}

void
coop_toy_policy_init (CoopPolicy *policy)
{
  coop_policy_init (policy);
  policy->v[COOP_PARAM_BUDGET].i = 8192;
  policy->v[COOP_PARAM_GROUPS].i = 1;
  policy->v[COOP_PARAM_DENSITY].d = 0;
  policy->v[COOP_PARAM_SMALL].i = 0;
  policy->v[COOP_PARAM_HOLD].i = 0;
  policy->v[COOP_PARAM_COMPACT].i = 0;
  policy->v[COOP_PARAM_DESCENT].i = 0;
  policy->v[COOP_PARAM_THRASH].i = 0;
}

void
coop_toy_play (const CoopProgram *program, const CoopPolicy *policy, CoopToyView *view)
{
  CoopPlayOptions options;
  CoopModel *model = coop_model_new ();
  coop_play_options_init (&options);
  options.policy = *policy;
  options.sink = (CoopSink) { apply, model };
  *view = (CoopToyView) { 0 };
  coop_play (program, &options, &view->outcome);
  view->frame = coop_frame_new (model, 1);
  coop_model_free (model);
}

void
coop_toy_view_clear (CoopToyView *view)
{
  g_clear_pointer (&view->frame, coop_frame_unref);
}
