/* SPDX-License-Identifier: Apache-2.0 */
/* File dialogs of the window. */
#pragma once

#include <gtk/gtk.h>

/* path: the caller's for the length of the call; not called if nothing was chosen, nor after
 * `window` is gone. */
typedef void (*CoopPathChosen) (GtkWindow *window, const char *path);

void coop_choose_trace (GtkWindow *window, CoopPathChosen chosen);
/* For a picture: PNG or SVG, by the name's end. */
void coop_choose_picture (GtkWindow *window, const char *name, CoopPathChosen chosen);
void coop_choose_place (GtkWindow *window, const char *name, CoopPathChosen chosen);
