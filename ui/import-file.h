/* SPDX-License-Identifier: Apache-2.0 */
/* Import file: what is no trace but can be made one: memory snapshots of PyTorch, and recorded programs,
 * which are played without a limit. The trace goes into the user's cache.
 */
#pragma once

#include <gio/gio.h>

G_BEGIN_DECLS

/* By its name and first byte; does not read it. */
gboolean coop_import_is_foreign (const char *path);
/* On a thread of its own; cancelled within a moment. */
void coop_import_file (const char *path, GCancellable *cancellable, GAsyncReadyCallback callback, gpointer user_data);
/* Paths (char *) of what was written, one a device, that with the highest peak first; NULL: failed, and
 * the error says what is wrong with the file. */
GPtrArray *coop_import_file_finish (GAsyncResult *result, GError **error);

G_END_DECLS
