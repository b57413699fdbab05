/* SPDX-License-Identifier: Apache-2.0 */
/* Window: one run or one trace. */
#pragma once

#include <adwaita.h>

#include "session/session.h"

G_BEGIN_DECLS

#define COOP_TYPE_WINDOW (coop_window_get_type ())
G_DECLARE_FINAL_TYPE (CoopWindow, coop_window, COOP, WINDOW, AdwApplicationWindow)
/* Signals:
 *   "started" (gboolean ok)  the script asked for runs, or is refused: the window says why
 *   "done" (int status)      it has ended with this exit status
 */

GtkWidget *coop_window_new (GtkApplication *application);
/* Starts a script in place of what is shown; returns at once. What is wrong is said in the window. */
void coop_window_run (CoopWindow *self, const CoopRunOptions *options);
/* Whether it is not known yet if that script can be started. */
gboolean coop_window_is_starting (CoopWindow *self);
gboolean coop_window_attach (CoopWindow *self, int pid);
/* Shows a trace after an event; G_MAXUINT64: at its end. A memory snapshot or a program is made a trace
 * first, which takes a while. */
void coop_window_open (CoopWindow *self, const char *path, guint64 event);
/* Whether it shows a run or a trace already. */
gboolean coop_window_is_busy (CoopWindow *self);
void coop_window_say (CoopWindow *self, GtkMessageType type, const char *text);
/* The text of the information bar while it is shown, else NULL. */
const char *coop_window_get_said (CoopWindow *self);

G_END_DECLS
