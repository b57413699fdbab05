/* SPDX-License-Identifier: Apache-2.0 */
/* The widgets one by one: what they show, what they say to assistive tools, that they go away. */
#include <adwaita.h>
#include <math.h>

#include "../support/gen-events.h"
#include "chart-widget.h"
#include "fake-session.h"
#include "headline.h"
#include "legend.h"
#include "map-widget.h"
#include "policy-panel.h"
#include "policy-row.h"
#include "run-page.h"
#include "run-words.h"
#include "start-form.h"
#include "table.h"
#include "ui-support.h"

/* ---- policy row ---- */

/* Position -> value -> position is the identity wherever the value is not rounded; both directions
 * grow; the ends of the range are the ends of the slider. */
static void
test_slider_scale (void)
{
  for (int i = 0; i < COOP_N_PARAMS; i++)
    {
      const CoopParamInfo *info = &coop_param_info[i];
      CoopParam param = (CoopParam) i;
      gboolean real = info->type == COOP_TYPE_REAL;
      CoopValue low = real ? (CoopValue) { .d = info->min } : (CoopValue) { .i = (gint64) info->min };
      CoopValue high = real ? (CoopValue) { .d = info->max } : (CoopValue) { .i = (gint64) info->max };
      double from = coop_policy_row_to_slider (param, low), to = coop_policy_row_to_slider (param, high);
      CoopValue before = low;
      g_assert_cmpfloat (from, <=, to); /* equal: a list with one entry */
      g_assert_true (coop_value_equal (param, coop_policy_row_from_slider (param, from), low));
      g_assert_true (coop_value_equal (param, coop_policy_row_from_slider (param, to), high));
      for (int k = 0; k <= 100; k++)
        {
          CoopValue value = coop_policy_row_from_slider (param, from + (to - from) * k / 100);
          double back = coop_policy_row_to_slider (param, value);
          CoopValue again = coop_policy_row_from_slider (param, back);
          g_assert_true (coop_value_equal (param, value, again));
          g_assert_true (real ? value.d >= before.d : value.i >= before.i);
          before = value;
        }
    }
}

static void
count_up (CoopPolicyRow *row, int *n)
{
  (*n)++;
}

static void
test_budget_row (void)
{
  GtkWidget *row = coop_policy_row_new (COOP_PARAM_BUDGET), *entry, *scale;
  int changes = 0;
  g_object_ref_sink (row);
  g_signal_connect (row, "changed", G_CALLBACK (count_up), &changes);
  entry = find_widget (row, GTK_TYPE_ENTRY);
  scale = find_widget (row, GTK_TYPE_SCALE);
  g_assert_cmpstr (gtk_editable_get_text (GTK_EDITABLE (entry)), ==, "no limit");

  coop_policy_row_set_initial (COOP_POLICY_ROW (row), (CoopValue) { .i = 300 << 20 });
  coop_policy_row_set_value (COOP_POLICY_ROW (row), (CoopValue) { .i = 300 << 20 });
  g_assert_cmpint (changes, ==, 0); /* nobody has touched it */
  g_assert_cmpfloat (gtk_range_get_value (GTK_RANGE (scale)), ==, 300);
  g_assert_cmpstr (gtk_editable_get_text (GTK_EDITABLE (entry)), ==, "300.0 MiB");

  gtk_range_set_value (GTK_RANGE (scale), 200);
  g_assert_cmpint (changes, ==, 1);
  g_assert_cmpint (coop_policy_row_get_value (COOP_POLICY_ROW (row)).i, ==, 200 << 20);

  gtk_editable_set_text (GTK_EDITABLE (entry), "1,5 GB");
  g_signal_emit_by_name (entry, "activate");
  g_assert_cmpint (changes, ==, 1);
  g_assert_true (gtk_widget_has_css_class (entry, "error"));

  gtk_editable_set_text (GTK_EDITABLE (entry), "1 GiB"); /* past the end of the slider, which grows */
  g_signal_emit_by_name (entry, "activate");
  g_assert_cmpint (changes, ==, 2);
  g_assert_false (gtk_widget_has_css_class (entry, "error"));
  g_assert_cmpint (coop_policy_row_get_value (COOP_POLICY_ROW (row)).i, ==, 1 << 30);
  g_assert_cmpfloat (gtk_range_get_value (GTK_RANGE (scale)), ==, 1024);

  g_signal_emit_by_name (find_widget (row, GTK_TYPE_BUTTON), "clicked"); /* reset */
  g_assert_cmpint (coop_policy_row_get_value (COOP_POLICY_ROW (row)).i, ==, 300 << 20);
  g_assert_cmpint (changes, ==, 3);
  assert_finalized (row);
}

