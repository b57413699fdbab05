/* SPDX-License-Identifier: Apache-2.0 */
/* Run page: the map and all that explains it, of a running session or of a trace file. */
#pragma once

#include <gtk/gtk.h>

#include "session/session.h"

G_BEGIN_DECLS

#define COOP_TYPE_RUN_PAGE (coop_run_page_get_type ())
G_DECLARE_FINAL_TYPE (CoopRunPage, coop_run_page, COOP, RUN_PAGE, GtkWidget)
/* Signals:
 *   "refreshed" ()                 a new shot is on screen
 *   "failed" (const char *text)    there will be none, and why
 *   "again" (guint64 budget)       a person wants to run it again with this budget
 *   "moment" (guint64 event)       a person wants to see that event of the finished trace
 *   "sought" (guint64 ts)          or that time of it
 * Properties: "paused" (read-write), "panel-shown" (read-write), "drawer-shown" (read-write). */

GtkWidget *coop_run_page_new (void);
/* Nothing to show yet but that something will be, with this policy. */
void coop_run_page_set_starting (CoopRunPage *self, const CoopPolicy *initial);
/* The same of a file that is being made a trace. */
void coop_run_page_set_reading (CoopRunPage *self);
/* Watches a session; `initial` is the policy that it was started with. */
void coop_run_page_set_session (CoopRunPage *self, CoopSession *session, const CoopPolicy *initial);
/* Shows a trace after an event (G_MAXUINT64: at its end), with a scrubber over its events. */
void coop_run_page_set_file (CoopRunPage *self, const char *path, guint64 event);
/* Of a file: shows it at another time, or so many evictions on (n < 0: back). */
void coop_run_page_seek (CoopRunPage *self, guint64 ts);
void coop_run_page_step_eviction (CoopRunPage *self, int n);
/* A command by its action's name: "find", "zoom-in", "zoom-out", "zoom-all", "why". */
void coop_run_page_do (CoopRunPage *self, const char *command);
void coop_run_page_clear (CoopRunPage *self);
/* The frame on screen, NULL before the first. Valid until the next turn of the main loop. */
const CoopFrame *coop_run_page_get_frame (CoopRunPage *self);
/* How the run of a file ended; FALSE if that is not known yet or there is no file. */
gboolean coop_run_page_get_file_state (CoopRunPage *self, CoopRunState *state, int *exit);
/* What the file does not tell, in a line; NULL: nothing, or it is a session. g_free. */
char *coop_run_page_get_lacks (CoopRunPage *self);
gboolean coop_run_page_get_health (CoopRunPage *self, CoopSessionHealth *health);

G_END_DECLS
