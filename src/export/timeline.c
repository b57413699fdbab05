/* SPDX-License-Identifier: Apache-2.0 */
/* Timeline: see the header. An operator that is run again begins after the one that asked for it and
 * ends before it, on the same thread: nesting comes by itself. What does not nest (an operator that
 * ended out of turn, or never) is made to. */
#include "export/timeline.h"

#include <string.h>

typedef struct {
  guint64 id, name, stack;
} Open;

typedef struct {
  GArray *open; /* Open, outermost first */
  gboolean told;
} Track;

typedef struct {
  const CoopExportJob *job;
  CoopTakeItem take;
  gpointer user;
  CoopModel *model;
  GHashTable *tracks;   /* thread -> Track */
  GHashTable *frames;   /* stack -> Where: what stacks say of their innermost frame */
  guint64 counters[COOP_N_COUNTERS];
  gboolean begun, in_step, in_phase, stopped;
  guint64 ts;
} Walk;

typedef struct {
  guint64 file, func;
  gint64 line;
} Where;

static const char *const counter_labels[COOP_N_COUNTERS] = {
  [COOP_COUNTER_USED] = "memory used", [COOP_COUNTER_PINNED] = "pinned",
  [COOP_COUNTER_LARGEST] = "largest hole", [COOP_COUNTER_EVICTED] = "evicted, to be recomputed",
  [COOP_COUNTER_BUDGET] = "budget",
};

const char *
coop_counter_label (CoopCounter counter)
{
  return counter_labels[counter];
}

char *
coop_timeline_process (const CoopExportJob *job, guint64 *pid)
{
  g_autofree char *script = coop_reader_meta (job->reader, "script");
  g_autofree char *number = coop_reader_meta (job->reader, "pid");
  *pid = number != NULL ? g_ascii_strtoull (number, NULL, 10) : 0;
  if (*pid == 0)
    *pid = 1;
  if (script == NULL || job->anonymiser != NULL)
    return g_strdup ("coop");
  return g_path_get_basename (script);
}

static void
give (Walk *w, const CoopItem *item)
{
  if (!w->stopped && !w->take (w->user, item))
    w->stopped = TRUE;
}

static const char *
text (const Walk *w, guint64 id)
{
  return coop_anonymise_text (w->job->anonymiser, coop_model_string (w->model, id));
}

/* ---- items ---- */

static void
arg_uint (CoopItem *item, const char *name, guint64 value)
{
  if (item->n_args < COOP_MAX_ARGS)
    item->args[item->n_args++] = (CoopArg) { .name = name, .type = COOP_ARG_UINT, .number = value };
}

static void
arg_real (CoopItem *item, const char *name, double value)
{
  if (item->n_args < COOP_MAX_ARGS)
    item->args[item->n_args++] = (CoopArg) { .name = name, .type = COOP_ARG_REAL, .real = value };
}

static void
arg_text (CoopItem *item, const char *name, const char *value)
{
  if (value != NULL && item->n_args < COOP_MAX_ARGS)
    item->args[item->n_args++] = (CoopArg) { .name = name, .type = COOP_ARG_TEXT, .text = value };
}

static Track *
track_of (Walk *w, int thread)
{
  Track *track = g_hash_table_lookup (w->tracks, GINT_TO_POINTER (thread));
  if (track != NULL)
    return track;
  track = g_new0 (Track, 1);
  track->open = g_array_new (FALSE, FALSE, sizeof (Open));
  g_hash_table_insert (w->tracks, GINT_TO_POINTER (thread), track);
  g_autofree char *name = thread == COOP_TRACK_STEPS ? g_strdup ("steps") : thread == COOP_TRACK_PHASES ? g_strdup ("phases")
                          : thread == 0 ? g_strdup ("main thread") : g_strdup_printf ("thread %d", thread);
  give (w, &(CoopItem) { .type = COOP_ITEM_TRACK, .ts = w->ts, .track = thread, .name = name });
  return track;
}

static void
free_track (gpointer data)
{
  Track *track = data;
  g_array_unref (track->open);
  g_free (track);
}

/* "conv2d" for "aten.conv2d.default"; g_free */
static char *
short_name (const char *name)
{
  if (name == NULL)
    return g_strdup ("operator");
  if (g_str_has_prefix (name, "aten::") || g_str_has_prefix (name, "aten."))
    name += name[4] == '.' ? 5 : 6;
  return g_str_has_suffix (name, ".default") ? g_strndup (name, strlen (name) - strlen (".default")) : g_strdup (name);
}

/* ---- operators ---- */

