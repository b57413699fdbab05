/* SPDX-License-Identifier: Apache-2.0 */
/* State words: see the header. */
#include "config.h"

#include "state-words.h"

#include <glib/gi18n.h>

#include "format.h"

#define LATE_MS 250 /* a collector this far behind is said to be */

const char *const coop_state_classes[] = { "quiet", "recording", "paused", "good", "bad", NULL };

static char *
words_for_recording (CoopRunPage *page)
{
  const CoopFrame *frame = coop_run_page_get_frame (page);
  CoopSessionHealth health = { 0 };
  gboolean paused;
  g_object_get (page, "paused", &paused, NULL);
  if (!frame)
    return g_strdup (_("starting"));
  g_autofree char *clock = coop_format_clock (frame->totals.ts);
  g_autofree char *step = coop_format_count (frame->totals.step);
  const char *phase = coop_phase_label (frame->totals.phase);
  if (coop_run_page_get_health (page, &health) && health.closing > 0)
    return g_strdup_printf (_("closing the trace, %.0f %%"), 100 * health.closing);
  if (paused)
    /* Translators: the view stands still while the script goes on */
    return g_strdup_printf (_("view paused at %s · step %s"), clock, step);
  if (coop_run_page_get_health (page, &health) && health.lag_ms > LATE_MS)
    return g_strdup_printf (_("recording %s · behind by %.1f s"), clock, health.lag_ms / 1000);
  /* Translators: time, number of the training step, its phase */
  return g_strdup_printf (_("recording %s · step %s, %s"), clock, step, phase ? phase : "");
}

static char *
words_for_file (CoopRunPage *page)
{
  CoopRunState state;
  int exit;
  if (!coop_run_page_get_file_state (page, &state, &exit))
    return g_strdup (_("trace"));
  switch (state)
    {
    case COOP_RUN_RUNNING:
      return g_strdup (_("trace of a run under way"));
    case COOP_RUN_ENDED:
      return g_strdup_printf (_("trace · ended with status %d"), exit);
    case COOP_RUN_KILLED:
      return g_strdup_printf (_("trace · killed by signal %d"), exit);
    case COOP_RUN_INTERRUPTED:
      return g_strdup (_("trace · interrupted"));
    }
  return g_strdup (_("trace"));
}

char *
coop_words_for_state (CoopSession *session, gboolean trace, CoopRunPage *page, const char **class)
{
  gboolean paused;
  int exit = session ? coop_session_get_exit (session) : -1;
  *class = "quiet";
  g_object_get (page, "paused", &paused, NULL);
  if (!session)
    return trace ? words_for_file (page) : g_strdup ("");
  switch (coop_session_get_state (session))
    {
    case COOP_SESSION_STARTING:
      return g_strdup (_("starting"));
    case COOP_SESSION_RECORDING:
      *class = paused ? "paused" : "recording";
      return words_for_recording (page);
    case COOP_SESSION_ENDED:
      *class = exit == 0 ? "good" : "bad";
      return g_strdup_printf (_("ended with status %d"), exit);
    case COOP_SESSION_KILLED:
      *class = "bad";
      return g_strdup_printf (_("killed by signal %d (%s)"), exit, g_strsignal (exit));
    case COOP_SESSION_LOST:
      *class = "bad";
      return g_strdup (_("lost: its records make no sense or it went away"));
    }
  return g_strdup ("");
}
