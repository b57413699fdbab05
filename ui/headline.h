/* SPDX-License-Identifier: Apache-2.0 */
/* Headline: the few numbers that matter, large, and all counters, small. Widths are fixed and figures
 * tabular, so that nothing moves when they change.
 */
#pragma once

#include <gtk/gtk.h>

#include "session/session.h"

G_BEGIN_DECLS

#define COOP_TYPE_HEADLINE (coop_headline_get_type ())
G_DECLARE_FINAL_TYPE (CoopHeadline, coop_headline, COOP, HEADLINE, GtkWidget)
GtkWidget *coop_headline_new (void);
void coop_headline_set_frame (CoopHeadline *self, const CoopFrame *frame);

#define COOP_TYPE_COUNTERS (coop_counters_get_type ())
G_DECLARE_FINAL_TYPE (CoopCounters, coop_counters, COOP, COUNTERS, GtkWidget)
GtkWidget *coop_counters_new (void);
void coop_counters_set_frame (CoopCounters *self, const CoopFrame *frame,
                              const CoopSessionHealth *health);

G_END_DECLS
