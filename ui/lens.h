/* SPDX-License-Identifier: Apache-2.0 */
/* Lens: where a camera looks: a running session, or a trace file at one of its events. All calls come
 * from the camera's thread, but for the first two.
 */
#pragma once

#include "draw/chart.h"
#include "session/session.h"

G_BEGIN_DECLS

typedef struct CoopLens CoopLens;

CoopLens *coop_lens_new_for_session (CoopSession *session);
CoopLens *coop_lens_new_for_file (const char *path);
void coop_lens_free (CoopLens *lens);

gboolean coop_lens_is_live (const CoopLens *lens);
/* Whether there will be more: a session that has not ended. */
gboolean coop_lens_is_moving (const CoopLens *lens);
/* To be called once, before all below. */
gboolean coop_lens_open (CoopLens *lens, GError **error);
/* Number of the last event of a file and how its run ended; 0 for a session. */
guint64 coop_lens_last_event (CoopLens *lens, CoopRunState *state, int *exit);
/* What a file does not tell, in a line; NULL: nothing. Valid for the lens's life. */
const char *coop_lens_lacks (CoopLens *lens);
/* The newest frame of a session; of a file the frame after event seq. NULL if there is none yet. */
CoopFrame *coop_lens_frame (CoopLens *lens, guint64 seq, GError **error);
/* About n points (element CoopChartPoint) over the whole run. */
GArray *coop_lens_usage (CoopLens *lens, guint n);
/* At most n events up to event seq (CoopEventLine, newest last). Of a session fewer, should they be so
 * old that they are no longer kept. */
GPtrArray *coop_lens_events (CoopLens *lens, guint64 seq, guint n);
/* A block of the frame, explained; NULL if it is not in it. g_free. */
char *coop_lens_describe (CoopLens *lens, const CoopFrame *frame, guint64 block);
/* Of a file: the last event before or at a time, and the next eviction after (before) event seq: seq
 * itself if there is none. */
guint64 coop_lens_event_at (CoopLens *lens, guint64 ts);
guint64 coop_lens_next_eviction (CoopLens *lens, guint64 seq, gboolean back);
/* As coop_model_name, at the frame taken last. `lens` is a CoopLens. */
char *coop_lens_name (gpointer lens, CoopNameKind kind, guint64 id);
void coop_lens_health (CoopLens *lens, CoopSessionHealth *health);

G_END_DECLS
