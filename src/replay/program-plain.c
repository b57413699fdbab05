/* SPDX-License-Identifier: Apache-2.0 */
/* Program in JSON lines: reading. What a line says is checked against the lines before it, so that a
 * program that was read can be run without a further question. */
#include "replay/program-private.h"

#include <stdarg.h>
#include <string.h>

/* What is known of an id. */
typedef struct {
  guint32 slot;
  gboolean constant, gone, empty;   /* empty: no bytes, so no part in anything */
} Id;

typedef struct {
  CoopProgram *p;
  CoopLines *lines;
  GHashTable *ids;      /* guint64 * -> Id * */
  GHashTable *blocks;   /* guint64 * -> guint32 + 1; a block that is no tensor */
  gboolean backward;    /* where lines do not say a phase */
  gboolean updating;
  GError **error;
} Reader;

static gboolean
wrong (Reader *r, const char *format, ...)
{
  va_list args;
  va_start (args, format);
  g_autofree char *text = g_strdup_vprintf (format, args);
  va_end (args);
  return coop_lines_damaged (r->lines, r->error, "%s", text);
}

/* ---- numbers of a list ---- */

static gboolean
list_is (const CoopJsonValue *v, guint n)
{
  return v != NULL && v->type == COOP_JSON_ARRAY && v->n == n;
}

static gboolean
whole_at (const CoopJsonValue *list, guint i, guint64 *out)
{
  const CoopJsonValue *v = coop_json_first (list);
  for (; i > 0; i--)
    v = coop_json_next (v);
  *out = v->u;
  return v->type == COOP_JSON_NUMBER && v->whole;
}

static const char *
text_at (const CoopJsonValue *list, guint i)
{
  const CoopJsonValue *v = coop_json_first (list);
  for (; i > 0; i--)
    v = coop_json_next (v);
  return v->type == COOP_JSON_STRING ? v->text : NULL;
}

static Id *
find (Reader *r, guint64 id)
{
  return g_hash_table_lookup (r->ids, &id);
}

static Id *
define (Reader *r, guint64 id, guint64 bytes, gboolean constant)
{
  Id *known = find (r, id);
  if (known != NULL && !known->gone)
    {
      wrong (r, "storage %" G_GUINT64_FORMAT " is there already", id);
      return NULL;
    }
  if (bytes > COOP_MAX_BYTES)
    {
      wrong (r, "storage %" G_GUINT64_FORMAT " has %" G_GUINT64_FORMAT " bytes", id, bytes);
      return NULL;
    }
  if (known == NULL)
    {
      known = g_new0 (Id, 1);
      g_hash_table_insert (r->ids, g_memdup2 (&id, sizeof id), known);
    }
  *known = (Id) { .slot = r->p->n_slots++, .constant = constant, .empty = bytes == 0 };
  return known;
}

static Id *
use (Reader *r, guint64 id)
{
  Id *known = find (r, id);
  if (known != NULL && !known->gone)
    return known;
  wrong (r, known == NULL ? "storage %" G_GUINT64_FORMAT " was never made"
                          : "storage %" G_GUINT64_FORMAT " was released before", id);
  return NULL;
}

/* ---- operators ---- */

static int
input_of (const CoopProgramOp *op, guint32 slot)
{
  for (guint i = 0; i < op->n_inputs; i++)
    if (op->inputs[i].slot == slot)
      return (int) i;
  return -1;
}

static gboolean
read_inputs (Reader *r, const CoopJsonValue *in, CoopProgramOp *op)
{
  op->inputs = g_new0 (CoopProgramInput, in->n + 1);
  for (guint i = 0; i < in->n; i++)
    {
      guint64 id;
      if (!whole_at (in, i, &id))
        return wrong (r, "\"in\" holds something that is no id");
      const Id *known = use (r, id);
      if (known == NULL)
        return FALSE;
      if (!known->empty && input_of (op, known->slot) < 0)
        op->inputs[op->n_inputs++].slot = known->slot;
    }
  return TRUE;
}

