/* SPDX-License-Identifier: Apache-2.0 */
/* File dialogs of the window: those of the desktop, where it has some. */
#include "config.h"

#include "file-dialogs.h"

#include <glib/gi18n.h>

static void
answered (GtkNativeDialog *dialog, int response, GtkWindow *window)
{
  CoopPathChosen chosen = (CoopPathChosen) g_object_get_data (G_OBJECT (dialog), "coop-chosen");
  if (response == GTK_RESPONSE_ACCEPT)
    {
      g_autoptr (GFile) file = gtk_file_chooser_get_file (GTK_FILE_CHOOSER (dialog));
      g_autofree char *path = g_file_get_path (file);
      if (path)
        chosen (window, path);
    }
  g_object_unref (dialog);
}

static void
show (GtkFileChooserNative *dialog, GtkWindow *window, CoopPathChosen chosen)
{
  g_autoptr (GtkFileFilter) filter = gtk_file_filter_new ();
  gtk_file_filter_set_name (filter, _("Coopscope traces"));
  gtk_file_filter_add_suffix (filter, "coop");
  gtk_file_chooser_add_filter (GTK_FILE_CHOOSER (dialog), filter);
  g_object_set_data (G_OBJECT (dialog), "coop-chosen", (gpointer) chosen);
  g_signal_connect_object (dialog, "response", G_CALLBACK (answered), window, 0);
  gtk_native_dialog_show (GTK_NATIVE_DIALOG (dialog));
}

void
coop_choose_trace (GtkWindow *window, CoopPathChosen chosen)
{
  show (gtk_file_chooser_native_new (_("Open a Trace"), window, GTK_FILE_CHOOSER_ACTION_OPEN, NULL, NULL),
        window, chosen);
}

void
coop_choose_place (GtkWindow *window, const char *name, CoopPathChosen chosen)
{
  GtkFileChooserNative *dialog = gtk_file_chooser_native_new (
      _("Save the Trace"), window, GTK_FILE_CHOOSER_ACTION_SAVE, NULL, NULL);
  gtk_file_chooser_set_current_name (GTK_FILE_CHOOSER (dialog), name);
  show (dialog, window, chosen);
}
