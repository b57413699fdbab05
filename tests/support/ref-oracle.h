/* SPDX-License-Identifier: Apache-2.0 */
/* Recorded programs (fixtures/oracle) through the engine on a virtual clock: no bytes, costs as
 * recorded. */
#ifndef REF_ORACLE_H
#define REF_ORACLE_H

#include "core/engine.h"

#include <glib.h>

typedef struct RefRecording RefRecording;

/* Reads NAME.jsonl.gz; ends the process if it cannot. */
RefRecording *ref_recording_load (const char *path);
void ref_recording_free (RefRecording *recording);
uint64_t ref_recording_peak (const RefRecording *recording);

typedef struct
{
  bool ok;              /* came to its end, at most three times the cost */
  double overhead;      /* cost with replays / cost without */
  CoopTotals totals;
  uint64_t advice;      /* of the request that failed */
  const char *fault;    /* of the engine's check at the end */
} RefOutcome;

/* Once through under a policy, whose budget is in force from the start. */
RefOutcome ref_recording_run (const RefRecording *recording, const CoopPolicy *policy);

#endif
