/* SPDX-License-Identifier: Apache-2.0 */
/* coop replay: a recorded program through the engine, under any policy, on a virtual clock. */
#include "cli.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "progress.h"
#include "replay/play-record.h"
#include "trace/model.h"

#define NAME "replay"

typedef struct {
  char *budget, *evictor, *allocator, *trace;
  char **set;
  double ratio, most;
  gboolean measure, json, pause;
} Flags;

/* Stops after events; what is typed says when to stop next. */
typedef struct {
  CoopModel *model;
  guint64 skip;            /* events that pass by */
  guint kind;              /* stops at this kind of event alone; ANY_KIND: at each */
  gboolean ended, asked_once;
} Pause;

#define ANY_KIND COOP_N_EVENT_KINDS

typedef struct {
  const Flags *flags;
  CoopProgram *program;
  CoopPlayOptions options;
  guint64 peak;            /* with no limit; 0: not needed and not measured */
  CoopPlayOutcome out;
  gint64 progress_at;
  Pause pause;
} Replay;

/* ---- options ---- */

static gboolean
apply_flags (Replay *r)
{
  const Flags *f = r->flags;
  CoopPolicy *policy = &r->options.policy;
  guint64 mask = 0;
  if (f->evictor != NULL && !coop_cli_policy_set (NAME, "evictor", f->evictor, policy, &mask))
    return FALSE;
  if (f->allocator != NULL && !coop_cli_policy_set (NAME, "allocator", f->allocator, policy, &mask))
    return FALSE;
  if (f->budget != NULL && !coop_cli_policy_set (NAME, "budget", f->budget, policy, &mask))
    return FALSE;
  for (char **s = f->set; s != NULL && *s != NULL; s++)
    if (!coop_cli_policy_assign (NAME, *s, policy, &mask))
      return FALSE;
  r->options.as_recorded = mask == 0 && isnan (f->ratio);
  return TRUE;
}

static gboolean
flags_are_right (const Flags *f)
{
  if (!isnan (f->ratio) && f->budget != NULL)
    return coop_cli_usage (NAME, "--budget and --ratio say the same thing twice; give one") < 0;
  if (!isnan (f->ratio) && !(f->ratio > 0 && f->ratio <= 100))
    return coop_cli_usage (NAME, "--ratio must be above 0 and at most 100: 1 is the peak without limit") < 0;
  if (f->pause && f->json)
    return coop_cli_usage (NAME, "--pause-each is for people, --json for programs; give one") < 0;
  if (!isnan (f->most) && (!(f->most == 0 || f->most >= 1) || !isfinite (f->most)))
    return coop_cli_usage (NAME, "--most must be 0 (never give up) or at least 1") < 0;
  return TRUE;
}

/* The budget of a ratio: refers to the peak without limit. */
static gboolean
apply_ratio (Replay *r)
{
  double budget;
  r->peak = coop_play_peak (r->program);
  if (isnan (r->flags->ratio))
    return TRUE;
  if (r->peak == 0)
    return FALSE;
  budget = r->flags->ratio * (double) r->peak;
  r->options.policy.v[COOP_PARAM_BUDGET].i = (gint64) MAX (budget, 512);
  return TRUE;
}

static gboolean
keep_on (gpointer user, double part)
{
  Replay *r = user;
  gint64 now = g_get_monotonic_time ();
  if (r->flags->pause)
    return !r->pause.ended;
  if (now - r->progress_at < 200000)
    return TRUE;
  r->progress_at = now;
  g_autofree char *text = g_strdup_printf ("replay %.0f %%", 100 * part);
  coop_progress_draw (STDERR_FILENO, text);
  return TRUE;
}

/* ---- one event at a time ---- */

static gboolean
pause_until (Pause *p, const char *word)
{
  guint64 n = 0;
  p->kind = ANY_KIND;
  if (word[0] == 0)
    return TRUE;
  if (g_ascii_string_to_unsigned (word, 10, 1, G_MAXINT64, &n, NULL))
    {
      p->skip = n - 1;
      return TRUE;
    }
  for (p->kind = 1; p->kind < ANY_KIND; p->kind++)
    if (g_strcmp0 (coop_event_kind_label (p->kind), word) == 0)
      return TRUE;
  return FALSE;
}

