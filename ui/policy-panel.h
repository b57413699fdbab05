/* SPDX-License-Identifier: Apache-2.0 */
/* Policy panel: one control for every row of core/policy.h, in its groups. Nothing in it knows what a
 * parameter means; name, range, unit and help come from the list.
 */
#pragma once

#include <gtk/gtk.h>

#include "session/session.h"

G_BEGIN_DECLS

#define COOP_TYPE_POLICY_PANEL (coop_policy_panel_get_type ())
G_DECLARE_FINAL_TYPE (CoopPolicyPanel, coop_policy_panel, COOP, POLICY_PANEL, GtkWidget)
/* Signal "changed" (guint param): a person has set it; coop_policy_panel_get_value says to what. */

GtkWidget *coop_policy_panel_new (void);
/* The values in force. What was moved by hand within the last second is left alone, since the script
 * may not have taken it over yet. */
void coop_policy_panel_set_policy (CoopPolicyPanel *self, const CoopPolicy *policy);
/* The values at the start of the run: shown, and what the reset buttons go back to. A slider of large
 * sizes then reaches to twice its value. */
void coop_policy_panel_set_initial (CoopPolicyPanel *self, const CoopPolicy *policy);
CoopValue coop_policy_panel_get_value (CoopPolicyPanel *self, CoopParam param);
/* The slider of the budget reaches at least this far; it never shrinks under the pointer. */
void coop_policy_panel_reach (CoopPolicyPanel *self, guint64 bytes);
/* Tells the script what a person has set a parameter to; with the evictor goes its preset. */
void coop_policy_panel_apply (CoopPolicyPanel *self, CoopParam param, CoopSession *session);
/* FALSE: values are shown but cannot be changed. replay: those too that are fixed once a run has begun. */
void coop_policy_panel_set_live (CoopPolicyPanel *self, gboolean live, gboolean replay);
/* All values; putting them in by force, whether touched or not; and, after a person chose an evictor, what
 * its preset names. */
void coop_policy_panel_get_policy (CoopPolicyPanel *self, CoopPolicy *policy);
void coop_policy_panel_force (CoopPolicyPanel *self, const CoopPolicy *policy);
void coop_policy_panel_take_preset (CoopPolicyPanel *self, CoopParam param);

G_END_DECLS
