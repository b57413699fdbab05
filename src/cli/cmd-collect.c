/* SPDX-License-Identifier: Apache-2.0 */
/* coop collect: owns the trace of a run that coopscope.start began in a process of its own. Prints
 * one line once the file is open and the ring is read; ends when the target has, or is gone. */
#include "cli.h"
#include "session/session.h"

#include <glib-unix.h>
#include <signal.h>
#include <stdio.h>
#include <unistd.h>

#define NAME "collect"

static void
on_message (CoopSession *session, const char *text, gpointer user)
{
  coop_cli_warn (NAME, "%s", text);
}

static void
on_state (CoopSession *session, gpointer loop)
{
  if (coop_session_get_state (session) >= COOP_SESSION_ENDED)
    g_main_loop_quit (loop);
}

/* SIGTERM: the run goes on, its trace ends here and says that it was interrupted. */
static gboolean
on_term (gpointer loop)
{
  g_main_loop_quit (loop);
  return G_SOURCE_CONTINUE;
}

static int
collect (CoopSession *session)
{
  g_autoptr (GMainLoop) loop = g_main_loop_new (NULL, FALSE);
  g_signal_connect (session, "message", G_CALLBACK (on_message), NULL);
  g_signal_connect (session, "state-changed", G_CALLBACK (on_state), loop);
  g_unix_signal_add (SIGTERM, on_term, loop);
  printf ("%s\n", coop_session_get_trace (session));
  fflush (stdout);
  if (coop_session_get_state (session) < COOP_SESSION_ENDED)
    g_main_loop_run (loop);
  while (g_main_context_iteration (NULL, FALSE))
    ;
  return COOP_EXIT_DONE;
}

int
coop_cmd_collect (int argc, char **argv)
{
  int fd = -1, pid = 0;
  g_autofree char *trace = NULL;
  g_autoptr (GError) error = NULL;
  const GOptionEntry entries[] = {
    { "fd", 0, 0, G_OPTION_ARG_INT, &fd, "Descriptor of the ring", "N" },
    { "trace", 0, 0, G_OPTION_ARG_FILENAME, &trace, "The file to write", "FILE" },
    { "pid", 0, 0, G_OPTION_ARG_INT, &pid, "Process that writes into the ring (our parent)", "P" },
    { NULL }
  };
  if (!coop_cli_parse (NULL, "Records a ring made by coopscope.start, which starts this by itself.",
                       entries, &argc, &argv))
    return COOP_EXIT_USAGE;
  signal (SIGXFSZ, SIG_IGN);   /* a limit on file sizes is to end the trace, not us */
  if (fd < 0 || trace == NULL || argc > 1)
    return coop_cli_usage (NAME, "wants --fd N --trace FILE");
  g_autoptr (CoopSession) session
      = coop_session_collect (fd, trace, pid > 0 ? pid : (int) getppid (), &error);
  if (session == NULL)
    return coop_cli_fail (NAME, "%s", error->message);
  return collect (session);
}
