/* SPDX-License-Identifier: Apache-2.0 */
/* What-if card: two outcomes of one program, one below the other, and what to do with them.
 */
#pragma once

#include <gtk/gtk.h>

#include "what-if.h"

G_BEGIN_DECLS

#define COOP_TYPE_WHAT_IF_CARD (coop_what_if_card_get_type ())
G_DECLARE_FINAL_TYPE (CoopWhatIfCard, coop_what_if_card, COOP, WHAT_IF_CARD, GtkWidget)
/* Signals: "maps" (gboolean two)  one map or both; "undo" (), "reset" ()  of the sliders */

GtkWidget *coop_what_if_card_new (void);
void coop_what_if_card_show (CoopWhatIfCard *self, CoopWhatIf *what_if);
gboolean coop_what_if_card_get_maps (CoopWhatIfCard *self);
void coop_what_if_card_set_maps (CoopWhatIfCard *self, gboolean two);

G_END_DECLS
