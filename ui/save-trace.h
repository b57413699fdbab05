/* SPDX-License-Identifier: Apache-2.0 */
/* Save a finished trace somewhere else, without holding up the window. */
#pragma once

#include <adwaita.h>

/* Copies and says how it went in `toasts`, which may be gone by then. */
void coop_save_trace (GtkWidget *window, const char *from, const char *to, AdwToastOverlay *toasts);
