/* SPDX-License-Identifier: Apache-2.0 */
/* The past of a trace in the window: by slider, by keys, by a click in the chart. Where it ought to
 * arrive is found by looking at all events.
 */
#include "chart-widget.h"
#include "fake-session.h"
#include "made-trace.h"
#include "run-page.h"
#include "scrubber.h"
#include "start-form.h"
#include "ui-support.h"
#include "window.h"

#define BUDGET (1 << 20) /* small, so that there are evictions all the time */

static guint64
seq_of (GtkWidget *window)
{
  const CoopFrame *frame = coop_run_page_get_frame (COOP_RUN_PAGE (find_widget (window, COOP_TYPE_RUN_PAGE)));
  return frame ? frame->totals.seq : G_MAXUINT64;
}

static GtkWidget *
open_at (const MadeTrace *trace, guint64 event)
{
  GtkWidget *window = coop_window_new (NULL);
  gtk_window_present (GTK_WINDOW (window));
  coop_window_open (COOP_WINDOW (window), trace->path, event);
  spin_until (seq_of (window) == MIN (event, trace->n - 1));
  return window;
}

/* What a key does on a widget, as its class has it. */
static void
press (GtkWidget *widget, const char *key)
{
  g_autoptr (GListModel) controllers = gtk_widget_observe_controllers (widget);
  for (guint i = 0; i < g_list_model_get_n_items (controllers); i++)
    {
      g_autoptr (GObject) controller = g_list_model_get_item (controllers, i);
      for (guint k = 0; GTK_IS_SHORTCUT_CONTROLLER (controller)
                        && k < g_list_model_get_n_items (G_LIST_MODEL (controller)); k++)
        {
          g_autoptr (GtkShortcut) shortcut = g_list_model_get_item (G_LIST_MODEL (controller), k);
          g_autofree char *name = gtk_shortcut_trigger_to_string (gtk_shortcut_get_trigger (shortcut));
          if (!g_str_equal (name, key))
            continue;
          g_assert_true (gtk_shortcut_action_activate (gtk_shortcut_get_action (shortcut), 0, widget,
                                                       gtk_shortcut_get_arguments (shortcut)));
          return;
        }
    }
  g_error ("no key %s", key);
}

static void
test_keys (void)
{
  g_autoptr (MadeTrace) trace = made_trace_new (6000, BUDGET);
  GtkWidget *window = open_at (trace, 4000), *page = find_widget (window, COOP_TYPE_RUN_PAGE);
  guint64 next = made_trace_next_eviction (trace, 4000, FALSE);
  g_assert_cmpuint (next, >, 4000);
  press (page, "bracketright");
  spin_until (seq_of (window) == 4001);
  press (page, "bracketleft");
  press (page, "bracketleft");
  spin_until (seq_of (window) == 3999);
  press (page, "braceright");
  spin_until (seq_of (window) == made_trace_next_eviction (trace, 3999, FALSE));
  press (page, "braceright");
  next = made_trace_next_eviction (trace, made_trace_next_eviction (trace, 3999, FALSE), FALSE);
  spin_until (seq_of (window) == next);
  /* the slider has come along */
  g_assert_cmpuint (coop_scrubber_get_event (COOP_SCRUBBER (find_widget (window, COOP_TYPE_SCRUBBER))), ==, next);
  press (page, "braceleft");
  spin_until (seq_of (window) == made_trace_next_eviction (trace, next, TRUE));
  press (page, "Home");
  spin_until (seq_of (window) == 0);
  press (page, "braceleft"); /* there is none before */
  spin_ms (100);
  g_assert_cmpuint (seq_of (window), ==, 0);
  press (page, "End");
  spin_until (seq_of (window) == 5999);
  press (page, "bracketright");
  spin_ms (100);
  g_assert_cmpuint (seq_of (window), ==, 5999);
  assert_finalized (window);
}

static void
note_ts (GtkWidget *chart, guint64 ts, guint64 *noted)
{
  *noted = ts;
}

