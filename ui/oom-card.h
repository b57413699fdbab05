/* SPDX-License-Identifier: Apache-2.0 */
/* Out-of-memory card: what was asked for, why there was no room, and what would do. */
#pragma once

#include <gtk/gtk.h>

#include "session/session.h"

G_BEGIN_DECLS

#define COOP_TYPE_OOM_CARD (coop_oom_card_get_type ())
G_DECLARE_FINAL_TYPE (CoopOomCard, coop_oom_card, COOP, OOM_CARD, GtkWidget)
/* Signals: "budget" (guint64 bytes): the budget that would do is wanted;
 *          "moment" (guint64 event): the map at the event is wanted. */

GtkWidget *coop_oom_card_new (void);
/* Shows the frame's last one and itself, or hides. running: the script can take another budget;
 * startable: it could be run again. */
void coop_oom_card_set_frame (CoopOomCard *self, const CoopFrame *frame, gboolean running,
                              gboolean startable);

G_END_DECLS
