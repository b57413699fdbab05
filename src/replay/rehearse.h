/* SPDX-License-Identifier: Apache-2.0 */
/* Rehearsal: training repeats itself step after step, so a recorded step tells what other policies would
 * have made of it. Policies are tried on the recorded program under a budget, each on an engine of its own
 * and a virtual clock; the best is kept.
 *
 * What is compared is the time of the latest whole steps: operators, what was run again, and copies of
 * tensors that were moved. The first steps, in which state is made, count only for a program that has no
 * others. Any thread; nothing here touches a run that is going on.
 */
#ifndef COOP_REHEARSE_H
#define COOP_REHEARSE_H

#include "replay/play.h"

typedef struct {
  char *text;                /* what was changed against the policy it began from: "evictor=dte" */
  CoopPolicy policy;
  CoopPlayResult result;
  double overhead;           /* of the steps compared, mean of both plays: time over the operators' own; infinite:
                                did not run through */
  guint64 recomputed_ns, copied_ns;   /* in them, at the costs recorded */
} CoopTrial;

typedef struct {
  CoopTrial as_is;           /* the policy it began from */
  CoopTrial best;
  guint trials;
  guint steps;               /* compared; 0: the whole program was */
  double seconds;            /* of processor time */
  gboolean stopped;          /* by keep_on or the time allowed: best of what was tried */
} CoopRehearsal;

typedef struct {
  double copy_rate;          /* bytes per ns that moving a tensor takes; 0: as the program's machine, or 4 */
  double seconds;            /* processor time allowed; 0: no bound */
  double disturb;            /* each policy is also played with operator costs off by up to this part, and
                                judged by the mean, so that none is chosen for luck; 0.1; 0: not */
  double gain;               /* a policy must be better by this part to be kept; 0.01 unless told otherwise */
  gboolean (*keep_on) (gpointer user);                      /* may be NULL; FALSE stops */
  void (*tried) (gpointer user, const CoopTrial *trial);    /* may be NULL; each trial, as it ends */
  gpointer user;
} CoopRehearseOptions;
void coop_rehearse_options_init (CoopRehearseOptions *options);

/* `from`: budget included. Parameters that are fixed once a run has started are left as they are. `out` is
 * cleared with coop_rehearsal_clear. */
void coop_rehearse (const CoopProgram *program, const CoopPolicy *from, const CoopRehearseOptions *options,
                    CoopRehearsal *out);
void coop_rehearsal_clear (CoopRehearsal *out);

/* One policy, compared in the same way. `trial` is cleared with coop_trial_clear. */
void coop_rehearse_one (const CoopProgram *program, const CoopPolicy *policy, const CoopRehearseOptions *options,
                        CoopTrial *trial);
void coop_trial_clear (CoopTrial *trial);

#endif
