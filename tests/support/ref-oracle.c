/* SPDX-License-Identifier: Apache-2.0 */
#include "ref-oracle.h"

#include <gio/gio.h>
#include <stdlib.h>
#include <string.h>

typedef enum { LINE_CONST, LINE_OP, LINE_REL } LineKind;

typedef struct
{
  LineKind kind;
  uint64_t name, cost;       /* name: interned, from 1 */
  bool expensive, backward;
  GArray *in, *mut, *out, *out_bytes; /* of uint64_t */
} Line;

struct RefRecording
{
  GPtrArray *lines;
  GHashTable *names;
  uint64_t peak, total, most_id; /* total: cost of all operators */
};

/* ---- reading ------------------------------------------------------------------------------ */

static void
line_free (void *data)
{
  Line *line = data;
  g_array_unref (line->in);
  g_array_unref (line->mut);
  g_array_unref (line->out);
  g_array_unref (line->out_bytes);
  g_free (line);
}

static const char *
after_key (const char *text, const char *key)
{
  const char *found = strstr (text, key);
  return found != NULL ? found + strlen (key) : NULL;
}

/* Numbers of the (possibly nested) list that begins at text, in order. */
static void
read_list (const char *text, GArray *out)
{
  int depth = 0;
  for (const char *p = text; p != NULL && *p; p++)
    {
      depth += *p == '[';
      depth -= *p == ']';
      if (depth == 0)
        return;
      if (g_ascii_isdigit (*p))
        {
          char *end;
          uint64_t value = g_ascii_strtoull (p, &end, 10);
          g_array_append_val (out, value);
          p = end - 1;
        }
    }
}

static uint64_t
intern (RefRecording *r, const char *name, size_t length)
{
  char *copy = g_strndup (name, length);
  gpointer id = g_hash_table_lookup (r->names, copy);
  if (id == NULL)
    {
      id = GUINT_TO_POINTER (g_hash_table_size (r->names) + 1);
      g_hash_table_insert (r->names, g_strdup (copy), id);
    }
  g_free (copy);
  return GPOINTER_TO_UINT (id);
}

static void
read_pairs (const char *text, Line *line)
{
  GArray *flat = g_array_new (FALSE, FALSE, sizeof (uint64_t));
  read_list (text, flat);
  for (guint i = 0; i + 1 < flat->len; i += 2)
    {
      g_array_append_val (line->out, g_array_index (flat, uint64_t, i));
      g_array_append_val (line->out_bytes, g_array_index (flat, uint64_t, i + 1));
    }
  g_array_unref (flat);
}

static void
read_op (RefRecording *r, const char *name, const char *text, Line *line)
{
  const char *end = strchr (name, '"');
  line->kind = LINE_OP;
  line->name = intern (r, name, (size_t) (end - name));
  line->expensive = strstr (name, "conv") != NULL && strstr (name, "conv") < end;
  line->expensive |= strstr (name, "mm") != NULL && strstr (name, "mm") < end;
  line->backward = strstr (name, "backward") != NULL && strstr (name, "backward") < end;
  read_list (after_key (text, "\"in\":"), line->in);
  read_list (after_key (text, "\"mut\":"), line->mut);
  read_pairs (after_key (text, "\"out\":"), line);
  const char *cost = after_key (text, "\"cost\":");
  line->cost = cost != NULL ? g_ascii_strtoull (cost + (*cost == ' '), NULL, 10) : 0;
}

static void
read_line (RefRecording *r, const char *text)
{
  const char *value;
  Line *line = g_new0 (Line, 1);
  line->in = g_array_new (FALSE, FALSE, sizeof (uint64_t));
  line->mut = g_array_new (FALSE, FALSE, sizeof (uint64_t));
  line->out = g_array_new (FALSE, FALSE, sizeof (uint64_t));
  line->out_bytes = g_array_new (FALSE, FALSE, sizeof (uint64_t));
  if ((value = after_key (text, "\"meta\":")) != NULL)
    {
      value = after_key (value, "\"peak\":");
      r->peak = g_ascii_strtoull (value, NULL, 10);
      line_free (line);
      return;
    }
  if ((value = after_key (text, "\"const\":")) != NULL)
    {
      line->kind = LINE_CONST;
      read_pairs (value, line);
    }
  else if ((value = after_key (text, "\"rel\":")) != NULL)
    {
      uint64_t id = g_ascii_strtoull (value, NULL, 10);
      line->kind = LINE_REL;
      g_array_append_val (line->in, id);
    }
  else if ((value = after_key (text, "\"op\":\"")) != NULL)
    read_op (r, value, text, line);
  r->total += line->cost;
  for (guint i = 0; i < line->out->len; i++)
    r->most_id = MAX (r->most_id, g_array_index (line->out, uint64_t, i));
  g_ptr_array_add (r->lines, line);
}

