/* SPDX-License-Identifier: Apache-2.0 */
/* Rehearsal while a run goes on: once two steps look alike and memory has bound in them, the recorded run
 * is played under other policies, on a thread that gets what is left of the processor and takes no more
 * than a share of one core. What promises to be better is set between two steps, and measured: what turns
 * out worse than what it replaced is taken back. A step that looks different starts it anew.
 *
 * All state belongs to the collector but for what the thread was given and what it leaves behind. Of the
 * script only the control page is touched. */
#include "session-private.h"

#include "replay/rehearse.h"

#include <math.h>
#include <sched.h>
#include <time.h>

#define MEASURED 3             /* steps before and after a change */
#define SECONDS 20.0           /* of processor time for one rehearsal */
#define MOST_EVENTS 3000000    /* a trace longer than that is not read again */
#define LOAD_TRIES 50          /* the file is behind the ring by a few hundred ms */
#define LOAD_WAIT_US 100000
#define WORSE 0.02             /* overhead by which a policy may miss what it replaced */
#define GAIN 0.02              /* promised: what is less is not worth a change */

/* One step of the run, as its events tell it. */
typedef struct {
  guint64 ops, bytes, plain, again, evictions;
} Step;

typedef enum { WATCHING, PLAYING, SETTLED, TRYING } State;

struct _CoopRehearsing {
  double share;                /* of one core */
  State state;
  Step now, last[MEASURED];    /* last[0]: the latest */
  guint steps;                 /* whole ones since the last that looked different */
  guint64 step;                /* number of the latest */
  gboolean replayed;           /* the operator under way */
  double before;               /* overhead under the policy that was replaced */
  CoopPolicy replaced;
  guint since;                 /* steps since the change */
  /* the thread's */
  GThread *thread;
  char *trace;
  CoopPolicy from;
  gint quit, done;             /* atomic */
  double began, cpu_began;
  char *fault;
  CoopRehearsal found;
};

CoopRehearsing *
coop_rehearsing_new (double share)
{
  CoopRehearsing *r = g_new0 (CoopRehearsing, 1);
  r->share = CLAMP (share, 0.01, 1);
  return r;
}

static void
end_thread (CoopRehearsing *r)
{
  if (r->thread == NULL)
    return;
  g_atomic_int_set (&r->quit, 1);
  g_thread_join (r->thread);
  r->thread = NULL;
  g_clear_pointer (&r->fault, g_free);
  coop_rehearsal_clear (&r->found);
  r->found = (CoopRehearsal) { 0 };
}

void
coop_rehearsing_free (CoopRehearsing *r)
{
  if (r == NULL)
    return;
  end_thread (r);
  g_free (r->trace);
  g_free (r);
}

/* ---- the thread --------------------------------------------------------------------------- */

static double
seconds_of (clockid_t clock)
{
  struct timespec ts;
  clock_gettime (clock, &ts);
  return (double) ts.tv_sec + (double) ts.tv_nsec * 1e-9;
}

/* Sleeps off what was taken beyond the share. */
static gboolean
keep_on (gpointer user)
{
  CoopRehearsing *r = user;
  double used = seconds_of (CLOCK_THREAD_CPUTIME_ID) - r->cpu_began;
  double gone = seconds_of (CLOCK_MONOTONIC) - r->began, ahead = used / r->share - gone;
  if (ahead > 0.001)
    g_usleep ((gulong) (MIN (ahead, 0.2) * 1e6));
  return !g_atomic_int_get (&r->quit);
}

static gpointer
rehearse (gpointer user)
{
  CoopRehearsing *r = user;
  CoopRehearseOptions options;
  struct sched_param none = { 0 };
  sched_setscheduler (0, SCHED_IDLE, &none);   /* of this thread; refused: as it is */
  coop_rehearse_options_init (&options);
  options.seconds = SECONDS;
  options.gain = GAIN;
  options.keep_on = keep_on;
  options.user = r;
  r->began = seconds_of (CLOCK_MONOTONIC);
  r->cpu_began = seconds_of (CLOCK_THREAD_CPUTIME_ID);
  for (guint i = 0; i < LOAD_TRIES && !g_atomic_int_get (&r->quit); i++)
    {
      g_autoptr (GError) error = NULL;
      g_autoptr (CoopProgram) program = coop_program_load (r->trace, &error);
      g_free (r->fault);
      r->fault = error != NULL ? g_strdup (error->message) : NULL;
      if (program != NULL)
        coop_rehearse (program, &r->from, &options, &r->found);
      if (r->found.steps > 0 || r->found.stopped)
        break;
      coop_rehearsal_clear (&r->found);
      r->found = (CoopRehearsal) { 0 };
      g_usleep (LOAD_WAIT_US);
    }
  g_atomic_int_set (&r->done, 1);
  return NULL;
}

/* ---- what the collector does -------------------------------------------------------------- */

static double
overhead (const Step *steps, guint n)
{
  guint64 plain = 0, again = 0;
  for (guint i = 0; i < n; i++)
    {
      plain += steps[i].plain;
      again += steps[i].again;
    }
  return plain > 0 ? (double) (plain + again) / (double) plain : 1;
}

