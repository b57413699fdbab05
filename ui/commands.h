/* SPDX-License-Identifier: Apache-2.0 */
/* Command palette: every action of a window by its name, typed in part, with its key beside it. */
#pragma once

#include <adwaita.h>

/* Over the window; what is chosen acts on it. */
GtkWidget *coop_commands_show (GtkWindow *window);
/* How many commands are listed for a text, and doing the first of them; FALSE: there is none. */
guint coop_commands_find (GtkWidget *palette, const char *text);
gboolean coop_commands_do_first (GtkWidget *palette);
