/* SPDX-License-Identifier: Apache-2.0 */
/* Scrubber: which event of a trace is shown, as a slider and in words.
 */
#pragma once

#include <gtk/gtk.h>

G_BEGIN_DECLS

#define COOP_TYPE_SCRUBBER (coop_scrubber_get_type ())
G_DECLARE_FINAL_TYPE (CoopScrubber, coop_scrubber, COOP, SCRUBBER, GtkWidget)
/* Signal "scrubbed" (guint64 seq): another event is wanted. */

GtkWidget *coop_scrubber_new (void);
/* What is shown now, of how many, and its time. The slider follows only when coop_scrubber_follow was
 * called before: while a person drags it, pictures come later than it moves. No signal. */
void coop_scrubber_set_place (CoopScrubber *self, guint64 seq, guint64 last, guint64 ts);
void coop_scrubber_follow (CoopScrubber *self);
/* As if a person had moved the slider there; past either end means the end. */
void coop_scrubber_go_to (CoopScrubber *self, guint64 seq);
/* On by n events, n < 0: back. */
void coop_scrubber_step (CoopScrubber *self, int n);
guint64 coop_scrubber_get_event (CoopScrubber *self);

G_END_DECLS
