/* SPDX-License-Identifier: Apache-2.0 */
/* How the map is looked at: colours, search, zoom, and the last eviction explained. */
#include <adwaita.h>
#include <math.h>

#include "colors.h"
#include "find.h"
#include "legend.h"
#include "made-trace.h"
#include "map-bar.h"
#include "map-widget.h"
#include "run-page.h"
#include "ui-support.h"
#include "why-view.h"
#include "window.h"

#define MIB (1024 * 1024)
#define BUDGET (1 << 20)

static CoopMapPiece pieces[] = {
  { .addr = 0, .bytes = 4 * MIB, .block = 1, .tensor = 11, .op = 21, .cost = 2000000, .kind = COOP_KIND_STATE,
    .pin = COOP_PIN_CONSTANT, .used = 1, .name = 1, .line = 7, .phase = COOP_PHASE_FORWARD },
  { .addr = 4 * MIB, .bytes = 2 * MIB },
  { .addr = 6 * MIB, .bytes = 1 * MIB, .block = 2, .tensor = 12, .op = 22, .cost = 9000000,
    .kind = COOP_KIND_ACTIVATION, .used = 1, .name = 2, .line = 8, .phase = COOP_PHASE_BACKWARD },
};

static CoopFrame frame = { .n_pieces = 3, .pieces = pieces, .totals = { .budget = 8 * MIB, .ts = 100 } };

static char *
name_of (gpointer user, CoopNameKind kind, guint64 id)
{
  if (kind == COOP_NAME_LINE)
    return g_strdup_printf ("train.py:%" G_GUINT64_FORMAT " in forward", id);
  return g_strdup (id == 1 ? "convolution" : "addmm");
}

/* The pieces found, as letters: "a-c". */
static char *
found_by (const char *text)
{
  g_autoptr (CoopFind) find = coop_find_new (text);
  char *letters = g_strdup ("---");
  g_assert_nonnull (find);
  coop_find_learn (find, &frame, name_of, NULL);
  for (int i = 0; i < 3; i++)
    if (coop_find_matches (find, &pieces[i]))
      letters[i] = (char) ('a' + i);
  return letters;
}

static void
test_find (void)
{
  static const struct { const char *text, *found; } cases[] = {
    { "0x0", "a--" },       { "0x3fffff", "a--" },  { "0x400000", "-b-" },  { "0x700000", "---" },
    { "t12", "--c" },       { "b1", "a--" },        { "op22", "--c" },      { "hole", "-b-" },
    { ">1MiB", "ab-" },     { "<2MiB", "--c" },     { "2MiB", "-b-" },      { "4.01MiB", "a--" },
    { ">5ms", "--c" },      { "<5ms", "a--" },      { "CONV", "a--" },      { "train.py:8", "--c" },
    { "forward", "a-c" },   { "conv addmm", "---" }, { "conv >1MiB", "a--" }, { "state", "a--" },
    { "8", "--c" },         { "nothing", "---" },   { "evictable", "--c" },
  };
  for (gsize i = 0; i < G_N_ELEMENTS (cases); i++)
    {
      g_autofree char *found = found_by (cases[i].text);
      g_test_message ("%s", cases[i].text);
      g_assert_cmpstr (found, ==, cases[i].found);
    }
  g_assert_null (coop_find_new ("  "));
  g_assert_null (coop_find_new (NULL));
}

static void
test_colors (void)
{
  CoopColors colors = { 0 };
  g_assert_true (coop_colors_follow (&colors, COOP_COLOR_OPERATOR, &frame));
  g_assert_cmpuint (colors.ids[1], ==, 1); /* the larger one first */
  g_assert_cmpuint (colors.ids[2], ==, 2);
  g_assert_cmpuint (coop_colors_of (COOP_COLOR_OPERATOR, &colors, &frame, &pieces[2]), ==, 2);
  pieces[0].bytes = MIB / 2; /* a colour stays where it is */
  g_assert_false (coop_colors_follow (&colors, COOP_COLOR_OPERATOR, &frame));
  pieces[0].name = 3; /* until there is nothing of it any more */
  g_assert_true (coop_colors_follow (&colors, COOP_COLOR_OPERATOR, &frame));
  g_assert_cmpuint (colors.ids[1], ==, 3);
  pieces[0].bytes = 4 * MIB;
  pieces[0].name = 1;
  g_assert_cmpuint (coop_colors_of (COOP_COLOR_PHASE, &colors, &frame, &pieces[2]), ==, COOP_PHASE_BACKWARD + 1);
  g_assert_cmpuint (coop_colors_of (COOP_COLOR_PIN, &colors, &frame, &pieces[0]), ==, COOP_PIN_CONSTANT + 1);
  g_assert_cmpuint (coop_colors_of (COOP_COLOR_COST, &colors, &frame, &pieces[1]), ==, 0);
  g_assert_cmpuint (coop_colors_of (COOP_COLOR_COST, &colors, &frame, &pieces[2]), >,
                    coop_colors_of (COOP_COLOR_COST, &colors, &frame, &pieces[0]));
  for (int i = 0; i < COOP_N_COLORINGS; i++)
    {
      g_autoptr (GPtrArray) legend = coop_colors_legend ((CoopColoring) i, &colors, FALSE, FALSE, name_of, NULL);
      g_assert_cmpint (legend->len > 0, ==, i != COOP_COLOR_KIND);
      g_assert_nonnull (coop_coloring_name ((CoopColoring) i));
    }
}