/* Drops spaces outside names, so keys can be found as they are written. */
static void
squeeze (char *text)
{
  char *to = text;
  for (const char *from = text; *from; from++)
    if (*from != ' ')
      *to++ = *from;
  *to = '\0';
}

RefRecording *
ref_recording_load (const char *path)
{
  GError *error = NULL;
  RefRecording *r = g_new0 (RefRecording, 1);
  GFile *file = g_file_new_for_path (path);
  GFileInputStream *raw = g_file_read (file, NULL, &error);
  g_assert_no_error (error);
  GConverter *gunzip = G_CONVERTER (g_zlib_decompressor_new (G_ZLIB_COMPRESSOR_FORMAT_GZIP));
  GInputStream *plain = g_converter_input_stream_new (G_INPUT_STREAM (raw), gunzip);
  GDataInputStream *lines = g_data_input_stream_new (plain);
  char *text;
  r->lines = g_ptr_array_new_with_free_func (line_free);
  r->names = g_hash_table_new_full (g_str_hash, g_str_equal, g_free, NULL);
  while ((text = g_data_input_stream_read_line (lines, NULL, NULL, &error)) != NULL)
    {
      squeeze (text);
      read_line (r, text);
      g_free (text);
    }
  g_assert_no_error (error);
  g_object_unref (lines);
  g_object_unref (plain);
  g_object_unref (gunzip);
  g_object_unref (raw);
  g_object_unref (file);
  return r;
}

void
ref_recording_free (RefRecording *r)
{
  g_ptr_array_unref (r->lines);
  g_hash_table_unref (r->names);
  g_free (r);
}

uint64_t
ref_recording_peak (const RefRecording *r)
{
  return r->peak;
}

/* ---- running ------------------------------------------------------------------------------ */

typedef struct
{
  CoopEngine *engine;
  CoopTensor **tensor;  /* by id: newest version */
  uint64_t cost, plain; /* so far: with replays, without */
  uint64_t most;        /* cost at which it gives up */
  uint64_t advice;
  bool backward;        /* from the first operator of that name on, until a constant is written */
} Run;

static void
act_all (Run *run)
{
  CoopAction a;
  while (coop_engine_action (run->engine, &a))
    if (a.kind == COOP_ACTION_RETURN)
      {
        coop_engine_free (run->engine, GPOINTER_TO_SIZE (a.tensor->host) - 1);
        a.tensor->host = NULL;
      }
    else if (a.kind == COOP_ACTION_PLACE)
      coop_engine_placed (run->engine, a.tensor, a.to, true);
}

static bool
alloc (Run *run, const CoopCall *call, uint64_t bytes, uint64_t *addr)
{
  CoopRequest req = { .bytes = bytes, .call = call };
  CoopStatus status;
  while ((status = coop_engine_alloc (run->engine, &req)) == COOP_EVICT)
    for (unsigned i = 0; i < req.n_victims; i++)
      {
        if (req.victims[i]->state == COOP_BORROWED)
          req.victims[i]->host = NULL;
        coop_engine_evicted (run->engine, req.victims[i]);
      }
  *addr = req.addr;
  run->advice = req.oom.advice;
  return status == COOP_OK;
}

static bool
replay (Run *run, CoopCall *call, const CoopReplay *step)
{
  const Line *line = step->op_host;
  CoopWhat *what = g_newa (CoopWhat, step->n_outputs + 1);
  CoopTensor **tensor = g_newa (CoopTensor *, step->n_outputs + 1);
  uint64_t *addr = g_newa (uint64_t, step->n_outputs + 1);
  guint n = 0;
  for (; n < line->out->len; n++)
    if (!alloc (run, call, g_array_index (line->out_bytes, uint64_t, n), &addr[n]))
      return false;
  for (guint i = 0; i < line->in->len && n < step->n_outputs; i++)
    for (guint k = 0; k < line->mut->len; k++)
      if (g_array_index (line->mut, uint64_t, k) == g_array_index (line->in, uint64_t, i))
        {
          addr[n] = step->inputs[i]->addr;
          if (!step->copy[i])
            step->inputs[i]->host = NULL;
          else if (!alloc (run, call, step->inputs[i]->requested, &addr[n]))
            return false;
          n++;
        }
  g_assert_cmpuint (n, ==, step->n_outputs);
  coop_engine_replayed (run->engine, call, addr, line->cost, what, tensor);
  run->cost += line->cost;
  for (guint i = 0; i < n; i++)
    {
      if (what[i] == COOP_HANDOVER)
        coop_engine_ref (run->engine, addr[i]);
      if (what[i] == COOP_BORROW)
        tensor[i]->host = GSIZE_TO_POINTER (addr[i] + 1);
      else
        coop_engine_free (run->engine, addr[i]);
    }
  act_all (run);
  return run->cost <= run->most;
}

