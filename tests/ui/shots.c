/* SPDX-License-Identifier: Apache-2.0 */
/* Pictures of every view in both themes, for the manual and for whoever looks over a change:
 *
 *   shots FOLDER TRACE [NAME...]     needs a display; tests/ui/with-display.sh brings one
 *
 * Each picture is a window of its own that is driven as a person would drive it. Not a test: nothing is
 * asserted but that the view comes to rest.
 */
#include <adwaita.h>
#include <stdio.h>

#include "chart-widget.h"
#include "drawer.h"
#include "lesson-window.h"
#include "map-bar.h"
#include "map-widget.h"
#include "policy-panel.h"
#include "run-page.h"
#include "ui-support.h"
#include "what-if-card.h"
#include "window.h"

typedef struct {
  const char *name;
  void (*prepare) (GtkWidget *window);
  int width, height;
} View;

static GtkWidget *
bar_of (GtkWidget *window)
{
  return find_widget (window, COOP_TYPE_MAP_BAR);
}

static void
at_eviction (GtkWidget *window)
{
  coop_run_page_step_eviction (COOP_RUN_PAGE (find_widget (window, COOP_TYPE_RUN_PAGE)), -1);
  spin_ms (500);
}

static void
by_operator (GtkWidget *window)
{
  at_eviction (window);
  coop_map_bar_set_coloring (COOP_MAP_BAR (bar_of (window)), COOP_COLOR_OPERATOR);
}

static void
by_line (GtkWidget *window)
{
  at_eviction (window);
  coop_map_bar_set_coloring (COOP_MAP_BAR (bar_of (window)), COOP_COLOR_LINE);
}

static void
by_cost (GtkWidget *window)
{
  at_eviction (window);
  coop_map_bar_set_coloring (COOP_MAP_BAR (bar_of (window)), COOP_COLOR_COST);
}

static void
by_pin (GtkWidget *window)
{
  at_eviction (window);
  coop_map_bar_set_coloring (COOP_MAP_BAR (bar_of (window)), COOP_COLOR_PIN);
}

static void
zoomed (GtkWidget *window)
{
  at_eviction (window);
  for (int i = 0; i < 3; i++)
    coop_map_widget_zoom (COOP_MAP_WIDGET (find_widget (window, COOP_TYPE_MAP_WIDGET)), 1);
}

static void
searched (GtkWidget *window)
{
  at_eviction (window);
  coop_map_bar_search (COOP_MAP_BAR (bar_of (window)), ">1MiB");
}

static void
why (GtkWidget *window)
{
  at_eviction (window);
  coop_map_bar_set_why (COOP_MAP_BAR (bar_of (window)), TRUE);
}

static void
table (GtkWidget *window, const char *name)
{
  at_eviction (window);
  coop_drawer_turn_to (COOP_DRAWER (find_widget (window, COOP_TYPE_DRAWER)), name);
}

static void
table_events (GtkWidget *window)
{
  table (window, "all-events");
}

static void
table_lives (GtkWidget *window)
{
  table (window, "all-blocks");
}

static void
table_operators (GtkWidget *window)
{
  table (window, "operators");
}

static void
table_evictions (GtkWidget *window)
{
  table (window, "evictions");
}

static void
table_lines (GtkWidget *window)
{
  table (window, "lines");
}

static void
table_query (GtkWidget *window)
{
  table (window, "query");
}

static void
what_if (GtkWidget *window)
{
  CoopPolicyPanel *panel = COOP_POLICY_PANEL (find_widget (window, COOP_TYPE_POLICY_PANEL));
  GtkWidget *list = find_widget (GTK_WIDGET (panel), GTK_TYPE_SCALE);
  at_eviction (window);
  gtk_range_set_value (GTK_RANGE (list), gtk_range_get_value (GTK_RANGE (list)) * 0.8);
  coop_what_if_card_set_maps (COOP_WHAT_IF_CARD (find_widget (window, COOP_TYPE_WHAT_IF_CARD)), TRUE);
}

static const View views[] = {
  { "map", at_eviction, 1280, 860 },     { "map-operator", by_operator, 1280, 860 },
  { "map-line", by_line, 1280, 860 },    { "map-cost", by_cost, 1280, 860 },
  { "map-pin", by_pin, 1280, 860 },      { "map-zoom", zoomed, 1280, 860 },
  { "map-search", searched, 1280, 860 }, { "why-these", why, 1280, 860 },
  { "what-if", what_if, 1400, 900 },
  { "small", why, 900, 600 },
  { "events", table_events, 1280, 860 },       { "blocks", table_lives, 1280, 860 },
  { "operators", table_operators, 1280, 860 }, { "evictions", table_evictions, 1280, 860 },
  { "lines", table_lines, 1280, 860 },         { "query", table_query, 1280, 860 },
};

