/* SPDX-License-Identifier: Apache-2.0 */
/* Run words: what the run page says: blocks, events and out of memory in sentences and tables. */
#pragma once

#include <gtk/gtk.h>

#include "camera.h"

G_BEGIN_DECLS

/* A hole, or a block as far as the frame knows it. Any thread. g_free. */
char *coop_words_for_hole (const CoopScene *scene, long at);
char *coop_words_for_piece (const CoopScene *scene, long at);
/* How to use the map: what the card says while nothing is pointed at. */
const char *coop_words_for_nothing (void);
/* Asked, free, largest, pinned by reason, and the budget that would do. g_free. */
char *coop_words_for_oom (const CoopLastOom *oom);

GtkWidget *coop_words_new_event_table (void);
GtkWidget *coop_words_new_block_table (void);
/* Rows for them: the n newest CoopEventLine, newest first; the n largest pieces of the map. */
GPtrArray *coop_words_for_events (GPtrArray *events, guint n);
GPtrArray *coop_words_for_blocks (const CoopScene *scene, guint n);

/* Samples and names of the chart's lines, in the theme in force. Replaces what is there. */
void coop_words_fill_chart_legend (GtkBox *box);

G_END_DECLS