static void
test_row_is_accessible (void)
{
  GtkWidget *row = g_object_ref_sink (coop_policy_row_new (COOP_PARAM_DENSITY));
  GtkWidget *scale = find_widget (row, GTK_TYPE_SCALE);
  gtk_test_accessible_assert_role (GTK_ACCESSIBLE (scale), GTK_ACCESSIBLE_ROLE_SLIDER);
  gtk_test_accessible_assert_property (GTK_ACCESSIBLE (scale), GTK_ACCESSIBLE_PROPERTY_LABEL, "density");
  gtk_test_accessible_assert_property (GTK_ACCESSIBLE (scale), GTK_ACCESSIBLE_PROPERTY_VALUE_TEXT, "0.25");
  assert_finalized (row);
}

static void
note_param (CoopPolicyPanel *panel, guint param, guint *last)
{
  *last = param;
}

static void
test_panel (void)
{
  GtkWidget *panel = g_object_ref_sink (coop_policy_panel_new ());
  CoopPolicy policy;
  guint last = COOP_N_PARAMS;
  coop_policy_init (&policy);
  policy.v[COOP_PARAM_BUDGET].i = 100 << 20;
  coop_policy_panel_set_initial (COOP_POLICY_PANEL (panel), &policy);
  for (int i = 0; i < COOP_N_PARAMS; i++)
    g_assert_true (coop_value_equal (
        (CoopParam) i, coop_policy_panel_get_value (COOP_POLICY_PANEL (panel), (CoopParam) i), policy.v[i]));

  g_signal_connect (panel, "changed", G_CALLBACK (note_param), &last);
  policy.v[COOP_PARAM_BUDGET].i = 90 << 20; /* from outside: shown, not said */
  coop_policy_panel_set_policy (COOP_POLICY_PANEL (panel), &policy);
  g_assert_cmpuint (last, ==, COOP_N_PARAMS);
  GtkWidget *scale = find_widget (panel, GTK_TYPE_SCALE);
  g_assert_cmpfloat (gtk_range_get_value (GTK_RANGE (scale)), ==, 90);

  gtk_range_set_value (GTK_RANGE (scale), 80);
  g_assert_cmpuint (last, ==, COOP_PARAM_BUDGET);
  /* the script has not taken it over yet: the slider must not jump back */
  coop_policy_panel_set_policy (COOP_POLICY_PANEL (panel), &policy);
  g_assert_cmpfloat (gtk_range_get_value (GTK_RANGE (scale)), ==, 80);
  assert_finalized (panel);
}

/* ---- map and table ---- */

static CoopScene *
scene_of (CoopSession *session)
{
  CoopSceneOptions options = { .width = 320, .height = 200, .scale = 1 };
  CoopFrame *frame = coop_session_frame (session);
  CoopScene *scene = coop_scene_new (frame, &options);
  coop_frame_unref (frame);
  return scene;
}

static void
test_map_is_accessible (void)
{
  GtkWidget *map = g_object_ref_sink (coop_map_widget_new ());
  gtk_test_accessible_assert_role (GTK_ACCESSIBLE (map), GTK_ACCESSIBLE_ROLE_IMG);
  gtk_test_accessible_assert_property (GTK_ACCESSIBLE (map), GTK_ACCESSIBLE_PROPERTY_LABEL,
                                       "Map of the address space");
  assert_finalized (map);
}

static void
test_scene_sentence (void)
{
  g_autoptr (CoopSession) session = fake_session_new (1 << 20);
  fake_session_fill (session, 8, 1 << 20);
  g_autoptr (CoopScene) scene = scene_of (session);
  g_autofree char *sentence = coop_scene_describe (scene);
  g_assert_cmpstr (sentence, ==,
                   "4.0 MiB of 8.0 MiB used, 4.0 MiB of it pinned. 4.0 MiB free; the largest hole is 1.0 MiB "
                   "at 0x0.");
}

/* The twin of the map holds the largest pieces, in order, as a full sort finds them. */
static int
by_size (gconstpointer a, gconstpointer b)
{
  guint64 x = *(const guint64 *) a, y = *(const guint64 *) b;
  return x > y ? -1 : x < y;
}

static void
test_blocks_are_the_largest (void)
{
  g_autoptr (CoopSession) session = fake_session_new (64 << 20);
  fake_session_play (session, 6000);
  g_autoptr (CoopScene) scene = scene_of (session);
  g_autoptr (GPtrArray) rows = coop_words_for_blocks (scene, 10);
  g_autoptr (GArray) sizes = g_array_new (FALSE, FALSE, sizeof (guint64));
  for (guint i = 0; i < scene->n_pieces; i++)
    g_array_append_val (sizes, scene->frame->pieces[i].bytes);
  g_array_sort (sizes, by_size);
  g_assert_cmpuint (rows->len, ==, MIN (10, sizes->len));
  for (guint r = 0; r < rows->len; r++)
    {
      guint64 id = coop_table_row_get_id (rows->pdata[r]), bytes = 0;
      for (guint i = 0; i < scene->n_pieces && id != 0; i++)
        if (scene->frame->pieces[i].block == id)
          bytes = scene->frame->pieces[i].bytes;
      if (id != 0)
        g_assert_cmpuint (bytes, ==, g_array_index (sizes, guint64, r));
    }
}

