/* SPDX-License-Identifier: Apache-2.0 */
/* Why these: the last eviction as a sentence and a table: what was asked for, which window was chosen,
 * what the runner-up would have cost, and each victim with what made its score.
 */
#pragma once

#include <gtk/gtk.h>

#include "shot.h"

G_BEGIN_DECLS

#define COOP_TYPE_WHY_VIEW (coop_why_view_get_type ())
G_DECLARE_FINAL_TYPE (CoopWhyView, coop_why_view, COOP, WHY_VIEW, GtkWidget)
/* Signal "picked" (guint n): a person chose the n-th victim of the frame. */

GtkWidget *coop_why_view_new (void);
void coop_why_view_set_shot (CoopWhyView *self, CoopShot *shot);
/* The sentence alone. g_free. */
char *coop_why_words (const CoopFrame *frame);

G_END_DECLS
