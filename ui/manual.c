/* SPDX-License-Identifier: Apache-2.0 */
/* The manual; see the header. It is part of the program, so that it fits it and is there without an
 * installation.
 */
#include "config.h"

#include "manual.h"

#include <glib/gstdio.h>

char *
coop_manual_write (GError **error)
{
  g_autoptr (GBytes) page = g_resources_lookup_data ("/io/github/coopscope/Coopscope/manual.html", 0, error);
  g_autofree char *folder = g_build_filename (g_get_user_cache_dir (), "coopscope", NULL);
  g_autofree char *path = g_build_filename (folder, "manual.html", NULL);
  if (!page)
    return NULL;
  g_mkdir_with_parents (folder, 0700); /* if it cannot be, the next line says why */
  if (!g_file_set_contents (path, g_bytes_get_data (page, NULL), (gssize) g_bytes_get_size (page), error))
    return NULL;
  return g_steal_pointer (&path);
}

void
coop_manual_show (GtkWindow *window)
{
  g_autoptr (GError) error = NULL;
  g_autofree char *path = coop_manual_write (&error);
  g_autofree char *uri = path ? g_filename_to_uri (path, NULL, &error) : NULL;
  if (uri)
    gtk_show_uri (window, uri, GDK_CURRENT_TIME);
  else
    g_warning ("%s", error->message);
}