/* "mut", "scratch", ...: a part of the inputs that is used in a way. */
static gboolean
read_use (Reader *r, const CoopJsonValue *line, const char *key, guint32 how, CoopProgramOp *op)
{
  const CoopJsonValue *list = coop_json_member (line, key);
  if (list == NULL)
    return TRUE;
  if (list->type != COOP_JSON_ARRAY)
    return wrong (r, "\"%s\" is no list", key);
  for (guint i = 0; i < list->n; i++)
    {
      guint64 id;
      if (!whole_at (list, i, &id))
        return wrong (r, "\"%s\" holds something that is no id", key);
      const Id *known = use (r, id);
      int at = known != NULL ? input_of (op, known->slot) : -1;
      if (known == NULL)
        return FALSE;
      if (known->empty)
        continue;
      if (at < 0)
        return wrong (r, "\"%s\" names %" G_GUINT64_FORMAT ", which \"in\" does not", key, id);
      op->inputs[at].use |= how;
    }
  return TRUE;
}

/* An output of no bytes is given no block; it counts where others speak of outputs by number. */
static gboolean
read_outputs (Reader *r, const CoopJsonValue *out, CoopProgramOp *op)
{
  op->outputs = g_new0 (CoopProgramOutput, out->n + 1);
  const CoopJsonValue *pair = coop_json_first (out);
  for (guint i = 0; i < out->n; i++, pair = coop_json_next (pair))
    {
      CoopProgramOutput *o = &op->outputs[op->n_outputs++];
      guint64 id;
      *o = (CoopProgramOutput) { .slot = COOP_NO_SLOT };
      if (pair->type == COOP_JSON_NULL)
        continue;
      if (!list_is (pair, 2) || !whole_at (pair, 0, &id) || !whole_at (pair, 1, &o->bytes))
        return wrong (r, "\"out\" holds something that is no [id,bytes]");
      const Id *known = define (r, id, o->bytes, FALSE);
      if (known == NULL)
        return FALSE;
      if (!known->empty)
        o->slot = known->slot;
    }
  return TRUE;
}

static gboolean
read_fixed (Reader *r, const CoopJsonValue *line, CoopProgramOp *op)
{
  const CoopJsonValue *list = coop_json_member (line, "fixed");
  for (guint i = 0; list != NULL && i < list->n; i++)
    {
      guint64 n;
      if (list->type != COOP_JSON_ARRAY || !whole_at (list, i, &n) || n >= op->n_outputs)
        return wrong (r, "\"fixed\" holds something that is no number of an output");
      op->outputs[n].fixed = TRUE;
    }
  return TRUE;
}

static gboolean
read_again (Reader *r, const CoopJsonValue *line, CoopProgramOp *op)
{
  const CoopJsonValue *list = coop_json_member (line, "again");
  if (list == NULL)
    return TRUE;
  if (list->type != COOP_JSON_ARRAY)
    return wrong (r, "\"again\" is no list");
  op->again = g_new0 (guint64, list->n + 1);
  op->n_again = list->n;
  for (guint i = 0; i < list->n; i++)
    if (!whole_at (list, i, &op->again[i]) || op->again[i] > COOP_MAX_COST)
      return wrong (r, "\"again\" holds something that is no cost");
  return TRUE;
}

static gboolean
read_phase (Reader *r, const CoopJsonValue *line, CoopProgramOp *op)
{
  const char *text = coop_json_text (line, "phase");
  if (text == NULL)
    return TRUE;
  for (guint i = 0; i < COOP_N_PHASES; i++)
    if (g_str_equal (coop_phase_label (i), text))
      {
        op->phase = (guint8) i;
        return TRUE;
      }
  return wrong (r, "unknown phase \"%s\"", text);
}

/* Where the file does not say: forward until an operator is called ..backward.., then backward until a
 * constant is written. */
static void
guess_phase (Reader *r, const char *name, CoopProgramOp *op, gboolean writes_constant)
{
  if (writes_constant)
    {
      r->updating = r->updating || r->backward;
      r->backward = FALSE;
    }
  if (strstr (name, "backward") != NULL)
    {
      r->backward = TRUE;
      r->updating = FALSE;
    }
  op->phase = r->backward ? COOP_PHASE_BACKWARD : r->updating ? COOP_PHASE_OTHER : COOP_PHASE_FORWARD;
}

static gboolean
writes_constant (Reader *r, const CoopJsonValue *line)
{
  const CoopJsonValue *list = coop_json_member (line, "mut");
  for (guint i = 0; list != NULL && i < list->n; i++)
    {
      guint64 id;
      const Id *known = whole_at (list, i, &id) ? find (r, id) : NULL;
      if (known != NULL && known->constant)
        return TRUE;
    }
  return FALSE;
}