/* Along the whole chart; the end is where the pointer goes past it. */
static void
test_chart (void)
{
  g_autoptr (MadeTrace) trace = made_trace_new (6000, BUDGET);
  GtkWidget *window = open_at (trace, G_MAXUINT64), *chart = find_widget (window, COOP_TYPE_CHART_WIDGET);
  guint64 ts = G_MAXUINT64, before = 0;
  g_signal_connect (chart, "sought", G_CALLBACK (note_ts), &ts);
  for (int i = 0; i < 400 && ts == G_MAXUINT64; i++) /* once it is there */
    {
      coop_chart_widget_seek (COOP_CHART_WIDGET (chart), 100);
      spin_ms (10);
    }
  for (int part = 2; part <= 10; part++)
    {
      double past = part == 10 ? 50 : 0;
      coop_chart_widget_seek (COOP_CHART_WIDGET (chart), gtk_widget_get_width (chart) * part / 10.0 + past);
      guint64 want = made_trace_event_at (trace, ts);
      spin_until (seq_of (window) == want);
      g_assert_cmpuint (want, >, before);
      before = want;
    }
  g_assert_cmpuint (before, ==, 5999);
  assert_finalized (window);
}

/* While a script runs the chart cannot be clicked at; once it has ended, the click opens its trace. */
static void
test_chart_of_a_run (void)
{
  GtkWidget *window = coop_window_new (NULL);
  CoopRunOptions options;
  guint64 ts = G_MAXUINT64;
  coop_run_options_init (&options);
  options.argv = g_strsplit ("python3 train.py", " ", -1);
  options.policy.v[COOP_PARAM_BUDGET].i = BUDGET;
  gtk_window_present (GTK_WINDOW (window));
  coop_window_run (COOP_WINDOW (window), &options);
  spin_until (!coop_window_is_starting (COOP_WINDOW (window)));
  coop_run_options_clear (&options);
  GtkWidget *page = find_widget (window, COOP_TYPE_RUN_PAGE), *chart = find_widget (window, COOP_TYPE_CHART_WIDGET);
  g_signal_connect (page, "sought", G_CALLBACK (note_ts), &ts);
  fake_session_play (fake_session_last (), 3000);
  spin_until (seq_of (window) == 2999);
  spin_ms (500);
  coop_chart_widget_seek (COOP_CHART_WIDGET (chart), 200);
  g_assert_cmpuint (ts, ==, G_MAXUINT64);
  fake_session_end (fake_session_last (), COOP_SESSION_ENDED, 0);
  g_assert_true (g_action_group_get_action_enabled (G_ACTION_GROUP (window), "look-back"));
  spin_ms (500);
  coop_chart_widget_seek (COOP_CHART_WIDGET (chart), 200);
  g_assert_cmpuint (ts, !=, G_MAXUINT64);
  spin_until (coop_window_get_said (COOP_WINDOW (window))); /* the made-up session has no file */
  g_assert_nonnull (strstr (coop_window_get_said (COOP_WINDOW (window)), "/nowhere/fake.coop"));
  assert_finalized (window);
}

/* What happens when a file manager lets go of a file over the window. */
static gboolean
drop (GtkWidget *window, const char *path)
{
  g_autoptr (GListModel) controllers = gtk_widget_observe_controllers (window);
  g_autoptr (GFile) file = g_file_new_for_path (path);
  g_auto (GValue) value = G_VALUE_INIT;
  gboolean taken = FALSE;
  g_value_init (&value, G_TYPE_FILE);
  g_value_set_object (&value, file);
  for (guint i = 0; i < g_list_model_get_n_items (controllers); i++)
    {
      g_autoptr (GObject) controller = g_list_model_get_item (controllers, i);
      if (GTK_IS_DROP_TARGET (controller))
        g_signal_emit_by_name (controller, "drop", &value, 10.0, 10.0, &taken);
    }
  return taken;
}

static void
test_drop (void)
{
  g_autoptr (MadeTrace) trace = made_trace_new (2000, BUDGET);
  GtkWidget *window = coop_window_new (NULL);
  gtk_window_present (GTK_WINDOW (window));
  g_assert_true (drop (window, trace->path));
  spin_until (seq_of (window) == 1999);
  g_assert_true (drop (window, "/some/where/train.py"));
  g_assert_false (coop_window_is_busy (COOP_WINDOW (window)));
  CoopRunOptions options;
  coop_run_options_init (&options);
  GtkWidget *form = find_widget (window, COOP_TYPE_START_FORM);
  g_assert_true (coop_start_form_get_options (COOP_START_FORM (form), &options, NULL));
  g_assert_cmpstr (options.argv[1], ==, "/some/where/train.py");
  coop_run_options_clear (&options);
  assert_finalized (window);
}

int
main (int argc, char **argv)
{
  gtk_test_init (&argc, &argv);
  adw_init ();
  g_test_add_func ("/ui/history/keys", test_keys);
  g_test_add_func ("/ui/history/chart", test_chart);
  g_test_add_func ("/ui/history/chart-of-a-run", test_chart_of_a_run);
  g_test_add_func ("/ui/history/drop", test_drop);
  return g_test_run ();
}
