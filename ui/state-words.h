/* SPDX-License-Identifier: Apache-2.0 */
/* State words: what the chip beside the title says of a run or a trace, and in which colour. */
#pragma once

#include "run-page.h"

G_BEGIN_DECLS

/* *class becomes a CSS class, one of coop_state_classes. session NULL: a file, if `trace`. g_free. */
char *coop_words_for_state (CoopSession *session, gboolean trace, CoopRunPage *page, const char **class);
extern const char *const coop_state_classes[];

G_END_DECLS
