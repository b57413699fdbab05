/* SPDX-License-Identifier: Apache-2.0 */
/* Window, inside: window-actions.c holds what menu, keys and buttons call, window.c the rest.
 */
#pragma once

#include "session/session.h"
#include "window.h"

typedef enum { THEN_NOTHING, THEN_FORM, THEN_CLOSE } CoopThen;

struct _CoopWindow
{
  AdwApplicationWindow parent_instance;

  GtkWidget *title, *chip, *info_bar, *info_text, *toasts, *pages, *form, *page, *pause_button;
  CoopSession *session;
  char *trace;        /* of the run or the file */
  char *save_to;      /* asked for while the script runs */
  GCancellable *starting; /* while it is not known yet whether the run can be started */
  GCancellable *importing; /* while a file of somebody else's is made a trace */
  CoopRunOptions options; /* of the run; argv NULL: none */
  char *last_words;   /* last line on the script's stderr: of an exception, what it is */
  GSettings *settings;
  GMenu *recent;      /* of the main menu: traces opened last */
  gboolean low, told_missing, told_lacks;
  CoopThen then;      /* once the script has ended */
};

void coop_window_add_actions (CoopWindow *self);
/* Once there is a page: what it does by itself shows on the actions. */
void coop_window_follow_page (CoopWindow *self);

void coop_window_show_recent (CoopWindow *self);
void coop_window_note_recent (CoopWindow *self, const char *path);
gboolean coop_window_is_running (CoopWindow *self);
void coop_window_toast (CoopWindow *self, const char *text);
void coop_window_save_now (CoopWindow *self, const char *to);
void coop_window_show_chip (CoopWindow *self);
/* Nothing is run or shown any more: back to the form. */
void coop_window_show_form (CoopWindow *self);
void coop_window_stop_then (CoopWindow *self, CoopThen then);
void coop_window_ask_to_stop (CoopWindow *self, CoopThen then);
