/* SPDX-License-Identifier: Apache-2.0 */
/* Start form: which script, where, and with how much memory. */
#pragma once

#include <gtk/gtk.h>

#include "session/session.h"

G_BEGIN_DECLS

#define COOP_TYPE_START_FORM (coop_start_form_get_type ())
G_DECLARE_FINAL_TYPE (CoopStartForm, coop_start_form, COOP, START_FORM, GtkWidget)
/* Signals: "start" (): to be run now; coop_start_form_get_options says what. */

GtkWidget *coop_start_form_new (void);
/* Fills in an initialised `options`. FALSE with a sentence if something is not right. */
gboolean coop_start_form_get_options (CoopStartForm *self, CoopRunOptions *options, GError **error);
void coop_start_form_set_script (CoopStartForm *self, const char *path);
/* Busy: nothing can be started from here now. */
void coop_start_form_set_busy (CoopStartForm *self, gboolean busy);
/* The button that Enter presses. */
GtkWidget *coop_start_form_get_default (CoopStartForm *self);

G_END_DECLS
