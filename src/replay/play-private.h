/* SPDX-License-Identifier: Apache-2.0 */
/* What play.c and play-op.c share. */
#ifndef COOP_PLAY_PRIVATE_H
#define COOP_PLAY_PRIVATE_H

#include "replay/play.h"

/* What the host keeps of a tensor: one a storage of the user's, which goes from version to version,
 * and one for a dead version that was brought back. */
typedef struct CoopPlayHost CoopPlayHost;
struct CoopPlayHost {
  CoopPlayHost *next, *prev;   /* all hosts */
  gboolean record_holds;   /* kept for a record, though the user may have let go */
  gboolean user_gone;
  guint64 borrowed;        /* block of a temporary + 1 */
};

typedef struct {
  const CoopProgram *program;
  const CoopPlayOptions *options;
  CoopPlayOutcome *out;
  CoopEngine *engine;
  CoopTensor **tensor;     /* by slot: newest version, NULL: not there */
  guint64 *block;          /* by block: address + 1 */
  guint32 *replays;        /* by line: how often its operator was run again */
  CoopPlayHost *hosts;
  guint64 seq, since_stress, replayed;
  gboolean exact;          /* as recorded: storages were let go when records no longer held them */
  gboolean retry;          /* an operator that is refused memory can be tried again */
} CoopPlay;

/* play.c */
/* FALSE: out of memory; outcome is set. */
gboolean coop_play_alloc (CoopPlay *play, const CoopCall *call, guint64 bytes, guint64 *addr);
void coop_play_act (CoopPlay *play);
void coop_play_place (CoopPlay *play, const CoopAction *action);
/* Evicts all that may go. */
void coop_play_evict_all (CoopPlay *play);
void coop_play_release (CoopPlay *play, guint32 slot);
/* Of a line RELEASE or FREE. */
void coop_play_let_go (CoopPlay *play, const CoopProgramLine *line);
/* Made when first asked for; gone with TENSOR_GONE. */
CoopPlayHost *coop_play_host (CoopPlay *play, CoopTensor *tensor);

/* play-op.c; FALSE: outcome is set. */
gboolean coop_play_op (CoopPlay *play, guint32 line);
gboolean coop_play_touch (CoopPlay *play, const CoopProgramLine *line);

#endif
