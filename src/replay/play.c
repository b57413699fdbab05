/* SPDX-License-Identifier: Apache-2.0 */
#include "replay/play-private.h"

#include <math.h>
#include <time.h>

#define DEFAULT_CAPACITY (G_GUINT64_CONSTANT (1) << 44)

/* label, text */
static const char *const results[COOP_N_PLAYS][2] = {
  [COOP_PLAY_OK] = { "ok", "finished" },
  [COOP_PLAY_NO_BYTES] = { "no-bytes", "out of memory: not enough even with all that may be evicted" },
  [COOP_PLAY_NO_ROOM] = { "no-room", "out of memory: enough bytes, but not side by side" },
  [COOP_PLAY_CONSTANTS] = { "constants", "the constants alone do not fit into the budget" },
  [COOP_PLAY_TOO_SLOW] = { "too-slow", "given up: recomputation costs too much" },
  [COOP_PLAY_LOST] = { "lost", "a tensor is needed that the program cannot make again" },
  [COOP_PLAY_STOPPED] = { "stopped", "stopped" },
};

const char *
coop_play_label (CoopPlayResult result)
{
  return results[result][0];
}

const char *
coop_play_text (CoopPlayResult result)
{
  return results[result][1];
}

void
coop_play_copy_rate (const CoopProgram *program, CoopPolicy *policy)
{
  if (program->copy_rate > 0)
    policy->v[COOP_PARAM_COPY_RATE] = coop_param_clamp (COOP_PARAM_COPY_RATE, (CoopValue) { .d = program->copy_rate });
}

void
coop_play_options_init (CoopPlayOptions *options)
{
  *options = (CoopPlayOptions) { .most = 3 };
  coop_policy_init (&options->policy);
}

/* ---- events: the virtual clock is the cost of all that was run ---- */

static void
sink (void *user, CoopEvent *ev, const void *body)
{
  CoopPlay *play = user;
  ev->seq = play->seq++;
  ev->ts = play->out->cost_ns;
  ev->thread = 0;
  play->options->sink.emit (play->options->sink.user, ev, body);
}

static void
emit_text (CoopPlay *play, CoopEvent *ev, const char *text)
{
  char body[1024] = "";
  gsize n = MIN (strlen (text), sizeof body);
  memcpy (body, text, n);
  ev->more = (guint16) ((n + COOP_RECORD_BYTES - 1) / COOP_RECORD_BYTES);
  sink (play, ev, body);
}

static void
emit_names (CoopPlay *play)
{
  if (play->options->sink.emit == NULL)
    return;
  for (guint i = 0; i < play->program->names->len; i++)
    {
      const char *name = play->program->names->pdata[i];
      CoopEvent ev = { .kind = COOP_EVENT_STRING };
      ev.u.string.id = i + 1;
      ev.u.string.bytes = MIN (strlen (name), 1024);
      emit_text (play, &ev, name);
    }
}

static guint64
now (void *user)
{
  struct timespec t;
  clock_gettime (CLOCK_MONOTONIC, &t);
  return (guint64) t.tv_sec * 1000000000u + (guint64) t.tv_nsec;
}

/* ---- memory ---- */

CoopPlayHost *
coop_play_host (CoopPlay *play, CoopTensor *tensor)
{
  if (tensor->host == NULL)
    {
      CoopPlayHost *host = g_new0 (CoopPlayHost, 1);
      host->next = play->hosts;
      if (host->next != NULL)
        host->next->prev = host;
      tensor->host = play->hosts = host;
    }
  return tensor->host;
}

static void
host_free (CoopPlay *play, CoopPlayHost *host)
{
  if (host == NULL)
    return;
  if (host->next != NULL)
    host->next->prev = host->prev;
  if (host->prev != NULL)
    host->prev->next = host->next;
  else
    play->hosts = host->next;
  g_free (host);
}

static void
evict (CoopPlay *play, const CoopRequest *req)
{
  for (unsigned i = 0; i < req->n_victims; i++)
    {
      CoopTensor *t = req->victims[i];
      if (t->state == COOP_BORROWED)
        coop_play_host (play, t)->borrowed = 0;
      coop_engine_evicted (play->engine, t);
    }
}

void
coop_play_evict_all (CoopPlay *play)
{
  CoopRequest req = { .bytes = 0 };
  coop_engine_choose_all (play->engine, &req);
  evict (play, &req);
  coop_engine_cancel (play->engine, &req);
}

static gboolean
out_of_memory (CoopPlay *play, const CoopRequest *req)
{
  play->out->oom = req->oom;
  play->out->result = req->oom.free + req->oom.evictable < req->oom.asked ? COOP_PLAY_NO_BYTES
                                                                          : COOP_PLAY_NO_ROOM;
  return FALSE;
}

