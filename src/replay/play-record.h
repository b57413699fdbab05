/* SPDX-License-Identifier: Apache-2.0 */
/* Play into a trace: a full .coop file that the window can show, on the virtual clock. */
#ifndef COOP_PLAY_RECORD_H
#define COOP_PLAY_RECORD_H

#include "replay/play.h"

/* As coop_play; options->sink gets each event after the file has it. FALSE: the file could not be made or written; if the
 * program was played, *out holds what came of it (else it is left alone). */
gboolean coop_play_record (const CoopProgram *program, const CoopPlayOptions *options, const char *path,
                           CoopPlayOutcome *out, GError **error);

#endif