static gboolean
flag (const CoopJsonValue *line, const char *key)
{
  const CoopJsonValue *v = coop_json_member (line, key);
  return v != NULL && v->type == COOP_JSON_BOOL && v->u != 0;
}

static gboolean
release (Reader *r, guint64 id, guint32 *slot)
{
  Id *known = use (r, id);
  if (known == NULL)
    return FALSE;
  known->gone = TRUE;
  *slot = known->empty ? COOP_NO_SLOT : known->slot;
  return TRUE;
}

static gboolean
block_begins (Reader *r, guint64 block, guint32 *index)
{
  if (g_hash_table_contains (r->blocks, &block))
    return wrong (r, "block %" G_GUINT64_FORMAT " is there already", block);
  *index = r->p->n_blocks++;
  g_hash_table_insert (r->blocks, g_memdup2 (&block, sizeof block), GUINT_TO_POINTER (*index + 1));
  return TRUE;
}

static gboolean
block_ends (Reader *r, guint64 block, guint32 *index)
{
  gpointer found = g_hash_table_lookup (r->blocks, &block);
  if (found == NULL)
    return wrong (r, "block %" G_GUINT64_FORMAT " is not there", block);
  *index = GPOINTER_TO_UINT (found) - 1;
  g_hash_table_remove (r->blocks, &block);
  return TRUE;
}

static gboolean
read_step (Reader *r, const CoopJsonValue *item, CoopProgramOp *op, guint8 *made)
{
  guint64 a = 0, b = 0;
  const char *word = item->type == COOP_JSON_ARRAY && item->n >= 2 ? text_at (item, 0) : NULL;
  CoopProgramStep *step = &op->steps[op->n_steps];
  if (word == NULL || !whole_at (item, 1, &a) || (item->n > 2 && !whole_at (item, 2, &b)))
    return wrong (r, "\"do\" holds something that is no step");
  op->n_steps++;
  if (g_str_equal (word, "out") && a < op->n_outputs && op->outputs[a].slot != COOP_NO_SLOT && !made[a])
    {
      made[a] = 1;
      *step = (CoopProgramStep) { .kind = COOP_STEP_OUT, .index = (guint32) a };
      return TRUE;
    }
  if (g_str_equal (word, "tmp") && item->n == 3 && b > 0 && b <= COOP_MAX_BYTES)
    {
      *step = (CoopProgramStep) { .kind = COOP_STEP_TMP, .bytes = b };
      return block_begins (r, a, &step->index);
    }
  if (g_str_equal (word, "free"))
    {
      *step = (CoopProgramStep) { .kind = COOP_STEP_FREE };
      return block_ends (r, a, &step->index);
    }
  if (g_str_equal (word, "rel"))
    {
      *step = (CoopProgramStep) { .kind = COOP_STEP_RELEASE };
      return release (r, a, &step->index);
    }
  return wrong (r, "\"do\" holds a step \"%s\" that cannot be", word);
}

static gboolean
read_steps (Reader *r, const CoopJsonValue *line, CoopProgramOp *op)
{
  const CoopJsonValue *list = coop_json_member (line, "do");
  if (list == NULL)
    return TRUE;
  if (list->type != COOP_JSON_ARRAY)
    return wrong (r, "\"do\" is no list");
  g_autofree guint8 *made = g_new0 (guint8, op->n_outputs + 1);
  op->steps = g_new0 (CoopProgramStep, list->n + 1);
  const CoopJsonValue *item = coop_json_first (list);
  for (guint i = 0; i < list->n; i++, item = coop_json_next (item))
    if (!read_step (r, item, op, made))
      return FALSE;
  for (guint i = 0; i < op->n_outputs; i++)
    if (op->outputs[i].slot != COOP_NO_SLOT && !made[i])
      return wrong (r, "\"do\" does not make output %u", i);
  return TRUE;
}