gboolean
coop_play_alloc (CoopPlay *play, const CoopCall *call, guint64 bytes, guint64 *addr)
{
  CoopRequest req = { .bytes = bytes, .call = call, .retry = play->retry, .may_move = true };
  CoopStatus status;
  while ((status = coop_engine_alloc (play->engine, &req)) == COOP_EVICT)
    {
      evict (play, &req);
      for (unsigned i = 0; i < req.n_moves; i++)
        coop_play_place (play, &req.moves[i]);
    }
  if (status != COOP_OK)
    return out_of_memory (play, &req);
  *addr = req.addr;
  return TRUE;
}

static void
let_go (CoopPlay *play, CoopTensor *t)
{
  if (t->state == COOP_EVICTED)
    coop_engine_release (play->engine, t);
  else if (t->state == COOP_LIVE)
    coop_engine_free (play->engine, t->addr);
}

void
coop_play_release (CoopPlay *play, guint32 slot)
{
  CoopTensor *t = play->tensor[slot];
  play->tensor[slot] = NULL;
  if (t == NULL)
    return;
  CoopPlayHost *host = coop_play_host (play, t);
  host->user_gone = TRUE;
  if (host->record_holds && !play->exact)
    return;
  host->record_holds = FALSE;
  let_go (play, t);
}

void
coop_play_place (CoopPlay *play, const CoopAction *a)
{
  CoopPlayHost *host = coop_play_host (play, a->tensor);
  guint64 bytes = (a->tensor->requested + 511) & ~(guint64) 511;
  coop_engine_placed (play->engine, a->tensor, a->to, true);
  if (play->out->plain_ns > 0)   /* before the step state finds its end of the pool, once: no part of it */
    {
      play->out->moves++;
      play->out->moved_bytes += bytes;
      if (play->program->copy_rate > 0)
        play->out->move_ns += play->program->launch_ns + (guint64) ((double) bytes / play->program->copy_rate);
    }
  if (host->borrowed != 0)
    host->borrowed = a->tensor->addr + 1;
}

static void
act (CoopPlay *play, const CoopAction *a)
{
  CoopPlayHost *host = a->tensor != NULL ? coop_play_host (play, a->tensor) : NULL;
  guint64 borrowed;
  switch (a->kind)
    {
    case COOP_ACTION_HOLD:
      host->record_holds = !host->user_gone && host->borrowed == 0;
      break;
    case COOP_ACTION_UNHOLD:
      if (host->record_holds && host->user_gone)
        let_go (play, a->tensor);
      else
        host->record_holds = FALSE;
      break;
    case COOP_ACTION_RETURN:
      borrowed = host->borrowed;
      host->borrowed = 0;
      if (borrowed != 0)
        coop_engine_free (play->engine, borrowed - 1);
      break;
    case COOP_ACTION_PLACE:
      coop_play_place (play, a);
      break;
    case COOP_ACTION_TENSOR_GONE:
      host_free (play, a->host);
      break;
    case COOP_ACTION_THRASH:
      play->out->thrashing++;
      break;
    case COOP_ACTION_OP_GONE:   /* lines belong to the program */
      break;
    }
}

void
coop_play_act (CoopPlay *play)
{
  CoopAction action;
  while (coop_engine_action (play->engine, &action))
    act (play, &action);
}

/* ---- lines ---- */

static gboolean
adopt (CoopPlay *play, const CoopProgramLine *line, guint64 addr)
{
  CoopAdopt a = { .addr = addr, .requested = line->bytes, .kind = (CoopKind) line->tensor_kind,
                  .pin = (CoopPin) line->pin };
  play->tensor[line->slot] = coop_engine_adopt (play->engine, &a);
  return TRUE;
}

static gboolean
play_const (CoopPlay *play, const CoopProgramLine *line)
{
  guint64 addr;
  if (coop_play_alloc (play, NULL, line->bytes, &addr))
    {
      adopt (play, line, addr);
      coop_play_act (play);
      return TRUE;
    }
  if (play->out->plain_ns == 0)
    play->out->result = COOP_PLAY_CONSTANTS;
  return FALSE;
}

static gboolean
play_tmp (CoopPlay *play, const CoopProgramLine *line)
{
  guint64 addr;
  if (!coop_play_alloc (play, NULL, line->bytes, &addr))
    return FALSE;
  play->block[line->block] = addr + 1;
  return TRUE;
}