static void
pause_ask (Pause *p)
{
  char line[64];
  if (!p->asked_once && isatty (STDIN_FILENO))
    fprintf (stderr, "Enter: the next event; N: the N-th from here; alloc, evict, search ...: the next of that kind; q: end\n");
  p->asked_once = TRUE;
  for (;;)
    {
      fflush (stdout);
      if (fgets (line, sizeof line, stdin) == NULL || g_str_equal (g_strstrip (line), "q"))
        {
          p->ended = TRUE;
          return;
        }
      if (pause_until (p, line))
        return;
      fprintf (stderr, "Enter, a number, the kind of an event, or q\n");
    }
}

static void
pause_sink (void *user, CoopEvent *ev, const void *body)
{
  Pause *p = user;
  g_autofree char *text = coop_model_describe (p->model, ev, body);   /* what an event ends is still known */
  coop_model_apply (p->model, ev, body, NULL);
  if (p->ended || ev->kind == COOP_EVENT_STRING || (p->kind != ANY_KIND && p->kind != ev->kind))
    return;
  if (p->skip > 0)
    {
      p->skip--;
      return;
    }
  const CoopModelTotals *t = coop_model_totals (p->model);
  g_autofree char *used = coop_cli_size (t->used), *hole = coop_cli_size (t->largest);
  g_autofree char *time = coop_cli_duration ((double) ev->ts);
  printf ("%6" G_GUINT64_FORMAT "  %-8s  used %-9s largest hole %-9s  %s\n", ev->seq, time, used, hole, text);
  pause_ask (p);
}

/* ---- what is said ---- */

static double
ratio_of (const Replay *r)
{
  gint64 budget = r->options.policy.v[COOP_PARAM_BUDGET].i;
  return budget > 0 && r->peak > 0 ? (double) budget / (double) r->peak : NAN;
}

static const char *
evictor_name (const Replay *r)
{
  return coop_param_info[COOP_PARAM_EVICTOR].labels[r->options.policy.v[COOP_PARAM_EVICTOR].i];
}

static void
print_failure (const Replay *r)
{
  const CoopOom *oom = &r->out.oom;
  if (oom->asked == 0)
    return;
  g_autofree char *asked = coop_cli_size (oom->asked), *free = coop_cli_size (oom->free);
  g_autofree char *largest = coop_cli_size (oom->largest), *evictable = coop_cli_size (oom->evictable);
  printf ("  out of memory    asked %s, free %s, largest hole %s, evictable %s\n", asked, free, largest, evictable);
  if (oom->advice == 0)
    return;
  g_autofree char *advice = coop_cli_size (oom->advice);
  printf ("                   by what was seen so far, %s (--budget %" G_GUINT64_FORMAT ") would do\n", advice,
          oom->advice);
}

static void
print_moves (const Replay *r)
{
  g_autofree char *bytes = coop_cli_size (r->out.moved_bytes), *time = coop_cli_duration ((double) r->out.move_ns);
  printf ("  moved            %" G_GUINT64_FORMAT " tensors (%s), %s\n", r->out.moves, bytes,
          r->program->copy_rate > 0 ? time : "at no cost in the overhead");
}

/* What an allocator that takes memory in segments did with them. */
static void
print_device (const Replay *r)
{
  const CoopTotals *t = &r->out.totals;
  g_autofree char *most = coop_cli_size (t->held_most), *time = coop_cli_duration ((double) t->device_ns);
  if (t->held_most == 0)
    return;
  printf ("  segments         %s at most; %" G_GUINT64_FORMAT " given back, %" G_GUINT64_FORMAT " pages moved, %s\n", most,
          t->returned, t->remaps, time);
}

