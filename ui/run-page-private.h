/* SPDX-License-Identifier: Apache-2.0 */
/* Run page, inside: run-page-show.c puts a shot into the widgets, run-page.c does the rest.
 */
#pragma once

#include "camera.h"
#include "grab-note.h"
#include "run-page.h"
#include "what-if.h"

struct _CoopRunPage
{
  GtkWidget parent_instance;

  GtkWidget *flap, *panel, *headline, *oom, *what_if_card, *bar, *map, *other_map, *waiting, *spinner,
      *waiting_text, *legend, *scrubber, *chart, *chart_legend, *card, *drawer;

  CoopSession *session; /* NULL for a file */
  CoopCamera *camera;
  CoopShot *shot;
  CoopGrabNote *note;
  char *path;             /* of a file */
  CoopWhatIf *what_if;    /* once a slider was moved on a file */
  GArray *policies;       /* CoopPolicy: as recorded, then what was asked for, for undo */
  CoopCamera *other_camera;
  char *other_path;
  guint timer, legend_serial;
  gint64 words_at, shot_at;
  guint64 selected;
  guint64 found_addr;     /* the piece found last, if it has no block to select */
  gboolean found;
  gboolean why;           /* the last eviction is explained on the map */
  gboolean starting, reading, paused, live, failed, resting;
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
/* run-page-look.c: colours, zoom, search */
void coop_run_page_bind_look (GtkWidgetClass *widget_class);
void coop_run_page_show_look (CoopRunPage *self);
void coop_run_page_get_look (CoopRunPage *self, CoopLook *look);
void coop_run_page_set_camera_theme (CoopCamera *camera);
/* run-page-what-if.c */
void coop_run_page_bind_what_if (GtkWidgetClass *widget_class);
/* A person moved a slider on a file. */
void coop_run_page_ask_what_if (CoopRunPage *self, guint param);
gboolean coop_run_page_is_what_if (CoopRunPage *self);
void coop_run_page_clear_what_if (CoopRunPage *self);
void coop_run_page_other_sizes (CoopRunPage *self);
void coop_run_page_step_other (CoopRunPage *self);
void coop_run_page_take_other (CoopRunPage *self);
void coop_run_page_select (CoopRunPage *self, guint64 block);
/* To an event: of a file, or of the trace of a run that has ended. */
void coop_run_page_go_to (CoopRunPage *self, guint64 event);
void coop_run_page_look (CoopRunPage *self);
gboolean coop_run_page_is_running (CoopRunPage *self);
