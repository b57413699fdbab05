/* SPDX-License-Identifier: Apache-2.0 */
/* coop run: a script in a budget, recorded. The script keeps the terminal; what is said here goes to
 * stderr. Signals: a terminal's reach the script by themselves, those sent to us are passed on. */
#include "cli.h"
#include "progress.h"

#include <glib-unix.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/signalfd.h>
#include <unistd.h>

#define NAME "run"
#define PROGRESS_MS 200
#define LEAST_LIMIT (16u << 20)

typedef struct {
  CoopSession *session;
  GMainLoop *loop;
  CoopProgress progress;
  int signals;          /* signalfd */
  gboolean quiet, json;
} Run;

static void
on_message (CoopSession *session, const char *text, gpointer user)
{
  coop_progress_clear (STDERR_FILENO);
  coop_cli_warn (NULL, "%s", text);
}

static void
on_state (CoopSession *session, gpointer user)
{
  Run *run = user;
  if (coop_session_get_state (session) >= COOP_SESSION_ENDED)
    g_main_loop_quit (run->loop);
}

static gboolean
on_tick (gpointer user)
{
  Run *run = user;
  CoopSessionHealth health;
  coop_session_health (run->session, &health);
  CoopFrame *frame = coop_session_frame (run->session);
  if (health.closing > 0)
    {
      g_autofree char *text = g_strdup_printf ("closing the trace, %.0f %%", 100 * health.closing);
      coop_progress_draw (STDERR_FILENO, text);
    }
  else if (frame != NULL)
    {
      g_autofree char *text = coop_progress_text (&run->progress, frame);
      coop_progress_draw (STDERR_FILENO, text);
    }
  coop_frame_unref (frame);
  return G_SOURCE_CONTINUE;
}

/* The terminal's own signals went to the whole foreground group: the script has them already. */
static gboolean
on_signal (int fd, GIOCondition condition, gpointer user)
{
  Run *run = user;
  struct signalfd_siginfo info;
  while (read (fd, &info, sizeof info) == (ssize_t) sizeof info)
    if (info.ssi_code != SI_KERNEL || info.ssi_pid != 0)
      coop_session_signal (run->session, (int) info.ssi_signo);
  return G_SOURCE_CONTINUE;
}