static void
begin_op (Walk *w, const CoopEvent *ev)
{
  const typeof (ev->u.op_begin) *op = &ev->u.op_begin;
  Track *track = track_of (w, (int) ev->thread);
  g_autofree char *name = short_name (text (w, op->name));
  g_autofree char *again = op->replay_of != 0 ? g_strconcat (name, " again", NULL) : NULL;
  const Where *where = g_hash_table_lookup (w->frames, &op->stack);
  CoopItem item = { .type = COOP_ITEM_BEGIN, .ts = ev->ts, .track = (int) ev->thread, .name = again != NULL ? again : name,
                    .category = again != NULL ? "recompute" : "operator" };
  if (where != NULL)
    {
      item.file = text (w, where->file);
      item.func = text (w, where->func);
      item.line = where->line;
    }
  arg_uint (&item, "operator", op->id);
  if (op->replay_of != 0)
    arg_uint (&item, "recomputes", op->replay_of);
  arg_uint (&item, "step", op->step);
  arg_text (&item, "phase", coop_phase_label (op->phase));
  give (w, &item);
  g_array_append_val (track->open, ((Open) { op->id, op->name, op->stack }));
}

/* Ends what is open above it as well; an end of what never began is left out. */
static void
end_op (Walk *w, const CoopEvent *ev)
{
  GHashTableIter iter;
  gpointer key, value;
  g_hash_table_iter_init (&iter, w->tracks);
  while (g_hash_table_iter_next (&iter, &key, &value))
    {
      GArray *open = ((Track *) value)->open;
      guint at = open->len;
      while (at > 0 && g_array_index (open, Open, at - 1).id != ev->u.op_end.id)
        at--;
      if (at == 0)
        continue;
      while (open->len >= at)
        {
          CoopItem item = { .type = COOP_ITEM_END, .ts = ev->ts, .track = GPOINTER_TO_INT (key) };
          if (open->len == at)
            {
              arg_uint (&item, "cost_ns", ev->u.op_end.cost);
              arg_uint (&item, "workspace_bytes", ev->u.op_end.workspace);
              if (ev->u.op_end.failed)
                arg_uint (&item, "failed", 1);
            }
          give (w, &item);
          g_array_set_size (open, open->len - 1);
        }
      return;
    }
}

/* ---- instants ---- */

static void
instant (Walk *w, const CoopEvent *ev, CoopItem *item)
{
  item->type = COOP_ITEM_INSTANT;
  item->ts = ev->ts;
  item->track = (int) ev->thread;
  track_of (w, item->track);
  give (w, item);
}

static void
evict (Walk *w, const CoopEvent *ev, const void *body)
{
  CoopEvictBody why = { 0 };
  CoopTensorInfo tensor;
  char size[32];
  if (ev->more > 0)
    memcpy (&why, body, sizeof why);
  g_autofree char *op = coop_model_tensor (w->model, ev->u.evict.tensor, &tensor) ? coop_model_op_text (w->model, tensor.op) : NULL;
  coop_size_format (ev->u.evict.bytes, size, sizeof size);
  g_autofree char *name = g_strdup_printf ("evict %s%s %s", op != NULL ? op : "tensor", op != NULL ? " output" : "", size);
  CoopItem item = { .name = name, .category = "evict" };
  arg_uint (&item, "tensor", ev->u.evict.tensor);
  arg_uint (&item, "block", ev->u.evict.block);
  arg_uint (&item, "addr", ev->u.evict.addr);
  arg_uint (&item, "bytes", ev->u.evict.bytes);
  arg_uint (&item, "search", ev->u.evict.search);
  arg_real (&item, "score", why.h);
  arg_uint (&item, "own_cost_ns", why.own_cost);
  arg_uint (&item, "chain_cost_ns", why.chain_cost);
  arg_uint (&item, "staleness_ns", why.staleness);
  instant (w, ev, &item);
}

/* What the event list of the window says, without the kind's own name in front where that is telling. */
static void
describe (Walk *w, const CoopEvent *ev, const void *body, const char *category)
{
  g_autofree char *words = coop_model_describe (w->model, ev, body);
  CoopItem item = { .name = coop_anonymise_text (w->job->anonymiser, words), .category = category };
  if (ev->kind == COOP_EVENT_OOM)
    {
      arg_uint (&item, "asked", ev->u.oom.asked);
      arg_uint (&item, "free", ev->u.oom.free);
      arg_uint (&item, "largest", ev->u.oom.largest);
      arg_uint (&item, "advice", ev->u.oom.advice);
    }
  instant (w, ev, &item);
}

/* ---- steps and phases ---- */

static void
ribbon (Walk *w, guint64 ts, int track, gboolean *open, const char *name)
{
  track_of (w, track);
  if (*open)
    give (w, &(CoopItem) { .type = COOP_ITEM_END, .ts = ts, .track = track });
  *open = name != NULL;
  if (name != NULL)
    give (w, &(CoopItem) { .type = COOP_ITEM_BEGIN, .ts = ts, .track = track, .name = name, .category = "ribbon" });
}