static void
print_text (const Replay *r)
{
  const CoopPlayOutcome *o = &r->out;
  const CoopTotals *t = &o->totals;
  gint64 limit = r->options.policy.v[COOP_PARAM_BUDGET].i;
  g_autofree char *budget = coop_cli_size ((guint64) limit), *peak = coop_cli_size (r->peak);
  g_autofree char *used = coop_cli_size (t->peak), *bytes = coop_cli_size (t->evicted_bytes);
  g_autofree char *plain = coop_cli_duration ((double) o->plain_ns);
  g_autofree char *extra = coop_cli_duration ((double) (o->cost_ns + o->move_ns + o->device_ns - o->plain_ns));
  printf ("%s, %s, %s: %s\n", r->program->name, evictor_name (r), limit > 0 ? budget : "no limit",
          coop_play_text (o->result));
  if (r->options.as_recorded && r->program->has_policy)
    printf ("  policy           as recorded\n");
  if (r->peak > 0)
    printf ("  peak             %s of %s without limit%s\n", used, peak, limit > 0 ? "" : " (no limit set)");
  if (!isnan (ratio_of (r)))
    printf ("  memory ratio     %.3f\n", ratio_of (r));
  if (o->plain_ns > 0)
    printf ("  overhead         %.4f (%s on top of %s)\n", o->overhead, extra, plain);
  printf ("  evictions        %" G_GUINT64_FORMAT " (%s) in %" G_GUINT64_FORMAT " searches\n", t->evictions, bytes,
          t->searches);
  printf ("  recomputed       %" G_GUINT64_FORMAT " operators, beside %" G_GUINT64_FORMAT "\n", t->replays, t->ops);
  if (o->moves > 0)
    print_moves (r);
  if (t->searches > 0)
    printf ("  fragmentation    %.1f %% free at a search\n", 100 * t->fragmentation);
  print_device (r);
  if (r->options.measure && t->searches > 0)
    {
      g_autofree char *each = coop_cli_duration ((double) t->search_ns / (double) t->searches);
      printf ("  search           %s each\n", each);
    }
  if (o->thrashing > 0)
    printf ("  thrashing        %" G_GUINT64_FORMAT " tensors came back too often in one step\n", o->thrashing);
  print_failure (r);
  if (r->flags->trace != NULL)
    printf ("  trace            %s\n", r->flags->trace);
}

static void
json_optional (GString *out, const char *key, guint64 value, gboolean known)
{
  if (known)
    coop_json_uint (out, key, value);
  else
    coop_json_string (out, key, NULL);
}

static void
print_json (const Replay *r)
{
  const CoopPlayOutcome *o = &r->out;
  const CoopTotals *t = &o->totals;
  gint64 budget = r->options.policy.v[COOP_PARAM_BUDGET].i;
  g_autoptr (GString) out = g_string_new (NULL);
  coop_json_open (out, NULL, '{');
  coop_json_string (out, "program", r->program->name);
  coop_json_string (out, "result", coop_play_label (o->result));
  coop_json_string (out, "evictor", evictor_name (r));
  json_optional (out, "budget", (guint64) budget, budget > 0);
  json_optional (out, "peak_without_limit", r->peak, r->peak > 0);
  coop_json_real (out, "ratio", ratio_of (r));
  coop_json_bool (out, "as_recorded", r->options.as_recorded && r->program->has_policy);
  coop_json_real (out, "overhead", o->overhead);
  const struct { const char *key; guint64 value; } values[] = {
    { "plain_ns", o->plain_ns }, { "cost_ns", o->cost_ns }, { "lines_played", o->line },
    { "lines", r->program->lines->len }, { "peak", t->peak }, { "evictions", t->evictions },
    { "evicted_bytes", t->evicted_bytes }, { "searches", t->searches }, { "operators", t->ops },
    { "recomputed", t->replays }, { "recomputed_ns", t->replay_ns }, { "moves", o->moves }, { "moved_bytes", o->moved_bytes },
    { "move_ns", o->move_ns }, { "device_ns", o->device_ns },
    { "segments_most_bytes", t->held_most }, { "segments_returned", t->returned }, { "remaps", t->remaps },
    { "thrashing", o->thrashing } };
  for (guint i = 0; i < G_N_ELEMENTS (values); i++)
    coop_json_uint (out, values[i].key, values[i].value);
  coop_json_real (out, "fragmentation", t->searches > 0 ? t->fragmentation : NAN);
  json_optional (out, "search_ns", t->search_ns, r->options.measure);
  if (o->oom.asked > 0)
    {
      coop_json_open (out, "out_of_memory", '{');
      coop_json_uint (out, "asked", o->oom.asked);
      coop_json_uint (out, "free", o->oom.free);
      coop_json_uint (out, "largest", o->oom.largest);
      coop_json_uint (out, "evictable", o->oom.evictable);
      coop_json_uint (out, "advice", o->oom.advice);
      coop_json_close (out, '}');
    }
  coop_json_string (out, "trace", r->flags->trace);
  coop_json_close (out, '}');
  printf ("%s\n", out->str);
}

/* ---- the command ---- */