/* Before any thread: all of them inherit the mask. A limit on file sizes is to end the trace, not us. */
static int
take_signals (void)
{
  sigset_t set;
  signal (SIGXFSZ, SIG_IGN);
  sigemptyset (&set);
  sigaddset (&set, SIGINT);
  sigaddset (&set, SIGQUIT);
  sigaddset (&set, SIGTERM);
  sigaddset (&set, SIGHUP);
  sigaddset (&set, SIGUSR1);
  sigaddset (&set, SIGUSR2);
  sigprocmask (SIG_BLOCK, &set, NULL);
  return signalfd (-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
}

/* ---- the summary -------------------------------------------------------------------------- */

static gboolean
limited (const CoopModelTotals *t)
{
  return t->budget != 0 && t->budget < t->capacity;
}

static void
print_oom (const CoopFrame *frame)
{
  const CoopLastOom *oom = &frame->oom;
  g_autofree char *asked = coop_cli_size (oom->asked), *free = coop_cli_size (oom->free);
  g_autofree char *largest = coop_cli_size (oom->largest);
  g_autofree char *times = coop_cli_count (frame->totals.ooms, "time", "times");
  fprintf (stderr, "  out of memory    %s; last: asked %s, free %s, largest hole %s\n", times, asked, free, largest);
  if (oom->advice != 0)
    {
      g_autofree char *advice = coop_cli_size (oom->advice);
      fprintf (stderr, "                   a budget of %s (--budget %" G_GUINT64_FORMAT ") would have done\n",
               advice, oom->advice);
    }
}

static void
print_trace (CoopSession *session, const char *trace)
{
  CoopSessionHealth health;
  coop_session_health (session, &health);
  if (trace == NULL)
    fprintf (stderr, "  trace            none\n");
  else if (!g_file_test (trace, G_FILE_TEST_EXISTS))
    fprintf (stderr, "  trace            none: %s is not there any more\n", trace);
  else if (health.lost > 0)
    fprintf (stderr, "  trace            %s, incomplete: %" G_GUINT64_FORMAT " events are not in it\n", trace, health.lost);
  else
    fprintf (stderr, "  trace            %s\n", trace);
}

static void
print_summary (CoopSession *session, const CoopFrame *frame)
{
  const CoopModelTotals *t = &frame->totals;
  const char *trace = coop_session_get_trace (session);
  g_autofree char *peak = coop_cli_size (t->peak), *budget = coop_cli_size (t->budget);
  g_autofree char *bytes = coop_cli_size (t->evicted_bytes);
  g_autofree char *extra = coop_cli_duration ((double) t->replay_ns);
  if (limited (t))
    fprintf (stderr, "coop: peak %s of %s\n", peak, budget);
  else
    fprintf (stderr, "coop: peak %s, no limit\n", peak);
  fprintf (stderr, "  evictions        %" G_GUINT64_FORMAT " (%s)\n", t->evictions, bytes);
  fprintf (stderr, "  recomputed       %" G_GUINT64_FORMAT " operators of %" G_GUINT64_FORMAT "\n",
           t->replays, t->ops);
  fprintf (stderr, "  extra time       %s (%.1f %% of the operators')\n", extra,
           t->op_ns > 0 ? 100.0 * (double) t->replay_ns / (double) t->op_ns : 0.0);
  fprintf (stderr, "  fragmentation    %.1f %% free at a search\n", 100 * t->fragmentation);
  if (frame->has_oom)
    print_oom (frame);
  if (t->missing > 0)
    fprintf (stderr, "  missing          %" G_GUINT64_FORMAT " events: the figures may be low\n",
             t->missing);
  print_trace (session, trace);
}

static void
print_json (CoopSession *session, const CoopFrame *frame, int code)
{
  const CoopModelTotals *t = &frame->totals;
  g_autoptr (GString) out = g_string_new (NULL);
  coop_json_open (out, NULL, '{');
  coop_json_int (out, "exit_code", code);
  coop_json_uint (out, "peak", t->peak);
  if (limited (t))
    coop_json_uint (out, "budget", t->budget);
  else
    coop_json_string (out, "budget", NULL);
  coop_json_uint (out, "evictions", t->evictions);
  coop_json_uint (out, "evicted_bytes", t->evicted_bytes);
  coop_json_uint (out, "operators", t->ops);
  coop_json_uint (out, "recomputed", t->replays);
  coop_json_uint (out, "operator_ns", t->op_ns);
  coop_json_uint (out, "extra_ns", t->replay_ns);
  coop_json_real (out, "fragmentation", t->fragmentation);
  coop_json_uint (out, "out_of_memory", t->ooms);
  if (frame->has_oom)
    coop_json_uint (out, "advice", frame->oom.advice);
  coop_json_uint (out, "missing_events", t->missing);
  coop_json_string (out, "trace", coop_session_get_trace (session));
  coop_json_close (out, '}');
  fprintf (stderr, "%s\n", out->str);
}

static int
exit_code (CoopSession *session)
{
  int code = coop_session_get_exit (session);
  if (coop_session_get_state (session) == COOP_SESSION_KILLED)
    return 128 + code;
  return code < 0 ? COOP_EXIT_FAILED : code;
}

static int
report (Run *run)
{
  int code = exit_code (run->session);
  CoopFrame *frame = coop_session_frame (run->session);
  while (g_main_context_iteration (NULL, FALSE))   /* messages of the last moment */
    ;
  coop_progress_clear (STDERR_FILENO);
  if (frame != NULL && run->json)
    print_json (run->session, frame, code);
  else if (frame != NULL && !run->quiet)
    print_summary (run->session, frame);
  coop_frame_unref (frame);
  return code;
}

/* ---- options ------------------------------------------------------------------------------ */

typedef struct {
  char *budget, *evictor, *allocator, *trace, *ring, *limit, *detail;
  char *policy, *device;
  double rehearse;
  char **set;
  gboolean verify, quiet, json;
} Flags;

static gboolean
apply_trace_flags (const Flags *flags, CoopRunOptions *options)
{
  guint detail = 0;
  if (flags->limit != NULL && strcmp (flags->limit, "none") == 0)
    options->trace_limit = 0;
  else if (flags->limit != NULL
           && (coop_size_parse (flags->limit, &options->trace_limit) != COOP_PARSE_OK
               || options->trace_limit < LEAST_LIMIT))
    {
      coop_cli_usage (NAME, "--trace-limit: \"%s\" is neither a size of at least 16MiB nor \"none\"", flags->limit);
      return FALSE;
    }
  while (flags->detail != NULL && detail < COOP_N_DETAILS && strcmp (flags->detail, coop_detail_label (detail)) != 0)
    detail++;
  if (detail == COOP_N_DETAILS)
    {
      coop_cli_usage (NAME, "--trace-detail: \"%s\" is none of full, blocks, summary", flags->detail);
      return FALSE;
    }
  options->trace_detail = detail;
  return TRUE;
}

static gboolean
apply_flags (const Flags *flags, CoopRunOptions *options)
{
  CoopPolicy *policy = &options->policy;
  guint64 mask = 0, ring = 0;
  if (flags->policy != NULL && !coop_cli_policy_file (NAME, flags->policy, policy, &mask))
    return FALSE;
  if (flags->evictor != NULL
      && !coop_cli_policy_set (NAME, "evictor", flags->evictor, policy, &mask))
    return FALSE;
  if (flags->allocator != NULL
      && !coop_cli_policy_set (NAME, "allocator", flags->allocator, policy, &mask))
    return FALSE;
  if (flags->budget != NULL && !coop_cli_policy_set (NAME, "budget", flags->budget, policy, &mask))
    return FALSE;
  if (flags->verify && !coop_cli_policy_set (NAME, "verify", "yes", policy, &mask))
    return FALSE;
  for (char **s = flags->set; s != NULL && *s != NULL; s++)
    if (!coop_cli_policy_assign (NAME, *s, policy, &mask))
      return FALSE;
  if (flags->ring != NULL && (coop_size_parse (flags->ring, &ring) != COOP_PARSE_OK || ring == 0))
    {
      coop_cli_usage (NAME, "--ring: \"%s\" is not a size", flags->ring);
      return FALSE;
    }
  if (flags->device != NULL && !g_regex_match_simple ("^(host|auto|cuda(:[0-9]+)?)$", flags->device, 0, 0))
    {
      coop_cli_usage (NAME, "--device: \"%s\" is none of host, cuda, cuda:N, auto", flags->device);
      return FALSE;
    }
  if (flags->device != NULL) /* the adapter in the script's process reads it */
    g_setenv ("COOPSCOPE_DEVICE", flags->device, TRUE);
  if (!(flags->rehearse >= 0 && flags->rehearse <= 1))
    {
      coop_cli_usage (NAME, "--rehearse wants a share of one core between 0 (no) and 1");
      return FALSE;
    }
  options->rehearse = flags->rehearse;
  options->ring_bytes = ring;
  return apply_trace_flags (flags, options);
}

static void
clear_flags (Flags *flags)
{
  g_free (flags->policy);
  g_free (flags->device);
  g_free (flags->budget);
  g_free (flags->evictor);
  g_free (flags->allocator);
  g_free (flags->trace);
  g_free (flags->ring);
  g_free (flags->limit);
  g_free (flags->detail);
  g_strfreev (flags->set);
}

static int
run_session (const CoopRunOptions *options, const Flags *flags)
{
  g_autoptr (GError) error = NULL;
  Run run = { .quiet = flags->quiet, .json = flags->json, .signals = take_signals () };
  run.session = coop_session_start (options, &error);
  if (run.session == NULL)
    {
      gboolean failed = error->domain != COOP_SESSION_ERROR || error->code == COOP_SESSION_ERROR_SYSTEM;
      coop_cli_warn (NAME, "%s", error->message);
      return failed ? COOP_EXIT_FAILED : COOP_EXIT_USAGE;
    }
  run.loop = g_main_loop_new (NULL, FALSE);
  g_signal_connect (run.session, "message", G_CALLBACK (on_message), &run);
  g_signal_connect (run.session, "state-changed", G_CALLBACK (on_state), &run);
  g_unix_fd_add (run.signals, G_IO_IN, on_signal, &run);
  if (!run.quiet && isatty (STDERR_FILENO))
    g_timeout_add (PROGRESS_MS, on_tick, &run);
  if (coop_session_get_state (run.session) < COOP_SESSION_ENDED)
    g_main_loop_run (run.loop);
  int code = report (&run);
  g_object_unref (run.session);
  g_main_loop_unref (run.loop);
  close (run.signals);
  return code;
}

int
coop_cmd_run (int argc, char **argv)
{
  Flags flags = { 0 };
  const GOptionEntry entries[] = {
    { "budget", 0, 0, G_OPTION_ARG_STRING, &flags.budget,
      "Bytes of tensor memory: 300MiB, 1.5GB; no limit without it", "SIZE" },
    { "evictor", 0, 0, G_OPTION_ARG_STRING, &flags.evictor, "How victims are chosen (coop)", "NAME" },
    { "allocator", 0, 0, G_OPTION_ARG_STRING, &flags.allocator, "How blocks are laid out (merge)", "NAME" },
    { "device", 0, 0, G_OPTION_ARG_STRING, &flags.device,
      "Whose memory: host (without it), cuda, cuda:N, or auto: cuda where there is a GPU and PyTorch is built for it", "DEVICE" },
    { "policy", 0, 0, G_OPTION_ARG_FILENAME, &flags.policy, "A policy file, as coop rehearse writes it; what options say goes before it", "FILE" },
    { "set", 0, 0, G_OPTION_ARG_STRING_ARRAY, &flags.set, "Any parameter; `coop policy` lists them", "KEY=VALUE" },
    { "rehearse", 0, 0, G_OPTION_ARG_DOUBLE, &flags.rehearse,
      "Try other policies on recorded steps while it runs, with this share of one core (0.5)", "SHARE" },
    { "verify", 0, 0, G_OPTION_ARG_NONE, &flags.verify, "Compare the bits of all that is recomputed", NULL },
    { "output", 'o', 0, G_OPTION_ARG_FILENAME, &flags.trace, "The trace; a name is made without it", "FILE" },
    { "ring", 0, 0, G_OPTION_ARG_STRING, &flags.ring, "Size of the ring (32MiB)", "SIZE" },
    { "trace-limit", 0, 0, G_OPTION_ARG_STRING, &flags.limit,
      "What the trace may take (4GiB, or \"none\"); past it the latest is kept", "SIZE" },
    { "trace-detail", 0, 0, G_OPTION_ARG_STRING, &flags.detail,
      "full, blocks (no operators) or summary (no blocks either)", "WHAT" },
    { "quiet", 'q', 0, G_OPTION_ARG_NONE, &flags.quiet, "Neither progress nor summary", NULL },
    { "json", 0, 0, G_OPTION_ARG_NONE, &flags.json, "The summary as JSON, on stderr", NULL },
    { NULL }
  };
  CoopRunOptions options;
  int code = COOP_EXIT_USAGE;
  coop_run_options_init (&options);
  if (coop_cli_parse ("-- COMMAND...", "Runs a script inside a memory budget and records what happens. "
                      "Returns the script's exit code.", entries, &argc, &argv)
      && apply_flags (&flags, &options))
    {
      options.argv = g_strdupv (argv + 1);
      options.trace = g_strdup (flags.trace);
      options.terminal = TRUE;
      code = argc < 2 ? coop_cli_usage (NAME, "which command? coop run [OPTIONS] -- python3 train.py")
                      : run_session (&options, &flags);
    }
  coop_run_options_clear (&options);
  clear_flags (&flags);
  return code;
}