static gboolean
fill_op (Reader *r, const CoopJsonValue *line, const char *name, CoopProgramOp *op)
{
  const CoopJsonValue *in = coop_json_member (line, "in"), *out = coop_json_member (line, "out");
  const CoopJsonValue *cost = coop_json_member (line, "cost");
  if (in == NULL || in->type != COOP_JSON_ARRAY || out == NULL || out->type != COOP_JSON_ARRAY)
    return wrong (r, "operator %s has no \"in\" or no \"out\"", name);
  if (cost == NULL || cost->type != COOP_JSON_NUMBER || cost->d < 0 || cost->d > (double) COOP_MAX_COST)
    return wrong (r, "operator %s has no \"cost\" that can be", name);
  op->name = coop_program_name (r->p, name);
  op->cost = cost->whole ? cost->u : (guint64) cost->d;
  op->op_class = (guint8) coop_program_class (name);
  if (coop_json_member (line, "expensive") != NULL)
    op->op_class = flag (line, "expensive") ? COOP_CLASS_EXPENSIVE : COOP_CLASS_CHEAP;
  op->replayable = !flag (line, "noreplay");
  op->failed = flag (line, "failed");
  guess_phase (r, name, op, writes_constant (r, line));
  return read_phase (r, line, op) && read_inputs (r, in, op)
         && read_use (r, line, "mut", COOP_USE_WRITE, op)
         && read_use (r, line, "scratch", COOP_USE_SCRATCH, op)
         && read_use (r, line, "state", COOP_USE_STATE, op)
         && read_use (r, line, "aside", COOP_USE_UNRECORDED, op) && read_outputs (r, out, op)
         && read_fixed (r, line, op) && read_again (r, line, op) && read_steps (r, line, op);
}

static gboolean
read_op (Reader *r, const CoopJsonValue *line, const CoopJsonValue *name)
{
  CoopProgramLine add = { .kind = COOP_DO_OP, .op = g_new0 (CoopProgramOp, 1) };
  if (name->type != COOP_JSON_STRING || name->text[0] == 0)
    wrong (r, "an operator without a name");
  else if (fill_op (r, line, name->text, add.op))
    {
      coop_program_add (r->p, &add);
      return TRUE;
    }
  coop_program_op_free (add.op);
  return FALSE;
}

/* ---- the other lines ---- */

static gboolean
read_const (Reader *r, const CoopJsonValue *line, const CoopJsonValue *v)
{
  CoopProgramLine add = { .kind = COOP_DO_CONST, .tensor_kind = COOP_KIND_STATE, .pin = COOP_PIN_CONSTANT };
  guint64 id;
  if (!list_is (v, 2) || !whole_at (v, 0, &id) || !whole_at (v, 1, &add.bytes))
    return wrong (r, "\"const\" is no [id,bytes]");
  const Id *known = define (r, id, add.bytes, TRUE);
  if (known == NULL)
    return FALSE;
  add.slot = known->slot;
  if (!known->empty)
    coop_program_add (r->p, &add);
  return TRUE;
}

/* Such lines follow their operator at once. */
static gboolean
is_early (Reader *r, const CoopJsonValue *line)
{
  guint n = r->p->lines->len;
  const CoopProgramLine *last = n > 0 ? &g_array_index (r->p->lines, CoopProgramLine, n - 1) : NULL;
  return flag (line, "early") && last != NULL && (last->kind == COOP_DO_OP || last->early);
}

static gboolean
read_release (Reader *r, const CoopJsonValue *line, const CoopJsonValue *v)
{
  CoopProgramLine add = { .kind = COOP_DO_RELEASE, .early = is_early (r, line) };
  if (v->type != COOP_JSON_NUMBER || !v->whole)
    return wrong (r, "\"rel\" is no id");
  if (!release (r, v->u, &add.slot))
    return FALSE;
  if (add.slot != COOP_NO_SLOT)
    coop_program_add (r->p, &add);
  return TRUE;
}

static gboolean
read_touch (Reader *r, const CoopJsonValue *line, const CoopJsonValue *v)
{
  static const char *const words[] = { "brief", "escape", "keep", "state" };
  static const guint32 uses[] = { 0, COOP_USE_ESCAPE, COOP_USE_KEEP, COOP_USE_STATE };
  CoopProgramLine add = { .kind = COOP_DO_TOUCH };
  guint64 id;
  if (!list_is (v, 2) || !whole_at (v, 0, &id) || text_at (v, 1) == NULL)
    return wrong (r, "\"touch\" is no [id,\"how\"]");
  const Id *known = use (r, id);
  if (known == NULL)
    return FALSE;
  add.slot = known->slot;
  for (guint i = 0; i < G_N_ELEMENTS (words); i++)
    if (g_str_equal (words[i], text_at (v, 1)))
      {
        add.use = uses[i];
        if (!known->empty)
          coop_program_add (r->p, &add);
        return TRUE;
      }
  return wrong (r, "unknown touch \"%s\"", text_at (v, 1));
}

