/* SPDX-License-Identifier: Apache-2.0 */
/* Start run: a session without a wait. Whether the command can be run is found out on a thread, since
 * an interpreter is started for it; the session itself is made where it is finished, so that its
 * signals come there.
 */
#pragma once

#include "session/session.h"

G_BEGIN_DECLS

/* Copies the options. The callback comes on the caller's main context. */
void coop_start_run (const CoopRunOptions *options, GCancellable *cancellable, GAsyncReadyCallback callback,
                     gpointer user_data);
/* Starts it; NULL with error if it cannot be. G_IO_ERROR_CANCELLED: nothing was started. */
CoopSession *coop_start_run_finish (GAsyncResult *result, GError **error);
/* Takes over a deep copy. */
void coop_run_options_copy (CoopRunOptions *to, const CoopRunOptions *from);

G_END_DECLS
