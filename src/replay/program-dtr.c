/* SPDX-License-Identifier: Apache-2.0 */
/* Program from a log of DTR's simulator (Kirisame et al., ICLR 2021): one object a line with a key
 * INSTRUCTION, numbers as strings.
 *
 * Here a name is a reference to a storage; views are more references and make no operator (their
 * small cost is dropped). MUTATE is an in-place write, as it was in the program that was logged; the
 * simulator itself models it as a copy. That what is still referenced at the end must be there, as the
 * simulator asks, is not modelled. */
#include "replay/program-private.h"

#include <stdarg.h>
#include <string.h>

typedef struct {
  guint32 slot;      /* COOP_NO_SLOT: no bytes */
  guint refs;
  gboolean constant;
} Storage;

typedef struct {
  CoopProgram *p;
  CoopLines *lines;
  CoopJson *json;
  GHashTable *names;       /* char * -> Storage * */
  GPtrArray *storages;
  GError **error;
  gboolean backward;
  /* an operator whose results are still to come */
  CoopProgramOp *op;
  GPtrArray *args, *results;   /* char * */
  Storage **bound;             /* of the results */
  guint n_results;             /* of which this many are known */
  guint64 memory;              /* of the result under way */
  gboolean have_memory;
  char *constant;              /* name whose MEMORY is to come */
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

static gboolean
number (const CoopJsonValue *line, const char *key, gint64 *out)
{
  const char *text = coop_json_text (line, key);
  char *end = NULL;
  if (text == NULL)
    {
      const CoopJsonValue *v = coop_json_member (line, key);
      *out = v != NULL ? (gint64) v->d : 0;
      return v != NULL && v->type == COOP_JSON_NUMBER;
    }
  *out = g_ascii_strtoll (text, &end, 10);
  return end != text && (*end == 0 || *end == '.');
}

static Storage *
storage_new (Reader *r, guint64 bytes, gboolean constant)
{
  Storage *s = g_new0 (Storage, 1);
  s->slot = bytes > 0 ? r->p->n_slots++ : COOP_NO_SLOT;
  s->constant = constant;
  g_ptr_array_add (r->storages, s);
  return s;
}

static void
drop_name (Reader *r, const char *name)
{
  Storage *s = g_hash_table_lookup (r->names, name);
  if (s == NULL)
    return;
  g_hash_table_remove (r->names, name);
  if (--s->refs > 0 || s->constant || s->slot == COOP_NO_SLOT)
    return;
  CoopProgramLine add = { .kind = COOP_DO_RELEASE, .slot = s->slot };
  coop_program_add (r->p, &add);
}

static void
bind (Reader *r, const char *name, Storage *s)
{
  s->refs++;
  drop_name (r, name);
  g_hash_table_insert (r->names, g_strdup (name), s);
}

/* ---- operators ---- */

static gboolean
read_names (Reader *r, const CoopJsonValue *line, const char *key, GPtrArray *out)
{
  const CoopJsonValue *list = coop_json_member (line, key);
  g_ptr_array_set_size (out, 0);
  if (list == NULL || list->type != COOP_JSON_ARRAY)
    return wrong (r, "%s is no list", key);
  const CoopJsonValue *v = coop_json_first (list);
  for (guint i = 0; i < list->n; i++, v = coop_json_next (v))
    if (v->type != COOP_JSON_STRING)
      return wrong (r, "%s holds something that is no name", key);
    else
      g_ptr_array_add (out, g_strdup (v->text));
  return TRUE;
}

static int
input_of (const CoopProgramOp *op, guint32 slot)
{
  for (guint i = 0; i < op->n_inputs; i++)
    if (op->inputs[i].slot == slot)
      return (int) i;
  return -1;
}

static gboolean
op_begins (Reader *r, const CoopJsonValue *line)
{
  const char *name = coop_json_text (line, "NAME");
  gint64 cost;
  if (name == NULL || !number (line, "TIME", &cost) || cost < 0 || cost > (gint64) COOP_MAX_COST)
    return wrong (r, "an operator without NAME or TIME");
  if (!read_names (r, line, "ARGS", r->args))
    return FALSE;
  CoopProgramOp *op = r->op = g_new0 (CoopProgramOp, 1);
  op->name = coop_program_name (r->p, name);
  op->cost = (guint64) cost;
  op->replayable = TRUE;
  op->op_class = (guint8) coop_program_class (name);
  r->backward |= strstr (name, "backward") != NULL;
  op->phase = r->backward ? COOP_PHASE_BACKWARD : COOP_PHASE_FORWARD;
  op->inputs = g_new0 (CoopProgramInput, r->args->len + 1);
  for (guint i = 0; i < r->args->len; i++)
    {
      const Storage *s = g_hash_table_lookup (r->names, r->args->pdata[i]);
      if (s == NULL)
        return wrong (r, "%s is not known here", (char *) r->args->pdata[i]);
      if (s->slot != COOP_NO_SLOT && input_of (op, s->slot) < 0)
        op->inputs[op->n_inputs++].slot = s->slot;
    }
  return TRUE;
}

/* A view alone is no operator. */
static void
op_ends (Reader *r, gboolean view)
{
  CoopProgramLine add = { .kind = COOP_DO_OP, .op = g_steal_pointer (&r->op) };
  if (view)
    coop_program_op_free (add.op);
  else
    coop_program_add (r->p, &add);
}

static gboolean
read_call (Reader *r, const CoopJsonValue *line)
{
  if (!op_begins (r, line) || !read_names (r, line, "RESULT", r->results))
    return FALSE;
  r->op->outputs = g_new0 (CoopProgramOutput, r->results->len + 1);
  r->bound = g_renew (Storage *, r->bound, r->results->len + 1);
  r->n_results = 0;
  r->have_memory = FALSE;
  if (r->results->len == 0)
    op_ends (r, FALSE);
  return TRUE;
}

static gboolean
read_mutate (Reader *r, const CoopJsonValue *line)
{
  const CoopJsonValue *list = coop_json_member (line, "MUTATE");
  if (!op_begins (r, line))
    return FALSE;
  if (list == NULL || list->type != COOP_JSON_ARRAY)
    return wrong (r, "MUTATE is no list");
  const CoopJsonValue *v = coop_json_first (list);
  for (guint i = 0; i < list->n; i++, v = coop_json_next (v))
    {
      if (v->type != COOP_JSON_NUMBER || !v->whole || v->u >= r->args->len)
        return wrong (r, "MUTATE holds something that is no argument");
      const Storage *s = g_hash_table_lookup (r->names, r->args->pdata[v->u]);
      if (s->slot == COOP_NO_SLOT)
        continue;
      r->op->inputs[input_of (r->op, s->slot)].use |= COOP_USE_WRITE;
      r->backward &= !s->constant;
    }
  op_ends (r, FALSE);
  return TRUE;
}

/* Names are bound when all results are known: an old meaning of one may be an argument. */
static void
results_done (Reader *r)
{
  op_ends (r, r->op->n_outputs == 0);
  for (guint i = 0; i < r->n_results; i++)
    {
      bind (r, r->results->pdata[i], r->bound[i]);
      r->bound[i]->refs--;
    }
}

static gboolean
read_alias (Reader *r, const CoopJsonValue *line)
{
  gint64 alias;
  if (r->op == NULL || !r->have_memory || !number (line, "ALIAS", &alias))
    return wrong (r, "ALIAS without a result");
  if (alias >= (gint64) r->args->len)
    return wrong (r, "ALIAS is no argument");
  CoopProgramOutput *o = &r->op->outputs[r->op->n_outputs];
  Storage *s;
  if (alias >= 0)
    s = g_hash_table_lookup (r->names, r->args->pdata[alias]);
  else
    {
      s = storage_new (r, r->memory, FALSE);
      if (s->slot != COOP_NO_SLOT)
        {
          *o = (CoopProgramOutput) { .slot = s->slot, .bytes = r->memory };
          r->op->n_outputs++;
        }
    }
  if (s == NULL)
    return wrong (r, "ALIAS names what is not known here");
  s->refs++;
  r->bound[r->n_results] = s;
  r->have_memory = FALSE;
  if (++r->n_results == r->results->len)
    results_done (r);
  return TRUE;
}

static gboolean
read_memory (Reader *r, const CoopJsonValue *line)
{
  gint64 bytes;
  if (!number (line, "MEMORY", &bytes) || bytes < 0 || bytes > (gint64) COOP_MAX_BYTES)
    return wrong (r, "MEMORY is no size");
  if (r->constant == NULL)
    {
      r->memory = (guint64) bytes;
      r->have_memory = TRUE;
      return r->op != NULL || wrong (r, "MEMORY without a result");
    }
  Storage *s = storage_new (r, (guint64) bytes, TRUE);
  CoopProgramLine add = { .kind = COOP_DO_CONST, .slot = s->slot, .bytes = (guint64) bytes,
                          .tensor_kind = COOP_KIND_STATE, .pin = COOP_PIN_CONSTANT };
  if (s->slot != COOP_NO_SLOT)
    coop_program_add (r->p, &add);
  bind (r, r->constant, s);
  g_clear_pointer (&r->constant, g_free);
  return TRUE;
}

static gboolean
read_copy (Reader *r, const CoopJsonValue *line)
{
  const char *to = coop_json_text (line, "DST"), *from = coop_json_text (line, "SRC");
  Storage *s = from != NULL ? g_hash_table_lookup (r->names, from) : NULL;
  if (to == NULL || s == NULL)
    return wrong (r, "a copy of what is not known here");
  bind (r, to, s);
  return TRUE;
}

static gboolean
read_line (Reader *r, const CoopJsonValue *line)
{
  const char *what = coop_json_text (line, "INSTRUCTION");
  if (what == NULL)
    return wrong (r, "a line without INSTRUCTION");
  gboolean result = g_str_equal (what, "MEMORY") || g_str_equal (what, "ALIAS");
  if (!result && (r->op != NULL || r->constant != NULL))
    return wrong (r, "MEMORY and ALIAS of what came before are missing");
  if (g_str_equal (what, "CALL"))
    return read_call (r, line);
  if (g_str_equal (what, "MUTATE"))
    return read_mutate (r, line);
  if (g_str_equal (what, "MEMORY"))
    return read_memory (r, line);
  if (g_str_equal (what, "ALIAS"))
    return read_alias (r, line);
  if (g_str_equal (what, "COPY") || g_str_equal (what, "COPY_FROM"))
    return read_copy (r, line);
  if (g_str_equal (what, "ANNOTATE"))
    return TRUE;
  const char *name = coop_json_text (line, "NAME");
  if (name == NULL)
    return wrong (r, "%s without NAME", what);
  if (g_str_equal (what, "RELEASE"))
    drop_name (r, name);
  else if (g_str_equal (what, "CONSTANT"))
    r->constant = g_strdup (name);
  else if (!g_str_equal (what, "PIN"))
    return wrong (r, "unknown instruction %s", what);
  return TRUE;
}

/* All before START is not part of the step. */
static gboolean
is_start (const CoopJsonValue *line)
{
  const char *what = coop_json_text (line, "INSTRUCTION"), *which = coop_json_text (line, "ANNOTATION");
  return what != NULL && which != NULL && g_str_equal (what, "ANNOTATE") && g_str_equal (which, "START");
}

static void
clear (Reader *r)
{
  coop_program_op_free (r->op);
  g_free (r->constant);
  g_free (r->bound);
  g_hash_table_unref (r->names);
  g_ptr_array_unref (r->storages);
  g_ptr_array_unref (r->args);
  g_ptr_array_unref (r->results);
}

/* What was read so far comes before START. */
static void
start_again (Reader *r)
{
  g_hash_table_remove_all (r->names);
  for (guint i = 0; i < r->p->lines->len; i++)
    coop_program_op_free (g_array_index (r->p->lines, CoopProgramLine, i).op);
  g_array_set_size (r->p->lines, 0);
  r->p->ops = r->p->total_ns = r->p->constant = 0;
  r->p->n_slots = 0;
  r->backward = FALSE;
}

gboolean
coop_program_read_dtr (CoopProgram *p, CoopLines *lines, CoopJson *json, const CoopJsonValue *first,
                       GError **error)
{
  g_autoptr (GError) inner = NULL;
  Reader r = { .p = p, .lines = lines, .json = json, .error = &inner };
  r.names = g_hash_table_new_full (g_str_hash, g_str_equal, g_free, NULL);
  r.storages = g_ptr_array_new_with_free_func (g_free);
  r.args = g_ptr_array_new_with_free_func (g_free);
  r.results = g_ptr_array_new_with_free_func (g_free);
  char *text = NULL;
  gboolean ok = read_line (&r, first);
  for (gsize length = 0; ok && (text = coop_lines_next (lines, &length, &inner)) != NULL; g_free (text))
    {
      const char *why = NULL;
      if (text[strspn (text, " \t\r")] == 0)
        continue;
      const CoopJsonValue *line = coop_json_parse (json, text, length, &why);
      if (line == NULL)
        ok = wrong (&r, "not JSON: %s", why);
      else if (is_start (line))
        start_again (&r);
      else
        ok = read_line (&r, line);
    }
  if (ok && inner == NULL && (r.op != NULL || r.constant != NULL))
    ok = wrong (&r, "the file is cut short");
  clear (&r);
  if (inner != NULL)
    g_propagate_error (error, g_steal_pointer (&inner));
  return ok && *error == NULL;
}
