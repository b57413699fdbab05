/* SPDX-License-Identifier: Apache-2.0 */
/* Random programs for the toy machine: every byte of the source is a decision, so a generator from a
 * seed and a fuzzer's input drive the same code. Values are compared after every step. */
#ifndef REF_PROGRAM_H
#define REF_PROGRAM_H

#include "ref-host.h"

typedef struct
{
  bool (*next) (void *user, uint8_t *byte); /* false: no more, the program ends */
  void *user;
  RefWatch watch;
  CoopAllocatorName allocator;
  bool expandable;
} RefBytes;

typedef struct
{
  uint64_t steps, evictions, replays, ooms, moves, windows, singles, fits, dependents;
  uint64_t plans, sets, optima, segments, returned, remaps;
} RefProgramStats;

void ref_program_run (const RefBytes *source, unsigned max_steps, RefProgramStats *stats);

#endif
