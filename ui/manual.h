/* SPDX-License-Identifier: Apache-2.0 */
/* The manual, in the browser. */
#pragma once

#include <gtk/gtk.h>

/* Writes the page that comes with the program into the user's cache; its path, g_free. NULL with error. */
char *coop_manual_write (GError **error);
/* And shows it. */
void coop_manual_show (GtkWindow *window);