static gboolean
alike (const Step *a, const Step *b)
{
  return a->ops == b->ops && a->bytes == b->bytes;
}

static void
start (CoopSession *self, CoopRehearsing *r)
{
  const CoopPolicy *policy = coop_model_policy (self->model);
  if (self->trace == NULL || self->store == NULL || self->events > MOST_EVENTS
      || policy->v[COOP_PARAM_BUDGET].i == 0 || policy->v[COOP_PARAM_EVICTOR].i == COOP_EVICTOR_NONE
      || policy->v[COOP_PARAM_STRESS].i != 0)
    {
      r->state = SETTLED;
      return;
    }
  end_thread (r);
  r->quit = r->done = 0;
  g_free (r->trace);
  r->trace = g_strdup (self->trace);
  r->from = *policy;
  r->state = PLAYING;
  r->thread = g_thread_new ("coop-rehearse", rehearse, r);
}

static guint64
changes (const CoopPolicy *from, const CoopPolicy *to)
{
  guint64 mask = 0;
  for (guint p = 0; p < COOP_N_PARAMS; p++)
    if (!coop_value_equal ((CoopParam) p, from->v[p], to->v[p]))
      mask |= (guint64) 1 << p;
  return mask;
}

/* Between two steps: what was found is set, unless somebody has changed the policy meanwhile. */
static void
adopt (CoopSession *self, CoopRehearsing *r)
{
  const CoopPolicy *policy = coop_model_policy (self->model);
  CoopRehearsal *found = &r->found;
  r->state = SETTLED;
  if (found->steps == 0)
    {
      coop_session_say (self, "rehearsal: %s", r->fault != NULL ? r->fault : "the steps could not be played");
      return;
    }
  if (changes (&r->from, policy) != 0)
    {
      r->state = WATCHING;   /* the policy is another now: what was found is not about it */
      return;
    }
  if (*found->best.text == 0)
    {
      coop_session_say (self, "rehearsal: %u policies in %.1f s of processor time, none better", found->trials,
                        found->seconds);
      return;
    }
  r->replaced = *policy;
  r->before = overhead (r->last, MIN (r->steps, MEASURED));
  r->since = 0;
  r->state = TRYING;
  coop_session_set_policy (self, &found->best.policy, changes (policy, &found->best.policy), COOP_SOURCE_REHEARSAL);
  coop_session_say (self, "rehearsal: %u policies in %.1f s of processor time; from step %" G_GUINT64_FORMAT
                    " on %s promises %.1f %% more time instead of %.1f %%",
                    found->trials, found->seconds, r->step, found->best.text, 100 * (found->best.overhead - 1),
                    100 * (found->as_is.overhead - 1));
}

/* The first step after a change was half under the old policy: the next ones count. */
static void
judge (CoopSession *self, CoopRehearsing *r)
{
  if (++r->since <= MEASURED)
    return;
  double now = overhead (r->last, MEASURED);
  r->state = SETTLED;
  if (now <= r->before + WORSE)
    {
      coop_session_say (self, "rehearsal: it gave %.1f %% (%.1f %% before)", 100 * (now - 1), 100 * (r->before - 1));
      return;
    }
  coop_session_set_policy (self, &r->replaced, changes (&r->found.best.policy, &r->replaced), COOP_SOURCE_REHEARSAL);
  coop_session_say (self, "rehearsal: taken back, it gave %.1f %% (%.1f %% before)", 100 * (now - 1),
                    100 * (r->before - 1));
}

static void
step_ended (CoopSession *self, CoopRehearsing *r)
{
  gboolean same = r->steps > 0 && alike (&r->now, &r->last[0]);
  for (guint i = MEASURED - 1; i > 0; i--)
    r->last[i] = r->last[i - 1];
  r->last[0] = r->now;
  r->now = (Step) { 0 };
  if (!same)
    {
      /* another program from here on: what was found or is being tried is not about it */
      r->steps = 1;
      if (r->state != PLAYING)
        r->state = WATCHING;
      return;
    }
  r->steps++;
  if (r->state == WATCHING && r->steps >= MEASURED && r->last[0].evictions > 0)
    start (self, r);
  else if (r->state == PLAYING && g_atomic_int_get (&r->done))
    adopt (self, r);
  else if (r->state == TRYING)
    judge (self, r);
}

void
coop_rehearsing_apply (CoopSession *self, CoopRehearsing *r, const CoopEvent *ev)
{
  switch (ev->kind)
    {
    case COOP_EVENT_OP_BEGIN:
      r->replayed = ev->u.op_begin.replay_of != 0;
      break;
    case COOP_EVENT_OP_END:
      if (r->replayed)
        r->now.again += ev->u.op_end.cost;
      else
        {
          r->now.plain += ev->u.op_end.cost;
          r->now.ops++;
        }
      r->replayed = FALSE;
      break;
    case COOP_EVENT_TENSOR:
      if (!r->replayed)
        r->now.bytes += ev->u.tensor.bytes;
      break;
    case COOP_EVENT_EVICT:
      r->now.evictions++;
      break;
    case COOP_EVENT_STEP:
      r->step = ev->u.step.step;
      step_ended (self, r);
      break;
    default:
      break;
    }
}