static GPtrArray *
rows_from (guint64 first)
{
  GPtrArray *rows = g_ptr_array_new_with_free_func (g_object_unref);
  for (guint64 id = first; id < first + 10; id++)
    {
      CoopTableRow *row = coop_table_row_new (id);
      coop_table_row_take (row, 0, g_strdup_printf ("%" G_GUINT64_FORMAT, id));
      g_ptr_array_add (rows, row);
    }
  return rows;
}

static void
note_id (CoopTable *table, guint64 id, guint64 *picked)
{
  *picked = id;
}

static void
test_table_keeps_its_selection (void)
{
  const CoopTableColumn columns[] = { { "Number", TRUE, FALSE }, { NULL } };
  GtkWidget *table = g_object_ref_sink (coop_table_new (columns, "Numbers"));
  GtkWidget *view = find_widget (table, GTK_TYPE_COLUMN_VIEW);
  GtkSingleSelection *selection
      = GTK_SINGLE_SELECTION (gtk_column_view_get_model (GTK_COLUMN_VIEW (view)));
  guint64 picked = 99;
  g_signal_connect (table, "picked", G_CALLBACK (note_id), &picked);
  g_autoptr (GPtrArray) first = rows_from (1), second = rows_from (3), third = rows_from (50);
  coop_table_set_rows (COOP_TABLE (table), first, 10);
  g_assert_cmpuint (picked, ==, 99);
  gtk_single_selection_set_selected (selection, 4);
  g_assert_cmpuint (picked, ==, 5);
  coop_table_set_rows (COOP_TABLE (table), second, 10);
  g_assert_cmpuint (gtk_single_selection_get_selected (selection), ==, 2);
  coop_table_set_rows (COOP_TABLE (table), third, 10);
  g_assert_cmpuint (gtk_single_selection_get_selected (selection), ==, GTK_INVALID_LIST_POSITION);
  g_assert_cmpuint (picked, ==, 5);
  /* in turns: it is found when its turn comes, and stays when others come */
  coop_table_set_rows (COOP_TABLE (table), first, 3);
  g_assert_cmpuint (coop_table_get_n_rows (COOP_TABLE (table)), ==, 3);
  g_assert_cmpuint (gtk_single_selection_get_selected (selection), ==, GTK_INVALID_LIST_POSITION);
  coop_table_add_rows (COOP_TABLE (table), first, 3, 4);
  g_assert_cmpuint (gtk_single_selection_get_selected (selection), ==, 4);
  coop_table_add_rows (COOP_TABLE (table), first, 7, 100);
  g_assert_cmpuint (coop_table_get_n_rows (COOP_TABLE (table)), ==, 10);
  g_assert_cmpuint (gtk_single_selection_get_selected (selection), ==, 4);
  g_assert_cmpuint (picked, ==, 5);
  assert_finalized (table);
}

/* ---- form ---- */

static void
test_form (void)
{
  GtkWidget *form = g_object_ref_sink (coop_start_form_new ());
  g_autoptr (GError) error = NULL;
  CoopRunOptions options;
  coop_run_options_init (&options);
  g_assert_false (coop_start_form_get_options (COOP_START_FORM (form), &options, &error));
  g_assert_nonnull (error);
  g_clear_error (&error);
  coop_start_form_set_script (COOP_START_FORM (form), "/some/where/train.py");
  g_assert_true (coop_start_form_get_options (COOP_START_FORM (form), &options, &error));
  g_assert_no_error (error);
  g_assert_cmpstr (options.argv[0], ==, "python3");
  g_assert_cmpstr (options.argv[1], ==, "/some/where/train.py");
  g_assert_cmpstr (options.cwd, ==, "/some/where");
  coop_run_options_clear (&options);
  assert_finalized (form);
}

static void
test_go_away (void)
{
  assert_finalized (coop_chart_widget_new ());
  assert_finalized (coop_headline_new ());
  assert_finalized (coop_counters_new ());
  assert_finalized (coop_legend_new ());
  assert_finalized (coop_run_page_new ());
}

int
main (int argc, char **argv)
{
  g_setenv ("GTK_A11Y", "test", TRUE);
  gtk_test_init (&argc, &argv);
  adw_init ();
  g_test_add_func ("/ui/policy-row/scale", test_slider_scale);
  g_test_add_func ("/ui/policy-row/budget", test_budget_row);
  g_test_add_func ("/ui/policy-row/accessible", test_row_is_accessible);
  g_test_add_func ("/ui/policy-panel", test_panel);
  g_test_add_func ("/ui/map/accessible", test_map_is_accessible);
  g_test_add_func ("/ui/map/sentence", test_scene_sentence);
  g_test_add_func ("/ui/table/blocks", test_blocks_are_the_largest);
  g_test_add_func ("/ui/table/selection", test_table_keeps_its_selection);
  g_test_add_func ("/ui/start-form", test_form);
  g_test_add_func ("/ui/go-away", test_go_away);
  return g_test_run ();
}
