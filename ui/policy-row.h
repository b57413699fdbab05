/* SPDX-License-Identifier: Apache-2.0 */
/* Policy row: the control of one parameter: a slider with an entry, a list, or a switch. */
#pragma once

#include <gtk/gtk.h>

#include "core/policy.h"

G_BEGIN_DECLS

#define COOP_TYPE_POLICY_ROW (coop_policy_row_get_type ())
G_DECLARE_FINAL_TYPE (CoopPolicyRow, coop_policy_row, COOP, POLICY_ROW, GtkWidget)
/* Signal "changed" (): a person has set it. */

GtkWidget *coop_policy_row_new (CoopParam param);
CoopParam coop_policy_row_get_param (CoopPolicyRow *self);
CoopValue coop_policy_row_get_value (CoopPolicyRow *self);
/* Shows a value without the signal. */
void coop_policy_row_set_value (CoopPolicyRow *self, CoopValue value);
/* What reset goes back to; a slider of large sizes then reaches to twice that. */
void coop_policy_row_set_initial (CoopPolicyRow *self, CoopValue value);
/* Monotonic time of the last change by hand. */
gint64 coop_policy_row_get_touched (CoopPolicyRow *self);
/* A slider of large sizes reaches at least to `bytes`. */
void coop_policy_row_reach (CoopPolicyRow *self, guint64 bytes);
/* Fixed: shown but not to be changed, and says why. */
void coop_policy_row_set_live (CoopPolicyRow *self, gboolean live);

/* Slider position <-> value; both directions are monotone. Sizes up to 16 MiB move in KiB, larger ones
 * in MiB, both linearly; a real or integer with a wide range moves on a logarithm that begins at 0. */
double coop_policy_row_to_slider (CoopParam param, CoopValue value);
CoopValue coop_policy_row_from_slider (CoopParam param, double position);

G_END_DECLS
