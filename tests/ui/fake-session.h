/* SPDX-License-Identifier: Apache-2.0 */
/* A session without a script, linked in place of the real one: its events are made by the test, its
 * frames come from the real model. What is set through it is kept for the test to look at.
 */
#pragma once

#include "session/session.h"

CoopSession *fake_session_new (guint64 budget);
/* n more events of a generated program. */
void fake_session_play (CoopSession *session, guint n);
/* n blocks of `bytes` from address 0 up, every other one freed again. Not to be mixed with play. */
void fake_session_fill (CoopSession *session, guint n, guint64 bytes);
void fake_session_oom (CoopSession *session, guint64 asked, guint64 advice);
void fake_session_end (CoopSession *session, CoopSessionState state, int exit);
/* The one that coop_session_start made last; not a reference. */
CoopSession *fake_session_last (void);
/* The next frame is a new one, though nothing happened. */
void fake_session_touch (CoopSession *session);
void fake_session_say (CoopSession *session, const char *text);

typedef struct {
  CoopParam param;
  CoopValue value;
  CoopSource source;
} FakeChange;
/* The n-th change of a parameter made through the session; FALSE if there were fewer. */
gboolean fake_session_get_change (CoopSession *session, guint n, FakeChange *change);
guint64 fake_session_get_budget (CoopSession *session);
/* How often stop was called. */
guint fake_session_get_stops (CoopSession *session);
