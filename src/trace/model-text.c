/* SPDX-License-Identifier: Apache-2.0 */
/* Model, part 7: strings, frames and stacks, and events in words. */
#include "trace/model-private.h"

#include <string.h>

#define MAX_STACK_DEPTH 1000

static void
replace (CoopIdMap *map, guint64 id, gpointer value)
{
  if (id == 0)
    {
      g_free (value);
      return;
    }
  g_free (coop_id_map_get (map, id));
  coop_id_map_set (map, id, value);
}

void
coop_model_add_string (CoopModel *model, guint64 id, const char *text, gsize bytes)
{
  /* Valid for the model's life: the first text of a number stays. */
  if (id != 0 && coop_id_map_get (&model->strings, id) == NULL)
    coop_id_map_set (&model->strings, id, bytes > 0 ? g_utf8_make_valid (text, bytes) : g_strdup (""));
}

void
coop_model_add_frame (CoopModel *model, guint64 id, guint64 file, guint64 func, gint64 line)
{
  Frame *frame = g_new (Frame, 1);
  *frame = (Frame) { file, func, line };
  replace (&model->frames, id, frame);
}

/* As installed, or in its source tree; a folder of the user's may be called torch, too. */
static gboolean
is_torch (const char *file)
{
  for (const char *at = strstr (file, "/torch/"); at != NULL; at = strstr (at + 1, "/torch/"))
    {
      g_autofree char *above = g_strndup (file, (gsize) (at - file));
      if (g_str_has_suffix (above, "-packages") || g_str_has_suffix (above, "/pytorch"))
        return TRUE;
    }
  return FALSE;
}

/* A line that somebody wrote who is not PyTorch; stacks of others' files begin deep inside C++. */
static gboolean
is_script (const CoopModel *model, guint64 id)
{
  const Frame *frame = coop_id_map_get (&model->frames, id);
  const char *file = frame != NULL ? coop_model_string (model, frame->file) : NULL;
  return file != NULL && g_str_has_suffix (file, ".py") && !is_torch (file);
}

/* The innermost frame may name the module that was running: file "module", func its path. */
static const char *
module_of (const CoopModel *model, guint64 id)
{
  const Frame *frame = coop_id_map_get (&model->frames, id);
  const char *file = frame != NULL ? coop_model_string (model, frame->file) : NULL;
  return g_strcmp0 (file, "module") == 0 ? coop_model_string (model, frame->func) : NULL;
}

void
coop_model_add_stack (CoopModel *model, guint64 id, guint64 parent, guint64 frame)
{
  Stack *stack = g_new (Stack, 1);
  const Stack *caller = coop_id_map_get (&model->stacks, parent);
  gboolean nowhere = caller == NULL && module_of (model, frame) != NULL; /* a module has no line */
  *stack = (Stack) { parent, frame, nowhere ? 0 : frame };
  if (caller != NULL
      && (module_of (model, frame) != NULL || (!is_script (model, frame) && is_script (model, caller->shown))))
    stack->shown = caller->shown;
  replace (&model->stacks, id, stack);
}

static char *
frame_text (const CoopModel *model, guint64 id)
{
  const Frame *frame = id != 0 ? coop_id_map_get (&model->frames, id) : NULL;
  if (frame == NULL)
    return NULL;
  const char *file = coop_model_string (model, frame->file);
  const char *func = coop_model_string (model, frame->func);
  g_autofree char *base = g_path_get_basename (file != NULL ? file : "?");
  return func != NULL && *func != 0
           ? g_strdup_printf ("%s:%" G_GINT64_FORMAT " in %s", base, frame->line, func)
           : g_strdup_printf ("%s:%" G_GINT64_FORMAT, base, frame->line);
}

guint64
coop_model_shown (const CoopModel *model, guint64 stack_id)
{
  const Stack *stack = coop_id_map_get (&model->stacks, stack_id);
  return stack != NULL ? stack->shown : 0;
}

