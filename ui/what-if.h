/* SPDX-License-Identifier: Apache-2.0 */
/* What if: the program of a trace, played again under another policy on a thread of its own. The newest
 * wish wins: one that is under way is given up. Beside it stands the same program as it was recorded, so
 * that both come from the same machine, the engine on its virtual clock.
 */
#pragma once

#include <gio/gio.h>

#include "replay/play.h"

G_BEGIN_DECLS

typedef struct {
  gboolean known;
  CoopPolicy policy;
  CoopPlayOutcome outcome;
} CoopWhatIfSide;

#define COOP_TYPE_WHAT_IF (coop_what_if_get_type ())
G_DECLARE_FINAL_TYPE (CoopWhatIf, coop_what_if, COOP, WHAT_IF, GObject)
/* Signal "changed" (): something below has. */

/* Loads the program and plays it as recorded. */
CoopWhatIf *coop_what_if_new (const char *path);
/* Plays it under a policy; with_trace: into a trace, too, which can be looked at. */
void coop_what_if_ask (CoopWhatIf *self, const CoopPolicy *policy, gboolean with_trace);

gboolean coop_what_if_is_busy (CoopWhatIf *self);
/* As recorded, and as asked for last. */
const CoopWhatIfSide *coop_what_if_get_before (CoopWhatIf *self);
const CoopWhatIfSide *coop_what_if_get_after (CoopWhatIf *self);
/* Why there is nothing to be played; NULL: all is well. */
const char *coop_what_if_get_error (CoopWhatIf *self);
/* The trace of `after`; NULL if there is none yet. It goes with the next one. */
const char *coop_what_if_get_trace (CoopWhatIf *self);
/* The event of that trace at which the program is as far as it is at an event of the recorded one. */
guint64 coop_what_if_match (CoopWhatIf *self, guint64 event);

G_END_DECLS