static bool
give_up (Run *run, CoopCall *call)
{
  coop_engine_abort (run->engine, call);
  return false;
}

static bool
run_op (Run *run, const Line *line)
{
  guint n_in = line->in->len, n_out = line->out->len;
  CoopInput *inputs = g_newa (CoopInput, n_in + 1);
  CoopOutput *outputs = g_newa0 (CoopOutput, n_out + 1);
  CoopTensor **written = g_newa0 (CoopTensor *, n_in + 1);
  for (guint i = 0; i < n_in; i++)
    {
      uint64_t id = g_array_index (line->in, uint64_t, i);
      inputs[i] = (CoopInput) { run->tensor[id], COOP_USE_READ };
      for (guint k = 0; k < line->mut->len; k++)
        if (g_array_index (line->mut, uint64_t, k) == id)
          inputs[i].use = COOP_USE_WRITE;
    }
  for (guint i = 0; i < n_in; i++)
    if (inputs[i].use == COOP_USE_WRITE && inputs[i].tensor->pin != COOP_PIN_NONE)
      run->backward = false;
  run->backward |= line->backward;
  CoopCall call = { .inputs = inputs, .n_inputs = n_in, .name = line->name, .replayable = true,
                    .phase = run->backward ? COOP_PHASE_BACKWARD : COOP_PHASE_OTHER,
                    .op_class = line->expensive ? COOP_CLASS_EXPENSIVE : COOP_CLASS_CHEAP };
  CoopReplay step;
  CoopNext next;
  coop_engine_begin (run->engine, &call);
  while ((next = coop_engine_next (run->engine, &call, &step)) == COOP_STEP_REPLAY)
    if (!replay (run, &call, &step))
      return give_up (run, &call);
  g_assert_cmpint (next, ==, COOP_STEP_READY);
  act_all (run);
  for (guint i = 0; i < n_out; i++)
    {
      outputs[i].requested = g_array_index (line->out_bytes, uint64_t, i);
      if (!alloc (run, &call, outputs[i].requested, &outputs[i].addr))
        return give_up (run, &call);
    }
  CoopOp *op = coop_engine_end (run->engine, &call, outputs, n_out, line->cost, written);
  if (op != NULL)
    coop_op_set_host (op, (void *) line);
  for (guint i = 0; i < n_out; i++)
    run->tensor[g_array_index (line->out, uint64_t, i)] = outputs[i].tensor;
  for (guint i = 0; i < n_in; i++)
    if (written[i] != NULL)
      run->tensor[g_array_index (line->in, uint64_t, i)] = written[i];
  run->cost += line->cost;
  run->plain += line->cost;
  act_all (run);
  return true;
}

static bool
run_const (Run *run, const Line *line)
{
  CoopAdopt adopt = { .requested = g_array_index (line->out_bytes, uint64_t, 0),
                      .kind = COOP_KIND_STATE, .pin = COOP_PIN_CONSTANT };
  if (!alloc (run, NULL, adopt.requested, &adopt.addr))
    return false;
  run->tensor[g_array_index (line->out, uint64_t, 0)] = coop_engine_adopt (run->engine, &adopt);
  act_all (run);
  return true;
}

static void
run_release (Run *run, const Line *line)
{
  CoopTensor *t = run->tensor[g_array_index (line->in, uint64_t, 0)];
  if (t->state == COOP_EVICTED)
    coop_engine_release (run->engine, t);
  else
    coop_engine_free (run->engine, t->addr);
  act_all (run);
}

static bool
run_line (Run *run, const Line *line)
{
  switch (line->kind)
    {
    case LINE_CONST:
      return run_const (run, line);
    case LINE_OP:
      return run_op (run, line);
    case LINE_REL:
      run_release (run, line);
      return true;
    }
  return false;
}

RefOutcome
ref_recording_run (const RefRecording *r, const CoopPolicy *policy)
{
  CoopEngineOptions options = { .capacity = UINT64_C (1) << 40, .policy = *policy };
  Run run = { .engine = coop_engine_new (&options), .most = 3 * r->total };
  RefOutcome out = { .ok = true };
  run.tensor = g_new0 (CoopTensor *, r->most_id + 1);
  for (guint i = 0; i < r->lines->len && out.ok; i++)
    out.ok = run_line (&run, r->lines->pdata[i]);
  out.overhead = run.plain > 0 ? (double) run.cost / (double) run.plain : 0;
  out.advice = run.advice;
  coop_engine_totals (run.engine, &out.totals);
  out.fault = coop_engine_check (run.engine);
  coop_engine_free_all (run.engine);
  g_free (run.tensor);
  return out;
}