char *
coop_model_stack_text (const CoopModel *model, guint64 stack_id)
{
  const Stack *stack = coop_id_map_get (&model->stacks, stack_id);
  if (stack == NULL)
    return NULL;
  g_autofree char *line = frame_text (model, stack->shown);
  const char *module = module_of (model, stack->frame);
  if (line == NULL)
    return g_strdup (module);
  return module != NULL && stack->shown != stack->frame ? g_strdup_printf ("%s, %s", line, module)
                                                        : g_steal_pointer (&line);
}

/* ---- words ---- */

static void
add_size (GString *out, guint64 bytes)
{
  char text[32];
  coop_size_format (bytes, text, sizeof text);
  g_string_append (out, text);
}

/* The part of an operator's name that people say. */
static char *
short_name (const char *name)
{
  if (g_str_has_prefix (name, "aten::"))
    name += strlen ("aten::");
  else if (g_str_has_prefix (name, "aten."))
    name += strlen ("aten.");
  return g_str_has_suffix (name, ".default") ? g_strndup (name, strlen (name) - strlen (".default"))
                                             : g_strdup (name);
}

char *
coop_model_op_text (const CoopModel *model, guint64 id)
{
  const Op *op = coop_id_map_get (&model->ops, id);
  const char *name = op != NULL ? coop_model_string (model, op->name) : NULL;
  return name != NULL ? short_name (name) : NULL;
}

static char *
tensor_name (const CoopModel *model, guint64 id)
{
  const Tensor *tensor = coop_id_map_get (&model->tensors, id);
  if (tensor == NULL)
    return NULL;
  g_autofree char *name = coop_model_op_text (model, tensor->op_id);
  g_autofree char *line = tensor->op != NULL ? coop_model_stack_text (model, tensor->op->stack) : NULL;
  if (name != NULL && line != NULL)
    return g_strdup_printf ("%s, %s", name, line);
  return name != NULL ? g_steal_pointer (&name) : g_steal_pointer (&line);
}

char *
coop_model_name (const CoopModel *model, CoopNameKind kind, guint64 id)
{
  if (id == 0)
    return NULL;
  if (kind == COOP_NAME_LINE)
    return frame_text (model, id);
  if (kind == COOP_NAME_TENSOR)
    return tensor_name (model, id);
  const char *name = coop_model_string (model, id);
  return name != NULL ? short_name (name) : NULL;
}

/* "conv2d output", "state", "tensor 17": the most telling that is known. */
static void
add_tensor (const CoopModel *model, GString *out, guint64 id)
{
  const Tensor *tensor = coop_id_map_get (&model->tensors, id);
  g_autofree char *name = tensor != NULL ? coop_model_op_text (model, tensor->op_id) : NULL;
  if (tensor != NULL && tensor->kind == COOP_KIND_STATE)
    g_string_append (out, "state");
  else if (name != NULL)
    g_string_append_printf (out, "%s output", name);
  else
    g_string_append (out, id != 0 ? "tensor" : "block");
  if (id != 0)
    g_string_append_printf (out, " %" G_GUINT64_FORMAT, id);
}

static void
add_place (GString *out, guint64 bytes, guint64 addr)
{
  g_string_append_c (out, ' ');
  add_size (out, bytes);
  g_string_append_printf (out, " at %#" G_GINT64_MODIFIER "x", addr);
}

static void
describe_block (const CoopModel *model, GString *out, const CoopEvent *ev)
{
  g_autofree char *name = NULL;
  switch (ev->kind)
    {
    case COOP_EVENT_ALLOC:
      name = coop_model_op_text (model, ev->u.alloc.op);
      g_string_append (out, name != NULL ? name : "block");
      add_place (out, ev->u.alloc.bytes, ev->u.alloc.addr);
      break;
    case COOP_EVENT_MOVE:
      g_string_append (out, "block");
      add_place (out, ev->u.move.bytes, ev->u.move.from);
      g_string_append_printf (out, " to %#" G_GINT64_MODIFIER "x", ev->u.move.to);
      break;
    default: /* free, evict and hand-over have these fields in common */
      add_tensor (model, out, ev->u.free.tensor);
      add_place (out, ev->u.free.bytes, ev->u.free.addr);
    }
}