static int
play (Replay *r)
{
  g_autoptr (GError) error = NULL;
  r->options.measure = r->flags->measure;
  r->options.most = r->flags->most;
  if (isnan (r->options.most))   /* a run that was recorded did not give up either */
    r->options.most = r->options.as_recorded && r->program->has_policy ? 0 : 3;
  if (r->flags->pause)
    {
      r->pause = (Pause) { .model = coop_model_new (), .kind = ANY_KIND };
      r->options.sink = (CoopSink) { pause_sink, &r->pause };
    }
  if (isatty (STDERR_FILENO) || r->flags->pause)
    {
      r->options.keep_on = keep_on;
      r->options.user = r;
    }
  r->progress_at = g_get_monotonic_time ();
  if (r->flags->trace == NULL)
    coop_play (r->program, &r->options, &r->out);
  else if (!coop_play_record (r->program, &r->options, r->flags->trace, &r->out, &error))
    return coop_cli_fail (NAME, "%s", error->message);
  coop_progress_clear (STDERR_FILENO);
  g_clear_pointer (&r->pause.model, coop_model_free);
  if (r->out.result == COOP_PLAY_STOPPED || r->pause.ended)
    return COOP_EXIT_DONE;   /* by q: there is nothing to be said of a part */
  if (r->out.fault != NULL)
    return coop_cli_fail (NAME, "the engine contradicts itself: %s", r->out.fault);
  if (r->flags->json)
    print_json (r);
  else
    print_text (r);
  return r->out.result == COOP_PLAY_OK ? COOP_EXIT_DONE : COOP_EXIT_FAILED;
}

static int
replay (const Flags *flags, const char *path)
{
  Replay r = { .flags = flags };
  g_autoptr (GError) error = NULL;
  g_autoptr (CoopProgram) program = NULL;
  coop_play_options_init (&r.options);
  if (!flags_are_right (flags) || !apply_flags (&r))   /* wrong use is told before a file is read */
    return COOP_EXIT_USAGE;
  program = r.program = coop_program_load (path, &error);
  if (program == NULL)
    return coop_cli_fail (NAME, "%s", error->message);
  if (program->has_policy)
    r.options.policy = program->policy;
  else
    coop_play_copy_rate (program, &r.options.policy);
  if (!apply_flags (&r))
    return COOP_EXIT_USAGE;
  if (!apply_ratio (&r))
    return coop_cli_fail (NAME, "the program does not run through even without a limit: there is no peak "
                          "that --ratio could refer to");
  return play (&r);
}

int
coop_cmd_replay (int argc, char **argv)
{
  Flags f = { .ratio = NAN, .most = NAN };
  const GOptionEntry entries[] = {
    { "budget", 0, 0, G_OPTION_ARG_STRING, &f.budget, "Bytes of tensor memory: 300MiB, 1.5GB", "SIZE" },
    { "ratio", 0, 0, G_OPTION_ARG_DOUBLE, &f.ratio, "The same, as a part of the peak without limit: 0.6", "R" },
    { "evictor", 0, 0, G_OPTION_ARG_STRING, &f.evictor, "How victims are chosen", "NAME" },
    { "allocator", 0, 0, G_OPTION_ARG_STRING, &f.allocator, "How blocks are laid out", "NAME" },
    { "set", 0, 0, G_OPTION_ARG_STRING_ARRAY, &f.set, "Any parameter; `coop policy` lists them", "KEY=VALUE" },
    { "most", 0, 0, G_OPTION_ARG_DOUBLE, &f.most, "Give up at so many times the cost (3; as recorded: never); 0 never", "N" },
    { "measure", 0, 0, G_OPTION_ARG_NONE, &f.measure, "Time the searches; traces are then no longer identical", NULL },
    { "pause-each", 0, 0, G_OPTION_ARG_NONE, &f.pause, "Stop after each event and say what it was; Enter goes on", NULL },
    { "output", 'o', 0, G_OPTION_ARG_FILENAME, &f.trace, "Write a full trace, which coopscope shows", "FILE" },
    { "json", 0, 0, G_OPTION_ARG_NONE, &f.json, "Print one JSON object; sizes in bytes, times in ns", NULL },
    { NULL }
  };
  int code = COOP_EXIT_USAGE;
  if (coop_cli_parse ("FILE", "Plays a recorded program through the engine on a virtual clock: a trace (.coop), "
                      "JSON lines\n(.jsonl, .jsonl.gz) or a log of DTR's simulator. Costs are those of the file. "
                      "A trace is played at\nits own budget and policy, changes during the run included, unless an "
                      "option says otherwise (then it\nstarts from those, without the changes). Other programs have "
                      "no limit without --budget or --ratio.\nFails (1) where the program does not run through.",
                      entries, &argc, &argv))
    code = argc != 2 ? coop_cli_usage (NAME, "give one program: coop replay FILE") : replay (&f, argv[1]);
  g_free (f.budget);
  g_free (f.evictor);
  g_free (f.allocator);
  g_free (f.trace);
  g_strfreev (f.set);
  return code;
}