static void
save (GtkWidget *window, const char *path)
{
  int width = gtk_widget_get_width (window), height = gtk_widget_get_height (window);
  g_autoptr (GdkPaintable) paintable = gtk_widget_paintable_new (window);
  GtkSnapshot *snapshot = gtk_snapshot_new ();
  gdk_paintable_snapshot (paintable, GDK_SNAPSHOT (snapshot), width, height);
  GskRenderNode *node = gtk_snapshot_free_to_node (snapshot);
  GskRenderer *renderer = gtk_native_get_renderer (GTK_NATIVE (window));
  g_autoptr (GdkTexture) texture
      = gsk_renderer_render_texture (renderer, node, &GRAPHENE_RECT_INIT (0, 0, (float) width, (float) height));
  gdk_texture_save_to_png (texture, path);
  gsk_render_node_unref (node);
}

/* The lesson window at its third step, answered. */
static void
shoot_lesson (const char *folder, gboolean dark)
{
  g_autofree char *path = g_strdup_printf ("%s/lesson%s.png", folder, dark ? "-dark" : "");
  adw_style_manager_set_color_scheme (adw_style_manager_get_default (),
                                      dark ? ADW_COLOR_SCHEME_FORCE_DARK : ADW_COLOR_SCHEME_FORCE_LIGHT);
  GtkWidget *window = coop_lesson_window_new (NULL);
  gtk_window_present (GTK_WINDOW (window));
  spin_ms (300);
  coop_lesson_window_choose (COOP_LESSON_WINDOW (window), 1);
  coop_lesson_window_step (COOP_LESSON_WINDOW (window), 1);
  coop_lesson_window_answer (COOP_LESSON_WINDOW (window), "4");
  spin_ms (800);
  save (window, path);
  printf ("%s\n", path);
  assert_finalized (window);
}

static void
shoot (const View *view, const char *folder, const char *trace, gboolean dark)
{
  g_autofree char *path = g_strdup_printf ("%s/%s%s.png", folder, view->name, dark ? "-dark" : "");
  adw_style_manager_set_color_scheme (adw_style_manager_get_default (),
                                      dark ? ADW_COLOR_SCHEME_FORCE_DARK : ADW_COLOR_SCHEME_FORCE_LIGHT);
  GtkWidget *window = coop_window_new (NULL);
  gtk_window_set_default_size (GTK_WINDOW (window), view->width, view->height);
  gtk_window_present (GTK_WINDOW (window));
  coop_window_open (COOP_WINDOW (window), trace, G_MAXUINT64);
  spin_until (coop_run_page_get_frame (COOP_RUN_PAGE (find_widget (window, COOP_TYPE_RUN_PAGE))));
  spin_ms (300);
  view->prepare (window);
  spin_ms (1500);
  save (window, path);
  printf ("%s\n", path);
  assert_finalized (window);
}

int
main (int argc, char **argv)
{
  if (argc < 3)
    {
      fprintf (stderr, "usage: %s FOLDER TRACE [NAME...]\n", argv[0]);
      return 2;
    }
  gtk_init ();
  adw_init ();
  g_autoptr (GtkCssProvider) css = gtk_css_provider_new (); /* which the application would load */
  gtk_css_provider_load_from_resource (css, "/io/github/coopscope/Coopscope/style.css");
  gtk_style_context_add_provider_for_display (gdk_display_get_default (), GTK_STYLE_PROVIDER (css),
                                              GTK_STYLE_PROVIDER_PRIORITY_APPLICATION);
  for (int dark = 0; dark < 2 && (argc == 3 || g_str_equal (argv[3], "lesson")); dark++)
    shoot_lesson (argv[1], dark);
  for (gsize i = 0; i < G_N_ELEMENTS (views); i++)
    {
      gboolean wanted = argc == 3;
      for (int k = 3; k < argc; k++)
        wanted |= g_str_equal (argv[k], views[i].name);
      for (int dark = 0; wanted && dark < 2; dark++)
        shoot (&views[i], argv[1], argv[2], dark);
    }
  return 0;
}