static void
describe_decision (const CoopModel *model, GString *out, const CoopEvent *ev, const void *body)
{
  if (ev->kind == COOP_EVENT_OOM)
    {
      add_size (out, ev->u.oom.asked);
      g_string_append (out, " asked, free ");
      add_size (out, ev->u.oom.free);
      g_string_append (out, ", largest hole ");
      add_size (out, ev->u.oom.largest);
      if (ev->u.oom.advice > 0)
        {
          g_string_append (out, "; would do: ");
          add_size (out, ev->u.oom.advice);
        }
      return;
    }
  CoopSearchBody search = { 0 };
  if (ev->more > 0)
    memcpy (&search, body, sizeof search);
  g_string_append (out, "for ");
  add_size (out, ev->u.search.need);
  if (ev->u.search.victims > 0)
    g_string_append_printf (out, ": %u of %u, cost %.4g", ev->u.search.victims, ev->u.search.visited,
                            search.cost);
  else
    g_string_append (out, ": nothing found");
}

static void
describe_policy (GString *out, const CoopEvent *ev)
{
  char from[64], to[64];
  CoopParam param = ev->u.policy.param;
  if (ev->u.policy.param >= COOP_N_PARAMS)
    return;
  coop_param_format (param, (CoopValue) { .i = ev->u.policy.old_bits }, from, sizeof from);
  coop_param_format (param, (CoopValue) { .i = ev->u.policy.new_bits }, to, sizeof to);
  g_string_append_printf (out, "%s %s to %s", coop_param_info[param].name, from, to);
  if (ev->u.policy.source < COOP_N_SOURCES)
    g_string_append_printf (out, " (%s)", coop_source_labels[ev->u.policy.source]);
}

static void
describe_op (const CoopModel *model, GString *out, const CoopEvent *ev)
{
  const char *full = ev->kind == COOP_EVENT_OP_BEGIN ? coop_model_string (model, ev->u.op_begin.name) : NULL;
  g_autofree char *name = full != NULL ? short_name (full) : coop_model_op_text (model, ev->u.op_begin.id);
  g_string_append_printf (out, "%s %" G_GUINT64_FORMAT, name != NULL ? name : "operator", ev->u.op_begin.id);
  if (ev->kind == COOP_EVENT_OP_BEGIN && ev->u.op_begin.replay_of != 0)
    g_string_append_printf (out, " again (%" G_GUINT64_FORMAT ")", ev->u.op_begin.replay_of);
  if (ev->kind == COOP_EVENT_OP_END)
    g_string_append_printf (out, "%s, %.3f ms", ev->u.op_end.failed ? " failed" : "",
                            (double) ev->u.op_end.duration / 1e6);
}

static void
describe_text (GString *out, const void *body, gsize bytes, guint more)
{
  g_autofree char *text = g_strndup (body, MIN (bytes, 64u * more));
  g_autofree char *valid = g_utf8_make_valid (text, -1);
  g_string_append (out, valid);
}