/* ---- in the window ---- */

static CoopRunPage *
page_of (GtkWidget *window)
{
  return COOP_RUN_PAGE (find_widget (window, COOP_TYPE_RUN_PAGE));
}

static GtkWidget *
window_on (const MadeTrace *trace)
{
  GtkWidget *window = coop_window_new (NULL);
  gtk_window_set_default_size (GTK_WINDOW (window), 1200, 900);
  gtk_window_present (GTK_WINDOW (window));
  coop_window_open (COOP_WINDOW (window), trace->path, G_MAXUINT64);
  spin_until (coop_run_page_get_frame (page_of (window)));
  return window;
}

static void
test_zoom (void)
{
  g_autoptr (MadeTrace) trace = made_trace_new (6000, BUDGET);
  GtkWidget *window = window_on (trace), *map = find_widget (window, COOP_TYPE_MAP_WIDGET);
  int zoom;
  guint64 from;
  coop_map_widget_zoom (COOP_MAP_WIDGET (map), -1);
  coop_map_widget_get_zoom (COOP_MAP_WIDGET (map), &zoom, &from);
  g_assert_cmpint (zoom, ==, 0);
  coop_map_widget_zoom (COOP_MAP_WIDGET (map), 1);
  coop_map_widget_zoom (COOP_MAP_WIDGET (map), 1); /* before the picture of the first is there */
  coop_map_widget_get_zoom (COOP_MAP_WIDGET (map), &zoom, &from);
  g_assert_cmpint (zoom, ==, 2);
  g_assert_cmpuint (from, >, 0);
  spin_until (find_text (window, "4×"));
  const CoopFrame *now = coop_run_page_get_frame (page_of (window));
  const CoopMapPiece *last = &now->pieces[now->n_pieces - 2];
  coop_map_widget_show_range (COOP_MAP_WIDGET (map), last->addr, last->bytes, TRUE);
  coop_map_widget_get_zoom (COOP_MAP_WIDGET (map), &zoom, &from);
  g_assert_cmpint (zoom, >, 2);
  g_assert_cmpuint (from, <=, last->addr);
  coop_map_widget_zoom (COOP_MAP_WIDGET (map), 0);
  spin_until (find_text (window, "1×"));
  assert_finalized (window);
}

static guint
count_holes (const CoopFrame *now)
{
  guint n = 0;
  for (guint i = 0; i < now->n_pieces; i++)
    n += !now->pieces[i].used;
  return n;
}

static void
test_search (void)
{
  g_autoptr (MadeTrace) trace = made_trace_new (6000, BUDGET);
  GtkWidget *window = window_on (trace), *bar = find_widget (window, COOP_TYPE_MAP_BAR);
  coop_map_bar_search (COOP_MAP_BAR (bar), "hole");
  g_autofree char *text = g_strdup_printf ("%u found", count_holes (coop_run_page_get_frame (page_of (window))));
  spin_until (find_text (bar, text));
  coop_map_bar_search (COOP_MAP_BAR (bar), "no such thing");
  spin_until (find_text (bar, "nothing found"));
  coop_map_bar_search (COOP_MAP_BAR (bar), "");
  GtkWidget *found = find_text (bar, "nothing found");
  spin_until (!gtk_widget_get_visible (found));
  coop_map_bar_set_coloring (COOP_MAP_BAR (bar), COOP_COLOR_AGE);
  spin_until (find_text (find_widget (window, COOP_TYPE_LEGEND), "30 s or longer"));
  coop_map_bar_set_coloring (COOP_MAP_BAR (bar), COOP_COLOR_KIND);
  spin_until (!find_text (find_widget (window, COOP_TYPE_LEGEND), "30 s or longer"));
  assert_finalized (window);
}

static void
test_why (void)
{
  g_autoptr (MadeTrace) trace = made_trace_new (6000, BUDGET);
  GtkWidget *window = window_on (trace);
  coop_run_page_step_eviction (page_of (window), -1);
  spin_ms (300);
  coop_map_bar_set_why (COOP_MAP_BAR (find_widget (window, COOP_TYPE_MAP_BAR)), TRUE);
  GtkWidget *view = find_widget (window, COOP_TYPE_WHY_VIEW);
  spin_until (gtk_widget_get_mapped (view));
  const CoopFrame *now = coop_run_page_get_frame (page_of (window));
  g_assert_cmpuint (now->n_victims, >, 0);
  g_autofree char *words = coop_why_words (now);
  spin_until (find_text (view, words));
  g_autofree char *score = g_strdup_printf ("%.3g", now->victims[0].why.h);
  if (isfinite (now->victims[0].why.h))
    spin_until (find_text (view, score));
  assert_finalized (window);
}

int
main (int argc, char **argv)
{
  gtk_test_init (&argc, &argv, NULL);
  adw_init ();
  g_test_add_func ("/ui/look/find", test_find);
  g_test_add_func ("/ui/look/colors", test_colors);
  g_test_add_func ("/ui/look/zoom", test_zoom);
  g_test_add_func ("/ui/look/search", test_search);
  g_test_add_func ("/ui/look/why", test_why);
  return g_test_run ();
}
