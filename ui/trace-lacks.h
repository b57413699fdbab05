/* SPDX-License-Identifier: Apache-2.0 */
/* What a trace does not tell: its beginning, its details, its end, or what the file it was read from left
 * out.
 */
#pragma once

#include "trace/store.h"

G_BEGIN_DECLS

/* One line for people; NULL: it is whole. g_free. */
char *coop_words_for_lacks (CoopReader *reader, const CoopTraceInfo *info);

G_END_DECLS