static void
describe_mark (const CoopModel *model, GString *out, const CoopEvent *ev, const void *body)
{
  const char *text;
  switch (ev->kind)
    {
    case COOP_EVENT_STEP:
      g_string_append_printf (out, "%" G_GUINT64_FORMAT, ev->u.step.step);
      break;
    case COOP_EVENT_PHASE:
      text = coop_phase_label (ev->u.phase.phase);
      g_string_append (out, text != NULL ? text : "?");
      break;
    case COOP_EVENT_ANNOTATION:
      text = coop_model_string (model, ev->u.annotation.string);
      g_string_append (out, text != NULL ? text : "?");
      break;
    case COOP_EVENT_STAT:
      text = coop_model_string (model, ev->u.stat.name);
      g_string_append_printf (out, "%s = %" G_GINT64_FORMAT, text != NULL ? text : "?", ev->u.stat.value);
      break;
    case COOP_EVENT_GAP:
      g_string_append_printf (out, "%" G_GUINT64_FORMAT " events are missing", ev->u.gap.missing);
      break;
    case COOP_EVENT_END:
      if (ev->u.end.exit_code != 0) /* 0: the process does not know its own */
        g_string_append_printf (out, "exit code %" G_GINT64_FORMAT, ev->u.end.exit_code);
      break;
    case COOP_EVENT_WARNING:
      describe_text (out, body, G_MAXUINT, ev->more);
      break;
    default: /* string, meta */
      describe_text (out, body, ev->kind == COOP_EVENT_STRING ? ev->u.string.bytes : ev->u.meta.key_bytes,
                     ev->more);
    }
}

static void
describe_tensor (const CoopModel *model, GString *out, const CoopEvent *ev)
{
  guint64 id = ev->u.word[0];
  if (ev->kind == COOP_EVENT_WRITE)
    id = ev->u.write.new_tensor;
  add_tensor (model, out, id);
  if (ev->kind == COOP_EVENT_TENSOR)
    {
      g_string_append_c (out, ' ');
      add_size (out, ev->u.tensor.bytes);
    }
  const char *why = NULL;
  if (ev->kind == COOP_EVENT_PIN || ev->kind == COOP_EVENT_ESCAPE)
    why = coop_pin_label (ev->u.pin.reason);
  else if (ev->kind == COOP_EVENT_RECLASSIFY)
    why = ev->u.reclassify.pin != COOP_PIN_NONE ? coop_pin_label (ev->u.reclassify.pin)
                                                : coop_kind_label (ev->u.reclassify.kind);
  if (why != NULL)
    g_string_append_printf (out, ": %s", why);
}

char *
coop_model_describe (const CoopModel *model, const CoopEvent *ev, const void *body)
{
  const char *label = coop_event_kind_label (ev->kind);
  GString *out = g_string_new (label != NULL ? label : "?");
  g_string_append_c (out, ' ');
  switch (ev->kind)
    {
    case COOP_EVENT_ALLOC:
    case COOP_EVENT_FREE:
    case COOP_EVENT_EVICT:
    case COOP_EVENT_HANDOVER:
    case COOP_EVENT_MOVE:
      describe_block (model, out, ev);
      break;
    case COOP_EVENT_SEARCH:
    case COOP_EVENT_OOM:
      describe_decision (model, out, ev, body);
      break;
    case COOP_EVENT_POLICY:
      describe_policy (out, ev);
      break;
    case COOP_EVENT_OP_BEGIN:
    case COOP_EVENT_OP_END:
      describe_op (model, out, ev);
      break;
    case COOP_EVENT_TENSOR:
    case COOP_EVENT_WRITE:
    case COOP_EVENT_RELEASE:
    case COOP_EVENT_PIN:
    case COOP_EVENT_UNPIN:
    case COOP_EVENT_ESCAPE:
    case COOP_EVENT_RECLASSIFY:
      describe_tensor (model, out, ev);
      break;
    case COOP_EVENT_STRING:
    case COOP_EVENT_META:
    case COOP_EVENT_STEP:
    case COOP_EVENT_PHASE:
    case COOP_EVENT_ANNOTATION:
    case COOP_EVENT_WARNING:
    case COOP_EVENT_GAP:
    case COOP_EVENT_STAT:
    case COOP_EVENT_END:
      describe_mark (model, out, ev, body);
      break;
    default:
      break;
    }
  if (out->str[out->len - 1] == ' ')
    g_string_truncate (out, out->len - 1);
  return g_string_free (out, FALSE);
}