static gboolean
read_tmp (Reader *r, const CoopJsonValue *line, const CoopJsonValue *v)
{
  CoopProgramLine add = { .kind = COOP_DO_TMP };
  guint64 block;
  if (!list_is (v, 2) || !whole_at (v, 0, &block) || !whole_at (v, 1, &add.bytes) || add.bytes == 0
      || add.bytes > COOP_MAX_BYTES)
    return wrong (r, "\"tmp\" is no [block,bytes]");
  if (!block_begins (r, block, &add.block))
    return FALSE;
  coop_program_add (r->p, &add);
  return TRUE;
}

static gboolean
read_free (Reader *r, const CoopJsonValue *line, const CoopJsonValue *v)
{
  CoopProgramLine add = { .kind = COOP_DO_FREE, .early = is_early (r, line) };
  if (v->type != COOP_JSON_NUMBER || !v->whole)
    return wrong (r, "\"free\" is no block");
  if (!block_ends (r, v->u, &add.block))
    return FALSE;
  coop_program_add (r->p, &add);
  return TRUE;
}

static int
label_value (const char *(*label) (unsigned), guint n, const char *text)
{
  for (guint i = 0; text != NULL && i < n; i++)
    if (label (i) != NULL && g_str_equal (label (i), text))
      return (int) i;
  return -1;
}

static gboolean
read_adopt (Reader *r, const CoopJsonValue *line, const CoopJsonValue *v)
{
  CoopProgramLine add = { .kind = COOP_DO_ADOPT };
  guint64 id, block;
  if (!list_is (v, 5) || !whole_at (v, 0, &id) || !whole_at (v, 1, &block) || !whole_at (v, 2, &add.bytes)
      || add.bytes == 0)
    return wrong (r, "\"adopt\" is no [id,block,bytes,\"kind\",\"pin\"]");
  int kind = label_value (coop_kind_label, COOP_N_KINDS, text_at (v, 3));
  int pin = label_value (coop_pin_label, COOP_N_PINS, text_at (v, 4));
  if (kind < 0 || pin <= COOP_PIN_OPERATOR)
    return wrong (r, "\"adopt\" names a kind or a pin that cannot be");
  const Id *known = define (r, id, add.bytes, TRUE);
  if (known == NULL || !block_ends (r, block, &add.block))
    return FALSE;
  add.slot = known->slot;
  add.tensor_kind = (guint8) kind;
  add.pin = (guint8) pin;
  coop_program_add (r->p, &add);
  return TRUE;
}

static gboolean
read_pin (Reader *r, const CoopJsonValue *line, const CoopJsonValue *v)
{
  CoopProgramLine add = { .kind = COOP_DO_PIN };
  guint64 id;
  int pin = list_is (v, 2) ? label_value (coop_pin_label, COOP_N_PINS, text_at (v, 1)) : -1;
  if (pin <= COOP_PIN_OPERATOR || !whole_at (v, 0, &id))
    return wrong (r, "\"pin\" is no [id,\"pin\"]");
  const Id *known = use (r, id);
  if (known == NULL)
    return FALSE;
  add.slot = known->slot;
  add.pin = (guint8) pin;
  if (!known->empty)
    coop_program_add (r->p, &add);
  return TRUE;
}

static gboolean
read_set (Reader *r, const CoopJsonValue *line, const CoopJsonValue *v)
{
  CoopProgramLine add = { .kind = COOP_DO_SET };
  if (!list_is (v, 3) || text_at (v, 0) == NULL || text_at (v, 1) == NULL || text_at (v, 2) == NULL)
    return wrong (r, "\"set\" is no [\"parameter\",\"value\",\"source\"]");
  int param = coop_param_find (text_at (v, 0));
  if (param < 0)
    return wrong (r, "unknown parameter \"%s\"", text_at (v, 0));
  add.param = (guint32) param;
  if (coop_param_parse ((CoopParam) param, text_at (v, 1), &add.value) != COOP_PARSE_OK)
    return wrong (r, "\"%s\" is no value of %s", text_at (v, 1), text_at (v, 0));
  for (add.source = 0; add.source < COOP_N_SOURCES; add.source++)
    if (g_str_equal (coop_source_labels[add.source], text_at (v, 2)))
      {
        coop_program_add (r->p, &add);
        return TRUE;
      }
  return wrong (r, "unknown source \"%s\"", text_at (v, 2));
}

