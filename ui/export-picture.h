/* SPDX-License-Identifier: Apache-2.0 */
/* What is on screen, as a picture: PNG, or SVG for a name that ends in .svg. */
#pragma once

#include <gtk/gtk.h>

/* The widget as it is drawn now. FALSE with error: it is not on screen, or the file cannot be written. */
gboolean coop_export_picture (GtkWidget *widget, const char *path, GError **error);
