/* SPDX-License-Identifier: Apache-2.0 */
/* A closed trace is one file, so a copy of the file is the trace. */
#include "config.h"

#include "save-trace.h"

#include <glib/gi18n.h>

static void
copied (GObject *source, GAsyncResult *result, gpointer data)
{
  g_autoptr (AdwToastOverlay) toasts = data;
  g_autoptr (GError) error = NULL;
  g_autofree char *text = NULL;
  if (g_file_copy_finish (G_FILE (source), result, &error))
    text = g_strdup (_("Trace saved"));
  else
    text = g_strdup_printf (_("The trace was not saved: %s"), error->message);
  adw_toast_overlay_add_toast (toasts, adw_toast_new (text));
}

void
coop_save_trace (GtkWidget *window, const char *from, const char *to, AdwToastOverlay *toasts)
{
  g_autoptr (GFile) source = g_file_new_for_path (from), target = g_file_new_for_path (to);
  g_file_copy_async (source, target, G_FILE_COPY_OVERWRITE, G_PRIORITY_DEFAULT, NULL, NULL, NULL, copied,
                     g_object_ref (toasts));
}
