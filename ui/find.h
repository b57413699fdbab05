/* SPDX-License-Identifier: Apache-2.0 */
/* Find: what a person looks for on the map, in one line of text. All words must hold:
 *
 *   0x1a00000        the piece with that address          hole      free pieces
 *   >10MiB <1GB 12MiB  the size, the last to one percent   >5ms      the cost to make it again
 *   t17  b17  op17     that tensor, block, operator        anything else: part of the operator's name, of the
 *                                                        line ("train.py:18"), or of the kind or the pin
 */
#pragma once

#include "colors.h"

G_BEGIN_DECLS

typedef struct CoopFind CoopFind;

/* NULL for a text without words. */
CoopFind *coop_find_new (const char *text);
void coop_find_free (CoopFind *find);
/* Asks for the words of numbers that this frame brings. */
void coop_find_learn (CoopFind *find, const CoopFrame *frame, CoopNameOf name_of, gpointer user);
/* Of a piece of a frame that was learnt. */
gboolean coop_find_matches (const CoopFind *find, const CoopMapPiece *piece);

G_DEFINE_AUTOPTR_CLEANUP_FUNC (CoopFind, coop_find_free)

G_END_DECLS