static void
counters (Walk *w, guint64 ts)
{
  const CoopModelTotals *t = coop_model_totals (w->model);
  const guint64 now[COOP_N_COUNTERS] = {
    [COOP_COUNTER_USED] = t->used, [COOP_COUNTER_PINNED] = t->pinned, [COOP_COUNTER_LARGEST] = t->largest,
    [COOP_COUNTER_EVICTED] = t->evicted, [COOP_COUNTER_BUDGET] = t->budget,
  };
  for (guint i = 0; i < COOP_N_COUNTERS; i++)
    if (now[i] != w->counters[i])
      {
        w->counters[i] = now[i];
        give (w, &(CoopItem) { .type = COOP_ITEM_COUNTER, .ts = ts, .counter = (CoopCounter) i, .value = now[i] });
      }
}

static void
learn_stack (Walk *w, guint64 stack, guint64 file, guint64 func, gint64 line)
{
  Where *where = g_new (Where, 1);
  *where = (Where) { file, func, line };
  g_hash_table_insert (w->frames, g_memdup2 (&stack, sizeof stack), where);
}

static gboolean
take_event (gpointer user, const CoopEvent *ev, const void *body)
{
  Walk *w = user;
  g_autofree char *step = NULL;
  w->ts = MAX (w->ts, ev->ts);
  if (ev->kind == COOP_EVENT_EVICT) /* while the model still knows what it was */
    evict (w, ev, body);
  coop_model_apply (w->model, ev, body, NULL);
  switch (ev->kind)
    {
    case COOP_EVENT_OP_BEGIN:
      begin_op (w, ev);
      break;
    case COOP_EVENT_OP_END:
      end_op (w, ev);
      break;
    case COOP_EVENT_STEP:
      step = g_strdup_printf ("step %" G_GUINT64_FORMAT, ev->u.step.step);
      ribbon (w, ev->ts, COOP_TRACK_STEPS, &w->in_step, step);
      break;
    case COOP_EVENT_PHASE:
      ribbon (w, ev->ts, COOP_TRACK_PHASES, &w->in_phase, coop_phase_label ((unsigned) ev->u.phase.phase));
      break;
    case COOP_EVENT_OOM:
      describe (w, ev, body, "out of memory");
      break;
    case COOP_EVENT_WARNING:
    case COOP_EVENT_GAP:
      describe (w, ev, body, "warning");
      break;
    case COOP_EVENT_ANNOTATION:
      describe (w, ev, body, "annotation");
      break;
    case COOP_EVENT_POLICY:
      if (ev->u.policy.source != COOP_SOURCE_INITIAL)
        describe (w, ev, body, "policy");
      break;
    default:
      break;
    }
  counters (w, ev->ts);
  return !w->stopped;
}

static gboolean
take_stack (gpointer user, int n, const char *const *names, const char *const *values, const int *types)
{
  guint64 v[4];
  for (guint i = 0; i < 4; i++)
    v[i] = values[i] != NULL ? g_ascii_strtoull (values[i], NULL, 10) : 0;
  learn_stack (user, v[0], v[1], v[2], (gint64) v[3]);
  return TRUE;
}

static void
close_all (Walk *w)
{
  GHashTableIter iter;
  gpointer key, value;
  g_hash_table_iter_init (&iter, w->tracks);
  while (g_hash_table_iter_next (&iter, &key, &value))
    for (GArray *open = ((Track *) value)->open; open->len > 0; g_array_set_size (open, open->len - 1))
      give (w, &(CoopItem) { .type = COOP_ITEM_END, .ts = w->ts, .track = GPOINTER_TO_INT (key) });
  if (w->in_phase)
    ribbon (w, w->ts, COOP_TRACK_PHASES, &w->in_phase, NULL);
  if (w->in_step)
    ribbon (w, w->ts, COOP_TRACK_STEPS, &w->in_step, NULL);
}

gboolean
coop_timeline_walk (const CoopExportJob *job, CoopTakeItem take, gpointer user, GError **error)
{
  Walk w = { .job = job, .take = take, .user = user };
  guint64 from = 0;
  gboolean late = coop_reader_trimmed (job->reader, &from, NULL); /* begins with the layout after that event */
  w.model = late ? coop_reader_model_at (job->reader, from, error) : coop_model_new ();
  if (w.model == NULL)
    return FALSE;
  w.tracks = g_hash_table_new_full (NULL, NULL, NULL, free_track);
  w.frames = g_hash_table_new_full (g_int64_hash, g_int64_equal, g_free, g_free);
  gboolean done = coop_reader_query (job->reader, "SELECT s.id, f.file, f.func, f.line FROM stack s JOIN frame f ON f.id = s.frame",
                                     COOP_QUERY_SECONDS, take_stack, &w, error)
                  && coop_reader_events (job->reader, late ? from + 1 : 0, take_event, &w, error) >= 0;
  close_all (&w);
  g_hash_table_unref (w.tracks);
  g_hash_table_unref (w.frames);
  coop_model_free (w.model);
  return done;
}
