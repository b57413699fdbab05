/* SPDX-License-Identifier: Apache-2.0 */
/* coop attach: a run that another process records, followed through its trace; its policy changed
 * through its control page. */
#include "cli.h"
#include "progress.h"

#include <glib-unix.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define NAME "attach"
#define TICK_MS 500

typedef struct {
  CoopSession *session;
  GMainLoop *loop;
  CoopProgress progress;
  gboolean json, once;
} Attach;

static void
print_json (const CoopFrame *frame)
{
  const CoopModelTotals *t = &frame->totals;
  g_autoptr (GString) out = g_string_new (NULL);
  coop_json_open (out, NULL, '{');
  coop_json_uint (out, "event", t->seq);
  coop_json_uint (out, "ns", t->ts);
  coop_json_uint (out, "used", t->used);
  coop_json_uint (out, "budget", t->budget);
  coop_json_uint (out, "peak", t->peak);
  coop_json_uint (out, "largest_hole", t->largest);
  coop_json_uint (out, "evictions", t->evictions);
  coop_json_uint (out, "recomputed", t->replays);
  coop_json_uint (out, "step", t->step);
  coop_json_close (out, '}');
  printf ("%s\n", out->str);
}

static void
show (Attach *attach)
{
  CoopFrame *frame = coop_session_frame (attach->session);
  if (frame == NULL)
    return;
  g_autofree char *text = coop_progress_text (&attach->progress, frame);
  if (attach->json)
    print_json (frame);
  else if (isatty (STDOUT_FILENO))
    printf ("\r\033[K%s", text);
  else
    printf ("%s\n", text);
  fflush (stdout);
  if (attach->once)
    g_main_loop_quit (attach->loop);
  coop_frame_unref (frame);
}

static gboolean
on_tick (gpointer user)
{
  show (user);
  return G_SOURCE_CONTINUE;
}

static void
on_message (CoopSession *session, const char *text, gpointer user)
{
  coop_cli_warn (NAME, "%s", text);
}

static void
on_state (CoopSession *session, gpointer user)
{
  Attach *attach = user;
  if (coop_session_get_state (session) >= COOP_SESSION_ENDED)
    g_main_loop_quit (attach->loop);
}

static gboolean
on_interrupt (gpointer loop)
{
  g_main_loop_quit (loop);
  return G_SOURCE_CONTINUE;
}

static int
follow (Attach *attach)
{
  attach->loop = g_main_loop_new (NULL, FALSE);
  g_signal_connect (attach->session, "message", G_CALLBACK (on_message), attach);
  g_signal_connect (attach->session, "state-changed", G_CALLBACK (on_state), attach);
  g_unix_signal_add (SIGINT, on_interrupt, attach->loop);
  g_timeout_add (attach->once ? 20 : TICK_MS, on_tick, attach);
  if (coop_session_get_state (attach->session) < COOP_SESSION_ENDED)
    g_main_loop_run (attach->loop);
  if (!attach->once)
    show (attach);
  if (!attach->json && !attach->once && isatty (STDOUT_FILENO))
    printf ("\n");
  g_main_loop_unref (attach->loop);
  return COOP_EXIT_DONE;
}

/* Sets what was asked for, on top of nothing: other parameters stay as they are. */
static gboolean
change_policy (CoopSession *session, const char *budget, char **set, guint64 *mask)
{
  CoopPolicy policy;
  coop_policy_init (&policy);
  if (budget != NULL && !coop_cli_policy_set (NAME, "budget", budget, &policy, mask))
    return FALSE;
  for (char **s = set; s != NULL && *s != NULL; s++)
    if (!coop_cli_policy_assign (NAME, *s, &policy, mask))
      return FALSE;
  if (*mask != 0 && session != NULL)
    coop_session_set_policy (session, &policy, *mask, COOP_SOURCE_FLAG);
  return TRUE;
}

int
coop_cmd_attach (int argc, char **argv)
{
  Attach attach = { 0 };
  g_autofree char *budget = NULL;
  g_auto (GStrv) set = NULL;
  g_autoptr (GError) error = NULL;
  guint64 mask = 0;
  char *end = NULL;
  const GOptionEntry entries[] = {
    { "budget", 0, 0, G_OPTION_ARG_STRING, &budget, "Give the run another budget", "SIZE" },
    { "set", 0, 0, G_OPTION_ARG_STRING_ARRAY, &set, "Change a parameter of the run", "KEY=VALUE" },
    { "once", 0, 0, G_OPTION_ARG_NONE, &attach.once, "Print one line and end", NULL },
    { "json", 0, 0, G_OPTION_ARG_NONE, &attach.json, "JSON, one object a line", NULL },
    { NULL }
  };
  if (!coop_cli_parse ("PID", "Follows a run that is under way, by the number of its process.", entries,
                       &argc, &argv)
      || !change_policy (NULL, budget, set, &mask))
    return COOP_EXIT_USAGE;
  long pid = argc == 2 ? strtol (argv[1], &end, 10) : 0;
  if (argc != 2 || *end != 0 || pid <= 0 || pid > G_MAXINT)
    return coop_cli_usage (NAME, "wants the number of one process");
  attach.session = coop_session_attach ((int) pid, &error);
  if (attach.session == NULL)
    return coop_cli_fail (NAME, "%s", error->message);
  change_policy (attach.session, budget, set, &mask);
  int code = follow (&attach);
  g_object_unref (attach.session);
  return code;
}
