/* SPDX-License-Identifier: Apache-2.0 */
/* Run page, inside: run-page-show.c puts a shot into the widgets, run-page.c does the rest.
 */
#pragma once

#include "camera.h"
#include "grab-note.h"
#include "run-page.h"

struct _CoopRunPage
{
  GtkWidget parent_instance;

  GtkWidget *flap, *panel, *headline, *oom, *map, *waiting, *spinner,
      *waiting_text, *legend, *scrubber, *chart, *chart_legend, *card, *drawer;

  CoopSession *session; /* NULL for a file */
  CoopCamera *camera;
  CoopShot *shot;
  CoopGrabNote *note;
  guint timer;
  gint64 words_at, shot_at;
  guint64 selected;
  gboolean starting, paused, live, failed, resting;
};

/* Puts a new shot on the page; words only when they are due. */
void coop_run_page_show (CoopRunPage *self, CoopShot *shot);
/* The words, a few times a second, without a new shot. */
void coop_run_page_show_words_if_due (CoopRunPage *self);
/* Fills the tables up once a person has stopped scrubbing. */
void coop_run_page_rest (CoopRunPage *self);
void coop_run_page_show_tables (CoopRunPage *self);
/* What is pointed at or selected, in words. */
void coop_run_page_show_answer (CoopRunPage *self);
/* What may be done while the script runs, and what only after it. */
void coop_run_page_show_live (CoopRunPage *self);
void coop_run_page_show_waiting (CoopRunPage *self);
gboolean coop_run_page_is_running (CoopRunPage *self);