static gboolean
play_set (CoopPlay *play, const CoopProgramLine *line)
{
  CoopPolicy policy = *coop_engine_policy (play->engine);
  if (!play->options->as_recorded)
    return TRUE;
  policy.v[line->param] = line->value;
  coop_engine_set_policy (play->engine, &policy, (CoopSource) line->source, 0);
  return TRUE;
}

void
coop_play_let_go (CoopPlay *play, const CoopProgramLine *line)
{
  if (line->kind == COOP_DO_RELEASE)
    {
      coop_play_release (play, line->slot);
      return;
    }
  if (play->block[line->block] != 0)
    coop_engine_free (play->engine, play->block[line->block] - 1);
  play->block[line->block] = 0;
}

/* What is due is acted upon after operators, as a live host does: not where the user lets go. */
static gboolean
play_line (CoopPlay *play, guint32 i)
{
  const CoopProgramLine *line = &g_array_index (play->program->lines, CoopProgramLine, i);
  switch (line->kind)
    {
    case COOP_DO_CONST:
      return play_const (play, line);
    case COOP_DO_OP:
      return coop_play_op (play, i);
    case COOP_DO_RELEASE:
    case COOP_DO_FREE:
      if (!line->early)
        coop_play_let_go (play, line);
      return TRUE;
    case COOP_DO_TOUCH:
      return coop_play_touch (play, line);
    case COOP_DO_TMP:
      return play_tmp (play, line);
    case COOP_DO_ADOPT:
      return adopt (play, line, play->block[line->block] - 1);
    case COOP_DO_PIN:
      if (play->tensor[line->slot] != NULL)
        coop_engine_pin (play->engine, play->tensor[line->slot], (CoopPin) line->pin);
      coop_play_act (play);
      return TRUE;
    case COOP_DO_SET:
      return play_set (play, line);
    }
  return TRUE;
}

/* ---- the run ---- */

static void
play_lines (CoopPlay *play)
{
  CoopPlayOutcome *out = play->out;
  const CoopPlayOptions *options = play->options;
  guint n = play->program->lines->len;
  for (guint i = 0; i < n; i++, out->line++)
    {
      if (options->keep_on != NULL && i % 256 == 0 && !options->keep_on (options->user, (double) i / n))
        {
          out->result = COOP_PLAY_STOPPED;
          return;
        }
      if (!play_line (play, i))
        return;
    }
}

/* Capacity decides where the high end is as long as nothing limits, so a trace's own is kept. */
static guint64
capacity_for (const CoopProgram *program, const CoopPlayOptions *options)
{
  guint64 capacity = options->capacity != 0 ? options->capacity : program->capacity;
  guint64 budget = (guint64) options->policy.v[COOP_PARAM_BUDGET].i;
  capacity = capacity != 0 ? capacity : DEFAULT_CAPACITY;
  return (MAX (capacity, budget) + 511) & ~(guint64) 511;
}

void
coop_play (const CoopProgram *program, const CoopPlayOptions *options, CoopPlayOutcome *out)
{
  CoopPlay play = { .program = program, .options = options, .out = out };
  CoopEngineOptions engine = { .capacity = capacity_for (program, options), .policy = options->policy,
                               .now = options->measure ? now : NULL };
  *out = (CoopPlayOutcome) { .result = COOP_PLAY_OK };
  if (options->sink.emit != NULL)
    engine.sink = (CoopSink) { sink, &play };
  play.tensor = g_new0 (CoopTensor *, program->n_slots + 1);
  play.block = g_new0 (guint64, program->n_blocks + 1);
  play.replays = g_new0 (guint32, program->lines->len + 1);
  play.exact = options->as_recorded && program->has_policy;
  emit_names (&play);
  play.engine = coop_engine_new (&engine);
  play_lines (&play);
  out->events = play.seq;
  coop_engine_totals (play.engine, &out->totals);
  out->device_ns = out->totals.device_ns;
  double time = (double) (out->cost_ns + out->move_ns + out->device_ns);
  out->overhead = out->plain_ns > 0 ? time / (double) out->plain_ns : NAN;
  out->fault = coop_engine_check (play.engine);
  coop_engine_free_all (play.engine);
  while (play.hosts != NULL)
    host_free (&play, play.hosts);
  g_free (play.tensor);
  g_free (play.block);
  g_free (play.replays);
}

guint64
coop_play_peak (const CoopProgram *program)
{
  CoopPlayOptions options;
  CoopPlayOutcome out;
  coop_play_options_init (&options);
  coop_policy_preset (&options.policy, COOP_EVICTOR_NONE);
  options.most = 0;
  coop_play (program, &options, &out);
  return out.result == COOP_PLAY_OK ? out.totals.peak : 0;
}
