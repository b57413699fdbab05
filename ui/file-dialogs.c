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
add_filter (GtkFileChooserNative *dialog, const char *name, const char *const *suffixes)
{
  g_autoptr (GtkFileFilter) filter = gtk_file_filter_new ();
  gtk_file_filter_set_name (filter, name);
  for (; *suffixes; suffixes++)
    gtk_file_filter_add_suffix (filter, *suffixes);
  gtk_file_chooser_add_filter (GTK_FILE_CHOOSER (dialog), filter);
}

static void
show (GtkFileChooserNative *dialog, GtkWindow *window, CoopPathChosen chosen)
{
  g_object_set_data (G_OBJECT (dialog), "coop-chosen", (gpointer) chosen);
  g_signal_connect_object (dialog, "response", G_CALLBACK (answered), window, 0);
  gtk_native_dialog_show (GTK_NATIVE_DIALOG (dialog));
}

void
coop_choose_trace (GtkWindow *window, CoopPathChosen chosen)
{
  GtkFileChooserNative *dialog = gtk_file_chooser_native_new (
      _("Open a Trace"), window, GTK_FILE_CHOOSER_ACTION_OPEN, NULL, NULL);
  add_filter (dialog, _("Traces, memory snapshots of PyTorch, programs"),
              (const char *const[]) { "coop", "pickle", "pkl", "jsonl", "gz", NULL });
  add_filter (dialog, _("Coopscope traces"), (const char *const[]) { "coop", NULL });
  show (dialog, window, chosen);
}

void
coop_choose_place (GtkWindow *window, const char *name, CoopPathChosen chosen)
{
  GtkFileChooserNative *dialog = gtk_file_chooser_native_new (
      _("Save the Trace"), window, GTK_FILE_CHOOSER_ACTION_SAVE, NULL, NULL);
  gtk_file_chooser_set_current_name (GTK_FILE_CHOOSER (dialog), name);
  add_filter (dialog, _("Coopscope traces"), (const char *const[]) { "coop", NULL });
  show (dialog, window, chosen);
}

void
coop_choose_picture (GtkWindow *window, const char *name, CoopPathChosen chosen)
{
  GtkFileChooserNative *dialog = gtk_file_chooser_native_new (
      _("Save a Picture"), window, GTK_FILE_CHOOSER_ACTION_SAVE, NULL, NULL);
  g_autoptr (GtkFileFilter) filter = gtk_file_filter_new ();
  gtk_file_filter_set_name (filter, _("Pictures: PNG, SVG"));
  gtk_file_filter_add_suffix (filter, "png");
  gtk_file_filter_add_suffix (filter, "svg");
  gtk_file_chooser_add_filter (GTK_FILE_CHOOSER (dialog), filter);
  gtk_file_chooser_set_current_name (GTK_FILE_CHOOSER (dialog), name);
  g_object_set_data (G_OBJECT (dialog), "coop-chosen", (gpointer) chosen);
  g_signal_connect_object (dialog, "response", G_CALLBACK (answered), window, 0);
  gtk_native_dialog_show (GTK_NATIVE_DIALOG (dialog));
}
