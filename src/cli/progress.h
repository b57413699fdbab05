/* SPDX-License-Identifier: Apache-2.0 */
/* Progress: one line about a run, for a terminal that the script writes to as well. */
#ifndef COOP_PROGRESS_H
#define COOP_PROGRESS_H

#include "session/session.h"

/* "live 310.2 MiB of 340.0 MiB, largest hole ...", from the newest frame and the one before. */
typedef struct {
  gint64 at;                       /* of the last text, us */
  guint64 evictions, op_ns, replay_ns;
  double evictions_per_s, recompute;  /* share of operator time spent on recomputing */
} CoopProgress;
char *coop_progress_text (CoopProgress *progress, const CoopFrame *frame);

/* Draws text at the right edge of the terminal on fd, in the line where the cursor is, and leaves
 * the cursor alone: what the script prints is never broken. Nothing if fd is no terminal. */
void coop_progress_draw (int fd, const char *text);
/* Erases what is right of the cursor. */
void coop_progress_clear (int fd);

#endif
