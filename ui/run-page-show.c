/* SPDX-License-Identifier: Apache-2.0 */
/* Run page, from shot to widgets. The map follows every shot; words and numbers change four times a
 * second, since nobody reads faster, and at once when the view is paused, so that all that stands
 * there is of one event.
 */
#include "config.h"

#include "run-page-private.h"

#include <glib/gi18n.h>

#include "chart-widget.h"
#include "drawer.h"
#include "headline.h"
#include "legend.h"
#include "map-widget.h"
#include "oom-card.h"
#include "policy-panel.h"
#include "run-words.h"
#include "scrubber.h"

#define WORDS_US (G_USEC_PER_SEC / 4)
#define REST_US (G_USEC_PER_SEC / 3)

void
coop_run_page_show_answer (CoopRunPage *self)
{
  const char *text = coop_words_for_nothing ();
  if (self->shot && self->shot->answer)
    text = self->shot->answer;
  else if (self->selected != 0)
    text = _("The selected block is gone.");
  if (!g_str_equal (text, gtk_label_get_text (GTK_LABEL (self->card))))
    gtk_label_set_text (GTK_LABEL (self->card), text);
}

gboolean
coop_run_page_is_running (CoopRunPage *self)
{
  return self->session && coop_session_get_state (self->session) <= COOP_SESSION_RECORDING;
}

/* The ghost of the request lies on the map while there is no room for it. */
static void
show_oom (CoopRunPage *self, const CoopFrame *frame)
{
  gboolean ghost = frame->has_oom && frame->oom.asked > frame->totals.largest;
  coop_oom_card_set_frame (COOP_OOM_CARD (self->oom), frame, coop_run_page_is_running (self), self->session != NULL);
  coop_map_widget_set_ghost (COOP_MAP_WIDGET (self->map), ghost ? frame->oom.asked : 0);
}

void
coop_run_page_show_tables (CoopRunPage *self)
{
  gboolean moving = self->session ? coop_run_page_is_running (self) && !self->paused : !self->resting;
  coop_drawer_set_shot (COOP_DRAWER (self->drawer), self->shot, moving);
}

void
coop_run_page_rest (CoopRunPage *self)
{
  if (self->session || self->resting || !self->shot || g_get_monotonic_time () - self->shot_at < REST_US)
    return;
  self->resting = TRUE;
  coop_run_page_show_tables (self);
}

/* What can be done while the script runs, and what only then. */
void
coop_run_page_show_live (CoopRunPage *self)
{
  gboolean live = coop_run_page_is_running (self);
  if (live == self->live && !self->path)
    return;
  self->live = live;
  coop_policy_panel_set_live (COOP_POLICY_PANEL (self->panel), live || self->path, !live);
  coop_chart_widget_set_seekable (COOP_CHART_WIDGET (self->chart), !live);
}

static void
show_history (CoopRunPage *self, const CoopFrame *frame)
{
  if (!coop_run_page_is_what_if (self))
    {
      coop_policy_panel_set_initial (COOP_POLICY_PANEL (self->panel), &frame->policy);
      g_array_set_size (self->policies, 0);
      g_array_append_val (self->policies, frame->policy);
    }
  coop_scrubber_set_place (COOP_SCRUBBER (self->scrubber), frame->totals.seq, self->shot->last_event,
                           frame->totals.ts);
  coop_chart_widget_set_now (COOP_CHART_WIDGET (self->chart), frame->totals.ts);
}

static void
show_words (CoopRunPage *self)
{
  const CoopScene *scene = self->shot->scene;
  if (!scene)
    return;
  const CoopFrame *frame = scene->frame;
  coop_headline_set_frame (COOP_HEADLINE (self->headline), frame);
  coop_legend_set_view (COOP_LEGEND (self->legend), &scene->view);
  coop_legend_set_extras (COOP_LEGEND (self->legend), scene->has_voids, scene->has_pending);
  coop_run_page_show_look (self);
  coop_policy_panel_reach (COOP_POLICY_PANEL (self->panel), MAX (frame->totals.peak, frame->totals.budget));
  if (!coop_run_page_is_what_if (self))
    coop_policy_panel_set_policy (COOP_POLICY_PANEL (self->panel), &frame->policy);
  show_oom (self, frame);
  coop_run_page_show_tables (self);
  coop_run_page_show_live (self);
  if (!self->session)
    show_history (self, frame);
  g_autofree char *sentence = coop_scene_describe (scene);
  gtk_accessible_update_property (GTK_ACCESSIBLE (self->map), GTK_ACCESSIBLE_PROPERTY_DESCRIPTION, sentence,
                                  -1);
  gtk_accessible_update_property (GTK_ACCESSIBLE (self->chart), GTK_ACCESSIBLE_PROPERTY_DESCRIPTION,
                                  sentence, -1);
}

void
coop_run_page_show_waiting (CoopRunPage *self)
{
  gboolean wait = (self->starting || self->reading || self->camera) && !self->failed && (!self->shot || !self->shot->scene);
  if (wait && self->session && coop_session_get_state (self->session) > COOP_SESSION_RECORDING)
    wait = FALSE;
  gtk_widget_set_visible (self->waiting, wait);
  gtk_spinner_set_spinning (GTK_SPINNER (self->spinner), wait);
  if (wait)
    gtk_label_set_text (GTK_LABEL (self->waiting_text),
                        self->starting || self->session
                                      ? _("The script is starting.\nThe map appears with its first tensor.")
                        : self->reading ? _("Reading the file…")
                                        : _("Reading the trace…"));
}

void
coop_run_page_show (CoopRunPage *self, CoopShot *shot)
{
  gint64 now = g_get_monotonic_time ();
  gboolean had_scene = self->shot && self->shot->scene;
  self->shot_at = now;
  self->resting = FALSE;
  g_clear_pointer (&self->shot, coop_shot_unref);
  self->shot = coop_shot_ref (shot);
  coop_map_widget_set_shot (COOP_MAP_WIDGET (self->map), shot);
  coop_chart_widget_set_shot (COOP_CHART_WIDGET (self->chart), shot);
  coop_run_page_show_answer (self);
  if (now - self->words_at >= WORDS_US || !self->session || !had_scene || shot->still)
    {
      self->words_at = now;
      show_words (self);
    }
  coop_run_page_show_waiting (self);
}

void
coop_run_page_show_words_if_due (CoopRunPage *self)
{
  gint64 now = g_get_monotonic_time ();
  if (!self->shot || !self->session || now - self->words_at < WORDS_US)
    return;
  self->words_at = now;
  show_words (self);
}
