/* SPDX-License-Identifier: Apache-2.0 */
/* Commands: the palette finds and does them, a picture of the page is written, traces opened are in the
 * menu again.
 */
#include <adwaita.h>
#include <glib/gstdio.h>
#include <string.h>

#include "commands.h"
#include "export-picture.h"
#include "made-trace.h"
#include "manual.h"
#include "map-bar.h"
#include "map-widget.h"
#include "run-page.h"
#include "settings.h"
#include "ui-support.h"
#include "window.h"

#define BUDGET (1 << 20)

static GtkWidget *
window_on (const MadeTrace *trace)
{
  GtkWidget *window = coop_window_new (NULL);
  gtk_window_set_default_size (GTK_WINDOW (window), 1200, 900);
  gtk_window_present (GTK_WINDOW (window));
  coop_window_open (COOP_WINDOW (window), trace->path, G_MAXUINT64);
  spin_until (coop_run_page_get_frame (COOP_RUN_PAGE (find_widget (window, COOP_TYPE_RUN_PAGE))));
  spin_ms (200);
  return window;
}

static void
test_palette (void)
{
  g_autoptr (MadeTrace) trace = made_trace_new (2000, BUDGET);
  GtkWidget *window = coop_window_new (NULL);
  gtk_window_present (GTK_WINDOW (window));
  GtkWidget *palette = coop_commands_show (GTK_WINDOW (window));
  guint without = coop_commands_find (palette, "");
  g_assert_cmpuint (coop_commands_find (palette, "zoom"), ==, 0); /* nothing to zoom into */
  g_assert_false (coop_commands_do_first (palette));
  gtk_window_destroy (GTK_WINDOW (palette));
  gtk_window_destroy (GTK_WINDOW (window));

  window = window_on (trace);
  palette = coop_commands_show (GTK_WINDOW (window));
  g_assert_cmpuint (coop_commands_find (palette, ""), >, without);
  g_assert_cmpuint (coop_commands_find (palette, "no such command"), ==, 0);
  g_assert_cmpuint (coop_commands_find (palette, "in zoom"), ==, 1);
  g_assert_true (coop_commands_do_first (palette));
  spin_until (find_text (find_widget (window, COOP_TYPE_MAP_BAR), "2×"));
  gtk_widget_activate_action (window, "win.zoom-all", NULL);
  spin_until (find_text (find_widget (window, COOP_TYPE_MAP_BAR), "1×"));
  gtk_widget_activate_action (window, "win.find", NULL);
  g_assert_true (gtk_widget_is_ancestor (gtk_window_get_focus (GTK_WINDOW (window)),
                                         find_widget (window, COOP_TYPE_MAP_BAR)));
  assert_finalized (window);
}

static void
test_picture (void)
{
  g_autoptr (MadeTrace) trace = made_trace_new (2000, BUDGET);
  GtkWidget *window = window_on (trace), *page = find_widget (window, COOP_TYPE_RUN_PAGE);
  g_autofree char *png = g_strdup_printf ("%s.png", trace->path), *svg = g_strdup_printf ("%s.svg", trace->path);
  g_autofree char *text = NULL;
  g_autoptr (GError) error = NULL;
  coop_export_picture (page, png, &error);
  g_assert_no_error (error);
  g_autoptr (GdkTexture) picture = gdk_texture_new_from_filename (png, &error);
  g_assert_no_error (error);
  g_assert_cmpint (gdk_texture_get_width (picture), ==, gtk_widget_get_width (page));

  /* the middle of the map is what the map shows there, not the page behind it */
  GtkWidget *map = find_widget (window, COOP_TYPE_MAP_WIDGET);
  double x, y;
  gtk_widget_translate_coordinates (map, page, 200, 8, &x, &y);
  g_autofree guint32 *pixels = g_new (guint32, gdk_texture_get_width (picture) * gdk_texture_get_height (picture));
  gdk_texture_download (picture, (guchar *) pixels, (gsize) gdk_texture_get_width (picture) * 4);
  guint32 there = pixels[(int) y * gdk_texture_get_width (picture) + (int) x] | 0xff000000;
  g_assert_cmphex (there, !=, coop_map_ink (COOP_INK_PAGE, FALSE, FALSE));

  coop_export_picture (page, svg, &error);
  g_assert_no_error (error);
  g_assert_true (g_file_get_contents (svg, &text, NULL, NULL));
  g_assert_nonnull (strstr (text, "<svg"));
  g_assert_nonnull (strstr (text, "<image"));
  g_assert_false (coop_export_picture (page, "/nowhere/at/all.png", &error));
  g_assert_nonnull (error);
  g_unlink (png);
  g_unlink (svg);
  assert_finalized (window);
}

static void
test_recent (void)
{
  g_autoptr (MadeTrace) first = made_trace_new (1000, BUDGET), second = made_trace_new (1500, BUDGET);
  g_autoptr (GSettings) settings = coop_settings_new ();
  GtkWidget *window = window_on (first);
  g_assert_nonnull (settings);
  coop_window_open (COOP_WINDOW (window), second->path, G_MAXUINT64);
  coop_window_open (COOP_WINDOW (window), first->path, G_MAXUINT64);
  g_auto (GStrv) recent = g_settings_get_strv (settings, "recent");
  g_assert_cmpstr (recent[0], ==, first->path);
  g_assert_cmpstr (recent[1], ==, second->path); /* once each */
  for (guint i = 2; recent[i]; i++)
    g_assert_cmpstr (recent[i], !=, first->path);
  gtk_widget_activate_action (window, "win.open-recent", "s", second->path);
  CoopRunPage *page = COOP_RUN_PAGE (find_widget (window, COOP_TYPE_RUN_PAGE));
  spin_until (coop_run_page_get_frame (page) && coop_run_page_get_frame (page)->totals.seq == 1499);
  assert_finalized (window);
}

static void
test_manual (void)
{
  g_autoptr (GError) error = NULL;
  g_autofree char *path = coop_manual_write (&error), *text = NULL;
  g_assert_no_error (error);
  g_assert_true (g_file_get_contents (path, &text, NULL, NULL));
  g_assert_nonnull (strstr (text, "</html>"));
  g_assert_nonnull (strstr (text, "staleness_exponent"));
}

int
main (int argc, char **argv)
{
  gtk_test_init (&argc, &argv, NULL);
  adw_init ();
  g_test_add_func ("/ui/commands/palette", test_palette);
  g_test_add_func ("/ui/commands/picture", test_picture);
  g_test_add_func ("/ui/commands/recent", test_recent);
  g_test_add_func ("/ui/commands/manual", test_manual);
  return g_test_run ();
}