static void
read_machine (CoopProgram *p, const CoopJsonValue *machine)
{
  const CoopJsonValue *rate = coop_json_member (machine, "bandwidth");
  if (rate == NULL || rate->type != COOP_JSON_NUMBER || !(rate->d > 0))
    return;
  p->copy_rate = rate->d / 2e9;
  coop_json_whole (machine, "launch_ns", &p->launch_ns);
  p->launch_ns = MIN (p->launch_ns, COOP_MAX_COST);
}

static gboolean
read_meta (Reader *r, const CoopJsonValue *line, const CoopJsonValue *v)
{
  const char *name = coop_json_text (v, "name");
  const CoopJsonValue *policy = coop_json_member (v, "policy");
  if (v->type != COOP_JSON_OBJECT)
    return wrong (r, "\"meta\" is no object");
  if (name != NULL && name[0] != 0)
    {
      g_free (r->p->name);
      r->p->name = g_strdup (name);
    }
  coop_json_whole (v, "peak", &r->p->stated_peak);
  coop_json_whole (v, "capacity", &r->p->capacity);
  if (coop_json_member (v, "machine") != NULL)
    read_machine (r->p, coop_json_member (v, "machine"));
  if (policy == NULL || policy->type != COOP_JSON_OBJECT)
    return TRUE;
  const CoopJsonValue *member = coop_json_first (policy);
  r->p->has_policy = TRUE;
  for (guint i = 0; i < policy->n; i++, member = coop_json_next (member))
    {
      int param = coop_param_find (member->key);
      if (param < 0 || member->type != COOP_JSON_STRING
          || coop_param_parse ((CoopParam) param, member->text, &r->p->policy.v[param]) != COOP_PARSE_OK)
        return wrong (r, "\"policy\" has a parameter %s that cannot be", member->key);
    }
  return TRUE;
}

static gboolean
read_line (Reader *r, const CoopJsonValue *line)
{
  static const struct {
    const char *key;
    gboolean (*read) (Reader *r, const CoopJsonValue *line, const CoopJsonValue *v);
  } kinds[] = { { "op", read_op }, { "rel", read_release }, { "const", read_const }, { "meta", read_meta },
                { "tmp", read_tmp }, { "free", read_free }, { "adopt", read_adopt },
                { "touch", read_touch }, { "pin", read_pin }, { "set", read_set } };
  for (guint i = 0; i < G_N_ELEMENTS (kinds); i++)
    {
      const CoopJsonValue *v = coop_json_member (line, kinds[i].key);
      if (v != NULL)
        return kinds[i].read (r, line, v);
    }
  return wrong (r, "a line that is neither meta, const, op nor rel");
}

gboolean
coop_program_read_plain (CoopProgram *p, CoopLines *lines, CoopJson *json, const CoopJsonValue *first,
                         GError **error)
{
  g_autoptr (GError) inner = NULL;
  Reader r = { .p = p, .lines = lines, .error = &inner };
  r.ids = g_hash_table_new_full (g_int64_hash, g_int64_equal, g_free, g_free);
  r.blocks = g_hash_table_new_full (g_int64_hash, g_int64_equal, g_free, NULL);
  char *text = NULL;
  gboolean ok = read_line (&r, first);
  for (gsize length = 0; ok && (text = coop_lines_next (lines, &length, &inner)) != NULL; g_free (text))
    {
      const char *why = NULL;
      if (text[strspn (text, " \t\r")] == 0)
        continue;
      const CoopJsonValue *line = coop_json_parse (json, text, length, &why);
      ok = line != NULL ? read_line (&r, line) : wrong (&r, "not JSON: %s", why);
    }
  g_hash_table_unref (r.ids);
  g_hash_table_unref (r.blocks);
  if (inner != NULL)
    g_propagate_error (error, g_steal_pointer (&inner));
  return ok && *error == NULL;
}
