/* SPDX-License-Identifier: Apache-2.0 */
/* Toy: traces typed by hand, one command a line (or several with ; between):
 *
 *   a SIZE [COST] [from N,N..]  a tensor, made by a cheap operator (1ms unless told) from others
 *   A SIZE [COST] [from N,N..]  the same by an expensive one: the policy may place it elsewhere
 *   c SIZE                      a constant: never evicted
 *   u N                         tensor N is used: it is brought back if it was evicted
 *   w N                         tensor N is written in place, by an operator of 1ms
 *   f N                         the user lets go of it
 *
 * Tensors are numbered 1, 2, .. in the order of a, A and c. Sizes as everywhere: 1200, 4KiB. What is
 * played is an ordinary program, by the engine that serves real runs.
 */
#pragma once

#include "replay/play.h"
#include "session/session.h"

G_BEGIN_DECLS

/* Appends commands. FALSE with error: the word that is wrong, and nothing is appended of that line. */
gboolean coop_toy_add (CoopProgram *program, const char *commands, GError **error);
CoopProgram *coop_toy_new (void);

/* The map and the numbers after all of it. */
typedef struct {
  CoopFrame *frame;
  CoopPlayOutcome outcome;
} CoopToyView;
void coop_toy_play (const CoopProgram *program, const CoopPolicy *policy, CoopToyView *view);
void coop_toy_view_clear (CoopToyView *view);
/* Of a toy: nothing small apart, nothing moved, nothing held, one group, 8 KiB. */
void coop_toy_policy_init (CoopPolicy *policy);

G_END_DECLS
